//! Taking over a container that DataNodes have, and of whose group nothing is known: all its parities are lost.
//!
//! What is in it is taken over as of any that was found ([`super::adopt_packed`]), and then it waits for a group like one
//! that was sealed.

use crate::block::{self, Block, BlockRef, BlockState};
use crate::container::{self, Container};
use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::Result;
use crate::group::ChecksumShape;
use crate::inode::InodeId;
use crate::ops::Context;
use crate::ops::group::refused;
use crate::outcome::Outcome;
use crate::{perm, policy_admin, waiting};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, PolicyLayout};

/// Takes a container over that is in no group, and of which nobody knows yet what is in it ([`crate::container::ContainerState::Found`]). Who
/// submits it has seen that DataNodes have it and that files need what its index tells of.
///
/// Answer: `Outcome::Done`, or `GroupRefused` if the namespace has it, or may still give its numbers out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptContainer {
    /// The container.
    pub container: BlockId,
    /// Its stamp.
    pub gs: GenerationStamp,
    /// Its bytes.
    pub len: u64,
    /// CRC32C of these.
    pub crc32c: u32,
    /// The policy that the files of its blocks have.
    pub policy: PolicyId,
    /// How it and all in it are summed.
    pub checksum: ChecksumShape,
}

encode_struct!(AdoptContainer { container, gs, len, crc32c, policy, checksum });

impl AdoptContainer {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let AdoptContainer { container: id, gs, len, .. } = *self;
        let is_policy = policy_admin::all(cx.store)?.into_iter().any(|info| {
            info.policy.id == self.policy && info.policy.layout == PolicyLayout::Contiguous
        });
        if !is_policy {
            return refused(format!("no policy of contiguous groups has number {}", self.policy.0));
        }
        // Numbers that are still to be given out would come twice.
        let is_old = id.0 as u64 <= counter::get(cx.store, Counter::ContainerId)?
            && gs.0 <= counter::get(cx.store, Counter::GenerationStamp)?;
        if !id.is_container() || !is_old || len == 0 {
            return refused(format!("{id} cannot be taken over as a container"));
        }
        if block::get(cx.store, id)?.is_some() || container::get(cx.store, id)?.is_some() {
            return refused(format!("container {id} is known"));
        }
        container::put(cx.store, &Container::found((id, gs), self.policy, self.checksum))?;
        let place = (InodeId::CONTAINERS, 0);
        let block = Block::new(BlockRef { id, gs, len }, place, BlockState::Complete);
        block::put(cx.store, &Block { unit_crcs: vec![Some(self.crc32c)], ..block })?;
        counter::add(cx.store, Counter::Blocks, 1)?;
        waiting::begin_container(cx.store, id, cx.times.elapsed_ms)?;
        Ok(Outcome::Done)
    }
}
