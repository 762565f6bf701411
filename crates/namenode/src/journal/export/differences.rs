//! What was different in snapshots, from each to the next one that sees the same inode.
//!
//! Source: Hadoop 3.5.0 `DirectoryWithSnapshotFeature`, `FileDiffList`.

use super::error::ExportError;
use super::past::{Child, History, Past, Seen, view};
use super::turned::{Attribute, attributes, block, described, file_of, quota_of};
use cairn_fsimage::write::{self as image, DirectoryDiff, FileDiff, compare_names};
use cairn_namespace::export::{self, past};
use cairn_namespace::inode::{self, Directory, File, Kind};
use cairn_namespace::snapshot::view::View;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Block, Inode, InodeId};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes snapshots, directory by directory, by their names.
pub(super) fn snapshots_to<W: Write>(
    store: &dyn StoreRead,
    past: &Past,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    for (root, all) in &past.snapshots {
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by(|one, other| compare_names(one.name.as_bytes(), other.name.as_bytes()));
        for taken in all {
            let seen = view(store, Seen { root: *root, id: taken.id });
            let was = inode::expect(&seen, *root)?;
            let attributes = attributes(&seen, &was)?;
            let Some(directory) = was.directory() else { continue };
            let (quota, types) = quota_of(*root, directory);
            let directory = image::Directory { type_quotas: &types, ..quota };
            let was = Inode { name: taken.name.clone(), mtime: taken.mtime, ..was.clone() };
            described(&was, &attributes, |common| to.snapshot(taken.id.0, common, &directory))?;
        }
    }
    Ok(())
}

/// An inode at one time.
struct State {
    inode: Inode,
    attributes: Vec<Attribute>,
    children: BTreeMap<Vec<u8>, InodeId>,
    blocks: Vec<Block>,
}

impl State {
    fn read(seen: &View<'_>, id: InodeId) -> Result<State, ExportError> {
        let inode = inode::expect(seen, id)?;
        let attributes = attributes(seen, &inode)?;
        let (mut children, mut blocks) = (BTreeMap::new(), Vec::new());
        match inode.kind {
            Kind::Directory(_) => children = past::children(seen, id)?,
            Kind::File(_) => blocks = export::blocks(seen, id)?,
        }
        Ok(State { inode, attributes, children, blocks })
    }

    /// Whether it is otherwise than later, but for its name, its children and its bytes.
    fn is_other(&self, later: &State) -> bool {
        let described = |inode: &Inode| {
            let (owner, group, acl) = (inode.owner.clone(), inode.group.clone(), inode.acl.clone());
            (owner, group, inode.mode, acl, inode.mtime, inode.atime, inode.storage_policy)
        };
        let kept = |file: &File| (file.redundancy, file.block_size);
        let limits = |of: &Directory| quota_of(InodeId::NONE, of);
        let is_alike = match (&self.inode.kind, &later.inode.kind) {
            (Kind::File(was), Kind::File(is)) => kept(was) == kept(is),
            (Kind::Directory(was), Kind::Directory(is)) => {
                let ((was, by_type), (is, is_by_type)) = (limits(was), limits(is));
                (was.name_quota, was.space_quota, by_type)
                    == (is.name_quota, is.space_quota, is_by_type)
            }
            _ => false,
        };
        !is_alike
            || described(&self.inode) != described(&later.inode)
            || self.attributes != later.attributes
    }

    fn ids(&self) -> impl Iterator<Item = i64> {
        self.blocks.iter().map(|block| block.id.0)
    }
}

/// Writes what was different, inode by inode.
pub(super) fn differences_to<W: Write>(
    store: &dyn StoreRead,
    past: &Past,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    for (id, history) in &past.histories {
        let states = states(store, past, *id, history)?;
        let Some((_, newest)) = states.first() else { continue };
        match newest.inode.kind {
            Kind::Directory(_) => directory_to(past, (*id, history), &states, to)?,
            Kind::File(_) => file_to((*id, history), &states, to)?,
        }
    }
    Ok(())
}

/// What an inode was, the newest first: as it is, or as the last snapshot that has it sees it, without a snapshot; then as
/// each of them does.
fn states(
    store: &dyn StoreRead,
    past: &Past,
    id: InodeId,
    history: &History,
) -> Result<Vec<(Option<Seen>, State)>, ExportError> {
    let last = history.seen.last().filter(|_| !history.is_there);
    let seen = View::new(store, last.map(|last| (last.root, last.id)));
    let mut newest = State::read(&seen, id)?;
    if let Some(last) = last {
        newest.children = past.children_at_the_end(store, id, *last)?;
    }
    let mut states = vec![(None, newest)];
    for seen in history.seen.iter().rev() {
        states.push((Some(*seen), State::read(&view(store, *seen), id)?));
    }
    Ok(states)
}

fn directory_to<W: Write>(
    past: &Past,
    (id, history): (InodeId, &History),
    states: &[(Option<Seen>, State)],
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let pairs = states.windows(2).filter_map(|pair| match pair {
        [(_, later), (Some(seen), was)] => Some((later, *seen, was)),
        _ => None,
    });
    let lacks = |of: &State, name: &[u8], child: InodeId| of.children.get(name) != Some(&child);
    let is_other = |(later, seen, was): &(&State, Seen, &State)| {
        seen.root == id
            || history.ends_with(seen.id)
            || was.is_other(later)
            || was.children != later.children
    };
    let pairs: Vec<_> = pairs.filter(is_other).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    to.differences(id.0, true, pairs.len() as u64)?;
    for (later, seen, was) in pairs {
        let come = later.children.iter().filter(|(name, child)| lacks(was, name, **child));
        let mut created: Vec<&Vec<u8>> = come.map(|(name, _)| name).collect();
        created.sort_by(|one, other| compare_names(one, other));
        let gone = was.children.iter().filter(|(name, child)| lacks(later, name, **child));
        let mut gone: Vec<_> = gone.collect();
        gone.sort_by(|one, other| compare_names(one.0, other.0));
        let (mut deleted, mut deleted_references) = (Vec::new(), Vec::new());
        for (_, child) in gone {
            match past.child(*child, Some(seen.id)) {
                Child::Inode(id) => deleted.push(id),
                Child::Reference(number) => deleted_references.push(number),
            }
        }
        let is_root = seen.root == id;
        let Some(directory) = was.inode.directory() else { continue };
        let (quota, types) = quota_of(id, directory);
        let directory = image::Directory { type_quotas: &types, ..quota };
        let has_copy = !is_root && (history.ends_with(seen.id) || was.is_other(later));
        described(&was.inode, &was.attributes, |common| {
            to.directory_diff(&DirectoryDiff {
                snapshot: seen.id.0,
                children: was.children.len() as u64,
                is_root,
                copy: has_copy.then_some((common, &directory)),
                created: created.len() as u64,
                deleted: &deleted,
                deleted_references: &deleted_references,
            })
        })?;
        created.iter().try_for_each(|name| to.created(name))?;
    }
    Ok(())
}

fn file_to<W: Write>(
    (id, history): (InodeId, &History),
    states: &[(Option<Seen>, State)],
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let Some((_, newest)) = states.first() else { return Ok(()) };
    // Blocks that are the first of those that it has now need not be told.
    let is_first = |state: &State| {
        newest.ids().zip(state.ids()).all(|(now, then)| now == then)
            && state.blocks.len() <= newest.blocks.len()
    };
    let has_blocks = !states.iter().all(|(_, state)| is_first(state));
    let len = |state: &State| state.inode.file().map_or(0, |file| file.len);
    let is_other = |pair: &[(Option<Seen>, State)]| match pair {
        [(_, later), (seen, was)] => {
            seen.is_some_and(|seen| history.ends_with(seen.id))
                || was.is_other(later)
                || len(was) != len(later)
                || !was.ids().eq(later.ids())
        }
        _ => false,
    };
    let others: Vec<_> =
        states.windows(2).filter(|pair| is_other(pair)).filter_map(|pair| pair.get(1)).collect();
    if others.is_empty() {
        return Ok(());
    }
    to.differences(id.0, false, others.len() as u64)?;
    for (seen, was) in others {
        let (Some(seen), Some(file)) = (seen, was.inode.file()) else { continue };
        let mut file = file_of(&was.inode, file);
        file.writer = None;
        let blocks: Vec<_> = was.blocks.iter().filter(|_| has_blocks).map(block).collect();
        described(&was.inode, &was.attributes, |common| {
            to.file_diff(&FileDiff {
                snapshot: seen.id.0,
                len: len(was),
                copy: Some((common, &file)),
                blocks: &blocks,
            })
        })?;
    }
    Ok(())
}
