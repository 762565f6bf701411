//! The right to make some units, which one work of a DataNode has at a time. Heartbeats tell how much is under way.

use crate::error::DataNodeError;
use crate::node::Node;
use cairn_stripe::BlockId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The right to make some units, until it is dropped. Counted among the transfers that heartbeats tell of.
pub(super) struct Claim {
    node: Arc<Node>,
    units: Vec<BlockId>,
    transfers: u32,
}

/// Why an order is not obeyed.
pub(super) enum Refusal {
    /// This unit is being made already.
    Busy(BlockId),
    Failed(DataNodeError),
}

impl From<DataNodeError> for Refusal {
    fn from(error: DataNodeError) -> Refusal {
        Refusal::Failed(error)
    }
}

impl Claim {
    /// For units that are made of `sources` others. Fails if one of them is being made here already, or if more than
    /// `most` units would be.
    pub(super) fn new(
        node: &Arc<Node>,
        units: Vec<BlockId>,
        sources: usize,
        most: usize,
    ) -> Result<Claim, Refusal> {
        let mut busy = node.reconstructions.lock();
        if let Some(unit) = units.iter().find(|unit| busy.contains(unit)) {
            return Err(Refusal::Busy(*unit));
        }
        if busy.len() + units.len() > most {
            return Err(DataNodeError::peer("too many units are waiting to be made").into());
        }
        busy.extend(&units);
        let transfers = sources as f64 * node.config.reconstruction_xmits_weight;
        let transfers = transfers.max(1.0) as u32;
        node.transfers.fetch_add(transfers, Ordering::Relaxed);
        Ok(Claim { node: node.clone(), units, transfers })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.node.transfers.fetch_sub(self.transfers, Ordering::Relaxed);
        let mut busy = self.node.reconstructions.lock();
        self.units.iter().for_each(|unit| {
            busy.remove(unit);
        });
        drop(busy);
        self.node.heartbeat_now.all();
    }
}
