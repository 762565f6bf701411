//! The text forms of Hadoop's values.
//!
//! Source: Hadoop 3.5.0 `Configuration#getTimeDuration`, `#getLongBytes`, `StringUtils.TraditionalBinaryPrefix`.

use crate::wrong_value::WrongValue;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// What an endless wait lasts: a year, so that something can be added to it.
pub const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// `true` or `false` in any case of letters.
pub fn boolean(text: &str) -> Result<bool, WrongValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("it takes true or false".into()),
    }
}

/// Permission bits in octal digits.
pub fn mode(text: &str) -> Result<u32, WrongValue> {
    let bits = u32::from_str_radix(text.trim(), 8).ok().filter(|bits| *bits <= 0o7777);
    bits.ok_or_else(|| "it takes permission bits such as 700".into())
}

/// Bytes, with one of the binary prefixes k, m, g, t, p, e.
pub fn bytes(text: &str) -> Result<u64, WrongValue> {
    let prefix = text.chars().last().unwrap_or('0').to_ascii_lowercase();
    let shift = match prefix {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        'p' => 50,
        'e' => 60,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number: u64 =
        digits.trim().parse().map_err(|_| "it takes a number of bytes such as 64k")?;
    number.checked_mul(1 << shift).ok_or_else(|| "it is too large".into())
}

/// A duration with one of the suffixes ns, us, ms, s, m, h, d; a bare number counts `unit`s.
pub fn duration(text: &str, unit: Duration) -> Result<Duration, WrongValue> {
    let text = text.trim().to_ascii_lowercase();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| "it takes a duration such as 30s")?;
    let unit = match text[split..].trim() {
        "" => unit,
        "ns" => Duration::from_nanos(1),
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        "d" => Duration::from_secs(86_400),
        other => return Err(format!("'{other}' is no unit of time").into()),
    };
    let nanos = unit.as_nanos().checked_mul(u128::from(number)).ok_or("it is too long")?;
    let secs = u64::try_from(nanos / 1_000_000_000).map_err(|_| "it is too long")?;
    Ok(Duration::new(secs, (nanos % 1_000_000_000) as u32))
}

/// How long to wait; a bare number is in milliseconds, and 0 is [`FOR_EVER`].
pub fn patience(text: &str) -> Result<Duration, WrongValue> {
    let time = duration(text, Duration::from_millis(1))?;
    Ok(if time.is_zero() { FOR_EVER } else { time })
}

/// A `host:port`, resolved.
pub fn address(text: &str) -> Result<SocketAddr, WrongValue> {
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("cannot resolve {text}: {error}"))?;
    found.next().ok_or_else(|| format!("{text} has no address").into())
}

/// A local folder given as a path or a `file:` URI, perhaps behind a storage type in brackets.
pub fn folder(text: &str) -> PathBuf {
    let text = text.trim();
    let text =
        text.split_once(']').filter(|_| text.starts_with('[')).map_or(text, |(_, rest)| rest);
    let local = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:"));
    PathBuf::from(local.unwrap_or(text))
}

/// The words between commas.
pub fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Groups of users: `user=group,group;user=`.
pub fn groups(text: &str) -> Result<Vec<(String, Vec<String>)>, WrongValue> {
    let entries = text.split(';').filter(|entry| !entry.trim().is_empty());
    let of = |entry: &str| {
        let (user, groups) = entry.split_once('=').unwrap_or((entry, ""));
        let groups = groups.split(',').map(str::trim).filter(|g| !g.is_empty());
        (user.trim().to_string(), groups.map(str::to_string).collect())
    };
    Ok(entries.map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_binary_prefixes() {
        for (text, want) in [("0", 0), ("512", 512), ("64k", 65_536), ("128M", 134_217_728)] {
            assert_eq!(bytes(text).unwrap(), want, "{text}");
        }
        for text in ["", "m", "1x", "-1", "99999999999e"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_take_suffixes_and_default_units() {
        let second = Duration::from_secs(1);
        for (text, millis) in
            [("3", 3000), ("3s", 3000), ("3ms", 3), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text, second).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for text in ["", "s", "3w", "-3"] {
            assert!(duration(text, second).is_err(), "{text}");
        }
    }

    #[test]
    fn folders_take_hadoops_forms() {
        assert_eq!(folder("[SSD]file:///d/1"), PathBuf::from("/d/1"));
        assert_eq!(folder("file:/d/1"), PathBuf::from("/d/1"));
        assert_eq!(folder("/d/1"), PathBuf::from("/d/1"));
    }
}
