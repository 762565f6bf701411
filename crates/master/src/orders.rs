//! What goes with an order to a DataNode and is known to the namespace alone.
//!
//! An error in reading is an error: a recovery without the length to which its block is to be cut would be another
//! order, and a reconstruction without CRCs one whose result nobody can check.

use cairn_namespace::store::StoreRead;
use cairn_namespace::{Result, query};
use cairn_redundancy::{BlockRecovery, BlockRef};
use cairn_stripe::{BlockId, Policy, PolicyId, UnitIndex};

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
    use cairn_namespace::block;
    use cairn_namespace::store::memory::MemoryStore;
    use cairn_namespace::store::{StoreTxn, Table};
    use cairn_redundancy::Layout;
    use cairn_stripe::GenerationStamp;

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
        };
        let mut store = MemoryStore::new();
        assert_eq!(truncation(&store, &recovery), Ok(Truncation::default()));
        assert_eq!(recorded_crcs(&store, &group), Ok(Vec::new()));
        assert_eq!(policy(&store, PolicyId(1)), Ok(None));
        store.put(Table::Block, &block::key(id), b"damaged").unwrap();
        store.put(Table::Policy, &[1], b"damaged").unwrap();
        assert!(truncation(&store, &recovery).is_err());
        assert!(recorded_crcs(&store, &group).is_err());
        assert!(policy(&store, PolicyId(1)).is_err());
    }
}
