//! What went wrong, as C gets it: `errno`, and the exception that the thread can ask for.
//!
//! Source: Hadoop 3.5.0 libhdfs, `exception.c`.

use cairn_client::ClientError;
use errno::{Errno, set_errno};
use libc::c_char;
use std::cell::RefCell;
use std::ffi::CString;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// libhdfs's number for what has no other.
pub const EINTERNAL: i32 = 255;

const ACCESS_CONTROL: &str = "org.apache.hadoop.security.AccessControlException";

/// Which exception is which error.
const ERRORS: [(&str, i32); 13] = [
    ("java.io.FileNotFoundException", libc::ENOENT),
    (ACCESS_CONTROL, libc::EACCES),
    ("org.apache.hadoop.fs.UnresolvedLinkException", libc::ENOLINK),
    ("org.apache.hadoop.fs.ParentNotDirectoryException", libc::ENOTDIR),
    ("java.lang.IllegalArgumentException", libc::EINVAL),
    ("java.lang.OutOfMemoryError", libc::ENOMEM),
    ("org.apache.hadoop.hdfs.server.namenode.SafeModeException", libc::EROFS),
    ("org.apache.hadoop.fs.FileAlreadyExistsException", libc::EEXIST),
    ("org.apache.hadoop.hdfs.protocol.QuotaExceededException", libc::EDQUOT),
    ("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", libc::EDQUOT),
    ("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", libc::EDQUOT),
    ("java.lang.UnsupportedOperationException", libc::ENOTSUP),
    ("org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", libc::ESTALE),
];

/// Why a function failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For `errno`.
    pub errno: i32,
    class: String,
    message: String,
}

/// The result of what an exported function does.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// An exception of Java, or what would be one in libhdfs.
    pub fn exception(class: &str, message: impl Into<String>) -> Failure {
        let known = ERRORS.iter().find(|(name, _)| *name == class);
        let errno = known.map_or(EINTERNAL, |(_, errno)| *errno);
        Failure { errno, class: class.to_string(), message: message.into() }
    }

    /// An argument that makes no sense.
    pub fn argument(message: impl Into<String>) -> Failure {
        Failure::exception("java.lang.IllegalArgumentException", message)
    }

    /// What this library does not do.
    pub fn unsupported(message: impl Into<String>) -> Failure {
        Failure::exception("java.lang.UnsupportedOperationException", message)
    }

    /// Reading or seeking where the file has no bytes.
    pub fn end_of_file(message: impl Into<String>) -> Failure {
        Failure::exception("java.io.EOFException", message)
    }

    /// Any failure of input or output.
    pub fn io(message: impl Into<String>) -> Failure {
        Failure::exception("java.io.IOException", message)
    }

    /// No memory for an answer.
    pub fn out_of_memory() -> Failure {
        Failure::exception("java.lang.OutOfMemoryError", "no memory for the answer")
    }

    /// The same with an `errno` that libhdfs chooses without an exception.
    pub fn with_errno(self, errno: i32) -> Failure {
        Failure { errno, ..self }
    }

    /// A handle that is null, or open for the other direction.
    pub fn bad_handle(message: &str) -> Failure {
        Failure::argument(message).with_errno(libc::EBADF)
    }

    fn raise(&self) {
        let short = self.class.rsplit('.').next().unwrap_or_default();
        let root = format!("{short}: {}", self.message);
        let trace = format!("{}: {}\n", self.class, self.message);
        LAST.set(Some(Exception { root: owned(&root), trace: owned(&trace) }));
        set_errno(Errno(self.errno));
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let message = error.to_string();
        if matches!(error, ClientError::Key { .. }) && error.kind() == ErrorKind::PermissionDenied {
            return Failure::exception(ACCESS_CONTROL, message);
        }
        match error {
            ClientError::Remote { class, message } => Failure::exception(&class, message),
            ClientError::NotFound { .. } => {
                Failure::exception("java.io.FileNotFoundException", message)
            }
            ClientError::InvalidPath { .. } | ClientError::UnsupportedEncryption { .. } => {
                Failure::unsupported(message)
            }
            ClientError::Argument(_) => Failure::argument(message),
            ClientError::NameNode { .. } => {
                Failure::exception("java.net.ConnectException", message)
            }
            ClientError::Checksum { .. } => {
                Failure::exception("org.apache.hadoop.fs.ChecksumException", message)
            }
            _ => Failure::io(message),
        }
    }
}

struct Exception {
    root: CString,
    trace: CString,
}

thread_local! {
    static LAST: RefCell<Option<Exception>> = const { RefCell::new(None) };
}

fn owned(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// Does what an exported function does: what fails, or panics, sets `errno` and answers `failed`.
pub fn call<T>(failed: T, what: impl FnOnce() -> Result<T>) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(what)) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::exception("java.lang.RuntimeException", "the Cairn client panicked"),
    };
    failure.raise();
    failed
}

/// As [`call`], for functions that answer 0, or -1 when they fail.
pub fn status(what: impl FnOnce() -> Result<()>) -> i32 {
    call(-1, || what().map(|()| 0))
}

/// The class and the message of the last exception of this thread; null when there was none. Valid until
/// the next failure on this thread.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetLastExceptionRootCause() -> *mut c_char {
    LAST.with_borrow(|last| last.as_ref().map_or(ptr::null(), |e| e.root.as_ptr())).cast_mut()
}

/// The same with the whole name of the class; the client has no stack of Java to show.
#[unsafe(no_mangle)]
extern "C" fn hdfsGetLastExceptionStackTrace() -> *mut c_char {
    LAST.with_borrow(|last| last.as_ref().map_or(ptr::null(), |e| e.trace.as_ptr())).cast_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_client::KmsError;
    use std::ffi::CStr;

    #[test]
    fn exceptions_become_the_numbers_of_libhdfs() {
        let remote = |class: &str| {
            Failure::from(ClientError::Remote { class: class.into(), message: "m".into() }).errno
        };
        assert_eq!(remote("org.apache.hadoop.security.AccessControlException"), libc::EACCES);
        assert_eq!(remote("org.apache.hadoop.fs.FileAlreadyExistsException"), libc::EEXIST);
        assert_eq!(remote("java.io.IOException"), EINTERNAL);
        let missing = ClientError::NotFound { path: "/x".into() };
        assert_eq!(Failure::from(missing).errno, libc::ENOENT);
        let key = |status| {
            let (host, class, message) = ("h".into(), String::new(), "m".into());
            let reason = KmsError::Server { host, status, class, message };
            Failure::from(ClientError::Key { path: "/x".into(), reason }).errno
        };
        assert_eq!((key(403), key(500)), (libc::EACCES, EINTERNAL));
    }

    #[test]
    fn a_panic_is_an_answer_and_can_be_asked_for() {
        assert!(hdfsGetLastExceptionRootCause().is_null());
        assert_eq!(status(|| panic!("on purpose")), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(EINTERNAL));
        // SAFETY: the string is this thread's until its next failure.
        let root = unsafe { CStr::from_ptr(hdfsGetLastExceptionRootCause()) };
        assert_eq!(root.to_str(), Ok("RuntimeException: the Cairn client panicked"));
        assert_eq!(status(|| Ok(())), 0);
    }
}
