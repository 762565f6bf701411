//! What must be reached after quiet time, and when a block is whole.

use super::groups::is_whole;
use super::last_of;
use crate::data_node::{DataNode, Intent, Stored};
use crate::model::DIRECTORIES;
use crate::name_node::sure;
use crate::world::World;
use cairn_namespace::query::{self, BlockInfo};
use cairn_namespace::{BlockState, InodeId};
use cairn_redundancy::AdminState;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, Geometry, Redundancy, UnitIndex};
use std::collections::BTreeSet;
use std::rc::Rc;

impl World<'_> {
    /// What a complete block lacks to be whole, in truth and in the NameNode's eyes. With `in_service`, nodes in
    /// service have all of it; without, what is in maintenance counts too.
    pub(super) fn lacks(&mut self, info: &BlockInfo, in_service: bool) -> Option<String> {
        let block = &info.block;
        let id = block.id;
        if block.state != BlockState::Complete {
            return Some(format!("{id} is {:?}", block.state));
        }
        // A member of a contiguous group is whole if that is, and a packed block if its container is.
        if block.group.is_some() || block.packed.is_some() {
            return None;
        }
        let facts = self.name_node.facts_of(id)?;
        let tally = self.name_node.cluster.tally(id, &facts);
        let expected = facts.expected_units();
        let away = if in_service { 0 } else { tally.maintenance };
        let is_enough = tally.live >= expected.saturating_sub(away) && tally.live <= expected;
        let least = if id.is_striped() { facts.data_units() } else { 1 };
        let surplus = tally.duplicates + tally.excess + tally.corrupt;
        if !is_enough || tally.live < least || surplus > 0 {
            return Some(format!("{id} should have {expected}, has {tally:?}"));
        }
        // Also those on nodes that leave: the NameNode may count on one that a fault has taken.
        for place in self.name_node.cluster.locations(id) {
            let own_id = if id.is_striped() { id.internal(place.unit) } else { id };
            let node = self.name_node.machine_of(place.storage);
            // It may be an older one by now.
            let is_as_known = |stored: &Stored| !in_service || is_whole(stored, block.gs);
            if !self.nodes[node].replicas.get(&own_id).is_some_and(is_as_known) {
                return Some(format!("{own_id} is not on dn-{node}"));
            }
        }
        let units = self.units_of(info, block.len)?;
        let standing = self.nodes.iter().filter(|node| self.stands(node.number));
        let held = standing.flat_map(|node| {
            let own = node.replicas.range(id..=last_of(id));
            own.map(move |(own_id, stored)| (*own_id, node, stored))
        });
        let held: Vec<(BlockId, &DataNode, &Stored)> = held.collect();
        for (unit, bytes) in units.iter().enumerate() {
            let index = UnitIndex(unit as u8);
            let own_id = if id.is_striped() { id.internal(index) } else { id };
            let (mut good, mut known, mut aside) = (0, 0, 0);
            for (_, node, stored) in held.iter().filter(|(held_id, ..)| *held_id == own_id) {
                // What a broken writer has left open under the same stamp stays until its node starts again.
                if stored.replica.state() == ReplicaState::Rbw && stored.replica.gs() == block.gs {
                    continue;
                }
                let is_good = stored.replica.state() == ReplicaState::Finalized
                    && stored.replica.gs() == block.gs
                    && stored.damaged.is_empty()
                    && stored.data == *bytes;
                // A bad one that looks good would count when its node serves again.
                let looks_good = stored.replica.gs() == block.gs && !is_good;
                if looks_good && (in_service || node.answers(self.now_ms)) {
                    return Some(format!("{own_id} on dn-{} is not good", node.number));
                }
                if node.is_gone {
                    continue;
                } else if node.is_serving(self.now_ms) {
                    known += 1;
                    good += usize::from(is_good && node.answers(self.now_ms));
                } else {
                    aside += usize::from(is_good);
                }
            }
            let wanted = match (id.is_striped(), facts.has_bytes(index)) {
                (false, _) => expected,
                (true, has) => usize::from(has),
            };
            let away = if in_service { 0 } else { aside.min(away) };
            if good + away < wanted || good > wanted || known != good {
                return Some(format!(
                    "of {own_id} {good} of {known} are good, {wanted} are wanted"
                ));
            }
        }
        None
    }

    /// What is wrong with where a whole block is.
    fn is_misplaced(&self, info: &BlockInfo) -> Option<String> {
        let id = info.block.id;
        let facts = self.name_node.facts_of(id).filter(|facts| facts.group.is_none())?;
        let takers: Vec<&DataNode> = self.takers(id).collect();
        let racks: BTreeSet<&str> = takers.iter().map(|node| node.rack.as_str()).collect();
        let holders = self.nodes.iter().filter(|node| {
            let holds = |(of, stored): (&BlockId, &Stored)| {
                stored.replica.state() == ReplicaState::Finalized && facts.has_bytes(of.unit())
            };
            let mut own = node.replicas.range(id..=last_of(id));
            node.is_serving(self.now_ms) && own.any(holds)
        });
        let holders: Vec<&DataNode> = holders.collect();
        let used: BTreeSet<&str> = holders.iter().map(|node| node.rack.as_str()).collect();
        let tally = self.name_node.cluster.tally(id, &facts);
        let most = if id.is_striped() { tally.live } else { tally.live.min(2) };
        if used.len() < most.min(racks.len()) {
            return Some(format!("{id} is on the racks {used:?} of {racks:?}"));
        }
        if holders.len() < tally.live && takers.len() >= facts.expected_units() {
            return Some(format!("{id} has {} units on {} nodes", tally.live, holders.len()));
        }
        None
    }

    /// Nodes that can take something of a block or group.
    pub(super) fn takers(&self, id: BlockId) -> impl Iterator<Item = &DataNode> {
        let policy = self.name_node.storage_policy(id);
        self.nodes.iter().filter(move |node| {
            let serves = node.is_serving(self.now_ms) && node.answers(self.now_ms);
            serves && policy.creation.iter().any(|kind| node.has_kind(*kind))
        })
    }

    /// A leaving node that has not been let go.
    fn held_back(&self) -> Option<String> {
        for node in &self.nodes {
            let state = self.name_node.admin_state(node.number);
            let wanted = match node.intent {
                Intent::Serve => AdminState::InService,
                Intent::Leave => AdminState::Decommissioned,
                Intent::Away { .. } if node.is_serving(self.now_ms) => AdminState::InService,
                Intent::Away { .. } => AdminState::InMaintenance,
            };
            // One that is gone may have died before it was let go, or before this NameNode has started.
            if state != Some(wanted) && !node.is_gone {
                return Some(format!("dn-{} is {state:?} where {wanted:?} is due", node.number));
            }
        }
        None
    }

    /// Whether an open group waits for units, since too few are left to know how long it is. Nothing of it
    /// was acknowledged.
    fn is_beyond_recovery(&self, info: &BlockInfo) -> bool {
        let file = self.model.files.get(&info.block.file);
        let acked = file.map_or(0, |file| file.acked);
        let facts = self.name_node.facts_of(info.block.id);
        info.block.id.is_striped()
            && !info.block.is_final()
            && acked <= self.offset_of(info)
            && facts.is_some_and(|facts| {
                let now = self.name_node.now();
                !self.name_node.cluster.has_recoverable_places(info.block.id, &facts, now)
                    || self.sure_units(info) < facts.data_units()
                    || self.is_torn_to_pieces(info)
            })
    }

    /// Units of an open group whose nodes are up and have not been down since they were written: with fewer than
    /// decoding takes, a recovery waits for those that are away, which may have had more acknowledged.
    fn sure_units(&self, info: &BlockInfo) -> usize {
        let is_sure = |unit: &u8| {
            let id = info.block.id.internal(UnitIndex(*unit));
            self.nodes.iter().filter(|node| node.up && !node.is_gone).any(|node| {
                node.replicas.get(&id).is_some_and(|stored| {
                    let state = stored.replica.place();
                    stored.replica.gs() >= info.block.gs
                        && !stored.data.is_empty()
                        && state != ReplicaState::Rwr
                })
            })
        };
        (0..info.redundancy.width() as u8).filter(is_sure).count()
    }

    /// Whether a power cut has left neither a stripe nor all that the NameNode was told of a group: it is not dropped, for
    /// an operator to decide.
    fn is_torn_to_pieces(&self, info: &BlockInfo) -> bool {
        let (id, len) = (info.block.id, info.block.len);
        let Redundancy::Striped(policy) = &info.redundancy else { return false };
        let geometry = Geometry::from(policy);
        let is_left = |unit: &UnitIndex| {
            let part = geometry.internal_block_len(len, *unit).min(geometry.cell_len());
            let there = self.nodes.iter().filter(|node| !node.is_gone);
            let mut held = there.filter_map(|node| node.replicas.get(&id.internal(*unit)));
            part > 0
                && held.any(|stored| {
                    stored.replica.gs() >= info.block.gs && stored.data.len() as u64 >= part
                })
        };
        let left = (0..geometry.units()).filter(|unit| is_left(&UnitIndex(*unit as u8))).count();
        let is_torn = self.model.blocks.get(&id).is_some_and(|block| !block.torn.is_empty());
        is_torn && len > 0 && left < geometry.data_units_with_bytes(len)
    }

    /// Whether something is still to be done, as far as can be seen at a glance.
    pub(crate) fn is_at_work(&self) -> bool {
        if !self.name_node.up || self.name_node.is_safe_mode() {
            return true;
        }
        let all = self.name_node.all_blocks();
        let is_open = |info: &Rc<BlockInfo>| info.block.state != BlockState::Complete;
        let is_excused = |info: &Rc<BlockInfo>| is_open(info) || self.is_excused(info.block.id);
        let stats = self.name_node.cluster.stats(self.name_node.now());
        let deletions = stats.replicated.pending_deletion + stats.groups.pending_deletion;
        let has_work = stats.pending_reconstruction > 0 || deletions > 0;
        (has_work || self.held_back().is_some()) && !all.iter().any(is_excused)
    }

    /// What is still to be done until everything is as it should be.
    pub(crate) fn unfinished(&mut self) -> Option<String> {
        if !self.name_node.up || self.name_node.is_safe_mode() {
            return Some("the NameNode does not serve".to_string());
        }
        let all = self.name_node.all_blocks();
        let excused: Vec<InodeId> = all
            .iter()
            .filter(|info| {
                let id = info.block.id;
                self.is_excused(id) || self.is_beyond_recovery(info)
            })
            .map(|info| info.block.file)
            .collect();
        // What is open is seen at a glance.
        let is_open = |info: &&Rc<BlockInfo>| info.block.state != BlockState::Complete;
        let closed = all.iter().filter(|info| !is_open(info));
        for info in all.iter().filter(is_open).chain(closed) {
            // Nobody goes on with what only snapshots have.
            let is_held =
                !self.model.files.contains_key(&info.block.file) || self.place_of(info).is_none();
            let is_left = is_held && info.block.state != BlockState::Complete;
            if excused.contains(&info.block.file) || is_left {
                continue;
            }
            let why = self.lacks(info, false).or_else(|| self.is_misplaced(info));
            if why.is_some() {
                return why;
            }
        }
        if let Some(why) = self.name_node.miscounted(DIRECTORIES[1]) {
            return Some(why);
        }
        let groups = self.name_node.all_groups();
        for group in groups.iter().filter(|group| !self.is_excused(group.handle)) {
            if !group.is_formed() {
                return Some(format!("{} is {:?}", group.handle, group.state));
            }
            let why = self.group_lacks(group, false).or_else(|| self.surplus_of(group));
            if let Some(why) = why.or_else(|| self.is_crowded(group)) {
                return Some(why);
            }
        }
        if excused.is_empty()
            && let Some(why) = self.name_node.unfinished_container()
        {
            return Some(why);
        }
        if excused.is_empty() && !self.name_node.is_at_rest() {
            return Some("blocks are to be grouped".to_string());
        }
        if excused.is_empty()
            && let Some(why) = self.held_back()
        {
            return Some(why);
        }
        let files: Vec<InodeId> = self.model.files.keys().copied().collect();
        for file in files.into_iter().filter(|file| !excused.contains(file)) {
            let info = sure(query::get_inode_info(&self.name_node.store, file));
            if let Some((path, _)) = info.filter(|(_, status)| status.is_under_construction()) {
                return Some(format!("{path} is open"));
            }
            if !self.read_file(file) {
                return Some(format!("{file} cannot be read"));
            }
        }
        let known = |id: &BlockId| {
            let is_block = all.iter().any(|info| info.block.id == id.group());
            is_block || groups.iter().any(|group| group.handle == id.group())
        };
        for node in self.nodes.iter().filter(|node| !node.is_gone) {
            if let Some(id) = node.replicas.keys().find(|id| !known(id)) {
                return Some(format!("dn-{} holds {id}, which no file has", node.number));
            }
        }
        let stats = self.name_node.cluster.stats(self.name_node.now());
        let deletions = stats.replicated.pending_deletion + stats.groups.pending_deletion;
        if excused.is_empty() && (stats.pending_reconstruction > 0 || deletions > 0) {
            return Some(format!(
                "{} blocks are pending, {deletions} deletions wait",
                stats.pending_reconstruction
            ));
        }
        None
    }
}
