//! Packets to be written: pooled memory with room for data and checksums, filled once, then shared
//! without copying between the socket, the encoder and a possible resend.
//!
//! The pool is the bound on a stream's memory: who wants another packet waits for one to be dropped. What a
//! burst took beyond what a stream usually needs is given back once nobody has used it for a while: to give it
//! back at once and take it again with each stripe is 5 to 20% of a writer's processor time, in page faults.

use bytes::Bytes;
use cairn_codec::crc::{ChecksumKind, chunk_crcs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory that nobody used for so long is given back.
const UNUSED_FOR: Duration = Duration::from_secs(1);

/// How the bytes of a packet are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksums {
    pub kind: ChecksumKind,
    /// Bytes that one checksum covers.
    pub chunk_len: usize,
}

/// Memory for a fixed number of packets.
pub(crate) struct PacketPool {
    free: Mutex<Free>,
    permits: Arc<Semaphore>,
    packet_len: usize,
    checksums: Checksums,
    /// Packets whose memory is kept for the next ones, used or not.
    keep: usize,
    /// Packets that have memory.
    held: AtomicUsize,
}

/// Memory that no packet uses.
#[derive(Default)]
struct Free {
    memory: Vec<Vec<u8>>,
    /// How many of these were left, at the least, since what is unused was last given back.
    least: usize,
    /// A task does that from time to time.
    is_watched: bool,
}

/// A packet's memory, given back to its pool when dropped.
struct Memory {
    /// As long as what was ever used of it: a small file is not to pay for clearing the rest.
    bytes: Vec<u8>,
    pool: Arc<PacketPool>,
    _permit: OwnedSemaphorePermit,
}

/// A packet that takes data.
pub(crate) struct Filling {
    memory: Memory,
    len: usize,
    limit: usize,
}

/// A packet's data with their checksums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub data: Bytes,
    pub checksums: Bytes,
}

impl PacketPool {
    /// A pool of `count` packets of up to `packet_len` bytes of data, which must be whole chunks. The memory of
    /// `keep` of them is kept when nobody uses it.
    pub(crate) fn new(
        packet_len: usize,
        count: usize,
        keep: usize,
        checksums: Checksums,
    ) -> Arc<PacketPool> {
        let permits = Arc::new(Semaphore::new(count));
        let (free, held) = Default::default();
        Arc::new(PacketPool { free, permits, packet_len, checksums, keep, held })
    }

    /// Bytes of memory that the packets have, used or not.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed) * self.memory_len()
    }

    /// Bytes of memory of one packet.
    fn memory_len(&self) -> usize {
        self.packet_len + self.checksums.kind.total_len(self.checksums.chunk_len, self.packet_len)
    }

    /// An empty packet for at most `limit` bytes; waits until one of the pool is free.
    pub(crate) async fn take(self: &Arc<Self>, limit: usize) -> Filling {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let bytes = self.take_memory();
        let memory = Memory { bytes, pool: self.clone(), _permit: permit };
        Filling { memory, len: 0, limit: limit.min(self.packet_len) }
    }

    /// Memory for a packet: used again, or new.
    fn take_memory(self: &Arc<Self>) -> Vec<u8> {
        let mut free = self.free();
        if let Some(bytes) = free.memory.pop() {
            free.least = free.least.min(free.memory.len());
            return bytes;
        }
        free.least = 0;
        let held = self.held.fetch_add(1, Ordering::Relaxed) + 1;
        if held > self.keep && !std::mem::replace(&mut free.is_watched, true) {
            tokio::spawn(give_back_unused(Arc::downgrade(self)));
        }
        Vec::with_capacity(self.memory_len())
    }

    /// Gives back what no packet needed since the last call, but for what is always kept. True if there is no more
    /// than that.
    fn give_back(&self) -> bool {
        let mut free = self.free();
        let held = self.held.load(Ordering::Relaxed);
        let count = free.least.min(held.saturating_sub(self.keep));
        // What was used last lies on top. To free memory takes time in which others are not to wait.
        let unused: Vec<Vec<u8>> = free.memory.drain(..count).collect();
        free.least = free.memory.len();
        free.is_watched = held - count > self.keep;
        self.held.fetch_sub(count, Ordering::Relaxed);
        let is_all = !free.is_watched;
        drop(free);
        drop(unused);
        is_all
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Gives back what a pool does not need, until it has no more than it always keeps.
async fn give_back_unused(pool: Weak<PacketPool>) {
    loop {
        tokio::time::sleep(UNUSED_FOR).await;
        if pool.upgrade().is_none_or(|pool| pool.give_back()) {
            return;
        }
    }
}

impl Filling {
    /// Copies as much of `data` as there is room for; returns how much.
    pub(crate) fn put(&mut self, data: &[u8]) -> usize {
        let count = data.len().min(self.limit - self.len);
        let bytes = &mut self.memory.bytes;
        let (again, anew) = data[..count].split_at(count.min(bytes.len() - self.len));
        bytes[self.len..self.len + again.len()].copy_from_slice(again);
        bytes.extend_from_slice(anew);
        self.len += count;
        count
    }

    /// The last `count` bytes of the data so far.
    pub(crate) fn last_mut(&mut self, count: usize) -> &mut [u8] {
        &mut self.memory.bytes[self.len - count..self.len]
    }

    /// The first `len` bytes, all of them taken as filled, to be written in place.
    pub(crate) fn fill(&mut self, len: usize) -> &mut [u8] {
        self.len = len.min(self.limit);
        self.memory.used(self.len)
    }

    /// The data so far.
    pub(crate) fn data(&self) -> &[u8] {
        &self.memory.bytes[..self.len]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == self.limit
    }

    /// Computes the checksums; nothing can be changed from now on.
    pub(crate) fn seal(mut self) -> Packet {
        let Checksums { kind, chunk_len } = self.memory.pool.checksums;
        let crcs_len = kind.total_len(chunk_len, self.len);
        let end = self.len + crcs_len;
        let (data, crcs) = self.memory.used(end).split_at_mut(self.len);
        chunk_crcs(kind, chunk_len, data, crcs);
        let shared = Bytes::from_owner(self.memory);
        Packet { data: shared.slice(..self.len), checksums: shared.slice(self.len..end) }
    }
}

impl Packet {
    /// A packet without data.
    pub(crate) fn empty() -> Packet {
        Packet::default()
    }
}

impl Memory {
    /// The first `len` bytes.
    fn used(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        &mut self.bytes[..len]
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.pool.free().memory.push(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const CHECKSUMS: Checksums = Checksums { kind: ChecksumKind::Crc32c, chunk_len: 4 };

    #[tokio::test]
    async fn a_packet_is_checked_by_chunks_and_its_memory_used_again() {
        let pool = PacketPool::new(16, 1, 1, CHECKSUMS);
        let mut filling = pool.take(10).await;
        assert_eq!(filling.put(b"0123456789abcdef"), 10);
        assert!(filling.is_full());
        let packet = filling.seal();
        assert_eq!(&packet.data[..], b"0123456789");
        assert_eq!(packet.checksums.len(), 12);
        let first = cairn_codec::crc::crc32c(0, b"0123").to_be_bytes();
        assert_eq!(&packet.checksums[..4], first);
        let address = packet.data.as_ptr();
        let copy = packet.data.clone();
        drop(packet);
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(10), pool.take(16));
        assert!(waiting.await.is_err(), "the copy still holds the memory");
        drop(copy);
        // Shorter than what was there, then longer, in parts and at once.
        for parts in [&[&b"xy"[..]][..], &[b"0123456", b"789abc", b"defgh"], &[b"zz", b"y"]] {
            let mut filling = pool.take(16).await;
            let put: Vec<u8> = parts.concat().into_iter().take(16).collect();
            for part in parts {
                filling.put(part);
            }
            assert_eq!(filling.data(), put);
            let packet = filling.seal();
            assert_eq!((&packet.data[..], packet.data.as_ptr()), (&put[..], address));
            let crcs =
                put.chunks(4).flat_map(|chunk| cairn_codec::crc::crc32c(0, chunk).to_be_bytes());
            assert_eq!(packet.checksums, crcs.collect::<Vec<u8>>());
        }
        let mut filling = pool.take(16).await;
        filling.fill(3).copy_from_slice(b"abc");
        filling.put(b"de");
        filling.last_mut(3).make_ascii_uppercase();
        assert_eq!(&filling.seal().data[..], b"abCDE");
    }

    #[tokio::test]
    async fn memory_beyond_what_is_kept_is_given_back_when_nobody_needs_it() {
        let pool = PacketPool::new(16, 8, 3, CHECKSUMS);
        for _ in 0..2 {
            let mut taken = Vec::new();
            for _ in 0..8 {
                taken.push(pool.take(16).await);
            }
            assert_eq!(pool.held(), 8 * 32, "data and a checksum for each four bytes");
            taken.truncate(1);
            assert!(!pool.give_back(), "all were used since");
            assert_eq!(pool.held(), 8 * 32, "a writer may need them again at once");
            assert!(pool.give_back());
            assert_eq!(pool.held(), 3 * 32);
            taken.push(pool.take(16).await);
            taken.push(pool.take(16).await);
            assert_eq!(pool.held(), 3 * 32, "those that were kept");
        }
    }

    #[tokio::test]
    async fn a_writer_keeps_the_memory_that_it_uses_again_and_again() {
        let pool = PacketPool::new(16, 8, 2, CHECKSUMS);
        let mut queue = VecDeque::new();
        for _ in 0..8 {
            queue.push_back(pool.take(16).await);
        }
        queue.truncate(5);
        // Five are in use at any time, six while one is passed on.
        for turn in 0..9 {
            for _ in 0..10 {
                queue.push_back(pool.take(16).await);
                queue.pop_front();
            }
            assert!(!pool.give_back());
            assert_eq!(pool.held(), if turn == 0 { 8 * 32 } else { 6 * 32 });
        }
    }
}
