//! Reports against a naive model, and the rules for replicas that differ.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

/// What the model knows: node -> what is on its disk.
type Disks = Vec<BTreeMap<BlockId, BlockRef>>;

struct Model {
    world: World,
    disks: Disks,
}

impl Model {
    fn new() -> Model {
        Model { world: World::new(6, 3), disks: vec![BTreeMap::new(); 6] }
    }

    /// Where good replicas and units are: those on a disk as the namespace wants them.
    fn good(&self) -> BTreeSet<(BlockId, usize, u8)> {
        let mut good = BTreeSet::new();
        for (node, disk) in self.disks.iter().enumerate() {
            for block in disk.values() {
                let id = block.id.group();
                let Some(facts) = self.world.blocks.0.get(&id) else { continue };
                let unit = block.id.unit();
                let in_group = !id.is_striped() || unit.as_usize() < facts.layout.width();
                if in_group && block.gs == facts.gs && block.len == facts.unit_len(unit) {
                    good.insert((id, node, unit.0));
                }
            }
        }
        good
    }

    fn known(&self) -> BTreeSet<(BlockId, usize, u8)> {
        let mut known = BTreeSet::new();
        for id in self.world.blocks.0.keys() {
            for location in self.world.cluster.locations(*id) {
                if !location.corrupt {
                    known.insert((*id, self.world.number(location.storage), location.unit.0));
                }
            }
        }
        known
    }

    fn report_all(&mut self) {
        for node in 0..self.disks.len() {
            let replicas: Vec<ReportedReplica> = self.disks[node]
                .values()
                .map(|block| {
                    let state = ReplicaState::Finalized;
                    ReportedReplica { block: *block, state, crc32c: None }
                })
                .collect();
            self.world.full_report(node, &replicas);
        }
    }

    /// Does what heartbeats tell nodes to delete, with or without telling that it is done.
    fn obey(&mut self, tell: bool) {
        for (node, commands) in self.world.run(3000, &[]) {
            for command in commands {
                let Command::Invalidate(blocks) = command else { continue };
                for block in blocks {
                    let disk = &mut self.disks[node];
                    if disk.get(&block.id).is_some_and(|on_disk| on_disk.gs == block.gs) {
                        let on_disk = disk.remove(&block.id).unwrap();
                        if tell {
                            self.world.deleted(node, on_disk);
                        }
                    }
                }
            }
        }
    }

    fn step(&mut self, dice: &mut dyn FnMut() -> u64) {
        let node = dice() as usize % 6;
        let id = if dice().is_multiple_of(2) {
            block(1 + (dice() % 5) as i64)
        } else {
            group(1 + (dice() % 5) as i64)
        };
        match dice() % 10 {
            0 => {
                let facts = if id.is_striped() {
                    rs(3, 2, 1 + dice() % 9000, BlockState::Complete)
                } else {
                    replicated(3, dice() % 100, BlockState::Complete)
                };
                self.world.blocks.0.entry(id).or_insert(facts);
            }
            1 => {
                if let Some(facts) = self.world.blocks.0.remove(&id) {
                    self.world.cluster.block_removed(id, facts.gs);
                }
            }
            2..=6 => {
                let Some(facts) = self.world.blocks.0.get(&id) else { return };
                let unit = UnitIndex((dice() % 6) as u8);
                let own = if id.is_striped() { id.internal(unit) } else { id };
                let in_group = unit.as_usize() < 5;
                let len = if in_group { facts.unit_len(own.unit()) } else { 1 };
                let stale = dice().is_multiple_of(5);
                let gs = GenerationStamp(if stale { 1000 } else { 1001 });
                let len = if dice().is_multiple_of(7) { len + 1 } else { len };
                let block = BlockRef { id: own, gs, len };
                self.disks[node].insert(own, block);
                self.world.received(node, block);
            }
            7 => {
                if let Some((_, block)) = self.disks[node].pop_first() {
                    self.world.deleted(node, block);
                }
            }
            8 => {
                // A disk loses something silently: only a full report tells.
                self.disks[node].pop_last();
            }
            _ => self.obey(dice().is_multiple_of(2)),
        }
    }
}

#[test]
fn after_full_reports_everything_known_is_true() {
    for seed in 0..150 {
        let mut model = Model::new();
        let mut dice = dice(seed);
        for _ in 0..300 {
            model.step(&mut dice);
        }
        model.report_all();
        // Surplus ones are left out of what readers get, so known may be less than good.
        let (known, good) = (model.known(), model.good());
        assert!(known.is_subset(&good), "seed {seed}: {:?}", known.difference(&good));
        // And what is left of the unwanted is deleted in the end, the good never below its number.
        for _ in 0..4 {
            model.obey(true);
            model.report_all();
        }
        let good = model.good();
        assert_eq!(model.known(), good, "seed {seed}");
        for (node, disk) in model.disks.iter().enumerate() {
            for block in disk.values() {
                let wanted = model.world.blocks.0.contains_key(&block.id.group());
                assert!(wanted, "seed {seed}: node {node} still has {block:?}");
            }
        }
    }
}

#[test]
fn good_replicas_are_never_deleted_below_their_number() {
    for seed in 0..150 {
        let mut model = Model::new();
        let mut dice = dice(1000 + seed);
        for _ in 0..200 {
            let before = model.good();
            let is_quiet = {
                let blocks = model.world.blocks.0.clone();
                model.obey(dice().is_multiple_of(2));
                blocks == model.world.blocks.0
            };
            assert!(is_quiet);
            let after = model.good();
            for (id, facts) in &model.world.blocks.0 {
                let units = |good: &BTreeSet<(BlockId, usize, u8)>| {
                    let of_block = good.iter().filter(|(block, _, _)| block == id);
                    if facts.layout.is_striped() {
                        of_block.map(|(_, _, unit)| *unit as usize).collect::<BTreeSet<_>>().len()
                    } else {
                        of_block.count().min(facts.expected_units())
                    }
                };
                let (had, has) = (units(&before), units(&after));
                assert!(has >= had, "seed {seed}: {id} had {had} and has {has}");
            }
            // No silent losses here: those are not the deletions' fault.
            let draw = dice();
            if draw % 10 != 8 {
                model.step(&mut dice);
            }
            model.report_all();
        }
    }
}

fn only(world: &World, id: BlockId) -> (usize, bool) {
    let locations = world.cluster.locations(id);
    assert_eq!(locations.len(), 1, "{locations:?}");
    (world.number(locations[0].storage), locations[0].corrupt)
}

fn report_state(world: &mut World, node: usize, block: BlockRef, state: ReplicaState) {
    world.full_report(node, &[ReportedReplica { block, state, crc32c: None }]);
}

#[test]
fn states_are_judged_as_hadoop_judges_them() {
    use BlockState::{Committed, Complete, UnderConstruction};
    use ReplicaState::{BeingWritten, Finalized, UnderRecovery, WaitingToBeRecovered};
    // state of the block, of the replica, its stamp and length; known as: no, good or bad
    let cases = [
        (Complete, Finalized, 1001, 100, Some(false)),
        (Complete, Finalized, 1000, 100, Some(true)),
        (Complete, Finalized, 1002, 100, Some(true)),
        (Complete, Finalized, 1001, 99, Some(true)),
        (Complete, BeingWritten, 1001, 50, None),
        (Complete, BeingWritten, 1000, 50, Some(true)),
        (Complete, WaitingToBeRecovered, 1001, 50, Some(true)),
        (Committed, Finalized, 1001, 99, Some(true)),
        (Committed, Finalized, 1001, 100, Some(false)),
        (Committed, WaitingToBeRecovered, 1001, 50, None),
        (UnderConstruction, Finalized, 1001, 5, Some(false)),
        (UnderConstruction, Finalized, 1002, 5, Some(false)),
        (UnderConstruction, Finalized, 1000, 5, Some(true)),
        (UnderConstruction, BeingWritten, 1001, 5, None),
        (UnderConstruction, BeingWritten, 1000, 5, Some(true)),
        (UnderConstruction, UnderRecovery, 1001, 5, None),
    ];
    for (block_state, state, gs, len, want) in cases {
        let mut world = World::new(2, 1);
        let id = block(1);
        world.blocks.0.insert(id, replicated(2, 100, block_state));
        let reported = BlockRef { id, gs: GenerationStamp(gs), len };
        report_state(&mut world, 0, reported, state);
        let got = world.cluster.locations(id).first().map(|location| location.corrupt);
        assert_eq!(got, want, "{block_state:?} {state:?} {gs} {len}");
    }
}

#[test]
fn a_replica_that_gets_the_right_stamp_is_good_again() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.blocks.0.insert(id, replicated(1, 100, BlockState::Complete));
    let good = world.good(id, 0);
    world.received(0, BlockRef { gs: GenerationStamp(1000), ..good });
    assert_eq!(only(&world, id), (0, true));
    world.received(0, good);
    assert_eq!(only(&world, id), (0, false));
}

/// Found by simulation: a report of the old stamp came late, from a node whose writer broke under the new
/// one. Its replica was to be deleted with a stamp that it had no more, for ever.
#[test]
fn a_mark_for_an_old_stamp_goes_when_the_replica_is_open_with_the_right_one() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.store(id, replicated(1, 100, BlockState::Complete), &[0]);
    let open = world.good(id, 0);
    let kind = ReplicaEventKind::Receiving;
    let old = BlockRef { gs: GenerationStamp(1000), len: 0, ..open };
    world.event(1, ReplicaEvent { block: old, kind, crc32c: None });
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).excess, 0);
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).corrupt, 1);
    report_state(&mut world, 1, open, ReplicaState::BeingWritten);
    assert_eq!(only(&world, id), (0, false));
    assert_eq!(world.cluster.tally(id, &world.blocks.0[&id]).corrupt, 0);
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.excess, stats.replicated.pending_deletion), (0, 0));
}

#[test]
fn units_that_a_policy_does_not_have_are_unwanted() {
    let mut world = World::new(2, 1);
    let id = group(1);
    world.blocks.0.insert(id, rs(3, 2, 30_000, BlockState::Complete));
    let odd = BlockRef { id: id.internal(UnitIndex(5)), gs: GenerationStamp(1001), len: 10 };
    world.received(0, odd);
    assert_eq!(world.places(id), []);
    assert_eq!(world.run(3000, &[])[&0], [Command::Invalidate(vec![odd])]);
}

#[test]
fn a_committed_block_is_ready_when_enough_units_are_there() {
    let mut world = World::new(5, 2);
    let id = group(1);
    let targets: Vec<_> = (0..5).map(|node| Some(world.storage(node))).collect();
    world.blocks.0.insert(id, rs(3, 2, 0, BlockState::UnderConstruction));
    world.cluster.block_allocated(id, GenerationStamp(1001), &targets);
    assert_eq!(world.cluster.pipeline(id).len(), 5);

    let facts = rs(3, 2, 9000, BlockState::Committed);
    let unit = |unit: u8| BlockRef {
        id: id.internal(UnitIndex(unit)),
        gs: facts.gs,
        len: facts.unit_len(UnitIndex(unit)),
    };
    assert!(world.received_with_crc(0, unit(0), Some(10)).is_empty());
    assert!(world.received_with_crc(4, unit(4), Some(14)).is_empty());
    // A unit that stopped early does not count once the length is known.
    let short = BlockRef { len: 5, ..unit(1) };
    world.received_with_crc(1, short, Some(11));
    assert!(!world.cluster.min_reached(id, &facts));
    world.blocks.0.insert(id, facts);
    let changes = world.received_with_crc(2, unit(2), Some(12));
    assert_eq!(changes.ready, [id]);
    assert!(world.cluster.min_reached(id, &facts));
    let crcs = world.cluster.unit_crcs(id, &facts);
    assert_eq!(crcs, [Some(10), None, Some(12), None, Some(14)]);

    // The command that completes it has seen unit 0 only; the others came while it was on its way.
    world.blocks.1.insert((id, UnitIndex(0)), 10);
    world.blocks.0.insert(id, BlockFacts { state: BlockState::Complete, ..facts });
    let late = world.cluster.block_completed(&world.blocks, id);
    let late: Vec<(u8, u32)> = late.iter().map(|late| (late.unit.0, late.crc32c)).collect();
    assert_eq!(late, [(2, 12), (4, 14)]);
    let corrupt: Vec<usize> = world
        .cluster
        .locations(id)
        .iter()
        .filter(|l| l.corrupt)
        .map(|l| world.number(l.storage))
        .collect();
    assert_eq!(corrupt, [1], "the short one");
    let changes = world.received_with_crc(3, unit(3), Some(13));
    let late = LateCrc { id, gs: facts.gs, unit: UnitIndex(3), crc32c: 13 };
    assert_eq!(changes.late_crcs, [late]);
}

#[test]
fn a_broken_pipeline_leaves_its_old_replicas_behind() {
    let mut world = World::new(4, 2);
    let id = block(1);
    let targets = |world: &World, nodes: &[usize]| {
        nodes.iter().map(|node| Some(world.storage(*node))).collect::<Vec<_>>()
    };
    world.blocks.0.insert(id, replicated(3, 0, BlockState::UnderConstruction));
    let first = targets(&world, &[0, 1, 2]);
    world.cluster.block_allocated(id, GenerationStamp(1001), &first);
    let second = targets(&world, &[1, 2, 3]);
    let gs = GenerationStamp(1002);
    let open = BlockFacts { gs, ..replicated(3, 0, BlockState::UnderConstruction) };
    world.blocks.0.insert(id, open);
    world.cluster.pipeline_updated(id, gs, &second);
    let mut nodes: Vec<usize> =
        world.cluster.pipeline(id).iter().map(|(storage, _)| world.number(*storage)).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [1, 2, 3]);
    let old = BlockRef { id, gs: GenerationStamp(1001), len: 60 };
    world.received(0, old);
    let facts = BlockFacts { gs, ..replicated(3, 100, BlockState::Complete) };
    let new = BlockRef { id, gs, len: 100 };
    for node in [1, 2, 3] {
        world.received(node, new);
    }
    world.blocks.0.insert(id, facts);
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(world.run(3000, &[])[&0], [Command::Invalidate(vec![old])]);
    assert_eq!(world.places(id), [(1, 0), (2, 0), (3, 0)]);
}

#[test]
fn a_report_between_the_log_and_the_settling_counts() {
    let mut world = World::new(2, 1);
    let id = block(1);
    world.blocks.0.insert(id, replicated(1, 0, BlockState::UnderConstruction));
    world.received(0, BlockRef { id, gs: GenerationStamp(1001), len: 7 });
    let facts = BlockFacts { gs: GenerationStamp(1002), ..replicated(1, 9, BlockState::Complete) };
    world.blocks.0.insert(id, facts);
    world.received(0, BlockRef { id, gs: facts.gs, len: 9 });
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(only(&world, id), (0, false));
}

#[test]
fn a_reopened_block_forgets_replicas_that_miss_the_append() {
    let mut world = World::new(3, 1);
    let id = block(1);
    let before = replicated(3, 100, BlockState::Complete);
    world.store(id, before, &[0, 1, 2]);
    world.blocks.0.insert(id, BlockFacts { state: BlockState::UnderConstruction, ..before });
    world.cluster.block_reopened(id, &before);
    assert_eq!(world.cluster.pipeline(id).len(), 3);
    let facts = BlockFacts { gs: GenerationStamp(1002), len: 150, ..before };
    let targets = [Some(world.storage(0)), Some(world.storage(1))];
    world.cluster.pipeline_updated(id, facts.gs, &targets);
    world.blocks.0.insert(id, BlockFacts { state: BlockState::UnderConstruction, ..facts });
    let new = BlockRef { id, gs: facts.gs, len: 150 };
    assert_eq!(world.cluster.good_units(id, &facts), 0, "nobody has the new bytes yet");
    world.received(0, new);
    world.received(1, new);
    assert_eq!(world.cluster.good_units(id, &facts), 2);
    world.blocks.0.insert(id, facts);
    world.cluster.block_completed(&world.blocks, id);
    let bad: Vec<(usize, bool)> = world
        .cluster
        .locations(id)
        .iter()
        .map(|l| (world.number(l.storage), l.corrupt))
        .filter(|(_, corrupt)| *corrupt)
        .collect();
    assert!(bad.is_empty() || bad == [(2, true)], "{bad:?}");
    assert_eq!(world.cluster.tally(id, &facts).live, 2);
}

/// Its node has told that it was opened for the append, and its report that it is finalized is late.
#[test]
fn an_appended_replica_neither_counts_nor_goes_before_its_node_says_that_it_is_finalized() {
    let mut world = World::new(3, 1);
    let id = block(1);
    let before = replicated(1, 100, BlockState::Complete);
    world.store(id, before, &[0]);
    let open = BlockFacts { state: BlockState::UnderConstruction, ..before };
    world.blocks.0.insert(id, open);
    world.cluster.block_reopened(id, &before);
    let facts = BlockFacts { gs: GenerationStamp(1002), len: 150, ..before };
    let targets = [Some(world.storage(0)), Some(world.storage(1))];
    world.cluster.pipeline_updated(id, facts.gs, &targets);
    world.blocks.0.insert(id, BlockFacts { state: BlockState::UnderConstruction, ..facts });
    let whole = BlockRef { id, gs: facts.gs, len: 150 };
    for len in [150, 120] {
        let (block, kind) = (BlockRef { len, ..whole }, ReplicaEventKind::Receiving);
        world.event(0, ReplicaEvent { block, kind, crc32c: None });
        assert_eq!(world.cluster.good_units(id, &facts), 0, "{len}");
    }
    world.received(1, whole);
    world.blocks.0.insert(id, facts);
    world.cluster.block_completed(&world.blocks, id);
    assert_eq!(world.places(id), [(1, 0)]);
    let told = world.run(9000, &[]);
    let deletions = told.values().flatten().filter(|c| matches!(c, Command::Invalidate(_)));
    assert_eq!(deletions.count(), 0);
    world.received(0, whole);
    assert_eq!(world.cluster.tally(id, &facts).corrupt, 0);
}

#[test]
fn full_reports_need_leave_once_a_lease_was_asked_for() {
    let mut world = World::new(1, 1);
    let heartbeat = Heartbeat { wants_report_lease: true, ..heartbeat_of(0, GIB) };
    let answer = world.beat("uuid-0", heartbeat);
    let (node, lease) = (world.handle(0), answer.report_lease.unwrap());
    let now = world.now;
    assert!(world.cluster.begin_report_call(node, lease + 1, now).is_err());
    for is_last in [false, true] {
        let call = world.cluster.begin_report_call(node, lease, now).unwrap();
        assert!(world.cluster.end_report_call(call, is_last).is_ok());
    }
    assert!(world.cluster.begin_report_call(node, lease, now).is_err());
    assert!(world.cluster.begin_report_call(node, 0, now).is_ok());
}

#[test]
fn a_scan_finds_what_was_altered_with_good_chunk_crcs() {
    let mut world = World::new(6, 3);
    let id = group(1);
    world.store(id, rs(3, 2, 3000, BlockState::Complete), &[0, 1, 2, 3, 4]);
    world.blocks.1.insert((id, UnitIndex(1)), 77);
    let scan = |world: &mut World, node: usize, block: BlockRef, crc: u32| {
        let handle = world.handle(node);
        let changes =
            world.cluster.scan_report(&world.blocks, handle, &storage_uuid(node), &[(block, crc)]);
        assert!(changes.ready.is_empty() && changes.late_crcs.is_empty(), "nothing is recorded");
        changes.altered
    };
    let corrupt = |world: &World| {
        let places = world.cluster.locations(id).into_iter();
        places.filter(|at| at.corrupt).map(|at| at.unit.0).collect::<Vec<u8>>()
    };
    let (recorded, unrecorded) = (world.good(id, 1), world.good(id, 0));
    let stale = BlockRef { gs: GenerationStamp(1000), ..recorded };
    let short = BlockRef { len: recorded.len - 1, ..recorded };
    for (node, block, crc) in
        [(1, recorded, 77), (0, unrecorded, 78), (1, stale, 78), (1, short, 78), (2, recorded, 78)]
    {
        assert_eq!(scan(&mut world, node, block, crc), [], "{node} {block:?} {crc}");
    }
    assert_eq!(corrupt(&world), []);
    assert_eq!(scan(&mut world, 1, recorded, 78), [recorded]);
    assert_eq!(corrupt(&world), [1]);
    assert_eq!(scan(&mut world, 1, recorded, 78), [], "it is told once");
}
