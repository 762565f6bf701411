//! What the keeper of places must hear when an entry comes into force.
//!
//! Every entry ends here, whatever it did: the records of blocks that it changes are compared with those before it, so
//! that no operation can forget one, and what is told in the end is what the store says.

use crate::block::{self, Block, BlockState};
use crate::container::{self, Container, ContainerState};
use crate::error::Result;
use crate::group::{self, Group, GroupState};
use crate::inode::InodeId;
use crate::snapshot::kept;
use crate::store::{Overlay, StoreRead, Table};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// What has become of one block. Those of an entry are in the order of their blocks' ids, and for one block in the
/// order in which they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A writer has got a new block or group.
    Allocated {
        /// The block.
        id: BlockId,
        /// Its stamp.
        gs: GenerationStamp,
    },
    /// DataNodes are to make a block of the first bytes of another one.
    CopyBegun {
        /// The block that is to be.
        id: BlockId,
        /// The stamp that it gets.
        gs: GenerationStamp,
        /// The block to copy from.
        source: BlockId,
    },
    /// The writer of a block goes on with a new stamp, and other storages.
    PipelineUpdated {
        /// The block.
        id: BlockId,
        /// Its stamp from now on.
        gs: GenerationStamp,
    },
    /// A block that had its final length is open again.
    Reopened {
        /// The block.
        id: BlockId,
        /// Its stamp until now.
        gs: GenerationStamp,
        /// Its bytes until now.
        len: u64,
    },
    /// The replicas of a block are to be brought to one length.
    RecoveryOrdered {
        /// The block.
        id: BlockId,
        /// The stamp that the recovered replicas get.
        new_gs: GenerationStamp,
    },
    /// A recovery has ended: the block has the stamp that was ordered.
    Synchronized {
        /// The block.
        id: BlockId,
        /// Its stamp.
        gs: GenerationStamp,
        /// Its bytes.
        len: u64,
    },
    /// The final length of a block is known.
    Committed {
        /// The block.
        id: BlockId,
    },
    /// A block is final, and its redundancy is to be looked after.
    Completed {
        /// The block.
        id: BlockId,
    },
    /// The CRC that was recorded of a replica or unit was wrong.
    CrcReplaced {
        /// The block, or the internal block by its own id.
        id: BlockId,
    },
    /// Another number of copies of a block may be wanted.
    CopiesChanged {
        /// The block.
        id: BlockId,
    },
    /// A block has become one that is packed in a container.
    Packed {
        /// The block.
        id: BlockId,
    },
    /// One that was packed is plain again.
    Unpacked {
        /// The block.
        id: BlockId,
    },
    /// No file has the block any more.
    Removed {
        /// The block.
        id: BlockId,
        /// Its last stamp.
        gs: GenerationStamp,
    },
    /// No file has a member of a contiguous group any more; its bytes stay for the others' sake.
    MemberRetired {
        /// The block.
        id: BlockId,
    },
    /// A container is to be written.
    PackBegun {
        /// The container.
        id: BlockId,
        /// Its stamp.
        gs: GenerationStamp,
    },
    /// The parities of a contiguous group are to be made.
    GroupBegun {
        /// The group.
        handle: BlockId,
        /// The stamp of its parities.
        gs: GenerationStamp,
    },
    /// A contiguous group keeps its members safe from now on.
    GroupFormed {
        /// The group.
        handle: BlockId,
    },
    /// A contiguous group that DataNodes had and the namespace did not know was taken over.
    GroupAdopted {
        /// The group.
        handle: BlockId,
    },
    /// A container that DataNodes had and the namespace did not know was taken over without a group.
    ContainerAdopted {
        /// The container.
        id: BlockId,
    },
    /// A group is to be dissolved, or another one has its members.
    GroupChanged {
        /// The group.
        handle: BlockId,
    },
    /// There is no such group any more, nor an attempt to make it: its parities are not wanted.
    GroupEnded {
        /// The group.
        handle: BlockId,
        /// The stamp of its parities.
        gs: GenerationStamp,
    },
}

impl Effect {
    /// The block or group that it is about.
    pub fn block(&self) -> BlockId {
        match *self {
            Effect::Allocated { id, .. }
            | Effect::CopyBegun { id, .. }
            | Effect::PipelineUpdated { id, .. }
            | Effect::Reopened { id, .. }
            | Effect::RecoveryOrdered { id, .. }
            | Effect::Synchronized { id, .. }
            | Effect::Committed { id }
            | Effect::Completed { id }
            | Effect::CopiesChanged { id }
            | Effect::Packed { id }
            | Effect::Unpacked { id }
            | Effect::Removed { id, .. }
            | Effect::PackBegun { id, .. }
            | Effect::ContainerAdopted { id }
            | Effect::MemberRetired { id } => id,
            Effect::GroupBegun { handle, .. }
            | Effect::GroupFormed { handle }
            | Effect::GroupAdopted { handle }
            | Effect::GroupChanged { handle }
            | Effect::GroupEnded { handle, .. } => handle,
            Effect::CrcReplaced { id } => id.group(),
        }
    }
}

/// The effects of what `after` changes, of whose files those in `other_copies` may want another number of copies.
pub(crate) fn of(
    before: &dyn StoreRead,
    after: &Overlay<'_>,
    other_copies: &[InodeId],
) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    for key in after.changed(Table::Block) {
        let was = record(before, &key)?;
        let is = record(after, &key)?;
        compare(was.as_ref(), is.as_ref(), &mut effects);
    }
    for key in after.changed(Table::Group) {
        let was = group_record(before, &key)?;
        let is = group_record(after, &key)?;
        compare_groups(was.as_ref(), is.as_ref(), &mut effects);
    }
    for key in after.changed(Table::Container) {
        let mut was = false;
        before.peek(Table::Container, &key, &mut |_| was = true)?;
        if let Some(record) = after.get(Table::Container, &key)?.filter(|_| !was) {
            let Container { id, gs, state, .. } = container::decode(&record)?;
            if matches!(state, ContainerState::Building { .. }) {
                effects.push(Effect::PackBegun { id, gs });
            }
        }
    }
    for file in other_copies {
        for id in kept::all_blocks(after, *file)? {
            effects.push(Effect::CopiesChanged { id });
        }
    }
    Ok(effects)
}

fn record(store: &dyn StoreRead, key: &[u8]) -> Result<Option<Block>> {
    let mut found = None;
    store.peek(Table::Block, key, &mut |record| found = Some(block::decode(record)))?;
    found.transpose()
}

fn group_record(store: &dyn StoreRead, key: &[u8]) -> Result<Option<Group>> {
    let mut found = None;
    store.peek(Table::Group, key, &mut |record| found = Some(group::decode(record)))?;
    found.transpose()
}

fn compare_groups(was: Option<&Group>, is: Option<&Group>, effects: &mut Vec<Effect>) {
    match (was, is) {
        (None, None) => {}
        (Some(Group { handle, gs, .. }), None) => {
            effects.push(Effect::GroupEnded { handle: *handle, gs: *gs });
        }
        (None, Some(is)) if is.is_attempt() => {
            effects.push(Effect::GroupBegun { handle: is.handle, gs: is.gs });
        }
        (None, Some(is)) => effects.push(Effect::GroupAdopted { handle: is.handle }),
        (Some(was), Some(is)) if was.state == is.state => {}
        (Some(_), Some(Group { handle, state: GroupState::Formed, .. })) => {
            effects.push(Effect::GroupFormed { handle: *handle });
        }
        (Some(_), Some(is)) => {
            effects.push(Effect::GroupChanged { handle: is.handle });
            let live = is.live_members();
            effects.extend(live.map(|(_, member)| Effect::CopiesChanged { id: member.id }));
        }
    }
}

fn compare(was: Option<&Block>, is: Option<&Block>, effects: &mut Vec<Effect>) {
    let (was, is) = match (was, is) {
        (None, None) => return,
        (Some(was), None) => return effects.push(Effect::Removed { id: was.id, gs: was.gs }),
        // A member of a group that was taken over.
        (None, Some(is)) if is.is_tombstone() => {
            return effects.push(Effect::MemberRetired { id: is.id });
        }
        // A container of a group that was taken over.
        (None, Some(is)) if is.group.is_some() => {
            return effects.push(Effect::CopiesChanged { id: is.id });
        }
        (None, Some(is)) if is.id.is_container() && is.is_final() => {
            return effects.push(Effect::ContainerAdopted { id: is.id });
        }
        (None, Some(is)) => {
            match is.copy_source() {
                Some(_) => recovery(is, effects),
                None => effects.push(Effect::Allocated { id: is.id, gs: is.gs }),
            }
            return end(BlockState::UnderConstruction, is, effects);
        }
        (Some(was), Some(is)) => (was, is),
    };
    let id = is.id;
    if was.is_final() && !is.is_final() {
        effects.push(Effect::Reopened { id, gs: was.gs, len: was.len });
    }
    let stamp = |block: &Block| block.recovery().map(|(gs, _)| gs);
    match (stamp(was), stamp(is)) {
        (before, Some(ordered)) if before != Some(ordered) => recovery(is, effects),
        (_, Some(_)) => {}
        (Some(ordered), None) if is.gs == ordered => {
            effects.push(Effect::Synchronized { id, gs: is.gs, len: is.len });
        }
        _ if was.gs != is.gs => effects.push(Effect::PipelineUpdated { id, gs: is.gs }),
        _ => {}
    }
    end(was.state, is, effects);
    if was.is_final() && is.is_final() && was.gs == is.gs {
        for (unit, (old, new)) in (0u8..).zip(was.unit_crcs.iter().zip(&is.unit_crcs)) {
            if old.is_some() && new.is_some() && old != new {
                let unit = UnitIndex(unit);
                let id = if id.is_striped() { id.internal(unit) } else { id };
                effects.push(Effect::CrcReplaced { id });
            }
        }
    }
    if is.is_tombstone() && !was.is_tombstone() {
        effects.push(Effect::MemberRetired { id });
    } else if was.packed.is_none() && is.packed.is_some() {
        effects.push(Effect::Packed { id });
    } else if was.packed.is_some() && is.packed.is_none() {
        effects.push(Effect::Unpacked { id });
    } else if was.file != is.file || was.group != is.group || was.packed != is.packed {
        effects.push(Effect::CopiesChanged { id });
    }
}

/// What a recovery that was ordered begins with.
fn recovery(block: &Block, effects: &mut Vec<Effect>) {
    let Some((new_gs, _)) = block.recovery() else { return };
    let id = block.id;
    if let Some(source) = block.copy_source() {
        effects.push(Effect::CopyBegun { id, gs: new_gs, source });
    }
    effects.push(Effect::RecoveryOrdered { id, new_gs });
}

fn end(was: BlockState, is: &Block, effects: &mut Vec<Effect>) {
    match is.state {
        state if state == was => {}
        BlockState::Committed => effects.push(Effect::Committed { id: is.id }),
        BlockState::Complete => effects.push(Effect::Completed { id: is.id }),
        _ => {}
    }
}
