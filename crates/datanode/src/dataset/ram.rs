//! Replicas on RAM_DISK volumes: their memory, the copies saved on disks, and the change to those.
//!
//! A replica goes to memory if its writer asks for it and `dfs.datanode.max.locked.memory` has room, perhaps after
//! saved ones have left. The lazy writer saves a copy below `lazypersist` of another volume; when the replica leaves
//! memory, or its RAM_DISK volume is lost, that copy moves among the finalized ones and is served. What is decided
//! without files is in `cairn_replica::RamDisk`. Locked after the map. Tested in `tests/it/ram_disk.rs`, `ram/tests.rs`.
//!
//! Source: Hadoop 3.5.0 `FsDatasetImpl` (`LazyWriter`), `RamDiskReplicaTracker`.

use super::files::{move_files, remove};
use super::memory::{Counts, Hold, RamDiskStats, count};
use super::relocate::Origin;
use super::{Block, Dataset, Entry, Finalized, Home, Placed, StorageWish, blocking};
use crate::budget::Budget;
use crate::error::Result;
use crate::memory::LockedMemory;
use crate::volume::{ReplicaFiles, Volume};
use cairn_process::disk_work::may_wait;
use cairn_process::held::held;
use cairn_replica::{Replica, ReplicaState, Ticket};
use cairn_stripe::BlockId;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a replica leaves in memory when its saved copy takes its place. The memory counts until this is dropped.
struct Remains {
    files: ReplicaFiles,
    volume: Arc<Volume>,
    hold: Hold,
}

impl Remains {
    fn delete(&self) {
        self.volume.sub_used(self.files.size());
        remove(&self.files);
    }
}

impl Dataset {
    /// What memory replicas may take.
    pub(crate) fn memory(&self) -> &LockedMemory {
        &self.ram.memory
    }

    /// Whether there is a RAM_DISK volume.
    pub(crate) fn has_ram_disk(&self) -> bool {
        self.volumes().iter().any(|volume| volume.is_ram())
    }

    /// What has become of replicas in memory.
    pub(crate) fn ram_disk_stats(&self) -> RamDiskStats {
        let Counts {
            blocks_written,
            write_fallbacks,
            bytes_written,
            read_hits,
            evicted,
            evicted_without_read,
            blocks_saved,
            bytes_saved,
            deleted_before_saved,
        } = &self.ram.shared.counts;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let disk = self.ram.shared.disk();
        RamDiskStats {
            limit: self.ram.memory.limit(),
            used: disk.bytes(),
            unsaved: disk.unsaved_len() as u64,
            blocks_written: get(blocks_written),
            write_fallbacks: get(write_fallbacks),
            bytes_written: get(bytes_written),
            read_hits: get(read_hits),
            evicted: get(evicted),
            evicted_without_read: get(evicted_without_read),
            blocks_saved: get(blocks_saved),
            bytes_saved: get(bytes_saved),
            deleted_before_saved: get(deleted_before_saved),
        }
    }

    /// A RAM_DISK volume and memory for a replica of `len` bytes, if they can be had: saved ones may have to leave.
    /// Blocking.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#createRbw`, `#reserveLockedMemory`.
    pub(super) fn choose_memory(&self, id: BlockId, len: u64) -> Option<(Arc<Volume>, Hold)> {
        let chosen = self.ram_volume(len).and_then(|volume| Some((volume, self.reserve(id, len)?)));
        let counts = &self.ram.shared.counts;
        let counter = match chosen {
            Some(_) => &counts.blocks_written,
            None => &counts.write_fallbacks,
        };
        count(counter, 1);
        chosen
    }

    fn ram_volume(&self, len: u64) -> Option<Arc<Volume>> {
        let room = |volume: &Arc<Volume>| volume.usage().map_or(0, |usage| usage.remaining);
        let volumes = self.volumes();
        let in_memory = volumes.iter().filter(|volume| volume.is_ram() && !volume.is_failed());
        // What leaves memory makes room on its volume too.
        let takes = self.ram.memory.takes(len);
        in_memory.filter(|_| takes).max_by_key(|volume| room(volume)).cloned()
    }

    fn reserve(&self, id: BlockId, len: u64) -> Option<Hold> {
        loop {
            if let Some(memory) = self.ram.memory.reserve(len) {
                return Some(self.ram.hold(id, memory));
            }
            let can_be_had = self.ram.memory.free() + self.ram.shared.disk().evictable();
            if can_be_had < len || !self.evict_next() {
                return None;
            }
        }
    }

    /// Lets the saved replica that was used longest ago leave memory. `false` if none can now.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl.LazyWriter#evictBlocks`.
    fn evict_next(&self) -> bool {
        let Some((ticket, id)) = self.ram.shared.disk().next_victim() else { return false };
        let _turn = self.turns.take_blocking(id);
        let has_left = self.evict(id, ticket);
        if !has_left {
            self.ram.shared.disk().not_evicted(ticket);
        }
        has_left
    }

    /// Has a saved replica leave memory, if it is at rest. The caller has the turn.
    fn evict(&self, id: BlockId, ticket: Ticket) -> bool {
        let Some(remains) = self.serve_saved(id, |entry| is_at_rest(entry, ticket)) else {
            return false;
        };
        remains.delete();
        let counts = &self.ram.shared.counts;
        count(&counts.evicted, 1);
        let was_read = self.ram.shared.disk().remove(remains.hold.ticket).map(|l| l.was_read);
        if was_read == Some(false) {
            count(&counts.evicted_without_read, 1);
        }
        true
    }

    /// Lets the saved copy of a replica that is as `is_meant` says take its place; `None` if there is none, or its disk
    /// does not do it, in which case there is none any more. The caller has the turn.
    ///
    /// Source: Hadoop 3.5.0 `BlockPoolSlice#activateSavedReplica`.
    fn serve_saved(&self, id: BlockId, is_meant: impl Fn(&Entry) -> bool) -> Option<Remains> {
        let (found, (from, volume)) = {
            let map = self.lock();
            let entry = map.get(&id).filter(|entry| is_meant(entry))?;
            let (from, volume) = entry.ram.as_ref()?.saved_files(&entry.replica)?;
            (Placed::of(entry), (from, volume.clone()))
        };
        let gs = found.replica.gs();
        let moved = volume.pool().and_then(|pool| {
            let dir = pool.finalized_dir(id);
            volume.make_leaf_dir(&dir, self.is_stable())?;
            // A start finds the copy under either name.
            move_files(&volume, &from, &ReplicaFiles::in_dir(&dir, id, gs))?;
            found.volume.files(id, gs, ReplicaState::Finalized)
        });
        let mut map = self.lock();
        let entry = map.get_mut(&id)?;
        match moved {
            Ok(files) => {
                let hold = entry.ram.take()?;
                let ram = std::mem::replace(&mut entry.volume, Home::on(volume)).clone();
                held(&self.ram.moved).push(id);
                self.ram.has_moved.notify_one();
                Some(Remains { files, volume: ram, hold })
            }
            Err(error) => {
                tracing::warn!(block = %id, %error, "cannot use the saved copy of a replica in memory");
                self.lose_saved(entry);
                None
            }
        }
    }

    /// Deletes the saved copy of a replica that is to be changed, if there is one. The caller has the turn.
    pub(super) fn void_saved(&self, replica: &Replica) {
        let saved = {
            let mut map = self.lock();
            let hold = map.get_mut(&replica.id()).and_then(|entry| entry.ram.as_mut());
            hold.and_then(|hold| hold.void_saved(replica))
        };
        if let Some((files, volume)) = saved {
            volume.sub_used(files.size());
            remove(&files);
        }
    }

    /// The saved copy of a replica is lost: it is to be saved again.
    fn lose_saved(&self, entry: &mut Entry) {
        if let Some(hold) = &mut entry.ram {
            hold.saved = None;
            self.ram.shared.disk().not_saved(hold.ticket);
        }
    }

    /// Serves what was in memory on a volume that has failed from the copies that are saved. Blocking.
    pub(super) fn serve_all_saved(&self, failed: &Volume) {
        let in_memory: Vec<BlockId> = {
            let map = self.lock();
            let here = map.iter().filter(|(_, e)| e.ram.is_some() && e.is_on(failed));
            here.map(|(id, _)| *id).collect()
        };
        for id in in_memory {
            let _turn = self.turns.take_blocking(id);
            // What is in memory is lost already.
            drop(self.serve_saved(id, |entry| entry.is_on(failed)));
        }
    }

    /// Whether a replica is still there when its volume, or the one of its saved copy, has failed. The caller holds
    /// the map's lock.
    pub(super) fn survives(&self, entry: &mut Entry, failed: &Volume) -> bool {
        if entry.is_on(failed) {
            return false;
        }
        let saved = entry.ram.as_ref().and_then(|hold| hold.saved.as_ref());
        if saved.is_some_and(|volume| volume.storage_id() == failed.storage_id()) {
            self.lose_saved(entry);
        }
        true
    }

    /// Serves a replica from its saved copy if its file in memory has vanished.
    pub(super) fn serve_saved_if_vanished(&self, id: BlockId) {
        let is_in_memory = |entry: &Entry| entry.ram.is_some();
        if !self.lock().get(&id).is_some_and(is_in_memory) {
            return;
        }
        may_wait(|| {
            let _turn = self.turns.take_blocking(id);
            let has_vanished = self.placed(id).is_some_and(|found| vanished(&found));
            if has_vanished && self.serve_saved(id, is_in_memory).is_some() {
                tracing::warn!(block = %id, "a replica has vanished from memory: its saved copy is served");
            }
        });
    }

    /// A client reads a replica, which may be in memory.
    pub(crate) fn note_read_in_memory(&self, id: BlockId) {
        let map = self.lock();
        if let Some(hold) = map.get(&id).and_then(|entry| entry.ram.as_ref()) {
            hold.note_read();
        }
    }

    /// Saves the replica in memory that waits longest; `None` if none waits.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl.LazyWriter#saveNextReplica`.
    pub(crate) async fn save_next(self: &Arc<Self>) -> Option<(BlockId, Result<()>)> {
        let (ticket, id) = self.ram.shared.disk().next_unsaved()?;
        let saved = self.save(ticket, id).await;
        if saved.is_err() {
            self.ram.shared.disk().not_saved(ticket);
        }
        Some((id, saved))
    }

    async fn save(self: &Arc<Self>, ticket: Ticket, id: BlockId) -> Result<()> {
        let origin = {
            let map = self.lock();
            let Some(entry) = map.get(&id).filter(|entry| is_at_rest(entry, ticket)) else {
                // Gone, or somebody is at it: its writer may be about to leave.
                drop(map);
                self.ram.shared.disk().not_saved(ticket);
                return Ok(());
            };
            Origin::of(entry)
        };
        let target = self.choose_volume(&StorageWish::default(), origin.len)?;
        let block = Block {
            pool: self.pool_id().unwrap_or_default().into(),
            id,
            gs: origin.gs,
            len: origin.len,
        };
        let view = self.try_open_read(&block)?;
        let copy = self.copy_to(origin, target, view, &Budget::new(0)).await?;
        let dataset = self.clone();
        blocking(move || {
            let (origin, target) = (copy.origin(), copy.target());
            let is_still = |entry: &Entry| is_at_rest(entry, ticket) && origin.is(&entry.replica);
            let placed = dataset.place(&copy, &target.pool()?.saved_dir(id), is_still)?;
            let Some((files, turn)) = placed else {
                dataset.ram.shared.disk().not_saved(ticket);
                return Ok(());
            };
            let size = files.size();
            let is_passing = {
                let mut map = dataset.lock();
                let is_meant = |entry: &&mut Entry| is_still(entry) && !target.is_failed();
                let entry = map.get_mut(&id).filter(is_meant);
                let hold = entry.and_then(|entry| entry.ram.as_mut());
                hold.map(|hold| {
                    hold.saved = Some(target.clone());
                    hold.is_passing
                })
            };
            let Some(is_passing) = is_passing else {
                dataset.discard(id, &files);
                dataset.ram.shared.disk().not_saved(ticket);
                return Ok(());
            };
            target.add_used(size);
            dataset.ram.shared.disk().saved(ticket);
            let counts = &dataset.ram.shared.counts;
            count(&counts.blocks_saved, 1);
            count(&counts.bytes_saved, origin.len);
            if is_passing {
                dataset.evict(id, ticket);
            }
            drop(turn);
            Ok(())
        })
        .await
    }

    /// Waits until replicas are served from disks that were in memory, and tells which.
    pub(crate) async fn left_memory(self: &Arc<Self>) -> Result<Vec<Finalized>> {
        self.ram.has_moved.notified().await;
        let moved = {
            let mut moved = held(&self.ram.moved);
            std::mem::take(&mut *moved)
        };
        let dataset = self.clone();
        // Those that are deleted by now need no report.
        let told =
            move || Ok(moved.into_iter().filter_map(|id| dataset.summary(id).ok()).collect());
        blocking(told).await
    }
}

/// Whether an entry is the finalized replica that `ticket` was given, with nobody at it.
fn is_at_rest(entry: &Entry, ticket: Ticket) -> bool {
    let is_it = entry.ram.as_ref().is_some_and(|hold| hold.ticket == ticket);
    is_it && entry.writer.is_none() && entry.replica.state() == ReplicaState::Finalized
}

fn vanished(found: &Placed) -> bool {
    let is_missing = |files: ReplicaFiles| {
        [files.data, files.meta].iter().any(|path| {
            matches!(std::fs::metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
        })
    };
    found.files().is_ok_and(is_missing)
}

#[cfg(test)]
mod tests;
