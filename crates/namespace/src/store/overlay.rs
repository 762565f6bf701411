//! Changes of one command, kept apart until it has succeeded.

use super::{StoreError, StoreRead, StoreTxn, Table, Visit};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// A store seen through changes that are not made yet. Dropping it undoes them.
pub struct Overlay<'a> {
    base: &'a dyn StoreRead,
    /// `None` is a deleted key.
    changes: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
}

/// What [`Overlay::into_changes`] leaves to be written.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>);

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of a table that are written or removed, in order.
    pub(crate) fn keys(&self, table: Table) -> impl Iterator<Item = &[u8]> {
        let from = Bound::Included((table, Vec::new()));
        self.0
            .range((from, Bound::Unbounded))
            .map(|((of, key), _)| (*of, key.as_slice()))
            .take_while(move |(of, _)| *of == table)
            .map(|(_, key)| key)
    }

    /// Writes them all.
    pub fn write_to(self, store: &mut dyn StoreTxn) -> Result<(), StoreError> {
        for ((table, key), value) in self.0 {
            match value {
                Some(value) => store.put(table, &key, &value)?,
                None => store.delete(table, &key)?,
            }
        }
        Ok(())
    }
}

impl<'a> Overlay<'a> {
    /// No changes yet.
    pub fn new(base: &'a dyn StoreRead) -> Overlay<'a> {
        Overlay { base, changes: BTreeMap::new() }
    }

    /// The store as it will be when `changes` are written.
    pub(crate) fn over(base: &'a dyn StoreRead, changes: &Changes) -> Overlay<'a> {
        Overlay { base, changes: changes.0.clone() }
    }

    /// The keys of a table that were written or removed, in order.
    pub(crate) fn changed(&self, table: Table) -> Vec<Vec<u8>> {
        let from = Bound::Included((table, Vec::new()));
        self.changes
            .range((from, Bound::Unbounded))
            .map(|((of, key), _)| (*of, key))
            .take_while(|(of, _)| *of == table)
            .map(|(_, key)| key.clone())
            .collect()
    }

    /// The changes that differ from the store below.
    pub fn into_changes(self) -> Result<Changes, StoreError> {
        let mut differing = BTreeMap::new();
        for ((table, key), value) in self.changes {
            if self.base.get(table, &key)? != value {
                differing.insert((table, key), value);
            }
        }
        Ok(Changes(differing))
    }
}

impl StoreRead for Overlay<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.changes.get(&(table, key.to_vec())) {
            Some(value) => Ok(value.clone()),
            None => self.base.get(table, key),
        }
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut changed = self
            .changes
            .range((Bound::Included((table, from.to_vec())), Bound::Unbounded))
            .take_while(|((t, key), _)| *t == table && (to.is_empty() || key.as_slice() < to))
            .map(|((_, key), value)| (key.as_slice(), value.as_deref()))
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
        self.changes.insert((table, key.to_vec()), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.changes.insert((table, key.to_vec()), None);
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
