//! Times and numbers as Java writes them.

/// A time as `java.util.Date#toString` writes it, in UTC.
pub(crate) fn java_date(wall_ms: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = wall_ms / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year:04}",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

/// A time as `SimpleDateFormat` writes it by `yyyyMMdd-HHmmss.SSS`, in UTC.
pub(crate) fn compact_date(wall_ms: u64) -> String {
    let (seconds, ms) = (wall_ms / 1000, wall_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}{:02}{day:02}-{:02}{:02}{:02}.{ms:03}",
        month + 1,
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

/// Year, month from 0 and day from 1 of a day since 1970-01-01, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is a year's last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    (era * 400 + year_of_era + u64::from(month < 2), month, day)
}

/// A number as `Float#toString` writes it.
pub(crate) fn java_float(value: f32) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_javas() {
        for (ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_709_251_199_999, "Thu Feb 29 23:59:59 UTC 2024"),
            (1_795_266_747_000, "Sat Nov 21 13:12:27 UTC 2026"),
            (4_102_444_800_000, "Fri Jan 01 00:00:00 UTC 2100"),
        ] {
            assert_eq!(java_date(ms), text);
        }
        assert_eq!(compact_date(951_782_399_007), "20000228-235959.007");
    }

    #[test]
    fn floats_are_javas() {
        for (value, text) in [
            (0.0, "0.0"),
            (100.0, "100.0"),
            (100.0 / 3.0, "33.333332"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (0.000_123_4, "1.234E-4"),
            (2e7, "2.0E7"),
        ] {
            assert_eq!(java_float(value), text);
        }
    }
}
