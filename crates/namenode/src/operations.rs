//! The operations that are under way: what each waits for, and since when.
//!
//! So many of callers run at a time at most; others wait for their turn. A call that comes again while it is carried out
//! waits for the end of the first one: then its answer is kept, if the call has changed anything.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cairn_namespace::CallId;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

/// Operations of callers that run at a time.
pub(crate) const MOST: usize = 10_000;

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Nothing: it is at work.
    Nothing,
    /// A call that came before, and is the same.
    SameCall,
    /// The end of another operation, because so many run.
    Turn,
    /// A command that is to be logged and shown.
    Log,
    /// A change of blocks, told by DataNodes or by entries.
    Blocks,
}

impl WaitsFor {
    const ALL: [WaitsFor; 5] =
        [WaitsFor::Nothing, WaitsFor::SameCall, WaitsFor::Turn, WaitsFor::Log, WaitsFor::Blocks];

    /// The word for it; none for nothing.
    pub fn word(self) -> Option<&'static str> {
        match self {
            WaitsFor::Nothing => None,
            WaitsFor::SameCall => Some("same call"),
            WaitsFor::Turn => Some("turn"),
            WaitsFor::Log => Some("log"),
            WaitsFor::Blocks => Some("blocks"),
        }
    }
}

/// What is shown of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// What it is called.
    pub name: &'static str,
    /// Since when it is under way.
    pub age: Duration,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// For how long.
    pub waits: Duration,
}

struct Entry {
    name: &'static str,
    begun: Instant,
    waits_for: AtomicUsize,
    /// Since when, in µs after it began.
    since_us: AtomicU64,
}

impl Entry {
    fn wait_for(&self, what: WaitsFor) {
        let since_us = self.begun.elapsed().as_micros() as u64;
        self.since_us.store(since_us, Ordering::Relaxed);
        self.waits_for.store(what as usize, Ordering::Relaxed);
    }

    fn shown(&self) -> Shown {
        let age = self.begun.elapsed();
        let since = Duration::from_micros(self.since_us.load(Ordering::Relaxed));
        let waits_for = WaitsFor::ALL[self.waits_for.load(Ordering::Relaxed)];
        Shown { name: self.name, age, waits_for, waits: age.saturating_sub(since) }
    }
}

/// Parts that what is under way is kept in, so that threads seldom wait for each other.
const PARTS: usize = 16;

#[derive(Default)]
struct Running {
    /// By number.
    all: BTreeMap<u64, Arc<Entry>>,
    /// Calls that may come again, with who waits for their end.
    calls: HashMap<CallId, Option<watch::Sender<()>>>,
}

/// See the module.
pub(crate) struct Operations {
    begun: AtomicU64,
    running: [Mutex<Running>; PARTS],
    turns: Semaphore,
}

impl Default for Operations {
    fn default() -> Operations {
        Operations {
            begun: AtomicU64::new(0),
            running: Default::default(),
            turns: Semaphore::new(MOST),
        }
    }
}

impl Operations {
    fn part(&self, part: usize) -> MutexGuard<'_, Running> {
        self.running[part % PARTS].lock().expect("nothing panics while it is held")
    }

    /// Where the operation of that number is.
    fn of_number(&self, number: u64) -> MutexGuard<'_, Running> {
        self.part(number as usize)
    }

    /// Where that call is.
    fn of_call(&self, call: &CallId) -> MutexGuard<'_, Running> {
        self.part(call.call_id as usize)
    }

    /// Notes an operation of the NameNode's own, which others may wait for: it needs no turn.
    pub fn begin_own(&self, name: &'static str) -> UnderWay<'_> {
        let (waits_for, since_us) = (AtomicUsize::new(0), AtomicU64::new(0));
        let entry = Arc::new(Entry { name, begun: Instant::now(), waits_for, since_us });
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.of_number(number).all.insert(number, entry.clone());
        UnderWay { operations: self, number, entry, call: None, _turn: None }
    }

    /// Begins an operation for a caller, when it is its turn and the same call is not being carried out.
    pub async fn begin(&self, name: &'static str, call: Option<CallId>) -> UnderWay<'_> {
        let mut operation = self.begin_own(name);
        while let Some(call) = call {
            let over = {
                let mut running = self.of_call(&call);
                let Some(first) = running.calls.get_mut(&call) else {
                    running.calls.insert(call, None);
                    operation.call = Some(call);
                    break;
                };
                first.get_or_insert_with(|| watch::Sender::new(())).subscribe()
            };
            let _waits = operation.wait_for(WaitsFor::SameCall);
            over_of(over).await;
        }
        let turn = {
            let _waits = operation.wait_for(WaitsFor::Turn);
            self.turns.acquire().await.expect("turns are never over")
        };
        operation._turn = Some(turn);
        operation
    }

    /// How many there are, and those that were begun first.
    pub fn shown(&self, most: usize) -> (usize, Vec<Shown>) {
        let (mut count, mut first) = (0, Vec::new());
        for part in 0..PARTS {
            let running = self.part(part);
            count += running.all.len();
            first.extend(
                running.all.iter().take(most).map(|(number, entry)| (*number, entry.clone())),
            );
        }
        first.sort_unstable_by_key(|(number, _)| *number);
        (count, first.iter().take(most).map(|(_, entry)| entry.shown()).collect())
    }
}

/// Waits for the end of the call whose sender that is.
async fn over_of(mut over: watch::Receiver<()>) {
    while over.changed().await.is_ok() {}
}

/// An operation until it ends.
pub(crate) struct UnderWay<'a> {
    operations: &'a Operations,
    number: u64,
    entry: Arc<Entry>,
    call: Option<CallId>,
    _turn: Option<SemaphorePermit<'a>>,
}

impl UnderWay<'_> {
    /// Says what it waits for, until what comes back is dropped.
    pub fn wait_for(&self, what: WaitsFor) -> impl Drop + use<> {
        self.entry.wait_for(what);
        Waiting(self.entry.clone())
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.operations.of_number(self.number).all.remove(&self.number);
        if let Some(call) = &self.call {
            self.operations.of_call(call).calls.remove(call);
        }
    }
}

struct Waiting(Arc<Entry>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.wait_for(WaitsFor::Nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    fn call(call_id: i32) -> Option<CallId> {
        Some(CallId { client_id: [7; 16], call_id })
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn waits(operations: &Operations) -> Vec<(&'static str, Option<&'static str>)> {
        let (_, shown) = operations.shown(10);
        shown.iter().map(|shown| (shown.name, shown.waits_for.word())).collect()
    }

    #[test]
    fn a_call_that_comes_again_waits_for_the_first_one() {
        let operations = Operations::default();
        let Poll::Ready(first) = poll(std::pin::pin!(operations.begin("complete", call(1)))) else {
            panic!("nobody is there");
        };
        let mut again = std::pin::pin!(operations.begin("complete", call(1)));
        assert!(poll(again.as_mut()).is_pending());
        assert!(poll(std::pin::pin!(operations.begin("complete", call(2)))).is_ready());
        assert!(poll(std::pin::pin!(operations.begin("complete", None))).is_ready());
        let waiting = first.wait_for(WaitsFor::Log);
        let both = [("complete", Some("log")), ("complete", Some("same call"))];
        assert_eq!(waits(&operations), both);
        drop(waiting);
        assert_eq!(waits(&operations)[0], ("complete", None));
        assert!(poll(again.as_mut()).is_pending());
        drop(first);
        let Poll::Ready(second) = poll(again.as_mut()) else { panic!("the first one is over") };
        let mut third = std::pin::pin!(operations.begin("complete", call(1)));
        assert!(poll(third.as_mut()).is_pending(), "the second one is that call now");
        drop(second);
        assert!(poll(third.as_mut()).is_ready());
        assert_eq!(operations.shown(10).0, 0, "all are over");
    }

    #[test]
    fn who_gives_up_waiting_leaves_nothing_behind() {
        let operations = Operations::default();
        let Poll::Ready(first) = poll(std::pin::pin!(operations.begin("append", call(1)))) else {
            panic!("nobody is there");
        };
        {
            let mut again = std::pin::pin!(operations.begin("append", call(1)));
            assert!(poll(again.as_mut()).is_pending());
        }
        assert_eq!(waits(&operations), [("append", None)]);
        drop(first);
        assert!(poll(std::pin::pin!(operations.begin("append", call(1)))).is_ready());
    }

    #[test]
    fn so_many_run_at_a_time() {
        let operations = Operations::default();
        let begun = |_| match poll(std::pin::pin!(operations.begin("addBlock", None))) {
            Poll::Ready(operation) => operation,
            Poll::Pending => panic!("there are turns"),
        };
        let mut all: Vec<_> = (0..MOST).map(begun).collect();
        let mut late = std::pin::pin!(operations.begin("addBlock", None));
        assert!(poll(late.as_mut()).is_pending());
        let own = operations.begin_own("followUp");
        assert_eq!(operations.shown(5).0, MOST + 2);
        assert_eq!(operations.shown(5).1.len(), 5);
        drop(own);
        all.pop();
        assert!(poll(late.as_mut()).is_ready());
    }
}
