//! The thread that applies entries to what they will have been.
//!
//! While a group of entries is on its way to the disk, the next one is applied to what they will have been, and grows
//! until the disk is free. When that is, [`Groups`] says; [`super::finisher`] does the rest. Answers are given in the
//! order of groups.

use super::Listeners;
use super::error::{Fatal, SubmitError};
use super::finisher::{Finisher, Group, Watched, unless_it_panics, warn_if_slow};
use super::frame::{FrameBuilder, PAYLOAD_LEN_MAX};
use super::input::{Answer, Input, Request, Wanted, Work, WorkReply};
use super::log::Log;
use super::options::NamesystemOptions;
use super::outcomes::{save, unread};
use super::recent::Recent;
use super::record;
use super::rollback::{self, RollbackPoint};
use super::work_counts::WorkCounts;
use crate::clock::FileSystemClock;
use crate::last_inputs::LastInputs;
use crate::store::{Batch, Position, Snapshot, Spent, Store};
use cairn_master::effects::EntryEffects;
use cairn_master::group::{Groups, Limits, Step, Waiting};
use cairn_master::op::Targets;
use cairn_namespace::encoding::STRING_LEN_MAX;
use cairn_namespace::events::{self, Event, EventBatch};
use cairn_namespace::store::{Changes, StoreError};
use cairn_namespace::{
    Applied, Command, Done, Entry, Guard, NamespaceError, Outcome, Retries, Times, evaluate,
    settings,
};
use cairn_process::held::held;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// A group is closed when its frame is this long, in bytes.
const FRAME_LEN_GOAL: usize = PAYLOAD_LEN_MAX / 8;

/// A group is closed when its entries have done so much to blocks: all of that is told to the cluster at a time.
const EFFECTS_GOAL: usize = 1000;

/// Entries that are applied before it is looked whether the disk is free.
const STEP: usize = 32;

/// Groups that may be durable and not shown.
const UNSHOWN_MAX: usize = 2;

/// Longest entry, so that each of its strings can be read back.
pub const ENTRY_LEN_MAX: usize = STRING_LEN_MAX;

/// Records in memory from which on they are written to the store's file. If as many again come before they are there,
/// callers wait.
const WAITING_MAX: usize = 400_000;

/// The same from which on work that can wait is to wait until a checkpoint that is under way has ended.
const WAITING_GOAL: usize = WAITING_MAX / 2;

/// How often, and how long each time, a checkpoint waits until nobody reads any more what it has written.
const LET_GO_TRIES: usize = 20;
const LET_GO: Duration = Duration::from_millis(5);

/// Whether the store's file lags so far behind that callers would have to wait for it soon.
pub(crate) fn is_behind(store: &Store) -> bool {
    store.is_written_to() && store.waiting() >= WAITING_GOAL
}

/// What an entry came to.
struct Taken {
    answer: Outcome,
    /// Its number, if it has changed anything.
    sequence: Option<u64>,
    /// How much it has done to blocks.
    effects: usize,
}

/// How groups are formed.
fn limits(options: &NamesystemOptions) -> Limits {
    Limits {
        entries: options.group_max.max(1),
        bytes: FRAME_LEN_GOAL,
        effects: EFFECTS_GOAL,
        step: STEP,
        unshown: UNSHOWN_MAX,
        checkpoint_entries: options.checkpoint_entries.max(1),
        checkpoint_interval_ms: options.checkpoint_interval.as_millis() as u64,
        records: WAITING_MAX,
    }
}

/// State of the thread that applies.
pub struct Writer {
    finisher: Finisher,
    events: Receiver<Input>,
    /// Where the other thread tells that it is done.
    told: Sender<Input>,
    segment_len: u64,
    /// What was applied, logged and shown, and what comes next.
    groups: Groups,
    begun: Instant,
    /// The group that is open.
    number: u64,
    batch: Batch,
    /// Told of entries, for when something goes wrong.
    inputs: Arc<LastInputs>,
    /// Of all entries that were applied.
    retries: Arc<Mutex<Retries>>,
    frame: FrameBuilder,
    /// The checksum of all that was done.
    chain: u32,
    clock: Arc<FileSystemClock>,
    /// Of the last entry.
    times: Times,
    watched: Option<Watched>,
    effects: Vec<EntryEffects>,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    /// What is done before anything else is applied.
    works: VecDeque<(Work, WorkReply)>,
    /// The thread that writes to the store's file, or has last done so.
    checkpoint: Option<JoinHandle<()>>,
    /// Requests for which the open group has no room.
    backlog: VecDeque<Request>,
    /// Since when they wait for the store's file, if they do.
    held_up: Option<Instant>,
}

impl Writer {
    /// Ready to run; `log` must end where `store` does. `told` sends to `events`.
    pub fn new(
        store: Arc<Store>,
        log: Log,
        (told, events): (Sender<Input>, Receiver<Input>),
        recent: Arc<Recent>,
        retries: Arc<Mutex<Retries>>,
        (listeners, inputs): (Listeners, Arc<LastInputs>),
        options: &NamesystemOptions,
    ) -> Writer {
        let Position { sequence: applied, chain, times } = store.position();
        let number = store.group() + 1;
        let clock = Arc::new(FileSystemClock::begin(times, !log.is_newest()));
        Writer {
            batch: store.begin(number),
            inputs,
            retries,
            finisher: Finisher {
                store,
                recent,
                log: Arc::new(Mutex::new(log)),
                durability: options.durability,
                agreement: options.agreement.clone(),
                listeners,
                runtime: Handle::try_current()
                    .ok()
                    .filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread),
                counts: Arc::default(),
            },
            events,
            told,
            segment_len: options.segment_len,
            groups: Groups::new(limits(options), applied, 0),
            begun: Instant::now(),
            number,
            frame: FrameBuilder::new(applied + 1),
            chain: chain.unwrap_or_default(),
            clock,
            times,
            watched: None,
            effects: Vec::new(),
            answers: Vec::new(),
            works: VecDeque::new(),
            checkpoint: None,
            backlog: VecDeque::new(),
            held_up: None,
        }
    }

    /// What log and store will have done.
    pub fn counts(&self) -> Arc<WorkCounts> {
        Arc::clone(&self.finisher.counts)
    }

    /// What entries get their times of.
    pub fn clock(&self) -> Arc<FileSystemClock> {
        Arc::clone(&self.clock)
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
    pub fn apply_now(&mut self, wanted: impl Into<Wanted>) -> Result<Answer, Fatal> {
        let (reply, _) = oneshot::channel();
        self.apply(Request { wanted: wanted.into(), reply })?;
        let mut group = self.seal();
        let answer = group.answers.pop();
        self.finisher.finish(group)?;
        self.groups.durable();
        self.groups.shown();
        Ok(answer.map_or(Err(SubmitError::Stopped), |(_, answer)| answer))
    }

    fn serve(&mut self, groups: &SyncSender<Group>) -> Result<(), Fatal> {
        loop {
            let waiting = self.waiting();
            self.note_hold_up(waiting);
            match self.groups.next(waiting, self.now_ms()) {
                Step::Apply => {
                    let Some(request) = self.backlog.pop_front() else { continue };
                    self.apply(request)?;
                }
                Step::Seal => {
                    let group = self.seal();
                    if groups.send(group).is_err() {
                        let reason = "the log thread has ended".to_string();
                        return Err(StoreError::Backend(reason).into());
                    }
                }
                Step::Checkpoint => self.begin_checkpoint()?,
                Step::Work => {
                    let Some((work, reply)) = self.works.pop_front() else { continue };
                    // Who has asked may have gone away.
                    let _ = reply.send(self.work(work)?);
                }
                Step::Listen => self.hear(None)?,
                Step::Wait { at_most_ms } => {
                    let event = self.wait(at_most_ms)?;
                    self.hear(event)?;
                }
                Step::End => return self.checkpoint(),
            }
        }
    }

    /// Takes in an event, and all that are there besides.
    fn hear(&mut self, first: Option<Input>) -> Result<(), Fatal> {
        let mut event = first.or_else(|| self.events.try_recv().ok());
        while let Some(told) = event {
            match told {
                Input::Request(request) => self.backlog.push_back(request),
                Input::Work(work, reply) => self.works.push_back((work, reply)),
                Input::Durable(done) => {
                    done?;
                    self.groups.durable();
                }
                Input::Shown(done) => {
                    done?;
                    self.groups.shown();
                }
                Input::Checkpointed(done) => {
                    done?;
                    self.groups.checkpoint_ended();
                    if self.groups.is_empty() {
                        self.batch = self.finisher.store.begin(self.number);
                    }
                }
                Input::Close => self.groups.close(),
            }
            event = self.events.try_recv().ok();
        }
        self.groups.heard();
        Ok(())
    }

    /// The next event; none if the time is over.
    fn wait(&self, at_most_ms: Option<u64>) -> Result<Option<Input>, Fatal> {
        let ended = || Fatal::from(StoreError::Backend("nobody is left to ask".to_string()));
        let Some(at_most_ms) = at_most_ms else {
            return self.events.recv().map(Some).map_err(|_| ended());
        };
        match self.events.recv_timeout(Duration::from_millis(at_most_ms)) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }

    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn waiting(&self) -> Waiting {
        Waiting {
            entries: self.backlog.len(),
            works: self.works.len(),
            records: self.finisher.store.waiting(),
        }
    }

    /// Tells of callers that had to wait for the store's file.
    fn note_hold_up(&mut self, waiting: Waiting) {
        let is_held_up = self.groups.is_checkpointing()
            && waiting.entries > 0
            && self.groups.is_held_up(waiting, self.now_ms());
        if is_held_up {
            self.held_up.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.held_up.take() {
            warn_if_slow(since, "the disk of the namespace's store is slow: callers had to wait");
        }
    }

    /// Closes the open group and begins the next.
    fn seal(&mut self) -> Group {
        let number = self.number;
        self.number += 1;
        self.batch = self.finisher.store.begin(self.number);
        let applied = self.groups.last_applied();
        let frame = std::mem::replace(&mut self.frame, FrameBuilder::new(applied + 1));
        let (chain, times) = (Some(self.chain), self.times);
        let position = Position { sequence: applied, chain, times };
        let (watched, answers) = (self.watched.take(), std::mem::take(&mut self.answers));
        let effects = std::mem::take(&mut self.effects);
        self.groups.sealed();
        Group { number, position, frame, watched, effects, answers }
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
        self.groups.checkpoint_begun(self.now_ms());
        self.batch = self.finisher.store.begin(self.number);
        let (finisher, told) = (self.finisher.clone(), self.told.clone());
        let (upto, segment_len) = (self.groups.last_checkpointed(), self.segment_len);
        let thread = std::thread::Builder::new().name("namespace-checkpoint".to_string());
        let thread = thread.spawn(move || {
            let work = || finisher.checkpoint(upto, segment_len);
            let done = unless_it_panics("a checkpoint is written", work);
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
        self.checkpoint = Some(thread.map_err(Fatal::Append)?);
        Ok(())
    }

    fn retries(&self) -> MutexGuard<'_, Retries> {
        held(&self.retries)
    }

    /// Adds to what is to be set aside the outcomes of all that were applied.
    fn save_retries(&mut self) -> Result<(), Fatal> {
        Ok(save(&mut held(&self.retries), &mut self.batch)?)
    }

    /// Makes the store durable up to here. Nothing is under way.
    pub fn checkpoint(&mut self) -> Result<(), Fatal> {
        let applied = self.groups.last_applied();
        if applied > self.groups.last_checkpointed() {
            self.save_retries()?;
            self.finisher.store.set_aside();
            self.groups.checkpoint_begun(self.now_ms());
            self.finisher.checkpoint(applied, self.segment_len)?;
            self.groups.checkpoint_ended();
            self.batch = self.finisher.store.begin(self.number);
        }
        Ok(())
    }

    /// What there is, with the outcomes of all calls that are kept: those since the last checkpoint are otherwise in memory
    /// only. Nothing is under way.
    pub fn snapshot(&mut self) -> Result<Snapshot, Fatal> {
        self.save_retries()?;
        let store = Arc::clone(&self.finisher.store);
        store.commit(self.number, store.position());
        self.number += 1;
        self.batch = store.begin(self.number);
        Ok(store.snapshot())
    }

    /// Does what needs the log and the store at rest. An error is not the caller's.
    fn work(&mut self, work: Work) -> Result<Result<u64, SubmitError>, Fatal> {
        if let Work::Snapshot(taker) = work {
            // Whoever has asked may have gone away.
            let _ = taker.send(self.snapshot()?);
            return Ok(Ok(self.groups.last_applied()));
        }
        if let Work::Roll = work {
            self.finisher.log().roll()?;
            return Ok(Ok(self.groups.last_applied() + 1));
        }
        self.checkpoint()?;
        let mut log = self.finisher.log();
        log.roll()?;
        log.truncate_front(self.groups.last_checkpointed())?;
        drop(log);
        if let Work::Finalize = work {
            self.finisher.log().finalize()?;
            self.clock.part();
        }
        if let Work::RollbackPoint { dir, start_ms, reserved_len } = work {
            let point = RollbackPoint { start_ms, sequence: self.groups.last_applied() };
            if let Err(error) = rollback::make(&dir, point, reserved_len) {
                return Ok(Err(SubmitError::RollbackPoint(error.to_string())));
            }
        }
        Ok(Ok(self.groups.last_applied()))
    }

    /// Applies one entry to the open group; an error is not the caller's.
    fn apply(&mut self, request: Request) -> Result<(), Fatal> {
        let Request { wanted: Wanted { mut entry, is_timed, guard, targets }, reply } = request;
        if !is_timed {
            let Times { wall_ms, elapsed_ms } = self.clock.now();
            (entry.now_ms, entry.elapsed_ms) = (wall_ms, elapsed_ms);
        }
        let next = self.groups.last_applied() + 1;
        if self.watched.is_none() && self.finisher.recent.is_wanted() {
            self.watched = Some(Watched { first: next, batches: Vec::new() });
        }
        // One at which a panic strikes has not been noted yet.
        let taken = catch_unwind(AssertUnwindSafe(|| self.evaluate(&entry, &guard, targets)));
        let taken = taken.unwrap_or_else(|panic| {
            self.inputs.note_entry(next, entry.to_bytes());
            resume_unwind(panic)
        })?;
        let (sequence, effects) =
            taken.as_ref().map_or((None, 0), |taken| (taken.sequence, taken.effects));
        self.answers.push((reply, taken.map(|taken| taken.answer)));
        self.groups.applied(sequence, self.frame.len(), effects);
        Ok(())
    }

    /// What one entry comes to.
    fn evaluate(
        &mut self,
        entry: &Entry,
        guard: &Guard,
        targets: Targets,
    ) -> Result<Result<Taken, SubmitError>, Fatal> {
        if let Some(answer) = self.retries().find(entry).map_err(fatal)? {
            return Ok(Ok(Taken { answer, sequence: None, effects: 0 }));
        }
        if !guard.holds(&self.batch).map_err(fatal)? {
            return Ok(Err(SubmitError::Moved));
        }
        match evaluate(&self.batch, entry) {
            Ok(applied) => self.take_in(entry, applied, targets),
            Err(NamespaceError::Store(error)) => Err(error.into()),
            Err(refused) => Ok(Err(SubmitError::Refused(refused))),
        }
    }

    /// Takes what an entry does into the open group.
    fn take_in(
        &mut self,
        entry: &Entry,
        applied: Applied,
        targets: Targets,
    ) -> Result<Result<Taken, SubmitError>, Fatal> {
        let Applied { answer, effects, changes } = applied;
        // What changes nothing need not be replayed, but for its answer.
        if changes.is_empty() && entry.once().is_none() {
            return Ok(Ok(Taken { answer, sequence: None, effects: 0 }));
        }
        let bytes = entry.to_bytes();
        if bytes.len() > ENTRY_LEN_MAX {
            let text =
                format!("a call of {} bytes is too long: limit={ENTRY_LEN_MAX}", bytes.len());
            return Ok(Err(SubmitError::Refused(NamespaceError::Io(text))));
        }
        let done = Done { answer, changes };
        let done_bytes = record::encode(&done);
        self.chain = record::extend(self.chain, &done_bytes);
        let sequence = self.frame.push(&record::to_bytes(&bytes, &done_bytes, self.chain));
        self.times = self.times.max(entry.times());
        let Done { answer, changes } = done;
        self.inputs.note_entry(sequence, bytes);
        if let Some(watched) = &mut self.watched {
            let events = happened(&self.batch, &changes, entry, &answer)?;
            if !events.is_empty() {
                watched.batches.push(EventBatch { sequence, events });
            }
        }
        changes.write_to(&mut self.batch)?;
        let settings = settings::get(&self.batch).map_err(fatal)?;
        self.retries().remember(entry, &settings, &answer).map_err(fatal)?;
        if let Command::WatchEvents(_) = entry.command {
            self.finisher.recent.heed(entry.now_ms);
            let (first, batches) = (sequence + 1, Vec::new());
            self.watched.get_or_insert(Watched { first, batches });
        }
        let taken = Taken { answer, sequence: Some(sequence), effects: effects.len() };
        if !effects.is_empty() {
            self.effects.push(EntryEffects { effects, targets });
        }
        Ok(Ok(taken))
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
