//! Who this file system is: the `VERSION` file.
//!
//! Source: Hadoop 3.5.0 `NNStorage`, `NamespaceInfo`.

use crate::disk::sync_dir;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Longest `VERSION` file that is read.
const FILE_LEN_MAX: u64 = 64 * 1024;

/// Names and numbers that a file system keeps from its format on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `namespaceID`.
    pub namespace_id: u32,
    /// `clusterID`, for example `CID-…`.
    pub cluster_id: String,
    /// `blockpoolID`: `BP-<number>-<address>-<ms>`.
    pub block_pool_id: String,
    /// `cTime`: when it was formatted, ms since the epoch.
    pub created_ms: u64,
}

/// Why the `VERSION` file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is missing or makes no sense.
    #[error("{}: {key} is missing or malformed", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line's key.
        key: &'static str,
    },
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

impl Identity {
    /// A new one. `host` goes into the block pool's name, `cluster_id` is made up if not given.
    pub fn generate(
        host: &str,
        cluster_id: Option<String>,
        now_ms: u64,
    ) -> Result<Identity, IdentityError> {
        let mut random = [0u8; 24];
        getrandom::fill(&mut random).map_err(IdentityError::Random)?;
        let number =
            |at: usize| random[at..at + 4].iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) >> 1;
        let hex: String = random[8..].iter().map(|byte| format!("{byte:02x}")).collect();
        let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        Ok(Identity {
            namespace_id: number(0).max(1),
            cluster_id: cluster_id.unwrap_or(format!("CID-{uuid}")),
            block_pool_id: format!("BP-{}-{host}-{now_ms}", number(4)),
            created_ms: now_ms,
        })
    }

    /// Reads `path`; `None` if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Identity>, IdentityError> {
        let io = |source| IdentityError::Io { path: path.to_owned(), source };
        match fs::metadata(path) {
            Ok(found) if found.len() > FILE_LEN_MAX => {
                return Err(io(io::Error::other("the file is too long")));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        }
        let text = fs::read_to_string(path).map_err(io)?;
        Identity::from_text(path, &text).map(Some)
    }

    /// What the text of a `VERSION` file says; `path` is where it is.
    pub fn from_text(path: &Path, text: &str) -> Result<Identity, IdentityError> {
        let malformed = |key| IdentityError::Malformed { path: path.to_owned(), key };
        let field = |key: &'static str| {
            text.lines()
                .filter_map(|line| line.trim().split_once('='))
                .find(|(name, value)| *name == key && !value.is_empty())
                .map(|(_, value)| value.to_string())
                .ok_or_else(|| malformed(key))
        };
        Ok(Identity {
            namespace_id: field("namespaceID")?.parse().map_err(|_| malformed("namespaceID"))?,
            cluster_id: field("clusterID")?,
            block_pool_id: field("blockpoolID")?,
            created_ms: field("cTime")?.parse().map_err(|_| malformed("cTime"))?,
        })
    }

    /// The text of its `VERSION` file.
    pub fn to_text(&self) -> String {
        format!(
            "namespaceID={}\nclusterID={}\ncTime={}\nstorageType=NAME_NODE\nblockpoolID={}\n\
             layoutVersion=1\n",
            self.namespace_id, self.cluster_id, self.created_ms, self.block_pool_id
        )
    }

    /// Writes `path` so that it is there whole or not at all, also after a power cut.
    pub fn write(&self, path: &Path) -> Result<(), IdentityError> {
        let text = self.to_text();
        let write = || {
            let temporary = path.with_extension("tmp");
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            sync_dir(path.parent().unwrap_or(Path::new(".")))
        };
        write().map_err(|source| IdentityError::Io { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_identity_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("VERSION");
        assert_eq!(Identity::read(&path).unwrap(), None);
        let identity = Identity::generate("127.0.0.1", None, 1234).unwrap();
        assert!(identity.block_pool_id.ends_with("-127.0.0.1-1234"));
        identity.write(&path).unwrap();
        assert_eq!(Identity::read(&path).unwrap(), Some(identity));
        fs::write(&path, "namespaceID=x\n").unwrap();
        assert!(matches!(
            Identity::read(&path),
            Err(IdentityError::Malformed { key: "namespaceID", .. })
        ));
    }
}
