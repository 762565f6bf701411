//! Work on disks by the threads that drive a runtime.
//!
//! Most of it is done in microseconds, in page caches and on names, and to hand it to another thread costs more. But a
//! disk may hang, and then a thread that waits for it must not hold up what has nothing to do with that disk:
//! - Of all workers a quarter stays free, however many wait ([`quick`]).
//! - tokio's sockets and timers are watched by one idle worker. If that one comes to wait for a disk, no other idle one
//!   takes its place by itself. So a thread of its own looks who has been at work for long, and gives the runtime
//!   something to do, after which the worker that did it watches them. While somebody waits that long, others hand their
//!   tasks over before they work.
//! - Tasks that wait for their turn on a worker that hangs are taken over by others, but for those that have yielded:
//!   tokio keeps them where nobody finds them. The same thread wakes these ([`step_aside`], [`movable`]).
//!
//! What is left: a task that one which hangs has woken just before may wait with it. Who wakes tasks that others rely on
//! steps aside before it works on a disk.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop::has_budget_remaining;

/// How often it is looked who has been at work since the last time.
const TICK: Duration = Duration::from_millis(200);

/// Runs work on files that is soon done as a rule: in page caches, on names.
pub fn quick<T>(work: impl FnOnce() -> T) -> T {
    let place = PLACE.with(|place| place.get_or_init(Place::of_thread).clone());
    match place {
        // A thread that drives no runtime holds nobody up.
        None => work(),
        // It is part of other such work.
        Some(place) if Place::is_at_work(place.turn.load(Ordering::Relaxed)) => work(),
        Some(place) => match place.begin() {
            Some(_at_work) => work(),
            None => may_wait(work),
        },
    }
}

/// Runs what may wait for a disk, where the runtime has other workers to take over.
pub fn may_wait<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Lets other tasks go first. If the worker comes to wait for a disk with one of those, another takes this one over.
pub async fn step_aside() {
    let _aside = poll_fn(|context| Poll::Ready(Aside::new(context.waker()))).await;
    tokio::task::yield_now().await;
}

/// Does `work` so that another worker may take it over where tokio makes it yield, which it does after much work without a
/// wait.
pub fn movable<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    // Boxed, as an async function would keep it twice, and there are thousands.
    let (mut work, mut aside) = (Box::pin(work), None);
    poll_fn(move |context| {
        drop(aside.take());
        let state = work.as_mut().poll(context);
        if state.is_pending() && !has_budget_remaining() {
            aside = Some(Aside::new(context.waker()));
        }
        state
    })
}

/// A task that has yielded, until this is dropped. tokio keeps it where no other worker finds it, until its own one has
/// nothing else to do.
struct Aside(u64);

static ASIDE: Mutex<BTreeMap<u64, Waker>> = Mutex::new(BTreeMap::new());

impl Aside {
    fn new(task: &Waker) -> Aside {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Aside::all().insert(number, task.clone());
        Aside(number)
    }

    fn all() -> MutexGuard<'static, BTreeMap<u64, Waker>> {
        ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let task = Aside::all().remove(&self.0);
        // A waker may be the last that knows its task, and is dropped without the lock.
        drop(task);
    }
}

thread_local! {
    static PLACE: OnceCell<Option<Arc<Place>>> = const { OnceCell::new() };
}

/// How many threads are at quick work.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// One of them has been for a tick and longer.
static SOMEBODY_WAITS: AtomicBool = AtomicBool::new(false);

/// A thread of a runtime.
struct Place {
    runtime: Handle,
    /// At most so many others may be at work when this one begins.
    others_max: usize,
    /// Odd while the thread is at work; another number each time.
    turn: AtomicU64,
    /// What the watch has last seen of it.
    seen: AtomicU64,
}

impl Place {
    fn of_thread() -> Option<Arc<Place>> {
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let others_max = runtime.metrics().num_workers() * 3 / 4;
        let (turn, seen) = (AtomicU64::new(0), AtomicU64::new(0));
        let place = Arc::new(Place { runtime, others_max, turn, seen });
        Watch::of_process().add(&place);
        Some(place)
    }

    /// Leave to work without handing anything over; `None` where too many are at work, or one of them for long.
    fn begin(self: &Arc<Self>) -> Option<AtWork> {
        if SOMEBODY_WAITS.load(Ordering::Relaxed) {
            return None;
        }
        if BUSY.fetch_add(1, Ordering::Relaxed) >= self.others_max.max(1) {
            BUSY.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.turn.fetch_add(1, Ordering::SeqCst);
        Watch::of_process().wake();
        Some(AtWork(self.clone()))
    }

    fn is_at_work(turn: u64) -> bool {
        turn % 2 == 1
    }
}

struct AtWork(Arc<Place>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.turn.fetch_add(1, Ordering::SeqCst);
        BUSY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The thread that looks who is at work for long. It sleeps while nobody is at work.
struct Watch {
    places: Mutex<Vec<Weak<Place>>>,
    sleeps: AtomicBool,
    /// `None` where no thread could be had: then nobody looks.
    thread: OnceLock<Option<Thread>>,
}

static WATCH: Watch = Watch {
    places: Mutex::new(Vec::new()),
    sleeps: AtomicBool::new(false),
    thread: OnceLock::new(),
};

impl Watch {
    fn of_process() -> &'static Watch {
        WATCH.thread.get_or_init(|| {
            let thread = std::thread::Builder::new().name("disk-watch".to_string());
            let started = thread.spawn(|| WATCH.run());
            match started {
                Ok(started) => Some(started.thread().clone()),
                Err(error) => {
                    tracing::error!(%error, "nobody looks after disks that hang");
                    None
                }
            }
        });
        &WATCH
    }

    fn add(&self, place: &Arc<Place>) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|known| known.strong_count() > 0);
        places.push(Arc::downgrade(place));
    }

    fn wake(&self) {
        if self.sleeps.load(Ordering::SeqCst)
            && self.sleeps.swap(false, Ordering::SeqCst)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self) {
        loop {
            std::thread::sleep(TICK);
            if self.look() {
                continue;
            }
            self.sleeps.store(true, Ordering::SeqCst);
            // Somebody may have begun before that was seen.
            while !self.look() && self.sleeps.load(Ordering::SeqCst) {
                std::thread::park();
            }
            self.sleeps.store(false, Ordering::SeqCst);
        }
    }

    /// Whether anybody is or was at work since the last look.
    fn look(&self) -> bool {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut is_active, mut somebody_waits) = (false, false);
        for place in places.iter().filter_map(Weak::upgrade) {
            let turn = place.turn.load(Ordering::SeqCst);
            let is_new = place.seen.swap(turn, Ordering::Relaxed) != turn;
            is_active |= is_new || Place::is_at_work(turn);
            if Place::is_at_work(turn) && !is_new {
                somebody_waits = true;
                // From here an idle worker is woken for it, and watches sockets and timers afterwards.
                drop(place.runtime.spawn(async {}));
            }
        }
        if somebody_waits {
            let aside: Vec<Waker> = Aside::all().values().cloned().collect();
            aside.iter().for_each(Waker::wake_by_ref);
        }
        SOMEBODY_WAITS.store(somebody_waits, Ordering::Relaxed);
        is_active
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Who is at work is counted for the whole process: one test at a time.
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    /// Something that answers nothing until its other end is dropped.
    fn hung_disk() -> (std::sync::mpsc::Sender<()>, Arc<Mutex<Receiver<()>>>) {
        let (release, hang) = channel();
        (release, Arc::new(Mutex::new(hang)))
    }

    async fn hang(disk: Arc<Mutex<Receiver<()>>>) {
        // The end of the channel is what is waited for.
        let _ = quick(|| disk.lock().unwrap().recv());
    }

    /// Twice as many tasks as there are workers hang; others go on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn work_that_hangs_leaves_workers_to_others() {
        let _alone = ALONE.lock().await;
        let (release, disk) = hung_disk();
        let hung: Vec<_> = (0..8).map(|_| tokio::spawn(hang(disk.clone()))).collect();
        for _ in 0..20 {
            let other = tokio::spawn(async { quick(|| ()) });
            tokio::time::timeout(PATIENCE, other).await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(hung.iter().all(|task| !task.is_finished()));
        drop(release);
        for task in hung {
            task.await.unwrap();
        }
    }

    /// A task begins one that hangs on its worker, then yields: it goes on.
    async fn goes_on_beside_one_that_hangs<F>(yields: fn() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (release, disk) = hung_disk();
        let task = tokio::spawn(async move {
            let hung = tokio::spawn(hang(disk));
            yields().await;
            assert!(!hung.is_finished());
            drop(release);
            hung.await.unwrap();
        });
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_steps_aside_is_not_held_up_by_one_that_hangs() {
        let _alone = ALONE.lock().await;
        for _ in 0..5 {
            goes_on_beside_one_that_hangs(step_aside).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_had_much_to_do_is_not_held_up_by_one_that_hangs() {
        let _alone = ALONE.lock().await;
        for _ in 0..5 {
            goes_on_beside_one_that_hangs(|| {
                movable(async {
                    // More than tokio lets a task do at a time.
                    for _ in 0..300 {
                        tokio::task::consume_budget().await;
                    }
                })
            })
            .await;
        }
    }

    /// The worker that watches the sockets comes to hang while all others sleep: who talks over sockets goes on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sockets_are_watched_while_a_worker_hangs() {
        let _alone = ALONE.lock().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        for _ in 0..20 {
            let (release, disk) = hung_disk();
            let mut poke = std::net::TcpStream::connect(addr).unwrap();
            let (mut poked, _) = listener.accept().await.unwrap();
            // The worker that takes the byte in hangs with it.
            let hung = tokio::spawn(async move {
                poked.read_u8().await.unwrap();
                hang(disk).await;
            });
            let echo = tokio::spawn({
                let mut near = TcpStream::connect(addr).await.unwrap();
                let (mut far, _) = listener.accept().await.unwrap();
                async move {
                    tokio::spawn(async move {
                        let byte = far.read_u8().await.unwrap();
                        far.write_u8(byte).await.unwrap();
                    });
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    near.write_u8(7).await.unwrap();
                    near.read_u8().await.unwrap()
                }
            });
            tokio::time::sleep(Duration::from_millis(10)).await;
            std::io::Write::write_all(&mut poke, &[1]).unwrap();
            // Nothing but the watch may wake the runtime meanwhile.
            let wait = move || {
                let start = std::time::Instant::now();
                while !echo.is_finished() && start.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(5));
                }
                echo.is_finished()
            };
            assert!(std::thread::spawn(wait).join().unwrap());
            drop(release);
            hung.await.unwrap();
        }
    }
}
