//! What blocks should be, read from a state of the namespace for the cluster.

use cairn_namespace::group::{Group, Member};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Block, BlockState as Written, block, container, query, settings};
use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockState, GroupFacts, Layout, SlotFacts, StoragePolicy,
};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};

/// What was read of blocks before the state was taken.
pub trait Known {
    /// The block as it was read, if that holds in the state; nothing if it must be asked.
    fn facts(&self, id: BlockId) -> Option<Option<BlockFacts>>;
}

/// One state of the namespace, as the cluster asks it.
pub struct Lookup<'a> {
    /// The state.
    pub store: &'a dyn StoreRead,
    known: Option<&'a dyn Known>,
}

impl<'a> Lookup<'a> {
    /// Asks the state for everything.
    pub fn new(store: &'a dyn StoreRead) -> Lookup<'a> {
        Lookup { store, known: None }
    }

    /// Asks it for what is not known.
    pub fn with(store: &'a dyn StoreRead, known: &'a dyn Known) -> Lookup<'a> {
        Lookup { store, known: Some(known) }
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
    let group = block.group.map(|of| (of.handle, UnitIndex(of.slot)));
    let packed = block.packed.map(|at| at.container);
    BlockFacts { gs: block.gs, len: block.len, layout, state, group, packed }
}

/// A contiguous group of the namespace in the cluster's terms.
fn group_facts(group: &Group) -> GroupFacts {
    let slot = |member: &Member| SlotFacts {
        id: member.id,
        gs: member.gs,
        len: member.len,
        live: member.live,
    };
    GroupFacts {
        handle: group.handle,
        gs: group.gs,
        k: group.k,
        m: group.m,
        attempt: group.is_attempt(),
        formed: group.is_formed(),
        dissolving: group.is_dissolving(),
        slots: group.members.iter().map(|member| member.as_ref().map(slot)).collect(),
        parity_len: group.parities.first().map_or(0, |parity| parity.len),
    }
}

impl Lookup<'_> {
    fn find_group(&self, handle: BlockId) -> Option<Group> {
        query::group(self.store, handle)
            .unwrap_or_else(|error| panic!("cannot look {handle} up in the store: {error}"))
    }
}

// A block that is said to be unknown is deleted by those who hold it: a store that cannot be read
// must end the work in hand, not be answered for.
impl BlockLookup for Lookup<'_> {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        if id.is_parity() {
            return self.group(id).map(|group| group.facts());
        }
        if let Some(known) = self.known.and_then(|known| known.facts(id)) {
            return known;
        }
        let info = query::get_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        info.map(|info| facts(&info.block, &info.redundancy))
    }

    fn group(&self, handle: BlockId) -> Option<GroupFacts> {
        self.find_group(handle).as_ref().map(group_facts)
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let infos = query::blocks_after(self.store, after, limit)
            .unwrap_or_else(|error| panic!("cannot scan the blocks of the store: {error}"));
        infos.iter().map(|info| (info.block.id, facts(&info.block, &info.redundancy))).collect()
    }

    fn is_spare(&self, id: BlockId) -> bool {
        let find = || -> cairn_namespace::Result<bool> {
            let Some(container) = container::get(self.store, id)? else { return Ok(false) };
            let block = block::get(self.store, id)?;
            Ok(block.is_some_and(|block| container.is_spare(&block)))
        };
        id.is_container()
            && find().unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"))
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        // Files with one and the same policy have the members of a group.
        let group = id.is_parity().then(|| self.group(id)).flatten();
        let members = group.into_iter().flat_map(|group| group.slots).flatten();
        let id = members.filter(|member| member.live).map(|member| member.id).next().unwrap_or(id);
        let policy = query::storage_policy_of_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        let settings = settings::get(self.store)
            .unwrap_or_else(|error| panic!("cannot read the settings in the store: {error}"));
        settings.storage_policy(policy)
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        if id.is_parity() {
            let group = self.find_group(id)?;
            let member = group.members.get(unit.as_usize()).and_then(Option::as_ref);
            let parity = unit.as_usize().checked_sub(usize::from(group.k));
            let parity = parity.and_then(|at| group.parities.get(at)?.known_crc());
            return member.map(|member| member.crc32c).or(parity);
        }
        let info = query::get_block(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        info.and_then(|info| info.block.unit_crcs.get(unit.as_usize()).copied().flatten())
    }

    fn has_crcs(&self, id: BlockId, facts: &BlockFacts) -> bool {
        if id.is_parity() {
            return facts.units().into_iter().all(|unit| self.unit_crc(id, unit).is_some());
        }
        let block = block::get(self.store, id)
            .unwrap_or_else(|error| panic!("cannot look {id} up in the store: {error}"));
        let crcs = block.map_or_else(Vec::new, |block| block.unit_crcs);
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
    use cairn_namespace::Settings;
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
}
