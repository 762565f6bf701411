//! A page of a directory read where it lies, without a copy of each record.

use super::listing::{Listed, children_page, open_listing};
use crate::caller::Caller;
use crate::encryption::{self, Encryption};
use crate::error::Result;
use crate::inode::{Inode, InodeId, InodeRef, Kind};
use crate::path::Resolved;
use crate::status::Listing;
use crate::storage_policy;
use crate::store::{StoreError, StoreRead, Table};
use crate::{policy_admin, snapshot};
use cairn_stripe::{Policy, PolicyId};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Ids that are no child's and are read over rather than looked for behind them.
const READ_OVER: u64 = 8;
/// Children in a row from which on they are read in one go.
const IN_A_ROW: usize = 4;

/// An entry of a directory, see [`super::FileStatus`].
pub struct Entry<'a> {
    /// Its place on the page, by name.
    pub place: usize,
    /// Its record.
    pub inode: &'a InodeRef<'a>,
    /// A file's policy, or the one in force on a directory.
    pub policy: Option<&'a Policy>,
    /// Storage policy in force; 0 if none is set on it or above.
    pub storage_policy: u8,
    /// Whether snapshots may be taken of it.
    pub snapshottable: bool,
    /// Whether it is in an encryption zone, and its key.
    pub encryption: Encryption,
}

/// What [`visit_listing`] has found.
pub enum Page {
    /// So many entries were visited, and that many are left, see [`Listing::remaining`].
    Visited(usize, u64),
    /// Not a directory of the tree, or nothing: there is nothing to visit.
    Whole(Option<Listing>),
}

/// What is to be listed at a path.
pub enum Opened {
    /// Nothing is there, or all that there is to list.
    Whole(Option<Listing>),
    /// A directory.
    Directory(Box<OpenDirectory>),
}

/// A directory that the caller may list, from some name on.
pub struct OpenDirectory {
    at: Resolved,
    /// The directory's id.
    id: InodeId,
    /// Its children.
    total: u64,
    /// The name after which the listing goes on; empty for the start.
    resumed: Vec<u8>,
}

/// As [`visit_listing`], up to the entries.
pub fn open_directory(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
) -> Result<Opened> {
    let (at, resumed) = match open_listing(store, caller, path, start_after, limit)? {
        Listed::Whole(listing) => return Ok(Opened::Whole(listing)),
        Listed::Directory(at, resumed) => (at, resumed),
    };
    let Some(target) = at.target() else { return Ok(Opened::Whole(None)) };
    let (id, total) = (target.id, target.directory().map_or(0, |directory| directory.children));
    Ok(Opened::Directory(Box::new(OpenDirectory { at, id, total, resumed })))
}

impl OpenDirectory {
    /// The directory's id.
    pub fn id(&self) -> InodeId {
        self.id
    }

    /// What a page of at most `limit` entries depends on besides the records of the directory's children, of
    /// snapshottable directories and of policies; none in a snapshot or an encryption zone, where keys of files are
    /// other records.
    pub fn page_key(&self, limit: usize) -> Option<Vec<u8>> {
        if self.at.snapshot.is_some() || encryption::root_above(&self.at.chain).is_some() {
            return None;
        }
        let inherited = policy_admin::effective_id(&self.at.chain);
        let storage_policy = storage_policy::set_above(&self.at.chain);
        let policies =
            [u8::from(inherited.is_some()), inherited.map_or(0, |id| id.0), storage_policy];
        let numbers = [&self.total.to_be_bytes()[..], &(limit as u64).to_be_bytes()].concat();
        Some([&self.id.key()[..], &numbers, &policies, &self.resumed].concat())
    }

    /// Calls `visit` for at most `limit` entries, in any order. Tells how many there were, and how many are left, see
    /// [`Listing::remaining`].
    pub fn visit(
        &self,
        store: &dyn StoreRead,
        limit: usize,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Result<(usize, u64)> {
        let view = self.at.view(store);
        let (ids, remaining) = children_page(&view, self.id, self.total, &self.resumed, limit)?;
        let mut reader = Reader::listing(&view, &self.at, visit)?;
        let mut wanted: Vec<(InodeId, usize)> = ids.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let near =
            |one: &(InodeId, usize), next: &(InodeId, usize)| next.0.0 - one.0.0 <= READ_OVER;
        for run in wanted.chunk_by(near) {
            if run.len() >= IN_A_ROW {
                reader.read_run(run)?;
            } else {
                run.iter().try_for_each(|(id, place)| reader.read_one(*id, *place))?;
            }
        }
        Ok((ids.len(), remaining))
    }
}

/// As [`super::get_listing`]; calls `visit` for the entries of a directory, in any order.
pub fn visit_listing(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    start_after: &[u8],
    limit: usize,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> Result<Page> {
    Ok(match open_directory(store, caller, path, start_after, limit)? {
        Opened::Whole(listing) => Page::Whole(listing),
        Opened::Directory(directory) => {
            let (count, remaining) = directory.visit(store, limit, visit)?;
            Page::Visited(count, remaining)
        }
    })
}

/// Reads inodes of one directory.
pub(super) struct Reader<'a> {
    store: &'a dyn StoreRead,
    /// The erasure coding policy that directories inherit.
    inherited: Option<PolicyId>,
    /// The storage policy that is inherited.
    storage_policy: u8,
    /// Whether a storage policy is shown that a striped file ignores.
    shows_ignored: bool,
    /// The encryption zone.
    zone: encryption::Below,
    /// Those that were looked up.
    policies: Vec<Arc<Policy>>,
    visit: &'a mut dyn FnMut(&Entry<'_>),
}

fn missing(id: InodeId) -> StoreError {
    StoreError::Corrupt { what: "reference", reason: format!("there is no inode {id}") }
}

impl<'a> Reader<'a> {
    /// For children of the last inode of a chain from the root.
    pub(super) fn below(
        store: &'a dyn StoreRead,
        chain: &[Arc<Inode>],
        visit: &'a mut dyn FnMut(&Entry<'_>),
    ) -> Result<Reader<'a>> {
        let inherited = policy_admin::effective_id(chain);
        let storage_policy = storage_policy::set_above(chain);
        let (zone, policies) = (encryption::Below::read(store, chain, false)?, Vec::new());
        Ok(Reader { store, inherited, storage_policy, shows_ignored: false, zone, policies, visit })
    }

    /// The same for a listing.
    ///
    /// Source: Hadoop 3.5.0 `FSDirStatAndListingOp#getListing`, which does not ask whether a policy suits stripes.
    fn listing(
        store: &'a dyn StoreRead,
        at: &Resolved,
        visit: &'a mut dyn FnMut(&Entry<'_>),
    ) -> Result<Reader<'a>> {
        let below = Reader::below(store, &at.chain, visit)?;
        let zone = encryption::Below::read(store, &at.chain, at.raw)?;
        Ok(Reader { shows_ignored: true, zone, ..below })
    }

    /// Reads records whose ids are near each other, in ascending order.
    fn read_run(&mut self, run: &[(InodeId, usize)]) -> Result<()> {
        let (Some((first, _)), Some((last, _))) = (run.first(), run.last()) else { return Ok(()) };
        let store = self.store;
        let mut ahead = run.iter();
        let mut next = ahead.next();
        let mut failed = Ok(());
        let end = InodeId(last.0.saturating_add(1));
        store.scan(Table::Inode, &first.key(), &end.key(), &mut |key, record| {
            let Some((id, place)) = next else { return ControlFlow::Break(()) };
            if key < &id.key()[..] {
                return ControlFlow::Continue(());
            }
            failed =
                if key == id.key() { self.show(record, *place) } else { Err(missing(*id).into()) };
            next = ahead.next();
            if failed.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        failed?;
        match next {
            Some((id, _)) => Err(missing(*id).into()),
            None => Ok(()),
        }
    }

    fn read_one(&mut self, id: InodeId, place: usize) -> Result<()> {
        let store = self.store;
        let mut shown = Ok(());
        let look = &mut |record: &[u8]| shown = self.show(record, place);
        if !store.peek(Table::Inode, &id.key(), look)? {
            return Err(missing(id).into());
        }
        shown
    }

    fn show(&mut self, record: &[u8], place: usize) -> Result<()> {
        self.show_inode(&InodeRef::from_bytes(record)?, place)
    }

    /// Has the inode visited.
    pub(super) fn show_inode(&mut self, inode: &InodeRef<'_>, place: usize) -> Result<()> {
        let set =
            if inode.storage_policy == 0 { self.storage_policy } else { inode.storage_policy };
        let (policy, storage_policy, snapshottable, encryption) = match &inode.kind {
            Kind::File(file) => {
                let policy = file.redundancy.policy();
                let heeded = storage_policy::for_file(set, file.redundancy);
                let encryption = self.zone.of_file(self.store, inode.id)?;
                (policy, if self.shows_ignored { set } else { heeded }, false, encryption)
            }
            Kind::Directory(directory) => {
                let snapshottable = snapshot::is_snapshottable(self.store, inode.id)?;
                let encryption = self.zone.of_directory(directory.is_zone);
                (directory.policy.or(self.inherited), set, snapshottable, encryption)
            }
        };
        let policy = match policy.filter(|id| *id != PolicyId::REPLICATION) {
            Some(id) => Some(self.policy(id)?),
            None => None,
        };
        let policy = policy.map(|index| &*self.policies[index]);
        let entry = Entry { place, inode, policy, storage_policy, snapshottable, encryption };
        (self.visit)(&entry);
        Ok(())
    }

    /// Where a policy is among those that were looked up.
    fn policy(&mut self, id: PolicyId) -> Result<usize> {
        if let Some(index) = self.policies.iter().position(|known| known.id == id) {
            return Ok(index);
        }
        self.policies.push(self.store.policy(id)?);
        Ok(self.policies.len() - 1)
    }
}
