//! Thin wrappers over system calls that the standard library lacks.
#![allow(unsafe_code)]

use crate::error::{Context, DataNodeError, Result};
use rustix::fs::{Advice, FallocateFlags};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::raw::c_void;
use std::path::Path;
use std::ptr::NonNull;

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let file = File::open(dir).at(dir)?;
    synced(file.sync_all(), dir)
}

/// Makes the bytes of a file durable. After [`DataNodeError::Unsynced`] nothing is sure, whatever a later sync says: also
/// of what a full disk did not take, the system may tell only once.
pub(crate) fn sync(file: &File, path: &Path) -> Result<()> {
    synced(file.sync_data(), path)
}

/// What came of a sync.
pub(crate) fn synced(result: io::Result<()>, path: &Path) -> Result<()> {
    result.map_err(|source| DataNodeError::Unsynced { path: path.to_path_buf(), source })
}

/// Whether an error says that there is no room, and nothing against the disk.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether an error is for want of descriptors, and so none of the disk's.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Bytes of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskSpace {
    pub(crate) total: u64,
    /// Not in use.
    pub(crate) free: u64,
    /// Those of them that ordinary users may have.
    pub(crate) available: u64,
}

/// Room on the file system that holds `path`.
pub(crate) fn disk_space(path: &Path) -> Result<DiskSpace> {
    let stat = rustix::fs::statvfs(path).map_err(io::Error::from).at(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(DiskSpace {
        total: bytes(stat.f_blocks),
        free: bytes(stat.f_bfree),
        available: bytes(stat.f_bavail),
    })
}

/// Whether `path` is on ext4, or its elders, which the same code of the kernel serves.
pub(crate) fn is_ext4(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == libc::EXT4_SUPER_MAGIC)
}

/// Has the disk set bytes of a file aside, which may lie behind its end; its length stays.
pub(crate) fn allocate(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let len = bytes.end - bytes.start;
    Ok(rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, bytes.start, len)?)
}

/// The user that this process acts as.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::geteuid() }
}

/// Bytes of a page of memory.
pub(crate) fn page_len() -> u64 {
    // SAFETY: takes no pointers.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(len).unwrap_or(4096)
}

/// Pages of a file that stay in memory until this is dropped. Nobody reads through it.
#[derive(Debug)]
pub(crate) struct LockedPages {
    at: NonNull<c_void>,
    len: usize,
}

// SAFETY: the address is used only to give the mapping up, once.
unsafe impl Send for LockedPages {}

/// Reads the first `len` bytes of a file into memory and keeps them there.
pub(crate) fn lock_pages(file: &File, len: u64) -> io::Result<LockedPages> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: a new mapping at an address that the system chooses; the descriptor is open.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    let at = NonNull::new(at).filter(|at| at.as_ptr() != libc::MAP_FAILED);
    let locked = LockedPages { at: at.ok_or_else(io::Error::last_os_error)?, len };
    // SAFETY: the mapping is `len` bytes long and lives as long as `locked`.
    match unsafe { libc::mlock(locked.at.as_ptr(), len) } {
        0 => Ok(locked),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Drop for LockedPages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nothing refers to it.
        unsafe { libc::munmap(self.at.as_ptr(), self.len) };
    }
}

/// Starts writing `len` dirty bytes at `offset` to disk without waiting. Only a hint: errors show at the fsync.
pub(crate) fn start_write_back(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: takes no pointers; the descriptor is open for as long as `file` is borrowed.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Tells the page cache how `len` bytes at `offset` (0: to the end) will be used. Only a hint.
pub(crate) fn advise(file: &File, offset: u64, len: u64, advice: Advice) {
    let _ = rustix::fs::fadvise(file, offset, std::num::NonZeroU64::new(len), advice);
}
