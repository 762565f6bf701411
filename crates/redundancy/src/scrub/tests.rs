use super::*;
use crate::fixture::*;
use crate::{BlockState, Heartbeat};
use std::time::Duration;

const LEN: u64 = 5 * 1024 * 3;

/// A cluster whose first `capable` nodes take scrubs.
fn world(nodes: usize, capable: usize) -> World {
    let mut world = World::new(nodes, nodes);
    (0..capable).for_each(|node| drop(beat(&mut world, node)));
    world
}

fn beat(world: &mut World, node: usize) -> Vec<ScrubOrder> {
    let heartbeat = Heartbeat { takes_scrubs: true, ..heartbeat_of(node, 50 * GIB) };
    let uuid = format!("uuid-{node}");
    world.beat(&uuid, heartbeat).scrubs
}

fn tick(world: &mut World, ms: u64) {
    world.now = at(world.now.mono_ms + ms);
    world.cluster.look_for_scrubs(&world.blocks, world.now);
}

/// Each tick's step, until the walk is over, and what a node is told then.
fn walk(world: &mut World, node: usize) -> Vec<ScrubOrder> {
    (0..5).for_each(|_| tick(world, 1));
    beat(world, node)
}

/// The answer to an order; `crcs` of the places in the order's order.
fn answer(
    world: &World,
    order: &ScrubOrder,
    crcs: &[Option<u32>],
    agreement: Agreement,
) -> Scrubbed {
    let place = |((storage, unit), crc32c): (&(StorageHandle, UnitIndex), &Option<u32>)| {
        let storage_uuid = world.cluster.storage(*storage).uuid.clone();
        ScrubbedPlace { storage_uuid, unit: *unit, crc32c: *crc32c }
    };
    let places = order.places.iter().zip(crcs).map(place).collect();
    Scrubbed { block: order.block, places, agreement }
}

fn report(world: &mut World, node: usize, result: &Scrubbed) -> Changes {
    let handle = world.handle(node);
    world.cluster.scrubbed(&world.blocks, handle, result)
}

fn corrupt(world: &World, id: BlockId) -> Vec<u8> {
    let locations = world.cluster.locations(id);
    locations.iter().filter(|at| at.corrupt).map(|at| at.unit.0).collect()
}

fn record(world: &mut World, id: BlockId, units: std::ops::Range<u8>) {
    for unit in units {
        world.blocks.1.insert((id, UnitIndex(unit)), 100 + u32::from(unit));
    }
}

#[test]
fn groups_that_no_scanner_looks_after_are_read_once_in_a_period() {
    let mut world = world(6, 5);
    let complete = rs(3, 2, LEN, BlockState::Complete);
    world.store(group(1), complete, &[0, 1, 2, 3, 4]);
    world.store(group(2), complete, &[0, 1, 2, 3, 4]);
    world.store(group(3), complete, &[0, 1, 2, 3, 5]);
    world.store(group(4), complete, &[0, 1, 2, 3]);
    world.store(group(5), rs(3, 2, LEN, BlockState::UnderConstruction), &[0, 1, 2, 3, 4]);
    world.store(block(1), replicated(1, LEN, BlockState::Complete), &[0]);
    world.store(block(2), replicated(2, LEN, BlockState::Complete), &[0, 1]);
    record(&mut world, group(2), 0..5);
    record(&mut world, group(3), 0..5);
    // The third has a record, but a part on a node without a scanner that sums.
    let orders = walk(&mut world, 0);
    let ids: Vec<BlockId> = orders.iter().map(|order| order.block.id).collect();
    assert_eq!(ids, [group(1), group(3), block(2)]);
    assert_eq!(orders[0].places.len(), 5);
    assert_eq!(orders[0].bytes_per_second, 4 << 20);
    assert_eq!(beat(&mut world, 0), [], "it has enough to do");
    assert_eq!(beat(&mut world, 1), [], "nothing is left");

    for (order, agreement) in
        orders.iter().zip([Agreement::All, Agreement::All, Agreement::Unknown])
    {
        let crcs: Vec<_> =
            order.places.iter().map(|(_, unit)| Some(100 + u32::from(unit.0))).collect();
        let result = answer(&world, order, &crcs, agreement);
        assert!(report(&mut world, 1, &result).is_empty(), "another node was told to");
        let changes = report(&mut world, 0, &result);
        let units: Vec<u8> = changes.late_crcs.iter().map(|late| late.unit.0).collect();
        let want = match order.block.id {
            id if id == group(1) => vec![0, 1, 2, 3, 4],
            id if id == group(3) => vec![],
            _ => vec![0],
        };
        assert_eq!((units, changes.altered, changes.unexplained), (want, vec![], vec![]));
        assert!(report(&mut world, 0, &result).is_empty(), "told twice");
    }
    assert_eq!(walk(&mut world, 0), [], "the period is not over");
    let period = world.cluster.config().scrub_period.as_millis() as u64;
    tick(&mut world, period);
    assert_eq!(walk(&mut world, 0).len(), 3);
}

#[test]
fn the_unit_that_does_not_fit_is_bad_and_the_others_are_recorded() {
    let mut world = world(6, 6);
    let id = group(1);
    world.store(id, rs(3, 2, LEN, BlockState::Complete), &[0, 1, 2, 3, 4]);
    let order = walk(&mut world, 5).remove(0);
    let crcs: Vec<_> = (0..5).map(Some).collect();
    let odd = Agreement::Without(vec![UnitIndex(3)]);
    let result = answer(&world, &order, &crcs, odd);
    let changes = report(&mut world, 5, &result);
    assert_eq!(changes.altered, [world.good(id, 3)]);
    let recorded: Vec<u8> = changes.late_crcs.iter().map(|late| late.unit.0).collect();
    assert_eq!(recorded, [0, 1, 2, 4]);
    assert_eq!(corrupt(&world, id), [3]);
    // It is rebuilt like any other bad unit.
    let commands = world.run(20_000, &[]);
    let rebuilt = commands.values().flatten().any(|command| {
        let works = match command {
            crate::Command::Reconstruct(works) => works.as_slice(),
            _ => &[],
        };
        works.iter().any(|work| work.targets.iter().any(|(_, unit)| unit.0 == 3))
    });
    assert!(rebuilt, "{commands:?}");
}

/// One spare unit, a record of one of two units, and one without bytes: only one is left to blame.
#[test]
fn units_without_bytes_are_not_to_blame() {
    let mut world = world(4, 4);
    let id = group(1);
    world.store(id, rs(2, 1, 900, BlockState::Complete), &[0]);
    let parity = world.good(id, 2);
    world.received(2, parity);
    record(&mut world, id, 0..1);
    let order = walk(&mut world, 3).remove(0);
    assert_eq!(order.places.len(), 2);
    let all = Agreement::Without((0..3).map(UnitIndex).collect());
    let result = answer(&world, &order, &[Some(100), Some(7)], all);
    assert_eq!(report(&mut world, 3, &result).altered, [parity]);
}

#[test]
fn what_changed_meanwhile_is_not_judged() {
    let mut world = world(6, 6);
    let id = group(1);
    let facts = rs(3, 2, LEN, BlockState::Complete);
    world.store(id, facts, &[0, 1, 2, 3, 4]);
    let order = walk(&mut world, 5).remove(0);
    let result = answer(&world, &order, &[Some(1); 5], Agreement::Without(vec![UnitIndex(0)]));
    world.blocks.0.insert(id, BlockFacts { gs: cairn_stripe::GenerationStamp(1002), ..facts });
    assert!(report(&mut world, 5, &result).is_empty());
    // A worker that dies or is silent for too long is not waited for.
    world.blocks.0.insert(id, facts);
    let period = world.cluster.config().scrub_period.as_millis() as u64;
    tick(&mut world, period);
    assert_eq!(walk(&mut world, 5).len(), 1);
    assert!(world.cluster.scrubs.is_read(id));
    let handle = world.handle(5);
    world.cluster.node_died(&world.blocks, handle);
    assert!(!world.cluster.scrubs.is_read(id));
    tick(&mut world, period);
    assert_eq!(walk(&mut world, 4).len(), 1);
    tick(&mut world, 10 * 60_000);
    assert!(!world.cluster.scrubs.is_read(id));
}

#[test]
fn busy_nodes_and_clusters_that_want_no_scrubs_read_nothing() {
    let mut world = world(5, 5);
    world.store(group(1), rs(3, 2, LEN, BlockState::Complete), &[0, 1, 2, 3, 4]);
    for (period, rate) in [(0, 1), (1, 0)] {
        let mut config = world.cluster.config().clone();
        config.scrub_period = Duration::from_secs(period);
        config.scrub_bytes_per_second = rate;
        world.cluster.set_config(config);
        assert_eq!(walk(&mut world, 0), []);
    }
    world.cluster.set_config(crate::Config::default());
    (0..5).for_each(|_| tick(&mut world, 1));
    let heartbeat = Heartbeat { takes_scrubs: true, xmits: 1, ..heartbeat_of(0, GIB) };
    let answer = world.beat("uuid-0", heartbeat);
    assert_eq!(answer.scrubs, []);
    world.cluster.enter_safe_mode();
    assert_eq!(beat(&mut world, 0), []);
    world.cluster.leave_safe_mode(false);
    assert_eq!(beat(&mut world, 0).len(), 1);
}

fn sums(crcs: &[(u8, u32, Option<u32>)]) -> Vec<Sum> {
    let sum = |(unit, crc32c, recorded): &(u8, u32, Option<u32>)| Sum {
        unit: UnitIndex(*unit),
        crc32c: *crc32c,
        recorded: *recorded,
    };
    crcs.iter().map(sum).collect()
}

fn units(crcs: &[(u8, u32, Option<u32>)], suspects: &[u8]) -> (Vec<usize>, Vec<usize>, bool) {
    let suspects = suspects.iter().copied().map(UnitIndex).collect();
    let Judgement { bad, good, is_unexplained } =
        judge_units(&sums(crcs), &Agreement::Without(suspects));
    (bad, good, is_unexplained)
}

#[test]
fn a_unit_is_bad_only_if_no_other_can_be_to_blame() {
    let unknown = [(0, 7, None), (1, 7, None), (2, 7, None)];
    assert_eq!(units(&unknown, &[1]), (vec![1], vec![0, 2], false));
    assert_eq!(units(&unknown, &[0, 1, 2]), (vec![], vec![], true));
    assert_eq!(units(&unknown, &[]), (vec![], vec![], true));
    // One that could not be read to its end may be to blame.
    assert_eq!(units(&unknown, &[5]), (vec![], vec![], true));
    let known = [(0, 7, Some(7)), (1, 7, Some(7)), (2, 7, None)];
    assert_eq!(units(&known, &[0, 1, 2]), (vec![2], vec![0, 1], false));
    assert_eq!(units(&known, &[0, 2, 5]), (vec![], vec![], true));
    assert_eq!(units(&known, &[0, 1]), (vec![], vec![], true));
    // What differs from its record is bad whatever the others say.
    let wrong = [(0, 7, Some(8)), (1, 7, None), (2, 7, None)];
    assert_eq!(units(&wrong, &[0]), (vec![0], vec![1, 2], false));
    assert_eq!(units(&wrong, &[1]), (vec![0], vec![], false));
    assert_eq!(judge_units(&sums(&wrong), &Agreement::Unknown).bad, [0]);
    let all = judge_units(&sums(&wrong), &Agreement::All);
    assert_eq!((all.bad, all.good, all.is_unexplained), (vec![0], vec![], true));
    let two = [(0, 7, Some(8)), (1, 7, Some(8)), (2, 7, None)];
    assert_eq!(units(&two, &[0]), (vec![0, 1], vec![], false));
}

#[test]
fn replicas_go_by_the_record_or_their_majority() {
    let judge = |crcs: &[(u32, Option<u32>)]| {
        let crcs: Vec<_> = crcs.iter().map(|(crc, recorded)| (0, *crc, *recorded)).collect();
        let Judgement { bad, good, is_unexplained } = judge_replicas(&sums(&crcs));
        (bad, good, is_unexplained)
    };
    assert_eq!(judge(&[(5, None)]), (vec![], vec![], false));
    assert_eq!(judge(&[(5, None), (5, None)]), (vec![], vec![0, 1], false));
    assert_eq!(judge(&[(5, None), (6, None)]), (vec![], vec![], true));
    assert_eq!(judge(&[(5, None), (6, None), (5, None)]), (vec![1], vec![0, 2], false));
    assert_eq!(judge(&[(5, None), (6, None), (7, None)]), (vec![], vec![], true));
    assert_eq!(judge(&[(5, Some(6)), (6, Some(6))]), (vec![0], vec![], false));
    assert_eq!(judge(&[(5, Some(6))]), (vec![0], vec![], false));
}

#[test]
fn what_disagrees_without_a_culprit_is_remembered_until_it_agrees() {
    let mut world = world(4, 4);
    let (copied, striped) = (block(1), group(1));
    world.store(copied, replicated(2, LEN, BlockState::Complete), &[0, 1]);
    world.store(striped, rs(2, 1, LEN, BlockState::Complete), &[0, 1, 2]);
    let facts = world.blocks.0.clone();
    let anyone = Agreement::Without((0..3).map(UnitIndex).collect());
    let period = world.cluster.config().scrub_period.as_millis() as u64;
    for round in 0..2 {
        for order in walk(&mut world, 3) {
            let crcs: Vec<_> = (0..order.places.len() as u32).map(Some).collect();
            let result = answer(&world, &order, &crcs, anyone.clone());
            assert_eq!(report(&mut world, 3, &result).unexplained, [order.block.id]);
        }
        let found: Vec<BlockId> = world.cluster.blocks_that_disagree().map(|(id, _)| id).collect();
        assert_eq!(found, [striped, copied], "round {round}");
        assert!(found.iter().all(|id| world.cluster.disagrees(*id, &facts[id])));
        assert_eq!(world.cluster.stats(world.now).disagreeing, 2);
        tick(&mut world, period);
    }
    // Written again, it is another block's worth of bytes.
    let later = BlockFacts { gs: GenerationStamp(1002), ..facts[&copied] };
    assert!(!world.cluster.disagrees(copied, &later));
    for order in walk(&mut world, 3) {
        let crcs = vec![Some(7); order.places.len()];
        if order.block.id == striped {
            let result = answer(&world, &order, &crcs, Agreement::All);
            assert_eq!(report(&mut world, 3, &result).unexplained, []);
        }
    }
    let found: Vec<BlockId> = world.cluster.blocks_that_disagree().map(|(id, _)| id).collect();
    assert_eq!(found, [copied]);
    world.cluster.block_removed(copied, facts[&copied].gs);
    assert_eq!(world.cluster.stats(world.now).disagreeing, 0);
}

/// A group whose unit 1 has a wrong record, 7, against which copies on two nodes agree.
fn doubted() -> (World, BlockId, ScrubOrder) {
    let mut world = world(8, 8);
    let id = group(1);
    world.store(id, rs(3, 2, LEN, BlockState::Complete), &[0, 1, 2, 3, 4]);
    record(&mut world, id, 0..5);
    world.blocks.1.insert((id, UnitIndex(1)), 7);
    let unit = world.good(id, 1);
    for node in [5, 6] {
        world.received_with_crc(node, unit, Some(101));
    }
    assert!(world.cluster.is_record_doubtful(id));
    let order = beat(&mut world, 7).remove(0);
    (world, id, order)
}

#[test]
fn the_other_units_of_a_group_prove_the_record_of_one_wrong() {
    let (mut world, id, order) = doubted();
    let units: Vec<u8> = order.places.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(units, [0, 1, 2, 3, 4]);
    assert!([5, 6].contains(&world.number(order.places[1].0)), "one that is in doubt is read");
    let crcs: Vec<_> = (100..105).map(Some).collect();
    let result = answer(&world, &order, &crcs, Agreement::All);
    report(&mut world, 7, &result);
    let disproved = world.cluster.take_disproved();
    let (own_id, gs) = (id.internal(UnitIndex(1)), world.blocks.0[&id].gs);
    assert_eq!(disproved, [crate::DisprovedCrc { id: own_id, gs, recorded: 7, crc32c: 101 }]);
    world.blocks.1.insert((id, UnitIndex(1)), 101);
    world.cluster.record_replaced(&world.blocks, own_id);
    assert!(!world.cluster.is_record_doubtful(id));
    // Both are good; the one of which nothing was told is not believed, and goes with the surplus.
    let told = world.run(30_000, &[]);
    let deletes = |commands: &Vec<crate::Command>| {
        commands.iter().any(|command| matches!(command, crate::Command::Invalidate(_)))
    };
    let deleting = told.iter().filter(|(_, commands)| deletes(commands)).map(|(node, _)| *node);
    let deleting: Vec<usize> = deleting.collect();
    assert_eq!((deleting[0], deleting.len()), (1, 2), "{told:?}");
    assert!([5, 6].contains(&deleting[1]), "{told:?}");
}

#[test]
fn a_group_proves_nothing_unless_enough_other_units_are_as_recorded() {
    let crcs: Vec<_> = (100..105).map(Some).collect();
    let odd = Agreement::Without(vec![UnitIndex(1)]);
    let (mut changed, mut unread) = (crcs.clone(), crcs.clone());
    changed[3] = Some(9);
    unread[1] = None;
    for (crcs, agreement) in [
        (&crcs, odd),
        (&crcs, Agreement::Unknown),
        (&changed, Agreement::All),
        (&unread, Agreement::All),
    ] {
        let (mut world, id, order) = doubted();
        let result = answer(&world, &order, crcs, agreement);
        report(&mut world, 7, &result);
        assert_eq!(world.cluster.take_disproved(), []);
        assert!(world.cluster.is_record_doubtful(id));
    }
    let (mut world, id, order) = doubted();
    for unit in [0, 2, 3] {
        world.blocks.1.remove(&(id, UnitIndex(unit)));
    }
    let result = answer(&world, &order, &crcs, Agreement::All);
    report(&mut world, 7, &result);
    assert_eq!(world.cluster.take_disproved(), [], "one other has a record");
}
