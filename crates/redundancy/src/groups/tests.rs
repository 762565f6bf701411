//! Contiguous groups: when they can be formed, what may be deleted for them, and how they are repaired.

use crate::fixture::*;
use crate::groups::plan::{GroupPlan, GroupRequest};
use crate::groups::{Encoded, NotFormed};
use crate::queue::Priority;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

mod dissolve;
mod prove;
mod spread;

const LIVE: BlockState = BlockState::Complete;
const LEN: u64 = 1000;
const PARITY_LEN: u64 = 1012;
const PARITY_CRC: u32 = 77;
const HANDLE: BlockId = BlockId((1 << 61) + 16);
/// Unit `i` of the group stays on node `i`.
const STAY: [usize; 5] = [0, 1, 2, 3, 4];

fn member(slot: usize) -> BlockId {
    block(slot as i64 + 1)
}

fn parity(slot: u8) -> BlockRef {
    let id = HANDLE.internal(UnitIndex(slot));
    BlockRef { id, gs: GenerationStamp(2000), len: PARITY_LEN }
}

/// Three blocks on three of nine nodes each: member `i` is on nodes `i`, 5 + i and 8.
fn nodes_of(slot: usize) -> [usize; 3] {
    [slot, 5 + slot, 8]
}

fn world() -> World {
    let mut world = World::new(9, 9);
    for slot in 0..3 {
        world.store(member(slot), replicated(3, LEN, LIVE), &[]);
        world.blocks.1.insert((member(slot), UnitIndex(0)), slot as u32);
        for node in nodes_of(slot) {
            world.received(node, world.good(member(slot), 0));
        }
    }
    world
}

/// Begins an attempt. Returns its encoder.
fn begin(world: &mut World) -> usize {
    let begun = (HANDLE, GenerationStamp(2000));
    let members = [0, 1, 2].map(|slot| world.good(member(slot), 0));
    world.blocks.3.insert(HANDLE, begun_group(begun.0, begun.1, 2, &members));
    let targets: Vec<Option<StorageHandle>> =
        STAY.iter().map(|node| Some(world.storage(*node))).collect();
    world.cluster.group_begun(&world.blocks, begun, &targets, world.now);
    let nodes = world.run(3000, &[]);
    let has_order = |commands: &Vec<Command>| {
        commands
            .iter()
            .any(|command| matches!(command, Command::Encode(orders) if orders.len() == 1))
    };
    let mut encoders = nodes.iter().filter(|(_, commands)| has_order(commands));
    *encoders.next().expect("somebody is told to encode").0
}

fn encoded(world: &World) -> Encoded {
    let read_from = (0..3).map(|slot| (UnitIndex(slot), world.storage(STAY[usize::from(slot)])));
    Encoded {
        handle: HANDLE,
        gs: GenerationStamp(2000),
        read_from: read_from.collect(),
        parities: [3, 4].map(|slot| (UnitIndex(slot), PARITY_LEN, PARITY_CRC)).to_vec(),
    }
}

fn report_parities(world: &mut World) {
    for slot in [3, 4] {
        world.received_with_crc(STAY[usize::from(slot)], parity(slot), Some(PARITY_CRC));
    }
}

fn can_form(world: &World, encoder: usize) -> Result<(), NotFormed> {
    world.cluster.can_form(&world.blocks, world.handle(encoder), &encoded(world))
}

/// The group is formed, whatever is there.
fn form(world: &mut World) {
    let group = world.blocks.3.get_mut(&HANDLE).unwrap();
    (group.attempt, group.formed, group.parity_len) = (false, true, PARITY_LEN);
    for slot in [3, 4] {
        world.blocks.1.insert((HANDLE, UnitIndex(slot)), PARITY_CRC);
    }
    for slot in 0..3 {
        let facts = world.blocks.0.get_mut(&member(slot)).unwrap();
        facts.group = Some((HANDLE, UnitIndex(slot as u8)));
        facts.layout = Layout::Replicated { copies: 1 };
    }
    world.cluster.group_formed(&world.blocks, HANDLE);
    for slot in 0..3 {
        world.cluster.block_changed(&world.blocks, member(slot));
    }
}

/// A formed group, with all the replicas that it does not need.
fn formed() -> World {
    let mut world = world();
    let encoder = begin(&mut world);
    report_parities(&mut world);
    assert_eq!(can_form(&world, encoder), Ok(()));
    form(&mut world);
    world
}

fn deletions(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, BlockRef)> {
    let mut found = Vec::new();
    for (node, commands) in commands {
        for command in commands {
            if let Command::Invalidate(blocks) = command {
                found.extend(blocks.iter().map(|block| (*node, *block)));
            }
        }
    }
    found
}

fn rebuilds(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, GroupRebuild)> {
    let mut found = Vec::new();
    for (node, commands) in commands {
        for command in commands {
            if let Command::Rebuild(works) = command {
                found.extend(works.iter().map(|work| (*node, work.clone())));
            }
        }
    }
    found
}

/// Lets all that nodes are told to delete be gone, until nothing is told any more. Returns what was, in order.
fn drop_all(world: &mut World, silent: &[usize]) -> Vec<(usize, BlockRef)> {
    let mut all = Vec::new();
    loop {
        let told = deletions(&world.run(3000, silent));
        if told.is_empty() {
            return all;
        }
        for (node, block) in &told {
            world.deleted(*node, *block);
        }
        all.extend(told);
    }
}

/// A formed group with one replica of each member.
fn settled() -> World {
    let mut world = formed();
    drop_all(&mut world, &[]);
    for slot in 0..3 {
        assert_eq!(world.places(member(slot)), [(slot, 0)]);
    }
    world
}

fn die(world: &mut World, node: usize) {
    let handle = world.handle(node);
    world.cluster.node_died(&world.blocks, handle);
}

#[test]
fn parities_of_a_group_whose_members_another_has_are_whole_until_it_ends() {
    let mut world = world();
    begin(&mut world);
    let state = |world: &World| world.blocks.3[&HANDLE].facts().state;
    assert_eq!(state(&world), BlockState::UnderConstruction);
    form(&mut world);
    assert_eq!(state(&world), BlockState::Complete);
    // Another one is formed with its live members.
    world.blocks.3.get_mut(&HANDLE).unwrap().formed = false;
    assert_eq!(state(&world), BlockState::Complete);
    world.cluster.check_derived(&world.blocks, GenerationStamp(0));
}

#[test]
fn surplus_goes_one_member_after_the_other_and_what_was_read_stays() {
    let mut world = formed();
    for slot in 0..3 {
        let told = deletions(&world.run(3000, &[]));
        let nodes: BTreeSet<usize> = told.iter().map(|(node, _)| *node).collect();
        assert_eq!(nodes, BTreeSet::from([5 + slot, 8]), "of member {slot}");
        assert!(told.iter().all(|(_, block)| block.id == member(slot)));
        assert_eq!(deletions(&world.run(9000, &[])), [], "nothing before that is done");
        for (node, block) in told {
            world.deleted(node, block);
        }
    }
    assert_eq!(drop_all(&mut world, &[]), []);
    for slot in 0..3 {
        assert_eq!(world.places(member(slot)), [(slot, 0)]);
    }
    assert_eq!(world.cluster.queues().len(), 0);
}

#[test]
fn a_replica_that_nobody_has_proven_keeps_the_others() {
    let mut world = world();
    let encoder = begin(&mut world);
    report_parities(&mut world);
    assert_eq!(can_form(&world, encoder), Ok(()));
    // Its node starts anew between the look and the entry.
    world.register(registration(1, 1));
    world.heartbeat(1);
    world.full_report(
        1,
        &[ReportedReplica {
            block: world.good(member(1), 0),
            state: ReplicaState::Finalized,
            crc32c: None,
        }],
    );
    form(&mut world);
    let gone = drop_all(&mut world, &[]);
    let of: BTreeSet<BlockId> = gone.iter().map(|(_, block)| block.id).collect();
    assert_eq!(of, BTreeSet::from([member(0), member(2)]));
    assert_eq!(world.places(member(1)).len(), 3);
    assert_eq!(world.cluster.queues().len(), 0, "too many is not too few");
}

/// Between the look and the entry a balancer has moved the replica that was read: what it has left is chosen for deletion
/// as one of four.
#[test]
fn what_was_too_much_before_a_group_is_formed_is_judged_anew() {
    let mut world = world();
    let encoder = begin(&mut world);
    report_parities(&mut world);
    assert_eq!(can_form(&world, encoder), Ok(()));
    let moved = world.good(member(1), 0);
    let kind = ReplicaEventKind::Received { delete_hint: Some("uuid-1".to_string()) };
    world.event(7, ReplicaEvent { block: moved, kind, crc32c: None });
    assert_eq!(can_form(&world, encoder), Err(NotFormed::MemberLost), "it is to go");
    form(&mut world);
    let gone = drop_all(&mut world, &[]);
    let of: BTreeSet<BlockId> = gone.iter().map(|(_, block)| block.id).collect();
    assert_eq!(of, BTreeSet::from([member(0), member(2)]), "none of the other is proven");
    assert_eq!(world.places(member(1)).len(), 4);
}

/// One of four was told to go before, and its node has it still when the one that was read is proven no more.
#[test]
fn what_a_node_was_told_to_delete_before_a_group_is_formed_is_judged_anew() {
    let mut world = world();
    let moved = world.good(member(1), 0);
    let kind = ReplicaEventKind::Received { delete_hint: Some("uuid-8".to_string()) };
    world.event(7, ReplicaEvent { block: moved, kind, crc32c: None });
    assert_eq!(deletions(&world.run(3000, &[])), [(8, moved)]);
    let encoder = begin(&mut world);
    report_parities(&mut world);
    assert_eq!(can_form(&world, encoder), Ok(()));
    let finalized =
        |block: BlockRef| ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
    world.register(registration(1, 1));
    world.heartbeat(1);
    world.full_report(1, &[finalized(moved)]);
    form(&mut world);
    let all = [0, 1, 2].map(|slot| finalized(world.good(member(slot), 0)));
    world.full_report(8, &all);
    // The order may come as long as that.
    let mut gone = deletions(&world.run(400_000, &[]));
    gone.iter().for_each(|(node, block)| drop(world.deleted(*node, *block)));
    gone.extend(drop_all(&mut world, &[]));
    let of: BTreeSet<BlockId> = gone.iter().map(|(_, block)| block.id).collect();
    assert_eq!(of, BTreeSet::from([member(0), member(2)]), "none of the other is proven");
    assert_eq!(world.places(member(1)).len(), 4);
}

#[test]
fn a_proof_ends_with_the_process() {
    let mut world = formed();
    for node in [0, 1, 2] {
        world.register(registration(node, node));
        world.heartbeat(node);
        let block = world.good(member(node), 0);
        let state = ReplicaState::Finalized;
        world.full_report(node, &[ReportedReplica { block, state, crc32c: None }]);
    }
    assert_eq!(drop_all(&mut world, &[]), []);
}

#[test]
fn nothing_is_told_once_a_unit_is_lost_and_surplus_is_taken_back_before_anything_is_decoded() {
    let mut world = formed();
    assert_eq!(world.places(member(0)), [(0, 0)], "the others are chosen, and nobody is told yet");
    die(&mut world, 0);
    assert_eq!(world.places(member(0)), [(5, 0), (8, 0)]);
    let commands = world.run(6000, &[0]);
    assert_eq!(rebuilds(&commands), [], "two other replicas of it are there");
    let mut gone = deletions(&commands);
    gone.iter().for_each(|(node, block)| drop(world.deleted(*node, *block)));
    gone.extend(drop_all(&mut world, &[0]));
    let of: BTreeSet<BlockId> = gone.iter().map(|(_, block)| block.id).collect();
    assert_eq!(of, BTreeSet::from([member(1), member(2)]), "nobody has proven those of the first");
}

#[test]
fn a_lost_parity_takes_back_what_is_to_go_of_members() {
    let mut world = formed();
    die(&mut world, 4);
    let told = deletions(&world.run(6000, &[4]));
    assert_eq!(told, []);
    assert_eq!(world.places(member(0)).len(), 3);
}

#[test]
fn nothing_is_told_while_a_node_of_the_group_is_silent() {
    let mut world = formed();
    // Chosen at once; those who have it are heard of when another is silent already.
    for _ in 0..12 {
        world.now = at(world.now.mono_ms + 3000);
        for node in (0..9).filter(|node| ![2, 5, 8].contains(node)) {
            world.heartbeat(node);
        }
    }
    let told: Vec<Command> = [5, 8].into_iter().flat_map(|node| world.heartbeat(node)).collect();
    let is_deletion = |command: &Command| matches!(command, Command::Invalidate(_));
    assert!(!told.iter().any(is_deletion), "{told:?}");
    assert_eq!(world.places(member(0)).len(), 3);
    // It is back, and seen to be.
    assert_eq!(deletions(&world.run(3000, &[])), []);
    assert_eq!(drop_all(&mut world, &[]).len(), 6);
}

#[test]
fn nothing_is_deleted_while_operators_hold_it_back() {
    let mut world = formed();
    world.cluster.hold_surplus(true);
    assert_eq!(drop_all(&mut world, &[]), []);
    assert_eq!(world.cluster.groups_with_surplus(), 1);
    world.cluster.hold_surplus(false);
    assert_eq!(drop_all(&mut world, &[]).len(), 6);
    assert_eq!(world.cluster.groups_with_surplus(), 0);
    // What is chosen already is kept as well.
    let mut world = formed();
    world.run(3000, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    world.cluster.hold_surplus(true);
    assert_eq!(drop_all(&mut world, &[]), []);
}

#[test]
fn parities_of_an_open_attempt_are_wanted_and_those_of_one_that_has_ended_are_not() {
    let mut world = world();
    begin(&mut world);
    report_parities(&mut world);
    assert_eq!(deletions(&world.run(60_000, &[])), []);
    world.blocks.3.remove(&HANDLE);
    world.cluster.group_ended(HANDLE, GenerationStamp(2000));
    let told: BTreeSet<BlockId> =
        deletions(&world.run(3000, &[])).into_iter().map(|(_, block)| block.id).collect();
    assert_eq!(told, BTreeSet::from([parity(3).id, parity(4).id]));
    let late = parity(3);
    world.deleted(3, late);
    world.received_with_crc(3, late, Some(PARITY_CRC));
    assert_eq!(deletions(&world.run(3000, &[])), [(3, late)], "whoever comes late");
}

#[test]
fn a_group_is_formed_of_what_is_known_to_be_there() {
    let mut world = world();
    let encoder = begin(&mut world);
    assert_eq!(can_form(&world, encoder), Err(NotFormed::Awaited), "nobody has told of parities");
    report_parities(&mut world);
    let other = (encoder + 1) % 9;
    assert_eq!(can_form(&world, other), Err(NotFormed::NotOpen), "it was not told to");
    assert_eq!(can_form(&world, encoder), Ok(()));
    let mut elsewhere = encoded(&world);
    elsewhere.read_from[1].1 = world.storage(6);
    let judged = world.cluster.can_form(&world.blocks, world.handle(encoder), &elsewhere);
    assert_eq!(judged, Err(NotFormed::MemberLost), "another replica was read");
    let mut other_bytes = encoded(&world);
    other_bytes.parities[1].2 += 1;
    let judged = world.cluster.can_form(&world.blocks, world.handle(encoder), &other_bytes);
    assert_eq!(judged, Err(NotFormed::ParityLost), "other bytes were encoded");
    let mut one_short = encoded(&world);
    one_short.parities.pop();
    let judged = world.cluster.can_form(&world.blocks, world.handle(encoder), &one_short);
    assert_eq!(judged, Err(NotFormed::ParityLost));
}

#[test]
fn a_group_is_not_formed_of_what_has_changed_meanwhile() {
    type Change = fn(&mut World);
    let changes: [(Change, NotFormed); 5] = [
        (|world| _ = world.register(registration(1, 1)), NotFormed::MemberLost),
        (|world| die(world, 2), NotFormed::MemberLost),
        (
            |world| {
                let handle = world.handle(0);
                let bad = world.good(member(0), 0);
                world.cluster.report_bad(&world.blocks, handle, "", bad).unwrap();
            },
            NotFormed::MemberLost,
        ),
        (
            |world| {
                let (handle, bad) = (world.handle(3), parity(3));
                world.cluster.report_bad(&world.blocks, handle, "", bad).unwrap();
            },
            NotFormed::ParityLost,
        ),
        (|world| drop(world.deleted(4, parity(4))), NotFormed::Awaited),
    ];
    for (change, want) in changes {
        let mut world = world();
        let encoder = begin(&mut world);
        report_parities(&mut world);
        change(&mut world);
        assert_eq!(can_form(&world, encoder), Err(want));
    }
    // Its encoder has started anew, or the NameNode has.
    let mut world = world();
    let encoder = begin(&mut world);
    report_parities(&mut world);
    world.register(registration(encoder, encoder));
    assert_eq!(can_form(&world, encoder), Err(NotFormed::NotOpen));
    let failed = world.cluster.failed_attempts(&world.blocks, world.now);
    assert_eq!(failed.len(), 1);
}

#[test]
fn an_attempt_has_its_time() {
    let mut world = world();
    begin(&mut world);
    assert_eq!(world.cluster.failed_attempts(&world.blocks, world.now), []);
    world.run(1_300_000, &[]);
    assert_eq!(world.cluster.failed_attempts(&world.blocks, world.now).len(), 1);
}

#[test]
fn a_lost_member_is_rebuilt_from_the_others_on_a_node_without_a_unit() {
    let mut world = settled();
    die(&mut world, 1);
    assert_eq!(world.cluster.queues().priority(HANDLE), Some(Priority::Low));
    assert_eq!(world.cluster.queues().priority(member(1)), None, "its group has the need");
    let stats = world.cluster.stats(world.now);
    assert_eq!((stats.replicated.missing, stats.groups.missing), (0, 0));
    let found = rebuilds(&world.run(6000, &[1]));
    let [(worker, work)] = &found[..] else { panic!("{found:?}") };
    let [(storage, UnitIndex(1))] = work.targets[..] else { panic!("{work:?}") };
    let target = world.number(storage);
    assert_eq!(*worker, target);
    assert!([5, 6, 7, 8].contains(&target), "{target} has a unit");
    let read: BTreeSet<u8> = work.sources.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(read, BTreeSet::from([0, 2, 3, 4]));
    assert_eq!(work.group, BlockRef { id: HANDLE, ..parity(0) });
    assert_eq!(rebuilds(&world.run(60_000, &[1])), [], "it is on its way");
    world.received(target, world.good(member(1), 0));
    assert_eq!(world.places(member(1)), [(target, 0)]);
    assert_eq!(world.cluster.work_under_way().count(), 0);
    assert_eq!(rebuilds(&world.run(700_000, &[1])), []);
}

#[test]
fn readers_are_told_who_decodes_before_a_silent_node_is_dead() {
    let mut world = settled();
    let named = [(world.storage(1), UnitIndex(0))];
    let readers = |world: &World, has_failed| {
        let found = world.cluster.readers_of_member(HANDLE, &named, has_failed, world.now);
        found.iter().map(|(storage, _)| world.number(*storage)).collect::<Vec<_>>()
    };
    assert_eq!(readers(&world, false), [0_usize; 0], "its node is heard of");
    assert_eq!(readers(&world, true), [3, 4], "who has failed to read there is told at once");
    world.run(12_000, &[1, 3]);
    assert!(world.cluster.node(world.handle(1)).alive);
    assert_eq!(readers(&world, false), [4], "one that has a parity is silent as well");
}

#[test]
fn a_rebuild_that_failed_is_given_again() {
    let mut world = settled();
    die(&mut world, 1);
    let found = rebuilds(&world.run(6000, &[1]));
    let (worker, work) = &found[0];
    let target = world.handle(world.number(work.targets[0].0));
    let failed =
        FailedWork { block: member(1), gs: world.good(member(1), 0).gs, target, suspect: None };
    let reporter = world.handle(*worker);
    assert!(world.cluster.work_failed(&world.blocks, reporter, &failed, world.now));
    assert_eq!(rebuilds(&world.run(120_000, &[1])).len(), 1);
}

#[test]
fn lost_parities_and_members_are_rebuilt_in_one_pass() {
    let mut world = settled();
    die(&mut world, 0);
    die(&mut world, 3);
    assert_eq!(world.cluster.queues().priority(HANDLE), Some(Priority::Highest));
    let found = rebuilds(&world.run(6000, &[0, 3]));
    let [(_, work)] = &found[..] else { panic!("{found:?}") };
    let units: BTreeSet<u8> = work.targets.iter().map(|(_, unit)| unit.0).collect();
    assert_eq!(units, BTreeSet::from([0, 3]));
    assert!(work.is_urgent);
}

#[test]
fn more_than_the_parities_gone_is_lost_and_waits_for_its_nodes() {
    let mut world = settled();
    for node in [0, 1, 3] {
        die(&mut world, node);
    }
    assert_eq!(world.cluster.queues().priority(HANDLE), Some(Priority::Corrupt));
    assert_eq!(rebuilds(&world.run(6000, &[0, 1, 3])), []);
    world.register(registration(1, 1));
    world.heartbeat(1);
    world.full_report(
        1,
        &[ReportedReplica {
            block: world.good(member(1), 0),
            state: ReplicaState::Finalized,
            crc32c: None,
        }],
    );
    assert_eq!(rebuilds(&world.run(60_000, &[0, 3])).len(), 1);
}

#[test]
fn a_bad_member_is_rebuilt_and_then_deleted() {
    let mut world = settled();
    let (handle, bad) = (world.handle(2), world.good(member(2), 0));
    world.cluster.report_bad(&world.blocks, handle, "", bad).unwrap();
    let commands = world.run(6000, &[]);
    assert_eq!(deletions(&commands), []);
    let found = rebuilds(&commands);
    let [(_, work)] = &found[..] else { panic!("{found:?}") };
    let target = world.number(work.targets[0].0);
    world.received(target, bad);
    assert_eq!(deletions(&world.run(6000, &[])), [(2, bad)]);
}

#[test]
fn a_leaving_node_gives_its_member_to_another_before_it_goes() {
    let mut world = settled();
    let handle = world.handle(2);
    let now = world.now;
    let leave = AdminIntent::Decommission;
    world.cluster.set_admin_intent(&world.blocks, handle, leave, now);
    let commands = world.run(6000, &[]);
    let copies: Vec<Transfer> = commands.values().flatten().fold(Vec::new(), |mut all, command| {
        if let Command::Transfer(transfers) = command {
            all.extend(transfers.clone());
        }
        all
    });
    let [copy] = &copies[..] else { panic!("{copies:?}") };
    assert_eq!(copy.block, world.good(member(2), 0));
    let target = world.number(copy.targets[0]);
    assert!([5, 6, 7, 8].contains(&target));
    world.run(60_000, &[]);
    assert_eq!(world.cluster.node(handle).admin, AdminState::DecommissionInProgress);
    world.received(target, copy.block);
    world.run(90_000, &[]);
    assert_eq!(world.cluster.node(handle).admin, AdminState::Decommissioned);
}

#[test]
fn maintenance_leaves_one_unit_to_lose() {
    let mut world = settled();
    for node in [0, 1] {
        let (handle, now) = (world.handle(node), world.now);
        let away = AdminIntent::Maintenance { until_ms: u64::MAX };
        world.cluster.set_admin_intent(&world.blocks, handle, away, now);
    }
    world.run(90_000, &[]);
    let away = [0, 1].map(|node| world.cluster.node(world.handle(node)).admin);
    assert_ne!(away, [AdminState::InMaintenance; 2], "three of five are left, as many as it takes");
}

#[test]
fn a_member_that_decodes_is_safe() {
    let mut world = settled();
    let (blocks, now) = (world.blocks.clone(), world.now);
    // A start: all but the node of one member come.
    let mut fresh = World::new(9, 9);
    fresh.blocks = blocks;
    fresh.cluster.start_safe_mode(3, now);
    fresh.received(1, fresh.good(member(1), 0));
    assert_eq!(fresh.cluster.safe_mode().block_counts(), (3, 1));
    fresh.received_with_crc(3, parity(3), Some(PARITY_CRC));
    assert_eq!(fresh.cluster.safe_mode().block_counts(), (3, 1));
    fresh.received_with_crc(4, parity(4), Some(PARITY_CRC));
    assert_eq!(fresh.cluster.safe_mode().block_counts(), (3, 3));
    fresh.deleted(4, parity(4));
    assert_eq!(fresh.cluster.safe_mode().block_counts(), (3, 1));
    // One that no file has is waited for as the others are.
    let slot = fresh.blocks.3.get_mut(&HANDLE).unwrap().slots[2].as_mut().unwrap();
    slot.live = false;
    fresh.received_with_crc(4, parity(4), Some(PARITY_CRC));
    assert_eq!(fresh.cluster.safe_mode().block_counts(), (3, 3));
    world.run(3000, &[]);
}

#[test]
fn balancers_do_not_get_units_of_groups() {
    let world = settled();
    let movable = |node| {
        let query = MoveQuery {
            node: world.handle(node),
            size: u64::MAX,
            min_block_len: 0,
            storage_type: None,
        };
        world.cluster.movable_blocks(&world.blocks, &query, 0, &|_| false)
    };
    assert_eq!((movable(0), movable(3)), (Vec::new(), Vec::new()));
}

#[test]
fn a_node_that_comes_back_with_what_was_rebuilt_takes_nothing_away() {
    let mut world = settled();
    die(&mut world, 1);
    let found = rebuilds(&world.run(6000, &[1]));
    let target = world.number(found[0].1.targets[0].0);
    world.received(target, world.good(member(1), 0));
    world.register(registration(1, 1));
    world.heartbeat(1);
    world.full_report(
        1,
        &[ReportedReplica {
            block: world.good(member(1), 0),
            state: ReplicaState::Finalized,
            crc32c: None,
        }],
    );
    assert_eq!(drop_all(&mut world, &[]), [], "neither of the two was proven");
    assert_eq!(world.places(member(1)).len(), 2);
    assert_eq!(world.cluster.queues().len(), 0);
}

#[test]
fn replicas_of_a_plan_stay_on_nodes_of_their_own() {
    let mut world = World::new(8, 4);
    // The second has no node that the first does not need; the third has one.
    for (slot, nodes) in [&[0][..], &[0], &[0, 1], &[1, 2], &[3, 0]].iter().enumerate() {
        let facts = replicated(nodes.len() as u16, LEN, LIVE);
        world.store(member(slot), facts, &[]);
        for node in *nodes {
            world.received(*node, world.good(member(slot), 0));
        }
    }
    let candidates: Vec<BlockRef> = (0..5).map(|slot| world.good(member(slot), 0)).collect();
    let request = GroupRequest {
        candidates: &candidates,
        k: 4,
        m: 2,
        storage_policy: StoragePolicy::default(),
    };
    let plan = world.cluster.plan_group(&request, world.now, &mut *world.dice).unwrap();
    let members: Vec<(BlockId, usize)> =
        plan.members.iter().map(|(block, at)| (block.id, world.number(*at))).collect();
    let want = [(member(0), 0), (member(2), 1), (member(3), 2), (member(4), 3)];
    assert_eq!(members, want);
    let all: BTreeSet<usize> = plan
        .members
        .iter()
        .map(|(_, at)| *at)
        .chain(plan.parities.iter().copied())
        .map(|storage| world.number(storage))
        .collect();
    assert_eq!(all.len(), 6);
}

/// A plan for a group of RS-3-2 of the first three members.
fn plan_of_three(world: &mut World) -> GroupPlan {
    let candidates: Vec<BlockRef> = (0..3).map(|slot| world.good(member(slot), 0)).collect();
    let (k, m, storage_policy) = (3, 2, StoragePolicy::default());
    let request = GroupRequest { candidates: &candidates, k, m, storage_policy };
    world.cluster.plan_group(&request, world.now, &mut *world.dice).unwrap()
}

#[test]
fn a_plan_loses_no_more_with_a_rack_than_its_parities() {
    // Two nodes on the first rack, which have all three blocks; the third replicas are elsewhere.
    let mut world = World::with_racks(&[0, 0, 0, 1, 1, 2, 2]);
    for slot in 0..3 {
        world.store(member(slot), replicated(2, LEN, LIVE), &[]);
        for node in [slot, 3 + slot] {
            world.received(node, world.good(member(slot), 0));
        }
    }
    let plan = plan_of_three(&mut world);
    let mut per_rack: BTreeMap<String, usize> = BTreeMap::new();
    let stay = plan.members.iter().map(|(_, at)| *at);
    for storage in stay.chain(plan.parities.iter().copied()) {
        *per_rack.entry(world.rack(storage)).or_default() += 1;
    }
    assert!(per_rack.values().all(|units| *units <= 2), "{per_rack:?}");
}

/// On racks of three, one and one nodes five units are on all of these, whatever is lost with the first rack.
#[test]
fn a_plan_is_made_where_no_spread_bears_the_loss_of_a_rack() {
    let mut world = World::with_racks(&[0, 0, 0, 1, 2]);
    for slot in 0..3 {
        world.store(member(slot), replicated(2, LEN, LIVE), &[]);
        for node in [slot, 3 + slot % 2] {
            world.received(node, world.good(member(slot), 0));
        }
    }
    let plan = plan_of_three(&mut world);
    let stay = plan.members.iter().map(|(_, at)| *at);
    let nodes: BTreeSet<usize> =
        stay.chain(plan.parities.iter().copied()).map(|at| world.number(at)).collect();
    assert_eq!(nodes.len(), 5, "{nodes:?}");
}

#[test]
fn nodes_that_prove_nothing_take_no_part_in_a_plan() {
    let mut world = world();
    let silent = Heartbeat { takes_groups: false, ..heartbeat_of(0, 50 * GIB) };
    world.beat("uuid-0", silent);
    let plan = plan_of_three(&mut world);
    let stay = plan.members.iter().map(|(_, at)| *at);
    let all: Vec<usize> =
        stay.chain(plan.parities.iter().copied()).map(|at| world.number(at)).collect();
    assert!(!all.contains(&0), "{all:?}");
}
