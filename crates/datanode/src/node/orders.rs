//! What a NameNode told of work that waits for this DataNode.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// How often the NameNode has given this DataNode work, as its last answer to a heartbeat tells; `None` if it
/// cannot be asked to wait, or is not the one that gives work.
pub(crate) struct Orders {
    told: watch::Sender<Option<u64>>,
    are_ours: AtomicBool,
}

impl Default for Orders {
    fn default() -> Orders {
        Orders { told: watch::Sender::new(None), are_ours: AtomicBool::new(false) }
    }
}

impl Orders {
    /// A heartbeat was answered, by the NameNode that is obeyed if `is_active`.
    pub(crate) fn told(&self, orders: Option<u64>, is_active: bool) {
        self.are_ours.fetch_or(orders.is_some(), Ordering::AcqRel);
        self.told.send_replace(orders.filter(|_| is_active));
    }

    /// Whether the NameNode is one of Cairn's.
    pub(crate) fn are_ours(&self) -> bool {
        self.are_ours.load(Ordering::Acquire)
    }

    /// What was told last, and what is told from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.told.subscribe()
    }
}
