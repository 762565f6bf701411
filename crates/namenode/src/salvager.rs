//! Who reads blocks for `hdfs fsck -move`.
//!
//! The NameNode reads none itself: whoever starts it may give it a [`Salvager`], which has a client's means.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::ops::Range;

use cairn_net::Boxed;

/// Parts of a file that are to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    /// The NameNode to ask.
    pub namenode: SocketAddr,
    /// The user to be.
    pub user: String,
    /// The damaged file.
    pub source: String,
    /// The folder for the copies, which exists and is empty: files `0`, `1`, ... for each run of blocks that
    /// follow one another.
    pub target: String,
    /// Offsets of each block in the file; `None` for one that is lost.
    pub blocks: Vec<Option<Range<u64>>>,
}

/// Copies parts of files.
pub trait Salvager: Debug + Send + Sync {
    /// Copies what can be read. Fails if a block of which something is left could not be copied.
    fn salvage(&self, salvage: Salvage) -> Boxed<'_, Result<(), String>>;
}
