//! Where ended spans wait for the collector's task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::record::Record;

/// Spans that wait to be sent.
const LEN: usize = 4096;

/// What the collector's task is told.
pub(crate) enum Order {
    Span(Box<Record>),
    /// Everything is to be sent now.
    Flush(oneshot::Sender<()>),
}

struct Queue {
    orders: mpsc::Sender<Order>,
    lost: AtomicU64,
}

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Whether spans are recorded.
pub fn is_on() -> bool {
    QUEUE.get().is_some()
}

/// Has spans recorded from now on; `None` if they are already.
pub(crate) fn open() -> Option<mpsc::Receiver<Order>> {
    let (orders, receiver) = mpsc::channel(LEN);
    QUEUE.set(Queue { orders, lost: AtomicU64::new(0) }).ok().map(|()| receiver)
}

/// Takes an ended span; it is lost where no more have room.
pub(crate) fn take(record: &Record) {
    let Some(queue) = QUEUE.get() else { return };
    if queue.orders.try_send(Order::Span(Box::new(record.clone()))).is_err() {
        note_lost(1);
    }
}

/// Waits until all that have ended are sent.
pub(crate) async fn flushed() {
    let Some(queue) = QUEUE.get() else { return };
    let (done, sent) = oneshot::channel();
    if queue.orders.send(Order::Flush(done)).await.is_ok() {
        // The collector's task ends with the process only.
        let _ = sent.await;
    }
}

/// So many are not sent.
pub(crate) fn note_lost(count: u64) {
    if let Some(queue) = QUEUE.get() {
        queue.lost.fetch_add(count, Ordering::Relaxed);
    }
}

/// How many were not sent so far.
pub(crate) fn lost() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.lost.load(Ordering::Relaxed))
}
