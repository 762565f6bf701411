//! When a DataNode that failed is replaced.
//!
//! Source: Hadoop 3.5.0 `ReplaceDatanodeOnFailure`.

/// When to add a DataNode to a write pipeline that lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplaceDataNode {
    /// Never.
    Never,
    /// When the replication is at least 3 and either half of it or less is left, or the file was
    /// appended to or flushed.
    Default,
    /// Always.
    Always,
}
