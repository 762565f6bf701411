//! The queues, which are kept up by events, against what each block needs by itself.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, UnitIndex};

const NODES: usize = 12;

struct Model {
    world: World,
    ids: Vec<BlockId>,
    down: Option<usize>,
}

impl Model {
    fn new() -> Model {
        let ids = (1..=4).flat_map(|number| [block(number), group(number)]).collect();
        Model { world: World::new(NODES, 3), ids, down: None }
    }

    fn step(&mut self, dice: &mut dyn FnMut() -> u64) {
        let id = self.ids[dice() as usize % self.ids.len()];
        let (node, unit) = (dice() as usize % NODES, UnitIndex((dice() % 5) as u8));
        let known = self.world.blocks.0.get(&id).copied();
        match (dice() % 12, known) {
            (0, Some(facts)) => {
                self.world.blocks.0.remove(&id);
                self.world.cluster.block_removed(id, facts.gs);
            }
            (_, None) => {
                let (len, state) = (dice() % 9000, BlockState::Complete);
                let group = rs(3, 2, len, state);
                let facts = if id.is_striped() { group } else { replicated(3, len, state) };
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.block_changed(&self.world.blocks, id);
            }
            (1, Some(mut facts)) => {
                if let Layout::Replicated { copies } = &mut facts.layout {
                    *copies = 1 + (dice() % 4) as u16;
                }
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.block_changed(&self.world.blocks, id);
            }
            (2, _) => match self.down.take() {
                Some(node) => {
                    self.world.register(registration(node, node % 3));
                    self.world.heartbeat(node);
                    self.world.full_report(node, &[]);
                }
                None => {
                    let handle = self.world.handle(node);
                    self.world.cluster.node_died(&self.world.blocks, handle);
                    self.down = Some(node);
                }
            },
            (3, _) => {
                let all = [AdminState::InService, AdminState::DecommissionInProgress];
                let handle = self.world.handle(node);
                let state = all[(dice() % 2) as usize];
                self.world.cluster.set_admin_state(&self.world.blocks, handle, state);
            }
            (4, Some(_)) => {
                let block = self.world.good(id, unit.0);
                self.world.deleted(node, block);
            }
            (5, Some(_)) => {
                let block = self.world.good(id, unit.0);
                let handle = self.world.handle(node);
                // Refused where nothing is.
                let _ = self.world.cluster.report_bad(&self.world.blocks, handle, "", block);
            }
            _ if Some(node) == self.down => {}
            _ => {
                let block = self.world.good(id, unit.0);
                self.world.received(node, block);
            }
        }
    }

    /// What lacks redundancy is queued where its risk wants it. That it is spread well enough where there are fewer
    /// racks than before, or fewer nodes, is seen when its turn comes.
    fn check(&self, seed: u64) {
        for id in &self.ids {
            let cluster = &self.world.cluster;
            let needed = self.world.blocks.0.get(id).and_then(|facts| {
                let need = cluster.need_of(*id, facts, &cluster.tally(*id, facts));
                need.risk().map(|risk| risk.priority())
            });
            let queued = cluster.queues().priority(*id);
            let is_stale = needed.is_none() && queued == Some(Priority::BadlyDistributed);
            assert!(needed == queued || is_stale, "seed {seed}: {id} {needed:?} {queued:?}");
        }
    }
}

#[test]
fn the_queues_are_what_blocks_need() {
    for seed in 0..200 {
        let (mut model, mut dice) = (Model::new(), dice(seed));
        for _ in 0..20 {
            for _ in 0..10 {
                model.step(&mut dice);
            }
            let silent = Vec::from_iter(model.down);
            model.world.run(3000, &silent);
            model.check(seed);
        }
    }
}

/// Whoever brings a unit from one rack to another brings nothing that lacks.
#[test]
fn what_moves_adds_nothing_and_what_is_lost_lacks() {
    let limits = need::Limits { racks: 5, serving: 9, ..need::Limits::default() };
    let facts = rs(3, 2, 9000, BlockState::Complete);
    let tally = Tally { live: 4, racks: 4, live_units: 0b01111, ..Tally::default() };
    let need = |coming: &[u8]| {
        let coming = coming.iter().map(|unit| UnitIndex(*unit));
        need::Need::of(&facts, &tally, coming, &limits)
    };
    assert_eq!([need(&[]).lacking(), need(&[1]).lacking(), need(&[4]).lacking()], [1, 1, 0]);
    assert_eq!([need(&[1]).is_met(), need(&[4]).is_met()], [false, true]);
    assert_eq!(need(&[4]).risk(), None);
    let wants = [0, 4].map(|unit| need(&[]).wants_copy(UnitIndex(unit)));
    assert_eq!(wants, [true, true], "a copy of unit 0 on a fifth rack would do good as well");
    assert!(!need(&[]).keeps(UnitIndex(0), 0) && need(&[]).keeps(UnitIndex(4), 0));
}
