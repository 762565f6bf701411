//! One thing that is done in a trace, from its beginning to its end.

use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::context::Context;
use crate::queue;
use crate::record::{Kind, Record};

tokio::task_local! {
    /// What the task is doing, if that is recorded.
    static CURRENT: Option<Context>;
}

/// What a process does that carries out one command.
static PROCESS: OnceLock<Context> = OnceLock::new();

/// Of 2^32 things that begin traces by themselves, how many are recorded.
static SAMPLE: AtomicU64 = AtomicU64::new(0);

/// Has this share of what begins traces by itself ([`Span::begun`]) recorded: none before.
pub fn sample(share: f64) {
    SAMPLE.store((share.clamp(0.0, 1.0) * SAMPLE_ALL) as u64, Ordering::Relaxed);
}

/// See [`SAMPLE`].
const SAMPLE_ALL: f64 = 4_294_967_296.0;

/// Does something in a task of its own as a part of what is being done here.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(current(), work)
}

/// What is being done here: by this task, or else by this process, if it carries out one command; `None` if nothing is
/// recorded.
pub fn current() -> Option<Context> {
    if !queue::is_on() {
        return None;
    }
    CURRENT.try_with(|context| *context).ok().flatten().or_else(|| PROCESS.get().copied())
}

/// What is being done here, as it is sent along with what is asked of others.
pub fn here() -> Option<String> {
    current().map(|context| context.written())
}

/// Something that is being done. It ends when it is dropped, and is sent to the collector then.
#[derive(Debug)]
pub struct Span {
    record: Box<Record>,
    begun: Instant,
}

impl Span {
    /// The first span of a trace, or one of a trace that another program has begun (`parent`). Everything that this process
    /// does belongs to it. `None` where no collector is.
    pub fn of_process(name: String, parent: Option<Context>) -> Option<Span> {
        if !queue::is_on() {
            return None;
        }
        let trace = parent.map_or_else(random, |parent| parent.trace);
        let span = Span::new(trace, parent.map(|parent| parent.span), Kind::Internal, name);
        PROCESS.set(span.record.context).ok().map(|()| span)
    }

    /// The first span of a trace that begins here: with a call of a program that uses a library, or with work that a
    /// server does by itself; a share of them is recorded ([`sample`]). What is a part of something else already belongs
    /// to that.
    pub fn begun(name: impl FnOnce() -> String) -> Option<Span> {
        if !queue::is_on() {
            return None;
        }
        if let Some(parent) = current() {
            return Some(Span::within(parent, Kind::Internal, name()));
        }
        let chance = u64::from(u32::from_le_bytes(random()));
        let is_chosen = chance < SAMPLE.load(Ordering::Relaxed);
        is_chosen.then(|| Span::new(random(), None, Kind::Internal, name()))
    }

    /// One for what is being done here; `None` if nothing is recorded. `name` is asked for if it is.
    pub fn asked(kind: Kind, name: impl FnOnce() -> String) -> Option<Span> {
        Some(Span::within(current()?, kind, name()))
    }

    /// One for what a caller does, as it has said; `None` if it has said nothing, or no collector is.
    pub fn served(caller: Option<&[u8]>, name: impl FnOnce() -> String) -> Option<Span> {
        let caller = caller.filter(|_| queue::is_on()).and_then(Context::read)?;
        Some(Span::within(caller, Kind::Server, name()))
    }

    fn within(parent: Context, kind: Kind, name: String) -> Span {
        Span::new(parent.trace, Some(parent.span), kind, name)
    }

    fn new(trace: [u8; 16], parent: Option<[u8; 8]>, kind: Kind, name: String) -> Span {
        let record = Box::new(Record {
            context: Context { trace, span: random() },
            parent,
            kind,
            name,
            attributes: Vec::new(),
            failure: None,
            at: SystemTime::now(),
            took: Duration::ZERO,
        });
        Span { record, begun: Instant::now() }
    }

    /// As what is asked for it is to say.
    pub fn written(&self) -> String {
        self.record.context.written()
    }

    /// Says something of it. Names are those of OpenTelemetry's semantic conventions where these have one.
    pub fn note(&mut self, key: &'static str, value: impl ToString) {
        self.record.attributes.push((key, value.to_string()));
    }

    /// It has failed.
    pub fn failed(&mut self, why: impl ToString) {
        self.record.failure = Some(why.to_string());
    }

    /// Does something as a part of it.
    pub fn contains<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(Some(self.record.context), work)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.record.took = self.begun.elapsed();
        queue::take(&self.record);
    }
}

/// Never zero.
fn random<const LEN: usize>() -> [u8; LEN] {
    let mut bytes = [0; LEN];
    // A trace that is told twice or mixed with another one harms nothing.
    let _ = getrandom::fill(&mut bytes);
    if bytes == [0; LEN] { [1; LEN] } else { bytes }
}
