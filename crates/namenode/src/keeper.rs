//! The cluster, one lock around it, and who waits for it to change.
//!
//! The lock is the outermost one: a state of the namespace is taken while it is held, so that it is never older than
//! what the cluster has been told. Entries that come into force have right of way: whoever else wants the lock
//! queues for a turn first, so at most one of them is before an entry. It is never held across an await, and nobody
//! goes on with a cluster at which a panic has struck: the NameNode ends.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use cairn_master::effects::{self, EntryEffects};
use cairn_master::{FollowUp, Lookup};
use cairn_namespace::{Effect, Times};
use cairn_process::held::held;
use cairn_redundancy::{Cluster, Now, Ticket};
use tokio::sync::{Notify, oneshot, watch};

use crate::clock::FileSystemClock;
use crate::journal::{Listener, Reader};
use crate::last_inputs::LastInputs;

/// See the module.
pub(crate) struct Keeper {
    /// Held by whoever has, or is next to have, the cluster, but for entries that come into force.
    turn: Mutex<()>,
    cluster: Mutex<Cluster>,
    /// Operations that wait for blocks.
    waiting: Mutex<HashMap<Ticket, Wait>>,
    /// Wakes the calls of DataNodes that wait for work.
    ordered: Notify,
    /// What is to be submitted because of entries that came into force.
    due: Mutex<FollowUp>,
    is_due: Notify,
    /// Why nobody may go on, once that is so.
    broken: watch::Sender<Option<String>>,
    /// The beginning of monotonic time.
    epoch: Instant,
    clock: Arc<FileSystemClock>,
}

/// What is known of a wait outside of the cluster.
enum Wait {
    /// It is awaited.
    Awaited(oneshot::Sender<()>),
    /// It has ended before anybody awaited it.
    Over,
}

impl Keeper {
    pub fn new(cluster: Cluster, clock: Arc<FileSystemClock>) -> Keeper {
        Keeper {
            turn: Mutex::default(),
            cluster: Mutex::new(cluster),
            waiting: Mutex::default(),
            ordered: Notify::new(),
            due: Mutex::default(),
            is_due: Notify::new(),
            broken: watch::Sender::new(None),
            epoch: Instant::now(),
            clock,
        }
    }

    /// The time.
    pub fn now(&self) -> Now {
        let Times { wall_ms, elapsed_ms } = self.clock.now();
        Now { mono_ms: self.epoch.elapsed().as_millis() as u64, elapsed_ms, wall_ms }
    }

    /// When a time of the monotonic clock comes.
    pub fn instant(&self, mono_ms: u64) -> Instant {
        self.epoch + std::time::Duration::from_millis(mono_ms)
    }

    /// The cluster, for whoever holds what comes back.
    pub fn lock(&self) -> Held<'_> {
        let turn = held(&self.turn);
        let cluster = held(&self.cluster);
        Held { keeper: self, cluster: Some(cluster), _turn: Some(turn) }
    }

    /// As [`Keeper::lock`], before all who wait for that.
    fn lock_first(&self) -> Held<'_> {
        Held { keeper: self, cluster: Some(held(&self.cluster)), _turn: None }
    }

    /// Wakes those whose waits the cluster says are over.
    fn wake(&self, woken: Vec<Ticket>) {
        if woken.is_empty() {
            return;
        }
        let mut waiting = held(&self.waiting);
        for ticket in woken {
            if let Some(Wait::Awaited(sender)) = waiting.remove(&ticket) {
                // Whoever has waited may have gone away.
                let _ = sender.send(());
            } else {
                waiting.insert(ticket, Wait::Over);
            }
        }
    }

    /// Waits until the cluster says that a wait is over, or until that time. Says whether it was.
    pub async fn wait(&self, ticket: Ticket, until: Instant) -> bool {
        let over = {
            let mut waiting = held(&self.waiting);
            if waiting.remove(&ticket).is_some() {
                return true;
            }
            let (sender, over) = oneshot::channel();
            waiting.insert(ticket, Wait::Awaited(sender));
            over
        };
        if tokio::time::timeout_at(until.into(), over).await.is_ok() {
            return true;
        }
        self.lock().forget_wait(ticket);
        held(&self.waiting).remove(&ticket);
        false
    }

    /// Wakes the calls of DataNodes that wait for work.
    pub fn ordered(&self) -> &Notify {
        &self.ordered
    }

    /// What is to be submitted because of entries that came into force; waits until there is something.
    pub async fn due(&self) -> FollowUp {
        loop {
            let due = std::mem::take(&mut *held(&self.due));
            if !due.is_empty() {
                return due;
            }
            self.is_due.notified().await;
        }
    }

    /// Has that submitted, by who takes [`Keeper::due`].
    pub fn add_due(&self, follow_up: FollowUp) {
        if !follow_up.is_empty() {
            held(&self.due).append(follow_up);
            self.is_due.notify_one();
        }
    }

    /// Why nobody may go on, when that is so.
    pub async fn broken(&self) -> String {
        let mut broken = self.broken.subscribe();
        let why = broken.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        // The sender lives as long as `self`.
        why.unwrap_or_default()
    }
}

/// The cluster while it is held.
pub struct Held<'a> {
    keeper: &'a Keeper,
    cluster: Option<MutexGuard<'a, Cluster>>,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl Deref for Held<'_> {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster.as_ref().expect("it is held until it is dropped")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Cluster {
        self.cluster.as_mut().expect("it is held until it is dropped")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a panic has struck at the state of the cluster";
            self.keeper.broken.send_replace(Some(why.to_string()));
            return;
        }
        let has_orders = self.take_new_orders();
        let woken = self.take_woken();
        // Others need not wait until they are woken.
        self.cluster = None;
        self._turn = None;
        if has_orders {
            self.keeper.ordered.notify_waiters();
        }
        self.keeper.wake(woken);
    }
}

/// Tells the cluster what entries have done.
pub(crate) struct Teller {
    pub keeper: Arc<Keeper>,
    /// Not the namespace itself: the thread that tells is one of those that its end waits for.
    pub reader: Reader,
    pub inputs: Arc<LastInputs>,
}

impl Listener for Teller {
    fn come_into_force(&self, entries: Vec<EntryEffects>, show: &mut dyn FnMut()) {
        let entries = Arc::new(entries);
        let told = entries.iter().map(|entry| entry.effects.len() + entry.targets.len());
        let bytes = told.sum::<usize>() * size_of::<Effect>();
        self.inputs.note("effects", bytes, Arc::clone(&entries));
        let mut cluster = self.keeper.lock_first();
        show();
        let now = self.keeper.now();
        let mut follow_up = FollowUp::default();
        self.reader.read(|store| {
            let lookup = Lookup::new(store);
            for entry in &*entries {
                follow_up.append(effects::apply(&mut cluster, &lookup, now, entry));
            }
        });
        drop(cluster);
        self.keeper.add_due(follow_up);
    }
}
