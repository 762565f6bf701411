//! What a start does with the entries that had not come to the store's file.
//!
//! It writes what the log says that they have done, and decides nothing again: another build would perhaps decide
//! otherwise. Only what earlier builds have logged, commands alone, is evaluated.

use super::error::OpenError;
use super::log::Log;
use super::outcomes::{save, unread};
use super::recent::Recent;
use super::record::{self, Record};
use super::rollback::{self, RollbackPoint};
use super::writer;
use crate::disk::SharedDisk;
use crate::store::{Batch, Identity, Position, Store};
use cairn_namespace::events::EventBatch;
use cairn_namespace::holds::{self, Upgrade};
use cairn_namespace::store::StoreError;
use cairn_namespace::{Applied, Command, Done, Retries, evaluate, settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries that readers see at a time.
const STEP: usize = 1000;

/// Brings the store up to date with the log. Returns the log, at whose end it is, and the outcomes of calls.
pub(super) fn replay(
    disk: &SharedDisk,
    dir: &Path,
    identity: &Identity,
    store: &Arc<Store>,
    recent: &Arc<Recent>,
    reserved_len: u64,
) -> Result<(Log, Retries), OpenError> {
    // Who has watched is told from here on, also if nothing has happened.
    if recent.is_wanted() {
        recent.add(store.applied() + 1, store.applied(), Vec::new());
    }
    let copies = Copies { dir: dir.to_owned(), reserved_len };
    let mut replay = Replay::of(Arc::clone(store), Arc::clone(recent), copies)?;
    let id = identity.namespace_id;
    let log = Log::open(disk, dir, id, store.applied(), &mut |sequence, bytes| {
        replay.take(sequence, bytes)?;
        replay.settle()
    })?;
    let retries = replay.end()?;
    recent.save(store.applied(), store.position().times.wall_ms);
    store.write_out()?;
    Ok((log, retries))
}

/// Where copies of the store are made that entries ask for.
pub(super) struct Copies {
    /// The folder of the store.
    pub dir: PathBuf,
    /// Bytes of the disk that a copy leaves free.
    pub reserved_len: u64,
}

/// Entries on their way from the log to the store.
pub(super) struct Replay {
    store: Arc<Store>,
    recent: Arc<Recent>,
    copies: Copies,
    has_new_settings: bool,
    /// The last entry has begun or ended a rolling upgrade.
    is_upgrade_changed: bool,
    retries: Retries,
    batch: Batch,
    /// Of the last entry.
    position: Position,
    /// The first entry that readers do not see yet.
    first: u64,
    events: Vec<EventBatch>,
}

impl Replay {
    /// Onto what the store has.
    pub fn of(store: Arc<Store>, recent: Arc<Recent>, copies: Copies) -> Result<Replay, OpenError> {
        let position = store.position();
        Ok(Replay {
            retries: Retries::load(&store.snapshot()).map_err(unread)?,
            batch: store.begin(store.group() + 1),
            store,
            recent,
            copies,
            has_new_settings: false,
            is_upgrade_changed: false,
            position,
            first: position.sequence + 1,
            events: Vec::new(),
        })
    }

    /// The next entry.
    pub fn take(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), OpenError> {
        let failed = |source| OpenError::Replay { sequence, source };
        let record =
            Record::from_bytes(bytes).map_err(|source| OpenError::Entry { sequence, source })?;
        let Record { entry, known } = record;
        let (Done { answer, changes }, chain) = match known {
            Some(known) => {
                if self.position.chain.is_some_and(|chain| !known.follows(chain)) {
                    return Err(OpenError::OtherHistory { sequence });
                }
                (known.done, Some(known.chain))
            }
            None => {
                // What it has done to blocks DataNodes tell.
                let Applied { answer, changes, .. } =
                    evaluate(&self.batch, &entry).map_err(failed)?;
                let done = Done { answer, changes };
                let chain =
                    self.position.chain.map(|chain| record::extend(chain, &record::encode(&done)));
                (done, chain)
            }
        };
        if self.recent.is_wanted() {
            let events = writer::happened(&self.batch, &changes, &entry, &answer)?;
            self.events.extend((!events.is_empty()).then_some(EventBatch { sequence, events }));
        }
        changes.write_to(&mut self.batch)?;
        let settings = settings::get(&self.batch).map_err(failed)?;
        self.retries.remember(&entry, &settings, &answer).map_err(failed)?;
        let times = self.position.times.max(entry.times());
        self.position = Position { sequence, chain, times };
        match entry.command {
            Command::WatchEvents(_) => {
                // What was not watched is not told of.
                if !self.recent.is_wanted() {
                    self.show();
                }
                self.recent.heed(entry.now_ms);
            }
            Command::PrepareUpgrade(_) | Command::Release(_) => self.is_upgrade_changed = true,
            Command::Configure(_) | Command::ConfigureSnapshots(_) => self.has_new_settings = true,
            _ => {}
        }
        if sequence + 1 - self.first >= STEP as u64 {
            self.show();
        }
        Ok(())
    }

    /// Whether what commands obey has changed since this was asked last.
    pub fn has_new_settings(&mut self) -> bool {
        std::mem::take(&mut self.has_new_settings)
    }

    /// Whether [`Replay::settle`] has something to do before the next entry.
    pub fn is_to_settle(&self) -> bool {
        self.is_upgrade_changed
    }

    /// Copies the store where a rolling upgrade has begun with the last entry, and gives the copy up where one has ended.
    /// The log must have that entry.
    pub fn settle(&mut self) -> Result<(), OpenError> {
        if !std::mem::take(&mut self.is_upgrade_changed) {
            return Ok(());
        }
        self.show();
        // What the store has, a start tells watchers no more.
        self.recent.save(self.position.sequence, self.position.times.wall_ms);
        self.store()?;
        let Copies { dir, reserved_len } = &self.copies;
        let upgrade = holds::get(&self.store.snapshot()).map_err(unread)?.upgrade;
        rollback::agree(dir, upgrade)?;
        let Some(Upgrade { start_ms, .. }) = upgrade else { return Ok(()) };
        if rollback::find(dir)?.is_none() {
            let point = RollbackPoint { start_ms, sequence: self.position.sequence };
            match rollback::make(dir, point, *reserved_len) {
                Ok(()) => tracing::info!(
                    sequence = point.sequence,
                    "a rolling upgrade begins: the store is copied"
                ),
                Err(error) => tracing::error!(
                    %error,
                    "a rolling upgrade begins, and the store cannot be copied: there is no way back at this NameNode"
                ),
            }
        }
        Ok(())
    }

    /// Has readers see what was taken.
    pub fn show(&mut self) {
        let group = self.store.group() + 1;
        self.store.commit(group, self.position);
        if self.recent.is_wanted() {
            let events = std::mem::take(&mut self.events);
            self.recent.add(self.first, self.position.sequence, events);
        }
        self.batch = self.store.begin(group + 1);
        self.first = self.position.sequence + 1;
    }

    /// Has the store's file come up to date with what was taken.
    pub fn store(&mut self) -> Result<(), StoreError> {
        save(&mut self.retries, &mut self.batch)?;
        self.show();
        self.store.write_out()?;
        self.batch = self.store.begin(self.store.group() + 1);
        Ok(())
    }

    /// Nothing follows.
    fn end(mut self) -> Result<Retries, OpenError> {
        // The first of a history.
        self.position.chain.get_or_insert_default();
        save(&mut self.retries, &mut self.batch)?;
        self.show();
        Ok(self.retries)
    }
}

#[cfg(test)]
mod tests;
