//! What this DataNode says of itself in each acknowledgement, where keys have it say so: whether it is congested, so
//! that Hadoop's client sends less for a while, and whether the NameNode takes it for slow, so that the client goes on
//! without it.
//!
//! Source: Hadoop 3.5.0 `DataNode#getECN`, `#getSLOWByBlockPoolId`.

use crate::config::DataNodeConfig;
use cairn_wire::proto::hdfs::Status;
use cairn_wire::transfer::{AckFlag, Ecn, Slow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// How long what the system said of its load is believed; it takes a new mean every 5 s.
const LOAD_BELIEVED_FOR_MS: u64 = 1000;

/// The state that acknowledgements tell.
#[derive(Debug)]
pub(crate) struct Marks {
    tells_congestion: bool,
    /// Processes for each processor from which on it is congested.
    congestion_ratio: f64,
    tells_slow: bool,
    is_slow: AtomicBool,
    is_congested: AtomicBool,
    /// Milliseconds since `start` until which that is believed.
    believed_until_ms: AtomicU64,
    start: Instant,
    load: fn() -> Option<f64>,
}

/// Processes that ran or would have, on average of the last minute.
fn system_load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

impl Marks {
    pub(crate) fn new(config: &DataNodeConfig) -> Marks {
        Marks {
            tells_congestion: config.tells_congestion,
            congestion_ratio: config.congestion_ratio,
            tells_slow: config.tells_slow,
            is_slow: AtomicBool::new(false),
            is_congested: AtomicBool::new(false),
            believed_until_ms: AtomicU64::new(0),
            start: Instant::now(),
            load: system_load,
        }
    }

    /// This DataNode's part of an acknowledgement.
    pub(crate) fn flag(&self, status: Status) -> AckFlag {
        let ecn = match self.tells_congestion {
            false => Ecn::Disabled,
            true if self.is_congested() => Ecn::Congested,
            true => Ecn::Supported,
        };
        let slow = match self.tells_slow {
            false => Slow::Disabled,
            true if self.is_slow() => Slow::Slow,
            true => Slow::Normal,
        };
        AckFlag::new(status, ecn, slow)
    }

    /// The NameNode has said whether it takes this DataNode for slow.
    pub(crate) fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// What it said last.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    fn is_congested(&self) -> bool {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let until = self.believed_until_ms.load(Ordering::Relaxed);
        if now < until {
            return self.is_congested.load(Ordering::Relaxed);
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let most = processors * self.congestion_ratio;
        let is_congested = (self.load)().is_some_and(|load| load > most);
        self.is_congested.store(is_congested, Ordering::Relaxed);
        self.believed_until_ms.store(now + LOAD_BELIEVED_FOR_MS, Ordering::Relaxed);
        is_congested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(tells_congestion: bool, tells_slow: bool) -> Marks {
        let config = DataNodeConfig { tells_congestion, tells_slow, ..DataNodeConfig::default() };
        Marks::new(&config)
    }

    #[test]
    fn nothing_is_told_unless_keys_say_so() {
        let mut quiet = marks(false, false);
        quiet.load = || Some(1e9);
        quiet.set_slow(true);
        assert_eq!(quiet.flag(Status::Success), AckFlag::from(Status::Success));
        let told = |marks: Marks, is_slow| {
            marks.set_slow(is_slow);
            let flag = marks.flag(Status::ErrorChecksum);
            assert_eq!(flag.status(), Status::ErrorChecksum);
            (flag.ecn(), flag.slow())
        };
        assert_eq!(told(marks(false, true), false), (Ecn::Disabled, Slow::Normal));
        assert_eq!(told(marks(false, true), true), (Ecn::Disabled, Slow::Slow));
        let ecn = |load: fn() -> Option<f64>| {
            let (ecn, slow) = told(Marks { load, ..marks(true, false) }, true);
            assert_eq!(slow, Slow::Disabled);
            ecn
        };
        assert_eq!(ecn(|| None), Ecn::Supported);
        assert_eq!(ecn(|| Some(0.0)), Ecn::Supported);
        assert_eq!(ecn(|| Some(1e9)), Ecn::Congested);
    }

    #[test]
    fn the_load_is_looked_at_now_and_then() {
        let mut marks = Marks { load: || Some(1e9), ..marks(true, false) };
        assert!(marks.is_congested());
        marks.load = || Some(0.0);
        assert!(marks.is_congested(), "that is believed for a second");
        marks.believed_until_ms = AtomicU64::new(0);
        assert!(!marks.is_congested());
    }

    #[test]
    fn the_system_tells_its_load() {
        assert!(system_load().is_some_and(|load| load >= 0.0));
    }
}
