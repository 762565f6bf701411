//! Opening a file at its end.

use crate::block::{self, Block, BlockState};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, Writer};
use crate::lease;
use crate::ops::Context;
use crate::ops::lease::{self as lease_ops, LastBlocks, TakeOver};
use crate::outcome::Outcome;
use crate::path::{Purpose, Resolved};
use crate::perm::{self, Access};
use crate::status::FileStatus;
use crate::{policy_admin, storage_policy, usage, waiting};
use std::sync::Arc;

/// Opens a file for writing at its end.
///
/// Answer: `Outcome::Appended` or `TakenOver`.
///
/// Source: Hadoop 3.5.0 `FSDirAppendOp#appendFile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The file.
    pub path: String,
    /// The client's name.
    pub holder: String,
    /// The client's host.
    pub client_machine: String,
    /// `CreateFlag.NEW_BLOCK`: leave the last block as it is.
    pub new_block: bool,
    /// What is known of its last blocks' replicas.
    pub replicas: LastBlocks,
}

encode_struct!(Append { path, holder, client_machine, new_block, replicas });

/// What an outcome tells of a file that is open again.
type Reopened = (Box<FileStatus>, Option<(u64, Block)>);

impl Append {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        if at.target().is_some_and(inode::Inode::is_directory) {
            return Err(NamespaceError::FileAlreadyExists(format!(
                "Cannot append to directory {}; already exists as a directory.",
                at.path
            )));
        }
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let Some(target) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!(
                "Failed to append to non-existent file {} for client {}",
                at.path, self.client_machine
            )));
        };
        let striped = target.file().is_some_and(|file| file.redundancy.is_striped());
        if striped && !self.new_block {
            return Err(NamespaceError::UnsupportedOperation(
                "Append on EC file without new block is not supported. Use NEW_BLOCK create flag \
                 while appending file."
                    .to_string(),
            ));
        }
        if storage_policy::is_lazy(&at.chain) {
            let what = format!("Cannot append to lazy persist file {}", at.path);
            return Err(NamespaceError::UnsupportedOperation(what));
        }
        let (holder, machine) = (&self.holder, &self.client_machine);
        match lease_ops::take_over(cx, "APPEND_FILE", &at, holder, machine, self.replicas)? {
            TakeOver::Waiting(outcome) => Ok(outcome),
            TakeOver::Closed => {
                let (status, last) = self.reopen(cx, at)?;
                Ok(Outcome::Appended { status, last })
            }
        }
    }

    /// Source: Hadoop 3.5.0 `FSDirAppendOp#prepareFileForAppend`.
    fn reopen(&self, cx: &mut Context<'_, '_>, mut at: Resolved) -> Result<Reopened> {
        let mut inode = inode::expect(cx.store, at.existing()?.id)?;
        let last = block::last(cx.store, &inode)?;
        // Nobody writes to a member of a group, of which one replica may be left, or none: it is as the others have it.
        // Nor to a packed block, of which none is left.
        let is_grouped = last.as_ref().is_some_and(Block::is_coded);
        let is_replicated = is_grouped || self.replicas.of(last.as_ref()).last_min_replicated;
        if last.is_some() && !is_replicated {
            return Err(NamespaceError::LastBlockNotReplicated(format!(
                "append: lastBlock={} of src={} is not sufficiently replicated yet.",
                last.map_or(String::new(), |block| format!("{}_{}", block.id, block.gs)),
                at.path
            )));
        }
        if let Some(last) = last.as_ref().filter(|last| !last.is_coded()) {
            verify_rest(cx, &at, &inode, last)?;
        }
        waiting::reopened(cx.store, &inode)?;
        let id = inode.id;
        let Some(file) = inode.file_mut() else {
            return Err(NamespaceError::FileNotFound(format!("Path is not a file: {}", at.path)));
        };
        let is_short = last.as_ref().is_some_and(|last| last.len < file.block_size);
        if is_short && file.redundancy.is_contiguous() {
            file.short_appends = file.short_appends.saturating_add(1);
        }
        let goes_on = is_short && !is_grouped && !self.new_block;
        file.writer = Some(Writer {
            holder: self.holder.clone(),
            client_machine: self.client_machine.clone(),
            began_after: last.as_ref().filter(|_| !goes_on).map(|last| last.id),
        });
        inode::put(cx.store, &inode)?;
        lease::add(cx.store, &self.holder, id, cx.times.elapsed_ms)?;
        let mut reopened = None;
        if let Some(mut block) = last.filter(|_| goes_on) {
            block.state = BlockState::UnderConstruction;
            block.unit_crcs.clear();
            let reopened_gs = Some(block.gs);
            block::put(cx.store, &Block { reopened_gs, ..block.clone() })?;
            reopened = Some((block::position(cx.store, id, block.index)?.offset, block));
        }
        at.chain.pop();
        at.chain.push(Arc::new(inode));
        let status = FileStatus::of(cx.store, &at)?
            .ok_or_else(|| NamespaceError::FileNotFound(at.path.clone()))?;
        Ok((Box::new(status.for_writer()), reopened))
    }
}

/// Fails if what is left of the last block would exceed a quota. As in Hadoop, where no storage policy is set the
/// default one says on which types it would be.
///
/// Source: Hadoop 3.5.0 `FSDirAppendOp#verifyQuotaForUCBlock`.
fn verify_rest(cx: &Context<'_, '_>, at: &Resolved, inode: &Inode, last: &Block) -> Result<()> {
    let above = &at.chain[..at.chain.len() - 1];
    let Some(file) = inode.file() else { return Ok(()) };
    let Some(redundancy) = usage::counted_redundancy(cx.store, inode)? else { return Ok(()) };
    let redundancy = match redundancy {
        FileRedundancy::Striped(id) => {
            let schema = policy_admin::by_id(cx.store, id)?.schema;
            FileRedundancy::Replicated(u16::from(schema.k) + u16::from(schema.m))
        }
        replicated => replicated,
    };
    let policy = cx.settings.storage_policy(storage_policy::in_force(above, inode)).id;
    let rest = file.block_size.saturating_sub(last.len);
    usage::verify(cx.store, above, usage::of_bytes(cx.store, redundancy, policy, rest)?)
}
