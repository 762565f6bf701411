use crate::fixture::*;
use crate::groups::Encoded;
use crate::groups::prove::Proved;
use crate::packed::NotSealed;
use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};

const LIVE: BlockState = BlockState::Complete;
const LEN: u64 = 1000;
const PARITY_LEN: u64 = 1012;
const HANDLE: BlockId = BlockId((1 << 61) + 16);
/// Where plain replicas of the packed block are, beside the five units of the group.
const PLAIN: [usize; 3] = [0, 5, 6];

fn container(slot: usize) -> BlockId {
    BlockId((1 << 60) + 1 + slot as i64)
}

fn small() -> BlockId {
    block(1)
}

/// Three containers on nodes 0, 1 and 2 in a group with parities on 3 and 4, and a block that is packed in the first.
fn world() -> World {
    let mut world = World::new(9, 9);
    for slot in 0..3 {
        world.store(container(slot), replicated(1, LEN, LIVE), &[slot]);
        world.blocks.1.insert((container(slot), UnitIndex(0)), slot as u32);
    }
    world.store(small(), replicated(3, 100, LIVE), &PLAIN);
    world.blocks.1.insert((small(), UnitIndex(0)), 9);
    let begun = (HANDLE, GenerationStamp(2000));
    let members = [0, 1, 2].map(|slot| world.good(container(slot), 0));
    world.blocks.3.insert(HANDLE, begun_group(begun.0, begun.1, 2, &members));
    let targets: Vec<_> = (0..5).map(|node| Some(world.storage(node))).collect();
    world.cluster.group_begun(&world.blocks, begun, &targets, world.now);
    let encoder = world
        .run(3000, &[])
        .into_iter()
        .find(|(_, commands)| commands.iter().any(|command| matches!(command, Command::Encode(_))));
    let encoder = world.handle(encoder.unwrap().0);
    for slot in [3, 4] {
        let id = HANDLE.internal(UnitIndex(slot));
        let parity = BlockRef { id, gs: GenerationStamp(2000), len: PARITY_LEN };
        world.received_with_crc(slot.into(), parity, Some(7));
        world.blocks.1.insert((HANDLE, UnitIndex(slot)), 7);
    }
    let read_from = (0..3).map(|slot| (UnitIndex(slot), world.storage(slot.into()))).collect();
    let parities = [3, 4].map(|slot| (UnitIndex(slot), PARITY_LEN, 7)).to_vec();
    let encoded = Encoded { handle: HANDLE, gs: GenerationStamp(2000), read_from, parities };
    assert_eq!(world.cluster.can_form(&world.blocks, encoder, &encoded), Ok(()));
    let group = world.blocks.3.get_mut(&HANDLE).unwrap();
    (group.attempt, group.formed, group.parity_len) = (false, true, PARITY_LEN);
    for slot in 0..3 {
        let facts = world.blocks.0.get_mut(&container(slot)).unwrap();
        facts.group = Some((HANDLE, UnitIndex(slot as u8)));
    }
    world.cluster.group_formed(&world.blocks, HANDLE);
    world
}

/// The block is packed from now on.
fn pack(world: &mut World) {
    let facts = world.blocks.0.get_mut(&small()).unwrap();
    (facts.packed, facts.layout) = (Some(container(0)), Layout::Replicated { copies: 0 });
    world.cluster.block_changed(&world.blocks, small());
}

fn deletions(commands: &BTreeMap<usize, Vec<Command>>) -> BTreeSet<(usize, BlockId)> {
    let all = commands.iter().flat_map(|(node, commands)| commands.iter().map(|c| (*node, c)));
    let of = |(node, command): (usize, &Command)| match command {
        Command::Invalidate(blocks) => blocks.iter().map(|block| (node, block.id)).collect(),
        _ => Vec::new(),
    };
    all.flat_map(of).collect()
}

fn proves(commands: &BTreeMap<usize, Vec<Command>>) -> Vec<(usize, ProveOrder)> {
    let all = commands.iter().flat_map(|(node, commands)| commands.iter().map(|c| (*node, c)));
    let of = |(node, command): (usize, &Command)| match command {
        Command::Prove(orders) => orders.iter().map(|order| (node, *order)).collect(),
        _ => Vec::new(),
    };
    all.flat_map(of).collect()
}

fn plain() -> BTreeSet<(usize, BlockId)> {
    PLAIN.map(|node| (node, small())).into()
}

#[test]
fn plain_replicas_go_when_the_container_is_safe() {
    let mut world = world();
    assert_eq!(deletions(&world.run(6000, &[])), BTreeSet::new(), "it is not packed yet");
    pack(&mut world);
    assert_eq!(deletions(&world.run(6000, &[])), plain());
    for node in PLAIN {
        let block = world.good(small(), 0);
        world.deleted(node, block);
    }
    assert_eq!(world.cluster.packed_with_replicas(), 0);
    // It needs nothing, whatever is lost of it.
    world.run(60_000, &[]);
    assert!(world.cluster.low.queues_mut().is_empty());
}

#[test]
fn a_unit_that_is_lost_or_silent_keeps_plain_replicas_that_were_chosen() {
    for silent in [0, 1, 4] {
        let mut world = world();
        pack(&mut world);
        // They are chosen, and nobody was told: by then a unit is silent.
        world.now = at(world.now.mono_ms + 60_000);
        let nodes: Vec<usize> = (0..9).filter(|node| *node != silent).collect();
        let told: Vec<_> = nodes.iter().map(|node| (*node, world.heartbeat(*node))).collect();
        assert_eq!(deletions(&told.into_iter().collect()), BTreeSet::new(), "node {silent}");
        assert_eq!(world.cluster.packed_with_replicas(), 1);
        // When it is back all go.
        let back = BTreeMap::from([(silent, world.heartbeat(silent))]);
        let mut gone = deletions(&back);
        gone.append(&mut deletions(&world.run(9000, &[])));
        assert_eq!(gone, plain(), "node {silent}");
    }
}

#[test]
fn what_is_held_back_by_operators_stays() {
    let mut world = world();
    world.cluster.hold_surplus(true);
    pack(&mut world);
    assert_eq!(deletions(&world.run(9000, &[])), BTreeSet::new());
    world.cluster.hold_surplus(false);
    assert_eq!(deletions(&world.run(9000, &[])), plain());
}

#[test]
fn containers_are_read_anew_before_anything_goes_after_a_start() {
    let mut world = world();
    world.cluster.groups.forget_proofs();
    pack(&mut world);
    let mut read = BTreeSet::new();
    for _ in 0..10 {
        let commands = world.run(3000, &[]);
        let told = proves(&commands);
        if read.len() < 3 {
            assert_eq!(deletions(&commands), BTreeSet::new(), "{} were read", read.len());
        }
        for (node, order) in told {
            let storage = world.cluster.storage(order.storage).uuid.clone();
            let handle = world.handle(node);
            let crc32c = world.blocks.unit_crc(order.block.id, UnitIndex(0));
            read.insert(order.block.id);
            world.cluster.proved(
                &world.blocks,
                handle,
                &Proved { block: order.block, storage, crc32c, record: None, index: None },
            );
        }
        if deletions(&commands) == plain() {
            break;
        }
    }
    assert_eq!(read, (0..3).map(container).collect());
}

/// A DataNode starts again after the group was formed, and before anything is packed: no copy is there to have it asked for.
#[test]
fn containers_are_read_anew_before_anything_is_packed() {
    let mut world = world();
    let is_safe =
        |world: &World| world.cluster.is_container_safe(&world.blocks, container(0), world.now);
    world.run(3000, &[]);
    assert!(is_safe(&world));
    world.cluster.groups.forget_proofs();
    assert!(!is_safe(&world));
    for _ in 0..3 {
        world.cluster.have_containers_proven(&world.blocks, container(0));
        for (node, order) in proves(&world.run(3000, &[])) {
            let storage = world.cluster.storage(order.storage).uuid.clone();
            let crc32c = world.blocks.unit_crc(order.block.id, UnitIndex(0));
            let proved = Proved { block: order.block, storage, crc32c, record: None, index: None };
            world.cluster.proved(&world.blocks, world.handle(node), &proved);
        }
    }
    assert!(is_safe(&world));
}

/// A node with plain replicas was away while they were packed; then the group loses more than it can.
#[test]
fn the_last_copy_of_a_packed_block_is_not_surplus() {
    let mut world = world();
    pack(&mut world);
    for node in PLAIN {
        let block = world.good(small(), 0);
        world.deleted(node, block);
    }
    let lost = [0, 1, 2];
    world.run(3_600_000, &lost);
    let block = world.good(small(), 0);
    world.received(7, block);
    let gone = deletions(&world.run(60_000, &lost));
    assert_eq!(gone, BTreeSet::new());
    assert_eq!(world.cluster.to_unpack(&world.blocks, 10), [small()]);
    // It is plain again, and mended as that.
    let facts = world.blocks.0.get_mut(&small()).unwrap();
    (facts.packed, facts.layout) = (None, Layout::Replicated { copies: 3 });
    world.cluster.block_changed(&world.blocks, small());
    assert_eq!(world.cluster.packed_with_replicas(), 0);
    let commands = world.run(60_000, &lost);
    let copies = commands[&7].iter().any(|command| matches!(command, Command::Transfer(_)));
    assert!(copies, "{commands:?}");
}

#[test]
fn a_container_is_sealed_as_it_was_read_back_and_reported() {
    let mut world = World::new(3, 3);
    let id = container(7);
    let facts = BlockFacts { state: BlockState::UnderConstruction, ..replicated(1, 0, LIVE) };
    world.blocks.0.insert(id, facts);
    let (gs, target) = (facts.gs, world.storage(1));
    world.cluster.block_allocated(id, gs, &[Some(target)]);
    world.cluster.pack_begun((id, gs), &[Some(target)], world.now);
    let told = world.run(3000, &[]);
    let order =
        Command::Pack(vec![PackOrder { container: BlockRef { id, gs, len: 0 }, storage: target }]);
    assert!(told[&1].contains(&order) && !told[&0].contains(&order));
    let block = BlockRef { id, gs, len: LEN };
    let seal = |world: &World, node, crc| {
        let at = (world.handle(node), target);
        world.cluster.can_seal(&world.blocks, at, block, crc)
    };
    assert_eq!(seal(&world, 1, 5), Err(NotSealed::Awaited));
    world.received_with_crc(1, block, Some(5));
    assert_eq!(seal(&world, 1, 5), Ok(()));
    assert_eq!(seal(&world, 1, 6), Err(NotSealed::Lost));
    assert_eq!(seal(&world, 0, 5), Err(NotSealed::NotOpen));
    assert_eq!(world.cluster.failed_packs(world.now), []);
    world.cluster.end_attempts_of(world.handle(1));
    assert_eq!(world.cluster.failed_packs(world.now).len(), 1);
    assert_eq!(seal(&world, 1, 5), Err(NotSealed::NotOpen));
}

/// A packed block of which no plain replica is left.
fn packed_only() -> World {
    let mut world = world();
    pack(&mut world);
    world.run(6000, &[]);
    for node in PLAIN {
        let block = world.good(small(), 0);
        world.deleted(node, block);
    }
    world
}

fn unpack(world: &mut World, copies: usize) -> bool {
    let (block, now) = (world.good(small(), 0), world.now);
    world.cluster.unpack(&world.blocks, block, copies, now, &mut || 0)
}

/// The nodes that are to write a replica.
fn unpacks(commands: &BTreeMap<usize, Vec<Command>>) -> BTreeSet<usize> {
    let is_order =
        |command: &Command| matches!(command, Command::Unpack(orders) if !orders.is_empty());
    let told = commands.iter().filter(|(_, commands)| commands.iter().any(is_order));
    told.map(|(node, _)| *node).collect()
}

#[test]
fn a_block_that_is_to_be_plain_gets_its_replicas_and_none_is_deleted() {
    let mut world = packed_only();
    assert!(!unpack(&mut world, 3));
    assert!(!unpack(&mut world, 3), "what is ordered is not ordered twice");
    let told = unpacks(&world.run(3000, &[]));
    assert_eq!(told.len(), 3);
    let block = world.good(small(), 0);
    for (count, node) in told.iter().enumerate() {
        assert!(!unpack(&mut world, 3), "{count} of three are there");
        world.received_with_crc(*node, block, Some(9));
    }
    assert!(unpack(&mut world, 3));
    let commands = world.run(30_000, &[]);
    assert_eq!(deletions(&commands), BTreeSet::new(), "the container is safe, and they stay");
    assert_eq!(unpacks(&commands), BTreeSet::new());
    // If it is to stay packed after all, they go.
    world.cluster.keep_packed(&world.blocks, small());
    assert_eq!(deletions(&world.run(6000, &[])).len(), 3);
}

#[test]
fn what_does_not_come_in_time_is_ordered_elsewhere() {
    let mut world = packed_only();
    unpack(&mut world, 1);
    let first = unpacks(&world.run(3000, &[]));
    assert_eq!(first.len(), 1);
    let patience = world.cluster.config().pending_timeout.as_millis() as u64;
    world.run(patience, &[]);
    assert!(!unpack(&mut world, 1));
    let second = unpacks(&world.run(3000, &[]));
    assert!(second.len() == 1 && second != first, "{first:?}, {second:?}");
}

/// A reader with bad memory: the container is looked at, and not taken for bad on his word.
#[test]
fn who_says_that_a_packed_block_is_bad_has_its_container_read() {
    let mut world = packed_only();
    let (node, block) = (world.handle(0), world.good(small(), 0));
    world.cluster.report_bad(&world.blocks, node, "", block).unwrap();
    let commands = world.run(3000, &[]);
    let asked: Vec<_> = proves(&commands);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!((asked[0].0, asked[0].1.block.id), (0, container(0)));
    assert!(world.cluster.is_container_safe(&world.blocks, container(0), world.now));
    assert_eq!(deletions(&commands), BTreeSet::new());
}
