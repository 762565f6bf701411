//! What a writer was told is safe of an open block, and is left on a DataNode under the stamp that the block has or one that it
//! had before, is not dropped by a recovery, nor deleted where nobody else has it.

use crate::name_node::NameNode;
use crate::tasks::{Recovery, Told};
use crate::world::World;
use cairn_namespace::query::BlockInfo;
use cairn_redundancy::BlockRef;
use cairn_replica::ReplicaState;
use cairn_stripe::{BlockId, GenerationStamp};

impl World<'_> {
    /// Looks at what a recovery has made of a replicated block, before the NameNode is told.
    pub(crate) fn check_kept(&mut self, recovery: &Recovery, told: &Told) {
        let (id, recovery_id) = (recovery.order.block, recovery.order.recovery_id);
        let Some(info) = self.name_node.block(id).filter(|_| !id.has_units()) else { return };
        let is_current = info.block.recovery().is_some_and(|(current, _)| current == recovery_id);
        if !is_current || info.block.copy_source().is_some() || info.block.truncated_len().is_some()
        {
            return;
        }
        let len = told.len.unwrap_or(0);
        let nodes = (0..self.nodes.len()).filter(|node| self.answers(*node));
        let known = nodes.filter(|node| knows_of(&self.name_node, *node, id));
        let is_named = |node| recovery.targets.iter().any(|target| target.node == node);
        let left = known.map(|node| match (self.acknowledged_on(node, &info), is_named(node)) {
            (left, true) => (left, node),
            // It was dead when the recovery was ordered: only what the NameNode knows of is waited for.
            (left, false) => (left.min(recovery.order.acked_len), node),
        });
        let most = left.max();
        if let Some((left, node)) = most.filter(|(left, _)| *left > len) {
            self.violate(format!(
                "{id} ends with {len} bytes, and {left} that were acknowledged are on dn-{node}"
            ));
        }
    }

    /// Looks at a replica of an open block that a node is told to delete.
    pub(super) fn check_open_deletion(&mut self, node: usize, named: &BlockRef) {
        let Some(info) = self.name_node.block(named.id).filter(|_| !named.id.has_units()) else {
            return;
        };
        let held = self.nodes[node].replicas.get(&named.id);
        if info.block.is_final() || held.is_none_or(|held| held.replica.gs() != named.gs) {
            return;
        }
        let left = self.acknowledged_on(node, &info);
        let others = (0..self.nodes.len()).filter(|other| *other != node);
        let elsewhere = others.map(|other| self.acknowledged_on(other, &info)).max().unwrap_or(0);
        if left > elsewhere {
            let id = named.id;
            self.violate(format!(
                "{id} is open, and dn-{node} is told to delete {left} bytes that were acknowledged, \
                 of which others have {elsewhere}"
            ));
        }
    }

    /// Bytes that were acknowledged of an open block and are in a node's replica, from its start on.
    fn acknowledged_on(&self, node: usize, info: &BlockInfo) -> u64 {
        let block = &info.block;
        let since = block.reopened_gs.unwrap_or(GenerationStamp(0));
        let stored = self.nodes[node].replicas.get(&block.id);
        let is_one = stored.filter(|stored| {
            stored.replica.gs() >= since && stored.replica.place() != ReplicaState::Temporary
        });
        let (Some(stored), Some(file)) = (is_one, self.model.files.get(&block.file)) else {
            return 0;
        };
        let Some(offset) = self.place_of(info) else { return 0 };
        // Writers do not ask after each packet; what the NameNode was told of had arrived everywhere.
        let told = file.told.saturating_sub(offset).max(block.len) as usize;
        let written = file.written.get(offset as usize..).unwrap_or_default();
        let flipped = stored.damaged.keys().next().map_or(usize::MAX, |at| *at as usize);
        let same = stored.data.iter().zip(written).take_while(|(has, wrote)| has == wrote).count();
        same.min(flipped).min(told) as u64
    }
}

/// Whether the NameNode knows that a machine has, or may have, something of a block.
fn knows_of(name_node: &NameNode, node: usize, id: BlockId) -> bool {
    let cluster = &name_node.cluster;
    let expected = cluster.expected(id).iter().map(|expected| expected.storage);
    let mut storages = expected.chain(cluster.locations(id).into_iter().map(|at| at.storage));
    storages.any(|storage| name_node.machine_of(storage) == node)
}
