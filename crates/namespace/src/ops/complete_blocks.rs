//! Completing blocks of open files.

use crate::block::{self, BlockState};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::unit_crcs::BlockCrcs;
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::perm;

/// Completes committed blocks that have their minimum of replicas by now, though their file stays open:
/// from then on their redundancy is looked after.
///
/// Answer: `Outcome::Done`; blocks that are gone, have another stamp, are not committed, or come in their file after
/// one that is not complete are passed over.
///
/// Source: Hadoop 3.5.0 `BlockManager#addStoredBlock`, `#completeBlock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteBlocks {
    /// The blocks, and their units' CRCs as far as reported.
    pub blocks: Vec<BlockCrcs>,
}

encode_struct!(CompleteBlocks { blocks });

impl CompleteBlocks {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        for reported in &self.blocks {
            let Some(mut block) = block::get(cx.store, reported.id)? else { continue };
            if block.gs != reported.gs || block.state != BlockState::Committed {
                continue;
            }
            // What a removed file had is in snapshots, where blocks have no order to keep.
            if let Some(before) = block.index.checked_sub(1)
                && block::is_in_place(cx.store, &block)?
                && block::at(cx.store, block.file, before)?.1.state != BlockState::Complete
            {
                continue;
            }
            block.state = BlockState::Complete;
            ops::merge_crcs(&mut block.unit_crcs, &reported.units);
            block::put(cx.store, &block)?;
        }
        Ok(Outcome::Done)
    }
}
