//! How fast DataNodes answer: when to stop waiting for one, and whom not to wait for at all.
//!
//! The bound on a wait follows the recent answers of all DataNodes, so that it is milliseconds in a
//! quick cluster and grows when everything is busy. A DataNode that overran it, and once more when it was
//! asked again, is read around for a while, longer each time; then it is tried again beside the others, at
//! nobody's cost. Once says nothing: on busy machines one answer in a hundred is late, and reading around a
//! DataNode for that makes them busier.
//! Hadoop 3.5.0 hedges replicated reads after a fixed time (`dfs.client.hedged.read.threshold.millis`)
//! and striped ones not at all.

use crate::types::DataNodeAddr;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Answers that the bound is derived from.
const RECENT: usize = 64;

/// Fewer say nothing; after as many more, the bound is derived anew.
const ENOUGH: usize = 8;

/// A wait may be this many times as long as nine of ten recent ones.
const TIMES: u32 = 3;

/// No wait is given up earlier: a busy processor alone can take that long.
const SHORTEST: Duration = Duration::from_millis(4);

/// How long a DataNode is read around after its second overrun in a row; twice as long after each further one.
const AVOID_FIRST: Duration = Duration::from_secs(1);

/// Overruns that count; behind them the time grows no more.
const MOST_STRIKES: u32 = 6;

/// What to expect of a DataNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Expected {
    /// An answer in time.
    Timely,
    /// It overran a bound a while ago: ask it, and others beside it.
    Uncertain,
    /// It overran a bound just now: ask others.
    Slow,
}

struct Overruns {
    /// Overruns by reads that began after the one before was noticed.
    strikes: u32,
    noted: Instant,
    avoid_until: Instant,
}

#[derive(Default)]
struct State {
    /// The last waits, the oldest overwritten first.
    recent: Vec<Duration>,
    next: usize,
    /// From nine of ten of them, if there are enough.
    bound: Option<Duration>,
    overruns: HashMap<String, Overruns>,
}

/// The pace of all DataNodes that a client reads from.
#[derive(Default)]
pub(crate) struct Paces {
    state: Mutex<State>,
}

impl Paces {
    /// An answer came, `wait` after it was asked for.
    pub(crate) fn answered(&self, addr: &DataNodeAddr, wait: Duration, longest: Duration) {
        let mut state = self.lock();
        if !state.overruns.is_empty() && wait <= state.bound.unwrap_or(longest).min(longest) {
            state.overruns.remove(&addr.uuid);
        }
        if state.recent.len() < RECENT {
            state.recent.push(wait);
        } else {
            let next = state.next;
            state.recent[next] = wait;
        }
        state.next = (state.next + 1) % RECENT;
        if state.next.is_multiple_of(ENOUGH) {
            let mut recent = state.recent.clone();
            let place = recent.len() * 9 / 10;
            let (_, of_ten, _) = recent.select_nth_unstable(place);
            state.bound = Some((*of_ten * TIMES).max(SHORTEST));
        }
    }

    /// A DataNode overran the bound, or lost against decoding, with a read that began at `began`.
    pub(crate) fn overran(&self, addr: &DataNodeAddr, began: Instant, now: Instant) {
        let mut state = self.lock();
        let Some(overruns) = state.overruns.get_mut(&addr.uuid) else {
            let first = Overruns { strikes: 0, noted: now, avoid_until: now };
            state.overruns.insert(addr.uuid.clone(), first);
            return;
        };
        if began >= overruns.noted && now >= overruns.avoid_until {
            overruns.avoid_until = now + AVOID_FIRST * (1 << overruns.strikes);
            overruns.strikes = (overruns.strikes + 1).min(MOST_STRIKES);
            overruns.noted = now;
        }
    }

    /// Whether every DataNode is timely.
    pub(crate) fn is_clear(&self) -> bool {
        self.lock().overruns.is_empty()
    }

    /// What to expect of a DataNode.
    pub(crate) fn expect(&self, addr: &DataNodeAddr, now: Instant) -> Expected {
        match self.lock().overruns.get(&addr.uuid) {
            None => Expected::Timely,
            Some(overruns) if now < overruns.avoid_until => Expected::Slow,
            Some(overruns) if overruns.strikes == 0 => Expected::Timely,
            Some(_) => Expected::Uncertain,
        }
    }

    /// How long to wait for an answer before others are asked, at most `longest`.
    pub(crate) fn bound(&self, longest: Duration) -> Duration {
        self.lock().bound.unwrap_or(longest).min(longest)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(500);

    fn node(uuid: &str) -> DataNodeAddr {
        DataNodeAddr {
            ip: "127.0.0.1".to_string(),
            host: "localhost".to_string(),
            uuid: uuid.to_string(),
            xfer_port: 1,
            info_port: 2,
            info_secure_port: 0,
            ipc_port: 3,
        }
    }

    #[test]
    fn the_bound_follows_the_recent_answers() {
        let paces = Paces::default();
        assert_eq!(paces.bound(LONGEST), LONGEST, "nothing is known yet");
        for _ in 0..RECENT {
            paces.answered(&node("a"), Duration::from_millis(5), LONGEST);
        }
        assert_eq!(paces.bound(LONGEST), Duration::from_millis(15));
        for _ in 0..RECENT {
            paces.answered(&node("a"), Duration::from_micros(100), LONGEST);
        }
        assert_eq!(paces.bound(LONGEST), SHORTEST);
        for _ in 0..RECENT {
            paces.answered(&node("a"), Duration::from_secs(1), LONGEST);
        }
        assert_eq!(paces.bound(LONGEST), LONGEST);
    }

    #[test]
    fn one_slow_answer_in_ten_does_not_move_the_bound() {
        let paces = Paces::default();
        for i in 0..RECENT {
            let wait = if i % 11 == 0 { 400 } else { 2 };
            paces.answered(&node("a"), Duration::from_millis(wait), LONGEST);
        }
        assert_eq!(paces.bound(LONGEST), Duration::from_millis(6));
    }

    #[test]
    fn a_slow_node_is_avoided_longer_each_time_until_it_answers_in_time() {
        let paces = Paces::default();
        let mut now = Instant::now();
        let slow = node("slow");
        paces.overran(&slow, now, now);
        assert_eq!(paces.expect(&slow, now), Expected::Timely, "once is no habit");
        paces.overran(&slow, now - Duration::from_millis(1), now);
        assert_eq!(paces.expect(&slow, now), Expected::Timely, "of the same moment");
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            paces.overran(&slow, now, now);
            paces.overran(&slow, now, now);
            let almost = now + Duration::from_secs(seconds) - Duration::from_millis(1);
            assert_eq!(paces.expect(&slow, almost), Expected::Slow, "{seconds}");
            now += Duration::from_secs(seconds);
            assert_eq!(paces.expect(&slow, now), Expected::Uncertain, "{seconds}");
        }
        assert_eq!(paces.expect(&node("other"), now), Expected::Timely);
        paces.answered(&slow, Duration::from_millis(1), LONGEST);
        assert_eq!(paces.expect(&slow, now), Expected::Timely);
    }
}
