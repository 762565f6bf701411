//! Walks over many blocks: what they are at, and how many steps are left until the next tick.

use cairn_stripe::BlockId;

/// Steps from one tick to the next.
pub(crate) const STEPS: usize = 20;

/// The walks that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walks {
    /// Over all blocks of the namespace.
    scan: Walk,
    /// Over the blocks that wait for a storage's first report.
    recheck: Walk,
    /// Over the groups with several units on some node.
    sharing: Walk,
    steps: usize,
}

/// One of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// The last block that it has looked at, if it is under way.
    at: Option<Option<BlockId>>,
    /// Another one is to follow.
    again: bool,
}

impl Walk {
    /// Begins anew, whatever is under way.
    pub(crate) fn restart(&mut self) {
        self.at = Some(None);
    }

    /// Goes over all once more after what may be under way.
    pub(crate) fn repeat(&mut self) {
        self.again = true;
    }

    fn is_under_way(&self) -> bool {
        self.at.is_some() || self.again
    }

    /// After which block the next step begins, if there is one to be done.
    pub(crate) fn next_step(&mut self) -> Option<Option<BlockId>> {
        if self.at.is_none() && std::mem::take(&mut self.again) {
            self.at = Some(None);
        }
        self.at
    }

    /// The last block that a step has looked at; none if there were no more.
    pub(crate) fn went_to(&mut self, last: Option<BlockId>) {
        self.at = last.map(Some);
    }
}

impl Walks {
    /// Over all blocks of the namespace.
    pub(crate) fn scan(&mut self) -> &mut Walk {
        &mut self.scan
    }

    /// Over the blocks that wait for a storage's first report.
    pub(crate) fn recheck(&mut self) -> &mut Walk {
        &mut self.recheck
    }

    /// Over the groups with several units on some node.
    pub(crate) fn sharing(&mut self) -> &mut Walk {
        &mut self.sharing
    }

    /// Lets them go on, as far as is meant for the time until the next tick.
    pub(crate) fn grant(&mut self) {
        self.steps = STEPS;
    }

    /// Takes one of the steps that are left. Returns whether there was one.
    pub(crate) fn take_step(&mut self) -> bool {
        let is_left = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        is_left
    }

    /// Whether another step is to follow before the next tick.
    pub(crate) fn go_on(&self) -> bool {
        let all = [&self.scan, &self.recheck, &self.sharing];
        self.steps > 0 && all.into_iter().any(Walk::is_under_way)
    }

    /// Makes what is kept not fit together, to see that this is noticed.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.steps = STEPS + 1;
    }

    /// Panics if what is kept does not fit together.
    pub(crate) fn check_invariants(&self) {
        assert!(self.steps <= STEPS, "{} steps of walks until the next tick", self.steps);
    }
}
