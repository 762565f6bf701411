//! The block scanner: reads every finalized replica now and then, and says which are not what they should be.
//!
//! Each volume has a task of its own that walks over its folders at a bounded rate and never looks at two replicas
//! at a time; replicas that somebody has had trouble with come first. `scanner/verify.rs` looks at a replica,
//! `scanner/cursor.rs` remembers how far the walk has come, `scanner/directory.rs` compares folders with what is
//! known. A replica is reported only after a second look, and only while it is still the same finalized one. The
//! CRC of each good replica goes to the NameNode, which compares it with the one first written. Tested in
//! `tests/it/scanner.rs`.
//!
//! Source: Hadoop 3.5.0 `BlockScanner`, `VolumeScanner`, `DirectoryScanner`.

mod cursor;
mod directory;
mod report;
mod verify;

use crate::config::DataNodeConfig;
use crate::dataset::blocking;
use crate::node::Node;
use crate::volume::Volume;
use cairn_stripe::BlockId;
use cursor::Cursor;
use report::LastHour;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use verify::Outcome;

/// A replica that was looked at because it was suspect is not suspect again for this long.
///
/// Source: Hadoop 3.5.0 `VolumeScanner` (`recentSuspectBlocks`).
const SUSPECT_EVERY: Duration = Duration::from_secs(600);
/// Suspects that may wait, and that are remembered.
const MAX_SUSPECTS: usize = 1000;
/// How often to look whether the NameNode has accepted this DataNode.
const WAIT_FOR_NAME_NODE: Duration = Duration::from_millis(100);
/// How often a scanner that is turned off looks whether it still is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The wait after a folder that cannot be read.
const RETRY: Duration = Duration::from_secs(30);

/// How far the scanner of one volume has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeScan {
    /// The volume's folder.
    pub dir: PathBuf,
    /// The volume's storage id.
    pub storage_id: String,
    /// Replicas found good since the start of the DataNode.
    pub blocks_scanned: u64,
    /// Bytes read of replicas since the start.
    pub bytes_scanned: u64,
    /// The same in the last hour.
    pub bytes_in_last_hour: u64,
    /// Replicas reported to be bad since the start.
    pub bad_blocks: u64,
    /// Walks over the whole volume ended since the start.
    pub scans_finished: u64,
    /// Replicas found good in this walk since the start.
    pub blocks_in_this_scan: u64,
    /// When this walk began, in milliseconds since 1970, maybe before a restart.
    pub scan_started_ms: u64,
    /// Whether the walk is at its end, and waits for its period to end.
    pub is_at_end: bool,
    /// The last replica looked at.
    pub last_block: Option<i64>,
    /// Replicas that wait to be looked at because somebody had trouble with them.
    pub suspects: usize,
}

/// The scanners of all volumes.
pub(crate) struct Scanner {
    volumes: Mutex<HashMap<String, Arc<Shared>>>,
    bytes_per_second: AtomicU64,
    period_ms: AtomicU64,
}

/// What a volume's task shares.
#[derive(Default)]
struct Shared {
    scan: Mutex<VolumeScan>,
    suspects: Mutex<Suspects>,
    last_hour: Mutex<LastHour>,
    wake: Notify,
}

impl Shared {
    fn of(volume: &Volume) -> Shared {
        let dir = volume.root().to_path_buf();
        let storage_id = volume.storage_id().to_string();
        let scan = VolumeScan { dir, storage_id, ..VolumeScan::default() };
        Shared { scan: Mutex::new(scan), ..Shared::default() }
    }

    /// How far the volume's scanner has come. No lock is held while another one is taken: whoever scans takes them in
    /// an order of its own.
    fn status(&self) -> VolumeScan {
        let suspects = lock(&self.suspects).waiting.len();
        let bytes_in_last_hour = lock(&self.last_hour).sum(Instant::now());
        let scan = lock(&self.scan).clone();
        VolumeScan { suspects, bytes_in_last_hour, ..scan }
    }
}

#[derive(Default)]
struct Suspects {
    waiting: VecDeque<BlockId>,
    recent: HashMap<BlockId, Instant>,
}

impl Suspects {
    /// Whether the replica is to be looked at, being none of the recent ones.
    fn add(&mut self, id: BlockId, now: Instant) -> bool {
        self.recent.retain(|_, at| now.duration_since(*at) < SUSPECT_EVERY);
        if self.recent.len() >= MAX_SUSPECTS || self.recent.contains_key(&id) {
            return false;
        }
        self.recent.insert(id, now);
        self.waiting.push_back(id);
        true
    }
}

impl Scanner {
    pub(crate) fn new(volumes: &[Arc<Volume>], config: &DataNodeConfig) -> Scanner {
        let shared =
            |volume: &Arc<Volume>| (volume.storage_id().to_string(), Arc::new(Shared::of(volume)));
        Scanner {
            volumes: Mutex::new(volumes.iter().map(shared).collect()),
            bytes_per_second: AtomicU64::new(config.scan_bytes_per_second),
            period_ms: AtomicU64::new(millis(config.scan_period)),
        }
    }

    /// Bytes that are read of each volume in a second, 0 for none.
    pub(crate) fn rate(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Time in which every replica is looked at once.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms.load(Ordering::Relaxed))
    }

    /// Whether replicas are looked at.
    fn is_enabled(&self) -> bool {
        self.rate() > 0 && !self.period().is_zero()
    }

    /// Sets the bytes that are read of each volume in a second; 0 turns the scanners off.
    pub(crate) fn set_rate(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
        self.wake();
    }

    /// Sets the time in which every replica is looked at once; zero turns the scanners off.
    pub(crate) fn set_period(&self, period: Duration) {
        self.period_ms.store(millis(period), Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        lock(&self.volumes).values().for_each(|shared| shared.wake.notify_one());
    }

    fn shared(&self, volume: &Volume) -> Option<Arc<Shared>> {
        lock(&self.volumes).get(volume.storage_id()).cloned()
    }

    /// Knows a volume no more; its task ends as the volume is out of use.
    pub(crate) fn forget(&self, volume: &Volume) {
        if let Some(shared) = lock(&self.volumes).remove(volume.storage_id()) {
            shared.wake.notify_one();
        }
    }

    /// How far each volume's scanner has come.
    pub(crate) fn status(&self) -> Vec<VolumeScan> {
        let volumes: Vec<Arc<Shared>> = lock(&self.volumes).values().cloned().collect();
        let mut all: Vec<VolumeScan> = volumes.iter().map(|shared| shared.status()).collect();
        all.sort_by(|a, b| a.dir.cmp(&b.dir));
        all
    }

    /// Has a replica looked at before its turn.
    fn suspect(&self, id: BlockId, volume: &Volume) {
        let Some(shared) = self.shared(volume) else { return };
        if lock(&shared.suspects).add(id, Instant::now()) {
            shared.wake.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    /// Has a replica of this DataNode looked at soon: somebody had trouble with its bytes. Does nothing if it has
    /// been lately.
    ///
    /// Source: Hadoop 3.5.0 `BlockScanner#markSuspectBlock`.
    pub(crate) fn suspect_block(&self, id: BlockId) {
        if let Some(volume) = self.dataset.volume_of(id) {
            self.scanner.suspect(id, &volume);
        }
    }
}

fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

/// Starts the scanners. Those of blocks wait while they are turned off.
pub(crate) fn start(node: &Arc<Node>) {
    for volume in node.dataset.volumes().iter() {
        if let Some(shared) = node.scanner.shared(volume) {
            scan(node, volume, shared);
        }
    }
    if !node.config.directory_scan_interval.is_zero() {
        node.tasks.spawn(directory::run(node.clone()));
    }
}

/// Completes when the NameNode has accepted this DataNode: before, nobody would hear of what is found.
pub(crate) async fn name_node_known(node: &Node) {
    while node.dataset.pool_id().is_none() || node.registration().is_err() {
        tokio::time::sleep(WAIT_FOR_NAME_NODE).await;
    }
}

/// Starts the scanner of a volume that has come.
pub(crate) fn start_on(node: &Arc<Node>, volume: &Arc<Volume>) {
    let shared = Arc::new(Shared::of(volume));
    lock(&node.scanner.volumes).insert(volume.storage_id().to_string(), shared.clone());
    scan(node, volume, shared);
}

fn scan(node: &Arc<Node>, volume: &Arc<Volume>, shared: Arc<Shared>) {
    let (node, volume) = (node.clone(), volume.clone());
    node.clone().tasks.spawn(async move {
        let mut scanner = VolumeScanner { node, volume, shared, saved: Instant::now() };
        scanner.run().await;
    });
}

struct VolumeScanner {
    node: Arc<Node>,
    volume: Arc<Volume>,
    shared: Arc<Shared>,
    /// When the cursor was last saved.
    saved: Instant,
}

impl VolumeScanner {
    async fn run(&mut self) {
        name_node_known(&self.node).await;
        self.enabled().await;
        let Ok(folder) = self.volume.pool().map(|pool| pool.finalized.clone()) else { return };
        let mut cursor = Cursor::load(folder, now_ms());
        while !self.volume.is_failed() {
            self.enabled().await;
            self.note(&cursor);
            if let Some(id) = self.next_suspect() {
                self.look_at(id).await;
                continue;
            }
            if cursor.is_at_end() {
                self.wait_for_period(&mut cursor).await;
                continue;
            }
            cursor = self.step(cursor).await;
        }
    }

    /// Completes when scanners are turned on.
    async fn enabled(&self) {
        while !self.node.scanner.is_enabled() && !self.volume.is_failed() {
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = self.shared.wake.notified() => {}
            }
        }
    }

    fn note(&self, cursor: &Cursor) {
        let mut scan = lock(&self.shared.scan);
        scan.scan_started_ms = cursor.started_ms();
        scan.is_at_end = cursor.is_at_end();
    }

    fn next_suspect(&self) -> Option<BlockId> {
        lock(&self.shared.suspects).waiting.pop_front()
    }

    /// Goes on to the next replica, and looks at it.
    async fn step(&mut self, mut cursor: Cursor) -> Cursor {
        let mut moved = cursor.clone();
        let walked = blocking(move || moved.next().map(|next| (moved, next))).await;
        let next = match walked {
            Ok((moved, next)) => {
                cursor = moved;
                next
            }
            Err(error) => {
                tracing::warn!(dir = %self.volume.root().display(), %error, "cannot walk over a volume");
                self.node.check_volume(&error);
                tokio::time::sleep(RETRY).await;
                return cursor;
            }
        };
        match next {
            Some(id) if self.is_due(id).await => self.look_at(id).await,
            Some(_) => {}
            None => self.end_walk(),
        }
        if cursor.is_at_end() || self.saved.elapsed() >= self.node.config.scan_cursor_save_interval
        {
            self.saved = Instant::now();
            let saved = cursor.clone();
            if let Err(error) = blocking(move || saved.save(now_ms())).await {
                tracing::warn!(dir = %self.volume.root().display(), %error, "cannot save the scanner's cursor");
            }
        }
        cursor
    }

    fn end_walk(&self) {
        let mut scan = lock(&self.shared.scan);
        scan.scans_finished += 1;
        // The cursor is saved next; who asks meanwhile is told of the end already.
        scan.is_at_end = true;
        tracing::info!(
            dir = %scan.dir.display(),
            good = scan.blocks_in_this_scan,
            bad_since_start = scan.bad_blocks,
            "the block scanner has walked over a volume"
        );
    }

    /// Waits until the next walk is due, or somebody has had trouble with a replica.
    async fn wait_for_period(&self, cursor: &mut Cursor) {
        let period = millis(self.node.scanner.period());
        let left = cursor.started_ms().saturating_add(period).saturating_sub(now_ms());
        if left == 0 {
            cursor.rewind(now_ms());
            lock(&self.shared.scan).blocks_in_this_scan = 0;
            return;
        }
        // Wall clocks jump; so look again now and then.
        let wait = Duration::from_millis(left).min(Duration::from_secs(60));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.shared.wake.notified() => {}
        }
    }

    /// Whether a replica was not read for a whole period, if that matters.
    async fn is_due(&self, id: BlockId) -> bool {
        if !self.node.config.scan_skip_recently_accessed {
            return true;
        }
        let (volume, period) = (self.volume.clone(), self.node.scanner.period());
        let Some(replica) = self.node.dataset.finalized_on(id, &volume) else { return false };
        let is_old = blocking(move || {
            let files = volume.files(id, replica.gs(), replica.place())?;
            let read = std::fs::metadata(&files.data).and_then(|meta| meta.accessed());
            let age = read.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            Ok(age.is_none_or(|age| age >= period))
        });
        is_old.await.unwrap_or(true)
    }

    async fn look_at(&self, id: BlockId) {
        let outcome = verify::look(&self.node, &self.volume, id).await;
        let mut scan = lock(&self.shared.scan);
        scan.last_block = Some(id.0);
        match outcome {
            Outcome::Good(good) => {
                self.node.metrics.verified.add(1);
                scan.blocks_scanned += 1;
                scan.blocks_in_this_scan += 1;
                scan.bytes_scanned += good.len;
                lock(&self.shared.last_hour).add(good.len, Instant::now());
                self.node.reports.scanned(&good);
            }
            Outcome::Bad { block, error } => {
                self.node.metrics.verified_bad.add(1);
                scan.bad_blocks += 1;
                tracing::error!(block = %block.id, dir = %self.volume.root().display(), %error, "a replica is bad");
                self.node.report_own_bad_block(&block, &self.volume);
                self.node.check_volume(&error);
            }
            Outcome::Passed => {}
        }
    }
}

/// Milliseconds since 1970: what the cursor's file has, as no other clock outlives a restart.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_how_far_a_scan_is_holds_nothing_while_it_waits() {
        let shared = Shared::default();
        std::thread::scope(|scope| {
            let scan = lock(&shared.scan);
            let asking = scope.spawn(|| shared.status());
            // Long enough that it waits for the scan's own figures.
            std::thread::sleep(Duration::from_millis(50));
            assert!(shared.last_hour.try_lock().is_ok() && shared.suspects.try_lock().is_ok());
            drop(scan);
            assert_eq!(asking.join().unwrap().suspects, 0);
        });
    }

    #[test]
    fn a_suspect_is_looked_at_once_in_ten_minutes() {
        let (mut suspects, now) = (Suspects::default(), Instant::now());
        assert!(suspects.add(BlockId(1), now));
        assert!(!suspects.add(BlockId(1), now + SUSPECT_EVERY / 2));
        assert!(suspects.add(BlockId(2), now + SUSPECT_EVERY / 2));
        assert!(suspects.add(BlockId(1), now + SUSPECT_EVERY));
        assert_eq!(suspects.waiting, [BlockId(1), BlockId(2), BlockId(1)]);
    }
}
