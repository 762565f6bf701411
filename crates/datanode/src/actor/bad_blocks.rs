//! Tells a NameNode of bad replicas.
//!
//! Whoever finds one calls [`Node::report_bad_block`] or, for a replica of this DataNode,
//! [`Node::report_own_bad_block`]; they are sent in one call, and again if the NameNode did not answer.
//!
//! Source: Hadoop 3.5.0 `ReportBadBlockAction`, `BPOfferService#reportBadBlocks`.

use super::call::call;
use crate::error::{DataNodeError, Result};
use crate::members::Member;
use crate::node::Node;
use cairn_wire::proto::datanode::{ReportBadBlocksRequestProto, ReportBadBlocksResponseProto};

/// Sends what waits. A NameNode that refuses is not told again; one that does not answer is.
pub(super) async fn send(node: &Node, member: Member) -> Result<()> {
    let blocks = node.bad_blocks.take(member);
    if blocks.is_empty() {
        return Ok(());
    }
    let request = ReportBadBlocksRequestProto { blocks };
    let told: Result<ReportBadBlocksResponseProto> =
        call(node, member, "reportBadBlocks", &request).await;
    match told {
        Ok(_) => Ok(()),
        Err(DataNodeError::Rpc { source, .. }) if source.remote().is_some() => {
            tracing::warn!(error = %source, "the NameNode does not take reports of bad replicas");
            Ok(())
        }
        Err(error) => {
            node.bad_blocks.put_back(member, request.blocks);
            Err(error)
        }
    }
}
