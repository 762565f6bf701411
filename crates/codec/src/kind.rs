//! The names of the codes.

use std::fmt;

/// Which code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodecKind {
    /// Reed-Solomon with the Cauchy matrix of ISA-L: Hadoop's `rs`.
    Rs,
    /// Reed-Solomon of HDFS-RAID: Hadoop's `rs-legacy`.
    RsLegacy,
    /// One parity unit, the exclusive or of the data units: Hadoop's `xor`.
    Xor,
}

impl fmt::Display for CodecKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CodecKind::Rs => "rs",
            CodecKind::RsLegacy => "rs-legacy",
            CodecKind::Xor => "xor",
        })
    }
}
