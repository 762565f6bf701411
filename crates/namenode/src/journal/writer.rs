//! The threads that change the namespace: one applies entries, the other makes them durable and shows them.
//!
//! While a group of entries is on its way to the disk, the next one is applied to what they will have been, and grows
//! until the disk is free. Answers are given in the order of groups.

use super::error::{Fatal, SubmitError};
use super::frame::{FrameBuilder, PAYLOAD_LEN_MAX};
use super::log::Log;
use super::options::{Durability, NamesystemOptions};
use super::outcomes::{save, unread};
use super::recent::Recent;
use super::rollback::{self, RollbackPoint};
use crate::store::{Batch, Spent, Store};
use cairn_namespace::encoding::STRING_LEN_MAX;
use cairn_namespace::events::{self, Event, EventBatch};
use cairn_namespace::store::{Changes, StoreError};
use cairn_namespace::{Entry, NamespaceError, Outcome, Retries, evaluate, settings};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// A group is closed when its frame is this long, in bytes.
const FRAME_LEN_GOAL: usize = PAYLOAD_LEN_MAX / 8;

/// Entries that are applied before it is looked whether the disk is free: a group that could be on its way there is not
/// to wait for all who have asked.
const STEP: usize = 32;

/// Longest entry, so that each of its strings can be read back.
pub const ENTRY_LEN_MAX: usize = STRING_LEN_MAX;

/// Records in memory from which on they are written to the store's file. If as many again come before they are there,
/// callers wait.
const WAITING_MAX: usize = 400_000;

/// The same from which on work that can wait is to wait until a checkpoint that is under way has ended.
const WAITING_GOAL: usize = WAITING_MAX / 2;

/// What callers wait for the disk at a time without anybody being told.
const SLOW: Duration = Duration::from_millis(500);

/// How often, and how long each time, a checkpoint waits until nobody reads any more what it has written.
const LET_GO_TRIES: usize = 20;
const LET_GO: Duration = Duration::from_millis(5);

type Answer = Result<Outcome, SubmitError>;

/// Whether the store's file lags so far behind that callers would have to wait for it soon.
pub(crate) fn is_behind(store: &Store) -> bool {
    store.is_written_to() && store.waiting() >= WAITING_GOAL
}

/// An entry and who waits for its outcome.
pub struct Request {
    /// What to apply.
    pub entry: Entry,
    /// Gets the outcome; a caller that has gone away is no error.
    pub reply: oneshot::Sender<Answer>,
}

/// Something that is done between two groups.
pub enum Work {
    /// A new segment of the log; answers with the number of its first entry.
    Roll,
    /// A checkpoint; answers with the number of the last entry in it.
    Checkpoint,
    /// A checkpoint, and a copy of it to go back to; answers as a checkpoint.
    RollbackPoint {
        /// The folder of log and store.
        dir: PathBuf,
        /// The time of the point, ms since the epoch.
        start_ms: u64,
        /// Bytes of the disk that the copy leaves free.
        reserved_len: u64,
    },
}

/// Who waits for work.
type WorkReply = oneshot::Sender<Result<u64, SubmitError>>;

/// What the first thread is told.
pub enum Input {
    /// Something to apply.
    Request(Request),
    /// Something to do when no group is open or under way.
    Work(Work, WorkReply),
    /// The last group is durable, or will never be.
    Written(Result<(), Fatal>),
    /// What was set aside is in the store's file, or will never be.
    Checkpointed(Result<(), Fatal>),
    /// Nothing comes any more.
    Close,
}

/// Entries that are made durable together.
struct Group {
    number: u64,
    /// The last entry that was applied.
    applied: u64,
    frame: FrameBuilder,
    watched: Option<Watched>,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
}

/// What entries from the first one on have done, for those who watch.
struct Watched {
    first: u64,
    batches: Vec<EventBatch>,
}

fn warn_if_slow(since: Instant, what: &str) {
    let elapsed = since.elapsed();
    if elapsed >= SLOW {
        tracing::warn!(ms = elapsed.as_millis() as u64, "{what}");
    }
}

/// What makes groups durable.
#[derive(Clone)]
struct Finisher {
    store: Arc<Store>,
    recent: Arc<Recent>,
    log: Arc<Mutex<Log>>,
    durability: Durability,
    /// Where callers wait, if their runtime has threads of its own.
    runtime: Option<Handle>,
}

impl Finisher {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a group, shows it to readers, and answers.
    fn finish(&self, group: Group) -> Result<(), Fatal> {
        if !group.frame.is_empty() {
            let (last, begun) = (group.frame.last(), Instant::now());
            let mut log = self.log();
            let sync = self.durability == Durability::Stable;
            log.append(group.frame, sync).map_err(Fatal::Append)?;
            warn_if_slow(begun, "the disk of the namespace's log is slow: callers had to wait");
            self.store.commit(group.number, last);
        }
        if let Some(Watched { first, batches }) = group.watched {
            self.recent.add(first, group.applied, batches);
        }
        self.deliver(group.answers);
        Ok(())
    }

    /// Gives callers their answers. Waking a task from outside of its runtime takes a lock and a system call each
    /// time, so many are woken from inside.
    fn deliver(&self, answers: Vec<(oneshot::Sender<Answer>, Answer)>) {
        let deliver = move || {
            for (reply, answer) in answers {
                // The caller may have gone away; the entry stands all the same.
                let _ = reply.send(answer);
            }
        };
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(async move { deliver() })),
            None => deliver(),
        }
    }

    /// Brings the store's file up to date with what was set aside, which ends with the entry `upto`, and drops the
    /// log that it no longer needs.
    fn checkpoint(&self, upto: u64, segment_len: u64) -> Result<Option<Spent>, Fatal> {
        let mut log = self.log();
        log.sync().map_err(Fatal::Append)?;
        if log.segment_len() > segment_len {
            log.roll()?;
        }
        drop(log);
        // What the store has, a start tells nobody any more.
        self.recent.save(upto);
        let spent = self.store.write_aside()?;
        self.log().truncate_front(upto)?;
        Ok(spent)
    }

    /// Finishes groups as they come, until there are no more or one fails.
    fn run(self, groups: Receiver<Group>, events: Sender<Input>) {
        for group in groups {
            let done = catch_unwind(AssertUnwindSafe(|| self.finish(group)));
            let done = done.unwrap_or_else(|_| {
                let reason = "the log thread has panicked".to_string();
                Err(StoreError::Backend(reason).into())
            });
            let failed = done.is_err();
            // Nobody listens when the other thread has failed.
            if events.send(Input::Written(done)).is_err() || failed {
                return;
            }
        }
    }
}

/// State of the thread that applies.
pub struct Writer {
    finisher: Finisher,
    events: Receiver<Input>,
    /// Where the other thread tells that it is done.
    told: Sender<Input>,
    group_max: usize,
    segment_len: u64,
    checkpoint_entries: u64,
    checkpoint_interval: Duration,
    /// The group that is open.
    number: u64,
    batch: Batch,
    /// Of all entries that were applied.
    retries: Arc<Mutex<Retries>>,
    frame: FrameBuilder,
    watched: Option<Watched>,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    /// A group is with the other thread.
    is_busy: bool,
    /// What is done before anything else is applied.
    works: VecDeque<(Work, WorkReply)>,
    /// The thread that writes to the store's file, or has last done so.
    checkpoint: Option<JoinHandle<()>>,
    /// It has not told yet that it is done.
    is_writing: bool,
    /// Requests for which the open group has no room.
    backlog: VecDeque<Request>,
    /// Since when they wait for the store's file, if they do.
    held_up: Option<Instant>,
    /// Last entry that was applied.
    applied: u64,
    /// Last entry in the store's file, or on its way there.
    checkpointed: u64,
    checkpointed_at: Instant,
}

impl Writer {
    /// Ready to run; `log` must end where `store` does. `told` sends to `events`.
    pub fn new(
        store: Arc<Store>,
        log: Log,
        (told, events): (Sender<Input>, Receiver<Input>),
        recent: Arc<Recent>,
        retries: Arc<Mutex<Retries>>,
        options: &NamesystemOptions,
    ) -> Writer {
        let applied = store.applied();
        let number = store.group() + 1;
        Writer {
            batch: store.begin(number),
            retries,
            finisher: Finisher {
                store,
                recent,
                log: Arc::new(Mutex::new(log)),
                durability: options.durability,
                runtime: Handle::try_current()
                    .ok()
                    .filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread),
            },
            events,
            told,
            group_max: options.group_max.max(1),
            segment_len: options.segment_len,
            checkpoint_entries: options.checkpoint_entries.max(1),
            checkpoint_interval: options.checkpoint_interval,
            number,
            frame: FrameBuilder::new(applied + 1),
            watched: None,
            answers: Vec::new(),
            is_busy: false,
            works: VecDeque::new(),
            checkpoint: None,
            is_writing: false,
            backlog: VecDeque::new(),
            held_up: None,
            applied,
            checkpointed: applied,
            checkpointed_at: Instant::now(),
        }
    }

    /// Serves requests until the namespace is closed or its disk fails; callers whose requests are dropped then
    /// learn that nothing is known about them.
    pub fn run(mut self) -> Result<(), Fatal> {
        let (groups, queue) = sync_channel(1);
        let (finisher, told) = (self.finisher.clone(), self.told.clone());
        let thread = std::thread::Builder::new()
            .name("namespace-log".to_string())
            .spawn(move || finisher.run(queue, told))
            .map_err(Fatal::Append)?;
        let served = self.serve(&groups);
        drop(groups);
        let threads = [Some(thread), self.checkpoint.take()];
        if threads.into_iter().flatten().any(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the namespace has panicked");
        }
        served
    }

    /// Applies one entry before the thread runs.
    pub fn apply_now(&mut self, entry: Entry) -> Result<Answer, Fatal> {
        let (reply, _) = oneshot::channel();
        self.apply(Request { entry, reply })?;
        let mut group = self.seal();
        let answer = group.answers.pop();
        self.finisher.finish(group)?;
        Ok(answer.map_or(Err(SubmitError::Stopped), |(_, answer)| answer))
    }

    fn serve(&mut self, groups: &SyncSender<Group>) -> Result<(), Fatal> {
        let mut is_closing = false;
        loop {
            let is_idle = !self.is_busy && self.answers.is_empty() && self.backlog.is_empty();
            if is_closing && is_idle && !self.is_writing {
                return self.checkpoint();
            }
            // One event is waited for, then all that are there are taken.
            let mut event = self.wait()?;
            while let Some(told) = event {
                match told {
                    Input::Request(request) => self.backlog.push_back(request),
                    Input::Work(work, reply) => self.works.push_back((work, reply)),
                    Input::Written(done) => {
                        done?;
                        self.is_busy = false;
                    }
                    Input::Checkpointed(done) => {
                        done?;
                        self.is_writing = false;
                        if self.answers.is_empty() {
                            self.batch = self.finisher.store.begin(self.number);
                        }
                    }
                    Input::Close => is_closing = true,
                }
                event = self.events.try_recv().ok();
            }
            if !self.is_busy && !self.is_writing && self.answers.is_empty() {
                while let Some((work, reply)) = self.works.pop_front() {
                    // Who has asked may have gone away.
                    let _ = reply.send(self.work(work)?);
                }
            }
            // The open group and the one under way come first; others wait that long.
            if self.is_due() && !self.is_busy && self.answers.is_empty() {
                self.begin_checkpoint()?;
            }
            for _ in 0..STEP {
                if !self.can_apply() {
                    break;
                }
                let Some(request) = self.backlog.pop_front() else { break };
                self.apply(request)?;
            }
            if self.is_writing && self.is_held_up() && !self.backlog.is_empty() {
                self.held_up.get_or_insert_with(Instant::now);
            } else if let Some(since) = self.held_up.take() {
                warn_if_slow(
                    since,
                    "the disk of the namespace's store is slow: callers had to wait",
                );
            }
            if !self.is_busy && !self.answers.is_empty() {
                let group = self.seal();
                self.is_busy = true;
                if groups.send(group).is_err() {
                    let reason = "the log thread has ended".to_string();
                    return Err(StoreError::Backend(reason).into());
                }
            }
        }
    }

    /// The next event; none if the time of a checkpoint has come.
    fn wait(&self) -> Result<Option<Input>, Fatal> {
        // What is left over from before needs no event.
        if !self.backlog.is_empty() && self.can_apply() {
            return Ok(self.events.try_recv().ok());
        }
        let ended = || Fatal::from(StoreError::Backend("nobody is left to ask".to_string()));
        let is_under_way = self.is_busy || self.is_writing;
        if self.applied == self.checkpointed || is_under_way {
            return self.events.recv().map(Some).map_err(|_| ended());
        }
        let idle = self.checkpoint_interval.saturating_sub(self.checkpointed_at.elapsed());
        match self.events.recv_timeout(idle.max(Duration::from_millis(1))) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }

    /// Whether the open group may grow.
    fn can_apply(&self) -> bool {
        let is_full = self.answers.len() >= self.group_max || self.frame.len() >= FRAME_LEN_GOAL;
        !is_full && !self.is_held_up()
    }

    /// Whether a checkpoint is to be made now.
    fn is_due(&self) -> bool {
        let entries = self.applied - self.checkpointed;
        let waits = entries >= self.checkpoint_entries
            || self.finisher.store.waiting() >= WAITING_MAX
            || entries > 0 && self.checkpointed_at.elapsed() >= self.checkpoint_interval;
        waits && !self.is_writing
    }

    /// Whether nothing can be applied before a checkpoint has begun, or ended, or what needs the store at rest is done.
    fn is_held_up(&self) -> bool {
        let is_asked = self.is_due() || !self.works.is_empty();
        is_asked || self.is_writing && self.finisher.store.waiting() >= WAITING_MAX
    }

    /// Closes the open group and begins the next.
    fn seal(&mut self) -> Group {
        let number = self.number;
        self.number += 1;
        self.batch = self.finisher.store.begin(self.number);
        let frame = std::mem::replace(&mut self.frame, FrameBuilder::new(self.applied + 1));
        let (watched, answers) = (self.watched.take(), std::mem::take(&mut self.answers));
        Group { number, applied: self.applied, frame, watched, answers }
    }

    /// Sets what was applied aside, and has a thread write it to the store's file. No group is open or under way.
    fn begin_checkpoint(&mut self) -> Result<(), Fatal> {
        // The last one's thread may still free what it has written, which callers need not wait for.
        let last = self.checkpoint.take().filter(JoinHandle::is_finished);
        if last.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a checkpoint of the namespace has panicked");
        }
        self.save_retries()?;
        self.finisher.store.set_aside();
        self.checkpointed = self.applied;
        self.batch = self.finisher.store.begin(self.number);
        self.checkpointed_at = Instant::now();
        let (finisher, told) = (self.finisher.clone(), self.told.clone());
        let (upto, segment_len) = (self.checkpointed, self.segment_len);
        let thread = std::thread::Builder::new().name("namespace-checkpoint".to_string());
        let thread = thread.spawn(move || {
            let work = AssertUnwindSafe(|| finisher.checkpoint(upto, segment_len));
            let done = catch_unwind(work).unwrap_or_else(|_| {
                let reason = "a checkpoint has panicked".to_string();
                Err(StoreError::Backend(reason).into())
            });
            let (done, spent) = match done {
                Ok(spent) => (Ok(()), spent),
                Err(error) => (Err(error), None),
            };
            // Nobody listens when the writer has failed.
            let _ = told.send(Input::Checkpointed(done));
            // Whoever lets go last frees it all, which takes a while: that should be this thread.
            for _ in 0..LET_GO_TRIES {
                if spent.as_ref().is_none_or(Spent::is_last) {
                    break;
                }
                std::thread::sleep(LET_GO);
            }
        });
        self.is_writing = true;
        self.checkpoint = Some(thread.map_err(Fatal::Append)?);
        Ok(())
    }

    fn retries(&self) -> MutexGuard<'_, Retries> {
        self.retries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to what is to be set aside the outcomes of all that were applied.
    fn save_retries(&mut self) -> Result<(), Fatal> {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(save(&mut retries, &mut self.batch)?)
    }

    /// Makes the store durable up to here. Nothing is under way.
    fn checkpoint(&mut self) -> Result<(), Fatal> {
        if self.applied > self.checkpointed {
            self.save_retries()?;
            self.finisher.store.set_aside();
            self.finisher.checkpoint(self.applied, self.segment_len)?;
            self.checkpointed = self.applied;
            self.batch = self.finisher.store.begin(self.number);
            self.checkpointed_at = Instant::now();
        }
        Ok(())
    }

    /// Does what needs the log and the store at rest. An error is not the caller's.
    fn work(&mut self, work: Work) -> Result<Result<u64, SubmitError>, Fatal> {
        if let Work::Roll = work {
            self.finisher.log().roll()?;
            return Ok(Ok(self.applied + 1));
        }
        self.checkpoint()?;
        let mut log = self.finisher.log();
        log.roll()?;
        log.truncate_front(self.checkpointed)?;
        drop(log);
        if let Work::RollbackPoint { dir, start_ms, reserved_len } = work {
            let point = RollbackPoint { start_ms, sequence: self.applied };
            if let Err(error) = rollback::make(&dir, point, reserved_len) {
                return Ok(Err(SubmitError::RollbackPoint(error.to_string())));
            }
        }
        Ok(Ok(self.applied))
    }

    /// Applies one entry to the open group; an error is not the caller's.
    fn apply(&mut self, Request { entry, reply }: Request) -> Result<(), Fatal> {
        if self.watched.is_none() && self.finisher.recent.is_wanted() {
            self.watched = Some(Watched { first: self.applied + 1, batches: Vec::new() });
        }
        let known = self.retries().find(&entry).map_err(fatal)?;
        if let Some(outcome) = known {
            self.answers.push((reply, Ok(outcome)));
            return Ok(());
        }
        let bytes = entry.to_bytes();
        let answer = match evaluate(&self.batch, &entry) {
            // What changes nothing need not be replayed, but for its outcome.
            Ok((outcome, changes)) if changes.is_empty() && entry.once().is_none() => Ok(outcome),
            Ok(_) if bytes.len() > ENTRY_LEN_MAX => {
                let text =
                    format!("a call of {} bytes is too long: limit={ENTRY_LEN_MAX}", bytes.len());
                Err(SubmitError::Refused(NamespaceError::Io(text)))
            }
            Ok((outcome, changes)) => {
                let sequence = self.frame.push(&bytes);
                if let Some(watched) = &mut self.watched {
                    let events = happened(&self.batch, &changes, &entry, &outcome)?;
                    if !events.is_empty() {
                        watched.batches.push(EventBatch { sequence, events });
                    }
                }
                changes.write_to(&mut self.batch)?;
                let settings = settings::get(&self.batch).map_err(fatal)?;
                self.retries().remember(&entry, &settings, &outcome).map_err(fatal)?;
                self.applied = sequence;
                Ok(outcome)
            }
            Err(NamespaceError::Store(error)) => return Err(error.into()),
            Err(refused) => Err(SubmitError::Refused(refused)),
        };
        self.answers.push((reply, answer));
        Ok(())
    }
}

/// What cannot be the fault of a caller.
fn fatal(error: NamespaceError) -> Fatal {
    unread(error).into()
}

/// What an entry has done. That it cannot be told is no reason not to do it.
pub(super) fn happened(
    before: &Batch,
    changes: &Changes,
    entry: &Entry,
    outcome: &Outcome,
) -> Result<Vec<Event>, Fatal> {
    match events::of(before, changes, entry, outcome) {
        Ok(events) => Ok(events),
        Err(NamespaceError::Store(error)) => Err(error.into()),
        Err(error) => {
            tracing::error!(%error, command = entry.command.name(), "what a command has done cannot be told");
            Ok(Vec::new())
        }
    }
}
