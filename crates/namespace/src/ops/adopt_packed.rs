//! Taking over what is in containers that a restored namespace did not know: their indexes tell of it.
//!
//! An index comes from outside. All of it that the store knows is compared here, block by block: what does not agree is
//! dead in its container, and stays where it is otherwise. What only the cluster knows is judged by who submits it: that
//! the container can be had, and that a block has too few copies without it.

use crate::block::{self, Block, BlockState, PackedIn};
use crate::container::{self, Container, ContainerState, PackedBlock};
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::Context;
use crate::ops::group::{check_file, refused};
use crate::ops::pack::{PACKED_AT_ONCE, wants_more_copies};
use crate::outcome::Outcome;
use crate::snapshot::held;
use crate::store::StoreRead;
use crate::{group, perm, unpacking, waiting};
use cairn_stripe::pack::MAX_PACKED_LEN;
use cairn_stripe::{BlockId, GenerationStamp};

/// Has blocks be where a container has them that was taken over. Those that the namespace does not have so, or that are in
/// a newer container or in a group, stay as they are. If a file is not to be kept so by now, its block is plain again as soon as
/// it can be.
///
/// Answer: `Outcome::Flag`, whether all of the container was looked at, or `GroupRefused` if it is none of which the content
/// is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptPacked {
    /// The container.
    pub container: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// The storage policy of the files of its blocks; 0 for the default.
    pub storage_policy: u8,
    /// Blocks of its index, at most [`PACKED_AT_ONCE`].
    pub blocks: Vec<AdoptedBlock>,
    /// With the last of them: how many blocks its index has, and their bytes.
    pub all: Option<(u64, u64)>,
}

/// A block as an index tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedBlock {
    /// Its slot.
    pub slot: u32,
    /// Where it begins.
    pub offset: u64,
    /// The block.
    pub id: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
}

encode_struct!(AdoptPacked { container, gs, storage_policy, blocks, all });
encode_struct!(AdoptedBlock { slot, offset, id, gs, len, crc32c });

impl AdoptPacked {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let is_open = |of: &Container| of.gs == self.gs && of.state == ContainerState::Found;
        let found = container::get(cx.store, self.container)?.filter(is_open);
        let own = block::get(cx.store, self.container)?;
        let (Some(mut container), Some(own)) = (found, own) else {
            return refused(format!("{} is none that was found", self.container));
        };
        if self.blocks.len() > PACKED_AT_ONCE {
            return refused(format!("{} blocks at once", self.blocks.len()));
        }
        if container.live == 0 {
            container.storage_policy = self.storage_policy;
        }
        for of in &self.blocks {
            if let Some(block) = of.find(cx.store, &container, own.len)? {
                of.take(cx, &container, block)?;
                container.live += 1;
                container.live_len += of.len;
            }
        }
        if let Some((packed, packed_len)) = self.all {
            container.state = ContainerState::Packed;
            container.packed = packed.max(container.live);
            container.packed_len = packed_len.max(container.live_len);
        }
        container::put(cx.store, &container)?;
        Ok(Outcome::Flag(self.all.is_some()))
    }
}

impl AdoptedBlock {
    /// The block, if the namespace has it as the index does, and it is in nothing newer.
    fn find(
        &self,
        store: &dyn StoreRead,
        container: &Container,
        container_len: u64,
    ) -> Result<Option<Block>> {
        let chunk_len = container.checksum.map_or(1, |shape| u64::from(shape.bytes_per_checksum));
        let end = self.offset.checked_add(self.len);
        let is_inside = self.offset.is_multiple_of(chunk_len.max(1))
            && end.is_some_and(|end| end <= container_len)
            && self.len > 0
            && self.len <= MAX_PACKED_LEN.into();
        let row = container::slots(store, container.id, self.slot, 1)?;
        let is_free = row.first().is_none_or(|(slot, _)| *slot != self.slot);
        if !is_inside || !is_free || self.id.has_units() || self.id.is_container() {
            return Ok(None);
        }
        let Some(block) = block::get(store, self.id)? else { return Ok(None) };
        let crc32c = block.unit_crcs.first().copied().flatten();
        let is_same = block.state == BlockState::Complete
            && (block.gs, block.len) == (self.gs, self.len)
            && crc32c.is_none_or(|crc32c| crc32c == self.crc32c);
        if !is_same || block.group.is_some() || group::attempt_of(store, self.id)?.is_some() {
            return Ok(None);
        }
        if let Some(at) = block.packed {
            let other = container::expect(store, at.container)?;
            if other.id == container.id || other.gs > container.gs {
                return Ok(None);
            }
        }
        Ok(Some(block))
    }

    /// Has the block be where the container has it.
    fn take(&self, cx: &mut Context<'_, '_>, container: &Container, block: Block) -> Result<()> {
        let AdoptedBlock { slot, offset, id, gs, len, crc32c } = *self;
        waiting::forget(cx.store, id)?;
        if let Some(at) = block.packed {
            container::leave(cx.store, &block, len)?;
            container::note_moved(cx.store, at.container, container.id)?;
        }
        let is_wanted = check_file(cx.store, &block, container.policy)?.is_ok()
            && !wants_more_copies(cx.store, block.file)?;
        let row = PackedBlock { id, gs, len, crc32c, from: None };
        container::put_slot(cx.store, container.id, slot, &row)?;
        counter::add(cx.store, Counter::Packed, 1)?;
        let packed = PackedIn { container: container.id, slot, offset };
        held::set_packed(cx.store, Block { unit_crcs: vec![Some(crc32c)], ..block }, Some(packed))?;
        match is_wanted {
            true => Ok(()),
            false => unpacking::ask(cx.store, id, true),
        }
    }
}
