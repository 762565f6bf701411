//! Packing anew: what lives in a container of which much is dead goes into other containers.
//!
//! Its blocks wait as small blocks do that are plain; whoever packs them reads them from where they are. Each is in the
//! old container until it is packed in the new one, and when none is left the old one ends as one does whose files were
//! all deleted.

use crate::block;
use crate::container::{self, ContainerState};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::ops::Context;
use crate::ops::group::refused;
use crate::ops::pack::{PACKED_AT_ONCE, wants_more_copies};
use crate::outcome::Outcome;
use crate::{perm, unpacking, waiting};
use cairn_stripe::BlockId;

/// Has the next blocks of a container wait for others.
///
/// Answer: `Outcome::Flag`, whether all do, or `GroupRefused` if nothing is packed in it, or not all yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repack {
    /// The container.
    pub container: BlockId,
}

encode_struct!(Repack { container });

impl Repack {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let Some(mut container) = container::get(cx.store, self.container)? else {
            return refused(format!("there is no container {}", self.container));
        };
        let from = match container.state {
            ContainerState::Packed => 0,
            ContainerState::Emptying { next: Some(next) } => next,
            ContainerState::Emptying { next: None } => return Ok(Outcome::Flag(true)),
            _ => return refused(format!("{} is not packed yet", self.container)),
        };
        let rows = container::slots(cx.store, self.container, from, PACKED_AT_ONCE)?;
        for (_, member) in &rows {
            let Some(block) = block::get(cx.store, member.id)? else { continue };
            let is_here = block.packed.is_some_and(|at| at.container == self.container);
            if !is_here || unpacking::is_asked(cx.store, block.id)? {
                continue;
            }
            match wants_more_copies(cx.store, block.file)? {
                true => unpacking::ask(cx.store, block.id, true)?,
                false if waiting::due_of(cx.store, block.id)?.is_some() => {}
                false => waiting::begin_packed(cx.store, block.id, cx.times.elapsed_ms)?,
            }
        }
        let next = rows.last().filter(|_| rows.len() == PACKED_AT_ONCE).map(|(slot, _)| slot + 1);
        container.state = ContainerState::Emptying { next };
        container::put(cx.store, &container)?;
        Ok(Outcome::Flag(next.is_none()))
    }
}
