//! Deletes replicas: because the NameNode says so, because there is another one here, or because its bytes are not to be
//! believed any more.

use super::given::Given;
use super::{Dataset, Entry, Placed, files};
use crate::error::{Context, Result};
use crate::volume::latency::DiskWork;
use crate::volume::{ReplicaFiles, Volume};
use cairn_replica::{Replica, ReplicaState, report};
use cairn_stripe::{BlockId, GenerationStamp};
use std::{fs, io};

/// What became of an order to delete a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It is gone.
    Done { storage_id: String },
    /// The order is older than the last registration, or too old, or another one is being obeyed.
    Void,
    /// There is no replica of the block here.
    Absent,
    /// There is one with another stamp.
    Other { replica: Replica, storage_id: String },
}

impl Dataset {
    /// Forgets a replica and deletes its files in the background of the caller (blocking).
    ///
    /// A replica with another stamp than asked for stays: the NameNode did not mean it. So it does when the
    /// order is older than the last registration, or has waited for too long, for a disk say: a report since then may
    /// have named it, and another replica may be deleted on its account.
    ///
    /// That it is gone, or that there is none, `tell` is told before another one can come.
    ///
    /// Source: Hadoop 3.5.0 `FsDatasetImpl#invalidate`.
    pub(crate) fn invalidate(
        &self,
        (id, gs): (BlockId, GenerationStamp),
        given: Given,
        tell: impl FnOnce(&Deletion),
    ) -> Result<Deletion> {
        // Whoever deletes it tells of it.
        if self.deleting().contains(&id) {
            return Ok(Deletion::Void);
        }
        let _turn = self.turns.take_blocking(id);
        let entry = {
            let mut map = self.lock();
            // Under the map's lock: a report sees either the replica, and then it stays, or neither.
            let here = map.get(&id);
            let is_current = self.given().registration == given.registration
                && given.since.elapsed() < report::DELETION_LASTS;
            match (report::Deletion::of(here.map(|entry| &entry.replica), gs, is_current), here) {
                (report::Deletion::Void, _) => return Ok(Deletion::Void),
                (report::Deletion::Other, Some(entry)) => {
                    let storage_id = entry.volume.storage_id().into();
                    return Ok(Deletion::Other { replica: entry.replica.clone(), storage_id });
                }
                _ => {}
            }
            let Some(entry) = map.remove(&id) else {
                tell(&Deletion::Absent);
                return Ok(Deletion::Absent);
            };
            self.deleting().insert(id);
            entry
        };
        if let Some(slot) = &entry.writer {
            slot.stop();
        }
        if let Some(hold) = &entry.ram {
            hold.note_deleted();
        }
        let done = Deletion::Done { storage_id: entry.volume.storage_id().into() };
        let deleted = self.delete_files(&entry).map(|()| tell(&done));
        self.deleting().remove(&id);
        deleted.map(|()| done)
    }

    /// Deletes the files of a replica that does not count because there is another one of its block, which is all that
    /// it was: nobody else would. What is not needed in memory goes in any case.
    ///
    /// Source: Hadoop 3.5.0 `BlockPoolSlice#resolveDuplicateReplicas`. Deviation: Hadoop does not look whether the files
    /// of the other one are whole.
    pub(super) fn drop_spare(&self, spare: &Entry) {
        let (id, dir) = (spare.replica.id(), spare.volume.root().display());
        let _turn = self.turns.take_blocking(id);
        let live = self.placed(id);
        let is_needed = match spare.volume.is_ram() {
            true => live.is_some_and(|live| live.is_on(&spare.volume)),
            false => live.is_none_or(|live| !live.replaces(spare)),
        };
        if is_needed {
            tracing::warn!(block = %id, %dir, "ignored an older replica");
            return;
        }
        match self.delete_files(spare) {
            Ok(()) => {
                tracing::warn!(block = %id, %dir, "deleted a replica of which there is another")
            }
            Err(error) => tracing::warn!(block = %id, %error, "cannot delete a spare replica"),
        }
    }

    /// Forgets a replica that must never be taken for a good one again, on disk too.
    pub(super) fn condemn(&self, id: BlockId, volume: &Volume) {
        let _turn = self.turns.take_blocking(id);
        let entry = {
            let mut map = self.lock();
            let is_it = map.get(&id).is_some_and(|entry| entry.is_on(volume));
            is_it.then(|| map.remove(&id)).flatten()
        };
        let Some(entry) = entry else { return };
        if let Some(slot) = &entry.writer {
            slot.stop();
        }
        let (replica, volume) = (&entry.replica, &entry.volume);
        let aside = volume
            .files(replica.id(), replica.gs(), replica.place())
            .and_then(|files| files.set_aside());
        if let Err(error) = aside {
            tracing::error!(block = %id, %error, "cannot set a replica aside whose sync failed");
        }
    }

    pub(super) fn delete_files(&self, entry: &Entry) -> Result<()> {
        let replica = &entry.replica;
        let files = entry.volume.files(replica.id(), replica.gs(), replica.place())?;
        if let Some((saved, volume)) = entry.ram.as_ref().and_then(|h| h.saved_files(replica)) {
            volume.sub_used(saved.size());
            files::remove(&saved);
        }
        // What cannot be deleted is no replica either; the directory scanner counts it again if it takes it in.
        entry.volume.sub_used(files.size());
        for path in [&files.data, &files.meta] {
            let remove = || fs::remove_file(path);
            let removed = match entry.volume.timed(DiskWork::Metadata, remove) {
                // Whoever put a folder there: Java's `File#delete`, which Hadoop calls, takes an empty one too.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir(path),
                removed => removed,
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).at(path);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Placed {
    /// Whether it is as new as `spare`, on another volume, and whole as far as the lengths of its files tell.
    fn replaces(&self, spare: &Entry) -> bool {
        let has_files = |files: ReplicaFiles| {
            let len = fs::metadata(&files.data).map(|meta| meta.len());
            len.is_ok_and(|len| len == self.replica.on_disk_len()) && files.fit().unwrap_or(false)
        };
        self.replica.state() == ReplicaState::Finalized
            && spare.replica.state() == ReplicaState::Finalized
            && self.replica.gs() >= spare.replica.gs()
            && !self.is_on(&spare.volume)
            && self.files().is_ok_and(has_files)
    }
}
