//! What an entry has done to blocks, told to the cluster.
//!
//! To be called for each entry in the order of the log, in the same moment in which the entry comes into force for
//! readers of the namespace. A start replays no effects: DataNodes tell what they have, and the cluster asks the
//! namespace what that should be.

use crate::op::Targets;
use cairn_namespace::Effect;
use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockRef, BlockState, Changes, Cluster, GroupFacts, LateCrc, Now,
    Synchronized,
};
use cairn_stripe::BlockId;

/// What one entry does to blocks, and the storages that belong to it.
#[derive(Clone, Debug, Default)]
pub struct EntryEffects {
    /// What has become of blocks.
    pub effects: Vec<Effect>,
    /// Storages that go with them.
    pub targets: Targets,
}

/// What is to be submitted because of what has become known; see [`crate::follow_up`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// Committed blocks that have their minimum of replicas.
    pub ready: Vec<BlockId>,
    /// CRCs that are not recorded yet.
    pub late_crcs: Vec<LateCrc>,
    /// Contiguous groups that nobody may need any more.
    pub unneeded: Vec<BlockId>,
}

impl From<Changes> for FollowUp {
    fn from(Changes { ready, late_crcs, .. }: Changes) -> FollowUp {
        FollowUp { ready, late_crcs, unneeded: Vec::new() }
    }
}

impl FollowUp {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.late_crcs.is_empty() && self.unneeded.is_empty()
    }

    /// Adds what another one has.
    pub fn append(&mut self, mut other: FollowUp) {
        self.ready.append(&mut other.ready);
        self.late_crcs.append(&mut other.late_crcs);
        self.unneeded.append(&mut other.unneeded);
    }
}

/// Tells the cluster what an entry has done. `lookup` is the state with that entry in it, or with later ones that come
/// into force in the same moment.
pub fn apply(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    now: Now,
    entry: &EntryEffects,
) -> FollowUp {
    let mut follow_up = FollowUp::default();
    for effect in &entry.effects {
        apply_one(cluster, lookup, now, *effect, &entry.targets, &mut follow_up);
    }
    follow_up
}

fn apply_one(
    cluster: &mut Cluster,
    lookup: &dyn BlockLookup,
    now: Now,
    effect: Effect,
    targets: &Targets,
    follow_up: &mut FollowUp,
) {
    match effect {
        Effect::Allocated { id, gs } => cluster.block_allocated(id, gs, targets),
        Effect::CopyBegun { id, gs, source } => {
            cluster.settle(lookup, &[source]);
            cluster.block_copied(id, gs, source);
        }
        Effect::PipelineUpdated { id, gs } => cluster.pipeline_updated(id, gs, targets),
        Effect::Reopened { id, gs, len } => {
            // One that is committed and not complete goes on where it was.
            let facts = lookup.block(id).filter(|_| cluster.pipeline(id).is_empty());
            if let Some(facts) = facts {
                let before = BlockFacts { gs, len, state: BlockState::Complete, ..facts };
                cluster.settle_before(lookup, id, before);
                cluster.block_reopened(id, &before);
            }
        }
        Effect::RecoveryOrdered { id, new_gs } => {
            if let Some(facts) = lookup.block(id) {
                cluster.start_block_recovery(id, &facts, new_gs, now);
            }
        }
        Effect::Synchronized { id, gs, len } => {
            let done = Synchronized {
                block: BlockRef { id, gs, len },
                new_gs: gs,
                new_len: len,
                close_file: true,
                delete_block: false,
                targets: targets.clone(),
            };
            follow_up.late_crcs.extend(cluster.block_synchronized(lookup, id, &done));
        }
        Effect::PackBegun { id, gs } => cluster.pack_begun((id, gs), targets, now),
        Effect::Committed { id } | Effect::Completed { id } => {
            if id.is_container() {
                cluster.pack_ended(id);
            }
            // It may have been opened again by an entry behind this one.
            let Some(facts) = lookup.block(id).filter(BlockFacts::is_final) else { return };
            follow_up.late_crcs.extend(cluster.block_completed(lookup, id));
            if facts.state == BlockState::Committed && cluster.min_reached(id, &facts) {
                follow_up.ready.push(id);
            }
        }
        Effect::CrcReplaced { id } => cluster.record_replaced(lookup, id),
        Effect::CopiesChanged { id } => cluster.block_changed(lookup, id),
        Effect::Packed { id } => cluster.block_packed(lookup, id),
        Effect::Unpacked { id } => cluster.block_unpacked(lookup, id),
        Effect::Removed { id, gs } => cluster.block_removed(id, gs),
        Effect::MemberRetired { id } => {
            cluster.block_changed(lookup, id);
            if let Some(BlockFacts { gs, len, .. }) = lookup.block(id) {
                cluster.tell_retired(BlockRef { id, gs, len });
            }
            let handle = lookup.block(id).and_then(|facts| facts.group).map(|(handle, _)| handle);
            let group = handle.and_then(|handle| lookup.group(handle));
            let is_dead = |group: &GroupFacts| !group.slots.iter().flatten().any(|of| of.live);
            follow_up.unneeded.extend(group.filter(is_dead).map(|group| group.handle));
        }
        Effect::GroupBegun { handle, gs } => {
            cluster.group_begun(lookup, (handle, gs), targets, now);
        }
        Effect::GroupFormed { handle } => {
            follow_up.late_crcs.extend(cluster.group_formed(lookup, handle));
        }
        Effect::GroupAdopted { handle } => {
            let changes = cluster.group_adopted(lookup, handle);
            follow_up.append(changes.into());
        }
        Effect::ContainerAdopted { id } => {
            let changes = cluster.container_adopted(lookup, id);
            follow_up.append(changes.into());
        }
        Effect::GroupChanged { handle } => cluster.block_changed(lookup, handle),
        Effect::GroupEnded { handle, gs } => cluster.group_ended(handle, gs),
    }
}
