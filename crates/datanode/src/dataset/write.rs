//! Operations that give a replica a writer: create, append, and pipeline recovery.

use super::files::{move_files, truncate};
use super::memory::Hold;
use super::slot::WriterSlot;
use super::writer::{Finalized, Opening, ReplicaWriter, blocking, taken_away, written_by};
use super::{Block, Checksum, Dataset, Entry, Placed, StorageType, not_found};
use crate::error::{Context, DataNodeError, Result};
use crate::volume::{ReplicaFiles, Volume};
use cairn_replica::{Replica, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Where a new replica is wished to go.
#[derive(Clone, Debug, Default)]
pub(crate) struct StorageWish {
    pub(crate) storage_type: StorageType,
    /// Empty for any.
    pub(crate) storage_id: String,
    /// Memory comes first, if there is some.
    pub(crate) in_memory: bool,
    /// No other type will do.
    pub(crate) is_type_needed: bool,
}

/// What a new replica will become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// A pipeline of a client writes it.
    Rbw,
    /// Another DataNode copies it here.
    Temporary {
        /// The copy is part of a pipeline recovery.
        is_transfer: bool,
    },
}

impl Dataset {
    /// Makes an empty replica and opens it for writing.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#createRbw`, `#createTemporary`.
    pub(crate) async fn create(
        self: &Arc<Self>,
        block: &Block,
        new_gs: GenerationStamp,
        kind: WriteKind,
        wish: &StorageWish,
        checksum: Checksum,
    ) -> Result<ReplicaWriter> {
        self.check_pool(&block.pool)?;
        let room = if block.len == 0 { self.block_len_estimate } else { block.len };
        let (volume, mut ram) = match self.memory_for(block, wish).await? {
            Some((volume, hold)) => (volume, Some(hold)),
            None => (self.choose_volume(wish, room)?, None),
        };
        volume.turn().await?;
        let (state, gs) = match kind {
            WriteKind::Rbw => (ReplicaState::Rbw, new_gs.max(block.gs)),
            WriteKind::Temporary { .. } => (ReplicaState::Temporary, block.gs),
        };
        let slot = WriterSlot::new();
        let (replaced, turn) = loop {
            if self.deleting().contains(&block.id) {
                let what = format!("a replica of {} is being deleted", block.id);
                return Err(DataNodeError::peer(what));
            }
            let turn = self.turns.take(block.id).await;
            let busy = {
                let mut map = self.lock();
                // Nobody would forget what comes after the end.
                self.check_open()?;
                if !matches!(kind, WriteKind::Temporary { is_transfer: false }) {
                    self.absent().check_open(block.id, gs)?;
                }
                let old = map.get(&block.id);
                let replica = old.map(|entry| &entry.replica);
                let has_writer = old.is_some_and(|entry| entry.writer.is_some());
                let must_replace = match kind {
                    WriteKind::Rbw => Replica::check_create(replica, new_gs)?,
                    WriteKind::Temporary { is_transfer } => {
                        Replica::check_create_temporary(replica, gs, is_transfer, has_writer)?
                    }
                };
                match old.and_then(|entry| entry.writer.clone()) {
                    Some(busy) => busy,
                    None => {
                        let replica = Replica::new(block.id, gs, state, 0);
                        let entry = Entry {
                            writer: Some(slot.clone()),
                            ..Entry::at_rest(replica, volume.clone(), ram.take())
                        };
                        let old = map.insert(block.id, entry);
                        break (old.filter(|_| must_replace), turn);
                    }
                }
            };
            // It may need the turn before it can leave.
            drop(turn);
            self.stop_writer(&busy).await?;
        };
        if let Some(old) = replaced
            && let Err(error) = old.volume.quick(|| self.delete_files(&old))
        {
            self.put_back(old, &slot);
            return Err(error);
        }
        drop(turn);
        let files = volume.files(block.id, gs, state)?;
        volume.promise(room);
        let opening = Opening { id: block.id, gs, volume, slot, files, promised: room };
        ReplicaWriter::create(self.clone(), opening, checksum)
    }

    /// A place in memory, if it is wished and there is one.
    async fn memory_for(
        self: &Arc<Self>,
        block: &Block,
        wish: &StorageWish,
    ) -> Result<Option<(Arc<Volume>, Hold)>> {
        if !wish.in_memory {
            return Ok(None);
        }
        let (dataset, id, len) = (self.clone(), block.id, block.len);
        let is_passing = wish.storage_type == StorageType::RamDisk;
        blocking(move || {
            let mut chosen = dataset.choose_memory(id, len);
            if let Some((_, hold)) = &mut chosen {
                hold.is_passing = is_passing;
            }
            Ok(chosen)
        })
        .await
    }

    /// Opens a finalized replica of `len` bytes for appending.
    pub(crate) async fn append(
        self: &Arc<Self>,
        block: &Block,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<ReplicaWriter> {
        let opening = self
            .take_over(block, true, |found| {
                let mut next = found.replica.clone();
                next.append(block.gs, new_gs, len)?;
                Ok(next)
            })
            .await?;
        ReplicaWriter::reopen(self.clone(), opening)
    }

    /// Opens a replica whose append failed.
    pub(crate) async fn recover_append(
        self: &Arc<Self>,
        block: &Block,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<ReplicaWriter> {
        let opening = self
            .take_over(block, false, |found| {
                let mut next = found.replica.clone();
                next.recover_append(block.gs, new_gs, len)?;
                Ok(next)
            })
            .await?;
        ReplicaWriter::reopen(self.clone(), opening)
    }

    /// Opens a replica whose pipeline broke, cut back to what all of the pipeline had.
    pub(crate) async fn recover_rbw(
        self: &Arc<Self>,
        block: &Block,
        new_gs: GenerationStamp,
        range: (u64, u64),
    ) -> Result<ReplicaWriter> {
        let opening = self
            .take_over(block, false, |found| {
                let files = found.files()?;
                let file_len = fs::metadata(&files.data).at(&files.data)?.len();
                let mut next = found.replica.clone();
                let len = next.recover_rbw(block.gs, new_gs, range, file_len)?;
                found.volume.sub_used(truncate(&files, len)?);
                Ok(next)
            })
            .await?;
        ReplicaWriter::reopen(self.clone(), opening)
    }

    /// Finalizes a replica whose last acknowledgement was lost.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#recoverClose`.
    pub(crate) async fn recover_close(
        self: &Arc<Self>,
        block: &Block,
        new_gs: GenerationStamp,
        len: u64,
    ) -> Result<Finalized> {
        let opening = self
            .take_over(block, false, |found| {
                let mut next = found.replica.clone();
                // A replica finalized before its acknowledgement was lost only gets the stamp; finalizing
                // an open one goes through the one place that does it durably.
                if next.recover_close(block.gs, new_gs, len)? {
                    next = found.replica.clone();
                    next.recover_append(block.gs, new_gs, len)?;
                }
                Ok(next)
            })
            .await?;
        let writer = ReplicaWriter::reopen(self.clone(), opening)?;
        match self.get(block.id).is_some_and(|replica| replica.state() == ReplicaState::Finalized) {
            true => Ok(writer.summary()),
            false => writer.finalize().await,
        }
    }

    /// Gives a replica a new writer once no other is at it, as what `change` makes of it; that may change its files. If it
    /// `must_fit`, there must be room for all that the block may become.
    async fn take_over(
        self: &Arc<Self>,
        block: &Block,
        must_fit: bool,
        change: impl Fn(&Placed) -> Result<Replica>,
    ) -> Result<Opening> {
        self.check_pool(&block.pool)?;
        let slot = WriterSlot::new();
        let (found, turn) = loop {
            let turn = self.turns.take(block.id).await;
            let busy = {
                let mut map = self.lock();
                let entry = map.get_mut(&block.id).ok_or_else(|| not_found(block))?;
                match entry.writer.clone() {
                    Some(busy) => busy,
                    None => {
                        entry.writer = Some(slot.clone());
                        break (Placed::of(entry), turn);
                    }
                }
            };
            // It may need the turn before it can leave.
            drop(turn);
            self.stop_writer(&busy).await?;
        };
        let taken = found.volume.quick(|| {
            // The length is the peer's word: it cannot claim more than there is.
            let rest = block.len.saturating_sub(found.replica.on_disk_len());
            let room = found.volume.usage().map_or(0, |usage| usage.remaining);
            if must_fit && room < rest {
                return Err(DataNodeError::NoSpace { most: room, needed: rest });
            }
            let next = change(&found)?;
            Ok((next.gs(), self.reopen(&found, &slot, next)?, rest.min(room)))
        });
        drop(turn);
        match taken {
            Ok((gs, files, promised)) => {
                let volume = found.volume;
                volume.promise(promised);
                let opening = Opening { id: block.id, gs, volume, slot, files, promised };
                self.sync_names(opening).await
            }
            Err(error) => {
                self.give_up_writing(block.id, &slot);
                Err(error)
            }
        }
    }

    /// Makes a replica's new names durable, if so configured: the NameNode will insist on the new stamp, and
    /// a power cut that brought the old names back would make bytes useless that were durable before.
    async fn sync_names(self: &Arc<Self>, opening: Opening) -> Result<Opening> {
        let dir = opening.files.meta.parent().filter(|_| self.is_stable()).map(Path::to_path_buf);
        let Some(dir) = dir else { return Ok(opening) };
        let (dataset, id, volume) = (self.clone(), opening.id, opening.volume.clone());
        let sync = move || dataset.sync_or_condemn(id, &volume, || volume.sync_dir(&dir));
        match blocking(sync).await {
            Ok(()) => Ok(opening),
            Err(error) => {
                self.leave(&opening);
                Err(error)
            }
        }
    }

    /// Moves the files of a replica, whose turn and writer's slot the caller has, to where `next` says they are, and makes
    /// that the replica.
    pub(super) fn reopen(
        &self,
        found: &Placed,
        slot: &Arc<WriterSlot>,
        next: Replica,
    ) -> Result<ReplicaFiles> {
        let id = next.id();
        let (from, to) = (found.files()?, found.volume.files(id, next.gs(), next.place())?);
        self.void_saved(&found.replica);
        move_files(&found.volume, &from, &to)?;
        let mut map = self.lock();
        let entry = written_by(&mut map, id, slot).ok_or_else(|| taken_away(id, next.gs()))?;
        entry.replica = next;
        // It may have been cut inside its last chunk.
        (entry.last_crc, entry.kept) = (None, None);
        if let Some(hold) = &mut entry.ram
            && entry.replica.state() == ReplicaState::Finalized
        {
            hold.note_finalized(entry.replica.on_disk_len());
        }
        Ok(to)
    }

    /// A writer has left that has changed nothing.
    fn give_up_writing(&self, id: BlockId, slot: &Arc<WriterSlot>) {
        if let Some(entry) = written_by(&mut self.lock(), id, slot) {
            entry.writer = None;
        }
        slot.leave();
    }

    /// The replica that `slot`'s writer was to take the place of stays what it was.
    fn put_back(&self, old: Entry, slot: &Arc<WriterSlot>) {
        let id = old.replica.id();
        let mut map = self.lock();
        if written_by(&mut map, id, slot).is_some() {
            map.insert(id, old);
        }
        drop(map);
        slot.leave();
    }

    /// Waits until `slot`'s writer has left.
    pub(super) async fn stop_writer(&self, slot: &WriterSlot) -> Result<()> {
        slot.stop();
        match slot.wait_gone(self.writer_stop_timeout).await {
            true => Ok(()),
            false => Err(DataNodeError::peer("Join on writer timed out")),
        }
    }

    /// A writer that failed has left: temporary replicas are of no use to anybody. Blocking, for these.
    pub(super) fn abandon(&self, id: BlockId, slot: &Arc<WriterSlot>) {
        let is_temporary = |entry: &Entry| entry.replica.state() == ReplicaState::Temporary;
        {
            let mut map = self.lock();
            match written_by(&mut map, id, slot) {
                Some(entry) if is_temporary(entry) => {}
                Some(entry) => return entry.writer = None,
                None => return,
            }
        }
        let _turn = self.turns.take_blocking(id);
        let entry = {
            let mut map = self.lock();
            let is_ours = written_by(&mut map, id, slot).is_some();
            if is_ours { map.remove(&id) } else { None }
        };
        let deleted =
            entry.map_or(Ok(()), |entry| entry.volume.quick(|| self.delete_files(&entry)));
        if let Err(error) = deleted {
            tracing::warn!(block = %id, %error, "cannot delete an unfinished copy");
        }
    }
}
