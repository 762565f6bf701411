//! What DataNodes have in memory, and what they are to take in and give up.

use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of one replica or unit.
#[derive(Debug, Default)]
pub(super) struct Cached {
    /// Bytes; 0 if no directive has named it.
    pub(super) len: u64,
    /// DataNodes that have it in memory.
    pub(super) on: BTreeSet<NodeHandle>,
    /// DataNodes that are to take it into memory.
    pub(super) coming: BTreeSet<NodeHandle>,
    /// DataNodes that are to give it up.
    pub(super) going: BTreeSet<NodeHandle>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Caching {
    pub(super) blocks: BTreeMap<BlockId, Cached>,
    /// When each DataNode was last told, on the monotonic clock.
    pub(super) told_ms: BTreeMap<NodeHandle, u64>,
}
