//! Packing: small blocks go into containers, which are members of groups.
//!
//! ```text
//! BeginPack -> a DataNode writes the container and reads it back -> SealPack
//!           -> BeginEncode, Form over containers, as over any blocks
//!           -> Pack, in steps: each block is compared once more, and is where its container is from then on
//! ```
//! A block that is packed already goes from one container into another in the same way ([`super::repack`]).
//! Until its `Pack` a block is what it was, and whoever changes it meanwhile has won. What only the cluster knows is
//! judged by who submits these; in particular that a container's group is whole.

use crate::block::{self, Block, BlockRef, BlockState, PackedIn};
use crate::container::{self, Container, ContainerState, PackedBlock};
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::group::{self, ChecksumShape};
use crate::inode::{self, InodeId};
use crate::ops::Context;
use crate::ops::group::{Checked, check_file, refused};
use crate::outcome::Outcome;
use crate::snapshot::{held, kept};
use crate::store::{StoreRead, StoreTxn};
use crate::tree::end_block::end_block;
use crate::{perm, policy_admin, unpacking, waiting};
use cairn_stripe::pack::{MAX_PACKED_LEN, PackIndex};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, PolicyLayout};
use std::collections::BTreeSet;

/// Most blocks of a container that is begun.
pub const PACKED_MAX: usize = 8192;
/// Most blocks that one command packs, or has wait again.
pub const PACKED_AT_ONCE: usize = 1000;
/// Most copies that are asked for of a block that may be packed: whoever wants more reads it often.
pub(super) const COPIES_MAX: u16 = 3;

/// Begins a container. Block `i` gets slot `i`.
///
/// Answer: `Outcome::EncodeBegun` with its id and stamp, or `GroupRefused` if a block is not as it was or may not be packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginPack {
    /// The policy, which the files of all blocks have.
    pub policy: PolicyId,
    /// The storage policy of these files; 0 for the default.
    pub storage_policy: u8,
    /// The blocks by slot.
    pub blocks: Vec<PackedBlock>,
}

encode_struct!(BeginPack { policy, storage_policy, blocks });

/// Takes a container for what it is to be: a DataNode has written it, and has read it back by its index.
///
/// Answer: `Outcome::Done`, or `GroupRefused` if the container is not being built, or other bytes were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealPack {
    /// The container.
    pub container: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// Slots whose blocks are not in it: they could not be read, or are summed otherwise.
    pub left_out: Vec<u32>,
    /// CRC32C of each packed block as it was read back, by slot.
    pub crcs: Vec<u32>,
    /// How it and all in it are summed.
    pub checksum: ChecksumShape,
}

encode_struct!(SealPack { container, gs, len, crc32c, left_out, crcs, checksum });

/// Packs the next blocks of a container that is in a group. Whoever submits it has seen that the group is whole.
///
/// Answer: `Outcome::Flag`, whether all were looked at, or `GroupRefused` if the container is in no group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// The container.
    pub container: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
}

encode_struct!(Pack { container, gs });

/// Gives a container up in which nothing is packed, in steps: what was to be packed waits again.
///
/// Answer: `Outcome::Flag`, whether it is gone, or `GroupRefused` if something may be packed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonPack {
    /// The container.
    pub container: BlockId,
}

encode_struct!(AbandonPack { container });

/// Ends a container of which nobody needs anything any more: for its group it is a member that no file has.
///
/// Answer: `Outcome::Done`, also if there is no such container; `GroupRefused` if something is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndPack {
    /// The container.
    pub container: BlockId,
}

encode_struct!(EndPack { container });

impl BeginPack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let policies = policy_admin::all(cx.store)?;
        let is_policy = policies
            .into_iter()
            .map(|info| info.policy)
            .any(|known| known.id == self.policy && known.layout == PolicyLayout::Contiguous);
        if !is_policy {
            return refused(format!("no policy of contiguous groups has number {}", self.policy.0));
        }
        if self.blocks.is_empty() || self.blocks.len() > PACKED_MAX {
            return refused(format!("{} blocks for a container", self.blocks.len()));
        }
        let ids: BTreeSet<BlockId> = self.blocks.iter().map(|block| block.id).collect();
        if ids.len() < self.blocks.len() {
            return refused("a block is named twice");
        }
        for member in &self.blocks {
            // One that another container has taken does not wait.
            if waiting::due_of(cx.store, member.id)?.is_none() {
                return refused(format!("{} does not wait", member.id));
            }
            if let Err(reason) = check_packable(cx.store, member, self.policy)? {
                return refused(reason);
            }
        }
        let (id, gs) = (counter::next_container(cx.store)?, counter::next_stamp(cx.store)?);
        for (slot, member) in (0..).zip(&self.blocks) {
            waiting::forget(cx.store, member.id)?;
            container::put_slot(cx.store, id, slot, member)?;
        }
        let container = Container {
            id,
            gs,
            policy: self.policy,
            storage_policy: self.storage_policy,
            state: ContainerState::Building { started_ms: cx.times.elapsed_ms },
            checksum: None,
            packed: 0,
            packed_len: 0,
            live: 0,
            live_len: 0,
            moved_to: Vec::new(),
        };
        container::put(cx.store, &container)?;
        let place = (InodeId::CONTAINERS, 0);
        let block = Block::new(BlockRef { id, gs, len: 0 }, place, BlockState::UnderConstruction);
        block::put(cx.store, &block)?;
        counter::add(cx.store, Counter::Blocks, 1)?;
        Ok(Outcome::EncodeBegun { handle: id, gs })
    }
}

impl SealPack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let is_open = |container: &Container| {
            container.gs == self.gs && matches!(container.state, ContainerState::Building { .. })
        };
        let Some(mut container) = container::get(cx.store, self.container)?.filter(is_open) else {
            return refused(format!("{} is not being built", self.container));
        };
        let rows = container::slots(cx.store, self.container, 0, PACKED_MAX)?;
        if let Err(reason) = self.compare(&rows) {
            return refused(reason);
        }
        let Some(block) = block::get(cx.store, self.container)? else {
            return refused(format!("there is no block {}", self.container));
        };
        for (slot, member) in rows.iter().filter(|(slot, _)| self.left_out.contains(slot)) {
            container::remove_slot(cx.store, self.container, *slot)?;
            wait_again(cx, member)?;
        }
        container.state = ContainerState::Sealed;
        container.checksum = Some(self.checksum);
        container::put(cx.store, &container)?;
        let (len, state) = (self.len, BlockState::Complete);
        block::put(cx.store, &Block { len, state, unit_crcs: vec![Some(self.crc32c)], ..block })?;
        waiting::begin_container(cx.store, self.container, cx.times.elapsed_ms)?;
        Ok(Outcome::Done)
    }

    /// Compares what was read back with what is recorded of each block.
    fn compare(&self, rows: &[(u32, PackedBlock)]) -> Checked {
        let shape = &self.checksum;
        let known = (self.container, self.gs);
        let index = PackIndex::new(known, shape.kind, shape.bytes_per_checksum);
        let mut index = index.map_err(|error| error.to_string())?;
        let mut crcs = self.crcs.iter();
        for (slot, member) in rows.iter().filter(|(slot, _)| !self.left_out.contains(slot)) {
            if crcs.next() != Some(&member.crc32c) {
                return Err(format!("other bytes were read of {}", member.id));
            }
            let len = u32::try_from(member.len).map_err(|error| error.to_string())?;
            index
                .push(*slot, (member.id, member.gs), (len, member.crc32c))
                .map_err(|error| error.to_string())?;
        }
        if crcs.next().is_some() || index.packed().is_empty() {
            return Err(format!("{} blocks were read back", self.crcs.len()));
        }
        match index.container_len() == self.len {
            true => Ok(()),
            false => Err(format!("it has {} bytes instead of {}", self.len, index.container_len())),
        }
    }
}

impl Pack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let found = container::get(cx.store, self.container)?;
        let Some(mut container) = found.filter(|container| container.gs == self.gs) else {
            return refused(format!("there is no container {}", self.container));
        };
        let (from, mut offset) = match container.state {
            ContainerState::Sealed => (0, 0),
            ContainerState::Packing { next, offset } => (next, offset),
            ContainerState::Packed | ContainerState::Emptying { .. } => {
                return Ok(Outcome::Flag(true));
            }
            ContainerState::Building { .. } | ContainerState::Ending | ContainerState::Found => {
                return refused(format!("{} is not sealed", self.container));
            }
        };
        let chunk_len = container.checksum.map_or(1, |shape| shape.bytes_per_checksum);
        if let Err(reason) = is_protected(cx.store, self.container)? {
            return refused(reason);
        }
        let rows = container::slots(cx.store, self.container, from, PACKED_AT_ONCE)?;
        for (slot, member) in &rows {
            let packed = PackedIn { container: self.container, slot: *slot, offset };
            offset += member.len.next_multiple_of(chunk_len.into());
            match check_packable(cx.store, member, container.policy)? {
                Ok(block) => {
                    waiting::forget(cx.store, block.id)?;
                    if let Some(from) = member.from {
                        container::leave(cx.store, &block, block.len)?;
                        container::note_moved(cx.store, from, self.container)?;
                    }
                    container.packed += 1;
                    container.packed_len += block.len;
                    container.live += 1;
                    container.live_len += block.len;
                    counter::add(cx.store, Counter::Packed, 1)?;
                    held::set_packed(cx.store, block, Some(packed))?;
                }
                Err(_) => {
                    container::remove_slot(cx.store, self.container, *slot)?;
                    wait_again(cx, member)?;
                }
            }
        }
        container.state = match rows.last() {
            Some((last, _)) if rows.len() == PACKED_AT_ONCE => {
                ContainerState::Packing { next: last + 1, offset }
            }
            _ => ContainerState::Packed,
        };
        container::put(cx.store, &container)?;
        Ok(Outcome::Flag(container.state == ContainerState::Packed))
    }
}

impl AbandonPack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(container) = container::get(cx.store, self.container)? else {
            return Ok(Outcome::Flag(true));
        };
        let block = block::get(cx.store, self.container)?;
        let is_member = block.as_ref().is_some_and(|block| block.group.is_some());
        if container.is_needed() || is_member {
            return refused(format!("{} is needed", self.container));
        }
        if let Some(attempt) = group::attempt_of(cx.store, self.container)? {
            return refused(format!("{} is in attempt {attempt}", self.container));
        }
        waiting::forget(cx.store, self.container)?;
        let rows = container::slots(cx.store, self.container, 0, PACKED_AT_ONCE)?;
        for (slot, member) in &rows {
            container::remove_slot(cx.store, self.container, *slot)?;
            wait_again(cx, member)?;
        }
        if rows.len() == PACKED_AT_ONCE {
            container::put(cx.store, &Container { state: ContainerState::Ending, ..container })?;
            return Ok(Outcome::Flag(false));
        }
        container::delete(cx.store, self.container)?;
        if let Some(block) = block {
            end_block(cx.store, &block)?;
        }
        Ok(Outcome::Flag(true))
    }
}

impl EndPack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(container) = container::get(cx.store, self.container)? else {
            return Ok(Outcome::Done);
        };
        let is_over = container.state == ContainerState::Packed || container.is_emptying();
        if !is_over || !container::is_empty(cx.store, self.container)? {
            return refused(format!("{} has packed blocks", self.container));
        }
        if let Some(attempt) = group::attempt_of(cx.store, self.container)? {
            return refused(format!("{} is in attempt {attempt}", self.container));
        }
        container::delete(cx.store, self.container)?;
        if let Some(block) = block::get(cx.store, self.container)? {
            end_block(cx.store, &block)?;
        }
        Ok(Outcome::Done)
    }
}

/// Whether a container with that block may be begun: who chooses asks before, as one block that may not be packed has the
/// whole command refused.
pub fn may_be_packed(
    store: &dyn StoreRead,
    member: &PackedBlock,
    policy: PolicyId,
) -> Result<bool> {
    let waits = waiting::due_of(store, member.id)?.is_some();
    Ok(waits && check_packable(store, member, policy)?.is_ok())
}

/// The block, if it may be packed and is as it was found.
fn check_packable(
    store: &dyn StoreRead,
    member: &PackedBlock,
    policy: PolicyId,
) -> Result<std::result::Result<Block, String>> {
    let id = member.id;
    let Some(block) = block::get(store, id)?.filter(|block| block.id == id) else {
        return Ok(Err(format!("there is no block {id}")));
    };
    let is_same = block.state == BlockState::Complete
        && (block.gs, block.len) == (member.gs, member.len)
        && block.unit_crcs.first() == Some(&Some(member.crc32c));
    let has_room = block.len > 0 && block.len <= MAX_PACKED_LEN.into();
    let is_there = block.packed.map(|at| at.container) == member.from && block.group.is_none();
    if !is_same || !has_room || id.has_units() || id.is_container() || !is_there {
        return Ok(Err(format!("{id} is not as it was")));
    }
    if unpacking::is_asked(store, id)? {
        return Ok(Err(format!("{id} is to be unpacked")));
    }
    if let Some(attempt) = group::attempt_of(store, id)? {
        return Ok(Err(format!("{id} is in attempt {attempt}")));
    }
    if wants_more_copies(store, block.file)? {
        return Ok(Err(format!("more copies are asked for of {id}")));
    }
    Ok(check_file(store, &block, policy)?.map(|()| block))
}

/// Whether more copies are asked for of a file, or were when a snapshot saw it, than what is packed has.
pub(super) fn wants_more_copies(store: &dyn StoreRead, file: InodeId) -> Result<bool> {
    let redundancy = kept::redundancy_of(store, file)?;
    Ok(redundancy.and_then(|redundancy| redundancy.copies()).is_none_or(|of| of > COPIES_MAX))
}

/// Whether a container is in a group that keeps it safe.
fn is_protected(store: &dyn StoreRead, container: BlockId) -> Result<Checked> {
    let block = block::get(store, container)?;
    let Some(of) = block.and_then(|block| block.group) else {
        return Ok(Err(format!("{container} is in no group")));
    };
    let group = group::expect(store, of.handle)?;
    Ok(match group.is_formed() {
        true => Ok(()),
        false => Err(format!("group {} is to end", of.handle)),
    })
}

/// A block that was to be packed and is not waits for another container, if it may be packed at all.
fn wait_again(cx: &mut Context<'_, '_>, member: &PackedBlock) -> Result<()> {
    let Some(block) = block::get(cx.store, member.id)? else { return Ok(()) };
    if waiting::due_of(cx.store, block.id)?.is_some() {
        return Ok(());
    }
    if let Some(at) = block.packed {
        let is_to_go = container::expect(cx.store, at.container)?.is_emptying();
        return match is_to_go && !unpacking::is_asked(cx.store, block.id)? {
            true => waiting::begin_packed(cx.store, block.id, cx.times.elapsed_ms),
            false => Ok(()),
        };
    }
    if block.is_coded() {
        return Ok(());
    }
    wait_if_closed(cx.store, cx.settings, &block, cx.times.elapsed_ms)
}

/// Has a block wait that is plain, if nobody writes its file there.
pub(super) fn wait_if_closed(
    store: &mut dyn StoreTxn,
    settings: &crate::Settings,
    block: &Block,
    elapsed_ms: u64,
) -> Result<()> {
    if let Some(inode) = inode::get(store, block.file)?
        && let Some(file) = inode.file()
        && block::is_in_place(store, block)?
        && !block::is_at_open_end(&inode, block)
    {
        waiting::closed_block(store, settings, file, block, elapsed_ms)?;
    }
    Ok(())
}
