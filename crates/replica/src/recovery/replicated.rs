//! What the answers of replicas come to.

use super::{
    Agreement, Aim, Answer, Cut, Cutting, Order, REPLICAS_AT_LEAST, RecoveryError, RecoveryInfo,
};
use crate::state::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// A replica that may take part, with its place.
type Found = (usize, RecoveryInfo);

impl Order {
    /// Decides about a replicated block, which is cut off at `cut_to` for a truncate.
    ///
    /// Acknowledged bytes are in every replica of the pipeline whose node has not been down since: a finalized one
    /// decides, because the writer may have been told that the block is complete; else the shortest that is being
    /// written. A replica whose node has been down may have lost them: the longest of these decides if there is no
    /// other, once all that may have more have answered. So it is with finalized ones that have lost their ends: another
    /// of their stamp has more, or more is known to be acknowledged. What replicas under earlier stamps have is used where it is
    /// longer than what is left by that; a block of which no byte is left anywhere ends with none.
    ///
    /// Source: Hadoop 3.5.0 `BlockRecoveryWorker.RecoveryTaskContiguous`. Deviations: Hadoop deletes the block as soon
    /// as one that can be asked has nothing, whoever else may have it, and whatever was acknowledged; it takes the
    /// shortest of those that may be torn, though others are silent; and it fails for ever if finalized replicas have
    /// several lengths, because attempts before have cut some of them, or because the power failed before they were synced.
    pub(super) fn agree_replicas(
        &self,
        answers: &[Answer],
        cut_to: Option<(BlockId, u64)>,
    ) -> Result<Agreement, RecoveryError> {
        // An attempt before this one may have cut some of them off already.
        let most = cut_to.map_or(u64::MAX, |(_, len)| len);
        let earlier = self.longest_earlier(answers, most);
        let weighed = match self.weigh(answers, most) {
            // Half a copy, beside a replica that the writer has gone on without.
            Err(RecoveryError::Contradiction(_)) if earlier.len > 0 => Weighed::NOTHING,
            weighed => weighed?,
        };
        let Weighed { mut places, mut len, .. } = weighed;
        if weighed.may_have_lost && earlier.len > len {
            (places, len) = (earlier.places, earlier.len);
        }
        let unanswered = self.replicas_unanswered(answers);
        if places.is_empty() {
            if self.acked_len > 0 {
                return Err(RecoveryError::Acknowledged { acked_len: self.acked_len });
            }
            let unanswered = unanswered + self.earlier_unanswered(answers, len);
            return match unanswered > 0 && !weighed.is_known_to_be_empty {
                true => Err(RecoveryError::Unanswered { unanswered }),
                false => Ok(Agreement::Drop),
            };
        }
        // Dead ones that a NameNode does not tell of are not waited for beside a replica: there may be none.
        let mut unanswered = match weighed.is_torn && !weighed.is_known_to_be_empty {
            true if len >= self.acked_len => self.unanswered(answers).count(),
            false if len >= self.acked_len => 0,
            _ => unanswered,
        };
        if weighed.may_have_lost {
            unanswered += self.earlier_unanswered(answers, len);
        }
        if len < most && unanswered > 0 {
            return Err(RecoveryError::Unanswered { unanswered });
        }
        let (id, len) = cut_to.unwrap_or((self.block, len));
        let cut = |place: usize| {
            let Answer::Holds(info) = answers[place] else { return None };
            Some(Cut { place, unit: UnitIndex(0), info, id, len })
        };
        let cuts = places.into_iter().filter_map(cut).collect();
        Ok(Agreement::Cut(Cutting { len, cuts, units: None }))
    }

    /// What the places of the last pipeline have.
    fn weigh(&self, answers: &[Answer], most: u64) -> Result<Weighed, RecoveryError> {
        let held = |answer: &Answer| match answer {
            Answer::Holds(info) => Some(RecoveryInfo { len: info.len.min(most), ..*info }),
            _ => None,
        };
        let all = answers.iter().enumerate().take(self.places.len());
        let mut found: Vec<Found> =
            all.filter_map(|(place, answer)| Some((place, held(answer)?))).collect();
        let acked_len = self.acked_len.min(most);
        let has_torn = note_torn(&mut found, acked_len);
        let is_known_to_be_empty = self.is_known_to_be_empty(&found);
        let is_weak =
            |may_be_torn: bool, len: u64| may_be_torn && !is_known_to_be_empty || len < acked_len;
        Ok(match choose(&found, self)? {
            Some(Chosen { places, len, may_be_torn }) => Weighed {
                places,
                len,
                is_torn: may_be_torn || has_torn,
                may_have_lost: is_weak(may_be_torn, len),
                is_known_to_be_empty,
            },
            None => Weighed {
                may_have_lost: is_weak(true, 0),
                is_known_to_be_empty,
                ..Weighed::NOTHING
            },
        })
    }

    /// Whether the places of the last pipeline may have less than was acknowledged.
    pub(super) fn may_have_lost(&self, answers: &[Answer]) -> bool {
        let most = match self.aim {
            Aim::Replicas => u64::MAX,
            Aim::Truncated { len, .. } => len,
            Aim::Units(_) => return false,
        };
        match self.weigh(answers, most) {
            Ok(weighed) => weighed.may_have_lost && weighed.len < most,
            Err(_) => true,
        }
    }

    /// Places that may have a replica and have not told of it.
    fn replicas_unanswered(&self, answers: &[Answer]) -> usize {
        let unknown = match self.away {
            Some(_) => 0,
            None => REPLICAS_AT_LEAST.saturating_sub(self.places.len()),
        };
        self.unanswered(answers).count() + unknown
    }

    /// Whether a replica shows that no byte was acknowledged: those that were are in all that belong to the
    /// pipeline, and its node has not been down since it was made.
    fn is_known_to_be_empty(&self, found: &[Found]) -> bool {
        let is_proof =
            |info: &RecoveryInfo| info.is_current(self.gs) && info.len == 0 && !info.may_be_torn();
        found.iter().any(|(_, info)| is_proof(info))
    }
}

/// What the places of the last pipeline have of a block.
struct Weighed {
    /// The places of the replicas that are made use of.
    places: Vec<usize>,
    /// The length that they have in common, or the longest has.
    len: u64,
    /// A node that has one, or had a longer one, was down.
    is_torn: bool,
    /// It may be less than was acknowledged, so that who has more under an earlier stamp is better.
    may_have_lost: bool,
    /// Nothing was acknowledged.
    is_known_to_be_empty: bool,
}

impl Weighed {
    const NOTHING: Weighed = Weighed {
        places: Vec::new(),
        len: 0,
        is_torn: true,
        may_have_lost: true,
        is_known_to_be_empty: false,
    };
}

/// What is made of a block.
struct Chosen {
    /// The places of the replicas that take part.
    places: Vec<usize>,
    /// The length that they get.
    len: u64,
    /// Their nodes have all been down.
    may_be_torn: bool,
}

/// A finalized replica has all that any other of its stamp has, and all that is known to be acknowledged, or has lost its
/// end: then it counts as one whose node has been down. Returns whether there is one.
fn note_torn(found: &mut [Found], acked_len: u64) -> bool {
    let longest_of = |gs: GenerationStamp, found: &[Found]| {
        let of_stamp = found.iter().filter(|(_, info)| info.gs == gs);
        let whole = of_stamp.filter(|(_, info)| info.original <= ReplicaState::Rwr);
        whole.map(|(_, info)| info.len).max()
    };
    let is_torn = |info: &RecoveryInfo, found: &[Found]| {
        let is_short = info.len < acked_len || longest_of(info.gs, found) > Some(info.len);
        info.original == ReplicaState::Finalized && is_short
    };
    let torn: Vec<bool> = found.iter().map(|(_, info)| is_torn(info, found)).collect();
    for ((_, info), _) in found.iter_mut().zip(&torn).filter(|(_, is_torn)| **is_torn) {
        info.original = ReplicaState::Rwr;
    }
    torn.contains(&true)
}

/// Which replicas take part; `None` if nobody has a byte. One that has lost all that was acknowledged takes part where it is
/// known who may have it under an earlier stamp.
fn choose(found: &[Found], order: &Order) -> Result<Option<Chosen>, RecoveryError> {
    let knows_all = order.acked_len > 0 && order.earlier.is_some();
    let has_lost_all = |info: &RecoveryInfo| knows_all && info.len == 0 && info.may_be_torn();
    let usable = |(_, info): &&Found| info.gs >= order.gs && (info.len > 0 || has_lost_all(info));
    let sync: Vec<&Found> =
        found.iter().filter(usable).filter(|(_, info)| info.is_current(order.gs)).collect();
    let Some(best) = sync.iter().map(|(_, info)| info.original).min() else {
        return match found.iter().any(|found| usable(&found)) {
            true => Err(RecoveryError::Contradiction("no replica is in RWR or better state")),
            false => Ok(None),
        };
    };
    let of_best: Vec<&RecoveryInfo> =
        sync.iter().map(|(_, info)| info).filter(|info| info.original == best).collect();
    let len = match best {
        ReplicaState::Finalized => finalized_len(&of_best, order.acked_len),
        ReplicaState::Rbw => of_best.iter().map(|info| info.len).min().unwrap_or(0),
        _ => of_best.iter().map(|info| info.len).max().unwrap_or(0),
    };
    let takes_part = |info: &RecoveryInfo| match info.original {
        state if state == best => info.len >= len,
        // What a writer had not ended yet is as good as what it had.
        ReplicaState::Rbw => info.len >= len,
        _ => false,
    };
    let places =
        sync.iter().filter(|(_, info)| takes_part(info)).map(|(place, _)| *place).collect();
    Ok(Some(Chosen { places, len, may_be_torn: best == ReplicaState::Rwr }))
}

/// The length of finalized replicas. Where attempts before this one have cut some of them, what was acknowledged is in
/// each, and the shortest decides that has as much as is known to be.
fn finalized_len(finalized: &[&RecoveryInfo], acked_len: u64) -> u64 {
    let lens = || finalized.iter().map(|info| info.len);
    let shortest = lens().filter(|len| *len >= acked_len).min();
    shortest.or(lens().max()).unwrap_or(0)
}
