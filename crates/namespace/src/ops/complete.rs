//! Closing a file.

use crate::block::{self, BlockRef};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::tree;

/// Commits the last block and closes the file if its blocks have enough replicas.
///
/// Answer: `Outcome::Flag`: whether the file is closed now; if not, the client asks again.
///
/// Source: Hadoop 3.5.0 `FSDirWriteFileOp#completeFile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// The last block with its length; `None` if the file has none.
    pub last: Option<BlockRef>,
    /// CRC32C of the last block's units, as far as reported.
    pub last_crcs: Vec<Option<u32>>,
    /// Whether every block of the file has its minimum of replicas, or may lack it.
    pub min_replicated: bool,
}

encode_struct!(Complete { path, file, holder, last, last_crcs, min_replicated });

impl Complete {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = match ops::open_file(
            cx.store,
            (cx.caller, cx.command),
            &self.path,
            self.file,
            &self.holder,
        ) {
            Err(NamespaceError::LeaseExpired(_)) if self.is_retry(cx)? => {
                return Ok(Outcome::Flag(true));
            }
            result => result?,
        };
        let mut inode = at.existing()?.clone();
        if let Some(last) = self.last {
            ops::commit_last(cx, &at, &mut inode, last, &self.last_crcs, self.min_replicated)?;
        }
        let uncommitted = block::last(cx.store, &inode)?.is_some_and(|block| !block.is_final());
        if uncommitted || !self.min_replicated {
            return Ok(Outcome::Flag(false));
        }
        tree::close(cx.store, cx.settings, &mut inode, cx.times)?;
        Ok(Outcome::Flag(true))
    }

    /// Whether the file was closed by an earlier call with the same last block.
    fn is_retry(&self, cx: &Context<'_, '_>) -> Result<bool> {
        let at = match self.file {
            Some(id) => path::of_inode(cx.store, id)?,
            None => Some(cx.resolve(&self.path, Purpose::Use)?),
        };
        let Some(inode) = at.as_ref().and_then(Resolved::target) else { return Ok(false) };
        if inode.file().is_none_or(|file| file.writer.is_some()) {
            return Ok(false);
        }
        let last = block::last(cx.store, inode)?;
        Ok(last.map(|b| (b.id, b.gs)) == self.last.map(|b| (b.id, b.gs)))
    }
}
