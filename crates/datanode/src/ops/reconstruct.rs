//! Rebuilding the lost units of block groups, as the NameNode commands.
//!
//! ```text
//! k units --read--> stripe after stripe --decode--> all lost units --prove--> replicas on their targets
//! ```
//! `reconstruct/plan.rs` checks the command, `source.rs` reads, `gather.rs` decides what to ask for next,
//! `rebuild.rs` decodes and proves, `target.rs` writes. A unit becomes a replica only after its CRC is the one
//! recorded when it was first written or, without a record, after its sources were decoded back from it.
//!
//! Source: Hadoop 3.5.0 `ErasureCodingWorker`, `StripedBlockReconstructor`.

mod budget;
mod checksum;
mod gather;
mod plan;
mod rebuild;
mod source;
mod target;

pub(crate) use checksum::decoded_checksum;

use crate::config::DataNodeConfig;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use budget::Budget;
use cairn_stripe::BlockId;
use cairn_wire::proto::hdfs::BlockECReconstructionInfoProto;
use plan::Plan;
use rebuild::Failure;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Units that may wait for their turn; the NameNode hands further ones to others.
const MAX_UNITS: usize = 1024;

/// What the reconstructions of a DataNode share.
pub(crate) struct Reconstructions {
    permits: Semaphore,
    /// Units being rebuilt or waiting for their turn.
    units: Mutex<HashSet<BlockId>>,
    read_budget: Budget,
    write_budget: Budget,
}

impl Reconstructions {
    pub(crate) fn new(config: &DataNodeConfig) -> Reconstructions {
        Reconstructions {
            permits: Semaphore::new(config.reconstruction_threads.max(1)),
            units: Mutex::default(),
            read_budget: Budget::new(config.reconstruction_read_bandwidth),
            write_budget: Budget::new(config.reconstruction_write_bandwidth),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<BlockId>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to rebuild some units, counted among the transfers that heartbeats tell of.
struct Claim {
    node: Arc<Node>,
    units: Vec<BlockId>,
    transfers: u32,
}

impl Claim {
    /// Fails if one of the units is being rebuilt here already, or too many are.
    fn new(node: &Arc<Node>, plan: &Plan) -> Result<Claim> {
        let units: Vec<BlockId> =
            plan.targets.iter().map(|target| plan.group.id.internal(target.unit)).collect();
        let mut busy = node.reconstructions.lock();
        if let Some(unit) = units.iter().find(|unit| busy.contains(unit)) {
            return Err(DataNodeError::peer(format!("{unit} is being rebuilt already")));
        }
        if busy.len() + units.len() > MAX_UNITS {
            return Err(DataNodeError::peer("too many reconstructions are waiting"));
        }
        busy.extend(&units);
        let transfers = plan.transfers(node.config.reconstruction_xmits_weight);
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
        self.node.heartbeat_now.notify_one();
    }
}

/// Starts a reconstruction in the background, as soon as few enough others run.
pub(crate) fn start(node: &Arc<Node>, info: BlockECReconstructionInfoProto) {
    let group = BlockId(info.block.block_id as i64);
    let planned = node
        .dataset
        .check_pool(&info.block.pool_id)
        .and_then(|()| Plan::decode(info))
        .and_then(|plan| Claim::new(node, &plan).map(|claim| (plan, claim)));
    match planned {
        Ok((plan, claim)) => node.tasks.spawn(run(node.clone(), plan, claim)),
        Err(error) => tracing::warn!(%group, %error, "refused a reconstruction"),
    }
}

async fn run(node: Arc<Node>, plan: Plan, _claim: Claim) {
    // The semaphore is never closed.
    let Ok(_permit) = node.reconstructions.permits.acquire().await else { return };
    let started = Instant::now();
    match reconstruct(&node, &plan).await {
        Ok(units) => {
            let bytes: u64 = plan.targets.iter().map(|target| plan.len(target.unit)).sum();
            let ms = started.elapsed().as_millis() as u64;
            tracing::info!(group = %plan.group.id, units, bytes, ms, "rebuilt lost units");
        }
        Err(error) => {
            tracing::error!(group = %plan.group.id, %error, "cannot rebuild lost units");
        }
    }
}

/// Rebuilds until the units are proven, with other sources after each result that is not. Returns how many
/// units have become replicas.
async fn reconstruct(node: &Arc<Node>, plan: &Plan) -> Result<usize> {
    let mut health = plan.health();
    let mut suspects = Suspects::default();
    loop {
        let (unproven, used) = match rebuild::attempt(node, plan, &mut health).await {
            Ok(committed) => return Ok(committed),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::Unproven { why, used }) => (why, used),
        };
        tracing::error!(group = %plan.group.id, %unproven, "dropped what was rebuilt");
        if !suspects.pass_over_next(&mut health, &used) {
            return Err(DataNodeError::peer(format!("{unproven}, and no other sources are left")));
        }
    }
}

/// Leaves one source after the other out, when which one is bad is not known.
#[derive(Default)]
struct Suspects {
    tried: Vec<usize>,
    left_out: Option<(usize, cairn_stripe::read::UnitHealth)>,
}

impl Suspects {
    /// Changes `health` so that other units are read than the `used` ones; false if all was tried.
    fn pass_over_next(
        &mut self,
        health: &mut [cairn_stripe::read::UnitHealth],
        used: &[usize],
    ) -> bool {
        use cairn_stripe::read::UnitHealth::Lost;
        if used.iter().any(|unit| health[*unit] == Lost) {
            // One has been found to be bad meanwhile: try without it.
            return true;
        }
        if let Some((unit, before)) = self.left_out.take() {
            health[unit] = before;
        }
        let Some(unit) = used.iter().copied().find(|unit| !self.tried.contains(unit)) else {
            return false;
        };
        self.tried.push(unit);
        self.left_out = Some((unit, health[unit]));
        health[unit] = Lost;
        true
    }
}
