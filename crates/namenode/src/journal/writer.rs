//! The one thread that changes the namespace.

use super::frame::{FrameBuilder, PAYLOAD_LEN_MAX};
use super::log::{Log, LogError};
use super::recent::{Batch, Recent};
use super::{Durability, NamesystemOptions, SubmitError};
use crate::store::{BatchTables, Durable, Store};
use cairn_namespace::encoding::STRING_LEN_MAX;
use cairn_namespace::events::Event;
use cairn_namespace::store::{Changes, StoreError};
use cairn_namespace::{Entry, NamespaceError, Outcome, evaluate, events};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A group is closed when its frame is this long, in bytes.
const FRAME_LEN_GOAL: usize = PAYLOAD_LEN_MAX / 8;

/// Longest entry, so that each of its strings can be read back.
const ENTRY_LEN_MAX: usize = STRING_LEN_MAX;

/// An entry and who waits for its outcome.
pub struct Request {
    /// What to apply.
    pub entry: Entry,
    /// Gets the outcome; a caller that has gone away is no error.
    pub reply: oneshot::Sender<Result<Outcome, SubmitError>>,
}

/// What stops the writer.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A segment of the log can't be made or removed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log can't be written.
    #[error("the log can't be written: {0}")]
    Append(std::io::Error),
}

/// State of the writer thread.
pub struct Writer {
    store: Arc<Store>,
    log: Log,
    requests: Receiver<Request>,
    recent: Arc<Recent>,
    durability: Durability,
    group_max: usize,
    segment_len: u64,
    checkpoint_entries: u64,
    checkpoint_interval: Duration,
    /// Last entry in the store.
    applied: u64,
    /// Last entry in a durable commit of the store.
    checkpointed: u64,
    checkpointed_at: Instant,
}

impl Writer {
    /// Ready to run; `log` must end where `store` does.
    pub fn new(
        store: Arc<Store>,
        log: Log,
        requests: Receiver<Request>,
        recent: Arc<Recent>,
        options: &NamesystemOptions,
    ) -> Result<Writer, StoreError> {
        let applied = store.applied()?;
        Ok(Writer {
            store,
            log,
            requests,
            recent,
            durability: options.durability,
            group_max: options.group_max.max(1),
            segment_len: options.segment_len,
            checkpoint_entries: options.checkpoint_entries.max(1),
            checkpoint_interval: options.checkpoint_interval,
            applied,
            checkpointed: applied,
            checkpointed_at: Instant::now(),
        })
    }

    /// Serves requests until the namespace is closed or its disk fails; callers whose requests are dropped then
    /// learn that nothing is known about them.
    pub fn run(mut self) -> Result<(), Fatal> {
        self.serve()
    }

    /// Applies one entry before the thread runs.
    pub fn apply_now(&mut self, entry: Entry) -> Result<Result<Outcome, SubmitError>, Fatal> {
        let (reply, mut answer) = oneshot::channel();
        self.serve_group(Request { entry, reply })?;
        Ok(answer.try_recv().unwrap_or(Err(SubmitError::Stopped)))
    }

    fn serve(&mut self) -> Result<(), Fatal> {
        loop {
            let idle = self.checkpoint_interval.saturating_sub(self.checkpointed_at.elapsed());
            let idle = idle.max(Duration::from_millis(1));
            let first = if self.applied == self.checkpointed {
                self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.requests.recv_timeout(idle)
            };
            match first {
                Ok(request) => self.serve_group(request)?,
                Err(RecvTimeoutError::Timeout) => self.checkpoint()?,
                Err(RecvTimeoutError::Disconnected) => return self.checkpoint(),
            }
            if self.is_checkpoint_due() {
                self.checkpoint()?;
            }
        }
    }

    fn is_checkpoint_due(&self) -> bool {
        let entries = self.applied - self.checkpointed;
        entries >= self.checkpoint_entries
            || entries > 0 && self.checkpointed_at.elapsed() >= self.checkpoint_interval
    }

    /// Applies `first` and all that wait behind it, makes them durable, and answers.
    fn serve_group(&mut self, first: Request) -> Result<(), Fatal> {
        let batch = self.store.begin()?;
        let mut tables = batch.tables()?;
        let first_sequence = self.applied + 1;
        let mut frame = FrameBuilder::new(first_sequence);
        let mut watched = self.recent.is_wanted().then(Vec::new);
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some(Request { entry, reply }) = next {
            let answer = apply_one(&mut tables, &mut frame, &entry, watched.as_mut())?;
            answers.push((reply, answer));
            let full = answers.len() >= self.group_max || frame.len() >= FRAME_LEN_GOAL;
            next = if full { None } else { self.requests.try_recv().ok() };
        }
        if frame.is_empty() {
            drop(tables);
            batch.abort()?;
        } else {
            let last = frame.last();
            tables.set_applied(last)?;
            drop(tables);
            let bytes = frame.finish(self.log.is_synced());
            let sync = self.durability == Durability::Stable;
            self.log.append(&bytes, last, sync).map_err(Fatal::Append)?;
            batch.commit(Durable::No)?;
            self.applied = last;
        }
        if let Some(batches) = watched {
            self.recent.add(first_sequence, self.applied, batches);
        }
        for (reply, answer) in answers {
            // The caller may have gone away; the entry stands all the same.
            let _ = reply.send(answer);
        }
        Ok(())
    }

    /// Makes the store durable up to here and drops the log that it no longer needs.
    fn checkpoint(&mut self) -> Result<(), Fatal> {
        if self.applied > self.checkpointed {
            self.log.sync().map_err(Fatal::Append)?;
            self.store.begin()?.commit(Durable::Yes)?;
            self.checkpointed = self.applied;
            if self.log.segment_len() > self.segment_len {
                self.log.roll()?;
            }
            self.log.truncate_front(self.checkpointed)?;
        }
        self.checkpointed_at = Instant::now();
        Ok(())
    }
}

/// Applies one entry of a group and tells what it has done; the inner error is the caller's.
fn apply_one(
    tables: &mut BatchTables<'_>,
    frame: &mut FrameBuilder,
    entry: &Entry,
    watched: Option<&mut Vec<Batch>>,
) -> Result<Result<Outcome, SubmitError>, Fatal> {
    let bytes = entry.to_bytes();
    if bytes.len() > ENTRY_LEN_MAX {
        let text = format!("a call of {} bytes is too long: limit={ENTRY_LEN_MAX}", bytes.len());
        return Ok(Err(SubmitError::Refused(NamespaceError::Io(text))));
    }
    match evaluate(tables, entry) {
        Ok((outcome, changes)) => {
            // What changes nothing need not be replayed.
            if !changes.is_empty() {
                let happened =
                    watched.is_some().then(|| happened(tables, &changes, entry, &outcome));
                changes.write_to(tables)?;
                frame.push(&bytes);
                if let (Some(batches), Some(events)) = (watched, happened.transpose()?)
                    && !events.is_empty()
                {
                    batches.push(Batch { sequence: frame.last(), events });
                }
            }
            Ok(Ok(outcome))
        }
        Err(NamespaceError::Store(error)) => Err(error.into()),
        Err(refused) => Ok(Err(SubmitError::Refused(refused))),
    }
}

/// What an entry has done. That it cannot be told is no reason not to do it.
fn happened(
    tables: &BatchTables<'_>,
    changes: &Changes,
    entry: &Entry,
    outcome: &Outcome,
) -> Result<Vec<Event>, Fatal> {
    match events::of(tables, changes, entry, outcome) {
        Ok(events) => Ok(events),
        Err(NamespaceError::Store(error)) => Err(error.into()),
        Err(error) => {
            tracing::error!(%error, command = entry.command.name(), "what a command has done cannot be told");
            Ok(Vec::new())
        }
    }
}
