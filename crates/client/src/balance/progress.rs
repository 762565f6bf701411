//! How far a balancer or mover has got, and how it ended.

/// Rounds in a row without a single move after which there is no use in going on.
pub(super) const IDLE_ROUNDS: usize = 5;

/// How far it has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveProgress {
    /// Replicas and units moved.
    pub moved: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Moves that failed; others take their place.
    pub failed: u64,
    /// Bytes that were left to move when the round began.
    pub left: u64,
}

/// How it ended. The numbers are Hadoop's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEnd {
    /// Nothing is left to do.
    Done = 0,
    /// Another one is running.
    AlreadyRunning = -1,
    /// Something should be moved, and nothing can be.
    NoMoveBlock = -2,
    /// Moves fail again and again.
    NoMoveProgress = -3,
    /// It was told to stop.
    Interrupted = -6,
    /// A rolling upgrade is not finalized.
    UnfinalizedUpgrade = -7,
}
