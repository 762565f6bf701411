//! Moments as people write them, in UTC.

use std::fmt;

/// A moment by the parts of its date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The year.
    pub year: u64,
    /// The month, 1 to 12.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The day of the week: 0 is Thursday, as the first day of the epoch was.
    pub weekday: usize,
    /// The hour, 0 to 23.
    pub hour: u64,
    /// The minute.
    pub minute: u64,
    /// The second.
    pub second: u64,
    /// The millisecond.
    pub ms: u64,
}

impl Moment {
    /// The moment so many milliseconds after the epoch.
    pub fn of_ms(ms: u64) -> Moment {
        let (seconds, ms) = (ms / 1000, ms % 1000);
        let days = seconds / 86_400;
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Moment { year, month, day, weekday: (days % 7) as usize, hour, minute, second, ms }
    }

    /// `2026-01-31 23:59`.
    pub fn to_the_minute(&self) -> String {
        let Moment { year, month, day, hour, minute, .. } = self;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

/// `2026-01-31 23:59:59,999`, as log4j writes it.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02},{:03}", self.to_the_minute(), self.second, self.ms)
    }
}

/// Year, month and day that many days after 1970-01-01, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is a year's last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_civil() {
        for (ms, want) in [
            (0, "1970-01-01 00:00:00,000"),
            (951_782_400_000, "2000-02-29 00:00:00,000"),
            (1_767_225_599_042, "2025-12-31 23:59:59,042"),
        ] {
            let moment = Moment::of_ms(ms);
            assert_eq!(moment.to_string(), want);
            assert_eq!(moment.to_the_minute(), want[..16]);
        }
    }
}
