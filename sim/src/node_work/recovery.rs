//! Block recoveries: the last block of a file whose writer died is brought to one length.
//!
//! Follows `crates/datanode/src/recovery.rs`.

use super::{Agreed, Recovery, Task};
use crate::data_node::NodeError;
use crate::name_node::{CallError, Target};
use crate::ration::Part;
use crate::world::World;
use cairn_redundancy::{BlockFacts, BlockRef, BlockState, Layout};
use cairn_replica::recovery::plan_replicated;
use cairn_replica::{Candidate, RecoveryInfo, RecoveryPlan, ReplicaState};
use cairn_stripe::{Geometry, UnitFound, UnitIndex};
use std::collections::BTreeMap;

impl World<'_> {
    pub(super) fn freeze(&mut self, node: usize, recovery: Recovery) -> Result<(), String> {
        let block = recovery.block;
        let mut found: Vec<(Target, UnitIndex, RecoveryInfo)> = Vec::new();
        let (mut without_bytes, mut errors) = (0, 0);
        for (target, unit) in &recovery.places {
            let id = match block.id.is_striped() {
                true => block.id.internal(*unit),
                false => block.id,
            };
            let lost_call = self.bears(id, target.node) && self.unlucky(25);
            if lost_call {
                self.expose(id, target.node);
            }
            if lost_call || !self.answers(target.node) {
                errors += 1;
                continue;
            }
            match self.nodes[target.node].freeze(id, block.gs, recovery.new_gs) {
                Ok(Some(info)) => found.push((target.clone(), *unit, info)),
                Ok(None) => without_bytes += 1,
                Err(NodeError::Replica(cairn_replica::ReplicaError::RecoveryInProgress {
                    ..
                })) => return Err("a newer recovery is in progress".into()),
                Err(_) => errors += 1,
            }
        }
        if errors == recovery.places.len() {
            return Err("nobody answers".into());
        }
        let agreed = match recovery.layout {
            Layout::Replicated { .. } => agree_replicated(&found, block, recovery.cut_to)?,
            Layout::Striped { k, m, cell_len, .. } => {
                let geometry = Geometry::new(usize::from(k), usize::from(m), u64::from(cell_len));
                if recovery.places.len() < geometry.k() {
                    return Err("too few units are known".into());
                }
                let asked = recovery.places.len();
                self.agree_striped(&geometry, found, block, (without_bytes, errors, asked))?
            }
        };
        let text = format!("agreed on {agreed:?}");
        self.note(|| text);
        self.count("block recoveries");
        self.next_step(node, Task::Cut(Box::new(recovery), agreed));
        Ok(())
    }

    fn agree_striped(
        &mut self,
        geometry: &Geometry,
        found: Vec<(Target, UnitIndex, RecoveryInfo)>,
        block: BlockRef,
        (mut without_bytes, errors, asked): (usize, usize, usize),
    ) -> Result<Agreed, String> {
        let mut all: BTreeMap<UnitIndex, UnitFound> = BTreeMap::new();
        let mut units: BTreeMap<UnitIndex, (Target, RecoveryInfo)> = BTreeMap::new();
        let unit_found = |unit: UnitIndex, info: &RecoveryInfo| UnitFound {
            unit,
            len: info.len,
            may_be_torn: info.original == ReplicaState::Rwr,
        };
        for (target, unit, info) in found {
            if all.get(&unit).is_none_or(|known| known.len < info.len) {
                all.insert(unit, unit_found(unit, &info));
            }
            if info.gs >= block.gs && info.len > 0 {
                if units.get(&unit).is_none_or(|(_, known)| known.len < info.len) {
                    units.insert(unit, (target, info));
                }
            } else {
                without_bytes += usize::from(info.len == 0);
            }
        }
        let lens: Vec<UnitFound> =
            units.iter().map(|(unit, (_, info))| unit_found(*unit, info)).collect();
        let all: Vec<UnitFound> = all.into_values().collect();
        let len = match without_bytes > asked - geometry.k() {
            true => 0,
            false => match self.parts.recovered_len(geometry, &lens) {
                Some(len) => len,
                None if errors == 0 && geometry.has_no_stripe(&all) => 0,
                None => return Err("too few units have bytes".into()),
            },
        };
        let of_unit = |(unit, (target, info)): (UnitIndex, (Target, RecoveryInfo))| {
            (target, info, geometry.internal_block_len(len, unit))
        };
        let parts = units.into_iter().map(of_unit).filter(|(_, info, len)| info.len >= *len);
        Ok(Agreed { parts: parts.collect(), len })
    }

    pub(super) fn cut(&mut self, node: usize, recovery: Recovery, agreed: Agreed) {
        let striped = recovery.block.id.is_striped();
        let width = match recovery.layout {
            Layout::Striped { k, m, .. } => usize::from(k) + usize::from(m),
            Layout::Replicated { .. } => 0,
        };
        let mut targets: Vec<Option<Target>> = vec![None; width];
        for (target, info, len) in &agreed.parts {
            let done = agreed.len == 0
                || self.answers(target.node)
                    && self.nodes[target.node].finish_recovery(info, recovery.new_gs, *len).is_ok();
            self.note(|| format!("{target:?} cuts {info:?} to {len}: {done}"));
            if done && agreed.len > 0 {
                self.tell_soon(target.node);
                self.touch(info.id);
            }
            match (done, striped) {
                (true, true) => targets[info.id.unit().as_usize()] = Some(target.clone()),
                (true, false) => targets.push(Some(target.clone())),
                // What a failed unit holds is not known.
                (false, true) => return,
                (false, false) => {}
            }
        }
        if !striped && targets.is_empty() && agreed.len > 0 {
            return;
        }
        self.next_step(node, Task::Commit(Box::new(recovery), agreed, targets));
    }

    pub(super) fn commit(
        &mut self,
        node: usize,
        recovery: &Recovery,
        agreed: &Agreed,
        targets: &[Option<Target>],
    ) {
        if !self.reaches_name_node(node) {
            return;
        }
        let BlockRef { id, gs, len } = recovery.block;
        let new = (recovery.new_gs, agreed.len);
        let done =
            self.name_node.commit_synchronization((id, gs, len), new, targets, agreed.len == 0);
        self.note(|| format!("recovery of {id} told with {} bytes: {done:?}", agreed.len));
        let is_known = self.name_node.block(id).is_some_and(|info| info.block.gs == new.0);
        if is_known || matches!(done, Err(CallError::Lost)) {
            self.settle_for(recovery, agreed, targets);
        }
    }

    /// What takes no part in a recovery is no part of the block any more.
    fn settle_for(&mut self, recovery: &Recovery, agreed: &Agreed, targets: &[Option<Target>]) {
        let (BlockRef { id, .. }, gs) = (recovery.block, recovery.new_gs);
        if self.is_excused(id) {
            return;
        }
        let (layout, len, state) = (recovery.layout, agreed.len, BlockState::Complete);
        let facts = BlockFacts { gs, len, layout, state };
        let unit_at = |place: usize| UnitIndex(if id.is_striped() { place as u8 } else { 0 });
        let places = targets.iter().enumerate();
        let parts = places.filter_map(|(at, to)| Some((to.as_ref()?.node, unit_at(at))));
        let parts: Vec<Part> = parts.filter(|(_, unit)| facts.has_bytes(*unit)).collect();
        self.begin_with((id, gs), &parts, facts.data_units());
    }
}

fn agree_replicated(
    found: &[(Target, UnitIndex, RecoveryInfo)],
    block: BlockRef,
    cut_to: Option<u64>,
) -> Result<Agreed, String> {
    // An attempt before this one may have cut some of them off already.
    let most = cut_to.unwrap_or(u64::MAX);
    let cut = |info: RecoveryInfo| RecoveryInfo { len: info.len.min(most), ..info };
    let candidates = found.iter().enumerate();
    let answers: Vec<Candidate> =
        candidates.map(|(node, (_, _, info))| Candidate { node, info: cut(*info) }).collect();
    match plan_replicated(&answers, block.gs) {
        RecoveryPlan::Impossible(why) => Err(why.into()),
        RecoveryPlan::Delete => Ok(Agreed { parts: Vec::new(), len: 0 }),
        RecoveryPlan::Truncate { nodes, len } => {
            let len = cut_to.unwrap_or(len);
            let part = |at: usize| (found[at].0.clone(), found[at].2, len);
            Ok(Agreed { parts: nodes.into_iter().map(part).collect(), len })
        }
    }
}
