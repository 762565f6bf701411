//! How a simulation is run, and what is told of it.

use std::collections::BTreeMap;

/// How a simulation is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Keep a line for each thing that happens.
    pub trace: bool,
    /// How long clients work and faults happen, in simulated ms.
    pub busy_ms: u64,
    /// How long everything may take to be whole again, in simulated ms.
    pub quiet_ms: u64,
    /// Most faults; with fewer, a failing seed may be easier to read.
    pub faults: u32,
    /// Most clients.
    pub clients: usize,
    /// Files are in contiguous groups, which is so in a part of all simulations otherwise.
    pub groups: bool,
    /// Blocks of these files that are short are packed into containers; `groups` is so then too.
    pub packing: bool,
    /// Much comes between a look and the command that rests on it: the log is slow at each write, not at some, and clients
    /// often want files closed that others write.
    pub is_contended: bool,
    /// Faults come five times as often, and scanners come by a twentieth as often while they do.
    pub is_harsh: bool,
    /// In the end the NameNode is restored from a backup of some time ago.
    pub restores: bool,
    /// Kinds of faults that do not happen, a bit for each of [`crate::FAULT_KINDS`].
    pub without: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            trace: false,
            busy_ms: 240_000,
            quiet_ms: 900_000,
            faults: u32::MAX,
            clients: usize::MAX,
            groups: false,
            packing: false,
            is_contended: false,
            is_harsh: false,
            restores: false,
            without: 0,
        }
    }
}

/// What has happened in a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What must not be, if it was.
    pub violation: Option<String>,
    /// A line for each thing that happened, if they were wanted.
    pub trace: Vec<String>,
    /// How often what happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// Simulated ms.
    pub time_ms: u64,
}
