//! Bad replicas that the NameNode is to be told of, until it has heard.
//!
//! Whoever finds one calls [`Node::report_bad_block`] or, for a replica of this DataNode,
//! [`Node::report_own_bad_block`]; the actor sends them in one call, and again if the NameNode did not answer.
//!
//! Source: Hadoop 3.5.0 `ReportBadBlockAction`, `BPOfferService#reportBadBlocks`.

use super::call;
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::protocol;
use crate::volume::Volume;
use cairn_wire::proto::datanode::{ReportBadBlocksRequestProto, ReportBadBlocksResponseProto};
use cairn_wire::proto::hdfs::{DatanodeInfoProto, LocatedBlockProto};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Reports that may wait. What is found beyond is found again later.
const MAX_PENDING: usize = 10_000;

/// Reports that wait for the actor.
#[derive(Default)]
pub(crate) struct BadBlocks {
    pending: Mutex<Vec<LocatedBlockProto>>,
    urgent: Notify,
}

impl BadBlocks {
    /// Completes when something waits.
    pub(super) async fn wait(&self) {
        self.urgent.notified().await;
    }

    /// Adds a report unless it waits already.
    fn queue(&self, report: LocatedBlockProto) {
        let mut pending = self.lock();
        if pending.len() < MAX_PENDING && !pending.contains(&report) {
            pending.push(report);
            self.urgent.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LocatedBlockProto>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Tells the NameNode in the background that `holder` has a bad replica of `block`, which for a unit is its
    /// internal block.
    pub(crate) fn report_bad_block(&self, block: &Block, holder: DatanodeInfoProto) {
        let b = protocol::extended_block(block);
        let report = LocatedBlockProto { b, locs: vec![holder], ..Default::default() };
        self.bad_blocks.queue(report);
    }

    /// Tells the NameNode in the background that the replica of `block` on this DataNode's `volume` is bad.
    pub(crate) fn report_own_bad_block(&self, block: &Block, volume: &Volume) {
        // Before the first registration nobody knows of the replica.
        let Ok(registration) = self.registration() else { return };
        let holder = DatanodeInfoProto { id: registration.datanode_id, ..Default::default() };
        self.bad_blocks.queue(LocatedBlockProto {
            b: protocol::extended_block(block),
            locs: vec![holder],
            storage_types: vec![volume.storage_type().number()],
            storage_i_ds: vec![volume.storage_id().into()],
            ..Default::default()
        });
    }
}

/// Sends what waits. A NameNode that refuses is not told again; one that does not answer is.
pub(super) async fn send(node: &Node) -> Result<()> {
    let blocks = std::mem::take(&mut *node.bad_blocks.lock());
    if blocks.is_empty() {
        return Ok(());
    }
    let request = ReportBadBlocksRequestProto { blocks };
    match call::<_, ReportBadBlocksResponseProto>(node, "reportBadBlocks", &request).await {
        Ok(_) => Ok(()),
        Err(DataNodeError::Rpc { source, .. }) if source.remote().is_some() => {
            tracing::warn!(error = %source, "the NameNode does not take reports of bad replicas");
            Ok(())
        }
        Err(error) => {
            let mut pending = node.bad_blocks.lock();
            for block in request.blocks {
                if !pending.contains(&block) {
                    pending.push(block);
                }
            }
            Err(error)
        }
    }
}
