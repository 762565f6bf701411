//! Replicas in memory: how much of it they take, which is saved to a disk next, and which leaves first.
//!
//! Each replica has a ticket from the moment its writer begins until it leaves memory. What is finalized waits to be
//! saved, oldest first; what is saved may leave, the one first that was read longest ago. Knows nothing of files.
//! Invariant: its bytes are the sum of those of the tickets. Tested in `ram_disk/tests.rs`.
//!
//! Source: Hadoop 3.5.0 `RamDiskReplicaLruTracker`.

use cairn_stripe::BlockId;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A replica's place in memory. A block that comes again gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// How far a replica in memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is being written.
    Open,
    /// It waits to be saved, or is being saved.
    Unsaved,
    /// A disk has it as well; `used` says when it was read last, compared with others.
    Saved { used: u64 },
}

#[derive(Debug)]
struct Held {
    id: BlockId,
    /// Memory set aside for it.
    bytes: u64,
    stage: Stage,
    was_read: bool,
}

/// What a replica was when it left memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whether a disk has it.
    pub is_saved: bool,
    /// Whether it was complete.
    pub is_finalized: bool,
    /// Whether anybody has read it in memory.
    pub was_read: bool,
}

/// The replicas that a DataNode has in memory.
#[derive(Debug, Default)]
pub struct RamDisk {
    bytes: u64,
    /// Memory of saved replicas, which can be had.
    evictable: u64,
    held: HashMap<Ticket, Held>,
    /// Tickets to be saved; those that are not in that stage any more are passed over.
    unsaved: VecDeque<Ticket>,
    /// Saved ones by their last use.
    saved: BTreeMap<u64, Ticket>,
    next_ticket: u64,
    uses: u64,
}

impl RamDisk {
    /// Bytes of all replicas.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of those that may leave.
    pub fn evictable(&self) -> u64 {
        self.evictable
    }

    /// Replicas that wait to be saved.
    pub fn unsaved_len(&self) -> usize {
        self.unsaved.len()
    }

    /// A replica that is written, or was left open, in `bytes` bytes of memory.
    pub fn open(&mut self, id: BlockId, bytes: u64) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.bytes += bytes;
        self.held.insert(ticket, Held { id, bytes, stage: Stage::Open, was_read: false });
        ticket
    }

    /// The replica is complete in `bytes` bytes of memory, and waits to be saved.
    pub fn finalized(&mut self, ticket: Ticket, bytes: u64) {
        self.enter(ticket, Stage::Unsaved);
        if let Some(held) = self.held.get_mut(&ticket) {
            self.bytes = self.bytes - held.bytes + bytes;
            held.bytes = bytes;
            self.unsaved.push_back(ticket);
        }
    }

    /// The replica is written again: what was saved of it is void.
    pub fn reopened(&mut self, ticket: Ticket) {
        self.enter(ticket, Stage::Open);
    }

    /// Somebody reads the replica.
    pub fn read(&mut self, ticket: Ticket) {
        let Some(held) = self.held.get_mut(&ticket) else { return };
        held.was_read = true;
        if let Stage::Saved { .. } = held.stage {
            self.enter_saved(ticket);
        }
    }

    /// The replica to save next. Tell what came of it: [`RamDisk::saved`] or [`RamDisk::not_saved`].
    pub fn next_unsaved(&mut self) -> Option<(Ticket, BlockId)> {
        while let Some(ticket) = self.unsaved.pop_front() {
            match self.held.get(&ticket) {
                Some(held) if held.stage == Stage::Unsaved => return Some((ticket, held.id)),
                _ => {}
            }
        }
        None
    }

    /// The replica could not be saved, or its copy is lost: it waits behind all others.
    pub fn not_saved(&mut self, ticket: Ticket) {
        if self.held.get(&ticket).is_some_and(|held| held.stage != Stage::Open) {
            self.enter(ticket, Stage::Unsaved);
            self.unsaved.push_back(ticket);
        }
    }

    /// A disk has the replica.
    pub fn saved(&mut self, ticket: Ticket) {
        if self.held.get(&ticket).is_some_and(|held| held.stage == Stage::Unsaved) {
            self.enter_saved(ticket);
        }
    }

    /// The saved replica that was used longest ago. It is named again only after another use, or
    /// [`RamDisk::not_evicted`].
    pub fn next_victim(&mut self) -> Option<(Ticket, BlockId)> {
        let (_, ticket) = self.saved.pop_first()?;
        self.held.get(&ticket).map(|held| (ticket, held.id))
    }

    /// The replica that was to leave stays.
    pub fn not_evicted(&mut self, ticket: Ticket) {
        if let Some(Stage::Saved { used }) = self.held.get(&ticket).map(|held| held.stage) {
            self.saved.insert(used, ticket);
        }
    }

    /// The replica has left memory.
    pub fn remove(&mut self, ticket: Ticket) -> Option<Left> {
        self.leave_saved(ticket);
        let held = self.held.remove(&ticket)?;
        self.bytes -= held.bytes;
        Some(Left {
            is_saved: matches!(held.stage, Stage::Saved { .. }),
            is_finalized: held.stage != Stage::Open,
            was_read: held.was_read,
        })
    }

    fn enter(&mut self, ticket: Ticket, stage: Stage) {
        self.leave_saved(ticket);
        if let Some(held) = self.held.get_mut(&ticket) {
            held.stage = stage;
        }
    }

    fn enter_saved(&mut self, ticket: Ticket) {
        self.leave_saved(ticket);
        let used = self.uses;
        let Some(held) = self.held.get_mut(&ticket) else { return };
        held.stage = Stage::Saved { used };
        self.uses += 1;
        self.evictable += held.bytes;
        self.saved.insert(used, ticket);
    }

    /// Takes the replica out of those that may leave; it is in no stage that counts until it enters one.
    fn leave_saved(&mut self, ticket: Ticket) {
        let Some(held) = self.held.get(&ticket) else { return };
        if let Stage::Saved { used } = held.stage {
            self.evictable -= held.bytes;
            self.saved.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests;
