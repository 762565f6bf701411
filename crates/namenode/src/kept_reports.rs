//! What DataNodes tell a member of a quorum while another one leads, until its own NameNode takes that over.

use crate::clock::wall_ms;
use crate::config::{NameNodeConfig, parts};
use cairn_process::held::held;
use cairn_redundancy::{Completeness, Config, Heartbeat, Kept, Now, Registration, Standby};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// A DataNode, with what it has said of itself last.
pub(crate) type Heard = (Registration, Option<Heartbeat>);

/// See the module.
pub(crate) struct KeptReports {
    /// None from when it was taken over until the member follows again.
    standby: Mutex<Option<Standby>>,
    config: Config,
    begun: Instant,
    /// Blocks that DataNodes are to have.
    blocks: AtomicU64,
    /// It was enough to lead with when somebody has looked last.
    is_enough: AtomicBool,
}

impl KeptReports {
    /// Of a member that has just started.
    pub fn new(config: &NameNodeConfig) -> KeptReports {
        let config = parts::cluster_config(config);
        KeptReports {
            standby: Mutex::new(Some(Standby::new(&config))),
            begun: Instant::now(),
            blocks: AtomicU64::new(0),
            is_enough: AtomicBool::new(false),
            config,
        }
    }

    fn now(&self) -> Now {
        let mono_ms = self.begun.elapsed().as_millis() as u64;
        Now { mono_ms, elapsed_ms: 0, wall_ms: wall_ms() }
    }

    fn silence_ms(&self) -> u64 {
        self.config.dead_interval().as_millis() as u64
    }

    /// Takes what somebody tells; nothing where the NameNode of this member has, or is about to have, the cluster: it is to
    /// be told that.
    pub fn hear<R>(&self, take: impl FnOnce(&mut Standby, Now) -> R) -> Option<R> {
        held(&self.standby).as_mut().map(|standby| take(standby, self.now()))
    }

    /// Whether the NameNode of this member has it, or is about to.
    pub fn is_taken(&self) -> bool {
        held(&self.standby).is_none()
    }

    /// All of it, of DataNodes that may live, and whether it is enough to lead with; nothing if it was taken. What comes now
    /// is for whoever takes it.
    pub fn take(&self) -> Option<(Kept, bool)> {
        let mut standby = held(&self.standby).take()?;
        let (now, silence_ms) = (self.now(), self.silence_ms());
        let is_enough = self.is_enough(standby.completeness(now, silence_ms));
        Some((standby.hand_over(now, silence_ms), is_enough))
    }

    fn is_enough(&self, known: Completeness) -> bool {
        let blocks = self.blocks.load(Ordering::SeqCst);
        known.is_enough(blocks, self.config.safe_mode_threshold)
    }

    /// The NameNode of this member has ended: what is told from now on is kept, beginning with nothing.
    pub fn begin_anew(&self) {
        held(&self.standby).get_or_insert_with(|| Standby::new(&self.config));
    }

    /// How much is kept; nothing where it was taken over.
    pub fn completeness(&self) -> Option<Completeness> {
        self.hear(|standby, now| standby.completeness(now, self.silence_ms()))
    }

    /// So many blocks are in the namespace.
    pub fn expect(&self, blocks: u64) {
        self.blocks.store(blocks, Ordering::SeqCst);
    }

    /// Whether it is enough to lead with, or this member does.
    pub fn is_ready(&self) -> bool {
        let known = self.completeness();
        let is_enough = known.is_some_and(|known| self.is_enough(known));
        self.is_enough.store(is_enough, Ordering::SeqCst);
        is_enough || known.is_none()
    }

    /// Whether readers can be told here where blocks are: it was enough to lead with a moment ago.
    pub fn tells_places(&self) -> bool {
        self.is_enough.load(Ordering::SeqCst)
    }

    /// DataNodes of which something has come at that time of the clock here or later, and the time now.
    pub fn heard_since(&self, mono_ms: u64) -> Option<(Vec<Heard>, u64)> {
        self.hear(|standby, now| (standby.heard_since(mono_ms), now.mono_ms))
    }
}
