//! Contiguous groups: conversion of files to them and back, what they come to, and what of their making is held back.
//! Methods of Cairn's own, beside those of Hadoop's protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use cairn_master::contiguous::choose::Rules;
use cairn_master::contiguous::convert::{self, Survey};
use cairn_master::contiguous::pack::unpack;
use cairn_namespace::group::GroupPauses;
use cairn_namespace::ops::group::PauseGroups;
use cairn_namespace::ops::swap_blocks::SwapBlocks;
use cairn_namespace::{Conversion, InodeId, policy_admin, query};
use cairn_net::rpc_server::Call;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// The methods of this file.
pub(crate) const METHODS: [&str; 5] =
    ["convertFiles", "getGroupStatus", "pauseGroups", "swapBlocks", "unpackFiles"];

/// Files that one call may name.
const FILES_MAX: usize = 1000;

/// Has files kept as copies or in contiguous groups, unless it is to be tried only, and says how they are kept then.
pub async fn convert_files(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ConvertFilesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    if request.file_ids.len() > FILES_MAX {
        let message =
            format!("{} files in one call, more than {FILES_MAX}", request.file_ids.len());
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let files: Vec<InodeId> = request.file_ids.iter().copied().map(InodeId).collect();
    let name = &request.ec_policy_name;
    let (mut outcomes, mut refusals) = (Vec::new(), Vec::new());
    if !request.dry_run() {
        node.check_change(call, || format!("Cannot convert files to {name}"))?;
        check_not_paused(node)?;
        let caller = node.caller(call).await;
        let operation = node.operation("convertFiles", call).await;
        for conversion in convert::convert(&operation, &caller, &files, name).await? {
            let (number, refusal) = told(conversion);
            outcomes.push(number);
            refusals.extend(refusal);
        }
    }
    let rules = Rules { pays: node.config.group_pays, proposals_max: 0 };
    let survey = node.ns.read(|store| {
        let target = query::conversion_target(store, name)?;
        let target = target.map(|id| policy_admin::by_id(store, id)).transpose()?;
        convert::survey(store, &files, target.as_ref(), &rules)
    })?;
    let (outcomes, survey) = (Some(outcomes), survey_proto(&survey));
    answer(&pb::ConvertFilesResponseProto { outcomes, refusals, survey })
}

/// Has packed blocks of files be plain again, unless it is to be tried only, and says how many there are.
pub async fn unpack_files(node: &NameNode, call: &Call) -> Answer {
    let request: pb::UnpackFilesRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    if request.file_ids.len() > FILES_MAX {
        let message =
            format!("{} files in one call, more than {FILES_MAX}", request.file_ids.len());
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let (mut packed, mut bytes) = (Vec::new(), 0_u64);
    node.ns.read(|store| -> cairn_namespace::Result<()> {
        for file in &request.file_ids {
            for block in query::packed_blocks_of_file(store, InodeId(*file))? {
                bytes = bytes.saturating_add(block.len);
                packed.push(block.id);
            }
        }
        Ok(())
    })?;
    if !request.dry_run() && !packed.is_empty() {
        node.check_change(call, || "Cannot unpack files".to_string())?;
        check_not_paused(node)?;
        let operation = node.operation("unpackFiles", call).await;
        unpack::ask(&operation, &packed, false).await?;
    }
    answer(&pb::UnpackFilesResponseProto { blocks: packed.len() as u64, bytes })
}

fn check_not_paused(node: &NameNode) -> Result<(), Refusal> {
    match node.ns.read(|store| query::group_pauses(store))?.convert {
        true => Err(Refusal::io("Conversion of files is paused")),
        false => Ok(()),
    }
}

/// What became of a file, in messages.
fn told(conversion: Conversion) -> (u8, Option<String>) {
    match conversion {
        Conversion::Done => (0, None),
        Conversion::Same => (1, None),
        Conversion::Striped => (2, None),
        Conversion::Gone => (3, None),
        Conversion::Refused(why) => (4, Some(why)),
    }
}

/// Gives a striped file the blocks of a copy of it.
pub async fn swap_blocks(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SwapBlocksRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.check_change(call, || "Cannot swap blocks of files".to_string())?;
    check_not_paused(node)?;
    let swap = SwapBlocks {
        file: InodeId(request.file_id),
        copy: InodeId(request.copy_id),
        mtime: request.modification_time,
        len: request.length,
    };
    let caller = node.caller(call).await;
    let operation = node.operation("swapBlocks", call).await;
    let (outcome, refusal) = told(convert::swap_blocks(&operation, &caller, swap).await?);
    answer(&pb::SwapBlocksResponseProto { outcome: u32::from(outcome), refusal })
}

fn survey_proto(survey: &Survey) -> pb::LayoutSurveyProto {
    pb::LayoutSurveyProto {
        files: survey.files,
        as_wanted: survey.as_wanted,
        striped: survey.striped,
        bytes: survey.bytes,
        space: survey.space,
        grouped: survey.grouped,
        leaving: survey.leaving,
        to_group: survey.to_group,
        space_then: survey.space_then,
        striped_bytes: Some(survey.striped_bytes),
    }
}

// The bit in messages for each kind of work on groups.
const FORM: u32 = 1;
const DROP: u32 = 2;
const RENEW: u32 = 4;
const CONVERT: u32 = 8;

fn pauses_from(bits: u32) -> GroupPauses {
    GroupPauses {
        form: bits & FORM != 0,
        drop: bits & DROP != 0,
        renew: bits & RENEW != 0,
        convert: bits & CONVERT != 0,
    }
}

fn pauses_proto(pauses: GroupPauses) -> u32 {
    let GroupPauses { form, drop, renew, convert } = pauses;
    let bits = [(form, FORM), (drop, DROP), (renew, RENEW), (convert, CONVERT)];
    bits.into_iter().filter(|(is_paused, _)| *is_paused).map(|(_, bit)| bit).sum()
}

/// Holds some of the work on groups back, or lets it go on.
pub async fn pause_groups(node: &NameNode, call: &Call) -> Answer {
    let request: pb::PauseGroupsRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    node.check_change(call, || "Cannot pause work on groups".to_string())?;
    let (work, pause) = (pauses_from(request.what), request.pause);
    node.submit(call, PauseGroups { work, pause }).await?;
    node.heed_group_pauses()?;
    let paused = pauses_proto(node.ns.read(|store| query::group_pauses(store))?);
    answer(&pb::PauseGroupsResponseProto { paused })
}

/// What groups come to.
pub async fn get_group_status(node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetGroupStatusRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let now = node.now();
    let counted = node.group_work.counts(now);
    let (counts, ago_ms) = counted.unwrap_or_default();
    let (attempts, with_surplus, packed_with_copies, unpacking) = node.see_cluster(|cluster| {
        let packed = cluster.packed_with_replicas();
        let unpacking = cluster.unpacking().len();
        (cluster.attempt_count(), cluster.groups_with_surplus(), packed, unpacking)
    });
    let since = |count: &AtomicU64| count.load(Ordering::Relaxed);
    answer(&pb::GetGroupStatusResponseProto {
        paused: Some(pauses_proto(node.ns.read(|store| query::group_pauses(store))?)),
        counted_ms_ago: counted.map(|_| ago_ms),
        groups: counts.groups,
        grouped_bytes: counts.grouped,
        dead_bytes: counts.dead,
        parity_bytes: counts.parity,
        dissolving: counts.dissolving,
        waiting_blocks: counts.waiting,
        waiting_bytes: counts.waiting_bytes,
        due_blocks: counts.due,
        due_bytes: counts.due_bytes,
        oldest_due_ms: counts
            .oldest_due_ms
            .map_or(0, |due_ms| now.elapsed_ms.saturating_sub(due_ms)),
        attempts: attempts as u64,
        with_surplus: with_surplus as u64,
        formed: since(&node.group_work.formed),
        abandoned: since(&node.group_work.abandoned),
        renewed: since(&node.group_work.renewed),
        containers: Some(counts.containers),
        packed_blocks: Some(counts.packed),
        packed_bytes: Some(counts.packed_bytes),
        dead_packed_bytes: Some(counts.left_bytes),
        packed_with_copies: Some(packed_with_copies as u64),
        container_space: Some(counts.container_space),
        emptying_containers: Some(counts.emptying),
        unpacking: Some(unpacking as u64),
        small_blocks: Some(counts.small),
        small_bytes: Some(counts.small_bytes),
        emptied: Some(since(&node.group_work.emptied)),
        unpacked: Some(since(&node.group_work.unpacked)),
    })
}
