use super::*;
use Answer::{Nothing, Silent};
use ReplicaState::*;

const GS: u64 = 10;
const CELL: u64 = 100;

fn holds(original: ReplicaState, gs: u64, len: u64) -> Answer {
    holds_of(BlockId(7), original, gs, len)
}

fn holds_of(id: BlockId, original: ReplicaState, gs: u64, len: u64) -> Answer {
    Answer::Holds(RecoveryInfo { id, gs: GenerationStamp(gs), len, original })
}

/// An order for as many replicas as answer, with others that are `away`.
fn replicas(answers: &[Answer], acked_len: u64, away: Option<usize>) -> Order {
    Order {
        block: BlockId(7),
        gs: GenerationStamp(GS),
        acked_len,
        recovery_id: GenerationStamp(20),
        places: vec![UnitIndex(0); answers.len()],
        away: away.map(|count| vec![UnitIndex(0); count]),
        earlier: None,
        aim: Aim::Replicas,
    }
}

#[track_caller]
fn check_order(order: &Order, answers: &[Answer], want: Result<(&[usize], u64), RecoveryError>) {
    let agreed = order.agree(answers).map(|agreed| match agreed {
        Agreement::Drop => (Vec::new(), 0),
        Agreement::Cut(Cutting { len, cuts, .. }) => {
            (cuts.iter().map(|cut| cut.place).collect(), len)
        }
    });
    assert_eq!(agreed, want.map(|(places, len)| (places.to_vec(), len)), "{answers:?}");
}

/// All places are asked, and nothing is acknowledged.
#[track_caller]
fn check(answers: &[Answer], want: Result<(&[usize], u64), RecoveryError>) {
    check_order(&replicas(answers, 0, Some(0)), answers, want);
}

const DROPPED: Result<(&[usize], u64), RecoveryError> = Ok((&[], 0));

fn waits(unanswered: usize) -> Result<(&'static [usize], u64), RecoveryError> {
    Err(RecoveryError::Unanswered { unanswered })
}

#[test]
fn the_best_state_and_its_shortest_replica_decide() {
    let answers = [holds(Rbw, 10, 100), holds(Rbw, 10, 70), holds(Rwr, 10, 50)];
    check(&answers, Ok((&[0, 1], 70)));
    let answers =
        [holds(Finalized, 10, 80), holds(Rbw, 10, 80), holds(Rbw, 10, 60), holds(Rwr, 10, 80)];
    check(&answers, Ok((&[0, 1], 80)));
    // Acknowledged bytes are in all of them, those of the ones that are silent included.
    check(&[Silent, holds(Rbw, 10, 100), Nothing, holds(Rbw, 10, 70)], Ok((&[1, 3], 70)));
}

/// What was acknowledged is in all whose nodes have not been down, and in those that have lost nothing.
#[test]
fn of_replicas_that_may_be_torn_the_longest_decides() {
    check(&[holds(Rwr, 10, 100), holds(Rwr, 11, 70)], Ok((&[0], 100)));
    check(&[holds(Rwr, 10, 70), holds(Rwr, 10, 70), holds(Rwr, 10, 60)], Ok((&[0, 1], 70)));
    check(&[holds(Rbw, 10, 70), holds(Rwr, 10, 100)], Ok((&[0], 70)));
}

#[test]
fn a_replica_that_may_be_torn_waits_for_those_that_are_silent() {
    let torn = holds(Rwr, 10, 60);
    check(&[torn, Silent, Silent], waits(2));
    check(&[torn, Nothing, Silent], waits(1));
    check_order(&replicas(&[torn], 0, Some(1)), &[torn], waits(1));
    // As much as is known to be acknowledged may not be all.
    check_order(&replicas(&[torn], 60, Some(1)), &[torn], waits(1));
    // Hadoop's NameNode never orders to ask dead ones, and a file may have fewer replicas than most.
    check_order(&replicas(&[torn], 0, None), &[torn], Ok((&[0], 60)));
    check_order(&replicas(&[torn; 2], 0, None), &[torn, Silent], waits(1));
    check(&[torn, Nothing, Nothing], Ok((&[0], 60)));
    // One whose node has not been down knows.
    check(&[torn, holds(Rbw, 10, 50), Silent], Ok((&[1], 50)));
    check(&[torn, holds(Rbw, 10, 0), Silent], Ok((&[0], 60)));
    // A file that is cut off needs no more than stays.
    let mut order = replicas(&[torn], 80, Some(1));
    order.aim = Aim::Truncated { id: BlockId(7), len: 50 };
    check_order(&order, &[torn], Ok((&[0], 50)));
    order.aim = Aim::Truncated { id: BlockId(7), len: 70 };
    check_order(&order, &[torn], waits(1));
}

#[test]
fn stale_empty_and_temporary_replicas_do_not_count() {
    check(&[holds(Rbw, 9, 100), holds(Rbw, 10, 70)], Ok((&[1], 70)));
    check(&[holds(Rbw, 9, 100), holds(Rbw, 10, 0)], DROPPED);
    check(&[Nothing], DROPPED);
    let why = RecoveryError::Contradiction("no replica is in RWR or better state");
    check(&[holds(Temporary, 10, 5)], Err(why));
}

/// DataNodes that sync nothing when they finalize, and all of which have lost power since.
#[test]
fn of_finalized_replicas_with_one_stamp_the_shorter_have_lost_their_ends() {
    let answers = [holds(Finalized, 10, 80), holds(Finalized, 10, 81), holds(Finalized, 10, 70)];
    check(&answers, Ok((&[1], 81)));
    check(&[answers[0], answers[1], Silent], waits(1));
    check_order(&replicas(&answers, 90, Some(1)), &answers, waits(1));
    // What is being written has no more than what was finalized had.
    check(&[holds(Finalized, 10, 70), holds(Rbw, 10, 90), holds(Rbw, 10, 80)], Ok((&[1, 2], 80)));
    check(&[holds(Finalized, 10, 70), holds(Rwr, 10, 80)], Ok((&[1], 80)));
    check(&[holds(Finalized, 10, 70), holds(Rwr, 10, 80), Silent], waits(1));
    // An attempt before has cut one off.
    check(&[holds(Finalized, 10, 70), holds(Finalized, 11, 60), Silent], Ok((&[0, 1], 60)));
}

/// The power failed before they were synced, and when a writer had just opened some for appending.
#[test]
fn a_finalized_replica_without_what_is_known_to_be_acknowledged_has_lost_its_end() {
    let answers = [holds(Rwr, 11, 79), holds(Finalized, 10, 78), holds(Rwr, 10, 70)];
    check_order(&replicas(&answers, 79, Some(0)), &answers, Ok((&[0], 79)));
    check_order(&replicas(&answers, 79, Some(1)), &answers, waits(1));
    // All have: what was known is not there any more.
    let answers = [holds(Rwr, 11, 77), holds(Finalized, 10, 78), Nothing];
    check_order(&replicas(&answers, 79, Some(0)), &answers, Ok((&[1], 78)));
    check_order(&replicas(&answers, 79, Some(1)), &answers, waits(1));
    // What a writer goes on with has it.
    let answers = [holds(Rbw, 11, 85), holds(Finalized, 10, 78)];
    check_order(&replicas(&answers, 79, Some(0)), &answers, Ok((&[0], 85)));
    // A file that is cut off needs no more than stays.
    let answers = [holds(Rwr, 11, 90), holds(Finalized, 10, 78)];
    let mut order = replicas(&answers, 95, Some(0));
    order.aim = Aim::Truncated { id: BlockId(7), len: 78 };
    check_order(&order, &answers, Ok((&[1], 78)));
}

/// Two attempts whose primaries died have each cut the one that answered: either length has what was acknowledged.
#[test]
fn replicas_that_attempts_before_have_cut_to_several_lengths_are_cut_to_the_shortest() {
    check(&[holds(Finalized, 11, 100), holds(Finalized, 12, 90)], Ok((&[0, 1], 90)));
    let answers = [holds(Finalized, 10, 100), holds(Finalized, 11, 90), holds(Rbw, 10, 95)];
    check(&answers, Ok((&[0, 1, 2], 90)));
    let answers = [holds(Finalized, 11, 100), holds(Finalized, 12, 90)];
    check_order(&replicas(&answers, 95, Some(0)), &answers, Ok((&[0], 100)));
}

#[test]
fn a_newer_recovery_and_the_silence_of_all_end_it() {
    check(&[holds(Rbw, 10, 70), Answer::Superseded], Err(RecoveryError::Superseded));
    check(&[Silent, Silent], Err(RecoveryError::NobodyAnswers));
    check(&[], Err(RecoveryError::NobodyAnswers));
}

#[test]
fn a_block_is_not_dropped_while_one_that_may_have_it_has_not_answered() {
    check(&[Nothing, Nothing, Silent], waits(1));
    // One that has been down may have lost what was acknowledged.
    check(&[Nothing, holds(Rwr, 10, 0), Silent], waits(1));
    // Dead ones are not asked.
    let answers = [Nothing, Nothing];
    check_order(&replicas(&answers, 0, Some(1)), &answers, waits(1));
    check_order(&replicas(&answers, 0, Some(0)), &answers, DROPPED);
    // Hadoop's NameNode does not tell of them.
    check_order(&replicas(&answers, 0, None), &answers, waits(1));
    let answers = [Nothing; 3];
    check_order(&replicas(&answers, 0, None), &answers, DROPPED);
}

#[test]
fn an_empty_replica_of_the_pipeline_shows_that_nothing_was_acknowledged() {
    check(&[Silent, holds(Rbw, 10, 0)], DROPPED);
    let answers = [Nothing, holds(Rbw, 10, 0)];
    check_order(&replicas(&answers, 0, Some(1)), &answers, DROPPED);
    // The writer went on without this one.
    check(&[Silent, holds(Rbw, 9, 0)], waits(1));
}

#[test]
fn what_was_acknowledged_is_not_dropped() {
    let acknowledged = || Err(RecoveryError::Acknowledged { acked_len: 70 });
    let answers = [Nothing, holds(Rbw, 10, 0)];
    check_order(&replicas(&answers, 70, Some(0)), &answers, acknowledged());
    check_order(&replicas(&answers, 70, Some(1)), &answers, acknowledged());
    // Who has not answered may have all of it.
    let answers = [Silent, holds(Rwr, 10, 60)];
    check_order(&replicas(&answers, 70, Some(0)), &answers, waits(1));
    let answers = [Nothing, holds(Rwr, 10, 60)];
    check_order(&replicas(&answers, 70, Some(0)), &answers, Ok((&[1], 60)));
}

#[test]
fn a_truncated_block_is_cut_off_where_the_file_ends() {
    let answers = [holds(Finalized, 10, 80), holds(Finalized, 11, 50)];
    let id = BlockId(8);
    let mut order = replicas(&answers, 80, Some(0));
    order.aim = Aim::Truncated { id, len: 50 };
    // An attempt before this one has cut off the second.
    let Ok(Agreement::Cut(Cutting { len: 50, cuts, .. })) = order.agree(&answers) else { panic!() };
    let held: Vec<_> = cuts.iter().map(|cut| (cut.id, cut.info.len, cut.len)).collect();
    assert_eq!(held, [(id, 80, 50), (id, 50, 50)]);
    let answers = [Nothing, Nothing];
    check_order(&order, &answers, Err(RecoveryError::Acknowledged { acked_len: 80 }));
}

#[test]
fn one_replica_that_is_cut_is_enough() {
    let answers = [holds(Rbw, 10, 70), holds(Rbw, 10, 70)];
    let Ok(Agreement::Cut(cutting)) = replicas(&answers, 0, Some(0)).agree(&answers) else {
        panic!()
    };
    assert!(cutting.goes_on_after(CutResult::Failed));
    let settle = |results: [CutResult; 2]| cutting.settle(&results);
    assert_eq!(settle([CutResult::Failed, CutResult::Done]), Ok(vec![Some(1)]));
    assert_eq!(settle([CutResult::Failed, CutResult::Corrupt]), Err(RecoveryError::NotCut));
}

const GROUP: BlockId = BlockId(i64::MIN + 16);

/// An order for a group of RS(6, 3), of which the units that are `None` are not asked; `&str`s are pictures:
/// `2.5` is two cells and a half in a replica being written, `2.5t` in one that may be torn, `2.5o` in one that the
/// writer has gone on without, `2f` two cells that are finalized, `2c` so by an attempt before, `-` nothing, `?` silence, a blank a unit that is not asked.
fn group(picture: &str, acked_len: u64) -> (Order, Vec<Answer>) {
    let (mut places, mut answers) = (Vec::new(), Vec::new());
    for (unit, what) in picture.split('|').enumerate() {
        let unit = UnitIndex(unit as u8);
        let what = what.trim();
        if what.is_empty() {
            continue;
        }
        places.push(unit);
        let cells = what.trim_end_matches(['t', 'o', 'f', 'c']);
        answers.push(match what {
            "-" => Nothing,
            "?" => Silent,
            _ => {
                let len = (cells.parse::<f64>().unwrap() * CELL as f64) as u64;
                let original = match what.chars().last() {
                    Some('t') => Rwr,
                    Some('f' | 'c') => Finalized,
                    _ => Rbw,
                };
                let gs = match what.chars().last() {
                    Some('o') => GS - 1,
                    Some('c') => GS + 1,
                    _ => GS,
                };
                holds_of(GROUP.internal(unit), original, gs, len)
            }
        });
    }
    let order = Order {
        block: GROUP,
        gs: GenerationStamp(GS),
        acked_len,
        recovery_id: GenerationStamp(20),
        places,
        away: None,
        earlier: None,
        aim: Aim::Units(Geometry::new(6, 3, CELL)),
    };
    (order, answers)
}

/// The length that a group is cut to, 0 if it is dropped.
#[track_caller]
fn check_group(picture: &str, acked_len: u64, want: Result<u64, RecoveryError>) {
    let (order, answers) = group(picture, acked_len);
    let agreed = order.agree(&answers).map(|agreed| match agreed {
        Agreement::Drop => 0,
        Agreement::Cut(cutting) => cutting.len,
    });
    assert_eq!(agreed, want, "{picture}");
}

const STRIPE: u64 = 6 * CELL;

#[test]
fn a_group_is_cut_to_its_whole_stripes() {
    check_group("3|3|3|3|2|2|2|2|2", 0, Ok(2 * STRIPE));
    check_group("3| |3|3| |2t|?|2|2", 0, Ok(2 * STRIPE));
    // A data unit that ends early and is whole otherwise: the data ends there.
    check_group("2|2|2|2|1.5|1|2|2|2", 0, Ok(STRIPE));
}

#[test]
fn a_group_is_not_dropped_while_a_rack_is_away_that_may_have_its_stripes() {
    let waits = |unanswered| Err(RecoveryError::Unanswered { unanswered });
    check_group("4|4|4|4|4|-| | | ", 0, waits(3));
    check_group("4|4|4|4|4|-|?|?|?", 0, waits(3));
    check_group("4|4|4|4|4|0| | | ", 0, waits(3));
    // As long as fewer have nothing than may be missing.
    check_group("4|-|-|-|4|4| | | ", 0, waits(3));
    check_group("-|-|-|-|4|4| | | ", 0, Ok(0));
    check_group("4|-|-|-|4|4|-| | ", 0, Ok(0));
    // Those that may be torn do not show that there was no more.
    check_group("1|1|1|1|0.5t|0.5t| | | ", 0, waits(3));
    check_group("1|1|1|1|0.5|0.5t| | | ", 0, Ok(0));
    check_group("1|1|1|0.5f|-|-|1| | ", 0, Ok(0));
    // Others have gone on.
    check_group("4|4|4|4|4|0.5| | | ", 0, waits(3));
}

/// `k` units answer, one of which has lost the end of what it had acknowledged: one that is silent may have it.
#[test]
fn a_group_is_not_cut_shorter_than_what_may_be_acknowledged_because_a_unit_is_torn() {
    let waits = |unanswered| Err(RecoveryError::Unanswered { unanswered });
    check_group("3|3|3|3|3|2t|?| | ", 0, waits(3));
    check_group("3t|3t|3t|3|3|2t|?| | ", 0, waits(3));
    // The nodes of all that answer have been down.
    check_group("4t|4t|4t|4t|4t|1t|?|-|-", 0, waits(1));
    check_group("4t|4t|4t|4t|1t|1t|?|-|-", 0, Ok(STRIPE));
    check_group("4t|4t|4t|4t|4t|1t|-|-|-", 0, Ok(STRIPE));
    check_group("3|3|3|3|3|2t|-|-|-", 0, Ok(2 * STRIPE));
    check_group("3|3|3|3|3|3|?|2t| ", 0, Ok(3 * STRIPE));
}

/// A DataNode that syncs nothing when it finalizes has lost power since.
#[test]
fn a_finalized_unit_behind_which_the_stripe_goes_on_has_lost_its_end() {
    check_group("3f|2.6f|3f|3f|3f|3f|3f|3f|3f", 0, Ok(3 * STRIPE));
    check_group("3f|2f|3f|3f|3f|3f|3f|3f|3f", 0, Ok(3 * STRIPE));
    check_group("1f|0.6f|1f|1f|1f|1f|1f|-|-", 0, Ok(STRIPE));
    // The data ends there.
    check_group("3f|2.6f|2f|2f|2f|2f|3f|3f|3f", 0, Ok(2 * STRIPE));
    check_group("1f|0.6f|-|-|-|-|1f|1f|1f", 0, Ok(0));
    // An attempt before has cut it off.
    check_group("3f|2c|3f|3f|3f|3f|3f|2|2", 0, Ok(2 * STRIPE));
}

#[test]
fn a_group_that_was_never_on_so_many_nodes_does_not_wait_for_them() {
    let (mut order, answers) = group("1|1|1|1|-|-|1| | ", 0);
    assert_eq!(order.agree(&answers), Err(RecoveryError::Unanswered { unanswered: 2 }));
    order.away = Some(Vec::new());
    assert_eq!(order.agree(&answers), Ok(Agreement::Drop));
    order.away = Some(vec![UnitIndex(8)]);
    assert_eq!(order.agree(&answers), Err(RecoveryError::Unanswered { unanswered: 1 }));
}

#[test]
fn a_group_without_a_whole_stripe_is_dropped() {
    check_group("0.5|0|0|0|0|0|0.5|0.5|0.5", 0, Ok(0));
    check_group("1|1|1|1o|1o|0.5o|-|-|-", 0, Ok(0));
    check_group("-|-|-|-|-|-|-|-|?", 0, Ok(0));
    // What the writer has gone on without holds stripes, but nobody can use it.
    check_group("1|1|1|1o|1o|1o|-|-|-", 0, Err(RecoveryError::TooFewUnits));
}

#[test]
fn a_second_place_of_a_unit_that_is_away_may_have_it() {
    let (mut order, answers) = group("4|-|-|-|4|4|-|4|4", 0);
    assert_eq!(order.agree(&answers), Ok(Agreement::Drop));
    order.away = Some(vec![UnitIndex(1)]);
    assert_eq!(order.agree(&answers), Err(RecoveryError::Unanswered { unanswered: 1 }));
}

#[test]
fn a_group_keeps_the_length_that_was_acknowledged() {
    let acked = STRIPE + 150;
    let whole = "2f|1.5f|1f|1f|1f|1f|2f|2f|2f";
    check_group(whole, acked, Ok(acked));
    check_group("2f|1.5f|1f|1f|1f|1f| | | ", acked, Ok(acked));
    check_group(" |1.5f|1f|1f|1f| |2f|2f| ", acked, Ok(acked));
    let waits = |unanswered| Err(RecoveryError::Unanswered { unanswered });
    check_group("2f|1.2t|1f|1f|1f|1f| | | ", acked, waits(3));
    check_group("2f|-|1f|1f|1f|1f| | | ", acked, waits(3));
    check_group("-|-|-|-|1f|1f| | | ", acked, waits(3));
    check_group(
        "-|-|-|-|1f|1f|-|-|-",
        acked,
        Err(RecoveryError::Acknowledged { acked_len: acked }),
    );
    // All that there is.
    check_group("2f|1.2t|1f|1f|1f|1f|1t|1t|1t", acked, Ok(STRIPE));
    // The writer has gone on: the last parity covers more than was acknowledged.
    check_group("3|2|2|2|2|2|2|2|2", acked, Ok(2 * STRIPE));
    // A part of a cell: one unit is enough.
    check_group("0.3f|-|-|-|-|-|-|-|-", 30, Ok(30));
    check_group("-|-|-|-|-|-|-|0.3f|?", 30, Ok(30));
}

/// Its writer went on with fewer than `k` units that have bytes, then died: those of short groups without bytes are known
/// to be zeros. Waiting for `k`, it stayed open for ever.
#[test]
fn a_short_group_needs_as_many_units_as_it_has_data_units_with_bytes() {
    check_group("1f|0.5o|-|-|-|-|1o|1f|1o", 150, Ok(150));
    check_group("1o|-|-|-|-|-|1f|1f|-", 150, Ok(150));
    // The CRCs of one do not fit when it is cut.
    let (order, answers) = group("1f|0.5f|-|-|-|-|1f| | ", 150);
    let Ok(Agreement::Cut(cutting)) = order.agree(&answers) else { panic!() };
    let settled = cutting.settle(&[CutResult::Done, CutResult::Corrupt, CutResult::Done]);
    assert_eq!(settled.map(|places| places.iter().flatten().count()), Ok(2));
    let results = [CutResult::Done, CutResult::Corrupt, CutResult::Corrupt];
    assert_eq!(cutting.settle(&results), Err(RecoveryError::NotCut));
}

#[test]
fn units_that_are_corrupt_are_done_without_and_those_that_failed_are_not() {
    let (order, answers) = group("2|2|2|2|2|2|2|0.5t| ", 0);
    let Ok(Agreement::Cut(cutting)) = order.agree(&answers) else { panic!() };
    assert_eq!(cutting.cuts.len(), 7, "one is too short");
    let mut results = vec![CutResult::Done; 7];
    results[3] = CutResult::Corrupt;
    let mut places: Vec<Option<usize>> = (0..7).map(Some).collect();
    places.extend([None, None]);
    places[3] = None;
    assert_eq!(cutting.settle(&results), Ok(places));
    results[4] = CutResult::Corrupt;
    assert_eq!(cutting.settle(&results), Err(RecoveryError::NotCut));
    assert!(!cutting.goes_on_after(CutResult::Failed));
    assert_eq!(cutting.settle(&[CutResult::Done, CutResult::Failed]), Err(RecoveryError::NotCut));
}

#[test]
fn a_unit_that_no_group_has_is_refused() {
    let (mut order, answers) = group("1|1|1|1|1|1|1|1|1", 0);
    order.places[0] = UnitIndex(9);
    assert!(matches!(order.agree(&answers), Err(RecoveryError::BadOrder(_))));
}
