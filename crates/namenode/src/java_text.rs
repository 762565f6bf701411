//! Times and numbers as Java writes them.

use cairn_net::date::Moment;

/// A time as `java.util.Date#toString` writes it, in UTC.
pub(crate) fn java_date(wall_ms: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Moment { year, month, day, weekday, hour, minute, second, .. } = Moment::of_ms(wall_ms);
    let (weekday, month) = (DAYS[weekday], MONTHS[month as usize - 1]);
    format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year:04}")
}

/// A time as `SimpleDateFormat` writes it by `yyyyMMdd-HHmmss.SSS`, in UTC.
pub(crate) fn compact_date(wall_ms: u64) -> String {
    let Moment { year, month, day, hour, minute, second, ms, .. } = Moment::of_ms(wall_ms);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}.{ms:03}")
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
