//! The namespace of a member that follows: it writes what was agreed on to log and store, and decides nothing.
//!
//! What it has goes on from what a [`Namesystem`](super::Namesystem) had in the same folder, and the other way round.
//! Every group says what all entries have changed up to it, so a member that has something else finds that at once.

use super::agree;
use super::entering::enter;
use super::error::{Fatal, OpenError};
use super::frame::FrameBuilder;
use super::log::Log;
use super::options::NamesystemOptions;
use super::outcomes::unread;
use super::recent::{Recent, Stored};
use super::replay::{Copies, Replay};
use super::restored::{self, Restored};
use super::rollback;
use crate::clock::wall_ms;
use crate::disk::{Disk, SharedDisk};
use crate::store::{Identity, Store};
use cairn_namespace::holds;
use cairn_namespace::obeyed::{Difference, Obeyed};
use cairn_namespace::query;
use cairn_namespace::store::StoreError;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a member cannot take what was agreed on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// Its folder can't be used, or what was agreed on does not follow what it has.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its log or its store can't be written.
    #[error(transparent)]
    Write(#[from] Fatal),
    /// It is none that this build knows.
    #[error("what was agreed on is not understood; was it a newer version of Cairn?")]
    Malformed,
    /// Something is missing in between.
    #[error("what was agreed on goes on at entry {found}, and entry {expected} is missing")]
    Gap {
        /// The entry that is needed.
        expected: u64,
        /// The one that came.
        found: u64,
    },
}

/// See the module.
pub struct Follower {
    identity: Identity,
    store: Arc<Store>,
    recent: Arc<Recent>,
    replay: Replay,
    log: Log,
    segment_len: u64,
    checkpoint_entries: u64,
    checkpoint_interval: Duration,
    /// The last entry that the store's file has.
    stored: u64,
    stored_at: Instant,
    /// What the configuration of this member says, and what has been told of where that is not what is in force.
    configured: Obeyed,
    differences: Vec<Difference>,
    /// Held until log and store are closed.
    _lock: File,
}

impl Follower {
    /// Opens the namespace in `dir`; none if there is none. Blocks.
    pub fn open(dir: &Path, options: &NamesystemOptions) -> Result<Option<Follower>, OpenError> {
        Follower::open_on(&Disk::shared(), dir, options)
    }

    /// The same on another disk.
    pub(super) fn open_on(
        disk: &SharedDisk,
        dir: &Path,
        options: &NamesystemOptions,
    ) -> Result<Option<Follower>, OpenError> {
        let (lock, identity) = enter(&**disk, dir, options.dir_mode)?;
        let Some(identity) = identity else { return Ok(None) };
        rollback::find(dir)?;
        let store = Store::open_on(&**disk, &dir.join("namespace.redb"), options.cache_len)?;
        let store = Arc::new(store);
        let (history_len, stored) = (options.event_history_len, Stored::of(&store)?);
        let applied = stored.applied;
        let recent = Arc::new(Recent::open(dir, identity.namespace_id, history_len, stored));
        let copies = Copies { dir: dir.to_owned(), reserved_len: options.reserved_len };
        let mut replay = Replay::of(Arc::clone(&store), Arc::clone(&recent), copies)?;
        let log = Log::open(disk, dir, identity.namespace_id, applied, &mut |sequence, bytes| {
            replay.take(sequence, bytes)?;
            replay.settle()
        })?;
        replay.show();
        // It may have ended while others went on.
        let upgrade = holds::get(&store.snapshot()).map_err(unread)?.upgrade;
        rollback::agree(dir, upgrade)?;
        if upgrade.is_some() && rollback::find(dir)?.is_none() {
            tracing::warn!("a rolling upgrade lasts, and this NameNode has no copy to go back to");
        }
        let mut follower = Follower {
            identity,
            stored: applied,
            store,
            recent,
            replay,
            log: log.keeping(options.kept_log_len),
            segment_len: options.segment_len,
            checkpoint_entries: options.checkpoint_entries,
            checkpoint_interval: options.checkpoint_interval,
            stored_at: Instant::now(),
            configured: options.obeyed(),
            differences: Vec::new(),
            _lock: lock,
        };
        follower.compare_settings()?;
        Ok(Some(follower))
    }

    /// Warns of settings that are not those that are in force: they would be if this member led.
    fn compare_settings(&mut self) -> Result<(), StoreError> {
        let in_force = Obeyed::in_force(&self.store.snapshot()).map_err(unread)?;
        let found = in_force.map(|in_force| in_force.differences(&self.configured));
        let found = found.unwrap_or_default();
        if found != self.differences {
            for Difference { key, first, second } in &found {
                tracing::warn!(
                    key,
                    in_force = first,
                    configured = second,
                    "this NameNode is configured otherwise than the one that leads"
                );
            }
            if found.is_empty() {
                tracing::info!("this NameNode is configured as the one that leads");
            }
            self.differences = found;
        }
        Ok(())
    }

    /// Whose namespace it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(super) fn recent(&self) -> &Arc<Recent> {
        &self.recent
    }

    /// The last entry that it has.
    pub fn last(&self) -> u64 {
        self.store.applied()
    }

    /// Blocks and groups that DataNodes are to have.
    pub fn blocks(&self) -> Result<u64, FollowError> {
        let totals = query::totals(&self.store.snapshot()).map_err(unread);
        let totals = totals.map_err(OpenError::from)?;
        // What is packed is in its container.
        Ok(totals.blocks.saturating_sub(totals.packed))
    }

    /// Takes a group that was agreed on; one that it has already comes to nothing. After an error it must not be used
    /// again. Blocks.
    pub fn take(&mut self, group: &[u8]) -> Result<(), FollowError> {
        let frame = agree::parse(group).ok_or(FollowError::Malformed)?;
        let expected = self.last() + 1;
        if frame.last() < expected {
            return Ok(());
        }
        if frame.first != expected {
            return Err(FollowError::Gap { expected, found: frame.first });
        }
        let mut logged = FrameBuilder::new(expected);
        for (sequence, entry) in (expected..).zip(frame.entries()) {
            self.replay.take(sequence, entry)?;
            logged.push(entry);
            if self.replay.is_to_settle() {
                let whole = std::mem::replace(&mut logged, FrameBuilder::new(sequence + 1));
                self.log.append(whole, true).map_err(Fatal::Append)?;
                self.replay.settle()?;
            }
        }
        if !logged.is_empty() {
            self.log.append(logged, false).map_err(Fatal::Append)?;
        }
        self.replay.show();
        if self.replay.has_new_settings() {
            self.compare_settings().map_err(Fatal::from)?;
        }
        Ok(())
    }

    /// Has the store's file come up to date if it is time for that; returns the last entry that it has. Blocks.
    pub fn store_if_due(&mut self) -> Result<u64, FollowError> {
        let last = self.last();
        let is_due = last - self.stored >= self.checkpoint_entries
            || last > self.stored && self.stored_at.elapsed() >= self.checkpoint_interval;
        if is_due {
            self.log.sync().map_err(Fatal::Append)?;
            if self.log.segment_len() > self.segment_len {
                self.log.roll().map_err(Fatal::from)?;
            }
            self.recent.save(last, self.store.position().times.wall_ms);
            self.replay.store().map_err(Fatal::from)?;
            self.log.truncate_front(last).map_err(Fatal::from)?;
            (self.stored, self.stored_at) = (last, Instant::now());
        }
        Ok(self.stored)
    }
}

impl Follower {
    /// Has the namespace go on behind what it has on a timeline of its own, as after a restore: with numbers that were not
    /// given out, and with nothing deleted before somebody has accepted it. Blocks.
    pub fn begin_anew(mut self, dir: &Path) -> Result<Restored, FollowError> {
        let sequence = self.last();
        self.log.sync().map_err(Fatal::Append)?;
        self.replay.store().map_err(Fatal::from)?;
        let entry_ms = self.store.position().times.wall_ms;
        let restored = Restored { sequence, entry_ms, at_ms: wall_ms() };
        restored::hold(&self.store, &|holds| holds.restored = Some(restored))
            .map_err(Fatal::from)?;
        rollback::begin_anew(dir, &self.identity, &self.store, sequence)?;
        Ok(restored)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // The next one may have the folder only when nothing is written there any more.
        self.store.close();
    }
}

#[cfg(test)]
mod tests;
