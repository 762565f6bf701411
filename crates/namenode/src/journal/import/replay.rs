//! Snapshots of an image made in a store: it begins with the tree of the oldest, and goes on from one to the next as if all
//! that was different had just been done, so that what each of them sees is kept as it always is.
//!
//! An inode that was moved is in one place at a time here: in the one that the next snapshot sees.

use super::error::ImportError;
use super::out::Out;
use super::past::{FileWas, Past, Place, Via};
use super::turned::Turned;
use cairn_namespace::import;
use cairn_namespace::inode::{InodeId, Kind};
use cairn_namespace::snapshot::{Snapshot, SnapshotId};
use cairn_namespace::store::StoreTxn;
use cairn_namespace::{NamespaceError, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Directories with what they have by name.
type Children = HashMap<u64, BTreeMap<String, Place>>;

/// Goes from the oldest snapshot to what is now.
pub(super) struct Replay<'a> {
    past: &'a Past,
    children: Children,
    /// Where inodes could be that have been in several places.
    places: HashMap<u64, BTreeSet<(Via, u64, String)>>,
    /// Where they are.
    linked: HashMap<u64, (u64, String)>,
    /// Inodes of the past whose records are in the store.
    is_there: HashSet<u64>,
    /// Directories and files that are not what they were, by the last snapshot that saw them so.
    directories_of: HashMap<u32, Vec<u64>>,
    files_of: HashMap<u32, Vec<u64>>,
    last_inode: u64,
}

fn note(all: &mut HashMap<u32, Vec<u64>>, snapshot: u32, id: u64) {
    all.entry(snapshot).or_default().push(id);
}

/// What a step does to where things are.
#[derive(Default)]
struct Moves {
    gone: Vec<(u64, String, u64)>,
    come: Vec<(u64, String, u64)>,
}

impl<'a> Replay<'a> {
    pub fn new(past: &'a Past, children: Children, last_inode: u64) -> Replay<'a> {
        let (mut directories_of, mut files_of) = (HashMap::new(), HashMap::new());
        for (id, all) in &past.directories {
            all.iter().for_each(|was| note(&mut directories_of, was.snapshot, *id));
        }
        for (id, all) in &past.files {
            all.iter().for_each(|was| note(&mut files_of, was.snapshot, *id));
        }
        let (places, linked, is_there) = (HashMap::new(), HashMap::new(), HashSet::new());
        Replay { past, children, places, linked, is_there, directories_of, files_of, last_inode }
    }

    /// Writes all snapshots, and what is now.
    pub fn run(mut self, out: &mut Out<'_>) -> std::result::Result<(), ImportError> {
        let past = self.past;
        let mut first = Moves::default();
        for (directory, all) in &self.children {
            for (name, (id, via)) in all {
                match past.referred.contains(id) {
                    true => {
                        _ = self.places.entry(*id).or_default().insert((
                            *via,
                            *directory,
                            name.clone(),
                        ))
                    }
                    false => first.come.push((*directory, name.clone(), *id)),
                }
            }
        }
        let oldest = past.taken.first().map_or(u32::MAX, |taken| taken.id);
        self.choose(oldest, &mut first);
        // What is in a directory that has always been the same was always there.
        let moved: HashSet<u64> =
            self.children.values().flat_map(BTreeMap::values).map(|(id, _)| *id).collect();
        let never_moved = |id: &&u64| {
            let parent = past.now[*id].inode.parent.0;
            !moved.contains(id) && !past.referred.contains(id) && !past.has_children_of(parent)
        };
        let alone: Vec<u64> = past.now.keys().filter(never_moved).copied().collect();
        let store = out.records()?;
        for id in alone {
            self.put(store, id, oldest, None)?;
            if id != InodeId::ROOT.0 {
                import::link(store, &past.now[&id].inode)?;
            }
        }
        self.make(store, &first, oldest)?;
        for (number, taken) in past.taken.iter().enumerate() {
            out.write_out()?;
            let store = out.records()?;
            let snapshot = Snapshot {
                id: SnapshotId(taken.id),
                name: taken.name.clone(),
                mtime: taken.modified_ms,
                last_inode: InodeId(self.last_inode),
                deleted: false,
            };
            import::snapshot(store, InodeId(taken.root), &snapshot)?;
            let next = past.taken.get(number + 1).map_or(u32::MAX, |next| next.id);
            let moves = self.step(taken.id, next);
            import::change(store, &mut |store| {
                self.make(store, &moves, next)?;
                self.change(store, taken.id, next)
            })?;
        }
        out.write_out()
    }

    /// What goes and comes after a snapshot, until the one that is next.
    fn step(&mut self, after: u32, next: u32) -> Moves {
        let mut moves = Moves::default();
        for directory in self.directories_of.get(&after).into_iter().flatten() {
            let all = &self.past.directories[directory];
            let Some(was) = all.iter().find(|was| was.snapshot == after) else { continue };
            let children = self.children.entry(*directory).or_default();
            for (name, (id, via)) in &was.deleted {
                let name = name.clone().unwrap_or_default();
                children.remove(&name);
                match self.past.referred.contains(id) {
                    true => {
                        let places = self.places.entry(*id).or_default();
                        places.remove(&(*via, *directory, name));
                    }
                    false => moves.gone.push((*directory, name, *id)),
                }
            }
            for (name, place) in &was.created {
                let Some((id, via)) = place else { continue };
                children.insert(name.clone(), (*id, *via));
                match self.past.referred.contains(id) {
                    true => {
                        let places = self.places.entry(*id).or_default();
                        places.insert((*via, *directory, name.clone()));
                    }
                    false => moves.come.push((*directory, name.clone(), *id)),
                }
            }
        }
        self.choose(next, &mut moves);
        moves
    }

    /// Where what has been in several places is as the next snapshot sees it: where it was before it left, if it has not left
    /// by then.
    fn choose(&mut self, next: u32, moves: &mut Moves) {
        for (id, places) in &self.places {
            let is_at = |(via, _, _): &&(Via, u64, String)| match via {
                Via::Left(last) => *last >= next,
                Via::Itself | Via::Came => false,
            };
            // They are in the order of the snapshots after which it left.
            let chosen = places.iter().find(is_at);
            let chosen =
                chosen.or_else(|| places.iter().find(|(via, ..)| !matches!(via, Via::Left(_))));
            let chosen = chosen.map(|(_, directory, name)| (*directory, name.clone()));
            let before = self.linked.get(id);
            if before == chosen.as_ref() {
                continue;
            }
            moves.gone.extend(before.map(|(directory, name)| (*directory, name.clone(), *id)));
            moves
                .come
                .extend(chosen.iter().map(|(directory, name)| (*directory, name.clone(), *id)));
            match chosen {
                Some(place) => _ = self.linked.insert(*id, place),
                None => _ = self.linked.remove(id),
            }
        }
    }

    /// Takes what has gone out of its place, puts what has come into its own, and removes what is nowhere any more.
    fn make(&mut self, store: &mut dyn StoreTxn, moves: &Moves, next: u32) -> Result<()> {
        for (directory, name, _) in &moves.gone {
            import::unlink(store, InodeId(*directory), name)?;
        }
        let mut come = HashSet::new();
        for (directory, name, id) in &moves.come {
            come.insert(*id);
            let inode = match self.past.now.get(id) {
                Some(_) => self.put(store, *id, next, Some((*directory, name)))?,
                None => import::moved(store, InodeId(*id), (InodeId(*directory), name))?,
            };
            import::link(store, &inode)?;
        }
        for (_, _, id) in moves.gone.iter().filter(|(_, _, id)| !come.contains(id)) {
            for removed in import::remove(store, InodeId(*id))? {
                self.is_there.remove(&removed.0);
            }
        }
        Ok(())
    }

    /// Has inodes that were different in a snapshot be as the next one sees them.
    fn change(&mut self, store: &mut dyn StoreTxn, after: u32, next: u32) -> Result<()> {
        let of = |all: &HashMap<u32, Vec<u64>>| all.get(&after).cloned().unwrap_or_default();
        for id in of(&self.directories_of).into_iter().chain(of(&self.files_of)) {
            if self.is_there.contains(&id) {
                self.put(store, id, next, None)?;
            }
        }
        Ok(())
    }

    /// Writes an inode as the snapshot `next` sees it; at a place, or where it is.
    fn put(
        &mut self,
        store: &mut dyn StoreTxn,
        id: u64,
        next: u32,
        place: Option<(u64, &str)>,
    ) -> Result<cairn_namespace::Inode> {
        let past = self.past;
        let now = past.now.get(&id);
        let now = now.ok_or_else(|| NamespaceError::Io(format!("there is no inode {id}")))?;
        let mut turned = self.as_of(id, now, next);
        let (parent, name) = match place {
            Some((parent, name)) => (InodeId(parent), name.to_string()),
            None => match import::place(store, InodeId(id))? {
                Some(place) => place,
                None => (now.inode.parent, now.inode.name.clone()),
            },
        };
        (turned.inode.parent, turned.inode.name) = (parent, name);
        if let Kind::Directory(directory) = &mut turned.inode.kind {
            let known = self.children.get(&id).map(BTreeMap::len);
            directory.children = known.map_or(directory.children, |count| count as u64);
        }
        let offsets = turned.blocks.iter().scan(0, |at, block| {
            let offset = *at;
            *at += block.len;
            Some(offset)
        });
        let blocks: Vec<_> = turned.blocks.iter().cloned().zip(offsets).collect();
        import::replace(store, &turned.inode, &turned.attributes, &blocks)?;
        if turned.is_zone {
            import::encryption_zone(store, InodeId(id))?;
        }
        self.is_there.insert(id);
        Ok(turned.inode)
    }

    /// An inode as a snapshot sees it: as it was in the first difference from then on, or is.
    fn as_of(&self, id: u64, now: &Turned, next: u32) -> Turned {
        let directory = self.past.directories.get(&id).into_iter().flatten();
        let mut copies =
            directory.filter(|was| was.snapshot >= next).filter_map(|was| was.copy.as_ref());
        if let Some(copy) = copies.next() {
            return copy.clone();
        }
        let files = self.past.files.get(&id).map_or(&[][..], Vec::as_slice);
        let later = &files[files.partition_point(|was| was.snapshot < next)..];
        match later.first() {
            Some(first) => file_as_of(now, first, later),
            None => now.clone(),
        }
    }
}

/// A file as it was in `first`, the oldest of some differences.
///
/// Source: Hadoop 3.5.0 `FileDiffList#findLaterSnapshotBlocks`, `INodeFile#computeFileSize(int)`.
fn file_as_of(now: &Turned, first: &FileWas, later: &[FileWas]) -> Turned {
    let copy = later.iter().find_map(|was| was.copy.as_ref());
    let mut turned = copy.unwrap_or(now).clone();
    let blocks = later.iter().find(|was| !was.blocks.is_empty());
    turned.blocks = match blocks {
        Some(was) => {
            was.blocks.iter().enumerate().map(|(index, of)| now.block(index, of)).collect()
        }
        None => now.blocks.clone(),
    };
    let mut at = 0;
    turned.blocks.retain(|block| {
        let is_before = at < first.len;
        at += block.len;
        is_before
    });
    if let Some(file) = turned.inode.file_mut() {
        (file.len, file.block_count) = (first.len, turned.blocks.len() as u64);
        if copy.is_none() && first.len < now.inode.file().map_or(0, |file| file.len) {
            file.writer = None;
        }
    }
    turned
}
