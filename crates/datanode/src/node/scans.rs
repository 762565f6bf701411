//! How far the block scanners have come, at what rate they go, and what they are to look at first.

use crate::config::DataNodeConfig;
use crate::volume::Volume;
use cairn_process::held::held;
use cairn_stripe::BlockId;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A replica that was looked at because it was suspect is not suspect again for this long.
///
/// Source: Hadoop 3.5.0 `VolumeScanner` (`recentSuspectBlocks`).
const SUSPECT_EVERY: Duration = Duration::from_secs(600);
/// Suspects that may wait, and that are remembered.
const MAX_SUSPECTS: usize = 1000;
const MINUTE: Duration = Duration::from_secs(60);
const MINUTES: usize = 60;

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
pub(crate) struct Shared {
    pub(crate) scan: Mutex<VolumeScan>,
    pub(crate) suspects: Mutex<Suspects>,
    pub(crate) last_hour: Mutex<LastHour>,
    pub(crate) wake: Notify,
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

/// Replicas that somebody had trouble with.
#[derive(Default)]
pub(crate) struct Suspects {
    waiting: VecDeque<BlockId>,
    recent: HashMap<BlockId, Instant>,
    /// What the NameNodes were told of. One of them that starts anew has forgotten it.
    bad: BTreeSet<BlockId>,
}

impl Suspects {
    /// The next one to look at.
    pub(crate) fn next(&mut self) -> Option<BlockId> {
        self.waiting.pop_front()
    }

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

    /// Remembers a replica that was found bad. Beyond the limit the scanner's next walk finds it again.
    pub(crate) fn is_bad(&mut self, id: BlockId) {
        if self.bad.len() < MAX_SUSPECTS {
            self.bad.insert(id);
        }
    }

    /// Has all looked at again that were bad: such a replica may have been deleted since, and copied here anew. Whether there
    /// are any.
    fn look_again(&mut self) -> bool {
        let again = std::mem::take(&mut self.bad);
        let waiting = std::mem::take(&mut self.waiting);
        let unasked = again.iter().filter(|id| !waiting.contains(id));
        self.waiting = waiting.iter().chain(unasked).copied().collect();
        !again.is_empty()
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
    pub(crate) fn is_enabled(&self) -> bool {
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

    /// What the task of a volume shares.
    pub(crate) fn shared(&self, volume: &Volume) -> Option<Arc<Shared>> {
        lock(&self.volumes).get(volume.storage_id()).cloned()
    }

    /// Knows a volume that has come.
    pub(crate) fn add(&self, volume: &Volume) -> Arc<Shared> {
        let shared = Arc::new(Shared::of(volume));
        lock(&self.volumes).insert(volume.storage_id().to_string(), shared.clone());
        shared
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
    pub(super) fn suspect(&self, id: BlockId, volume: &Volume) {
        let Some(shared) = self.shared(volume) else { return };
        if lock(&shared.suspects).add(id, Instant::now()) {
            shared.wake.notify_one();
        }
    }

    /// Remembers a replica that the NameNodes are told of as bad.
    pub(super) fn is_bad(&self, id: BlockId, volume: &Volume) {
        if let Some(shared) = self.shared(volume) {
            lock(&shared.suspects).is_bad(id);
        }
    }

    /// A NameNode may know of no bad replica: has all looked at again that were bad, and those told again that are.
    pub(super) fn look_again(&self) {
        for shared in lock(&self.volumes).values() {
            if lock(&shared.suspects).look_again() {
                shared.wake.notify_one();
            }
        }
    }
}

/// Locks, also if somebody who held it has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    held(mutex)
}

/// Bytes of each minute of the last hour.
pub(crate) struct LastHour {
    began: Instant,
    /// The minute of the last addition, counted from `began`.
    now: u64,
    minutes: [u64; MINUTES],
}

impl Default for LastHour {
    fn default() -> LastHour {
        LastHour { began: Instant::now(), now: 0, minutes: [0; MINUTES] }
    }
}

impl LastHour {
    pub(crate) fn add(&mut self, bytes: u64, now: Instant) {
        self.advance(now);
        self.minutes[(self.now % MINUTES as u64) as usize] += bytes;
    }

    pub(crate) fn sum(&mut self, now: Instant) -> u64 {
        self.advance(now);
        self.minutes.iter().sum()
    }

    fn advance(&mut self, now: Instant) {
        let minute = now.saturating_duration_since(self.began).as_secs() / MINUTE.as_secs();
        let passed = minute.saturating_sub(self.now).min(MINUTES as u64);
        for past in 1..=passed {
            self.minutes[((self.now + past) % MINUTES as u64) as usize] = 0;
        }
        self.now = self.now.max(minute);
        if passed == MINUTES as u64 {
            self.minutes = [0; MINUTES];
        }
    }
}

/// A time in milliseconds.
pub(crate) fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
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

    #[test]
    fn what_was_bad_is_looked_at_again_once() {
        let (mut suspects, now) = (Suspects::default(), Instant::now());
        assert!(!suspects.look_again());
        assert!(suspects.add(BlockId(1), now));
        suspects.is_bad(BlockId(1));
        suspects.is_bad(BlockId(2));
        assert!(suspects.look_again());
        assert_eq!(suspects.waiting, [BlockId(1), BlockId(2)]);
        assert!(!suspects.look_again());
    }

    #[test]
    fn bytes_of_more_than_an_hour_ago_do_not_count() {
        let (mut hour, start) = (LastHour::default(), Instant::now());
        hour.add(5, start);
        hour.add(7, start + 30 * MINUTE);
        assert_eq!(hour.sum(start + 59 * MINUTE), 12);
        assert_eq!(hour.sum(start + 61 * MINUTE), 7);
        hour.add(1, start + 61 * MINUTE);
        assert_eq!(hour.sum(start + 92 * MINUTE), 1);
        assert_eq!(hour.sum(start + 1000 * MINUTE), 0);
    }
}
