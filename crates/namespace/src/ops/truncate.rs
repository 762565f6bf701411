//! Cutting files off.

use crate::apply::{BlockRecovery, Outcome};
use crate::block::{self, BlockState};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode, Writer};
use crate::ops::lease as lease_ops;
use crate::ops::{self, Context, counter, set_storage_policy};
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::snapshot::capture;
use crate::{lease, tree, usage};

/// Cuts a replicated file off. Inside a block the file is open until DataNodes have cut the block off, as
/// a recovery of it.
///
/// Answer: `Outcome::Removed` if it is done, or is being done already (`done` false then);
/// `Outcome::Recovery` with work if a block must be cut off.
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
        if matches!(file.redundancy, FileRedundancy::Striped(_)) {
            return Err(NamespaceError::UnsupportedOperation(format!(
                "Cannot truncate file with striped block {}",
                at.path
            )));
        }
        if set_storage_policy::is_lazy(&at.chain) {
            let what = format!("Cannot truncate lazy persist file {}", at.path);
            return Err(NamespaceError::UnsupportedOperation(what));
        }
        let old_len = file.len;
        let (holder, machine) = (&self.holder, &self.client_machine);
        if let Some(last) = block::last(cx.store, &inode)?
            && let Some(left) = last.truncated_len()
        {
            if self.new_len == old_len - last.len + left {
                return Ok(Outcome::Removed { done: false, blocks: Vec::new(), more: false });
            }
            let reason = format!("{} is being truncated.", at.path);
            let text = lease_ops::refusal("TRUNCATE_FILE", &at, holder, machine, &reason);
            return Err(NamespaceError::AlreadyBeingCreated(text));
        }
        lease_ops::refuse_if_open(cx, "TRUNCATE_FILE", &at, holder, machine)?;
        if self.new_len == old_len {
            return Ok(Outcome::Removed { done: true, blocks: Vec::new(), more: false });
        }
        if self.new_len > old_len {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "Cannot truncate to a larger file size. Current size: {old_len}, truncate size: {}.",
                self.new_len
            )));
        }
        let mut blocks = Vec::new();
        let mut left_in_last = 0;
        while let Some(mut last) = block::last(cx.store, &inode)? {
            let offset = block::position(cx.store, inode.id, last.index)?.offset;
            if offset < self.new_len {
                left_in_last = self.new_len - offset;
                break;
            }
            let above = &at.chain[..at.chain.len() - 1];
            usage::set_last_len(cx.store, above, &mut inode, &mut last, 0)?;
            blocks.extend(tree::remove_last_block(cx.store, &mut inode)?);
        }
        inode.mtime = cx.now_ms;
        let cut = block::last(cx.store, &inode)?.filter(|last| left_in_last < last.len);
        let Some(mut cut) = cut else {
            inode::put(cx.store, &inode)?;
            return Ok(Outcome::Removed { done: true, blocks, more: false });
        };
        if capture::is_held(cx.store, inode.id)? {
            return Err(NamespaceError::UnsupportedOperation(format!(
                "Cannot truncate {} to {}: a snapshot has the block that is to be cut off",
                at.path, self.new_len
            )));
        }
        self.open(cx, &mut inode)?;
        let recovery_gs = counter::next_stamp(cx.store)?;
        cut.state = BlockState::UnderTruncation {
            recovery_gs,
            started_ms: cx.now_ms,
            new_len: left_in_last,
        };
        block::put(cx.store, &cut)?;
        let work = inode.file().map(|file| BlockRecovery {
            block: cut,
            redundancy: file.redundancy,
            recovery_gs,
        });
        Ok(Outcome::Recovery { closed: false, work, removed: blocks })
    }

    /// Source: Hadoop 3.5.0 `FSDirTruncateOp#prepareFileForTruncate`.
    fn open(&self, cx: &mut Context<'_, '_>, inode: &mut Inode) -> Result<()> {
        let id = inode.id;
        if let Some(file) = inode.file_mut() {
            file.writer = Some(Writer {
                holder: self.holder.clone(),
                client_machine: self.client_machine.clone(),
            });
        }
        inode::put(cx.store, inode)?;
        lease::add(cx.store, &self.holder, id, cx.now_ms)
    }
}
