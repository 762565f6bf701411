//! Who waits until something else is known of a block.
//!
//! A wait is for some blocks, and ends with the first change of what is known of one of them: a replica that is
//! reported or lost, a mark, a place that the writer goes on to, a new stamp, completion, removal. Whoever looks at
//! blocks and registers a wait in the same critical section misses no change, and no change wakes those who wait for
//! other blocks. Nothing is promised the other way round: who is woken looks again, and may have to wait again.
//! Tested in `waits/tests.rs`.

use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// Number of one wait; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// All waits that nobody has ended, and those that have ended and were not told of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    last: u64,
    /// By what each waits for.
    blocks: BTreeMap<Ticket, BTreeSet<BlockId>>,
    /// By who waits for each.
    tickets: BTreeMap<BlockId, BTreeSet<Ticket>>,
    /// Whose time has come, in the order in which it came.
    woken: Vec<Ticket>,
}

impl Waits {
    /// Begins a wait for blocks and groups; internal blocks stand for their group.
    pub(crate) fn add(&mut self, blocks: &[BlockId]) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        let blocks: BTreeSet<BlockId> = blocks.iter().map(|id| id.group()).collect();
        for id in &blocks {
            self.tickets.entry(*id).or_default().insert(ticket);
        }
        self.blocks.insert(ticket, blocks);
        ticket
    }

    /// Ends a wait, woken or not.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        self.take_out(ticket);
        self.woken.retain(|woken| *woken != ticket);
    }

    /// Something else is known of a block or group from now on.
    pub(crate) fn wake(&mut self, id: BlockId) {
        if self.tickets.is_empty() {
            return;
        }
        for ticket in self.tickets.get(&id).cloned().unwrap_or_default() {
            self.take_out(ticket);
            self.woken.push(ticket);
        }
    }

    /// Blocks and groups that somebody waits for.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.tickets.keys().copied()
    }

    /// Those that were woken since this was asked last.
    pub(crate) fn take_woken(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.woken)
    }

    fn take_out(&mut self, ticket: Ticket) {
        for id in self.blocks.remove(&ticket).into_iter().flatten() {
            let Some(tickets) = self.tickets.get_mut(&id) else { continue };
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.tickets.remove(&id);
            }
        }
    }

    /// Panics if the two directions do not say the same, or somebody who was woken still waits.
    pub(crate) fn check_invariants(&self) {
        let forth = self.blocks.iter().flat_map(|(t, ids)| ids.iter().map(move |id| (*id, *t)));
        let back = self.tickets.iter().flat_map(|(id, ts)| ts.iter().map(move |t| (*id, *t)));
        assert_eq!(forth.collect::<BTreeSet<_>>(), back.collect::<BTreeSet<_>>());
        assert!(self.tickets.values().all(|tickets| !tickets.is_empty()));
        assert!(self.woken.iter().all(|ticket| !self.blocks.contains_key(ticket)));
    }
}
