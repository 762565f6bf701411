//! Whether what is in a store hangs together: each record that another one speaks of is there and says the same.

use crate::block::{self, Block, PackedIn, index_of, position_from, position_key};
use crate::container::{self, ContainerState};
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId, child_id, child_key};
use crate::snapshot;
use crate::store::{StoreRead, Table};
use std::ops::ControlFlow;

/// Records that one scan of a table gets.
const PAGE: usize = 1000;

/// What there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Files and directories.
    pub inodes: u64,
    /// Blocks and block groups.
    pub blocks: u64,
}

/// Looks at all of a namespace and tells `problem` what is wrong. Fails where the store cannot be read; a record that
/// makes no sense is a problem like others.
pub fn check(store: &dyn StoreRead, problem: &mut dyn FnMut(String)) -> Result<Checked> {
    let mut checked = Checked::default();
    each(store, Table::Inode, &mut |key, value| {
        checked.inodes += 1;
        tell(check_inode(store, key, value), problem)
    })?;
    each(store, Table::Child, &mut |key, value| tell(check_child(store, key, value), problem))?;
    each(store, Table::FileBlock, &mut |key, value| {
        tell(check_position(store, key, value), problem)
    })?;
    each(store, Table::Block, &mut |key, value| {
        checked.blocks += 1;
        tell(check_block(store, key, value), problem)
    })?;
    each(store, Table::Container, &mut |_, value| tell(check_container(store, value), problem))?;
    // What only snapshots have is counted, and is not in the table.
    let mut removed = snapshot::all_removed(store)?;
    removed.dedup();
    checked.inodes += removed.len() as u64;
    let counted =
        [("inodes", Counter::Inodes, checked.inodes), ("blocks", Counter::Blocks, checked.blocks)];
    for (what, counter, there) in counted {
        let counted = counter::get(store, counter)?;
        if counted != there {
            problem(format!("{counted} {what} are counted, and {there} are there"));
        }
    }
    Ok(checked)
}

/// What is wrong with a record, if anything is.
type Wrong = std::result::Result<(), String>;

fn tell(checked: Result<Wrong>, problem: &mut dyn FnMut(String)) -> Result<()> {
    match checked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(wrong)) => {
            problem(wrong);
            Ok(())
        }
        // Another record that makes no sense: it is told of where it is.
        Err(NamespaceError::Store(error @ crate::store::StoreError::Corrupt { .. })) => {
            problem(error.to_string());
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// What is called with keys and values.
type Look<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Calls `look` for each record of a table, outside of its scan.
fn each(store: &dyn StoreRead, table: Table, look: Look<'_>) -> Result<()> {
    let mut from = Vec::new();
    loop {
        let mut page: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        store.scan(table, &from, &[], &mut |key, value| {
            page.push((key.to_vec(), value.to_vec()));
            if page.len() < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        for (key, value) in &page {
            look(key, value)?;
        }
        match page.pop() {
            // The next key there can be.
            Some((last, _)) if page.len() + 1 == PAGE => from = [&last[..], &[0]].concat(),
            _ => return Ok(()),
        }
    }
}

fn name_of(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// An inode is found under its name.
fn check_inode(store: &dyn StoreRead, key: &[u8], value: &[u8]) -> Result<Wrong> {
    let Inode { id, parent, name, .. } = inode::from_bytes(value)?;
    if key != id.key() {
        return Ok(Err(format!("inode {id} is at the key {}", name_of(key))));
    }
    if id == InodeId::ROOT || parent == InodeId::NONE {
        return Ok(Ok(()));
    }
    Ok(match inode::child(store, parent, &name)? {
        Some(found) if found == id => Ok(()),
        Some(found) => {
            Err(format!("inode {id}, {name} in {parent}: there is {found} of that name"))
        }
        None => Err(format!("inode {id}, {name} in {parent}: it is not found under that name")),
    })
}

/// A name leads to an inode that has it.
fn check_child(store: &dyn StoreRead, key: &[u8], value: &[u8]) -> Result<Wrong> {
    let (id, at) = (child_id(value)?, name_of(key));
    let Some(inode) = inode::get(store, id)? else {
        return Ok(Err(format!("the entry {at} leads to inode {id}, which is not there")));
    };
    if child_key(inode.parent, &inode.name) != key {
        let (parent, name) = (inode.parent, inode.name);
        return Ok(Err(format!("the entry {at} leads to inode {id}, which is {name} in {parent}")));
    }
    let parent = inode::get(store, inode.parent)?;
    Ok(match parent.is_some_and(|parent| parent.is_directory()) {
        true => Ok(()),
        false => Err(format!("inode {id} is in {}, which is no directory", inode.parent)),
    })
}

/// A place in a file has a block that is of that file.
fn check_position(store: &dyn StoreRead, key: &[u8], value: &[u8]) -> Result<Wrong> {
    let (position, at) = (position_from(value)?, name_of(key));
    let file = key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
    let (Some(file), Some(index)) = (file, index_of(key)) else {
        return Ok(Err(format!("the key {at} names no place of a file")));
    };
    let is_file = inode::get(store, file)?.is_some_and(|inode| inode.file().is_some());
    if !is_file {
        return Ok(Err(format!("block {index} of inode {file}: that is no file")));
    }
    Ok(match block::get(store, position.id)? {
        None => Err(format!("block {index} of file {file} is {}, which is not there", position.id)),
        Some(block) if (block.file, block.index) != (file, index) => {
            let Block { id, file: other, index: there, .. } = block;
            Err(format!("block {index} of file {file} is {id}, which is block {there} of {other}"))
        }
        Some(_) => Ok(()),
    })
}

/// What is counted of a container is what is packed in it.
fn check_container(store: &dyn StoreRead, value: &[u8]) -> Result<Wrong> {
    let of = container::decode(value)?;
    let (mut from, mut live, mut live_len) = (0, 0, 0);
    loop {
        let rows = container::slots(store, of.id, from, PAGE)?;
        for (slot, member) in &rows {
            let packed = block::get(store, member.id)?.and_then(|block| block.packed);
            if packed.is_some_and(|at| (at.container, at.slot) == (of.id, *slot)) {
                live += 1;
                live_len += member.len;
            } else if matches!(
                of.state,
                ContainerState::Packed | ContainerState::Emptying { .. } | ContainerState::Found
            ) {
                return Ok(Err(format!("slot {slot} of container {} has no block", of.id)));
            }
        }
        match rows.last() {
            Some((last, _)) if rows.len() == PAGE => from = last + 1,
            _ => break,
        }
    }
    match (live, live_len) == (of.live, of.live_len) {
        true => Ok(Ok(())),
        false => Ok(Err(format!(
            "{} blocks of {} bytes are counted in container {}, and {live} of {live_len} are there",
            of.live, of.live_len, of.id
        ))),
    }
}

/// A block is at its place, or its file has others now and snapshots have it.
fn check_block(store: &dyn StoreRead, key: &[u8], value: &[u8]) -> Result<Wrong> {
    let Block { id, file, index, packed, .. } = block::decode(value)?;
    if key != block::key(id) {
        return Ok(Err(format!("block {id} is at the key {}", name_of(key))));
    }
    if let Some(PackedIn { container, slot, .. }) = packed {
        let row = container::slots(store, container, slot, 1)?;
        if !row.first().is_some_and(|(at, member)| *at == slot && member.id == id) {
            return Ok(Err(format!(
                "block {id} is packed in slot {slot} of {container}, which is not its own"
            )));
        }
    }
    if file == InodeId::CONTAINERS {
        return Ok(match container::get(store, id)? {
            Some(_) => Ok(()),
            None => Err(format!("there is no record of container {id}")),
        });
    }
    let is_there = file == InodeId::NONE
        || store.get(Table::FileBlock, &position_key(file, index))?.is_some()
        || inode::get(store, file)?.is_some()
        || snapshot::is_removed(store, file)?;
    Ok(if is_there {
        Ok(())
    } else {
        Err(format!("block {id} is of file {file}, which is not there"))
    })
}
