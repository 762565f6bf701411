//! Packed blocks that are to be plain again, because somebody has asked for that.
//!
//! Table `unpacking`: id (as a block's) -> whether it waits to be packed again then (1 byte). A row goes when its block is plain, or ends. DataNodes write plain
//! replicas meanwhile, and the block is where its container is until there are enough of these.

use crate::block;
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};
use crate::waiting;
use cairn_stripe::BlockId;
use std::ops::ControlFlow;

/// Whether a packed block is to be plain again.
pub fn is_asked(store: &dyn StoreRead, id: BlockId) -> Result<bool> {
    Ok(asked(store, id)?.is_some())
}

/// If it is, whether it waits to be packed again then.
pub(crate) fn asked(store: &dyn StoreRead, id: BlockId) -> Result<Option<bool>> {
    let mut found = None;
    store.peek(Table::Unpacking, &block::key(id), &mut |value| found = Some(value == [1]))?;
    Ok(found)
}

/// At most `limit` such blocks with ids greater than `after`, ascending.
pub fn asked_after(
    store: &dyn StoreRead,
    after: Option<BlockId>,
    limit: usize,
) -> Result<Vec<BlockId>> {
    let from = after.map_or(Vec::new(), |id| block::key(BlockId(id.0.saturating_add(1))).to_vec());
    let mut found = Vec::new();
    if limit > 0 {
        store.scan(Table::Unpacking, &from, &[], &mut |key, _| {
            found.extend(block::from_key(key));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// Has a packed block be plain again as soon as it can be: it waits for no other container any more. Then it waits to be
/// packed again if `waits`, and its file wants that.
pub(crate) fn ask(store: &mut dyn StoreTxn, id: BlockId, waits: bool) -> Result<()> {
    waiting::forget(store, id)?;
    Ok(store.put(Table::Unpacking, &block::key(id), &[waits.into()])?)
}

/// It is not to be, or is.
pub(crate) fn forget(store: &mut dyn StoreTxn, id: BlockId) -> Result<()> {
    match is_asked(store, id)? {
        true => Ok(store.remove(Table::Unpacking, &block::key(id))?),
        false => Ok(()),
    }
}
