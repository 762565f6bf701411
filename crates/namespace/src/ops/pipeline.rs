//! Generation stamps for pipelines that broke.

use crate::block::{self, Block, BlockRef, BlockState};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Resolved};
use crate::{counter, usage};

/// Gives out a new generation stamp for a broken pipeline.
///
/// Answer: `Outcome::Stamp`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#bumpBlockGenerationStamp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateBlockForPipeline {
    /// The lease holder.
    pub holder: String,
    /// The block, which is under construction.
    pub block: BlockRef,
}

encode_struct!(UpdateBlockForPipeline { holder, block });

impl UpdateBlockForPipeline {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        open_block(cx, self.block, &self.holder)?;
        Ok(Outcome::Stamp(counter::next_stamp(cx.store)?))
    }
}

/// Moves a block to the new stamp, which leaves the replicas of the old pipeline stale.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#updatePipeline`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePipeline {
    /// The lease holder.
    pub holder: String,
    /// The block as it was.
    pub old: BlockRef,
    /// The block with its new stamp and length.
    pub new: BlockRef,
}

encode_struct!(UpdatePipeline { holder, old, new });

impl UpdatePipeline {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let (at, mut block) = open_block(cx, self.old, &self.holder)?;
        let name = |b: BlockRef| format!("{}_{}", b.id, b.gs);
        if self.new.gs <= block.gs {
            return Err(NamespaceError::Io(format!(
                "Update {} but the new block {} does not have a larger generation stamp than the \
                 last block {}",
                name(self.old),
                name(self.new),
                name(block.reference())
            )));
        }
        if self.new.len < block.len {
            return Err(NamespaceError::Io(format!(
                "Update {} (size={}) to a smaller size block {} (size={})",
                name(self.old),
                self.old.len,
                name(self.new),
                self.new.len
            )));
        }
        block.gs = self.new.gs;
        block.unit_crcs.clear();
        let above = &at.chain[..at.chain.len() - 1];
        let mut inode = at.existing()?.clone();
        let len = ops::credible_len(cx, &inode, &block, self.new.len)?;
        usage::set_last_len(cx.store, above, &mut inode, &mut block, len)?;
        Ok(Outcome::Done)
    }
}

/// The way to the file of a block that `holder` writes, and the block.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#checkUCBlock`.
fn open_block(cx: &Context<'_, '_>, named: BlockRef, holder: &str) -> Result<(Resolved, Block)> {
    let name = format!("{}_{}", named.id, named.gs);
    let block = block::get(cx.store, named.id)?
        .ok_or_else(|| NamespaceError::Io(format!("{name} does not exist.")))?;
    if block.state != BlockState::UnderConstruction {
        let state = match block.state {
            BlockState::UnderConstruction => "UNDER_CONSTRUCTION",
            BlockState::UnderRecovery { .. }
            | BlockState::UnderTruncation { .. }
            | BlockState::UnderCopy { .. } => "UNDER_RECOVERY",
            BlockState::Committed => "COMMITTED",
            BlockState::Complete => "COMPLETE",
        };
        return Err(NamespaceError::Io(format!(
            "Unexpected BlockUCState: {name} is {state} but not UNDER_CONSTRUCTION"
        )));
    }
    let at = path::of_inode(cx.store, block.file)?;
    let writer = at.as_ref().and_then(|at| at.target()?.file()?.writer.as_ref());
    match (&at, writer) {
        (Some(at), Some(writer)) if writer.holder == holder => Ok((at.clone(), block)),
        (Some(_), Some(_)) => Err(NamespaceError::LeaseExpired(format!(
            "Lease mismatch: {name} is accessed by a non lease holder {holder}"
        ))),
        _ => Err(NamespaceError::Io(format!(
            "The file {name} belonged to does not exist or it is not under construction."
        ))),
    }
}
