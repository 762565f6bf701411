//! The system's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The shortest time between two looks at it.
pub(crate) const TICK_MIN: Duration = Duration::from_millis(20);

/// Milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
