//! When entries are applied, made durable, and shown: group commit, without the threads that carry it.
//!
//! Entries go through three stages. They are *applied*, unseen, to what those before them will have been, and grow into
//! an open group. The group is closed and *logged* as soon as the disk is free; meanwhile the next one grows. When it is
//! durable it is *shown*: readers see it and the cluster hears of it in one moment, and then its callers are
//! answered. Groups are logged one after the other, and shown in the same order; one may be shown while the next is
//! logged.
//!
//! Now and then what was shown is set aside for a checkpoint, which is written beside all this. For that moment, and for
//! other work that needs log and store at rest, no group may be open or under way.
//!
//! [`Groups`] says what comes next; whoever carries it does that, tells it what has happened, and asks again.

/// How long groups get, and when there are checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of a group.
    pub entries: usize,
    /// Bytes of a group at which it is closed.
    pub bytes: usize,
    /// Effects of a group at which it is closed: all are told to the cluster while others wait for it.
    pub effects: usize,
    /// Entries that are applied before it is looked whether the disk is free: a group that could be on its way there is
    /// not to wait for all who have asked.
    pub step: usize,
    /// Groups that are durable and not shown, with which no other is closed.
    pub unshown: usize,
    /// Entries after which there is a checkpoint.
    pub checkpoint_entries: u64,
    /// Time after which there is one if there was any entry, in ms.
    pub checkpoint_interval_ms: u64,
    /// Records waiting for a checkpoint at which there is one. If as many again come before it is written, callers wait.
    pub records: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Apply the next entry that waits.
    Apply,
    /// Close the open group and have it logged.
    Seal,
    /// Set aside what was shown, and have it written.
    Checkpoint,
    /// Do work that needs log and store at rest.
    Work,
    /// Hear what has happened, if anything has.
    Listen,
    /// Wait until something happens, or for so many ms.
    Wait {
        /// How long at the most, in ms.
        at_most_ms: Option<u64>,
    },
    /// All that was asked for is done, and nothing comes any more.
    End,
}

/// What waits outside of the groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Entries to apply.
    pub entries: usize,
    /// Work to do at rest.
    pub works: usize,
    /// Changed records that are not in a checkpoint.
    pub records: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Open {
    entries: usize,
    bytes: usize,
    effects: usize,
}

/// What was applied, logged and shown so far.
#[derive(Clone, Debug)]
pub struct Groups {
    limits: Limits,
    open: Open,
    /// Entries that were applied since something was heard.
    taken: usize,
    /// A group is on its way to the disk.
    is_logging: bool,
    /// Groups that are durable and not shown.
    unshown: usize,
    /// A checkpoint is on its way to the disk.
    is_checkpointing: bool,
    is_closing: bool,
    /// The last entry that was applied.
    applied: u64,
    /// The last entry in a checkpoint, or on its way there.
    checkpointed: u64,
    checkpointed_at_ms: u64,
}

impl Groups {
    /// After a start: all entries up to `applied` are shown and in the last checkpoint.
    pub fn new(limits: Limits, applied: u64, now_ms: u64) -> Groups {
        Groups {
            limits,
            open: Open::default(),
            taken: 0,
            is_logging: false,
            unshown: 0,
            is_checkpointing: false,
            is_closing: false,
            applied,
            checkpointed: applied,
            checkpointed_at_ms: now_ms,
        }
    }

    /// What to do now.
    pub fn next(&self, waiting: Waiting, now_ms: u64) -> Step {
        let is_at_rest = self.open.entries == 0 && !self.is_logging && self.unshown == 0;
        if is_at_rest && !self.is_checkpointing && waiting.works > 0 {
            return Step::Work;
        }
        if self.is_closing && is_at_rest && waiting.entries == 0 && !self.is_checkpointing {
            return Step::End;
        }
        if is_at_rest && self.is_due(waiting, now_ms) {
            return Step::Checkpoint;
        }
        let can_apply = waiting.entries > 0 && !self.is_full() && !self.is_held_up(waiting, now_ms);
        if can_apply && self.taken < self.limits.step {
            return Step::Apply;
        }
        if self.open.entries > 0 && !self.is_logging && self.unshown < self.limits.unshown {
            return Step::Seal;
        }
        if can_apply {
            return Step::Listen;
        }
        let is_under_way = self.is_logging || self.unshown > 0 || self.is_checkpointing;
        if self.applied == self.checkpointed || is_under_way {
            return Step::Wait { at_most_ms: None };
        }
        let idle = now_ms.saturating_sub(self.checkpointed_at_ms);
        let left = self.limits.checkpoint_interval_ms.saturating_sub(idle);
        Step::Wait { at_most_ms: Some(left.max(1)) }
    }

    fn is_full(&self) -> bool {
        self.open.entries >= self.limits.entries
            || self.open.bytes >= self.limits.bytes
            || self.open.effects >= self.limits.effects
    }

    /// Whether a checkpoint is to be made now.
    fn is_due(&self, waiting: Waiting, now_ms: u64) -> bool {
        let entries = self.applied - self.checkpointed;
        let since_ms = now_ms.saturating_sub(self.checkpointed_at_ms);
        let is_wanted = entries >= self.limits.checkpoint_entries
            || waiting.records >= self.limits.records
            || entries > 0 && since_ms >= self.limits.checkpoint_interval_ms;
        is_wanted && !self.is_checkpointing
    }

    /// Whether nothing can be applied before a checkpoint has begun, or ended, or work at rest is done.
    pub fn is_held_up(&self, waiting: Waiting, now_ms: u64) -> bool {
        let is_asked = self.is_due(waiting, now_ms) || waiting.works > 0;
        is_asked || self.is_checkpointing && waiting.records >= self.limits.records
    }

    /// The last entry that was applied.
    pub fn last_applied(&self) -> u64 {
        self.applied
    }

    /// The last entry that is in a checkpoint or on its way there.
    pub fn last_checkpointed(&self) -> u64 {
        self.checkpointed
    }

    /// Whether a checkpoint is being written.
    pub fn is_checkpointing(&self) -> bool {
        self.is_checkpointing
    }

    /// Whether no group is open.
    pub fn is_empty(&self) -> bool {
        self.open.entries == 0
    }

    /// An entry was taken into the open group, which has so many bytes now. `sequence` is its number if it changed
    /// anything; one that did not is answered with its group all the same, as what it has seen must be durable first.
    pub fn applied(&mut self, sequence: Option<u64>, group_bytes: usize, effects: usize) {
        self.open.entries += 1;
        self.open.bytes = group_bytes;
        self.open.effects += effects;
        self.taken += 1;
        self.applied = sequence.unwrap_or(self.applied);
    }

    /// Something was heard, or nothing was there to hear.
    pub fn heard(&mut self) {
        self.taken = 0;
    }

    /// The open group is on its way to the disk.
    pub fn sealed(&mut self) {
        self.open = Open::default();
        self.is_logging = true;
    }

    /// The group that was on its way to the disk is durable.
    pub fn durable(&mut self) {
        self.is_logging = false;
        self.unshown += 1;
    }

    /// The oldest of the durable groups was shown.
    pub fn shown(&mut self) {
        self.unshown = self.unshown.saturating_sub(1);
    }

    /// What was shown is set aside, and being written.
    pub fn checkpoint_begun(&mut self, now_ms: u64) {
        self.is_checkpointing = true;
        self.checkpointed = self.applied;
        self.checkpointed_at_ms = now_ms;
    }

    /// It is written.
    pub fn checkpoint_ended(&mut self) {
        self.is_checkpointing = false;
    }

    /// Nothing is asked for any more.
    pub fn close(&mut self) {
        self.is_closing = true;
    }
}

#[cfg(test)]
mod tests;
