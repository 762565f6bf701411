//! Keeping what a command changes as the snapshots before it see it.
//!
//! Every command ends here, whatever it did: its changes are compared with the state before it, so that no
//! operation can forget a snapshot.

use crate::block::{self, Block};
use crate::container;
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::group;
use crate::inode::{self, Inode, InodeId};
use crate::path;
use crate::snapshot::garbage::{ever_used, in_use};
use crate::snapshot::held::{self, Accounts};
use crate::snapshot::kept;
use crate::snapshot::version::{self, Kind, Version};
use crate::snapshot::view::View;
use crate::snapshot::{self, Snapshot, SnapshotId, SnapshotSettings};
use crate::storage_policy;
use crate::store::{Overlay, StoreRead, StoreTxn, Table};
use crate::usage::{self, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// A snapshot and the directory it was taken of.
pub(crate) type Watcher = (InodeId, Snapshot);

/// Who may see what in the state before a command, looked up once each.
pub(crate) struct Watchers<'a> {
    store: &'a dyn StoreRead,
    /// Snapshots that the command deletes.
    gone: BTreeSet<(InodeId, SnapshotId)>,
    found: BTreeMap<InodeId, Rc<Vec<Watcher>>>,
    reached: BTreeMap<(InodeId, SnapshotId, InodeId), bool>,
}

impl<'a> Watchers<'a> {
    pub(crate) fn new(store: &'a dyn StoreRead) -> Watchers<'a> {
        Watchers { store, gone: BTreeSet::new(), found: BTreeMap::new(), reached: BTreeMap::new() }
    }

    /// The newest snapshot of a directory up to `most` that stays.
    fn at_most(&self, root: InodeId, most: SnapshotId) -> Result<Option<Watcher>> {
        let mut most = most;
        loop {
            let Some(found) = snapshot::at_most(self.store, root, most)? else { return Ok(None) };
            if !self.gone.contains(&(root, found.id)) {
                return Ok(Some((root, found)));
            }
            let Some(before) = found.id.0.checked_sub(1) else { return Ok(None) };
            most = SnapshotId(before);
        }
    }

    /// The newest snapshot of the directory that an inode is in, and those of directories from which it, or
    /// a directory above it, was moved. Each may see it or not.
    fn of(&mut self, id: InodeId) -> Result<Rc<Vec<Watcher>>> {
        let mut below = Vec::new();
        let mut at = id;
        let mut known: Rc<Vec<Watcher>> = loop {
            if at == InodeId::NONE {
                break Rc::default();
            }
            if let Some(known) = self.found.get(&at) {
                break known.clone();
            }
            below.push(at);
            at = inode::get(self.store, at)?.map_or(InodeId::NONE, |inode| inode.parent);
        };
        for at in below.into_iter().rev() {
            let mut here = known.as_ref().clone();
            if let Some(newest) = snapshot::root(self.store, at)?.and_then(|root| root.newest) {
                here.extend(self.at_most(at, newest)?);
            }
            for (root, most) in snapshot::seen(self.store, at)? {
                here.extend(self.at_most(root, most)?);
            }
            here.dedup();
            known = Rc::new(here);
            self.found.insert(at, known.clone());
        }
        Ok(known)
    }

    /// Whether a snapshot sees an inode.
    fn sees(&mut self, root: InodeId, snapshot: &Snapshot, id: InodeId) -> Result<bool> {
        if id > snapshot.last_inode {
            return Ok(false);
        }
        let key = (root, snapshot.id, id);
        if let Some(known) = self.reached.get(&key) {
            return Ok(*known);
        }
        let reached = View::new(self.store, Some((root, snapshot.id))).reaches(id)?;
        self.reached.insert(key, reached);
        Ok(reached)
    }

    /// The snapshots that see an inode, of those that would lose it by a change now.
    pub(crate) fn seeing(&mut self, id: InodeId) -> Result<Vec<Watcher>> {
        let mut seeing = Vec::new();
        for (root, snapshot) in self.of(id)?.iter() {
            if self.sees(*root, snapshot, id)? {
                seeing.push((*root, snapshot.clone()));
            }
        }
        Ok(seeing)
    }
}

/// Whether any snapshot sees an inode, so that its records would be kept.
pub(crate) fn is_held(store: &dyn StoreRead, id: InodeId) -> Result<bool> {
    Ok(in_use(store)? && !Watchers::new(store).seeing(id)?.is_empty())
}

/// Whether a snapshot of the directory that an inode is in sees it, so that it would go on counting there.
///
/// Source: Hadoop 3.5.0 `INode#isInLatestSnapshot`.
pub(crate) fn is_held_here(store: &dyn StoreRead, id: InodeId) -> Result<bool> {
    if !in_use(store)? {
        return Ok(false);
    }
    let root = snapshot::root_above(store, id)?;
    let seeing = Watchers::new(store).seeing(id)?;
    Ok(seeing.iter().any(|(watching, _)| Some(*watching) == root))
}

/// Which blocks of a file any snapshot sees, so that they would be kept.
pub(crate) struct BlockHolders<'a> {
    /// How each snapshot that sees the file sees the store, and how many blocks the file has there.
    views: Vec<(View<'a>, u64)>,
}

impl<'a> BlockHolders<'a> {
    /// Those of a file.
    pub fn of(store: &'a dyn StoreRead, file: InodeId) -> Result<BlockHolders<'a>> {
        let mut views = Vec::new();
        if in_use(store)? {
            for (root, snapshot) in Watchers::new(store).seeing(file)? {
                let view = View::new(store, Some((root, snapshot.id)));
                let was = inode::get(&view, file)?;
                views.push((view, was.and_then(|was| Some(was.file()?.block_count)).unwrap_or(0)));
            }
        }
        Ok(BlockHolders { views })
    }

    /// Whether one of them has the block at its place.
    ///
    /// Source: Hadoop 3.5.0 `INodeFile#isBlockInLatestSnapshot`.
    pub fn hold(&self, block: &Block) -> Result<bool> {
        for (view, count) in &self.views {
            if u64::from(block.index) < *count
                && block::position(view, block.file, block.index)?.id == block.id
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a file only was written further: what a snapshot of an open file does not freeze.
///
/// Source: Hadoop 3.5.0 `INodeFile#recordModification` and its callers.
fn is_writing_only(old: &Inode, new: &Inode) -> bool {
    let (Some(before), Some(after)) = (old.file(), new.file()) else { return false };
    if before.writer.is_none() {
        return false;
    }
    let mut same = new.clone();
    same.mtime = old.mtime;
    if let Some(file) = same.file_mut() {
        *file = crate::inode::File {
            block_count: before.block_count,
            len: before.len,
            writer: before.writer.clone(),
            short_appends: before.short_appends,
            ..after.clone()
        };
    }
    same == *old
}

fn is_read_only(old: &Inode, new: &Inode) -> bool {
    Inode { atime: old.atime, ..new.clone() } == *old
}

/// Keeps what the changes in `overlay` take from snapshots, and puts blocks that they still need
/// back. Files of which fewer copies are wanted now come to `other_copies`.
pub(crate) fn capture(
    base: &dyn StoreRead,
    overlay: &mut Overlay<'_>,
    other_copies: &mut Vec<InodeId>,
) -> Result<()> {
    if !in_use(base)? {
        if ever_used(base)? {
            for key in overlay.changed(Table::Inode) {
                if overlay.get(Table::Inode, &key)?.is_none() {
                    snapshot::forget(overlay, version::owner(&key))?;
                }
            }
        }
        return Ok(());
    }
    let settings = snapshot::settings(base)?;
    let mut watchers = Watchers::new(base);
    for key in overlay.changed(Table::Snapshot) {
        if overlay.get(Table::Snapshot, &key)?.is_none() {
            watchers.gone.extend(snapshot::id_of(&key));
        }
    }
    let before = Standing::of(&mut watchers, overlay)?;
    capture_inodes(&mut watchers, overlay, &settings)?;
    other_copies.extend(fewer_copies(base, overlay)?);
    for kind in [Kind::Child, Kind::XAttr] {
        for key in overlay.changed(kind.table()) {
            let owner = version::owner(&key);
            // What belongs to a new inode no snapshot sees.
            if base.get(Table::Inode, &owner.key())?.is_some() {
                let old = base.get(kind.table(), &key)?;
                if old != overlay.get(kind.table(), &key)? {
                    keep(&mut watchers, overlay, kind, &key, old.as_deref())?;
                }
            }
        }
    }
    capture_positions(base, overlay)?;
    bring_back_blocks(base, overlay)?;
    before.settle(overlay)
}

/// What quotas count of things that snapshots see, before the state that these see is kept.
#[derive(Default)]
struct Standing {
    /// Files with what they take, and the directories above them.
    files: Vec<(InodeId, Usage, Vec<Arc<Inode>>)>,
    /// Removed inodes that may count elsewhere from now on, and as what they count in the state before the command.
    elsewhere: BTreeSet<InodeId>,
    before: Accounts,
    /// Inodes that this command takes away.
    removed: Vec<InodeId>,
}

impl Standing {
    fn of(watchers: &mut Watchers<'_>, overlay: &Overlay<'_>) -> Result<Standing> {
        let base = watchers.store;
        let mut found = Standing::default();
        for key in overlay.changed(Table::Inode) {
            let id = version::owner(&key);
            let Some(old) = inode::get(base, id)? else { continue };
            let new = inode::get(overlay, id)?;
            if new.is_none() {
                found.removed.push(id);
            }
            if old.is_directory() {
                found.add_directory(base, overlay, &old, new.as_ref())?;
            } else if let Some(at) = path::of_inode(overlay, id)?
                && let Some((file, above)) = at.chain.split_last()
                && usage::has_quota(above)
                && !watchers.seeing(id)?.is_empty()
            {
                let policy = storage_policy::in_force(above, file);
                let usage = usage::of_blocks(overlay, file, policy)?;
                found.files.push((id, usage, above.to_vec()));
            }
        }
        found.before = Accounts::of(base, &found.elsewhere.iter().copied().collect::<Vec<_>>())?;
        Ok(found)
    }

    /// Notes what is held below a directory that is moved, removed, or given another storage policy.
    fn add_directory(
        &mut self,
        base: &dyn StoreRead,
        overlay: &Overlay<'_>,
        old: &Inode,
        new: Option<&Inode>,
    ) -> Result<()> {
        let stays = new.is_some_and(|new| {
            new.parent == old.parent && new.storage_policy == old.storage_policy
        });
        // What is below a directory that goes is found from the top.
        let inside = new.is_none() && inode::get(overlay, old.parent)?.is_none();
        if stays || inside {
            return Ok(());
        }
        let Some(was) = path::of_inode(base, old.id)? else { return Ok(()) };
        let now = match new {
            Some(new) => path::of_inode(overlay, new.id)?,
            None => None,
        };
        if usage::has_quota(&was.chain) || now.is_some_and(|now| usage::has_quota(&now.chain)) {
            self.elsewhere.extend(held::below(base, old)?);
        }
        Ok(())
    }

    /// Counts what is different now.
    fn settle(self, overlay: &mut Overlay<'_>) -> Result<()> {
        for (id, usage, above) in self.files {
            let file = inode::expect(overlay, id)?;
            let policy = storage_policy::in_force(&above, &file);
            let now = usage::of_blocks(overlay, &file, policy)?;
            usage::charge(overlay, &above, now.minus(usage))?;
        }
        self.before.uncharge(overlay)?;
        let now: Vec<_> = self.elsewhere.into_iter().chain(self.removed).collect();
        Accounts::of(overlay, &now)?.charge(overlay)
    }
}

/// Keeps one record for the snapshots that see its owner, unless an older state is kept for them.
fn keep(
    watchers: &mut Watchers<'_>,
    overlay: &mut Overlay<'_>,
    kind: Kind,
    key: &[u8],
    record: Option<&[u8]>,
) -> Result<()> {
    let owner = version::owner(key);
    for (root, snapshot) in watchers.of(owner)?.iter() {
        if owner > snapshot.last_inode
            || version::kept(overlay, kind, key, *root, snapshot.id)?.is_some()
            || !watchers.sees(*root, snapshot, owner)?
        {
            continue;
        }
        let version = Version { kind, key: key.to_vec(), root: *root, upto: snapshot.id };
        version::put(overlay, &version, record)?;
    }
    Ok(())
}

fn capture_inodes(
    watchers: &mut Watchers<'_>,
    overlay: &mut Overlay<'_>,
    settings: &SnapshotSettings,
) -> Result<()> {
    for key in overlay.changed(Table::Inode) {
        let id = version::owner(&key);
        let Some(record) = watchers.store.get(Table::Inode, &key)? else { continue };
        let Some(old) = inode::get(watchers.store, id)? else { continue };
        let new = inode::get(overlay, id)?;
        if new.as_ref() == Some(&old) {
            continue;
        }
        let skip = match &new {
            // What is taken off a removed file is not written by anybody.
            Some(new) if is_writing_only(&old, new) => {
                !settings.capture_open_files && path::of_inode(overlay, id)?.is_some()
            }
            Some(new) => settings.skip_access_time && is_read_only(&old, new),
            None => false,
        };
        if !skip {
            keep(watchers, overlay, Kind::Inode, &key, Some(&record))?;
        }
        match new {
            Some(new) if new.parent != old.parent => {
                for (root, snapshot) in watchers.seeing(id)? {
                    snapshot::put_seen(overlay, id, root, snapshot.id, false)?;
                }
            }
            Some(_) => {}
            None => removed(overlay, id)?,
        }
    }
    Ok(())
}

/// The files that were removed, and that snapshots saw with fewer copies.
fn fewer_copies(base: &dyn StoreRead, overlay: &Overlay<'_>) -> Result<Vec<InodeId>> {
    let mut found = Vec::new();
    for key in overlay.changed(Table::Inode) {
        if overlay.get(Table::Inode, &key)?.is_none() {
            let id = version::owner(&key);
            let before = kept::redundancy_of(base, id)?;
            if kept::has_fallen(before, kept::redundancy_of(overlay, id)?) {
                found.push(id);
            }
        }
    }
    Ok(found)
}

/// Goes on counting an inode that was taken away while snapshots hold it.
fn removed(overlay: &mut Overlay<'_>, id: InodeId) -> Result<()> {
    snapshot::forget(overlay, id)?;
    let kept = version::all_of(overlay, Kind::Inode, &id.key())?;
    let Some((newest, _)) = kept.iter().max_by_key(|(version, _)| version.upto) else {
        return Ok(());
    };
    counter::add(overlay, Counter::Inodes, 1)?;
    snapshot::put_seen(overlay, id, newest.root, newest.upto, true)
}

/// Keeps the places of blocks for every state of their file that is kept and has them, also for those older than
/// the newest snapshot: a file that is open and not kept goes on in that one as it is.
fn capture_positions(base: &dyn StoreRead, overlay: &mut Overlay<'_>) -> Result<()> {
    for key in overlay.changed(Table::FileBlock) {
        let Some(record) = base.get(Table::FileBlock, &key)? else { continue };
        if overlay.get(Table::FileBlock, &key)?.as_ref() == Some(&record) {
            continue;
        }
        let Some(index) = block::index_of(&key) else { continue };
        let states = version::all_of(overlay, Kind::Inode, &version::owner(&key).key())?;
        // The newest first: what is kept for it serves the older ones too.
        for (state, frozen) in states.into_iter().rev() {
            let Some(frozen) = frozen else { continue };
            let frozen = inode::from_bytes(&frozen)?;
            let count = frozen.file().map_or(0, |file| file.block_count);
            let (kind, root, upto) = (Kind::FileBlock, state.root, state.upto);
            if u64::from(index) < count && version::kept(overlay, kind, &key, root, upto)?.is_none()
            {
                let version = Version { kind, key: key.clone(), root, upto };
                version::put(overlay, &version, Some(&record))?;
            }
        }
    }
    Ok(())
}

/// Puts back what the command has removed of blocks that snapshots hold.
fn bring_back_blocks(base: &dyn StoreRead, overlay: &mut Overlay<'_>) -> Result<()> {
    for key in overlay.changed(Table::Block) {
        let Some(record) = base.get(Table::Block, &key)? else { continue };
        let block = block::decode(&record)?;
        let now = overlay.get(Table::Block, &key)?;
        let is_ended = match &now {
            Some(now) => block::decode(now)?.is_tombstone() && !block.is_tombstone(),
            None => true,
        };
        if !is_ended || !kept::is_block_kept(overlay, &block)? {
            continue;
        }
        group::set_live(overlay, &block, true)?;
        container::bring_back(overlay, &block)?;
        overlay.put(Table::Block, &key, &record)?;
        counter::add(overlay, Counter::Blocks, i64::from(now.is_none()))?;
    }
    Ok(())
}
