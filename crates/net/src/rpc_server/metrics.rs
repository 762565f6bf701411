//! What a server has done since its start: calls and their times by method, bytes, connections.
//!
//! Counting must not be felt at 100,000 calls a second on each core. A call costs one look at the clock, or two, and two
//! or three additions to counters that no other thread writes, without a lock or an allocation: each thread has a shard,
//! and whoever reads adds the shards up. The row of a method is looked up when a connection first meets its header.
//! There are rows for the methods that a server says it has; names come from peers, so all others share one. Figures
//! that are read together may be some calls apart. Tests: below, and `rpc_server/tests/metrics.rs`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::slow::SlowCalls;

/// The longest times of the classes that calls are counted in; the class behind the last has all that take longer.
pub const BOUNDS: [Duration; 6] = [
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];
const CLASSES: usize = BOUNDS.len() + 1;
/// The protocol and method of calls that have no row of their own.
const OTHER: &str = "other";
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
    /// Calls by time: how many took no longer than each of [`BOUNDS`] and longer than the one before, and the rest.
    pub classes: [u64; CLASSES],
    /// Those of them that were answered with an exception.
    pub errors: u64,
    /// The time of all together.
    pub total: Duration,
}

impl Times {
    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// How many calls were answered with what they asked for.
    pub fn successes(&self) -> u64 {
        self.calls().saturating_sub(self.errors)
    }
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Times) {
        for (own, more) in self.classes.iter_mut().zip(other.classes) {
            *own += more;
        }
        self.errors += other.errors;
        self.total += other.total;
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

    /// The answer of a call is there, now.
    pub(super) fn end(&self, begun: Begun, is_error: bool) -> Ended {
        let now = Instant::now();
        let took = now.saturating_duration_since(begun.at);
        self.count(begun.row, took, begun.queued, is_error);
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
        let class = BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS.len());
        shard.add(&row.classes[class], 1);
        shard.add(&row.nanos, nanos(took));
        if is_error {
            shard.add(&row.errors, 1);
        }
        if !queued.is_zero() {
            shard.add(&shard.queue_nanos, nanos(queued));
        }
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

    pub(super) fn set_open_connections(&self, count: usize) {
        self.open_connections.store(count, Relaxed);
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
            times += Times {
                classes: std::array::from_fn(|class| row.classes[class].load(Relaxed)),
                errors,
                total: Duration::from_nanos(row.nanos.load(Relaxed)),
            };
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

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(times, Times { classes: [1, 2, 2, 2, 2, 2, 1], errors: 2, total });
        assert_eq!((times.calls(), times.successes()), (12, 10));
        assert_eq!(metrics.successes("p.One", "put"), 10);
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
            (times.total, metrics.queued()),
            (calls as u32 * micro, calls as u32 * 2 * micro)
        );
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
        let ended = metrics.end(first, false).at;
        watch.set(ended);
        let second = watch.begin(0);
        assert_eq!((second.at, second.queued), (ended, ended - first.at));
        watch.set(metrics.end(second, false).at);
        watch.waited();
        let third = watch.begin(0);
        assert!(third.at > ended);
        assert_eq!(third.queued, third.at - first.at);
        watch.read();
        assert_eq!(watch.begin(0).queued, Duration::ZERO);
        assert_eq!(metrics.queued(), second.queued);
    }
}
