//! The recovery of a block whose writer is gone, as the DataNode that leads it decides: what an answer tells, how
//! long the block is from now on and who takes part, whether it is dropped, and what the NameNode is told.
//!
//! ```text
//! Order --ask each place--> Answer... --agree()--> Drop
//!                             ^    |          \--> Cutting --cut each--> Cut... --settle()--> targets
//!                             \----/ next_asked(): who the writer went on without, if need be
//! ```
//! Knows neither the DataNodes nor the wire: whoever drives it asks the places one by one and has them cut.
//! Invariants: what was acknowledged is never dropped while anybody may have it, under whichever stamp, and neither silence
//! nor a place that was not asked is taken for an empty answer. Tested in `recovery/tests.rs`.

mod earlier;
mod replicated;
mod striped;

use crate::state::{RecoveryInfo, ReplicaState};
use cairn_stripe::{BlockId, GenerationStamp, Geometry, UnitIndex};
use thiserror::Error;

/// Replicas that a block is taken to have at least, where a NameNode does not tell how many places are away.
///
/// Source: Hadoop 3.5.0 `dfs.replication`.
const REPLICAS_AT_LEAST: usize = 3;

/// What the NameNode orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The block or group; for a copy, the block of which it becomes one.
    pub block: BlockId,
    /// Its stamp so far.
    pub gs: GenerationStamp,
    /// Bytes that the writer was told are safe, as far as the NameNode knows; data bytes of a group.
    pub acked_len: u64,
    /// The stamp that the block gets; it also tells attempts apart.
    pub recovery_id: GenerationStamp,
    /// The units of the places to ask; of a replicated block each is 0.
    pub places: Vec<UnitIndex>,
    /// The units of the places that may have something and are not to be asked, because they are dead or silent, or
    /// because it is not known where they are; `None` where the NameNode does not tell.
    pub away: Option<Vec<UnitIndex>>,
    /// Who may have a replica under a stamp that the block had before; `None` where the NameNode does not tell.
    pub earlier: Option<Earlier>,
    /// How the block is kept, and what becomes of it.
    pub aim: Aim,
}

/// Replicas under stamps that a block had before, on DataNodes that its writer has gone on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// From this stamp on the block's bytes are those of one writer: neither a recovery nor a truncate came between. So what
    /// replicas have is the start of one and the same stream.
    pub since: GenerationStamp,
    /// Places that may have such a replica. They are asked behind [`Order::places`], if [`Order::next_asked`] says so.
    pub place_count: usize,
    /// Places that may have one, too, and are not to be asked.
    pub away_count: usize,
}

/// What a recovery makes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Replicas of one length.
    Replicas,
    /// Replicas of so many bytes, for the file was cut off there.
    Truncated {
        /// The block that has them: this one, or a copy of its start.
        id: BlockId,
        /// Bytes that stay.
        len: u64,
    },
    /// Units of a group.
    Units(Geometry),
}

/// What one place has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has this, frozen from now on.
    Holds(RecoveryInfo),
    /// It has no replica of it.
    Nothing,
    /// It could not be asked, or cannot say.
    Silent,
    /// A newer recovery holds it.
    Superseded,
}

/// Why a recovery ends without an outcome; the NameNode orders it again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// The order contradicts itself.
    #[error("{0}")]
    BadOrder(&'static str),
    /// A newer recovery holds a replica.
    #[error("a newer recovery is in progress")]
    Superseded,
    /// Nobody could be asked.
    #[error("All datanodes failed")]
    NobodyAnswers,
    /// What was found is not all, and others that may have more could not be asked.
    #[error("{unanswered} places that may have more of it have not answered")]
    Unanswered {
        /// How many.
        unanswered: usize,
    },
    /// Nothing was found of what is acknowledged.
    #[error("nobody has any of the {acked_len} bytes that were acknowledged")]
    Acknowledged {
        /// Bytes that the writer was told are safe.
        acked_len: u64,
    },
    /// The answers contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// Too few units have bytes.
    #[error("there are not enough internal blocks")]
    TooFewUnits,
    /// Too few of those that take part could be cut.
    #[error("too few of those that take part could be updated")]
    NotCut,
}

/// What the answers come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Nobody was told that a byte of it is safe, and there is nothing worth keeping.
    Drop,
    /// These are cut to one length.
    Cut(Cutting),
}

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutting {
    /// Bytes of the block from now on; data bytes of a group.
    pub len: u64,
    /// What is to be done, in this order.
    pub cuts: Vec<Cut>,
    units: Option<Geometry>,
}

/// One replica or unit to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its place in [`Order::places`].
    pub place: usize,
    /// Which unit; 0 for a replica.
    pub unit: UnitIndex,
    /// What it holds.
    pub info: RecoveryInfo,
    /// The block that has what stays.
    pub id: BlockId,
    /// Its bytes from now on.
    pub len: u64,
}

/// What became of a [`Cut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutResult {
    /// It is done.
    Done,
    /// The replica is corrupt and was left as it is.
    Corrupt,
    /// It is not known what the place holds now.
    Failed,
}

impl Order {
    /// Fails if the order makes no sense: units of what is no group, or one that no group of its policy has.
    pub fn check(&self) -> Result<(), RecoveryError> {
        let units = match self.aim {
            Aim::Units(geometry) if self.block.is_striped() => geometry.units(),
            Aim::Units(_) => return Err(RecoveryError::BadOrder("the block is no group")),
            Aim::Replicas | Aim::Truncated { .. } => 1,
        };
        let away = self.away.iter().flatten();
        match self.places.iter().chain(away).all(|unit| unit.as_usize() < units) {
            true => Ok(()),
            false => Err(RecoveryError::BadOrder("a unit is not in the group")),
        }
    }

    /// The replica or internal block that the next place is asked for, after those before it have answered; `None` when no
    /// other needs to be asked.
    pub fn next_asked(&self, answers: &[Answer]) -> Option<BlockId> {
        let unit = self.places.get(answers.len());
        match (unit, self.aim) {
            _ if answers.contains(&Answer::Superseded) => None,
            (Some(unit), Aim::Units(_)) => Some(self.block.internal(*unit)),
            (Some(_), _) => Some(self.block),
            (None, _) => self.asks_earlier(answers).then_some(self.block),
        }
    }

    /// Decides by the answers, one for each place and in their order, and then for those of [`Earlier`]; missing ones are
    /// places that were not asked.
    ///
    /// Source: Hadoop 3.5.0 `BlockRecoveryWorker`.
    pub fn agree(&self, answers: &[Answer]) -> Result<Agreement, RecoveryError> {
        self.check()?;
        if answers.contains(&Answer::Superseded) {
            return Err(RecoveryError::Superseded);
        }
        if !answers.iter().any(|answer| matches!(answer, Answer::Holds(_) | Answer::Nothing)) {
            return Err(RecoveryError::NobodyAnswers);
        }
        match self.aim {
            Aim::Units(geometry) => self.agree_units(&geometry, answers),
            Aim::Replicas => self.agree_replicas(answers, None),
            Aim::Truncated { id, len } => self.agree_replicas(answers, Some((id, len))),
        }
    }

    /// The places that were told of and have said nothing, by their units.
    fn unanswered<'a>(&'a self, answers: &'a [Answer]) -> impl Iterator<Item = UnitIndex> + 'a {
        let answers = answers.iter().copied().chain(std::iter::repeat(Answer::Silent));
        let asked = self.places.iter().zip(answers);
        let silent = asked.filter(|(_, answer)| *answer == Answer::Silent).map(|(unit, _)| *unit);
        silent.chain(self.away.iter().flatten().copied())
    }
}

impl RecoveryInfo {
    /// Whether a recovery may build on it: of this stamp, and not half a copy.
    fn is_current(&self, gs: GenerationStamp) -> bool {
        self.gs >= gs && self.original <= ReplicaState::Rwr
    }

    /// Whether its node may have lost the end of it, for it has been down since it was written.
    fn may_be_torn(&self) -> bool {
        self.original == ReplicaState::Rwr
    }
}

impl Cutting {
    /// Whether the cuts after one that ended so are still of use.
    pub fn goes_on_after(&self, result: CutResult) -> bool {
        self.units.is_none() || result != CutResult::Failed
    }

    /// The places that have the block now, by what became of the cuts: of a group one for each unit, with `None` for
    /// those that are not there.
    ///
    /// Of replicas one is enough. All units must succeed, for what a failed one holds is not known; but those that
    /// are found corrupt are done without as long as there are enough others.
    pub fn settle(&self, results: &[CutResult]) -> Result<Vec<Option<usize>>, RecoveryError> {
        let ended = self.cuts.iter().zip(results);
        let done = ended.filter(|(_, result)| **result == CutResult::Done).map(|(cut, _)| cut);
        let Some(geometry) = self.units else {
            let places: Vec<Option<usize>> = done.map(|cut| Some(cut.place)).collect();
            return if places.is_empty() { Err(RecoveryError::NotCut) } else { Ok(places) };
        };
        let is_known = results.len() == self.cuts.len() && !results.contains(&CutResult::Failed);
        let mut places = vec![None; geometry.units()];
        for cut in done {
            places[cut.unit.as_usize()] = Some(cut.place);
        }
        let is_enough = !results.contains(&CutResult::Corrupt)
            || places.iter().flatten().count() >= geometry.data_units_with_bytes(self.len);
        if is_known && is_enough { Ok(places) } else { Err(RecoveryError::NotCut) }
    }
}

#[cfg(test)]
mod tests;
