//! A member of a contiguous group that is decoded from its other units.

use super::super::reconstruct::{Decoder, Group, Place};
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::node::virtuals::Located;
use std::sync::Arc;

/// A member of a group.
pub(super) struct Decodable {
    pub(super) group: Arc<Group>,
    pub(super) slot: usize,
    sources: Vec<Place>,
    located: Arc<Located>,
}

impl Decodable {
    /// The group of a member, and what it can be decoded from, as the NameNode says.
    pub(super) fn found(member: &Block, located: &Arc<Located>) -> Result<Option<Decodable>> {
        let Some(record) = &located.answer.record else { return Ok(None) };
        let group = Group::decode(&member.pool, record)?;
        let slot = group.slot_of(member.id, member.gs);
        let slot = slot.ok_or_else(|| DataNodeError::peer("it is in another group"))?;
        let sources = group.places(&located.answer.sources)?;
        let (group, located) = (Arc::new(group), located.clone());
        Ok(Some(Decodable { group, slot, sources, located }))
    }

    pub(super) fn decoder(&self, node: &Arc<Node>) -> Decoder {
        Decoder::new(node, &self.group, self.slot, &self.sources)
    }

    pub(super) async fn sums(&self, decoder: &mut Decoder) -> Result<Arc<Vec<u8>>> {
        let decode = move || async move { decoder.sums().await.map(Arc::new) };
        self.located.sums.get_or_try_init(decode).await.cloned()
    }

    pub(super) fn block(&self) -> Block {
        self.group.block(self.slot)
    }
}
