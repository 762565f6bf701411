//! One worker: what it is doing, and what has come of it.

use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_process::held::held;
use tokio::sync::watch;

use super::kind::{Kind, Pause};

/// Characters of a failure that are kept.
const FAILURE_MAX: usize = 500;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A round.
    Working,
    /// Nothing until its next round.
    Resting,
    /// Nothing until an operator lets it.
    Paused,
    /// Nothing: the configuration asks for none of it, or all of it is done.
    Off,
    /// Nothing for a while, since it has failed in a way that it did not foresee.
    Failed,
}

impl State {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            State::Working => "working",
            State::Resting => "resting",
            State::Paused => "paused",
            State::Off => "off",
            State::Failed => "failed",
        }
    }
}

/// How far a round has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// So many are done.
    pub done: u64,
    /// Of so many, where that is known.
    pub of: Option<u64>,
    /// What is counted, as a plural.
    pub what: &'static str,
}

/// What is told of a worker.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its kind.
    pub kind: &'static Kind,
    /// What of several things its work is on; empty for the one there is.
    pub of: String,
    /// What it is doing.
    pub state: State,
    /// For how long.
    pub since: Duration,
    /// Whether it is to be paused, now or after its round.
    pub is_paused: bool,
    /// Rounds that have ended.
    pub rounds: u64,
    /// The time that rounds have taken, the one under way included.
    pub busy: Duration,
    /// How far the last round has come.
    pub progress: Option<Progress>,
    /// Bytes that it may handle in a second; `None` without a bound.
    pub bytes_per_second: Option<u64>,
    /// Rounds that have failed.
    pub failures: u64,
    /// Why the last of these did.
    pub last_failure: Option<String>,
}

pub(super) struct Shared {
    pub(super) kind: &'static Kind,
    of: String,
    bytes_per_second: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
    pause: watch::Sender<bool>,
    now: Mutex<Now>,
}

struct Now {
    state: State,
    since: Instant,
    rounds: u64,
    busy: Duration,
    progress: Option<Progress>,
    failures: u64,
    last_failure: Option<String>,
}

impl Shared {
    pub(super) fn new(
        kind: &'static Kind,
        of: String,
        bytes_per_second: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
    ) -> Shared {
        let now = Now {
            state: State::Resting,
            since: Instant::now(),
            rounds: 0,
            busy: Duration::ZERO,
            progress: None,
            failures: 0,
            last_failure: None,
        };
        Shared {
            kind,
            of,
            bytes_per_second,
            pause: watch::Sender::new(false),
            now: Mutex::new(now),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        *self.pause.borrow()
    }

    pub(super) fn pause(&self, pause: bool) {
        self.pause.send_replace(pause);
    }

    fn turn(&self, to: State) {
        let mut now = held(&self.now);
        let now = &mut *now;
        if now.state == to {
            return;
        }
        if now.state == State::Working {
            now.rounds += 1;
            now.busy += now.since.elapsed();
        }
        (now.state, now.since) = (to, Instant::now());
    }

    pub(super) fn told(&self) -> Told {
        let bytes_per_second = self.bytes_per_second.as_ref().map(|ask| ask());
        let is_paused = self.is_paused();
        let now = held(&self.now);
        let since = now.since.elapsed();
        let state = match now.state {
            State::Resting if is_paused => State::Paused,
            state => state,
        };
        let is_working = now.state == State::Working;
        Told {
            kind: self.kind,
            of: self.of.clone(),
            state,
            since,
            is_paused,
            rounds: now.rounds,
            busy: if is_working { now.busy + since } else { now.busy },
            progress: now.progress,
            bytes_per_second: bytes_per_second.filter(|bytes| *bytes > 0),
            failures: now.failures,
            last_failure: now.last_failure.clone(),
        }
    }
}

/// What a loop says of itself. It is in the list of its server until it is dropped.
pub struct Worker {
    shared: Arc<Shared>,
    all: Arc<Mutex<Vec<Arc<Shared>>>>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, all: Arc<Mutex<Vec<Arc<Shared>>>>) -> Worker {
        Worker { shared, all }
    }

    /// Rests until `until` completes, and longer if it is paused; then its next round begins.
    pub async fn rest<T>(&self, until: impl Future<Output = T>) -> T {
        self.shared.turn(State::Resting);
        let done = until.await;
        self.pass().await;
        done
    }

    /// Goes on with a round, or begins one, as soon as it is not paused. Rounds that take long ask now and then.
    pub async fn pass(&self) {
        if self.shared.kind.pause == Pause::Safe && self.shared.is_paused() {
            self.shared.turn(State::Paused);
            // The sender lives as long as `self`.
            let _ = self.shared.pause.subscribe().wait_for(|paused| !*paused).await;
        }
        self.shared.turn(State::Working);
    }

    /// Does nothing for ever: nothing is asked for, or all is done.
    pub async fn off(&self) {
        self.shared.turn(State::Off);
        std::future::pending().await
    }

    /// Notes that it has failed in a way that it did not foresee, and begins again after a while.
    pub fn broken(&self, why: impl Display) {
        self.failed(why);
        self.shared.turn(State::Failed);
    }

    /// Notes that this round has failed.
    pub fn failed(&self, why: impl Display) {
        let why: String = why.to_string().chars().take(FAILURE_MAX).collect();
        let mut now = held(&self.shared.now);
        now.failures += 1;
        now.last_failure = Some(why);
    }

    /// Notes how far its round has come.
    pub fn has_done(&self, done: u64, of: Option<u64>, what: &'static str) {
        held(&self.shared.now).progress = Some(Progress { done, of, what });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        held(&self.all).retain(|other| !Arc::ptr_eq(other, &self.shared));
    }
}
