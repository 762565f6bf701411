//! What must hold after each step, and what must be reached after quiet time.
//!
//! - Every acknowledged byte is left on live or returning nodes, unless more nodes have failed its
//!   block than it bears.
//! - What the NameNode takes for a good replica or unit has the right bytes.
//! - No node is told to delete the last good copy of a unit.
//! - The namespace is what was answered, and what a replay of the log gives.
//! - In the end: every block whole, nothing in excess, nothing pending, every file closed and readable.

use crate::data_node::Stored;
use crate::name_node::sure;
use crate::world::World;
use cairn_namespace::query::{self, BlockInfo};
use cairn_namespace::{BlockState, InodeId, block};
use cairn_redundancy::{BlockRef, Command};
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, Geometry, Policy, Redundancy, UnitIndex};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The bytes of each unit of a group of some length.
pub(crate) type Units = BTreeMap<(BlockId, u64), Rc<Vec<Vec<u8>>>>;

impl World<'_> {
    /// The data of the first `len` bytes of a block, from its file.
    fn data_of(&self, info: &BlockInfo, len: u64) -> Option<Vec<u8>> {
        let file = self.model.files.get(&info.block.file)?;
        let offset = self.offset_of(info);
        file.written.get(offset as usize..(offset + len) as usize).map(<[u8]>::to_vec)
    }

    fn offset_of(&self, info: &BlockInfo) -> u64 {
        let block = &info.block;
        sure(block::position(&self.name_node.store, block.file, block.index)).offset
    }

    /// The bytes of each unit of the first `len` bytes of a block.
    fn units_of(&mut self, info: &BlockInfo, len: u64) -> Option<Rc<Vec<Vec<u8>>>> {
        let data = self.data_of(info, len)?;
        let Redundancy::Striped(policy) = &info.redundancy else {
            return Some(Rc::new(vec![data]));
        };
        if let Some(known) = self.units.get(&(info.block.id, len)) {
            return Some(known.clone());
        }
        let units = Rc::new(self.encode(&data, policy));
        self.units.insert((info.block.id, len), units.clone());
        Some(units)
    }

    fn encode(&mut self, data: &[u8], policy: &Policy) -> Vec<Vec<u8>> {
        let geometry = Geometry::from(policy);
        let len = geometry.internal_block_len(data.len() as u64, UnitIndex(0)) as usize;
        let mut units = vec![Vec::new(); geometry.units()];
        for cell in geometry.cells(0..data.len() as u64) {
            let at = cell.offset_in_group as usize;
            units[cell.unit.as_usize()].extend(&data[at..at + cell.len as usize]);
        }
        let mut padded = units[..geometry.k()].to_vec();
        padded.iter_mut().for_each(|unit| unit.resize(len, 0));
        let mut parity = vec![vec![0; len]; geometry.m()];
        let sources: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
        let mut sinks: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        let code = self.codec(policy);
        code.encode(&sources, &mut sinks).expect("all units are as long");
        units[geometry.k()..].clone_from_slice(&parity);
        units
    }

    /// Looks at one block: what is acknowledged of it must be there.
    pub(crate) fn check_block(&mut self, id: BlockId) {
        let Some(info) = self.name_node.block(id) else { return };
        let Some(file) = self.model.files.get(&info.block.file) else { return };
        if self.is_excused(id) {
            return;
        }
        let is_complete = info.block.state == BlockState::Complete;
        let acked = file.acked.saturating_sub(self.offset_of(&info));
        let len = match info.block.state {
            BlockState::Complete => info.block.len,
            BlockState::Committed => acked.min(info.block.len),
            _ => acked,
        };
        if len == 0 {
            return;
        }
        let Some(units) = self.units_of(&info, len) else {
            self.violate(format!("{id} of {len} bytes is longer than what was written"));
            return;
        };
        let needed = match &info.redundancy {
            Redundancy::Replicated(_) => 1,
            Redundancy::Striped(policy) => {
                let cells = len.div_ceil(u64::from(policy.cell_len)) as usize;
                cells.min(policy.schema.data_units())
            }
        };
        let striped = id.is_striped();
        let holds = |stored: &Stored, bytes: &[u8]| {
            let exact = stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == info.block.gs
                && stored.data.len() == bytes.len();
            let fits = if is_complete { exact } else { stored.replica.gs() >= info.block.gs };
            let damaged = stored.damaged.range(..bytes.len() as u64).next().is_some();
            fits && !damaged && stored.data.get(..bytes.len()) == Some(bytes)
        };
        let is_left = |unit: usize, bytes: &Vec<u8>| {
            let own_id = if striped { id.internal(UnitIndex(unit as u8)) } else { id };
            let mut held = self.nodes.iter().filter_map(|node| node.replicas.get(&own_id));
            !bytes.is_empty() && held.any(|stored| holds(stored, bytes))
        };
        let left = units.iter().enumerate().filter(|(unit, bytes)| is_left(*unit, bytes)).count();
        if left < needed {
            let exposed = self.model.blocks.get(&id).map(|block| block.exposed.clone());
            self.violate(format!(
                "of {id} {left} units or replicas are left where {needed} are needed; it bore {exposed:?}"
            ));
        }
    }

    /// Looks at everything.
    pub(crate) fn check_all(&mut self) {
        if !self.name_node.up {
            return;
        }
        if let Err(why) = self.model.compare(&self.name_node.store) {
            self.violate(why);
            return;
        }
        let all = sure(query::blocks_after(&self.name_node.store, None, usize::MAX));
        let all: BTreeMap<BlockId, BlockInfo> =
            all.into_iter().map(|info| (info.block.id, info)).collect();
        self.model.blocks.retain(|id, _| all.contains_key(id));
        self.units.retain(|(id, _), _| all.contains_key(id));
        for (id, info) in &all {
            self.check_block(*id);
            self.check_accepted(info);
            let is_exposed =
                self.model.blocks.get(id).is_some_and(|block| !block.exposed.is_empty());
            if is_exposed
                && !self.is_excused(*id)
                && self.wholeness(info).is_none()
                && let Some(block) = self.model.blocks.get_mut(id)
            {
                block.exposed.clear();
                let whole =
                    self.name_node.facts_of(*id).map_or(0, |facts| match &info.redundancy {
                        Redundancy::Replicated(copies) => usize::from(*copies) - 1,
                        Redundancy::Striped(_) => facts.expected_units() - facts.data_units(),
                    });
                block.tolerance = whole;
            }
        }
    }

    /// What the NameNode takes for good must have the right bytes.
    fn check_accepted(&mut self, info: &BlockInfo) {
        let block = &info.block;
        if block.state != BlockState::Complete {
            return;
        }
        let Some(units) = self.units_of(info, block.len) else { return };
        for place in self.name_node.cluster.locations(block.id) {
            if place.corrupt {
                continue;
            }
            let id = if block.id.is_striped() { block.id.internal(place.unit) } else { block.id };
            let target = self.name_node.target(place.storage);
            let Some(stored) = self.nodes[target.node].replicas.get(&id) else { continue };
            let as_reported = stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == block.gs
                && stored.damaged.is_empty();
            if as_reported && stored.data != units[place.unit.as_usize()] {
                self.violate(format!(
                    "{id} on dn-{} has wrong bytes and counts as good",
                    target.node
                ));
                return;
            }
        }
    }

    /// Looks at what a node is told, before it is.
    pub(crate) fn check_command(&mut self, node: usize, command: &Command) {
        let Command::Invalidate(blocks) = command else { return };
        for block in blocks {
            self.check_deletion(node, block);
        }
    }

    fn check_deletion(&mut self, node: usize, named: &BlockRef) {
        let id = named.id.group();
        let Some(info) = self.name_node.block(id) else { return };
        let is_good = |stored: &&Stored| {
            stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == info.block.gs
                && stored.damaged.is_empty()
        };
        let held = self.nodes[node].replicas.get(&named.id).filter(is_good);
        let is_needed = info.block.state == BlockState::Complete
            && named.gs == info.block.gs
            && held.is_some_and(|stored| stored.data.len() as u64 == named.len);
        if !is_needed || self.is_excused(id) {
            return;
        }
        let unit = named.id.unit();
        let others = self.name_node.cluster.locations(id).into_iter().filter(|place| {
            let other = self.name_node.target(place.storage).node;
            place.unit == unit && !place.corrupt && other != node
        });
        let exposed = self.model.blocks.get(&id).map(|block| block.exposed.clone());
        let exposed = exposed.unwrap_or_default();
        let is_there = |place: cairn_redundancy::Location| {
            let other = self.name_node.target(place.storage).node;
            self.nodes[other].replicas.contains_key(&named.id) || exposed.contains(&other)
        };
        if !others.into_iter().any(is_there) {
            self.violate(format!("dn-{node} is told to delete {named:?}, the last of its index"));
        }
    }

    pub(crate) fn check_replay(&mut self) {
        if !self.name_node.is_replayable() {
            self.violate("a replay of the log gives another store".to_string());
        }
    }

    /// What a complete block lacks to be whole, in truth and in the NameNode's eyes.
    fn wholeness(&mut self, info: &BlockInfo) -> Option<String> {
        let block = &info.block;
        let id = block.id;
        if block.state != BlockState::Complete {
            return Some(format!("{id} is {:?}", block.state));
        }
        let facts = self.name_node.facts_of(id)?;
        let tally = self.name_node.cluster.tally(id, &facts);
        let expected = facts.expected_units();
        if tally.live != expected || tally.duplicates + tally.excess + tally.corrupt > 0 {
            return Some(format!("{id} should have {expected}, has {tally:?}"));
        }
        // Also those on nodes that leave: the NameNode may count on one that a fault has taken.
        let known = self.name_node.cluster.locations(id).len();
        if known != expected {
            return Some(format!("{id} should have {expected}, {known} are known"));
        }
        let units = self.units_of(info, block.len)?;
        for (unit, bytes) in units.iter().enumerate() {
            let index = UnitIndex(unit as u8);
            let own_id = if id.is_striped() { id.internal(index) } else { id };
            let nodes = self.nodes.iter().filter(|node| node.answers(self.now_ms));
            let held: Vec<&Stored> = nodes.filter_map(|node| node.replicas.get(&own_id)).collect();
            let wanted = match (id.is_striped(), facts.has_bytes(index)) {
                (false, _) => expected,
                (true, has) => usize::from(has),
            };
            let good = held.iter().filter(|stored| {
                stored.replica.state() == ReplicaState::Finalized
                    && stored.replica.gs() == block.gs
                    && stored.damaged.is_empty()
                    && stored.data == *bytes
            });
            let good = good.count();
            // What a broken writer has left open under the same stamp stays until its node starts again.
            let is_left_open =
                |s: &Stored| s.replica.state() == ReplicaState::Rbw && s.replica.gs() == block.gs;
            let all = self.nodes.iter().filter_map(|node| node.replicas.get(&own_id));
            let all = all.filter(|stored| !is_left_open(stored)).count();
            if good != wanted || all != wanted {
                return Some(format!("of {own_id} {good} of {all} are good, {wanted} are wanted"));
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
                !self.name_node.cluster.has_recoverable_places(info.block.id, &facts)
            })
    }

    /// What is still to be done until everything is as it should be.
    pub(crate) fn unfinished(&mut self) -> Option<String> {
        if !self.name_node.up || self.name_node.is_safe_mode() {
            return Some("the NameNode does not serve".to_string());
        }
        let all = sure(query::blocks_after(&self.name_node.store, None, usize::MAX));
        let excused: Vec<InodeId> = all
            .iter()
            .filter(|info| self.is_excused(info.block.id) || self.is_beyond_recovery(info))
            .map(|info| info.block.file)
            .collect();
        for info in &all {
            if !excused.contains(&info.block.file)
                && let Some(why) = self.wholeness(info)
            {
                return Some(why);
            }
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
        let known = |id: &BlockId| all.iter().any(|info| info.block.id == id.group());
        for node in &self.nodes {
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
