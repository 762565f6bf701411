//! Snapshots of a namespace as an image has them: what was otherwise in each, inode by inode.
//!
//! An inode is in one place at a time here, and each snapshot sees it where it was. In an image one that was in several
//! places is in none of them itself: each place has a reference to it, with the last snapshot that saw it there. [`Past`] is
//! all of it that is not as it is now, in memory.
//!
//! Source: Hadoop 3.5.0 `INodeReference`, `FSImageFormatPBSnapshot.Saver`.

use cairn_fsimage::Reference;
use cairn_namespace::export::past;
use cairn_namespace::snapshot::view::View;
use cairn_namespace::snapshot::{self, Snapshot, SnapshotId};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Inode, InodeId, Result, inode};
use std::collections::BTreeMap;

/// The number that stands for what is now. Source: Hadoop 3.5.0 `Snapshot#CURRENT_STATE_ID`.
const NOW: u32 = i32::MAX as u32 - 1;

/// A snapshot that sees an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The directory of which it was taken.
    pub root: InodeId,
    /// Its number.
    pub id: SnapshotId,
}

/// What has become of an inode since the oldest snapshot that sees it.
#[derive(Debug)]
pub(super) struct History {
    /// The oldest first.
    pub seen: Vec<Seen>,
    /// Whether it is still there.
    pub is_there: bool,
    /// Its places one after the other, if there is more than one.
    places: Vec<Placed>,
}

/// A time during which an inode was in one place.
#[derive(Debug)]
struct Placed {
    /// The last snapshot that saw it there; none for where it is, or was when it was deleted.
    until: Option<SnapshotId>,
    /// The number of the reference.
    reference: u64,
}

impl History {
    /// Whether the inode was moved or deleted after a snapshot, and no later one saw it where it was. Hadoop has a difference
    /// there, whether or not anything is different, and goes by it when it gives snapshots up.
    ///
    /// Source: Hadoop 3.5.0 `INodeReference.DstReference#destroyAndCollectBlocks`.
    pub fn ends_with(&self, snapshot: SnapshotId) -> bool {
        let has_left = self.places.iter().any(|place| place.until == Some(snapshot));
        has_left || !self.is_there && self.seen.last().is_some_and(|last| last.id == snapshot)
    }
}

/// How long an inode was in one place, while it is found out.
struct Stay {
    parent: InodeId,
    name: String,
    /// The first snapshot that saw it there, and the last one; none if no snapshot did.
    first: Option<Seen>,
    until: Option<SnapshotId>,
}

impl Stay {
    fn of(inode: Inode, first: Option<Seen>) -> Stay {
        let until = first.map(|first| first.id);
        Stay { parent: inode.parent, name: inode.name, first, until }
    }

    fn is_at(&self, inode: &Inode) -> bool {
        (self.parent, &self.name) == (inode.parent, &inode.name)
    }
}

/// What a directory has, or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Inode(u64),
    Reference(u64),
}

/// Everything that snapshots have otherwise.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Directories with their snapshots, the oldest first.
    pub snapshots: Vec<(InodeId, Vec<Snapshot>)>,
    pub histories: BTreeMap<InodeId, History>,
    pub references: Vec<Reference>,
}

impl Past {
    pub fn of(store: &dyn StoreRead) -> Result<Past> {
        let snapshots = past::snapshots(store)?;
        let roots: Vec<InodeId> = snapshots.iter().map(|(root, _)| *root).collect();
        let mut past = Past { snapshots, ..Past::default() };
        for (id, seen_by) in past::changed(store, &roots)? {
            let mut seen = Vec::new();
            for (root, all) in past.snapshots.iter().filter(|(root, _)| seen_by.contains(root)) {
                for taken in all {
                    if past::sees(store, *root, taken, id)? {
                        seen.push(Seen { root: *root, id: taken.id });
                    }
                }
            }
            if seen.is_empty() {
                continue;
            }
            seen.sort_by_key(|seen| seen.id);
            let is_there = inode::path_of(store, id)?.is_some();
            let places = past.places(store, id, &seen, is_there)?;
            past.histories.insert(id, History { seen, is_there, places });
        }
        Ok(past)
    }

    /// Numbers the places of an inode, if it was in more than one.
    fn places(
        &mut self,
        store: &dyn StoreRead,
        id: InodeId,
        seen: &[Seen],
        is_there: bool,
    ) -> Result<Vec<Placed>> {
        let mut found: Vec<Stay> = Vec::new();
        // Where the directory of a snapshot was is nothing that the snapshot has.
        for of in seen.iter().filter(|of| of.root != id) {
            let was = inode::expect(&view(store, *of), id)?;
            match found.last_mut().filter(|last| last.is_at(&was)) {
                Some(last) => last.until = Some(of.id),
                None => found.push(Stay::of(was, Some(*of))),
            }
        }
        if is_there {
            let is = inode::expect(store, id)?;
            if !found.last().is_some_and(|last| last.is_at(&is)) {
                found.push(Stay::of(is, None));
            }
        }
        if found.len() < 2 {
            return Ok(Vec::new());
        }
        // It has not left where it was last, even if it was deleted there.
        if let Some(last) = found.last_mut() {
            last.until = None;
        }
        let mut places = Vec::with_capacity(found.len());
        for stay in found {
            let reference = self.references.len() as u64;
            let mut of = Reference { inode: id.0, ..Reference::default() };
            match stay.until {
                Some(last) => {
                    of.name = stay.name.into_bytes();
                    of.last_snapshot = Some(last.0);
                }
                None => {
                    let root = match stay.first {
                        Some(first) => Some(first.root),
                        None => snapshot::root_above(store, stay.parent)?,
                    };
                    of.dst_snapshot = Some(self.newest_before(root, stay.first));
                }
            }
            self.references.push(of);
            places.push(Placed { until: stay.until, reference });
        }
        Ok(places)
    }

    /// The newest snapshot that a directory had when something came into it, which the snapshot `first` is the first to see.
    fn newest_before(&self, root: Option<InodeId>, first: Option<Seen>) -> u32 {
        let all = self.snapshots.iter().find(|(of, _)| Some(*of) == root);
        let before = all.and_then(|(_, all)| {
            all.iter().rev().find(|taken| first.is_none_or(|first| taken.id < first.id))
        });
        before.map_or(NOW, |taken| taken.id.0)
    }

    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Inodes that only snapshots have, with the last one that sees each.
    pub fn kept(&self) -> impl Iterator<Item = (InodeId, Seen)> {
        let gone = self.histories.iter().filter(|(_, history)| !history.is_there);
        gone.filter_map(|(id, history)| Some((*id, *history.seen.last()?)))
    }

    /// Where an inode was when a snapshot saw it, or is; none if it was never anywhere else.
    fn place(&self, id: InodeId, at: Option<SnapshotId>) -> Option<&Placed> {
        let places = self.histories.get(&id).map_or(&[][..], |history| &history.places);
        places.iter().find(|place| match (place.until, at) {
            (None, _) => true,
            (Some(until), Some(at)) => until >= at,
            (Some(_), None) => false,
        })
    }

    /// How a directory has a child, as a snapshot sees it, or as it is.
    pub fn child(&self, id: InodeId, at: Option<SnapshotId>) -> Child {
        match self.place(id, at) {
            Some(place) => Child::Reference(place.reference),
            None => Child::Inode(id.0),
        }
    }

    /// What a directory had when it was deleted, after the snapshot `last`: what that saw, without what has left since.
    pub fn children_at_the_end(
        &self,
        store: &dyn StoreRead,
        directory: InodeId,
        last: Seen,
    ) -> Result<BTreeMap<Vec<u8>, InodeId>> {
        let mut children = past::children(&view(store, last), directory)?;
        children.retain(|_, child| {
            self.place(*child, Some(last.id)).is_none_or(|place| place.until.is_none())
        });
        Ok(children)
    }
}

/// The store as a snapshot sees it.
pub(super) fn view(store: &dyn StoreRead, of: Seen) -> View<'_> {
    View::new(store, Some((of.root, of.id)))
}
