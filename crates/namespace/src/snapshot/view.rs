//! The store as a snapshot sees it.

use crate::block::{self, Block};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId, InodeRef};
use crate::settings::Settings;
use crate::snapshot::SnapshotId;
use crate::snapshot::version::{self, Kind};
use crate::store::{StoreError, StoreRead, Table, Visit, state};
use cairn_stripe::{Policy, PolicyId};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Records that are merged at a time.
const PAGE: usize = 256;

/// A store, or what a snapshot of a directory sees of it. Below the directory every record is as it was;
/// elsewhere nothing is told about age.
#[derive(Clone, Copy)]
pub struct View<'a> {
    base: &'a dyn StoreRead,
    at: Option<(InodeId, SnapshotId)>,
}

impl<'a> View<'a> {
    /// The store at snapshot `at` of a root; as it is now without one.
    pub fn new(base: &'a dyn StoreRead, at: Option<(InodeId, SnapshotId)>) -> View<'a> {
        View { base, at }
    }

    /// Whether a path led from the root of the snapshot to this inode.
    pub(crate) fn reaches(&self, id: InodeId) -> Result<bool> {
        let Some((root, _)) = self.at else { return Ok(true) };
        let mut at = id;
        while at != root {
            let Some(inode) = inode::get(self, at)? else { return Ok(false) };
            if inode.parent == InodeId::NONE
                || inode::child(self, inode.parent, &inode.name)? != Some(at)
            {
                return Ok(false);
            }
            at = inode.parent;
        }
        Ok(true)
    }
}

fn plain(error: NamespaceError) -> StoreError {
    match error {
        NamespaceError::Store(error) => error,
        other => StoreError::Corrupt { what: "version", reason: other.to_string() },
    }
}

impl StoreRead for View<'_> {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let (Some((root, id)), Some(kind)) = (self.at, Kind::of(table))
            && let Some(kept) = version::kept(self.base, kind, key, root, id).map_err(plain)?
        {
            return Ok(kept);
        }
        self.base.get(table, key)
    }

    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        if self.at.is_none() {
            return self.base.peek(table, key, look);
        }
        let value = self.get(table, key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }

    fn inode(&self, id: InodeId) -> Result<Option<Arc<Inode>>, NamespaceError> {
        if self.at.is_none() { self.base.inode(id) } else { state::read_inode(self, id) }
    }

    fn child(&self, parent: InodeId, name: &str) -> Result<Option<Arc<Inode>>, NamespaceError> {
        match self.at {
            None => self.base.child(parent, name),
            Some(_) => state::read_child(self, parent, name),
        }
    }

    fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> Result<bool, NamespaceError> {
        if self.at.is_none() {
            return self.base.look_up(parent, name, look);
        }
        let found = state::read_child(self, parent, name)?;
        if let Some(inode) = &found {
            look(&InodeRef::from(&**inode));
        }
        Ok(found.is_some())
    }

    fn first_block(&self, file: InodeId) -> Result<(u64, Block), NamespaceError> {
        if self.at.is_none() { self.base.first_block(file) } else { block::at(self, file, 0) }
    }

    fn policy(&self, id: PolicyId) -> Result<Arc<Policy>, NamespaceError> {
        self.base.policy(id)
    }

    fn settings(&self) -> Result<Arc<Settings>, NamespaceError> {
        self.base.settings()
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let (Some(at), Some(kind)) = (self.at, Kind::of(table)) else {
            return self.base.scan(table, from, to, visit);
        };
        let mut from = from.to_vec();
        loop {
            let mut now = Vec::with_capacity(PAGE);
            let mut now_more = false;
            self.base.scan(table, &from, to, &mut |key, value| {
                now_more = now.len() == PAGE;
                if !now_more {
                    now.push((key.to_vec(), value.to_vec()));
                }
                if now_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            let (old, old_more) =
                version::page(self.base, kind, (&from, to), at, PAGE).map_err(plain)?;
            // Up to the last key of which both sides are known.
            let last = |more: bool, key: Option<&Vec<u8>>| key.filter(|_| more).cloned();
            let ends = [
                last(now_more, now.last().map(|(key, _)| key)),
                last(old_more, old.last().map(|(key, _)| key)),
            ];
            let end = ends.into_iter().flatten().min();
            let known = |key: &[u8]| end.as_ref().is_none_or(|end| key <= end.as_slice());
            let mut old = old.into_iter().filter(|(key, _)| known(key)).peekable();
            for (key, value) in now.into_iter().filter(|(key, _)| known(key)) {
                while let Some((key, record)) = old.next_if(|(other, _)| *other < key) {
                    if record.is_some_and(|record| visit(&key, &record).is_break()) {
                        return Ok(());
                    }
                }
                let record = match old.next_if(|(other, _)| *other == key) {
                    Some((_, record)) => record,
                    None => Some(value),
                };
                if record.is_some_and(|record| visit(&key, &record).is_break()) {
                    return Ok(());
                }
            }
            for (key, record) in old {
                if record.is_some_and(|record| visit(&key, &record).is_break()) {
                    return Ok(());
                }
            }
            match end {
                Some(end) => from = [&end[..], &[0]].concat(),
                None => return Ok(()),
            }
        }
    }
}
