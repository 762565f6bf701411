//! What snapshots have, for whoever writes it down in another form.
//!
//! A snapshot sees the store through a [`View`]. Only what was changed since has records of its own: the rest is in every
//! snapshot as it is now.

use crate::error::Result;
use crate::inode::{InodeId, child_id};
use crate::snapshot::version;
use crate::snapshot::view::View;
use crate::snapshot::{self, Snapshot, SnapshotId};
use crate::store::{StoreRead, Table, prefix_end};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Directories with their snapshots, the oldest first; those without are left out.
pub fn snapshots(store: &dyn StoreRead) -> Result<Vec<(InodeId, Vec<Snapshot>)>> {
    let mut found = Vec::new();
    for (directory, _) in snapshot::roots(store)? {
        let mut all = Vec::new();
        let mut next = snapshot::at_most(store, directory, SnapshotId(u32::MAX))?;
        while let Some(taken) = next {
            next = snapshot::older_than(store, directory, taken.id)?;
            all.push(taken);
        }
        all.reverse();
        if !all.is_empty() {
            found.push((directory, all));
        }
    }
    Ok(found)
}

/// Inodes of which a snapshot has something otherwise, with the directories whose snapshots may see them.
pub fn changed(
    store: &dyn StoreRead,
    directories: &[InodeId],
) -> Result<BTreeMap<InodeId, BTreeSet<InodeId>>> {
    let mut found: BTreeMap<InodeId, BTreeSet<InodeId>> = BTreeMap::new();
    for directory in directories {
        found.entry(*directory).or_default().insert(*directory);
        version::between(store, *directory, (SnapshotId(0), None), &mut |_, key| {
            found.entry(version::owner(key)).or_default().insert(*directory);
            Ok(())
        })?;
    }
    for (id, seen_by) in &mut found {
        seen_by.extend(snapshot::root_above(store, *id)?);
    }
    Ok(found)
}

/// Whether a snapshot of a directory sees an inode.
pub fn sees(
    store: &dyn StoreRead,
    directory: InodeId,
    taken: &Snapshot,
    id: InodeId,
) -> Result<bool> {
    Ok(id <= taken.last_inode && View::new(store, Some((directory, taken.id))).reaches(id)?)
}

/// What a directory has by name, as the store or a snapshot sees it.
pub fn children(store: &dyn StoreRead, directory: InodeId) -> Result<BTreeMap<Vec<u8>, InodeId>> {
    let prefix = directory.key();
    let mut found = Vec::new();
    store.scan(Table::Child, &prefix, &prefix_end(&prefix), &mut |key, value| {
        let name = key.get(prefix.len()..).unwrap_or_default().to_vec();
        found.push(child_id(value).map(|id| (name, id)));
        ControlFlow::Continue(())
    })?;
    found.into_iter().collect()
}
