//! How fast sources answer: when to ask another one, and whom to ask last.
//!
//! The bound follows the recent answers of all sources, so that it is short in a quick cluster and grows
//! when everything is busy. Hadoop 3.5.0 waits for a fixed time, which is the ceiling here
//! (`dfs.datanode.ec.reconstruction.stripedread.timeout.millis`).

use cairn_process::held::held;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Answers that the bound is derived from.
const RECENT: usize = 64;
/// Fewer say nothing.
const ENOUGH: usize = 8;
/// A wait may be this many times as long as nine of ten recent ones.
const TIMES: u32 = 3;
/// No source is given up earlier: a busy processor alone can take that long.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long a source that overran the bound is asked last.
const AVOIDED: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    recent: VecDeque<Duration>,
    /// Until when a DataNode is asked last.
    slow: HashMap<String, Instant>,
}

/// The pace of all sources of a DataNode's reconstructions.
#[derive(Default)]
pub(crate) struct Paces(Mutex<State>);

impl Paces {
    /// A source took `wait` for a step's bytes.
    pub(crate) fn answered(&self, wait: Duration) {
        let mut state = self.lock();
        if state.recent.len() == RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back(wait);
    }

    /// A DataNode overran the bound, or failed.
    pub(crate) fn overran(&self, uuid: &str, now: Instant) {
        let mut state = self.lock();
        state.slow.retain(|_, until| *until > now);
        state.slow.insert(uuid.to_string(), now + AVOIDED);
    }

    /// Whether a DataNode did so a short while ago.
    pub(crate) fn is_slow(&self, uuid: &str, now: Instant) -> bool {
        self.lock().slow.get(uuid).is_some_and(|until| *until > now)
    }

    /// How long to wait for a source, at most `ceiling`.
    pub(crate) fn bound(&self, ceiling: Duration) -> Duration {
        let mut recent: Vec<Duration> = self.lock().recent.iter().copied().collect();
        if recent.len() < ENOUGH {
            return ceiling;
        }
        recent.sort_unstable();
        (recent[recent.len() * 9 / 10] * TIMES).max(SHORTEST).min(ceiling)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        held(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_follows_recent_answers_below_the_ceiling() {
        let (paces, ceiling) = (Paces::default(), Duration::from_secs(5));
        assert_eq!(paces.bound(ceiling), ceiling, "nothing is known");
        (0..RECENT).for_each(|_| paces.answered(Duration::from_millis(2)));
        assert_eq!(paces.bound(ceiling), SHORTEST);
        // One slow source in ten does not make the others wait for it.
        (0..RECENT / 16).for_each(|_| paces.answered(Duration::from_secs(4)));
        assert_eq!(paces.bound(ceiling), SHORTEST);
        (0..RECENT).for_each(|_| paces.answered(Duration::from_millis(500)));
        assert_eq!(paces.bound(ceiling), Duration::from_millis(1500));
        (0..RECENT).for_each(|_| paces.answered(Duration::from_secs(4)));
        assert_eq!(paces.bound(ceiling), ceiling);
    }

    #[test]
    fn a_source_that_overran_is_avoided_for_a_while() {
        let (paces, now) = (Paces::default(), Instant::now());
        paces.overran("a", now);
        assert!(paces.is_slow("a", now) && !paces.is_slow("b", now));
        assert!(!paces.is_slow("a", now + AVOIDED));
    }
}
