//! Blocks that no file has any more, and that stay for the others of their contiguous groups.

use crate::dataset::Dataset;
use cairn_process::held::held;
use cairn_stripe::BlockId;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Those of the replicas here of which the NameNode has said so. After a start it says it again.
#[derive(Debug, Default)]
pub(crate) struct Retired(Mutex<BTreeSet<BlockId>>);

impl Retired {
    /// Takes what the NameNode says, and forgets what is not here any more.
    pub(crate) fn add(&self, blocks: impl IntoIterator<Item = BlockId>, dataset: &Dataset) {
        self.keep(blocks, |id| dataset.get(id).is_some());
    }

    fn keep(&self, blocks: impl IntoIterator<Item = BlockId>, is_here: impl Fn(BlockId) -> bool) {
        let mut retired = held(&self.0);
        retired.extend(blocks);
        retired.retain(|id| is_here(*id));
    }

    /// Whether clients are not served a block.
    pub(crate) fn has(&self, id: BlockId) -> bool {
        held(&self.0).contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_forgotten() {
        let retired = Retired::default();
        retired.keep([BlockId(1), BlockId(2)], |_| true);
        assert!(retired.has(BlockId(1)) && retired.has(BlockId(2)) && !retired.has(BlockId(3)));
        retired.keep([BlockId(3)], |id| id != BlockId(2));
        assert!(retired.has(BlockId(1)) && !retired.has(BlockId(2)) && retired.has(BlockId(3)));
    }
}
