//! Moves a finalized replica to another volume of this DataNode.
//!
//! The copy is whole, checked and durable among the finalized replicas of the new volume before the map
//! points there; only then do the old files go. A crash between leaves two equal ones. A block has one copy made at a
//! time, which gets its names only while the map has what was copied: else they may be those of a live replica.

use super::files::{move_files, remove, remove_file};
use super::{
    Block, Dataset, Entry, Finalized, Home, ReadView, StorageWish, Turn, blocking, not_found,
};
use crate::budget::Budget;
use crate::error::{Context, DataNodeError, Result};
use crate::volume::{ReplicaFiles, Volume};
use cairn_codec::crc;
use cairn_process::disk_work::quick;
use cairn_replica::{Replica, ReplicaError, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes copied in one step.
const STEP: u64 = 1 << 20;

/// Tells copies of one block that run at the same time apart.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// A replica as it is when its move begins.
pub(super) struct Origin {
    id: BlockId,
    pub(super) gs: GenerationStamp,
    pub(super) len: u64,
    volume: Arc<Volume>,
}

impl Origin {
    pub(super) fn of(entry: &Entry) -> Origin {
        let replica = &entry.replica;
        let (id, gs, len) = (replica.id(), replica.gs(), replica.on_disk_len());
        Origin { id, gs, len, volume: entry.volume.clone() }
    }

    /// Whether `replica` is still what was copied.
    pub(super) fn is(&self, replica: &Replica) -> bool {
        replica.state() == ReplicaState::Finalized
            && (replica.gs(), replica.on_disk_len()) == (self.gs, self.len)
    }

    /// Whether an entry is still what was copied, where it was, with nobody at it.
    fn is_still(&self, entry: &Entry) -> bool {
        entry.writer.is_none() && self.is(&entry.replica) && entry.is_on(&self.volume)
    }

    fn changed(&self) -> DataNodeError {
        let reason = "The replica was changed while it was moved";
        ReplicaError::NotFound { block: self.id, gs: self.gs, reason }.into()
    }
}

/// A replica's bytes on another volume of this DataNode, not a replica yet. They go if this is dropped.
pub(crate) struct Relocation {
    origin: Origin,
    target: Arc<Volume>,
    view: Arc<ReadView>,
    data: Arc<File>,
    copy: Unfinished,
    /// Both held until the copy counts.
    _room: Room,
    _turn: Turn,
}

impl Relocation {
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn target(&self) -> &Arc<Volume> {
        &self.target
    }
}

/// Room set aside on a volume.
struct Room {
    volume: Arc<Volume>,
    bytes: u64,
}

impl Room {
    fn new(volume: &Arc<Volume>, bytes: u64) -> Room {
        volume.promise(bytes);
        Room { volume: volume.clone(), bytes }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.volume.release(self.bytes);
    }
}

impl Dataset {
    /// Copies the bytes of a finalized replica to the wished storage, or to one of the wished type, checking each
    /// against its CRC. Nothing stays of it if the caller goes away.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#moveBlockAcrossStorage`.
    pub(crate) async fn copy_to_volume(
        &self,
        block: &Block,
        wish: &StorageWish,
        budget: &Budget,
    ) -> Result<Relocation> {
        self.check_pool(&block.pool)?;
        let origin = self.origin(block)?;
        let target = self.volume_to_move_to(&origin, wish)?;
        let view = self.open_read(block, 0).await?;
        self.copy_to(origin, target, view, budget).await
    }

    /// Copies a replica's bytes to `target`, checking each against its CRC.
    pub(super) async fn copy_to(
        &self,
        origin: Origin,
        target: Arc<Volume>,
        view: ReadView,
        budget: &Budget,
    ) -> Result<Relocation> {
        let Some(turn) = self.copying.try_take(origin.id) else {
            return Err(DataNodeError::peer(format!("{} is being moved already", origin.id)));
        };
        let room = Room::new(&target, origin.len);
        let view = Arc::new(view);
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let tmp = target.pool()?.tmp.join(format!("move-{number}-{}", origin.id));
        let copy = Unfinished(ReplicaFiles { data: tmp.with_extension("blk"), meta: tmp });
        let data = target.quick(|| File::create(&copy.0.data)).at(&copy.0.data)?;
        let data = Arc::new(data);
        let step = STEP.next_multiple_of(view.checksum.chunk_len as u64);
        let mut at = 0;
        while at < origin.len {
            let end = (at + step).min(origin.len);
            budget.pass(end - at).await;
            let (view, data, path) = (view.clone(), data.clone(), copy.0.data.clone());
            blocking(move || {
                let bytes = checked_bytes(&view, at, end)?;
                data.write_all_at(&bytes, at).at(&path)
            })
            .await?;
            at = end;
        }
        Ok(Relocation { origin, target, view, data, copy, _room: room, _turn: turn })
    }

    /// Makes the copy the replica. The old one stays if anything fails, or if it was changed meanwhile. Runs to its
    /// end even if the caller goes away.
    pub(crate) async fn relocate(self: &Arc<Self>, relocation: Relocation) -> Result<Finalized> {
        let dataset = self.clone();
        blocking(move || {
            let Relocation { origin, target, .. } = &relocation;
            let dir = target.pool()?.finalized_dir(origin.id);
            let placed = dataset.place(&relocation, &dir, |entry| origin.is_still(entry))?;
            let (files, _turn) = placed.ok_or_else(|| origin.changed())?;
            dataset.switch_over(origin, target, &files)
        })
        .await
    }

    fn origin(&self, block: &Block) -> Result<Origin> {
        let map = self.lock();
        let entry = map.get(&block.id).ok_or_else(|| not_found(block))?;
        let replica = &entry.replica;
        if replica.state() != ReplicaState::Finalized || replica.gs() != block.gs {
            let reason = "Cannot move an unfinalized or other replica";
            return Err(ReplicaError::NotFound { block: block.id, gs: block.gs, reason }.into());
        }
        let len = replica.on_disk_len();
        if len != block.len {
            return Err(DataNodeError::peer(format!(
                "Corrupted replica {} with a length of {len} expected length is {}",
                block.id, block.len
            )));
        }
        match entry.volume.is_ram() {
            true => Err(cannot_move(block.id)),
            false => Ok(Origin::of(entry)),
        }
    }

    fn volume_to_move_to(&self, origin: &Origin, wish: &StorageWish) -> Result<Arc<Volume>> {
        let here = origin.volume.storage_id();
        let named = !wish.storage_id.is_empty() && wish.storage_id != here;
        if origin.volume.storage_type() == wish.storage_type && !named {
            let Origin { id, gs, .. } = *origin;
            let state = ReplicaState::Finalized;
            return Err(ReplicaError::AlreadyExists { block: id, gs, state }.into());
        }
        let room = |volume: &Volume| volume.usage().map_or(0, |usage| usage.remaining);
        let volumes = self.volumes();
        let others = volumes.iter().filter(|volume| {
            let of_type = volume.storage_type() == wish.storage_type;
            of_type && volume.storage_id() != here && !volume.is_failed() && !volume.is_ram()
        });
        let best = others.max_by_key(|v| (v.storage_id() == wish.storage_id, room(v)));
        let most = best.map_or(0, |volume| room(volume));
        best.filter(|_| most >= origin.len)
            .cloned()
            .ok_or(DataNodeError::NoSpace { most, needed: origin.len })
    }

    /// Brings both files to `dir` on the target, durably if so configured; `None` if the replica is not as `is_still`
    /// wants any more. Comes with the block's turn: only who has that may let the map point there. Blocking.
    pub(super) fn place(
        &self,
        relocation: &Relocation,
        dir: &Path,
        is_still: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(ReplicaFiles, Turn)>> {
        let Relocation { origin, target, view, data, copy: Unfinished(copy), .. } = relocation;
        let to = ReplicaFiles::in_dir(dir, origin.id, origin.gs);
        view.copy_meta(&copy.meta)?;
        let is_stable = self.is_stable();
        target.make_leaf_dir(dir, is_stable)?;
        if is_stable {
            target.sync(data, &copy.data)?;
            target.sync(&File::open(&copy.meta).at(&copy.meta)?, &copy.meta)?;
        }
        target.check_not_failed()?;
        let turn = self.turns.take_blocking(origin.id);
        if !self.lock().get(&origin.id).is_some_and(is_still) {
            return Ok(None);
        }
        move_files(target, copy, &to)?;
        if is_stable {
            target.sync_dir(dir).inspect_err(|_| self.discard(origin.id, &to))?;
        }
        Ok(Some((to, turn)))
    }

    /// Deletes a copy that is not to be used, but for names that the replica has by now. The caller has the turn.
    pub(super) fn discard(&self, id: BlockId, copy: &ReplicaFiles) {
        let live = self.placed(id).and_then(|live| live.files().ok());
        for path in [&copy.data, &copy.meta] {
            if live.as_ref().is_none_or(|live| *path != live.data && *path != live.meta) {
                remove_file(path);
            }
        }
    }

    /// Lets the map point to the copy, and deletes the old files. The caller has the turn. Blocking.
    fn switch_over(
        &self,
        origin: &Origin,
        target: &Arc<Volume>,
        copy: &ReplicaFiles,
    ) -> Result<Finalized> {
        let Origin { id, gs, .. } = *origin;
        let size = copy.size();
        let old = origin.volume.files(id, gs, ReplicaState::Finalized)?;
        let is_done = {
            let mut map = self.lock();
            let unchanged =
                map.get_mut(&id).filter(|entry| origin.is_still(entry) && !target.is_failed());
            unchanged.map(|entry| {
                entry.volume = Home::on(target.clone());
                entry.kept = None;
            })
        };
        if is_done.is_none() {
            self.discard(id, copy);
            return Err(origin.changed());
        }
        target.add_used(size);
        origin.volume.sub_used(old.size());
        remove(&old);
        self.summary(id)
    }
}

/// The bytes `at..end`, which begin at a chunk, if they have their CRCs.
fn checked_bytes(view: &ReadView, at: u64, end: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (end - at) as usize];
    view.read_at(at, &mut bytes)?;
    let mut crcs = Vec::new();
    view.crcs(at, end, &mut crcs)?;
    let checksum = view.checksum;
    crc::verify_chunks(checksum.kind, checksum.chunk_len, &bytes, &crcs)
        .map_err(|bad| DataNodeError::Checksum(format!("at {at}: {bad}")))?;
    Ok(bytes)
}

/// The refusal to move a replica that is in memory.
///
/// Source: Hadoop 3.5.0 `FsDatasetImpl#moveBlockAcrossStorage`.
fn cannot_move(id: BlockId) -> DataNodeError {
    DataNodeError::peer(format!("Replica {id} cannot be moved from storageType : RAM_DISK"))
}

/// Files that are deleted unless they were moved away.
struct Unfinished(ReplicaFiles);

impl Drop for Unfinished {
    fn drop(&mut self) {
        quick(|| {
            // What was moved away is not there any more.
            let _ = fs::remove_file(&self.0.data);
            let _ = fs::remove_file(&self.0.meta);
        });
    }
}

#[cfg(test)]
mod tests;
