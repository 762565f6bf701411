//! Cutting files off.

use crate::block::{self, Block, BlockState, Position};
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, Writer};
use crate::ops::lease as lease_ops;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::snapshot::capture::BlockHolders;
use crate::snapshot::kept;
use crate::store::StoreRead;
use crate::usage::{self, Usage};
use crate::{lease, storage_policy, tree, waiting};
use std::sync::Arc;

/// Cuts a replicated file off. Inside a block the file is open until DataNodes have cut the block off, as
/// a recovery of it; if a snapshot has that block, until they have copied what stays of it to a new one.
///
/// Answer: `Outcome::Removed` if it is done, or is being done already (`done` false then);
/// `Outcome::Recovery`, not closed, if a block must be cut off. A packed block must be plain first
/// ([`NamespaceError::Packed`]).
///
/// Source: Hadoop 3.5.0 `FSDirTruncateOp#truncate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    /// The file.
    pub path: String,
    /// Its bytes after.
    pub new_len: u64,
    /// The client's name.
    pub holder: String,
    /// The client's host.
    pub client_machine: String,
}

encode_struct!(Truncate { path, new_len, holder, client_machine });

impl Truncate {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let mut inode = ops::existing_file(&at)?.clone();
        let Some(file) = inode.file() else { return Ok(Outcome::Done) };
        if file.redundancy.is_striped() {
            return Err(NamespaceError::UnsupportedOperation(format!(
                "Cannot truncate file with striped block {}",
                at.path
            )));
        }
        if storage_policy::is_lazy(&at.chain) {
            let what = format!("Cannot truncate lazy persist file {}", at.path);
            return Err(NamespaceError::UnsupportedOperation(what));
        }
        let old_len = file.len;
        let (holder, machine) = (&self.holder, &self.client_machine);
        if let Some(last) = block::last(cx.store, &inode)?
            && let Some(left) = self.asked_for(cx, &last)?
        {
            if self.new_len == old_len - last.len + left {
                return Ok(Outcome::Removed { done: false, more: false });
            }
            let reason = format!("{} is being truncated.", at.path);
            let text = lease_ops::refusal("TRUNCATE_FILE", &at, holder, machine, &reason);
            return Err(NamespaceError::AlreadyBeingCreated(text));
        }
        lease_ops::refuse_if_open(cx, "TRUNCATE_FILE", &at, holder, machine)?;
        if self.new_len == old_len {
            return Ok(Outcome::Removed { done: true, more: false });
        }
        if self.new_len > old_len {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "Cannot truncate to a larger file size. Current size: {old_len}, truncate size: {}.",
                self.new_len
            )));
        }
        let above = &at.chain[..at.chain.len() - 1];
        self.verify_quota(cx, above, &inode)?;
        let cut = cut_block(cx.store, &inode, self.new_len)?;
        if let Some(cut) = cut.as_ref().filter(|cut| cut.packed.is_some()) {
            return Err(NamespaceError::Packed(format!(
                "{} is to be cut off inside {}, which is being unpacked",
                at.path, cut.id
            )));
        }
        // What snapshots see stays as it is, and so does a member of a group.
        let is_held = match cut {
            Some(cut) => cut.group.is_some() || BlockHolders::of(cx.store, inode.id)?.hold(&cut)?,
            None => false,
        };
        let mut left_in_last = 0;
        while let Some(mut last) = block::last(cx.store, &inode)? {
            let offset = block::position(cx.store, inode.id, last.index)?.offset;
            if offset < self.new_len {
                left_in_last = self.new_len - offset;
                break;
            }
            usage::set_last_len(cx.store, above, &mut inode, &mut last, 0)?;
            tree::remove_last_block(cx.store, &mut inode)?;
        }
        inode.mtime = cx.times.wall_ms;
        let cut = block::last(cx.store, &inode)?.filter(|last| left_in_last < last.len);
        let Some(mut cut) = cut else {
            inode::put(cx.store, &inode)?;
            return Ok(Outcome::Removed { done: true, more: false });
        };
        self.open(cx, &mut inode)?;
        waiting::reopened(cx.store, &inode)?;
        let started_ms = cx.times.elapsed_ms;
        if is_held {
            let was = cut.clone();
            let source = was.id;
            cut.id = counter::next_block_id(cx.store, false)?;
            let recovery_gs = counter::next_stamp(cx.store)?;
            cut.gs = recovery_gs;
            cut.state = BlockState::UnderCopy { recovery_gs, started_ms, source };
            cut.unit_crcs.clear();
            cut.group = None;
            let offset = self.new_len - left_in_last;
            block::put_position(cx.store, inode.id, cut.index, Position { offset, id: cut.id })?;
            usage::replace_last(cx.store, above, &mut inode, &was, &mut cut, left_in_last)?;
            counter::add(cx.store, Counter::Blocks, 1)?;
        } else {
            let recovery_gs = counter::next_stamp(cx.store)?;
            let new_len = left_in_last;
            cut.state = BlockState::UnderTruncation { recovery_gs, started_ms, new_len };
            cut.reopened_gs = Some(cut.gs);
            block::put(cx.store, &cut)?;
        }
        Ok(Outcome::Recovery { closed: false })
    }

    /// The length of the last block for which a file that is being cut off takes another call to be the same one. As
    /// in Hadoop, for a block that is copied because a snapshot has it that is its length before.
    fn asked_for(&self, cx: &Context<'_, '_>, last: &Block) -> Result<Option<u64>> {
        let Some(source) = last.copy_source() else { return Ok(last.truncated_len()) };
        let Some(source) = block::get(cx.store, source)? else { return Ok(None) };
        let is_kept = source.group.is_none() || kept::is_block_kept(cx.store, &source)?;
        Ok(Some(if is_kept { source.len } else { last.len }))
    }

    /// Fails if a quota would be exceeded while the file is open, when a whole block counts for the one inside which
    /// it ends.
    ///
    /// Source: Hadoop 3.5.0 `INodeFile#computeQuotaDeltaForTruncate`.
    fn verify_quota(
        &self,
        cx: &Context<'_, '_>,
        above: &[Arc<Inode>],
        inode: &Inode,
    ) -> Result<()> {
        let Some(file) = inode.file().filter(|_| usage::has_quota(above)) else { return Ok(()) };
        let Some(kept) = usage::counted_redundancy(cx.store, inode)? else { return Ok(()) };
        let policy = cx.settings.storage_policy(storage_policy::in_force(above, inode)).id;
        let holders = BlockHolders::of(cx.store, inode.id)?;
        let mut more = Usage::default();
        for index in (0..file.block_count as u32).rev() {
            let (offset, block) = block::at(cx.store, inode.id, index)?;
            if offset + block.len <= self.new_len {
                break;
            }
            if offset < self.new_len {
                let whole = usage::of_bytes(cx.store, kept, policy, file.block_size)?;
                more = more.plus(whole);
            }
            if !holders.hold(&block)? {
                more = more.minus(usage::of_block(cx.store, kept, policy, &block, block.len)?);
            }
        }
        usage::verify(cx.store, above, more)
    }

    /// Source: Hadoop 3.5.0 `FSDirTruncateOp#prepareFileForTruncate`.
    fn open(&self, cx: &mut Context<'_, '_>, inode: &mut Inode) -> Result<()> {
        let id = inode.id;
        if let Some(file) = inode.file_mut() {
            file.writer = Some(Writer {
                holder: self.holder.clone(),
                client_machine: self.client_machine.clone(),
                began_after: None,
            });
        }
        inode::put(cx.store, inode)?;
        lease::add(cx.store, &self.holder, id, cx.times.elapsed_ms)
    }
}

/// The block inside which a file ends that is cut off at `new_len`.
pub(crate) fn cut_block(
    store: &dyn StoreRead,
    inode: &Inode,
    new_len: u64,
) -> Result<Option<Block>> {
    let Some(file) = inode.file() else { return Ok(None) };
    for index in (0..file.block_count as u32).rev() {
        let (offset, block) = block::at(store, inode.id, index)?;
        if offset < new_len {
            return Ok(Some(block).filter(|block| new_len - offset < block.len));
        }
    }
    Ok(None)
}
