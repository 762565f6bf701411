//! Nodes that leave: for good (decommission) or for a while (maintenance), until nothing needs them.
//!
//! What a leaving node holds and others do not have yet is kept in a list of its own. The list is made
//! by a walk over its blocks, a bounded step at each tick, and kept right by the events that change a
//! block ([`Cluster::note_leaving`]); no look at a node that waits costs more than its list being empty.
//! A node may go when its list is empty and one more walk has found nothing. What holds a node back is
//! told by `progress`; what is copied or decoded on its account is chosen in `mend::evacuate`.
//!
//! Source: Hadoop 3.5.0 `DatanodeAdminManager`, `DatanodeAdminDefaultMonitor`.

use crate::block::{BlockFacts, BlockLookup, BlockState};
use crate::clock::{Now, millis};
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::leaving::lists::Left;
use crate::leaving::lists::Walk;
use crate::node::AdminState;
use crate::places::own_id;
use crate::slots::Slots;
use crate::tally::Tally;
use cairn_stripe::BlockId;

pub(crate) mod lists;
mod open;
mod progress;

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;

pub use progress::{HeldBack, LeavingNode, NodeHeldBack};

/// Blocks of leaving and returning nodes that one tick looks at.
const WALK_STEP: usize = 10_000;

/// What the operator's lists want of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminIntent {
    /// To serve.
    #[default]
    InService,
    /// To give all it holds to others, and go.
    Decommission,
    /// To be away, and to come back with what it holds.
    Maintenance {
        /// When it should be back, milliseconds since 1970.
        until_ms: u64,
    },
}

impl Cluster {
    /// Does with a node what the operator's lists say of it.
    ///
    /// A dead node is decommissioned or in maintenance at once; a live one goes on until others have
    /// what it holds. Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`,
    /// `DatanodeAdminManager#startDecommission` and its kin, `HeartbeatManager#startMaintenance`.
    pub fn set_admin_intent(
        &mut self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        intent: AdminIntent,
        now: Now,
    ) {
        use AdminState::{
            DecommissionInProgress, Decommissioned, EnteringMaintenance, InMaintenance, InService,
        };
        self.last_event = now;
        let node = self.nodes.node_mut(handle);
        let (old, alive) = (node.admin, node.alive);
        let intent = match intent {
            AdminIntent::Maintenance { until_ms } if until_ms <= now.wall_ms => {
                AdminIntent::InService
            }
            intent => intent,
        };
        let new = match intent {
            AdminIntent::InService => InService,
            AdminIntent::Decommission => match old {
                DecommissionInProgress | Decommissioned => old,
                _ if alive => DecommissionInProgress,
                _ => Decommissioned,
            },
            AdminIntent::Maintenance { until_ms } => {
                node.maintenance_until_ms = until_ms;
                let at_once =
                    !alive || old == Decommissioned || self.config.maintenance_replication_min == 0;
                match old {
                    EnteringMaintenance | InMaintenance => old,
                    _ if at_once => InMaintenance,
                    _ => EnteringMaintenance,
                }
            }
        };
        self.set_admin_state(lookup, handle, new);
    }

    /// Sets what an administrator has done with a node, whatever came before; its blocks are looked at
    /// again, the first of them at once, the others with the next ticks.
    pub fn set_admin_state(
        &mut self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        admin: AdminState,
    ) {
        let node = self.nodes.node_mut(handle);
        let was_maintenance = node.is_maintenance();
        if std::mem::replace(&mut node.admin, admin) == admin {
            return;
        }
        let (alive, maintenance) = (node.alive, node.is_maintenance());
        self.note_change_on_node(handle);
        self.count_racks();
        self.leaving.untrack(handle);
        // What others hold now counts for less, or for more: what was settled may not be.
        self.leaving.judge_anew();
        self.low.queues_mut().wake_all();
        if was_maintenance && !maintenance && !alive {
            // Nothing is counted on a dead node's account any more.
            for storage in self.nodes.node(handle).storages.clone() {
                self.lose_storage(storage);
            }
            self.drop_lost(lookup);
        }
        match admin {
            AdminState::DecommissionInProgress | AdminState::EnteringMaintenance => {
                self.leaving.track(handle, self.last_event);
                self.leaving.start_waiting(self.config.max_tracked_nodes);
            }
            AdminState::InService | AdminState::Decommissioned | AdminState::InMaintenance => {
                self.leaving.come_back(handle);
            }
        }
        self.walk_leaving(lookup);
    }

    /// Takes a node off those that may serve: it counts as dead, and no report names it. Nobody waits for one in
    /// maintenance.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`, `#handleHeartbeat`.
    pub fn disallow_node(&mut self, lookup: &dyn BlockLookup, handle: NodeHandle) {
        let node = self.nodes.node_mut(handle);
        node.disallowed = true;
        let is_awaited = node.is_maintenance();
        if is_awaited {
            node.admin = AdminState::InService;
            self.leaving.untrack(handle);
        }
        if is_awaited || self.node(handle).alive {
            self.node_died(lookup, handle);
        }
    }

    /// Racks with live nodes in service: those that blocks can be spread over. With one more, all
    /// blocks are looked at, since they can be better spread than they are.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#checkIfClusterIsNowMultiRack`. Deviation: Hadoop does so
    /// only when the second rack comes.
    pub(crate) fn count_racks(&mut self) {
        let before = self.nodes.width();
        self.nodes.count_width(self.config.upgrade_domain_factor.is_some());
        let now = self.nodes.width();
        if now.serving > before.serving {
            self.walks.sharing().restart();
        }
        let is_more_even = now.shares.iter().zip(&before.shares).any(|(now, before)| now < before);
        if now.racks > before.racks.max(1) || before.racks > 0 && is_more_even {
            self.walks.scan().repeat();
        }
    }

    /// One tick: goes on with the walks and, when it is time, lets nodes go that nothing needs. Returns
    /// the nodes whose state has changed.
    pub(crate) fn follow_leaving(&mut self, lookup: &dyn BlockLookup, now: Now) -> Vec<NodeHandle> {
        let nothing = self.leaving.is_idle()
            && !self.nodes.all().iter().any(|n| n.admin == AdminState::InMaintenance);
        if nothing || self.safe_mode.is_starting() {
            return Vec::new();
        }
        self.walk_leaving(lookup);
        self.leaving.sample(now);
        if !self.leaving.begin_look(millis(self.config.decommission_interval), now) {
            return Vec::new();
        }
        let mut changed = self.end_maintenance(lookup, now);
        self.let_dead_nodes_wait();
        self.leaving.start_waiting(self.config.max_tracked_nodes);
        self.walk_leaving(lookup);
        changed.extend(self.let_go(lookup));
        changed
    }

    /// Nodes whose time is over serve again or, if they are not there, are missed from now on.
    fn end_maintenance(&mut self, lookup: &dyn BlockLookup, now: Now) -> Vec<NodeHandle> {
        let over = |node: &&crate::node::DataNode| {
            node.is_maintenance() && node.maintenance_until_ms <= now.wall_ms
        };
        let over: Vec<NodeHandle> =
            self.nodes.all().iter().filter(over).map(|n| n.handle).collect();
        for node in &over {
            self.set_admin_state(lookup, *node, AdminState::InService);
        }
        over
    }

    /// Dead nodes make room for those that can get on.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeAdminMonitorBase#getUnhealthyNodesToRequeue`.
    fn let_dead_nodes_wait(&mut self) {
        let followed = self.leaving.followed();
        let dead = followed.filter(|node| !self.node(*node).alive).collect();
        self.leaving.let_wait(dead);
    }

    fn let_go(&mut self, lookup: &dyn BlockLookup) -> Vec<NodeHandle> {
        if !self.lost.is_empty() {
            // What others had when the blocks were walked over may be lost with these.
            return Vec::new();
        }
        let mut free = self.leaving.through_or_walk_again();
        // A walk that ends within one step need not wait for the next look.
        self.walk_leaving(lookup);
        let known = free.clone();
        let through = self.leaving.through().into_iter();
        free.extend(through.filter(|node| !known.contains(node)));
        free.retain(|node| self.node_held_back(*node).is_none());
        free.retain(|node| self.open_on(lookup, *node).is_empty());
        for node in &free {
            let next = match self.node(*node).admin {
                AdminState::EnteringMaintenance => AdminState::InMaintenance,
                _ => AdminState::Decommissioned,
            };
            // Neither counts for less than before: nobody else's blocks are to be looked at.
            self.nodes.node_mut(*node).admin = next;
            self.note_change_on_node(*node);
            self.leaving.untrack(*node);
        }
        free
    }

    /// Goes on with the walks over the blocks of leaving and returned nodes, one step of all together.
    fn walk_leaving(&mut self, lookup: &dyn BlockLookup) {
        if self.safe_mode.is_starting() {
            return;
        }
        let mut budget = WALK_STEP;
        for (node, mut walk) in self.leaving.return_walks() {
            let has_ended = self.walk_on(lookup, node, &mut walk, &mut budget);
            self.leaving.return_went_on(node, walk, has_ended);
        }
        for (node, mut walk) in self.leaving.walks() {
            let has_ended = self.walk_on(lookup, node, &mut walk, &mut budget);
            self.leaving.went_on(node, walk, has_ended);
        }
    }

    /// Looks at the next blocks of a node. Returns whether that was the last of them.
    fn walk_on(
        &mut self,
        lookup: &dyn BlockLookup,
        node: NodeHandle,
        walk: &mut Walk,
        budget: &mut usize,
    ) -> bool {
        loop {
            let (at, after) = walk.at();
            let Some(storage) = self.node(node).storages.get(at).copied() else { return true };
            if *budget == 0 {
                return false;
            }
            let blocks = self.blocks.map().iter_on(storage, after);
            let next: Vec<BlockId> = blocks.take(*budget).collect();
            *budget -= next.len();
            for id in &next {
                self.check_redundancy(lookup, id.group());
                walk.found(u64::from(self.leaving.is_left(node, *id)));
            }
            walk.went_to(next.last().copied());
        }
    }

    /// Keeps the lists of leaving nodes right when something of a block has changed. `tally` is that of
    /// its slots where the caller has counted already.
    pub(crate) fn note_leaving_of(&mut self, slots: &Slots, tally: Option<&Tally>) {
        if self.leaving.followed().next().is_none() {
            return;
        }
        let Slots { id, facts, .. } = slots;
        let places = self.places_of(slots).map(|place| {
            let block = slots.block(place.unit);
            (self.storage(place.storage).node, block.id, block.len, place.excess)
        });
        let (going, places): (Vec<_>, Vec<_>) = places
            .filter(|(node, ..)| self.leaving.is_followed(*node))
            .partition(|(.., excess)| *excess);
        for (node, own_id, ..) in going {
            self.leaving.forget(node, own_id);
        }
        if places.is_empty() {
            return;
        }
        let counted;
        let tally = match tally {
            Some(tally) => tally,
            None => {
                counted = self.tally_of(slots);
                &counted
            }
        };
        let need = self.need_of(*id, facts, tally);
        for (node, own_id, len, _) in places {
            let enough = need.is_sure() || self.is_enough(facts, tally, self.node(node).admin);
            let open = facts.state != BlockState::Complete;
            let left = Left { len, only_leaving: tally.live == 0, open };
            match enough {
                true => self.leaving.note_done(node, own_id),
                false => self.leaving.note_left(node, own_id, left),
            }
        }
        if tally.live >= need.wanted() {
            self.leaving.note_placed(*id);
        }
    }

    /// No file has the block any more: nobody waits for it.
    pub(crate) fn forget_leaving_block(&mut self, id: BlockId) {
        if self.leaving.followed().next().is_none() {
            return;
        }
        self.leaving.note_placed(id);
        for place in self.blocks.of(id) {
            let own_id = own_id(id, place.unit);
            self.leaving.forget(self.nodes.node_of(place.storage), own_id);
        }
    }

    /// Whether a node in that state may go as far as a block is concerned that has not all there should be.
    ///
    /// That nodes in service have all there should be is enough, on however many racks. Deviation:
    /// Hadoop waits for the spread over racks as well, which may never come. An open block needs only
    /// what it could be read from.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeAdminManager#isSufficient`.
    fn is_enough(&self, facts: &BlockFacts, tally: &Tally, admin: AdminState) -> bool {
        // A node that may have to delete what it holds is nobody's substitute.
        let live = tally.live - tally.doubted;
        match admin {
            AdminState::DecommissionInProgress if !facts.is_final() => {
                live >= self.min_units(facts)
            }
            AdminState::DecommissionInProgress if facts.state == BlockState::Committed => {
                live >= self.min_units(facts)
            }
            AdminState::DecommissionInProgress => {
                !facts.layout.has_units() && live >= usize::from(self.config.replication)
            }
            AdminState::EnteringMaintenance => live >= self.limits().maintenance_min(facts),
            _ => true,
        }
    }
}
