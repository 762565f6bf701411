//! Waits against what anybody can ask of a block: as long as a wait is not woken, all answers are as they were when it
//! began.

use super::Waits;
use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

const NODES: usize = 7;

/// What can be asked of a block.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    locations: Vec<Location>,
    replicas: Vec<Replica>,
    expected: Vec<Expected>,
    pipeline: Vec<(StorageHandle, UnitIndex)>,
    unreported: Vec<(StorageHandle, UnitIndex)>,
    min_reached: bool,
}

/// A wait, and what was known of its blocks when it began.
struct Waiter {
    ticket: Ticket,
    known: BTreeMap<BlockId, Known>,
}

struct Model {
    world: World,
    ids: Vec<BlockId>,
    waiters: Vec<Waiter>,
    stamp: u64,
}

impl Model {
    fn new() -> Model {
        let mut world = World::new(NODES, 3);
        let config = Config {
            decommission_interval: std::time::Duration::from_secs(3),
            maintenance_replication_min: 0,
            ..world.cluster.config().clone()
        };
        world.cluster.set_config(config);
        let ids = vec![block(1), block(2), block(3), group(1), group(2), group(3)];
        Model { world, ids, waiters: Vec::new(), stamp: 1001 }
    }

    fn known(&self, id: BlockId) -> Known {
        let cluster = &self.world.cluster;
        let facts = self.world.blocks.0.get(&id);
        Known {
            locations: cluster.locations(id),
            replicas: facts.map_or_else(Vec::new, |facts| cluster.replicas(id, facts)),
            expected: cluster.expected(id).to_vec(),
            pipeline: cluster.pipeline(id),
            unreported: cluster.unreported(id).collect(),
            min_reached: facts.is_some_and(|facts| cluster.min_reached(id, facts)),
        }
    }

    fn begin_wait(&mut self, dice: &mut dyn FnMut() -> u64) {
        let ids: Vec<BlockId> =
            self.ids.iter().copied().filter(|_| dice().is_multiple_of(3)).collect();
        // Whoever names a unit means its group.
        let named = |id: &BlockId| if id.is_striped() { id.internal(UnitIndex(1)) } else { *id };
        let named: Vec<BlockId> = ids.iter().map(named).collect();
        let known = ids.iter().map(|id| (*id, self.known(*id))).collect();
        let ticket = self.world.cluster.await_change(&named);
        self.waiters.push(Waiter { ticket, known });
    }

    fn random_targets(
        &self,
        id: BlockId,
        dice: &mut dyn FnMut() -> u64,
    ) -> Vec<Option<StorageHandle>> {
        let first = dice() as usize;
        let count = if id.is_striped() { 5 } else { 3 };
        let storage = |at| self.world.storage((first + at) % NODES);
        (0..count).map(|at| (!dice().is_multiple_of(6)).then(|| storage(at))).collect()
    }

    fn new_stamp(&mut self) -> GenerationStamp {
        self.stamp += 1;
        GenerationStamp(self.stamp)
    }

    /// What the namespace does with a block, and the telling of it.
    fn tell(&mut self, id: BlockId, dice: &mut dyn FnMut() -> u64) {
        let targets = self.random_targets(id, dice);
        let Some(mut facts) = self.world.blocks.0.get(&id).copied() else {
            let (len, state) = (dice() % 9000, BlockState::UnderConstruction);
            let facts =
                if id.is_striped() { rs(3, 2, len, state) } else { replicated(3, len, state) };
            let facts = BlockFacts { gs: self.new_stamp(), ..facts };
            self.world.blocks.0.insert(id, facts);
            self.world.cluster.block_allocated(id, facts.gs, &targets);
            return;
        };
        let is_open = !facts.is_final();
        match dice() % 8 {
            0 => {
                self.world.blocks.0.remove(&id);
                self.world.cluster.block_removed(id, facts.gs);
            }
            1 if is_open => {
                facts.gs = self.new_stamp();
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.pipeline_updated(id, facts.gs, &targets);
            }
            2 if is_open => {
                let new_gs = self.new_stamp();
                let now = self.world.now;
                self.world.cluster.start_block_recovery(id, &facts, new_gs, now);
            }
            3 if is_open => {
                let block = BlockRef { id, gs: facts.gs, len: facts.len };
                (facts.gs, facts.state) = (self.new_stamp(), BlockState::Complete);
                self.world.blocks.0.insert(id, facts);
                let outcome = Synchronized {
                    block,
                    new_gs: facts.gs,
                    new_len: facts.len,
                    close_file: true,
                    delete_block: false,
                    targets,
                };
                self.world.cluster.block_synchronized(&self.world.blocks, id, &outcome);
            }
            4..=5 if is_open => {
                let is_committed = dice().is_multiple_of(3);
                facts.state =
                    if is_committed { BlockState::Committed } else { BlockState::Complete };
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.block_completed(&self.world.blocks, id);
            }
            6 if !is_open => {
                self.world.cluster.block_reopened(id, &facts);
                (facts.gs, facts.state) = (self.new_stamp(), BlockState::UnderConstruction);
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.pipeline_updated(id, facts.gs, &targets);
            }
            _ => {
                if let Layout::Replicated { copies } = &mut facts.layout {
                    *copies = 1 + (dice() % 4) as u16;
                }
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.block_changed(&self.world.blocks, id);
            }
        }
    }

    /// What a DataNode says of a block.
    fn hear(&mut self, id: BlockId, dice: &mut dyn FnMut() -> u64) {
        let (node, unit) = (dice() as usize % NODES, UnitIndex((dice() % 5) as u8));
        let own_id = if id.is_striped() { id.internal(unit) } else { id };
        let facts = self.world.blocks.0.get(&id).copied();
        let gs = facts.map_or(GenerationStamp(1001), |facts| facts.gs);
        let gs = GenerationStamp(gs.0 - u64::from(dice().is_multiple_of(4)));
        let len = facts.map_or(7, |facts| facts.unit_len(unit));
        let block = BlockRef { id: own_id, gs, len: len + u64::from(dice().is_multiple_of(9)) };
        let kind = match dice() % 7 {
            0 => ReplicaEventKind::Receiving,
            1 => ReplicaEventKind::Deleted,
            2 => {
                let handle = self.world.handle(node);
                // Told of what is not there, it says so: that is no change.
                let _ = self.world.cluster.report_bad(&self.world.blocks, handle, "", block);
                return;
            }
            _ => ReplicaEventKind::Received { delete_hint: None },
        };
        let crc32c = dice().is_multiple_of(3).then(|| (dice() % 2) as u32);
        self.world.event(node, ReplicaEvent { block, kind, crc32c });
    }

    /// What happens to DataNodes as a whole.
    fn shake(&mut self, dice: &mut dyn FnMut() -> u64) {
        let node = dice() as usize % NODES;
        let handle = self.world.handle(node);
        match dice() % 7 {
            0 => self.world.cluster.node_died(&self.world.blocks, handle),
            1 => {
                let registration = registration(node, node % 3);
                self.world.register(registration);
            }
            2 if self.world.cluster.node(handle).alive => {
                let id = self.ids[dice() as usize % self.ids.len()];
                let is_known = self.world.blocks.0.contains_key(&id);
                let state = ReplicaState::Finalized;
                let told = is_known.then(|| self.world.good(id, (node % 5) as u8));
                let told = told.map(|block| ReportedReplica { block, state, crc32c: None });
                self.world.full_report(node, &Vec::from_iter(told));
            }
            3 => {
                let state = [StorageState::Failed, StorageState::Normal][(dice() % 2) as usize];
                let mut heartbeat = heartbeat_of(node, GIB);
                heartbeat.storages[0].state = state;
                let uuid = format!("uuid-{node}");
                self.world.beat(&uuid, heartbeat);
            }
            4 => {
                let all = [
                    AdminIntent::InService,
                    AdminIntent::Decommission,
                    AdminIntent::Maintenance { until_ms: self.world.now.wall_ms + 20_000 },
                ];
                let intent = all[dice() as usize % all.len()];
                let now = self.world.now;
                self.world.cluster.set_admin_intent(&self.world.blocks, handle, intent, now);
            }
            5 => {
                self.world.run(30_000, &[node]);
            }
            _ => {
                self.world.run(3000, &[]);
            }
        }
    }

    /// Nobody was left waiting, and nobody was woken twice.
    fn check(&mut self, seed: u64) {
        self.world.cluster.check_invariants();
        let woken = self.world.cluster.take_woken();
        let once: BTreeSet<Ticket> = woken.iter().copied().collect();
        assert_eq!(once.len(), woken.len(), "seed {seed}: woken twice");
        for ticket in woken {
            let at = self.waiters.iter().position(|waiter| waiter.ticket == ticket);
            let at = at.unwrap_or_else(|| panic!("seed {seed}: {ticket:?} does not wait"));
            assert!(!self.waiters.remove(at).known.is_empty());
        }
        for waiter in &self.waiters {
            for (id, before) in &waiter.known {
                assert_eq!(&self.known(*id), before, "seed {seed}: {id} has changed unheard");
            }
        }
    }
}

#[test]
fn no_change_of_a_block_goes_unheard() {
    for seed in 0..300 {
        let (mut model, mut dice) = (Model::new(), dice(seed));
        for _ in 0..150 {
            if model.waiters.len() < 6 {
                model.begin_wait(&mut dice);
            }
            let id = model.ids[dice() as usize % model.ids.len()];
            match dice() % 10 {
                0..=3 => model.tell(id, &mut dice),
                4..=7 => model.hear(id, &mut dice),
                8 => model.shake(&mut dice),
                _ if model.waiters.is_empty() => {}
                _ => {
                    let at = dice() as usize % model.waiters.len();
                    let gone = model.waiters.remove(at);
                    model.world.cluster.forget_wait(gone.ticket);
                }
            }
            model.check(seed);
        }
    }
}

/// With thousands that wait, each report would have all of them look again.
#[test]
fn what_happens_to_a_block_wakes_only_those_who_wait_for_it() {
    let mut world = World::new(4, 2);
    for number in 1..=3 {
        world.blocks.0.insert(block(number), replicated(2, 100, BlockState::Complete));
    }
    let first = world.cluster.await_change(&[block(1)]);
    let both = world.cluster.await_change(&[block(1), block(2)]);
    let other = world.cluster.await_change(&[block(3)]);
    world.received(0, world.good(block(1), 0));
    assert_eq!(world.cluster.take_woken(), [first, both]);
    assert_eq!(world.cluster.take_woken(), []);
    world.received(0, world.good(block(2), 0));
    assert_eq!(world.cluster.take_woken(), [], "who was woken waits no longer");
    let handle = world.handle(0);
    world.cluster.node_died(&world.blocks, handle);
    assert_eq!(world.cluster.take_woken(), [], "it had nothing of that block");
    world.cluster.block_removed(block(3), GenerationStamp(1001));
    assert_eq!(world.cluster.take_woken(), [other]);
}

#[test]
fn who_has_gone_is_not_woken() {
    let mut waits = Waits::default();
    let [early, late, stays] = [0; 3].map(|_| waits.add(&[group(1).internal(UnitIndex(2))]));
    waits.forget(early);
    waits.wake(group(1));
    waits.forget(late);
    waits.check_invariants();
    assert_eq!(waits.take_woken(), [stays]);
    let nothing = waits.add(&[]);
    waits.wake(group(1));
    waits.forget(nothing);
    assert_eq!(waits.take_woken(), []);
    assert!(waits.awaited().next().is_none());
}
