//! A store in memory, for tests and simulation.

use super::state::{StoreRead, StoreTxn, Visit};
use super::table::Table;
use crate::error::StoreError;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Tables as maps; two with the same content are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStore {
    tables: [BTreeMap<Vec<u8>, Vec<u8>>; Table::ALL.len()],
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }
}

impl StoreRead for MemoryStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables[table as usize].get(key).cloned())
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        let value = self.tables[table as usize].get(key);
        if let Some(value) = value {
            look(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        if !to.is_empty() && from >= to {
            return Ok(());
        }
        let entries = &self.tables[table as usize];
        for (key, value) in entries.range::<[u8], _>((Bound::Included(from), end)) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl StoreTxn for MemoryStore {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.tables[table as usize].insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.tables[table as usize].remove(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;

    #[test]
    fn conforms() {
        conformance::check(&mut MemoryStore::new());
    }
}
