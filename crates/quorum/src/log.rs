//! The log as the library reads it: in memory, from its base on.

use crate::entry::{Base, Entry, Saved};
use crate::member::Member;
use raft::eraftpb::{self, ConfState, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};
use std::collections::VecDeque;

type Result<T> = raft::Result<T>;

/// Entries behind a base.
#[derive(Debug)]
pub(crate) struct Log {
    base: Base,
    entries: VecDeque<eraftpb::Entry>,
    hard: HardState,
}

impl Log {
    /// What a disk has had.
    pub fn new(saved: &Saved) -> Log {
        let Saved { base, entries, ballot } = saved;
        let hard = HardState {
            term: ballot.term.max(base.term),
            vote: ballot.vote.filter(|_| ballot.term >= base.term).map_or(0, |id| id.0),
            commit: ballot.commit.clamp(base.index, base.index + entries.len() as u64),
            ..Default::default()
        };
        let entries = entries.iter().map(Entry::to_raft).collect();
        Log { base: base.clone(), entries, hard }
    }

    /// Where it begins.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The last entry.
    pub fn last(&self) -> u64 {
        self.base.index + self.entries.len() as u64
    }

    /// Adds entries, in the place of all that are at their places or behind them.
    pub fn append(&mut self, entries: &[eraftpb::Entry]) {
        let Some(first) = entries.first() else { return };
        let kept = first.index.saturating_sub(self.base.index + 1) as usize;
        self.entries.truncate(kept);
        self.entries.extend(entries.iter().cloned());
    }

    /// An entry.
    pub fn get(&self, index: u64) -> Option<&eraftpb::Entry> {
        let place = index.checked_sub(self.base.index + 1)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Has the log begin behind another entry, at which there are these members.
    pub fn compact(&mut self, base: Base) {
        let gone = base.index.saturating_sub(self.base.index) as usize;
        self.entries.drain(..gone.min(self.entries.len()));
        self.base = base;
    }
}

impl Storage for Log {
    fn initial_state(&self) -> Result<RaftState> {
        let members = &self.base.members.0;
        let of = |is_voter: bool| {
            let is_it = move |member: &Member| member.is_voter == is_voter && !member.is_out;
            let these = members.iter().filter(move |(_, member)| is_it(member));
            these.map(|(id, _)| id.0).collect::<Vec<u64>>()
        };
        let conf_state = ConfState::from((of(true), of(false)));
        Ok(RaftState { hard_state: self.hard.clone(), conf_state })
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> Result<Vec<eraftpb::Entry>> {
        if low <= self.base.index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        let max_size = max_size.into().unwrap_or(u64::MAX);
        let (mut size, mut found) = (0, Vec::new());
        for index in low..high {
            let entry = self.get(index).ok_or(raft::Error::Store(StorageError::Unavailable))?;
            size += (entry.data.len() + entry.context.len()) as u64;
            if size > max_size && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn term(&self, index: u64) -> Result<u64> {
        if index == self.base.index {
            return Ok(self.base.term);
        }
        if index < self.base.index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        let entry = self.get(index).ok_or(raft::Error::Store(StorageError::Unavailable))?;
        Ok(entry.term)
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last())
    }

    /// Snapshots do not travel by the library's messages: whoever needs one is told so, and fetches it.
    fn snapshot(&self, _request_index: u64, _to: u64) -> Result<Snapshot> {
        Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
