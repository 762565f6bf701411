// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.hdfs.datanode.AwaitOrdersRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AwaitOrdersRequestProto {
    /// Field 1000 `registration`.
    #[prost(message, required, tag = "1000")]
    pub registration: DatanodeRegistrationProto,
    /// Field 1001 `seen`.
    #[prost(uint64, required, tag = "1001")]
    pub seen: u64,
}

/// `hadoop.hdfs.datanode.AwaitOrdersResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AwaitOrdersResponseProto {
    /// Field 1000 `orders`.
    #[prost(uint64, required, tag = "1000")]
    pub orders: u64,
}

/// `hadoop.hdfs.datanode.BalancerBandwidthCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BalancerBandwidthCommandProto {
    /// Field 1 `bandwidth`.
    #[prost(uint64, required, tag = "1")]
    pub bandwidth: u64,
}

/// `hadoop.hdfs.datanode.BlockCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockCommandProto {
    /// Field 1 `action`.
    #[prost(enumeration = "BlockCommandProtoAction", required, tag = "1")]
    pub action: i32,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `blocks`.
    #[prost(message, repeated, tag = "3")]
    pub blocks: ::std::vec::Vec<super::hdfs::BlockProto>,
    /// Field 4 `targets`.
    #[prost(message, repeated, tag = "4")]
    pub targets: ::std::vec::Vec<super::hdfs::DatanodeInfosProto>,
    /// Field 5 `targetStorageUuids`.
    #[prost(message, repeated, tag = "5")]
    pub target_storage_uuids: ::std::vec::Vec<super::hdfs::StorageUuidsProto>,
    /// Field 6 `targetStorageTypes`.
    #[prost(message, repeated, tag = "6")]
    pub target_storage_types: ::std::vec::Vec<super::hdfs::StorageTypesProto>,
}

/// `hadoop.hdfs.datanode.BlockECReconstructionCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockECReconstructionCommandProto {
    /// Field 1 `blockECReconstructioninfo`.
    #[prost(message, repeated, tag = "1")]
    pub block_ec_reconstructioninfo: ::std::vec::Vec<super::hdfs::BlockECReconstructionInfoProto>,
}

/// `hadoop.hdfs.datanode.BlockIdCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockIdCommandProto {
    /// Field 1 `action`.
    #[prost(enumeration = "BlockIdCommandProtoAction", required, tag = "1")]
    pub action: i32,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `blockIds`.
    #[prost(uint64, repeated, tag = "3", packed = "true")]
    pub block_ids: ::std::vec::Vec<u64>,
}

/// `hadoop.hdfs.datanode.BlockReceivedAndDeletedRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockReceivedAndDeletedRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `blocks`.
    #[prost(message, repeated, tag = "3")]
    pub blocks: ::std::vec::Vec<StorageReceivedDeletedBlocksProto>,
    /// Field 1000 `scanned`.
    #[prost(message, repeated, tag = "1000")]
    pub scanned: ::std::vec::Vec<StorageReceivedDeletedBlocksProto>,
}

/// `hadoop.hdfs.datanode.BlockReceivedAndDeletedResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockReceivedAndDeletedResponseProto {}

/// `hadoop.hdfs.datanode.BlockRecoveryCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockRecoveryCommandProto {
    /// Field 1 `blocks`.
    #[prost(message, repeated, tag = "1")]
    pub blocks: ::std::vec::Vec<super::hdfs::RecoveringBlockProto>,
}

/// `hadoop.hdfs.datanode.BlockReportContextProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockReportContextProto {
    /// Field 1 `totalRpcs`.
    #[prost(int32, required, tag = "1")]
    pub total_rpcs: i32,
    /// Field 2 `curRpc`.
    #[prost(int32, required, tag = "2")]
    pub cur_rpc: i32,
    /// Field 3 `id`.
    #[prost(int64, required, tag = "3")]
    pub id: i64,
    /// Field 4 `leaseId`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub lease_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.datanode.BlockReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockReportRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `reports`.
    #[prost(message, repeated, tag = "3")]
    pub reports: ::std::vec::Vec<StorageBlockReportProto>,
    /// Field 4 `context`.
    #[prost(message, optional, tag = "4")]
    pub context: ::core::option::Option<BlockReportContextProto>,
}

/// `hadoop.hdfs.datanode.BlockReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockReportResponseProto {
    /// Field 1 `cmd`.
    #[prost(message, optional, tag = "1")]
    pub cmd: ::core::option::Option<DatanodeCommandProto>,
}

/// `hadoop.hdfs.datanode.BlockToPackProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockToPackProto {
    /// Field 1000 `slot`.
    #[prost(uint32, required, tag = "1000")]
    pub slot: u32,
    /// Field 1001 `block`.
    #[prost(message, required, tag = "1001")]
    pub block: super::hdfs::BlockProto,
    /// Field 1002 `crc32c`.
    #[prost(fixed32, required, tag = "1002")]
    pub crc32c: u32,
    /// Field 1003 `datanodes`.
    #[prost(uint32, repeated, tag = "1003", packed = "true")]
    pub datanodes: ::std::vec::Vec<u32>,
}

/// `hadoop.hdfs.datanode.CacheReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheReportRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `blocks`.
    #[prost(uint64, repeated, tag = "3", packed = "true")]
    pub blocks: ::std::vec::Vec<u64>,
}

/// `hadoop.hdfs.datanode.CacheReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheReportResponseProto {
    /// Field 1 `cmd`.
    #[prost(message, optional, tag = "1")]
    pub cmd: ::core::option::Option<DatanodeCommandProto>,
}

/// `hadoop.hdfs.datanode.CommitBlockSynchronizationRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CommitBlockSynchronizationRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 2 `newGenStamp`.
    #[prost(uint64, required, tag = "2")]
    pub new_gen_stamp: u64,
    /// Field 3 `newLength`.
    #[prost(uint64, required, tag = "3")]
    pub new_length: u64,
    /// Field 4 `closeFile`.
    #[prost(bool, required, tag = "4")]
    pub close_file: bool,
    /// Field 5 `deleteBlock`.
    #[prost(bool, required, tag = "5")]
    pub delete_block: bool,
    /// Field 6 `newTaragets`.
    #[prost(message, repeated, tag = "6")]
    pub new_taragets: ::std::vec::Vec<super::hdfs::DatanodeIDProto>,
    /// Field 7 `newTargetStorages`.
    #[prost(string, repeated, tag = "7")]
    pub new_target_storages: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.datanode.CommitBlockSynchronizationResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CommitBlockSynchronizationResponseProto {}

/// `hadoop.hdfs.datanode.DatanodeCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeCommandProto {
    /// Field 1 `cmdType`.
    #[prost(enumeration = "DatanodeCommandProtoType", required, tag = "1")]
    pub cmd_type: i32,
    /// Field 2 `balancerCmd`.
    #[prost(message, optional, tag = "2")]
    pub balancer_cmd: ::core::option::Option<BalancerBandwidthCommandProto>,
    /// Field 3 `blkCmd`.
    #[prost(message, optional, tag = "3")]
    pub blk_cmd: ::core::option::Option<BlockCommandProto>,
    /// Field 4 `recoveryCmd`.
    #[prost(message, optional, tag = "4")]
    pub recovery_cmd: ::core::option::Option<BlockRecoveryCommandProto>,
    /// Field 5 `finalizeCmd`.
    #[prost(message, optional, tag = "5")]
    pub finalize_cmd: ::core::option::Option<FinalizeCommandProto>,
    /// Field 6 `keyUpdateCmd`.
    #[prost(message, optional, tag = "6")]
    pub key_update_cmd: ::core::option::Option<KeyUpdateCommandProto>,
    /// Field 7 `registerCmd`.
    #[prost(message, optional, tag = "7")]
    pub register_cmd: ::core::option::Option<RegisterCommandProto>,
    /// Field 8 `blkIdCmd`.
    #[prost(message, optional, tag = "8")]
    pub blk_id_cmd: ::core::option::Option<BlockIdCommandProto>,
    /// Field 9 `blkECReconstructionCmd`.
    #[prost(message, optional, tag = "9")]
    pub blk_ec_reconstruction_cmd: ::core::option::Option<BlockECReconstructionCommandProto>,
}

/// `hadoop.hdfs.datanode.DatanodeRegistrationProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeRegistrationProto {
    /// Field 1 `datanodeID`.
    #[prost(message, required, tag = "1")]
    pub datanode_id: super::hdfs::DatanodeIDProto,
    /// Field 2 `storageInfo`.
    #[prost(message, required, tag = "2")]
    pub storage_info: super::hdfs::StorageInfoProto,
    /// Field 3 `keys`.
    #[prost(message, required, tag = "3")]
    pub keys: super::hdfs::ExportedBlockKeysProto,
    /// Field 4 `softwareVersion`.
    #[prost(string, required, tag = "4")]
    pub software_version: ::std::string::String,
    /// Field 1000 `processNumber`.
    #[prost(fixed64, optional, tag = "1000")]
    pub process_number: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.datanode.EncodeOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EncodeOrderProto {
    /// Field 1000 `group`.
    #[prost(message, required, tag = "1000")]
    pub group: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `ecPolicy`.
    #[prost(message, required, tag = "1001")]
    pub ec_policy: super::hdfs::ErasureCodingPolicyProto,
    /// Field 1002 `members`.
    #[prost(message, repeated, tag = "1002")]
    pub members: ::std::vec::Vec<GroupUnitProto>,
    /// Field 1003 `targets`.
    #[prost(message, repeated, tag = "1003")]
    pub targets: ::std::vec::Vec<GroupUnitProto>,
}

/// `hadoop.hdfs.datanode.EncodedGroupProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EncodedGroupProto {
    /// Field 1000 `group`.
    #[prost(message, required, tag = "1000")]
    pub group: super::hdfs::BlockProto,
    /// Field 1001 `error`.
    #[prost(string, optional, tag = "1001")]
    pub error: ::core::option::Option<::std::string::String>,
    /// Field 1002 `members`.
    #[prost(message, repeated, tag = "1002")]
    pub members: ::std::vec::Vec<GroupMemberProto>,
    /// Field 1003 `parities`.
    #[prost(message, repeated, tag = "1003")]
    pub parities: ::std::vec::Vec<GroupParityProto>,
    /// Field 1004 `checksumType`.
    #[prost(enumeration = "super::hdfs::ChecksumTypeProto", optional, tag = "1004")]
    pub checksum_type: ::core::option::Option<i32>,
    /// Field 1005 `bytesPerChecksum`.
    #[prost(uint32, optional, tag = "1005")]
    pub bytes_per_checksum: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.datanode.ErrorReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ErrorReportRequestProto {
    /// Field 1 `registartion`.
    #[prost(message, required, tag = "1")]
    pub registartion: DatanodeRegistrationProto,
    /// Field 2 `errorCode`.
    #[prost(uint32, required, tag = "2")]
    pub error_code: u32,
    /// Field 3 `msg`.
    #[prost(string, required, tag = "3")]
    pub msg: ::std::string::String,
}

/// `hadoop.hdfs.datanode.ErrorReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ErrorReportResponseProto {}

/// `hadoop.hdfs.datanode.FailedWorkProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FailedWorkProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::BlockProto,
    /// Field 1001 `targetUuid`.
    #[prost(string, required, tag = "1001")]
    pub target_uuid: ::std::string::String,
    /// Field 1002 `suspectUuid`.
    #[prost(string, optional, tag = "1002")]
    pub suspect_uuid: ::core::option::Option<::std::string::String>,
    /// Field 1003 `reason`.
    #[prost(string, optional, tag = "1003")]
    pub reason: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.datanode.FinalizeCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FinalizeCommandProto {
    /// Field 1 `blockPoolId`.
    #[prost(string, required, tag = "1")]
    pub block_pool_id: ::std::string::String,
}

/// `hadoop.hdfs.datanode.GroupMemberProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupMemberProto {
    /// Field 1000 `slot`.
    #[prost(uint32, required, tag = "1000")]
    pub slot: u32,
    /// Field 1001 `block`.
    #[prost(message, required, tag = "1001")]
    pub block: super::hdfs::BlockProto,
    /// Field 1002 `crc32c`.
    #[prost(fixed32, required, tag = "1002")]
    pub crc32c: u32,
    /// Field 1003 `sumsCrc32c`.
    #[prost(fixed32, optional, tag = "1003")]
    pub sums_crc32c: ::core::option::Option<u32>,
    /// Field 1004 `storageUuid`.
    #[prost(string, optional, tag = "1004")]
    pub storage_uuid: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.datanode.GroupParityProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupParityProto {
    /// Field 1000 `slot`.
    #[prost(uint32, required, tag = "1000")]
    pub slot: u32,
    /// Field 1001 `len`.
    #[prost(uint64, required, tag = "1001")]
    pub len: u64,
    /// Field 1002 `crc32c`.
    #[prost(fixed32, required, tag = "1002")]
    pub crc32c: u32,
}

/// `hadoop.hdfs.datanode.GroupRebuildOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupRebuildOrderProto {
    /// Field 1000 `record`.
    #[prost(message, required, tag = "1000")]
    pub record: GroupRecordProto,
    /// Field 1001 `sources`.
    #[prost(message, repeated, tag = "1001")]
    pub sources: ::std::vec::Vec<GroupUnitProto>,
    /// Field 1002 `targets`.
    #[prost(message, repeated, tag = "1002")]
    pub targets: ::std::vec::Vec<GroupUnitProto>,
    /// Field 1003 `isUrgent`.
    #[prost(bool, optional, tag = "1003")]
    pub is_urgent: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.datanode.GroupRecordProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupRecordProto {
    /// Field 1000 `group`.
    #[prost(message, required, tag = "1000")]
    pub group: super::hdfs::BlockProto,
    /// Field 1001 `ecPolicy`.
    #[prost(message, required, tag = "1001")]
    pub ec_policy: super::hdfs::ErasureCodingPolicyProto,
    /// Field 1002 `members`.
    #[prost(message, repeated, tag = "1002")]
    pub members: ::std::vec::Vec<GroupMemberProto>,
    /// Field 1003 `dataLen`.
    #[prost(uint64, required, tag = "1003")]
    pub data_len: u64,
    /// Field 1004 `parities`.
    #[prost(message, repeated, tag = "1004")]
    pub parities: ::std::vec::Vec<GroupParityProto>,
    /// Field 1005 `checksumType`.
    #[prost(enumeration = "super::hdfs::ChecksumTypeProto", required, tag = "1005")]
    pub checksum_type: i32,
    /// Field 1006 `bytesPerChecksum`.
    #[prost(uint32, required, tag = "1006")]
    pub bytes_per_checksum: u32,
}

/// `hadoop.hdfs.datanode.GroupUnitProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GroupUnitProto {
    /// Field 1000 `slot`.
    #[prost(uint32, required, tag = "1000")]
    pub slot: u32,
    /// Field 1001 `block`.
    #[prost(message, required, tag = "1001")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 1002 `datanode`.
    #[prost(message, required, tag = "1002")]
    pub datanode: super::hdfs::DatanodeInfoProto,
    /// Field 1003 `storageUuid`.
    #[prost(string, required, tag = "1003")]
    pub storage_uuid: ::std::string::String,
    /// Field 1004 `storageType`.
    #[prost(enumeration = "super::hdfs::StorageTypeProto", optional, tag = "1004")]
    pub storage_type: ::core::option::Option<i32>,
    /// Field 1005 `crc32c`.
    #[prost(fixed32, optional, tag = "1005")]
    pub crc32c: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.datanode.HeartbeatRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeartbeatRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
    /// Field 2 `reports`.
    #[prost(message, repeated, tag = "2")]
    pub reports: ::std::vec::Vec<super::hdfs::StorageReportProto>,
    /// Field 3 `xmitsInProgress`.
    #[prost(uint32, optional, tag = "3", default = "0")]
    pub xmits_in_progress: ::core::option::Option<u32>,
    /// Field 4 `xceiverCount`.
    #[prost(uint32, optional, tag = "4", default = "0")]
    pub xceiver_count: ::core::option::Option<u32>,
    /// Field 5 `failedVolumes`.
    #[prost(uint32, optional, tag = "5", default = "0")]
    pub failed_volumes: ::core::option::Option<u32>,
    /// Field 6 `cacheCapacity`.
    #[prost(uint64, optional, tag = "6", default = "0")]
    pub cache_capacity: ::core::option::Option<u64>,
    /// Field 7 `cacheUsed`.
    #[prost(uint64, optional, tag = "7", default = "0")]
    pub cache_used: ::core::option::Option<u64>,
    /// Field 8 `volumeFailureSummary`.
    #[prost(message, optional, tag = "8")]
    pub volume_failure_summary: ::core::option::Option<VolumeFailureSummaryProto>,
    /// Field 9 `requestFullBlockReportLease`.
    #[prost(bool, optional, tag = "9", default = "false")]
    pub request_full_block_report_lease: ::core::option::Option<bool>,
    /// Field 10 `slowPeers`.
    #[prost(message, repeated, tag = "10")]
    pub slow_peers: ::std::vec::Vec<SlowPeerReportProto>,
    /// Field 11 `slowDisks`.
    #[prost(message, repeated, tag = "11")]
    pub slow_disks: ::std::vec::Vec<SlowDiskReportProto>,
    /// Field 1000 `failedWork`.
    #[prost(message, repeated, tag = "1000")]
    pub failed_work: ::std::vec::Vec<FailedWorkProto>,
    /// Field 1001 `takesScrubs`.
    #[prost(bool, optional, tag = "1001")]
    pub takes_scrubs: ::core::option::Option<bool>,
    /// Field 1002 `scrubbed`.
    #[prost(message, repeated, tag = "1002")]
    pub scrubbed: ::std::vec::Vec<ScrubbedBlockProto>,
    /// Field 1003 `takesGroups`.
    #[prost(bool, optional, tag = "1003")]
    pub takes_groups: ::core::option::Option<bool>,
    /// Field 1004 `encoded`.
    #[prost(message, repeated, tag = "1004")]
    pub encoded: ::std::vec::Vec<EncodedGroupProto>,
    /// Field 1005 `proved`.
    #[prost(message, repeated, tag = "1005")]
    pub proved: ::std::vec::Vec<ProvedReplicaProto>,
    /// Field 1006 `packed`.
    #[prost(message, repeated, tag = "1006")]
    pub packed: ::std::vec::Vec<PackedContainerProto>,
}

/// `hadoop.hdfs.datanode.HeartbeatResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeartbeatResponseProto {
    /// Field 1 `cmds`.
    #[prost(message, repeated, tag = "1")]
    pub cmds: ::std::vec::Vec<DatanodeCommandProto>,
    /// Field 2 `haStatus`.
    #[prost(message, required, tag = "2")]
    pub ha_status: super::hdfs::NNHAStatusHeartbeatProto,
    /// Field 3 `rollingUpgradeStatus`.
    #[prost(message, optional, tag = "3")]
    pub rolling_upgrade_status: ::core::option::Option<super::hdfs::RollingUpgradeStatusProto>,
    /// Field 4 `rollingUpgradeStatusV2`.
    #[prost(message, optional, tag = "4")]
    pub rolling_upgrade_status_v2: ::core::option::Option<super::hdfs::RollingUpgradeStatusProto>,
    /// Field 5 `fullBlockReportLeaseId`.
    #[prost(uint64, optional, tag = "5", default = "0")]
    pub full_block_report_lease_id: ::core::option::Option<u64>,
    /// Field 6 `isSlownode`.
    #[prost(bool, optional, tag = "6", default = "false")]
    pub is_slownode: ::core::option::Option<bool>,
    /// Field 1000 `scrubs`.
    #[prost(message, repeated, tag = "1000")]
    pub scrubs: ::std::vec::Vec<ScrubOrderProto>,
    /// Field 1001 `orders`.
    #[prost(uint64, optional, tag = "1001")]
    pub orders: ::core::option::Option<u64>,
    /// Field 1002 `encodes`.
    #[prost(message, repeated, tag = "1002")]
    pub encodes: ::std::vec::Vec<EncodeOrderProto>,
    /// Field 1003 `groupRebuilds`.
    #[prost(message, repeated, tag = "1003")]
    pub group_rebuilds: ::std::vec::Vec<GroupRebuildOrderProto>,
    /// Field 1004 `proves`.
    #[prost(message, repeated, tag = "1004")]
    pub proves: ::std::vec::Vec<ProveOrderProto>,
    /// Field 1005 `retired`.
    #[prost(message, repeated, tag = "1005")]
    pub retired: ::std::vec::Vec<super::hdfs::BlockProto>,
    /// Field 1006 `packs`.
    #[prost(message, repeated, tag = "1006")]
    pub packs: ::std::vec::Vec<PackOrderProto>,
    /// Field 1007 `term`.
    #[prost(uint64, optional, tag = "1007")]
    pub term: ::core::option::Option<u64>,
    /// Field 1008 `unpacks`.
    #[prost(message, repeated, tag = "1008")]
    pub unpacks: ::std::vec::Vec<UnpackOrderProto>,
}

/// `hadoop.hdfs.datanode.KeyUpdateCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct KeyUpdateCommandProto {
    /// Field 1 `keys`.
    #[prost(message, required, tag = "1")]
    pub keys: super::hdfs::ExportedBlockKeysProto,
}

/// `hadoop.hdfs.datanode.LocateUnitsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocateUnitsRequestProto {
    /// Field 1000 `registration`.
    #[prost(message, required, tag = "1000")]
    pub registration: DatanodeRegistrationProto,
    /// Field 1001 `block`.
    #[prost(message, required, tag = "1001")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 1002 `also`.
    #[prost(message, repeated, tag = "1002")]
    pub also: ::std::vec::Vec<super::hdfs::ExtendedBlockProto>,
}

/// `hadoop.hdfs.datanode.LocateUnitsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocateUnitsResponseProto {
    /// Field 1000 `relays`.
    #[prost(message, repeated, tag = "1000")]
    pub relays: ::std::vec::Vec<GroupUnitProto>,
    /// Field 1001 `record`.
    #[prost(message, optional, tag = "1001")]
    pub record: ::core::option::Option<GroupRecordProto>,
    /// Field 1002 `sources`.
    #[prost(message, repeated, tag = "1002")]
    pub sources: ::std::vec::Vec<GroupUnitProto>,
    /// Field 1003 `viewed`.
    #[prost(message, optional, tag = "1003")]
    pub viewed: ::core::option::Option<ViewedGroupProto>,
    /// Field 1004 `packed`.
    #[prost(message, optional, tag = "1004")]
    pub packed: ::core::option::Option<PackedBlockProto>,
    /// Field 1005 `also`.
    #[prost(message, repeated, tag = "1005")]
    pub also: ::std::vec::Vec<LocateUnitsResponseProto>,
}

/// `hadoop.hdfs.datanode.PackOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PackOrderProto {
    /// Field 1000 `container`.
    #[prost(message, required, tag = "1000")]
    pub container: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `storageUuid`.
    #[prost(string, required, tag = "1001")]
    pub storage_uuid: ::std::string::String,
    /// Field 1002 `storageType`.
    #[prost(enumeration = "super::hdfs::StorageTypeProto", optional, tag = "1002")]
    pub storage_type: ::core::option::Option<i32>,
    /// Field 1003 `datanodes`.
    #[prost(message, repeated, tag = "1003")]
    pub datanodes: ::std::vec::Vec<super::hdfs::DatanodeInfoProto>,
    /// Field 1004 `blocks`.
    #[prost(message, repeated, tag = "1004")]
    pub blocks: ::std::vec::Vec<BlockToPackProto>,
}

/// `hadoop.hdfs.datanode.PackedBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PackedBlockProto {
    /// Field 1000 `container`.
    #[prost(message, required, tag = "1000")]
    pub container: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `offset`.
    #[prost(uint64, required, tag = "1001")]
    pub offset: u64,
    /// Field 1002 `len`.
    #[prost(uint64, required, tag = "1002")]
    pub len: u64,
    /// Field 1003 `crc32c`.
    #[prost(fixed32, required, tag = "1003")]
    pub crc32c: u32,
    /// Field 1004 `checksumType`.
    #[prost(enumeration = "super::hdfs::ChecksumTypeProto", required, tag = "1004")]
    pub checksum_type: i32,
    /// Field 1005 `bytesPerChecksum`.
    #[prost(uint32, required, tag = "1005")]
    pub bytes_per_checksum: u32,
}

/// `hadoop.hdfs.datanode.PackedContainerProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PackedContainerProto {
    /// Field 1000 `container`.
    #[prost(message, required, tag = "1000")]
    pub container: super::hdfs::BlockProto,
    /// Field 1001 `error`.
    #[prost(string, optional, tag = "1001")]
    pub error: ::core::option::Option<::std::string::String>,
    /// Field 1002 `storageUuid`.
    #[prost(string, optional, tag = "1002")]
    pub storage_uuid: ::core::option::Option<::std::string::String>,
    /// Field 1003 `crc32c`.
    #[prost(fixed32, optional, tag = "1003")]
    pub crc32c: ::core::option::Option<u32>,
    /// Field 1004 `leftOut`.
    #[prost(uint32, repeated, tag = "1004", packed = "true")]
    pub left_out: ::std::vec::Vec<u32>,
    /// Field 1005 `crcs`.
    #[prost(fixed32, repeated, tag = "1005", packed = "true")]
    pub crcs: ::std::vec::Vec<u32>,
    /// Field 1006 `checksumType`.
    #[prost(enumeration = "super::hdfs::ChecksumTypeProto", optional, tag = "1006")]
    pub checksum_type: ::core::option::Option<i32>,
    /// Field 1007 `bytesPerChecksum`.
    #[prost(uint32, optional, tag = "1007")]
    pub bytes_per_checksum: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.datanode.ProveOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProveOrderProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `storageUuid`.
    #[prost(string, required, tag = "1001")]
    pub storage_uuid: ::std::string::String,
    /// Field 1002 `wantsIndex`.
    #[prost(bool, optional, tag = "1002")]
    pub wants_index: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.datanode.ProvedReplicaProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProvedReplicaProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::BlockProto,
    /// Field 1001 `storageUuid`.
    #[prost(string, required, tag = "1001")]
    pub storage_uuid: ::std::string::String,
    /// Field 1002 `crc32c`.
    #[prost(fixed32, optional, tag = "1002")]
    pub crc32c: ::core::option::Option<u32>,
    /// Field 1003 `record`.
    #[prost(bytes = "vec", optional, tag = "1003")]
    pub record: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.datanode.ReceivedDeletedBlockInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReceivedDeletedBlockInfoProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: super::hdfs::BlockProto,
    /// Field 3 `status`.
    #[prost(enumeration = "ReceivedDeletedBlockInfoProtoBlockStatus", required, tag = "3")]
    pub status: i32,
    /// Field 2 `deleteHint`.
    #[prost(string, optional, tag = "2")]
    pub delete_hint: ::core::option::Option<::std::string::String>,
    /// Field 1000 `crc32c`.
    #[prost(fixed32, optional, tag = "1000")]
    pub crc32c: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.datanode.RegisterCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterCommandProto {}

/// `hadoop.hdfs.datanode.RegisterDatanodeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterDatanodeRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
}

/// `hadoop.hdfs.datanode.RegisterDatanodeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterDatanodeResponseProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: DatanodeRegistrationProto,
}

/// `hadoop.hdfs.datanode.ReportBadBlocksRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReportBadBlocksRequestProto {
    /// Field 1 `blocks`.
    #[prost(message, repeated, tag = "1")]
    pub blocks: ::std::vec::Vec<super::hdfs::LocatedBlockProto>,
}

/// `hadoop.hdfs.datanode.ReportBadBlocksResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReportBadBlocksResponseProto {}

/// `hadoop.hdfs.datanode.ScrubOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ScrubOrderProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `datanodes`.
    #[prost(message, required, tag = "1001")]
    pub datanodes: super::hdfs::DatanodeInfosProto,
    /// Field 1002 `storageUuids`.
    #[prost(message, required, tag = "1002")]
    pub storage_uuids: super::hdfs::StorageUuidsProto,
    /// Field 1003 `unitIndices`.
    #[prost(bytes = "vec", optional, tag = "1003")]
    pub unit_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1004 `ecPolicy`.
    #[prost(message, optional, tag = "1004")]
    pub ec_policy: ::core::option::Option<super::hdfs::ErasureCodingPolicyProto>,
    /// Field 1005 `bytesPerSecond`.
    #[prost(uint64, required, tag = "1005")]
    pub bytes_per_second: u64,
}

/// `hadoop.hdfs.datanode.ScrubbedBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ScrubbedBlockProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::BlockProto,
    /// Field 1001 `places`.
    #[prost(message, repeated, tag = "1001")]
    pub places: ::std::vec::Vec<ScrubbedPlaceProto>,
    /// Field 1002 `agree`.
    #[prost(bool, optional, tag = "1002")]
    pub agree: ::core::option::Option<bool>,
    /// Field 1003 `suspects`.
    #[prost(bytes = "vec", optional, tag = "1003")]
    pub suspects: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.datanode.ScrubbedPlaceProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ScrubbedPlaceProto {
    /// Field 1000 `storageUuid`.
    #[prost(string, required, tag = "1000")]
    pub storage_uuid: ::std::string::String,
    /// Field 1001 `unit`.
    #[prost(uint32, required, tag = "1001")]
    pub unit: u32,
    /// Field 1002 `crc32c`.
    #[prost(fixed32, optional, tag = "1002")]
    pub crc32c: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.datanode.SlowDiskReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SlowDiskReportProto {
    /// Field 1 `basePath`.
    #[prost(string, optional, tag = "1")]
    pub base_path: ::core::option::Option<::std::string::String>,
    /// Field 2 `meanMetadataOpLatency`.
    #[prost(double, optional, tag = "2")]
    pub mean_metadata_op_latency: ::core::option::Option<f64>,
    /// Field 3 `meanReadIoLatency`.
    #[prost(double, optional, tag = "3")]
    pub mean_read_io_latency: ::core::option::Option<f64>,
    /// Field 4 `meanWriteIoLatency`.
    #[prost(double, optional, tag = "4")]
    pub mean_write_io_latency: ::core::option::Option<f64>,
}

/// `hadoop.hdfs.datanode.SlowPeerReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SlowPeerReportProto {
    /// Field 1 `dataNodeId`.
    #[prost(string, optional, tag = "1")]
    pub data_node_id: ::core::option::Option<::std::string::String>,
    /// Field 2 `aggregateLatency`.
    #[prost(double, optional, tag = "2")]
    pub aggregate_latency: ::core::option::Option<f64>,
    /// Field 3 `median`.
    #[prost(double, optional, tag = "3")]
    pub median: ::core::option::Option<f64>,
    /// Field 4 `mad`.
    #[prost(double, optional, tag = "4")]
    pub mad: ::core::option::Option<f64>,
    /// Field 5 `upperLimitLatency`.
    #[prost(double, optional, tag = "5")]
    pub upper_limit_latency: ::core::option::Option<f64>,
}

/// `hadoop.hdfs.datanode.StorageBlockReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageBlockReportProto {
    /// Field 1 `storage`.
    #[prost(message, required, tag = "1")]
    pub storage: super::hdfs::DatanodeStorageProto,
    /// Field 2 `blocks`.
    #[prost(uint64, repeated, tag = "2", packed = "true")]
    pub blocks: ::std::vec::Vec<u64>,
    /// Field 3 `numberOfBlocks`.
    #[prost(uint64, optional, tag = "3")]
    pub number_of_blocks: ::core::option::Option<u64>,
    /// Field 4 `blocksBuffers`.
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub blocks_buffers: ::std::vec::Vec<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.datanode.StorageReceivedDeletedBlocksProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageReceivedDeletedBlocksProto {
    /// Field 1 `storageUuid`.
    #[prost(string, required, tag = "1")]
    pub storage_uuid: ::std::string::String,
    /// Field 2 `blocks`.
    #[prost(message, repeated, tag = "2")]
    pub blocks: ::std::vec::Vec<ReceivedDeletedBlockInfoProto>,
    /// Field 3 `storage`.
    #[prost(message, optional, tag = "3")]
    pub storage: ::core::option::Option<super::hdfs::DatanodeStorageProto>,
}

/// `hadoop.hdfs.datanode.UnpackOrderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnpackOrderProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `storageUuid`.
    #[prost(string, required, tag = "1001")]
    pub storage_uuid: ::std::string::String,
    /// Field 1002 `storageType`.
    #[prost(enumeration = "super::hdfs::StorageTypeProto", optional, tag = "1002")]
    pub storage_type: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.datanode.ViewedGroupProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ViewedGroupProto {
    /// Field 1000 `group`.
    #[prost(message, required, tag = "1000")]
    pub group: super::hdfs::ExtendedBlockProto,
    /// Field 1001 `ecPolicy`.
    #[prost(message, required, tag = "1001")]
    pub ec_policy: super::hdfs::ErasureCodingPolicyProto,
    /// Field 1002 `units`.
    #[prost(message, repeated, tag = "1002")]
    pub units: ::std::vec::Vec<GroupUnitProto>,
}

/// `hadoop.hdfs.datanode.VolumeFailureSummaryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct VolumeFailureSummaryProto {
    /// Field 1 `failedStorageLocations`.
    #[prost(string, repeated, tag = "1")]
    pub failed_storage_locations: ::std::vec::Vec<::std::string::String>,
    /// Field 2 `lastVolumeFailureDate`.
    #[prost(uint64, required, tag = "2")]
    pub last_volume_failure_date: u64,
    /// Field 3 `estimatedCapacityLostTotal`.
    #[prost(uint64, required, tag = "3")]
    pub estimated_capacity_lost_total: u64,
}

/// `hadoop.hdfs.datanode.BlockCommandProto.Action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum BlockCommandProtoAction {
    /// `TRANSFER`.
    Transfer = 1,
    /// `INVALIDATE`.
    Invalidate = 2,
    /// `SHUTDOWN`.
    Shutdown = 3,
}

/// `hadoop.hdfs.datanode.BlockIdCommandProto.Action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum BlockIdCommandProtoAction {
    /// `CACHE`.
    Cache = 1,
    /// `UNCACHE`.
    Uncache = 2,
}

/// `hadoop.hdfs.datanode.DatanodeCommandProto.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DatanodeCommandProtoType {
    /// `BalancerBandwidthCommand`.
    BalancerBandwidthCommand = 0,
    /// `BlockCommand`.
    BlockCommand = 1,
    /// `BlockRecoveryCommand`.
    BlockRecoveryCommand = 2,
    /// `FinalizeCommand`.
    FinalizeCommand = 3,
    /// `KeyUpdateCommand`.
    KeyUpdateCommand = 4,
    /// `RegisterCommand`.
    RegisterCommand = 5,
    /// `UnusedUpgradeCommand`.
    UnusedUpgradeCommand = 6,
    /// `NullDatanodeCommand`.
    NullDatanodeCommand = 7,
    /// `BlockIdCommand`.
    BlockIdCommand = 8,
    /// `BlockECReconstructionCommand`.
    BlockECReconstructionCommand = 9,
}

/// `hadoop.hdfs.datanode.ErrorReportRequestProto.ErrorCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ErrorReportRequestProtoErrorCode {
    /// `NOTIFY`.
    Notify = 0,
    /// `DISK_ERROR`.
    DiskError = 1,
    /// `INVALID_BLOCK`.
    InvalidBlock = 2,
    /// `FATAL_DISK_ERROR`.
    FatalDiskError = 3,
}

/// `hadoop.hdfs.datanode.ReceivedDeletedBlockInfoProto.BlockStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ReceivedDeletedBlockInfoProtoBlockStatus {
    /// `RECEIVING`.
    Receiving = 1,
    /// `RECEIVED`.
    Received = 2,
    /// `DELETED`.
    Deleted = 3,
}

/// Methods of `hadoop.hdfs.datanode.DatanodeProtocolService`.
pub const DATANODE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "registerDatanode",
    "sendHeartbeat",
    "blockReport",
    "cacheReport",
    "blockReceivedAndDeleted",
    "errorReport",
    "versionRequest",
    "reportBadBlocks",
    "commitBlockSynchronization",
];
