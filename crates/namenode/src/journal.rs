//! The namespace made durable: one log, one store, one writer.
//!
//! `submit` hands an entry to the writer's first thread ([`writer`]), which takes all that wait as one group
//! and applies them to the store's layer in memory, unseen. Its second thread appends those that changed something
//! to the log ([`log`], [`frame`]), syncs, shows them, answers. So readers see only what is durable, and one sync
//! serves many callers. An entry has what it has done ([`record`]); a start writes that where it had not come to the
//! store's file ([`replay`]).
//!
//! [`check`] looks for damage in what nobody reads. Where several NameNodes have one namespace, all have to agree on a group
//! first ([`agree`]); those that follow write it as well ([`follower`]).
//!
//! Formats: `docs/on-disk.md`. Crash tests: `journal/tests.rs`, `tests/it/journal.rs`, `tests/it/every_command.rs`.

pub mod agree;
pub mod backup;
mod check;
mod counts;
mod entering;
mod error;
pub mod export;
mod finisher;
pub mod follower;
mod frame;
mod history;
pub mod import;
mod input;
pub mod install;
mod listeners;
mod lock;
mod log;
pub mod offline;
mod options;
mod outcomes;
#[cfg(test)]
mod power_cuts;
mod reading;
mod recent;
mod record;
mod replay;
mod restored;
mod rollback;
mod segment;
#[cfg(test)]
mod tests;
mod work_counts;
mod writer;

pub use crate::store::{Identity, IdentityError, Snapshot};
pub use error::{Fatal, OpenError, SubmitError};
pub use input::Wanted;
pub use listeners::Listener;
pub use log::LogError;
pub use options::{Durability, NamesystemOptions};
pub use recent::Since;
pub use restored::Restored;
pub use rollback::RollbackPoint;
pub use writer::ENTRY_LEN_MAX;
pub(crate) use writer::is_behind;

use crate::clock::{FileSystemClock, wall_ms};
use crate::disk::Disk;
use crate::last_inputs::LastInputs;
use crate::store::Store;
use cairn_master::Submission;
use cairn_namespace::command::Caller;
use cairn_namespace::holds::{self, Holds, Upgrade};
use cairn_namespace::obeyed::{Difference, Obeyed};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::holds::{PrepareUpgrade, Release};
use cairn_namespace::ops::snapshot::ConfigureSnapshots;
use cairn_namespace::ops::unit_crcs::RecordUnitCrcs;
use cairn_namespace::ops::watch_events::WatchEvents;
use cairn_namespace::store::StoreError;
use cairn_namespace::{CallId, Command, Outcome, Retries};
use cairn_process::held::held;
use entering::enter;
use input::{Input, Request, Work};
use listeners::Listeners;
use log::Log;
use outcomes::unread;
use recent::{Recent, Stored};
use replay::replay;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread::{JoinHandle, Thread};
use tokio::sync::{Semaphore, oneshot, watch};
use work_counts::WorkCounts;
use writer::Writer;

/// Entries that may wait for the writer; more callers wait for a place.
const WAITING_MAX: usize = 8192;

/// The namespace of a NameNode.
pub struct Namesystem {
    dir: PathBuf,
    /// Held until log and store are closed.
    lock: Mutex<Option<File>>,
    /// The rollback point that is in the folder.
    point: Mutex<Option<RollbackPoint>>,
    /// What keeps replicas from being deleted.
    holds: Mutex<Holds>,
    /// Whether others have to agree on entries.
    is_agreed: bool,
    /// What commands obey otherwise than before it was opened.
    changed_settings: Vec<Difference>,
    identity: Identity,
    store: Arc<Store>,
    recent: Arc<Recent>,
    retries: Arc<Mutex<Retries>>,
    listeners: Listeners,
    inputs: Arc<LastInputs>,
    counts: Arc<WorkCounts>,
    places: Semaphore,
    requests: Mutex<Option<mpsc::Sender<Input>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    clock: Arc<FileSystemClock>,
    /// The log is of the newest version.
    is_finalized: AtomicBool,
    /// The thread that looks at the store, and what it ends without.
    checker: Mutex<Option<(mpsc::Sender<()>, JoinHandle<()>)>>,
    /// What stopped the writer; its thread has the other end.
    failure: watch::Receiver<Option<String>>,
}

impl Namesystem {
    /// Opens the namespace in `dir`, or makes a new one if the directory is missing or empty.
    /// Blocks while it replays the log.
    pub fn open(dir: &Path, options: NamesystemOptions) -> Result<Arc<Namesystem>, OpenError> {
        let io = |source| OpenError::Io { path: dir.to_owned(), source };
        let (lock, identity) = enter(&Disk, dir, options.dir_mode)?;
        let (identity, log) = match identity {
            Some(identity) => {
                if options.roll_back {
                    rollback::go_back(dir, &identity, options.cache_len)?;
                }
                (identity, None)
            }
            None if options.roll_back => {
                return Err(OpenError::NoRollbackPoint { path: dir.to_owned() });
            }
            None => {
                let (identity, log) = format(dir, &dir.join("VERSION"), &options)?;
                (identity, Some(log))
            }
        };
        // Fails where the store may be half of what was gone back to.
        rollback::find(dir)?;
        let store = Arc::new(Store::open(&dir.join("namespace.redb"), options.cache_len)?);
        let history_len = options.event_history_len;
        let recent = Recent::open(dir, identity.namespace_id, history_len, Stored::of(&store)?);
        let recent = Arc::new(recent);
        let (log, retries) = match log {
            Some(log) => (log, Retries::default()),
            None => replay(&Disk::shared(), dir, &identity, &store, &recent, options.reserved_len)?,
        };
        let mut in_force = holds::get(&store.snapshot()).map_err(unread)?;
        in_force.restored = in_force.restored.or(restored::find(dir).map_err(io)?);
        let is_agreed = options.agreement.is_some();
        if is_agreed {
            rollback::agree(dir, in_force.upgrade)?;
        }
        let point = rollback::find(dir)?;
        let log = log.keeping(options.kept_log_len);
        let is_finalized = AtomicBool::new(log.is_newest());
        if !log.is_newest() {
            tracing::warn!(
                "the log stays in the format of an earlier version, which can be started again, until `cairn admin finalize-upgrade`"
            );
        }
        let retries = Arc::new(Mutex::new(retries));
        let (sender, receiver) = mpsc::channel();
        let ends = (sender.clone(), receiver);
        let (kept, listeners) = (Arc::clone(&retries), Listeners::default());
        let (hears, inputs) = (listeners.clone(), Arc::<LastInputs>::default());
        let noted = Arc::clone(&inputs);
        let mut writer =
            Writer::new(store.clone(), log, ends, recent.clone(), kept, (hears, noted), &options);
        let (counts, clock) = (writer.counts(), writer.clock());
        let before = Obeyed::in_force(&store.snapshot()).map_err(unread)?;
        put_settings_in_force(&mut writer, &options)?;
        let changed_settings =
            before.map(|before| before.differences(&options.obeyed())).unwrap_or_default();
        for Difference { key, first, second } in &changed_settings {
            tracing::warn!(
                key,
                before = first,
                now = second,
                "a setting is another one than before this start"
            );
        }
        let (failed, failure) = watch::channel(None);
        let failed = Arc::new(failed);
        let (checked, told) = (Arc::clone(&store), Arc::downgrade(&failed));
        let (is_open, until_closed) = mpsc::channel();
        let checker = store.is_unread().then(|| {
            std::thread::Builder::new().name("namespace-check".to_string()).spawn(move || {
                let Err(error) = check::check(&checked, &until_closed) else { return };
                tracing::error!(%error, "the namespace's store is damaged");
                if let Some(told) = told.upgrade() {
                    told.send_replace(Some(error.to_string()));
                }
            })
        });
        let checker = checker.transpose().map_err(io)?;
        let thread = std::thread::Builder::new()
            .name("namespace-writer".to_string())
            .spawn(move || {
                if let Err(error) = writer.run() {
                    tracing::error!(%error, "the namespace takes no more changes");
                    failed.send_replace(Some(error.to_string()));
                }
            })
            .map_err(io)?;
        Ok(Arc::new(Namesystem {
            dir: dir.to_owned(),
            lock: Mutex::new(Some(lock)),
            point: Mutex::new(point),
            holds: Mutex::new(in_force),
            is_agreed,
            changed_settings,
            identity,
            store,
            recent,
            retries,
            listeners,
            inputs,
            counts,
            places: Semaphore::new(WAITING_MAX),
            requests: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(thread)),
            clock,
            is_finalized,
            checker: Mutex::new(checker.map(|thread| (is_open, thread))),
            failure,
        }))
    }

    /// Who this file system is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What its entries get their times of.
    pub fn clock(&self) -> Arc<FileSystemClock> {
        Arc::clone(&self.clock)
    }

    /// From now on `listener` hears of what comes into force. There can be one only.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        self.listeners.set(listener);
    }

    /// What has lately changed it; others add to that what changes the cluster.
    pub(crate) fn last_inputs(&self) -> &Arc<LastInputs> {
        &self.inputs
    }

    /// Applies a command, if what it rests on is as it was, and answers when it is durable.
    pub async fn submit(&self, wanted: impl Into<Wanted>) -> Result<Outcome, SubmitError> {
        let wanted = wanted.into();
        self.ask(|reply| Input::Request(Request { wanted, reply })).await
    }

    /// As [`Namesystem::submit`], for threads outside of an async runtime.
    pub fn submit_blocking(&self, wanted: impl Into<Wanted>) -> Result<Outcome, SubmitError> {
        parked(self.submit(wanted))
    }

    /// Has the writer do something when it is that one's turn. The only way to it, so that no more than so many wait.
    async fn ask<R>(
        &self,
        what: impl FnOnce(oneshot::Sender<Result<R, SubmitError>>) -> Input,
    ) -> Result<R, SubmitError> {
        let _place = self.places.acquire().await.map_err(|_| SubmitError::Stopped)?;
        let (reply, answer) = oneshot::channel();
        self.tell(what(reply))?;
        answer.await.unwrap_or(Err(SubmitError::Stopped))
    }

    fn tell(&self, input: Input) -> Result<(), SubmitError> {
        let requests = held(&self.requests);
        let sender = requests.as_ref().ok_or(SubmitError::Stopped)?;
        sender.send(input).map_err(|_| SubmitError::Stopped)
    }

    /// Begins a new segment of the log; returns the number of its first entry.
    pub async fn roll_log(&self) -> Result<u64, SubmitError> {
        self.work(Work::Roll).await
    }

    /// Writes all that is in the log to the store, and closes the segment that had it.
    pub async fn checkpoint(&self) -> Result<u64, SubmitError> {
        self.work(Work::Checkpoint).await
    }

    /// Whether the log is of the newest version. One that an earlier build has begun is not until [`Namesystem::finalize`].
    pub fn is_finalized(&self) -> bool {
        self.is_finalized.load(Ordering::Acquire)
    }

    /// Has the log go on in the newest version, which earlier builds do not read.
    pub async fn finalize(&self) -> Result<(), SubmitError> {
        if !self.is_finalized() {
            let sequence = self.work(Work::Finalize).await?;
            self.is_finalized.store(true, Ordering::Release);
            tracing::info!(sequence, "the log goes on in the format of this version");
        }
        Ok(())
    }

    /// Has something done between two entries, which others wait for.
    async fn work(&self, work: Work) -> Result<u64, SubmitError> {
        self.ask(|reply| Input::Work(work, reply)).await
    }

    /// The rolling upgrade that was prepared and is not finalized, if there is one.
    pub fn rollback_point(&self) -> Option<RollbackPoint> {
        held(&self.holds).upgrade.map(RollbackPoint::from).or(*held(&self.point))
    }

    /// Whether there is a copy here to go back to.
    pub fn has_rollback_copy(&self) -> bool {
        held(&self.point).is_some()
    }

    /// Makes a rollback point of what is there now, or returns the one that is there. Its copy of the store leaves
    /// `reserved_len` bytes of the disk free, or is not made. Others that have to agree make one each.
    pub async fn make_rollback_point(
        &self,
        reserved_len: u64,
    ) -> Result<RollbackPoint, SubmitError> {
        if let Some(point) = self.rollback_point() {
            return Ok(point);
        }
        let start_ms = self.clock.now().wall_ms;
        let upgrade = Upgrade { start_ms, sequence: self.last_sequence() };
        if self.is_agreed {
            if !self.is_finalized() {
                let why = "the log is of an earlier version: finalize the upgrade to this one";
                return Err(SubmitError::RollbackPoint(why.to_string()));
            }
            rollback::check_room(&self.dir, reserved_len)
                .map_err(|error| SubmitError::RollbackPoint(error.to_string()))?;
            let Upgrade { start_ms, sequence } = upgrade;
            self.submit(Submission::own(PrepareUpgrade { start_ms, sequence })).await?;
            held(&self.holds).upgrade = Some(upgrade);
        }
        let dir = self.dir.clone();
        match self.work(Work::RollbackPoint { dir, start_ms, reserved_len }).await {
            Ok(sequence) => {
                let point = RollbackPoint { start_ms, sequence };
                *held(&self.point) = Some(point);
                Ok(point)
            }
            Err(error) => {
                if self.is_agreed {
                    self.submit(Submission::own(Release { upgrade: true, restored: false }))
                        .await?;
                    held(&self.holds).upgrade = None;
                }
                Err(error)
            }
        }
    }

    /// Gives the rollback point up. Blocks.
    pub fn remove_rollback_point(&self) -> std::io::Result<()> {
        if held(&self.holds).upgrade.is_some() {
            let ended =
                self.submit_blocking(Submission::own(Release { upgrade: true, restored: false }));
            ended.map_err(std::io::Error::other)?;
            held(&self.holds).upgrade = None;
        }
        let mut point = held(&self.point);
        if point.is_some() {
            rollback::remove(&self.dir)?;
            *point = None;
        }
        Ok(())
    }

    /// What it was restored from, if nobody has accepted that yet.
    pub fn restored(&self) -> Option<Restored> {
        held(&self.holds).restored
    }

    /// Forgets that it was restored. Blocks.
    pub fn accept_restored(&self) -> std::io::Result<()> {
        // A log that is not finalized is of a build that has a file only.
        if self.is_finalized() {
            let accepted =
                self.submit_blocking(Submission::own(Release { upgrade: false, restored: true }));
            accepted.map_err(std::io::Error::other)?;
        }
        restored::remove(&self.dir)?;
        held(&self.holds).restored = None;
        Ok(())
    }

    /// What commands obey otherwise than before it was opened: here, or where another member has led.
    pub fn changed_settings(&self) -> &[Difference] {
        &self.changed_settings
    }

    /// Who asks the namespace and keeps it open no longer than others do.
    pub(crate) fn reader(&self) -> Reader {
        Reader(Arc::clone(&self.store))
    }

    /// Answers a question from the state after the last durable entry.
    pub fn read<R>(&self, question: impl FnOnce(&Snapshot) -> R) -> R {
        question(&self.store.snapshot())
    }

    /// Whether a call that may be carried out only once has an outcome already at that elapsed time, which it gets when it
    /// comes again.
    pub fn is_answered(&self, call: CallId, elapsed_ms: u64) -> cairn_namespace::Result<bool> {
        held(&self.retries).knows(call, elapsed_ms)
    }

    /// Number of the last entry that is applied; 0 before the first.
    pub fn last_sequence(&self) -> u64 {
        self.store.applied()
    }

    /// What log and store have done since it was opened.
    pub(crate) fn work_counts(&self) -> &WorkCounts {
        &self.counts
    }

    /// Changed records that wait to be written to the store's file.
    pub(crate) fn waiting_records(&self) -> usize {
        self.store.waiting()
    }

    /// Whether changes that can wait should: the store's file lags behind, and others would soon have to wait for it.
    pub fn is_behind(&self) -> bool {
        is_behind(&self.store)
    }

    /// Keeps what entries do from now on, for [`Namesystem::events_since`].
    pub async fn watch_events(&self) -> Result<(), SubmitError> {
        if self.is_finalized() {
            if !self.recent.is_in_log(self.clock.now().wall_ms) {
                self.submit(Submission::own(WatchEvents {})).await?;
                self.recent.forget_file();
            }
            return Ok(());
        }
        if self.recent.want() {
            return Ok(());
        }
        // Changes nothing; what comes behind it is watched.
        let nothing = RecordUnitCrcs { blocks: Vec::new() };
        self.submit(Submission::own(nothing)).await.map(|_| ())
    }

    /// What entries from `sequence` on have done, as far as it is kept: as many entries as hold `limit` events. May
    /// read files.
    pub fn events_since(&self, sequence: u64, limit: usize) -> Since {
        self.recent.since(sequence, limit)
    }

    /// Completes when nothing can be submitted any more although the namespace was not closed, and says why. What is
    /// still answered then may never become durable.
    pub async fn failed(&self) -> String {
        let mut failure = self.failure.clone();
        let why = failure.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        let is_open = || held(&self.requests).is_some();
        match why {
            Some(why) => why,
            None if is_open() => "the namespace writer has panicked".to_string(),
            None => std::future::pending().await,
        }
    }

    /// Finishes what was submitted, commits the store durably and stops. Blocks; later submissions
    /// get [`SubmitError::Stopped`].
    pub fn close(&self) {
        let requests = held(&self.requests).take();
        // A writer that has failed needs not be told.
        requests.map(|requests| requests.send(Input::Close).ok());
        let writer = held(&self.writer).take();
        if let Some(Err(_)) = writer.map(JoinHandle::join) {
            tracing::error!("the namespace writer has panicked");
        }
        let checker = held(&self.checker).take();
        if let Some((is_open, thread)) = checker {
            drop(is_open);
            if thread.join().is_err() {
                tracing::error!("the check of the namespace's store has panicked");
            }
        }
        // Who only reads leaves the store to whoever has the folder.
        if let Some(lock) = held(&self.lock).take() {
            // The next NameNode may have the folder only when nothing is written there any more.
            self.store.close();
            drop(lock);
        }
    }
}

/// Whether files of the folder, of which other members of a quorum would not know, hold deletions: a rolling upgrade that
/// one NameNode has prepared, or that an earlier build has restored a backup.
pub(crate) fn is_held_by_files(dir: &Path) -> bool {
    !matches!((rollback::find(dir), restored::find(dir)), (Ok(None), Ok(None)))
}

/// See [`Namesystem::reader`].
pub(crate) struct Reader(Arc<Store>);

impl Reader {
    /// As [`Namesystem::read`].
    pub fn read<R>(&self, question: impl FnOnce(&Snapshot) -> R) -> R {
        question(&self.0.snapshot())
    }
}

impl Drop for Namesystem {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a future gives, whose thread waits for it.
fn parked<R>(work: impl Future<Output = R>) -> R {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let (mut work, mut context) = (pin!(work), Context::from_waker(&waker));
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Makes a new file system; the `VERSION` file comes last, so that a format that was cut short is
/// begun anew.
fn format(
    dir: &Path,
    version: &Path,
    options: &NamesystemOptions,
) -> Result<(Identity, Log), OpenError> {
    let identity =
        Identity::generate(&options.block_pool_host, options.cluster_id.clone(), wall_ms())?;
    let first = dir.join(format!("log-{:020}", 1));
    let store = dir.join("namespace.redb");
    // Nothing is written to either before VERSION is there.
    let is_fresh = |path: &Path, max| std::fs::metadata(path).is_ok_and(|m| m.len() > max);
    if is_fresh(&first, segment::LEN_MAX as u64) || store.exists() {
        return Err(OpenError::NoVersion { path: dir.to_owned() });
    }
    let log = Log::create(dir, identity.namespace_id, 1)?;
    identity.write(version)?;
    Ok((identity, log))
}

fn put_settings_in_force(
    writer: &mut Writer,
    options: &NamesystemOptions,
) -> Result<(), OpenError> {
    let commands: [Command; 2] = [
        Configure { settings: options.settings.clone().into() }.into(),
        ConfigureSnapshots { settings: options.snapshots }.into(),
    ];
    for command in commands {
        let caller = Caller { user: options.superuser.clone(), ..Caller::system() };
        match writer.apply_now(Submission::of(caller, None, command))? {
            Ok(_) => {}
            Err(SubmitError::Refused(error)) => return Err(OpenError::Settings(error)),
            Err(_) => {
                let reason = "the writer gave no answer".to_string();
                return Err(StoreError::Backend(reason).into());
            }
        }
    }
    Ok(())
}
