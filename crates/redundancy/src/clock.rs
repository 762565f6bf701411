//! Time and chance, which come from outside.

/// The time of an event, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Since the NameNode began; liveness and timeouts use this one.
    pub mono_ms: u64,
    /// Of the cluster, whose NameNodes begin and end: what the log has recorded is compared with this one.
    pub elapsed_ms: u64,
    /// Since 1970; shown to people (`lastUpdate`), and what the end of a maintenance is told in.
    pub wall_ms: u64,
}

/// A source of random numbers, uniform over all of `u64`.
pub type Dice<'a> = &'a mut dyn FnMut() -> u64;

/// A time in whole milliseconds, as clocks count here.
pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
