//! Connections to DataNodes that wait for the next read, or for a new block.
//!
//! Source: Hadoop 3.5.0 `PeerCache`.

use cairn_net::transfer_stream::TransferStream;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

/// Idle connections.
pub(crate) struct ConnectionPool {
    idle: Arc<Mutex<Idle>>,
    capacity: usize,
    expiry: Duration,
}

#[derive(Default)]
struct Idle {
    /// By the peer's address, the oldest first.
    peers: HashMap<String, VecDeque<(Instant, TransferStream)>>,
    count: usize,
    /// Whether a task closes those that nobody takes.
    is_watched: bool,
}

impl ConnectionPool {
    /// Keeps up to `capacity` connections for up to `expiry`.
    pub(crate) fn new(capacity: usize, expiry: Duration) -> ConnectionPool {
        ConnectionPool { idle: Arc::default(), capacity, expiry }
    }

    /// A connection to `addr` (`ip:port`) that is ready for an operation. The DataNode may have
    /// closed it meanwhile: be ready to try a new one.
    pub(crate) fn take(&self, addr: &str) -> Option<TransferStream> {
        let mut idle = lock(&self.idle);
        let (since, stream) = idle.peers.get_mut(addr)?.pop_back()?;
        idle.count -= 1;
        (since.elapsed() <= self.expiry).then_some(stream)
    }

    /// Gives back a connection on which nothing is due, except what it holds back itself.
    pub(crate) fn put(&self, addr: String, stream: TransferStream) {
        if self.capacity == 0 {
            return;
        }
        let mut idle = lock(&self.idle);
        if idle.count == self.capacity {
            idle.drop_oldest();
        }
        idle.peers.entry(addr).or_default().push_back((Instant::now(), stream));
        idle.count += 1;
        if !std::mem::replace(&mut idle.is_watched, true) {
            tokio::spawn(close_expired(Watch(Arc::downgrade(&self.idle)), self.expiry));
        }
    }
}

impl Idle {
    fn drop_oldest(&mut self) {
        let oldest = |queue: &VecDeque<(Instant, TransferStream)>| queue.front().map(|idle| idle.0);
        let queues = self.peers.values_mut().filter(|queue| !queue.is_empty());
        if let Some(queue) = queues.min_by_key(|queue| oldest(queue)) {
            queue.pop_front();
            self.count -= 1;
        }
    }

    fn drop_older_than(&mut self, expiry: Duration) {
        let now = Instant::now();
        for queue in self.peers.values_mut() {
            while queue.front().is_some_and(|(since, _)| now.duration_since(*since) > expiry) {
                queue.pop_front();
                self.count -= 1;
            }
        }
        self.peers.retain(|_, queue| !queue.is_empty());
    }
}

/// The pool as its task has it: the pool is watched until this is dropped, as it is with a runtime that ends.
struct Watch(Weak<Mutex<Idle>>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(idle) = self.0.upgrade() {
            lock(&idle).is_watched = false;
        }
    }
}

/// Closes connections that nobody has taken for `expiry`, until none is left or the pool is gone: a DataNode
/// keeps something for each of them.
async fn close_expired(watch: Watch, expiry: Duration) {
    loop {
        tokio::time::sleep(expiry.max(Duration::from_millis(10))).await;
        let Some(idle) = watch.0.upgrade() else { return };
        let mut idle = lock(&idle);
        idle.drop_older_than(expiry);
        if idle.count == 0 {
            idle.is_watched = false;
            return;
        }
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(|poison| poison.into_inner())
}
