//! Steps of a write that take long: the log tells of each, and they are counted.
//!
//! Source: Hadoop 3.5.0 `BlockReceiver`. Deviation: the sync that completes a block is such a step too, as writers
//! wait for it by default.

use crate::error::Result;
use crate::metrics::Counter;
use crate::tunables::Interval;
use cairn_stripe::BlockId;
use std::time::{Duration, Instant};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes and CRCs of a packet are written.
    Write,
    /// What was written is made durable.
    Sync,
    /// A packet goes to the next DataNode of the pipeline.
    Mirror,
    /// Acknowledgements go to whoever sends the packets.
    Ack,
}

impl Step {
    fn what(self) -> &'static str {
        match self {
            Step::Write => "writing a packet to the disk",
            Step::Sync => "syncing a replica to the disk",
            Step::Mirror => "sending a packet to the mirror",
            Step::Ack => "acknowledging packets",
        }
    }
}

/// What has taken long since the start.
#[derive(Debug)]
pub(crate) struct SlowIo {
    /// What takes longer is slow.
    pub(crate) threshold: Interval,
    slow: [Counter; 4],
}

impl SlowIo {
    pub(crate) fn new(threshold: Duration) -> SlowIo {
        SlowIo { threshold: Interval::new(threshold), slow: Default::default() }
    }

    /// Does a step for a block at a disk.
    pub(crate) fn timed<T>(
        &self,
        step: Step,
        block: BlockId,
        at: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        let done = work()?;
        self.note(step, block, begun.elapsed(), at);
        Ok(done)
    }

    /// A step has ended well; `at` names the disk or the peer.
    pub(crate) fn note(
        &self,
        step: Step,
        block: BlockId,
        took: Duration,
        at: impl FnOnce() -> String,
    ) {
        let threshold = self.threshold.get();
        if took <= threshold {
            return;
        }
        self.slow[step as usize].add(1);
        let (took_ms, threshold_ms) = (took.as_millis(), threshold.as_millis());
        tracing::warn!(%block, at = at(), took_ms, threshold_ms, "{} took long", step.what());
    }

    /// How many steps of a kind were slow.
    pub(crate) fn count(&self, step: Step) -> u64 {
        self.slow[step as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DataNodeError;

    #[test]
    fn what_takes_longer_than_the_threshold_counts() {
        let slow = SlowIo::new(Duration::from_millis(300));
        let note = |step, ms| slow.note(step, BlockId(1), Duration::from_millis(ms), String::new);
        let counts = || [Step::Write, Step::Sync, Step::Mirror, Step::Ack].map(|s| slow.count(s));
        for step in [Step::Write, Step::Sync, Step::Mirror, Step::Ack] {
            note(step, 300);
        }
        assert_eq!(counts(), [0; 4]);
        note(Step::Mirror, 301);
        note(Step::Ack, 400);
        note(Step::Ack, 500);
        assert_eq!(counts(), [0, 0, 1, 2]);
        slow.threshold.set(Duration::from_secs(1));
        note(Step::Write, 400);
        assert_eq!(counts(), [0, 0, 1, 2]);
    }

    #[test]
    fn what_fails_does_not_count() {
        let slow = SlowIo::new(Duration::ZERO);
        let nap = || std::thread::sleep(Duration::from_millis(1));
        let timed = |work: fn() -> Result<()>| {
            slow.timed(Step::Sync, BlockId(1), String::new, || {
                nap();
                work()
            })
        };
        assert!(timed(|| Err(DataNodeError::Stopped)).is_err());
        assert_eq!(slow.count(Step::Sync), 0);
        timed(|| Ok(())).unwrap();
        assert_eq!(slow.count(Step::Sync), 1);
    }
}
