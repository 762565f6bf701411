//! Packed blocks that become plain again: because somebody asks for that, or because their container cannot be had.

use crate::block;
use crate::container;
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::inode::InodeId;
use crate::ops::Context;
use crate::ops::pack::{self, PACKED_AT_ONCE, wait_if_closed};
use crate::outcome::Outcome;
use crate::snapshot::{held, kept};
use crate::store::StoreTxn;
use crate::{perm, unpacking, waiting};
use cairn_stripe::{BlockId, PolicyId};

/// Has packed blocks be plain again as soon as DataNodes have written replicas of them.
///
/// Answer: `Outcome::Done`; those that are not packed stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginUnpack {
    /// The blocks, at most [`PACKED_AT_ONCE`].
    pub blocks: Vec<BlockId>,
    /// Whether they wait to be packed again then, where their files want that.
    pub waits: bool,
}

encode_struct!(BeginUnpack { blocks, waits });

/// Has packed blocks be plain again, of which whoever submits it has seen good replicas.
///
/// Answer: `Outcome::Done`; those that are not packed stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpack {
    /// The blocks.
    pub blocks: Vec<BlockId>,
}

encode_struct!(Unpack { blocks });

impl BeginUnpack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        for id in self.blocks.iter().take(PACKED_AT_ONCE) {
            if block::get(cx.store, *id)?.is_some_and(|block| block.packed.is_some()) {
                unpacking::ask(cx.store, *id, self.waits)?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Unpack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        for id in self.blocks.iter().take(PACKED_AT_ONCE) {
            let waits = unpacking::asked(cx.store, *id)?.unwrap_or(true);
            unpacking::forget(cx.store, *id)?;
            let Some(block) = block::get(cx.store, *id)? else { continue };
            if block.packed.is_none() {
                continue;
            }
            waiting::forget(cx.store, block.id)?;
            container::leave(cx.store, &block, block.len)?;
            let block = held::set_packed(cx.store, block, None)?;
            if waits {
                wait_if_closed(cx.store, cx.settings, &block, cx.times.elapsed_ms)?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Has those blocks of a file be plain again that are in containers of another policy than the file has now, or all that
/// are packed; those that are where the file wants them stay there.
pub(super) fn ask_of_file(
    store: &mut dyn StoreTxn,
    file: InodeId,
    wanted: Option<PolicyId>,
) -> Result<()> {
    for id in kept::all_blocks(store, file)? {
        let packed = block::get(store, id)?.and_then(|block| block.packed);
        let Some(packed) = packed else { continue };
        let container = container::expect(store, packed.container)?;
        if Some(container.policy) != wanted {
            unpacking::ask(store, id, true)?;
        } else if unpacking::is_asked(store, id)? && !pack::wants_more_copies(store, file)? {
            unpacking::forget(store, id)?;
            if container.is_emptying() {
                waiting::begin_packed(store, id, 0)?;
            }
        }
    }
    Ok(())
}
