//! What this DataNode has done since its start, counted without locks: `/jmx` and `/prom` show it.
//!
//! Each figure is changed once an operation, a block or some megabytes, so that no packet waits for a counter that
//! other processors write. Figures of one page may be a moment apart.
//!
//! Source: Hadoop 3.5.0 `DataNodeMetrics`.

use crate::error::FailureKind;
use cairn_net::durations::{DurationCounter, Durations};
use cairn_wire::transfer::Op;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a [`Batch`] gathers before it is counted.
const BATCH: u64 = 4 << 20;

/// The operations that are timed, by the names that Hadoop logs them under. Those that keep the books of memory shared
/// with clients are not: one lasts as long as its client.
const OPS: [(Op, &str); 8] = [
    (Op::ReadBlock, "readBlock"),
    (Op::WriteBlock, "writeBlock"),
    (Op::TransferBlock, "transferBlock"),
    (Op::CopyBlock, "copyBlock"),
    (Op::ReplaceBlock, "replaceBlock"),
    (Op::BlockChecksum, "blockChecksum"),
    (Op::BlockGroupChecksum, "blockGroupChecksum"),
    (Op::RequestShortCircuitFds, "requestShortCircuitFds"),
];

/// The timed calls to the NameNode.
const CALLS: [&str; 4] = ["sendHeartbeat", "blockReport", "blockReceivedAndDeleted", "cacheReport"];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Gathers what is added to a counter; the rest is counted when this is dropped.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    counter: &'a Counter,
    gathered: u64,
}

impl Batch<'_> {
    pub(crate) fn add(&mut self, count: u64) {
        self.gathered += count;
        if self.gathered >= BATCH {
            self.counter.add(std::mem::take(&mut self.gathered));
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.gathered > 0 {
            self.counter.add(self.gathered);
        }
    }
}

/// Bytes and blocks that went one way.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Without CRCs.
    pub(crate) bytes: Counter,
    /// Reads that the reader got all of or ended itself, copies that arrived, replicas that were completed.
    pub(crate) blocks: Counter,
}

impl Flow {
    /// For bytes that come packet by packet.
    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch { counter: &self.bytes, gathered: 0 }
    }
}

/// How often something was done, how often in vain, and how long it took.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    times: DurationCounter,
    errors: Counter,
}

impl Timer {
    /// It has ended, after `took`.
    pub(crate) fn ended(&self, took: Duration, has_failed: bool) {
        self.times.add(took);
        if has_failed {
            self.failed();
        }
    }

    /// One that ends well for its connection was answered with an error.
    pub(crate) fn failed(&self) {
        self.errors.add(1);
    }

    /// How often it was done, also in vain.
    pub(crate) fn count(&self) -> u64 {
        self.times().count()
    }

    /// How often in vain.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.get()
    }

    /// How long it took, also in vain.
    pub(crate) fn times(&self) -> Durations {
        self.times.get()
    }
}

/// The rebuilding of lost units of block groups.
#[derive(Debug, Default)]
pub(crate) struct Rebuilding {
    /// Orders of the NameNode that have ended, also in vain or refused.
    pub(crate) tasks: Counter,
    /// Those of them that made no replica.
    pub(crate) failed_tasks: Counter,
    /// Units that have become replicas.
    pub(crate) units: Counter,
    /// Bytes that lost units were decoded from.
    pub(crate) bytes_read: Counter,
    /// Bytes of the units that have become replicas.
    pub(crate) bytes_written: Counter,
    /// How long orders took that were begun.
    pub(crate) times: DurationCounter,
}

/// The encoding of contiguous groups.
#[derive(Debug, Default)]
pub(crate) struct Encoding {
    /// Groups that were encoded.
    pub(crate) groups: Counter,
    /// Orders that came to nothing, also those that were refused.
    pub(crate) failed: Counter,
    /// Bytes of their members.
    pub(crate) bytes_read: Counter,
    /// Bytes of their parities.
    pub(crate) bytes_written: Counter,
    /// How long orders took that were begun.
    pub(crate) times: DurationCounter,
}

/// All that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) read_by_clients: Flow,
    /// For rebuilds, scrubs and balancers.
    pub(crate) read_by_datanodes: Flow,
    /// Bytes of all that was sent that were read into memory first.
    pub(crate) sent_copied: Counter,
    /// Those that went by `sendfile`.
    pub(crate) sent_by_sendfile: Counter,
    /// To other DataNodes, as the NameNode orders or for a pipeline.
    pub(crate) copied_out: Flow,
    pub(crate) written_by_clients: Flow,
    /// Copies, moves and rebuilt units that have come here.
    pub(crate) written_by_datanodes: Flow,
    /// Replicas deleted as the NameNode orders.
    pub(crate) removed: Counter,
    /// Replicas that the block scanner found good.
    pub(crate) verified: Counter,
    /// Those that it found bad.
    pub(crate) verified_bad: Counter,
    pub(crate) rebuilding: Rebuilding,
    pub(crate) encoding: Encoding,
    /// Steps of reads that were decoded from other units, for no replica of the block was left.
    pub(crate) decodes: DurationCounter,
    /// Bytes that readers got so.
    pub(crate) decoded_bytes: Counter,
    /// Replicas that were taken into memory as the NameNode orders.
    pub(crate) cached: Counter,
    /// Those that have left it.
    pub(crate) uncached: Counter,
    /// Those that could not be taken in.
    pub(crate) failed_to_cache: Counter,
    /// Operations that have failed.
    failures: [Counter; FailureKind::ALL.len()],
    ops: [Timer; OPS.len()],
    calls: [Timer; CALLS.len()],
}

impl Metrics {
    /// The timer of a data transfer operation, if it has one.
    pub(crate) fn op(&self, op: Op) -> Option<&Timer> {
        OPS.iter().position(|(timed, _)| *timed == op).map(|at| &self.ops[at])
    }

    /// An operation has failed.
    pub(crate) fn note_failure(&self, kind: FailureKind) {
        self.failures[kind as usize].add(1);
    }

    /// Failed operations by their kind.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |kind: FailureKind| (kind.name(), self.failures[kind as usize].get());
        FailureKind::ALL.into_iter().map(count)
    }

    /// All timed operations, by name.
    pub(crate) fn ops(&self) -> impl Iterator<Item = (&'static str, &Timer)> {
        OPS.iter().map(|(_, name)| *name).zip(&self.ops)
    }

    /// The timer of calls of a method of the NameNode, if it has one.
    pub(crate) fn call(&self, method: &str) -> Option<&Timer> {
        CALLS.iter().position(|timed| *timed == method).map(|at| &self.calls[at])
    }

    /// All timed calls to the NameNode, by method.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'static str, &Timer)> {
        CALLS.into_iter().zip(&self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_now_and_then_and_at_the_end() {
        let flow = Flow::default();
        let mut batch = flow.batch();
        batch.add(BATCH - 1);
        assert_eq!(flow.bytes.get(), 0);
        batch.add(2);
        assert_eq!(flow.bytes.get(), BATCH + 1);
        batch.add(5);
        drop(batch);
        assert_eq!(flow.bytes.get(), BATCH + 6);
    }

    #[test]
    fn what_is_timed_is_found_by_its_name() {
        let metrics = Metrics::default();
        let timer = metrics.op(Op::ReadBlock).unwrap();
        timer.ended(Duration::from_millis(1), false);
        timer.ended(Duration::from_millis(2), true);
        let named = metrics.ops().find(|(name, _)| *name == "readBlock").unwrap().1;
        assert_eq!((named.count(), named.errors()), (2, 1));
        assert_eq!(named.times().total, Duration::from_millis(3));
        assert_eq!(metrics.op(Op::WriteBlock).map(Timer::count), Some(0));
        assert!(metrics.op(Op::RequestShortCircuitShm).is_none());
        assert!(metrics.call("sendHeartbeat").is_some() && metrics.call("register").is_none());
    }
}
