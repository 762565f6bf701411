//! Priorities as Hadoop has them, and the counts.

use super::*;
use crate::stats::{BlockCounts, GroupCounts};

fn replicated(live: usize, leaving: usize, expected: usize) -> Priority {
    let risk = Risk { live, leaving, expected, striped_data_units: None, parity_units: 0 };
    risk.priority()
}

fn striped(live: usize, leaving: usize, k: usize, m: usize) -> Priority {
    let striped_data_units = Some(k);
    Risk { live, leaving, expected: k + m, striped_data_units, parity_units: m }.priority()
}

#[test]
fn replicas_by_how_many_are_left() {
    use Priority::{BadlyDistributed, Corrupt, Highest, Low, VeryLow};
    assert_eq!(replicated(0, 0, 3), Corrupt);
    assert_eq!(replicated(0, 1, 3), Highest);
    assert_eq!(replicated(1, 0, 3), Highest);
    assert_eq!(replicated(2, 0, 3), Low);
    assert_eq!(replicated(3, 0, 3), BadlyDistributed);
    assert_eq!(replicated(3, 0, 10), VeryLow);
    assert_eq!(replicated(4, 0, 10), Low);
}

#[test]
fn groups_by_how_many_more_losses_they_survive() {
    use Priority::{BadlyDistributed, Corrupt, Highest, Low, VeryLow};
    assert_eq!(striped(5, 0, 6, 3), Corrupt);
    assert_eq!(striped(5, 1, 6, 3), Highest);
    assert_eq!(striped(6, 0, 6, 3), Highest);
    assert_eq!(striped(7, 0, 6, 3), VeryLow);
    assert_eq!(striped(8, 0, 6, 3), Low);
    assert_eq!(striped(9, 0, 6, 3), BadlyDistributed);
    assert_eq!(striped(3, 0, 3, 2), Highest);
    assert_eq!(striped(4, 0, 3, 2), Low);
}

#[test]
fn a_block_is_in_one_queue_at_a_time() {
    let risk =
        |live| Risk { live, leaving: 0, expected: 3, striped_data_units: None, parity_units: 0 };
    let mut queues = Queues::default();
    let id = BlockId(7);
    queues.put(id, &risk(1));
    queues.put(id, &risk(2));
    assert_eq!((queues.len(), queues.priority(id)), (1, Some(Priority::Low)));
    assert_eq!(queues.level(Priority::Highest).count(), 0);
    assert!(queues.remove(id) && !queues.remove(id) && queues.is_empty());
}

fn margins(stats: &ClusterStats) -> [(u64, u64); MARGINS] {
    stats.margins.map(|margin| (margin.blocks, margin.groups))
}

#[test]
fn what_is_queued_is_counted_by_how_many_more_losses_it_survives() {
    let risk = |live, leaving, striped_data_units| Risk {
        live,
        leaving,
        expected: 20,
        striped_data_units,
        parity_units: 4,
    };
    for (live, leaving, data_units, margin) in [
        (0, 0, None, 0),
        (0, 2, None, 2),
        (1, 0, None, 1),
        (19, 0, None, MARGINS - 1),
        (5, 0, Some(6), 0),
        (5, 1, Some(6), 1),
        (8, 1, Some(6), 4),
        (16, 0, Some(6), MARGINS - 1),
    ] {
        assert_eq!(risk(live, leaving, data_units).margin(), margin, "{live} and {leaving}");
    }
}

#[test]
fn the_figures_tell_missing_from_low() {
    let mut queues = Queues::default();
    let block = |live, expected| Risk {
        live,
        leaving: 0,
        expected,
        striped_data_units: None,
        parity_units: 0,
    };
    queues.put(BlockId(1), &block(0, 1));
    queues.put(BlockId(2), &block(0, 3));
    queues.put(BlockId(3), &block(1, 3));
    let group =
        |live| Risk { live, leaving: 0, expected: 9, striped_data_units: Some(6), parity_units: 3 };
    queues.put(BlockId(-16), &group(5));
    queues.put(BlockId(-32), &group(8));
    let mut stats = ClusterStats::default();
    queues.count(&mut stats);
    assert_eq!(margins(&stats), [(2, 1), (1, 0), (0, 0), (0, 1), (0, 0), (0, 0)]);
    let ClusterStats { replicated: blocks, groups, .. } = stats;
    let want = BlockCounts {
        low_redundancy: 1,
        missing: 2,
        missing_one_copy: 1,
        highest_priority: 1,
        ..BlockCounts::default()
    };
    assert_eq!(blocks, want);
    let want = GroupCounts { low_redundancy: 1, missing: 1, ..GroupCounts::default() };
    assert_eq!(groups, want);
    // As one that is looked at again, is better off, or is mended.
    queues.put(BlockId(2), &block(0, 3));
    queues.put(BlockId(1), &block(0, 3));
    queues.put(BlockId(-16), &group(6));
    queues.remove(BlockId(3));
    queues.remove(BlockId(3));
    let mut stats = ClusterStats::default();
    queues.count(&mut stats);
    assert_eq!(margins(&stats), [(2, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, 0)]);
    let ClusterStats { replicated: blocks, groups, .. } = stats;
    assert_eq!(blocks, BlockCounts { missing: 2, ..BlockCounts::default() });
    let want = GroupCounts { low_redundancy: 2, highest_priority: 1, ..GroupCounts::default() };
    assert_eq!(groups, want);
}

#[test]
fn a_queued_block_takes_few_bytes() {
    assert_eq!((size_of::<BlockId>(), size_of::<Packed>()), (8, 8));
    let risks = [
        Risk { live: 2, leaving: 1, expected: 3, striped_data_units: None, parity_units: 0 },
        Risk { live: 7, leaving: 0, expected: 9, striped_data_units: Some(6), parity_units: 3 },
        Risk { live: 1, leaving: 0, expected: 4, striped_data_units: Some(0), parity_units: 4 },
    ];
    for risk in risks {
        assert_eq!(Packed::from(&risk).risk(), risk);
    }
}

/// What was in the way of a block is known for as long as it is queued with the same risk.
#[test]
fn naps_end_with_another_risk_and_the_time_without_room_does_not() {
    let risk =
        |live| Risk { live, leaving: 0, expected: 3, striped_data_units: None, parity_units: 0 };
    let mut queues = Queues::default();
    let id = BlockId(7);
    assert_eq!(queues.note_no_room(id, 5), 5);
    queues.put(id, &risk(2));
    queues.put_aside(id, 100);
    assert_eq!(queues.note_no_room(id, 20), 20);
    assert!(queues.after(Priority::Low, None, 9).is_empty());
    assert_eq!(queues.level(Priority::Low).collect::<Vec<_>>(), [id]);
    queues.wake(100);
    assert_eq!(queues.after(Priority::Low, None, 9), [id]);
    queues.put(id, &risk(2));
    assert_eq!((queues.naps(id), queues.note_no_room(id, 30)), (1, 20));
    queues.put(id, &risk(1));
    assert_eq!((queues.naps(id), queues.note_no_room(id, 30)), (0, 20));
    queues.put_aside(id, 200);
    queues.remove(id);
    queues.wake_all();
    assert!(queues.is_empty() && queues.after(Priority::Highest, None, 9).is_empty());
    queues.put(id, &risk(1));
    assert_eq!((queues.naps(id), queues.note_no_room(id, 40)), (0, 40));
}
