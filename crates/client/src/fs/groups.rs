//! Contiguous groups of Cairn's NameNodes: conversion of files to them and back, what they come to, pauses.

use super::FileSystem;
use crate::error::{ClientError, Result};
use crate::types::*;
use cairn_wire::proto::hdfs::*;

impl FileSystem {
    /// Has files kept as copies (`policy` is `replication`) or in contiguous groups of a policy, by their numbers;
    /// the blocks stay. If `is_trial` nothing is done. Says how they are kept then.
    ///
    /// At most 1000 at a time; those of one directory should come together.
    pub async fn convert_files(
        &self,
        files: &[u64],
        policy: &str,
        is_trial: bool,
    ) -> Result<ConvertedFiles> {
        let request = ConvertFilesRequestProto {
            file_ids: files.to_vec(),
            ec_policy_name: policy.to_string(),
            dry_run: Some(is_trial),
        };
        let response: ConvertFilesResponseProto =
            self.session.namenode.call("convertFiles", &request).await?;
        let mut refusals = response.refusals.into_iter();
        let outcomes = response.outcomes.unwrap_or_default().into_iter();
        let outcomes = outcomes.map(|number| converted(number, &mut refusals));
        let outcomes = outcomes.collect::<Result<_>>()?;
        Ok(ConvertedFiles { outcomes, survey: survey(&response.survey) })
    }

    /// Has packed blocks of files be plain again, by the files' numbers, as soon as there are replicas of them. If
    /// `is_trial` nothing is done. Returns how many blocks are packed, and their bytes.
    ///
    /// At most 1000 files at a time.
    pub async fn unpack_files(&self, files: &[u64], is_trial: bool) -> Result<(u64, u64)> {
        let request = UnpackFilesRequestProto { file_ids: files.to_vec(), dry_run: Some(is_trial) };
        let response: UnpackFilesResponseProto =
            self.session.namenode.call("unpackFiles", &request).await?;
        Ok((response.blocks, response.bytes))
    }

    /// What contiguous groups come to.
    pub async fn group_status(&self) -> Result<GroupStatus> {
        let request = GetGroupStatusRequestProto {};
        let told: GetGroupStatusResponseProto =
            self.session.namenode.call("getGroupStatus", &request).await?;
        Ok(GroupStatus {
            paused: work_from(told.paused()),
            counted_ms_ago: told.counted_ms_ago,
            groups: told.groups,
            grouped_bytes: told.grouped_bytes,
            dead_bytes: told.dead_bytes,
            parity_bytes: told.parity_bytes,
            dissolving: told.dissolving,
            waiting_blocks: told.waiting_blocks,
            waiting_bytes: told.waiting_bytes,
            due_blocks: told.due_blocks,
            due_bytes: told.due_bytes,
            oldest_due_ms: told.oldest_due_ms,
            attempts: told.attempts,
            with_surplus: told.with_surplus,
            formed: told.formed,
            abandoned: told.abandoned,
            renewed: told.renewed,
            containers: told.containers(),
            packed_blocks: told.packed_blocks(),
            packed_bytes: told.packed_bytes(),
            dead_packed_bytes: told.dead_packed_bytes(),
            packed_with_copies: told.packed_with_copies(),
            container_space: told.container_space(),
            emptying_containers: told.emptying_containers(),
            unpacking: told.unpacking(),
            small_blocks: told.small_blocks(),
            small_bytes: told.small_bytes(),
            emptied: told.emptied(),
            unpacked: told.unpacked(),
        })
    }

    /// Holds work on contiguous groups back, or lets it go on. Returns all that is held back then.
    pub async fn pause_groups(&self, work: &[GroupWork], pause: bool) -> Result<Vec<GroupWork>> {
        let what = work.iter().fold(0, |bits, work| bits | bit(*work));
        let request = PauseGroupsRequestProto { what, pause };
        let response: PauseGroupsResponseProto =
            self.session.namenode.call("pauseGroups", &request).await?;
        Ok(work_from(response.paused))
    }
}

/// What became of a file, by its number in messages; of those that were refused the next has the reason.
pub(crate) fn converted(
    number: u8,
    refusals: &mut dyn Iterator<Item = String>,
) -> Result<ConvertedFile> {
    match number {
        0 => Ok(ConvertedFile::Done),
        1 => Ok(ConvertedFile::Same),
        2 => Ok(ConvertedFile::Striped),
        3 => Ok(ConvertedFile::Gone),
        4 => Ok(ConvertedFile::Refused(refusals.next().unwrap_or_default())),
        _ => Err(ClientError::Protocol(format!("a file was converted with outcome {number}"))),
    }
}

fn bit(work: GroupWork) -> u32 {
    match work {
        GroupWork::Form => 1,
        GroupWork::Drop => 2,
        GroupWork::Renew => 4,
        GroupWork::Convert => 8,
    }
}

fn work_from(bits: u32) -> Vec<GroupWork> {
    GroupWork::ALL.into_iter().filter(|work| bits & bit(*work) != 0).collect()
}

fn survey(proto: &LayoutSurveyProto) -> LayoutSurvey {
    LayoutSurvey {
        files: proto.files,
        as_wanted: proto.as_wanted,
        striped: proto.striped,
        striped_bytes: proto.striped_bytes(),
        bytes: proto.bytes,
        space: proto.space,
        grouped: proto.grouped,
        leaving: proto.leaving,
        to_group: proto.to_group,
        space_then: proto.space_then,
    }
}
