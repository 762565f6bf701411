//! Why nothing was exported.

use crate::journal::error::OpenError;
use cairn_namespace::NamespaceError;
use cairn_namespace::store::StoreError;
use std::io;
use std::path::PathBuf;

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What is in the namespace and Hadoop has no form for.
    #[error("the namespace has what Hadoop has no form for: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// The namespace isn't whole.
    #[error("the namespace is damaged: {}", .0.join("; "))]
    Damaged(Vec<String>),
    /// The namespace can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record can't be read, or makes no sense.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The image can't be written.
    #[error("the image can't be written: {0}")]
    Write(#[from] io::Error),
    /// A file can't be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is something where the image is to be.
    #[error("{}: it is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is something where the folder is to be.
    #[error("{}: the folder is not empty; export into a new one", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> ExportError {
        ExportError::Namespace(error.into())
    }
}
