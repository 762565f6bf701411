//! Blocks of which recoveries have found nothing here.
//!
//! A recovery that hears that nobody has anything of a block has it dropped. A writer that has the block, but has opened
//! no replica yet, knows nothing of that: what it writes until the drop is in force would be acknowledged and lost. So it
//! opens none any more, where a recovery has been told that there is none. In memory: who comes after a restart of the
//! DataNode is not known.
//!
//! Deviation: Hadoop's DataNodes do not keep this.

use crate::state::ReplicaError;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{HashMap, VecDeque};

/// Blocks that are remembered: far more than come between a question and the end of a recovery.
const MOST: usize = 10_000;

/// Blocks that recoveries have asked for in vain, the latest of them.
#[derive(Clone, Debug, Default)]
pub struct Absent {
    asked: HashMap<BlockId, GenerationStamp>,
    /// The same, oldest first.
    order: VecDeque<BlockId>,
}

impl Absent {
    /// A recovery was told that there is no replica of the block.
    pub fn note(&mut self, id: BlockId, recovery_id: GenerationStamp) {
        match self.asked.get_mut(&id) {
            Some(asked) => *asked = recovery_id.max(*asked),
            None => {
                self.asked.insert(id, recovery_id);
                self.order.push_back(id);
            }
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.asked.remove(&oldest);
        }
    }

    /// Whether a writer may open a replica of that stamp.
    ///
    /// # Errors
    /// A recovery was told that there is none.
    pub fn check_open(&self, id: BlockId, gs: GenerationStamp) -> Result<(), ReplicaError> {
        match self.asked.get(&id) {
            Some(&recovery) if gs < recovery => Err(ReplicaError::Late { block: id, gs, recovery }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GS: fn(u64) -> GenerationStamp = GenerationStamp;

    #[test]
    fn who_is_older_than_a_recovery_that_found_nothing_opens_nothing() {
        let (mut absent, id) = (Absent::default(), BlockId(7));
        assert_eq!(absent.check_open(id, GS(1)), Ok(()));
        absent.note(id, GS(5));
        absent.note(id, GS(4));
        let late = ReplicaError::Late { block: id, gs: GS(4), recovery: GS(5) };
        assert_eq!(absent.check_open(id, GS(4)), Err(late));
        assert_eq!(absent.check_open(id, GS(5)), Ok(()));
        assert_eq!(absent.check_open(BlockId(8), GS(1)), Ok(()));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut absent = Absent::default();
        (0..=MOST as i64).for_each(|id| absent.note(BlockId(id), GS(5)));
        assert_eq!(absent.check_open(BlockId(0), GS(1)), Ok(()));
        assert!(absent.check_open(BlockId(1), GS(1)).is_err());
        assert!(absent.check_open(BlockId(MOST as i64), GS(1)).is_err());
        assert_eq!(absent.asked.len(), MOST);
    }
}
