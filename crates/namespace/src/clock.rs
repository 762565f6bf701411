//! The two times of an entry.
//!
//! *Wall time* is for people: times of files, the trash, what an administrator names a day for. It follows the clock of
//! the machine that serves, and never faster than at twice the speed, nor slower than at half: a clock that is set, by
//! hand or by mistake, moves it little in the time in which somebody sees to that.
//! *Elapsed time* is for all that expires: leases, answers that are kept, blocks that wait to be grouped. Only a clock
//! that nobody can set moves it on, while a NameNode runs. It counts from what the wall clock showed as the file system
//! was made, or first opened by a build that has it: what earlier builds have recorded in wall time is read as such.
//!
//! Neither ever goes back, over a restart neither.

use std::time::Duration;

/// A moment, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Wall time, since the epoch.
    pub wall_ms: u64,
    /// Elapsed time.
    pub elapsed_ms: u64,
}

impl Times {
    /// The later one of each.
    pub fn max(self, other: Times) -> Times {
        Times {
            wall_ms: self.wall_ms.max(other.wall_ms),
            elapsed_ms: self.elapsed_ms.max(other.elapsed_ms),
        }
    }
}

/// What a machine's clocks show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time since some moment, which nobody can set.
    pub monotonic: Duration,
    /// Time since the epoch, as the machine has it.
    pub wall: Duration,
}

/// Makes both times of what a machine's clocks show.
#[derive(Clone, Debug)]
pub struct Clock {
    begun: Duration,
    /// Elapsed time then.
    begun_ms: u64,
    /// What was shown last.
    last: Reading,
    /// Wall time then.
    wall: Duration,
    /// Wall time is elapsed time, too.
    is_one: bool,
}

impl Clock {
    /// One that goes on where the last entry was, if there was any. Where `is_one`, both times are the same: the log has
    /// room for one.
    pub fn begin(last: Times, now: Reading, is_one: bool) -> Clock {
        let wall = now.wall.max(Duration::from_millis(last.wall_ms));
        let begun_ms = match last.elapsed_ms {
            0 => millis(wall),
            elapsed_ms => elapsed_ms,
        };
        Clock { begun: now.monotonic, begun_ms, last: now, wall, is_one }
    }

    /// From now on there are two times.
    pub fn part(&mut self) {
        if self.is_one {
            (self.begun, self.begun_ms, self.is_one) =
                (self.last.monotonic, millis(self.wall), false);
        }
    }

    /// The time when the clocks show this.
    pub fn at(&mut self, now: Reading) -> Times {
        let passed = now.monotonic.saturating_sub(self.last.monotonic);
        if passed > Duration::ZERO {
            let (least, most) = (self.wall + passed / 2, self.wall + 2 * passed);
            self.wall = now.wall.clamp(least, most);
            self.last = now;
        }
        let (wall_ms, elapsed) =
            (millis(self.wall), self.last.monotonic.saturating_sub(self.begun));
        let elapsed_ms = if self.is_one { wall_ms } else { self.begun_ms + millis(elapsed) };
        Times { wall_ms, elapsed_ms }
    }

    /// How far the machine's clock is ahead of wall time, in ms; less than 0 if it is behind.
    pub fn ahead_ms(&self) -> i64 {
        let signed = |time| i64::try_from(millis(time)).unwrap_or(i64::MAX);
        signed(self.last.wall) - signed(self.wall)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY_MS: u64 = 86_400_000;
    const BEGIN_MS: u64 = 1_700_000_000_000;

    fn reading(monotonic_ms: u64, wall_ms: u64) -> Reading {
        let time = Duration::from_millis;
        Reading { monotonic: time(monotonic_ms), wall: time(wall_ms) }
    }

    #[test]
    fn both_run_with_a_clock_that_nobody_sets() {
        let mut clock = Clock::begin(Times::default(), reading(7, BEGIN_MS), false);
        for ms in [0, 1, 1, 20, 3_000, 5 * DAY_MS] {
            let time = BEGIN_MS + ms;
            let want = Times { wall_ms: time, elapsed_ms: time };
            assert_eq!(clock.at(reading(7 + ms, time)), want);
            assert_eq!(clock.ahead_ms(), 0);
        }
    }

    #[test]
    fn a_day_ahead_and_back_moves_elapsed_time_not_at_all_and_wall_time_little() {
        let mut clock = Clock::begin(Times::default(), reading(0, BEGIN_MS), false);
        let times = |ms, wall_ms| Times { wall_ms: BEGIN_MS + wall_ms, elapsed_ms: BEGIN_MS + ms };
        assert_eq!(clock.at(reading(1000, BEGIN_MS + 1000)), times(1000, 1000));
        assert_eq!(clock.at(reading(2000, BEGIN_MS + DAY_MS)), times(2000, 3000));
        assert_eq!(clock.ahead_ms(), (DAY_MS - 3000) as i64);
        assert_eq!(clock.at(reading(61_000, BEGIN_MS + DAY_MS)), times(61_000, 121_000));
        assert_eq!(clock.at(reading(62_000, BEGIN_MS + 62_000)), times(62_000, 121_500));
        assert_eq!(clock.ahead_ms(), -59_500);
        // It waits for the machine's, and goes on meanwhile.
        assert_eq!(clock.at(reading(162_000, BEGIN_MS + 162_000)), times(162_000, 171_500));
        assert_eq!(clock.at(reading(200_000, BEGIN_MS + 200_000)), times(200_000, 200_000));
        assert_eq!(clock.at(reading(201_000, BEGIN_MS - DAY_MS)), times(201_000, 200_500));
    }

    #[test]
    fn a_restart_goes_on_where_the_last_entry_was() {
        let last = Times { wall_ms: BEGIN_MS, elapsed_ms: BEGIN_MS - DAY_MS };
        let mut clock = Clock::begin(last, reading(5, BEGIN_MS + 10), false);
        let want = Times { wall_ms: BEGIN_MS + 11, elapsed_ms: BEGIN_MS - DAY_MS + 1 };
        assert_eq!(clock.at(reading(6, BEGIN_MS + 11)), want);
        let mut clock = Clock::begin(last, reading(5, BEGIN_MS - DAY_MS), false);
        assert_eq!(clock.ahead_ms(), -(DAY_MS as i64));
        assert_eq!(clock.at(reading(6, BEGIN_MS - DAY_MS)).wall_ms, BEGIN_MS);
        assert_eq!(clock.at(reading(7, BEGIN_MS - DAY_MS)).wall_ms, BEGIN_MS + 1);
    }

    #[test]
    fn elapsed_time_parts_from_wall_time_where_that_is() {
        let mut clock = Clock::begin(Times::default(), reading(0, BEGIN_MS), true);
        let wall = |ms| Times { wall_ms: BEGIN_MS + ms, elapsed_ms: BEGIN_MS + ms };
        assert_eq!(clock.at(reading(1000, BEGIN_MS + DAY_MS)), wall(2000));
        clock.part();
        let want = Times { elapsed_ms: BEGIN_MS + 3000, ..wall(4000) };
        assert_eq!(clock.at(reading(2000, BEGIN_MS + DAY_MS)), want);
        clock.part();
        let want = Times { elapsed_ms: BEGIN_MS + 4000, ..wall(6000) };
        assert_eq!(clock.at(reading(3000, BEGIN_MS + DAY_MS)), want);
    }

    proptest! {
        /// Whatever a machine's wall clock shows, and as often as the NameNode ends meanwhile.
        #[test]
        fn neither_goes_back_nor_is_carried_away(
            steps in prop::collection::vec((0u64..3_000_000, 0u64..1 << 50, 0..20), 1..200),
        ) {
            let mut now = Duration::ZERO;
            let mut clock = Clock::begin(Times::default(), reading(0, BEGIN_MS), false);
            let mut last = Times { wall_ms: BEGIN_MS, elapsed_ms: BEGIN_MS };
            for (passed_us, wall_us, restart) in steps {
                let passed = Duration::from_micros(passed_us);
                now += passed;
                let shown = Reading { monotonic: now, wall: Duration::from_micros(wall_us * 4) };
                if restart == 0 {
                    clock = Clock::begin(last, shown, false);
                }
                let times = clock.at(shown);
                prop_assert_eq!(last.max(times), times);
                if restart > 0 {
                    let passed_ms = millis(passed) + 1;
                    prop_assert!(times.elapsed_ms - last.elapsed_ms <= passed_ms);
                    prop_assert!(times.wall_ms - last.wall_ms <= 2 * passed_ms);
                    prop_assert!(times.wall_ms + 1 - last.wall_ms >= millis(passed / 2));
                }
                last = times;
            }
        }
    }
}
