//! Whether a disk answers, and whether it still does what replicas need.

use super::health::Checks;
use super::{Volume, layout};
use crate::error::{Context, DataNodeError, Result};
use crate::sys;
use rustix::fs::Advice;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After how long a disk on which nothing gets on counts as one that does not answer.
pub(super) const SILENT: Duration = Duration::from_secs(3);

/// Threads that may work on a disk at the same time: as many as disks do at once, and few of those that a process has (512
/// that may wait, unless the runtime is told otherwise).
const MOST_THREADS: u64 = 64;

/// How long anybody waits to be one of them while none of them gets on, and how often it is looked.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a check writes.
const PROBE: &[u8; 8] = b"cairn ok";

/// Work that is under way in another thread, or about to be, until this is dropped.
pub(crate) struct Waiting(Arc<Volume>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.health.waits.end();
    }
}

impl Volume {
    /// Runs work on the disk that is soon done as a rule, see [`disk_work::quick`].
    pub(crate) fn quick<T>(&self, work: impl FnOnce() -> T) -> T {
        self.health.quick.run(work)
    }

    /// Runs a read that may wait for the disk.
    pub(crate) fn waits<T>(&self, read: impl FnOnce() -> T) -> T {
        self.health.waits.track(read)
    }

    /// Counts work that is to be done in another thread.
    pub(crate) fn waiting(self: &Arc<Self>) -> Waiting {
        self.health.waits.begin();
        Waiting(self.clone())
    }

    /// Whether as many threads are at work on the disk as may be.
    pub(crate) fn is_busy(&self) -> bool {
        self.health.running() >= MOST_THREADS
    }

    /// Waits until another thread may work on the disk: who has asked does so before it waits for anything else. Those of
    /// all volumes are the same, and one that hangs must not take them all. Fails where nothing gets on, so that connections
    /// do not gather here either.
    pub(crate) async fn turn(&self) -> Result<()> {
        if !self.is_busy() {
            return Ok(());
        }
        let (mut ended, mut since) = (self.health.ended(), Instant::now());
        while self.is_busy() {
            self.check_not_failed()?;
            if since.elapsed() > TURN_TIMEOUT {
                // Nothing that is said of a disk's errors: a replica that was asked for may be good.
                return Err(self.wrong("its disk does not get on, and many wait for it".into()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.health.ended();
            if now != ended {
                (ended, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Runs a sync.
    pub(super) fn syncing<T>(&self, sync: impl FnOnce() -> T) -> T {
        self.health.syncs.track(sync)
    }

    /// Whether no sync has ended for long, although some are under way. A disk with much to do may be so, too.
    pub(super) fn syncs_stand_still(&self) -> bool {
        self.health.syncs.stands_still_for() > SILENT
    }

    /// Fails while the disk does not answer.
    pub(super) fn check_not_silent(&self) -> Result<()> {
        self.within(self.health.silent_for(), SILENT)
    }

    /// Fails if nothing has got on on the disk for longer than `most`, although somebody wants something of it, or if a
    /// check has been waiting for it as long.
    pub(crate) fn check_answered_in(&self, most: Duration) -> Result<()> {
        let began = self.health.checks().began;
        let checked_for = began.map_or(Duration::ZERO, |began| began.elapsed());
        let waited = self.health.silent_for().max(self.health.syncs.stands_still_for());
        self.within(waited.max(checked_for), most)
    }

    fn within(&self, waited: Duration, most: Duration) -> Result<()> {
        match waited > most {
            true => Err(std::io::Error::from_raw_os_error(libc::ETIMEDOUT)).at(&self.root),
            false => Ok(()),
        }
    }

    /// Whether it is `period` since the last check ended, and none runs.
    pub(crate) fn is_check_due(&self, period: Duration) -> bool {
        let checks = self.health.checks();
        checks.began.is_none() && checks.last.elapsed() >= period
    }

    /// Whether the volume still takes writes; a full one is not broken. Waits for the disk. At most one check runs
    /// at a time; what comes meanwhile is answered with `Ok`.
    ///
    /// Source: Hadoop 3.5.0 `FsVolumeImpl#check`.
    pub(crate) fn check(&self) -> Result<()> {
        {
            let mut checks = self.health.checks();
            if checks.began.is_some() {
                return Ok(());
            }
            checks.began = Some(Instant::now());
        }
        let checked = match self.probe() {
            Err(DataNodeError::Disk { source, .. })
                if sys::is_full(&source) || sys::is_out_of_descriptors(&source) =>
            {
                Ok(())
            }
            checked => checked,
        };
        *self.health.checks() = Checks { began: None, last: Instant::now() };
        checked
    }

    /// Does all that a replica needs: makes a file, writes, syncs, renames and reads it back from the disk.
    ///
    /// Deviation: Hadoop 3.5.0 `DiskChecker#diskIoCheckWithoutNativeIo` does not rename or read.
    fn probe(&self) -> Result<()> {
        let dir = self.root.join(layout::CURRENT);
        let (probe, renamed) = (dir.join(".probe"), dir.join(".probe.renamed"));
        let written = File::create(&probe).and_then(|mut file| {
            file.write_all(PROBE)?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&probe, &renamed)).at(&probe)?;
        let mut found = [0; PROBE.len()];
        let read = File::open(&renamed).and_then(|file| {
            sys::advise(&file, 0, 0, Advice::DontNeed);
            file.read_exact_at(&mut found, 0)
        });
        read.and_then(|()| fs::remove_file(&renamed)).at(&renamed)?;
        match found == *PROBE {
            true => Ok(()),
            false => Err(self.wrong("what was written reads back otherwise".into())),
        }
    }
}
