//! What values of keys can be.

use crate::value;
use crate::wrong_value::WrongValue;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// How a value is written, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Kind<T> {
    /// In a few words, for tables.
    pub takes: &'static str,
    parse: fn(&str) -> Result<T, WrongValue>,
}

impl<T> Kind<T> {
    /// `parse` may be given any text, without blanks at its ends.
    pub const fn new(takes: &'static str, parse: fn(&str) -> Result<T, WrongValue>) -> Kind<T> {
        Kind { takes, parse }
    }

    /// The value that a text stands for.
    pub fn parse(&self, text: &str) -> Result<T, WrongValue> {
        (self.parse)(text)
    }
}

/// `true` or `false`.
pub const BOOLEAN: Kind<bool> = Kind::new("true or false", value::boolean);

/// A number of bytes, with or without a binary prefix (`64k`, `128m`).
pub const BYTES: Kind<u64> = Kind::new("bytes", value::bytes);

/// A duration; a bare number is in milliseconds.
pub const MILLIS: Kind<Duration> =
    Kind::new("time, in ms", |text| value::duration(text, Duration::from_millis(1)));

/// A duration; a bare number is in seconds.
pub const SECONDS: Kind<Duration> =
    Kind::new("time, in s", |text| value::duration(text, Duration::from_secs(1)));

/// How long to wait; a bare number is in milliseconds, and 0 is [`value::FOR_EVER`].
pub const PATIENCE: Kind<Duration> = Kind::new("time, in ms; 0 for ever", value::patience);

/// Permission bits in octal digits.
pub const MODE: Kind<u32> = Kind::new("permission bits", value::mode);

/// A `host:port`; a name is looked up.
pub const ADDRESS: Kind<SocketAddr> = Kind::new("host:port", value::address);

/// The same, or none.
pub const OPTIONAL_ADDRESS: Kind<Option<SocketAddr>> =
    Kind::new("host:port", |text| (!text.is_empty()).then(|| value::address(text)).transpose());

/// Any text.
pub const TEXT: Kind<String> = Kind::new("text", |text| Ok(text.to_string()));

/// The same; none where it is empty.
pub const OPTIONAL_TEXT: Kind<Option<String>> =
    Kind::new("text", |text| Ok((!text.is_empty()).then(|| text.to_string())));

/// A number.
pub const fn number<T: FromStr>() -> Kind<T>
where
    WrongValue: From<T::Err>,
{
    Kind::new("number", |text| Ok(text.parse::<T>()?))
}

/// A whole number above 0.
pub const fn positive<T: FromStr + Default + PartialOrd>() -> Kind<T>
where
    WrongValue: From<T::Err>,
{
    Kind::new("number above 0", |text| match text.parse::<T>()? {
        number if number > T::default() => Ok(number),
        _ => Err("it takes a number above 0".into()),
    })
}

/// The value that a table's default stands for. Panics where a table has a default that its own type does not take:
/// each is taken whenever settings are made, so that no test can miss it.
#[doc(hidden)]
pub fn by_default<T>(kind: &Kind<T>, text: &str) -> T {
    kind.parse(text).unwrap_or_else(|error| panic!("the default '{text}' of a key: {error}"))
}
