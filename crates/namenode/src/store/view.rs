//! The store as of one group: recent changes, those that are on their way to the file, and the file.

use super::kept::Kept;
use super::key::Key;
use super::layer::Layer;
use super::listings::Listings;
use super::records::Records;
use super::{Bytes, backend};
use cairn_namespace::inode::InodeRef;
use cairn_namespace::settings::{self, Settings};
use cairn_namespace::store::{StoreError, Table, Visit};
use cairn_namespace::{Block, Inode, InodeId, block, inode, policy_admin};
use cairn_stripe::{Policy, PolicyId};
use redb::{ReadOnlyTable, ReadableTable};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The store after a group of entries.
pub(super) struct View {
    /// The group, whose changes and those before it count.
    pub(super) group: u64,
    /// Sequence number of the last entry.
    pub(super) applied: u64,
    pub(super) recent: Arc<Layer>,
    /// What is being written to the file.
    pub(super) aside: Option<Aside>,
    pub(super) file: Arc<FileState>,
}

/// Changes that were set aside for a checkpoint.
#[derive(Clone)]
pub(super) struct Aside {
    pub(super) layer: Arc<Layer>,
    /// Sequence number of the last entry in it.
    pub(super) applied: u64,
}

/// Changes that are in the file now, and that somebody may still read here.
pub(crate) struct Spent(pub(super) Arc<Layer>);

impl Spent {
    /// Whether nobody does.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The file after a checkpoint.
pub(super) struct FileState {
    /// Later ones have greater numbers.
    pub(super) number: u64,
    pub(super) tables: Box<[ReadOnlyTable<Bytes, Bytes>]>,
    pub(super) kept: Kept,
    /// Those of all states.
    pub(super) records: Arc<Records>,
    /// The same.
    pub(super) listings: Arc<Listings>,
}

impl View {
    /// Layers of changes over the file.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        [Some(&*self.recent), self.aside.as_ref().map(|aside| &*aside.layer)].into_iter().flatten()
    }

    /// What `look` makes of a record that was changed since the file was written; none if it was not.
    fn with_changed<R>(
        &self,
        table: Table,
        key: &[u8],
        group: u64,
        mut look: impl FnMut(Option<&[u8]>) -> R,
    ) -> Option<R> {
        let recent = self.recent.with(table, key, group, &mut look);
        recent.or_else(|| self.aside.as_ref()?.layer.with(table, key, group, look))
    }

    pub(super) fn get(
        &self,
        table: Table,
        key: &[u8],
        group: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self.with_changed(table, key, group, |value| value.map(<[u8]>::to_vec)) {
            Some(value) => Ok(value),
            None => self.file.get(table, key, <[u8]>::to_vec),
        }
    }

    pub(super) fn peek(
        &self,
        table: Table,
        key: &[u8],
        group: u64,
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        let changed = self.with_changed(table, key, group, |value| value.map(&mut *look).is_some());
        match changed {
            Some(found) => Ok(found),
            None => Ok(self.file.get(table, key, look)?.is_some()),
        }
    }

    /// The inode as it was changed since the file was written; none if it was not.
    fn changed_inode(
        &self,
        id: InodeId,
        group: u64,
    ) -> cairn_namespace::Result<Option<Option<Arc<Inode>>>> {
        let changed = self.with_changed(Table::Inode, &id.key(), group, |value| {
            value.map(inode::from_bytes).transpose()
        });
        Ok(changed.transpose()?.map(|found| found.map(Arc::new)))
    }

    pub(super) fn inode(
        &self,
        id: InodeId,
        group: u64,
    ) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        match self.changed_inode(id, group)? {
            Some(found) => Ok(found),
            None => self.file.inode(id),
        }
    }

    pub(super) fn child(
        &self,
        parent: InodeId,
        name: &str,
        group: u64,
    ) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        let key = Key::from([&parent.key()[..], name.as_bytes()]);
        let key = key.as_slice();
        match self.changed_child(key, group)? {
            Some(None) => Ok(None),
            Some(Some(id)) => Ok(Some(self.inode(id, group)?.ok_or_else(|| dangling(id))?)),
            None => self.child_in_file(parent, key, group),
        }
    }

    /// The child as it was changed since the file was written; none if it was not.
    fn changed_child(
        &self,
        key: &[u8],
        group: u64,
    ) -> cairn_namespace::Result<Option<Option<InodeId>>> {
        let found = |value: Option<&[u8]>| value.map(inode::child_id).transpose();
        self.with_changed(Table::Child, key, group, found).transpose()
    }

    /// The child whose name the file has, as it is now.
    fn child_in_file(
        &self,
        parent: InodeId,
        key: &[u8],
        group: u64,
    ) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        let file = &self.file;
        if let Some(id) = file.kept.child(parent, key) {
            return Ok(Some(self.inode(id, group)?.ok_or_else(|| dangling(id))?));
        }
        if let Some(kept) = file.records.file(file.number, key, inode::from_bytes) {
            let kept = kept?;
            let id = kept.id;
            let found = self.changed_inode(id, group)?.unwrap_or_else(|| Some(Arc::new(kept)));
            return Ok(Some(found.ok_or_else(|| dangling(id))?));
        }
        let found = file.get(Table::Child, key, inode::child_id)?.transpose()?;
        let Some(id) = found else { return Ok(None) };
        let found = match self.changed_inode(id, group)? {
            Some(found) => found,
            None => file.child(key, id)?,
        };
        let found = found.ok_or_else(|| dangling(id))?;
        if found.is_directory() {
            file.kept.add_child(parent, key, id);
        }
        Ok(Some(found))
    }

    /// Hands the child of that name to `look`, as [`View::child`] finds it.
    pub(super) fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        group: u64,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> cairn_namespace::Result<bool> {
        let key = Key::from([&parent.key()[..], name.as_bytes()]);
        let key = key.as_slice();
        if self.changed_child(key, group)?.is_none() {
            let (number, mut failed) = (self.file.number, None);
            let shown = self.file.records.file(number, key, |record| {
                let inode = InodeRef::from_bytes(record).map_err(|error| failed = Some(error));
                let Ok(inode) = inode else { return false };
                let is_changed =
                    self.with_changed(Table::Inode, &inode.id.key(), group, |_| ()).is_some();
                if !is_changed {
                    look(&inode);
                }
                !is_changed
            });
            if let Some(error) = failed {
                return Err(error);
            }
            if shown == Some(true) {
                return Ok(true);
            }
        }
        let found = self.child(parent, name, group)?;
        if let Some(inode) = &found {
            look(&InodeRef::from(&**inode));
        }
        Ok(found.is_some())
    }

    pub(super) fn first_block(
        &self,
        file: InodeId,
        group: u64,
    ) -> cairn_namespace::Result<(u64, Block)> {
        let missing = |what: &str| StoreError::Corrupt {
            what: "file",
            reason: format!("inode {file} has no first {what}"),
        };
        let is_changed =
            |table: Table, key: &[u8]| self.with_changed(table, key, group, |_| ()).is_some();
        let position_key = block::position_key(file, 0);
        let is_moved = is_changed(Table::FileBlock, &position_key);
        let (state, records) = (self.file.number, &self.file.records);
        if !is_moved {
            let kept = records.first_block(state, file, |offset, record| {
                block::decode(record).map(|block| (offset, block))
            });
            if let Some(kept) = kept.transpose()?
                && !is_changed(Table::Block, &block::key(kept.1.id))
            {
                return Ok(kept);
            }
        }
        let position = self.get(Table::FileBlock, &position_key, group)?;
        let position = position.ok_or_else(|| missing("position"))?;
        let block::Position { offset, id } = block::position_from(&position)?;
        let key = block::key(id.group());
        let record = self.get(Table::Block, &key, group)?.ok_or_else(|| missing("block"))?;
        if !is_moved && !is_changed(Table::Block, &key) {
            records.keep_first_block(state, file, offset, &record);
        }
        Ok((offset, block::decode(&record)?))
    }

    pub(super) fn policy(&self, id: PolicyId, group: u64) -> cairn_namespace::Result<Arc<Policy>> {
        let missing = || StoreError::Corrupt {
            what: "reference",
            reason: format!("there is no policy {}", id.0),
        };
        let decode = |value: Option<&[u8]>| match value {
            Some(value) => policy_admin::from_bytes(value),
            None => Err(missing().into()),
        };
        if let Some(changed) = self.with_changed(Table::Policy, &[id.0], group, decode) {
            return changed;
        }
        if let Some(kept) = self.file.kept.policy(id) {
            return Ok(kept);
        }
        let found = self.file.get(Table::Policy, &[id.0], |value| decode(Some(value)))?;
        let found = found.ok_or_else(missing)??;
        self.file.kept.add_policy(&found);
        Ok(found)
    }

    pub(super) fn settings(&self, group: u64) -> cairn_namespace::Result<Arc<Settings>> {
        let changed = self.with_changed(Table::Meta, settings::KEY, group, settings::from_bytes);
        match changed {
            Some(found) => Ok(Arc::new(found?)),
            None => self.file.settings(),
        }
    }

    /// `deleted` counts the deleted records that were passed.
    pub(super) fn scan(
        &self,
        table: Table,
        range: (&[u8], &[u8]),
        group: u64,
        deleted: &Cell<usize>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let (from, to) = range;
        if !to.is_empty() && from >= to {
            return Ok(());
        }
        let file = |visit: Visit<'_>| scan_in(&self.file.tables[table as usize], from, to, visit);
        let merge = Merge { table, range, group, deleted };
        match &self.aside {
            None => merge.over(&self.recent, file, visit),
            Some(aside) => {
                let below = |visit: Visit<'_>| merge.over(&aside.layer, file, visit);
                merge.over(&self.recent, below, visit)
            }
        }
    }
}

fn dangling(id: InodeId) -> StoreError {
    StoreError::Corrupt { what: "reference", reason: format!("there is no inode {id}") }
}

/// A scan of a layer together with what is below it.
struct Merge<'a> {
    table: Table,
    range: (&'a [u8], &'a [u8]),
    group: u64,
    deleted: &'a Cell<usize>,
}

impl Merge<'_> {
    fn over(
        &self,
        layer: &Layer,
        below: impl FnOnce(Visit<'_>) -> Result<(), StoreError>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let (from, to) = self.range;
        if layer.is_empty() || (!to.is_empty() && !layer.has_any(self.table, from..=to)) {
            // What comes into it meanwhile is of later groups.
            return below(visit);
        }
        let deleted = || self.deleted.update(|count| count + 1);
        let mut recent = layer.range(self.table, from, to, self.group).peekable();
        let mut stopped = false;
        below(&mut |key, value| {
            while let Some((new, value)) = recent.next_if(|(new, _)| new.as_slice() < key) {
                let Some(value) = value else {
                    deleted();
                    continue;
                };
                if visit(&new, &value).is_break() {
                    stopped = true;
                    return ControlFlow::Break(());
                }
            }
            let flow = match recent.next_if(|(new, _)| new == key) {
                Some((_, Some(value))) => visit(key, &value),
                Some((_, None)) => {
                    deleted();
                    ControlFlow::Continue(())
                }
                None => visit(key, value),
            };
            stopped = flow.is_break();
            flow
        })?;
        if stopped {
            return Ok(());
        }
        for (key, value) in recent {
            match value {
                None => deleted(),
                Some(value) if visit(&key, &value).is_break() => break,
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl FileState {
    pub(super) fn get<R>(
        &self,
        table: Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, StoreError> {
        let found = self.tables[table as usize].get(key).map_err(backend)?;
        Ok(found.map(|value| look(value.value())))
    }

    pub(super) fn inode(&self, id: InodeId) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        if let Some(kept) = self.kept.inode(id) {
            return Ok(Some(kept));
        }
        let found = self.get(Table::Inode, &id.key(), inode::from_bytes)?.transpose()?;
        let found = found.map(Arc::new);
        if let Some(found) = &found {
            self.kept.add_inode(found);
        }
        Ok(found)
    }

    /// The inode with that id, to which `key` in the table `child` leads.
    fn child(&self, key: &[u8], id: InodeId) -> cairn_namespace::Result<Option<Arc<Inode>>> {
        if let Some(kept) = self.kept.inode(id) {
            return Ok(Some(kept));
        }
        let found = self.get(Table::Inode, &id.key(), |record| -> cairn_namespace::Result<_> {
            let found = inode::from_bytes(record)?;
            if !found.is_directory() {
                self.records.keep_file(self.number, key, record);
            }
            Ok(Arc::new(found))
        });
        let found = found?.transpose()?;
        if let Some(found) = &found {
            self.kept.add_inode(found);
        }
        Ok(found)
    }

    pub(super) fn settings(&self) -> cairn_namespace::Result<Arc<Settings>> {
        if let Some(kept) = self.kept.settings() {
            return Ok(kept);
        }
        let found =
            self.get(Table::Meta, settings::KEY, |value| settings::from_bytes(Some(value)))?;
        let found = Arc::new(found.unwrap_or_else(|| settings::from_bytes(None))?);
        self.kept.add_settings(&found);
        Ok(found)
    }
}

/// Calls `visit` for the records of a table in `from..to`; an empty `to` means no end.
pub(super) fn scan_in(
    table: &impl ReadableTable<Bytes, Bytes>,
    from: &[u8],
    to: &[u8],
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    if !to.is_empty() && from >= to {
        return Ok(());
    }
    let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
    let range = table.range::<&[u8]>((Bound::Included(from), end)).map_err(backend)?;
    for entry in range {
        let (key, value) = entry.map_err(backend)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}
