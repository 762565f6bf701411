//! How containers that were taken over are read, and what a start waits for then.

use crate::fixture::*;
use crate::groups::prove::Proved;
use crate::*;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

const HANDLE: BlockId = BlockId((1 << 61) + 16);
const GS: GenerationStamp = GenerationStamp(2000);
const OF_CONTAINER: GenerationStamp = GenerationStamp(1900);
const PARITY_LEN: u64 = 10_000;

fn small() -> BlockRef {
    BlockRef { id: block(1), gs: GenerationStamp(1001), len: 700 }
}

fn index(slot: usize) -> PackIndex {
    let id = BlockId((1 << 60) + 1 + slot as i64);
    let mut index = PackIndex::new((id, OF_CONTAINER), 2, 512).unwrap();
    let of = if slot == 1 { small() } else { BlockRef { id: block(90 + slot as i64), ..small() } };
    index.push(0, (of.id, of.gs), (of.len as u32, 5)).unwrap();
    index
}

fn container(slot: usize) -> BlockRef {
    let index = index(slot);
    BlockRef { id: index.container, gs: index.gs, len: index.container_len() }
}

/// Blocks of which a start that is to go on waits for more than there are.
const MANY: u64 = 10;

/// A restored namespace at its start that waits for so many blocks. Of two of them it is known what they are: a small one of which
/// nobody has a replica, and one that node 5 has. The small one is in a container that is lost, in a group of which all else is
/// there, unit `i` on node `i`. The group is taken over, and nobody knows what is in it.
fn world(block_total: u64) -> World {
    let mut world = World::new(6, 6);
    world.cluster = Cluster::new(Config::default());
    world.cluster.hold_deletions(true);
    world.blocks.0.insert(small().id, replicated(3, 700, BlockState::Complete));
    let plain = BlockRef { id: block(50), gs: GenerationStamp(1001), len: 700 };
    world.blocks.0.insert(plain.id, replicated(3, 700, BlockState::Complete));
    world.cluster.start_safe_mode(block_total, world.now);
    let parity = |slot| BlockRef { id: HANDLE.internal(UnitIndex(slot)), gs: GS, len: PARITY_LEN };
    for node in 0..6 {
        world.register(registration(node, node));
        world.heartbeat(node);
        let units = [container(0), container(1), container(2), parity(3), parity(4), plain];
        let block = units.get(node).filter(|_| node != 1).copied();
        let report =
            |block| ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
        world.full_report(node, &block.map(report).into_iter().collect::<Vec<_>>());
    }
    let parities = BlockRef { id: HANDLE, gs: GS, len: PARITY_LEN };
    world.blocks.3.insert(HANDLE, formed_group(parities, 2, &[0, 1, 2].map(container)));
    for slot in 0..3 {
        let BlockRef { id, gs, len } = container(slot);
        let group = Some((HANDLE, UnitIndex(slot as u8)));
        let facts = replicated(1, len, BlockState::Complete);
        world.blocks.0.insert(id, BlockFacts { group, gs, ..facts });
        world.blocks.1.insert((id, UnitIndex(0)), 7);
    }
    world.cluster.group_adopted(&world.blocks, HANDLE);
    world
}

/// Who is told to read the index of a container.
fn asked(world: &mut World, slot: usize) -> Vec<(usize, ProveOrder)> {
    world.cluster.ask_for_index(&world.blocks, container(slot).id, world.now);
    let mut asked = Vec::new();
    for (node, commands) in world.run(3000, &[]) {
        for command in commands {
            let Command::Prove(orders) = command else {
                panic!("nothing else is told: {command:?}");
            };
            asked.extend(orders.into_iter().map(|order| (node, order)));
        }
    }
    asked
}

fn tell(world: &mut World, node: usize, slot: usize, told: (Option<u32>, PackIndex)) {
    let (crc32c, index) = told;
    let storage = world.cluster.storage(world.storage(node)).uuid.clone();
    let index = Some(index);
    let proved = Proved { block: container(slot), storage, crc32c, record: None, index };
    let handle = world.handle(node);
    world.cluster.proved(&world.blocks, handle, &proved);
}

#[test]
fn indexes_are_read_in_safe_mode_where_containers_are_and_decoded_where_none_is() {
    let mut world = world(MANY);
    assert_eq!(world.cluster.safe_mode().block_counts(), (MANY + 3, 4), "containers are found");
    let orders = asked(&mut world, 0);
    assert_eq!(orders.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0]);
    assert!(orders[0].1.wants_index && orders[0].1.block == container(0));
    assert_eq!(asked(&mut world, 0), [], "it is being read");
    tell(&mut world, 0, 0, (Some(7), index(0)));
    assert_eq!(world.cluster.index_of(container(0).id).as_deref(), Some(&index(0)));
    assert_eq!(asked(&mut world, 0), [], "it was read");
    let orders = asked(&mut world, 1);
    let node = orders[0].0;
    assert!(orders.len() == 1 && [0, 2, 3, 4].contains(&node), "who has another unit");
    tell(&mut world, node, 1, (None, index(1)));
    assert_eq!(world.cluster.index_of(container(1).id).as_deref(), Some(&index(1)));
}

#[test]
fn an_index_of_something_else_or_from_other_bytes_is_not_believed() {
    let mut world = world(MANY);
    for (crc32c, wrong) in [
        (Some(8), index(0)),
        (Some(7), index(2)),
        (None, PackIndex::new((container(0).id, GS), 2, 512).unwrap()),
        (None, PackIndex::new((container(0).id, OF_CONTAINER), 2, 512).unwrap()),
    ] {
        let node = asked(&mut world, 0).first().map_or(0, |(node, _)| *node);
        tell(&mut world, node, 0, (crc32c, wrong));
        assert_eq!(world.cluster.index_of(container(0).id), None);
        world.now = at(world.now.mono_ms + 600_000);
    }
}

#[test]
fn a_start_does_not_wait_for_what_is_packed_in_a_container_that_can_be_had() {
    let mut world = world(2);
    assert_eq!(world.cluster.safe_mode().block_counts(), (5, 4), "the small block is not found");
    let facts = world.blocks.0[&small().id];
    assert!(world.cluster.needs_container(&world.blocks, small().id, &facts));
    let packed = BlockFacts { packed: Some(container(1).id), ..facts };
    world.blocks.0.insert(small().id, packed);
    world.cluster.block_packed(&world.blocks, small().id);
    assert!(!world.cluster.needs_container(&world.blocks, small().id, &packed));
    assert_eq!(world.cluster.safe_mode().block_counts(), (4, 4));
    world.cluster.contents_taken(container(1).id, 1);
    assert_eq!(world.cluster.taken_over().adopted_blocks, 1);
    // As when its container cannot be had and it is plain again.
    world.blocks.0.insert(small().id, facts);
    world.cluster.block_unpacked(&world.blocks, small().id);
    assert_eq!(world.cluster.safe_mode().block_counts(), (5, 4));
    world.blocks.0.insert(small().id, packed);
    world.cluster.block_packed(&world.blocks, small().id);
    world.run(60_000, &[]);
    assert!(!world.cluster.safe_mode().is_on());
}

/// A restored namespace that waits for two blocks: of one of them, a small one, nobody has a replica. Nodes 0 and 2 have containers of which no
/// parity is left; the small one is in that of node 2.
fn without_parities() -> World {
    let mut world = World::new(3, 3);
    world.cluster = Cluster::new(Config::default());
    world.cluster.hold_deletions(true);
    world.blocks.0.insert(small().id, replicated(3, 700, BlockState::Complete));
    world.cluster.start_safe_mode(2, world.now);
    for node in 0..3 {
        world.register(registration(node, node));
        world.heartbeat(node);
        let blocks = [Some(container(0)), None, Some(container(1))];
        let report =
            |block| ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
        world.full_report(node, &blocks[node].map(report).into_iter().collect::<Vec<_>>());
    }
    world
}

/// Who is told to read what belongs to nothing.
fn asked_about(world: &mut World) -> Vec<(usize, ProveOrder)> {
    world.cluster.ask_for_unknown(&world.blocks, world.now);
    let mut asked = Vec::new();
    for (node, commands) in world.run(3000, &[]) {
        for command in commands {
            let Command::Prove(orders) = command else { panic!("nothing else: {command:?}") };
            asked.extend(orders.into_iter().map(|order| (node, order)));
        }
    }
    asked
}

#[test]
fn containers_of_which_no_parity_is_left_are_read_and_taken_over_without_a_group() {
    let mut world = without_parities();
    let orders = asked_about(&mut world);
    let of: Vec<_> = orders.iter().map(|(node, of)| (*node, of.block, of.wants_index)).collect();
    assert_eq!(of, [(0, container(0), true), (2, container(1), true)]);
    assert_eq!(asked_about(&mut world), [], "they are being read");
    assert_eq!(world.cluster.taken_over().unread_containers, 2);
    assert!(!world.cluster.has_found_all(world.now), "others may come");
    // What is not the index of what was asked for is not believed.
    tell(&mut world, 0, 0, (Some(7), index(2)));
    tell(&mut world, 2, 1, (Some(7), index(1)));
    let found: Vec<BlockId> = world.cluster.found_containers().map(|of| of.block.id).collect();
    assert_eq!(found, [container(1).id]);
    let orders = asked_about(&mut world);
    assert_eq!(orders.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0], "once more");
    tell(&mut world, 0, 0, (Some(7), index(0)));
    world.cluster.pass_container_over(container(0).id);
    assert_eq!(asked_about(&mut world), [], "no block needs it");
    assert_eq!(world.cluster.taken_over().unread_containers, 0);
    // The log has it.
    let BlockRef { id, gs, len } = container(1);
    let facts = replicated(3, len, BlockState::Complete);
    world.blocks.0.insert(id, BlockFacts { gs, ..facts });
    world.blocks.1.insert((id, UnitIndex(0)), 7);
    world.cluster.container_adopted(&world.blocks, id);
    assert_eq!(world.places(id), [(2, 0)]);
    assert_eq!(world.cluster.index_of(id).as_deref(), Some(&index(1)), "it is not read again");
    assert_eq!(world.cluster.found_containers().count(), 0);
    assert_eq!(world.cluster.safe_mode().block_counts(), (3, 1));
    let facts = world.blocks.0[&small().id];
    assert!(world.cluster.needs_container(&world.blocks, small().id, &facts));
    world.blocks.0.insert(small().id, BlockFacts { packed: Some(id), ..facts });
    world.cluster.block_packed(&world.blocks, small().id);
    assert_eq!(world.cluster.safe_mode().block_counts(), (2, 1));
    world.run(60_000, &[]);
    assert!(!world.cluster.safe_mode().is_on());
}

#[test]
fn a_container_of_a_group_that_parities_tell_of_is_left_to_that() {
    use cairn_stripe::group::{GroupRecord, Member};
    use cairn_stripe::{CodecName, PolicyId, Schema};
    let mut world = without_parities();
    let parity = BlockRef { id: HANDLE.internal(UnitIndex(3)), gs: GS, len: PARITY_LEN };
    world.received(1, parity);
    let orders = asked_about(&mut world);
    let of_parity = orders.iter().find(|(_, of)| of.block == parity).expect("it is read");
    let member = |slot| {
        let BlockRef { id, gs, len } = container(slot);
        Some(Member { id, gs, len, crc32c: 7, sums_crc32c: 0 })
    };
    let record = GroupRecord {
        handle: HANDLE,
        gs: GS,
        policy: PolicyId(34),
        schema: Schema { codec: CodecName::Rs, k: 3, m: 2 },
        checksum_type: 2,
        chunk_len: 512,
        data_len: container(0).len,
        members: vec![member(0), member(1), None],
    };
    let storage = world.cluster.storage(of_parity.1.storage).uuid.clone();
    let (crc32c, index) = (Some(1), None);
    let proved = Proved { block: parity, storage, crc32c, record: Some(record), index };
    let handle = world.handle(1);
    world.cluster.proved(&world.blocks, handle, &proved);
    world.now = at(world.now.mono_ms + 600_000);
    assert_eq!(asked_about(&mut world), []);
    // Where too little of the group is there, what is there is read by itself.
    world.cluster.refuse_found(HANDLE, "too little is there");
    let orders = asked_about(&mut world);
    assert_eq!(orders.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [0, 2]);
}
