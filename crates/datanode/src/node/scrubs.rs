//! Whole blocks and groups that are read to see whether they agree, and what came of it.

use crate::budget::Budget;
use cairn_net::held::held;
use cairn_wire::proto::datanode::ScrubbedBlockProto;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Mutex as AsyncMutex;

/// Results that may wait for a NameNode that is away. It gives up what it does not hear of, and asks again.
const MAX_RESULTS: usize = 256;

/// What is being scrubbed, and what came of it.
pub(crate) struct Scrubs {
    /// Held by the orders of one heartbeat at a time.
    pub(crate) turn: AsyncMutex<()>,
    /// Bytes per second, as the last order named them.
    pub(crate) budget: Budget,
    results: Mutex<Vec<ScrubbedBlockProto>>,
}

impl Default for Scrubs {
    fn default() -> Scrubs {
        let (turn, results) = (AsyncMutex::default(), Mutex::default());
        Scrubs { turn, budget: Budget::new(0), results }
    }
}

impl Scrubs {
    /// What is to be told with a heartbeat.
    pub(crate) fn take_results(&self) -> Vec<ScrubbedBlockProto> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes back what could not be told.
    pub(crate) fn put_back(&self, untold: Vec<ScrubbedBlockProto>) {
        let mut results = self.lock();
        results.splice(..0, untold);
        results.truncate(MAX_RESULTS);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ScrubbedBlockProto>> {
        held(&self.results)
    }
}
