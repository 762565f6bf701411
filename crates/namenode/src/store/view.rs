//! The store as of one group: recent changes, those that are on their way to the file, and the file.

use super::kept::Kept;
use super::key::Key;
use super::layer::Layer;
use super::listings::Listings;
use super::records::Records;
use super::runs::{At, Runs};
use super::tables::{Bytes, Position, backend, scan_in};
use cairn_namespace::inode::{InodeRef, Kind};
use cairn_namespace::settings::{self, Settings};
use cairn_namespace::store::{StoreError, Table, Visit};
use cairn_namespace::{Block, Inode, InodeId, block, inode, policy_admin};
use cairn_stripe::{Policy, PolicyId};
use redb::ReadOnlyTable;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The store after a group of entries.
pub(super) struct View {
    /// The group, whose changes and those before it count.
    pub(super) group: u64,
    /// That of the last entry.
    pub(super) position: Position,
    pub(super) recent: Arc<Layer>,
    /// What is being written to the file.
    pub(super) aside: Option<Aside>,
    pub(super) file: Arc<FileState>,
}

/// Changes that were set aside for a checkpoint.
#[derive(Clone)]
pub(super) struct Aside {
    pub(super) layer: Arc<Layer>,
    /// That of the last entry in it.
    pub(super) position: Position,
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
    /// The same.
    pub(super) runs: Arc<Runs>,
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
        let (file, changed) = (&self.file, self.changed_child(key, group)?);
        let is_in_file = changed.is_none();
        if is_in_file && self.look_up_kept(key, group, look)? {
            return Ok(true);
        }
        let id = match changed {
            Some(changed) => changed,
            None => file.get(Table::Child, key, inode::child_id)?.transpose()?,
        };
        let Some(id) = id else { return Ok(false) };
        // No lock may be held while it is shown: who looks takes others.
        let found = match self.changed_inode(id, group)? {
            Some(changed) => changed.map(|inode| look(&InodeRef::from(&*inode))),
            None => {
                let show = |record: &[u8]| {
                    let inode = InodeRef::from_bytes(record)?;
                    if is_in_file && matches!(inode.kind, Kind::File(_)) {
                        file.records.keep_file(file.number, key, record);
                    }
                    look(&inode);
                    Ok(())
                };
                let shown: Option<cairn_namespace::Result<()>> =
                    file.get(Table::Inode, &id.key(), show)?;
                shown.transpose()?
            }
        };
        found.ok_or_else(|| dangling(id))?;
        Ok(true)
    }

    /// The same of a file whose record is kept, and has not changed since.
    fn look_up_kept(
        &self,
        key: &[u8],
        group: u64,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> cairn_namespace::Result<bool> {
        let shown = self.file.records.file(self.file.number, key, |record| {
            let inode = InodeRef::from_bytes(record)?;
            let key = inode.id.key();
            let is_changed = self.with_changed(Table::Inode, &key, group, |_| ()).is_some();
            if !is_changed {
                look(&inode);
            }
            Ok(!is_changed)
        });
        shown.unwrap_or(Ok(false))
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
        let file = |visit: Visit<'_>| self.file.scan(table, from, to, visit);
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
        if let Some(known) = self.runs.get(self.number, table, key) {
            return Ok(known.map(|value| look(value.as_slice())));
        }
        let found = self.tables[table as usize].get(key).map_err(backend)?;
        if self.runs.wants(table) {
            self.read_ahead(table, key)?;
        }
        Ok(found.map(|value| look(value.value())))
    }

    /// Brings what comes from `from` on into memory, up to where something is known.
    fn read_ahead(&self, table: Table, from: &[u8]) -> Result<(), StoreError> {
        let At::Gap(next) = self.runs.at(self.number, table, from) else { return Ok(()) };
        let to = next.as_deref().unwrap_or_default();
        let mut filling = self.runs.fill(self.number, table, from);
        scan_in(&self.tables[table as usize], from, to, &mut |key, value| {
            filling.push(key, value);
            match filling.has_made_any() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if !filling.has_made_any() {
            filling.finish(to);
        }
        Ok(())
    }

    /// Reads records of the file itself, at most `limit` from the one at `from` on, and brings them into memory if
    /// there is room. Returns the key to go on from, unless the end was reached.
    pub(super) fn look(
        &self,
        table: Table,
        from: &[u8],
        limit: usize,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut filling =
            self.runs.has_room_for(table).then(|| self.runs.fill(self.number, table, from));
        let (mut next, mut count) = (None, 0);
        scan_in(&self.tables[table as usize], from, &[], &mut |key, value| {
            if count == limit {
                next = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            count += 1;
            if let Some(filling) = &mut filling {
                filling.push(key, value);
            }
            ControlFlow::Continue(())
        })?;
        if let Some(filling) = filling {
            filling.finish(next.as_deref().unwrap_or_default());
        }
        Ok(next)
    }

    /// Calls `visit` for the records of a table in `from..to`, which is not empty; an empty `to` means no end.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let mut from = from.to_vec();
        let is_end = |key: &[u8]| key.is_empty() || (!to.is_empty() && key >= to);
        loop {
            let next = match self.runs.at(self.number, table, &from) {
                At::Known(stretch) => {
                    // Most are to be seen to their end.
                    let is_last = is_end(&stretch.end);
                    let flow = stretch.run.scan(&from, |key, value| match is_last && is_end(key) {
                        true => ControlFlow::Break(()),
                        false => visit(key, value),
                    });
                    if flow.is_break() || is_last {
                        return Ok(());
                    }
                    from = stretch.end.to_vec();
                    continue;
                }
                At::Gap(next) => next.filter(|next| !is_end(next)),
            };
            let end = next.as_deref().unwrap_or(to);
            if self.scan_gap(table, (&from, end), next.is_some(), visit)?.is_break() {
                return Ok(());
            }
            let Some(next) = next else { return Ok(()) };
            from = next.into_vec();
        }
    }

    /// Scans what is not known, and may bring it into memory.
    fn scan_gap(
        &self,
        table: Table,
        (from, to): (&[u8], &[u8]),
        is_known_then: bool,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let file = &self.tables[table as usize];
        let mut flow = ControlFlow::Continue(());
        if !self.runs.wants(table) {
            scan_in(file, from, to, &mut |key, value| {
                flow = visit(key, value);
                flow
            })?;
            return Ok(flow);
        }
        let mut filling = self.runs.fill(self.number, table, from);
        let mut last = Vec::new();
        scan_in(file, from, to, &mut |key, value| {
            filling.push(key, value);
            flow = visit(key, value);
            if flow.is_break() {
                last = [key, &[0]].concat();
            }
            flow
        })?;
        match flow {
            ControlFlow::Break(()) => filling.finish_before(&last),
            ControlFlow::Continue(()) if is_known_then || to.is_empty() => filling.finish(to),
            ControlFlow::Continue(()) => filling.finish_before(to),
        }
        Ok(flow)
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
