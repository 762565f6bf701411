//! Writing block groups: a stripe at a time, with units that fail.
//!
//! Follows `crates/client/src/write_striped.rs`; which units live is decided by the same plan.

use super::{BLOCK_LEN, OpenBlock, Step, Writer};
use crate::world::World;
use cairn_redundancy::BlockRef;
use cairn_stripe::write::{GroupWrite, Next};
use cairn_stripe::{Geometry, Policy, UnitIndex};

impl World<'_> {
    pub(super) fn write_striped(
        &mut self,
        at: usize,
        writer: &mut Writer,
        policy: &Policy,
    ) -> Step {
        let geometry = Geometry::from(policy);
        let Some(file) = self.model.files.get(&writer.file) else { return Step::Broken };
        let sent = match &writer.block {
            Some(block) => block.offset + block.len,
            None => file.written.len() as u64,
        };
        let full = geometry.full_group_len(BLOCK_LEN);
        match &writer.block {
            None if sent >= writer.len => self.close(at, writer),
            None => self.open_group(at, writer, &geometry),
            Some(block) if sent >= writer.len || block.len >= full => {
                self.end_group(at, writer, &geometry)
            }
            Some(_) => self.send_stripe(at, writer, policy),
        }
    }

    fn open_group(&mut self, at: usize, writer: &mut Writer, geometry: &Geometry) -> Step {
        let mut block = match self.add_block(at, writer, geometry.units()) {
            Ok(Some(block)) => block,
            Ok(None) => return Step::On,
            Err(step) => return step,
        };
        let allocated: Vec<bool> = block.targets.iter().map(Option::is_some).collect();
        let Ok(plan) = GroupWrite::new(*geometry, geometry.m(), &allocated) else {
            return Step::Broken;
        };
        block.plan = Some(plan);
        writer.tries = 0;
        writer.block = Some(block);
        Step::On
    }

    /// Sends a stripe, which is short at the end of the file.
    fn send_stripe(&mut self, at: usize, writer: &mut Writer, policy: &Policy) -> Step {
        let geometry = Geometry::from(policy);
        let Some(block) = &writer.block else { return Step::On };
        let from = block.offset + block.len;
        let len = geometry.stripe_len().min(writer.len - from);
        let bytes = self.next_bytes(writer.file, from, len);
        let (k, cell) = (geometry.k(), geometry.cell_len() as usize);
        let cells: Vec<&[u8]> = bytes.chunks(cell).collect();
        let longest = cells[0].len();
        let mut padded = vec![vec![0; longest]; k];
        for (unit, bytes) in cells.iter().enumerate() {
            padded[unit][..bytes.len()].copy_from_slice(bytes);
        }
        let mut parity = vec![vec![0; longest]; geometry.m()];
        let sources: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
        let mut sinks: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        let code = self.codec(policy);
        code.encode(&sources, &mut sinks).expect("all cells are as long");
        let offset = block.len / geometry.stripe_len() * geometry.cell_len();
        for unit in (0..geometry.units() as u8).map(UnitIndex) {
            let at = unit.as_usize();
            let bytes = if at < k { cells.get(at).copied() } else { Some(&parity[at - k][..]) };
            if let Some(bytes) = bytes {
                self.send_cell(writer, unit, offset, bytes);
            }
        }
        if let Some(block) = &mut writer.block {
            block.len += len;
        }
        let step = self.mend_group(at, writer);
        if let (Step::On, Some(block)) = (&step, &writer.block)
            && let Some(plan) = &block.plan
        {
            let whole = block.len / geometry.stripe_len() * geometry.stripe_len();
            // More than `k` have it, or as many as the failures leave.
            if plan.live().len() >= k && !self.is_excused(block.id) {
                let (end, id) = (block.offset + whole, block.id);
                self.acknowledged(writer.file, end);
                self.check_block(id);
            }
        }
        step
    }

    /// Hands a cell to its unit; the first one opens it.
    fn send_cell(&mut self, writer: &mut Writer, unit: UnitIndex, offset: u64, bytes: &[u8]) {
        let Some(block) = &mut writer.block else { return };
        let Some(plan) = &mut block.plan else { return };
        let Some(target) = block.targets[unit.as_usize()].clone().filter(|_| plan.is_live(unit))
        else {
            return;
        };
        let (id, gs, group) = (block.id.internal(unit), block.gs, block.id);
        let mut written = self.reaches_for_write(id, target.node);
        if written && offset == 0 {
            written = self.nodes[target.node].create(id, gs, &target.storage).is_ok();
        }
        written = written && self.nodes[target.node].write(id, gs, offset, bytes).is_ok();
        if written {
            let end = offset + bytes.len() as u64;
            self.nodes[target.node].acknowledge(id, gs, end);
            return;
        }
        if let Some(plan) = writer.block.as_mut().and_then(|block| block.plan.as_mut()) {
            plan.failed(unit);
        }
        self.note(|| format!("unit {unit} of {group} has failed at {target:?}"));
        self.expose(id, target.node);
        writer.excluded.push(target.node);
    }

    /// Fences off units that failed: a new stamp for all others.
    fn mend_group(&mut self, at: usize, writer: &mut Writer) -> Step {
        let holder = self.clients[at].holder();
        loop {
            let Some(block) = &writer.block else { return Step::On };
            let Some(plan) = &block.plan else { return Step::On };
            let units = match plan.check(block.len) {
                Ok(Next::Continue) => return Step::On,
                Ok(Next::Restamp { units }) => units,
                Err(lost) => {
                    let id = block.id;
                    self.note(|| format!("{holder} has lost {id}: {lost}"));
                    return Step::Broken;
                }
            };
            if self.faults.clients && self.unlucky(40) {
                self.note(|| format!("{holder} dies before it mends a group"));
                return Step::Broken;
            }
            if let Some(step) = self.restamp(at, writer, &units) {
                return step;
            }
        }
    }

    fn restamp(&mut self, at: usize, writer: &mut Writer, units: &[UnitIndex]) -> Option<Step> {
        let holder = self.clients[at].holder();
        let block = writer.block.clone()?;
        let new_gs = match self.call_new_stamp(&holder, block.with_len(block.len)) {
            Ok(gs) => gs,
            Err(error) => {
                self.refused(&holder, "updateBlockForPipeline", &error);
                return Some(Step::Broken);
            }
        };
        self.count("groups mended");
        for unit in units {
            let target = block.targets[unit.as_usize()].clone()?;
            let id = block.id.internal(*unit);
            let len = self.unit_len(writer, *unit);
            let part = BlockRef { id, gs: block.gs, len };
            let taken = self.reaches_for_write(id, target.node)
                && self.nodes[target.node].recover_rbw(part, new_gs, (len, len)).is_ok();
            if !taken {
                self.note(|| format!("unit {unit} does not take stamp {new_gs} at {target:?}"));
                self.expose(id, target.node);
                writer.excluded.push(target.node);
                writer.block.as_mut()?.plan.as_mut()?.failed(*unit);
            }
        }
        if self.faults.clients && self.unlucky(60) {
            self.note(|| format!("{holder} dies before it tells of its new stamp"));
            return Some(Step::Broken);
        }
        if !writer.block.as_mut()?.plan.as_mut()?.restamped(units) {
            return None;
        }
        let acked = self.acked_len(writer);
        let old = block.with_len(acked);
        let new = cairn_namespace::BlockRef { gs: new_gs, ..old };
        let targets: Vec<_> = (0..block.targets.len())
            .map(|unit| {
                let named = units.contains(&UnitIndex(unit as u8));
                block.targets[unit].clone().filter(|_| named)
            })
            .collect();
        let call = self.clients[at].next_call();
        if let Err(error) = self.call_update_pipeline(call, &holder, old, new, &targets) {
            self.refused(&holder, "updatePipeline", &error);
            return Some(Step::Broken);
        }
        writer.block.as_mut()?.gs = new_gs;
        None
    }

    fn unit_len(&self, writer: &Writer, unit: UnitIndex) -> u64 {
        let (Some(policy), Some(block)) = (&writer.policy, &writer.block) else { return 0 };
        Geometry::from(policy).internal_block_len(block.len, unit)
    }

    fn acked_len(&self, writer: &Writer) -> u64 {
        let Some(OpenBlock { plan: Some(plan), targets, len, .. }) = &writer.block else {
            return 0;
        };
        let acked = |unit: usize| {
            let index = UnitIndex(unit as u8);
            (plan.is_live(index) && targets[unit].is_some()).then(|| self.unit_len(writer, index))
        };
        plan.acked_len(*len, &(0..targets.len()).map(acked).collect::<Vec<_>>())
    }

    /// Ends the group: mended, and every unit closed.
    fn end_group(&mut self, at: usize, writer: &mut Writer, geometry: &Geometry) -> Step {
        match self.mend_group(at, writer) {
            Step::On => {}
            other => return other,
        }
        let Some(block) = writer.block.clone() else { return Step::On };
        for unit in (0..geometry.units() as u8).map(UnitIndex) {
            let Some(plan) = writer.block.as_ref().and_then(|block| block.plan.as_ref()) else {
                return Step::On;
            };
            let writes = plan.is_live(unit) && plan.is_writing(unit, block.len);
            let Some(target) = block.targets[unit.as_usize()].clone().filter(|_| writes) else {
                continue;
            };
            let id = block.id.internal(unit);
            let done = self.reaches_for_write(id, target.node)
                && self.nodes[target.node].finalize(id, block.gs).is_ok();
            if done {
                self.tell_soon(target.node);
                continue;
            }
            self.note(|| format!("unit {unit} of {} cannot be closed at {target:?}", block.id));
            self.expose(id, target.node);
            writer.excluded.push(target.node);
            if let Some(plan) = writer.block.as_mut().and_then(|block| block.plan.as_mut()) {
                plan.failed(unit);
            }
        }
        let ended = writer.block.as_ref().and_then(|block| block.plan.as_ref());
        if ended.is_some_and(|plan| plan.check_end().is_err()) {
            return Step::Broken;
        }
        writer.previous = Some(block.with_len(block.len));
        writer.block = None;
        writer.tries = 0;
        Step::On
    }
}
