//! The namespace of a simulated NameNode: a store in memory that keeps what was read of it until one of the records changes
//! that it was read of. Nothing is asked so often as what a block is, where it is in its file, and of what storage policy.

use super::names::sure;
use cairn_master::Lookup;
use cairn_namespace::query::{self, BlockInfo};
use cairn_namespace::settings::KEY;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreError, StoreRead, StoreTxn, Table, Visit};
use cairn_namespace::{Group, Inode, InodeId, Result as Found, Settings, block};
use cairn_redundancy::{BlockLookup, StoragePolicy};
use cairn_stripe::{BlockId, Policy, PolicyId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// See the module. Two with the same records are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    records: MemoryStore,
    known: RefCell<Known>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
struct Known {
    inodes: BTreeMap<InodeId, Option<Arc<Inode>>>,
    policies: BTreeMap<PolicyId, Arc<Policy>>,
    settings: Option<Arc<Settings>>,
    blocks: BTreeMap<BlockId, Option<Rc<BlockInfo>>>,
    all_blocks: Option<Rc<Vec<Rc<BlockInfo>>>>,
    all_groups: Option<Rc<Vec<Group>>>,
    /// Offsets in the file; none for a block that is not where it says.
    offsets: BTreeMap<BlockId, Option<u64>>,
    storage_policies: BTreeMap<BlockId, StoragePolicy>,
}

impl Known {
    /// A record changes.
    fn forget(&mut self, table: Table, key: &[u8]) {
        match table {
            Table::Child
            | Table::Lease
            | Table::LeaseFile
            | Table::LeaseAge
            | Table::Outcome
            | Table::Waiting
            | Table::WaitingDue => {}
            Table::Meta if key != KEY => {}
            Table::Inode => {
                let id = key.try_into().map_or(InodeId::NONE, |id| InodeId(u64::from_be_bytes(id)));
                self.inodes.remove(&id);
                let is_of_another = |info: &Rc<BlockInfo>| info.block.file != id;
                self.blocks.retain(|_, info| info.as_ref().is_some_and(is_of_another));
                self.all_blocks = None;
                // They are those of directories, where a file has none.
                self.storage_policies.clear();
            }
            Table::Block => {
                self.blocks.retain(|id, _| block::key(*id) != *key);
                self.offsets.retain(|id, _| block::key(*id) != *key);
                self.all_blocks = None;
                // A group has the policy of its members.
                self.storage_policies.clear();
            }
            Table::FileBlock => self.offsets.clear(),
            _ => *self = Known::default(),
        }
    }
}

impl Store {
    fn forget(&mut self, table: Table, key: &[u8]) {
        let known = self.known.get_mut();
        known.forget(table, key);
        let mut has_snapshots = false;
        if table == Table::Inode {
            let mut note = |_: &[u8], _: &[u8]| {
                has_snapshots = true;
                ControlFlow::Break(())
            };
            sure(self.records.scan(Table::SnapshotRoot, &[], &[], &mut note).map_err(Into::into));
        }
        if has_snapshots {
            // What they keep of a file depends on the directories above it, too.
            known.blocks.clear();
        }
    }

    /// The block or group that an id belongs to.
    pub(crate) fn block(&self, id: BlockId) -> Option<Rc<BlockInfo>> {
        if let Some(known) = self.known.borrow().blocks.get(&id) {
            return known.clone();
        }
        let found = sure(query::get_block(self, id)).map(Rc::new);
        self.known.borrow_mut().blocks.insert(id, found.clone());
        found
    }

    /// All blocks, in their order.
    pub(crate) fn all_blocks(&self) -> Rc<Vec<Rc<BlockInfo>>> {
        if let Some(known) = &self.known.borrow().all_blocks {
            return known.clone();
        }
        let mut ids = Vec::new();
        let mut note = |key: &[u8], _: &[u8]| {
            ids.extend(block::from_key(key));
            ControlFlow::Continue(())
        };
        sure(self.records.scan(Table::Block, &[], &[], &mut note).map_err(Into::into));
        let all = Rc::new(ids.into_iter().filter_map(|id| self.block(id)).collect::<Vec<_>>());
        self.known.borrow_mut().all_blocks = Some(all.clone());
        all
    }

    /// All contiguous groups, and attempts to make them, in their order.
    pub(crate) fn all_groups(&self) -> Rc<Vec<Group>> {
        if let Some(known) = &self.known.borrow().all_groups {
            return known.clone();
        }
        let all = Rc::new(sure(query::groups_after(self, None, usize::MAX)));
        self.known.borrow_mut().all_groups = Some(all.clone());
        all
    }

    /// Where a block is in its file; `None` if only snapshots have it.
    pub(crate) fn offset_of(&self, info: &BlockInfo) -> Option<u64> {
        let block = &info.block;
        if let Some(known) = self.known.borrow().offsets.get(&block.id) {
            return *known;
        }
        let found = block::position(self, block.file, block.index).ok();
        let offset = found.filter(|found| found.id == block.id).map(|found| found.offset);
        self.known.borrow_mut().offsets.insert(block.id, offset);
        offset
    }

    /// The storage policy of the file that has the block.
    pub(crate) fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        if let Some(known) = self.known.borrow().storage_policies.get(&id) {
            return *known;
        }
        let found = Lookup::new(self).storage_policy(id);
        self.known.borrow_mut().storage_policies.insert(id, found);
        found
    }
}

impl PartialEq for Store {
    fn eq(&self, other: &Store) -> bool {
        self.records == other.records
    }
}

impl StoreRead for Store {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.records.get(table, key)
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        self.records.peek(table, key, look)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.records.scan(table, from, to, visit)
    }

    fn inode(&self, id: InodeId) -> Found<Option<Arc<Inode>>> {
        if let Some(known) = self.known.borrow().inodes.get(&id) {
            return Ok(known.clone());
        }
        let found = self.records.inode(id)?;
        self.known.borrow_mut().inodes.insert(id, found.clone());
        Ok(found)
    }

    fn policy(&self, id: PolicyId) -> Found<Arc<Policy>> {
        if let Some(known) = self.known.borrow().policies.get(&id) {
            return Ok(known.clone());
        }
        let found = self.records.policy(id)?;
        self.known.borrow_mut().policies.insert(id, found.clone());
        Ok(found)
    }

    fn settings(&self) -> Found<Arc<Settings>> {
        if let Some(known) = &self.known.borrow().settings {
            return Ok(known.clone());
        }
        let found = self.records.settings()?;
        self.known.borrow_mut().settings = Some(found.clone());
        Ok(found)
    }
}

impl StoreTxn for Store {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.forget(table, key);
        self.records.put(table, key, value)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.forget(table, key);
        self.records.delete(table, key)
    }
}
