//! What blocks should be, read from the namespace for the cluster state.

use crate::store::{Moment, Snapshot};
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{Block, BlockState as Written, InodeId, block, query, settings};
use cairn_redundancy::{BlockFacts, BlockLookup, BlockState, Layout, StoragePolicy};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};

/// One snapshot of the namespace, as the cluster asks it.
pub struct Lookup<'a> {
    /// The snapshot.
    pub store: &'a dyn StoreRead,
    /// The same, and what was read before it was taken.
    ahead: Option<(&'a Snapshot, &'a Ahead)>,
}

impl<'a> Lookup<'a> {
    /// Asks the snapshot for everything.
    pub fn new(store: &'a dyn StoreRead) -> Lookup<'a> {
        Lookup { store, ahead: None }
    }

    /// Asks it for what is not in `ahead`, or is not known to be as it was then.
    pub(crate) fn with(store: &'a Snapshot, ahead: &'a Ahead) -> Lookup<'a> {
        Lookup { store, ahead: Some((store, ahead)) }
    }

    /// The block as it was read ahead, if that holds.
    fn known(&self, id: BlockId) -> Option<Option<BlockFacts>> {
        let (now, ahead) = self.ahead?;
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

/// Blocks that were looked up before the cluster was locked: a look into the store is most of what a replica in a
/// report costs, and others need not wait for it.
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
        let found = query::get_blocks_by_id(store, ids)?.into_iter();
        let known =
            |info: query::BlockInfo| (facts(&info.block, &info.redundancy), info.block.file);
        Ok(Ahead {
            moment: store.moment(),
            has_snapshots: query::has_snapshots(store)?,
            blocks: ids.iter().copied().zip(found.map(|info| info.map(known))).collect(),
        })
    }
}

/// A block of the namespace in the cluster's terms.
pub fn facts(block: &Block, redundancy: &Redundancy) -> BlockFacts {
    facts_as(block, Layout::from(redundancy))
}

/// As [`facts`], of a block that is kept in that way.
pub fn facts_as(block: &Block, layout: Layout) -> BlockFacts {
    let state = match block.state {
        Written::UnderConstruction => BlockState::UnderConstruction,
        Written::UnderRecovery { .. }
        | Written::UnderTruncation { .. }
        | Written::UnderCopy { .. } => BlockState::UnderRecovery,
        Written::Committed => BlockState::Committed,
        Written::Complete => BlockState::Complete,
    };
    BlockFacts { gs: block.gs, len: block.len, layout, state }
}

// A block that is said to be unknown is deleted by those who hold it: a store that cannot be read
// must end the work in hand, not be answered for.
impl BlockLookup for Lookup<'_> {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        if let Some(known) = self.known(id) {
            return known;
        }
        let info = query::get_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        info.map(|info| facts(&info.block, &info.redundancy))
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let infos = query::blocks_after(self.store, after, limit)
            .unwrap_or_else(|error| panic!("cannot scan the blocks of the store: {error}"));
        infos.iter().map(|info| (info.block.id, facts(&info.block, &info.redundancy))).collect()
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        let policy = query::storage_policy_of_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        let settings = settings::get(self.store)
            .unwrap_or_else(|error| panic!("cannot read the settings in the store: {error}"));
        settings.storage_policy(policy)
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        let info = query::get_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        info.and_then(|info| info.block.unit_crcs.get(unit.as_usize()).copied().flatten())
    }

    fn has_crcs(&self, id: BlockId, facts: &BlockFacts) -> bool {
        let info = query::get_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        let crcs = info.map_or_else(Vec::new, |info| info.block.unit_crcs);
        let is_known = |unit: UnitIndex| crcs.get(unit.as_usize()).copied().flatten().is_some();
        facts.units().into_iter().all(is_known)
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        query::is_future_stamp(self.store, gs)
            .unwrap_or_else(|error| panic!("cannot read the store's last stamp: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use cairn_namespace::Settings;
    use cairn_namespace::store::StoreTxn;
    use cairn_namespace::store::memory::MemoryStore;

    #[test]
    fn where_no_storage_policy_is_set_the_default_one_is_in_force() {
        let mut store = MemoryStore::new();
        let policy = |store: &MemoryStore| Lookup::new(store).storage_policy(BlockId(1));
        assert_eq!(policy(&store), StoragePolicy::HOT);
        let default_storage_policy = StoragePolicy::COLD.id;
        let settings = Settings { default_storage_policy, ..Settings::default() };
        settings::put(&mut store, &settings).unwrap();
        assert_eq!(policy(&store), StoragePolicy::COLD);
    }

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
                state: Written::Complete,
                unit_crcs: Vec::new(),
            };
            move |txn: &mut dyn StoreTxn| block::put(txn, &block).unwrap()
        };
        change(1, &put(1));
        let ahead = Ahead::read(&store.snapshot(), &[BlockId(1), BlockId(2)]).unwrap();
        let is_taken = |id: i64| {
            let now = store.snapshot();
            Lookup::with(&now, &ahead).known(BlockId(id)).is_some()
        };
        assert_eq!([1, 2, 3].map(is_taken), [true, true, false]);
        change(2, &put(2));
        assert_eq!([1, 2].map(is_taken), [true, false]);
        store.write_out().unwrap();
        assert_eq!([1, 2].map(is_taken), [false, false], "changes in the file are not told apart");
    }
}
