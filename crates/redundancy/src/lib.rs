//! Where every replica and internal block is, and what to mend.
//!
//! [`Cluster`] takes registrations, heartbeats and block reports in and gives commands for DataNodes
//! out. It decides; it does no I/O, reads no clock (every call that needs the time gets a [`Now`]) and
//! draws no randomness (a [`Dice`] is handed in). What a block *should* be it asks of a
//! [`BlockLookup`], which the NameNode implements over the namespace. Locations are soft state:
//! everything here is rebuilt from reports after a restart.
//!
//! A file imports files below it only. From the bottom up: names (`handle`, `clock`, [`block`], [`node`], [`storage`],
//! `replica`) and what is told DataNodes ([`command`]); the parts, each with its state to itself: `nodes`; `places`, all that is
//! known of blocks; `low_redundancy`, those that need something, by `need` and [`tally`](Tally); `work`, what is done for that; `leaving/lists.rs` and the other states beside
//! what uses them; [`Cluster`], which is made of the parts; `slots`, what protects a block; then what happens to it, one event or decision to a file, none
//! of which imports another. What is kept of a block is in `places`, `low_redundancy` and `work`, and each forgets it at once.

mod clock;
mod derived;
mod domains;
#[cfg(test)]
mod fixture;
mod handle;
mod lease;
mod lost;
mod low_redundancy;
mod need;
mod nodes;
mod number_set;
mod places;
mod replica;
mod slots;
mod tally;
mod work;

pub mod block;
pub mod caching;
pub mod cluster;
pub mod command;
pub mod config;
pub mod construction;
pub mod error;
pub mod excess;
pub mod groups;
pub mod health;
pub mod identity;
pub mod inventory;
pub mod leaving;
pub mod mend;
pub mod moves;
pub mod node;
pub mod ordering;
pub mod packed;
pub mod placement;
pub mod queue;
pub mod record;
pub mod report;
pub mod safe_mode;
pub mod sample;
pub mod scrub;
pub mod slow;
pub mod standby;
pub mod stats;
pub mod storage;
pub mod verify;

pub use block::{
    BlockFacts, BlockLookup, BlockRef, BlockState, GroupFacts, Layout, Location, SlotFacts,
};
pub use caching::cached::CacheWant;
pub use clock::{Dice, Now};
pub use cluster::{Cluster, Tick};
pub use command::{
    BlockRecovery, Command, EarlierPlaces, EncodeMember, EncodeOrder, GroupRebuild, PackOrder,
    ProveOrder, Reconstruction, Transfer, UnpackOrder,
};
pub use config::{Config, SlowConfig};
pub use error::RedundancyError;
pub use handle::{NodeHandle, StorageHandle};
pub use health::{BadReason, Replica, ReplicaCounts, Spread, Standing, Verdict};
pub use identity::{NodeAddress, NodeClaim};
pub use inventory::{Heartbeat, HeartbeatAnswer, Registration, StorageReport};
pub use leaving::{AdminIntent, HeldBack, LeavingNode, NodeHeldBack};
pub use mend::failure::FailedWork;
pub use moves::{MovableBlock, MoveQuery};
pub use node::{AdminState, DataNode, ReportKind, VolumeFailures};
pub use ordering::Reader;
pub use placement::{Chosen, PlacementRequest};
pub use places::construction::{Expected, Synchronized};
pub use places::waits::Ticket;
pub use queue::{Priority, Queues};
pub use replica::{
    Changes, DisprovedCrc, LateCrc, ReplicaEvent, ReplicaEventKind, ReplicaState, ReportedReplica,
};
pub use report::full::{FullReport, ReportCall};
pub use safe_mode::{SafeMode, SafeModeStatus};
pub use sample::Sample;
pub use scrub::{Agreement, ScrubOrder, Scrubbed, ScrubbedPlace};
pub use slow::reports::{Outlier, SlowDisk, SlowNode};
pub use standby::kept::Kept;
pub use standby::pending::Pending;
pub use standby::{Completeness, KeptPlace, Standby};
pub use stats::{BlockCounts, ClusterStats, GroupCounts, MARGINS, Margin};
pub use storage::{Storage, StorageState, StorageUsage};
pub use tally::Tally;
pub use verify::{TopologyVerdict, verify_policies};

pub use cairn_stripe::{StoragePolicy, StorageType};
