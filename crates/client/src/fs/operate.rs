//! What operators ask a NameNode for: quotas, upgrades, open files, the log.

use super::FileSystem;
use crate::error::Result;
use crate::protocol::convert;
use crate::types::*;
use cairn_wire::proto::hdfs::*;

/// What Hadoop sends for a limit that is to stay as it is, and for one that is to go.
const DONT_SET: u64 = i64::MAX as u64;
const RESET: u64 = u64::MAX;

impl FileSystem {
    /// Limits how many names a directory may hold, or lifts the limit.
    pub async fn set_name_quota(&self, path: &str, change: QuotaChange) -> Result<()> {
        self.set_quota(path, quota(change), DONT_SET, None).await
    }

    /// Limits how many bytes on disk a directory may hold, of all types of storage or of one, or lifts the limit.
    pub async fn set_space_quota(
        &self,
        path: &str,
        change: QuotaChange,
        storage_type: Option<StorageType>,
    ) -> Result<()> {
        self.set_quota(path, DONT_SET, quota(change), storage_type).await
    }

    async fn set_quota(
        &self,
        path: &str,
        names: u64,
        space: u64,
        storage_type: Option<StorageType>,
    ) -> Result<()> {
        let request = SetQuotaRequestProto {
            path: path.to_string(),
            namespace_quota: names,
            storagespace_quota: space,
            storage_type: storage_type.map(convert::storage_type_number),
        };
        let _: SetQuotaResponseProto = self.session.namenode.call("setQuota", &request).await?;
        Ok(())
    }

    /// Files open for writing below a path; only those that hold a decommission back if `blocking`.
    pub async fn open_files(&self, path: &str, blocking: bool) -> Result<Vec<OpenFileInfo>> {
        let kind = match blocking {
            true => OpenFilesTypeProto::BlockingDecommission,
            false => OpenFilesTypeProto::AllOpenFiles,
        };
        let mut files: Vec<OpenFileInfo> = Vec::new();
        loop {
            let request = ListOpenFilesRequestProto {
                id: files.last().map_or(0, |last| last.id as i64),
                types: vec![kind as i32],
                path: Some(path.to_string()),
            };
            let response: ListOpenFilesResponseProto =
                self.session.namenode.call("listOpenFiles", &request).await?;
            let got = response.entries.len();
            files.extend(response.entries.into_iter().map(|entry| OpenFileInfo {
                id: entry.id as u64,
                path: entry.path,
                client: entry.client_name,
                machine: entry.client_machine,
            }));
            if got == 0 || !response.has_more {
                return Ok(files);
            }
        }
    }

    /// Has the NameNode write what it knows of blocks and DataNodes into a file of its log folder.
    pub async fn metasave(&self, name: &str) -> Result<()> {
        let request = MetaSaveRequestProto { filename: name.to_string() };
        let _: MetaSaveResponseProto = self.session.namenode.call("metaSave", &request).await?;
        Ok(())
    }

    /// Has the log written to the store; only when the last time is `window_ms` ago or the log has `gap` more entries,
    /// if either is above 0. Returns whether it was. The NameNode must be in safe mode.
    pub async fn save_namespace(&self, window_ms: u64, gap: u64) -> Result<bool> {
        let request = SaveNamespaceRequestProto { time_window: Some(window_ms), tx_gap: Some(gap) };
        let response: SaveNamespaceResponseProto =
            self.session.namenode.call("saveNamespace", &request).await?;
        Ok(response.saved.unwrap_or(true))
    }

    /// Begins a new segment of the log. Returns the number of its first entry.
    pub async fn roll_edits(&self) -> Result<u64> {
        let response: RollEditsResponseProto =
            self.session.namenode.call("rollEdits", &RollEditsRequestProto {}).await?;
        Ok(response.new_segment_tx_id)
    }

    /// What to do with failed folders of the NameNode: `true`, `false` or `check`. Returns what holds then.
    pub async fn restore_failed_storage(&self, what: &str) -> Result<bool> {
        let request = RestoreFailedStorageRequestProto { arg: what.to_string() };
        let response: RestoreFailedStorageResponseProto =
            self.session.namenode.call("restoreFailedStorage", &request).await?;
        Ok(response.result)
    }

    /// Tells all DataNodes how many bytes a second they may move for a balancer.
    pub async fn set_balancer_bandwidth(&self, bytes_per_second: i64) -> Result<()> {
        let request = SetBalancerBandwidthRequestProto { bandwidth: bytes_per_second };
        let _: SetBalancerBandwidthResponseProto =
            self.session.namenode.call("setBalancerBandwidth", &request).await?;
        Ok(())
    }

    /// The DataNodes that others call slow.
    pub async fn slow_datanodes(&self) -> Result<Vec<DataNodeInfo>> {
        let request = GetSlowDatanodeReportRequestProto {};
        let response: GetSlowDatanodeReportResponseProto =
            self.session.namenode.call("getSlowDatanodeReport", &request).await?;
        Ok(response.datanode_info_proto.into_iter().map(convert::datanode_info).collect())
    }

    /// Blocks of replicated files that are not as they should be.
    pub async fn replicated_stats(&self) -> Result<RedundancyStats> {
        let request = GetFsReplicatedBlockStatsRequestProto {};
        let s: GetFsReplicatedBlockStatsResponseProto =
            self.session.namenode.call("getFsReplicatedBlockStats", &request).await?;
        Ok(RedundancyStats {
            low_redundancy: s.low_redundancy,
            corrupt: s.corrupt_blocks,
            missing: s.missing_blocks,
            missing_one_copy: s.missing_repl_one_blocks,
            bytes_in_future: s.blocks_in_future,
            pending_deletion: s.pending_deletion_blocks,
            highest_priority: s.highest_prio_low_redundancy_blocks,
            badly_distributed: s.badly_distributed_blocks,
        })
    }

    /// Groups of erasure coded files that are not as they should be.
    pub async fn group_stats(&self) -> Result<RedundancyStats> {
        let request = GetFsECBlockGroupStatsRequestProto {};
        let s: GetFsECBlockGroupStatsResponseProto =
            self.session.namenode.call("getFsECBlockGroupStats", &request).await?;
        Ok(RedundancyStats {
            low_redundancy: s.low_redundancy,
            corrupt: s.corrupt_blocks,
            missing: s.missing_blocks,
            missing_one_copy: 0,
            bytes_in_future: s.blocks_in_future,
            pending_deletion: s.pending_deletion_blocks,
            highest_priority: s.highest_prio_low_redundancy_blocks,
            badly_distributed: s.badly_distributed_blocks,
        })
    }

    /// Asks about a rolling upgrade, begins or ends it; `None` when there is none.
    pub async fn rolling_upgrade(
        &self,
        action: RollingUpgradeAction,
    ) -> Result<Option<RollingUpgrade>> {
        use RollingUpgradeActionProto as Action;
        let action = match action {
            RollingUpgradeAction::Query => Action::Query,
            RollingUpgradeAction::Prepare => Action::Start,
            RollingUpgradeAction::Finalize => Action::Finalize,
        };
        let request = RollingUpgradeRequestProto { action: action as i32 };
        let response: RollingUpgradeResponseProto =
            self.session.namenode.call("rollingUpgrade", &request).await?;
        let told = |info: RollingUpgradeInfoProto| RollingUpgrade {
            pool: info.status.block_pool_id,
            start_ms: info.start_time,
            finalize_ms: Some(info.finalize_time).filter(|ms| *ms > 0),
            has_rollback: info.created_rollback_images,
        };
        Ok(response.rolling_upgrade_info.map(told))
    }

    /// Gives up what is kept to go back from an upgrade.
    pub async fn finalize_upgrade(&self) -> Result<()> {
        let request = FinalizeUpgradeRequestProto {};
        let _: FinalizeUpgradeResponseProto =
            self.session.namenode.call("finalizeUpgrade", &request).await?;
        Ok(())
    }

    /// Whether no upgrade waits to be finalized.
    pub async fn is_upgrade_finalized(&self) -> Result<bool> {
        let response: UpgradeStatusResponseProto =
            self.session.namenode.call("upgradeStatus", &UpgradeStatusRequestProto {}).await?;
        Ok(response.upgrade_finalized)
    }

    /// All storage policies.
    pub async fn storage_policies(&self) -> Result<Vec<StoragePolicyInfo>> {
        let request = GetStoragePoliciesRequestProto {};
        let response: GetStoragePoliciesResponseProto =
            self.session.namenode.call("getStoragePolicies", &request).await?;
        Ok(response.policies.into_iter().map(convert::storage_policy).collect())
    }

    /// The storage policy in force for a path.
    pub async fn storage_policy(&self, path: &str) -> Result<StoragePolicyInfo> {
        let request = GetStoragePolicyRequestProto { path: path.to_string() };
        let response: GetStoragePolicyResponseProto =
            self.session.namenode.call("getStoragePolicy", &request).await?;
        Ok(convert::storage_policy(response.storage_policy))
    }

    /// Gives a path a storage policy by name.
    pub async fn set_storage_policy(&self, path: &str, name: &str) -> Result<()> {
        let request =
            SetStoragePolicyRequestProto { src: path.to_string(), policy_name: name.to_string() };
        let _: SetStoragePolicyResponseProto =
            self.session.namenode.call("setStoragePolicy", &request).await?;
        Ok(())
    }

    /// Takes the storage policy off a path, so that the one above it counts.
    pub async fn unset_storage_policy(&self, path: &str) -> Result<()> {
        let request = UnsetStoragePolicyRequestProto { src: path.to_string() };
        let _: UnsetStoragePolicyResponseProto =
            self.session.namenode.call("unsetStoragePolicy", &request).await?;
        Ok(())
    }

    /// Asks for a path to be brought to the storage types of its policy.
    pub async fn satisfy_storage_policy(&self, path: &str) -> Result<()> {
        let request = SatisfyStoragePolicyRequestProto { src: path.to_string() };
        let _: SatisfyStoragePolicyResponseProto =
            self.session.namenode.call("satisfyStoragePolicy", &request).await?;
        Ok(())
    }
}

fn quota(change: QuotaChange) -> u64 {
    match change {
        QuotaChange::Set(limit) => limit,
        QuotaChange::Clear => RESET,
    }
}
