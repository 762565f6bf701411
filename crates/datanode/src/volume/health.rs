//! Whether a disk answers, and whether it still does what replicas need.

use super::{Volume, layout, sys};
use crate::error::{Context, DataNodeError, Result};
use cairn_net::disk_work;
use rustix::fs::Advice;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After how long a disk on which nothing gets on counts as one that does not answer.
pub(super) const SILENT: Duration = Duration::from_secs(3);

/// What a check writes.
const PROBE: &[u8; 8] = b"cairn ok";

/// How a disk gets on.
#[derive(Debug)]
pub(super) struct Health {
    /// Work that is soon done as a rule.
    quick: Work,
    /// Questions for its room. Apart from the rest: file systems answer many of them from memory, whatever became of the
    /// disk.
    space: Work,
    /// Syncs, which wait for the disk itself: for long on one with much to do.
    syncs: Work,
    checks: Mutex<Checks>,
}

impl Default for Health {
    fn default() -> Health {
        let checks = Mutex::new(Checks { began: None, last: Instant::now() });
        Health { quick: Work::default(), space: Work::default(), syncs: Work::default(), checks }
    }
}

/// One kind of work.
#[derive(Debug, Default)]
struct Work {
    begun: AtomicU64,
    ended: AtomicU64,
    /// How much had ended when that was last seen to grow, or there was nothing to do.
    seen: Mutex<Option<(u64, Instant)>>,
}

/// Checks, of which at most one runs at a time.
#[derive(Debug)]
struct Checks {
    /// When the one began that runs.
    began: Option<Instant>,
    /// When the last one ended, or the volume was opened.
    last: Instant,
}

impl Work {
    fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.track(|| disk_work::quick(work))
    }

    /// The same for what may take its time.
    fn track<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Ended<'a>(&'a AtomicU64);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Release);
            }
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let _ended = Ended(&self.ended);
        work()
    }

    /// For how long some has been under way without any having ended, as far as that has been looked at.
    fn stands_still_for(&self) -> Duration {
        let ended = self.ended.load(Ordering::Acquire);
        let is_idle = self.begun.load(Ordering::Acquire) == ended;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match *seen {
            Some((then, since)) if then == ended && !is_idle => since.elapsed(),
            _ => {
                *seen = Some((ended, Instant::now()));
                Duration::ZERO
            }
        }
    }
}

impl Health {
    /// Asks for the disk's room.
    pub(super) fn ask<T>(&self, question: impl FnOnce() -> T) -> T {
        self.space.run(question)
    }

    fn silent_for(&self) -> Duration {
        self.quick.stands_still_for().max(self.space.stands_still_for())
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Volume {
    /// Runs work on the disk that is soon done as a rule, see [`disk_work::quick`].
    pub(crate) fn quick<T>(&self, work: impl FnOnce() -> T) -> T {
        self.health.quick.run(work)
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
