//! Lengths for readers of an open file.

use crate::block;
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::inode::InodeId;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::usage;

/// Records how long the last block is for readers.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#fsync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fsync {
    /// The file.
    pub path: String,
    /// Its id, if the client sent it.
    pub file: Option<InodeId>,
    /// The lease holder.
    pub holder: String,
    /// Bytes of the last block; `None` leaves it.
    pub last_len: Option<u64>,
}

encode_struct!(Fsync { path, file, holder, last_len });

impl Fsync {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at =
            ops::open_file(cx.store, (cx.caller, cx.command), &self.path, self.file, &self.holder)?;
        let mut inode = at.existing()?.clone();
        let last = block::last(cx.store, &inode)?;
        if let (Some(told), Some(mut block)) = (self.last_len, last)
            && !block.is_final()
            && told > block.len
        {
            let len = ops::credible_len(cx, &inode, &block, told)?;
            let above = &at.chain[..at.chain.len() - 1];
            usage::set_last_len(cx.store, above, &mut inode, &mut block, len)?;
        }
        Ok(Outcome::Done)
    }
}
