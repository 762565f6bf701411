//! Why an image cannot be read.

use std::io;

/// Why an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file cannot be read, or ends early.
    #[error("the image cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as images do.
    #[error("this is no fsimage: it does not begin with HDFSIMG1")]
    NotAnImage,
    /// Another order of sections than the one known.
    #[error("an fsimage of file version {0}, where 1 is known")]
    Version(u32),
    /// Written by a Hadoop that is too old or too new.
    #[error("an fsimage of layout version {found}, where {newest} to {oldest} are known")]
    Layout {
        /// What the image says.
        found: i32,
        /// Of Hadoop 2.6.
        oldest: i32,
        /// Of Hadoop 3.5.
        newest: i32,
    },
    /// Compressed by what is not built in.
    #[error("the image is compressed with {0}; save it uncompressed (dfs.image.compress=false)")]
    Codec(String),
    /// A section that must be there is not.
    #[error("the image has no section {0}")]
    Missing(&'static str),
    /// Bytes that are no record.
    #[error("section {section} is damaged: {what}")]
    Damaged {
        /// Where.
        section: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A record longer than any that a NameNode writes.
    #[error("section {section} has a record of {len} bytes, more than {max}")]
    TooLong {
        /// Where.
        section: String,
        /// What it says.
        len: u64,
        /// The limit.
        max: u64,
    },
}

/// What is wrong with a record; where it is, [`ImageError::Damaged`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub &'static str);
