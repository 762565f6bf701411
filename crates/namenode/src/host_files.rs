//! Files that tell of hosts: how they are read, and why they cannot be.

use std::io;
use std::path::{Path, PathBuf};

/// Longest table or list that is read, bytes.
const MAX_FILE_LEN: u64 = 64 << 20;

/// Why a rack cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A table or list cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of hosts makes no sense.
    #[error("{path} is no file of hosts: {reason}")]
    Hosts {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The text of a file, of its first part where it is longer than any list.
pub(crate) fn read_text(path: &Path) -> Result<String, TopologyError> {
    use std::io::Read;
    let read = || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(MAX_FILE_LEN).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|source| TopologyError::Read { path: path.to_path_buf(), source })
}
