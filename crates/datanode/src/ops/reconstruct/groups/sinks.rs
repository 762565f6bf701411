//! Writing units whose bytes come in pieces of any length.

use super::super::buffers::Buffers;
use super::super::target::{self, Destination, MAX_HELD, Order};
use crate::dataset::Checksum;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_codec::crc;
use cairn_replica::UnitSum;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Bytes that are collected before they are written, in whole chunks.
const PIECE: usize = 256 << 10;

/// The writers of some units. Nothing of what they write stays unless it is committed.
pub(super) struct Sinks {
    sinks: Vec<Sink>,
    tasks: JoinSet<(usize, Result<()>)>,
    buffers: Arc<Buffers>,
}

struct Sink {
    /// `None` once its target has failed, which tells why.
    orders: Option<mpsc::Sender<Order>>,
    checksum: Checksum,
    pending: Vec<u8>,
    written: u64,
    sum: UnitSum,
}

impl Sinks {
    pub(super) fn start(node: &Arc<Node>, to: Vec<Destination>) -> Sinks {
        let mut tasks = JoinSet::new();
        let buffers = Buffers::new(to.len() * MAX_HELD);
        let sink = |(at, to): (usize, Destination)| Sink {
            checksum: to.checksum,
            orders: Some(target::start(&mut tasks, node, at, to)),
            pending: Vec::new(),
            written: 0,
            sum: UnitSum::default(),
        };
        let sinks = to.into_iter().enumerate().map(sink).collect();
        Sinks { sinks, tasks, buffers }
    }

    /// Adds to the unit `at`.
    pub(super) async fn write(&mut self, at: usize, bytes: &[u8]) {
        self.sinks[at].pending.extend_from_slice(bytes);
        if self.sinks[at].pending.len() >= PIECE {
            self.flush(at, false).await;
        }
    }

    /// Writes what is left of all units.
    pub(super) async fn end(&mut self) {
        for at in 0..self.sinks.len() {
            self.flush(at, true).await;
        }
    }

    /// Whether the unit's target has not failed yet.
    pub(super) fn is_open(&self, at: usize) -> bool {
        self.sinks[at].orders.as_ref().is_some_and(|orders| !orders.is_closed())
    }

    /// Length and CRC32C of what was written of the unit `at`, after [`Sinks::end`].
    pub(super) fn written(&self, at: usize) -> (u64, Option<u32>) {
        let Sink { written, sum, .. } = &self.sinks[at];
        (*written, sum.of_first(*written))
    }

    /// Makes replicas of all units; says of each what came of it.
    pub(super) async fn commit(mut self) -> Vec<Result<()>> {
        for sink in &mut self.sinks {
            if let Some(orders) = sink.orders.take() {
                // A target that has failed says so below.
                let _ = orders.send(Order::Commit).await;
            }
        }
        let mut ended: Vec<Result<()>> =
            self.sinks.iter().map(|_| Err(DataNodeError::Stopped)).collect();
        while let Some(done) = self.tasks.join_next().await {
            match done {
                Ok((at, done)) => ended[at] = done,
                Err(error) => tracing::error!(%error, "a writer has ended"),
            }
        }
        ended
    }

    /// Drops what was written, and waits until the targets have.
    pub(super) async fn discard(mut self) {
        self.sinks.clear();
        while self.tasks.join_next().await.is_some() {}
    }

    async fn flush(&mut self, at: usize, all: bool) {
        let sink = &mut self.sinks[at];
        let Checksum { kind, chunk_len } = sink.checksum;
        let whole = match all {
            true => sink.pending.len(),
            false => sink.pending.len() / chunk_len * chunk_len,
        };
        if whole == 0 {
            return;
        }
        let mut rest = self.buffers.take(0);
        rest.extend_from_slice(&sink.pending[whole..]);
        let mut bytes = std::mem::replace(&mut sink.pending, rest);
        bytes.truncate(whole);
        let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
        crc::chunk_crcs(kind, chunk_len, &bytes, &mut crcs);
        sink.sum.add_chunks(sink.written, sink.checksum, &bytes, &crcs);
        sink.written += bytes.len() as u64;
        let data = self.buffers.lend(bytes);
        if let Some(orders) = &sink.orders
            && orders.send(Order::Write { data, crcs }).await.is_err()
        {
            sink.orders = None;
        }
    }
}
