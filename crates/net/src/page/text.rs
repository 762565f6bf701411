//! Figures as people read them.

use crate::date::Moment;

/// Bytes with a unit, `1.5 GiB`: three digits are enough for anybody.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = UNITS[unit];
    match value {
        _ if bytes < 1000 => format!("{bytes} B"),
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// A number with a blank between thousands, which no line breaks at.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A time span in the two largest units that it has, `2 h 5 min`.
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(len, _)| seconds >= *len).unwrap_or(UNITS.len() - 1);
    let (len, unit) = UNITS[first];
    let mut out = format!("{} {unit}", seconds / len);
    if let Some((next_len, next)) = UNITS.get(first + 1)
        && seconds % len / next_len > 0
    {
        out.push_str(&format!(" {} {next}", seconds % len / next_len));
    }
    out
}

/// A time span as [`span`] has it, to the minute: it does not change with each look.
pub fn about(seconds: u64) -> String {
    match seconds / 60 {
        0 => "less than a minute".to_string(),
        minutes => span(minutes * 60),
    }
}

/// A part of a whole in percent, with a digit behind the point where that says something.
pub fn percent(part: u64, whole: u64) -> String {
    match part as f64 * 100.0 / whole.max(1) as f64 {
        0.0 => "0 %".to_string(),
        percent if percent < 0.05 => "< 0.1 %".to_string(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// A time, `2026-05-04 13:14:15 UTC`, from milliseconds since the epoch.
pub fn time(ms: u64) -> String {
    let moment = Moment::of_ms(ms);
    format!("{}:{:02} UTC", moment.to_the_minute(), moment.second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units_and_three_digits() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1536, "1.50 KiB"),
            (10 << 20, "10.0 MiB"),
            (999 << 20, "999 MiB"),
            (1023 << 20, "1.00 GiB"),
            (5 << 40, "5.00 TiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), text, "{count}");
        }
    }

    #[test]
    fn numbers_times_and_parts_are_for_people() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(number(123), "123");
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (7500, "2 h 5 min"),
            (3601, "1 h"),
            (200_000, "2 d 7 h"),
        ] {
            assert_eq!(span(seconds), text, "{seconds}");
        }
        assert_eq!([about(59), about(3700)], ["less than a minute", "1 h 1 min"]);
        assert_eq!([percent(0, 5), percent(1, 30), percent(5, 5)], ["0 %", "3.3 %", "100 %"]);
        assert_eq!([percent(1, 0), percent(1, 10_000)], ["100 %", "< 0.1 %"]);
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(1_709_210_096_789), "2024-02-29 12:34:56 UTC");
    }
}
