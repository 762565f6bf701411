//! Moments as people write them, in UTC.

use std::fmt;

/// Ms since the epoch; shown as `2026-01-31 23:59:59,999`, the way log4j does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The moment so many milliseconds after the epoch.
    pub fn of_ms(ms: u64) -> Moment {
        Moment(ms)
    }

    /// `2026-01-31 23:59`.
    pub fn minute(self) -> String {
        let text = self.to_string();
        text.rsplit_once(':').map(|(minute, _)| minute.to_string()).unwrap_or(text)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{ms:03}")
    }
}

/// The date that many days after 1970-01-01, by counting years from a March 400-year cycle.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
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
            assert_eq!(moment.minute(), want[..16]);
        }
    }
}
