//! Hadoop's fsimage: the file in which a NameNode of Hadoop 2.6 to 3.5 keeps its namespace.
//!
//! ```text
//! "HDFSIMG1" | section | section | … | summary, delimited | length of the summary, 4 bytes
//! ```
//! A section is a sequence of protobuf messages, each behind its length, compressed or not; the summary says where each one
//! is. [`Image`] finds sections, [`Section`] gives their messages one after the other, and what a message says is borrowed
//! from it, so that memory is bounded by the longest message, however large the image is. Nothing here knows what the records
//! are for.
//!
//! [`write`] makes one for Hadoop 3.5. [`edits`] reads the log of what a NameNode has done since.
//!
//! Knows no sockets, no store and nothing else of ours. Reads Hadoop's own images in `tests/golden.rs`.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatProtobuf`, `FSImageUtil`, `FsImageProto`.

mod attributes;
mod cache;
pub mod edits;
mod error;
mod fields;
mod inode;
mod names;
mod policy;
mod section;
mod snapshot;
mod summary;
mod tree;
pub mod write;

pub use attributes::{
    AclEntries, AclEntry, AclKind, Permission, TypeQuota, TypeQuotas, XAttr, XAttrs,
};
pub use cache::{Cache, CacheDirective, CachePool};
pub use error::ImageError;
pub use inode::{Block, Blocks, Directory, File, Inode, InodeKind, Symlink, Writer};
pub use names::{NameKind, Names};
pub use policy::{Counters, EcPolicy, PolicyState};
pub use section::Section;
pub use snapshot::{Diff, Diffs, DirectoryDiff, FileDiff, Snapshot, Snapshots};
pub use summary::{Image, SectionPlace, sections};
pub use tree::{Child, DirEntry, OpenFile, Reference, Tree};

/// Number of the root directory.
///
/// Source: Hadoop 3.5.0 `INodeId#ROOT_INODE_ID`.
pub const ROOT: u64 = 16385;
