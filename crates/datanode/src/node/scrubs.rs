//! Whole blocks and groups that are read to see whether they agree, and what came of it.

use super::untold::Untold;
use crate::budget::Budget;
use cairn_wire::proto::datanode::ScrubbedBlockProto;
use tokio::sync::Mutex as AsyncMutex;

/// Results that may wait for a NameNode that is away. It gives up what it does not hear of, and asks again.
const MAX_RESULTS: usize = 256;

/// What is being scrubbed, and what came of it.
pub(crate) struct Scrubs {
    /// Held by the orders of one heartbeat at a time.
    pub(crate) turn: AsyncMutex<()>,
    /// Bytes per second, as the last order named them.
    pub(crate) budget: Budget,
    /// What came of it, until the NameNode is told.
    pub(crate) results: Untold<ScrubbedBlockProto>,
}

impl Default for Scrubs {
    fn default() -> Scrubs {
        let (turn, budget) = (AsyncMutex::default(), Budget::new(0));
        Scrubs { turn, budget, results: Untold::new(MAX_RESULTS) }
    }
}
