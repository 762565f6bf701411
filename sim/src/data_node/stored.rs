//! One replica with its bytes, which a fault can change behind the back of its CRCs.

use crate::bytes::Bytes;
use crate::rng::Rng;
use cairn_codec::crc::{ChecksumKind, chunk_crcs, crc32c};
use cairn_redundancy::{BlockRef, ReplicaState as Reported, ReportedReplica};
use cairn_replica::{Checksum, Replica, ReplicaError, ReplicaState};
use std::collections::BTreeMap;

/// Bytes that one CRC covers.
pub(crate) const CHUNK_LEN: u64 = 512;
/// How all replicas are checked.
pub(crate) const CHECKSUM: Checksum =
    Checksum { kind: ChecksumKind::Crc32c, chunk_len: CHUNK_LEN as usize };

/// Why a DataNode cannot do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeError {
    /// The replica does not allow it.
    Replica(ReplicaError),
    /// There is no such replica.
    NotFound,
    /// A chunk and its CRC do not fit.
    Damaged,
    /// No volume has room.
    NoRoom,
}

impl From<ReplicaError> for NodeError {
    fn from(error: ReplicaError) -> NodeError {
        NodeError::Replica(error)
    }
}

/// A replica with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) replica: Replica,
    pub(crate) data: Bytes,
    /// Bytes that survive a power cut.
    pub(super) synced: u64,
    /// Bits that a fault has flipped since they were written, by the place of their byte.
    pub(crate) damaged: BTreeMap<u64, u8>,
    /// A fault has taken the end of it.
    pub(crate) is_torn: bool,
    pub(crate) volume: usize,
}

impl Stored {
    /// CRC32C of the bytes as their chunks' CRCs tell it, which a damaged chunk does not change.
    pub(super) fn stored_crc(&self) -> u32 {
        crc32c(0, &self.written())
    }

    /// The CRCs of all chunks.
    pub(super) fn chunk_crcs(&self) -> Vec<u8> {
        let Checksum { kind, chunk_len } = CHECKSUM;
        let mut crcs = vec![0; kind.total_len(chunk_len, self.data.len())];
        chunk_crcs(kind, chunk_len, &self.written(), &mut crcs);
        crcs
    }

    /// The bytes as they were written.
    fn written(&self) -> Vec<u8> {
        let mut written = self.data.to_vec();
        for (at, flipped) in &self.damaged {
            written[*at as usize] ^= flipped;
        }
        written
    }

    pub(super) fn check_last_chunk(&self) -> Result<(), NodeError> {
        let last = (self.data.len() as u64).saturating_sub(1) / CHUNK_LEN * CHUNK_LEN;
        match self.damaged.range(last..).next() {
            Some(_) => Err(NodeError::Damaged),
            None => Ok(()),
        }
    }

    /// A chunk of which only a part stays gets a new CRC, and so must match its old one.
    pub(super) fn check_cut(&self, len: u64) -> Result<(), NodeError> {
        let chunk = len / CHUNK_LEN * CHUNK_LEN..len.next_multiple_of(CHUNK_LEN);
        match self.data.len() as u64 > len && self.damaged.range(chunk).next().is_some() {
            true => Err(NodeError::Damaged),
            false => Ok(()),
        }
    }

    pub(super) fn cut(&mut self, len: u64) {
        self.data.truncate(len as usize);
        self.synced = self.synced.min(len);
        self.damaged.retain(|at, _| *at < len);
    }

    /// Flips a bit behind the CRCs' back.
    pub(crate) fn flip(&mut self, rng: &mut Rng) -> bool {
        if self.data.is_empty() || !self.damaged.is_empty() {
            return false;
        }
        let at = rng.index(self.data.len());
        let flipped = 1 << rng.range(0, 8);
        self.data[at] ^= flipped;
        self.damaged.insert(at as u64, flipped);
        true
    }
}

/// A line of a full report as it arrives.
pub(super) fn reported(told: cairn_replica::report::ReportedReplica) -> ReportedReplica {
    let state = match told.state {
        ReplicaState::Finalized => Reported::Finalized,
        ReplicaState::Rbw => Reported::BeingWritten,
        ReplicaState::Rwr => Reported::WaitingToBeRecovered,
        ReplicaState::Rur => Reported::UnderRecovery,
        ReplicaState::Temporary => Reported::Temporary,
    };
    let block = BlockRef { id: told.id, gs: told.gs, len: told.len };
    ReportedReplica { block, state, crc32c: None }
}
