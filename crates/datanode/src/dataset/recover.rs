//! Operations of block recovery: freeze a replica, then set its length and stamp.

use super::files::{be_crc, move_files, truncate};
use super::{Block, Dataset, Entry, Finalized, Placed, not_found};
use crate::error::{Context, DataNodeError, Result};
use crate::volume::{ReplicaFiles, Volume, scan};
use cairn_codec::crc::{CRC_LEN, ChecksumKind};
use cairn_replica::{CrcFold, RecoveryInfo, Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::HEADER_LEN;
use cairn_wire::proto::hdfs::ChecksumTypeProto;
use std::fs::{self, File};
use std::sync::Arc;

impl Dataset {
    /// Freezes a replica for a recovery; `None` if there is none. Stops its writer.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#initReplicaRecovery`.
    pub(crate) async fn init_recovery(
        &self,
        block: &Block,
        recovery_id: GenerationStamp,
    ) -> Result<Option<RecoveryInfo>> {
        self.check_pool(&block.pool)?;
        let (mut found, _turn) = loop {
            let turn = self.turns.take(block.id).await;
            let busy = {
                let map = self.lock();
                let Some(entry) = map.get(&block.id) else {
                    self.absent().note(block.id, recovery_id);
                    return Ok(None);
                };
                match entry.writer.clone() {
                    Some(busy) => busy,
                    None => break (Placed::of(entry), turn),
                }
            };
            // It may need the turn before it can leave.
            drop(turn);
            self.stop_writer(&busy).await?;
        };
        let volume = found.volume.clone();
        volume.quick(|| {
            let files = found.files()?;
            if found.replica.is_unread() {
                // The disk may answer now.
                let (size, gs) = (files.size(), found.replica.gs());
                found.replica = scan::validated(&files, block.id, gs);
                found.volume.sub_used(size.saturating_sub(files.size()));
            }
            check_len(&files, found.replica.on_disk_len())
        })?;
        let mut map = self.lock();
        // A volume that fails takes its replicas with it.
        let Some(entry) = map.get_mut(&block.id) else {
            self.absent().note(block.id, recovery_id);
            return Ok(None);
        };
        entry.replica = found.replica;
        Ok(Some(entry.replica.init_recovery(block.gs, recovery_id)?))
    }

    /// Ends a recovery: the replica becomes finalized with `new_len` bytes. If `new_id` is another block, the first
    /// `new_len` bytes are copied to it and the replica stays as it is (truncate of a file with snapshots). Blocking.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#updateReplicaUnderRecovery`.
    pub(crate) fn finish_recovery(
        &self,
        block: &Block,
        recovery_id: GenerationStamp,
        new_id: BlockId,
        new_len: u64,
    ) -> Result<Finalized> {
        self.check_pool(&block.pool)?;
        let find = || -> Result<(Placed, ReplicaFiles)> {
            let found = self.placed(block.id).ok_or_else(|| not_found(block))?;
            found.replica.check_finish_recovery(recovery_id, block.len, new_len)?;
            let files = found.files()?;
            check_len(&files, found.replica.on_disk_len())?;
            Ok((found, files))
        };
        let (Placed { replica: old, volume }, from) = find()?;
        // Nobody writes a frozen replica, so the slow part needs no turn.
        let dir = volume.pool()?.finalized_dir(block.id);
        self.sync_or_condemn(block.id, &volume, || {
            volume.make_leaf_dir(&dir, self.is_stable())?;
            self.sync_files(&volume, &from)
        })?;
        let is_copy = new_id.0 != 0 && new_id != block.id;
        let (gs, len) =
            if is_copy { (old.gs(), old.on_disk_len()) } else { (recovery_id, new_len) };
        let to = volume.files(block.id, gs, ReplicaState::Finalized)?;
        {
            let _turn = self.turns.take_blocking(block.id);
            let (found, from) = find()?;
            self.void_saved(&found.replica);
            volume.sub_used(truncate(&from, len)?);
            move_files(&volume, &from, &to)?;
            let mut map = self.lock();
            let entry = map.get_mut(&block.id).ok_or_else(|| not_found(block))?;
            entry.replica.finish_recovery(gs, len);
            if let Some(hold) = &mut entry.ram {
                hold.note_finalized(len);
            }
            entry.last_crc = None;
            entry.kept = None;
        }
        self.sync_or_condemn(block.id, &volume, || self.sync_files(&volume, &to))?;
        if !is_copy {
            return self.summary(block.id);
        }
        // Not a replica before it is whole, whatever happens meanwhile.
        let copy = volume.files(new_id, recovery_id, ReplicaState::Temporary)?;
        self.copy_truncated(&volume, &to, &copy, new_len)?;
        let replica = Replica::new(new_id, recovery_id, ReplicaState::Finalized, new_len);
        self.take_copy(replica, &copy, volume)?;
        self.summary(new_id)
    }

    /// Makes a replica of files that a recovery has copied, instead of one that an attempt before it has left.
    fn take_copy(&self, copy: Replica, from: &ReplicaFiles, volume: Arc<Volume>) -> Result<()> {
        let to = volume.files(copy.id(), copy.gs(), ReplicaState::Finalized)?;
        volume.make_leaf_dir(to.data.parent().unwrap_or(&to.data), self.is_stable())?;
        {
            let _turn = self.turns.take_blocking(copy.id());
            let left = {
                let mut map = self.lock();
                match map.get(&copy.id()) {
                    Some(left) if left.replica.gs() >= copy.gs() || left.writer.is_some() => {
                        let text = format!("There is a newer replica of {}", copy.id());
                        return Err(DataNodeError::peer(text));
                    }
                    _ => map.remove(&copy.id()),
                }
            };
            left.map_or(Ok(()), |left| self.delete_files(&left))?;
            move_files(&volume, from, &to)?;
            volume.add_used(to.size());
            let ram = self.ram.found(&copy, &volume);
            let mut map = self.lock();
            self.check_open()?;
            map.insert(copy.id(), Entry::at_rest(copy.clone(), volume.clone(), ram));
        }
        self.sync_or_condemn(copy.id(), &volume, || self.sync_files(&volume, &to))
    }

    /// Makes a replica and its name durable, if so configured.
    fn sync_files(&self, volume: &Volume, files: &ReplicaFiles) -> Result<()> {
        if !self.is_stable() {
            return Ok(());
        }
        for path in [&files.data, &files.meta] {
            volume.sync(&File::open(path).at(path)?, path)?;
        }
        files.data.parent().map_or(Ok(()), |dir| volume.sync_dir(dir))
    }

    fn copy_truncated(
        &self,
        volume: &Volume,
        from: &ReplicaFiles,
        to: &ReplicaFiles,
        len: u64,
    ) -> Result<()> {
        fs::copy(&from.meta, &to.meta).at(&to.meta)?;
        fs::copy(&from.data, &to.data).at(&to.data)?;
        // The copy is not counted yet.
        truncate(to, len)?;
        self.sync_files(volume, to)
    }

    /// What is reported of a finalized replica, with the CRC32C of its bytes folded from those of its chunks.
    pub(super) fn summary(&self, id: BlockId) -> Result<Finalized> {
        let found = self.placed(id).ok_or_else(|| DataNodeError::peer(format!("{id} is gone")))?;
        let (files, gs, len) = (found.files()?, found.replica.gs(), found.replica.on_disk_len());
        let storage_id = found.volume.storage_id().to_string();
        let meta = fs::read(&files.meta).at(&files.meta)?;
        let header = files.header(&meta)?;
        let crc32c = (header.checksum == ChecksumTypeProto::ChecksumCrc32c).then(|| {
            let chunk = u64::from(header.bytes_per_checksum);
            let mut fold = CrcFold::new(ChecksumKind::Crc32c, chunk as usize);
            let mut crcs = meta[HEADER_LEN..].chunks_exact(CRC_LEN).map(be_crc);
            crcs.by_ref().take((len / chunk) as usize).for_each(|crc| fold.push(crc));
            fold.finish(crcs.next().unwrap_or(0), len % chunk)
        });
        Ok(Finalized { id, gs, len, storage_id, crc32c })
    }
}

/// A replica that has lost bytes on disk must not take part in a recovery.
fn check_len(files: &ReplicaFiles, least: u64) -> Result<()> {
    let found = fs::metadata(&files.data).at(&files.data)?.len();
    match found < least {
        true => Err(DataNodeError::peer(format!(
            "File length mismatched. The length of {} is {found} but the replica has {least}",
            files.data.display()
        ))),
        false => Ok(()),
    }
}
