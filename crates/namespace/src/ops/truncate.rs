//! Cutting files off.

use crate::apply::Outcome;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy};
use crate::ops::lease as lease_ops;
use crate::ops::{self, Context};
use crate::path::Purpose;
use crate::perm::{self, Access};
use crate::{block, tree};

/// Cuts a replicated file off at a block boundary.
///
/// Answer: `Outcome::Removed` with `done` true.
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
        let old_len = file.len;
        let (holder, machine) = (&self.holder, &self.client_machine);
        lease_ops::refuse_if_open(cx, "TRUNCATE_FILE", &at, holder, machine)?;
        if self.new_len > old_len {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "Cannot truncate to a larger file size. Current size: {old_len}, truncate size: {}.",
                self.new_len
            )));
        }
        let mut blocks = Vec::new();
        while let Some(last) = block::last(cx.store, &inode)? {
            let offset = block::position(cx.store, inode.id, last.index)?.offset;
            if offset.saturating_add(last.len) <= self.new_len {
                break;
            }
            if offset < self.new_len {
                return Err(NamespaceError::UnsupportedOperation(format!(
                    "Cannot truncate {} to {}: only whole blocks can be cut off",
                    at.path, self.new_len
                )));
            }
            let mut last = last;
            let above = &at.chain[..at.chain.len() - 1];
            tree::set_last_len(cx.store, above, &mut inode, &mut last, 0)?;
            blocks.extend(tree::remove_last_block(cx.store, &mut inode)?);
        }
        if old_len != self.new_len {
            inode.mtime = cx.now_ms;
        }
        inode::put(cx.store, &inode)?;
        Ok(Outcome::Removed { done: true, blocks, more: false })
    }
}
