//! Rebuilding the lost units of block groups, as the NameNode commands.
//!
//! ```text
//! k units --read--> stripe after stripe --decode--> all lost units --prove--> replicas on their targets
//! ```
//! `reconstruct/scrub.rs` reads whole groups in the same way, only to see whether their units agree;
//! `reconstruct/groups.rs` has contiguous groups, which are whole blocks under parity;
//! `reconstruct/view.rs` puts the data of a group together for readers who know no erasure coding.
//! Which units serve as sources, which results are believed, and what is tried next is decided by
//! [`cairn_stripe::rebuild::Rebuild`]. `reconstruct/plan.rs` checks the command, `source.rs` reads, `gather.rs` decides what to ask for next,
//! `rebuild.rs` decodes and proves, `target.rs` writes. A unit becomes a replica only after its CRC is the one
//! recorded when it was first written or, without a record, after its sources were decoded back from it.
//!
//! Source: Hadoop 3.5.0 `ErasureCodingWorker`, `StripedBlockReconstructor`.

mod buffers;
mod checksum;
mod claim;
mod gather;
mod groups;
mod plan;
mod readers;
mod rebuild;
mod scrub;
mod source;
mod target;
mod traced;
mod view;

pub(crate) use checksum::decoded_checksum;
pub(crate) use groups::{
    Decoder, Group, Packed, Place, Unpacked, start_encodes, start_packs, start_proves,
    start_rebuilds, start_unpacks,
};
pub(crate) use scrub::start as start_scrubs;
pub(crate) use view::{View, ViewReader};

use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_wire::proto::hdfs::BlockECReconstructionInfoProto;
use claim::{Claim, Refusal};
use plan::{Plan, Target};
use rebuild::{Ended, Failure};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::{Semaphore, SemaphorePermit};
use traced::{begun, part_of};

/// Units that may wait for their turn; the NameNode hands further ones to others.
const MAX_UNITS: usize = 1024;

/// Sets how many reconstructions run at once. Those that are too many go on to their end.
pub(crate) fn set_threads(node: &Arc<Node>, threads: usize) {
    let threads = threads.clamp(1, Semaphore::MAX_PERMITS);
    let before = node.reconstructions.threads.swap(threads, Ordering::Relaxed);
    for is_urgent in [0, 1] {
        let permits = &node.reconstructions.permits[is_urgent];
        permits.add_permits(threads.saturating_sub(before));
        let node = node.clone();
        let surplus = before.saturating_sub(threads);
        node.clone().tasks.spawn(async move {
            for _ in 0..surplus {
                let permit = node.reconstructions.permits[is_urgent].acquire().await;
                permit.into_iter().for_each(SemaphorePermit::forget);
            }
        });
    }
}

/// Starts a reconstruction in the background, as soon as few enough others run. The NameNode is told of units
/// that will not come.
pub(crate) fn start(node: &Arc<Node>, info: BlockECReconstructionInfoProto) {
    let group = BlockId(info.block.block_id as i64);
    let ordered = ordered(&info);
    let planned = node
        .dataset
        .check_pool(&info.block.pool_id)
        .and_then(|()| Plan::decode(info))
        .map_err(Refusal::Failed)
        .and_then(|plan| {
            let unit = |target: &Target| plan.group.id.internal(target.unit);
            let units = plan.targets.iter().map(unit).collect();
            let claim = Claim::new(node, units, plan.source_count(), MAX_UNITS)?;
            Ok((plan, claim))
        });
    match planned {
        Ok((plan, claim)) => {
            let span = begun("Rebuild/units", group);
            node.tasks.spawn(part_of(span, run(node.clone(), plan, claim)));
        }
        Err(Refusal::Busy(unit)) => tracing::info!(%unit, "this is being rebuilt already"),
        Err(Refusal::Failed(error)) => {
            tracing::warn!(%group, %error, "refused a reconstruction");
            node.metrics.rebuilding.tasks.add(1);
            node.metrics.rebuilding.failed_tasks.add(1);
            for (unit, target) in ordered {
                node.report_failed_work(unit, &target, Some(node.dataset.uuid()), &error);
            }
        }
    }
}

/// The units that a command names, with their stamp, and the DataNode that each is to go to. Hadoop's NameNode
/// names none, and would not hear of them.
fn ordered(info: &BlockECReconstructionInfoProto) -> Vec<((BlockId, GenerationStamp), String)> {
    let group = messages::block(&info.block);
    let units = info.target_block_indices.as_deref().unwrap_or_default().iter();
    let is_unit = |unit: &&u8| group.id.is_striped() && usize::from(**unit) < MAX_UNITS_PER_GROUP;
    let units = units.filter(is_unit).map(|unit| group.id.internal(UnitIndex(*unit)));
    let targets = info.target_dn_infos.datanodes.iter().map(|node| node.id.datanode_uuid.clone());
    units.map(|unit| (unit, group.gs)).zip(targets).collect()
}

async fn run(node: Arc<Node>, plan: Plan, _claim: Claim) {
    let Some(_permit) = node.reconstructions.permit(plan.is_urgent).await else { return };
    let started = Instant::now();
    let (group, gs) = (plan.group.id, plan.group.gs);
    let counts = &node.metrics.rebuilding;
    match reconstruct(&node, &plan).await {
        Ok(ended) => {
            let mut bytes: u64 = plan.targets.iter().map(|target| plan.len(target.unit)).sum();
            for (at, error) in ended.failed {
                let Target { unit, node: target, .. } = &plan.targets[at];
                bytes -= plan.len(*unit);
                let uuid = &target.id.datanode_uuid;
                node.report_failed_work((group.internal(*unit), gs), uuid, Some(uuid), &error);
            }
            counts.units.add(ended.committed as u64);
            counts.bytes_written.add(bytes);
            if ended.committed == 0 {
                counts.failed_tasks.add(1);
            }
            let ms = started.elapsed().as_millis() as u64;
            tracing::info!(%group, units = ended.committed, bytes, ms, "rebuilt lost units");
        }
        Err(error) => {
            tracing::error!(%group, %error, "cannot rebuild lost units");
            counts.failed_tasks.add(1);
            for Target { unit, node: target, .. } in &plan.targets {
                let unit = (group.internal(*unit), gs);
                node.report_failed_work(unit, &target.id.datanode_uuid, None, &error);
            }
        }
    }
    counts.tasks.add(1);
    counts.times.add(started.elapsed());
}

/// Rebuilds until the units are proven, with other sources after each result that is not. Returns what has
/// become replicas.
async fn reconstruct(node: &Arc<Node>, plan: &Plan) -> Result<Ended> {
    let now = Instant::now();
    let mut rebuilding = plan.rebuild(|uuid| node.reconstructions.paces.is_slow(uuid, now));
    loop {
        let (unproven, used) = match rebuild::attempt(node, plan, &mut rebuilding).await {
            Ok(committed) => return Ok(committed),
            Err(Failure::NoTarget(ended)) => return Ok(ended),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::Unproven { why, used }) => (why, used),
        };
        tracing::error!(group = %plan.group.id, %unproven, "dropped what was rebuilt");
        if !rebuilding.try_others(&used) {
            return Err(DataNodeError::peer(format!("{unproven}, and no other sources are left")));
        }
    }
}
