//! A DataNode that leads the recovery of a block: it asks one holder after the other, has them cut the block as the
//! replica core decides, and tells the NameNode.

use crate::data_node::NodeError;
use crate::model::Part;
use crate::name_node::Target;
use crate::tasks::{Recovery, Task, Told};
use crate::world::World;
use cairn_master::orders::Truncation;
use cairn_namespace::ops::commit_block_synchronization::CommitBlockSynchronization;
use cairn_redundancy::{BlockFacts, BlockRecovery, BlockRef, BlockState, Layout};
use cairn_replica::recovery::{Agreement, Aim, Answer, CutResult, Cutting, Earlier, Order};
use cairn_replica::{RecoveryInfo, ReplicaError};
use cairn_stripe::{BlockId, GenerationStamp, Geometry, UnitIndex};

impl World<'_> {
    /// An order with the names that travel with it.
    pub(super) fn recovery(&self, told: BlockRecovery) -> Recovery {
        let Truncation { source, len: cut_to } = self.name_node.truncation(&told);
        let earlier = self.name_node.earlier(&told);
        let BlockRecovery { block, new_gs, layout, locations, mut units, away, .. } = told;
        units.resize(locations.len(), UnitIndex(0));
        let aim = match (layout, cut_to) {
            (Layout::Striped { k, m, cell_len, .. }, _) => {
                Aim::Units(Geometry::new(usize::from(k), usize::from(m), u64::from(cell_len)))
            }
            (Layout::Replicated { .. } | Layout::Parity { .. }, Some(len)) => {
                Aim::Truncated { id: block.id, len }
            }
            (Layout::Replicated { .. } | Layout::Parity { .. }, None) => Aim::Replicas,
        };
        let order = Order {
            block: block.id,
            gs: block.gs,
            acked_len: block.len,
            recovery_id: new_gs,
            places: units,
            away: Some(away),
            earlier: earlier.as_ref().map(|earlier| Earlier {
                since: earlier.since,
                place_count: earlier.places.len(),
                away_count: earlier.away_count,
            }),
            aim,
        };
        let earlier = earlier.map_or_else(Vec::new, |earlier| earlier.places);
        let targets = locations.iter().chain(&earlier).map(|s| self.name(*s)).collect();
        Recovery { order, source, layout, targets }
    }

    /// Asks the next holder, or decides when all have been asked.
    pub(super) fn ask_next(
        &mut self,
        node: usize,
        recovery: Box<Recovery>,
        mut answers: Vec<Answer>,
    ) {
        if let Some(source) = recovery.source {
            return self.copy_start(node, recovery, source);
        }
        if let Some(id) = self.parts.next_asked(&recovery.order, &answers) {
            answers.push(self.ask(&recovery, id, answers.len()));
            return self.next_step(node, Task::Ask(recovery, answers));
        }
        let agreed = self.parts.agree(&recovery.order, &answers);
        self.note(|| format!("dn-{node} recovers {:?}: {answers:?}: {agreed:?}", recovery.order));
        let next = match agreed {
            Ok(Agreement::Drop) => Task::Commit(recovery, Told { len: None, targets: Vec::new() }),
            Ok(Agreement::Cut(cutting)) => Task::Cut(recovery, cutting, Vec::new()),
            Err(_) => return,
        };
        self.count("block recoveries");
        self.next_step(node, next);
    }

    /// Each holder of a block that snapshots keep copies its start into the block that takes its place.
    fn copy_start(&mut self, node: usize, recovery: Box<Recovery>, source: BlockRef) {
        let Order { block: id, recovery_id: gs, acked_len: len, .. } = recovery.order;
        let mut targets = Vec::new();
        for Target { node: holder, storage } in recovery.targets.clone() {
            let is_there = self.answers(holder) && !self.unlucky(25);
            let read = self.nodes[holder].read(source.id, source.gs, 0..len).ok();
            let Some(data) = read.filter(|_| is_there) else {
                targets.push(None);
                continue;
            };
            let taken =
                self.nodes[holder].take_copy(BlockRef { id, gs, len }, data, &storage, None);
            self.note(|| format!("dn-{holder} copies the start of {source:?} as {id}: {taken:?}"));
            targets.push(taken.ok().map(|()| Target { node: holder, storage }));
            self.tell_soon(holder);
        }
        if targets.iter().any(Option::is_some) {
            self.next_step(node, Task::Commit(recovery, Told { len: Some(len), targets }));
        }
    }

    /// What one holder says when it is to freeze what it has.
    fn ask(&mut self, recovery: &Recovery, id: BlockId, place: usize) -> Answer {
        let Recovery { order, targets, .. } = recovery;
        let target = targets[place].node;
        if self.unlucky(25) || !self.answers(target) {
            return Answer::Silent;
        }
        match self.nodes[target].freeze(id, order.asked_gs(), order.recovery_id) {
            Ok(Some(info)) => Answer::Holds(info),
            Ok(None) => Answer::Nothing,
            Err(NodeError::Replica(ReplicaError::RecoveryInProgress { .. })) => Answer::Superseded,
            Err(_) => Answer::Silent,
        }
    }

    /// Has the next one that takes part cut what it has, or settles it when all have.
    pub(super) fn cut_next(
        &mut self,
        node: usize,
        recovery: Box<Recovery>,
        cutting: Cutting,
        mut results: Vec<CutResult>,
    ) {
        let is_over = results.last().is_some_and(|result| !cutting.goes_on_after(*result));
        if let Some(cut) = cutting.cuts.get(results.len()).filter(|_| !is_over) {
            let target = recovery.targets[cut.place].node;
            let recovery_id = recovery.order.recovery_id;
            let result = match self.answers(target) {
                true => self.nodes[target].finish_recovery(&cut.info, recovery_id, cut.len),
                false => Err(NodeError::NotFound),
            };
            self.note(|| format!("dn-{target} cuts {:?} to {}: {result:?}", cut.info, cut.len));
            results.push(match result {
                Ok(()) => {
                    self.tell_soon(target);
                    self.touch(cut.info.id);
                    CutResult::Done
                }
                Err(NodeError::Damaged) => {
                    let RecoveryInfo { id, gs, len, .. } = cut.info;
                    self.report_bad(target, target, BlockRef { id, gs, len });
                    CutResult::Corrupt
                }
                Err(_) => CutResult::Failed,
            });
            return self.next_step(node, Task::Cut(recovery, cutting, results));
        }
        let Ok(places) = cutting.settle(&results) else { return };
        let target = |place: Option<usize>| Some(recovery.targets[place?].clone());
        let targets = places.into_iter().map(target).collect();
        let told = Told { len: Some(cutting.len), targets };
        self.next_step(node, Task::Commit(recovery, told));
    }

    pub(super) fn commit(&mut self, node: usize, recovery: &Recovery, told: &Told) {
        if !self.reaches_name_node(node) {
            return;
        }
        self.check_kept(recovery, told);
        let Order { block: id, gs, acked_len, recovery_id, .. } = recovery.order;
        let command = CommitBlockSynchronization {
            block: cairn_namespace::BlockRef { id, gs, len: acked_len },
            new_gs: recovery_id,
            new_len: told.len.unwrap_or(0),
            close_file: true,
            delete_block: told.len.is_none().into(),
        };
        self.told_recoveries.insert((id, recovery_id), (recovery.clone(), told.clone()));
        let done = self.call_synchronize(command, &told.targets);
        self.note(|| format!("recovery of {id} told with {:?} bytes: {done:?}", told.len));
    }

    /// A recovery has come into force.
    pub(crate) fn recovered(&mut self, id: BlockId, new_gs: GenerationStamp) {
        let Some((recovery, told)) = self.told_recoveries.remove(&(id, new_gs)) else { return };
        if self.name_node.block(id).is_some_and(|info| info.block.gs == new_gs) {
            self.settle_for(&recovery, &told);
        }
    }

    /// What takes no part in a recovery is no part of the block any more.
    fn settle_for(&mut self, recovery: &Recovery, told: &Told) {
        let Order { block: id, recovery_id: gs, .. } = recovery.order;
        if self.is_excused(id) {
            return;
        }
        let (layout, len, state) = (recovery.layout, told.len.unwrap_or(0), BlockState::Complete);
        let facts = BlockFacts { gs, len, layout, state, group: None, packed: None };
        let unit_at = |place: usize| UnitIndex(if id.is_striped() { place as u8 } else { 0 });
        let places = told.targets.iter().enumerate();
        let parts = places.filter_map(|(at, to)| Some((to.as_ref()?.node, unit_at(at))));
        let parts: Vec<Part> = parts.filter(|(_, unit)| facts.has_bytes(*unit)).collect();
        self.begin_with((id, gs), &parts, (facts.data_units(), facts.expected_units()));
    }
}
