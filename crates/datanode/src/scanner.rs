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

mod acceptance;
mod cursor;
mod directory;
mod report;
mod verify;

pub(crate) use acceptance::name_node_known;

use crate::dataset::blocking;
use crate::node::Node;
use crate::node::scans::{Shared, lock, millis};
use crate::volume::Volume;
use crate::workers;
use cairn_operate::workers::Worker;
use cairn_stripe::BlockId;
use cursor::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use verify::Outcome;

/// How often a scanner that is turned off looks whether it still is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The wait after a folder that cannot be read.
const RETRY: Duration = Duration::from_secs(30);

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

/// Starts the scanner of a volume that has come.
pub(crate) fn start_on(node: &Arc<Node>, volume: &Arc<Volume>) {
    let shared = node.scanner.add(volume);
    scan(node, volume, shared);
}

fn scan(node: &Arc<Node>, volume: &Arc<Volume>, shared: Arc<Shared>) {
    let (node, volume) = (node.clone(), volume.clone());
    let asked = Arc::downgrade(&node);
    let rate = move || asked.upgrade().map_or(0, |node| node.scanner.rate());
    let dir = volume.root().display().to_string();
    let worker = node.workers.begin_bounded(&workers::BLOCK_SCANNER, dir, rate);
    node.clone().tasks.spawn(async move {
        let mut scanner = VolumeScanner { node, worker, volume, shared, saved: Instant::now() };
        scanner.run().await;
    });
}

struct VolumeScanner {
    node: Arc<Node>,
    worker: Worker,
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
        let loaded = blocking(move || Ok(Cursor::load(folder, now_ms()))).await;
        let Ok(mut cursor) = loaded else { return };
        while !self.volume.is_failed() {
            self.worker.rest(self.enabled()).await;
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
        self.worker.has_done(scan.blocks_in_this_scan, None, "replicas");
        scan.scan_started_ms = cursor.started_ms();
        scan.is_at_end = cursor.is_at_end();
    }

    fn next_suspect(&self) -> Option<BlockId> {
        lock(&self.shared.suspects).next()
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
                self.worker.failed(&error);
                self.worker.rest(tokio::time::sleep(RETRY)).await;
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
        let due = async {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shared.wake.notified() => {}
            }
        };
        self.worker.rest(due).await;
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
