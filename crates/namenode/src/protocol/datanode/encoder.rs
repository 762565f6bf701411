//! What messages with orders for DataNodes are made of.

use cairn_master::{Lookup, orders};
use cairn_namespace::Result;
use cairn_redundancy::{BlockRef, Cluster};
use cairn_stripe::PolicyId;
use cairn_wire::proto::hdfs as pb;
use tracing::error;

use crate::protocol::convert;

/// Both states at one moment, from which orders are written down.
pub(super) struct Encoder<'a> {
    pub cluster: &'a Cluster,
    pub lookup: &'a Lookup<'a>,
    /// The block pool's id.
    pub pool: &'a str,
}

impl Encoder<'_> {
    pub(super) fn extended(&self, block: &BlockRef) -> pb::ExtendedBlockProto {
        pb::ExtendedBlockProto {
            pool_id: self.pool.to_string(),
            block_id: block.id.0 as u64,
            generation_stamp: block.gs.0,
            num_bytes: Some(block.len),
        }
    }

    /// The policy of that number.
    pub(super) fn policy_numbered(&self, id: PolicyId) -> Result<pb::ErasureCodingPolicyProto> {
        Ok(match orders::policy(self.lookup.store, id)? {
            Some(policy) => convert::policy(&policy, None),
            None => {
                error!(policy = id.0, "a group has a policy that is not there");
                pb::ErasureCodingPolicyProto { id: id.0.into(), ..Default::default() }
            }
        })
    }
}

/// A block as DataNodes name it.
pub(super) fn block(block: &BlockRef) -> pb::BlockProto {
    pb::BlockProto {
        block_id: block.id.0 as u64,
        gen_stamp: block.gs.0,
        num_bytes: Some(block.len),
    }
}
