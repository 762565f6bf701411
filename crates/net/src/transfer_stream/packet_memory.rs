//! A bound on the memory that the packets of many connections take together.
//!
//! Packets of up to [`SMALL_PACKET`] bytes are not counted: any connection may hold one, so that its bound is that times the
//! number of connections. What is longer takes its bytes from what all share, before it is buffered, and waits where
//! nothing is left. Bytes once taken stay with the connection as long as its buffer does: a stream takes them once,
//! and gives them up where others wait, or when nothing comes.
//!
//! A DataNode that has taken a packet in waits for the next one of the pipeline to take it as well. So that they never
//! wait for each other in a circle, the last DataNode of a pipeline may use all of the memory, the one before it less, and
//! so on, each [`STEP`] less. Where one with `n` DataNodes behind it finds nothing left, some of what is taken belongs
//! to packets with no more than `n` behind them: those with more have stopped below. These wait only for memory of
//! DataNodes with fewer behind them, down to the last, which wait for nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cairn_wire::transfer::MAX_PACKET_LEN;
use tokio::sync::Notify;

/// Bytes of a packet that any connection may hold: 64 KiB of data, as Hadoop sends, with CRCs.
pub const SMALL_PACKET: usize = 80 << 10;

/// More than the longest packet: who is let in may exceed its bound by that.
const STEP: u64 = MAX_PACKET_LEN as u64 + (1 << 20);
/// The most DataNodes behind one that waits in turn. Longer pipelines, which nobody makes, do not wait.
const DEEPEST: usize = 6;

/// The memory that packets share. Its bound may be exceeded by one packet.
#[derive(Debug)]
pub struct PacketMemory {
    limit: u64,
    used: AtomicU64,
    waiting: AtomicUsize,
    freed: Notify,
}

impl PacketMemory {
    /// The least bound, in bytes.
    pub const LEAST: u64 = 128 << 20;

    /// At most `limit` bytes, or [`PacketMemory::LEAST`] if that is more.
    pub fn new(limit: u64) -> PacketMemory {
        PacketMemory {
            limit: limit.max(PacketMemory::LEAST),
            used: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// The bound in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Connections that wait for some.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes `bytes` for a packet with so many DataNodes behind it, if that is allowed now.
    fn try_take(&self, bytes: u64, behind: usize) -> bool {
        let most = match behind {
            0..=DEEPEST => self.limit - STEP * behind as u64,
            _ => u64::MAX,
        };
        let taken = |used: u64| (used < most).then(|| used.saturating_add(bytes));
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        // Who begins to wait after this look has seen what was given back.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    async fn take(&self, bytes: u64, behind: usize) {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Before it is looked: what is given back in between is not missed.
            freed.as_mut().enable();
            if self.try_take(bytes, behind) {
                return;
            }
            freed.await;
        }
    }
}

/// What one direction of a connection has taken; given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// `None` where nobody counts.
    of: Option<Arc<PacketMemory>>,
    behind: usize,
    bytes: u64,
}

impl Share {
    pub(super) fn of(memory: Option<Arc<PacketMemory>>) -> Share {
        Share { of: memory, ..Share::default() }
    }

    /// Sets how many DataNodes are to get the packets after this one.
    pub(super) fn set_behind(&mut self, behind: usize) {
        self.behind = behind;
    }

    /// Whether a packet of so many bytes needs no more.
    pub(super) fn covers(&self, bytes: usize) -> bool {
        bytes <= SMALL_PACKET || self.of.is_none() || bytes as u64 <= self.bytes
    }

    /// Whether it holds some that others wait for.
    pub(super) fn is_wanted(&self) -> bool {
        self.bytes > 0 && self.of.as_ref().is_some_and(|of| of.waiting() > 0)
    }

    /// Whether it holds any.
    pub(super) fn holds_any(&self) -> bool {
        self.bytes > 0
    }

    /// Makes it cover so many bytes, if there are some left.
    pub(super) fn try_grow(&mut self, bytes: usize) -> bool {
        let Some(of) = self.of.as_ref().filter(|_| !self.covers(bytes)) else { return true };
        let more = bytes as u64 - self.bytes;
        let is_taken = of.try_take(more, self.behind);
        self.bytes += if is_taken { more } else { 0 };
        is_taken
    }

    /// The same for what can do with less: leaves what is left to those who cannot.
    pub(super) fn try_grow_politely(&mut self, bytes: usize) -> bool {
        self.behind = DEEPEST;
        let is_scarce = self.of.as_ref().is_some_and(|of| of.waiting() > 0);
        self.covers(bytes) || !is_scarce && self.try_grow(bytes)
    }

    /// Waits until it covers so many bytes. Nothing is held meanwhile: who holds some and waits for more would hold others
    /// up that do the same.
    pub(super) async fn take(&mut self, bytes: usize) {
        self.give_back();
        if let Some(of) = &self.of {
            of.take(bytes as u64, self.behind).await;
            self.bytes = bytes as u64;
        }
    }

    pub(super) fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(of) = self.of.as_ref().filter(|_| bytes > 0) {
            of.give_back(bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    const LONGEST: usize = MAX_PACKET_LEN as usize;
    const PATIENCE: Duration = Duration::from_secs(60);

    fn share(memory: &Arc<PacketMemory>, behind: usize) -> Share {
        let mut share = Share::of(Some(memory.clone()));
        share.set_behind(behind);
        share
    }

    #[test]
    fn small_packets_and_those_that_nobody_counts_need_nothing() {
        let memory = Arc::new(PacketMemory::new(0));
        assert_eq!(memory.limit(), PacketMemory::LEAST);
        let mut small = share(&memory, 0);
        assert!(small.covers(SMALL_PACKET) && small.try_grow(SMALL_PACKET));
        assert!(!small.covers(SMALL_PACKET + 1) && !small.holds_any());
        assert!(Share::default().covers(LONGEST));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn no_more_is_given_out_than_the_bound_and_one_packet() {
        let memory = Arc::new(PacketMemory::new(0));
        for behind in (0..=DEEPEST).rev() {
            let bound = memory.limit() - STEP * behind as u64;
            let mut held = Vec::new();
            loop {
                let mut next = share(&memory, behind);
                if !next.try_grow(LONGEST) {
                    break;
                }
                held.push(next);
            }
            assert!((bound..bound + LONGEST as u64).contains(&memory.used()), "{behind}");
            let fewer = behind.checked_sub(1).map(|behind| share(&memory, behind));
            assert!(fewer.is_none_or(|mut fewer| fewer.try_grow(LONGEST)), "{behind}");
            assert!(
                share(&memory, DEEPEST + 1).try_grow(LONGEST),
                "nobody could say who goes first"
            );
            drop(held);
            assert_eq!(memory.used(), 0);
        }
    }

    #[tokio::test]
    async fn who_waits_is_told_and_polite_ones_stand_back() {
        let memory = Arc::new(PacketMemory::new(0));
        let mut held: Vec<Share> = (0..8).map(|_| share(&memory, 0)).collect();
        assert!(held.iter_mut().all(|held| held.try_grow(LONGEST)));
        let mut late = share(&memory, 0);
        assert!(!late.try_grow(LONGEST) && !held[0].is_wanted());
        let waiting = tokio::spawn(async move {
            late.take(LONGEST).await;
            late
        });
        while memory.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(held[0].is_wanted());
        assert!(held[0].try_grow_politely(LONGEST) && !held[0].try_grow_politely(LONGEST + 1));
        assert!(!share(&memory, 0).try_grow_politely(LONGEST));
        held.pop();
        let late = timeout(PATIENCE, waiting).await.unwrap().unwrap();
        assert_eq!((memory.waiting(), memory.used()), (0, 8 * LONGEST as u64));
        drop((late, held));
        assert_eq!(memory.used(), 0);
    }

    /// One that gives up waiting is not waited for.
    #[tokio::test]
    async fn who_stops_waiting_is_forgotten() {
        let memory = Arc::new(PacketMemory::new(0));
        let mut held: Vec<Share> = (0..8).map(|_| share(&memory, 0)).collect();
        assert!(held.iter_mut().all(|held| held.try_grow(LONGEST)));
        let mut late = share(&memory, 0);
        assert!(timeout(Duration::from_millis(10), late.take(LONGEST)).await.is_err());
        assert!(memory.waiting() == 0 && !late.holds_any());
    }

    /// Pipelines in all directions over DataNodes that have memory for a few packets each: every one holds its packet
    /// until the next has it, which has to wait for its own memory.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn pipelines_in_circles_never_wait_for_each_other() {
        for (nodes, len) in [(3, 3), (2, 2), (5, 5), (7, 7)] {
            let memories: Vec<_> = (0..nodes).map(|_| Arc::new(PacketMemory::new(0))).collect();
            let mut pipelines = JoinSet::new();
            for number in 0..40 * nodes {
                let pipeline: Vec<_> =
                    (0..len).map(|at| memories[(number + at) % nodes].clone()).collect();
                pipelines.spawn(async move {
                    for packet in 0..20 {
                        let mut held = Vec::new();
                        for (at, memory) in pipeline.iter().enumerate() {
                            let mut next = share(memory, pipeline.len() - 1 - at);
                            next.take(LONGEST - (number + packet) % 7).await;
                            held.push(next);
                            tokio::task::yield_now().await;
                        }
                    }
                });
            }
            let all = async { while pipelines.join_next().await.is_some() {} };
            timeout(PATIENCE, all).await.expect("all come to their end");
            assert!(memories.iter().all(|memory| memory.used() == 0));
        }
    }
}
