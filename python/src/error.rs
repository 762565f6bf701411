//! Errors of the client as Python's.

use cairn_client::ClientError;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use std::io::ErrorKind;

/// An `OSError` with the number that makes Python choose its class, for example `FileNotFoundError`.
pub fn os_error(error: ClientError) -> PyErr {
    let errno = match error.kind() {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::NotADirectory => libc::ENOTDIR,
        ErrorKind::IsADirectory => libc::EISDIR,
        ErrorKind::DirectoryNotEmpty => libc::ENOTEMPTY,
        ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        ErrorKind::QuotaExceeded => libc::EDQUOT,
        ErrorKind::StaleNetworkFileHandle => libc::ESTALE,
        ErrorKind::Unsupported => libc::ENOTSUP,
        ErrorKind::NotConnected => libc::ENOTCONN,
        ErrorKind::InvalidInput => libc::EINVAL,
        _ => libc::EIO,
    };
    PyOSError::new_err((errno, error.to_string()))
}

/// What a closed file is answered with.
pub fn closed() -> PyErr {
    PyValueError::new_err("I/O operation on closed file.")
}
