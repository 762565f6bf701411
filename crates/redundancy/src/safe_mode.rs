//! Safe mode: after its start the NameNode changes nothing until enough blocks are reported.
//!
//! Three things can hold it: the start (until thresholds are met and an extension has passed), an
//! administrator, and low resources of the NameNode's own disks. Each ends on its own terms. What lacks
//! redundancy may be queued, and so be told, before the start's part is over; it is mended after it.
//!
//! Source: Hadoop 3.5.0 `BlockManagerSafeMode`, `FSNamesystem#getSafeModeTip`.

use crate::clock::{Now, millis};
use crate::config::Config;
use std::time::Duration;

/// What a start is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Startup {
    /// Nothing any more.
    Over,
    /// What DataNodes have told before this NameNode led is taken over. It was enough to lead with, so whoever calls is
    /// served; or not.
    TakingOver { serves: bool },
    /// Blocks or DataNodes.
    Thresholds,
    /// The extension, which began then (monotonic milliseconds).
    Extension { since_ms: u64 },
}

/// Why the cluster is in safe mode, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SafeModeStatus {
    /// It isn't.
    Off,
    /// It has started, and too little is reported yet.
    Starting,
    /// Enough is reported; a little more time for the rest.
    Extension,
    /// An administrator wants it.
    Manual,
    /// The NameNode's disks are nearly full.
    LowResources,
}

/// The safe mode of one cluster.
#[derive(Clone, Debug)]
pub struct SafeMode {
    threshold: f64,
    queue_threshold: f64,
    min_nodes: usize,
    extension: Duration,
    startup: Startup,
    queues: bool,
    manual: bool,
    low_resources: bool,
    block_total: u64,
    block_safe: u64,
    bytes_in_future_blocks: u64,
    bytes_in_future_groups: u64,
    started_ms: u64,
}

impl SafeMode {
    /// Off, as before a start.
    pub(crate) fn new(config: &Config) -> SafeMode {
        SafeMode {
            threshold: config.safe_mode_threshold,
            queue_threshold: config.queue_threshold.unwrap_or(config.safe_mode_threshold),
            min_nodes: config.safe_mode_min_nodes,
            extension: config.safe_mode_extension,
            startup: Startup::Over,
            queues: true,
            manual: false,
            low_resources: false,
            block_total: 0,
            block_safe: 0,
            bytes_in_future_blocks: 0,
            bytes_in_future_groups: 0,
            started_ms: 0,
        }
    }

    /// Begins the safe mode of a start with `block_total` complete blocks and groups in the
    /// namespace. With thresholds that are met already (an empty namespace) it is over at once.
    pub(crate) fn start(&mut self, block_total: u64, now: Now, live_nodes: usize) {
        self.block_total = block_total;
        self.started_ms = now.mono_ms;
        self.startup =
            if self.thresholds_met(live_nodes) { Startup::Over } else { Startup::Thresholds };
        self.queues = false;
    }

    /// Has what lacks redundancy queued from now on, if the start is over or enough blocks are reported for that.
    /// Returns whether it was not before.
    ///
    /// Source: Hadoop 3.5.0 `BlockManagerSafeMode#initializeReplQueuesIfNecessary`.
    pub(crate) fn begin_to_queue(&mut self) -> bool {
        let is_enough =
            !self.is_taking_over() && self.block_safe >= self.part(self.queue_threshold);
        (is_enough || !self.is_starting()) && !std::mem::replace(&mut self.queues, true)
    }

    /// What others were told is taken over from now on, while calls are served or not. Nothing is queued, mended or deleted
    /// before that is at its end.
    pub(crate) fn begin_to_take_over(&mut self, serves: bool, live_nodes: usize) {
        self.startup = Startup::TakingOver { serves: serves && live_nodes >= self.min_nodes };
        self.queues = false;
    }

    /// Whether what others were told is being taken over.
    pub fn is_taking_over(&self) -> bool {
        matches!(self.startup, Startup::TakingOver { .. })
    }

    /// All of it is: if calls were served, and what was found is enough, the start is over. Else more is waited for.
    pub(crate) fn end_taking_over(&mut self, live_nodes: usize) {
        let has_served = self.startup == Startup::TakingOver { serves: true };
        self.startup = Startup::Thresholds;
        if has_served && self.thresholds_met(live_nodes) {
            self.end_startup();
        }
    }

    /// Lets time pass. Returns whether the start's safe mode has ended just now.
    pub(crate) fn tick(&mut self, now: Now, live_nodes: usize) -> bool {
        let met = self.thresholds_met(live_nodes);
        match self.startup {
            Startup::Over | Startup::TakingOver { .. } => return false,
            Startup::Thresholds if !met => {}
            Startup::Thresholds if self.block_total > 0 && !self.extension.is_zero() => {
                self.startup = Startup::Extension { since_ms: now.mono_ms };
            }
            Startup::Thresholds => self.end_startup(),
            Startup::Extension { since_ms } => {
                if met && self.extension_left_ms(since_ms, now) == 0 {
                    self.end_startup();
                }
            }
        }
        self.startup == Startup::Over
    }

    fn end_startup(&mut self) {
        if self.bytes_in_future() == 0 {
            self.startup = Startup::Over;
        }
    }

    fn extension_left_ms(&self, since_ms: u64, now: Now) -> u64 {
        let extension_ms = millis(self.extension);
        since_ms.saturating_add(extension_ms).saturating_sub(now.mono_ms)
    }

    fn thresholds_met(&self, live_nodes: usize) -> bool {
        self.block_safe >= self.block_threshold() && live_nodes >= self.min_nodes
    }

    /// Blocks that must be reported.
    fn block_threshold(&self) -> u64 {
        self.part(self.threshold)
    }

    /// A part of all blocks. Hadoop rounds down.
    fn part(&self, part: f64) -> u64 {
        (self.block_total as f64 * f64::from(part as f32)) as u64
    }

    /// Why it is on, or that it is off.
    pub fn status(&self) -> SafeModeStatus {
        match self.startup {
            _ if self.low_resources => SafeModeStatus::LowResources,
            _ if self.manual => SafeModeStatus::Manual,
            Startup::Over | Startup::TakingOver { serves: true } => SafeModeStatus::Off,
            Startup::Thresholds | Startup::TakingOver { serves: false } => SafeModeStatus::Starting,
            Startup::Extension { .. } => SafeModeStatus::Extension,
        }
    }

    /// Whether changes are refused.
    pub fn is_on(&self) -> bool {
        self.status() != SafeModeStatus::Off
    }

    /// Whether nothing is mended, moved, grouped or deleted: it is on, or what others were told is still taken over.
    pub fn holds_work(&self) -> bool {
        self.is_on() || self.is_taking_over()
    }

    /// Whether the start waits for nothing any more that calls would have to wait for.
    pub fn has_enough(&self) -> bool {
        matches!(self.startup, Startup::Over | Startup::TakingOver { serves: true })
    }

    /// Whether the start's part still holds, so that locations are counted and nothing is mended.
    pub fn is_starting(&self) -> bool {
        self.startup != Startup::Over
    }

    /// Whether what lacks redundancy is queued: always, but for the first part of a start.
    pub fn is_queueing(&self) -> bool {
        self.queues
    }

    /// Turns it on for an administrator (`dfsadmin -safemode enter`).
    pub(crate) fn enter(&mut self) {
        self.manual = true;
    }

    /// Turns it on or off for lack of space on the NameNode's disks; whether that is a change.
    pub(crate) fn set_low_resources(&mut self, low: bool) -> bool {
        std::mem::replace(&mut self.low_resources, low) != low
    }

    /// Turns it off for an administrator: `-safemode leave`, or `forceExit` with `force`, which also
    /// gives up replicas with stamps of the future. Returns whether it is off now.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#leaveSafeMode`, `BlockManagerSafeMode#leaveSafeMode`.
    pub(crate) fn leave(&mut self, force: bool) -> bool {
        if force {
            self.bytes_in_future_blocks = 0;
            self.bytes_in_future_groups = 0;
        }
        match &mut self.startup {
            Startup::TakingOver { serves } => *serves = true,
            _ => self.end_startup(),
        }
        if !self.is_starting() || self.is_taking_over() {
            self.manual = false;
            self.low_resources = false;
        }
        !self.is_on()
    }

    /// What an operator and refused clients read. Deviation from Hadoop: none in the facts.
    pub fn tip(&self, now: Now, live_nodes: usize) -> String {
        const LEAVE: &str = "Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off.";
        match self.status() {
            SafeModeStatus::LowResources => {
                return "Resources are low on NN. Please add or free up more resources. NOTE:  If \
                        you turn off safe mode before adding resources, the NN will immediately \
                        return to safe mode. "
                    .to_string();
            }
            SafeModeStatus::Manual => return format!("It was turned on manually. {LEAVE}"),
            _ => {}
        }
        let mut tip = self.block_tip();
        tip.push_str(&self.node_tip(live_nodes));
        tip.push_str(&self.end_tip(now));
        tip
    }

    fn block_tip(&self) -> String {
        let (safe, need) = (self.block_safe, self.block_threshold());
        let (threshold, total) = (self.threshold, self.block_total);
        if safe < need {
            format!(
                "The reported blocks {safe} needs additional {} blocks to reach the threshold \
                 {threshold:.4} of total blocks {total}.\n",
                need - safe
            )
        } else {
            format!(
                "The reported blocks {safe} has reached the threshold {threshold:.4} of total \
                 blocks {total}. "
            )
        }
    }

    fn node_tip(&self, live: usize) -> String {
        let min = self.min_nodes;
        if min == 0 {
            "The minimum number of live datanodes is not required. ".to_string()
        } else if self.block_safe < self.block_threshold() {
            "The number of live datanodes is not calculated since reported blocks hasn't reached \
             the threshold. "
                .to_string()
        } else if live < min {
            format!(
                "The number of live datanodes {live} needs an additional {} live datanodes to \
                 reach the minimum number {min}.\n",
                min - live
            )
        } else {
            format!("The number of live datanodes {live} has reached the minimum number {min}. ")
        }
    }

    fn end_tip(&self, now: Now) -> String {
        const END: &str = "Safe mode will be turned off automatically";
        if self.bytes_in_future() > 0 {
            return format!(
                "Name node detected blocks with generation stamps in future. This means that Name \
                 node metadata is inconsistent: {} byte(s) would be lost on leaving safe mode. \
                 Restart it with the right metadata, or use \"hdfs dfsadmin -safemode forceExit\" \
                 to give these blocks up.",
                self.bytes_in_future()
            );
        }
        match self.startup {
            Startup::Thresholds => format!("{END} once the thresholds have been reached."),
            Startup::Extension { since_ms } => {
                let left = self.extension_left_ms(since_ms, now) / 1000;
                format!("In safe mode extension. {END} in {left} seconds.")
            }
            Startup::TakingOver { .. } => {
                format!("{END} once what DataNodes have told other NameNodes is taken over.")
            }
            Startup::Over => format!("{END} soon."),
        }
    }

    /// Bytes in replicas with stamps that this NameNode has not given out, replicated and striped.
    pub fn bytes_in_future(&self) -> u64 {
        self.bytes_in_future_blocks.saturating_add(self.bytes_in_future_groups)
    }

    /// The two parts of [`SafeMode::bytes_in_future`]: of replicated blocks and of groups.
    pub fn bytes_in_future_parts(&self) -> (u64, u64) {
        (self.bytes_in_future_blocks, self.bytes_in_future_groups)
    }

    pub(crate) fn add_bytes_in_future(&mut self, striped: bool, bytes: u64) {
        let part = if striped {
            &mut self.bytes_in_future_groups
        } else {
            &mut self.bytes_in_future_blocks
        };
        *part = part.saturating_add(bytes);
    }

    /// So many more blocks are waited for, if any are.
    pub(crate) fn add_total(&mut self, blocks: u64) {
        if self.is_starting() {
            self.block_total = self.block_total.saturating_add(blocks);
        }
    }

    /// So many fewer blocks are waited for, if any are.
    pub(crate) fn take_from_total(&mut self, blocks: u64) {
        if self.is_starting() {
            self.block_total = self.block_total.saturating_sub(blocks);
        }
    }

    /// A block has become complete, or is not any more, while others are still taken over: it is found already.
    pub(crate) fn count_served(&mut self, is_complete: bool) {
        if !self.is_taking_over() {
            return;
        }
        let (before, after) = if is_complete { (0, 1) } else { (1, 0) };
        self.block_total = (self.block_total + after).saturating_sub(before);
        self.count_safe(before, after);
    }

    /// Counts blocks that were found, where as many as `before` of some were and `after` are.
    pub(crate) fn count_safe(&mut self, before: u64, after: u64) {
        self.block_safe = (self.block_safe + after).saturating_sub(before);
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.queues = false;
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        assert!(self.queues || self.is_starting(), "nothing is queued after the start");
    }

    /// Complete blocks that the start waits for, and those of them reported so far.
    pub fn block_counts(&self) -> (u64, u64) {
        (self.block_total, self.block_safe)
    }
}

#[cfg(test)]
mod tests;
