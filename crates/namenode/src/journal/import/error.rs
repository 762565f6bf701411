//! Why nothing was imported.

use crate::journal::error::OpenError;
use crate::journal::log::LogError;
use crate::store::IdentityError;
use cairn_fsimage::ImageError;
use cairn_fsimage::edits::EditsError;
use cairn_namespace::NamespaceError;
use cairn_namespace::store::StoreError;
use std::io;
use std::path::PathBuf;

/// The layout version of Hadoop 3.0; older images are of Hadoop 2.
pub(super) const OLDEST: i32 = -64;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The image can't be read.
    #[error("{}: {source}", path.display())]
    Image {
        /// The image.
        path: PathBuf,
        /// Why.
        source: ImageError,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No image where one was looked for.
    #[error("{}: there is no fsimage_N", path.display())]
    NoImage {
        /// The folder.
        path: PathBuf,
    },
    /// Hadoop has done more since.
    #[error(
        "{}: what is imported ends with transaction {last}, and here is more; name the folder of Hadoop's edit log (--edits), \
         or stop the writers, have Hadoop save the namespace in safe mode (hdfs dfsadmin -safemode enter, -saveNamespace), \
         stop the NameNode, and import that image",
        path.display()
    )]
    Later {
        /// The file that has more.
        path: PathBuf,
        /// The last transaction that would be imported.
        last: u64,
    },
    /// A file of the log can't be read.
    #[error("{}: {source}", path.display())]
    Edits {
        /// The file.
        path: PathBuf,
        /// Why.
        source: EditsError,
    },
    /// Transactions are missing from the log.
    #[error("{}: transaction {wanted} is missing: transaction {found} comes next", path.display())]
    Gap {
        /// The file that should have it.
        path: PathBuf,
        /// The one that is missing.
        wanted: u64,
        /// The one that is there.
        found: u64,
    },
    /// A file of the log ends before its name says.
    #[error("{}: it ends with transaction {last}, before the one in its name", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// The last transaction that it has, or that was before it.
        last: u64,
    },
    /// What was done cannot be done here.
    #[error("{}: transaction {transaction} cannot be taken over: {what}", path.display())]
    Operation {
        /// The file.
        path: PathBuf,
        /// Its number.
        transaction: u64,
        /// What is in the way.
        what: String,
    },
    /// The image is not what was written.
    #[error("{}: its MD5 is {found}, and {wanted} was noted when it was written", path.display())]
    Digest {
        /// The image.
        path: PathBuf,
        /// Of its bytes.
        found: String,
        /// In the file beside it.
        wanted: String,
    },
    /// `VERSION` can't be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// There is none.
    #[error("{}: there is no VERSION beside the image; name it with --version-file", path.display())]
    NoVersion {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// `VERSION` is of another file system than the image.
    #[error("the image is of namespace {image}, and VERSION of {version}")]
    Mixed {
        /// What the image says.
        image: u32,
        /// What the other says.
        version: u32,
    },
    /// There is something where the namespace is to be.
    #[error("{}: the folder is not empty; import into a new one", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// What is in the image and not known here.
    #[error("the image has what cannot be taken over: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// A record makes no sense.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The new namespace can't be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> ImportError {
        ImportError::Open(error.into())
    }
}

impl From<LogError> for ImportError {
    fn from(error: LogError) -> ImportError {
        ImportError::Open(error.into())
    }
}
