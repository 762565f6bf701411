//! Connections to DataNodes that wait for the next read.
//!
//! Source: Hadoop 3.5.0 `PeerCache`.

use cairn_net::transfer_stream::TransferStream;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Idle connections, the oldest first.
pub(crate) struct ConnectionPool {
    idle: Mutex<VecDeque<Idle>>,
    capacity: usize,
    expiry: Duration,
}

struct Idle {
    addr: String,
    since: Instant,
    stream: TransferStream,
}

impl ConnectionPool {
    /// Keeps up to `capacity` connections for up to `expiry`.
    pub(crate) fn new(capacity: usize, expiry: Duration) -> ConnectionPool {
        ConnectionPool { idle: Mutex::default(), capacity, expiry }
    }

    /// A connection to `addr` (`ip:port`) that is ready for an operation. The DataNode may have
    /// closed it meanwhile: be ready to try a new one.
    pub(crate) fn take(&self, addr: &str) -> Option<TransferStream> {
        let mut idle = self.idle.lock().unwrap_or_else(|poison| poison.into_inner());
        while idle.front().is_some_and(|oldest| oldest.since.elapsed() > self.expiry) {
            idle.pop_front();
        }
        let newest = idle.iter().rposition(|idle| idle.addr == addr)?;
        idle.remove(newest).map(|idle| idle.stream)
    }

    /// Gives back a connection on which nothing is due.
    pub(crate) fn put(&self, addr: String, stream: TransferStream) {
        if self.capacity == 0 {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(|poison| poison.into_inner());
        if idle.len() == self.capacity {
            idle.pop_front();
        }
        idle.push_back(Idle { addr, since: Instant::now(), stream });
    }
}
