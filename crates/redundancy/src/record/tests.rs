//! A record that is wrong, and replicas that are.

use crate::fixture::*;
use crate::*;
use cairn_stripe::{BlockId, UnitIndex};

const LIVE: BlockState = BlockState::Complete;

/// A block of three replicas with these CRCs, of which 7 is recorded, on the first of `nodes` nodes.
fn told(nodes: usize, copies: u16, crcs: &[Option<u32>]) -> (World, BlockId) {
    let mut world = World::new(nodes, 1);
    let id = block(1);
    world.blocks.0.insert(id, replicated(copies, 100, LIVE));
    world.blocks.1.insert((id, UnitIndex(0)), 7);
    let good = world.good(id, 0);
    for (node, crc32c) in crcs.iter().enumerate() {
        world.received_with_crc(node, good, *crc32c);
    }
    (world, id)
}

fn deletions(world: &mut World) -> Vec<usize> {
    let told = world.run(400_000, &[]).into_iter();
    let deletes = |command: &Command| matches!(command, Command::Invalidate(_));
    told.filter(|(_, commands)| commands.iter().any(deletes)).map(|(node, _)| node).collect()
}

/// As the NameNode does it: a command of the log, then a word to the cluster.
fn replace(world: &mut World) {
    for disproved in world.cluster.take_disproved() {
        world.blocks.1.insert((disproved.id, UnitIndex(0)), disproved.crc32c);
        world.cluster.record_replaced(&world.blocks, disproved.id);
    }
}

/// The first report made the record (`dfs.namenode.replication.min` is 1), and it was wrong.
#[test]
fn two_of_three_replicas_prove_the_record_wrong() {
    let (mut world, id) = told(4, 3, &[Some(7), Some(8)]);
    assert!(!world.cluster.is_record_doubtful(id));
    let good = world.good(id, 0);
    world.received_with_crc(2, good, Some(8));
    assert!(world.cluster.is_record_doubtful(id));
    assert_eq!(world.cluster.blocks_with_doubtful_records().collect::<Vec<_>>(), [id]);
    let disproved = world.cluster.take_disproved();
    let gs = good.gs;
    assert_eq!(disproved, [DisprovedCrc { id, gs, recorded: 7, crc32c: 8 }]);
    assert_eq!(deletions(&mut world), [], "not before the record is replaced");
    world.blocks.1.insert((id, UnitIndex(0)), 8);
    world.cluster.record_replaced(&world.blocks, id);
    assert!(!world.cluster.is_record_doubtful(id));
    let corrupt = |world: &World| -> Vec<(usize, bool)> {
        let places = world.cluster.locations(id);
        let mut places: Vec<_> =
            places.iter().map(|at| (world.number(at.storage), at.corrupt)).collect();
        places.sort_unstable();
        places
    };
    assert_eq!(corrupt(&world), [(0, true), (1, false), (2, false)]);
    world.run(6000, &[]);
    assert_eq!(corrupt(&world).len(), 3, "until a third good one is there");
    world.received_with_crc(3, good, Some(8));
    assert_eq!(deletions(&mut world), [0]);
}

#[test]
fn replicas_that_agree_against_as_many_are_kept_and_prove_nothing() {
    // Two against two; two against one of which no CRC is known, and of four.
    for (copies, crcs) in
        [(4, [Some(7), Some(7), Some(8), Some(8)]), (4, [None, None, Some(8), Some(8)])]
    {
        let (mut world, id) = told(6, copies, &crcs);
        assert!(world.cluster.is_record_doubtful(id));
        replace(&mut world);
        assert!(world.cluster.is_record_doubtful(id));
        // The work to replace them is done, and what differs is kept all the same.
        let good = world.good(id, 0);
        for node in [4, 5] {
            world.received_with_crc(node, good, Some(7));
        }
        assert_eq!(deletions(&mut world), []);
    }
}

#[test]
fn one_replica_against_the_record_is_bad() {
    let (mut world, id) = told(4, 3, &[Some(7), Some(7), Some(8)]);
    assert!(!world.cluster.is_record_doubtful(id));
    let good = world.good(id, 0);
    world.received_with_crc(3, good, Some(7));
    assert_eq!(deletions(&mut world), [2]);
}

/// Those whose nodes are to report may be on the record's side.
#[test]
fn nothing_is_proven_while_a_storage_is_to_report() {
    let (mut world, id) = told(4, 3, &[Some(7), Some(8)]);
    world.register(registration(0, 0));
    let good = world.good(id, 0);
    world.received_with_crc(2, good, Some(8));
    assert!(world.cluster.is_record_doubtful(id));
    assert_eq!(world.cluster.take_disproved(), []);
    assert_eq!(deletions(&mut world), []);
}

#[test]
fn a_reader_that_finds_bad_bytes_makes_no_witness() {
    let (mut world, id) = told(4, 3, &[Some(7), Some(8), Some(8)]);
    let (node, bad) = (world.handle(1), world.good(id, 0));
    world.cluster.report_bad(&world.blocks, node, "", bad).unwrap();
    assert!(!world.cluster.is_record_doubtful(id));
}

#[test]
fn copies_of_a_unit_that_agree_against_the_record_are_kept_and_prove_nothing() {
    let mut world = World::new(7, 1);
    let id = group(1);
    world.store(id, rs(3, 2, 9000, LIVE), &[0, 1, 2, 3, 4]);
    world.blocks.1.insert((id, UnitIndex(1)), 7);
    let unit = world.good(id, 1);
    for node in [5, 6] {
        world.received_with_crc(node, unit, Some(8));
    }
    assert!(world.cluster.is_record_doubtful(id));
    assert_eq!(world.cluster.take_disproved(), []);
    assert_eq!(deletions(&mut world), []);
}
