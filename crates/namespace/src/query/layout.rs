//! How the blocks of files are kept, for those who convert them.

use crate::block::{self, Block};
use crate::error::Result;
use crate::inode::{FileRedundancy, InodeId};
use crate::store::StoreRead;
use crate::{group, path, settings, storage_policy, usage};
use cairn_stripe::PolicyId;
use std::collections::BTreeMap;

/// How the blocks of a file are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLayout {
    /// How the file is to be kept.
    pub redundancy: FileRedundancy,
    /// Its directory.
    pub parent: InodeId,
    /// Its bytes.
    pub len: u64,
    /// Bytes on disk as quotas count them.
    pub space: u64,
    /// Bytes in contiguous groups, by the policies of these.
    pub grouped: BTreeMap<PolicyId, u64>,
    /// Bytes in blocks that are packed.
    pub packed: u64,
    /// Bytes in groups that are being dissolved.
    pub leaving: u64,
    /// The lengths of blocks that are in no group and that may be in one, in their order.
    pub groupable: Vec<u64>,
}

/// That of a file; `None` if it was deleted, or is a directory. Checks no permissions.
pub fn file_layout(store: &dyn StoreRead, id: InodeId) -> Result<Option<FileLayout>> {
    let Some(mut at) = path::of_inode(store, id)? else { return Ok(None) };
    let Some(inode) = at.chain.pop() else { return Ok(None) };
    let Some(file) = inode.file() else { return Ok(None) };
    let policy = storage_policy::in_force(&at.chain, &inode);
    let space = usage::of_blocks(store, &inode, policy)?.space;
    let mut found = FileLayout {
        redundancy: file.redundancy,
        parent: inode.parent,
        len: file.len,
        space: space.try_into().unwrap_or(0),
        grouped: BTreeMap::new(),
        packed: 0,
        leaving: 0,
        groupable: Vec::new(),
    };
    if file.redundancy.is_striped() {
        return Ok(Some(found));
    }
    let len_min = settings::get(store)?.group_len_min.max(1);
    let may_be_grouped = |block: &Block| {
        let is_known = block.unit_crcs.first().is_some_and(Option::is_some);
        block.is_final() && is_known && block.len >= len_min
    };
    for index in 0..file.block_count as u32 {
        let (_, block) = block::at(store, id, index)?;
        match block.group {
            Some(of) => {
                let group = group::expect(store, of.handle)?;
                if group.is_dissolving() {
                    found.leaving += block.len;
                } else {
                    *found.grouped.entry(group.policy).or_default() += block.len;
                }
            }
            None if block.packed.is_some() => found.packed += block.len,
            None if may_be_grouped(&block) => found.groupable.push(block.len),
            None => {}
        }
    }
    Ok(Some(found))
}
