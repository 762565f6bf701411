//! The threads that make groups of entries durable and show them.
//!
//! One appends to the log and syncs, the other has what was appended come into force: readers see it and the cluster
//! hears of it in one moment, then callers are answered. So a group is shown while the next one is synced. One that the
//! cluster need not hear of is shown by the first thread, if nothing is to be shown before it.

use super::Listeners;
use super::agree::{self, Agreement};
use super::error::Fatal;
use super::frame::FrameBuilder;
use super::input::{Answer, Input};
use super::log::Log;
use super::options::Durability;
use super::recent::Recent;
use super::work_counts::WorkCounts;
use crate::store::{Position, Spent, Store};
use cairn_master::effects::EntryEffects;
use cairn_namespace::events::EventBatch;
use cairn_namespace::store::StoreError;
use cairn_process::held::held;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// What callers wait for the disk at a time without anybody being told.
pub(super) const SLOW: Duration = Duration::from_millis(500);

/// Entries that are made durable together.
pub(super) struct Group {
    pub number: u64,
    /// The last entry that was applied, and the checksum up to there.
    pub position: Position,
    pub frame: FrameBuilder,
    pub watched: Option<Watched>,
    pub effects: Vec<EntryEffects>,
    pub answers: Vec<(oneshot::Sender<Answer>, Answer)>,
}

/// What entries from the first one on have done, for those who watch.
pub(super) struct Watched {
    pub first: u64,
    pub batches: Vec<EventBatch>,
}

/// A group without its bytes, which are durable.
struct Durable {
    number: u64,
    position: Position,
    /// Whether it has entries in the log.
    is_logged: bool,
    watched: Option<Watched>,
    effects: Vec<EntryEffects>,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
}

pub(super) fn warn_if_slow(since: Instant, what: &str) {
    let elapsed = since.elapsed();
    if elapsed >= SLOW {
        tracing::warn!(ms = elapsed.as_millis() as u64, "{what}");
    }
}

/// What makes groups durable, and shows them.
#[derive(Clone)]
pub(super) struct Finisher {
    pub store: Arc<Store>,
    pub recent: Arc<Recent>,
    pub log: Arc<Mutex<Log>>,
    pub durability: Durability,
    /// Who has to agree on groups.
    pub agreement: Option<Agreement>,
    /// Who hears of what comes into force.
    pub listeners: Listeners,
    /// Where callers wait, if their runtime has threads of its own.
    pub runtime: Option<Handle>,
    pub counts: Arc<WorkCounts>,
}

impl Finisher {
    pub fn log(&self) -> MutexGuard<'_, Log> {
        held(&self.log)
    }

    /// Logs a group.
    fn append(&self, group: Group) -> Result<Durable, Fatal> {
        let Group { number, position, frame, watched, effects, answers } = group;
        let is_logged = !frame.is_empty();
        if is_logged {
            let begun = Instant::now();
            let agreement = self.agreement.as_ref();
            if let Some(Agreement(others)) = agreement {
                others.agree(agree::to_bytes(frame.clone()))?;
            }
            let sync = agreement.is_none() && self.durability == Durability::Stable;
            let (count, last) = (frame.count(), frame.last());
            let len = self.log().append(frame, sync).map_err(Fatal::Append)?;
            if let Some(Agreement(others)) = agreement {
                others.logged(last);
            }
            self.counts.appended(count, len, begun.elapsed());
            warn_if_slow(begun, "the disk of the namespace's log is slow: callers had to wait");
        }
        Ok(Durable { number, position, is_logged, watched, effects, answers })
    }

    /// Has a group come into force, and answers.
    fn show(&self, group: Durable) {
        let mut show = || {
            if group.is_logged {
                self.store.commit(group.number, group.position);
            }
        };
        self.listeners.come_into_force(group.effects, &mut show);
        if group.is_logged
            && let Some(Agreement(others)) = &self.agreement
        {
            others.shown(group.position.sequence);
        }
        if let Some(Watched { first, batches }) = group.watched {
            self.recent.add(first, group.position.sequence, batches);
        }
        self.deliver(group.answers);
    }

    /// Logs a group and shows it.
    pub fn finish(&self, group: Group) -> Result<(), Fatal> {
        let durable = self.append(group)?;
        self.show(durable);
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
    pub fn checkpoint(&self, upto: u64, segment_len: u64) -> Result<Option<Spent>, Fatal> {
        let begun = Instant::now();
        let mut log = self.log();
        log.sync().map_err(Fatal::Append)?;
        if log.segment_len() > segment_len {
            log.roll()?;
        }
        drop(log);
        // What the store has, a start tells nobody any more.
        self.recent.save(upto, self.store.position().times.wall_ms);
        let spent = self.store.write_aside()?;
        self.log().truncate_front(upto)?;
        if let Some(Agreement(others)) = &self.agreement {
            others.stored(upto);
        }
        self.counts.checkpoints.add(begun.elapsed());
        Ok(spent)
    }

    /// Finishes groups as they come, until there are no more or one fails.
    pub fn run(self, groups: Receiver<Group>, events: Sender<Input>) {
        let unshown = AtomicUsize::new(0);
        let (queue, durable) = sync_channel::<Durable>(1);
        std::thread::scope(|scope| {
            let shower = std::thread::Builder::new().name("namespace-show".to_string());
            let shown = shower.spawn_scoped(scope, || {
                for group in durable {
                    let done = unless_it_panics("a group is shown", || {
                        self.show(group);
                        Ok(())
                    });
                    unshown.fetch_sub(1, Ordering::SeqCst);
                    let failed = done.is_err();
                    // Nobody listens when the other thread has failed.
                    if events.send(Input::Shown(done)).is_err() || failed {
                        return;
                    }
                }
            });
            if let Err(error) = shown {
                let _ = events.send(Input::Durable(Err(Fatal::Append(error))));
                return;
            }
            self.log_groups(groups, &events, &queue, &unshown);
            drop(queue);
        });
    }

    fn log_groups(
        &self,
        groups: Receiver<Group>,
        events: &Sender<Input>,
        queue: &SyncSender<Durable>,
        unshown: &AtomicUsize,
    ) {
        for group in groups {
            let durable = match unless_it_panics("a group is logged", || self.append(group)) {
                Ok(durable) => durable,
                Err(error) => {
                    // Nobody listens when the other thread has failed.
                    let _ = events.send(Input::Durable(Err(error)));
                    return;
                }
            };
            let told = if durable.effects.is_empty() && unshown.load(Ordering::SeqCst) == 0 {
                let shown = unless_it_panics("a group is shown", || {
                    self.show(durable);
                    Ok(())
                });
                events.send(Input::Durable(Ok(()))).is_ok()
                    && events.send(Input::Shown(shown)).is_ok()
            } else {
                unshown.fetch_add(1, Ordering::SeqCst);
                // The next group is logged while this one is shown.
                events.send(Input::Durable(Ok(()))).is_ok() && queue.send(durable).is_ok()
            };
            if !told {
                return;
            }
        }
    }
}

/// What the work gives. A panic is the end of the namespace: what it was at may be half done.
pub(super) fn unless_it_panics<R>(
    what: &str,
    work: impl FnOnce() -> Result<R, Fatal>,
) -> Result<R, Fatal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let reason = format!("a thread of the namespace has panicked where {what}");
        Err(StoreError::Backend(reason).into())
    })
}
