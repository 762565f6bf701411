//! Memory that reads use for a moment: what they need of a stripe besides what the caller wants.

use std::sync::Mutex;

/// Pieces that are kept, and how long each may be: 4 MiB of memory for a file system.
const KEPT: usize = 32;
const LONGEST_KEPT: usize = 128 << 10;

/// Memory for a moment, used again.
#[derive(Default)]
pub(crate) struct Scratch {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Scratch {
    /// `len` bytes of any content.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let free = self.free.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let mut bytes = free.unwrap_or_default();
        bytes.resize(len, 0);
        bytes
    }

    /// Gives memory back.
    pub(crate) fn put(&self, bytes: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(|poison| poison.into_inner());
        if free.len() < KEPT && bytes.capacity() <= LONGEST_KEPT {
            free.push(bytes);
        }
    }
}
