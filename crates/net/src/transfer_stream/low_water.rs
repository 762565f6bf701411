//! `SO_RCVLOWAT`: how many bytes must have arrived before a waiting reader is woken.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets how many bytes must be there before the socket counts as readable; its end and errors always do.
pub(super) fn set(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed, and the kernel reads the `len` bytes of `value`.
    let done = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
