//! Where every replica and internal block is, and what to mend.
//!
//! [`Cluster`] takes registrations, heartbeats and block reports in and gives commands for DataNodes
//! out. It decides; it does no I/O, reads no clock (every call that needs the time gets a [`Now`]) and
//! draws no randomness (a [`Dice`] is handed in). What a block *should* be it asks of a
//! [`BlockLookup`], which the NameNode implements over the namespace. Locations are soft state:
//! everything here is rebuilt from reports after a restart.

mod block_map;
mod domains;
#[cfg(test)]
mod fixture;
mod lease;
mod lost;
mod number_set;
mod places;

pub mod block;
pub mod caching;
pub mod cluster;
pub mod command;
pub mod config;
pub mod construction;
pub mod error;
pub mod excess;
pub mod health;
pub mod identity;
pub mod inventory;
pub mod leaving;
pub mod mend;
pub mod moves;
pub mod node;
pub mod ordering;
pub mod placement;
pub mod queue;
pub mod record;
pub mod report;
pub mod safe_mode;
pub mod scrub;
pub mod slow;
pub mod stats;
pub mod storage;
pub mod verify;
pub mod waits;

pub use block::{BlockFacts, BlockLookup, BlockRef, BlockState, Layout, Location};
pub use caching::CacheWant;
pub use cluster::{Cluster, Tick};
pub use command::{BlockRecovery, Command, Reconstruction, Transfer};
pub use config::Config;
pub use construction::{Expected, Synchronized};
pub use error::RedundancyError;
pub use excess::Tally;
pub use health::{BadReason, Replica, ReplicaCounts, Spread, Standing, Verdict};
pub use identity::{NodeAddress, NodeClaim};
pub use inventory::{Heartbeat, HeartbeatAnswer, Registration, StorageReport};
pub use leaving::{AdminIntent, HeldBack, LeavingNode, NodeHeldBack};
pub use mend::failure::FailedWork;
pub use moves::{MovableBlock, MoveQuery};
pub use node::{AdminState, DataNode, NodeHandle, ReportKind, VolumeFailures};
pub use ordering::Reader;
pub use placement::{Chosen, PlacementRequest};
pub use record::DisprovedCrc;
pub use report::full::{FullReport, ReportCall};
pub use report::{Changes, LateCrc, ReplicaEvent, ReplicaEventKind, ReplicaState, ReportedReplica};
pub use safe_mode::{SafeMode, SafeModeStatus};
pub use scrub::{Agreement, ScrubOrder, Scrubbed, ScrubbedPlace};
pub use slow::{Outlier, SlowConfig, SlowDisk, SlowNode};
pub use stats::{BlockCounts, ClusterStats, GroupCounts};
pub use storage::{Storage, StorageHandle, StorageState, StorageUsage};
pub use verify::{TopologyVerdict, verify_policies};
pub use waits::Ticket;

pub use cairn_stripe::{StoragePolicy, StorageType};

/// The time of an event, in milliseconds of two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Of a clock that never goes back; liveness and timeouts use this one.
    pub mono_ms: u64,
    /// Since 1970; shown to people (`lastUpdate`), and what the end of a maintenance is told in.
    pub wall_ms: u64,
}

/// A source of random numbers, uniform over all of `u64`.
pub type Dice<'a> = &'a mut dyn FnMut() -> u64;

/// A time in whole milliseconds, as clocks count here.
pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
