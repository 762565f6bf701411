// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.hdfs.namenode.EndCheckpointRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EndCheckpointRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: super::hdfs::NamenodeRegistrationProto,
    /// Field 2 `signature`.
    #[prost(message, required, tag = "2")]
    pub signature: super::hdfs::CheckpointSignatureProto,
}

/// `hadoop.hdfs.namenode.EndCheckpointResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EndCheckpointResponseProto {}

/// `hadoop.hdfs.namenode.ErrorReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ErrorReportRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: super::hdfs::NamenodeRegistrationProto,
    /// Field 2 `errorCode`.
    #[prost(uint32, required, tag = "2")]
    pub error_code: u32,
    /// Field 3 `msg`.
    #[prost(string, required, tag = "3")]
    pub msg: ::std::string::String,
}

/// `hadoop.hdfs.namenode.ErrorReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ErrorReportResponseProto {}

/// `hadoop.hdfs.namenode.GetBlockKeysRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockKeysRequestProto {}

/// `hadoop.hdfs.namenode.GetBlockKeysResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockKeysResponseProto {
    /// Field 1 `keys`.
    #[prost(message, optional, tag = "1")]
    pub keys: ::core::option::Option<super::hdfs::ExportedBlockKeysProto>,
}

/// `hadoop.hdfs.namenode.GetBlocksRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlocksRequestProto {
    /// Field 1 `datanode`.
    #[prost(message, required, tag = "1")]
    pub datanode: super::hdfs::DatanodeIDProto,
    /// Field 2 `size`.
    #[prost(uint64, required, tag = "2")]
    pub size: u64,
    /// Field 3 `minBlockSize`.
    #[prost(uint64, optional, tag = "3", default = "10485760")]
    pub min_block_size: ::core::option::Option<u64>,
    /// Field 4 `timeInterval`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub time_interval: ::core::option::Option<u64>,
    /// Field 5 `storageType`.
    #[prost(enumeration = "super::hdfs::StorageTypeProto", optional, tag = "5")]
    pub storage_type: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.namenode.GetBlocksResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlocksResponseProto {
    /// Field 1 `blocks`.
    #[prost(message, required, tag = "1")]
    pub blocks: super::hdfs::BlocksWithLocationsProto,
}

/// `hadoop.hdfs.namenode.GetEditLogManifestRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEditLogManifestRequestProto {
    /// Field 1 `sinceTxId`.
    #[prost(uint64, required, tag = "1")]
    pub since_tx_id: u64,
}

/// `hadoop.hdfs.namenode.GetEditLogManifestResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEditLogManifestResponseProto {
    /// Field 1 `manifest`.
    #[prost(message, required, tag = "1")]
    pub manifest: super::hdfs::RemoteEditLogManifestProto,
}

/// `hadoop.hdfs.namenode.GetFilePathRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFilePathRequestProto {
    /// Field 1 `fileId`.
    #[prost(uint64, required, tag = "1")]
    pub file_id: u64,
}

/// `hadoop.hdfs.namenode.GetFilePathResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFilePathResponseProto {
    /// Field 1 `srcPath`.
    #[prost(string, required, tag = "1")]
    pub src_path: ::std::string::String,
}

/// `hadoop.hdfs.namenode.GetMostRecentCheckpointTxIdRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMostRecentCheckpointTxIdRequestProto {}

/// `hadoop.hdfs.namenode.GetMostRecentCheckpointTxIdResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMostRecentCheckpointTxIdResponseProto {
    /// Field 1 `txId`.
    #[prost(uint64, required, tag = "1")]
    pub tx_id: u64,
}

/// `hadoop.hdfs.namenode.GetMostRecentNameNodeFileTxIdRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMostRecentNameNodeFileTxIdRequestProto {
    /// Field 1 `nameNodeFile`.
    #[prost(string, required, tag = "1")]
    pub name_node_file: ::std::string::String,
}

/// `hadoop.hdfs.namenode.GetMostRecentNameNodeFileTxIdResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMostRecentNameNodeFileTxIdResponseProto {
    /// Field 1 `txId`.
    #[prost(uint64, required, tag = "1")]
    pub tx_id: u64,
}

/// `hadoop.hdfs.namenode.GetNextSPSPathRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetNextSPSPathRequestProto {}

/// `hadoop.hdfs.namenode.GetNextSPSPathResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetNextSPSPathResponseProto {
    /// Field 1 `spsPath`.
    #[prost(uint64, optional, tag = "1")]
    pub sps_path: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.namenode.GetTransactionIdRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetTransactionIdRequestProto {}

/// `hadoop.hdfs.namenode.GetTransactionIdResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetTransactionIdResponseProto {
    /// Field 1 `txId`.
    #[prost(uint64, required, tag = "1")]
    pub tx_id: u64,
}

/// `hadoop.hdfs.namenode.IsRollingUpgradeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsRollingUpgradeRequestProto {}

/// `hadoop.hdfs.namenode.IsRollingUpgradeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsRollingUpgradeResponseProto {
    /// Field 1 `isRollingUpgrade`.
    #[prost(bool, required, tag = "1")]
    pub is_rolling_upgrade: bool,
}

/// `hadoop.hdfs.namenode.IsUpgradeFinalizedRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsUpgradeFinalizedRequestProto {}

/// `hadoop.hdfs.namenode.IsUpgradeFinalizedResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsUpgradeFinalizedResponseProto {
    /// Field 1 `isUpgradeFinalized`.
    #[prost(bool, required, tag = "1")]
    pub is_upgrade_finalized: bool,
}

/// `hadoop.hdfs.namenode.RegisterRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: super::hdfs::NamenodeRegistrationProto,
}

/// `hadoop.hdfs.namenode.RegisterResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RegisterResponseProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: super::hdfs::NamenodeRegistrationProto,
}

/// `hadoop.hdfs.namenode.RollEditLogRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollEditLogRequestProto {}

/// `hadoop.hdfs.namenode.RollEditLogResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollEditLogResponseProto {
    /// Field 1 `signature`.
    #[prost(message, required, tag = "1")]
    pub signature: super::hdfs::CheckpointSignatureProto,
}

/// `hadoop.hdfs.namenode.StartCheckpointRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StartCheckpointRequestProto {
    /// Field 1 `registration`.
    #[prost(message, required, tag = "1")]
    pub registration: super::hdfs::NamenodeRegistrationProto,
}

/// `hadoop.hdfs.namenode.StartCheckpointResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StartCheckpointResponseProto {
    /// Field 1 `command`.
    #[prost(message, required, tag = "1")]
    pub command: super::hdfs::NamenodeCommandProto,
}

/// Methods of `hadoop.hdfs.namenode.NamenodeProtocolService`.
pub const NAMENODE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "getBlocks",
    "getBlockKeys",
    "getTransactionId",
    "getMostRecentCheckpointTxId",
    "getMostRecentNameNodeFileTxId",
    "rollEditLog",
    "versionRequest",
    "errorReport",
    "registerSubordinateNamenode",
    "startCheckpoint",
    "endCheckpoint",
    "getEditLogManifest",
    "isUpgradeFinalized",
    "isRollingUpgrade",
    "getNextSPSPath",
];
