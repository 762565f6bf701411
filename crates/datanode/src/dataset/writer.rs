//! A replica opened for writing: packets in, a durable finalized replica out.

use super::files::{be_crc, move_files};
use super::slot::WriterSlot;
use super::{Checksum, Dataset, Entry};
use crate::error::{Context, DataNodeError, Result};
use crate::page_cache::Writing;
use crate::slow_io::{SlowIo, Step};
use crate::volume::latency::DiskWork;
use crate::volume::room_ahead::RoomAhead;
use crate::volume::{ReplicaFiles, Volume};
use cairn_codec::crc::{self, CRC_LEN, ChecksumKind};
use cairn_process::disk_work::step_aside;
use cairn_replica::{ChunkTail, CrcFold, Replica, ReplicaError, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::{HEADER_LEN, MetaHeader};
use cairn_wire::proto::hdfs::CachingStrategyProto;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use tokio::task::{JoinError, JoinHandle};

/// What a writer starts from.
pub(super) struct Opening {
    pub(super) id: BlockId,
    pub(super) gs: GenerationStamp,
    pub(super) volume: Arc<Volume>,
    pub(super) slot: Arc<WriterSlot>,
    pub(super) files: ReplicaFiles,
    pub(super) promised: u64,
}

/// A finished replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finalized {
    pub(crate) id: BlockId,
    pub(crate) gs: GenerationStamp,
    pub(crate) len: u64,
    pub(crate) storage_id: String,
    /// CRC32C of all bytes, where the chunks have CRC32Cs.
    pub(crate) crc32c: Option<u32>,
}

/// The one writer of a replica. Dropping it leaves an RBW replica as it is and deletes a temporary one.
pub(crate) struct ReplicaWriter {
    dataset: Arc<Dataset>,
    opening: Opening,
    data: Arc<File>,
    meta: Arc<File>,
    checksum: Checksum,
    tail: ChunkTail,
    fold: CrcFold,
    caching: Writing,
    room: RoomAhead,
    translated: Vec<u8>,
}

/// A replica that is being completed.
enum Finalizing {
    Done(Result<Finalized>),
    Elsewhere(JoinHandle<Result<Finalized>>),
}

/// See [`ReplicaWriter::acks`].
pub(crate) struct AckNotes {
    dataset: Arc<Dataset>,
    id: BlockId,
    slot: Arc<WriterSlot>,
}

impl AckNotes {
    /// Notes that the whole pipeline has everything up to `end`.
    pub(crate) fn note(&self, end: u64) {
        let mut map = self.dataset.lock();
        if let Some(entry) = written_by(&mut map, self.id, &self.slot) {
            entry.replica.note_acked(end);
        }
    }
}

impl Drop for ReplicaWriter {
    fn drop(&mut self) {
        self.opening.volume.release(self.opening.promised);
        self.dataset.abandon(self.opening.id, &self.opening.slot);
        self.opening.slot.leave();
    }
}

impl ReplicaWriter {
    /// Makes the files of a new replica.
    pub(super) fn create(
        dataset: Arc<Dataset>,
        opening: Opening,
        checksum: Checksum,
    ) -> Result<ReplicaWriter> {
        let make = |path: &Path| {
            let mut how = File::options();
            how.read(true).write(true).create(true).truncate(true);
            opening.volume.timed(DiskWork::Metadata, || how.open(path).at(path))
        };
        let files = opening.volume.quick(|| {
            make(&opening.files.data).and_then(|data| Ok((data, make(&opening.files.meta)?)))
        });
        let (data, meta) = match files {
            Ok(files) => files,
            Err(error) => {
                dataset.forget(&opening);
                return Err(error);
            }
        };
        let mut writer = ReplicaWriter {
            tail: ChunkTail::new(checksum.kind, checksum.chunk_len, 0, 0),
            fold: CrcFold::new(checksum.kind, checksum.chunk_len),
            data: Arc::new(data),
            meta: Arc::new(meta),
            caching: dataset.page_cache().writing(None, 0),
            room: opening.volume.room_ahead(dataset.preallocation),
            translated: Vec::new(),
            dataset,
            opening,
            checksum,
        };
        let header = MetaHeader::new(checksum.kind.id().into(), checksum.chunk_len as u32)?;
        let write = || writer.meta.write_all_at(&header.encode(), 0);
        writer.opening.volume.quick(write).at(&writer.opening.files.meta)?;
        writer.count_used(HEADER_LEN as u64);
        Ok(writer)
    }

    /// Opens the files of a replica that has bytes already; its last chunk must match its CRC.
    pub(super) fn reopen(dataset: Arc<Dataset>, opening: Opening) -> Result<ReplicaWriter> {
        let open = |path: &Path| File::options().read(true).write(true).open(path).at(path);
        let opened = opening.volume.quick(|| {
            let (data, meta) = (open(&opening.files.data)?, open(&opening.files.meta)?);
            let checksum = super::read_view::header_to_change(&meta, &opening.files)?;
            Ok((data, meta, checksum))
        });
        let (data, meta, checksum) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                dataset.leave(&opening);
                return Err(error);
            }
        };
        let len = dataset.get(opening.id).map_or(0, |replica| replica.on_disk_len());
        let mut writer = ReplicaWriter {
            tail: ChunkTail::new(checksum.kind, checksum.chunk_len, len, 0),
            fold: CrcFold::new(checksum.kind, checksum.chunk_len),
            data: Arc::new(data),
            meta: Arc::new(meta),
            caching: dataset.page_cache().writing(None, len),
            room: RoomAhead::unknown(),
            translated: Vec::new(),
            dataset,
            opening,
            checksum,
        };
        writer.opening.volume.clone().quick(|| writer.load_tail(len))?;
        Ok(writer)
    }

    /// Reads the CRCs of what is there, and checks the last chunk if it is short.
    fn load_tail(&mut self, len: u64) -> Result<()> {
        let Checksum { kind, chunk_len } = self.checksum;
        if kind == ChecksumKind::Null {
            return Ok(());
        }
        let (full, part) = (len / chunk_len as u64, (len % chunk_len as u64) as usize);
        let mut crcs = vec![0; (full as usize + usize::from(part > 0)) * CRC_LEN];
        self.meta.read_exact_at(&mut crcs, HEADER_LEN as u64).at(&self.opening.files.meta)?;
        let mut crcs = crcs.chunks_exact(CRC_LEN).map(be_crc);
        crcs.by_ref().take(full as usize).for_each(|crc| self.fold.push(crc));
        if let Some(crc) = crcs.next() {
            let mut bytes = vec![0; part];
            self.data
                .read_exact_at(&mut bytes, full * chunk_len as u64)
                .at(&self.opening.files.data)?;
            if kind.update(0, &bytes) != crc {
                let block = self.opening.id;
                return Err(DataNodeError::Corrupt(format!(
                    "last chunk of {block} at {len} does not match its CRC"
                )));
            }
            self.tail.advance(len, crc);
            self.dataset.update(&self.opening, |entry| entry.last_crc = Some(crc))?;
        }
        Ok(())
    }

    /// The block and its stamp.
    pub(crate) fn block(&self) -> (BlockId, GenerationStamp) {
        (self.opening.id, self.opening.gs)
    }

    /// The storage it is on.
    pub(crate) fn storage_id(&self) -> &str {
        self.opening.volume.storage_id()
    }

    /// Bytes on disk.
    pub(crate) fn len(&self) -> u64 {
        self.tail.len()
    }

    /// Has the page cache keep or forget what is written as `wish` says, if it does.
    pub(crate) fn set_caching(&mut self, wish: Option<&CachingStrategyProto>) {
        self.caching = self.dataset.page_cache().writing(wish, self.len());
    }

    /// Completes when a newer operation wants the replica.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let slot = self.opening.slot.clone();
        async move { slot.stopped().await }
    }

    /// Writes a packet whose bytes have been checked against `crcs`, which were made with `sent`. Repeated bytes are
    /// skipped.
    pub(crate) fn write_packet(
        &mut self,
        offset: u64,
        data: &[u8],
        crcs: &[u8],
        sent: Checksum,
    ) -> Result<()> {
        if sent == self.checksum {
            return self.write_checked(offset, data, crcs);
        }
        let mut own = std::mem::take(&mut self.translated);
        own.resize(self.tail.crc_bytes(data.len()), 0);
        crc::chunk_crcs(self.checksum.kind, self.checksum.chunk_len, data, &mut own);
        let result = self.write_checked(offset, data, &own);
        self.translated = own;
        result
    }

    fn write_checked(&mut self, offset: u64, data: &[u8], crcs: &[u8]) -> Result<()> {
        let Some(place) = self.tail.place(offset, data, crcs)? else { return Ok(()) };
        let end = offset + data.len() as u64;
        self.dataset.update(&self.opening, |entry| entry.replica.note_received(end))?;
        let fresh = &data[place.skip..];
        let old_size = self.size();
        let joined = place.joined_crc.map(u32::to_be_bytes);
        let crcs = match &joined {
            Some(crc) => crc.as_slice(),
            None => &crcs[place.skip_crcs * self.checksum.kind.len()..],
        };
        let at = HEADER_LEN as u64 + place.first_chunk * self.checksum.kind.len() as u64;
        let (files, most) = (&self.opening.files, self.tail.len() + self.opening.promised);
        let mut room = self.room;
        let write_both = || {
            let write = |file: &File, bytes: &[u8], at: u64, path: &Path| {
                let write = || file.write_all_at(bytes, at).at(path);
                self.opening.volume.timed(DiskWork::Write, write)
            };
            room.reach(&self.data, self.tail.len(), end, most);
            write(&self.data, fresh, self.tail.len(), &files.data)?;
            write(&self.meta, crcs, at, &files.meta)
        };
        let written = self.timed(Step::Write, || self.opening.volume.quick(write_both));
        self.room = room;
        if let Err(error) = written {
            // What a full disk took of it is there until the replica is cut or deleted.
            let size = self.opening.volume.quick(|| files.size());
            self.count_used(size.saturating_sub(old_size));
            return Err(error);
        }
        let len = self.tail.len() + fresh.len() as u64;
        let last = self.fold_in(place.first_chunk, len, crcs);
        self.tail.advance(len, last);
        // A CRC that replaces the one of a shorter chunk takes no room.
        self.count_used(self.size() - old_size);
        self.dataset.update(&self.opening, |entry| {
            entry.replica.note_on_disk(len);
            entry.last_crc = Some(last);
        })?;
        self.manage_cache();
        Ok(())
    }

    /// Does a step at the replica's disk; whether it was slow is told.
    fn timed<T>(&self, step: Step, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Opening { id, volume, .. } = &self.opening;
        self.slow_io().timed(step, *id, || volume.root().display().to_string(), work)
    }

    /// What has taken long.
    pub(crate) fn slow_io(&self) -> &SlowIo {
        self.dataset.slow_io()
    }

    /// Folds the CRCs of chunks that are now complete; returns the last CRC.
    fn fold_in(&mut self, first_chunk: u64, len: u64, crcs: &[u8]) -> u32 {
        let full = len / self.checksum.chunk_len as u64;
        let mut last = 0;
        for (index, crc) in (first_chunk..).zip(crcs.chunks_exact(CRC_LEN)) {
            last = be_crc(crc);
            if index < full {
                self.fold.push(last);
            }
        }
        last
    }

    /// Bytes of both files.
    fn size(&self) -> u64 {
        let chunks = self.tail.len().div_ceil(self.checksum.chunk_len as u64);
        HEADER_LEN as u64 + self.tail.len() + chunks * self.checksum.kind.len() as u64
    }

    fn count_used(&mut self, bytes: u64) {
        self.opening.volume.add_used(bytes);
        let kept = bytes.min(self.opening.promised);
        self.opening.volume.release(kept);
        self.opening.promised -= kept;
    }

    fn manage_cache(&mut self) {
        let Some(due) = self.caching.grew(self.dataset.page_cache(), self.tail.len()) else {
            return;
        };
        if self.opening.volume.is_busy() {
            return;
        }
        let (dataset, data) = (self.dataset.clone(), self.data.clone());
        let waiting = self.opening.volume.waiting();
        // It can wait for the device's queue, so not on this thread; nobody waits for it.
        tokio::task::spawn_blocking(move || {
            let _waiting = waiting;
            due.done(dataset.page_cache(), &data)
        });
    }

    /// Notes acknowledgements while the writer is in use elsewhere.
    pub(crate) fn acks(&self) -> AckNotes {
        AckNotes {
            dataset: self.dataset.clone(),
            id: self.opening.id,
            slot: self.opening.slot.clone(),
        }
    }

    /// Waits until the disk may be written to, or synced.
    pub(crate) async fn turn(&self) -> Result<()> {
        self.opening.volume.turn().await
    }

    /// Makes everything written so far durable.
    pub(crate) async fn sync(&self) -> Result<()> {
        self.turn().await?;
        let waiting = self.opening.volume.waiting();
        let (data, meta) = (self.data.clone(), self.meta.clone());
        let (dataset, volume) = (self.dataset.clone(), self.opening.volume.clone());
        let (id, files) = (self.opening.id, self.opening.files.clone());
        blocking(move || {
            let _waiting = waiting;
            let sync = || {
                volume.sync(&data, &files.data)?;
                volume.sync(&meta, &files.meta)?;
                // The names too: an RBW file that a power cut forgets would lose what was synced.
                files.data.parent().map_or(Ok(()), |dir| volume.sync_dir(dir))
            };
            let at = || volume.root().display().to_string();
            let timed = || dataset.slow_io().timed(Step::Sync, id, at, sync);
            dataset.sync_or_condemn(id, &volume, timed)
        })
        .await
    }

    /// Completes the replica, durably if so configured, and moves it among the finalized ones. Runs to its end even
    /// if the caller goes away.
    pub(crate) async fn finalize(self) -> Result<Finalized> {
        self.finalize_then(|_| {}).await
    }

    /// The same, begun when this is called; `then` is called with what comes of it, if it does.
    pub(crate) fn finalize_then(
        self,
        then: impl FnOnce(&Finalized) + Send + 'static,
    ) -> impl Future<Output = Result<Finalized>> {
        // Else nothing waits for the disk: names are changed, as they were made when the replica was.
        let waits = self.dataset.is_stable() || self.caching.drops();
        let volume = self.opening.volume.clone();
        let waiting = volume.waiting();
        let work = move || {
            let _waiting = waiting;
            self.finalize_now().inspect(then)
        };
        let finalizing = match waits {
            true => Finalizing::Elsewhere(tokio::task::spawn_blocking(work)),
            false => Finalizing::Done(volume.quick(work)),
        };
        async move {
            match finalizing {
                Finalizing::Done(done) => {
                    // Whom `then` has woken goes first on this thread: the NameNode hears of a replica before its
                    // writer does, who asks the NameNode next.
                    step_aside().await;
                    done
                }
                Finalizing::Elsewhere(work) => joined(work.await),
            }
        }
    }

    fn finalize_now(self) -> Result<Finalized> {
        let is_stable = self.dataset.is_stable();
        let Opening { id, volume, files, .. } = &self.opening;
        let dir = volume.pool()?.finalized_dir(*id);
        self.dataset.sync_or_condemn(*id, volume, || {
            self.room.give_back(&self.data, self.tail.len()).at(&files.data)?;
            if is_stable {
                self.timed(Step::Sync, || {
                    volume.sync(&self.data, &files.data)?;
                    volume.sync(&self.meta, &files.meta)
                })?;
            }
            volume.make_leaf_dir(&dir, is_stable)
        })?;
        self.caching.ended(self.tail.len()).done(self.dataset.page_cache(), &self.data);
        let to = ReplicaFiles::in_dir(&dir, self.opening.id, self.opening.gs);
        {
            let _turn = self.dataset.turns.take_blocking(*id);
            let may_be = |entry: &mut Entry| entry.replica.clone().finalize(self.opening.gs);
            self.dataset.update(&self.opening, may_be)??;
            move_files(volume, files, &to)?;
            self.dataset.update(&self.opening, |entry| -> Result<()> {
                entry.replica.finalize(self.opening.gs)?;
                entry.last_crc = None;
                if let Some(hold) = &mut entry.ram {
                    hold.note_written(entry.replica.on_disk_len());
                }
                Ok(())
            })??;
        }
        if is_stable {
            self.dataset.sync_or_condemn(*id, volume, || volume.sync_dir(&dir))?;
        }
        Ok(self.summary())
    }

    /// Turns a temporary replica into an RBW one with `visible` bytes acknowledged. Some of these may have been synced
    /// where they come from, so they are made durable first, if so configured.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#convertTemporaryToRbw`. Deviation: Hadoop does not sync them.
    pub(crate) fn convert_to_rbw(self, visible: u64) -> Result<()> {
        let Opening { id, volume, files, .. } = &self.opening;
        let to = volume.files(*id, self.opening.gs, ReplicaState::Rbw)?;
        let is_stable = self.dataset.is_stable();
        if is_stable {
            let sync = || {
                volume.sync(&self.data, &files.data)?;
                volume.sync(&self.meta, &files.meta)
            };
            self.dataset.sync_or_condemn(*id, volume, || self.timed(Step::Sync, sync))?;
        }
        let _turn = self.dataset.turns.take_blocking(self.opening.id);
        let convert = |replica: &mut Replica| replica.convert_temporary(self.opening.gs, visible);
        self.dataset.update(&self.opening, |entry| convert(&mut entry.replica.clone()))??;
        move_files(volume, files, &to)?;
        self.dataset.update(&self.opening, |entry| convert(&mut entry.replica))??;
        match to.data.parent().filter(|_| is_stable) {
            Some(dir) => self.dataset.sync_or_condemn(*id, volume, || volume.sync_dir(dir)),
            None => Ok(()),
        }
    }

    pub(super) fn summary(&self) -> Finalized {
        let part = self.tail.len() % self.checksum.chunk_len as u64;
        let crc32c = (self.checksum.kind == ChecksumKind::Crc32c)
            .then(|| self.fold.finish(self.tail.crc(), part));
        Finalized {
            id: self.opening.id,
            gs: self.opening.gs,
            len: self.tail.len(),
            storage_id: self.storage_id().into(),
            crc32c,
        }
    }
}

impl Dataset {
    /// Changes the entry that `opening`'s writer writes. Fails if a newer operation has replaced it, or its volume
    /// has failed.
    fn update<T>(&self, opening: &Opening, act: impl FnOnce(&mut Entry) -> T) -> Result<T> {
        let mut map = self.lock();
        opening.volume.check_not_failed()?;
        let entry = written_by(&mut map, opening.id, &opening.slot);
        Ok(act(entry.ok_or_else(|| taken_away(opening.id, opening.gs))?))
    }

    /// Undoes the registration of a replica whose files could not be made.
    fn forget(&self, opening: &Opening) {
        self.lock().remove(&opening.id);
        opening.volume.release(opening.promised);
        opening.slot.leave();
    }

    /// Undoes the registration of a writer whose files could not be opened.
    pub(super) fn leave(&self, opening: &Opening) {
        opening.volume.release(opening.promised);
        self.abandon(opening.id, &opening.slot);
        opening.slot.leave();
    }
}

/// The entry of a replica, if `slot` is its writer's.
pub(super) fn written_by<'a>(
    map: &'a mut HashMap<BlockId, Entry>,
    id: BlockId,
    slot: &Arc<WriterSlot>,
) -> Option<&'a mut Entry> {
    map.get_mut(&id).filter(|entry| entry.writer.as_ref().is_some_and(|s| Arc::ptr_eq(s, slot)))
}

/// What a writer is told whose replica another operation has taken.
pub(super) fn taken_away(block: BlockId, gs: GenerationStamp) -> ReplicaError {
    ReplicaError::NotFound { block, gs, reason: "The replica was taken from its writer" }
}

/// Runs file work that may wait for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    joined(tokio::task::spawn_blocking(work).await)
}

/// What came of file work in another thread.
fn joined<T>(work: std::result::Result<Result<T>, JoinError>) -> Result<T> {
    match work {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error)).context(|| "file work".into()),
    }
}

#[cfg(test)]
mod tests;
