//! Containers of small blocks, and what is packed in them.
//!
//! Table `container`: id (as a block's) -> [`Container`]. Table `pack-slot`: container (as a block's id), slot
//! (4 bytes) -> the block that is to be packed there, or is. Where a packed block is says its own record; a row of
//! `pack-slot` goes with it. So a container from which all rows are gone has nothing that anybody needs, and nothing is
//! freed by a count: counts only say what is worth the work.

use crate::block::{self, Block, PackedIn};
use crate::counter::{self, Counter};
use crate::encoding::{encode_enum, encode_struct, from_record, to_record};
use crate::error::{Result, StoreError};
use crate::group::ChecksumShape;
use crate::store::{StoreRead, StoreTxn, Table};
use crate::waiting;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// A block of no file in which small blocks are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// The policy of its group, which the files of all its packed blocks have.
    pub policy: PolicyId,
    /// The storage policy of these files; 0 for the default.
    pub storage_policy: u8,
    /// How far it has come.
    pub state: ContainerState,
    /// How it and its packed blocks are summed, once it is sealed.
    pub checksum: Option<ChecksumShape>,
    /// Blocks that were packed in it.
    pub packed: u64,
    /// Their bytes.
    pub packed_len: u64,
    /// Those of them that there are still.
    pub live: u64,
    /// Their bytes.
    pub live_len: u64,
    /// The containers into which blocks of this one have gone. It does not end before these are safe.
    pub moved_to: Vec<BlockId>,
}

/// A block that is packed, or is to be, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedBlock {
    /// Its id.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// The container that it was in; none if it was plain. It is packed only if it is there still.
    pub from: Option<BlockId>,
}

encode_struct!(PackedBlock { id, gs, len, crc32c, from });

/// How far a container has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// A DataNode writes it. Nobody needs it.
    Building {
        /// When it began, elapsed ms.
        started_ms: u64,
    },
    /// It was read back as it should be. Nobody needs it before it is in a group.
    Sealed,
    /// Blocks are packed one after the other.
    Packing {
        /// The first slot that was not looked at.
        next: u32,
        /// Where the bytes begin that are in that slot.
        offset: u64,
    },
    /// All that could be packed in it are.
    Packed,
    /// So much in it is dead that what lives goes into other containers, for which it waits as if it were plain.
    Emptying {
        /// The first slot whose block does not wait yet; none if all do.
        next: Option<u32>,
    },
    /// It is given up; what was to be packed waits again.
    Ending,
    /// It was taken over, with its group or without: what is in it is still to be read from DataNodes, and may be needed.
    Found,
}

encode_enum!(ContainerState {
    1 => Building { started_ms },
    2 => Sealed,
    3 => Packing { next, offset },
    4 => Packed,
    5 => Ending,
    6 => Emptying { next },
    7 => Found,
});
encode_struct!(Container {
    id,
    gs,
    policy,
    storage_policy,
    state,
    checksum,
    packed,
    packed_len,
    live,
    live_len,
    moved_to,
});

impl Container {
    /// One that DataNodes have, of which is not known yet what is in it.
    pub(crate) fn found(
        (id, gs): (BlockId, GenerationStamp),
        policy: PolicyId,
        checksum: ChecksumShape,
    ) -> Container {
        Container {
            id,
            gs,
            policy,
            storage_policy: 0,
            state: ContainerState::Found,
            checksum: Some(checksum),
            packed: 0,
            packed_len: 0,
            live: 0,
            live_len: 0,
            moved_to: Vec::new(),
        }
    }

    /// Whether blocks may be packed in it: it must not get lost.
    pub fn is_needed(&self) -> bool {
        matches!(
            self.state,
            ContainerState::Packing { .. }
                | ContainerState::Packed
                | ContainerState::Emptying { .. }
                | ContainerState::Found
        )
    }

    /// Whether it may get lost, with its replica: nothing is packed in it, and it is in no group. `block` is its own.
    pub fn is_spare(&self, block: &Block) -> bool {
        !self.is_needed() && block.group.is_none()
    }

    /// Whether what is packed in it is to go into other containers.
    pub fn is_emptying(&self) -> bool {
        matches!(self.state, ContainerState::Emptying { .. })
    }

    /// Bytes in it that no block has any more.
    pub fn dead_len(&self) -> u64 {
        self.packed_len.saturating_sub(self.live_len)
    }
}

/// A container.
pub fn get(store: &dyn StoreRead, id: BlockId) -> Result<Option<Container>> {
    let mut found = None;
    store.peek(Table::Container, &block::key(id), &mut |record| found = Some(decode(record)))?;
    found.transpose()
}

pub(crate) fn decode(record: &[u8]) -> Result<Container> {
    Ok(from_record(VERSION, record)?)
}

/// A container to which another record refers.
pub(crate) fn expect(store: &dyn StoreRead, id: BlockId) -> Result<Container> {
    Ok(get(store, id)?.ok_or_else(|| StoreError::Corrupt {
        what: "reference",
        reason: format!("there is no container {id}"),
    })?)
}

/// At most `limit` containers with ids greater than `after`, ascending.
pub fn containers_after(
    store: &dyn StoreRead,
    after: Option<BlockId>,
    limit: usize,
) -> Result<Vec<Container>> {
    let from = after.map_or(Vec::new(), |id| block::key(BlockId(id.0.saturating_add(1))).to_vec());
    let mut found = Vec::new();
    if limit > 0 {
        store.scan(Table::Container, &from, &[], &mut |_, record| {
            found.push(decode(record));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    found.into_iter().collect()
}

pub(crate) fn put(store: &mut dyn StoreTxn, container: &Container) -> Result<()> {
    let record = to_record(VERSION, container);
    Ok(store.put(Table::Container, &block::key(container.id), &record)?)
}

pub(crate) fn delete(store: &mut dyn StoreTxn, id: BlockId) -> Result<()> {
    Ok(store.remove(Table::Container, &block::key(id))?)
}

fn slot_key(container: BlockId, slot: u32) -> Vec<u8> {
    [&block::key(container)[..], &slot.to_be_bytes()].concat()
}

/// At most `limit` of the blocks that are packed in a container or are to be, with their slots, from slot `from` on.
pub fn slots(
    store: &dyn StoreRead,
    container: BlockId,
    from: u32,
    limit: usize,
) -> Result<Vec<(u32, PackedBlock)>> {
    let mut found = Vec::new();
    if limit > 0 {
        let end = block::key(BlockId(container.0.saturating_add(1)));
        store.scan(Table::PackSlot, &slot_key(container, from), &end, &mut |key, record| {
            let slot = key.last_chunk().map_or(0, |slot| u32::from_be_bytes(*slot));
            found.push(from_record(VERSION, record).map(|member| (slot, member)));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found.into_iter().collect::<std::result::Result<_, _>>()?)
}

/// Whether nothing is in a container that anybody needs.
pub fn is_empty(store: &dyn StoreRead, container: BlockId) -> Result<bool> {
    Ok(slots(store, container, 0, 1)?.is_empty())
}

pub(crate) fn put_slot(
    store: &mut dyn StoreTxn,
    container: BlockId,
    slot: u32,
    member: &PackedBlock,
) -> Result<()> {
    let record = to_record(VERSION, member);
    Ok(store.put(Table::PackSlot, &slot_key(container, slot), &record)?)
}

pub(crate) fn remove_slot(store: &mut dyn StoreTxn, container: BlockId, slot: u32) -> Result<()> {
    Ok(store.remove(Table::PackSlot, &slot_key(container, slot))?)
}

/// A packed block is no more, or is plain again: its row goes.
pub(crate) fn leave(store: &mut dyn StoreTxn, block: &Block, len: u64) -> Result<()> {
    let Some(PackedIn { container, slot, .. }) = block.packed else { return Ok(()) };
    remove_slot(store, container, slot)?;
    let mut of = expect(store, container)?;
    of.live = of.live.saturating_sub(1);
    of.live_len = of.live_len.saturating_sub(len);
    put(store, &of)?;
    counter::add(store, Counter::Packed, -1)
}

/// A packed block whose row has gone is there after all, because a snapshot has it.
pub(crate) fn bring_back(store: &mut dyn StoreTxn, block: &Block) -> Result<()> {
    let Some(PackedIn { container, slot, .. }) = block.packed else { return Ok(()) };
    let Some(crc32c) = block.unit_crcs.first().copied().flatten() else { return Ok(()) };
    let (id, gs, len) = (block.id, block.gs, block.len);
    put_slot(store, container, slot, &PackedBlock { id, gs, len, crc32c, from: None })?;
    let mut of = expect(store, container)?;
    of.live += 1;
    of.live_len += len;
    put(store, &of)?;
    if of.is_emptying() {
        waiting::begin_packed(store, id, 0)?;
    }
    counter::add(store, Counter::Packed, 1)
}

/// A block has gone from one container into another.
pub(crate) fn note_moved(store: &mut dyn StoreTxn, from: BlockId, to: BlockId) -> Result<()> {
    let mut of = expect(store, from)?;
    if !of.moved_to.contains(&to) {
        of.moved_to.push(to);
        put(store, &of)?;
    }
    Ok(())
}
