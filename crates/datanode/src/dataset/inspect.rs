//! What the scanners ask of the replicas, and what they change when a disk was changed behind our back.

use super::{Block, Dataset, Entry, Finalized, not_found};
use crate::error::{Context, Result};
use crate::volume::{ReplicaFiles, Volume};
use cairn_replica::{Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

impl Dataset {
    /// A replica's volume.
    pub(crate) fn volume_of(&self, id: BlockId) -> Option<Arc<Volume>> {
        self.lock().get(&id).map(|entry| entry.volume.clone())
    }

    /// A finalized replica and its volume.
    pub(crate) fn finalized(&self, id: BlockId) -> Option<(Replica, Arc<Volume>)> {
        let map = self.lock();
        let entry = map.get(&id).filter(|e| e.replica.state() == ReplicaState::Finalized)?;
        Some((entry.replica.clone(), entry.volume.clone()))
    }

    /// Whether a view of a replica with stamp `gs` is one of a finalized replica, which is still there.
    pub(crate) fn check_copy(&self, block: &Block, gs: GenerationStamp) -> Result<()> {
        let map = self.lock();
        let entry = map.get(&block.id).ok_or_else(|| not_found(block))?;
        Ok(entry.replica.check_copy(gs)?)
    }

    /// A replica, if it is finalized and on this volume.
    pub(crate) fn finalized_on(&self, id: BlockId, volume: &Volume) -> Option<Replica> {
        self.lock()
            .get(&id)
            .filter(|entry| is_finalized_on(entry, volume))
            .map(|e| e.replica.clone())
    }

    /// All finalized replicas of a volume.
    pub(crate) fn all_finalized_on(&self, volume: &Volume) -> HashMap<BlockId, Replica> {
        let map = self.lock();
        let here = map.iter().filter(|(_, entry)| is_finalized_on(entry, volume));
        here.map(|(id, entry)| (*id, entry.replica.clone())).collect()
    }

    /// How many finalized replicas a volume has.
    pub(crate) fn count_finalized_on(&self, volume: &Volume) -> usize {
        self.lock().values().filter(|entry| is_finalized_on(entry, volume)).count()
    }

    /// Forgets a finalized replica whose block file has vanished. Returns its stamp; `None` if that is not so.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#checkAndUpdate`.
    pub(crate) fn forget_vanished(
        &self,
        id: BlockId,
        volume: &Volume,
    ) -> Result<Option<GenerationStamp>> {
        // One that is in memory may have been saved.
        self.serve_saved_if_vanished(id);
        let _turn = self.turns.take_blocking(id);
        let Some(replica) = self.finalized_on(id, volume) else { return Ok(None) };
        let (gs, files) = (replica.gs(), finalized_files(&replica, volume)?);
        if !is_missing(&files.data) {
            return Ok(None);
        }
        if self.lock().remove(&id).is_some() {
            // The meta file too: it is counted again with a block file that reappears.
            volume.sub_used(replica.on_disk_len() + files.size());
        }
        Ok(Some(gs))
    }

    /// Deletes a meta file among the finalized ones that has no block file. Returns whether that is so, and nothing is
    /// known of the block.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#checkAndUpdate`.
    pub(crate) fn delete_lone_meta(
        &self,
        id: BlockId,
        gs: GenerationStamp,
        volume: &Volume,
    ) -> Result<bool> {
        let Some(_turn) = self.turns.try_take(id) else { return Ok(false) };
        let files = volume.files(id, gs, ReplicaState::Finalized)?;
        if self.lock().contains_key(&id) || !is_missing(&files.data) {
            return Ok(false);
        }
        match fs::remove_file(&files.meta) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(&files.meta),
            removed => Ok(removed.is_ok()),
        }
    }

    /// Takes a replica in whose files have appeared. `None` if it is known, being deleted or not there.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#checkAndUpdate`.
    pub(crate) fn adopt(
        &self,
        id: BlockId,
        gs: GenerationStamp,
        volume: &Arc<Volume>,
    ) -> Result<Option<Finalized>> {
        let Some(_turn) = self.turns.try_take(id) else { return Ok(None) };
        if self.lock().contains_key(&id) {
            return Ok(None);
        }
        let files = volume.files(id, gs, ReplicaState::Finalized)?;
        let (Ok(data), Ok(meta)) = (fs::metadata(&files.data), fs::metadata(&files.meta)) else {
            return Ok(None);
        };
        let replica = Replica::new(id, gs, ReplicaState::Finalized, data.len());
        let ram = self.ram.found(&replica, volume);
        let mut map = self.lock();
        if self.is_closed() {
            return Ok(None);
        }
        map.insert(id, Entry::at_rest(replica, volume.clone(), ram));
        volume.add_used(data.len() + meta.len());
        let storage_id = volume.storage_id().into();
        Ok(Some(Finalized { id, gs, len: data.len(), storage_id, crc32c: None }))
    }

    /// Whether a finalized replica lacks its meta file, or its block file has another length than it should.
    pub(crate) fn is_misshapen(&self, id: BlockId, volume: &Volume) -> Result<bool> {
        let _turn = self.turns.take_blocking(id);
        let Some(replica) = self.finalized_on(id, volume) else { return Ok(false) };
        let files = finalized_files(&replica, volume)?;
        let len = fs::metadata(&files.data).map(|meta| meta.len());
        Ok(is_missing(&files.meta) || len.is_ok_and(|len| len != replica.on_disk_len()))
    }
}

fn is_finalized_on(entry: &Entry, volume: &Volume) -> bool {
    entry.is_on(volume) && entry.replica.state() == ReplicaState::Finalized
}

fn finalized_files(replica: &Replica, volume: &Volume) -> Result<ReplicaFiles> {
    volume.files(replica.id(), replica.gs(), ReplicaState::Finalized)
}

/// Whether a file is surely not there; a disk that does not answer has not lost it.
fn is_missing(path: &Path) -> bool {
    matches!(fs::metadata(path), Err(error) if error.kind() == ErrorKind::NotFound)
}
