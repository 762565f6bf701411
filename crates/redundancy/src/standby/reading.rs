//! Readers at a member that follows, by seeds: blocks are written, opened anew, moved and deleted, and what DataNodes tell of that
//! comes before and after the entries that it is about. Whoever has seen a state is answered by that one or a later one, with
//! all places of a block that are good in it, and with none that the member was told is gone; and what happens with known
//! mistakes put back.

use super::*;
use crate::block::BlockState;
use crate::fixture::{GIB, at, block, dice, heartbeat_of, registration, replicated, storage_uuid};
use cairn_stripe::GenerationStamp;
use std::collections::VecDeque;

const NODES: usize = 4;
const BLOCKS: u64 = 6;
const SEEDS: u64 = 40;
const STEPS: usize = 600;

/// What a member that follows does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// It does not heed that a replica was deleted.
    DeletionsNotHeeded,
    /// A full report adds to what was known, and takes nothing away.
    ReportsOnlyAdd,
    /// It answers by what it has, whatever the reader has seen.
    ReaderNotWaitedFor,
    /// Names are of the state that is read, and which replicas are good is of an earlier one.
    PlacesByOlderState,
}

/// Blocks of a state, with their stamps; or replicas on a disk.
type Stamps = BTreeMap<BlockId, u64>;

/// What a DataNode tells.
#[derive(Debug)]
enum Told {
    Event(ReplicaEvent),
    All,
    /// It has been started again.
    Registers,
}

struct Scene {
    dice: Box<dyn FnMut() -> u64>,
    standby: Standby,
    /// What each entry leaves; the first one begins with nothing.
    states: Vec<Stamps>,
    /// The last entry that the member has, and the last one that a reader has seen.
    applied: usize,
    seen: usize,
    disks: Vec<Stamps>,
    /// What is told, with what the disk had then.
    on_the_way: Vec<VecDeque<(Told, Stamps)>>,
    /// What the disks had by the last that has come.
    heard: Vec<Stamps>,
    mistake: Option<Mistake>,
    places_told: usize,
}

fn replica(id: BlockId, gs: u64) -> ReportedReplica {
    let block = BlockRef { id, gs: GenerationStamp(gs), len: 100 };
    ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None }
}

impl Scene {
    fn new(seed: u64, mistake: Option<Mistake>) -> Scene {
        let mut standby = Standby::new(&Config::default());
        for node in 0..NODES {
            standby.register(registration(node, 0), at(0));
            let (node, heartbeat) = (registration(node, 0), heartbeat_of(node, 50 * GIB));
            standby.heartbeat(&node.claim(), heartbeat, at(0));
        }
        Scene {
            dice: Box::new(dice(seed)),
            standby,
            states: vec![Stamps::new()],
            applied: 0,
            seen: 0,
            disks: vec![Stamps::new(); NODES],
            on_the_way: (0..NODES).map(|_| VecDeque::new()).collect(),
            heard: vec![Stamps::new(); NODES],
            mistake,
            places_told: 0,
        }
    }

    fn draw(&mut self, below: u64) -> usize {
        ((self.dice)() % below) as usize
    }

    fn tell(&mut self, node: usize, told: Told) {
        let disk = self.disks[node].clone();
        self.on_the_way[node].push_back((told, disk));
    }

    fn tell_of(&mut self, node: usize, id: BlockId, gs: u64, kind: ReplicaEventKind) {
        let (block, crc32c) = (replica(id, gs).block, None);
        self.tell(node, Told::Event(ReplicaEvent { block, kind, crc32c }));
    }

    fn store(&mut self, node: usize, id: BlockId, gs: u64) {
        self.disks[node].insert(id, gs);
        self.tell_of(node, id, gs, ReplicaEventKind::Received { delete_hint: None });
    }

    fn delete(&mut self, node: usize, id: BlockId) {
        if let Some(gs) = self.disks[node].remove(&id) {
            self.tell_of(node, id, gs, ReplicaEventKind::Deleted);
        }
    }

    /// An entry that is agreed on: a block is written, opened anew and closed, or deleted.
    fn change(&mut self, id: BlockId) {
        let mut state = self.states.last().cloned().unwrap_or_default();
        let stamp = 1000 + self.states.len() as u64;
        match state.get(&id) {
            None => {
                state.insert(id, stamp);
                let first = self.draw(NODES as u64);
                (0..2).for_each(|at| self.store((first + at) % NODES, id, stamp));
            }
            Some(_) if self.draw(3) == 0 => {
                state.remove(&id);
            }
            Some(old) => {
                let holds = |node: &usize| self.disks[*node].get(&id) == Some(old);
                let holders: Vec<usize> = (0..NODES).filter(holds).collect();
                state.insert(id, stamp);
                holders.into_iter().for_each(|node| self.store(node, id, stamp));
            }
        }
        self.states.push(state);
    }

    /// What was told longest ago comes to the member.
    fn arrive(&mut self, node: usize) {
        let Some((told, disk)) = self.on_the_way[node].pop_front() else { return };
        let (registration, uuid) = (registration(node, 0), storage_uuid(node));
        let claim = registration.claim();
        match told {
            Told::Event(event) => {
                let is_missed = self.mistake == Some(Mistake::DeletionsNotHeeded)
                    && event.kind == ReplicaEventKind::Deleted;
                if !is_missed {
                    let storage = (uuid.as_str(), StorageType::Disk);
                    self.standby.incremental_report(&claim, storage, &[event]).unwrap();
                }
            }
            Told::All => {
                let mut all = disk.clone();
                if self.mistake == Some(Mistake::ReportsOnlyAdd) {
                    let known = std::mem::take(&mut self.heard[node]);
                    known.into_iter().for_each(|(id, gs)| _ = all.entry(id).or_insert(gs));
                }
                let replicas = all.iter().map(|(id, gs)| replica(*id, *gs)).collect();
                let list = vec![(uuid, StorageType::Disk, replicas)];
                self.standby.full_report(&claim, (0, true), list, at(0)).unwrap();
            }
            Told::Registers => {
                self.standby.register(registration, at(0));
                // What it has lost meanwhile it says with its report.
                return;
            }
        }
        self.heard[node] = disk;
    }

    /// Somebody who has seen the entry `seen` reads where a block is.
    fn read(&mut self, id: BlockId) -> Result<(), String> {
        let waits = self.applied < self.seen;
        if waits && self.mistake != Some(Mistake::ReaderNotWaitedFor) {
            return Ok(());
        }
        let stamp = self.states[self.applied].get(&id).copied();
        let may_be = |state: &Stamps| state.get(&id).copied() == stamp;
        if !self.states[self.seen..].iter().any(may_be) {
            return Err(format!("{id} with {stamp:?} is older than {}", self.seen));
        }
        let Some(stamp) = stamp else { return Ok(()) };
        let by = match self.mistake {
            Some(Mistake::PlacesByOlderState) => {
                self.states[self.applied.saturating_sub(1)].get(&id)
            }
            _ => None,
        };
        let gs = GenerationStamp(by.copied().unwrap_or(stamp));
        let facts = BlockFacts { gs, ..replicated(2, 100, BlockState::Complete) };
        let places = self.standby.good_places(id, &facts).map(|place| place.node.to_string());
        let mut found: Vec<String> = places.collect();
        found.sort();
        let is_there = |node: &usize| self.heard[*node].get(&id) == Some(&stamp);
        let wanted: Vec<String> =
            (0..NODES).filter(is_there).map(|node| registration(node, 0).uuid).collect();
        self.places_told += found.len();
        match found == wanted {
            true => Ok(()),
            false => Err(format!("{id} with {stamp} is on {wanted:?} and not on {found:?}")),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let (node, id) = (self.draw(NODES as u64), block(1 + self.draw(BLOCKS) as i64));
        match self.draw(100) {
            0..25 => self.arrive(node),
            25..40 => self.applied = (self.applied + 1).min(self.states.len() - 1),
            40..50 => self.change(id),
            50..55 => self.delete(node, id),
            55..60 => {
                // A copy of what another one has.
                let state = self.states.last().and_then(|state| state.get(&id).copied());
                let has = |disk: &Stamps| disk.get(&id).copied() == state;
                if let Some(gs) = state.filter(|_| self.disks.iter().any(has)) {
                    self.store(node, id, gs);
                }
            }
            60..63 => {
                // It loses a replica while it is away.
                self.tell(node, Told::Registers);
                self.disks[node].remove(&id);
                self.tell(node, Told::All);
            }
            63..66 => self.tell(node, Told::All),
            66..70 => {
                // What the reader does itself, or asks the leader for.
                let unseen = (self.states.len() - self.seen) as u64;
                self.seen += self.draw(unseen);
            }
            _ => self.read(id)?,
        }
        Ok(())
    }
}

fn run(seed: u64, mistake: Option<Mistake>) -> Result<Scene, String> {
    let mut scene = Scene::new(seed, mistake);
    for _ in 0..STEPS {
        scene.step()?;
    }
    Ok(scene)
}

#[test]
fn readers_get_what_they_have_seen_and_no_place_that_is_known_to_be_gone() {
    let mut places = 0;
    for seed in 0..SEEDS {
        let scene = run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        places += scene.places_told as u64;
    }
    assert!(places > 20 * SEEDS, "{places}");
}

fn is_found(mistake: Mistake) {
    let found = (0..10 * SEEDS).find(|seed| run(*seed, Some(mistake)).is_err());
    assert!(found.is_some(), "nobody has noticed {mistake:?}");
}

#[test]
fn a_place_that_is_told_though_its_deletion_was_is_found() {
    is_found(Mistake::DeletionsNotHeeded);
}

#[test]
fn a_place_that_is_told_though_its_node_has_not_listed_it_is_found() {
    is_found(Mistake::ReportsOnlyAdd);
}

#[test]
fn an_answer_by_less_than_its_reader_has_seen_is_found() {
    is_found(Mistake::ReaderNotWaitedFor);
}

#[test]
fn places_by_an_older_state_than_names_are_found() {
    is_found(Mistake::PlacesByOlderState);
}
