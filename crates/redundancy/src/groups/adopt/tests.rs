//! What is asked of parities that belong to nothing, and what becomes of their group.

use crate::fixture::*;
use crate::groups::prove::Proved;
use crate::*;
use cairn_stripe::group::{GroupRecord, Member};
use cairn_stripe::{BlockId, CodecName, GenerationStamp, PolicyId, Schema, UnitIndex};

const HANDLE: BlockId = BlockId((1 << 61) + 16);
const GS: GenerationStamp = GenerationStamp(2000);
const LEN: u64 = 1000;
const PARITY_LEN: u64 = 1012;

fn parity(slot: u8) -> BlockRef {
    BlockRef { id: HANDLE.internal(UnitIndex(slot)), gs: GS, len: PARITY_LEN }
}

/// Member `slot`, of which the last one is of a file that is not known any more.
fn member(slot: usize) -> BlockRef {
    BlockRef { id: block(slot as i64 + 1), gs: GenerationStamp(1001), len: LEN }
}

/// A restored namespace at its start with two blocks, members of a group that it does not know; unit `i` is on node `i`,
/// and nobody has the second member.
fn world() -> World {
    let mut world = World::new(6, 6);
    world.cluster = Cluster::new(Config::default());
    world.cluster.hold_deletions(true);
    for slot in 0..2 {
        world.blocks.0.insert(member(slot).id, replicated(3, LEN, BlockState::Complete));
        world.blocks.1.insert((member(slot).id, UnitIndex(0)), slot as u32);
    }
    world.cluster.start_safe_mode(2, world.now);
    for node in 0..6 {
        world.register(registration(node, node));
        world.heartbeat(node);
        let units = [member(0), member(1), member(2), parity(3), parity(4)];
        let block = units.get(node).filter(|_| node != 1).copied();
        let report =
            |block| ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None };
        world.full_report(node, &block.map(report).into_iter().collect::<Vec<_>>());
    }
    world
}

fn record() -> GroupRecord {
    let of = |slot| {
        let BlockRef { id, gs, len } = member(slot);
        Some(Member { id, gs, len, crc32c: slot as u32, sums_crc32c: 0 })
    };
    GroupRecord {
        handle: HANDLE,
        gs: GS,
        policy: PolicyId(34),
        schema: Schema { codec: CodecName::Rs, k: 3, m: 2 },
        checksum_type: 2,
        chunk_len: 512,
        data_len: LEN,
        members: (0..3).map(of).collect(),
    }
}

/// The replicas that nodes are told to read.
fn asked(world: &mut World) -> Vec<(usize, ProveOrder)> {
    world.cluster.ask_for_unknown(&world.blocks, world.now);
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

fn tell(world: &mut World, (node, order): (usize, ProveOrder), record: Option<GroupRecord>) {
    let storage = world.cluster.storage(order.storage).uuid.clone();
    let proved = Proved { block: order.block, storage, crc32c: Some(77), record, index: None };
    let handle = world.handle(node);
    world.cluster.proved(&world.blocks, handle, &proved);
}

/// The group is in the log.
fn adopt(world: &mut World) {
    let parities = BlockRef { id: HANDLE, ..parity(3) };
    let mut group = formed_group(parities, 2, &[member(0), member(1), member(2)]);
    group.slots[2].as_mut().unwrap().live = false;
    world.blocks.3.insert(HANDLE, group);
    for slot in 0..3 {
        let facts = replicated(1, LEN, BlockState::Complete);
        let group = Some((HANDLE, UnitIndex(slot as u8)));
        world.blocks.0.insert(member(slot).id, BlockFacts { group, ..facts });
    }
    world.cluster.group_adopted(&world.blocks, HANDLE);
}

#[test]
fn parities_are_read_in_safe_mode_and_their_group_ends_it() {
    let mut world = world();
    assert!(world.cluster.safe_mode().is_starting(), "a block is lost");
    let orders = asked(&mut world);
    assert_eq!(orders.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(asked(&mut world), [], "they are being read");
    assert_eq!(world.cluster.taken_over().unread, 2);
    for order in orders {
        tell(&mut world, order, Some(record()));
    }
    assert!(!world.cluster.has_found_all(world.now), "others may come");
    assert_eq!(asked(&mut world), []);
    world.now = at(world.now.mono_ms + 60_000);
    assert!(world.cluster.has_found_all(world.now));
    let found = world.cluster.found_groups().next().unwrap().clone();
    assert_eq!(found.parities.len(), 2);
    assert_eq!(world.cluster.found_units(&world.blocks, &found), 4);
    let facts = world.blocks.0[&member(1).id];
    assert!(world.cluster.needs_group(&world.blocks, member(1).id, &facts));
    adopt(&mut world);
    assert_eq!(world.places(HANDLE), [(3, 3), (4, 4)]);
    assert_eq!(world.places(member(2).id), [(2, 0)], "a tombstone has its replica");
    assert_eq!(world.cluster.safe_mode().block_counts(), (3, 3));
    let taken_over = world.cluster.taken_over();
    assert_eq!((taken_over.found, taken_over.adopted), (0, 1));
    world.run(60_000, &[]);
    assert!(!world.cluster.safe_mode().is_on());
    let facts = world.blocks.0[&member(1).id];
    assert!(world.cluster.is_decodable(&world.blocks, member(1).id, &facts));
}

#[test]
fn a_parity_that_tells_of_another_group_or_of_none_is_not_believed() {
    let mut world = world();
    let orders = asked(&mut world);
    tell(&mut world, orders[0], Some(GroupRecord { gs: GenerationStamp(9), ..record() }));
    tell(&mut world, orders[1], None);
    assert_eq!(world.cluster.found_groups().count(), 0);
    assert_eq!(asked(&mut world).len(), 2, "they are asked again");
}

#[test]
fn why_a_group_is_not_taken_over_is_told_once() {
    let mut world = world();
    let orders = asked(&mut world);
    tell(&mut world, orders[0], Some(record()));
    assert!(world.cluster.refuse_found(HANDLE, "why"));
    assert!(!world.cluster.refuse_found(HANDLE, "why"));
    assert_eq!(world.cluster.taken_over().refused, [(HANDLE, "why".to_string())]);
    world.cluster.forget_found();
    assert_eq!(world.cluster.taken_over(), Default::default());
}
