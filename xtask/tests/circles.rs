//! No crate has a circle of imports: files that import each other, directly or by way of others, can only be read together.
//!
//! What counts is where a name is defined, not through which `pub use` it came. A file that declares others and hands
//! their names on imports nothing by that; it does where it uses such a name itself. Tests do not count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A `use` of one name, or of all (`None`).
struct Import {
    name: Option<String>,
    path: Vec<String>,
    is_handed_on: bool,
}

/// A module, in a file of its own or in that of another.
struct Module {
    /// The module itself for `crate`.
    parent: usize,
    file: PathBuf,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths beside those of imports.
    paths: Vec<Vec<String>>,
}

/// All modules of one library, program or example; the first one is its root.
#[derive(Default)]
struct Crate {
    modules: Vec<Module>,
    /// Macros that the root has, wherever they are defined.
    exported_macros: BTreeMap<String, usize>,
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn braces(token: Option<&TokenTree>) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            Some(group.stream())
        }
        _ => None,
    }
}

/// A path from the token `at` on, such as `a::b::c`, and where it ends.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut path: Vec<String> = ident(tokens.get(at)).into_iter().collect();
    at += 1;
    while is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':') {
        let Some(next) = ident(tokens.get(at + 2)) else { break };
        path.push(next);
        at += 3;
    }
    (path, at)
}

/// What a `use` names, without that word and the semicolon.
fn use_tree(tokens: &[TokenTree], prefix: &[String], is_handed_on: bool, found: &mut Vec<Import>) {
    for tree in tokens.split(|token| is_punct(Some(token), ',')) {
        if ident(tree.first()).is_none() && !is_punct(tree.first(), '*') {
            // `use ::other_crate::..`, or nothing behind a last comma.
            continue;
        }
        let (more, mut at) = match ident(tree.first()) {
            Some(_) => path_at(tree, 0),
            None => (Vec::new(), 0),
        };
        let mut path = [prefix, &more].concat();
        let goes_on = is_punct(tree.get(at), ':');
        at += if goes_on { 2 } else { 0 };
        if let Some(TokenTree::Group(group)) = tree.get(at) {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            use_tree(&inner, &path, is_handed_on, found);
        } else if is_punct(tree.get(at), '*') {
            found.push(Import { name: None, path, is_handed_on });
        } else {
            let renamed = ident(tree.get(at)).filter(|word| word == "as");
            if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                path.pop();
            }
            let name = match renamed {
                Some(_) => ident(tree.get(at + 1)),
                None => path.last().cloned(),
            };
            found.push(Import { name, path, is_handed_on });
        }
    }
}

/// All paths in code, those in the arguments of macros included.
fn paths_in(tokens: &[TokenTree], found: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                paths_in(&inner, found);
                at += 1;
            }
            TokenTree::Ident(word) if word == "use" && !is_punct(tokens.get(at + 1), '<') => {
                let rest = &tokens[at + 1..];
                let end = rest.iter().position(|token| is_punct(Some(token), ';'));
                let mut imports = Vec::new();
                use_tree(&rest[..end.unwrap_or(0)], &[], false, &mut imports);
                found.extend(imports.into_iter().map(|import| import.path));
                at += 1 + end.unwrap_or(0);
            }
            TokenTree::Ident(word) if word == "pub" => {
                at += 1 + usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Group(_))));
            }
            TokenTree::Ident(_) => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                // A field, a method, a lifetime, or what follows a path's angle brackets.
                let is_after = |mark| is_punct(before, mark);
                let follows_path = is_after(':') && is_punct(tokens.get(at.wrapping_sub(2)), ':');
                let is_member = follows_path || is_after('.') || is_after('\'');
                let (path, end) = path_at(tokens, at);
                let is_field = path.len() == 1
                    && is_punct(tokens.get(end), ':')
                    && !is_punct(tokens.get(end + 1), ':');
                if !is_member && !is_field {
                    found.push(path);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
}

/// Whether attributes leave an item to tests.
fn is_for_tests(attributes: &[String]) -> bool {
    attributes.iter().any(|text| text.starts_with("cfg(test") || text.starts_with("cfg(all(test"))
}

/// The file that an attribute names for a module.
fn named_file(attributes: &[String]) -> Option<String> {
    let named = attributes.iter().find_map(|text| text.strip_prefix("path=\""));
    named.map(|text| text.trim_end_matches('"').to_string())
}

impl Crate {
    /// Reads the crate whose root is that file.
    fn read(root: &Path) -> Crate {
        let mut read = Crate::default();
        let folder = root.parent().expect("it is in a folder").to_path_buf();
        read.add_file(0, root, folder);
        read
    }

    fn add(&mut self, parent: usize, file: &Path) -> usize {
        self.modules.push(Module {
            parent,
            file: file.to_path_buf(),
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
            paths: Vec::new(),
        });
        self.modules.len() - 1
    }

    /// Adds a file, whose modules are in `folder`.
    fn add_file(&mut self, parent: usize, file: &Path, folder: PathBuf) -> usize {
        let text =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens: TokenStream = text.parse().expect("it is Rust");
        let module = self.add(parent, file);
        self.add_items(module, tokens, &folder);
        module
    }

    fn add_items(&mut self, module: usize, tokens: TokenStream, folder: &Path) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut attributes) = (0, Vec::new());
        while at < tokens.len() {
            if is_punct(tokens.get(at), '#') {
                at += if is_punct(tokens.get(at + 1), '!') { 2 } else { 1 };
                if let Some(TokenTree::Group(group)) = tokens.get(at) {
                    attributes.push(group.stream().to_string().replace(' ', ""));
                }
                at += 1;
                continue;
            }
            let end = at + item_len(&tokens[at..]);
            if !is_for_tests(&attributes) {
                self.add_item(module, &tokens[at..end], &attributes, folder);
            }
            attributes.clear();
            at = end;
        }
    }

    fn add_item(
        &mut self,
        module: usize,
        item: &[TokenTree],
        attributes: &[String],
        folder: &Path,
    ) {
        let is_public = ident(item.first()).is_some_and(|word| word == "pub");
        let is_narrowed = matches!(item.get(1), Some(TokenTree::Group(_)));
        let start = if is_public { 1 + usize::from(is_narrowed) } else { 0 };
        let item = &item[start..];
        let words: Vec<String> =
            item.iter().take(5).map_while(|token| ident(Some(token))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["use", ..] => {
                let tree = &item[1..item.len() - 1];
                use_tree(tree, &[], is_public, &mut self.modules[module].imports);
            }
            ["mod", name] => {
                let inner = braces(item.get(2));
                let child = match inner {
                    Some(inner) => {
                        let file = self.modules[module].file.clone();
                        let child = self.add(module, &file);
                        self.add_items(child, inner, &folder.join(name));
                        child
                    }
                    None => {
                        let beside = folder.join(format!("{name}.rs"));
                        let inside = folder.join(name).join("mod.rs");
                        let named = named_file(attributes).map(|named| folder.join(named));
                        let file = named.unwrap_or(if beside.exists() { beside } else { inside });
                        self.add_file(module, &file, folder.join(name))
                    }
                };
                self.modules[module].children.insert((*name).to_string(), child);
            }
            ["macro_rules"] => {
                let name = ident(item.get(2)).expect("a macro has a name");
                let is_exported = attributes.iter().any(|text| text == "macro_export");
                match is_exported {
                    true => _ = self.exported_macros.insert(name, module),
                    false => _ = self.modules[module].defined.insert(name),
                }
                paths_in(&item[3..], &mut self.modules[module].paths);
            }
            words => {
                const KINDS: [&str; 8] =
                    ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];
                let kind = words.iter().rposition(|word| KINDS.contains(word));
                let name = kind.and_then(|kind| words.get(kind + 1)).filter(|_| words[0] != "impl");
                let module = &mut self.modules[module];
                module.defined.extend(name.map(|name| (*name).to_string()));
                paths_in(item, &mut module.paths);
            }
        }
    }

    /// The module where a path that is written in `module` leads to; `None` if that is in another crate, or a name of
    /// the place itself.
    fn resolve(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        let mut at = module;
        let mut rest = path;
        if depth > 20 {
            return None;
        }
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.modules[at].parent,
                name => return self.find(at, name, others, depth),
            }
            rest = others;
        }
        Some(at)
    }

    /// Where `name`, as it is known in a module, leads to, followed by `rest`.
    fn find(&self, at: usize, name: &str, rest: &[String], depth: usize) -> Option<usize> {
        let module = &self.modules[at];
        if module.defined.contains(name) {
            return Some(at);
        }
        if let Some(found) = self.exported_macros.get(name).filter(|_| at == 0) {
            return Some(*found);
        }
        if let Some(child) = module.children.get(name) {
            return match rest.split_first() {
                Some((next, rest)) => self.find(*child, next, rest, depth + 1),
                None => Some(*child),
            };
        }
        let named = module.imports.iter().find(|import| import.name.as_deref() == Some(name));
        if let Some(import) = named {
            // `use other_crate;` names itself.
            let leads_on = import.path.first().is_some_and(|first| first != name);
            let path = [&import.path, rest].concat();
            return leads_on.then(|| self.resolve(at, &path, depth + 1)).flatten();
        }
        let all = module.imports.iter().filter(|import| import.name.is_none());
        all.filter(|import| import.path.first().is_some_and(|first| first != name))
            .filter_map(|import| self.resolve(at, &import.path, depth + 1))
            .find_map(|of| {
                (of != at && depth < 20).then(|| self.find(of, name, rest, depth + 1))?
            })
    }

    /// Who imports whom, with a path that says so.
    fn edges(&self) -> BTreeMap<PathBuf, BTreeMap<PathBuf, String>> {
        let mut edges: BTreeMap<PathBuf, BTreeMap<PathBuf, String>> = BTreeMap::new();
        for (at, module) in self.modules.iter().enumerate() {
            let imported = module.imports.iter().filter(|import| !import.is_handed_on);
            let paths = imported.map(|import| &import.path).chain(&module.paths);
            for path in paths {
                // A module's own name is no use of what is in it.
                let is_child = path.len() == 1 && module.children.contains_key(&path[0]);
                let found = self.resolve(at, path, 0).filter(|_| !is_child);
                if let Some(found) = found.map(|found| &self.modules[found].file)
                    && *found != module.file
                {
                    let of_file = edges.entry(module.file.clone()).or_default();
                    of_file.entry(found.clone()).or_insert_with(|| path.join("::"));
                }
            }
        }
        edges
    }

    /// The edges of all circles.
    fn circles(&self) -> Vec<String> {
        let edges = self.edges();
        let mut reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = BTreeMap::new();
        for from in edges.keys() {
            let mut seen = BTreeSet::new();
            let mut next = vec![from];
            while let Some(file) = next.pop() {
                let all = edges.get(file).into_iter().flat_map(BTreeMap::keys);
                next.extend(all.filter(|to| seen.insert(*to)));
            }
            reached.insert(from, seen);
        }
        let leads =
            |from: &PathBuf, to: &PathBuf| reached.get(from).is_some_and(|all| all.contains(to));
        let mut lines = Vec::new();
        for (from, of_file) in &edges {
            for (to, path) in of_file.iter().filter(|(to, _)| leads(to, from)) {
                lines.push(format!("{} -> {} by `{path}`", from.display(), to.display()));
            }
        }
        lines
    }
}

/// How many tokens an item has.
fn item_len(tokens: &[TokenTree]) -> usize {
    let words: Vec<String> = tokens.iter().take(3).filter_map(|token| ident(Some(token))).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "pub").collect();
    let ends_in_brace = match words.as_slice() {
        ["use" | "static" | "type", ..] => false,
        ["const", next, ..] => ["fn", "unsafe", "async", "extern"].contains(next),
        _ => true,
    };
    let is_end = |token: &TokenTree| {
        is_punct(Some(token), ';') || ends_in_brace && braces(Some(token)).is_some()
    };
    tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1)
}

/// The roots of all libraries, programs and examples.
fn roots() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.expect("a folder can be listed").path()).collect()
    };
    let mut folders = listed(&top.join("crates"));
    folders.extend(["sim", "python", "xtask"].map(|name| top.join(name)));
    let mut roots = Vec::new();
    for folder in &folders {
        roots.extend(["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)));
        for more in [folder.join("examples"), folder.join("src/bin")] {
            for path in listed(&more) {
                roots.push(if path.is_dir() { path.join("main.rs") } else { path });
            }
        }
    }
    roots.retain(|path| path.exists() && path.extension().is_some_and(|ending| ending == "rs"));
    roots.sort();
    roots
}

#[test]
fn no_crate_has_a_circle_of_imports() {
    let roots = roots();
    assert!(roots.len() > 20, "is the reader of this test broken? {roots:?}");
    let mut circles = Vec::new();
    let mut edges = 0;
    for root in &roots {
        let read = Crate::read(root);
        edges += read.edges().values().map(BTreeMap::len).sum::<usize>();
        circles.extend(read.circles());
    }
    assert!(edges > 1000, "only {edges} imports: is the reader of this test broken?");
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").display().to_string() + "/";
    let text = circles.join("\n").replace(&top, "");
    assert!(circles.is_empty(), "circles of imports, by {} edges:\n{text}", circles.len());
}
