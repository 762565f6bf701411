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

impl Caching {
    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        for (id, Cached { on, coming, going, .. }) in &self.blocks {
            assert!(coming.is_disjoint(on), "{id} is to come to where it is: {coming:?}, {on:?}");
            assert!(coming.is_disjoint(going), "{id} is to come and go: {coming:?}, {going:?}");
        }
    }
}
