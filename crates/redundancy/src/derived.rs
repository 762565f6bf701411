//! What the cluster knows of blocks because the namespace has told it, compared with what the namespace says.
//!
//! A start tells nothing: the cluster asks the namespace about each block that a DataNode reports. From then on it is told
//! what entries do. So what it knows must always follow from the namespace alone, but for what only DataNodes know.

use crate::block::{BlockFacts, BlockLookup, BlockState};
use crate::cluster::Cluster;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::BTreeSet;

impl Cluster {
    /// Panics if something that an entry has done to a block was not told, or was told in another order. `lookup` is the
    /// state that the cluster was told of last, `since` the last stamp that a block had when this cluster began: of open
    /// blocks with an older one nothing need be known. Looks at everything: for tests.
    pub fn check_derived(&self, lookup: &dyn BlockLookup, since: GenerationStamp) {
        let all = lookup.blocks_after(None, usize::MAX);
        let in_namespace: BTreeSet<BlockId> = all.iter().map(|(id, _)| *id).collect();
        for id in self.known_blocks() {
            let facts = if id.is_parity() { lookup.block(id) } else { None };
            let is_wanted = facts.is_some() || in_namespace.contains(&id);
            assert!(is_wanted, "{id} is known, and no file has it");
            if let Some(facts) = facts {
                self.check_derived_block(id, &facts, since);
            }
        }
        for (id, facts) in &all {
            self.check_derived_block(*id, facts, since);
        }
    }

    fn check_derived_block(&self, id: BlockId, facts: &BlockFacts, since: GenerationStamp) {
        let known = self.blocks.construction(id).map(|construction| construction.gs);
        match (facts.state, known) {
            (BlockState::Complete, None) => {}
            (BlockState::Complete, Some(gs)) => {
                panic!("{id} is complete with {}, and taken for open with {gs}", facts.gs);
            }
            (state, None) => {
                assert!(facts.gs <= since, "{id} is {state:?}, and nothing is known of that");
            }
            // A block that is made as a copy has its stamp before that.
            (BlockState::UnderRecovery, Some(gs)) => {
                assert!(gs >= facts.gs, "{id} has stamp {}, and is known with {gs}", facts.gs);
            }
            (state, Some(gs)) => {
                assert_eq!(
                    gs, facts.gs,
                    "the known and the real stamp of {id}, which is {state:?}"
                );
            }
        }
    }

    /// All blocks and groups of which anything is known beside who waits for them.
    fn known_blocks(&self) -> BTreeSet<BlockId> {
        let mut known: BTreeSet<BlockId> = self.blocks.known().collect();
        known.extend(self.work.under_way().map(|(id, _)| id));
        known.extend(self.low.known());
        known
    }
}
