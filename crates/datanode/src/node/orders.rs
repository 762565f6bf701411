//! What the NameNode told of work that waits for this DataNode.

use tokio::sync::watch;

/// How often the NameNode has given this DataNode work, as its last answer to a heartbeat tells; `None` if it
/// cannot be asked to wait.
pub(crate) struct Orders(watch::Sender<Option<u64>>);

impl Default for Orders {
    fn default() -> Orders {
        Orders(watch::Sender::new(None))
    }
}

impl Orders {
    /// A heartbeat was answered.
    pub(crate) fn told(&self, orders: Option<u64>) {
        self.0.send_replace(orders);
    }

    /// Whether the NameNode is one of Cairn's.
    pub(crate) fn are_ours(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// What was told last, and what is told from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.0.subscribe()
    }
}
