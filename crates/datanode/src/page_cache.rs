//! What a DataNode asks of the page cache: to read ahead, to write back early, to forget what was sent or received.
//!
//! All of it is hints to the kernel. What the settings and a request say is decided here; the system calls are in
//! `sys.rs`.
//!
//! Source: Hadoop 3.5.0 `BlockSender#manageOsCache`, `BlockReceiver#manageWriterOsCache`, `CachingStrategy`.

use crate::config::{DataNodeConfig, Durability};
use crate::sys;
use cairn_net::file_read;
use cairn_process::disk_work::quick;
use cairn_wire::proto::hdfs::CachingStrategyProto;
use rustix::fs::Advice;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads longer than this are taken to be sequential.
///
/// Source: Hadoop 3.5.0 `BlockSender#LONG_READ_THRESHOLD_BYTES`.
const LONG_READ: u64 = 256 << 10;
/// Bytes sent after which they are forgotten.
///
/// Source: Hadoop 3.5.0 `BlockSender#CACHE_DROP_INTERVAL_BYTES`.
const DROP_STEP: u64 = 1 << 20;
/// Bytes received after which write-back is started, so that the closing fsync finds little to do; what came before
/// the last such step is forgotten, if it is to be. Hadoop's steps are of 8 MiB.
const WRITE_STEP: u64 = 4 << 20;

/// What was asked of the page cache since the start, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStats {
    /// To be read ahead, also those that were there already.
    pub read_ahead: u64,
    /// To be forgotten after they were sent.
    pub dropped_behind_reads: u64,
    /// To be forgotten after they were received, counted again each time.
    pub dropped_behind_writes: u64,
    /// To be written back early.
    pub written_back: u64,
}

/// The settings, and what came of them.
#[derive(Debug)]
pub(crate) struct PageCache {
    drop_behind_reads: bool,
    drop_behind_writes: bool,
    writes_back: bool,
    readahead: u64,
    read_ahead: AtomicU64,
    dropped_behind_reads: AtomicU64,
    dropped_behind_writes: AtomicU64,
    written_back: AtomicU64,
}

impl PageCache {
    pub(crate) fn new(config: &DataNodeConfig) -> PageCache {
        let is_stable = config.durability == Durability::Stable;
        PageCache {
            drop_behind_reads: config.drop_behind_reads,
            drop_behind_writes: config.drop_behind_writes,
            writes_back: is_stable || config.sync_behind_writes,
            readahead: config.readahead_bytes,
            read_ahead: AtomicU64::new(0),
            dropped_behind_reads: AtomicU64::new(0),
            dropped_behind_writes: AtomicU64::new(0),
            written_back: AtomicU64::new(0),
        }
    }

    pub(crate) fn stats(&self) -> PageCacheStats {
        let bytes = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PageCacheStats {
            read_ahead: bytes(&self.read_ahead),
            dropped_behind_reads: bytes(&self.dropped_behind_reads),
            dropped_behind_writes: bytes(&self.dropped_behind_writes),
            written_back: bytes(&self.written_back),
        }
    }

    /// A read of the bytes from `from` to `to`, as `wish` wants it.
    pub(crate) fn reading(
        &self,
        wish: Option<&CachingStrategyProto>,
        (from, to): (u64, u64),
    ) -> Reading<'_> {
        let is_long = to - from > LONG_READ;
        let drops = wish.and_then(|wish| wish.drop_behind);
        let readahead = wish.and_then(|wish| wish.readahead);
        // What a request names goes for short reads, too.
        let ahead = match readahead {
            Some(bytes) => u64::try_from(bytes).unwrap_or(0),
            None if is_long => self.readahead,
            None => 0,
        };
        Reading {
            cache: self,
            is_new_and_long: is_long,
            drops: drops.unwrap_or(self.drop_behind_reads && is_long),
            ahead,
            next_ahead: from,
            kept_from: from,
        }
    }

    /// A replica that is received as `wish` wants it, `len` bytes of which are there.
    pub(crate) fn writing(&self, wish: Option<&CachingStrategyProto>, len: u64) -> Writing {
        let drops = wish.and_then(|wish| wish.drop_behind).unwrap_or(self.drop_behind_writes);
        Writing { drops, written_back: len }
    }
}

/// A replica being sent.
pub(crate) struct Reading<'a> {
    cache: &'a PageCache,
    /// The kernel is still to be told that the read is sequential.
    is_new_and_long: bool,
    drops: bool,
    /// Bytes that are to be read ahead of what is sent.
    ahead: u64,
    /// Where they are asked for again.
    next_ahead: u64,
    /// What was sent before this has been forgotten.
    kept_from: u64,
}

impl Reading<'_> {
    /// What is sent next starts at `offset`; the replica ends at `end`.
    pub(crate) fn at(&mut self, file: &Arc<File>, offset: u64, end: u64) {
        if std::mem::take(&mut self.is_new_and_long) {
            sys::advise(file, offset, end - offset, Advice::Sequential);
        }
        if self.ahead > 0 && offset >= self.next_ahead && offset < end {
            let len = self.ahead.min(end - offset);
            self.next_ahead = offset + (self.ahead / 2).max(1);
            self.cache.read_ahead.fetch_add(len, Ordering::Relaxed);
            if file_read::is_cold(file, offset + len - 1) {
                let file = file.clone();
                // It can wait for the device's queue; nobody waits for it.
                tokio::task::spawn_blocking(move || {
                    sys::advise(&file, offset, len, Advice::WillNeed);
                });
            }
        }
        if offset >= self.kept_from + DROP_STEP {
            self.forget(file, offset);
        }
    }

    /// Everything before `end` has been sent.
    pub(crate) fn end(mut self, file: &File, end: u64) {
        self.forget(file, end);
    }

    fn forget(&mut self, file: &File, to: u64) {
        let len = to.saturating_sub(self.kept_from);
        if self.drops && len > 0 {
            // What is not on the disk yet is written first.
            quick(|| sys::advise(file, self.kept_from, len, Advice::DontNeed));
            self.cache.dropped_behind_reads.fetch_add(len, Ordering::Relaxed);
        }
        self.kept_from = to;
    }
}

/// A replica being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    drops: bool,
    /// Bytes whose write-back was started, if it is.
    written_back: u64,
}

/// What is due for a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Bytes to write back: from where, and how many.
    write_back: Option<(u64, u64)>,
    /// Bytes from the start on to forget.
    forget: u64,
}

impl Writing {
    /// The replica has `len` bytes now. Says what is due, to be done where it may wait.
    pub(crate) fn grew(&mut self, cache: &PageCache, len: u64) -> Option<Due> {
        let from = self.written_back;
        let fresh = len.saturating_sub(from);
        if fresh < WRITE_STEP || !(cache.writes_back || self.drops) {
            return None;
        }
        self.written_back = len;
        Some(Due {
            write_back: cache.writes_back.then_some((from, fresh)),
            forget: if self.drops { from.saturating_sub(WRITE_STEP) } else { 0 },
        })
    }

    /// Whether what is written is to be forgotten.
    pub(crate) fn drops(&self) -> bool {
        self.drops
    }

    /// The replica is complete, with `len` bytes.
    pub(crate) fn ended(&self, len: u64) -> Due {
        Due { write_back: None, forget: if self.drops { len } else { 0 } }
    }
}

impl Due {
    /// Does it. It can wait for the device's queue.
    pub(crate) fn done(self, cache: &PageCache, file: &File) {
        if let Some((from, len)) = self.write_back {
            sys::start_write_back(file, from, len);
            cache.written_back.fetch_add(len, Ordering::Relaxed);
        }
        if self.forget > 0 {
            sys::advise(file, 0, self.forget, Advice::DontNeed);
            cache.dropped_behind_writes.fetch_add(self.forget, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const MIB: u64 = 1 << 20;

    fn cache(change: impl FnOnce(&mut DataNodeConfig)) -> PageCache {
        let durability = Durability::PageCache;
        let mut config = DataNodeConfig { durability, ..DataNodeConfig::default() };
        change(&mut config);
        PageCache::new(&config)
    }

    fn wish(drop_behind: Option<bool>, readahead: Option<i64>) -> Option<CachingStrategyProto> {
        Some(CachingStrategyProto { drop_behind, readahead })
    }

    /// Sends `len` bytes of a file in packets, and says what was asked for.
    async fn sent(cache: &PageCache, wish: Option<CachingStrategyProto>, len: u64) -> (u64, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 8 * MIB as usize]).unwrap();
        let (file, before) = (Arc::new(file), cache.stats());
        let mut reading = cache.reading(wish.as_ref(), (0, len));
        for offset in (0..len).step_by(64 << 10) {
            reading.at(&file, offset, 8 * MIB);
        }
        reading.end(&file, len);
        let after = cache.stats();
        let dropped = after.dropped_behind_reads - before.dropped_behind_reads;
        (dropped, after.read_ahead - before.read_ahead)
    }

    #[tokio::test]
    async fn long_reads_are_read_ahead_and_forgotten_as_the_settings_say() {
        let plain = cache(|_| {});
        // Two windows of 4 MiB, asked for again at half of each.
        assert_eq!(sent(&plain, None, 4 * MIB).await, (0, 8 * MIB));
        assert_eq!(sent(&plain, None, LONG_READ).await, (0, 0));
        let none = cache(|config| config.readahead_bytes = 0);
        assert_eq!(sent(&none, None, 4 * MIB).await, (0, 0));
        let dropping = cache(|config| {
            (config.drop_behind_reads, config.readahead_bytes) = (true, 0);
        });
        assert_eq!(sent(&dropping, None, 4 * MIB).await, (4 * MIB, 0));
        assert_eq!(sent(&dropping, None, LONG_READ).await, (0, 0), "a short read");
    }

    #[tokio::test]
    async fn a_request_overrules_the_settings() {
        let plain = cache(|_| {});
        let (drop, keep) = (wish(Some(true), Some(0)), wish(Some(false), Some(-1)));
        assert_eq!(sent(&plain, drop, 64 << 10).await, (64 << 10, 0), "a short read, too");
        let dropping = cache(|config| config.drop_behind_reads = true);
        assert_eq!(sent(&dropping, keep, 4 * MIB).await, (0, 0));
        assert_eq!(sent(&plain, wish(None, Some(MIB as i64)), 64 << 10).await, (0, MIB));
        let at_the_end = wish(None, Some(i64::MAX));
        assert_eq!(sent(&plain, at_the_end, 64 << 10).await, (0, 8 * MIB));
    }

    #[test]
    fn what_was_received_is_written_back_and_forgotten_as_the_settings_say() {
        let grow = |cache: &PageCache, wish: Option<CachingStrategyProto>| {
            let file = tempfile::tempfile().unwrap();
            let mut writing = cache.writing(wish.as_ref(), 0);
            for len in (MIB..=20 * MIB).step_by(MIB as usize) {
                if let Some(due) = writing.grew(cache, len) {
                    due.done(cache, &file);
                }
            }
            let stats = cache.stats();
            writing.ended(20 * MIB).done(cache, &file);
            let last = cache.stats().dropped_behind_writes - stats.dropped_behind_writes;
            (stats.written_back, stats.dropped_behind_writes, last)
        };
        assert_eq!(grow(&cache(|_| {}), None), (0, 0, 0));
        let syncing = cache(|config| config.sync_behind_writes = true);
        assert_eq!(grow(&syncing, None), (20 * MIB, 0, 0));
        let stable = cache(|config| config.durability = Durability::Stable);
        assert_eq!(grow(&stable, None), (20 * MIB, 0, 0));
        // Steps of 4 MiB, each forgetting what came before the last one: 4 + 8 + 12.
        let dropping = cache(|config| config.drop_behind_writes = true);
        assert_eq!(grow(&dropping, None), (0, 24 * MIB, 20 * MIB));
        assert_eq!(grow(&cache(|_| {}), wish(Some(true), None)), (0, 24 * MIB, 20 * MIB));
        let dropping = cache(|config| config.drop_behind_writes = true);
        assert_eq!(grow(&dropping, wish(Some(false), None)), (0, 0, 0));
    }
}
