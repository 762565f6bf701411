use crate::recovery::{Agreement, Aim, Answer, Cutting, Earlier, Order, RecoveryError};
use crate::state::{RecoveryInfo, ReplicaState};
use Answer::{Nothing, Silent};
use ReplicaState::*;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// The stamp of the block, and the one from which on its bytes are one writer's.
const GS: u64 = 10;
const SINCE: u64 = 8;
/// What is known to be acknowledged.
const ACKED: u64 = 70;

fn holds(original: ReplicaState, gs: u64, len: u64) -> Answer {
    Answer::Holds(RecoveryInfo { id: BlockId(7), gs: GenerationStamp(gs), len, original })
}

/// Asks `places` of the last pipeline, and as many behind them as may have something earlier; `away` of these cannot be asked.
fn order(places: usize, earlier: usize, away: usize) -> Order {
    Order {
        block: BlockId(7),
        gs: GenerationStamp(GS),
        acked_len: ACKED,
        recovery_id: GenerationStamp(20),
        places: vec![UnitIndex(0); places],
        away: Some(Vec::new()),
        earlier: Some(Earlier {
            since: GenerationStamp(SINCE),
            place_count: earlier,
            away_count: away,
        }),
        aim: Aim::Replicas,
    }
}

/// The places that are cut, and to which length.
type Cuts = Result<(Vec<usize>, u64), RecoveryError>;

fn agreed(order: &Order, answers: &[Answer]) -> Cuts {
    order.agree(answers).map(|agreed| match agreed {
        Agreement::Drop => (Vec::new(), 0),
        Agreement::Cut(Cutting { len, cuts, .. }) => {
            (cuts.iter().map(|cut| cut.place).collect(), len)
        }
    })
}

/// What the last pipeline has is weighed with what others have that answer `earlier`.
#[track_caller]
fn check(present: &[Answer], earlier: &[Answer], want: Cuts) {
    let order = order(present.len(), earlier.len(), 0);
    assert_eq!(agreed(&order, &[present, earlier].concat()), want, "{present:?} {earlier:?}");
}

fn waits(unanswered: usize) -> Cuts {
    Err(RecoveryError::Unanswered { unanswered })
}

/// The power has taken it from the last one of the pipeline: all of it, or a part.
#[test]
fn what_the_present_replicas_have_lost_is_taken_from_those_of_earlier_stamps() {
    check(&[holds(Rwr, 10, 0)], &[holds(Rwr, 9, 60)], Ok((vec![1], 60)));
    check(&[holds(Rwr, 10, 30)], &[holds(Rwr, 9, 60)], Ok((vec![1], 60)));
    check(&[Nothing], &[holds(Rbw, 9, 60)], Ok((vec![1], 60)));
    // Half a copy that was to join the pipeline.
    check(&[holds(Temporary, 10, 70)], &[holds(Rwr, 9, 60)], Ok((vec![1], 60)));
    // The longest, whatever it was.
    let earlier = [holds(Rbw, 9, 50), holds(Rwr, 8, 60), holds(Finalized, 8, 40), Nothing];
    check(&[holds(Rwr, 10, 30)], &earlier, Ok((vec![2], 60)));
    check(&[holds(Rwr, 10, 50)], &[holds(Rbw, 9, 50), holds(Rbw, 9, 50)], Ok((vec![0], 50)));
    // Those of the last pipeline that have an older stamp than was told.
    check(&[holds(Rwr, 10, 30), holds(Rwr, 9, 60)], &[], Ok((vec![1], 60)));
    // More than is known to be acknowledged was acknowledged later.
    check(&[holds(Rwr, 10, 75)], &[holds(Rbw, 9, 80)], Ok((vec![1], 80)));
}

#[test]
fn what_is_left_of_the_last_pipeline_decides_if_it_has_not_been_down_or_nobody_has_more() {
    check(&[holds(Rbw, 10, 75)], &[holds(Rbw, 9, 80)], Ok((vec![0], 75)));
    check(&[holds(Finalized, 10, 75)], &[holds(Rbw, 9, 80)], Ok((vec![0], 75)));
    check(&[holds(Rwr, 10, 60)], &[holds(Rwr, 9, 50)], Ok((vec![0], 60)));
    check(&[holds(Rwr, 10, 60)], &[Nothing], Ok((vec![0], 60)));
}

#[test]
fn nothing_is_taken_across_a_recovery_or_a_truncate() {
    check(&[holds(Rwr, 10, 30)], &[holds(Rwr, 7, 60)], Ok((vec![0], 30)));
    check(&[holds(Rwr, 10, 30)], &[holds(Temporary, 9, 60)], Ok((vec![0], 30)));
    check(&[holds(Rwr, 10, 30), holds(Finalized, 7, 60)], &[], Ok((vec![0], 30)));
}

/// Else its file would stay open for ever.
#[test]
fn a_block_of_which_nobody_has_a_byte_ends_with_none() {
    check(&[holds(Rwr, 10, 0)], &[], Ok((vec![0], 0)));
    check(&[Nothing, holds(Rwr, 10, 0)], &[Nothing, holds(Rwr, 9, 0)], Ok((vec![1], 0)));
    check(&[holds(Rwr, 10, 0), Silent], &[], waits(1));
    // There is nothing to end it with.
    let acknowledged = || Err(RecoveryError::Acknowledged { acked_len: ACKED });
    check(&[Nothing, holds(Rwr, 7, 0)], &[holds(Rwr, 9, 0)], acknowledged());
    check(&[Nothing, holds(Rbw, 10, 0)], &[], acknowledged());
    // A NameNode that does not tell of others, as Hadoop's, would have what they have deleted.
    let order = Order { earlier: None, ..order(1, 0, 0) };
    assert_eq!(agreed(&order, &[holds(Rwr, 10, 0)]), acknowledged());
}

#[test]
fn what_was_acknowledged_is_not_dropped_while_one_that_may_have_it_has_not_answered() {
    check(&[holds(Rwr, 10, 0)], &[Silent], waits(1));
    check(&[holds(Rwr, 10, 30)], &[holds(Rwr, 9, 60), Silent], waits(1));
    check(&[holds(Rwr, 10, 70)], &[Silent], waits(1));
    check(&[holds(Rbw, 10, 70)], &[Silent], Ok((vec![0], 70)));
    // They were not asked.
    assert_eq!(agreed(&order(1, 1, 0), &[holds(Rwr, 10, 30)]), waits(1));
    // Dead ones had no more than what is known to be acknowledged when they were left.
    assert_eq!(agreed(&order(1, 0, 1), &[holds(Rwr, 10, 30)]), waits(1));
    assert_eq!(agreed(&order(1, 0, 1), &[holds(Rwr, 10, 70)]), Ok((vec![0], 70)));
    assert_eq!(agreed(&order(1, 1, 1), &[holds(Rwr, 10, 0), holds(Rwr, 9, 60)]), waits(1));
}

/// What a NameNode knows of it came too late for any length: only what is there says what was acknowledged.
#[test]
fn a_block_of_unknown_length_keeps_what_an_earlier_stamp_has() {
    let order = |earlier, away| Order { acked_len: 0, ..order(1, earlier, away) };
    let answers = [holds(Rwr, 10, 0), holds(Rwr, 9, 60)];
    assert_eq!(agreed(&order(1, 0), &answers), Ok((vec![1], 60)));
    assert_eq!(agreed(&order(1, 0), &[Nothing, Silent]), waits(1));
    assert_eq!(agreed(&order(1, 1), &[Nothing, Nothing]), Ok((vec![], 0)));
    // Nothing was: its node has not been down.
    assert_eq!(agreed(&order(1, 0), &[holds(Rbw, 10, 0), answers[1]]), Ok((vec![], 0)));
}

/// A recovery of a pipeline that has what was acknowledged costs no more than before, and stops nobody else.
#[test]
fn those_of_earlier_stamps_are_asked_if_it_is_needed_only() {
    let asks = |present: &[Answer]| order(present.len(), 1, 0).next_asked(present).is_some();
    assert!(!asks(&[holds(Rbw, 10, 70), Silent]));
    assert!(!asks(&[holds(Finalized, 10, 80)]));
    assert!(asks(&[holds(Rwr, 10, 80)]));
    assert!(asks(&[holds(Rbw, 10, 60)]));
    assert!(asks(&[Nothing]));
    assert!(asks(&[holds(Temporary, 10, 70)]));
    assert!(!asks(&[holds(Rwr, 10, 0), Answer::Superseded]));
    let all = order(1, 1, 0);
    assert!(all.next_asked(&[]).is_some());
    assert_eq!(all.next_asked(&[Nothing, Nothing]), None);
    assert_eq!(all.asked_gs(), GenerationStamp(SINCE));
    assert_eq!(Order { earlier: None, ..all }.asked_gs(), GenerationStamp(GS));
}

#[test]
fn a_file_that_is_cut_off_needs_no_more_than_stays() {
    let cut_to = |len| Order { aim: Aim::Truncated { id: BlockId(7), len }, ..order(1, 1, 0) };
    assert_eq!(cut_to(30).next_asked(&[holds(Rwr, 10, 30)]), None);
    let answers = [holds(Rwr, 10, 30), holds(Rwr, 9, 60)];
    assert_eq!(agreed(&cut_to(30), &answers), Ok((vec![0], 30)));
    assert_eq!(agreed(&cut_to(50), &answers), Ok((vec![1], 50)));
}
