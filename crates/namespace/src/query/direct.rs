//! One file or directory read where it lies, without a copy of its record.
//!
//! For calls that find what they ask for in the current tree, and may have it: nearly all. Whatever is unusual is left
//! to the questions in [`super`], which say why.

use super::page::{Entry, Reader};
use crate::block::Block;
use crate::caller::Caller;
use crate::error::Result;
use crate::inode::{self, File, Inode, InodeId, Kind};
use crate::ops::xattr;
use crate::path::RESERVED;
use crate::perm;
use crate::settings::{self, Settings};
use crate::snapshot::DOT_SNAPSHOT;
use crate::store::StoreRead;
use std::sync::Arc;

/// Most paths have no more names.
const USUAL_DEPTH: usize = 16;

/// The directories from the root to the one that a name is asked of, and that name.
type Way<'a> = (Vec<Arc<Inode>>, &'a str);

/// The directories on the way to a path, and its last name; none if the path leads elsewhere than
/// down the current tree, or the caller may not pass.
fn way<'a>(
    store: &dyn StoreRead,
    settings: &Settings,
    caller: &Caller,
    path: &'a str,
) -> Result<Option<Way<'a>>> {
    let Some(below) = path.strip_prefix('/') else { return Ok(None) };
    let mut names = below.split('/').filter(|name| !name.is_empty());
    let Some(mut name) = names.next().filter(|name| *name != RESERVED) else { return Ok(None) };
    let mut chain = Vec::with_capacity(USUAL_DEPTH);
    let mut at = inode::expect_shared(store, InodeId::ROOT)?;
    loop {
        let is_open = at.is_directory() && perm::may_pass(settings, caller, &at);
        if !is_open || name == DOT_SNAPSHOT {
            return Ok(None);
        }
        let above = at.id;
        chain.push(at);
        let Some(next) = names.next() else { return Ok(Some((chain, name))) };
        let Some(child) = store.child(above, name)? else { return Ok(None) };
        (at, name) = (child, next);
    }
}

/// As [`super::get_file_info`], if it is answered here: whether `visit` was called.
pub fn visit_file_info(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> Result<bool> {
    let settings = settings::get(store)?;
    let Some((chain, name)) = way(store, &settings, caller, path)? else { return Ok(false) };
    let mut reader = Reader::below(store, &chain, visit)?;
    let mut shown = Ok(());
    let found = store.look_up(chain[chain.len() - 1].id, name, &mut |inode| {
        shown = reader.show_inode(inode, 0);
    })?;
    shown?;
    Ok(found)
}

/// A file of one block at most, as [`super::FileBlocks`].
pub struct SmallFile<'a> {
    /// The file.
    pub entry: &'a Entry<'a>,
    /// What only files have.
    pub file: &'a File,
    /// Its block.
    pub block: Option<&'a Block>,
    /// Whether the block holds bytes of the range.
    pub is_in_range: bool,
    /// Whether the access time is old enough to be set by `TouchAccessTime`.
    pub touch: bool,
}

/// As [`super::get_blocks`], if it is answered here: whether `visit` was called.
pub fn visit_small_file(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
    (offset, len): (u64, u64),
    now_ms: u64,
    visit: &mut dyn FnMut(&SmallFile<'_>),
) -> Result<bool> {
    let settings = settings::get(store)?;
    let Some((chain, name)) = way(store, &settings, caller, path)? else { return Ok(false) };
    let mut is_told = false;
    let mut show = |entry: &Entry<'_>| -> Result<()> {
        let inode = entry.inode;
        let Kind::File(file) = &inode.kind else { return Ok(()) };
        let may_read = perm::mode_lets_read(&settings, caller, inode);
        if file.block_count > 1
            || !may_read
            || xattr::check_readable(store, &settings, caller, inode.id).is_err()
        {
            return Ok(());
        }
        let block = match file.block_count {
            0 => None,
            _ => Some(store.first_block(inode.id)?.1),
        };
        let is_in_range = block.as_ref().is_some_and(|block| {
            let is_empty_tail = block.len == 0 && len == u64::MAX;
            block.len > offset || is_empty_tail || !block.is_final()
        });
        let precision = settings.access_time_precision_ms;
        let touch = precision > 0 && now_ms > inode.atime.saturating_add(precision);
        visit(&SmallFile { entry, file, block: block.as_ref(), is_in_range, touch });
        is_told = true;
        Ok(())
    };
    let mut told = Ok(());
    let mut visit_entry = |entry: &Entry<'_>| told = show(entry);
    let mut reader = Reader::below(store, &chain, &mut visit_entry)?;
    let mut shown = Ok(());
    store.look_up(chain[chain.len() - 1].id, name, &mut |inode| {
        shown = reader.show_inode(inode, 0);
    })?;
    shown?;
    told?;
    Ok(is_told)
}
