//! Which deleted snapshots are still to be given up, and so whether any version may be kept.

use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::InodeId;
use crate::snapshot::{SnapshotId, damaged};
use crate::store::{StoreRead, StoreTxn, Table};
use std::ops::ControlFlow;

pub(super) fn garbage_key(root: InodeId, id: SnapshotId) -> Vec<u8> {
    [&root.key()[..], &id.0.to_be_bytes()].concat()
}

/// A snapshot was deleted: its versions go by [`super::reclaim`].
pub(crate) fn discard(store: &mut dyn StoreTxn, root: InodeId, id: SnapshotId) -> Result<()> {
    Ok(store.put(Table::SnapshotGarbage, &garbage_key(root, id), &[])?)
}

/// The first deleted snapshot whose versions are still to be given up.
pub(crate) fn first_garbage(store: &dyn StoreRead) -> Result<Option<(InodeId, SnapshotId)>> {
    let mut found = None;
    store.scan(Table::SnapshotGarbage, &[], &[], &mut |key, _| {
        found = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    let Some(key) = found else { return Ok(None) };
    let root = key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
    let id = key.last_chunk().map(|id| SnapshotId(u32::from_be_bytes(*id)));
    root.zip(id)
        .map_or_else(|| Err(damaged("snapshot garbage", "a short key")), |key| Ok(Some(key)))
}

/// Whether there are snapshots at all, or versions that deleted ones have left.
pub(crate) fn in_use(store: &dyn StoreRead) -> Result<bool> {
    Ok(counter::get(store, Counter::Snapshots)? > 0
        || ever_used(store)? && first_garbage(store)?.is_some())
}

/// Whether a snapshot was ever taken.
pub(super) fn ever_used(store: &dyn StoreRead) -> Result<bool> {
    Ok(counter::get(store, Counter::SnapshotId)? > 0)
}
