//! What is known of contiguous groups beside where their units are: attempts to make one, which replicas were proven, and
//! whose surplus is there or on its way out. All of it is soft: a restart forgets it, and with it every open attempt.

use crate::block::BlockRef;
use crate::groups::unknown::Unknown;
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
    attempts: BTreeMap<BlockId, Attempt>,
    /// By member or parity, as long as its group has more replicas than it needs; by container.
    proofs: BTreeMap<BlockId, Proof>,
    /// By member or parity, what is being read so that others may go.
    proving: BTreeMap<BlockId, Proving>,
    /// By member that no file has, the storages whose DataNodes know it, with the lives in which they were told.
    retired: BTreeMap<BlockId, BTreeMap<StorageHandle, u64>>,
    /// Formed groups with more replicas than they need.
    with_surplus: BTreeSet<BlockId>,
    /// Of each group the member of which replicas are chosen for deletion.
    dropping: BTreeMap<BlockId, BlockId>,
    /// The group of each such member.
    dropped: BTreeMap<BlockId, BlockId>,
    /// Replicas that groups which end need, and that are no good ones of their blocks, with these groups.
    lent: BTreeSet<(BlockRef, BlockId)>,
    /// Until when blocks are to be in no other attempt, on the monotonic clock.
    resting: BTreeMap<BlockId, u64>,
    /// Nothing is deleted of what groups do not need.
    is_held: bool,
    /// The last of the groups with surplus that were looked at.
    looked_at: Option<BlockId>,
    /// What DataNodes have that a restored namespace does not know.
    unknown: Unknown,
}

impl Groups {
    /// What DataNodes have that a restored namespace does not know.
    pub(crate) fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    /// The same, to be changed.
    pub(crate) fn unknown_mut(&mut self) -> &mut Unknown {
        &mut self.unknown
    }

    /// An attempt is under way from now on.
    pub(crate) fn begin(&mut self, handle: BlockId, attempt: Attempt) {
        self.attempts.insert(handle, attempt);
    }

    /// The attempts that are under way.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (BlockId, &Attempt)> {
        self.attempts.iter().map(|(handle, attempt)| (*handle, attempt))
    }

    /// One of them.
    pub(crate) fn attempt(&self, handle: BlockId) -> Option<&Attempt> {
        self.attempts.get(&handle)
    }

    /// Something has become of an attempt that ends it.
    pub(crate) fn end(&mut self, handle: BlockId, gs: GenerationStamp, why: &'static str) {
        if let Some(attempt) = self.attempts.get_mut(&handle).filter(|attempt| attempt.gs == gs) {
            attempt.ended.get_or_insert(why);
        }
    }

    /// A node has forgotten what it was to encode and to prove.
    pub(crate) fn end_all_of(&mut self, node: NodeHandle, why: &'static str) {
        for attempt in self.attempts.values_mut().filter(|attempt| attempt.encoder == node) {
            attempt.ended.get_or_insert(why);
        }
        self.proving.retain(|_, proving| proving.node != node);
    }

    /// An attempt is no more, whatever came of it.
    pub(crate) fn take_attempt(&mut self, handle: BlockId) -> Option<Attempt> {
        self.attempts.remove(&handle)
    }

    /// Blocks are to be in no other attempt for a while.
    pub(crate) fn rest(&mut self, blocks: Vec<BlockId>, until_ms: u64, now_ms: u64) {
        self.resting.retain(|_, until_ms| *until_ms > now_ms);
        self.resting.extend(blocks.into_iter().map(|id| (id, until_ms)));
    }

    /// Whether a block is one of them.
    pub(crate) fn is_resting(&self, id: BlockId, now_ms: u64) -> bool {
        self.resting.get(&id).is_some_and(|until_ms| *until_ms > now_ms)
    }

    /// A replica of a member or parity is proven.
    pub(crate) fn note_proof(&mut self, id: BlockId, proof: Proof) {
        self.proofs.insert(id, proof);
    }

    /// The replica of a member or parity that was proven last.
    pub(crate) fn proof(&self, id: BlockId) -> Option<&Proof> {
        self.proofs.get(&id)
    }

    /// A storage has a member or parity no more: what is there again is another replica, of which nothing is proven.
    pub(crate) fn forget_proof(&mut self, id: BlockId, storage: StorageHandle) {
        if self.proofs.get(&id).is_some_and(|proof| proof.place.storage == storage) {
            self.proofs.remove(&id);
        }
        if self.proving.get(&id).is_some_and(|proving| proving.place.storage == storage) {
            self.proving.remove(&id);
        }
    }

    /// Nothing is proven.
    #[cfg(test)]
    pub(crate) fn forget_proofs(&mut self) {
        self.proofs.clear();
    }

    /// A replica of a member or parity is to be read.
    pub(crate) fn begin_proving(&mut self, id: BlockId, proving: Proving) {
        self.proving.insert(id, proving);
    }

    /// What is being read, by member or parity.
    pub(crate) fn proving(&self) -> impl Iterator<Item = (BlockId, &Proving)> {
        self.proving.iter().map(|(id, proving)| (*id, proving))
    }

    /// What is being read of a member or parity.
    pub(crate) fn proving_of(&self, id: BlockId) -> Option<Proving> {
        self.proving.get(&id).copied()
    }

    /// Nothing is read of a member or parity any more.
    pub(crate) fn end_proving(&mut self, id: BlockId) {
        self.proving.remove(&id);
    }

    /// Gives up what was to be read since `patience_ms`.
    pub(crate) fn give_up_proving(&mut self, patience_ms: u64, now_ms: u64) {
        self.proving.retain(|_, proving| now_ms.saturating_sub(proving.since_ms) < patience_ms);
    }

    /// A DataNode is to know that no file has a member of which it has a replica. Returns whether it was not told in that
    /// life of its storage.
    pub(crate) fn note_retired(&mut self, member: BlockId, place: Life) -> bool {
        let told = self.retired.entry(member).or_default();
        told.insert(place.storage, place.number) != Some(place.number)
    }

    /// There is no such block any more.
    pub(crate) fn forget_retired(&mut self, member: BlockId) {
        self.retired.remove(&member);
    }

    /// From now on nothing is deleted of what groups do not need, or it is again.
    pub(crate) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Whether nothing is.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// A formed group has more replicas than it needs.
    pub(crate) fn note_surplus(&mut self, handle: BlockId) {
        self.with_surplus.insert(handle);
    }

    /// Whether a group has.
    pub(crate) fn has_surplus(&self, handle: BlockId) -> bool {
        self.with_surplus.contains(&handle)
    }

    /// How many groups have.
    pub(crate) fn surplus_count(&self) -> usize {
        self.with_surplus.len()
    }

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

    /// A group that ends needs these replicas, which are no good ones of their blocks, and no others.
    pub(crate) fn note_lent(&mut self, handle: BlockId, replicas: impl Iterator<Item = BlockRef>) {
        self.lent.retain(|(_, of)| *of != handle);
        self.lent.extend(replicas.map(|replica| (replica, handle)));
    }

    /// Whether a group needs a replica that is no good one of its block.
    pub(crate) fn is_lent(&self, replica: &BlockRef) -> bool {
        let mut from = self.lent.range((*replica, BlockId(i64::MIN))..);
        from.next().is_some_and(|(first, _)| first == replica)
    }

    /// Whether a group needs some replica of a block that is none of the good ones of that.
    pub(crate) fn is_any_lent(&self, id: BlockId) -> bool {
        let first = BlockRef { id, gs: GenerationStamp(0), len: 0 };
        let mut from = self.lent.range((first, BlockId(i64::MIN))..);
        from.next().is_some_and(|(of, _)| of.id == id)
    }

    /// A group is no more, or has no surplus: nothing need be known of its members, as far as these are known.
    pub(crate) fn forget_surplus(&mut self, handle: BlockId, members: &[BlockId]) {
        self.with_surplus.remove(&handle);
        if let Some(member) = self.dropping.remove(&handle) {
            self.dropped.remove(&member);
        }
        let parities = (0..MAX_UNITS_PER_GROUP as u8).map(|slot| handle.internal(UnitIndex(slot)));
        // What was read of a container is asked for as long as plain replicas are left of what is packed in it.
        let members = members.iter().copied().filter(|id| !id.is_container());
        for id in members.chain(parities) {
            self.proofs.remove(&id);
            self.proving.remove(&id);
        }
    }

    /// A container is no more.
    pub(crate) fn forget_container(&mut self, id: BlockId) {
        if id.is_container() {
            self.attempts.remove(&id);
            self.proofs.remove(&id);
            self.proving.remove(&id);
        }
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.dropping.insert(BlockId(1), BlockId(2));
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(self.dropping.len(), self.dropped.len(), "groups of which replicas go");
        for (handle, member) in &self.dropping {
            assert_eq!(self.dropped.get(member), Some(handle), "the group whose {member} goes");
            assert!(self.with_surplus.contains(handle), "{handle} has nothing that could go");
        }
    }
}
