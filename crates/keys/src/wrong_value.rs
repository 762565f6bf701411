//! What is said of a value that a key does not take.

/// A value that cannot be what its key wants, and what it wants instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongValue(String);

impl From<&str> for WrongValue {
    fn from(why: &str) -> WrongValue {
        WrongValue(why.to_string())
    }
}

impl From<String> for WrongValue {
    fn from(why: String) -> WrongValue {
        WrongValue(why)
    }
}

impl From<std::num::ParseIntError> for WrongValue {
    fn from(error: std::num::ParseIntError) -> WrongValue {
        WrongValue(error.to_string())
    }
}

impl From<std::num::ParseFloatError> for WrongValue {
    fn from(error: std::num::ParseFloatError) -> WrongValue {
        WrongValue(error.to_string())
    }
}
