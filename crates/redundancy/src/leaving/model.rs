//! Nodes that obey what they are told, with what is on their disks, and random comings and goings.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A cluster whose nodes copy, decode and delete as told.
pub struct Play {
    pub world: World,
    /// What is on the disk of each node, dead ones too.
    pub disks: Vec<BTreeSet<BlockRef>>,
    pub dead: BTreeSet<usize>,
    /// Nodes that obey nothing but send heartbeats.
    pub idle: BTreeSet<usize>,
    /// Copies and reconstructions that were obeyed: the node that did it and the units that came of it.
    pub copied: Vec<(usize, BlockId)>,
    pub decoded: Vec<(usize, Reconstruction)>,
    pub changed: Vec<NodeHandle>,
}

impl Play {
    pub fn new(nodes: usize, racks: usize) -> Play {
        Play {
            world: World::new(nodes, racks),
            disks: vec![BTreeSet::new(); nodes],
            dead: BTreeSet::new(),
            idle: BTreeSet::new(),
            copied: Vec::new(),
            decoded: Vec::new(),
            changed: Vec::new(),
        }
    }

    pub fn store(&mut self, id: BlockId, facts: BlockFacts, nodes: &[usize]) {
        self.world.store(id, facts, nodes);
        for (unit, node) in nodes.iter().enumerate() {
            let unit = if id.is_striped() { unit as u8 } else { 0 };
            self.disks[*node].insert(self.world.good(id, unit));
        }
    }

    pub fn intend(&mut self, node: usize, intent: AdminIntent) {
        let (handle, now) = (self.world.handle(node), self.world.now);
        self.world.cluster.set_admin_intent(&self.world.blocks, handle, intent, now);
    }

    pub fn decommission(&mut self, node: usize) {
        self.intend(node, AdminIntent::Decommission);
    }

    pub fn maintain(&mut self, node: usize, ms: u64) {
        let until_ms = self.world.now.wall_ms + ms;
        self.intend(node, AdminIntent::Maintenance { until_ms });
    }

    pub fn admin(&self, node: usize) -> AdminState {
        self.world.cluster.node(self.world.handle(node)).admin
    }

    pub fn told(&self, node: usize) -> Option<LeavingNode> {
        let handle = self.world.handle(node);
        self.world.cluster.leaving_node(&self.world.blocks, handle, 10, self.world.now)
    }

    pub fn kill(&mut self, node: usize) {
        self.dead.insert(node);
        let handle = self.world.handle(node);
        self.world.cluster.node_died(&self.world.blocks, handle);
    }

    pub fn revive(&mut self, node: usize, rack: usize) {
        self.dead.remove(&node);
        self.world.register(registration(node, rack));
        self.world.heartbeat(node);
        let state = ReplicaState::Finalized;
        let replicas: Vec<ReportedReplica> = self.disks[node]
            .iter()
            .map(|block| ReportedReplica { block: *block, state, crc32c: None })
            .collect();
        self.world.full_report(node, &replicas);
    }

    /// Three seconds: a tick, then a heartbeat of each live node, and what they are told is done.
    pub fn step(&mut self) {
        self.world.now = at(self.world.now.mono_ms + 3000);
        let (now, world) = (self.world.now, &mut self.world);
        let tick = world.cluster.tick(&world.blocks, now, &mut *world.dice);
        self.changed.extend(tick.admin);
        for node in 0..self.disks.len() {
            if self.dead.contains(&node) {
                continue;
            }
            for command in self.world.heartbeat(node) {
                if !self.idle.contains(&node) {
                    self.obey(node, command);
                }
            }
        }
    }

    pub fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Steps until a node is in that state.
    pub fn until(&mut self, node: usize, admin: AdminState) {
        for _ in 0..400 {
            if self.admin(node) == admin {
                return;
            }
            self.step();
        }
        panic!("node {node} is {:?}, not {admin:?}: {:?}", self.admin(node), self.told(node));
    }

    fn arrives(&mut self, target: StorageHandle, block: BlockRef) {
        let node = self.world.number(target);
        if !self.dead.contains(&node) {
            self.disks[node].insert(block);
            self.world.received(node, block);
        }
    }

    fn obey(&mut self, node: usize, command: Command) {
        match command {
            Command::Transfer(transfers) => {
                for Transfer { block, targets, .. } in transfers {
                    if self.disks[node].contains(&block) {
                        self.copied.push((node, block.id));
                        targets.iter().for_each(|target| self.arrives(*target, block));
                    }
                }
            }
            Command::Reconstruct(works) => {
                for work in works {
                    self.decode(node, work);
                }
            }
            Command::Invalidate(blocks) => {
                for block in blocks {
                    let whole = |own: &&BlockRef| own.id == block.id;
                    if let Some(own) = self.disks[node].iter().find(whole).copied() {
                        self.disks[node].remove(&own);
                        self.world.deleted(node, own);
                        let left = self.disks.iter().any(|disk| disk.contains(&own));
                        let wanted = self.world.blocks.0.contains_key(&own.id.group());
                        assert!(left || !wanted, "the last {own:?} was deleted");
                    }
                }
            }
            _ => {}
        }
    }

    fn decode(&mut self, node: usize, work: Reconstruction) {
        let id = work.group.id;
        let facts = self.world.blocks.0[&id];
        let has = |(storage, unit): &&(StorageHandle, UnitIndex)| {
            let number = self.world.number(*storage);
            let block = self.world.good(id, unit.0);
            !self.dead.contains(&number) && self.disks[number].contains(&block)
        };
        let sources: BTreeSet<u8> = work.sources.iter().filter(has).map(|(_, u)| u.0).collect();
        // Hadoop's DataNode takes for lost what is neither a source nor left out.
        let Layout::Striped { k, m, .. } = facts.layout else { panic!("{id} is no group") };
        let units = (0..facts.data_units() as u8).chain(k..k + m);
        let implied: BTreeSet<u8> = units
            .filter(|u| !work.sources.iter().any(|(_, s)| s.0 == *u))
            .filter(|u| !work.excluded_units.iter().any(|e| e.0 == *u))
            .collect();
        let targets: BTreeSet<u8> = work.targets.iter().map(|(_, u)| u.0).collect();
        assert_eq!(implied, targets, "the indices of {work:?} must be as Hadoop implies them");
        assert_eq!(targets.len(), work.targets.len(), "one target for each unit: {work:?}");
        if sources.len() >= facts.data_units() {
            for (storage, unit) in work.targets.clone() {
                let block = self.world.good(id, unit.0);
                self.arrives(storage, block);
            }
            self.decoded.push((node, work));
        }
    }

    /// Distinct units, or copies, of a block on the disks of live nodes that `counts`.
    pub fn on_disks(&self, id: BlockId, counts: impl Fn(usize) -> bool) -> usize {
        let nodes = (0..self.disks.len()).filter(|node| counts(*node));
        let blocks = nodes.flat_map(|node| self.disks[node].iter());
        let own: Vec<&BlockRef> = blocks.filter(|block| block.id.group() == id).collect();
        if id.is_striped() {
            own.iter().map(|block| block.id).collect::<BTreeSet<_>>().len()
        } else {
            own.len()
        }
    }

    pub fn in_service(&self, id: BlockId) -> usize {
        let serves = |n: usize| !self.dead.contains(&n) && self.admin(n) == AdminState::InService;
        self.on_disks(id, serves)
    }

    /// Whatever was let go is not needed.
    fn check_let_go(&mut self) {
        for handle in std::mem::take(&mut self.changed) {
            let node = (0..self.disks.len()).find(|n| self.world.handle(*n) == handle).unwrap();
            for block in &self.disks[node] {
                let id = block.id.group();
                let facts = self.world.blocks.0[&id];
                let live = self.in_service(id);
                let needed = match self.admin(node) {
                    AdminState::Decommissioned => facts.expected_units(),
                    AdminState::InMaintenance => facts.data_units(),
                    _ => 0,
                };
                // Units in maintenance count for those that come back with them.
                let away = self.on_disks(id, |n| {
                    let state = self.world.cluster.node(self.world.handle(n)).admin;
                    matches!(state, AdminState::EnteringMaintenance | AdminState::InMaintenance)
                });
                let needed = needed.saturating_sub(away).max(facts.data_units().min(needed));
                assert!(live >= needed, "{node} went while {id} has {live} of {needed}");
            }
        }
    }
}

/// Random comings and goings: what is let go is not needed, nothing is lost, and in the end all is whole.
#[test]
fn row_2_row_14_whoever_comes_and_goes_nothing_is_lost_and_all_ends() {
    for seed in 0..16 {
        let mut dice = dice(seed);
        let mut roll = |sides: u64| dice() % sides;
        let (nodes, racks) = (12, 4);
        let mut play = Play::new(nodes, racks);
        let mut config = play.world.cluster.config().clone();
        config.max_tracked_nodes = 1 + roll(3) as usize;
        play.world.cluster.set_config(config);
        let mut ids = Vec::new();
        for number in 0..12 {
            let from = roll(nodes as u64) as usize;
            let ring: Vec<usize> = (0..nodes).map(|i| (from + i) % nodes).collect();
            let (k, m) = [(3, 2), (6, 3), (2, 1)][roll(3) as usize];
            let facts = rs(k, m, 1024 * u64::from(k) * 3 - roll(4000), BlockState::Complete);
            play.store(group(number), facts, &ring[..usize::from(k + m)]);
            play.store(block(number), replicated(3, 100, BlockState::Complete), &ring[2..5]);
            ids.extend([group(number), block(number)]);
        }
        // Units without bytes are not there.
        for op in 0..60 {
            let node = roll(nodes as u64) as usize;
            let away = (0..nodes).filter(|n| play.admin(*n) != AdminState::InService).count();
            match roll(8) {
                0 if away < 3 => play.decommission(node),
                1 if away < 3 => play.maintain(node, 30_000 + roll(600_000)),
                2 | 3 => play.intend(node, AdminIntent::InService),
                4 if play.dead.is_empty() => play.kill(node),
                5 | 6 => {
                    if let Some(node) = play.dead.first().copied() {
                        play.revive(node, node % racks);
                    }
                }
                _ => {}
            }
            for _ in 0..roll(25) {
                play.step();
                play.check_let_go();
            }
            for id in &ids {
                let facts = play.world.blocks.0[id];
                let anywhere = play.on_disks(*id, |_| true);
                assert!(anywhere >= facts.data_units(), "{id} after op {op} of seed {seed}");
            }
        }
        for node in 0..nodes {
            if play.dead.contains(&node) {
                play.revive(node, node % racks);
            }
            play.intend(node, AdminIntent::InService);
        }
        play.steps(400);
        for id in &ids {
            let facts = play.world.blocks.0[id];
            assert_eq!(play.in_service(*id), facts.expected_units(), "{id} of seed {seed}");
        }
        let mut whole = BTreeMap::new();
        for node in 0..nodes {
            play.decommission(node);
            play.until(node, AdminState::Decommissioned);
            play.check_let_go();
            whole.insert(node, play.world.now.mono_ms);
            play.intend(node, AdminIntent::InService);
        }
        assert_eq!(whole.len(), nodes);
    }
}
