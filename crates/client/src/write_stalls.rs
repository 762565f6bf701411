//! Which units of a group hang: those whose acknowledgements are overdue while all others keep up.
//!
//! Time is counted in looks, not read from a clock: a client that was stopped itself, or whose network
//! was, finds nobody overdue when it goes on. Pure; what to give up is decided with
//! `cairn_stripe::write::GroupWrite::spare`. Hadoop 3.5.0 waits for `dfs.client.socket-timeout`.

use std::time::{Duration, Instant};

/// Looks without progress after which a unit hangs.
const LOOKS: u32 = 8;

/// How far the units of one group are, and for how long they have been there.
pub(crate) struct Stalls {
    between: Duration,
    next: Instant,
    units: Vec<Stall>,
}

#[derive(Clone, Copy, Default)]
struct Stall {
    acked: u64,
    /// Looks since then at which something was due.
    looks: u32,
}

/// Packets that a unit was handed and that it has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub sent: u64,
    pub acked: u64,
}

impl Stalls {
    /// Of so many units, which hang after `bound` without an acknowledgement.
    pub(crate) fn new(units: usize, bound: Duration, now: Instant) -> Stalls {
        let between = (bound / LOOKS).max(Duration::from_millis(1));
        Stalls { between, next: now + between, units: vec![Stall::default(); units] }
    }

    /// How long to wait between two looks.
    pub(crate) fn between(&self) -> Duration {
        self.between
    }

    /// Looks at all units (`None`: not being written), unless the last look was just now. Names those
    /// that hang, if there are no more than `spare` and nobody else is late.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        progress: &[Option<Progress>],
        spare: usize,
    ) -> Vec<usize> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + self.between;
        for (unit, progress) in self.units.iter_mut().zip(progress) {
            match progress {
                Some(Progress { sent, acked }) if acked < sent && *acked == unit.acked => {
                    unit.looks += 1;
                }
                _ => unit.looks = 0,
            }
            unit.acked = progress.map_or(0, |progress| progress.acked);
        }
        let late = |least: u32| {
            let is_late =
                move |(unit, stall): (usize, &Stall)| (stall.looks >= least).then_some(unit);
            self.units.iter().enumerate().filter_map(is_late).collect::<Vec<usize>>()
        };
        let hanging = late(LOOKS);
        let are_alone = hanging.len() == late(LOOKS / 2).len();
        if are_alone && hanging.len() <= spare { hanging } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_millis(800);
    const BETWEEN: Duration = Duration::from_millis(100);

    /// Looks `count` times; at look `i` the units are where `progress(i)` says. When somebody hung first.
    fn first(
        count: u64,
        spare: usize,
        progress: impl Fn(u64) -> Vec<Option<(u64, u64)>>,
    ) -> Option<(u64, Vec<usize>)> {
        let start = Instant::now();
        let mut stalls = Stalls::new(progress(0).len(), BOUND, start);
        (1..=count).find_map(|i| {
            let now = start + BETWEEN * i as u32;
            let to = |(sent, acked)| Progress { sent, acked };
            let progress: Vec<_> = progress(i).into_iter().map(|unit| unit.map(to)).collect();
            let hanging = stalls.look(now, &progress, spare);
            assert!(stalls.look(now, &progress, spare).is_empty(), "just looked");
            (!hanging.is_empty()).then_some((i, hanging))
        })
    }

    #[test]
    fn a_unit_hangs_when_all_others_keep_up() {
        let one = |i| vec![Some((i, i)), Some((i, 0)), Some((i, i - i.min(1))), None];
        assert_eq!(first(50, 1, one), Some((8, vec![1])));
        assert_eq!(first(50, 0, one), None, "none may be given up");
        let two = |i| vec![Some((i, i)), Some((9, 3)), Some((9, 9)), Some((9, 2))];
        assert_eq!(first(50, 2, two), Some((9, vec![1, 3])));
        assert_eq!(first(50, 1, two), None, "not both, and which is anybody's guess");
    }

    #[test]
    fn nobody_hangs_who_goes_on_or_has_nothing_to_do() {
        assert_eq!(first(99, 3, |i| vec![Some((500, i / 7)), Some((500, 500))]), None, "slow");
        assert_eq!(first(99, 3, |_| vec![Some((5, 5)), Some((5, 5))]), None, "idle");
    }

    #[test]
    fn nobody_is_given_up_while_others_are_late_too() {
        let all = |_| vec![Some((9, 3)), Some((9, 4)), Some((9, 5))];
        assert_eq!(first(99, 2, all), None, "the client's own network, say");
        // The second stopped five looks later: it is known at the 13th which of the two are to be given up.
        let later = |i: u64| vec![Some((99, 99)), Some((99, 0)), Some((99, i.min(5)))];
        assert_eq!(first(99, 2, later), Some((8, vec![1])));
        let later = |i: u64| vec![Some((99, 99)), Some((99, 0)), Some((99, i.min(2)))];
        assert_eq!(first(99, 2, later), Some((10, vec![1, 2])));
    }
}
