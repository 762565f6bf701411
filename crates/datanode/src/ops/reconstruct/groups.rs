//! Contiguous groups: parity over whole blocks.
//!
//! ```text
//! encode    members, from the disks where they stay --> parities, proven against the members, on their targets
//! rebuild   any k units --> lost members and parities, proven against what is recorded
//! decode    any k units --> a range of a member that nobody has, each chunk proven
//! prove     a replica, from its disk --> its sum, on which it may stay as the only one
//! pack      small blocks --> a container of them, read back from its disk by its index
//! unpack    a range of a container --> a packed block, as its writer's client has summed it
//! plain     a packed block --> a replica of it
//! ```
//! `groups/order.rs` checks what the NameNode orders, `units.rs` reads the units of a group side by side, `sinks.rs` writes.
//! What is computed and believed is decided by [`cairn_replica::group`], which unit is read next by
//! [`cairn_stripe::group::Sources`]. Sources and targets are those of all reconstructions. What came of an encode
//! goes with the next heartbeat; the NameNode decides what it is worth.

mod decode;
mod encode;
mod order;
mod pack;
mod plain;
mod prove;
mod rebuild;
mod sinks;
mod units;
mod unpack;

pub(crate) use decode::Decoder;
pub(crate) use order::{Group, Place};
pub(crate) use pack::start_packs;
pub(crate) use plain::start_unpacks;
pub(crate) use prove::start_proves;
pub(crate) use unpack::{Packed, Unpacked};

use super::claim::{Claim, Refusal};
use super::traced::{begun, part_of};
use crate::error::DataNodeError;
use crate::node::Node;
use cairn_wire::proto::datanode::{EncodeOrderProto, EncodedGroupProto, GroupRebuildOrderProto};
use std::sync::Arc;
use std::time::Instant;

/// Units of groups that may wait for their turn.
const MAX_WAITING: usize = 256;

/// Encodes groups in the background, as soon as few enough reconstructions run.
pub(crate) fn start_encodes(node: &Arc<Node>, orders: Vec<EncodeOrderProto>) {
    for order in orders {
        let group = order.group.clone();
        let taken = node
            .dataset
            .check_pool(&group.pool_id)
            .and_then(|()| order::EncodeWork::decode(order))
            .map_err(Refusal::Failed)
            .and_then(|work| {
                let claim = Claim::new(node, work.parity_ids(), work.units(), MAX_WAITING)?;
                Ok((work, claim))
            });
        match taken {
            Ok((work, claim)) => {
                let span = begun("Encode/group", work.group.id);
                node.tasks.spawn(part_of(span, run_encode(node.clone(), work, claim)));
            }
            Err(Refusal::Busy(unit)) => tracing::info!(%unit, "this is being encoded already"),
            Err(Refusal::Failed(error)) => {
                tracing::warn!(group = group.block_id, %error, "refused to encode a group");
                node.metrics.encoding.failed.add(1);
                let group = cairn_wire::proto::hdfs::BlockProto {
                    block_id: group.block_id,
                    gen_stamp: group.generation_stamp,
                    num_bytes: None,
                };
                node.encoded.add(failed(group, &error));
            }
        }
    }
}

async fn run_encode(node: Arc<Node>, work: order::EncodeWork, _claim: Claim) {
    let Some(_permit) = node.reconstructions.permit(false).await else { return };
    let started = Instant::now();
    let (group, counts) = (work.group.id, &node.metrics.encoding);
    tracing::info!(%group, "encodes a group");
    let encoded = match encode::encode(&node, &work).await {
        Ok(encoded) => {
            let ms = started.elapsed().as_millis() as u64;
            tracing::info!(%group, len = work.data_len(), ms, "encoded a group");
            counts.groups.add(1);
            counts.bytes_read.add(encoded.members.iter().map(|m| m.block.num_bytes()).sum());
            counts.bytes_written.add(encoded.parities.iter().map(|parity| parity.len).sum());
            encoded
        }
        Err(error) => {
            tracing::warn!(%group, %error, "cannot encode a group");
            counts.failed.add(1);
            failed(work.handle(), &error)
        }
    };
    counts.times.add(started.elapsed());
    node.encoded.add(encoded);
}

fn failed(group: cairn_wire::proto::hdfs::BlockProto, error: &DataNodeError) -> EncodedGroupProto {
    let error = Some(error.to_string().chars().take(300).collect());
    EncodedGroupProto { group, error, ..EncodedGroupProto::default() }
}

/// Rebuilds lost units of groups in the background. The NameNode is told of those that will not come.
pub(crate) fn start_rebuilds(node: &Arc<Node>, orders: Vec<GroupRebuildOrderProto>) {
    for order in orders {
        let ordered: Vec<_> = order.targets.iter().map(order::named).collect();
        let taken = order::RebuildWork::decode(order).map_err(Refusal::Failed).and_then(|work| {
            node.dataset.check_pool(&work.group.pool)?;
            let sources = work.group.layout.k();
            let claim = Claim::new(node, work.target_ids(), sources, MAX_WAITING)?;
            Ok((work, claim))
        });
        match taken {
            Ok((work, claim)) => {
                let span = begun("Rebuild/members", work.group.record.handle);
                node.tasks.spawn(part_of(span, run_rebuild(node.clone(), work, claim)));
            }
            Err(Refusal::Busy(unit)) => tracing::info!(%unit, "this is being rebuilt already"),
            Err(Refusal::Failed(error)) => {
                tracing::warn!(%error, "refused to rebuild units of a group");
                node.metrics.rebuilding.tasks.add(1);
                node.metrics.rebuilding.failed_tasks.add(1);
                for (unit, target) in ordered {
                    node.report_failed_work(unit, &target, Some(node.dataset.uuid()), &error);
                }
            }
        }
    }
}

async fn run_rebuild(node: Arc<Node>, work: order::RebuildWork, _claim: Claim) {
    let Some(_permit) = node.reconstructions.permit(work.is_urgent).await else { return };
    let started = Instant::now();
    let (group, counts) = (work.group.record.handle, &node.metrics.rebuilding);
    tracing::info!(%group, "rebuilds lost units of a group");
    let ended = match rebuild::rebuild(&node, &work).await {
        Ok(ended) => ended,
        Err(error) => {
            tracing::error!(%group, %error, "cannot rebuild units of a group");
            let error = Arc::new(error);
            let lost = |_| Err(rebuild::Lost { by_target: false, error: error.clone() });
            work.targets.iter().map(lost).collect()
        }
    };
    let mut units = 0;
    for (target, ended) in work.targets.iter().zip(ended) {
        let block = work.group.block(target.slot);
        match ended {
            Ok(()) => {
                units += 1;
                counts.units.add(1);
                counts.bytes_written.add(block.len);
            }
            Err(rebuild::Lost { by_target, error }) => {
                let uuid = &target.node.id.datanode_uuid;
                let suspect = by_target.then_some(uuid.as_str());
                node.report_failed_work((block.id, block.gs), uuid, suspect, &error);
            }
        }
    }
    if units == 0 {
        counts.failed_tasks.add(1);
    }
    counts.tasks.add(1);
    counts.times.add(started.elapsed());
    let ms = started.elapsed().as_millis() as u64;
    tracing::info!(%group, units, ms, "rebuilt lost units of a group");
}
