//! How blocks can be had that are not here, as the NameNode said it lately.

use cairn_process::held::held;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::proto::datanode::LocateUnitsResponseProto;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

/// How long an answer of the NameNode holds: any client can ask for any number.
const FRESH: Duration = Duration::from_secs(3);
/// Answers that are kept.
const MAX_ANSWERS: usize = 1024;
/// Ranges that are decoded at once.
const MAX_DECODES: usize = 16;

/// Blocks that are not here and were asked for.
pub(crate) struct Virtuals {
    answers: Mutex<HashMap<(BlockId, GenerationStamp), Answer>>,
    decodes: Semaphore,
}

struct Answer {
    until: Instant,
    located: Option<Arc<Located>>,
}

/// How a block can be had.
pub(crate) struct Located {
    pub(crate) answer: LocateUnitsResponseProto,
    /// The CRCs of its chunks, once they were decoded and proven.
    pub(crate) sums: OnceCell<Arc<Vec<u8>>>,
}

impl Default for Virtuals {
    fn default() -> Virtuals {
        Virtuals { answers: Mutex::default(), decodes: Semaphore::new(MAX_DECODES) }
    }
}

impl Virtuals {
    /// What was heard lately of a block: how it can be had, or that it cannot.
    pub(crate) fn known(
        &self,
        block: (BlockId, GenerationStamp),
        now: Instant,
    ) -> Option<Option<Arc<Located>>> {
        let answers = self.lock();
        let answer = answers.get(&block).filter(|answer| now < answer.until)?;
        Some(answer.located.clone())
    }

    /// Keeps an answer for a while.
    pub(crate) fn keep(
        &self,
        block: (BlockId, GenerationStamp),
        located: Option<Arc<Located>>,
        now: Instant,
    ) {
        let mut answers = self.lock();
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, answer| now < answer.until);
        }
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(block, Answer { until: now + FRESH, located });
    }

    /// Forgets an answer that has led nowhere.
    pub(crate) fn forget(&self, block: (BlockId, GenerationStamp)) {
        self.lock().remove(&block);
    }

    /// The right to decode; `None` if too many do, so that readers go elsewhere.
    pub(crate) fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.decodes.try_acquire().ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(BlockId, GenerationStamp), Answer>> {
        held(&self.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_for_a_while_and_are_bounded() {
        let (virtuals, now) = (Virtuals::default(), Instant::now());
        let block = |number: usize| (BlockId(number as i64), GenerationStamp(1));
        virtuals.keep(block(0), None, now);
        assert!(matches!(virtuals.known(block(0), now), Some(None)));
        assert!(virtuals.known(block(0), now + FRESH).is_none(), "too old");
        for number in 0..3 * MAX_ANSWERS {
            virtuals.keep(block(number), None, now);
            assert!(virtuals.lock().len() <= MAX_ANSWERS);
        }
    }
}
