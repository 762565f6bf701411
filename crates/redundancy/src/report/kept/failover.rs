//! Leaders that are followed by others while replicas are deleted, by seeds: whatever was told whom before, the last replica
//! of a block is never deleted, and who leads next knows of every replica that it was told of, be it before the entry that
//! has the block; and what happens with known mistakes put back.

use crate::fixture::*;
use crate::*;
use cairn_stripe::BlockId;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

const NODES: usize = 5;
const BLOCKS: i64 = 12;
const SEEDS: u64 = 60;

/// What a new leader does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// What it has kept counts for deletions at once.
    CountsAtOnce,
    /// So does a report that was on its way when it began to lead.
    AnyLeaseProves,
    /// A DataNode goes on with what another leader has ordered after it has reported to this one.
    OrdersOutliveLeaders,
    /// A member that follows forgets reports of blocks that it does not know yet.
    EarlyReportsDropped,
    /// It has these wait for their entries, and forgets them when a snapshot comes in the place of those.
    SnapshotNotJudged,
    /// It takes what is not taken over yet for lost.
    RestForgotten,
    /// It takes what was kept of a block over that was settled, and changed since.
    SettledTwice,
}

/// What a node tells a member that follows, on its way.
#[derive(Debug)]
enum Message {
    Event(ReplicaEvent),
    All(Vec<ReportedReplica>),
}

struct Scene {
    world: World,
    standby: Standby,
    disks: Vec<BTreeSet<BlockId>>,
    /// Orders that nodes have got and not carried out, and in which reign.
    orders: Vec<VecDeque<(u64, BlockRef)>>,
    on_the_way: Vec<VecDeque<Message>>,
    /// Blocks whose entries have not come to the member that follows.
    unknown: VecDeque<BlockId>,
    /// What waits there for entries, by a mistake.
    early: Vec<(usize, ReplicaEvent)>,
    blocks: i64,
    reign: u64,
    mistake: Option<Mistake>,
    deleted: usize,
}

fn config() -> Config {
    let (safe_mode_threshold, safe_mode_extension) = (1.0, Duration::ZERO);
    Config { safe_mode_threshold, safe_mode_extension, ..Config::default() }
}

impl Scene {
    fn new(seed: u64, mistake: Option<Mistake>) -> Scene {
        let mut world = World::new(NODES, 1);
        world.dice = Box::new(dice(seed));
        let mut standby = Standby::new(&config());
        for node in 0..NODES {
            standby.register(registration(node, 0), world.now);
            let heartbeat = heartbeat_of(node, 50 * GIB);
            standby.heartbeat(&registration(node, 0).claim(), heartbeat, world.now);
        }
        let mut scene = Scene {
            world,
            standby,
            disks: vec![BTreeSet::new(); NODES],
            orders: vec![VecDeque::new(); NODES],
            on_the_way: (0..NODES).map(|_| VecDeque::new()).collect(),
            unknown: VecDeque::new(),
            early: Vec::new(),
            blocks: BLOCKS,
            reign: 1,
            mistake,
            deleted: 0,
        };
        for number in 1..=BLOCKS {
            scene.write(number);
        }
        scene
    }

    fn write(&mut self, number: i64) {
        let nodes: Vec<usize> = (0..3).map(|at| (number as usize + at) % NODES).collect();
        let id = block(number);
        self.world.blocks.0.insert(id, replicated(3, 100, BlockState::Complete));
        for node in nodes {
            let block = self.world.good(id, 0);
            self.disks[node].insert(id);
            self.tell(node, block, ReplicaEventKind::Received { delete_hint: None });
        }
    }

    fn draw(&mut self, below: u64) -> usize {
        ((self.world.dice)() % below) as usize
    }

    /// A node tells who leads now, and the other member when that comes there.
    fn tell(&mut self, node: usize, block: BlockRef, kind: ReplicaEventKind) {
        let event = ReplicaEvent { block, kind, crc32c: None };
        self.world.event(node, event.clone());
        self.on_the_way[node].push_back(Message::Event(event));
    }

    /// What was told longest ago comes to the member that follows, which keeps it whatever it knows.
    fn arrive(&mut self, node: usize) {
        let (claim, uuid) = (registration(node, 0), storage_uuid(node));
        match self.on_the_way[node].pop_front() {
            Some(Message::Event(event)) => {
                if self.is_early(node, &event) {
                    return;
                }
                self.keep(node, event);
            }
            Some(Message::All(mut replicas)) => {
                replicas.retain(|replica| {
                    let kind = ReplicaEventKind::Received { delete_hint: None };
                    let event = ReplicaEvent { block: replica.block, kind, crc32c: None };
                    !self.is_early(node, &event)
                });
                let list = vec![(uuid, StorageType::Disk, replicas)];
                let now = self.world.now;
                self.standby.full_report(&claim.claim(), (0, true), list, now).unwrap();
            }
            None => {}
        }
    }

    fn keep(&mut self, node: usize, event: ReplicaEvent) {
        let (claim, uuid) = (registration(node, 0), storage_uuid(node));
        let storage = (uuid.as_str(), StorageType::Disk);
        self.standby.incremental_report(&claim.claim(), storage, &[event]).unwrap();
    }

    /// Whether what was told is not kept, by a mistake.
    fn is_early(&mut self, node: usize, event: &ReplicaEvent) -> bool {
        if !self.unknown.contains(&event.block.id) {
            return false;
        }
        if self.mistake == Some(Mistake::SnapshotNotJudged) {
            self.early.push((node, event.clone()));
        }
        let mistakes = [Mistake::EarlyReportsDropped, Mistake::SnapshotNotJudged];
        self.mistake.is_some_and(|mistake| mistakes.contains(&mistake))
    }

    /// An entry comes to the member that follows.
    fn follow(&mut self) {
        let Some(id) = self.unknown.pop_front() else { return };
        let (due, early) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|(_, event)| event.block.id == id);
        self.early = early;
        let due: Vec<(usize, ReplicaEvent)> = due;
        due.into_iter().for_each(|(node, event)| self.keep(node, event));
    }

    /// A snapshot comes there, in the place of all entries.
    fn install(&mut self) {
        self.unknown.clear();
        self.early.clear();
    }

    fn replica(&self, id: &BlockId) -> ReportedReplica {
        let (block, state) = (self.world.good(*id, 0), ReplicaState::Finalized);
        ReportedReplica { block, state, crc32c: None }
    }

    fn all_of(&self, node: usize) -> Vec<ReportedReplica> {
        self.disks[node].iter().map(|id| self.replica(id)).collect()
    }

    /// A heartbeat, with whatever is ordered by it.
    fn beat(&mut self, node: usize, wants_report_lease: bool) {
        let heartbeat = Heartbeat { wants_report_lease, ..heartbeat_of(node, 50 * GIB) };
        let answer = self.world.beat(&format!("uuid-{node}"), heartbeat);
        for command in answer.commands {
            match command {
                Command::Invalidate(blocks) => {
                    let orders = blocks.into_iter().map(|block| (self.reign, block));
                    self.orders[node].extend(orders);
                }
                Command::Register => {
                    self.world.register(registration(node, 0));
                }
                _ => {}
            }
        }
        if let Some(lease) = answer.report_lease {
            // Whoever reports to a new leader has dropped what an earlier one has ordered.
            if self.mistake != Some(Mistake::OrdersOutliveLeaders) {
                let reign = self.reign;
                self.orders[node].retain(|(of, _)| *of == reign);
            }
            self.report(node, lease);
        }
    }

    fn report(&mut self, node: usize, lease: u64) {
        let handle = self.world.handle(node);
        let call = self.world.cluster.begin_report_call(handle, lease, self.world.now).unwrap();
        self.take(node, call, &self.all_of(node));
    }

    fn take(&mut self, node: usize, call: ReportCall, replicas: &[ReportedReplica]) {
        let uuid = storage_uuid(node);
        let (storage, now) = ((uuid.as_str(), StorageType::Disk), self.world.now);
        self.world.cluster.full_report(&self.world.blocks, call, storage, replicas, now);
    }

    /// A node carries an order out.
    fn obey(&mut self, node: usize) -> Result<(), String> {
        let Some((_, block)) = self.orders[node].pop_front() else { return Ok(()) };
        if !self.disks[node].remove(&block.id) {
            return Ok(());
        }
        self.deleted += 1;
        if self.disks.iter().all(|disk| !disk.contains(&block.id)) {
            return Err(format!("{block:?} is gone, the last one on {node}"));
        }
        self.tell(node, block, ReplicaEventKind::Deleted);
        Ok(())
    }

    /// Whoever followed leads from now on, with what it has kept.
    fn fail_over(&mut self) -> Result<(), String> {
        self.reign += 1;
        // It has all that was agreed on before it leads.
        while !self.unknown.is_empty() {
            self.follow();
        }
        self.world.cluster = Cluster::new(config());
        if self.mistake != Some(Mistake::AnyLeaseProves) {
            self.world.cluster.begin_to_lead(self.reign << 32);
        }
        self.world.cluster.start_safe_mode(self.blocks as u64, self.world.now);
        let empty = Standby::new(&config());
        let kept = std::mem::replace(&mut self.standby, empty).hand_over(self.world.now, u64::MAX);
        for (registration, heartbeat) in kept.nodes() {
            self.world.register(registration.clone());
            self.standby.register(registration.clone(), self.world.now);
            self.world.beat(&registration.uuid, heartbeat.cloned().unwrap_or_default());
        }
        self.world.cluster.take_over(kept, true);
        if self.mistake == Some(Mistake::CountsAtOnce) {
            self.count_at_once();
        }
        // What was on its way comes to who leads now, and to nobody else: the member that follows it has begun anew.
        for node in 0..NODES {
            for message in std::mem::take(&mut self.on_the_way[node]) {
                match message {
                    Message::Event(event) => _ = self.world.event(node, event),
                    Message::All(replicas) => {
                        let (handle, now) = (self.world.handle(node), self.world.now);
                        let call = self.world.cluster.begin_report_call(handle, 0, now).unwrap();
                        self.take(node, call, &replicas);
                    }
                }
            }
            let all = self.all_of(node);
            self.on_the_way[node].push_back(Message::All(all));
        }
        Ok(())
    }

    /// All that was kept counts as if it were reported now.
    fn count_at_once(&mut self) {
        while self.take_over_step() {}
        self.world.cluster.begin_to_lead(0);
        for node in 0..NODES {
            let ids = (1..=self.blocks).map(block);
            let here: Vec<BlockId> =
                ids.filter(|id| self.world.places(*id).contains(&(node, 0))).collect();
            let (handle, now) = (self.world.handle(node), self.world.now);
            let call = self.world.cluster.begin_report_call(handle, 0, now).unwrap();
            let replicas: Vec<ReportedReplica> = here.iter().map(|id| self.replica(id)).collect();
            self.take(node, call, &replicas);
        }
    }

    /// Who leads takes more over of what was kept; whether there was more.
    fn take_over_step(&mut self) -> bool {
        let (blocks, cluster) = (&self.world.blocks, &mut self.world.cluster);
        match (self.mistake, &mut cluster.pending) {
            (Some(Mistake::RestForgotten), Some(_)) => _ = cluster.end_taking_over(self.world.now),
            (Some(Mistake::SettledTwice), Some(pending)) => pending.unsettle(),
            _ => {}
        }
        if cluster.take_over_step(blocks, &mut Changes::default()) {
            return true;
        }
        cluster.end_taking_over(self.world.now);
        false
    }

    /// Somebody reads a block, or looks at all that who leads knows.
    fn look(&mut self) -> Result<(), String> {
        let id = block(1 + self.draw(self.blocks as u64) as i64);
        self.world.cluster.settle(&self.world.blocks, &[id]);
        let known = self.world.cluster.blocks.of(id).map(|place| self.world.number(place.storage));
        let known: BTreeSet<usize> = known.collect();
        let is_there = |node: &usize| self.disks[*node].contains(&id);
        let there: BTreeSet<usize> = (0..NODES).filter(is_there).collect();
        match known == there {
            true => Ok(()),
            false => Err(format!("{id} is on {there:?}, and known to be on {known:?}")),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let node = self.draw(NODES as u64);
        match self.draw(120) {
            0..=39 => self.arrive(node),
            40..=59 => self.obey(node)?,
            60..=74 => self.beat(node, false),
            75..=79 => self.beat(node, true),
            80..=89 => {
                self.world.now = at(self.world.now.mono_ms + 3000);
                self.world.cluster.tick(&self.world.blocks, self.world.now, &mut *self.world.dice);
            }
            90 => {
                self.blocks += 1;
                self.unknown.push_back(block(self.blocks));
                self.write(self.blocks);
            }
            91 => self.follow(),
            92 if self.draw(4) == 0 => self.install(),
            92..=94 => {
                let all = self.all_of(node);
                self.on_the_way[node].push_back(Message::All(all));
            }
            95..=97 => {
                let id = block(1 + self.draw(BLOCKS as u64) as i64);
                let copies = 1 + self.draw(2) as u16;
                let facts = replicated(copies, 100, BlockState::Complete);
                self.world.blocks.0.insert(id, facts);
                self.world.cluster.block_changed(&self.world.blocks, id);
            }
            98..=99 => self.fail_over()?,
            100..=109 => _ = self.take_over_step(),
            _ => self.look()?,
        }
        Ok(())
    }
}

fn run(seed: u64, mistake: Option<Mistake>) -> Result<Scene, String> {
    let mut scene = Scene::new(seed, mistake);
    for _ in 0..1800 {
        scene.step()?;
    }
    Ok(scene)
}

#[test]
fn the_last_replica_outlives_all_leaders() {
    let (mut deleted, mut reigns) = (0, 0);
    for seed in 0..SEEDS {
        let scene = run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        deleted += scene.deleted as u64;
        reigns += scene.reign;
    }
    assert!(deleted > 5 * SEEDS && reigns > 10 * SEEDS, "{deleted} {reigns}");
}

fn is_found(mistake: Mistake) {
    let found = (0..10 * SEEDS).find(|seed| run(*seed, Some(mistake)).is_err());
    assert!(found.is_some(), "nobody has noticed {mistake:?}");
}

#[test]
fn surplus_that_is_deleted_before_reports_is_found() {
    is_found(Mistake::CountsAtOnce);
}

#[test]
fn a_report_from_before_that_counts_as_a_proof_is_found() {
    is_found(Mistake::AnyLeaseProves);
}

#[test]
fn an_order_of_a_stale_leader_that_is_obeyed_is_found() {
    is_found(Mistake::OrdersOutliveLeaders);
}

#[test]
fn a_report_that_is_dropped_as_it_was_faster_than_its_entry_is_found() {
    is_found(Mistake::EarlyReportsDropped);
}

#[test]
fn a_snapshot_that_leaves_what_was_told_before_without_a_judgement_is_found() {
    is_found(Mistake::SnapshotNotJudged);
}

#[test]
fn what_is_not_taken_over_yet_and_taken_for_lost_is_found() {
    is_found(Mistake::RestForgotten);
}

#[test]
fn what_was_settled_and_is_taken_over_again_is_found() {
    is_found(Mistake::SettledTwice);
}
