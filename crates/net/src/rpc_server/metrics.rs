//! What a server has done since its start: calls and their times by method, exceptions by class, bytes, connections.
//!
//! Counting must not be felt at 100,000 calls a second on each core. A call costs one look at the clock, or two, and two
//! or three additions to counters that no other thread writes, without a lock or an allocation: each thread has a shard,
//! and whoever reads adds the shards up. The row of a method is looked up when a connection first meets its header.
//! There are rows for the methods that a server says it has; names come from peers, so all others share one. Figures
//! that are read together may be some calls apart. Tests: below, and `rpc_server/tests/metrics.rs`.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{OnceLock, RwLock};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::slow::SlowCalls;
use crate::durations::{CLASSES, Durations, class_of, nanos};
use cairn_process::held::{held_read, held_write};

/// The protocol and method of calls that have no row of their own, and the class of exceptions that have none.
const OTHER: &str = "other";
/// Classes of exceptions that are told apart: more than a server has. A server may pass on what others have thrown.
const EXCEPTIONS_MAX: usize = 100;
/// Their row.
pub(super) const OTHER_ROW: usize = 0;
/// Threads that have a shard of their own, for each processor: a runtime has a worker on each, and may replace some.
const OWN_SHARDS: usize = 2;

/// Counts what one [`super::RpcServer`] does.
///
/// Source: Hadoop 3.5.0 `RpcMetrics`, `RpcDetailedMetrics`.
pub struct RpcMetrics {
    /// The rows of methods by protocol and name.
    rows: HashMap<(&'static str, &'static str), usize>,
    methods: Vec<Method>,
    /// Those of single threads, made when these count first; the last is shared by all threads that came too late.
    shards: Box<[OnceLock<Shard>]>,
    open_connections: AtomicUsize,
    dropped_connections: AtomicU64,
    authorized: AtomicU64,
    unauthorized: AtomicU64,
    slow: SlowCalls,
    /// By the protocol of the call and the class of the exception that it was answered with.
    exceptions: RwLock<BTreeMap<(&'static str, String), AtomicU64>>,
}

struct Method {
    protocol: &'static str,
    name: &'static str,
    is_held: bool,
}

/// What one thread counts. On lines of its own: what others write nearby would slow it down.
#[repr(align(128))]
struct Shard {
    is_shared: bool,
    calls: Box<[Row]>,
    /// Of calls that have waited at all.
    queue_classes: [AtomicU64; CLASSES],
    queue_nanos: AtomicU64,
    /// Calls that went on less those that ended, which may have begun in another shard: below 0 it wraps around.
    running: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// The calls of one method. How many there are is the sum of the classes.
#[derive(Default)]
struct Row {
    classes: [AtomicU64; CLASSES],
    nanos: AtomicU64,
    errors: AtomicU64,
}

impl Shard {
    fn new(methods: usize, is_shared: bool) -> Shard {
        Shard {
            is_shared,
            calls: (0..methods).map(|_| Row::default()).collect(),
            queue_classes: Default::default(),
            queue_nanos: AtomicU64::new(0),
            running: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    /// Adds to a counter of this shard.
    fn add(&self, counter: &AtomicU64, more: u64) {
        if self.is_shared {
            counter.fetch_add(more, Relaxed);
        } else {
            // Nobody else writes it, and this is several times as fast.
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }
}

/// What a connection knows of the time.
#[derive(Default)]
pub(super) struct Watch {
    /// When the first of the calls that came together was begun.
    arrived: Option<Instant>,
    /// The last look at the clock, while nothing was waited for since.
    now: Option<Instant>,
}

impl Watch {
    /// The work of a call begins. It has waited since calls were read from the socket that were before it: nothing
    /// waits but behind calls of its own connection.
    pub(super) fn begin(&mut self, row: usize) -> Begun {
        let at = self.now.take().unwrap_or_else(Instant::now);
        let queued = at.saturating_duration_since(*self.arrived.get_or_insert(at));
        Begun { row, at, queued }
    }

    /// It is so late.
    pub(super) fn set(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// Something was waited for.
    pub(super) fn waited(&mut self) {
        self.now = None;
    }

    /// More was read from the socket, for all that came before is done.
    pub(super) fn read(&mut self) {
        *self = Watch::default();
    }
}

/// A call that is being worked on.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    row: usize,
    at: Instant,
    queued: Duration,
}

/// A call that has ended.
pub(super) struct Ended {
    /// When.
    pub(super) at: Instant,
    /// How long it took, if that was so long that it is to be told.
    pub(super) slow: Option<Duration>,
}

/// The calls of one method.
#[derive(Clone, Debug)]
pub struct MethodCalls {
    /// The protocol's Java name; `other` for calls of what the server does not have.
    pub protocol: &'static str,
    /// The method's name; `other` likewise.
    pub method: &'static str,
    /// Whether it is answered late on purpose, so that its times say nothing of the server.
    pub is_held: bool,
    /// How many there were, and how long they took.
    pub times: Times,
}

/// How long calls took, from when their work began, with the decoding of their frame where others came with them, until
/// their answer was there. Calls that run are not counted yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Calls by time.
    pub durations: Durations,
    /// Those of them that were answered with an exception.
    pub errors: u64,
}

impl Times {
    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.durations.count()
    }

    /// How many calls were answered with what they asked for.
    pub fn successes(&self) -> u64 {
        self.calls().saturating_sub(self.errors)
    }
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Times) {
        self.durations += other.durations;
        self.errors += other.errors;
    }
}

impl RpcMetrics {
    /// Counts nothing yet. `served` has the methods by the Java names of their protocols; one protocol may be there more
    /// than once. `held` are the names of those that are answered late on purpose.
    pub fn new<'a>(
        served: impl IntoIterator<Item = (&'static str, &'a [&'static str])>,
        held: &[&str],
    ) -> RpcMetrics {
        let mut rows = HashMap::new();
        let mut methods = vec![Method { protocol: OTHER, name: OTHER, is_held: false }];
        for (protocol, names) in served {
            for name in names {
                rows.entry((protocol, *name)).or_insert_with(|| {
                    methods.push(Method { protocol, name, is_held: held.contains(name) });
                    methods.len() - 1
                });
            }
        }
        let threads = OWN_SHARDS * available_parallelism().map_or(1, usize::from);
        RpcMetrics {
            rows,
            shards: (0..threads + 1).map(|_| OnceLock::new()).collect(),
            methods,
            open_connections: AtomicUsize::new(0),
            dropped_connections: AtomicU64::new(0),
            authorized: AtomicU64::new(0),
            unauthorized: AtomicU64::new(0),
            slow: SlowCalls::default(),
            exceptions: RwLock::default(),
        }
    }

    /// Names calls in the log that take much longer than others, from now on, or does not
    /// (`ipc.server.log.slow.rpc`).
    pub fn log_slow_calls(&self, is_on: bool) {
        self.slow.set_on(is_on);
    }

    /// Whether it does.
    pub fn logs_slow_calls(&self) -> bool {
        self.slow.is_on()
    }

    /// Never those that take no longer than this (`ipc.server.log.slow.rpc.threshold.ms`).
    pub fn set_slow_threshold(&self, threshold: Duration) {
        self.slow.set_threshold(threshold);
    }

    /// What that is, to the millisecond.
    pub fn slow_threshold(&self) -> Duration {
        Duration::from_millis(self.slow.threshold_ms())
    }

    /// Calls that were named so.
    pub fn slow_calls(&self) -> u64 {
        self.slow.found()
    }

    /// The shard of this thread.
    fn shard(&self) -> &Shard {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: usize = THREADS.fetch_add(1, Relaxed);
        }
        let shared = self.shards.len() - 1;
        let index = THREAD.with(|thread| *thread).min(shared);
        self.shards[index].get_or_init(|| Shard::new(self.methods.len(), index == shared))
    }

    /// Those in which something was counted.
    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(OnceLock::get)
    }

    /// The row that calls of a method are counted in.
    pub(super) fn row(&self, protocol: &str, method: &str) -> usize {
        self.rows.get(&(protocol, method)).copied().unwrap_or(OTHER_ROW)
    }

    /// The answer of a call is there, now; `exception` is the Java class of the one that it is.
    pub(super) fn end(&self, begun: Begun, exception: Option<&str>) -> Ended {
        let now = Instant::now();
        let took = now.saturating_duration_since(begun.at);
        self.count(begun.row, took, begun.queued, exception.is_some());
        if let Some(class) = exception {
            self.note_exception(self.methods[begun.row].protocol, class);
        }
        let method = &self.methods[begun.row];
        let is_slow = !method.is_held && self.slow.add(took);
        Ended { at: now, slow: is_slow.then_some(took) }
    }

    /// Names a call in the log that was slow.
    #[cold]
    pub(super) fn tell_slow(&self, begun: Begun, took: Duration, peer: SocketAddr, to: &Caller) {
        let Method { protocol, name, .. } = self.methods[begun.row];
        tracing::warn!(
            client = %peer,
            call = to.call_id,
            retry = to.retry_count,
            protocol,
            queued_us = begun.queued.as_micros() as u64,
            threshold_ms = self.slow.threshold_ms(),
            "Slow RPC : {name} took {} us to process",
            took.as_micros()
        );
    }

    fn count(&self, row: usize, took: Duration, queued: Duration, is_error: bool) {
        let shard = self.shard();
        let row = &shard.calls[row];
        shard.add(&row.classes[class_of(took)], 1);
        shard.add(&row.nanos, nanos(took));
        if is_error {
            shard.add(&row.errors, 1);
        }
        if !queued.is_zero() {
            shard.add(&shard.queue_classes[class_of(queued)], 1);
            shard.add(&shard.queue_nanos, nanos(queued));
        }
    }

    /// All threads share these counts: whoever is refused has asked for what is rare, or can wait.
    #[cold]
    fn note_exception(&self, protocol: &'static str, class: &str) {
        let class = class.rsplit('.').next().unwrap_or_default();
        let count_in = |exceptions: &BTreeMap<(&'static str, String), AtomicU64>, class: &str| {
            let count = exceptions.get(&(protocol, class.to_string()));
            count.map(|count| count.fetch_add(1, Relaxed)).is_some()
        };
        if count_in(&held_read(&self.exceptions), class) {
            return;
        }
        let mut exceptions = held_write(&self.exceptions);
        let class = if exceptions.len() < EXCEPTIONS_MAX { class } else { OTHER };
        let count = exceptions.entry((protocol, class.to_string())).or_default();
        count.fetch_add(1, Relaxed);
    }

    /// How many calls of a protocol were answered with an exception of a class, named without its package. Those beyond
    /// the first hundred classes are `other`.
    pub fn exceptions(&self) -> Vec<(&'static str, String, u64)> {
        let exceptions = held_read(&self.exceptions);
        let told = |((protocol, class), count): (&(&'static str, String), &AtomicU64)| {
            (*protocol, class.clone(), count.load(Relaxed))
        };
        exceptions.iter().map(told).collect()
    }

    /// A call could not be answered at once, and goes on.
    pub(super) fn note_running(&self) {
        let shard = self.shard();
        shard.add(&shard.running, 1);
    }

    /// A call that went on has ended.
    pub(super) fn note_not_running(&self) {
        let shard = self.shard();
        shard.add(&shard.running, u64::MAX);
    }

    pub(super) fn note_received(&self, len: u64) {
        let shard = self.shard();
        shard.add(&shard.received, len);
    }

    pub(super) fn note_sent(&self, len: u64) {
        let shard = self.shard();
        shard.add(&shard.sent, len);
    }

    /// A server that had `before` open connections has so many now; others may count here as well.
    pub(super) fn change_open_connections(&self, before: usize, now: usize) {
        self.open_connections.fetch_add(now.wrapping_sub(before), Relaxed);
    }

    pub(super) fn note_dropped_connection(&self) {
        self.dropped_connections.fetch_add(1, Relaxed);
    }

    pub(super) fn note_authorized(&self) {
        self.authorized.fetch_add(1, Relaxed);
    }

    pub(super) fn note_unauthorized(&self) {
        self.unauthorized.fetch_add(1, Relaxed);
    }

    /// The calls of each method, those of no known method first. Methods that were never called are there as well.
    pub fn methods(&self) -> Vec<MethodCalls> {
        let calls = |(row, method): (usize, &Method)| MethodCalls {
            protocol: method.protocol,
            method: method.name,
            is_held: method.is_held,
            times: self.times(row),
        };
        self.methods.iter().enumerate().map(calls).collect()
    }

    /// The calls of one method that were answered with what they asked for; 0 for one that the server does not have.
    pub fn successes(&self, protocol: &str, method: &str) -> u64 {
        self.rows.get(&(protocol, method)).map_or(0, |row| self.times(*row).successes())
    }

    fn times(&self, row: usize) -> Times {
        let mut times = Times::default();
        for row in self.shards().map(|shard| &shard.calls[row]) {
            // First, so that there are never more of them than calls.
            let errors = row.errors.load(Relaxed);
            let durations = Durations {
                classes: std::array::from_fn(|class| row.classes[class].load(Relaxed)),
                total: Duration::from_nanos(row.nanos.load(Relaxed)),
            };
            times += Times { durations, errors };
        }
        times
    }

    fn sum(&self, of: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        let each = self.shards().map(|shard| of(shard).load(Relaxed));
        each.fold(0, u64::wrapping_add)
    }

    /// How long calls waited together, between their arrival and the beginning of their work: behind calls of their own
    /// connection that came with them.
    pub fn queued(&self) -> Duration {
        Duration::from_nanos(self.sum(|shard| &shard.queue_nanos))
    }

    /// How long each of `ended` calls waited so: those that were at work at once waited no time.
    pub fn queue_times(&self, ended: u64) -> Durations {
        let mut durations = Durations { classes: [0; CLASSES], total: self.queued() };
        for (class, count) in durations.classes.iter_mut().enumerate() {
            *count = self.sum(|shard| &shard.queue_classes[class]);
        }
        // More may have ended meanwhile.
        durations.classes[0] += ended.saturating_sub(durations.count());
        durations
    }

    /// Calls that could not be answered at once and are being worked on.
    pub fn running(&self) -> u64 {
        // Below 0 when a call ends while the shards are read.
        (self.sum(|shard| &shard.running) as i64).max(0) as u64
    }

    /// Bytes read from clients.
    pub fn received(&self) -> u64 {
        self.sum(|shard| &shard.received)
    }

    /// Bytes written to clients.
    pub fn sent(&self) -> u64 {
        self.sum(|shard| &shard.sent)
    }

    /// Connections there are.
    pub fn open_connections(&self) -> usize {
        self.open_connections.load(Relaxed)
    }

    /// Connections that were closed at once because there were too many.
    pub fn dropped_connections(&self) -> u64 {
        self.dropped_connections.load(Relaxed)
    }

    /// Connections that were let in.
    pub fn authorized(&self) -> u64 {
        self.authorized.load(Relaxed)
    }

    /// Connections that were refused because of their user, protocol or machine.
    pub fn unauthorized(&self) -> u64 {
        self.unauthorized.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durations::BOUNDS;

    const SERVED: [(&str, &[&str]); 3] =
        [("p.One", &["get", "put"]), ("p.Two", &["get"]), ("p.One", &["wait", "get"])];

    fn none() -> RpcMetrics {
        RpcMetrics::new(SERVED, &["wait"])
    }

    #[test]
    fn each_method_has_one_row_and_strangers_share_another() {
        let metrics = none();
        let methods = metrics.methods();
        let names: Vec<_> = methods.iter().map(|row| (row.protocol, row.method)).collect();
        let wanted = [("p.One", "get"), ("p.One", "put"), ("p.Two", "get"), ("p.One", "wait")];
        assert_eq!(names[0], (OTHER, OTHER));
        assert_eq!(names[1..], wanted);
        assert_eq!(methods.iter().filter(|row| row.is_held).count(), 1);
        let rows = wanted.map(|(protocol, method)| metrics.row(protocol, method));
        assert_eq!(rows, [1, 2, 3, 4]);
        for (protocol, method) in [("p.Two", "put"), ("p.Three", "get"), ("", ""), (OTHER, OTHER)] {
            assert_eq!(metrics.row(protocol, method), 0, "{protocol} {method}");
        }
    }

    #[test]
    fn calls_are_counted_by_how_long_they_took() {
        let metrics = none();
        let row = metrics.row("p.One", "put");
        let mut total = Duration::ZERO;
        for (index, bound) in BOUNDS.iter().enumerate() {
            for took in [*bound, *bound + Duration::from_nanos(1)] {
                metrics.count(row, took, Duration::ZERO, index == 0);
                total += took;
            }
        }
        let times = metrics.methods()[row].times;
        let calls = 2 * BOUNDS.len() as u64;
        assert_eq!((times.errors, times.durations.total), (2, total));
        assert_eq!((times.durations.classes[0], times.durations.classes[1]), (1, 2));
        assert_eq!((times.calls(), times.successes()), (calls, calls - 2));
        assert_eq!(metrics.successes("p.One", "put"), calls - 2);
        assert_eq!(metrics.successes("p.One", "get"), 0);
    }

    #[test]
    fn what_threads_count_adds_up() {
        const CALLS: u64 = 10_000;
        let (metrics, threads) = (none(), none().shards.len() as u64 + 3);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let micro = Duration::from_micros(1);
                    for call in 0..CALLS {
                        metrics.count(1, micro, 2 * micro, call % 10 == 0);
                        metrics.note_received(3);
                        metrics.note_sent(4);
                    }
                    metrics.note_running();
                });
            }
        });
        // Not by the threads that have begun them.
        (1..threads).for_each(|_| metrics.note_not_running());
        let (calls, micro) = (CALLS * threads, Duration::from_micros(1));
        let times = metrics.methods()[1].times;
        assert_eq!((times.calls(), times.errors), (calls, calls / 10));
        assert_eq!(
            (times.durations.total, metrics.queued()),
            (calls as u32 * micro, calls as u32 * 2 * micro)
        );
        assert_eq!(metrics.queue_times(calls).count(), calls);
        assert_eq!(
            (metrics.received(), metrics.sent(), metrics.running()),
            (3 * calls, 4 * calls, 1)
        );
    }

    #[test]
    fn calls_wait_behind_those_that_they_came_with() {
        let (metrics, mut watch) = (none(), Watch::default());
        let first = watch.begin(0);
        assert_eq!(first.queued, Duration::ZERO);
        let ended = metrics.end(first, None).at;
        watch.set(ended);
        let second = watch.begin(0);
        assert_eq!((second.at, second.queued), (ended, ended - first.at));
        watch.set(metrics.end(second, Some("a.b.Refused")).at);
        watch.waited();
        let third = watch.begin(0);
        assert!(third.at > ended);
        assert_eq!(third.queued, third.at - first.at);
        watch.read();
        assert_eq!(watch.begin(0).queued, Duration::ZERO);
        assert_eq!(metrics.queued(), second.queued);
        // Of three calls that have ended one waited, no longer than the shortest class.
        let queued = metrics.queue_times(3);
        assert_eq!((queued.count(), queued.total), (3, second.queued));
        assert_eq!(metrics.exceptions(), [(OTHER, "Refused".to_string(), 1)]);
    }

    #[test]
    fn exceptions_are_counted_by_class_and_never_of_more_classes_than_there_are() {
        let metrics = none();
        let now = Begun { row: 1, at: Instant::now(), queued: Duration::ZERO };
        for number in 0..EXCEPTIONS_MAX + 5 {
            metrics.end(now, Some(&format!("a.E{number:03}")));
            metrics.end(now, Some("a.E000"));
        }
        metrics.end(now, None);
        let told = metrics.exceptions();
        assert_eq!(told.len(), EXCEPTIONS_MAX + 1);
        assert_eq!(told[0], ("p.One", "E000".to_string(), EXCEPTIONS_MAX as u64 + 6));
        assert_eq!(told[EXCEPTIONS_MAX], ("p.One", OTHER.to_string(), 5));
    }
}
