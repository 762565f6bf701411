//! What is known of contiguous groups beside where their units are: attempts to make one, which replicas were proven, and
//! whose surplus is there or on its way out. All of it is soft: a restart forgets it, and with it every open attempt.

use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A storage in one of its lives (`Storage::life`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub storage: StorageHandle,
    pub number: u64,
}

/// An attempt to make a group.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub gs: GenerationStamp,
    /// Who encodes.
    pub encoder: NodeHandle,
    /// When it began, on the monotonic clock.
    pub since_ms: u64,
    /// Its members.
    pub members: Vec<BlockId>,
    /// Where the replica of each is that is read, and is to stay.
    pub kept: Vec<(UnitIndex, Life)>,
    /// What has become of it that ends it.
    pub ended: Option<&'static str>,
}

/// A replica that was read as a whole from its disk, and was as first written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    pub gs: GenerationStamp,
    pub place: Life,
}

/// A replica that a DataNode is to read as its disk has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proving {
    /// Who reads it.
    pub node: NodeHandle,
    /// Where it is, and in which life that storage was told.
    pub place: Life,
    /// When that was ordered, on the monotonic clock.
    pub since_ms: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// By handle.
    pub attempts: BTreeMap<BlockId, Attempt>,
    /// By member or parity, as long as its group has more replicas than it needs.
    pub proofs: BTreeMap<BlockId, Proof>,
    /// By member or parity, what is being read so that others may go.
    pub proving: BTreeMap<BlockId, Proving>,
    /// By member that no file has, the storages whose DataNodes know it, with the lives in which they were told.
    pub retired: BTreeMap<BlockId, BTreeMap<StorageHandle, u64>>,
    /// Formed groups with more replicas than they need.
    pub with_surplus: BTreeSet<BlockId>,
    /// Of each group the member of which replicas are chosen for deletion.
    dropping: BTreeMap<BlockId, BlockId>,
    /// The group of each such member.
    dropped: BTreeMap<BlockId, BlockId>,
    /// Until when blocks are to be in no other attempt, on the monotonic clock.
    pub resting: BTreeMap<BlockId, u64>,
    /// Nothing is deleted of what groups do not need.
    pub is_held: bool,
    /// The last of the groups with surplus that were looked at.
    pub looked_at: Option<BlockId>,
}

impl Groups {
    /// The next groups with surplus, and round.
    pub(crate) fn next_with_surplus(&mut self, limit: usize) -> Vec<BlockId> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = self.looked_at.map_or(Unbounded, Excluded);
        let mut next: Vec<BlockId> =
            self.with_surplus.range((from, Unbounded)).take(limit).copied().collect();
        let rest = limit - next.len();
        next.extend(self.with_surplus.iter().take(rest).filter(|id| Some(**id) <= self.looked_at));
        self.looked_at = next.last().copied().or(self.looked_at);
        next
    }

    /// Replicas of a member are chosen for deletion, and of no other of its group.
    pub(crate) fn note_dropping(&mut self, handle: BlockId, member: BlockId) {
        if let Some(before) = self.dropping.insert(handle, member) {
            self.dropped.remove(&before);
        }
        self.dropped.insert(member, handle);
    }

    /// The group for whose sake replicas of a block may have been chosen for deletion.
    pub(crate) fn dropping_for(&self, member: BlockId) -> Option<BlockId> {
        self.dropped.get(&member).copied()
    }

    /// A group is no more, or has no surplus: nothing need be known of its members, as far as these are known.
    pub(crate) fn forget_surplus(&mut self, handle: BlockId, members: &[BlockId]) {
        self.with_surplus.remove(&handle);
        if let Some(member) = self.dropping.remove(&handle) {
            self.dropped.remove(&member);
        }
        let parities = (0..MAX_UNITS_PER_GROUP as u8).map(|slot| handle.internal(UnitIndex(slot)));
        for id in members.iter().copied().chain(parities) {
            self.proofs.remove(&id);
            self.proving.remove(&id);
        }
    }
}
