//! States of a replica and the operations that move it between them.
//!
//! ```text
//!            create            finalize
//!   (none) --------> RBW ------------------> FINALIZED --append--> RBW
//!      |              | restart                 |
//!      |              v      init_recovery      v     finish_recovery
//!      |             RWR ------------------>   RUR ------------------> FINALIZED
//!      | create_temporary              convert
//!      +------------> TEMPORARY ----------------> RBW
//! ```
//! Invariant: `acked_len <= on_disk_len` whenever no writer is at work. Tested in `state/tests.rs`.

use cairn_stripe::{BlockId, GenerationStamp};
use std::fmt;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// What a replica is good for.
///
/// Source: Hadoop 3.5.0 `HdfsServerConstants.ReplicaState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReplicaState {
    /// Complete; its bytes change only through append or recovery.
    Finalized,
    /// Being written by a pipeline.
    Rbw,
    /// Was being written when the DataNode stopped; waits for lease recovery.
    Rwr,
    /// Frozen by a block recovery.
    Rur,
    /// Being copied from another DataNode; not visible to readers.
    Temporary,
}

impl ReplicaState {
    /// The number on the wire and in block reports; smaller is better for recovery.
    pub fn value(self) -> u64 {
        self as u64
    }

    /// The state with that number.
    pub fn from_value(value: u64) -> Option<ReplicaState> {
        use ReplicaState::*;
        [Finalized, Rbw, Rwr, Rur, Temporary].into_iter().find(|s| s.value() == value)
    }

    /// Whether a writer may be at work on it.
    pub fn is_in_pipeline(self) -> bool {
        matches!(self, ReplicaState::Rbw | ReplicaState::Temporary)
    }
}

impl fmt::Display for ReplicaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplicaState::Finalized => "FINALIZED",
            ReplicaState::Rbw => "RBW",
            ReplicaState::Rwr => "RWR",
            ReplicaState::Rur => "RUR",
            ReplicaState::Temporary => "TEMPORARY",
        })
    }
}

/// Why a replica refuses an operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplicaError {
    /// No replica of that block that the operation could work on.
    #[error("{reason}: {block}_{gs}")]
    NotFound {
        /// Block asked for.
        block: BlockId,
        /// Stamp asked for.
        gs: GenerationStamp,
        /// What is missing or in the way.
        reason: &'static str,
    },
    /// The replica's stamp is not in the range that the operation accepts.
    #[error(
        "Cannot append to a replica with unexpected generation stamp {found}. Expected GS range is [{least}, {most}]."
    )]
    StampOutOfRange {
        /// Stamp of the replica.
        found: GenerationStamp,
        /// Least stamp accepted.
        least: GenerationStamp,
        /// Greatest stamp accepted.
        most: GenerationStamp,
    },
    /// A replica of that block is there already, in a state that must not be overwritten.
    #[error("Block {block}_{gs} already exists in state {state} and thus cannot be created.")]
    AlreadyExists {
        /// Block asked for.
        block: BlockId,
        /// Stamp of the replica that is there.
        gs: GenerationStamp,
        /// Its state.
        state: ReplicaState,
    },
    /// The replica's lengths do not allow the operation.
    #[error(
        "Corrupted replica {block}_{gs} with a length of {found} expected length is [{least}, {most}]"
    )]
    LengthOutOfRange {
        /// Block asked for.
        block: BlockId,
        /// Stamp of the replica.
        gs: GenerationStamp,
        /// Its length in bytes.
        found: u64,
        /// Least length accepted.
        least: u64,
        /// Greatest length accepted.
        most: u64,
    },
    /// Received, written and acknowledged lengths differ although nobody writes.
    #[error(
        "RBW replica {block}_{gs}: bytesRcvd({received}), bytesOnDisk({on_disk}), and bytesAcked({acked}) are not the same."
    )]
    Unsettled {
        /// Block asked for.
        block: BlockId,
        /// Stamp of the replica.
        gs: GenerationStamp,
        /// Bytes received.
        received: u64,
        /// Bytes written.
        on_disk: u64,
        /// Bytes acknowledged by the whole pipeline.
        acked: u64,
    },
    /// A newer recovery was told that there is no replica of the block.
    #[error(
        "Block {block}_{gs} is under recovery {recovery}, which was told that there is no replica here"
    )]
    Late {
        /// Block that was to be opened.
        block: BlockId,
        /// Stamp of who wanted to.
        gs: GenerationStamp,
        /// Id of the recovery.
        recovery: GenerationStamp,
    },
    /// A newer recovery holds the replica.
    #[error("rur.getRecoveryID() = {held} >= recoveryId = {asked}, block={block}")]
    RecoveryInProgress {
        /// Block asked for.
        block: BlockId,
        /// Id of the recovery that holds it.
        held: GenerationStamp,
        /// Id of the recovery that asks.
        asked: GenerationStamp,
    },
    /// The operation does not fit the replica's state or stamp in a way that only a bug or a stale peer explains.
    #[error("{reason}: {block}_{gs} in state {state}")]
    Invalid {
        /// Block asked for.
        block: BlockId,
        /// Stamp of the replica.
        gs: GenerationStamp,
        /// Its state.
        state: ReplicaState,
        /// What does not fit.
        reason: &'static str,
    },
}

/// What a recovery needs to know of a replica.
///
/// Source: Hadoop 3.5.0 `ReplicaRecoveryInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryInfo {
    /// The block.
    pub id: BlockId,
    /// Its stamp here, before the recovery.
    pub gs: GenerationStamp,
    /// Bytes that the replica holds.
    pub len: u64,
    /// Its state before the recovery froze it.
    pub original: ReplicaState,
}

/// The recovery that holds a replica in state RUR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovery {
    id: GenerationStamp,
    original: ReplicaState,
}

/// One replica as the DataNode remembers it; lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    id: BlockId,
    gs: GenerationStamp,
    state: ReplicaState,
    received_len: u64,
    on_disk_len: u64,
    acked_len: u64,
    recovery: Option<Recovery>,
    /// What it holds could not be read at the start.
    is_unread: bool,
    /// It was finalized when it was found at the start, and nobody knows whether it was synced before.
    may_be_torn: bool,
}

impl Replica {
    /// A replica found on disk, or one that has just been created.
    pub fn new(id: BlockId, gs: GenerationStamp, state: ReplicaState, len: u64) -> Replica {
        Replica {
            id,
            gs,
            state,
            received_len: len,
            on_disk_len: len,
            acked_len: len,
            recovery: None,
            is_unread: false,
            may_be_torn: false,
        }
    }

    /// A finalized replica found on disk that nobody may have synced before its node stopped: its end may be lost.
    pub fn unsynced(id: BlockId, gs: GenerationStamp, len: u64) -> Replica {
        Replica { may_be_torn: true, ..Replica::new(id, gs, ReplicaState::Finalized, len) }
    }

    /// A replica that was being written, and of which it could not be read yet what it holds.
    pub fn unread(id: BlockId, gs: GenerationStamp) -> Replica {
        Replica { is_unread: true, ..Replica::new(id, gs, ReplicaState::Rwr, 0) }
    }

    /// Whether it is not known what it holds. It takes no part in a recovery before it is: to hold nothing may mean
    /// that the block is given up.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// The block.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// The generation stamp.
    pub fn gs(&self) -> GenerationStamp {
        self.gs
    }

    /// The state.
    pub fn state(&self) -> ReplicaState {
        self.state
    }

    /// Bytes received, of which some may not be on disk yet.
    pub fn received_len(&self) -> u64 {
        self.received_len
    }

    /// Bytes written with their CRCs.
    pub fn on_disk_len(&self) -> u64 {
        self.on_disk_len
    }

    /// Bytes that every DataNode of the pipeline has.
    pub fn acked_len(&self) -> u64 {
        self.acked_len
    }

    /// Bytes a reader may see, or nothing while the replica is not readable.
    ///
    /// Source: Hadoop 3.5.0 `Replica#getVisibleLength`.
    pub fn visible_len(&self) -> Option<u64> {
        let state = self.recovery.map_or(self.state, |r| r.original);
        match state {
            ReplicaState::Finalized => Some(self.on_disk_len),
            ReplicaState::Rbw => Some(self.acked_len),
            ReplicaState::Rwr | ReplicaState::Rur | ReplicaState::Temporary => None,
        }
    }

    /// Notes that a packet ending at `end` has been received.
    pub fn note_received(&mut self, end: u64) {
        self.received_len = self.received_len.max(end);
    }

    /// Notes that everything up to `end` is on disk.
    pub fn note_on_disk(&mut self, end: u64) {
        self.on_disk_len = self.on_disk_len.max(end);
    }

    /// Notes that the pipeline downstream has everything up to `end` as well.
    pub fn note_acked(&mut self, end: u64) {
        self.acked_len = self.acked_len.max(end);
    }

    /// Whether a reader with stamp `gs` may read it.
    ///
    /// Source: Hadoop 3.5.0 `BlockSender`: a newer stamp than asked for is fine, an older one is not.
    pub fn check_readable(&self, gs: GenerationStamp) -> Result<u64, ReplicaError> {
        if self.gs < gs {
            return Err(self.invalid("Replica gen stamp < block genstamp"));
        }
        self.visible_len().ok_or_else(|| self.invalid("Replica is not readable"))
    }

    /// Whether the replica with stamp `gs` can be copied to other DataNodes as a finalized one.
    ///
    /// Source: Hadoop 3.5.0 `DataNode#transferBlock`, `FsDatasetImpl#checkBlock`.
    pub fn check_copy(&self, gs: GenerationStamp) -> Result<(), ReplicaError> {
        match self.state == ReplicaState::Finalized && self.gs == gs {
            true => Ok(()),
            false => Err(self.invalid("Can't send a replica that is not FINALIZED")),
        }
    }

    /// Whether an RBW replica may be created over `existing`; `Ok(true)` if that one has to be removed first.
    ///
    /// A writer that retries with a new stamp (`new_gs > 0`) replaces what it left behind.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#createRbw`.
    pub fn check_create(
        existing: Option<&Replica>,
        new_gs: GenerationStamp,
    ) -> Result<bool, ReplicaError> {
        match existing {
            None => Ok(false),
            Some(old) if new_gs > old.gs => Ok(true),
            Some(old) => Err(old.exists()),
        }
    }

    /// Whether a temporary replica may be created over `existing`; `Ok(true)` if that one has to be removed first.
    ///
    /// A replica that a broken writer has left open is replaced by a copy of the same stamp. Where the NameNode
    /// has ordered the copy, the block is complete and nobody needs it; where a pipeline is mended
    /// (`is_transfer`), it is what an earlier try has left, or a DataNode that the pipeline gave up. `has_writer`
    /// says whether a writer is at it.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#createTemporary`. Deviation: Hadoop refuses such a copy until the
    /// DataNode starts again.
    pub fn check_create_temporary(
        existing: Option<&Replica>,
        gs: GenerationStamp,
        is_transfer: bool,
        has_writer: bool,
    ) -> Result<bool, ReplicaError> {
        match existing {
            None => Ok(false),
            Some(old) if old.is_left_open(gs) && !has_writer => Ok(true),
            Some(old) if old.gs < gs && (is_transfer || old.state.is_in_pipeline()) => Ok(true),
            Some(old) => Err(old.exists()),
        }
    }

    /// Opens a finalized replica of `len` bytes for appending, under `new_gs`.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#append`.
    pub fn append(
        &mut self,
        gs: GenerationStamp,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<(), ReplicaError> {
        if new_gs < gs {
            return Err(
                self.invalid("The new generation stamp should be greater than the replica's")
            );
        }
        if self.gs != gs {
            return Err(self.not_found("Cannot append to a non-existent replica"));
        }
        if self.state != ReplicaState::Finalized {
            return Err(self.not_found("Cannot append to an unfinalized replica"));
        }
        self.check_len(self.received_len, len, len)?;
        self.reopen(new_gs);
        Ok(())
    }

    /// Takes over an RBW replica after a pipeline failure: it must hold at least `min` acknowledged and at
    /// most `max` received bytes. `file_len` is the length of its block file. Returns its length from now on;
    /// the caller truncates the file to it.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#recoverRbw`.
    pub fn recover_rbw(
        &mut self,
        gs: GenerationStamp,
        new_gs: GenerationStamp,
        (min, max): (u64, u64),
        file_len: u64,
    ) -> Result<u64, ReplicaError> {
        if self.state != ReplicaState::Rbw {
            return Err(self.not_found("Cannot recover a non-RBW replica"));
        }
        self.check_stamp(gs, new_gs)?;
        if self.acked_len < min || self.received_len > max {
            return Err(self.length(self.received_len, min, max));
        }
        if file_len < self.acked_len {
            return Err(self.length(file_len, self.acked_len, max));
        }
        // Bytes beyond the acknowledged ones may differ between the DataNodes of the old pipeline.
        self.settle(self.acked_len);
        self.gs = new_gs;
        Ok(self.acked_len)
    }

    /// Takes over a replica of `len` bytes after a failed append; it is RBW afterwards.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#recoverAppend`.
    pub fn recover_append(
        &mut self,
        gs: GenerationStamp,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<(), ReplicaError> {
        self.check_recover(gs, new_gs, len)?;
        self.reopen(new_gs);
        Ok(())
    }

    /// Closes a replica of `len` bytes whose last acknowledgement was lost; it is finalized afterwards.
    /// Returns whether its files have to be moved.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#recoverClose`.
    pub fn recover_close(
        &mut self,
        gs: GenerationStamp,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<bool, ReplicaError> {
        self.check_recover(gs, new_gs, len)?;
        self.gs = new_gs;
        let was_open = self.state == ReplicaState::Rbw;
        (self.state, self.may_be_torn) = (ReplicaState::Finalized, false);
        Ok(was_open)
    }

    /// Turns a temporary replica that received at least `visible` bytes into an RBW one with that many acknowledged.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#convertTemporaryToRbw`.
    pub fn convert_temporary(
        &mut self,
        gs: GenerationStamp,
        visible: u64,
    ) -> Result<(), ReplicaError> {
        if self.state != ReplicaState::Temporary || self.gs != gs {
            return Err(self.exists());
        }
        if self.received_len < visible {
            return Err(self.length(self.received_len, visible, u64::MAX));
        }
        self.state = ReplicaState::Rbw;
        self.acked_len = visible;
        Ok(())
    }

    /// Completes a replica that a writer filled. Everything received must be on disk.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#finalizeBlock`.
    pub fn finalize(&mut self, gs: GenerationStamp) -> Result<(), ReplicaError> {
        if self.gs != gs || !self.state.is_in_pipeline() {
            return Err(self.not_found("Cannot finalize a replica that was replaced"));
        }
        if self.on_disk_len != self.received_len {
            return Err(self.length(self.on_disk_len, self.received_len, self.received_len));
        }
        self.settle(self.on_disk_len);
        self.state = ReplicaState::Finalized;
        Ok(())
    }

    /// Freezes the replica for the recovery `recovery_id`, which fences older writers and recoveries.
    ///
    /// What the writer has gone on without only tells what it has: of a group it may show that no stripe is whole, and
    /// nobody is to wait for an answer. Deviation: Hadoop's DataNode refuses; who recovers passes over such an answer
    /// there too.
    ///
    /// Of a finalized one that may have lost its end, a recovery is told what it is told of others whose node has been
    /// down: others may have more. Deviation: Hadoop's DataNode says that it is finalized, and it decides.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#initReplicaRecovery`.
    pub fn init_recovery(
        &mut self,
        gs: GenerationStamp,
        recovery_id: GenerationStamp,
    ) -> Result<RecoveryInfo, ReplicaError> {
        if self.is_unread {
            return Err(self.invalid("What the replica holds could not be read"));
        }
        if self.state.is_in_pipeline() && self.on_disk_len < self.visible_len().unwrap_or(0) {
            return Err(self.length(self.on_disk_len, self.acked_len, u64::MAX));
        }
        let held = self.recovery.map_or(self.state, |held| held.original);
        let original = match held {
            ReplicaState::Finalized if self.may_be_torn => ReplicaState::Rwr,
            held => held,
        };
        let info = RecoveryInfo { id: self.id, gs: self.gs, len: self.on_disk_len, original };
        if self.gs < gs {
            return Ok(info);
        }
        if self.gs >= recovery_id {
            return Err(self.invalid("replica.getGenerationStamp() >= recoveryId"));
        }
        if let Some(held) = self.recovery.filter(|held| held.id >= recovery_id) {
            return Err(ReplicaError::RecoveryInProgress {
                block: self.id,
                held: held.id,
                asked: recovery_id,
            });
        }
        self.recovery = Some(Recovery { id: recovery_id, original: held });
        self.state = ReplicaState::Rur;
        Ok(info)
    }

    /// Whether the recovery `recovery_id` may set the replica to `new_len` bytes; it said before that the
    /// replica holds `old_len`.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#updateReplicaUnderRecovery`.
    pub fn check_finish_recovery(
        &self,
        recovery_id: GenerationStamp,
        old_len: u64,
        new_len: u64,
    ) -> Result<(), ReplicaError> {
        let Some(held) = self.recovery else {
            return Err(self.invalid("replica.getState() != RUR"));
        };
        if held.id != recovery_id {
            return Err(self.invalid("rur.getRecoveryID() != recoveryId"));
        }
        self.check_len(self.on_disk_len, old_len, old_len)?;
        if self.on_disk_len < new_len {
            return Err(self.length(self.on_disk_len, new_len, u64::MAX));
        }
        Ok(())
    }

    /// Ends the recovery: the replica is finalized with `new_len` bytes under the recovery's stamp.
    pub fn finish_recovery(&mut self, recovery_id: GenerationStamp, new_len: u64) {
        self.settle(new_len);
        self.gs = recovery_id;
        self.state = ReplicaState::Finalized;
        (self.recovery, self.may_be_torn) = (None, false);
    }

    /// Where the files lie: a replica under recovery stays where it was.
    pub fn place(&self) -> ReplicaState {
        self.recovery.map_or(self.state, |r| r.original)
    }

    fn is_left_open(&self, gs: GenerationStamp) -> bool {
        self.state == ReplicaState::Rbw && self.gs == gs
    }

    fn check_recover(
        &self,
        gs: GenerationStamp,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<(), ReplicaError> {
        if !matches!(self.state, ReplicaState::Finalized | ReplicaState::Rbw) {
            return Err(self.not_found(
                "Cannot recover append/close to a replica that's not FINALIZED and not RBW",
            ));
        }
        self.check_stamp(gs, new_gs)?;
        let settled = self.received_len == self.on_disk_len && self.received_len == self.acked_len;
        if self.state == ReplicaState::Rbw && !settled {
            return Err(ReplicaError::Unsettled {
                block: self.id,
                gs: self.gs,
                received: self.received_len,
                on_disk: self.on_disk_len,
                acked: self.acked_len,
            });
        }
        self.check_len(self.received_len, len, len)
    }

    fn check_stamp(
        &self,
        least: GenerationStamp,
        most: GenerationStamp,
    ) -> Result<(), ReplicaError> {
        if self.gs < least || self.gs > most {
            return Err(ReplicaError::StampOutOfRange { found: self.gs, least, most });
        }
        Ok(())
    }

    fn check_len(&self, found: u64, least: u64, most: u64) -> Result<(), ReplicaError> {
        if found < least || found > most { Err(self.length(found, least, most)) } else { Ok(()) }
    }

    fn reopen(&mut self, gs: GenerationStamp) {
        self.gs = gs;
        // It has all that its writer counts on.
        (self.state, self.may_be_torn) = (ReplicaState::Rbw, false);
    }

    fn settle(&mut self, len: u64) {
        (self.received_len, self.on_disk_len, self.acked_len) = (len, len, len);
    }

    fn not_found(&self, reason: &'static str) -> ReplicaError {
        ReplicaError::NotFound { block: self.id, gs: self.gs, reason }
    }

    fn exists(&self) -> ReplicaError {
        ReplicaError::AlreadyExists { block: self.id, gs: self.gs, state: self.state }
    }

    fn invalid(&self, reason: &'static str) -> ReplicaError {
        ReplicaError::Invalid { block: self.id, gs: self.gs, state: self.state, reason }
    }

    fn length(&self, found: u64, least: u64, most: u64) -> ReplicaError {
        ReplicaError::LengthOutOfRange { block: self.id, gs: self.gs, found, least, most }
    }
}
