//! What must hold after each step, and what must be reached after quiet time.
//!
//! - What was acknowledged and is left anywhere of an open block, under whichever stamp, is not dropped (`kept.rs`).
//! - Every acknowledged byte is left on live or returning nodes, unless more nodes have failed its
//!   block than it bears.
//! - What the NameNode takes for a good replica or unit has the right bytes.
//! - No node is told to delete the last good copy of a unit.
//! - The namespace is what was answered, and what a replay of the log gives.
//! - Contiguous groups protect their members (`groups.rs`).
//! - Packed blocks have their bytes in containers (`packs.rs`).
//! - A node is let go only when others have what it holds (`leaving.rs`).
//! - What is placed is on storages of a type that the file's policy names.
//! - In the end: every block whole, on as many racks as there are for it, nothing in excess, nothing pending, every
//!   leaving node let go, every file closed and readable (`whole.rs`).

mod groups;
mod kept;
mod leaving;
mod packs;
mod whole;

use crate::bytes::Bytes;
use crate::data_node::Stored;
use crate::world::World;
use cairn_namespace::BlockState;
use cairn_namespace::query::BlockInfo;
use cairn_redundancy::{BlockRef, Command, Standing, StorageHandle};
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, Geometry, Policy, Redundancy, UnitIndex};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Units of a group.
#[derive(Default)]
struct UnitSet(u16);

impl UnitSet {
    fn insert(&mut self, unit: usize) {
        self.0 |= 1 << unit;
    }

    fn has(&self, unit: usize) -> bool {
        self.0 & 1 << unit != 0
    }

    fn len(&self) -> usize {
        self.0.count_ones() as usize
    }
}

/// The greatest id of a block, or of a unit of a group.
fn last_of(id: BlockId) -> BlockId {
    if id.is_striped() { id.internal(UnitIndex(15)) } else { id }
}

impl World<'_> {
    /// The data of the first `len` bytes of a block, from its file.
    pub(crate) fn data_of(&self, info: &BlockInfo, len: u64) -> Option<Vec<u8>> {
        self.written(info, len).map(<[u8]>::to_vec)
    }

    fn written(&self, info: &BlockInfo, len: u64) -> Option<&[u8]> {
        let file = self.model.files.get(&info.block.file)?;
        let offset = self.place_of(info)?;
        file.written.get(offset as usize..(offset + len) as usize)
    }

    /// Where a block is in its file; `None` if only snapshots have it.
    pub(crate) fn place_of(&self, info: &BlockInfo) -> Option<u64> {
        self.name_node.store.offset_of(info)
    }

    fn offset_of(&self, info: &BlockInfo) -> u64 {
        self.place_of(info).unwrap_or(u64::MAX)
    }

    /// The bytes of each unit of the first `len` bytes of a block.
    fn units_of(&mut self, info: &BlockInfo, len: u64) -> Option<Rc<Vec<Bytes>>> {
        let known = self.units.get(&(info.block.id, len));
        let Redundancy::Striped(policy) = &info.redundancy else {
            // One that was cut has other bytes than before when it is as long again.
            let data = self.written(info, len)?;
            if let Some(known) = known.filter(|known| known[0][..] == *data) {
                return Some(known.clone());
            }
            let units = Rc::new(vec![Bytes::from(data.to_vec())]);
            self.units.insert((info.block.id, len), units.clone());
            return Some(units);
        };
        if let Some(known) = known {
            return Some(known.clone());
        }
        let data = self.data_of(info, len)?;
        let units = self.encode(&data, policy).into_iter().map(Bytes::from);
        let units = Rc::new(units.collect::<Vec<_>>());
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
        if id.is_parity() {
            return self.check_group(id);
        }
        let Some(info) = self.name_node.block(id) else { return };
        if let Some(of) = info.block.group {
            return self.check_group(of.handle);
        }
        if info.block.packed.is_some() {
            return self.check_packed(&info);
        }
        // It is being copied from a block that only snapshots have.
        if info.block.copy_source().is_some() {
            return;
        }
        let Some(file) = self.model.files.get(&info.block.file) else { return };
        if self.is_excused(id) || self.place_of(&info).is_none() {
            return;
        }
        let is_complete = info.block.state == BlockState::Complete;
        let acked = || file.acked.saturating_sub(self.offset_of(&info));
        let len = match info.block.state {
            BlockState::Complete => info.block.len,
            BlockState::Committed => acked().min(info.block.len),
            _ => acked(),
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
        let holds = |stored: &Stored, bytes: &Bytes| {
            let exact = stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == info.block.gs
                && stored.data.len() == bytes.len();
            let fits = if is_complete { exact } else { stored.replica.gs() >= info.block.gs };
            let damaged = stored.damaged.range(..bytes.len() as u64).next().is_some();
            let has = || match stored.data.len() == bytes.len() {
                true => stored.data == *bytes,
                false => stored.data.get(..bytes.len()) == Some(&bytes[..]),
            };
            fits && !damaged && has()
        };
        let there = self.nodes.iter().filter(|node| !node.is_gone && self.stands(node.number));
        let mut left = UnitSet::default();
        for (own_id, stored) in there.flat_map(|node| node.replicas.range(id..=last_of(id))) {
            let unit = own_id.unit().as_usize();
            let bytes = units.get(unit).filter(|bytes| !bytes.is_empty() && !left.has(unit));
            if bytes.is_some_and(|bytes| holds(stored, bytes)) {
                left.insert(unit);
            }
            if left.len() >= needed {
                break;
            }
        }
        if left.len() < needed {
            let left = left.len();
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
        if self.compared != self.name_node.version
            && let Err(why) = self.model.compare(&self.name_node.store)
        {
            self.violate(why);
            return;
        }
        self.compared = self.name_node.version;
        let (all, groups) = (self.name_node.all_blocks(), self.name_node.all_groups());
        let mut ids: BTreeSet<BlockId> = all.iter().map(|info| info.block.id).collect();
        ids.extend(groups.iter().map(|group| group.handle));
        self.model.groups.retain(|handle, _| ids.contains(handle));
        self.model.proofs.retain(|(_, id), _| ids.contains(id));
        for group in groups.iter().filter(|group| group.is_formed()) {
            let handle = group.handle;
            self.check_group(handle);
            let block = self.model.blocks.get(&handle);
            let was_hurt = block.is_some_and(|block| !block.exposed.is_empty());
            if was_hurt && !self.is_excused(handle) && self.group_lacks(group, true).is_none() {
                self.is_whole_again(handle, usize::from(group.m));
            }
        }
        self.check_packs();
        self.model.blocks.retain(|id, _| ids.contains(id));
        self.units.retain(|(id, _), _| ids.contains(id));
        for info in all.iter() {
            let id = &info.block.id;
            self.check_block(*id);
            self.check_accepted(info);
            if info.block.group.is_some() || info.block.packed.is_some() {
                continue;
            }
            let whole = self.name_node.facts_of(*id).map_or(0, |facts| match &info.redundancy {
                Redundancy::Replicated(copies) => usize::from(*copies) - 1,
                Redundancy::Striped(_) => facts.expected_units() - facts.data_units(),
            });
            let was_hurt = self
                .model
                .blocks
                .get(id)
                .is_some_and(|block| !block.exposed.is_empty() || block.tolerance < whole);
            // Of what only snapshots have, nobody knows the bytes.
            let is_known = was_hurt && self.written(info, info.block.len).is_some();
            if is_known && !self.is_excused(*id) && self.lacks(info, true).is_none() {
                self.is_whole_again(*id, whole);
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
            let node = self.name_node.machine_of(place.storage);
            let Some(stored) = self.nodes[node].replicas.get(&id) else { continue };
            let as_reported = stored.replica.state() == ReplicaState::Finalized
                && stored.replica.gs() == block.gs
                && stored.damaged.is_empty()
                && !self.nodes[node].is_torn_untold(stored);
            if as_reported && stored.data != units[place.unit.as_usize()] {
                self.violate(format!("{id} on dn-{node} has wrong bytes and counts as good"));
                return;
            }
        }
    }

    /// Looks at what a node is told, before it is.
    pub(crate) fn check_command(&mut self, node: usize, command: &Command) {
        match command {
            Command::Invalidate(blocks) => {
                for block in blocks {
                    self.check_deletion(node, block);
                    self.check_open_deletion(node, block);
                    self.check_group_deletion(node, block);
                }
            }
            Command::Transfer(works) => {
                works.iter().for_each(|work| self.check_types(work.slot.0, &work.targets));
            }
            Command::Reconstruct(works) => {
                for work in works {
                    let targets: Vec<StorageHandle> =
                        work.targets.iter().map(|(storage, _)| *storage).collect();
                    self.check_types(work.group.id, &targets);
                }
            }
            Command::Rebuild(works) => {
                for work in works {
                    let targets: Vec<StorageHandle> =
                        work.targets.iter().map(|(storage, _)| *storage).collect();
                    self.check_types(work.group.id, &targets);
                }
            }
            _ => {}
        }
    }

    /// Files are joined: what was ordered before is by the policy that a block, and a group that it is in, had in its former
    /// file.
    pub(crate) fn note_joined(&mut self, target: &str) {
        for id in self.name_node.blocks_at(target) {
            let group = self.name_node.handle_of(id).map(|(handle, _)| handle);
            self.joined.extend([Some(id), group].into_iter().flatten().map(|id| (id, self.now_ms)));
        }
    }

    /// Copies go to types of storage that the file's policy names, or falls back to.
    fn check_types(&mut self, id: BlockId, targets: &[StorageHandle]) {
        /// The time that copies have, and a bit.
        const ORDERED_MS: u64 = 45_000;
        if self.joined.get(&id.group()).is_some_and(|at| self.now_ms - at < ORDERED_MS) {
            return;
        }
        let policy = self.name_node.storage_policy(id.group());
        for target in targets {
            let kind = self.name_node.cluster.storage(*target).storage_type;
            if !policy.creation.contains(&kind) && !policy.replication_fallback.contains(&kind) {
                self.violate(format!("{id} of policy {} is to go to {kind:?}", policy.name));
            }
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
        let unit = named.id.unit();
        // A node looks at the stamp only.
        let len = self.name_node.facts_of(id).map_or(0, |facts| facts.unit_len(unit));
        let is_needed = info.block.state == BlockState::Complete
            && named.gs == info.block.gs
            && held.is_some_and(|stored| stored.data.len() as u64 == len && !stored.is_torn);
        if !is_needed || self.is_excused(id) || self.is_called_bad(node, named.id) {
            return;
        }
        if let Some(at) = info.block.packed {
            return self.check_packed_deletion(node, named, at.container);
        }
        let others = self.name_node.cluster.locations(id).into_iter().filter(|place| {
            let other = self.name_node.machine_of(place.storage);
            place.unit == unit && !place.corrupt && other != node
        });
        let is_there = |place: cairn_redundancy::Location| {
            let other = self.name_node.machine_of(place.storage);
            self.nodes[other].replicas.contains_key(&named.id) || self.has_failed(id, other, unit)
        };
        if !others.into_iter().any(is_there) {
            self.violate(format!("dn-{node} is told to delete {named:?}, the last of its index"));
        }
    }

    /// Notes which of some replicas are good on the machine that is their DataNode by now, and are taken for bad: what was
    /// told of them was true of others, which a copy or another machine has replaced since.
    pub(crate) fn note_called_bad(&mut self, node: usize, ids: impl IntoIterator<Item = BlockId>) {
        let is_good = |id: &BlockId| {
            let stored = self.nodes[node].replicas.get(id);
            stored.is_some_and(|stored| stored.damaged.is_empty() && !stored.is_torn)
        };
        let ids = ids.into_iter().filter(|id| is_good(id) && self.counts_as_bad(node, *id));
        let found: Vec<(usize, BlockId)> = ids.map(|id| (node, id)).collect();
        self.model.called_bad.extend(found);
    }

    /// Whether the NameNode takes a replica for bad that a machine has or had.
    pub(crate) fn counts_as_bad(&self, node: usize, own_id: BlockId) -> bool {
        let (id, cluster) = (own_id.group(), &self.name_node.cluster);
        let Some(facts) = self.name_node.facts_of(id) else { return false };
        // What is bad and is to go is in no list.
        let counts = cluster.replicas(id, &facts).into_iter().any(|replica| {
            let holder = self.name_node.machine_of(replica.storage);
            let is_it = replica.unit == own_id.unit() && holder == node;
            is_it && !matches!(replica.standing, Standing::Corrupt(_))
        });
        !counts && cluster.blocks_with_bad_replicas().any(|bad| bad == id)
    }

    /// Whether a good replica may go because the NameNode was told that one was bad which is there no more. That one has
    /// failed, and this one cannot be told from it.
    pub(crate) fn is_called_bad(&self, node: usize, own_id: BlockId) -> bool {
        self.model.called_bad.contains(&(node, own_id))
            && self.counts_as_bad(node, own_id)
            && self.has_failed(own_id.group(), node, own_id.unit())
    }

    pub(crate) fn check_replay(&mut self) {
        let is_whole = self.looks.one_in(4);
        if !self.name_node.is_replayable(is_whole) {
            self.violate("a replay of the log gives another store".to_string());
        }
    }
}
