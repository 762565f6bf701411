//! The memory of RAM_DISK volumes, and who holds it.
//!
//! Source: Hadoop 3.5.0 `RamDiskReplicaTracker`.

use crate::memory::{LockedMemory, Reservation};
use crate::volume::{ReplicaFiles, Volume};
use cairn_process::held::held;
use cairn_replica::{RamDisk, Replica, ReplicaState, Ticket};
use cairn_stripe::BlockId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// What has become of replicas in memory since the start, and how it stands.
///
/// Source: Hadoop 3.5.0 `DataNodeMetrics` (`RamDisk…`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RamDiskStats {
    /// Most bytes of memory for replicas: `dfs.datanode.max.locked.memory`.
    pub limit: u64,
    /// Bytes of replicas on RAM_DISK volumes, whole pages.
    pub used: u64,
    /// Replicas that wait to be saved.
    pub unsaved: u64,
    /// Replicas that were begun in memory.
    pub blocks_written: u64,
    /// Those that should have been, and went to a disk.
    pub write_fallbacks: u64,
    /// Bytes of complete replicas in memory.
    pub bytes_written: u64,
    /// Replicas opened for reading in memory.
    pub read_hits: u64,
    /// Replicas that have left memory for their saved copies.
    pub evicted: u64,
    /// Those of them that nobody had read.
    pub evicted_without_read: u64,
    /// Replicas saved on disks.
    pub blocks_saved: u64,
    /// Bytes of these.
    pub bytes_saved: u64,
    /// Replicas deleted before they were saved.
    pub deleted_before_saved: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) blocks_written: AtomicU64,
    pub(super) write_fallbacks: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) read_hits: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) evicted_without_read: AtomicU64,
    pub(super) blocks_saved: AtomicU64,
    pub(super) bytes_saved: AtomicU64,
    pub(super) deleted_before_saved: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    disk: Mutex<RamDisk>,
    pub(super) counts: Counts,
}

impl Shared {
    pub(super) fn disk(&self) -> MutexGuard<'_, RamDisk> {
        held(&self.disk)
    }
}

/// The memory of the RAM_DISK volumes.
#[derive(Debug)]
pub(super) struct Ram {
    pub(super) memory: LockedMemory,
    pub(super) shared: Arc<Shared>,
    /// Replicas that are served from a disk now, which the NameNode is to be told.
    pub(super) moved: Mutex<Vec<BlockId>>,
    pub(super) has_moved: Notify,
}

impl Ram {
    pub(super) fn new(memory: LockedMemory) -> Ram {
        let shared = Arc::default();
        Ram { memory, shared, moved: Mutex::default(), has_moved: Notify::new() }
    }

    pub(super) fn hold(&self, id: BlockId, memory: Reservation) -> Hold {
        let ticket = self.shared.disk().open(id, memory.len());
        Hold { shared: self.shared.clone(), ticket, memory, saved: None, is_passing: false }
    }

    /// The hold on memory of a replica that was found on `volume`, if that is memory.
    pub(super) fn found(&self, replica: &Replica, volume: &Volume) -> Option<Hold> {
        volume.is_ram().then(|| {
            let mut hold = self.hold(replica.id(), self.memory.found(replica.on_disk_len()));
            if replica.state() == ReplicaState::Finalized {
                hold.note_finalized(replica.on_disk_len());
            }
            hold
        })
    }
}

/// The files of a saved copy, and where they are.
pub(super) type Saved = (ReplicaFiles, Arc<Volume>);

/// Memory of one replica; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) shared: Arc<Shared>,
    pub(super) ticket: Ticket,
    pub(super) memory: Reservation,
    /// Where the lazy writer has saved a copy with the replica's stamp and length.
    pub(super) saved: Option<Arc<Volume>>,
    /// It leaves memory as soon as it is saved: it is there only so that a block which is soon put into a group needs
    /// no second disk.
    pub(super) is_passing: bool,
}

impl Hold {
    /// Somebody reads the replica.
    pub(super) fn note_read(&self) {
        self.shared.disk().read(self.ticket);
        count(&self.shared.counts.read_hits, 1);
    }

    /// The replica is deleted.
    pub(super) fn note_deleted(&self) {
        if self.saved.is_none() {
            count(&self.shared.counts.deleted_before_saved, 1);
        }
    }

    /// A writer has completed the replica.
    pub(super) fn note_written(&mut self, len: u64) {
        self.note_finalized(len);
        count(&self.shared.counts.bytes_written, len);
    }

    /// The replica is finalized with `len` bytes.
    pub(super) fn note_finalized(&mut self, len: u64) {
        self.memory.resize(len);
        self.shared.disk().finalized(self.ticket, self.memory.len());
    }

    /// The files of the saved copy of `replica`, and its volume.
    pub(super) fn saved_files(&self, replica: &Replica) -> Option<(ReplicaFiles, &Arc<Volume>)> {
        let volume = self.saved.as_ref()?;
        let dir = volume.pool().ok()?.saved_dir(replica.id());
        Some((ReplicaFiles::in_dir(&dir, replica.id(), replica.gs()), volume))
    }

    /// The replica is to be changed: its saved copy, which was in `saved`, does not count any more.
    pub(super) fn void_saved(&mut self, replica: &Replica) -> Option<Saved> {
        let files = self.saved_files(replica).map(|(files, volume)| (files, volume.clone()));
        self.saved = None;
        self.shared.disk().reopened(self.ticket);
        files
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.disk().remove(self.ticket);
    }
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
