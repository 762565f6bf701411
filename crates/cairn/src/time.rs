//! Moments that people write.

/// Milliseconds since 1970 of `2026-01-31 23:59:59`, in UTC; a part of a second is left out.
pub fn spoken(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let time = time.split([',', '.']).next()?.trim_end_matches('Z');
    compact(&format!("{}:{}", date.replace('-', ""), time.replace(':', "")))
}

/// Milliseconds since 1970 of `20260131:235959`, in UTC. Source: Hadoop 3.5.0 `TouchCommands`.
pub fn compact(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(':')?;
    let is_number = |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(date, 8) || !is_number(time, 6) {
        return None;
    }
    let number = |text: &str, from: usize, to: usize| text[from..to].parse::<u64>().ok();
    let (year, month, day) = (number(date, 0, 4)?, number(date, 4, 6)?, number(date, 6, 8)?);
    let (hour, minute, second) = (number(time, 0, 2)?, number(time, 2, 4)?, number(time, 4, 6)?);
    if !(1970..).contains(&year)
        || !(1..=12).contains(&month)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if day == 0 || day > lengths[month as usize - 1] {
        return None;
    }
    let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let days = years + lengths[..month as usize - 1].iter().sum::<u64>() + day - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_net::date::Moment;

    #[test]
    fn what_is_printed_is_read() {
        let text = "2024-02-29 23:59:58";
        let ms = spoken(text).unwrap();
        assert_eq!(Moment::of_ms(ms).to_string(), format!("{text},000"));
        assert_eq!(spoken(&Moment::of_ms(ms).to_string()), Some(ms));
        assert_eq!(spoken("2024-02-29"), None);
    }

    #[test]
    fn times_are_read_as_hadoop_reads_them() {
        for (text, want) in [
            ("20220101:000000", Some("2022-01-01 00:00:00,000")),
            ("20240229:235958", Some("2024-02-29 23:59:58,000")),
            ("20230229:000000", None),
            ("2020", None),
            ("20221301:000000", None),
            ("20220101:240000", None),
            ("2022010é:000000", None),
        ] {
            let told = compact(text).map(|ms| Moment::of_ms(ms).to_string());
            assert_eq!(told.as_deref(), want, "{text}");
        }
    }
}
