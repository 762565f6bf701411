//! Plans of small clusters.

use super::*;

const DISK: Kind = 1;
const ARCHIVE: Kind = 3;
const MIB: u64 = 1 << 20;

fn shelf(node: usize, kind: Kind, used: u64) -> Shelf {
    Shelf { node, kind, capacity: 100 * MIB, used: used * MIB, remaining: (100 - used) * MIB }
}

fn racks(of: &[usize]) -> Vec<String> {
    of.iter().map(|rack| format!("/rack{rack}")).collect()
}

fn replicated(nodes: &[usize]) -> Piece {
    let place = |node: &usize| Place { node: *node, kind: DISK, unit: UnitIndex(0) };
    Piece {
        id: BlockId(1_073_741_825),
        gs: GenerationStamp(1001),
        len: 4 * MIB,
        stripes: None,
        places: nodes.iter().map(place).collect(),
    }
}

/// RS-3-2 with units in another order than their nodes.
fn group(places: &[(usize, u8)]) -> Piece {
    let place =
        |(node, unit): &(usize, u8)| Place { node: *node, kind: DISK, unit: UnitIndex(*unit) };
    Piece {
        id: BlockId(i64::MIN + 16),
        gs: GenerationStamp(1001),
        len: 4 * MIB + 5,
        stripes: Some((3, MIB)),
        places: places.iter().map(place).collect(),
    }
}

#[test]
fn what_is_within_the_threshold_stays() {
    let even = [shelf(0, DISK, 50), shelf(1, DISK, 45), shelf(2, DISK, 55)];
    assert_eq!(flows(&even, 10.0), []);
    // Types are balanced each for itself.
    let types =
        [shelf(0, DISK, 90), shelf(1, DISK, 90), shelf(0, ARCHIVE, 5), shelf(1, ARCHIVE, 5)];
    assert_eq!(flows(&types, 10.0), []);
}

#[test]
fn the_fullest_give_to_the_emptiest_until_all_are_at_the_mean() {
    let shelves = [shelf(0, DISK, 80), shelf(1, DISK, 60), shelf(2, DISK, 10), shelf(3, DISK, 50)];
    let flows = flows(&shelves, 5.0);
    let mut after: Vec<i64> = shelves.iter().map(|shelf| shelf.used as i64).collect();
    for flow in &flows {
        after[flow.from] -= flow.bytes as i64;
        after[flow.to] += flow.bytes as i64;
    }
    assert_eq!(flows[0], Flow { from: 0, to: 2, bytes: 30 * MIB });
    assert!(after.iter().all(|used| (*used - 50 * MIB as i64).abs() <= MIB as i64), "{after:?}");
}

#[test]
fn a_replica_goes_neither_to_a_node_that_has_one_nor_away_from_its_rack_alone() {
    let racks = racks(&[0, 1, 1, 0, 1]);
    let piece = replicated(&[0, 1, 2]);
    let can_go = |from: usize, to: usize| {
        let place = piece.places[from];
        piece.can_go(place, to, &racks)
    };
    assert!(!can_go(1, 2), "it is there already");
    assert!(can_go(0, 3), "within its rack");
    assert!(!can_go(0, 4), "the only one in its rack");
    assert!(can_go(1, 3) && can_go(1, 4));
}

#[test]
fn a_flow_is_made_up_of_blocks_each_taken_once() {
    let shelves = [shelf(0, DISK, 80), shelf(1, DISK, 0), shelf(2, DISK, 0), shelf(9, DISK, 0)];
    let racks = racks(&[0; 10]);
    let pieces: Vec<Piece> = (0..5)
        .map(|number| Piece { id: BlockId(1_073_741_825 + number), ..replicated(&[0, 1]) })
        .collect();
    let mut taken = BTreeSet::new();
    let flow = |to, bytes| Flow { from: 0, to, bytes };
    let moves = moves_for(flow(3, 9 * MIB), &shelves, &pieces, &racks, &mut taken);
    assert_eq!(moves.len(), 2, "eight of nine MiB");
    assert!(moves.iter().all(|m| (m.from, m.to, m.kind, m.len) == (0, 9, DISK, 4 * MIB)));
    assert_eq!(moves_for(flow(1, 9 * MIB), &shelves, &pieces, &racks, &mut taken), []);
    assert_eq!(moves_for(flow(2, 99 * MIB), &shelves, &pieces, &racks, &mut taken).len(), 3);
    assert_eq!(taken.len(), 5);
}

/// HDFS-16333: the unit that is moved is the one on the source, with its own id and length, also when
/// some places of the group are missing.
#[test]
fn hdfs_16333_the_unit_of_the_source_is_moved() {
    let shelves = [shelf(5, DISK, 80), shelf(7, DISK, 0)];
    let racks = racks(&[0; 8]);
    let piece = group(&[(4, 0), (5, 4), (2, 2), (1, 3)]);
    let flow = Flow { from: 0, to: 1, bytes: 50 * MIB };
    let moves =
        moves_for(flow, &shelves, std::slice::from_ref(&piece), &racks, &mut BTreeSet::new());
    let [only] = moves.as_slice() else { panic!("{moves:?}") };
    assert_eq!(only.id, piece.id.internal(UnitIndex(4)));
    // Parity is as long as the first data unit: two cells. The second unit's last cell has five bytes.
    assert_eq!((only.from, only.to, only.len), (5, 7, 2 * MIB));
    let second = group(&[(5, 1)]);
    assert_eq!(second.move_of(second.places[0], 7, DISK).len, MIB + 5);
}

#[test]
fn a_mover_prefers_the_same_node_and_spares_what_is_right() {
    let cold = [ARCHIVE];
    let racks = racks(&[0, 0, 0, 0, 0]);
    let mut shelves = [
        shelf(0, DISK, 0),
        shelf(0, ARCHIVE, 90),
        shelf(1, DISK, 0),
        shelf(2, DISK, 0),
        shelf(3, ARCHIVE, 0),
        shelf(4, ARCHIVE, 99),
    ];
    let mut piece = replicated(&[0, 1, 2]);
    let done = resettle(&piece, &cold, &mut shelves, &racks);
    let to: Vec<(usize, usize)> = done.moves.iter().map(|m| (m.from, m.to)).collect();
    assert_eq!(to, [(0, 0), (1, 3)]);
    assert_eq!(done.stuck, 1, "node 4 has no room");
    assert_eq!(shelves[4].remaining, 96 * MIB);
    piece.places[2].kind = ARCHIVE;
    // WARM: one on disk, the others on archive.
    let done = resettle(&piece, &[DISK, ARCHIVE], &mut shelves, &racks);
    assert_eq!((done.moves.len(), done.stuck), (1, 0));
    assert_eq!(types(&[RAM_DISK, DISK], 3), [DISK; 3]);
}

#[test]
fn what_is_off_balance_is_so_also_where_nothing_has_room() {
    let full = |node, used| Shelf { remaining: 0, ..shelf(node, 1, used) };
    let shelves = [full(0, 90), full(1, 50), full(2, 10)];
    assert!(!is_balanced(&shelves, 10.0));
    assert!(flows(&shelves, 10.0).is_empty());
    assert!(is_balanced(&shelves, 40.0));
}

#[test]
fn what_is_on_a_leaving_node_counts_as_a_place_and_stays() {
    // The third node has no shelf in the round.
    let (block, racks) = (replicated(&[0, 1, 2]), racks(&[0, 1, 0, 1]));
    let mut shelves =
        [shelf(0, ARCHIVE, 0), shelf(0, DISK, 50), shelf(1, DISK, 50), shelf(1, ARCHIVE, 0)];
    let found = resettle(&block, &[ARCHIVE], &mut shelves, &racks);
    assert_eq!((found.moves.len(), found.stuck), (2, 1));
    let flow = Flow { from: 1, to: 2, bytes: 1 << 40 };
    let elsewhere = [shelf(0, ARCHIVE, 50), shelf(0, DISK, 90), shelf(3, DISK, 0)];
    let moves = moves_for(flow, &elsewhere, &[block], &racks, &mut BTreeSet::new());
    assert_eq!(moves.len(), 1, "no rack is lost: {moves:?}");
}
