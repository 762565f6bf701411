//! Reading files as clients do: any replica, or enough units, whatever has failed.

use crate::data_node::NodeError;
use crate::name_node::{LocatedBlock, Target};
use crate::world::World;
use cairn_namespace::InodeId;
use cairn_redundancy::BlockRef;
use cairn_stripe::read::{Progress, StripeRead, UnitHealth};
use cairn_stripe::{BlockId, Geometry, Policy, Redundancy, UnitIndex};

/// Blocks that are remembered.
const LOCATED_MAX: usize = 8;

impl World<'_> {
    /// Reads a closed file and compares. Returns whether all of it could be read.
    pub(crate) fn read_file(&mut self, file: InodeId) -> bool {
        let Ok(blocks) = self.name_node.locate_file(file) else { return false };
        let mut all = true;
        for located in blocks {
            let len = located.block.len;
            let read = match located.redundancy.clone() {
                Redundancy::Replicated(_) => self.read_replica(&located),
                Redundancy::Striped(policy) => self.read_group(&located, &policy),
            };
            let Some(bytes) = read else {
                all = false;
                continue;
            };
            let Some(known) = self.model.files.get(&file) else { return false };
            let from = located.offset as usize;
            if known.written.get(from..from + len as usize) != Some(&bytes[..]) {
                let id = located.block.id;
                self.violate(format!(
                    "a client reads wrong bytes of {} ({id})",
                    known.path.clone()
                ));
            }
        }
        self.count("files read");
        all
    }

    fn read_replica(&mut self, located: &LocatedBlock) -> Option<Vec<u8>> {
        let block = &located.block;
        let part = BlockRef { id: block.id, gs: block.gs, len: block.len };
        if self.grouping.is_some() && self.rng.one_in(4) {
            let targets = located.places.iter().map(|(target, _)| target.clone()).collect();
            self.located.push_back((part, targets));
            self.located.truncate(LOCATED_MAX);
        }
        // One that hedges asks a second one as well, and takes what comes first.
        let mut at_once = if self.rng.one_in(4) { 2 } else { 1 };
        let mut first = None;
        for (target, _) in &located.places {
            if let Some(bytes) = self.read_part(target, part, 0..block.len) {
                if block.packed.is_some() && !self.is_quiet && self.rng.one_in(6) {
                    self.cry_wolf(target, part);
                }
                if first.get_or_insert_with(|| bytes.clone()) != &bytes {
                    self.violate(format!("two replicas of {} have other bytes", block.id));
                }
                at_once -= 1;
            }
            if at_once == 0 {
                break;
            }
        }
        first
    }

    fn read_part(
        &mut self,
        target: &Target,
        block: BlockRef,
        range: std::ops::Range<u64>,
    ) -> Option<Vec<u8>> {
        if !self.answers(target.node) || self.unlucky(60) {
            return None;
        }
        if self.nodes[target.node].is_retired(block.id) {
            return None;
        }
        match self.nodes[target.node].read(block.id, block.gs, range.clone()) {
            Ok(bytes) => Some(bytes),
            Err(NodeError::Damaged) => {
                if self.name_node.up {
                    self.tell_bad(target, block);
                }
                None
            }
            // A DataNode that lacks a block may have it for clients from others.
            Err(NodeError::NotFound) if self.may_be_elsewhere(target.node, block.id) => {
                let bytes = self.read_elsewhere(target.node, block)?;
                bytes.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec)
            }
            Err(_) => None,
        }
    }

    /// A reader that has found a block some time ago reads it where it was.
    pub(crate) fn read_as_located(&mut self) {
        let Some((block, targets)) = self.located.pop_front() else { return };
        let read = targets.iter().find_map(|target| self.read_part(target, block, 0..block.len));
        let info = self.name_node.block(block.id).filter(|info| info.block.gs == block.gs);
        let known = info.and_then(|info| self.data_of(&info, block.len));
        if let (Some(read), Some(known)) = (read, known)
            && read != known
        {
            self.violate(format!("a client reads other bytes of {} than it has", block.id));
        }
        self.count("blocks read where they were");
    }

    fn may_be_elsewhere(&self, node: usize, id: BlockId) -> bool {
        let is_here = self.nodes[node].replicas.contains_key(&id);
        self.grouping.is_some() && !id.has_units() && !is_here
    }

    fn read_group(&mut self, located: &LocatedBlock, policy: &Policy) -> Option<Vec<u8>> {
        let geometry = Geometry::from(policy);
        let mut bytes = Vec::new();
        for stripe in 0..geometry.stripe_count(located.block.len) {
            bytes.extend(self.read_stripe(located, policy, &geometry, stripe)?);
        }
        Some(bytes)
    }

    fn read_stripe(
        &mut self,
        located: &LocatedBlock,
        policy: &Policy,
        geometry: &Geometry,
        stripe: u64,
    ) -> Option<Vec<u8>> {
        let block = &located.block;
        let mut places: Vec<Option<Target>> = vec![None; geometry.units()];
        for (target, unit) in &located.places {
            places[unit.as_usize()].get_or_insert(target.clone());
        }
        let health = |place: &Option<Target>| match place {
            Some(_) => UnitHealth::Good,
            None => UnitHealth::Lost,
        };
        let health: Vec<UnitHealth> = places.iter().map(health).collect();
        let start = stripe * geometry.stripe_len();
        let wanted = start..start + geometry.stripe_data_len(block.len, stripe);
        let mut read = StripeRead::new(geometry, block.len, stripe, wanted.clone(), &health);
        let cell_len = geometry.cell_len() as usize;
        let mut cells: Vec<Vec<u8>> = vec![vec![0; cell_len]; geometry.units()];
        let decode = loop {
            let asks = read.next_asks().ok()?;
            let asked = !asks.is_empty();
            for ask in asks {
                let at = ask.unit.as_usize();
                let base = stripe * geometry.cell_len();
                let range = base + ask.range_in_cell.start..base + ask.range_in_cell.end;
                let id = block.id.internal(ask.unit);
                let len = geometry.internal_block_len(block.len, ask.unit);
                let part = BlockRef { id, gs: block.gs, len };
                match self.read_part(places[at].as_ref()?, part, range) {
                    Some(bytes) => {
                        let start = ask.range_in_cell.start as usize;
                        cells[at][start..start + bytes.len()].copy_from_slice(&bytes);
                        read.arrived(ask.unit, ask.range_in_cell);
                    }
                    None => read.failed(ask.unit),
                }
            }
            match read.progress() {
                Progress::Ready => break None,
                Progress::Decode(decode) => break Some(decode),
                Progress::Waiting if asked => {}
                Progress::Waiting => return None,
            }
        };
        if let Some(decode) = decode {
            self.count("degraded stripes read");
            let (from, to) =
                (decode.range_in_cell.start as usize, decode.range_in_cell.end as usize);
            let mut units: Vec<Option<&[u8]>> = vec![None; geometry.units()];
            for unit in &decode.sources {
                units[unit.as_usize()] = Some(&cells[unit.as_usize()][from..to]);
            }
            let lost: Vec<usize> = decode.lost.iter().map(|unit| unit.as_usize()).collect();
            let mut out = vec![vec![0; to - from]; lost.len()];
            let mut sinks: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
            let code = self.codec(policy);
            code.decode(&units, &lost, &mut sinks).ok()?;
            for (unit, bytes) in lost.into_iter().zip(out) {
                cells[unit][from..to].copy_from_slice(&bytes);
            }
        }
        let mut bytes = Vec::with_capacity((wanted.end - wanted.start) as usize);
        for span in geometry.cells(wanted) {
            let UnitIndex(unit) = span.unit;
            let (from, len) = (span.offset_in_cell as usize, span.len as usize);
            bytes.extend(&cells[usize::from(unit)][from..from + len]);
        }
        Some(bytes)
    }
}
