//! The state of a NameNode that its operations look at: the namespace as it is in force, and the cluster.

use super::store::Store;
use crate::rng::Rng;
use cairn_master::Look;
use cairn_namespace::clock::{Clock, Reading, Times};
use cairn_redundancy::{Cluster, Now};
use std::time::Duration;

/// Wall time at the start of a simulation.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// The time, if nobody sets a clock.
pub(crate) fn now(ms: u64) -> Now {
    Now { mono_ms: ms, elapsed_ms: EPOCH_MS + ms, wall_ms: EPOCH_MS + ms }
}

/// See the module.
pub(crate) struct Core {
    pub(crate) now_ms: u64,
    /// How far its machine's wall clock is ahead.
    pub(crate) skew_ms: i64,
    pub(crate) clock: Clock,
    /// What is in force.
    pub(crate) store: Store,
    pub(crate) cluster: Cluster,
    pub(crate) rng: Rng,
}

impl Core {
    pub(crate) fn new(store: Store, cluster: Cluster, rng: Rng) -> Core {
        let reading = Reading { monotonic: Duration::ZERO, wall: Duration::from_millis(EPOCH_MS) };
        let clock = Clock::begin(Times::default(), reading, false);
        Core { now_ms: 0, skew_ms: 0, clock, store, cluster, rng }
    }

    /// The time.
    pub(crate) fn now(&self) -> Now {
        let Times { wall_ms, elapsed_ms } = self.clock.clone().at(self.reading());
        Now { mono_ms: self.now_ms, elapsed_ms, wall_ms }
    }

    /// What its machine's clocks show.
    pub(crate) fn reading(&self) -> Reading {
        let wall_ms = now(self.now_ms).wall_ms.saturating_add_signed(self.skew_ms);
        let time = Duration::from_millis;
        Reading { monotonic: time(self.now_ms), wall: time(wall_ms) }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.clock.at(self.reading());
    }

    /// Looks at both.
    pub(crate) fn look<R>(&mut self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        let now = self.now();
        let Core { store, cluster, rng, .. } = self;
        look(&mut Look { store, cluster, now, dice: &mut || rng.any() })
    }
}
