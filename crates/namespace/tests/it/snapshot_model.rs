//! Random commands on two snapshottable trees, against full copies that are taken with each snapshot.

use crate::support::{Fs, add_block, create, page, root};
use cairn_namespace::inode::Kind;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CollectSnapshot, ConfigureSnapshots, CreateSnapshot, DeleteSnapshot,
    RenameSnapshot,
};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::unit_crcs::BlockCrcs;
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::query::{self, FileStatus};
use cairn_namespace::snapshot::SnapshotSettings;
use cairn_namespace::snapshot::diff::{self, Change, Cursor, DiffEntry, DiffListing};
use cairn_namespace::snapshot::listing;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{BlockRef, Command, InodeId, Outcome, apply, settings};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

#[derive(Clone, Debug)]
enum Step {
    Mkdirs(String),
    Write {
        path: String,
        lens: Vec<u64>,
        overwrite: bool,
    },
    /// Writes a file that stays open, its blocks committed.
    Open {
        path: String,
        lens: Vec<u64>,
    },
    /// DataNodes report the replicas of every block.
    Report,
    Append {
        path: String,
        lens: Vec<u64>,
    },
    Truncate {
        path: String,
        blocks: usize,
    },
    Cut {
        path: String,
        blocks: usize,
        given_up: Option<(&'static str, usize)>,
    },
    Delete(String),
    Rename {
        src: String,
        dst: String,
    },
    RenameTo {
        src: String,
        dst: String,
    },
    Mode {
        path: String,
        mode: u16,
    },
    Replication {
        path: String,
        copies: u16,
    },
    Policy {
        path: String,
        striped: bool,
    },
    XAttr {
        path: String,
        value: Option<u8>,
    },
    Take(&'static str),
    Drop {
        of: &'static str,
        which: usize,
    },
    Name {
        of: &'static str,
        which: usize,
    },
    /// Snapshots are deleted in order from now on, or not.
    Order(bool),
    /// What is marked as deleted and due goes.
    Collect,
}

fn path() -> impl Strategy<Value = String> {
    path_of(0)
}

/// Not one of the snapshottable directories themselves, which the steps leave in place.
fn inner() -> impl Strategy<Value = String> {
    path_of(1)
}

fn path_of(least: usize) -> impl Strategy<Value = String> {
    let top = prop::sample::select(vec!["/r", "/s"]);
    let names = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), least..4);
    (top, names)
        .prop_map(|(top, names)| names.iter().fold(top.to_string(), |path, name| path + "/" + name))
}

fn lens() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1u64..5, 0..4)
}

fn tree() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["/r", "/s"])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => path().prop_map(Step::Mkdirs),
        5 => (path(), lens(), any::<bool>())
            .prop_map(|(path, lens, overwrite)| Step::Write { path, lens, overwrite }),
        2 => (path(), lens()).prop_map(|(path, lens)| Step::Open { path, lens }),
        2 => Just(Step::Report),
        3 => (path(), lens()).prop_map(|(path, lens)| Step::Append { path, lens }),
        3 => (path(), 0usize..3).prop_map(|(path, blocks)| Step::Truncate { path, blocks }),
        4 => (path(), 0usize..3, prop::option::weighted(0.3, (tree(), 0usize..4)))
            .prop_map(|(path, blocks, given_up)| Step::Cut { path, blocks, given_up }),
        3 => inner().prop_map(Step::Delete),
        3 => (inner(), path()).prop_map(|(src, dst)| Step::Rename { src, dst }),
        5 => (inner(), inner()).prop_map(|(src, dst)| Step::RenameTo { src, dst }),
        2 => (path(), 0u16..0o777).prop_map(|(path, mode)| Step::Mode { path, mode }),
        1 => (path(), 1u16..5).prop_map(|(path, copies)| Step::Replication { path, copies }),
        1 => (path(), any::<bool>()).prop_map(|(path, striped)| Step::Policy { path, striped }),
        2 => (path(), prop::option::of(any::<u8>()))
            .prop_map(|(path, value)| Step::XAttr { path, value }),
        5 => tree().prop_map(Step::Take),
        3 => (tree(), 0usize..4).prop_map(|(of, which)| Step::Drop { of, which }),
        1 => (tree(), 0usize..4).prop_map(|(of, which)| Step::Name { of, which }),
        1 => any::<bool>().prop_map(Step::Order),
        1 => Just(Step::Collect),
    ]
}

/// What can be seen of a file or directory.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    status: FileStatus,
    xattrs: Vec<(XAttrName, Vec<u8>)>,
    blocks: Vec<(u64, i64)>,
}

/// Everything below a directory by relative path.
type Copy = BTreeMap<String, Seen>;

fn look(fs: &Fs, top: &str) -> Copy {
    let mut copy = Copy::new();
    let mut open = vec![String::new()];
    while let Some(relative) = open.pop() {
        let path = format!("{top}{relative}");
        let mut status = query::get_file_info(&fs.store, &root(), &path).unwrap().unwrap();
        let mut blocks = Vec::new();
        if status.inode.is_directory() {
            // Two at a time, so that pages are put together.
            let mut after = Vec::new();
            let mut count = 0;
            loop {
                let page = page(&fs.store, &path, &after, 2);
                for entry in &page.entries {
                    open.push(format!("{relative}/{}", entry.inode.name));
                    after = entry.inode.name.clone().into_bytes();
                    count += 1;
                }
                if page.remaining == 0 {
                    break;
                }
            }
            assert_eq!(count, status.children(), "{path}");
        } else {
            let found = query::get_blocks(&fs.store, &root(), &path, 0, u64::MAX, 0).unwrap();
            blocks = found.blocks.iter().map(|(offset, block)| (*offset, block.id.0)).collect();
        }
        if relative.is_empty() {
            // The snapshot has its own name and time.
            let inode = std::sync::Arc::make_mut(&mut status.inode);
            inode.name.clear();
            inode.mtime = 0;
        }
        let xattrs = query::get_xattrs(&fs.store, &root(), &path, &[]).unwrap();
        copy.insert(relative, Seen { status, xattrs, blocks });
    }
    copy
}

fn note() -> XAttrName {
    XAttrName { space: XAttrSpace::User, name: "note".into() }
}

/// A snapshot that was taken.
struct Taken {
    of: &'static str,
    id: u32,
    name: String,
    copy: Copy,
    /// Deleted, but not the earliest.
    marked: bool,
}

struct World {
    fs: Fs,
    /// In the order of taking.
    taken: Vec<Taken>,
    next: u32,
    next_id: u32,
    in_order: bool,
    deleted: BTreeSet<i64>,
}

impl World {
    fn new() -> World {
        let mut fs = Fs::new();
        let settings = SnapshotSettings { diff_page: 3, ..SnapshotSettings::default() };
        fs.ok(ConfigureSnapshots { settings });
        for top in ["/r", "/s"] {
            fs.mkdirs(top);
            fs.ok(AllowSnapshot { path: top.into() });
        }
        fs.set_policy("/s", "RS-3-2-1024k");
        let (taken, deleted) = (Vec::new(), BTreeSet::new());
        World { fs, taken, next: 0, next_id: 0, in_order: false, deleted }
    }

    fn run(&mut self, command: impl Into<Command>) -> Option<Outcome> {
        let outcome = self.fs.run(root(), command).ok()?;
        for block in &self.fs.removed {
            assert!(self.deleted.insert(block.id.0), "deleted twice: {block:?}");
        }
        Some(outcome)
    }

    fn add_blocks(&mut self, path: &str, lens: &[u64], mut previous: Option<BlockRef>) {
        for len in lens {
            let block = self.fs.add_block(path, previous);
            previous = Some(BlockRef { len: *len, ..block.reference() });
        }
        let last = previous;
        self.run(Complete { ..crate::support::complete(path, last) }).unwrap();
    }

    fn open(&mut self, path: &str, lens: &[u64]) {
        if self.run(create(path)).is_none() {
            return;
        }
        let mut previous = None;
        for len in lens {
            let command = AddBlock { previous_min_replicated: false, ..add_block(path, previous) };
            let Some(Outcome::BlockAdded { block, .. }) = self.run(command) else {
                panic!("{path}")
            };
            previous = Some(BlockRef { len: *len, ..block.reference() });
        }
        let complete = crate::support::complete(path, previous);
        self.run(Complete { min_replicated: false, ..complete }).unwrap();
    }

    fn report(&mut self) {
        let found = query::blocks_after(&self.fs.store, None, usize::MAX).unwrap();
        let crcs = |info: query::BlockInfo| {
            let units = Vec::new();
            BlockCrcs { id: info.block.id, gs: info.block.gs, units }
        };
        // The newest first, which must not matter.
        let blocks = found.into_iter().rev().map(crcs).collect();
        self.run(CompleteBlocks { blocks }).unwrap();
    }

    fn nth(&self, of: &str, which: usize) -> Option<usize> {
        let all: Vec<usize> = (0..self.taken.len()).filter(|at| self.taken[*at].of == of).collect();
        all.get(which % all.len().max(1)).copied()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Mkdirs(path) => {
                self.run(Mkdirs { path: path.clone(), mode: 0o755.into(), create_parent: true });
            }
            Step::Write { path, lens, overwrite } => {
                let command = Create { overwrite: *overwrite, ..create(path) };
                if self.run(command).is_some() {
                    self.add_blocks(path, lens, None);
                }
            }
            Step::Open { path, lens } => self.open(path, lens),
            Step::Report => self.report(),
            Step::Append { path, lens } => {
                let replicas = LastBlocks {
                    penultimate_min_replicated: true,
                    last_min_replicated: true,
                    last_has_locations: true,
                    seen: None,
                };
                let command = Append {
                    path: path.clone(),
                    holder: "client".into(),
                    client_machine: "host".into(),
                    new_block: true,
                    replicas,
                };
                if self.run(command).is_some() {
                    let found = query::get_blocks(&self.fs.store, &root(), path, 0, 1, 0).unwrap();
                    let last = found.last.map(|(_, block)| block.reference());
                    self.add_blocks(path, lens, last);
                }
            }
            Step::Truncate { path, blocks } => {
                let Ok(found) = query::get_blocks(&self.fs.store, &root(), path, 0, u64::MAX, 0)
                else {
                    return;
                };
                if let Some((offset, _)) = found.blocks.get(*blocks) {
                    self.run(Truncate {
                        path: path.clone(),
                        new_len: *offset,
                        holder: "client".into(),
                        client_machine: "host".into(),
                    });
                }
            }
            Step::Cut { path, blocks, given_up } => self.cut(path, *blocks, *given_up),
            Step::Delete(path) => {
                self.run(Delete { path: path.clone(), recursive: true });
            }
            Step::Rename { src, dst } => {
                self.run(Rename { src: src.clone(), dst: dst.clone() });
            }
            Step::RenameTo { src, dst } => {
                self.run(RenameTo {
                    src: src.clone(),
                    dst: dst.clone(),
                    overwrite: true,
                    to_trash: false,
                });
            }
            Step::Mode { path, mode } => {
                self.run(SetPermission { path: path.clone(), mode: *mode });
            }
            Step::Replication { path, copies } => {
                self.run(SetReplication { path: path.clone(), replication: *copies });
            }
            Step::Policy { path, striped } => {
                let policy = if *striped { "RS-3-2-1024k" } else { "replication" };
                self.run(SetEcPolicy { path: path.clone(), policy: Some(policy.into()) });
            }
            Step::XAttr { path, value: Some(value) } => {
                self.run(SetXAttr {
                    path: path.clone(),
                    name: note(),
                    value: vec![*value],
                    create: true,
                    replace: true,
                });
            }
            Step::XAttr { path, value: None } => {
                self.run(RemoveXAttr { path: path.clone(), name: note() });
            }
            Step::Take(of) => {
                let name = format!("s{}", self.next);
                self.next += 1;
                let mut copy = look(&self.fs, of);
                // In the snapshot it is a directory like others.
                copy.get_mut("").unwrap().status.snapshottable = false;
                // Nobody writes there.
                for seen in copy.values_mut() {
                    let inode = std::sync::Arc::make_mut(&mut seen.status.inode);
                    if let Kind::File(file) = &mut inode.kind {
                        file.writer = None;
                    }
                }
                self.run(CreateSnapshot { path: (*of).into(), name: name.clone() }).unwrap();
                self.taken.push(Taken { of, id: self.next_id, name, copy, marked: false });
                self.next_id += 1;
            }
            Step::Drop { of, which } => {
                if let Some(at) = self.nth(of, *which) {
                    self.delete_snapshot(at);
                }
            }
            Step::Name { of, which } => {
                if let Some(at) = self.nth(of, *which) {
                    let name = format!("t{}", self.next);
                    self.next += 1;
                    let from = std::mem::replace(&mut self.taken[at].name, name.clone());
                    self.run(RenameSnapshot { path: (*of).into(), from, to: name }).unwrap();
                }
            }
            Step::Order(in_order) => self.set_order(*in_order),
            Step::Collect => self.collect(),
        }
    }

    fn set_order(&mut self, in_order: bool) {
        let mut settings = (*settings::get(&self.fs.store).unwrap()).clone();
        settings.snapshots_deleted_in_order = in_order;
        self.run(Configure { settings: settings.into() }).unwrap();
        self.in_order = in_order;
    }

    fn delete_snapshot(&mut self, at: usize) {
        let (of, name) = (self.taken[at].of, self.taken[at].name.clone());
        self.run(DeleteSnapshot { path: of.into(), name: name.clone() }).unwrap();
        if self.in_order && self.taken[..at].iter().any(|other| other.of == of) {
            let taken = &mut self.taken[at];
            taken.name = format!("{name}#{}", taken.id);
            taken.marked = true;
        } else {
            self.taken.remove(at);
        }
    }

    fn collect(&mut self) {
        let collect = |world: &mut World| {
            let outcome = world.run(CollectSnapshot {}).unwrap();
            matches!(outcome, Outcome::Removed { done: true, .. })
        };
        let due = |world: &World| {
            let is_first =
                |at: usize| world.taken[..at].iter().all(|other| other.of != world.taken[at].of);
            (0..world.taken.len()).find(|at| world.taken[*at].marked && is_first(*at))
        };
        while let Some(at) = due(self).filter(|_| self.in_order) {
            assert!(collect(self));
            self.taken.remove(at);
        }
        assert!(!collect(self));
    }

    /// Cuts a file off inside a block; a snapshot may go while DataNodes are at it.
    fn cut(&mut self, path: &str, blocks: usize, given_up: Option<(&'static str, usize)>) {
        let found = query::get_blocks(&self.fs.store, &root(), path, 0, u64::MAX, 0);
        let Ok(found) = found else { return };
        let Some((offset, block)) = found.blocks.get(blocks).filter(|(_, block)| block.len > 1)
        else {
            return;
        };
        let new_len = block.len - 1;
        let command = Truncate {
            path: path.to_string(),
            new_len: offset + new_len,
            holder: "client".into(),
            client_machine: "host".into(),
        };
        let outcome = self.run(command);
        let work = self.fs.ordered();
        assert_eq!(work.is_some(), outcome == Some(Outcome::Recovery { closed: false }));
        if let Some((of, which)) = given_up {
            self.step(&Step::Drop { of, which });
        }
        if let Some(work) = work {
            let named = work.block.copy_source().unwrap_or(work.block.id);
            self.run(CommitBlockSynchronization {
                block: BlockRef { id: named, gs: block.gs, len: block.len },
                new_gs: work.recovery_gs,
                new_len,
                close_file: true,
                delete_block: DropBlock::No,
            })
            .unwrap();
        }
    }

    fn check(&self) {
        let mut blocks = BTreeSet::new();
        let mut inodes = BTreeSet::from([InodeId::ROOT.0]);
        let mut count = |copy: &Copy| {
            for seen in copy.values() {
                blocks.extend(seen.blocks.iter().map(|(_, id)| *id));
                inodes.insert(seen.status.inode.id.0);
            }
        };
        for top in ["/r", "/s"] {
            count(&look(&self.fs, top));
        }
        for Taken { of, name, copy, .. } in &self.taken {
            let seen = look(&self.fs, &format!("{of}/.snapshot/{name}"));
            assert_eq!(&seen, copy, "{of}/.snapshot/{name}");
            count(copy);
        }
        assert_eq!(rows(&self.fs.store, Table::Block), blocks.len());
        let totals = query::totals(&self.fs.store).unwrap();
        assert_eq!(totals.blocks, blocks.len() as u64);
        assert_eq!(totals.inodes, inodes.len() as u64);
        assert!(self.deleted.is_disjoint(&blocks));
        for top in ["/r", "/s"] {
            let of: Vec<&Taken> = self.taken.iter().filter(|taken| taken.of == top).collect();
            let listed = listing::snapshots(&self.fs.store, &root(), top).unwrap().1;
            let mut told: Vec<_> =
                listed.iter().map(|told| (told.id.0, &*told.inode.name, told.deleted)).collect();
            told.sort_unstable();
            let wanted: Vec<_> =
                of.iter().map(|taken| (taken.id, &*taken.name, taken.marked)).collect();
            assert_eq!(told, wanted);
            let now = look(&self.fs, top);
            let now = Taken { of: top, id: u32::MAX, name: "".into(), copy: now, marked: false };
            for (at, from) in of.iter().enumerate() {
                let is_marked = |range: &[&Taken]| range.iter().any(|taken| taken.marked);
                self.check_diff((from, &now), is_marked(&of[at..]));
                if let Some(to) = of.get(at + 1) {
                    self.check_diff((from, to), from.marked);
                }
            }
        }
    }

    /// Compares a report with copies; `is_marked` says whether one of the snapshots before the later one is marked.
    fn check_diff(&self, (from, to): (&Taken, &Taken), is_marked: bool) {
        let of = from.of;
        let report = |from: &Taken, to: &Taken| {
            diff::report(&self.fs.store, &root(), of, &from.name, &to.name).unwrap().entries
        };
        let mut told = report(from, to);
        told.sort();
        let mut wanted = compare(&from.copy, &to.copy);
        let root_modified = DiffEntry { change: Change::Modify, path: String::new(), target: None };
        if is_marked && !wanted.contains(&root_modified) {
            wanted.push(root_modified);
        }
        wanted.sort();
        assert_eq!(told, wanted, "{of} from {} to {}", from.name, to.name);
        let mut back = report(to, from);
        for entry in &mut back {
            match (entry.change, &mut entry.target) {
                (Change::Create, _) => entry.change = Change::Delete,
                (Change::Delete, _) => entry.change = Change::Create,
                (Change::Rename, Some(target)) => std::mem::swap(target, &mut entry.path),
                _ => {}
            }
        }
        back.sort();
        assert_eq!(back, told);
        self.check_pages(of, &from.name, &to.name, &told);
    }

    /// The pages together name what the report does.
    fn check_pages(&self, of: &str, from: &str, to: &str, told: &[DiffEntry]) {
        let mut start = Cursor { path: String::new(), index: -1 };
        let mut paths = BTreeSet::new();
        let listing = DiffListing::new(&self.fs.store, &root(), of, (from, to)).unwrap();
        assert!(listing.is_of(&self.fs.store, &root(), of, (from, to)).unwrap());
        assert!(from == to || !listing.is_of(&self.fs.store, &root(), of, (to, from)).unwrap());
        loop {
            let page = listing.page(&self.fs.store, &start).unwrap();
            let lists = [&page.modified, &page.created, &page.deleted];
            assert!(lists.iter().map(|list| list.len()).sum::<usize>() <= 3);
            for (which, list) in lists.into_iter().enumerate() {
                for entry in list {
                    assert!(paths.insert((entry.path.clone(), which)), "{entry:?} twice");
                }
            }
            match page.next {
                Some(next) => start = next,
                None => break,
            }
        }
        assert_eq!(paths.len(), listing.len());
        for entry in told {
            assert!(paths.iter().any(|(path, _)| *path == entry.path), "{entry:?}");
        }
    }
}

fn rows(store: &MemoryStore, table: Table) -> usize {
    let mut count = 0;
    store
        .scan(table, &[], &[], &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    count
}

/// What a report must say, found by comparing whole copies.
fn compare(from: &Copy, to: &Copy) -> Vec<DiffEntry> {
    let by_id = |copy: &Copy| -> BTreeMap<u64, String> {
        copy.iter().map(|(path, seen)| (seen.status.inode.id.0, path.clone())).collect()
    };
    let (were, are) = (by_id(from), by_id(to));
    let strip = |path: &str| path.trim_start_matches('/').to_string();
    let children = |copy: &Copy, of: &str| -> BTreeMap<String, u64> {
        let prefix = format!("{of}/");
        copy.iter()
            .filter_map(|(path, seen)| Some((path.strip_prefix(&prefix)?, seen)))
            .filter(|(name, _)| !name.contains('/'))
            .map(|(name, seen)| (name.to_string(), seen.status.inode.id.0))
            .collect()
    };
    let survives = |path: &str| {
        let mut at = path;
        loop {
            if !are.contains_key(&from[at].status.inode.id.0) {
                return false;
            }
            match at.rfind('/') {
                Some(end) => at = &at[..end],
                None => return true,
            }
        }
    };
    let parent = |path: &str| path[..path.rfind('/').unwrap_or(0)].to_string();
    let mut entries = Vec::new();
    for (path, was) in from {
        if !survives(path) {
            continue;
        }
        let now = &are[&was.status.inode.id.0];
        let is = &to[now];
        let (before, after) = (children(from, path), children(to, now));
        let mut changed = false;
        for (name, id) in &after {
            if before.get(name) == Some(id) {
                continue;
            }
            changed = true;
            let moved = were.get(id).is_some_and(|old| survives(&parent(old)));
            if !moved {
                let path = strip(&format!("{path}/{name}"));
                entries.push(DiffEntry { change: Change::Create, path, target: None });
            }
        }
        for (name, id) in &before {
            if after.get(name) == Some(id) {
                continue;
            }
            changed = true;
            let path = strip(&format!("{path}/{name}"));
            let target = are.get(id).map(|path| strip(path));
            let change = if target.is_some() { Change::Rename } else { Change::Delete };
            entries.push(DiffEntry { change, path, target });
        }
        let content = |seen: &Seen| {
            let inode = &seen.status.inode;
            let policy = inode.directory().map(|directory| directory.policy);
            let file = inode.file().map(|file| (file.len, file.redundancy));
            (inode.mode, policy, file, seen.xattrs.clone())
        };
        if changed || content(was) != content(is) {
            entries.push(DiffEntry { change: Change::Modify, path: strip(path), target: None });
        }
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn snapshots_are_what_full_copies_say(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.check();
        // The same log gives the same store.
        let mut replayed = MemoryStore::new();
        for entry in &world.fs.log {
            apply(&mut replayed, entry).unwrap();
        }
        prop_assert!(replayed == world.fs.store);
        // Nothing is left of snapshots and files when all are gone.
        while !world.taken.is_empty() {
            let left = (0..world.taken.len()).filter(|at| !world.taken[*at].marked);
            let left: Vec<usize> = left.collect();
            match left.get(left.len() / 2) {
                Some(at) => world.delete_snapshot(*at),
                None if world.in_order => world.collect(),
                None => world.set_order(true),
            }
            world.check();
        }
        for top in ["/r", "/s"] {
            world.run(Delete { path: top.into(), recursive: true }).unwrap();
        }
        world.run(Purge { limit: 1000 }).unwrap();
        for table in [
            Table::Block,
            Table::FileBlock,
            Table::XAttr,
            Table::Version,
            Table::VersionOf,
            Table::Snapshot,
            Table::SnapshotName,
            Table::SnapshotSeen,
            Table::SnapshotGarbage,
            Table::SnapshotRoot,
        ] {
            prop_assert_eq!(rows(&world.fs.store, table), 0, "{:?}", table);
        }
        prop_assert_eq!(rows(&world.fs.store, Table::Inode), 1);
    }
}
