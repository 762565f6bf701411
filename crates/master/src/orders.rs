//! What goes with an order to a DataNode and is known to the namespace alone.
//!
//! An error in reading is an error: a recovery without the length to which its block is to be cut would be another
//! order, and a reconstruction without CRCs one whose result nobody can check.

use cairn_namespace::store::StoreRead;
use cairn_namespace::{Result, block, query};
use cairn_redundancy::{BlockRecovery, BlockRef, StorageHandle};
use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyId, UnitIndex};

/// To what a recovery cuts its block off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncation {
    /// The block of whose start it becomes a copy, if that is another.
    pub source: Option<BlockRef>,
    /// Bytes that stay; all if it is not to be cut.
    pub len: Option<u64>,
}

/// To what a recovery cuts its block off.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#getBlockRecoveryCommand`.
pub fn truncation(store: &dyn StoreRead, recovery: &BlockRecovery) -> Result<Truncation> {
    let find = |id: BlockId| query::get_block(store, id).map(|info| info.map(|info| info.block));
    let Some(block) = find(recovery.block.id)? else { return Ok(Truncation::default()) };
    let source = match block.copy_source() {
        Some(source) => find(source)?,
        None => None,
    };
    let source = source.map(|b| BlockRef { id: b.id, gs: b.gs, len: b.len });
    let len = match source {
        Some(_) => Some(block.len),
        None => block.truncated_len(),
    };
    Ok(Truncation { source, len })
}

/// What a recovery may take under stamps that its block had before, where the replicas of the present one have lost what was
/// acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// From this stamp on its bytes are those of one writer: no recovery and no truncate came between.
    pub since: GenerationStamp,
    /// The storages that may have such a replica.
    pub places: Vec<StorageHandle>,
    /// How many more may have one and cannot be asked.
    pub away_count: usize,
}

/// What a recovery may take under earlier stamps; nothing for a group or a copy.
///
/// Deviation: Hadoop's recoveries ask for replicas of the present stamp only.
pub fn earlier(store: &dyn StoreRead, recovery: &BlockRecovery) -> Result<Option<Earlier>> {
    let found = block::get(store, recovery.block.id)?;
    let block = found.filter(|block| block.copy_source().is_none());
    let Some(block) = block.filter(|block| !block.id.has_units()) else { return Ok(None) };
    let since = block.reopened_gs.unwrap_or(GenerationStamp(0));
    let fits = |gs: &Option<GenerationStamp>| gs.is_none_or(|gs| gs >= since);
    let places = recovery.earlier.places.iter().filter(|(_, gs)| fits(gs));
    Ok(Some(Earlier {
        since,
        places: places.map(|(storage, _)| *storage).collect(),
        away_count: recovery.earlier.away.iter().filter(|gs| fits(gs)).count(),
    }))
}

/// CRC32C of a group's units as first written, where known; what is rebuilt is compared with them.
pub fn recorded_crcs(store: &dyn StoreRead, group: &BlockRef) -> Result<Vec<(UnitIndex, u32)>> {
    let info = query::get_block(store, group.id)?.filter(|info| info.block.gs == group.gs);
    let crcs = info.map_or_else(Vec::new, |info| info.block.unit_crcs);
    let known = |(unit, crc): (u8, Option<u32>)| Some((UnitIndex(unit), crc?));
    Ok((0u8..).zip(crcs).filter_map(known).collect())
}

/// The policy that a group is kept by, if there is such a one.
pub fn policy(store: &dyn StoreRead, id: PolicyId) -> Result<Option<Policy>> {
    let mut known = query::policies(store)?.into_iter().map(|info| info.policy);
    Ok(known.find(|policy| policy.id == id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::store::memory::MemoryStore;
    use cairn_namespace::store::{StoreTxn, Table};
    use cairn_namespace::{Block, BlockState, InodeId};
    use cairn_redundancy::{EarlierPlaces, Layout};

    #[test]
    fn a_recovery_takes_nothing_from_before_its_block_was_opened_again() {
        let (id, gs) = (BlockId(1 << 30), GenerationStamp(1005));
        let at = |gs: u64| Some(GenerationStamp(gs));
        let place = |storage: u32, gs| (StorageHandle(storage), gs);
        let recovery = BlockRecovery {
            block: BlockRef { id, gs, len: 10 },
            new_gs: GenerationStamp(1006),
            layout: Layout::Replicated { copies: 3 },
            locations: Vec::new(),
            units: Vec::new(),
            away: Vec::new(),
            earlier: EarlierPlaces {
                places: vec![place(1, at(1002)), place(2, at(1003)), place(3, None)],
                away: vec![at(1002), at(1004), None],
            },
        };
        let place = (InodeId(17_000), 0);
        let of = cairn_namespace::BlockRef { id, gs, len: 10 };
        let block = Block::new(of, place, BlockState::UnderConstruction);
        let find = |block: &Block| {
            let mut store = MemoryStore::new();
            block::put(&mut store, block).unwrap();
            earlier(&store, &recovery).unwrap()
        };
        let storages = |numbers: &[u32]| numbers.iter().copied().map(StorageHandle).collect();
        let all =
            Earlier { since: GenerationStamp(0), places: storages(&[1, 2, 3]), away_count: 3 };
        assert_eq!(find(&block), Some(all));
        let reopened = Block { reopened_gs: at(1003), ..block.clone() };
        let since = GenerationStamp(1003);
        let some = Earlier { since, places: storages(&[2, 3]), away_count: 2 };
        assert_eq!(find(&reopened), Some(some));
        let (recovery_gs, started_ms, source) = (GenerationStamp(1006), 0, BlockId(1));
        let state = BlockState::UnderCopy { recovery_gs, started_ms, source };
        assert_eq!(find(&Block { state, ..block }), None, "its bytes are another block's");
    }

    #[test]
    fn what_cannot_be_read_is_no_answer() {
        let id = BlockId(1 << 30);
        let group = BlockRef { id, gs: GenerationStamp(1001), len: 10 };
        let recovery = BlockRecovery {
            block: group,
            new_gs: GenerationStamp(1002),
            layout: Layout::Replicated { copies: 3 },
            locations: Vec::new(),
            units: Vec::new(),
            away: Vec::new(),
            earlier: EarlierPlaces::default(),
        };
        let mut store = MemoryStore::new();
        assert_eq!(truncation(&store, &recovery), Ok(Truncation::default()));
        assert_eq!(earlier(&store, &recovery), Ok(None));
        assert_eq!(recorded_crcs(&store, &group), Ok(Vec::new()));
        assert_eq!(policy(&store, PolicyId(1)), Ok(None));
        store.put(Table::Block, &block::key(id), b"damaged").unwrap();
        store.put(Table::Policy, &[1], b"damaged").unwrap();
        assert!(truncation(&store, &recovery).is_err());
        assert!(earlier(&store, &recovery).is_err());
        assert!(recorded_crcs(&store, &group).is_err());
        assert!(policy(&store, PolicyId(1)).is_err());
    }
}
