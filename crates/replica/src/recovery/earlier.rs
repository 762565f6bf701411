//! What replicas under earlier stamps have of a block whose present ones have lost it.
//!
//! A writer that goes on without a DataNode gets a new stamp for its block. What was acknowledged until then is on that
//! DataNode, too, and may be all that is left when the power takes from the others what they have not synced.
//!
//! Deviation: Hadoop asks for the present stamp only. It closes such a file without the block, and has the replica deleted.

use super::{Answer, Earlier, Order};
use crate::state::{RecoveryInfo, ReplicaState};
use cairn_stripe::GenerationStamp;

/// The longest replicas of earlier stamps.
#[derive(Default)]
pub(super) struct Longest {
    /// Their places.
    pub places: Vec<usize>,
    /// Bytes that they have.
    pub len: u64,
}

impl Order {
    /// The stamp that places are asked by: who has an older one has nothing that a recovery could take.
    pub fn asked_gs(&self) -> GenerationStamp {
        self.earlier.map_or(self.gs, |earlier| earlier.since.min(self.gs))
    }

    /// Whether one more place of [`Earlier`] is to be asked: what the others have may be less than was acknowledged.
    pub(super) fn asks_earlier(&self, answers: &[Answer]) -> bool {
        let count = self.earlier.map_or(0, |earlier| earlier.place_count);
        answers.len() < self.places.len().saturating_add(count) && self.may_have_lost(answers)
    }

    /// The longest replicas that places have of which the writer has gone on without. All that they have is of the stream that
    /// the present ones have as well: each is a part of it from its start on, and may be used whole.
    pub(super) fn longest_earlier(&self, answers: &[Answer], most: u64) -> Longest {
        let Some(Earlier { since, .. }) = self.earlier else { return Longest::default() };
        let is_one = |place: usize, info: &RecoveryInfo| {
            let is_earlier = place >= self.places.len() || info.gs < self.gs;
            is_earlier && info.gs >= since && info.original <= ReplicaState::Rwr
        };
        let of = |(place, answer): (usize, &Answer)| match answer {
            Answer::Holds(info) if is_one(place, info) => Some((place, info.len.min(most))),
            _ => None,
        };
        let found: Vec<(usize, u64)> = answers.iter().enumerate().filter_map(of).collect();
        let len = found.iter().map(|(_, len)| *len).max().unwrap_or(0);
        let longest = found.into_iter().filter(|(_, has)| *has == len);
        Longest { places: longest.map(|(place, _)| place).collect(), len }
    }

    /// How many places may have more under an earlier stamp than the `len` bytes that were found, and have not said. Those that
    /// are not asked have no more than what is known to be acknowledged.
    pub(super) fn earlier_unanswered(&self, answers: &[Answer], len: u64) -> usize {
        let Some(Earlier { place_count, away_count, .. }) = self.earlier else { return 0 };
        let answers = answers.get(self.places.len()..).unwrap_or_default();
        let said = answers.iter().filter(|answer| **answer != Answer::Silent).count();
        let away = if len < self.acked_len { away_count } else { 0 };
        place_count.saturating_sub(said) + away
    }
}

#[cfg(test)]
mod tests;
