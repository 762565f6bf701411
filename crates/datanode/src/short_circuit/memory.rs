//! Memory that is shared with a client: one word for each slot.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, SealFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes of a segment.
///
/// Source: Hadoop 3.5.0 `ShortCircuitRegistry#SHM_LENGTH`.
const SEGMENT_LEN: usize = 8192;
/// Bytes of a slot, of which the first eight are used.
///
/// Source: Hadoop 3.5.0 `ShortCircuitShm#BYTES_PER_SLOT`.
const SLOT_LEN: usize = 64;
/// Slots of a segment.
pub(super) const SLOTS: usize = SEGMENT_LEN / SLOT_LEN;

/// A mapped segment. It has no name, so nobody finds it who was not given its descriptor; and nobody
/// can change its length, which would kill who reads behind its end.
#[derive(Debug)]
pub(super) struct SharedMemory {
    at: NonNull<AtomicU64>,
    file: OwnedFd,
}

// SAFETY: the memory is only read and written as atomic words.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// A new segment, all zeros.
    pub(super) fn create() -> io::Result<SharedMemory> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("HadoopShortCircuitShm", flags)?;
        rustix::fs::ftruncate(&file, SEGMENT_LEN as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address that the system chooses; the descriptor is open.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SEGMENT_LEN,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let at = NonNull::new(at).filter(|at| at.as_ptr() != libc::MAP_FAILED);
        Ok(SharedMemory { at: at.ok_or_else(io::Error::last_os_error)?.cast(), file })
    }

    /// The word of a slot; `None` behind the last.
    pub(super) fn word(&self, slot: usize) -> Option<&AtomicU64> {
        // SAFETY: within the mapping, which lives as long as `self`, starts at a page and is only used through
        // atomic words.
        (slot < SLOTS)
            .then(|| unsafe { self.at.add(slot * SLOT_LEN / size_of::<AtomicU64>()).as_ref() })
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nothing refers to it.
        unsafe { libc::munmap(self.at.as_ptr().cast(), SEGMENT_LEN) };
    }
}
