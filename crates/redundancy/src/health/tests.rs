use super::*;
use crate::fixture::{World, at, block, group, replicated, rs};
use crate::{BlockRef, BlockState, ReplicaEventKind};
use cairn_stripe::GenerationStamp;

/// Units with their standings, as `unit:letter` words: Live, deCommissioning (c), Decommissioned,
/// Entering, Maintenance, Bad, eXcess; a star marks a storage that has not reported.
fn replicas(picture: &str) -> Vec<Replica> {
    let one = |word: &str| {
        let (unit, kind) = word.split_once(':').unwrap();
        let standing = match &kind[..1] {
            "L" => Standing::Live,
            "R" => Standing::ReadOnly,
            "c" => Standing::Decommissioning,
            "D" => Standing::Decommissioned,
            "E" => Standing::EnteringMaintenance,
            "M" => Standing::InMaintenance,
            "B" => Standing::Corrupt(BadReason::Reported),
            "X" => Standing::Excess,
            other => panic!("{other}"),
        };
        Replica {
            node: NodeHandle(0),
            storage: StorageHandle(0),
            unit: UnitIndex(unit.parse().unwrap()),
            standing,
            stale: kind.ends_with('*'),
        }
    };
    picture.split_whitespace().map(one).collect()
}

/// Live, missing, lacking, surplus, below the minimum, corrupt.
type Told = (usize, bool, usize, usize, bool, bool);

fn told(facts: &BlockFacts, picture: &str, min: u16) -> Told {
    let verdict = Verdict::of(facts, &replicas(picture), min);
    (
        verdict.counts.live,
        verdict.is_missing(),
        verdict.lacking(),
        verdict.surplus(),
        verdict.is_below_min(),
        verdict.corrupt,
    )
}

#[test]
fn replicated_blocks_are_judged() {
    let three = replicated(3, 100, BlockState::Complete);
    for (picture, wanted) in [
        ("0:L 0:L 0:L", (3, false, 0, 0, false, false)),
        ("0:L 0:L 0:L 0:L", (4, false, 0, 1, false, false)),
        ("0:L 0:L 0:L 0:X", (3, false, 0, 0, false, false)),
        ("0:L 0:L", (2, false, 1, 0, false, false)),
        ("0:L 0:L 0:B", (2, false, 1, 0, false, false)),
        ("", (0, true, 0, 0, true, false)),
        ("0:B 0:B", (0, true, 0, 0, true, true)),
        ("0:B 0:c", (0, false, 2, 0, false, false)),
        ("0:L 0:D 0:M", (1, false, 0, 0, false, false)),
        ("0:E 0:R", (0, false, 2, 0, false, false)),
        ("0:X", (0, true, 0, 0, true, false)),
    ] {
        assert_eq!(told(&three, picture, 1), wanted, "{picture}");
    }
    // Fewer than the minimum is not missing yet.
    assert_eq!(told(&three, "0:L", 2), (1, false, 2, 0, true, false));
}

#[test]
fn groups_are_judged_by_distinct_units() {
    let group = rs(3, 2, 3 * 1024, BlockState::Complete);
    for (picture, wanted) in [
        ("0:L 1:L 2:L 3:L 4:L", (5, false, 0, 0, false, false)),
        ("0:L 1:L 2:L 3:L 4:L 4:L", (5, false, 0, 0, false, false)),
        ("0:L 0:L 1:L 1:L 2:L", (3, false, 2, 0, false, false)),
        ("0:L 3:L 4:L", (3, false, 2, 0, false, false)),
        ("0:L 3:L", (2, true, 0, 0, true, false)),
        ("0:L 3:L 1:B", (2, true, 0, 0, true, true)),
        ("0:L 3:L 4:L 1:B", (3, false, 2, 0, false, false)),
        ("0:L 1:L 2:c 3:L 3:c 4:L", (4, false, 0, 0, false, false)),
        ("0:L 1:L 2:M", (2, false, 2, 0, false, false)),
        // What leaves can be read, and what is away comes back: nothing for `fsck -delete`.
        ("0:L 1:B 2:c 3:D", (1, false, 2, 0, false, false)),
        ("0:L 1:B 2:E 4:M", (1, false, 2, 0, false, false)),
        ("0:L 1:B 2:c 2:c", (1, true, 0, 0, true, true)),
    ] {
        assert_eq!(told(&group, picture, 1), wanted, "{picture}");
    }
    // A group of one cell has three units, and needs one.
    let short = rs(3, 2, 10, BlockState::Complete);
    assert_eq!(told(&short, "0:L 3:L 4:L", 1), (3, false, 0, 0, false, false));
    assert_eq!(told(&short, "4:L", 1), (1, false, 2, 0, false, false));
    assert_eq!(told(&short, "", 1), (0, true, 0, 0, true, false));
}

#[test]
fn every_standing_is_counted() {
    let counts =
        ReplicaCounts::of(true, &replicas("0:L 0:L* 1:c 1:c 0:c 2:D 3:E 4:M 5:B* 6:X 7:R"));
    let wanted = ReplicaCounts {
        live: 1,
        read_only: 1,
        decommissioning: 1,
        decommissioned: 1,
        entering_maintenance: 1,
        in_maintenance: 1,
        corrupt: 1,
        excess: 1,
        stale: 2,
        redundant: 1,
    };
    assert_eq!(counts, wanted);
    assert_eq!(counts.found(), 5);
}

#[test]
fn bad_replicas_have_their_reasons() {
    let mut world = World::new(3, 1);
    let id = block(1);
    let facts = replicated(3, 100, BlockState::Complete);
    world.store(id, facts, &[0]);
    // The length that a reporter tells means nothing.
    let (handle, good) = (world.handle(0), BlockRef { len: 7, ..world.good(id, 0) });
    world.cluster.report_bad(&world.blocks, handle, "", good).unwrap();
    world.received(1, BlockRef { id, gs: GenerationStamp(1000), len: 100 });
    world.received(2, BlockRef { id, gs: facts.gs, len: 99 });
    let standings = |world: &World| {
        let replicas = world.cluster.replicas(id, &facts);
        replicas.iter().map(|r| (world.number(r.storage), r.standing)).collect::<Vec<_>>()
    };
    let bad = |reason| Standing::Corrupt(reason);
    let wanted = [
        (0, bad(BadReason::Reported)),
        (1, bad(BadReason::WrongStamp)),
        (2, bad(BadReason::WrongLength)),
    ];
    let mut seen = standings(&world);
    seen.sort_by_key(|(node, _)| *node);
    // None is deleted while no good one is there.
    assert_eq!(seen, wanted);
}

#[test]
fn states_of_nodes_show() {
    let mut world = World::new(5, 1);
    let id = group(1);
    let facts = rs(3, 2, 3 * 1024, BlockState::Complete);
    world.store(id, facts, &[0, 1, 2, 3, 4]);
    for (node, admin) in [
        (0, AdminState::DecommissionInProgress),
        (1, AdminState::Decommissioned),
        (2, AdminState::EnteringMaintenance),
        (3, AdminState::InMaintenance),
    ] {
        let handle = world.handle(node);
        world.cluster.nodes.node_mut(handle).admin = admin;
    }
    let replicas = world.cluster.replicas(id, &facts);
    let standings: Vec<Standing> = replicas.iter().map(|r| r.standing).collect();
    let wanted = [
        Standing::Decommissioning,
        Standing::Decommissioned,
        Standing::EnteringMaintenance,
        Standing::InMaintenance,
        Standing::Live,
    ];
    assert_eq!(standings, wanted);
    let verdict = Verdict::of(&facts, &replicas, 1);
    assert_eq!((verdict.counts.live, verdict.lacking()), (1, 0));
}

#[test]
fn surplus_is_seen_until_it_is_deleted() {
    let mut world = World::new(4, 1);
    let id = block(1);
    world.store(id, replicated(3, 100, BlockState::Complete), &[0, 1, 2, 3]);
    let facts = world.blocks.0[&id];
    let verdict = |world: &World| Verdict::of(&facts, &world.cluster.replicas(id, &facts), 1);
    assert_eq!((verdict(&world).counts.live, verdict(&world).counts.excess), (3, 1));
    let spare = world.cluster.replicas(id, &facts);
    let spare = spare.iter().find(|r| r.standing == Standing::Excess).unwrap().storage;
    let (node, gone) = (world.number(spare), world.good(id, 0));
    world.event(
        node,
        crate::ReplicaEvent { block: gone, kind: ReplicaEventKind::Deleted, crc32c: None },
    );
    assert_eq!((verdict(&world).counts.live, verdict(&world).counts.excess), (3, 0));
}

#[test]
fn the_spread_over_racks_is_judged() {
    let spread = |racks: &[usize], id: BlockId, facts: BlockFacts, nodes: &[usize]| {
        let mut world = World::with_racks(racks);
        world.now = at(2000);
        world.store(id, facts, nodes);
        let replicas = world.cluster.replicas(id, &facts);
        let verdict = Verdict::of(&facts, &replicas, 1);
        world.cluster.spread_of(&facts, &verdict, &replicas)
    };
    let three = replicated(3, 100, BlockState::Complete);
    let group5 = rs(3, 2, 3 * 1024, BlockState::Complete);
    let told = spread(&[0, 0, 0, 1, 2], block(1), three, &[0, 1, 2]);
    assert!(!told.is_satisfied());
    assert_eq!(
        told.to_string(),
        "Block should be additionally replicated on 1 more rack(s). Total number of racks in the \
         cluster: 3"
    );
    assert!(spread(&[0, 0, 0, 1, 2], block(1), three, &[0, 1, 3]).is_satisfied());
    assert!(spread(&[0, 0, 0], block(1), three, &[0, 1, 2]).is_satisfied());
    assert!(spread(&[0, 0, 1, 1, 2], group(1), group5, &[0, 1, 2, 3, 4]).is_satisfied());
    let told = spread(&[0, 0, 0, 1, 1, 2], group(1), group5, &[0, 1, 2, 3, 4]);
    assert_eq!((told.racks, told.wanted, told.total), (2, 5, 3));
    assert!(!told.is_satisfied());
    // Nothing at all is on too few racks, unless there is one only.
    let nothing = spread(&[0, 1], block(1), three, &[]);
    assert!(!nothing.is_satisfied());
    assert!(spread(&[0, 0], block(1), three, &[]).is_satisfied());
}
