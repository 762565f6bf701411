//! What rots unless something looks: names in the documents, generated files, the log of changes.
//!
//! In README.md, CHANGELOG.md and below docs/, between backticks: a path below a folder of the project must exist,
//! and a symbol after a path to a Rust file, in the same sentence, must be defined in that file. There and below bench/:
//! a link must lead to a file of the project, and to a heading of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose paths the documents may name.
const FOLDERS: [&str; 10] = [
    "crates/",
    "docs/",
    "interop/",
    "bench/",
    "fuzz/",
    "xtask/",
    ".ci/",
    "sim/",
    "python/",
    "packaging/",
];

/// What a merge leaves above what it could not decide.
const MERGE_BEGINS: &str = "<<<<<<< ";
/// And below it.
const MERGE_ENDS: &str = ">>>>>>> ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    found.extend(markdown_below("docs"));
    found
}

fn markdown_below(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Where the links of a Markdown text lead, those to the web left out, with the line of each.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        // What stands between backticks is no link.
        let plain = line.split('`').step_by(2).filter(|_| !is_code);
        for piece in plain {
            let targets = piece.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.filter(|to| !to.contains("://")).map(|to| (number + 1, to)));
        }
    }
    found
}

/// The anchors of a Markdown text's headings, made as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|name| {
            let kept = name.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The texts between backticks of one line, each with the words before it.
fn quoted(line: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = line.split('`').collect();
    pieces.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Whether what follows these words is about another file than what came before them.
fn changes_subject(words: &str) -> bool {
    words.contains(". ") || words.contains("Hadoop")
}

fn is_path(text: &str) -> bool {
    FOLDERS.iter().any(|folder| text.starts_with(folder)) && !text.contains(['*', ' ', '<', '{'])
}

/// The last name of a symbol such as `Reader::read` or `serve()`; `None` for other words.
fn symbol(text: &str) -> Option<&str> {
    let name = text.strip_suffix("()").unwrap_or(text);
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
    let marked = name.contains("::")
        || text.ends_with("()")
        || name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains(char::is_lowercase);
    (plain && marked).then(|| name.rsplit("::").next().unwrap_or(name))
}

fn defines(source: &str, name: &str) -> bool {
    let words: BTreeSet<&str> =
        source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    words.contains(name)
}

#[test]
fn documents_name_what_exists() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document can be read");
        for (number, line) in text.lines().enumerate() {
            let at = format!("{}:{}", document.display(), number + 1);
            let mut source: Option<String> = None;
            for (before, word) in quoted(line) {
                if changes_subject(before) {
                    source = None;
                }
                if is_path(word) {
                    seen += 1;
                    let path = root().join(word);
                    if !path.exists() {
                        wrong.push(format!("{at}: no such path: {word}"));
                    }
                    source = path
                        .extension()
                        .is_some_and(|ending| ending == "rs")
                        .then(|| fs::read_to_string(&path).unwrap_or_default());
                } else if let (Some(source), Some(name)) = (&source, symbol(word)) {
                    seen += 1;
                    if !defines(source, name) {
                        wrong.push(format!("{at}: {word} is not in the file named before it"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "the documents name only {seen} things: is the reader of this test broken?");
}

#[test]
fn links_lead_somewhere() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for document in documents().into_iter().chain(markdown_below("bench")) {
        let text = fs::read_to_string(&document).expect("a document can be read");
        for (number, to) in links(&text) {
            seen += 1;
            let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
            let folder = document.parent().expect("a document is in a folder");
            let target = if path.is_empty() { document.clone() } else { folder.join(path) };
            let leads = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target)
                        .is_ok_and(|text| anchors(&text).contains(anchor)));
            if !leads {
                wrong.push(format!("{}:{number}: {to}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "these lead nowhere:\n{}", wrong.join("\n"));
    assert!(seen > 50, "the documents have only {seen} links: is the reader of this test broken?");
}

#[test]
fn every_page_is_in_the_book() {
    let folder = root().join("docs");
    let summary = fs::read_to_string(folder.join("SUMMARY.md")).expect("the book has a summary");
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|(_, to)| folder.join(to)).collect();
    let pages = markdown_below("docs").into_iter();
    let left_out: Vec<PathBuf> =
        pages.filter(|page| !listed.contains(page) && !page.ends_with("SUMMARY.md")).collect();
    assert!(left_out.is_empty(), "not in docs/SUMMARY.md: {left_out:?}");
}

/// Whether a text has lines that a merge leaves where both sides have changed.
fn is_half_merged(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(MERGE_BEGINS) || line.starts_with(MERGE_ENDS))
}

#[test]
fn no_text_is_half_merged() {
    let pages = ["sim", "bench", "fuzz", "interop"].map(|folder| root().join(folder));
    let of_folders = pages.iter().flat_map(|folder| {
        let below = fs::read_dir(folder).expect("a folder can be listed");
        let below = below.map(|entry| entry.expect("a folder can be listed").path());
        below.chain([folder.clone()]).map(|folder| folder.join("README.md"))
    });
    for page in documents().into_iter().chain(of_folders.filter(|page| page.exists())) {
        let text = fs::read_to_string(&page).expect("a page can be read");
        assert!(!is_half_merged(&text), "{} has marks of a merge", page.display());
    }
}

#[test]
fn a_text_that_is_half_merged_would_be_noticed() {
    assert!(is_half_merged(&format!("a\n{MERGE_BEGINS}ours\nb\n")));
    assert!(!is_half_merged("a < b\n=======\n"));
}

#[test]
fn a_wrong_link_would_be_noticed() {
    let text = "# Why `x` is, and how\n[a](b.md#c) and [d](https://e)\n```\n# [f](g)\n```\n`[h](i)` ![j](k.png)";
    assert_eq!(links(text), [(2, "b.md#c"), (6, "k.png")]);
    assert_eq!(anchors(text), BTreeSet::from(["why-x-is-and-how".to_owned()]));
}

#[test]
fn a_wrong_symbol_would_be_noticed() {
    let pairs = [("see ", "crates/a.rs"), (" and ", "B::c")];
    assert_eq!(quoted("see `crates/a.rs` and `B::c`"), pairs);
    assert!(changes_subject(". Hadoop's: ") && !changes_subject(", "));
    assert_eq!(symbol("B::c"), Some("c"));
    assert_eq!(symbol("serve()"), Some("serve"));
    assert_eq!(symbol("dfs.blocksize"), None);
    assert!(defines("fn serve() {}", "serve"));
    assert!(!defines("fn served() {}", "serve"));
}

#[test]
fn every_rust_file_says_what_it_is_for() {
    let mut silent = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("python"), root().join("xtask")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                let built = path.file_name().is_some_and(|name| name == "target");
                if !built {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && path.file_name().is_some_and(|name| name != "tests.rs")
            {
                let text = fs::read_to_string(&path).expect("a source can be read");
                if !text.starts_with("//") {
                    silent.push(path.display().to_string());
                }
            }
        }
    }
    assert!(silent.is_empty(), "no header:\n{}", silent.join("\n"));
}

#[test]
fn no_stub_is_left() {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("a source can be read");
                for stub in ["todo!(", "unimplemented!(", "#[ignore"] {
                    if text.contains(stub) {
                        found.push(format!("{}: {stub}", path.display()));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Crates that the simulation may have a part in: cores, which are without input, output, clocks and threads.
const CORES: [&str; 8] = [
    "cairn-codec",
    "cairn-master",
    "cairn-namespace",
    "cairn-quorum",
    "cairn-redundancy",
    "cairn-replica",
    "cairn-stripe",
    "cairn-writer",
];

#[test]
fn the_simulation_drives_cores_only() {
    let manifest = fs::read_to_string(root().join("sim/Cargo.toml")).expect("sim has a manifest");
    let names = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let crates: Vec<&str> = names.filter(|name| name.starts_with("cairn-")).collect();
    assert!(crates.len() > 3, "is the reader of this test broken?");
    let others: Vec<&&str> = crates.iter().filter(|name| !CORES.contains(name)).collect();
    assert!(others.is_empty(), "sim/Cargo.toml names shells: {others:?}");
}

/// A handler decodes, calls and encodes: it may look, and what changes the cluster is not below
/// `crates/namenode/src/protocol`.
#[test]
fn no_handler_takes_the_clusters_lock() {
    let top = root().join("crates/namenode/src/protocol");
    let (mut found, mut folders) = (Vec::new(), vec![top.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let is_source = path.extension().is_some_and(|ending| ending == "rs")
                && path.file_name().is_some_and(|name| name != "tests.rs");
            if path.is_dir() {
                folders.push(path);
            } else if is_source {
                let text = fs::read_to_string(&path).expect("a source can be read");
                let locks = [".cluster()", "with_cluster", "cluster.lock", "change_safe_mode"];
                if locks.iter().any(|lock| text.contains(lock)) {
                    let name = path.strip_prefix(&top).expect("it is below");
                    found.push(name.display().to_string());
                }
            }
        }
    }
    assert!(found.is_empty(), "these take the cluster's lock: {found:?}");
}

/// Crates that keep what data depends on.
const KEEPERS: [&str; 6] = ["datanode", "master", "namenode", "namespace", "redundancy", "replica"];

/// Whether a line goes on with what a lock guards though a panic has struck while it was held.
fn passes_over_a_panic(line: &str) -> bool {
    let is_lock = line.contains("oison") || line.contains("unwrap_or_else");
    line.contains("into_inner") && is_lock || line.contains("clear_poison")
}

/// Nobody goes on with what may be half done: `cairn_process::held` is how locks are taken. Whoever has a reason says it,
/// on the line or above it.
#[test]
fn no_panic_at_a_lock_is_passed_over() {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut folders: Vec<PathBuf> =
        KEEPERS.iter().map(|name| root().join("crates").join(name).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source can be read");
            count += 1;
            let mut above = "";
            for (at, line) in text.lines().enumerate() {
                let says_why = [above, line].iter().any(|line| line.contains("// "));
                if passes_over_a_panic(line) && !says_why {
                    found.push(format!("{}:{}: {line}", path.display(), at + 1));
                }
                above = line;
            }
        }
    }
    assert!(count > 400, "is the reader of this test broken?");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_panic_that_is_passed_over_would_be_noticed() {
    for line in [
        "self.map.lock().unwrap_or_else(PoisonError::into_inner)",
        ".unwrap_or_else(|e| e.into_inner())",
        "Err(poisoned) => poisoned.into_inner(),",
        "self.map.clear_poison();",
    ] {
        assert!(passes_over_a_panic(line), "{line}");
    }
    assert!(!passes_over_a_panic("let told = told.into_inner();"));
}

/// Servers let others go first by `disk_work::step_aside`: who yields by tokio's own means alone waits with a worker that
/// hangs.
#[test]
fn servers_step_aside_where_they_can_be_taken_over() {
    let (mut found, mut count) = (Vec::new(), 0);
    let servers = ["datanode", "namenode", "net"];
    let mut folders: Vec<PathBuf> =
        servers.iter().map(|name| root().join("crates").join(name).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source can be read");
            let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&text);
            count += usize::from(own.contains("step_aside()"));
            let is_other = !path.ends_with("tests.rs") && !path.ends_with("net/src/disk_work.rs");
            if own.contains("yield_now().await") && is_other {
                found.push(path);
            }
        }
    }
    assert!(count > 5, "is the reader of this test broken?");
    assert!(found.is_empty(), "these yield by tokio's own means: {found:?}");
}

/// The parts of the cluster: what its fields are of that are no plain values, with the files they are in.
fn parts_of_the_cluster() -> BTreeMap<String, String> {
    /// Settings, and a time.
    const VALUES: [&str; 2] = ["Config", "Now"];
    let folder = root().join("crates/redundancy/src");
    let facade = fs::read_to_string(folder.join("cluster.rs")).expect("the cluster is there");
    let (_, fields) = facade.split_once("pub struct Cluster {").expect("it is one of parts");
    let (fields, _) = fields.split_once("\n}").expect("it has an end");
    let types = fields.lines().filter_map(|line| Some(line.split_once(": ")?.1));
    let named: BTreeSet<&str> = types.map(|name| name.trim_end_matches(',')).collect();
    let imports = facade.lines().filter_map(|line| {
        let (path, name) =
            line.strip_prefix("use crate::")?.trim_end_matches(';').rsplit_once("::")?;
        (named.contains(name) && !VALUES.contains(&name)).then_some((name, path))
    });
    let text = |path: &str| {
        let file = folder.join(path.replace("::", "/")).with_extension("rs");
        fs::read_to_string(&file).unwrap_or_else(|_| panic!("{} is not there", file.display()))
    };
    imports.map(|(name, path)| (name.to_string(), text(path))).collect()
}

/// A few numbers, of which any are right.
const CANNOT_BE_WRONG: &str = "Rounds";

/// What is wrong with a part in that file.
fn not_a_part(name: &str, text: &str) -> Option<String> {
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let Some((_, fields)) = own.split_once(&format!("struct {name} {{")) else {
        return Some(format!("{name} is not where it is imported from"));
    };
    let (fields, _) = fields.split_once("\n}").expect("it has an end");
    if let Some(field) = fields.lines().find(|line| line.trim_start().starts_with("pub")) {
        return Some(format!("others change a field of {name}: {}", field.trim()));
    }
    if own.contains("crate::cluster") {
        return Some(format!("{name} knows the whole that it is part of"));
    }
    let has_check = own.contains("fn check_invariants(") || name == CANNOT_BE_WRONG;
    (!has_check).then(|| format!("nobody looks whether {name} fits together"))
}

#[test]
fn parts_of_the_cluster_keep_their_fields_to_themselves() {
    let parts = parts_of_the_cluster();
    assert!(parts.len() > 10, "is the reader of this test broken? {:?}", parts.keys());
    let wrong: Vec<String> =
        parts.iter().filter_map(|(name, text)| not_a_part(name, text)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_part_that_gives_its_fields_away_would_be_noticed() {
    let fields = "pub(crate) struct Part {\n    /// What.\n    what: u64,\n}\n";
    assert!(not_a_part("Part", fields).is_some());
    let private = &format!("{fields}impl Part {{\n    fn check_invariants(&self) {{}}\n}}\n");
    assert_eq!(not_a_part("Part", private), None);
    assert!(not_a_part("Part", &private.replace("what:", "pub(super) what:")).is_some());
    assert!(not_a_part("Part", &format!("use crate::cluster::Cluster;\n{private}")).is_some());
    assert!(not_a_part("Other", private).is_some());
}

/// Commands in a file that are submitted without a guard, and nobody says why: by their lines, from 1.
fn unguarded(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let is_silent = |at: &usize| {
        let names_command = ["Submission::of(", "Submission::own("];
        if !names_command.iter().any(|name| lines[*at].contains(name)) {
            return false;
        }
        let has_guard = lines[*at..].iter().take(2).any(|line| line.contains(".resting_on("));
        let above = lines[..*at].iter().rev().take_while(|line| !line.starts_with('}'));
        let says_why = above.filter(|line| line.trim_start().starts_with("//"));
        !has_guard && !says_why.into_iter().any(|line| line.contains("ests on nothing"))
    };
    (0..lines.len()).filter(is_silent).map(|at| at + 1).collect()
}

#[test]
fn a_command_without_a_guard_says_why() {
    let top = root().join("crates/master/src");
    let (mut found, mut count, mut folders) = (Vec::new(), 0, vec![top.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source can be read");
            count += text.matches("Submission::o").count();
            // What makes submissions is there.
            if !path.ends_with("op.rs") {
                let lines = unguarded(&text).into_iter();
                found.extend(lines.map(|line| format!("{}:{line}", path.display())));
            }
        }
    }
    assert!(count > 10, "is the reader of this test broken?");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_command_that_needs_a_guard_would_be_noticed() {
    let silent = "/// Ends it.\nfn end() {\n    op.submit(Submission::own(End {})).await\n}\n";
    assert_eq!(unguarded(silent), [3]);
    assert_eq!(unguarded(&format!("/// Rests on nothing: it is asked for.\n{silent}")), []);
    assert_eq!(unguarded(&silent.replace(")).await", ").resting_on(guard)).await")), []);
    let other = "/// Rests on nothing.\nfn begin() {\n}\n\n";
    assert_eq!(unguarded(&format!("{other}{silent}")), [7]);
}
