//! Blocks that were looked up before the cluster was locked.

use crate::store::{Moment, Snapshot};
use cairn_master::facts::{self, Known};
use cairn_namespace::store::Table;
use cairn_namespace::{InodeId, block, query};
use cairn_redundancy::BlockFacts;
use cairn_stripe::BlockId;

/// A look into the store is most of what a replica in a report costs, and others need not wait for it.
#[derive(Debug)]
pub(crate) struct Ahead {
    moment: Moment,
    /// What a block should be may depend on more than its record and that of its file.
    has_snapshots: bool,
    /// In the order of ids; none where no file has the block.
    blocks: Vec<(BlockId, Option<(BlockFacts, InodeId)>)>,
}

impl Ahead {
    /// Looks up those blocks and groups, which are in the order of their ids.
    pub(crate) fn read(store: &Snapshot, ids: &[BlockId]) -> cairn_namespace::Result<Ahead> {
        // Parities have no record of a block.
        let ids: Vec<BlockId> = ids.iter().copied().filter(|id| !id.is_parity()).collect();
        let found = query::get_blocks_by_id(store, &ids)?.into_iter();
        let known =
            |info: query::BlockInfo| (facts::facts(&info.block, &info.redundancy), info.block.file);
        Ok(Ahead {
            moment: store.moment(),
            has_snapshots: query::has_snapshots(store)?,
            blocks: ids.into_iter().zip(found.map(|info| info.map(known))).collect(),
        })
    }

    /// What of it holds in a later state.
    pub(crate) fn in_state<'a>(&'a self, now: &'a Snapshot) -> KnownAhead<'a> {
        KnownAhead { ahead: self, now }
    }
}

/// What was looked up, as far as it holds in a state.
pub(crate) struct KnownAhead<'a> {
    ahead: &'a Ahead,
    now: &'a Snapshot,
}

impl Known for KnownAhead<'_> {
    fn facts(&self, id: BlockId) -> Option<Option<BlockFacts>> {
        let KnownAhead { ahead, now } = self;
        let at = ahead.blocks.binary_search_by_key(&id, |(known, _)| *known).ok()?;
        let found = ahead.blocks[at].1;
        let is_same = |table: Table, key: &[u8]| now.is_unchanged(ahead.moment, table, key);
        let holds = now.is_of(ahead.moment)
            || !ahead.has_snapshots
                && is_same(Table::Block, &block::key(id))
                && found.is_none_or(|(_, file)| is_same(Table::Inode, &file.key()));
        holds.then(|| found.map(|(facts, _)| facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use cairn_namespace::store::StoreTxn;
    use cairn_namespace::{Block, BlockState};
    use cairn_stripe::GenerationStamp;

    /// That what it takes is right whatever happens is tested with the store.
    #[test]
    fn what_was_read_ahead_is_taken_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db"), 1 << 20).unwrap();
        let change = |group: u64, change: &dyn Fn(&mut dyn StoreTxn)| {
            change(&mut store.begin(group));
            store.commit(group, group);
        };
        let put = |id: i64| {
            let block = Block {
                id: BlockId(id),
                gs: GenerationStamp(1),
                len: 7,
                file: InodeId(20),
                index: 0,
                state: BlockState::Complete,
                unit_crcs: Vec::new(),
                group: None,
                packed: None,
                reopened_gs: None,
            };
            move |txn: &mut dyn StoreTxn| block::put(txn, &block).unwrap()
        };
        change(1, &put(1));
        let ahead = Ahead::read(&store.snapshot(), &[BlockId(1), BlockId(2)]).unwrap();
        let is_taken = |id: i64| ahead.in_state(&store.snapshot()).facts(BlockId(id)).is_some();
        assert_eq!([1, 2, 3].map(is_taken), [true, true, false]);
        change(2, &put(2));
        assert_eq!([1, 2].map(is_taken), [true, false]);
        store.write_out().unwrap();
        assert_eq!([1, 2].map(is_taken), [false, false], "changes in the file are not told apart");
    }
}
