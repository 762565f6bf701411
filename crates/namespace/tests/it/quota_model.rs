//! Random commands with quotas, snapshots and storage policies, against a model that counts by itself.
//!
//! The model has the tree, and a whole copy of it for each snapshot. What it counts follows from these alone, after
//! each command; it shares no code with the namespace.

mod groups;
mod model;

use crate::support::{Fs, add_block, complete, create, root};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::ec::{EnableEcPolicy, SetEcPolicy, UnsetEcPolicy};
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CreateSnapshot, DeleteSnapshot, RenameSnapshot,
};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::query;
use cairn_namespace::{BlockRef, Command, Conversion, Outcome};
use groups::{Groups, crcs};
use model::{Count, Id, Kind, Layout, Model, Node, Shot, TOP};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

const SNAPSHOTTABLE: [&str; 3] = ["/r", "/s", "/c"];

#[derive(Clone, Debug)]
enum Step {
    Mkdirs(String),
    Write {
        path: String,
        lens: Vec<u64>,
        overwrite: bool,
        close: bool,
    },
    Abandon(usize),
    Close(usize),
    Append {
        file: usize,
        lens: Vec<u64>,
        reopen: bool,
    },
    Cut {
        file: usize,
        eighths: u64,
        meanwhile: Option<(usize, bool)>,
    },
    Delete(usize),
    Rename {
        src: usize,
        dst: String,
    },
    RenameTo {
        src: usize,
        dst: String,
    },
    Concat {
        file: usize,
    },
    Replication {
        file: usize,
        copies: u16,
    },
    Layout {
        path: String,
        policy: Option<&'static str>,
    },
    Storage {
        path: String,
        policy: Option<&'static str>,
    },
    Limit {
        path: String,
        is_set: bool,
    },
    /// An attempt with blocks from a place on; with all that live of a group, if there is one and it is asked for.
    Begin {
        from: usize,
        count: usize,
        renew: bool,
    },
    Form(usize),
    GiveUp(usize),
    Dissolve(usize),
    /// Files, by what they are to be.
    Convert {
        files: Vec<usize>,
        is_contiguous: bool,
    },
    Take(&'static str),
    Drop(usize),
    Name(usize),
}

fn path_of(least: usize) -> impl Strategy<Value = String> {
    let top = prop::sample::select(vec!["/r", "/s", "/o", "/c", "/c"]);
    let names = prop::collection::vec(prop::sample::select(vec!["a", "b"]), least..4);
    (top, names)
        .prop_map(|(top, names)| names.iter().fold(top.to_string(), |path, name| path + "/" + name))
}

fn path() -> impl Strategy<Value = String> {
    path_of(0)
}

/// Not one of the directories at the top, which the steps leave in place.
fn inner() -> impl Strategy<Value = String> {
    path_of(1)
}

fn lens() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop::sample::select(vec![1, 1 << 20, 3 << 20, 7_654_321]), 0..4)
}

/// One of those that are there.
fn any_of_them() -> impl Strategy<Value = usize> {
    0usize..30
}

fn step() -> impl Strategy<Value = Step> {
    let layout = prop::option::weighted(
        0.7,
        prop::sample::select(vec![
            "RS-3-2-1024k",
            "XOR-2-1-1024k",
            "RS-3-2-contiguous",
            "RS-3-2-contiguous",
            "replication",
        ]),
    );
    let storage = prop::option::weighted(
        0.8,
        prop::sample::select(vec!["ONE_SSD", "ALL_SSD", "COLD", "WARM", "HOT"]),
    );
    let tree = prop::sample::select(SNAPSHOTTABLE.to_vec());
    let meanwhile = prop::option::weighted(0.4, (0usize..6, any::<bool>()));
    prop_oneof![
        2 => path().prop_map(Step::Mkdirs),
        8 => (inner(), lens(), any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(path, lens, overwrite, close)| {
                Step::Write { path, lens, overwrite, close }
            }),
        2 => any_of_them().prop_map(Step::Abandon),
        2 => any_of_them().prop_map(Step::Close),
        3 => (any_of_them(), lens(), any::<bool>())
            .prop_map(|(file, lens, reopen)| Step::Append { file, lens, reopen }),
        4 => (any_of_them(), 0u64..8, meanwhile)
            .prop_map(|(file, eighths, meanwhile)| Step::Cut { file, eighths, meanwhile }),
        4 => any_of_them().prop_map(Step::Delete),
        4 => (any_of_them(), path()).prop_map(|(src, dst)| Step::Rename { src, dst }),
        4 => (any_of_them(), inner()).prop_map(|(src, dst)| Step::RenameTo { src, dst }),
        4 => any_of_them().prop_map(|file| Step::Concat { file }),
        4 => (any_of_them(), 1u16..6)
            .prop_map(|(file, copies)| Step::Replication { file, copies }),
        2 => (path(), layout).prop_map(|(path, policy)| Step::Layout { path, policy }),
        3 => (path(), storage).prop_map(|(path, policy)| Step::Storage { path, policy }),
        2 => (path(), prop::bool::weighted(0.8))
            .prop_map(|(path, is_set)| Step::Limit { path, is_set }),
        8 => (0usize..60, 1usize..4, any::<bool>())
            .prop_map(|(from, count, renew)| Step::Begin { from, count, renew }),
        8 => (0usize..4).prop_map(Step::Form),
        1 => (0usize..4).prop_map(Step::GiveUp),
        2 => (0usize..9).prop_map(Step::Dissolve),
        4 => (prop::collection::vec(any_of_them(), 1..3), any::<bool>())
            .prop_map(|(files, is_contiguous)| Step::Convert { files, is_contiguous }),
        7 => tree.prop_map(Step::Take),
        4 => (0usize..8).prop_map(Step::Drop),
        1 => (0usize..8).prop_map(Step::Name),
    ]
}

struct World {
    fs: Fs,
    model: Model,
    /// The last blocks of open files as their writers will end them.
    open: BTreeMap<Id, Option<BlockRef>>,
    groups: Groups,
    next: u32,
}

impl World {
    fn new() -> World {
        let mut fs = Fs::new();
        let mut model = Model::default();
        model.add(TOP, "", Kind::Directory { layout: None, has_quota: false });
        for policy in ["RS-3-2-1024k", "XOR-2-1-1024k", "RS-3-2-contiguous"] {
            fs.ok(EnableEcPolicy { name: policy.into() });
        }
        for top in ["/r", "/s", "/o", "/c"] {
            fs.mkdirs(top);
            model.directory(top);
        }
        for top in SNAPSHOTTABLE {
            fs.ok(AllowSnapshot { path: top.into() });
        }
        let (open, groups) = (BTreeMap::new(), Groups::default());
        let mut world = World { fs, model, open, groups, next: 0 };
        world.step(&Step::Layout { path: "/s".into(), policy: Some("RS-3-2-1024k") });
        world.step(&Step::Layout { path: "/c".into(), policy: Some("RS-3-2-contiguous") });
        for path in ["/", "/r", "/s", "/o", "/c", "/r/a", "/o/b", "/c/a"] {
            world.step(&Step::Mkdirs(path.into()));
            world.step(&Step::Limit { path: path.into(), is_set: true });
        }
        world
    }

    fn run(&mut self, command: impl Into<Command>) -> Option<Outcome> {
        self.fs.run(root(), command).ok()
    }

    /// Every quota counts what the model does, and groups are what they should be.
    fn check(&self) {
        self.groups.check(&self.fs.store);
        for (id, node) in &self.model.nodes {
            let path = self.model.path(*id);
            let Kind::Directory { has_quota, .. } = node.kind else { continue };
            let status = self.fs.status(&path).unwrap();
            let quota = status.inode.directory().unwrap().quota.as_ref();
            assert_eq!(quota.is_some(), has_quota, "{path}");
            let Some(quota) = quota else { continue };
            let types = quota.types.iter().filter(|(_, bytes)| **bytes > 0);
            let types = types.map(|(kind, bytes)| (kind.name(), *bytes)).collect();
            let counted = Count { names: quota.names, space: quota.space, types };
            assert_eq!(counted, self.model.count(*id), "{path}");
        }
    }

    /// Writes blocks to a file that is open, and leaves it so.
    fn write(&mut self, path: &str, lens: &[u64], mut previous: Option<BlockRef>) {
        let id = self.model.find(path).unwrap();
        for len in lens {
            let previous_crcs = previous.map_or(Vec::new(), |block| crcs(block.id));
            let outcome = self.fs.ok(AddBlock { previous_crcs, ..add_block(path, previous) });
            let Outcome::BlockAdded { block, .. } = outcome else { panic!("{outcome:?}") };
            self.end_block(previous);
            self.model.lens.insert(block.id.0, 0);
            self.model.file(id).1.push(block.id.0);
            self.check();
            previous = Some(BlockRef { len: *len, ..block.reference() });
        }
        self.open.insert(id, previous);
    }

    fn end_block(&mut self, block: Option<BlockRef>) {
        if let Some(block) = block {
            self.model.lens.insert(block.id.0, block.len);
        }
    }

    fn close(&mut self, path: &str) {
        let Some(id) = self.model.find(path) else { return };
        let Some(last) = self.open.remove(&id) else { return };
        let last_crcs = last.map_or(Vec::new(), |block| crcs(block.id));
        self.run(Complete { last_crcs, ..complete(path, last) }).unwrap();
        self.end_block(last);
        *self.model.file(id).2 = false;
        self.check();
    }

    fn last_block(&self, path: &str) -> Option<BlockRef> {
        let found = query::get_blocks(&self.fs.store, &root(), path, 0, 1, 0).unwrap();
        found.last.map(|(_, block)| block.reference())
    }

    /// Half of the last block has come to the NameNode's knowledge.
    fn sync(&mut self, path: &str) {
        let Some(id) = self.model.find(path) else { return };
        let Some(Some(last)) = self.open.get(&id).copied() else { return };
        let before = self.model.lens[&last.id.0];
        let last_len = last.len / 2;
        self.run(Fsync {
            path: path.into(),
            file: None,
            holder: "client".into(),
            last_len: Some(last_len),
        });
        self.model.lens.insert(last.id.0, before.max(last_len));
        self.check();
    }

    /// The path of one of those for which `is_it` says so.
    fn pick(&self, which: usize, is_it: impl Fn(&Node) -> bool) -> Option<String> {
        let nodes = self.model.nodes.iter();
        let all: Vec<Id> = nodes.filter(|(_, node)| is_it(node)).map(|(id, _)| *id).collect();
        all.get(which % all.len().max(1)).map(|id| self.model.path(*id))
    }

    fn file(&self, which: usize) -> Option<String> {
        self.pick(which, |node| matches!(node.kind, Kind::File { .. }))
    }

    fn open_file(&self, which: usize) -> Option<String> {
        self.pick(which, |node| matches!(node.kind, Kind::File { is_open: true, .. }))
    }

    /// A file or directory, but none at the top.
    fn inner(&self, which: usize) -> Option<String> {
        self.pick(which, |node| node.parent != TOP)
    }

    fn step(&mut self, step: &Step) {
        self.take_step(step);
        self.model.grouped = self.groups.members();
        self.check();
    }

    fn take_step(&mut self, step: &Step) {
        match step {
            Step::Mkdirs(path) => {
                let mode = 0o755.into();
                if self.run(Mkdirs { path: path.clone(), mode, create_parent: true }).is_some() {
                    self.model.directory(path);
                }
            }
            Step::Write { path, lens, overwrite, close } => {
                if self.run(Create { overwrite: *overwrite, ..create(path) }).is_none() {
                    return;
                }
                if let Some(old) = self.model.find(path) {
                    self.model.remove(old);
                }
                let (parent, name) = Model::split(path);
                let parent = self.model.directory(parent);
                let layout = self.model.layout_in(parent);
                let file = Kind::File { layout, blocks: Vec::new(), is_open: true };
                self.model.add(parent, name, file);
                self.write(path, lens, None);
                if *close {
                    self.close(path);
                } else {
                    self.sync(path);
                }
            }
            Step::Abandon(which) => {
                let Some(path) = self.open_file(*which) else { return };
                let id = self.model.find(&path).unwrap();
                let Some(Some(block)) = self.open.get(&id).copied() else { return };
                let command =
                    AbandonBlock { path: path.clone(), file: None, holder: "client".into(), block };
                self.run(command).unwrap();
                // What snapshots hold is not among the removed blocks.
                let last = self.last_block(&path);
                if last.map(|last| last.id) != Some(block.id) {
                    self.model.file(id).1.pop();
                    self.open.insert(id, last);
                }
            }
            Step::Close(which) => {
                if let Some(path) = self.open_file(*which) {
                    self.close(&path);
                }
            }
            Step::Append { file, lens, reopen } => {
                if let Some(path) = self.file(*file) {
                    self.append(&path, lens, *reopen);
                }
            }
            Step::Cut { file, eighths, meanwhile } => {
                if let Some(path) = self.file(*file) {
                    self.cut(&path, *eighths, *meanwhile);
                }
            }
            Step::Delete(which) => {
                let Some(path) = self.inner(*which) else { return };
                self.fs.ok(Delete { path: path.clone(), recursive: true });
                self.model.remove(self.model.find(&path).unwrap());
            }
            Step::Rename { src, dst } => {
                let Some(src) = self.inner(*src) else { return };
                let done = self.run(Rename { src: src.clone(), dst: dst.clone() });
                if done != Some(Outcome::Flag(true)) {
                    return;
                }
                let mut dst = dst.clone();
                let is_file = |id: Id| matches!(self.model.nodes[&id].kind, Kind::File { .. });
                if self.model.find(&dst).is_some_and(|id| !is_file(id)) {
                    dst = format!("{dst}/{}", Model::split(&src).1);
                }
                if src != dst {
                    self.model.carry(self.model.find(&src).unwrap(), &dst);
                }
            }
            Step::RenameTo { src, dst } => {
                let Some(src) = self.inner(*src) else { return };
                let command = RenameTo {
                    src: src.clone(),
                    dst: dst.clone(),
                    overwrite: true,
                    to_trash: false,
                };
                if self.run(command).is_some() {
                    if let Some(old) = self.model.find(dst) {
                        self.model.remove(old);
                    }
                    self.model.carry(self.model.find(&src).unwrap(), dst);
                }
            }
            Step::Concat { file } => {
                let Some(target) = self.file(*file) else { return };
                let to = self.model.find(&target).unwrap();
                let parent = self.model.nodes[&to].parent;
                let from = self.model.nodes.iter().find(|(id, node)| {
                    **id != to && node.parent == parent && matches!(node.kind, Kind::File { .. })
                });
                let Some(from) = from.map(|(id, _)| *id) else { return };
                let sources = vec![self.model.path(from)];
                if self.run(Concat { target, sources }).is_none() {
                    return;
                }
                self.model.freeze(to);
                let blocks = std::mem::take(self.model.file(from).1);
                self.model.file(to).1.extend(blocks);
                self.model.remove(from);
            }
            Step::Replication { file, copies } => {
                let Some(path) = self.file(*file) else { return };
                let outcome = self.run(SetReplication { path: path.clone(), replication: *copies });
                if let Some(Outcome::ReplicationSet { done: true, .. }) = outcome {
                    let id = self.model.find(&path).unwrap();
                    let layout = self.model.file(id).0.with_copies(u64::from(*copies));
                    if *self.model.file(id).0 != layout {
                        self.model.freeze(id);
                        *self.model.file(id).0 = layout;
                    }
                }
            }
            Step::Layout { path, policy } => {
                let path = path.clone();
                let done = match policy {
                    Some(name) => {
                        let policy = Some(name.to_string());
                        self.run(SetEcPolicy { path: path.clone(), policy })
                    }
                    None => self.run(UnsetEcPolicy { path: path.clone() }),
                };
                if done.is_some() {
                    let id = self.model.find(&path).unwrap();
                    let node = self.model.nodes.get_mut(&id).unwrap();
                    let Kind::Directory { layout, .. } = &mut node.kind else { panic!("a file") };
                    *layout = policy.map(Layout::named);
                }
            }
            Step::Storage { path, policy } => {
                let name = policy.map(str::to_string);
                if self.run(SetStoragePolicy { path: path.clone(), policy: name }).is_some() {
                    let id = self.model.find(path).unwrap();
                    if self.model.nodes[&id].storage != *policy {
                        self.model.freeze(id);
                        self.model.nodes.get_mut(&id).unwrap().storage = *policy;
                    }
                }
            }
            Step::Limit { path, is_set } => {
                let names_max = match is_set {
                    true => QuotaChange::Set { max: 1 << 40 },
                    false => QuotaChange::Clear,
                };
                let space_max = QuotaChange::Keep;
                if self.run(SetQuota { path: path.clone(), names_max, space_max }).is_some() {
                    let id = self.model.find(path).unwrap();
                    let node = self.model.nodes.get_mut(&id).unwrap();
                    let Kind::Directory { has_quota, .. } = &mut node.kind else {
                        panic!("a file")
                    };
                    *has_quota = *is_set;
                }
            }
            Step::Begin { from, count, renew } => {
                self.groups.begin(&mut self.fs, *from, *count, *renew);
            }
            Step::Form(which) => self.groups.form(&mut self.fs, *which),
            Step::GiveUp(which) => self.groups.give_up(&mut self.fs, *which),
            Step::Dissolve(which) => self.groups.dissolve(&mut self.fs, *which),
            Step::Convert { files, is_contiguous } => self.convert(files, *is_contiguous),
            Step::Take(top) => {
                let name = format!("s{}", self.next);
                self.next += 1;
                self.run(CreateSnapshot { path: (*top).into(), name: name.clone() }).unwrap();
                let from = self.model.find(top).unwrap();
                let nodes =
                    self.model.nodes.iter().filter(|(id, _)| self.model.is_below(**id, from));
                let nodes = nodes.map(|(id, node)| (*id, node.clone())).collect();
                self.model.shots.push(Shot { top, name, nodes });
            }
            Step::Drop(which) => {
                if *which < self.model.shots.len() {
                    let Shot { top, name, .. } = self.model.shots.remove(*which);
                    self.run(DeleteSnapshot { path: top.into(), name }).unwrap();
                }
            }
            Step::Name(which) => {
                let to = format!("t{}", self.next);
                self.next += 1;
                if let Some(shot) = self.model.shots.get_mut(*which) {
                    let from = std::mem::replace(&mut shot.name, to.clone());
                    let path = shot.top.into();
                    self.run(RenameSnapshot { path, from, to }).unwrap();
                }
            }
        }
    }

    fn convert(&mut self, files: &[usize], is_contiguous: bool) {
        let policy = if is_contiguous { "RS-3-2-contiguous" } else { "replication" };
        let paths: Vec<String> = files.iter().filter_map(|file| self.file(*file)).collect();
        let ids = paths.iter().map(|path| self.fs.status(path).unwrap().inode.id).collect();
        let outcome = self.fs.ok(Convert { files: ids, policy: policy.into() });
        let Outcome::Converted(converted) = outcome else { panic!("{outcome:?}") };
        assert_eq!(converted.len(), paths.len());
        for (path, converted) in paths.iter().zip(converted) {
            let id = self.model.find(path).unwrap();
            let layout = *self.model.file(id).0;
            let wanted = Layout::named(policy).with_copies(layout.copies());
            let expected = match layout {
                Layout::Stripes { .. } => Conversion::Striped,
                layout if layout == wanted => Conversion::Same,
                _ => Conversion::Done,
            };
            assert_eq!(converted, expected, "{path}");
            if converted == Conversion::Done {
                self.model.freeze(id);
                *self.model.file(id).0 = wanted;
            }
        }
    }

    fn append(&mut self, path: &str, lens: &[u64], reopen: bool) {
        let ready = LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: true,
            last_has_locations: true,
            seen: None,
        };
        let command = Append {
            path: path.into(),
            holder: "client".into(),
            client_machine: "host".into(),
            new_block: !reopen,
            replicas: ready,
        };
        let last = match self.run(command) {
            Some(Outcome::Appended { last, .. }) => last,
            _ => return,
        };
        let id = self.model.find(path).unwrap();
        self.model.freeze(id);
        *self.model.file(id).2 = true;
        self.check();
        let previous = match last {
            Some((_, block)) => Some(BlockRef { len: block.len + 1000, ..block.reference() }),
            None => self.last_block(path),
        };
        self.write(path, lens, previous);
        self.close(path);
    }

    /// Cuts a file off; a snapshot may go or come while DataNodes are at it.
    fn cut(&mut self, path: &str, eighths: u64, meanwhile: Option<(usize, bool)>) {
        let Some(id) = self.model.find(path) else { return };
        let Kind::File { blocks, is_open: false, .. } = &self.model.nodes[&id].kind else { return };
        let len: u64 = blocks.iter().map(|block| self.model.lens[block]).sum();
        let new_len = len * eighths / 8;
        let command = Truncate {
            path: path.into(),
            new_len,
            holder: "client".into(),
            client_machine: "host".into(),
        };
        let outcome = self.run(command);
        if outcome.is_none() || new_len == len {
            return;
        }
        self.model.freeze(id);
        let mut offset = new_len;
        let count = |model: &mut Model| model.file(id).1.len();
        for at in 0..count(&mut self.model) {
            let block = self.model.file(id).1[at];
            if offset < self.model.lens[&block] {
                self.model.file(id).1.truncate(at + usize::from(offset > 0));
                break;
            }
            offset -= self.model.lens[&block];
        }
        let Some(Outcome::Recovery { closed: false }) = outcome else { return };
        let work = self.fs.ordered().unwrap();
        *self.model.file(id).2 = true;
        let named = work.block.copy_source().unwrap_or(work.block.id);
        if named != work.block.id {
            // A snapshot or a group has the block: the file gets another one.
            self.model.lens.insert(work.block.id.0, offset);
            *self.model.file(id).1.last_mut().unwrap() = work.block.id.0;
        }
        self.check();
        match meanwhile {
            Some((which, true)) => self.step(&Step::Drop(which)),
            Some((which, false)) => self.step(&Step::Take(SNAPSHOTTABLE[which % 3])),
            None => {}
        }
        self.run(CommitBlockSynchronization {
            block: BlockRef { id: named, gs: work.block.gs, len: work.block.len },
            new_gs: work.recovery_gs,
            new_len: offset,
            close_file: true,
            delete_block: DropBlock::No,
        })
        .unwrap();
        self.model.lens.insert(work.block.id.0, offset);
        *self.model.file(id).2 = false;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        // The same in each run; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` try others.
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn quotas_are_what_the_model_counts(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        while !world.model.shots.is_empty() {
            let middle = world.model.shots.len() / 2;
            world.step(&Step::Drop(middle));
        }
    }
}
