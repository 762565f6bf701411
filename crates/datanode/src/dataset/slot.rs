//! Makes sure that a replica has one writer, and lets a newer operation stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// A writer's presence at a replica.
#[derive(Debug)]
pub(crate) struct WriterSlot {
    must_stop: AtomicBool,
    wake: Notify,
    gone: watch::Sender<bool>,
}

impl WriterSlot {
    pub(crate) fn new() -> Arc<WriterSlot> {
        Arc::new(WriterSlot {
            must_stop: AtomicBool::new(false),
            wake: Notify::new(),
            gone: watch::channel(false).0,
        })
    }

    /// Asks the writer to stop.
    pub(crate) fn stop(&self) {
        self.must_stop.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Completes when the writer is asked to stop.
    pub(crate) async fn stopped(&self) {
        while !self.must_stop.load(Ordering::Acquire) {
            self.wake.notified().await;
        }
    }

    /// Says that the writer will not touch the replica again.
    pub(crate) fn leave(&self) {
        self.gone.send_replace(true);
    }

    /// Waits until the writer has left; `false` if it does not in time.
    pub(crate) async fn wait_gone(&self, patience: Duration) -> bool {
        let mut gone = self.gone.subscribe();
        // The sender lives as long as `self`.
        tokio::time::timeout(patience, gone.wait_for(|gone| *gone)).await.is_ok()
    }
}
