//! Files of finalized replicas that stay open between reads: to open two files costs more than to send what a short
//! read asks for.
//!
//! They belong to the replica's entry in the map, and are used only while the replica is as it was when they were
//! opened: what is deleted, moved or appended to is opened anew, and its old files are closed by whoever has it last.
//! How many stay open is bounded; those that nobody has used lately go first. Whoever looks for faults of disks opens
//! files of its own. Tested in `tests/it/kept.rs`.

use super::kept_files::Kept;
use super::{Block, Dataset, Entry, ReadView};
use crate::error::Result;
use cairn_replica::ReplicaState;
use cairn_stripe::BlockId;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

impl Dataset {
    /// The same as [`Dataset::open_read`], through files that are open already if there are some, and keeps them open.
    pub(crate) async fn open_kept(&self, block: &Block, min_end: u64) -> Result<Arc<ReadView>> {
        self.check_pool(&block.pool)?;
        if let Some(view) = self.kept(block) {
            return Ok(view);
        }
        let view = Arc::new(self.open_read(block, min_end).await?);
        self.keep(block.id, &view);
        Ok(view)
    }

    /// Closes the files of a replica once nobody reads through them.
    pub(crate) fn close_kept(&self, id: BlockId) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.kept = None;
        }
    }

    /// Closes all files that are only kept: descriptors have run out.
    pub(crate) fn close_all_kept(&self) {
        let mut map = self.lock();
        for id in self.kept_files.lock().drain(..) {
            if let Some(entry) = map.get_mut(&id) {
                entry.kept = None;
            }
        }
    }

    fn kept(&self, block: &Block) -> Option<Arc<ReadView>> {
        let map = self.lock();
        let entry = map.get(&block.id)?;
        let kept = entry.kept.as_ref()?;
        let is_wanted = entry.replica.gs() >= block.gs && kept.view.is_whole_of(entry);
        is_wanted.then(|| {
            kept.was_used.store(true, Ordering::Relaxed);
            kept.view.clone()
        })
    }

    fn keep(&self, id: BlockId, view: &Arc<ReadView>) {
        let mut map = self.lock();
        // Files in memory are gone with their names.
        let Some(entry) =
            map.get_mut(&id).filter(|entry| view.is_whole_of(entry) && !entry.volume.is_ram())
        else {
            return;
        };
        if self.kept_files.most == 0 {
            return;
        }
        entry.kept = Some(Kept { view: view.clone(), was_used: AtomicBool::new(false) });
        self.kept_files.lock().push_back(id);
        self.make_room(&mut map);
    }

    /// Closes what is too much: the first that was not used since it was passed over.
    fn make_room(&self, map: &mut HashMap<BlockId, Entry>) {
        let mut queue = self.kept_files.lock();
        while queue.len() > self.kept_files.most {
            let Some(id) = queue.pop_front() else { return };
            let Some(entry) = map.get_mut(&id) else { continue };
            match &entry.kept {
                Some(kept) if kept.was_used.swap(false, Ordering::Relaxed) => queue.push_back(id),
                _ => entry.kept = None,
            }
        }
    }
}

impl ReadView {
    /// Whether this is all of an entry's finalized replica.
    fn is_whole_of(&self, entry: &Entry) -> bool {
        let replica = &entry.replica;
        self.is_finalized
            && replica.state() == ReplicaState::Finalized
            && (replica.gs(), replica.on_disk_len()) == (self.gs, self.end)
            && Arc::ptr_eq(&self.volume, &entry.volume)
    }
}
