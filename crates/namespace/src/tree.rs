//! What operations share: putting inodes into the tree and taking them out, counted.

use crate::apply::RemovedBlock;
use crate::block::{self, Block, BlockState};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::ops::counter::{self, Counter};
use crate::path::Resolved;
use crate::snapshot::capture::{self, Watchers};
use crate::snapshot::{self, reclaim};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::{lease, policy_admin};

/// Children that a walk fetches at a time.
const PAGE: usize = 1000;

/// What is left of a walk: a directory to visit, or its children that follow a name.
enum Ahead {
    Directory(Inode),
    Children(InodeId, String),
}

/// In which order the directories of a directory are walked (of a page of them, where there are very many).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Siblings {
    /// By name, as Hadoop sums up content.
    FirstFirst,
    /// The other way round, as Hadoop looks for one that refuses.
    LastFirst,
}

/// Calls `visit` for `root` and everything below it, a directory before what is in it.
pub(crate) fn descend(
    store: &dyn StoreRead,
    root: &Inode,
    siblings: Siblings,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    // No recursion: renames can nest directories deeper than a thread's stack.
    let mut open = Vec::new();
    if root.is_directory() {
        open.push(Ahead::Directory(root.clone()));
    } else {
        visit(root)?;
    }
    while let Some(next) = open.pop() {
        let (directory, after) = match next {
            Ahead::Directory(inode) => {
                visit(&inode)?;
                (inode.id, None)
            }
            Ahead::Children(id, after) => (id, Some(after)),
        };
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        let mut below = Vec::new();
        let mut last = None;
        for id in ids {
            let child = inode::expect(store, id)?;
            last = Some(child.name.clone());
            if child.is_directory() {
                below.push(Ahead::Directory(child));
            } else {
                visit(&child)?;
            }
        }
        if let Some(last) = last.filter(|_| full) {
            open.push(Ahead::Children(directory, last));
        }
        if siblings == Siblings::FirstFirst {
            below.reverse();
        }
        open.extend(below);
    }
    Ok(())
}

/// Calls `visit` for every child of a directory, in the order of their names.
pub(crate) fn each_child(
    store: &dyn StoreRead,
    directory: InodeId,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let ids = inode::children(store, directory, after.as_deref().map(str::as_bytes), PAGE)?;
        let full = ids.len() == PAGE;
        for id in ids {
            let child = inode::expect(store, id)?;
            visit(&child)?;
            after = Some(child.name);
        }
        if !full {
            return Ok(());
        }
    }
}

/// The most bytes that anything counts as, so that sums and differences of clients' wildest lengths stay
/// numbers.
const SPACE_MAX: u64 = i64::MAX as u64;

/// Bytes on disk of a block with all copies or parity.
///
/// Source: Hadoop 3.5.0 `BlockInfoStriped#spaceConsumed`.
pub(crate) fn block_space(store: &dyn StoreRead, of: FileRedundancy, len: u64) -> Result<u64> {
    let space = match of {
        FileRedundancy::Replicated(copies) => len.saturating_mul(u64::from(copies)),
        FileRedundancy::Striped(id) => {
            let policy = policy_admin::by_id(store, id)?;
            let cell = u64::from(policy.cell_len);
            let stripes = len / policy.stripe_len();
            let tail = (len % policy.stripe_len()).min(cell);
            let parity_unit = stripes.saturating_mul(cell).saturating_add(tail);
            len.saturating_add(parity_unit.saturating_mul(u64::from(policy.schema.m)))
        }
    };
    Ok(space.min(SPACE_MAX))
}

/// Bytes on disk of a file with all copies and parity; 0 for a directory.
pub(crate) fn file_space(store: &dyn StoreRead, inode: &Inode) -> Result<u64> {
    let Some(file) = inode.file() else { return Ok(0) };
    if let FileRedundancy::Replicated(_) = file.redundancy {
        return block_space(store, file.redundancy, file.len);
    }
    let mut sum = 0_u64;
    for index in 0..file.block_count as u32 {
        let (_, block) = block::at(store, inode.id, index)?;
        sum = sum.saturating_add(block_space(store, file.redundancy, block.len)?);
    }
    Ok(sum.min(SPACE_MAX))
}

/// What counts against quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Inodes.
    pub names: i64,
    /// Bytes on disk.
    pub space: i64,
}

impl Usage {
    /// The same, taken away.
    pub fn negated(self) -> Usage {
        Usage { names: -self.names, space: -self.space }
    }
}

/// What a subtree uses, itself counted.
pub(crate) fn usage_below(store: &dyn StoreRead, root: &Inode) -> Result<Usage> {
    let mut usage = Usage::default();
    descend(store, root, Siblings::FirstFirst, &mut |inode| {
        usage.names += 1;
        usage.space = usage.space.saturating_add(file_space(store, inode)? as i64);
        Ok(())
    })?;
    Ok(usage)
}

/// What of a subtree no snapshot of the directory that it is in holds, itself counted: the rest goes on
/// counting when the subtree is removed.
///
/// Source: Hadoop 3.5.0 `INode#cleanSubtree`.
fn usage_let_go(store: &dyn StoreRead, top: &Inode) -> Result<Usage> {
    let here = if capture::in_use(store)? { snapshot::root_above(store, top.id)? } else { None };
    let Some(here) = here else { return usage_below(store, top) };
    let mut watchers = Watchers::new(store);
    let mut usage = Usage::default();
    descend(store, top, Siblings::FirstFirst, &mut |inode| {
        let seeing = watchers.seeing(inode.id)?;
        let Some((_, snapshot)) = seeing.into_iter().find(|(root, _)| *root == here) else {
            usage.names += 1;
            usage.space = usage.space.saturating_add(file_space(store, inode)? as i64);
            return Ok(());
        };
        let Some(file) = inode.file() else { return Ok(()) };
        for index in 0..file.block_count as u32 {
            let (_, block) = block::at(store, inode.id, index)?;
            if !capture::would_keep(store, inode, index, (here, snapshot.id))? {
                let space = block_space(store, file.redundancy, block.len)? as i64;
                usage.space = usage.space.saturating_add(space);
            }
        }
        Ok(())
    })?;
    Ok(usage)
}

/// Whether any of these directories has a quota.
pub(crate) fn has_quota(chain: &[Inode]) -> bool {
    chain.iter().any(|inode| inode.directory().is_some_and(|d| d.quota.is_some()))
}

/// Fails if `usage` more would exceed the quota of a directory in `chain`, which begins at the root.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyQuota`.
pub(crate) fn verify_quota(store: &dyn StoreRead, chain: &[Inode], usage: Usage) -> Result<()> {
    verify_quota_from(store, chain, 0, usage)
}

/// As [`verify_quota`], without the first `skip` directories.
pub(crate) fn verify_quota_from(
    store: &dyn StoreRead,
    chain: &[Inode],
    skip: usize,
    usage: Usage,
) -> Result<()> {
    for (depth, old) in chain.iter().enumerate().skip(skip) {
        if old.directory().is_none_or(|directory| directory.quota.is_none()) {
            continue;
        }
        let inode = inode::expect(store, old.id)?;
        let Some(quota) = inode.directory().and_then(|d| d.quota.as_ref()) else { continue };
        let path = || {
            let names: Vec<_> = chain[1..=depth].iter().map(|inode| inode.name.clone()).collect();
            crate::path::join(&names)
        };
        let names = quota.names.saturating_add_signed(usage.names);
        if let Some(max) = quota.names_max.filter(|max| usage.names > 0 && names > *max) {
            return Err(NamespaceError::NsQuotaExceeded(format!(
                "The NameSpace quota (directories and files) of directory {} is exceeded: \
                 quota={max} file count={names}",
                path()
            )));
        }
        let space = quota.space.saturating_add_signed(usage.space);
        if let Some(max) = quota.space_max.filter(|max| usage.space > 0 && space > *max) {
            return Err(NamespaceError::DsQuotaExceeded(format!(
                "The DiskSpace quota of {} is exceeded: quota = {max} B = {} but diskspace consumed \
                 = {space} B = {}",
                path(),
                in_binary_units(max),
                in_binary_units(space)
            )));
        }
    }
    Ok(())
}

/// A number of bytes as Hadoop prints it for people: with a unit, and two decimals unless it is whole.
///
/// Source: Hadoop 3.5.0 `StringUtils.TraditionalBinaryPrefix#long2String`.
fn in_binary_units(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let mut unit = bytes.checked_ilog2().unwrap_or(0) as usize / 10;
    let shift = 10 * unit as u32;
    if bytes & ((1_u64 << shift) - 1) == 0 {
        return format!("{} {}B", bytes >> shift, UNITS[unit]);
    }
    let in_unit = |unit: usize| format!("{:.2}", bytes as f64 / (1_u64 << (10 * unit)) as f64);
    let mut text = in_unit(unit);
    if text.starts_with("1024") {
        unit += 1;
        text = in_unit(unit);
    }
    format!("{text} {}B", UNITS[unit])
}

/// Counts `usage` in the quotas of the directories in `chain`.
pub(crate) fn charge(store: &mut dyn StoreTxn, chain: &[Inode], usage: Usage) -> Result<()> {
    for old in chain {
        if old.directory().is_none_or(|directory| directory.quota.is_none()) {
            continue;
        }
        let mut inode = inode::expect(store, old.id)?;
        if let Some(quota) = inode.directory_mut().and_then(|d| d.quota.as_mut()) {
            quota.names = quota.names.saturating_add_signed(usage.names);
            quota.space = quota.space.saturating_add_signed(usage.space);
            inode::put(store, &inode)?;
        }
    }
    Ok(())
}

/// Changes a directory's number of children and its modification time.
fn update_parent(store: &mut dyn StoreTxn, id: InodeId, children: i64, now_ms: u64) -> Result<()> {
    let mut parent = inode::expect(store, id)?;
    parent.mtime = now_ms;
    if let Some(directory) = parent.directory_mut() {
        directory.children = directory.children.saturating_add_signed(children);
    }
    inode::put(store, &parent)
}

/// Writes `inode` under its parent and name, which must be free.
pub(crate) fn attach(store: &mut dyn StoreTxn, inode: &Inode, now_ms: u64) -> Result<()> {
    inode::put(store, inode)?;
    inode::link(store, inode)?;
    update_parent(store, inode.parent, 1, now_ms)
}

/// Takes `inode` out of its parent; the record stays as it was.
pub(crate) fn detach(store: &mut dyn StoreTxn, inode: &Inode, now_ms: u64) -> Result<()> {
    inode::unlink(store, inode.parent, &inode.name)?;
    update_parent(store, inode.parent, -1, now_ms)
}

/// Puts a new inode into the tree below `chain`, whose last is its parent. The caller has checked
/// names and limits.
pub(crate) fn add(
    store: &mut dyn StoreTxn,
    chain: &[Inode],
    inode: &Inode,
    now_ms: u64,
) -> Result<()> {
    if chain.len() == 1 && inode.name == ".reserved" {
        return Err(NamespaceError::HadoopIllegalArgument(
            "File name \".reserved\" is reserved and cannot be created. If this is during upgrade \
             change the name of the existing file or directory to another name before upgrading to \
             the new release."
                .to_string(),
        ));
    }
    let usage = Usage { names: 1, space: 0 };
    verify_quota(store, chain, usage)?;
    charge(store, chain, usage)?;
    attach(store, inode, now_ms)?;
    counter::add(store, Counter::Inodes, 1)
}

/// Takes the target of `at` with everything below it out of the tree. Its records go by [`purge`].
pub(crate) fn discard(store: &mut dyn StoreTxn, at: &Resolved, now_ms: u64) -> Result<()> {
    // The record may have changed since the path was followed.
    let mut inode = inode::expect(store, at.existing()?.id)?;
    let above = &at.chain[..at.chain.len() - 1];
    if has_quota(above) {
        let usage = usage_let_go(store, &inode)?;
        charge(store, above, usage.negated())?;
    }
    detach(store, &inode, now_ms)?;
    inode.parent = InodeId::NONE;
    inode::put(store, &inode)?;
    Ok(store.put(Table::Garbage, &inode.id.key(), &[])?)
}

/// Removes at most about `limit` inodes and blocks of discarded trees, beginning with `first`.
/// Returns the blocks and whether there is more.
pub(crate) fn purge(
    store: &mut dyn StoreTxn,
    first: Option<InodeId>,
    limit: u64,
) -> Result<(Vec<RemovedBlock>, bool)> {
    let mut removed = Vec::new();
    let mut budget = limit.max(1);
    if let Some(first) = first {
        let root = inode::expect(store, first)?;
        purge_tree(store, root, &mut budget, &mut removed)?;
    }
    loop {
        let mut root = None;
        store.scan(Table::Garbage, &[], &[], &mut |key, _| {
            root = <[u8; 8]>::try_from(key).ok().map(|id| InodeId(u64::from_be_bytes(id)));
            std::ops::ControlFlow::Break(())
        })?;
        let Some(root) = root else {
            let more = reclaim::reclaim(store, &mut budget, &mut removed)?;
            return Ok((removed, more));
        };
        if budget == 0 {
            return Ok((removed, true));
        }
        let root = inode::expect(store, root)?;
        purge_tree(store, root, &mut budget, &mut removed)?;
    }
}

/// Removes from the leaves up until the budget is used.
fn purge_tree(
    store: &mut dyn StoreTxn,
    root: Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<()> {
    // Each level: a directory and those of its children that were fetched and are still there.
    let mut levels: Vec<(Inode, Vec<InodeId>)> = Vec::new();
    let mut at = root;
    loop {
        let fetched = if at.is_directory() {
            inode::children(store, at.id, None, PAGE.min(*budget as usize))?
        } else {
            Vec::new()
        };
        levels.push((at, fetched.into_iter().rev().collect()));
        // Go up over everything that is empty, then down into the next child.
        loop {
            let Some((inode, fetched)) = levels.last_mut() else { return Ok(()) };
            if *budget == 0 {
                return Ok(());
            }
            if let Some(child) = fetched.pop() {
                at = inode::expect(store, child)?;
                break;
            }
            let more = inode::children(store, inode.id, None, PAGE.min(*budget as usize))?;
            if !more.is_empty() {
                *fetched = more.into_iter().rev().collect();
                continue;
            }
            let Some((inode, _)) = levels.pop() else { return Ok(()) };
            if !purge_inode(store, inode, budget, removed)? {
                return Ok(());
            }
        }
    }
}

/// Removes a file with its blocks, or an empty directory; false if the budget ended before.
fn purge_inode(
    store: &mut dyn StoreTxn,
    mut inode: Inode,
    budget: &mut u64,
    removed: &mut Vec<RemovedBlock>,
) -> Result<bool> {
    while inode.file().is_some_and(|file| file.block_count > 0) {
        if *budget == 0 {
            inode::put(store, &inode)?;
            return Ok(false);
        }
        removed.extend(remove_last_block(store, &mut inode)?);
        *budget -= 1;
    }
    if let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) {
        lease::remove(store, &writer.holder, inode.id)?;
    }
    crate::ops::xattr::remove_all(store, inode.id)?;
    if inode.parent == InodeId::NONE {
        store.delete(Table::Garbage, &inode.id.key())?;
    } else {
        inode::unlink(store, inode.parent, &inode.name)?;
    }
    inode::delete(store, inode.id)?;
    counter::add(store, Counter::Inodes, -1)?;
    *budget = budget.saturating_sub(1);
    Ok(true)
}

/// Takes the last block off a file; the caller writes the inode and counts the space.
pub(crate) fn remove_last_block(
    store: &mut dyn StoreTxn,
    inode: &mut Inode,
) -> Result<Option<RemovedBlock>> {
    let Some(block) = block::last(store, inode)? else { return Ok(None) };
    let id = inode.id;
    let Some(file) = inode.file_mut() else { return Ok(None) };
    file.block_count -= 1;
    file.len = file.len.saturating_sub(block.len);
    let redundancy = file.redundancy;
    block::delete_position(store, id, block.index)?;
    block::delete(store, block.id)?;
    counter::add(store, Counter::Blocks, -1)?;
    Ok(Some(RemovedBlock { block: block.reference(), redundancy }))
}

/// Gives the last block of an attached file a length, counts it, and writes both records.
pub(crate) fn set_last_len(
    store: &mut dyn StoreTxn,
    chain: &[Inode],
    inode: &mut Inode,
    block: &mut Block,
    len: u64,
) -> Result<()> {
    if let Some(file) = inode.file_mut() {
        file.len = file.len.saturating_sub(block.len).saturating_add(len);
        let redundancy = file.redundancy;
        let before = block_space(store, redundancy, block.len)? as i64;
        let after = block_space(store, redundancy, len)? as i64;
        charge(store, chain, Usage { names: 0, space: after - before })?;
    }
    block.len = len;
    block::put(store, block)?;
    inode::put(store, inode)
}

/// Closes a file: its blocks are complete, its lease ends.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#finalizeINodeFileUnderConstruction`.
pub(crate) fn close(store: &mut dyn StoreTxn, inode: &mut Inode, now_ms: u64) -> Result<()> {
    inode.mtime = now_ms;
    let id = inode.id;
    let Some(file) = inode.file_mut() else { return Ok(()) };
    // A new block completes the one before the last, so more than two cannot be open; the last one may
    // be complete before the other.
    for index in (0..file.block_count as u32).rev().take(2) {
        let (_, mut block) = block::at(store, id, index)?;
        if block.state != BlockState::Complete {
            block.state = BlockState::Complete;
            block::put(store, &block)?;
        }
    }
    if let Some(writer) = file.writer.take() {
        lease::remove(store, &writer.holder, id)?;
    }
    inode::put(store, inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.50 KB"),
            (1 << 20, "1 MB"),
            (402_653_196, "384.00 MB"),
            ((1 << 30) - 1, "1.00 GB"),
            (i64::MAX as u64, "8.00 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(in_binary_units(bytes), text);
        }
    }
}
