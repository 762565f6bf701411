//! What a start does with the entries that had not come to the store's file.
//!
//! It writes what the log says that they have done, and decides nothing again: another build would perhaps decide
//! otherwise. Only what earlier builds have logged, commands alone, is evaluated.

use super::error::OpenError;
use super::log::Log;
use super::outcomes::{save, unread};
use super::recent::Recent;
use super::record::{self, Record};
use super::writer;
use crate::store::{Batch, Identity, Position, Store};
use cairn_namespace::events::EventBatch;
use cairn_namespace::store::StoreError;
use cairn_namespace::{Applied, Done, Retries, evaluate, settings};
use std::path::Path;
use std::sync::Arc;

/// Entries that readers see at a time.
const STEP: usize = 1000;

/// Brings the store up to date with the log. Returns the log, at whose end it is, and the outcomes of calls.
pub(super) fn replay(
    dir: &Path,
    identity: &Identity,
    store: &Arc<Store>,
    recent: &Arc<Recent>,
) -> Result<(Log, Retries), OpenError> {
    // Who has watched is told from here on, also if nothing has happened.
    if recent.is_wanted() {
        recent.add(store.applied() + 1, store.applied(), Vec::new());
    }
    let mut replay = Replay::of(Arc::clone(store), Arc::clone(recent))?;
    let log = Log::open(dir, identity.namespace_id, store.applied(), &mut |sequence, bytes| {
        replay.take(sequence, bytes)
    })?;
    let retries = replay.end()?;
    recent.save(store.applied());
    store.write_out()?;
    Ok((log, retries))
}

/// Entries on their way from the log to the store.
pub(super) struct Replay {
    store: Arc<Store>,
    recent: Arc<Recent>,
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
    pub fn of(store: Arc<Store>, recent: Arc<Recent>) -> Result<Replay, OpenError> {
        let position = store.position();
        Ok(Replay {
            retries: Retries::load(&store.snapshot()).map_err(unread)?,
            batch: store.begin(store.group() + 1),
            store,
            recent,
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
        if sequence - self.first + 1 >= STEP as u64 {
            self.show();
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
