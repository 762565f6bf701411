//! Random commands against the simplest model that has the same meaning: a map from path to node.

use crate::support::{Fs, create, page, root};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::ec::{SetEcPolicy, UnsetEcPolicy};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::query::{self, FileStatus};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::{BlockRef, Outcome, apply};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Mkdirs { path: String, create_parent: bool },
    Write { path: String, lens: Vec<u64>, overwrite: bool },
    Delete { path: String, recursive: bool },
    Rename { src: String, dst: String },
    RenameTo { src: String, dst: String, overwrite: bool },
    SetPolicy { path: String, replicate: bool },
    UnsetPolicy { path: String },
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..4)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (path(), any::<bool>())
            .prop_map(|(path, create_parent)| Step::Mkdirs { path, create_parent }),
        4 => (path(), prop::collection::vec(0u64..5, 0..3), any::<bool>())
            .prop_map(|(path, lens, overwrite)| Step::Write { path, lens, overwrite }),
        2 => (path(), any::<bool>()).prop_map(|(path, recursive)| Step::Delete { path, recursive }),
        2 => (path(), path()).prop_map(|(src, dst)| Step::Rename { src, dst }),
        3 => (path(), path(), any::<bool>())
            .prop_map(|(src, dst, overwrite)| Step::RenameTo { src, dst, overwrite }),
        1 => (path(), any::<bool>())
            .prop_map(|(path, replicate)| Step::SetPolicy { path, replicate }),
        1 => path().prop_map(|path| Step::UnsetPolicy { path }),
    ]
}

/// A directory with the policy set on it, or a file with its length, blocks, and whether it is striped.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Directory(Option<bool>),
    File { len: u64, blocks: u64, striped: bool },
}

#[derive(Clone, Debug)]
struct Model(BTreeMap<String, Node>);

fn parent(path: &str) -> String {
    match path.rfind('/') {
        Some(0) | None => "/".to_string(),
        Some(at) => path[..at].to_string(),
    }
}

fn below(path: &str, of: &str) -> bool {
    path != of && (of == "/" || path.starts_with(&format!("{of}/")))
}

impl Model {
    fn is_directory(&self, path: &str) -> bool {
        matches!(self.0.get(path), Some(Node::Directory(_)))
    }

    fn children(&self, path: &str) -> usize {
        self.0.keys().filter(|key| *key != "/" && parent(key) == path).count()
    }

    /// Whether a file lies on the way.
    fn blocked(&self, path: &str) -> bool {
        self.0.iter().any(|(key, node)| matches!(node, Node::File { .. }) && below(path, key))
    }

    fn make_parents(&mut self, path: &str) {
        let mut at = parent(path);
        while !self.0.contains_key(&at) {
            self.0.insert(at.clone(), Node::Directory(None));
            at = parent(&at);
        }
    }

    fn is_striped(&self, path: &str) -> bool {
        let mut at = parent(path);
        loop {
            match self.0.get(&at) {
                Some(Node::Directory(Some(striped))) => return *striped,
                _ if at == "/" => return false,
                _ => at = parent(&at),
            }
        }
    }

    fn remove(&mut self, path: &str) {
        self.0.retain(|key, _| key != path && !below(key, path));
    }

    fn carry(&mut self, src: &str, dst: &str) {
        let moved: Vec<_> = self
            .0
            .iter()
            .filter(|(key, _)| *key == src || below(key, src))
            .map(|(key, node)| (format!("{dst}{}", &key[src.len()..]), node.clone()))
            .collect();
        self.remove(src);
        self.0.extend(moved);
    }

    /// What the command answers: `None` if it is refused.
    fn step(&mut self, step: &Step) -> Option<bool> {
        match step {
            Step::Mkdirs { path, create_parent } => {
                match self.0.get(path) {
                    Some(Node::Directory(_)) => return Some(true),
                    Some(Node::File { .. }) => return None,
                    None => {}
                }
                if self.blocked(path) || !create_parent && !self.0.contains_key(&parent(path)) {
                    return None;
                }
                self.make_parents(path);
                self.0.insert(path.clone(), Node::Directory(None));
                Some(true)
            }
            Step::Write { path, lens, overwrite } => {
                let taken = self.0.contains_key(path) && !overwrite;
                if self.is_directory(path) || self.blocked(path) || taken {
                    return None;
                }
                self.make_parents(path);
                let striped = self.is_striped(path);
                let (len, blocks) = (lens.iter().sum(), lens.len() as u64);
                self.0.insert(path.clone(), Node::File { len, blocks, striped });
                Some(true)
            }
            Step::Delete { path, recursive } => {
                if self.blocked(path) || !recursive && self.children(path) > 0 {
                    return None;
                }
                let done = path != "/" && self.0.contains_key(path);
                if done {
                    self.remove(path);
                }
                Some(done)
            }
            Step::Rename { src, dst } => self.rename(src, dst),
            Step::RenameTo { src, dst, overwrite } => self.rename_to(src, dst, *overwrite),
            Step::SetPolicy { path, replicate } => match self.0.get_mut(path) {
                Some(Node::Directory(policy)) => {
                    *policy = Some(!replicate);
                    Some(true)
                }
                _ => None,
            },
            Step::UnsetPolicy { path } => match self.0.get_mut(path) {
                Some(Node::Directory(policy)) => policy.take().map(|_| true),
                _ => None,
            },
        }
    }

    fn rename(&mut self, src: &str, dst: &str) -> Option<bool> {
        if self.blocked(src) || self.blocked(dst) {
            return None;
        }
        let mut dst = dst.to_string();
        if self.is_directory(&dst) {
            let name = &src[src.rfind('/').unwrap_or(0)..];
            dst = format!("{}{name}", dst.trim_end_matches('/'));
        }
        if src == "/" || !self.0.contains_key(src) {
            return Some(false);
        }
        if src == dst {
            return Some(true);
        }
        let free = !self.0.contains_key(&dst) && self.is_directory(&parent(&dst));
        let possible = free && !below(&dst, src);
        if possible {
            self.carry(src, &dst);
        }
        Some(possible)
    }

    fn rename_to(&mut self, src: &str, dst: &str, overwrite: bool) -> Option<bool> {
        let source = self.0.get(src)?.clone();
        if self.blocked(src) || self.blocked(dst) || src == "/" || dst == "/" || src == dst {
            return None;
        }
        if below(dst, src) || !self.is_directory(&parent(dst)) {
            return None;
        }
        if let Some(target) = self.0.get(dst) {
            let same_kind =
                matches!(source, Node::Directory(_)) == matches!(target, Node::Directory(_));
            if !same_kind || !overwrite || self.children(dst) > 0 {
                return None;
            }
            self.0.remove(dst);
        }
        self.carry(src, dst);
        Some(true)
    }
}

/// Does the step in the namespace; `None` if it is refused.
fn real_step(fs: &mut Fs, step: &Step) -> Option<bool> {
    let outcome = match step.clone() {
        Step::Mkdirs { path, create_parent } => {
            fs.run(root(), Mkdirs { path, mode: 0o755.into(), create_parent })
        }
        Step::Write { path, lens, overwrite } => {
            let command = Create { overwrite, block_size: 1 << 20, ..create(&path) };
            let outcome = fs.run(root(), command);
            if outcome.is_ok() {
                let mut previous = None;
                for len in lens {
                    let block = fs.add_block(&path, previous);
                    previous = Some(BlockRef { len, ..block.reference() });
                }
                fs.complete(&path, previous);
            }
            outcome
        }
        Step::Delete { path, recursive } => fs.run(root(), Delete { path, recursive }),
        Step::Rename { src, dst } => fs.run(root(), Rename { src, dst }),
        Step::RenameTo { src, dst, overwrite } => {
            fs.run(root(), RenameTo { src, dst, overwrite, to_trash: false })
        }
        Step::SetPolicy { path, replicate } => {
            let policy = replicate.then(|| "replication".to_string());
            fs.run(root(), SetEcPolicy { path, policy })
        }
        Step::UnsetPolicy { path } => fs.run(root(), UnsetEcPolicy { path }),
    };
    match outcome.ok()? {
        Outcome::Flag(answer) | Outcome::Removed { done: answer, .. } => Some(answer),
        _ => Some(true),
    }
}

fn node_of(status: &FileStatus) -> Node {
    match status.inode.file() {
        Some(file) => {
            Node::File { len: file.len, blocks: file.block_count, striped: status.policy.is_some() }
        }
        None => {
            let policy = status.inode.directory().and_then(|directory| directory.policy);
            Node::Directory(policy.map(|id| id.0 != 0))
        }
    }
}

/// The tree as the queries show it, a small page at a time.
fn dump(fs: &Fs) -> BTreeMap<String, Node> {
    let mut nodes = BTreeMap::new();
    let mut open = vec!["/".to_string()];
    nodes.insert("/".to_string(), node_of(&fs.status("/").unwrap()));
    while let Some(path) = open.pop() {
        let mut after = Vec::new();
        loop {
            let page = page(&fs.store, &path, &after, 2);
            for entry in &page.entries {
                let child = format!("{}/{}", path.trim_end_matches('/'), entry.inode.name);
                nodes.insert(child.clone(), node_of(entry));
                if entry.inode.is_directory() {
                    open.push(child);
                }
                after = entry.inode.name.clone().into_bytes();
            }
            if page.remaining == 0 {
                break;
            }
        }
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_tree_is_what_the_model_says(steps in prop::collection::vec(step(), 1..60)) {
        let mut fs = Fs::new();
        let mut model = Model(BTreeMap::from([("/".to_string(), Node::Directory(None))]));
        for step in &steps {
            let wanted = model.step(step);
            let got = real_step(&mut fs, step);
            prop_assert_eq!(got, wanted, "{:?}", step);
        }
        while let Outcome::Removed { more: true, .. } = fs.ok(Purge { limit: 5 }) {}
        prop_assert_eq!(&dump(&fs), &model.0);

        let totals = query::totals(&fs.store).unwrap();
        let blocks: u64 = model.0.values()
            .map(|node| if let Node::File { blocks, .. } = node { *blocks } else { 0 })
            .sum();
        prop_assert_eq!((totals.inodes, totals.blocks), (model.0.len() as u64, blocks));
        for (path, node) in &model.0 {
            if let Node::Directory(_) = node {
                let children = fs.status(path).unwrap().children();
                prop_assert_eq!(children as usize, model.children(path));
            }
        }

        // The log alone gives the same store, with or without the commands that changed nothing.
        let mut again = MemoryStore::new();
        for entry in &fs.log {
            apply(&mut again, entry).unwrap();
        }
        prop_assert!(again == fs.store, "a replay of the log gives another store");
    }
}
