//! Snapshots and what changed between them.

use crate::types::FileStatus;

/// A directory of which there may be snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshottableDirectory {
    /// The directory.
    pub status: FileStatus,
    /// Snapshots that it has.
    pub snapshots: u32,
    /// Most snapshots that it may have.
    pub snapshot_quota: u32,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its root, as a directory: `/dir/.snapshot/name`.
    pub status: FileStatus,
    /// Its number.
    pub id: u32,
    /// Whether it is marked as deleted, and waits for older ones to go first.
    pub is_deleted: bool,
}

/// How a path differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiffKind {
    /// It was made.
    Created,
    /// It was deleted.
    Deleted,
    /// It was changed.
    Modified,
    /// It was moved.
    Renamed,
}

impl DiffKind {
    /// The letter that Hadoop has for it: `+`, `-`, `M` or `R`.
    pub fn label(self) -> &'static str {
        match self {
            DiffKind::Created => "+",
            DiffKind::Deleted => "-",
            DiffKind::Modified => "M",
            DiffKind::Renamed => "R",
        }
    }
}

/// One difference between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDiff {
    /// What happened.
    pub kind: DiffKind,
    /// The path below the snapshottable directory; empty for that itself.
    pub path: String,
    /// Where it was moved to.
    pub target: Option<String>,
}
