//! Counters in the store, which make ids and stamps the same in every replay.

use crate::encoding::{Decode, Decoder, Encode, Encoder};
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::store::{StoreRead, StoreTxn, Table};
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use cairn_stripe::{BlockId, GenerationStamp};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// The last inode id.
    InodeId,
    /// The last contiguous block id.
    BlockId,
    /// The last block group id, as the bits of the negative number.
    GroupId,
    /// The last handle of a contiguous group.
    Handle,
    /// The last id of a container.
    ContainerId,
    /// Packed blocks there are.
    Packed,
    /// The last generation stamp.
    GenerationStamp,
    /// Inodes there are.
    Inodes,
    /// Blocks there are.
    Blocks,
    /// Snapshots there are.
    Snapshots,
    /// The next snapshot id.
    SnapshotId,
    /// The number of the last cache directive.
    CacheDirective,
    /// How often a quota was set.
    QuotasSet,
    /// The number of the last delegation token.
    DelegationToken,
    /// The number of the last master key of delegation tokens.
    TokenKey,
}

impl Counter {
    fn key(self) -> &'static [u8] {
        match self {
            Counter::InodeId => b"inode-id",
            Counter::BlockId => b"block-id",
            Counter::GroupId => b"group-id",
            Counter::Handle => b"handle",
            Counter::ContainerId => b"container-id",
            Counter::Packed => b"packed",
            Counter::GenerationStamp => b"generation-stamp",
            Counter::Inodes => b"inodes",
            Counter::Blocks => b"blocks",
            Counter::Snapshots => b"snapshots",
            Counter::SnapshotId => b"snapshot-id",
            Counter::CacheDirective => b"cache-directive",
            Counter::QuotasSet => b"quotas-set",
            Counter::DelegationToken => b"delegation-token",
            Counter::TokenKey => b"token-key",
        }
    }

    fn initial(self) -> u64 {
        match self {
            Counter::InodeId => InodeId::ROOT.0,
            Counter::BlockId => BlockId::LAST_RESERVED.0 as u64,
            Counter::GroupId => BlockId::FIRST_GROUP_BASE.0 as u64,
            Counter::Handle => BlockId::FIRST_HANDLE_BASE.0 as u64,
            Counter::ContainerId => BlockId::FIRST_CONTAINER_BASE.0 as u64,
            Counter::GenerationStamp => GenerationStamp::LAST_RESERVED.0,
            Counter::Inodes
            | Counter::Blocks
            | Counter::Packed
            | Counter::Snapshots
            | Counter::SnapshotId
            | Counter::CacheDirective
            | Counter::QuotasSet
            | Counter::DelegationToken
            | Counter::TokenKey => 0,
        }
    }
}

/// The counter's value.
pub(crate) fn get(store: &dyn StoreRead, counter: Counter) -> Result<u64> {
    let decode = |bytes: &[u8]| -> Result<u64> {
        let mut input = Decoder::new(bytes);
        let value = u64::decode(&mut input)?;
        input.finish()?;
        Ok(value)
    };
    let mut value = Ok(counter.initial());
    store.peek(Table::Meta, counter.key(), &mut |bytes| value = decode(bytes))?;
    value
}

pub(crate) fn set(store: &mut dyn StoreTxn, counter: Counter, value: u64) -> Result<()> {
    let mut out = Encoder::new();
    value.encode(&mut out);
    Ok(store.put(Table::Meta, counter.key(), &out.into_bytes())?)
}

/// Adds to a counter of things that there are.
pub(crate) fn add(store: &mut dyn StoreTxn, counter: Counter, change: i64) -> Result<()> {
    let value = get(store, counter)?.saturating_add_signed(change);
    set(store, counter, value)
}

/// More numbers than are ever given out between two states of a store.
const SKIPPED: u64 = 1 << 32;

/// Leaves out the numbers that may have been given out since the state of this store.
pub(crate) fn skip_numbers(store: &mut dyn StoreTxn) -> Result<()> {
    let per_group = MAX_UNITS_PER_GROUP as u64;
    for (counter, skipped) in [
        (Counter::InodeId, SKIPPED),
        (Counter::BlockId, SKIPPED),
        (Counter::GroupId, SKIPPED * per_group),
        (Counter::Handle, SKIPPED * per_group),
        (Counter::ContainerId, SKIPPED),
        (Counter::GenerationStamp, SKIPPED),
    ] {
        let value = get(store, counter)?.wrapping_add(skipped);
        set(store, counter, value)?;
    }
    Ok(())
}

/// A new number of a delegation token.
pub(crate) fn next_token(store: &mut dyn StoreTxn) -> Result<u32> {
    next_number(store, Counter::DelegationToken)
}

/// A new number of a master key.
pub(crate) fn next_token_key(store: &mut dyn StoreTxn) -> Result<u32> {
    next_number(store, Counter::TokenKey)
}

fn next_number(store: &mut dyn StoreTxn, counter: Counter) -> Result<u32> {
    let next = get(store, counter)? + 1;
    let number = u32::try_from(next).ok().filter(|number| *number <= i32::MAX as u32);
    let number = number.ok_or_else(|| NamespaceError::Io("There are no more numbers".into()))?;
    set(store, counter, next)?;
    Ok(number)
}

/// A new inode id.
pub(crate) fn next_inode_id(store: &mut dyn StoreTxn) -> Result<InodeId> {
    let next = get(store, Counter::InodeId)? + 1;
    set(store, Counter::InodeId, next)?;
    Ok(InodeId(next))
}

/// A new block id, or block group id.
pub(crate) fn next_block_id(store: &mut dyn StoreTxn, striped: bool) -> Result<BlockId> {
    match striped {
        true => next_id(store, Counter::GroupId, BlockId::next_group),
        false => next_id(store, Counter::BlockId, BlockId::next_contiguous),
    }
}

/// A new handle of a contiguous group: no parity ever has an id that another one had.
pub(crate) fn next_handle(store: &mut dyn StoreTxn) -> Result<BlockId> {
    next_id(store, Counter::Handle, BlockId::next_group)
}

/// A new id of a container: none ever has the id that another one had.
pub(crate) fn next_container(store: &mut dyn StoreTxn) -> Result<BlockId> {
    next_id(store, Counter::ContainerId, BlockId::next_container)
}

fn next_id(
    store: &mut dyn StoreTxn,
    counter: Counter,
    next: impl Fn(BlockId) -> Option<BlockId>,
) -> Result<BlockId> {
    let last = BlockId(get(store, counter)? as i64);
    let Some(next) = next(last) else {
        return Err(NamespaceError::Io(format!("There is no id for a block after {last}")));
    };
    set(store, counter, next.0 as u64)?;
    Ok(next)
}

/// A new generation stamp.
pub(crate) fn next_stamp(store: &mut dyn StoreTxn) -> Result<GenerationStamp> {
    let next = GenerationStamp(get(store, Counter::GenerationStamp)?).next();
    set(store, Counter::GenerationStamp, next.0)?;
    Ok(next)
}
