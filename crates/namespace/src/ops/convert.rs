//! Conversion of files between copies alone and copies that go into contiguous groups.
//!
//! Blocks keep their ids and their bytes: what is missing of copies is made of what is there, and parities are made of
//! blocks as they are. So readers, snapshots and checksums notice nothing.

use crate::block;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::group;
use crate::inode::{self, FileRedundancy, Inode, InodeId};
use crate::ops::{Context, unpack};
use crate::outcome::{Conversion, Outcome};
use crate::snapshot::kept;
use crate::store::StoreRead;
use crate::{path, perm, policy_admin, usage, waiting};
use cairn_stripe::{PolicyId, PolicyLayout};

/// Has files kept in another way. Groups of which a file no longer wants to be a part are dissolved, the blocks of the
/// others in them wait for new ones. Quotas are asked for what a file takes more; whoever submits it bounds the number
/// of blocks.
///
/// Answer: `Outcome::Converted`, for each file in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convert {
    /// The files.
    pub files: Vec<InodeId>,
    /// The policy of the groups, by name; `replicate` for copies alone.
    pub policy: String,
}

encode_struct!(Convert { files, policy });

/// The policy of the groups into which files of a policy by that name go; none for copies alone.
pub fn target(store: &dyn StoreRead, policy: &str) -> Result<Option<PolicyId>> {
    let id = policy_admin::enabled(store, policy)?;
    if id == PolicyId::REPLICATION {
        return Ok(None);
    }
    match store.policy(id)?.layout {
        PolicyLayout::Contiguous => Ok(Some(id)),
        PolicyLayout::Striped => Err(NamespaceError::HadoopIllegalArgument(format!(
            "Files cannot be converted to {policy}, whose groups are striped"
        ))),
    }
}

impl Convert {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let target = target(cx.store, &self.policy)?;
        let mut converted = Vec::with_capacity(self.files.len());
        for file in &self.files {
            converted.push(convert(cx, *file, target)?);
        }
        Ok(Outcome::Converted(converted))
    }
}

fn convert(cx: &mut Context<'_, '_>, id: InodeId, target: Option<PolicyId>) -> Result<Conversion> {
    let Some(mut at) = path::of_inode(cx.store, id)? else { return Ok(Conversion::Gone) };
    let Some(inode) = at.chain.pop().filter(|inode| !inode.is_directory()) else {
        return Ok(Conversion::Gone);
    };
    let (above, mut inode) = (at.chain, Inode::clone(&inode));
    let Some(file) = inode.file_mut() else { return Ok(Conversion::Gone) };
    let Some(copies) = file.redundancy.copies() else { return Ok(Conversion::Striped) };
    let wanted = match target {
        Some(policy) => FileRedundancy::Contiguous { copies, policy },
        None => FileRedundancy::Replicated(copies),
    };
    if file.redundancy == wanted {
        // They may not have been waited for so far, as short ones before packing was switched on.
        await_groups(cx, &inode)?;
        return Ok(Conversion::Same);
    }
    let before = usage::counted(cx.store, &above, &inode)?;
    if let Some(file) = inode.file_mut() {
        file.redundancy = wanted;
    }
    let more = usage::counted(cx.store, &above, &inode)?.minus(before);
    match usage::verify(cx.store, &above, more) {
        Ok(()) => {}
        Err(NamespaceError::Store(error)) => return Err(error.into()),
        Err(exceeded) => return Ok(Conversion::Refused(exceeded.to_string())),
    }
    usage::charge(cx.store, &above, more)?;
    inode::put(cx.store, &inode)?;
    leave_groups(cx, id, target)?;
    unpack::ask_of_file(cx.store, id, target)?;
    await_groups(cx, &inode)?;
    Ok(Conversion::Done)
}

/// Has the groups dissolved in which blocks of a file are, those too that only snapshots have, and that are of another
/// policy.
fn leave_groups(cx: &mut Context<'_, '_>, file: InodeId, target: Option<PolicyId>) -> Result<()> {
    for id in kept::all_blocks(cx.store, file)? {
        let membership = block::get(cx.store, id)?.and_then(|block| block.group);
        let Some(membership) = membership else { continue };
        let group = group::expect(cx.store, membership.handle)?;
        if Some(group.policy) != target {
            group::begin_dissolving(cx.store, group, cx.times.elapsed_ms)?;
        }
    }
    Ok(())
}

/// Has the blocks of a file wait for groups, or no more.
fn await_groups(cx: &mut Context<'_, '_>, inode: &Inode) -> Result<()> {
    let Some(file) = inode.file() else { return Ok(()) };
    // It was quiet since then, unless somebody has set the time.
    let quiet_ms = cx.times.wall_ms.saturating_sub(inode.mtime);
    let closed_ms = cx.times.elapsed_ms.saturating_sub(quiet_ms);
    for index in 0..file.block_count as u32 {
        let (_, block) = block::at(cx.store, inode.id, index)?;
        if block.is_coded() {
            continue;
        }
        waiting::forget(cx.store, block.id)?;
        if !file.redundancy.is_contiguous() {
            continue;
        }
        match file.writer {
            None => waiting::closed_block(cx.store, cx.settings, file, &block, closed_ms)?,
            Some(_) if block::is_at_open_end(inode, &block) => {}
            Some(_) => {
                waiting::left_behind(cx.store, cx.settings, file, &block, cx.times.elapsed_ms)?
            }
        }
    }
    Ok(())
}
