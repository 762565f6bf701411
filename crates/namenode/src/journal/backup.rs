//! Backups of a namespace that go on while it serves, and the way back from them.
//!
//! A backup is a snapshot, all records of the store as they were after one entry, or changes: the entries of the log that
//! followed. Whoever keeps them asks for a snapshot now and then and for changes often, and can restore any moment
//! between the first snapshot and the last change ([`restore`]). Tested in `tests/it/backup.rs`.
//!
//! Format: `docs/on-disk.md`.

pub mod file;
pub mod restore;

use super::log::{self, LogError};
use super::{Namesystem, SubmitError, Work, parked, rollback};
use crate::store::{Identity, Snapshot};
use cairn_namespace::Times;
use cairn_namespace::store::{StoreError, StoreRead, Table};
use file::{Encoder, Gone, Header, Kind, record};
use std::ops::ControlFlow;
use tokio::sync::oneshot;

/// What whoever wants changes has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// The last entry.
    pub sequence: u64,
    /// The timeline that it is of.
    pub timeline: u32,
    /// The last entry that is wanted, if not all are that there are.
    pub until: Option<u64>,
}

/// Why a backup can't be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The log does not have what is wanted any more.
    #[error("the log does not go back to entry {0} any more; make a whole backup")]
    TooOld(u64),
    /// The namespace has gone back to an earlier state since.
    #[error("the namespace has gone back to an earlier state since; make a whole backup")]
    OtherTimeline,
    /// There is no such entry.
    #[error(
        "entry {wanted} has not been made; the last one is {last}. Is this another file system?"
    )]
    Unknown {
        /// The entry that was asked for.
        wanted: u64,
        /// The last one that there is.
        last: u64,
    },
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The namespace has stopped.
    #[error(transparent)]
    Stopped(#[from] SubmitError),
    /// Who is to have the bytes takes no more.
    #[error("the receiver has gone")]
    Gone,
}

impl From<Gone> for BackupError {
    fn from(Gone: Gone) -> BackupError {
        BackupError::Gone
    }
}

impl Namesystem {
    /// Makes a backup: of the entries after `after` if that is given, of everything otherwise. `out` gets its pieces, and
    /// says whether it takes more. Blocks; an error before the first piece means that nothing was made.
    pub fn back_up(
        &self,
        after: Option<After>,
        out: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<Header, BackupError> {
        match after {
            Some(after) => self.back_up_changes(after, out),
            None => self.back_up_all(out),
        }
    }

    fn back_up_all(&self, out: &mut dyn FnMut(Vec<u8>) -> bool) -> Result<Header, BackupError> {
        let made_ms = self.clock.now().wall_ms;
        // Whoever goes on from it is to know the answers of calls that may come again.
        let (taker, mut taken) = oneshot::channel();
        parked(self.work(Work::Snapshot(taker)))?;
        let now = taken.try_recv().map_err(|_| SubmitError::Stopped)?;
        write_snapshot(&now, &self.identity, made_ms, out)
    }

    fn back_up_changes(
        &self,
        After { sequence: after, timeline, until }: After,
        out: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<Header, BackupError> {
        let (first, applied) = (after.saturating_add(1), self.store.applied());
        if timeline != rollback::timeline(&self.store.snapshot())? {
            return Err(BackupError::OtherTimeline);
        }
        if after > applied {
            return Err(BackupError::Unknown { wanted: after, last: applied });
        }
        let last = until.unwrap_or(applied).clamp(after, applied);
        let (made_ms, identity) = (self.clock.now().wall_ms, self.identity.clone());
        let (kind, chain, times) = (Kind::Changes, Some(0), Times::default());
        let header = Header { kind, first, last, made_ms, timeline, chain, times, identity };
        let segments = log::reach(&self.dir, first)?.ok_or(BackupError::TooOld(first))?;
        let mut encoder = Encoder::begin(&header, out)?;
        let range = first..=last;
        let next =
            log::read(&self.dir, self.identity.namespace_id, &segments, &range, &mut |entry| {
                encoder.push(entry).map(|_| ()).map_err(BackupError::from)
            })?;
        // A segment has gone meanwhile: it ends without its end.
        if next != last + 1 {
            return Err(BackupError::TooOld(next));
        }
        encoder.end()?;
        Ok(header)
    }
}

/// Hands all records of a store to `out`.
pub(super) fn write_snapshot(
    store: &Snapshot,
    identity: &Identity,
    made_ms: u64,
    out: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<Header, BackupError> {
    let (last, identity) = (store.applied(), identity.clone());
    let (kind, first, timeline) = (Kind::Snapshot, 0, rollback::timeline(store)?);
    let (chain, times) = (Some(store.chain().unwrap_or_default()), store.times());
    let header = Header { kind, first, last, made_ms, timeline, chain, times, identity };
    let mut encoder = Encoder::begin(&header, out)?;
    for table in Table::ALL {
        let (mut begins, mut done) = (true, Ok(()));
        store.scan(*table, &[], &[], &mut |key, value| {
            done = add(&mut encoder, &mut begins, *table, &record(key, value));
            if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        done.and_then(|()| encoder.end_frame())?;
    }
    encoder.end()?;
    Ok(header)
}

/// Adds a record of a table; the name of that goes before the first of each frame.
fn add(
    encoder: &mut Encoder<'_>,
    begins: &mut bool,
    table: Table,
    record: &[u8],
) -> Result<(), Gone> {
    if *begins {
        encoder.push(table.name().as_bytes())?;
    }
    *begins = encoder.push(record)?;
    Ok(())
}
