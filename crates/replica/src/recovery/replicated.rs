//! What the answers of replicas come to.

use super::{
    Agreement, Answer, Cut, Cutting, Order, REPLICAS_AT_LEAST, RecoveryError, RecoveryInfo,
};
use crate::state::ReplicaState;
use cairn_stripe::{BlockId, UnitIndex};

/// A replica that may take part, with its place.
type Found = (usize, RecoveryInfo);

impl Order {
    /// Decides about a replicated block, which is cut off at `cut_to` for a truncate.
    ///
    /// If a finalized replica exists its length wins, because the writer may have been told that the block is
    /// complete; else the shortest replica in the best state decides: acknowledged bytes are in all of them.
    ///
    /// Source: Hadoop 3.5.0 `BlockRecoveryWorker.RecoveryTaskContiguous`. Deviation: Hadoop deletes the block as soon
    /// as one that can be asked has nothing, whoever else may have it, and whatever was acknowledged.
    pub(super) fn agree_replicas(
        &self,
        answers: &[Answer],
        cut_to: Option<(BlockId, u64)>,
    ) -> Result<Agreement, RecoveryError> {
        // An attempt before this one may have cut some of them off already.
        let most = cut_to.map_or(u64::MAX, |(_, len)| len);
        let held = |answer: &Answer| match answer {
            Answer::Holds(info) => Some(RecoveryInfo { len: info.len.min(most), ..*info }),
            _ => None,
        };
        let all = answers.iter().enumerate();
        let found: Vec<Found> =
            all.filter_map(|(place, answer)| Some((place, held(answer)?))).collect();
        let unanswered = self.replicas_unanswered(answers);
        let (chosen, len) = match choose(&found, self)? {
            Some(chosen) => chosen,
            None if self.acked_len > 0 => {
                return Err(RecoveryError::Acknowledged { acked_len: self.acked_len });
            }
            None if unanswered > 0 && !self.is_known_to_be_empty(&found) => {
                return Err(RecoveryError::Unanswered { unanswered });
            }
            None => return Ok(Agreement::Drop),
        };
        if cut_to.is_none() && len < self.acked_len && unanswered > 0 {
            return Err(RecoveryError::Unanswered { unanswered });
        }
        let (id, len) = cut_to.unwrap_or((self.block, len));
        let cut = |place: usize| {
            let Answer::Holds(info) = answers[place] else { return None };
            Some(Cut { place, unit: UnitIndex(0), info, id, len })
        };
        let cuts = chosen.into_iter().filter_map(cut).collect();
        Ok(Agreement::Cut(Cutting { len, cuts, units: None }))
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

/// The places of the replicas that take part, and the length that they agree on; `None` if nobody has a byte.
fn choose(found: &[Found], order: &Order) -> Result<Option<(Vec<usize>, u64)>, RecoveryError> {
    let usable = |(_, info): &&Found| info.gs >= order.gs && info.len > 0;
    let sync: Vec<&Found> =
        found.iter().filter(usable).filter(|(_, info)| info.is_current(order.gs)).collect();
    let Some(best) = sync.iter().map(|(_, info)| info.original).min() else {
        return match found.iter().any(|found| usable(&found)) {
            true => Err(RecoveryError::Contradiction("no replica is in RWR or better state")),
            false => Ok(None),
        };
    };
    let of_best = sync.iter().filter(|(_, info)| info.original == best);
    let mut lens = of_best.clone().map(|(_, info)| info.len);
    if best != ReplicaState::Finalized {
        let len = lens.min().unwrap_or(0);
        return Ok(Some((of_best.map(|(place, _)| *place).collect(), len)));
    }
    let len = lens.next().unwrap_or(0);
    if lens.any(|other| other != len) {
        return Err(RecoveryError::Contradiction("Inconsistent size of finalized replicas"));
    }
    let takes_part = |(_, info): &&&Found| match info.original {
        ReplicaState::Finalized => true,
        ReplicaState::Rbw => info.len == len,
        _ => false,
    };
    Ok(Some((sync.iter().filter(takes_part).map(|(place, _)| *place).collect(), len)))
}
