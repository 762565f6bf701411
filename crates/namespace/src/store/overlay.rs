//! Changes of one command, kept apart until it has succeeded.

use super::changes::{Changes, Tables};
use super::state::{StoreRead, StoreTxn, Visit, read_child, read_settings};
use super::table::Table;
use crate::error::{Result as Found, StoreError};
use crate::inode::record::{self as inode, Inode, InodeId};
use crate::settings::record::{self as settings, Settings};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A store seen through changes that are not made yet. Dropping it undoes them.
pub struct Overlay<'a> {
    base: &'a dyn StoreRead,
    changes: Tables,
    /// Deleted keys that may not be there below.
    doubtful: Vec<(Table, Vec<u8>)>,
}

impl<'a> Overlay<'a> {
    /// No changes yet.
    pub fn new(base: &'a dyn StoreRead) -> Overlay<'a> {
        Overlay { base, changes: Tables::default(), doubtful: Vec::new() }
    }

    /// The store as it will be when `changes` are written.
    pub(crate) fn over(base: &'a dyn StoreRead, changes: &Changes) -> Overlay<'a> {
        Overlay { base, changes: changes.0.clone(), doubtful: Vec::new() }
    }

    /// The keys of a table that were written or removed, in order.
    pub(crate) fn changed(&self, table: Table) -> Vec<Vec<u8>> {
        self.changes[table as usize].keys().cloned().collect()
    }

    /// What changes the store below; of records that are set, either all or none.
    pub fn into_changes(mut self) -> Result<Changes, StoreError> {
        self.drop_vain_deletes()?;
        if self.changes.iter().any(|table| table.values().any(Option::is_none))
            || self.sets_anything()?
        {
            return Ok(Changes(self.changes));
        }
        Ok(Changes::default())
    }

    /// As [`Overlay::into_changes`], where a record is known to be set that was not there.
    pub(crate) fn into_certain_changes(mut self) -> Result<Changes, StoreError> {
        self.drop_vain_deletes()?;
        Ok(Changes(self.changes))
    }

    /// Drops the deletions of what is not there.
    fn drop_vain_deletes(&mut self) -> Result<(), StoreError> {
        for (table, key) in std::mem::take(&mut self.doubtful) {
            let changes = &mut self.changes[table as usize];
            if changes.get(&key) == Some(&None) && !self.base.peek(table, &key, &mut |_| {})? {
                changes.remove(&key);
            }
        }
        Ok(())
    }

    /// Whether a record is set to what it was not.
    fn sets_anything(&self) -> Result<bool, StoreError> {
        // The last tables first: what is kept of calls is always new.
        for (table, changes) in Table::ALL.iter().zip(&self.changes).rev() {
            for (key, value) in changes {
                let mut same = false;
                self.base.peek(*table, key, &mut |was| same = value.as_deref() == Some(was))?;
                if !same {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn changed_to(&self, table: Table, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.changes[table as usize].get(key)
    }
}

impl StoreRead for Overlay<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.changed_to(table, key) {
            Some(value) => Ok(value.clone()),
            None => self.base.get(table, key),
        }
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        match self.changed_to(table, key) {
            Some(Some(value)) => {
                look(value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => self.base.peek(table, key, look),
        }
    }

    fn inode(&self, id: InodeId) -> Found<Option<Arc<Inode>>> {
        match self.changed_to(Table::Inode, &id.key()) {
            Some(value) => Ok(value.as_deref().map(inode::from_bytes).transpose()?.map(Arc::new)),
            None => self.base.inode(id),
        }
    }

    fn child(&self, parent: InodeId, name: &str) -> Found<Option<Arc<Inode>>> {
        if self.changes[Table::Child as usize].contains_key(&inode::child_key(parent, name)[..]) {
            return read_child(self, parent, name);
        }
        let Some(found) = self.base.child(parent, name)? else { return Ok(None) };
        match self.changed_to(Table::Inode, &found.id.key()) {
            Some(_) => self.inode(found.id),
            None => Ok(Some(found)),
        }
    }

    fn settings(&self) -> Found<Arc<Settings>> {
        match self.changed_to(Table::Meta, settings::KEY) {
            Some(_) => read_settings(self),
            None => self.base.settings(),
        }
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut changed = self.changes[table as usize]
            .range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
            .take_while(|(key, _)| to.is_empty() || key.as_slice() < to)
            .map(|(key, value)| (key.as_slice(), value.as_deref()))
            .peekable();
        let mut stopped = false;
        self.base.scan(table, from, to, &mut |key, value| {
            while let Some((_, new)) = changed.next_if(|(k, _)| *k < key).map(|c| (c.0, c)) {
                if let (k, Some(v)) = new
                    && visit(k, v).is_break()
                {
                    stopped = true;
                    return ControlFlow::Break(());
                }
            }
            let flow = match changed.next_if(|(k, _)| *k == key) {
                Some((k, Some(v))) => visit(k, v),
                Some((_, None)) => ControlFlow::Continue(()),
                None => visit(key, value),
            };
            stopped = flow.is_break();
            flow
        })?;
        if !stopped {
            for (key, value) in changed {
                if let Some(value) = value
                    && visit(key, value).is_break()
                {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl StoreTxn for Overlay<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.changes[table as usize].insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.changes[table as usize].insert(key.to_vec(), None);
        self.doubtful.push((table, key.to_vec()));
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        // What was set before may be there here only.
        if self.changes[table as usize].insert(key.to_vec(), None).is_some() {
            self.doubtful.push((table, key.to_vec()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance;
    use crate::store::memory::MemoryStore;

    #[test]
    fn conforms_over_an_empty_store() {
        conformance::check(&mut Overlay::new(&MemoryStore::new()));
    }

    #[test]
    fn merges_changes_with_what_is_below() {
        let mut base = MemoryStore::new();
        for key in [b"b", b"d", b"f"] {
            base.put(Table::Child, key, b"old").unwrap();
        }
        let mut overlay = Overlay::new(&base);
        overlay.put(Table::Child, b"a", b"new").unwrap();
        overlay.put(Table::Child, b"d", b"new").unwrap();
        overlay.delete(Table::Child, b"f").unwrap();
        overlay.put(Table::Child, b"g", b"new").unwrap();
        let mut seen = String::new();
        overlay
            .scan(Table::Child, b"", b"", &mut |key, value| {
                seen.push_str(&format!("{}{} ", key[0] as char, value[0] as char));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(seen, "an bo dn gn ");
        overlay.put(Table::Child, b"b", b"old").unwrap();
        overlay.into_changes().unwrap().write_to(&mut base).unwrap();
        assert_eq!(base.get(Table::Child, b"f").unwrap(), None);
        assert_eq!(base.get(Table::Child, b"g").unwrap().as_deref(), Some(&b"new"[..]));
    }
}
