//! The state of a NameNode that its operations look at: the namespace as it is in force, and the cluster.

use crate::rng::Rng;
use cairn_master::Look;
use cairn_namespace::store::memory::MemoryStore;
use cairn_redundancy::{Cluster, Now};

/// Wall time at the start of a simulation.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// The time of both clocks.
pub(crate) fn now(ms: u64) -> Now {
    Now { mono_ms: ms, wall_ms: EPOCH_MS + ms }
}

/// See the module.
pub(crate) struct Core {
    pub(crate) now_ms: u64,
    /// How far its wall clock is ahead.
    pub(crate) skew_ms: i64,
    /// What is in force.
    pub(crate) store: MemoryStore,
    pub(crate) cluster: Cluster,
    pub(crate) rng: Rng,
}

impl Core {
    pub(crate) fn now(&self) -> Now {
        let now = now(self.now_ms);
        Now { wall_ms: now.wall_ms.saturating_add_signed(self.skew_ms), ..now }
    }

    /// Looks at both.
    pub(crate) fn look<R>(&mut self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        let now = self.now();
        let Core { store, cluster, rng, .. } = self;
        look(&mut Look { store, cluster, now, dice: &mut || rng.any() })
    }
}
