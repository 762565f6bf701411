//! Memory that pieces of units are read into, used again within one attempt: fresh pages for each piece
//! cost more than decoding it.
//!
//! A buffer has one owner from when it is taken until that owner drops it, so no late read can write
//! into what another one uses (HDFS-15240).

use cairn_process::held::held;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// Buffers that nobody uses now.
pub(super) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
    keep: usize,
}

/// Bytes in memory that goes back when they are dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// Keeps up to `keep` buffers.
    pub(super) fn new(keep: usize) -> Arc<Buffers> {
        Arc::new(Buffers { free: Mutex::default(), keep })
    }

    /// `len` bytes that may hold anything: who takes them overwrites all of them, or gives them up.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        let mut bytes = self.free().pop().unwrap_or_default();
        bytes.resize(len, 0);
        bytes
    }

    /// Bytes whose memory comes back here.
    pub(super) fn lend(self: &Arc<Self>, bytes: Vec<u8>) -> Buffer {
        Buffer { bytes, home: self.clone() }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        held(&self.free)
    }
}

impl Buffer {
    /// Puts zeros behind the bytes until they are `len`.
    pub(super) fn pad(&mut self, len: usize) {
        self.bytes.resize(len.max(self.bytes.len()), 0);
    }

    /// Leaves bytes from `len` on out.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} free buffers", self.free().len())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.home.free();
        if free.len() < self.home.keep {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_its_owner_is_gone_and_not_before() {
        let buffers = Buffers::new(1);
        let mut first = buffers.take(1000);
        first[..5].copy_from_slice(b"first");
        let place = first.as_ptr();
        let mut first = buffers.lend(first);
        let second = buffers.lend(buffers.take(1000));
        assert_ne!(second.as_ptr(), place);
        first.truncate(5);
        assert_eq!(&first[..], b"first");
        drop(first);
        drop(second);
        let third = buffers.take(1000);
        assert_eq!((third.as_ptr(), third.len()), (place, 1000));
        assert!(buffers.free().is_empty(), "no more are kept than told");
    }
}
