//! Rounds of scheduling: when the next one is due, where the last one stopped, and how many blocks it leaves room for.

use crate::clock::Now;
use crate::queue::Priority;
use cairn_stripe::BlockId;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// Where the last round stopped in each queue.
    cursors: [Option<BlockId>; 5],
    last_ms: Option<u64>,
    /// Blocks that may still be scheduled before the next round is due.
    rest: usize,
    /// Something was lost: the rest of the round is not to wait until the next one is due.
    is_hurried: bool,
}

impl Rounds {
    /// The next round waits for its whole time.
    pub(crate) fn begin_anew(&mut self) {
        self.last_ms = None;
        self.rest = 0;
    }

    /// Has the next tick schedule what the present round leaves room for.
    pub(crate) fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// Whether anything was hurried since this was asked last.
    pub(crate) fn take_hurry(&mut self) -> bool {
        std::mem::take(&mut self.is_hurried)
    }

    /// Begins a round of so many blocks if one is due. The first one waits, so that nodes that start together with the
    /// NameNode can report.
    pub(crate) fn begin_if_due(&mut self, interval_ms: u64, size: usize, now: Now) -> bool {
        let last = *self.last_ms.get_or_insert(now.mono_ms);
        let is_due = now.mono_ms.saturating_sub(last) >= interval_ms;
        if is_due {
            self.last_ms = Some(now.mono_ms);
            self.rest = size;
        }
        is_due
    }

    /// There are fewer nodes by now, say.
    pub(crate) fn limit(&mut self, size: usize) {
        self.rest = self.rest.min(size);
    }

    /// Whether as many blocks were scheduled as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.rest == 0
    }

    /// A block was scheduled.
    pub(crate) fn note_scheduled(&mut self) {
        self.rest = self.rest.saturating_sub(1);
    }

    /// The block of a level that was looked at last.
    pub(crate) fn cursor(&self, level: Priority) -> Option<BlockId> {
        self.cursors[level as usize]
    }

    /// A block of a level is looked at.
    pub(crate) fn went_to(&mut self, level: Priority, id: BlockId) {
        self.cursors[level as usize] = Some(id);
    }
}
