// Written by `cargo xtask proto` from the lists in crates/wire/proto: do not edit.

/// `hadoop.hdfs.AbandonBlockRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AbandonBlockRequestProto {
    /// Field 1 `b`.
    #[prost(message, required, tag = "1")]
    pub b: ExtendedBlockProto,
    /// Field 2 `src`.
    #[prost(string, required, tag = "2")]
    pub src: ::std::string::String,
    /// Field 3 `holder`.
    #[prost(string, required, tag = "3")]
    pub holder: ::std::string::String,
    /// Field 4 `fileId`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub file_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.AbandonBlockResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AbandonBlockResponseProto {}

/// `hadoop.hdfs.AcceptRestoredRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AcceptRestoredRequestProto {
    /// Field 1000 `accept`.
    #[prost(bool, optional, tag = "1000")]
    pub accept: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.AcceptRestoredResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AcceptRestoredResponseProto {
    /// Field 1000 `restored`.
    #[prost(bool, optional, tag = "1000")]
    pub restored: ::core::option::Option<bool>,
    /// Field 1001 `sequence`.
    #[prost(uint64, optional, tag = "1001")]
    pub sequence: ::core::option::Option<u64>,
    /// Field 1002 `entryMs`.
    #[prost(uint64, optional, tag = "1002")]
    pub entry_ms: ::core::option::Option<u64>,
    /// Field 1003 `restoredMs`.
    #[prost(uint64, optional, tag = "1003")]
    pub restored_ms: ::core::option::Option<u64>,
    /// Field 1004 `unreadParities`.
    #[prost(uint64, optional, tag = "1004")]
    pub unread_parities: ::core::option::Option<u64>,
    /// Field 1005 `foundGroups`.
    #[prost(uint64, optional, tag = "1005")]
    pub found_groups: ::core::option::Option<u64>,
    /// Field 1006 `adoptedGroups`.
    #[prost(uint64, optional, tag = "1006")]
    pub adopted_groups: ::core::option::Option<u64>,
    /// Field 1007 `refusedGroups`.
    #[prost(string, repeated, tag = "1007")]
    pub refused_groups: ::std::vec::Vec<::std::string::String>,
    /// Field 1008 `unreadContainers`.
    #[prost(uint64, optional, tag = "1008")]
    pub unread_containers: ::core::option::Option<u64>,
    /// Field 1009 `adoptedBlocks`.
    #[prost(uint64, optional, tag = "1009")]
    pub adopted_blocks: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.AclEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AclEntryProto {
    /// Field 1 `type`.
    #[prost(enumeration = "AclEntryProtoAclEntryTypeProto", required, tag = "1")]
    pub r#type: i32,
    /// Field 2 `scope`.
    #[prost(enumeration = "AclEntryProtoAclEntryScopeProto", required, tag = "2")]
    pub scope: i32,
    /// Field 3 `permissions`.
    #[prost(enumeration = "AclEntryProtoFsActionProto", required, tag = "3")]
    pub permissions: i32,
    /// Field 4 `name`.
    #[prost(string, optional, tag = "4")]
    pub name: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.AclStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AclStatusProto {
    /// Field 1 `owner`.
    #[prost(string, required, tag = "1")]
    pub owner: ::std::string::String,
    /// Field 2 `group`.
    #[prost(string, required, tag = "2")]
    pub group: ::std::string::String,
    /// Field 3 `sticky`.
    #[prost(bool, required, tag = "3")]
    pub sticky: bool,
    /// Field 4 `entries`.
    #[prost(message, repeated, tag = "4")]
    pub entries: ::std::vec::Vec<AclEntryProto>,
    /// Field 5 `permission`.
    #[prost(message, optional, tag = "5")]
    pub permission: ::core::option::Option<FsPermissionProto>,
}

/// `hadoop.hdfs.AddBlockRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddBlockRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
    /// Field 3 `previous`.
    #[prost(message, optional, tag = "3")]
    pub previous: ::core::option::Option<ExtendedBlockProto>,
    /// Field 4 `excludeNodes`.
    #[prost(message, repeated, tag = "4")]
    pub exclude_nodes: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 5 `fileId`.
    #[prost(uint64, optional, tag = "5", default = "0")]
    pub file_id: ::core::option::Option<u64>,
    /// Field 6 `favoredNodes`.
    #[prost(string, repeated, tag = "6")]
    pub favored_nodes: ::std::vec::Vec<::std::string::String>,
    /// Field 7 `flags`.
    #[prost(enumeration = "AddBlockFlagProto", repeated, tag = "7", packed = "false")]
    pub flags: ::std::vec::Vec<i32>,
}

/// `hadoop.hdfs.AddBlockResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddBlockResponseProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: LocatedBlockProto,
}

/// `hadoop.hdfs.AddCacheDirectiveRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddCacheDirectiveRequestProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CacheDirectiveInfoProto,
    /// Field 2 `cacheFlags`.
    #[prost(uint32, optional, tag = "2")]
    pub cache_flags: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.AddCacheDirectiveResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddCacheDirectiveResponseProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
}

/// `hadoop.hdfs.AddCachePoolRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddCachePoolRequestProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CachePoolInfoProto,
}

/// `hadoop.hdfs.AddCachePoolResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddCachePoolResponseProto {}

/// `hadoop.hdfs.AddErasureCodingPoliciesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddErasureCodingPoliciesRequestProto {
    /// Field 1 `ecPolicies`.
    #[prost(message, repeated, tag = "1")]
    pub ec_policies: ::std::vec::Vec<ErasureCodingPolicyProto>,
}

/// `hadoop.hdfs.AddErasureCodingPoliciesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddErasureCodingPoliciesResponseProto {
    /// Field 1 `responses`.
    #[prost(message, repeated, tag = "1")]
    pub responses: ::std::vec::Vec<AddErasureCodingPolicyResponseProto>,
}

/// `hadoop.hdfs.AddErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddErasureCodingPolicyResponseProto {
    /// Field 1 `policy`.
    #[prost(message, required, tag = "1")]
    pub policy: ErasureCodingPolicyProto,
    /// Field 2 `succeed`.
    #[prost(bool, required, tag = "2")]
    pub succeed: bool,
    /// Field 3 `errorMsg`.
    #[prost(string, optional, tag = "3")]
    pub error_msg: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.AllowSnapshotRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AllowSnapshotRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
}

/// `hadoop.hdfs.AllowSnapshotResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AllowSnapshotResponseProto {}

/// `hadoop.hdfs.AlsoReadProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AlsoReadProto {
    /// Field 1000 `block`.
    #[prost(message, required, tag = "1000")]
    pub block: ExtendedBlockProto,
    /// Field 1001 `token`.
    #[prost(message, required, tag = "1001")]
    pub token: super::common::TokenProto,
}

/// `hadoop.hdfs.AppendEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AppendEventProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `newBlock`.
    #[prost(bool, optional, tag = "2", default = "false")]
    pub new_block: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.AppendRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AppendRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
    /// Field 3 `flag`.
    #[prost(uint32, optional, tag = "3")]
    pub flag: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.AppendResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AppendResponseProto {
    /// Field 1 `block`.
    #[prost(message, optional, tag = "1")]
    pub block: ::core::option::Option<LocatedBlockProto>,
    /// Field 2 `stat`.
    #[prost(message, optional, tag = "2")]
    pub stat: ::core::option::Option<HdfsFileStatusProto>,
}

/// `hadoop.hdfs.BaseHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BaseHeaderProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `token`.
    #[prost(message, optional, tag = "2")]
    pub token: ::core::option::Option<super::common::TokenProto>,
    /// Field 3 `traceInfo`.
    #[prost(message, optional, tag = "3")]
    pub trace_info: ::core::option::Option<DataTransferTraceInfoProto>,
}

/// `hadoop.hdfs.BatchedDirectoryListingProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchedDirectoryListingProto {
    /// Field 1 `partialListing`.
    #[prost(message, repeated, tag = "1")]
    pub partial_listing: ::std::vec::Vec<HdfsFileStatusProto>,
    /// Field 2 `parentIdx`.
    #[prost(uint32, required, tag = "2")]
    pub parent_idx: u32,
    /// Field 3 `exception`.
    #[prost(message, optional, tag = "3")]
    pub exception: ::core::option::Option<RemoteExceptionProto>,
}

/// `hadoop.hdfs.BatchedListingKeyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BatchedListingKeyProto {
    /// Field 1 `checksum`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub checksum: ::std::vec::Vec<u8>,
    /// Field 2 `pathIndex`.
    #[prost(uint32, required, tag = "2")]
    pub path_index: u32,
    /// Field 3 `startAfter`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub start_after: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.BlockChecksumOptionsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockChecksumOptionsProto {
    /// Field 1 `blockChecksumType`.
    #[prost(enumeration = "BlockChecksumTypeProto", optional, tag = "1", default = "Md5crc")]
    pub block_checksum_type: ::core::option::Option<i32>,
    /// Field 2 `stripeLength`.
    #[prost(uint64, optional, tag = "2")]
    pub stripe_length: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.BlockECReconstructionInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockECReconstructionInfoProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `sourceDnInfos`.
    #[prost(message, required, tag = "2")]
    pub source_dn_infos: DatanodeInfosProto,
    /// Field 3 `targetDnInfos`.
    #[prost(message, required, tag = "3")]
    pub target_dn_infos: DatanodeInfosProto,
    /// Field 4 `targetStorageUuids`.
    #[prost(message, required, tag = "4")]
    pub target_storage_uuids: StorageUuidsProto,
    /// Field 5 `targetStorageTypes`.
    #[prost(message, required, tag = "5")]
    pub target_storage_types: StorageTypesProto,
    /// Field 6 `liveBlockIndices`.
    #[prost(bytes = "vec", required, tag = "6")]
    pub live_block_indices: ::std::vec::Vec<u8>,
    /// Field 7 `ecPolicy`.
    #[prost(message, required, tag = "7")]
    pub ec_policy: ErasureCodingPolicyProto,
    /// Field 8 `excludeReconstructedIndices`.
    #[prost(bytes = "vec", optional, tag = "8")]
    pub exclude_reconstructed_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1000 `targetBlockIndices`.
    #[prost(bytes = "vec", optional, tag = "1000")]
    pub target_block_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1001 `unitCrcIndices`.
    #[prost(bytes = "vec", optional, tag = "1001")]
    pub unit_crc_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1002 `unitCrc32cs`.
    #[prost(fixed32, repeated, tag = "1002", packed = "true")]
    pub unit_crc32cs: ::std::vec::Vec<u32>,
    /// Field 1003 `isUrgent`.
    #[prost(bool, optional, tag = "1003")]
    pub is_urgent: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.BlockKeyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockKeyProto {
    /// Field 1 `keyId`.
    #[prost(uint32, required, tag = "1")]
    pub key_id: u32,
    /// Field 2 `expiryDate`.
    #[prost(uint64, required, tag = "2")]
    pub expiry_date: u64,
    /// Field 3 `keyBytes`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub key_bytes: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.BlockOpResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockOpResponseProto {
    /// Field 1 `status`.
    #[prost(enumeration = "Status", required, tag = "1")]
    pub status: i32,
    /// Field 2 `firstBadLink`.
    #[prost(string, optional, tag = "2")]
    pub first_bad_link: ::core::option::Option<::std::string::String>,
    /// Field 3 `checksumResponse`.
    #[prost(message, optional, tag = "3")]
    pub checksum_response: ::core::option::Option<OpBlockChecksumResponseProto>,
    /// Field 4 `readOpChecksumInfo`.
    #[prost(message, optional, tag = "4")]
    pub read_op_checksum_info: ::core::option::Option<ReadOpChecksumInfoProto>,
    /// Field 5 `message`.
    #[prost(string, optional, tag = "5")]
    pub message: ::core::option::Option<::std::string::String>,
    /// Field 6 `shortCircuitAccessVersion`.
    #[prost(uint32, optional, tag = "6")]
    pub short_circuit_access_version: ::core::option::Option<u32>,
    /// Field 1000 `storageUuid`.
    #[prost(string, optional, tag = "1000")]
    pub storage_uuid: ::core::option::Option<::std::string::String>,
    /// Field 1001 `answered`.
    #[prost(uint32, optional, tag = "1001")]
    pub answered: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.BlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockProto {
    /// Field 1 `blockId`.
    #[prost(uint64, required, tag = "1")]
    pub block_id: u64,
    /// Field 2 `genStamp`.
    #[prost(uint64, required, tag = "2")]
    pub gen_stamp: u64,
    /// Field 3 `numBytes`.
    #[prost(uint64, optional, tag = "3", default = "0")]
    pub num_bytes: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.BlockStoragePolicyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockStoragePolicyProto {
    /// Field 1 `policyId`.
    #[prost(uint32, required, tag = "1")]
    pub policy_id: u32,
    /// Field 2 `name`.
    #[prost(string, required, tag = "2")]
    pub name: ::std::string::String,
    /// Field 3 `creationPolicy`.
    #[prost(message, required, tag = "3")]
    pub creation_policy: StorageTypesProto,
    /// Field 4 `creationFallbackPolicy`.
    #[prost(message, optional, tag = "4")]
    pub creation_fallback_policy: ::core::option::Option<StorageTypesProto>,
    /// Field 5 `replicationFallbackPolicy`.
    #[prost(message, optional, tag = "5")]
    pub replication_fallback_policy: ::core::option::Option<StorageTypesProto>,
}

/// `hadoop.hdfs.BlockTokenSecretProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockTokenSecretProto {
    /// Field 1 `expiryDate`.
    #[prost(uint64, optional, tag = "1")]
    pub expiry_date: ::core::option::Option<u64>,
    /// Field 2 `keyId`.
    #[prost(uint32, optional, tag = "2")]
    pub key_id: ::core::option::Option<u32>,
    /// Field 3 `userId`.
    #[prost(string, optional, tag = "3")]
    pub user_id: ::core::option::Option<::std::string::String>,
    /// Field 4 `blockPoolId`.
    #[prost(string, optional, tag = "4")]
    pub block_pool_id: ::core::option::Option<::std::string::String>,
    /// Field 5 `blockId`.
    #[prost(uint64, optional, tag = "5")]
    pub block_id: ::core::option::Option<u64>,
    /// Field 6 `modes`.
    #[prost(enumeration = "AccessModeProto", repeated, tag = "6", packed = "false")]
    pub modes: ::std::vec::Vec<i32>,
    /// Field 7 `storageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "7", packed = "false")]
    pub storage_types: ::std::vec::Vec<i32>,
    /// Field 8 `storageIds`.
    #[prost(string, repeated, tag = "8")]
    pub storage_ids: ::std::vec::Vec<::std::string::String>,
    /// Field 9 `handshakeSecret`.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub handshake_secret: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.BlockWithLocationsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockWithLocationsProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: BlockProto,
    /// Field 2 `datanodeUuids`.
    #[prost(string, repeated, tag = "2")]
    pub datanode_uuids: ::std::vec::Vec<::std::string::String>,
    /// Field 3 `storageUuids`.
    #[prost(string, repeated, tag = "3")]
    pub storage_uuids: ::std::vec::Vec<::std::string::String>,
    /// Field 4 `storageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "4", packed = "false")]
    pub storage_types: ::std::vec::Vec<i32>,
    /// Field 5 `indices`.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 6 `dataBlockNum`.
    #[prost(uint32, optional, tag = "6")]
    pub data_block_num: ::core::option::Option<u32>,
    /// Field 7 `cellSize`.
    #[prost(uint32, optional, tag = "7")]
    pub cell_size: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.BlocksWithLocationsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlocksWithLocationsProto {
    /// Field 1 `blocks`.
    #[prost(message, repeated, tag = "1")]
    pub blocks: ::std::vec::Vec<BlockWithLocationsProto>,
}

/// `hadoop.hdfs.CacheDirectiveEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheDirectiveEntryProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CacheDirectiveInfoProto,
    /// Field 2 `stats`.
    #[prost(message, required, tag = "2")]
    pub stats: CacheDirectiveStatsProto,
}

/// `hadoop.hdfs.CacheDirectiveInfoExpirationProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheDirectiveInfoExpirationProto {
    /// Field 1 `millis`.
    #[prost(int64, required, tag = "1")]
    pub millis: i64,
    /// Field 2 `isRelative`.
    #[prost(bool, required, tag = "2")]
    pub is_relative: bool,
}

/// `hadoop.hdfs.CacheDirectiveInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheDirectiveInfoProto {
    /// Field 1 `id`.
    #[prost(int64, optional, tag = "1")]
    pub id: ::core::option::Option<i64>,
    /// Field 2 `path`.
    #[prost(string, optional, tag = "2")]
    pub path: ::core::option::Option<::std::string::String>,
    /// Field 3 `replication`.
    #[prost(uint32, optional, tag = "3")]
    pub replication: ::core::option::Option<u32>,
    /// Field 4 `pool`.
    #[prost(string, optional, tag = "4")]
    pub pool: ::core::option::Option<::std::string::String>,
    /// Field 5 `expiration`.
    #[prost(message, optional, tag = "5")]
    pub expiration: ::core::option::Option<CacheDirectiveInfoExpirationProto>,
}

/// `hadoop.hdfs.CacheDirectiveStatsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CacheDirectiveStatsProto {
    /// Field 1 `bytesNeeded`.
    #[prost(int64, required, tag = "1")]
    pub bytes_needed: i64,
    /// Field 2 `bytesCached`.
    #[prost(int64, required, tag = "2")]
    pub bytes_cached: i64,
    /// Field 3 `filesNeeded`.
    #[prost(int64, required, tag = "3")]
    pub files_needed: i64,
    /// Field 4 `filesCached`.
    #[prost(int64, required, tag = "4")]
    pub files_cached: i64,
    /// Field 5 `hasExpired`.
    #[prost(bool, required, tag = "5")]
    pub has_expired: bool,
}

/// `hadoop.hdfs.CachePoolEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CachePoolEntryProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CachePoolInfoProto,
    /// Field 2 `stats`.
    #[prost(message, required, tag = "2")]
    pub stats: CachePoolStatsProto,
}

/// `hadoop.hdfs.CachePoolInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CachePoolInfoProto {
    /// Field 1 `poolName`.
    #[prost(string, optional, tag = "1")]
    pub pool_name: ::core::option::Option<::std::string::String>,
    /// Field 2 `ownerName`.
    #[prost(string, optional, tag = "2")]
    pub owner_name: ::core::option::Option<::std::string::String>,
    /// Field 3 `groupName`.
    #[prost(string, optional, tag = "3")]
    pub group_name: ::core::option::Option<::std::string::String>,
    /// Field 4 `mode`.
    #[prost(int32, optional, tag = "4")]
    pub mode: ::core::option::Option<i32>,
    /// Field 5 `limit`.
    #[prost(int64, optional, tag = "5")]
    pub limit: ::core::option::Option<i64>,
    /// Field 6 `maxRelativeExpiry`.
    #[prost(int64, optional, tag = "6")]
    pub max_relative_expiry: ::core::option::Option<i64>,
    /// Field 7 `defaultReplication`.
    #[prost(uint32, optional, tag = "7", default = "1")]
    pub default_replication: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.CachePoolStatsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CachePoolStatsProto {
    /// Field 1 `bytesNeeded`.
    #[prost(int64, required, tag = "1")]
    pub bytes_needed: i64,
    /// Field 2 `bytesCached`.
    #[prost(int64, required, tag = "2")]
    pub bytes_cached: i64,
    /// Field 3 `bytesOverlimit`.
    #[prost(int64, required, tag = "3")]
    pub bytes_overlimit: i64,
    /// Field 4 `filesNeeded`.
    #[prost(int64, required, tag = "4")]
    pub files_needed: i64,
    /// Field 5 `filesCached`.
    #[prost(int64, required, tag = "5")]
    pub files_cached: i64,
}

/// `hadoop.hdfs.CachingStrategyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CachingStrategyProto {
    /// Field 1 `dropBehind`.
    #[prost(bool, optional, tag = "1")]
    pub drop_behind: ::core::option::Option<bool>,
    /// Field 2 `readahead`.
    #[prost(int64, optional, tag = "2")]
    pub readahead: ::core::option::Option<i64>,
}

/// `hadoop.hdfs.CancelPlanRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CancelPlanRequestProto {
    /// Field 1 `planID`.
    #[prost(string, required, tag = "1")]
    pub plan_id: ::std::string::String,
}

/// `hadoop.hdfs.CancelPlanResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CancelPlanResponseProto {}

/// `hadoop.hdfs.ChangeMemberRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ChangeMemberRequestProto {
    /// Field 1000 `name`.
    #[prost(string, required, tag = "1000")]
    pub name: ::std::string::String,
    /// Field 1001 `out`.
    #[prost(bool, required, tag = "1001")]
    pub out: bool,
}

/// `hadoop.hdfs.ChangeMemberResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ChangeMemberResponseProto {}

/// `hadoop.hdfs.CheckAccessRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CheckAccessRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `mode`.
    #[prost(enumeration = "AclEntryProtoFsActionProto", required, tag = "2")]
    pub mode: i32,
}

/// `hadoop.hdfs.CheckAccessResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CheckAccessResponseProto {}

/// `hadoop.hdfs.CheckpointCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CheckpointCommandProto {
    /// Field 1 `signature`.
    #[prost(message, required, tag = "1")]
    pub signature: CheckpointSignatureProto,
    /// Field 2 `needToReturnImage`.
    #[prost(bool, required, tag = "2")]
    pub need_to_return_image: bool,
}

/// `hadoop.hdfs.CheckpointSignatureProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CheckpointSignatureProto {
    /// Field 1 `blockPoolId`.
    #[prost(string, required, tag = "1")]
    pub block_pool_id: ::std::string::String,
    /// Field 2 `mostRecentCheckpointTxId`.
    #[prost(uint64, required, tag = "2")]
    pub most_recent_checkpoint_tx_id: u64,
    /// Field 3 `curSegmentTxId`.
    #[prost(uint64, required, tag = "3")]
    pub cur_segment_tx_id: u64,
    /// Field 4 `storageInfo`.
    #[prost(message, required, tag = "4")]
    pub storage_info: StorageInfoProto,
}

/// `hadoop.hdfs.ChecksumProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ChecksumProto {
    /// Field 1 `type`.
    #[prost(enumeration = "ChecksumTypeProto", required, tag = "1")]
    pub r#type: i32,
    /// Field 2 `bytesPerChecksum`.
    #[prost(uint32, required, tag = "2")]
    pub bytes_per_checksum: u32,
}

/// `hadoop.hdfs.CipherOptionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CipherOptionProto {
    /// Field 1 `suite`.
    #[prost(enumeration = "CipherSuiteProto", required, tag = "1")]
    pub suite: i32,
    /// Field 2 `inKey`.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub in_key: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 3 `inIv`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub in_iv: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 4 `outKey`.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub out_key: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 5 `outIv`.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub out_iv: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.ClientOperationHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientOperationHeaderProto {
    /// Field 1 `baseHeader`.
    #[prost(message, required, tag = "1")]
    pub base_header: BaseHeaderProto,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
}

/// `hadoop.hdfs.ClientReadStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientReadStatusProto {
    /// Field 1 `status`.
    #[prost(enumeration = "Status", required, tag = "1")]
    pub status: i32,
}

/// `hadoop.hdfs.CloseEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CloseEventProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `fileSize`.
    #[prost(int64, required, tag = "2")]
    pub file_size: i64,
    /// Field 3 `timestamp`.
    #[prost(int64, required, tag = "3")]
    pub timestamp: i64,
}

/// `hadoop.hdfs.CodecProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CodecProto {
    /// Field 1 `codec`.
    #[prost(string, required, tag = "1")]
    pub codec: ::std::string::String,
    /// Field 2 `coders`.
    #[prost(string, required, tag = "2")]
    pub coders: ::std::string::String,
}

/// `hadoop.hdfs.CompleteRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CompleteRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
    /// Field 3 `last`.
    #[prost(message, optional, tag = "3")]
    pub last: ::core::option::Option<ExtendedBlockProto>,
    /// Field 4 `fileId`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub file_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.CompleteResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CompleteResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.ConcatRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ConcatRequestProto {
    /// Field 1 `trg`.
    #[prost(string, required, tag = "1")]
    pub trg: ::std::string::String,
    /// Field 2 `srcs`.
    #[prost(string, repeated, tag = "2")]
    pub srcs: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.ConcatResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ConcatResponseProto {}

/// `hadoop.hdfs.ContentSummaryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ContentSummaryProto {
    /// Field 1 `length`.
    #[prost(uint64, required, tag = "1")]
    pub length: u64,
    /// Field 2 `fileCount`.
    #[prost(uint64, required, tag = "2")]
    pub file_count: u64,
    /// Field 3 `directoryCount`.
    #[prost(uint64, required, tag = "3")]
    pub directory_count: u64,
    /// Field 4 `quota`.
    #[prost(uint64, required, tag = "4")]
    pub quota: u64,
    /// Field 5 `spaceConsumed`.
    #[prost(uint64, required, tag = "5")]
    pub space_consumed: u64,
    /// Field 6 `spaceQuota`.
    #[prost(uint64, required, tag = "6")]
    pub space_quota: u64,
    /// Field 7 `typeQuotaInfos`.
    #[prost(message, optional, tag = "7")]
    pub type_quota_infos: ::core::option::Option<StorageTypeQuotaInfosProto>,
    /// Field 8 `snapshotLength`.
    #[prost(uint64, optional, tag = "8")]
    pub snapshot_length: ::core::option::Option<u64>,
    /// Field 9 `snapshotFileCount`.
    #[prost(uint64, optional, tag = "9")]
    pub snapshot_file_count: ::core::option::Option<u64>,
    /// Field 10 `snapshotDirectoryCount`.
    #[prost(uint64, optional, tag = "10")]
    pub snapshot_directory_count: ::core::option::Option<u64>,
    /// Field 11 `snapshotSpaceConsumed`.
    #[prost(uint64, optional, tag = "11")]
    pub snapshot_space_consumed: ::core::option::Option<u64>,
    /// Field 12 `erasureCodingPolicy`.
    #[prost(string, optional, tag = "12")]
    pub erasure_coding_policy: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.ConvertFilesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ConvertFilesRequestProto {
    /// Field 1000 `fileIds`.
    #[prost(uint64, repeated, tag = "1000", packed = "true")]
    pub file_ids: ::std::vec::Vec<u64>,
    /// Field 1001 `ecPolicyName`.
    #[prost(string, required, tag = "1001")]
    pub ec_policy_name: ::std::string::String,
    /// Field 1002 `dryRun`.
    #[prost(bool, optional, tag = "1002")]
    pub dry_run: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.ConvertFilesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ConvertFilesResponseProto {
    /// Field 1000 `outcomes`.
    #[prost(bytes = "vec", optional, tag = "1000")]
    pub outcomes: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1001 `refusals`.
    #[prost(string, repeated, tag = "1001")]
    pub refusals: ::std::vec::Vec<::std::string::String>,
    /// Field 1002 `survey`.
    #[prost(message, required, tag = "1002")]
    pub survey: LayoutSurveyProto,
}

/// `hadoop.hdfs.CorruptFileBlocksProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CorruptFileBlocksProto {
    /// Field 1 `files`.
    #[prost(string, repeated, tag = "1")]
    pub files: ::std::vec::Vec<::std::string::String>,
    /// Field 2 `cookie`.
    #[prost(string, required, tag = "2")]
    pub cookie: ::std::string::String,
}

/// `hadoop.hdfs.CreateEncryptionZoneRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateEncryptionZoneRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `keyName`.
    #[prost(string, optional, tag = "2")]
    pub key_name: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.CreateEncryptionZoneResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateEncryptionZoneResponseProto {}

/// `hadoop.hdfs.CreateEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateEventProto {
    /// Field 1 `type`.
    #[prost(enumeration = "INodeType", required, tag = "1")]
    pub r#type: i32,
    /// Field 2 `path`.
    #[prost(string, required, tag = "2")]
    pub path: ::std::string::String,
    /// Field 3 `ctime`.
    #[prost(int64, required, tag = "3")]
    pub ctime: i64,
    /// Field 4 `ownerName`.
    #[prost(string, required, tag = "4")]
    pub owner_name: ::std::string::String,
    /// Field 5 `groupName`.
    #[prost(string, required, tag = "5")]
    pub group_name: ::std::string::String,
    /// Field 6 `perms`.
    #[prost(message, required, tag = "6")]
    pub perms: FsPermissionProto,
    /// Field 7 `replication`.
    #[prost(int32, optional, tag = "7")]
    pub replication: ::core::option::Option<i32>,
    /// Field 8 `symlinkTarget`.
    #[prost(string, optional, tag = "8")]
    pub symlink_target: ::core::option::Option<::std::string::String>,
    /// Field 9 `overwrite`.
    #[prost(bool, optional, tag = "9")]
    pub overwrite: ::core::option::Option<bool>,
    /// Field 10 `defaultBlockSize`.
    #[prost(int64, optional, tag = "10", default = "0")]
    pub default_block_size: ::core::option::Option<i64>,
    /// Field 11 `erasureCoded`.
    #[prost(bool, optional, tag = "11")]
    pub erasure_coded: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.CreateRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `masked`.
    #[prost(message, required, tag = "2")]
    pub masked: FsPermissionProto,
    /// Field 3 `clientName`.
    #[prost(string, required, tag = "3")]
    pub client_name: ::std::string::String,
    /// Field 4 `createFlag`.
    #[prost(uint32, required, tag = "4")]
    pub create_flag: u32,
    /// Field 5 `createParent`.
    #[prost(bool, required, tag = "5")]
    pub create_parent: bool,
    /// Field 6 `replication`.
    #[prost(uint32, required, tag = "6")]
    pub replication: u32,
    /// Field 7 `blockSize`.
    #[prost(uint64, required, tag = "7")]
    pub block_size: u64,
    /// Field 8 `cryptoProtocolVersion`.
    #[prost(enumeration = "CryptoProtocolVersionProto", repeated, tag = "8", packed = "false")]
    pub crypto_protocol_version: ::std::vec::Vec<i32>,
    /// Field 9 `unmasked`.
    #[prost(message, optional, tag = "9")]
    pub unmasked: ::core::option::Option<FsPermissionProto>,
    /// Field 10 `ecPolicyName`.
    #[prost(string, optional, tag = "10")]
    pub ec_policy_name: ::core::option::Option<::std::string::String>,
    /// Field 11 `storagePolicy`.
    #[prost(string, optional, tag = "11")]
    pub storage_policy: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.CreateResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateResponseProto {
    /// Field 1 `fs`.
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<HdfsFileStatusProto>,
}

/// `hadoop.hdfs.CreateSnapshotRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateSnapshotRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `snapshotName`.
    #[prost(string, optional, tag = "2")]
    pub snapshot_name: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.CreateSnapshotResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateSnapshotResponseProto {
    /// Field 1 `snapshotPath`.
    #[prost(string, required, tag = "1")]
    pub snapshot_path: ::std::string::String,
}

/// `hadoop.hdfs.CreateSymlinkRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateSymlinkRequestProto {
    /// Field 1 `target`.
    #[prost(string, required, tag = "1")]
    pub target: ::std::string::String,
    /// Field 2 `link`.
    #[prost(string, required, tag = "2")]
    pub link: ::std::string::String,
    /// Field 3 `dirPerm`.
    #[prost(message, required, tag = "3")]
    pub dir_perm: FsPermissionProto,
    /// Field 4 `createParent`.
    #[prost(bool, required, tag = "4")]
    pub create_parent: bool,
}

/// `hadoop.hdfs.CreateSymlinkResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateSymlinkResponseProto {}

/// `hadoop.hdfs.DNTransferAckProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DNTransferAckProto {
    /// Field 1 `status`.
    #[prost(enumeration = "Status", required, tag = "1")]
    pub status: i32,
}

/// `hadoop.hdfs.DataEncryptionKeyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DataEncryptionKeyProto {
    /// Field 1 `keyId`.
    #[prost(uint32, required, tag = "1")]
    pub key_id: u32,
    /// Field 2 `blockPoolId`.
    #[prost(string, required, tag = "2")]
    pub block_pool_id: ::std::string::String,
    /// Field 3 `nonce`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub nonce: ::std::vec::Vec<u8>,
    /// Field 4 `encryptionKey`.
    #[prost(bytes = "vec", required, tag = "4")]
    pub encryption_key: ::std::vec::Vec<u8>,
    /// Field 5 `expiryDate`.
    #[prost(uint64, required, tag = "5")]
    pub expiry_date: u64,
    /// Field 6 `encryptionAlgorithm`.
    #[prost(string, optional, tag = "6")]
    pub encryption_algorithm: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.DataTransferEncryptorMessageProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DataTransferEncryptorMessageProto {
    /// Field 1 `status`.
    #[prost(enumeration = "DataTransferEncryptorMessageProtoDataTransferEncryptorStatus", required, tag = "1")]
    pub status: i32,
    /// Field 2 `payload`.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub payload: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 3 `message`.
    #[prost(string, optional, tag = "3")]
    pub message: ::core::option::Option<::std::string::String>,
    /// Field 4 `cipherOption`.
    #[prost(message, repeated, tag = "4")]
    pub cipher_option: ::std::vec::Vec<CipherOptionProto>,
    /// Field 5 `handshakeSecret`.
    #[prost(message, optional, tag = "5")]
    pub handshake_secret: ::core::option::Option<HandshakeSecretProto>,
    /// Field 6 `accessTokenError`.
    #[prost(bool, optional, tag = "6")]
    pub access_token_error: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.DataTransferTraceInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DataTransferTraceInfoProto {
    /// Field 1 `traceId`.
    #[prost(uint64, optional, tag = "1")]
    pub trace_id: ::core::option::Option<u64>,
    /// Field 2 `parentId`.
    #[prost(uint64, optional, tag = "2")]
    pub parent_id: ::core::option::Option<u64>,
    /// Field 3 `spanContext`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub span_context: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.DatanodeIDProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeIDProto {
    /// Field 1 `ipAddr`.
    #[prost(string, required, tag = "1")]
    pub ip_addr: ::std::string::String,
    /// Field 2 `hostName`.
    #[prost(string, required, tag = "2")]
    pub host_name: ::std::string::String,
    /// Field 3 `datanodeUuid`.
    #[prost(string, required, tag = "3")]
    pub datanode_uuid: ::std::string::String,
    /// Field 4 `xferPort`.
    #[prost(uint32, required, tag = "4")]
    pub xfer_port: u32,
    /// Field 5 `infoPort`.
    #[prost(uint32, required, tag = "5")]
    pub info_port: u32,
    /// Field 6 `ipcPort`.
    #[prost(uint32, required, tag = "6")]
    pub ipc_port: u32,
    /// Field 7 `infoSecurePort`.
    #[prost(uint32, optional, tag = "7", default = "0")]
    pub info_secure_port: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.DatanodeInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeInfoProto {
    /// Field 1 `id`.
    #[prost(message, required, tag = "1")]
    pub id: DatanodeIDProto,
    /// Field 2 `capacity`.
    #[prost(uint64, optional, tag = "2", default = "0")]
    pub capacity: ::core::option::Option<u64>,
    /// Field 3 `dfsUsed`.
    #[prost(uint64, optional, tag = "3", default = "0")]
    pub dfs_used: ::core::option::Option<u64>,
    /// Field 4 `remaining`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub remaining: ::core::option::Option<u64>,
    /// Field 5 `blockPoolUsed`.
    #[prost(uint64, optional, tag = "5", default = "0")]
    pub block_pool_used: ::core::option::Option<u64>,
    /// Field 6 `lastUpdate`.
    #[prost(uint64, optional, tag = "6", default = "0")]
    pub last_update: ::core::option::Option<u64>,
    /// Field 7 `xceiverCount`.
    #[prost(uint32, optional, tag = "7", default = "0")]
    pub xceiver_count: ::core::option::Option<u32>,
    /// Field 8 `location`.
    #[prost(string, optional, tag = "8")]
    pub location: ::core::option::Option<::std::string::String>,
    /// Field 9 `nonDfsUsed`.
    #[prost(uint64, optional, tag = "9")]
    pub non_dfs_used: ::core::option::Option<u64>,
    /// Field 10 `adminState`.
    #[prost(enumeration = "DatanodeInfoProtoAdminState", optional, tag = "10", default = "Normal")]
    pub admin_state: ::core::option::Option<i32>,
    /// Field 11 `cacheCapacity`.
    #[prost(uint64, optional, tag = "11", default = "0")]
    pub cache_capacity: ::core::option::Option<u64>,
    /// Field 12 `cacheUsed`.
    #[prost(uint64, optional, tag = "12", default = "0")]
    pub cache_used: ::core::option::Option<u64>,
    /// Field 13 `lastUpdateMonotonic`.
    #[prost(uint64, optional, tag = "13", default = "0")]
    pub last_update_monotonic: ::core::option::Option<u64>,
    /// Field 14 `upgradeDomain`.
    #[prost(string, optional, tag = "14")]
    pub upgrade_domain: ::core::option::Option<::std::string::String>,
    /// Field 15 `lastBlockReportTime`.
    #[prost(uint64, optional, tag = "15", default = "0")]
    pub last_block_report_time: ::core::option::Option<u64>,
    /// Field 16 `lastBlockReportMonotonic`.
    #[prost(uint64, optional, tag = "16", default = "0")]
    pub last_block_report_monotonic: ::core::option::Option<u64>,
    /// Field 17 `numBlocks`.
    #[prost(uint32, optional, tag = "17", default = "0")]
    pub num_blocks: ::core::option::Option<u32>,
    /// Field 18 `softwareVersion`.
    #[prost(string, optional, tag = "18")]
    pub software_version: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.DatanodeInfosProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeInfosProto {
    /// Field 1 `datanodes`.
    #[prost(message, repeated, tag = "1")]
    pub datanodes: ::std::vec::Vec<DatanodeInfoProto>,
}

/// `hadoop.hdfs.DatanodeLocalInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeLocalInfoProto {
    /// Field 1 `softwareVersion`.
    #[prost(string, required, tag = "1")]
    pub software_version: ::std::string::String,
    /// Field 2 `configVersion`.
    #[prost(string, required, tag = "2")]
    pub config_version: ::std::string::String,
    /// Field 3 `uptime`.
    #[prost(uint64, required, tag = "3")]
    pub uptime: u64,
}

/// `hadoop.hdfs.DatanodeStorageProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeStorageProto {
    /// Field 1 `storageUuid`.
    #[prost(string, required, tag = "1")]
    pub storage_uuid: ::std::string::String,
    /// Field 2 `state`.
    #[prost(enumeration = "DatanodeStorageProtoStorageState", optional, tag = "2", default = "Normal")]
    pub state: ::core::option::Option<i32>,
    /// Field 3 `storageType`.
    #[prost(enumeration = "StorageTypeProto", optional, tag = "3", default = "Disk")]
    pub storage_type: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.DatanodeStorageReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeStorageReportProto {
    /// Field 1 `datanodeInfo`.
    #[prost(message, required, tag = "1")]
    pub datanode_info: DatanodeInfoProto,
    /// Field 2 `storageReports`.
    #[prost(message, repeated, tag = "2")]
    pub storage_reports: ::std::vec::Vec<StorageReportProto>,
}

/// `hadoop.hdfs.DatanodeVolumeInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeVolumeInfoProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `storageType`.
    #[prost(enumeration = "StorageTypeProto", required, tag = "2")]
    pub storage_type: i32,
    /// Field 3 `usedSpace`.
    #[prost(uint64, required, tag = "3")]
    pub used_space: u64,
    /// Field 4 `freeSpace`.
    #[prost(uint64, required, tag = "4")]
    pub free_space: u64,
    /// Field 5 `reservedSpace`.
    #[prost(uint64, required, tag = "5")]
    pub reserved_space: u64,
    /// Field 6 `reservedSpaceForReplicas`.
    #[prost(uint64, required, tag = "6")]
    pub reserved_space_for_replicas: u64,
    /// Field 7 `numBlocks`.
    #[prost(uint64, required, tag = "7")]
    pub num_blocks: u64,
}

/// `hadoop.hdfs.DeleteBlockPoolRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteBlockPoolRequestProto {
    /// Field 1 `blockPool`.
    #[prost(string, required, tag = "1")]
    pub block_pool: ::std::string::String,
    /// Field 2 `force`.
    #[prost(bool, required, tag = "2")]
    pub force: bool,
}

/// `hadoop.hdfs.DeleteBlockPoolResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteBlockPoolResponseProto {}

/// `hadoop.hdfs.DeleteRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `recursive`.
    #[prost(bool, required, tag = "2")]
    pub recursive: bool,
}

/// `hadoop.hdfs.DeleteResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.DeleteSnapshotRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteSnapshotRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `snapshotName`.
    #[prost(string, required, tag = "2")]
    pub snapshot_name: ::std::string::String,
}

/// `hadoop.hdfs.DeleteSnapshotResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteSnapshotResponseProto {}

/// `hadoop.hdfs.DirectoryListingProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DirectoryListingProto {
    /// Field 1 `partialListing`.
    #[prost(message, repeated, tag = "1")]
    pub partial_listing: ::std::vec::Vec<HdfsFileStatusProto>,
    /// Field 2 `remainingEntries`.
    #[prost(uint32, required, tag = "2")]
    pub remaining_entries: u32,
}

/// `hadoop.hdfs.DisableErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DisableErasureCodingPolicyRequestProto {
    /// Field 1 `ecPolicyName`.
    #[prost(string, required, tag = "1")]
    pub ec_policy_name: ::std::string::String,
}

/// `hadoop.hdfs.DisableErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DisableErasureCodingPolicyResponseProto {}

/// `hadoop.hdfs.DisallowSnapshotRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DisallowSnapshotRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
}

/// `hadoop.hdfs.DisallowSnapshotResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DisallowSnapshotResponseProto {}

/// `hadoop.hdfs.DiskBalancerSettingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DiskBalancerSettingRequestProto {
    /// Field 1 `key`.
    #[prost(string, required, tag = "1")]
    pub key: ::std::string::String,
}

/// `hadoop.hdfs.DiskBalancerSettingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DiskBalancerSettingResponseProto {
    /// Field 1 `value`.
    #[prost(string, required, tag = "1")]
    pub value: ::std::string::String,
}

/// `hadoop.hdfs.ECSchemaOptionEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ECSchemaOptionEntryProto {
    /// Field 1 `key`.
    #[prost(string, required, tag = "1")]
    pub key: ::std::string::String,
    /// Field 2 `value`.
    #[prost(string, required, tag = "2")]
    pub value: ::std::string::String,
}

/// `hadoop.hdfs.ECSchemaProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ECSchemaProto {
    /// Field 1 `codecName`.
    #[prost(string, required, tag = "1")]
    pub codec_name: ::std::string::String,
    /// Field 2 `dataUnits`.
    #[prost(uint32, required, tag = "2")]
    pub data_units: u32,
    /// Field 3 `parityUnits`.
    #[prost(uint32, required, tag = "3")]
    pub parity_units: u32,
    /// Field 4 `options`.
    #[prost(message, repeated, tag = "4")]
    pub options: ::std::vec::Vec<ECSchemaOptionEntryProto>,
}

/// `hadoop.hdfs.ECTopologyVerifierResultProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ECTopologyVerifierResultProto {
    /// Field 1 `resultMessage`.
    #[prost(string, required, tag = "1")]
    pub result_message: ::std::string::String,
    /// Field 2 `isSupported`.
    #[prost(bool, required, tag = "2")]
    pub is_supported: bool,
}

/// `hadoop.hdfs.EnableErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EnableErasureCodingPolicyRequestProto {
    /// Field 1 `ecPolicyName`.
    #[prost(string, required, tag = "1")]
    pub ec_policy_name: ::std::string::String,
}

/// `hadoop.hdfs.EnableErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EnableErasureCodingPolicyResponseProto {}

/// `hadoop.hdfs.EncryptionZoneProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EncryptionZoneProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
    /// Field 2 `path`.
    #[prost(string, required, tag = "2")]
    pub path: ::std::string::String,
    /// Field 3 `suite`.
    #[prost(enumeration = "CipherSuiteProto", required, tag = "3")]
    pub suite: i32,
    /// Field 4 `cryptoProtocolVersion`.
    #[prost(enumeration = "CryptoProtocolVersionProto", required, tag = "4")]
    pub crypto_protocol_version: i32,
    /// Field 5 `keyName`.
    #[prost(string, required, tag = "5")]
    pub key_name: ::std::string::String,
}

/// `hadoop.hdfs.ErasureCodingPolicyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ErasureCodingPolicyProto {
    /// Field 1 `name`.
    #[prost(string, optional, tag = "1")]
    pub name: ::core::option::Option<::std::string::String>,
    /// Field 2 `schema`.
    #[prost(message, optional, tag = "2")]
    pub schema: ::core::option::Option<ECSchemaProto>,
    /// Field 3 `cellSize`.
    #[prost(uint32, optional, tag = "3")]
    pub cell_size: ::core::option::Option<u32>,
    /// Field 4 `id`.
    #[prost(uint32, required, tag = "4")]
    pub id: u32,
    /// Field 5 `state`.
    #[prost(enumeration = "ErasureCodingPolicyState", optional, tag = "5", default = "Enabled")]
    pub state: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.EventBatchProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EventBatchProto {
    /// Field 1 `txid`.
    #[prost(int64, required, tag = "1")]
    pub txid: i64,
    /// Field 2 `events`.
    #[prost(message, repeated, tag = "2")]
    pub events: ::std::vec::Vec<EventProto>,
}

/// `hadoop.hdfs.EventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EventProto {
    /// Field 1 `type`.
    #[prost(enumeration = "EventType", required, tag = "1")]
    pub r#type: i32,
    /// Field 2 `contents`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub contents: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.EventsListProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EventsListProto {
    /// Field 1 `events`.
    #[prost(message, repeated, tag = "1")]
    pub events: ::std::vec::Vec<EventProto>,
    /// Field 2 `firstTxid`.
    #[prost(int64, required, tag = "2")]
    pub first_txid: i64,
    /// Field 3 `lastTxid`.
    #[prost(int64, required, tag = "3")]
    pub last_txid: i64,
    /// Field 4 `syncTxid`.
    #[prost(int64, required, tag = "4")]
    pub sync_txid: i64,
    /// Field 5 `batch`.
    #[prost(message, repeated, tag = "5")]
    pub batch: ::std::vec::Vec<EventBatchProto>,
}

/// `hadoop.hdfs.EvictWritersRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EvictWritersRequestProto {}

/// `hadoop.hdfs.EvictWritersResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct EvictWritersResponseProto {}

/// `hadoop.hdfs.ExportedBlockKeysProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExportedBlockKeysProto {
    /// Field 1 `isBlockTokenEnabled`.
    #[prost(bool, required, tag = "1")]
    pub is_block_token_enabled: bool,
    /// Field 2 `keyUpdateInterval`.
    #[prost(uint64, required, tag = "2")]
    pub key_update_interval: u64,
    /// Field 3 `tokenLifeTime`.
    #[prost(uint64, required, tag = "3")]
    pub token_life_time: u64,
    /// Field 4 `currentKey`.
    #[prost(message, required, tag = "4")]
    pub current_key: BlockKeyProto,
    /// Field 5 `allKeys`.
    #[prost(message, repeated, tag = "5")]
    pub all_keys: ::std::vec::Vec<BlockKeyProto>,
}

/// `hadoop.hdfs.ExtendedBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExtendedBlockProto {
    /// Field 1 `poolId`.
    #[prost(string, required, tag = "1")]
    pub pool_id: ::std::string::String,
    /// Field 2 `blockId`.
    #[prost(uint64, required, tag = "2")]
    pub block_id: u64,
    /// Field 3 `generationStamp`.
    #[prost(uint64, required, tag = "3")]
    pub generation_stamp: u64,
    /// Field 4 `numBytes`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub num_bytes: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.FileEncryptionInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FileEncryptionInfoProto {
    /// Field 1 `suite`.
    #[prost(enumeration = "CipherSuiteProto", required, tag = "1")]
    pub suite: i32,
    /// Field 2 `cryptoProtocolVersion`.
    #[prost(enumeration = "CryptoProtocolVersionProto", required, tag = "2")]
    pub crypto_protocol_version: i32,
    /// Field 3 `key`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub key: ::std::vec::Vec<u8>,
    /// Field 4 `iv`.
    #[prost(bytes = "vec", required, tag = "4")]
    pub iv: ::std::vec::Vec<u8>,
    /// Field 5 `keyName`.
    #[prost(string, required, tag = "5")]
    pub key_name: ::std::string::String,
    /// Field 6 `ezKeyVersionName`.
    #[prost(string, required, tag = "6")]
    pub ez_key_version_name: ::std::string::String,
}

/// `hadoop.hdfs.FinalizeUpgradeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FinalizeUpgradeRequestProto {}

/// `hadoop.hdfs.FinalizeUpgradeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FinalizeUpgradeResponseProto {}

/// `hadoop.hdfs.FsPermissionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsPermissionProto {
    /// Field 1 `perm`.
    #[prost(uint32, required, tag = "1")]
    pub perm: u32,
}

/// `hadoop.hdfs.FsServerDefaultsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsServerDefaultsProto {
    /// Field 1 `blockSize`.
    #[prost(uint64, required, tag = "1")]
    pub block_size: u64,
    /// Field 2 `bytesPerChecksum`.
    #[prost(uint32, required, tag = "2")]
    pub bytes_per_checksum: u32,
    /// Field 3 `writePacketSize`.
    #[prost(uint32, required, tag = "3")]
    pub write_packet_size: u32,
    /// Field 4 `replication`.
    #[prost(uint32, required, tag = "4")]
    pub replication: u32,
    /// Field 5 `fileBufferSize`.
    #[prost(uint32, required, tag = "5")]
    pub file_buffer_size: u32,
    /// Field 6 `encryptDataTransfer`.
    #[prost(bool, optional, tag = "6", default = "false")]
    pub encrypt_data_transfer: ::core::option::Option<bool>,
    /// Field 7 `trashInterval`.
    #[prost(uint64, optional, tag = "7", default = "0")]
    pub trash_interval: ::core::option::Option<u64>,
    /// Field 8 `checksumType`.
    #[prost(enumeration = "ChecksumTypeProto", optional, tag = "8", default = "ChecksumCrc32")]
    pub checksum_type: ::core::option::Option<i32>,
    /// Field 9 `keyProviderUri`.
    #[prost(string, optional, tag = "9")]
    pub key_provider_uri: ::core::option::Option<::std::string::String>,
    /// Field 10 `policyId`.
    #[prost(uint32, optional, tag = "10", default = "0")]
    pub policy_id: ::core::option::Option<u32>,
    /// Field 11 `snapshotTrashRootEnabled`.
    #[prost(bool, optional, tag = "11", default = "false")]
    pub snapshot_trash_root_enabled: ::core::option::Option<bool>,
    /// Field 1000 `httpPort`.
    #[prost(uint32, optional, tag = "1000")]
    pub http_port: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.FsyncRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsyncRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `client`.
    #[prost(string, required, tag = "2")]
    pub client: ::std::string::String,
    /// Field 3 `lastBlockLength`.
    #[prost(sint64, optional, tag = "3", default = "-1")]
    pub last_block_length: ::core::option::Option<i64>,
    /// Field 4 `fileId`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub file_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.FsyncResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsyncResponseProto {}

/// `hadoop.hdfs.GetAclStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetAclStatusRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.GetAclStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetAclStatusResponseProto {
    /// Field 1 `result`.
    #[prost(message, required, tag = "1")]
    pub result: AclStatusProto,
}

/// `hadoop.hdfs.GetAdditionalDatanodeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetAdditionalDatanodeRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `blk`.
    #[prost(message, required, tag = "2")]
    pub blk: ExtendedBlockProto,
    /// Field 3 `existings`.
    #[prost(message, repeated, tag = "3")]
    pub existings: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 4 `excludes`.
    #[prost(message, repeated, tag = "4")]
    pub excludes: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 5 `numAdditionalNodes`.
    #[prost(uint32, required, tag = "5")]
    pub num_additional_nodes: u32,
    /// Field 6 `clientName`.
    #[prost(string, required, tag = "6")]
    pub client_name: ::std::string::String,
    /// Field 7 `existingStorageUuids`.
    #[prost(string, repeated, tag = "7")]
    pub existing_storage_uuids: ::std::vec::Vec<::std::string::String>,
    /// Field 8 `fileId`.
    #[prost(uint64, optional, tag = "8", default = "0")]
    pub file_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetAdditionalDatanodeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetAdditionalDatanodeResponseProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: LocatedBlockProto,
}

/// `hadoop.hdfs.GetBalancerBandwidthRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBalancerBandwidthRequestProto {}

/// `hadoop.hdfs.GetBalancerBandwidthResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBalancerBandwidthResponseProto {
    /// Field 1 `bandwidth`.
    #[prost(uint64, required, tag = "1")]
    pub bandwidth: u64,
}

/// `hadoop.hdfs.GetBatchedListingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBatchedListingRequestProto {
    /// Field 1 `paths`.
    #[prost(string, repeated, tag = "1")]
    pub paths: ::std::vec::Vec<::std::string::String>,
    /// Field 2 `startAfter`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub start_after: ::std::vec::Vec<u8>,
    /// Field 3 `needLocation`.
    #[prost(bool, required, tag = "3")]
    pub need_location: bool,
}

/// `hadoop.hdfs.GetBatchedListingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBatchedListingResponseProto {
    /// Field 1 `listings`.
    #[prost(message, repeated, tag = "1")]
    pub listings: ::std::vec::Vec<BatchedDirectoryListingProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
    /// Field 3 `startAfter`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub start_after: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.GetBlockLocalPathInfoRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockLocalPathInfoRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `token`.
    #[prost(message, required, tag = "2")]
    pub token: super::common::TokenProto,
}

/// `hadoop.hdfs.GetBlockLocalPathInfoResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockLocalPathInfoResponseProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `localPath`.
    #[prost(string, required, tag = "2")]
    pub local_path: ::std::string::String,
    /// Field 3 `localMetaPath`.
    #[prost(string, required, tag = "3")]
    pub local_meta_path: ::std::string::String,
}

/// `hadoop.hdfs.GetBlockLocationsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockLocationsRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `offset`.
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    /// Field 3 `length`.
    #[prost(uint64, required, tag = "3")]
    pub length: u64,
    /// Field 1000 `withUnitCrcs`.
    #[prost(bool, optional, tag = "1000")]
    pub with_unit_crcs: ::core::option::Option<bool>,
    /// Field 1001 `afterFailure`.
    #[prost(bool, optional, tag = "1001")]
    pub after_failure: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.GetBlockLocationsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetBlockLocationsResponseProto {
    /// Field 1 `locations`.
    #[prost(message, optional, tag = "1")]
    pub locations: ::core::option::Option<LocatedBlocksProto>,
}

/// `hadoop.hdfs.GetContentSummaryRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetContentSummaryRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
}

/// `hadoop.hdfs.GetContentSummaryResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetContentSummaryResponseProto {
    /// Field 1 `summary`.
    #[prost(message, required, tag = "1")]
    pub summary: ContentSummaryProto,
}

/// `hadoop.hdfs.GetCurrentEditLogTxidRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetCurrentEditLogTxidRequestProto {}

/// `hadoop.hdfs.GetCurrentEditLogTxidResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetCurrentEditLogTxidResponseProto {
    /// Field 1 `txid`.
    #[prost(int64, required, tag = "1")]
    pub txid: i64,
}

/// `hadoop.hdfs.GetDataEncryptionKeyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDataEncryptionKeyRequestProto {}

/// `hadoop.hdfs.GetDataEncryptionKeyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDataEncryptionKeyResponseProto {
    /// Field 1 `dataEncryptionKey`.
    #[prost(message, optional, tag = "1")]
    pub data_encryption_key: ::core::option::Option<DataEncryptionKeyProto>,
}

/// `hadoop.hdfs.GetDatanodeInfoRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeInfoRequestProto {}

/// `hadoop.hdfs.GetDatanodeInfoResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeInfoResponseProto {
    /// Field 1 `localInfo`.
    #[prost(message, required, tag = "1")]
    pub local_info: DatanodeLocalInfoProto,
}

/// `hadoop.hdfs.GetDatanodeReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeReportRequestProto {
    /// Field 1 `type`.
    #[prost(enumeration = "DatanodeReportTypeProto", required, tag = "1")]
    pub r#type: i32,
}

/// `hadoop.hdfs.GetDatanodeReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeReportResponseProto {
    /// Field 1 `di`.
    #[prost(message, repeated, tag = "1")]
    pub di: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 1000 `leaving`.
    #[prost(message, repeated, tag = "1000")]
    pub leaving: ::std::vec::Vec<LeavingDatanodeProto>,
    /// Field 1001 `failedVolumes`.
    #[prost(uint32, repeated, tag = "1001", packed = "true")]
    pub failed_volumes: ::std::vec::Vec<u32>,
}

/// `hadoop.hdfs.GetDatanodeStorageReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeStorageReportRequestProto {
    /// Field 1 `type`.
    #[prost(enumeration = "DatanodeReportTypeProto", required, tag = "1")]
    pub r#type: i32,
}

/// `hadoop.hdfs.GetDatanodeStorageReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetDatanodeStorageReportResponseProto {
    /// Field 1 `datanodeStorageReports`.
    #[prost(message, repeated, tag = "1")]
    pub datanode_storage_reports: ::std::vec::Vec<DatanodeStorageReportProto>,
}

/// `hadoop.hdfs.GetECTopologyResultForPoliciesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetECTopologyResultForPoliciesRequestProto {
    /// Field 1 `policies`.
    #[prost(string, repeated, tag = "1")]
    pub policies: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.GetECTopologyResultForPoliciesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetECTopologyResultForPoliciesResponseProto {
    /// Field 1 `response`.
    #[prost(message, required, tag = "1")]
    pub response: ECTopologyVerifierResultProto,
}

/// `hadoop.hdfs.GetEZForPathRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEZForPathRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.GetEZForPathResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEZForPathResponseProto {
    /// Field 1 `zone`.
    #[prost(message, optional, tag = "1")]
    pub zone: ::core::option::Option<EncryptionZoneProto>,
}

/// `hadoop.hdfs.GetEditsFromTxidRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEditsFromTxidRequestProto {
    /// Field 1 `txid`.
    #[prost(int64, required, tag = "1")]
    pub txid: i64,
}

/// `hadoop.hdfs.GetEditsFromTxidResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEditsFromTxidResponseProto {
    /// Field 1 `eventsList`.
    #[prost(message, required, tag = "1")]
    pub events_list: EventsListProto,
}

/// `hadoop.hdfs.GetEnclosingRootRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEnclosingRootRequestProto {
    /// Field 1 `filename`.
    #[prost(string, optional, tag = "1")]
    pub filename: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.GetEnclosingRootResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetEnclosingRootResponseProto {
    /// Field 1 `enclosingRootPath`.
    #[prost(string, optional, tag = "1")]
    pub enclosing_root_path: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.GetErasureCodingCodecsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingCodecsRequestProto {}

/// `hadoop.hdfs.GetErasureCodingCodecsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingCodecsResponseProto {
    /// Field 1 `codec`.
    #[prost(message, repeated, tag = "1")]
    pub codec: ::std::vec::Vec<CodecProto>,
}

/// `hadoop.hdfs.GetErasureCodingPoliciesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingPoliciesRequestProto {}

/// `hadoop.hdfs.GetErasureCodingPoliciesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingPoliciesResponseProto {
    /// Field 1 `ecPolicies`.
    #[prost(message, repeated, tag = "1")]
    pub ec_policies: ::std::vec::Vec<ErasureCodingPolicyProto>,
}

/// `hadoop.hdfs.GetErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingPolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.GetErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetErasureCodingPolicyResponseProto {
    /// Field 1 `ecPolicy`.
    #[prost(message, optional, tag = "1")]
    pub ec_policy: ::core::option::Option<ErasureCodingPolicyProto>,
}

/// `hadoop.hdfs.GetFileInfoRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFileInfoRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.GetFileInfoResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFileInfoResponseProto {
    /// Field 1 `fs`.
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<HdfsFileStatusProto>,
}

/// `hadoop.hdfs.GetFileLinkInfoRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFileLinkInfoRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.GetFileLinkInfoResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFileLinkInfoResponseProto {
    /// Field 1 `fs`.
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<HdfsFileStatusProto>,
}

/// `hadoop.hdfs.GetFsECBlockGroupStatsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsECBlockGroupStatsRequestProto {}

/// `hadoop.hdfs.GetFsECBlockGroupStatsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsECBlockGroupStatsResponseProto {
    /// Field 1 `low_redundancy`.
    #[prost(uint64, required, tag = "1")]
    pub low_redundancy: u64,
    /// Field 2 `corrupt_blocks`.
    #[prost(uint64, required, tag = "2")]
    pub corrupt_blocks: u64,
    /// Field 3 `missing_blocks`.
    #[prost(uint64, required, tag = "3")]
    pub missing_blocks: u64,
    /// Field 4 `blocks_in_future`.
    #[prost(uint64, required, tag = "4")]
    pub blocks_in_future: u64,
    /// Field 5 `pending_deletion_blocks`.
    #[prost(uint64, required, tag = "5")]
    pub pending_deletion_blocks: u64,
    /// Field 6 `highest_prio_low_redundancy_blocks`.
    #[prost(uint64, optional, tag = "6")]
    pub highest_prio_low_redundancy_blocks: ::core::option::Option<u64>,
    /// Field 7 `badly_distributed_blocks`.
    #[prost(uint64, optional, tag = "7")]
    pub badly_distributed_blocks: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetFsReplicatedBlockStatsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsReplicatedBlockStatsRequestProto {}

/// `hadoop.hdfs.GetFsReplicatedBlockStatsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsReplicatedBlockStatsResponseProto {
    /// Field 1 `low_redundancy`.
    #[prost(uint64, required, tag = "1")]
    pub low_redundancy: u64,
    /// Field 2 `corrupt_blocks`.
    #[prost(uint64, required, tag = "2")]
    pub corrupt_blocks: u64,
    /// Field 3 `missing_blocks`.
    #[prost(uint64, required, tag = "3")]
    pub missing_blocks: u64,
    /// Field 4 `missing_repl_one_blocks`.
    #[prost(uint64, required, tag = "4")]
    pub missing_repl_one_blocks: u64,
    /// Field 5 `blocks_in_future`.
    #[prost(uint64, required, tag = "5")]
    pub blocks_in_future: u64,
    /// Field 6 `pending_deletion_blocks`.
    #[prost(uint64, required, tag = "6")]
    pub pending_deletion_blocks: u64,
    /// Field 7 `highest_prio_low_redundancy_blocks`.
    #[prost(uint64, optional, tag = "7")]
    pub highest_prio_low_redundancy_blocks: ::core::option::Option<u64>,
    /// Field 8 `badly_distributed_blocks`.
    #[prost(uint64, optional, tag = "8")]
    pub badly_distributed_blocks: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetFsStatsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsStatsResponseProto {
    /// Field 1 `capacity`.
    #[prost(uint64, required, tag = "1")]
    pub capacity: u64,
    /// Field 2 `used`.
    #[prost(uint64, required, tag = "2")]
    pub used: u64,
    /// Field 3 `remaining`.
    #[prost(uint64, required, tag = "3")]
    pub remaining: u64,
    /// Field 4 `under_replicated`.
    #[prost(uint64, required, tag = "4")]
    pub under_replicated: u64,
    /// Field 5 `corrupt_blocks`.
    #[prost(uint64, required, tag = "5")]
    pub corrupt_blocks: u64,
    /// Field 6 `missing_blocks`.
    #[prost(uint64, required, tag = "6")]
    pub missing_blocks: u64,
    /// Field 7 `missing_repl_one_blocks`.
    #[prost(uint64, optional, tag = "7")]
    pub missing_repl_one_blocks: ::core::option::Option<u64>,
    /// Field 8 `blocks_in_future`.
    #[prost(uint64, optional, tag = "8")]
    pub blocks_in_future: ::core::option::Option<u64>,
    /// Field 9 `pending_deletion_blocks`.
    #[prost(uint64, optional, tag = "9")]
    pub pending_deletion_blocks: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetFsStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetFsStatusRequestProto {}

/// `hadoop.hdfs.GetGroupStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetGroupStatusRequestProto {}

/// `hadoop.hdfs.GetGroupStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetGroupStatusResponseProto {
    /// Field 1000 `paused`.
    #[prost(uint32, optional, tag = "1000")]
    pub paused: ::core::option::Option<u32>,
    /// Field 1001 `countedMsAgo`.
    #[prost(uint64, optional, tag = "1001")]
    pub counted_ms_ago: ::core::option::Option<u64>,
    /// Field 1002 `groups`.
    #[prost(uint64, required, tag = "1002")]
    pub groups: u64,
    /// Field 1003 `groupedBytes`.
    #[prost(uint64, required, tag = "1003")]
    pub grouped_bytes: u64,
    /// Field 1004 `deadBytes`.
    #[prost(uint64, required, tag = "1004")]
    pub dead_bytes: u64,
    /// Field 1005 `parityBytes`.
    #[prost(uint64, required, tag = "1005")]
    pub parity_bytes: u64,
    /// Field 1006 `dissolving`.
    #[prost(uint64, required, tag = "1006")]
    pub dissolving: u64,
    /// Field 1007 `waitingBlocks`.
    #[prost(uint64, required, tag = "1007")]
    pub waiting_blocks: u64,
    /// Field 1008 `waitingBytes`.
    #[prost(uint64, required, tag = "1008")]
    pub waiting_bytes: u64,
    /// Field 1009 `dueBlocks`.
    #[prost(uint64, required, tag = "1009")]
    pub due_blocks: u64,
    /// Field 1010 `dueBytes`.
    #[prost(uint64, required, tag = "1010")]
    pub due_bytes: u64,
    /// Field 1011 `oldestDueMs`.
    #[prost(uint64, required, tag = "1011")]
    pub oldest_due_ms: u64,
    /// Field 1012 `attempts`.
    #[prost(uint64, required, tag = "1012")]
    pub attempts: u64,
    /// Field 1013 `withSurplus`.
    #[prost(uint64, required, tag = "1013")]
    pub with_surplus: u64,
    /// Field 1014 `formed`.
    #[prost(uint64, required, tag = "1014")]
    pub formed: u64,
    /// Field 1015 `abandoned`.
    #[prost(uint64, required, tag = "1015")]
    pub abandoned: u64,
    /// Field 1016 `renewed`.
    #[prost(uint64, required, tag = "1016")]
    pub renewed: u64,
    /// Field 1017 `containers`.
    #[prost(uint64, optional, tag = "1017")]
    pub containers: ::core::option::Option<u64>,
    /// Field 1018 `packedBlocks`.
    #[prost(uint64, optional, tag = "1018")]
    pub packed_blocks: ::core::option::Option<u64>,
    /// Field 1019 `packedBytes`.
    #[prost(uint64, optional, tag = "1019")]
    pub packed_bytes: ::core::option::Option<u64>,
    /// Field 1020 `deadPackedBytes`.
    #[prost(uint64, optional, tag = "1020")]
    pub dead_packed_bytes: ::core::option::Option<u64>,
    /// Field 1021 `packedWithCopies`.
    #[prost(uint64, optional, tag = "1021")]
    pub packed_with_copies: ::core::option::Option<u64>,
    /// Field 1022 `containerSpace`.
    #[prost(uint64, optional, tag = "1022")]
    pub container_space: ::core::option::Option<u64>,
    /// Field 1023 `emptyingContainers`.
    #[prost(uint64, optional, tag = "1023")]
    pub emptying_containers: ::core::option::Option<u64>,
    /// Field 1024 `unpacking`.
    #[prost(uint64, optional, tag = "1024")]
    pub unpacking: ::core::option::Option<u64>,
    /// Field 1025 `smallBlocks`.
    #[prost(uint64, optional, tag = "1025")]
    pub small_blocks: ::core::option::Option<u64>,
    /// Field 1026 `smallBytes`.
    #[prost(uint64, optional, tag = "1026")]
    pub small_bytes: ::core::option::Option<u64>,
    /// Field 1027 `emptied`.
    #[prost(uint64, optional, tag = "1027")]
    pub emptied: ::core::option::Option<u64>,
    /// Field 1028 `unpacked`.
    #[prost(uint64, optional, tag = "1028")]
    pub unpacked: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetLinkTargetRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetLinkTargetRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
}

/// `hadoop.hdfs.GetLinkTargetResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetLinkTargetResponseProto {
    /// Field 1 `targetPath`.
    #[prost(string, optional, tag = "1")]
    pub target_path: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.GetListingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetListingRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `startAfter`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub start_after: ::std::vec::Vec<u8>,
    /// Field 3 `needLocation`.
    #[prost(bool, required, tag = "3")]
    pub need_location: bool,
    /// Field 1000 `readUpTo`.
    #[prost(uint64, optional, tag = "1000")]
    pub read_up_to: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetListingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetListingResponseProto {
    /// Field 1 `dirList`.
    #[prost(message, optional, tag = "1")]
    pub dir_list: ::core::option::Option<DirectoryListingProto>,
}

/// `hadoop.hdfs.GetLocatedFileInfoRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetLocatedFileInfoRequestProto {
    /// Field 1 `src`.
    #[prost(string, optional, tag = "1")]
    pub src: ::core::option::Option<::std::string::String>,
    /// Field 2 `needBlockToken`.
    #[prost(bool, optional, tag = "2", default = "false")]
    pub need_block_token: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.GetLocatedFileInfoResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetLocatedFileInfoResponseProto {
    /// Field 1 `fs`.
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<HdfsFileStatusProto>,
}

/// `hadoop.hdfs.GetMembersRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMembersRequestProto {}

/// `hadoop.hdfs.GetMembersResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetMembersResponseProto {
    /// Field 1000 `name`.
    #[prost(string, required, tag = "1000")]
    pub name: ::std::string::String,
    /// Field 1001 `quorum`.
    #[prost(fixed64, required, tag = "1001")]
    pub quorum: u64,
    /// Field 1002 `term`.
    #[prost(uint64, required, tag = "1002")]
    pub term: u64,
    /// Field 1003 `leader`.
    #[prost(string, optional, tag = "1003")]
    pub leader: ::core::option::Option<::std::string::String>,
    /// Field 1004 `leads`.
    #[prost(bool, required, tag = "1004")]
    pub leads: bool,
    /// Field 1005 `last`.
    #[prost(uint64, required, tag = "1005")]
    pub last: u64,
    /// Field 1006 `ready`.
    #[prost(bool, required, tag = "1006")]
    pub ready: bool,
    /// Field 1007 `members`.
    #[prost(message, repeated, tag = "1007")]
    pub members: ::std::vec::Vec<QuorumMemberProto>,
    /// Field 1008 `reads`.
    #[prost(uint64, optional, tag = "1008")]
    pub reads: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.GetPreferredBlockSizeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetPreferredBlockSizeRequestProto {
    /// Field 1 `filename`.
    #[prost(string, required, tag = "1")]
    pub filename: ::std::string::String,
}

/// `hadoop.hdfs.GetPreferredBlockSizeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetPreferredBlockSizeResponseProto {
    /// Field 1 `bsize`.
    #[prost(uint64, required, tag = "1")]
    pub bsize: u64,
}

/// `hadoop.hdfs.GetQuotaUsageRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetQuotaUsageRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
}

/// `hadoop.hdfs.GetQuotaUsageResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetQuotaUsageResponseProto {
    /// Field 1 `usage`.
    #[prost(message, required, tag = "1")]
    pub usage: QuotaUsageProto,
}

/// `hadoop.hdfs.GetReconfigurationStatusConfigChangeProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetReconfigurationStatusConfigChangeProto {
    /// Field 1 `name`.
    #[prost(string, required, tag = "1")]
    pub name: ::std::string::String,
    /// Field 2 `oldValue`.
    #[prost(string, required, tag = "2")]
    pub old_value: ::std::string::String,
    /// Field 3 `newValue`.
    #[prost(string, optional, tag = "3")]
    pub new_value: ::core::option::Option<::std::string::String>,
    /// Field 4 `errorMessage`.
    #[prost(string, optional, tag = "4")]
    pub error_message: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.GetReconfigurationStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetReconfigurationStatusRequestProto {}

/// `hadoop.hdfs.GetReconfigurationStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetReconfigurationStatusResponseProto {
    /// Field 1 `startTime`.
    #[prost(int64, required, tag = "1")]
    pub start_time: i64,
    /// Field 2 `endTime`.
    #[prost(int64, optional, tag = "2")]
    pub end_time: ::core::option::Option<i64>,
    /// Field 3 `changes`.
    #[prost(message, repeated, tag = "3")]
    pub changes: ::std::vec::Vec<GetReconfigurationStatusConfigChangeProto>,
}

/// `hadoop.hdfs.GetReplicaVisibleLengthRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetReplicaVisibleLengthRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
}

/// `hadoop.hdfs.GetReplicaVisibleLengthResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetReplicaVisibleLengthResponseProto {
    /// Field 1 `length`.
    #[prost(uint64, required, tag = "1")]
    pub length: u64,
}

/// `hadoop.hdfs.GetServerDefaultsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetServerDefaultsRequestProto {}

/// `hadoop.hdfs.GetServerDefaultsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetServerDefaultsResponseProto {
    /// Field 1 `serverDefaults`.
    #[prost(message, required, tag = "1")]
    pub server_defaults: FsServerDefaultsProto,
}

/// `hadoop.hdfs.GetSlowDatanodeReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSlowDatanodeReportRequestProto {}

/// `hadoop.hdfs.GetSlowDatanodeReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSlowDatanodeReportResponseProto {
    /// Field 1 `datanodeInfoProto`.
    #[prost(message, repeated, tag = "1")]
    pub datanode_info_proto: ::std::vec::Vec<DatanodeInfoProto>,
}

/// `hadoop.hdfs.GetSnapshotDiffReportListingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotDiffReportListingRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `fromSnapshot`.
    #[prost(string, required, tag = "2")]
    pub from_snapshot: ::std::string::String,
    /// Field 3 `toSnapshot`.
    #[prost(string, required, tag = "3")]
    pub to_snapshot: ::std::string::String,
    /// Field 4 `cursor`.
    #[prost(message, optional, tag = "4")]
    pub cursor: ::core::option::Option<SnapshotDiffReportCursorProto>,
}

/// `hadoop.hdfs.GetSnapshotDiffReportListingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotDiffReportListingResponseProto {
    /// Field 1 `diffReport`.
    #[prost(message, required, tag = "1")]
    pub diff_report: SnapshotDiffReportListingProto,
}

/// `hadoop.hdfs.GetSnapshotDiffReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotDiffReportRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `fromSnapshot`.
    #[prost(string, required, tag = "2")]
    pub from_snapshot: ::std::string::String,
    /// Field 3 `toSnapshot`.
    #[prost(string, required, tag = "3")]
    pub to_snapshot: ::std::string::String,
}

/// `hadoop.hdfs.GetSnapshotDiffReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotDiffReportResponseProto {
    /// Field 1 `diffReport`.
    #[prost(message, required, tag = "1")]
    pub diff_report: SnapshotDiffReportProto,
}

/// `hadoop.hdfs.GetSnapshotListingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotListingRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
}

/// `hadoop.hdfs.GetSnapshotListingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshotListingResponseProto {
    /// Field 1 `snapshotList`.
    #[prost(message, optional, tag = "1")]
    pub snapshot_list: ::core::option::Option<SnapshotListingProto>,
}

/// `hadoop.hdfs.GetSnapshottableDirListingRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshottableDirListingRequestProto {}

/// `hadoop.hdfs.GetSnapshottableDirListingResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetSnapshottableDirListingResponseProto {
    /// Field 1 `snapshottableDirList`.
    #[prost(message, optional, tag = "1")]
    pub snapshottable_dir_list: ::core::option::Option<SnapshottableDirectoryListingProto>,
}

/// `hadoop.hdfs.GetStoragePoliciesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetStoragePoliciesRequestProto {}

/// `hadoop.hdfs.GetStoragePoliciesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetStoragePoliciesResponseProto {
    /// Field 1 `policies`.
    #[prost(message, repeated, tag = "1")]
    pub policies: ::std::vec::Vec<BlockStoragePolicyProto>,
}

/// `hadoop.hdfs.GetStoragePolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetStoragePolicyRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
}

/// `hadoop.hdfs.GetStoragePolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetStoragePolicyResponseProto {
    /// Field 1 `storagePolicy`.
    #[prost(message, required, tag = "1")]
    pub storage_policy: BlockStoragePolicyProto,
}

/// `hadoop.hdfs.GetVolumeReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetVolumeReportRequestProto {}

/// `hadoop.hdfs.GetVolumeReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetVolumeReportResponseProto {
    /// Field 1 `volumeInfo`.
    #[prost(message, repeated, tag = "1")]
    pub volume_info: ::std::vec::Vec<DatanodeVolumeInfoProto>,
}

/// `hadoop.hdfs.GetXAttrsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetXAttrsRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `xAttrs`.
    #[prost(message, repeated, tag = "2")]
    pub x_attrs: ::std::vec::Vec<XAttrProto>,
}

/// `hadoop.hdfs.GetXAttrsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct GetXAttrsResponseProto {
    /// Field 1 `xAttrs`.
    #[prost(message, repeated, tag = "1")]
    pub x_attrs: ::std::vec::Vec<XAttrProto>,
}

/// `hadoop.hdfs.HAServiceStateRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HAServiceStateRequestProto {}

/// `hadoop.hdfs.HAServiceStateResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HAServiceStateResponseProto {
    /// Field 1 `state`.
    #[prost(enumeration = "super::common::HAServiceStateProto", required, tag = "1")]
    pub state: i32,
}

/// `hadoop.hdfs.HandOnRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandOnRequestProto {
    /// Field 1000 `session`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub session: ::std::vec::Vec<u8>,
    /// Field 1001 `number`.
    #[prost(uint64, required, tag = "1001")]
    pub number: u64,
    /// Field 1002 `proof`.
    #[prost(bytes = "vec", required, tag = "1002")]
    pub proof: ::std::vec::Vec<u8>,
    /// Field 1003 `call`.
    #[prost(bytes = "vec", required, tag = "1003")]
    pub call: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.HandOnResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandOnResponseProto {
    /// Field 1000 `proof`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub proof: ::std::vec::Vec<u8>,
    /// Field 1001 `answer`.
    #[prost(bytes = "vec", required, tag = "1001")]
    pub answer: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.HandOnSessionRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandOnSessionRequestProto {
    /// Field 1000 `nonce`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub nonce: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.HandOnSessionResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandOnSessionResponseProto {
    /// Field 1000 `nonce`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub nonce: ::std::vec::Vec<u8>,
    /// Field 1001 `proof`.
    #[prost(bytes = "vec", required, tag = "1001")]
    pub proof: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.HandedAnswerProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedAnswerProto {
    /// Field 1000 `body`.
    #[prost(bytes = "vec", optional, tag = "1000")]
    pub body: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1001 `exceptionClass`.
    #[prost(string, optional, tag = "1001")]
    pub exception_class: ::core::option::Option<::std::string::String>,
    /// Field 1002 `exceptionMessage`.
    #[prost(string, optional, tag = "1002")]
    pub exception_message: ::core::option::Option<::std::string::String>,
    /// Field 1003 `exceptionCode`.
    #[prost(uint32, optional, tag = "1003")]
    pub exception_code: ::core::option::Option<u32>,
    /// Field 1004 `stateId`.
    #[prost(int64, optional, tag = "1004")]
    pub state_id: ::core::option::Option<i64>,
}

/// `hadoop.hdfs.HandedCallProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedCallProto {
    /// Field 1000 `protocol`.
    #[prost(string, required, tag = "1000")]
    pub protocol: ::std::string::String,
    /// Field 1001 `version`.
    #[prost(uint64, required, tag = "1001")]
    pub version: u64,
    /// Field 1002 `method`.
    #[prost(string, required, tag = "1002")]
    pub method: ::std::string::String,
    /// Field 1003 `connectionProtocol`.
    #[prost(string, required, tag = "1003")]
    pub connection_protocol: ::std::string::String,
    /// Field 1004 `user`.
    #[prost(string, required, tag = "1004")]
    pub user: ::std::string::String,
    /// Field 1005 `realUser`.
    #[prost(string, optional, tag = "1005")]
    pub real_user: ::core::option::Option<::std::string::String>,
    /// Field 1006 `byToken`.
    #[prost(bool, optional, tag = "1006")]
    pub by_token: ::core::option::Option<bool>,
    /// Field 1007 `effectivePrincipal`.
    #[prost(string, optional, tag = "1007")]
    pub effective_principal: ::core::option::Option<::std::string::String>,
    /// Field 1008 `principal`.
    #[prost(string, optional, tag = "1008")]
    pub principal: ::core::option::Option<::std::string::String>,
    /// Field 1009 `clientId`.
    #[prost(bytes = "vec", required, tag = "1009")]
    pub client_id: ::std::vec::Vec<u8>,
    /// Field 1010 `callId`.
    #[prost(sint32, required, tag = "1010")]
    pub call_id: i32,
    /// Field 1011 `retryCount`.
    #[prost(sint32, required, tag = "1011")]
    pub retry_count: i32,
    /// Field 1012 `peer`.
    #[prost(string, required, tag = "1012")]
    pub peer: ::std::string::String,
    /// Field 1013 `callerContext`.
    #[prost(string, optional, tag = "1013")]
    pub caller_context: ::core::option::Option<::std::string::String>,
    /// Field 1014 `callerSignature`.
    #[prost(bytes = "vec", optional, tag = "1014")]
    pub caller_signature: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1015 `carrier`.
    #[prost(string, required, tag = "1015")]
    pub carrier: ::std::string::String,
    /// Field 1016 `body`.
    #[prost(bytes = "vec", required, tag = "1016")]
    pub body: ::std::vec::Vec<u8>,
    /// Field 1017 `stateId`.
    #[prost(int64, optional, tag = "1017")]
    pub state_id: ::core::option::Option<i64>,
    /// Field 1018 `tokenNumber`.
    #[prost(sint32, optional, tag = "1018")]
    pub token_number: ::core::option::Option<i32>,
    /// Field 1019 `tokenTrackingId`.
    #[prost(string, optional, tag = "1019")]
    pub token_tracking_id: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.HandedChoiceProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedChoiceProto {
    /// Field 1000 `hostName`.
    #[prost(string, optional, tag = "1000")]
    pub host_name: ::core::option::Option<::std::string::String>,
    /// Field 1001 `ip`.
    #[prost(string, optional, tag = "1001")]
    pub ip: ::core::option::Option<::std::string::String>,
    /// Field 1002 `port`.
    #[prost(uint32, optional, tag = "1002")]
    pub port: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.HandedChoiceRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedChoiceRequestProto {
    /// Field 1000 `excluded`.
    #[prost(string, repeated, tag = "1000")]
    pub excluded: ::std::vec::Vec<::std::string::String>,
    /// Field 1001 `secure`.
    #[prost(bool, required, tag = "1001")]
    pub secure: bool,
}

/// `hadoop.hdfs.HandedPageAnswerProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedPageAnswerProto {
    /// Field 1000 `status`.
    #[prost(uint32, required, tag = "1000")]
    pub status: u32,
    /// Field 1001 `headers`.
    #[prost(message, repeated, tag = "1001")]
    pub headers: ::std::vec::Vec<HeaderFieldProto>,
    /// Field 1002 `body`.
    #[prost(bytes = "vec", optional, tag = "1002")]
    pub body: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1003 `stream`.
    #[prost(bytes = "vec", optional, tag = "1003")]
    pub stream: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1004 `length`.
    #[prost(uint64, optional, tag = "1004")]
    pub length: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.HandedPageProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedPageProto {
    /// Field 1000 `target`.
    #[prost(string, required, tag = "1000")]
    pub target: ::std::string::String,
    /// Field 1001 `head`.
    #[prost(bool, required, tag = "1001")]
    pub head: bool,
    /// Field 1002 `secure`.
    #[prost(bool, required, tag = "1002")]
    pub secure: bool,
    /// Field 1003 `shown`.
    #[prost(bool, required, tag = "1003")]
    pub shown: bool,
    /// Field 1004 `headers`.
    #[prost(message, repeated, tag = "1004")]
    pub headers: ::std::vec::Vec<HeaderFieldProto>,
}

/// `hadoop.hdfs.HandedPieceProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedPieceProto {
    /// Field 1000 `bytes`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub bytes: ::std::vec::Vec<u8>,
    /// Field 1001 `end`.
    #[prost(bool, required, tag = "1001")]
    pub end: bool,
}

/// `hadoop.hdfs.HandedPieceRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandedPieceRequestProto {
    /// Field 1000 `stream`.
    #[prost(bytes = "vec", required, tag = "1000")]
    pub stream: ::std::vec::Vec<u8>,
    /// Field 1001 `piece`.
    #[prost(uint32, required, tag = "1001")]
    pub piece: u32,
}

/// `hadoop.hdfs.HandshakeSecretProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HandshakeSecretProto {
    /// Field 1 `secret`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub secret: ::std::vec::Vec<u8>,
    /// Field 2 `bpid`.
    #[prost(string, required, tag = "2")]
    pub bpid: ::std::string::String,
}

/// `hadoop.hdfs.HdfsFileStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HdfsFileStatusProto {
    /// Field 1 `fileType`.
    #[prost(enumeration = "HdfsFileStatusProtoFileType", required, tag = "1")]
    pub file_type: i32,
    /// Field 2 `path`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub path: ::std::vec::Vec<u8>,
    /// Field 3 `length`.
    #[prost(uint64, required, tag = "3")]
    pub length: u64,
    /// Field 4 `permission`.
    #[prost(message, required, tag = "4")]
    pub permission: FsPermissionProto,
    /// Field 5 `owner`.
    #[prost(string, required, tag = "5")]
    pub owner: ::std::string::String,
    /// Field 6 `group`.
    #[prost(string, required, tag = "6")]
    pub group: ::std::string::String,
    /// Field 7 `modification_time`.
    #[prost(uint64, required, tag = "7")]
    pub modification_time: u64,
    /// Field 8 `access_time`.
    #[prost(uint64, required, tag = "8")]
    pub access_time: u64,
    /// Field 9 `symlink`.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub symlink: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 10 `block_replication`.
    #[prost(uint32, optional, tag = "10", default = "0")]
    pub block_replication: ::core::option::Option<u32>,
    /// Field 11 `blocksize`.
    #[prost(uint64, optional, tag = "11", default = "0")]
    pub blocksize: ::core::option::Option<u64>,
    /// Field 12 `locations`.
    #[prost(message, optional, tag = "12")]
    pub locations: ::core::option::Option<LocatedBlocksProto>,
    /// Field 13 `fileId`.
    #[prost(uint64, optional, tag = "13", default = "0")]
    pub file_id: ::core::option::Option<u64>,
    /// Field 14 `childrenNum`.
    #[prost(int32, optional, tag = "14", default = "-1")]
    pub children_num: ::core::option::Option<i32>,
    /// Field 15 `fileEncryptionInfo`.
    #[prost(message, optional, tag = "15")]
    pub file_encryption_info: ::core::option::Option<FileEncryptionInfoProto>,
    /// Field 16 `storagePolicy`.
    #[prost(uint32, optional, tag = "16", default = "0")]
    pub storage_policy: ::core::option::Option<u32>,
    /// Field 17 `ecPolicy`.
    #[prost(message, optional, tag = "17")]
    pub ec_policy: ::core::option::Option<ErasureCodingPolicyProto>,
    /// Field 18 `flags`.
    #[prost(uint32, optional, tag = "18", default = "0")]
    pub flags: ::core::option::Option<u32>,
    /// Field 19 `namespace`.
    #[prost(string, optional, tag = "19")]
    pub namespace: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.HdfsPathHandleProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HdfsPathHandleProto {
    /// Field 1 `inodeId`.
    #[prost(uint64, optional, tag = "1")]
    pub inode_id: ::core::option::Option<u64>,
    /// Field 2 `mtime`.
    #[prost(uint64, optional, tag = "2")]
    pub mtime: ::core::option::Option<u64>,
    /// Field 3 `path`.
    #[prost(string, optional, tag = "3")]
    pub path: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.HeaderFieldProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeaderFieldProto {
    /// Field 1000 `name`.
    #[prost(string, required, tag = "1000")]
    pub name: ::std::string::String,
    /// Field 1001 `value`.
    #[prost(string, required, tag = "1001")]
    pub value: ::std::string::String,
}

/// `hadoop.hdfs.HeldBackBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct HeldBackBlockProto {
    /// Field 1000 `blockId`.
    #[prost(sfixed64, required, tag = "1000")]
    pub block_id: i64,
    /// Field 1001 `heldBack`.
    #[prost(string, required, tag = "1001")]
    pub held_back: ::std::string::String,
}

/// `hadoop.hdfs.InitReplicaRecoveryRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InitReplicaRecoveryRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: RecoveringBlockProto,
}

/// `hadoop.hdfs.InitReplicaRecoveryResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InitReplicaRecoveryResponseProto {
    /// Field 1 `replicaFound`.
    #[prost(bool, required, tag = "1")]
    pub replica_found: bool,
    /// Field 2 `state`.
    #[prost(enumeration = "ReplicaStateProto", optional, tag = "2")]
    pub state: ::core::option::Option<i32>,
    /// Field 3 `block`.
    #[prost(message, optional, tag = "3")]
    pub block: ::core::option::Option<BlockProto>,
}

/// `hadoop.hdfs.IsFileClosedRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsFileClosedRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.IsFileClosedResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct IsFileClosedResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.LayoutSurveyProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LayoutSurveyProto {
    /// Field 1000 `files`.
    #[prost(uint64, required, tag = "1000")]
    pub files: u64,
    /// Field 1001 `asWanted`.
    #[prost(uint64, required, tag = "1001")]
    pub as_wanted: u64,
    /// Field 1002 `striped`.
    #[prost(uint64, required, tag = "1002")]
    pub striped: u64,
    /// Field 1003 `bytes`.
    #[prost(uint64, required, tag = "1003")]
    pub bytes: u64,
    /// Field 1004 `space`.
    #[prost(uint64, required, tag = "1004")]
    pub space: u64,
    /// Field 1005 `grouped`.
    #[prost(uint64, required, tag = "1005")]
    pub grouped: u64,
    /// Field 1006 `leaving`.
    #[prost(uint64, required, tag = "1006")]
    pub leaving: u64,
    /// Field 1007 `toGroup`.
    #[prost(uint64, required, tag = "1007")]
    pub to_group: u64,
    /// Field 1008 `spaceThen`.
    #[prost(uint64, required, tag = "1008")]
    pub space_then: u64,
    /// Field 1009 `stripedBytes`.
    #[prost(uint64, optional, tag = "1009")]
    pub striped_bytes: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.LeavingDatanodeProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LeavingDatanodeProto {
    /// Field 1000 `datanodeUuid`.
    #[prost(string, required, tag = "1000")]
    pub datanode_uuid: ::std::string::String,
    /// Field 1001 `counted`.
    #[prost(bool, required, tag = "1001")]
    pub counted: bool,
    /// Field 1002 `blocksLeft`.
    #[prost(uint64, required, tag = "1002")]
    pub blocks_left: u64,
    /// Field 1003 `bytesLeft`.
    #[prost(uint64, required, tag = "1003")]
    pub bytes_left: u64,
    /// Field 1004 `blocksDone`.
    #[prost(uint64, required, tag = "1004")]
    pub blocks_done: u64,
    /// Field 1005 `bytesDone`.
    #[prost(uint64, required, tag = "1005")]
    pub bytes_done: u64,
    /// Field 1006 `bytesPerSecond`.
    #[prost(uint64, required, tag = "1006")]
    pub bytes_per_second: u64,
    /// Field 1007 `secondsLeft`.
    #[prost(uint64, optional, tag = "1007")]
    pub seconds_left: ::core::option::Option<u64>,
    /// Field 1008 `ageMs`.
    #[prost(uint64, required, tag = "1008")]
    pub age_ms: u64,
    /// Field 1009 `heldBack`.
    #[prost(string, optional, tag = "1009")]
    pub held_back: ::core::option::Option<::std::string::String>,
    /// Field 1010 `blocks`.
    #[prost(message, repeated, tag = "1010")]
    pub blocks: ::std::vec::Vec<HeldBackBlockProto>,
}

/// `hadoop.hdfs.ListCacheDirectivesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCacheDirectivesRequestProto {
    /// Field 1 `prevId`.
    #[prost(int64, required, tag = "1")]
    pub prev_id: i64,
    /// Field 2 `filter`.
    #[prost(message, required, tag = "2")]
    pub filter: CacheDirectiveInfoProto,
}

/// `hadoop.hdfs.ListCacheDirectivesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCacheDirectivesResponseProto {
    /// Field 1 `elements`.
    #[prost(message, repeated, tag = "1")]
    pub elements: ::std::vec::Vec<CacheDirectiveEntryProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
}

/// `hadoop.hdfs.ListCachePoolsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCachePoolsRequestProto {
    /// Field 1 `prevPoolName`.
    #[prost(string, required, tag = "1")]
    pub prev_pool_name: ::std::string::String,
}

/// `hadoop.hdfs.ListCachePoolsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCachePoolsResponseProto {
    /// Field 1 `entries`.
    #[prost(message, repeated, tag = "1")]
    pub entries: ::std::vec::Vec<CachePoolEntryProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
}

/// `hadoop.hdfs.ListCorruptFileBlocksRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCorruptFileBlocksRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `cookie`.
    #[prost(string, optional, tag = "2")]
    pub cookie: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.ListCorruptFileBlocksResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListCorruptFileBlocksResponseProto {
    /// Field 1 `corrupt`.
    #[prost(message, required, tag = "1")]
    pub corrupt: CorruptFileBlocksProto,
}

/// `hadoop.hdfs.ListEncryptionZonesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListEncryptionZonesRequestProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
}

/// `hadoop.hdfs.ListEncryptionZonesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListEncryptionZonesResponseProto {
    /// Field 1 `zones`.
    #[prost(message, repeated, tag = "1")]
    pub zones: ::std::vec::Vec<EncryptionZoneProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
}

/// `hadoop.hdfs.ListOpenFilesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListOpenFilesRequestProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
    /// Field 2 `types`.
    #[prost(enumeration = "OpenFilesTypeProto", repeated, tag = "2", packed = "false")]
    pub types: ::std::vec::Vec<i32>,
    /// Field 3 `path`.
    #[prost(string, optional, tag = "3")]
    pub path: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.ListOpenFilesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListOpenFilesResponseProto {
    /// Field 1 `entries`.
    #[prost(message, repeated, tag = "1")]
    pub entries: ::std::vec::Vec<OpenFilesBatchResponseProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
    /// Field 3 `types`.
    #[prost(enumeration = "OpenFilesTypeProto", repeated, tag = "3", packed = "false")]
    pub types: ::std::vec::Vec<i32>,
}

/// `hadoop.hdfs.ListReconfigurablePropertiesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListReconfigurablePropertiesRequestProto {}

/// `hadoop.hdfs.ListReconfigurablePropertiesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListReconfigurablePropertiesResponseProto {
    /// Field 1 `name`.
    #[prost(string, repeated, tag = "1")]
    pub name: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.ListReencryptionStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListReencryptionStatusRequestProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
}

/// `hadoop.hdfs.ListReencryptionStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListReencryptionStatusResponseProto {
    /// Field 1 `statuses`.
    #[prost(message, repeated, tag = "1")]
    pub statuses: ::std::vec::Vec<ZoneReencryptionStatusProto>,
    /// Field 2 `hasMore`.
    #[prost(bool, required, tag = "2")]
    pub has_more: bool,
}

/// `hadoop.hdfs.ListWorkersRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListWorkersRequestProto {}

/// `hadoop.hdfs.ListWorkersResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListWorkersResponseProto {
    /// Field 1000 `workers`.
    #[prost(message, repeated, tag = "1000")]
    pub workers: ::std::vec::Vec<WorkerProto>,
}

/// `hadoop.hdfs.ListXAttrsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListXAttrsRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.ListXAttrsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListXAttrsResponseProto {
    /// Field 1 `xAttrs`.
    #[prost(message, repeated, tag = "1")]
    pub x_attrs: ::std::vec::Vec<XAttrProto>,
}

/// `hadoop.hdfs.LocatedBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocatedBlockProto {
    /// Field 1 `b`.
    #[prost(message, required, tag = "1")]
    pub b: ExtendedBlockProto,
    /// Field 2 `offset`.
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    /// Field 3 `locs`.
    #[prost(message, repeated, tag = "3")]
    pub locs: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 4 `corrupt`.
    #[prost(bool, required, tag = "4")]
    pub corrupt: bool,
    /// Field 5 `blockToken`.
    #[prost(message, required, tag = "5")]
    pub block_token: super::common::TokenProto,
    /// Field 6 `isCached`.
    #[prost(bool, repeated, tag = "6", packed = "true")]
    pub is_cached: ::std::vec::Vec<bool>,
    /// Field 7 `storageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "7", packed = "false")]
    pub storage_types: ::std::vec::Vec<i32>,
    /// Field 8 `storageIDs`.
    #[prost(string, repeated, tag = "8")]
    pub storage_i_ds: ::std::vec::Vec<::std::string::String>,
    /// Field 9 `blockIndices`.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub block_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 10 `blockTokens`.
    #[prost(message, repeated, tag = "10")]
    pub block_tokens: ::std::vec::Vec<super::common::TokenProto>,
    /// Field 1000 `unitCrcIndices`.
    #[prost(bytes = "vec", optional, tag = "1000")]
    pub unit_crc_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1001 `unitCrc32cs`.
    #[prost(fixed32, repeated, tag = "1001", packed = "true")]
    pub unit_crc32cs: ::std::vec::Vec<u32>,
}

/// `hadoop.hdfs.LocatedBlocksProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocatedBlocksProto {
    /// Field 1 `fileLength`.
    #[prost(uint64, required, tag = "1")]
    pub file_length: u64,
    /// Field 2 `blocks`.
    #[prost(message, repeated, tag = "2")]
    pub blocks: ::std::vec::Vec<LocatedBlockProto>,
    /// Field 3 `underConstruction`.
    #[prost(bool, required, tag = "3")]
    pub under_construction: bool,
    /// Field 4 `lastBlock`.
    #[prost(message, optional, tag = "4")]
    pub last_block: ::core::option::Option<LocatedBlockProto>,
    /// Field 5 `isLastBlockComplete`.
    #[prost(bool, required, tag = "5")]
    pub is_last_block_complete: bool,
    /// Field 6 `fileEncryptionInfo`.
    #[prost(message, optional, tag = "6")]
    pub file_encryption_info: ::core::option::Option<FileEncryptionInfoProto>,
    /// Field 7 `ecPolicy`.
    #[prost(message, optional, tag = "7")]
    pub ec_policy: ::core::option::Option<ErasureCodingPolicyProto>,
}

/// `hadoop.hdfs.MetaSaveRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MetaSaveRequestProto {
    /// Field 1 `filename`.
    #[prost(string, required, tag = "1")]
    pub filename: ::std::string::String,
}

/// `hadoop.hdfs.MetaSaveResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MetaSaveResponseProto {}

/// `hadoop.hdfs.MetadataUpdateEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MetadataUpdateEventProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `type`.
    #[prost(enumeration = "MetadataUpdateType", required, tag = "2")]
    pub r#type: i32,
    /// Field 3 `mtime`.
    #[prost(int64, optional, tag = "3")]
    pub mtime: ::core::option::Option<i64>,
    /// Field 4 `atime`.
    #[prost(int64, optional, tag = "4")]
    pub atime: ::core::option::Option<i64>,
    /// Field 5 `replication`.
    #[prost(int32, optional, tag = "5")]
    pub replication: ::core::option::Option<i32>,
    /// Field 6 `ownerName`.
    #[prost(string, optional, tag = "6")]
    pub owner_name: ::core::option::Option<::std::string::String>,
    /// Field 7 `groupName`.
    #[prost(string, optional, tag = "7")]
    pub group_name: ::core::option::Option<::std::string::String>,
    /// Field 8 `perms`.
    #[prost(message, optional, tag = "8")]
    pub perms: ::core::option::Option<FsPermissionProto>,
    /// Field 9 `acls`.
    #[prost(message, repeated, tag = "9")]
    pub acls: ::std::vec::Vec<AclEntryProto>,
    /// Field 10 `xAttrs`.
    #[prost(message, repeated, tag = "10")]
    pub x_attrs: ::std::vec::Vec<XAttrProto>,
    /// Field 11 `xAttrsRemoved`.
    #[prost(bool, optional, tag = "11")]
    pub x_attrs_removed: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.MkdirsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MkdirsRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `masked`.
    #[prost(message, required, tag = "2")]
    pub masked: FsPermissionProto,
    /// Field 3 `createParent`.
    #[prost(bool, required, tag = "3")]
    pub create_parent: bool,
    /// Field 4 `unmasked`.
    #[prost(message, optional, tag = "4")]
    pub unmasked: ::core::option::Option<FsPermissionProto>,
}

/// `hadoop.hdfs.MkdirsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MkdirsResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.ModifyAclEntriesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyAclEntriesRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `aclSpec`.
    #[prost(message, repeated, tag = "2")]
    pub acl_spec: ::std::vec::Vec<AclEntryProto>,
}

/// `hadoop.hdfs.ModifyAclEntriesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyAclEntriesResponseProto {}

/// `hadoop.hdfs.ModifyCacheDirectiveRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyCacheDirectiveRequestProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CacheDirectiveInfoProto,
    /// Field 2 `cacheFlags`.
    #[prost(uint32, optional, tag = "2")]
    pub cache_flags: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.ModifyCacheDirectiveResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyCacheDirectiveResponseProto {}

/// `hadoop.hdfs.ModifyCachePoolRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyCachePoolRequestProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: CachePoolInfoProto,
}

/// `hadoop.hdfs.ModifyCachePoolResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ModifyCachePoolResponseProto {}

/// `hadoop.hdfs.MsyncRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MsyncRequestProto {}

/// `hadoop.hdfs.MsyncResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MsyncResponseProto {}

/// `hadoop.hdfs.NNHAStatusHeartbeatProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct NNHAStatusHeartbeatProto {
    /// Field 1 `state`.
    #[prost(enumeration = "NNHAStatusHeartbeatProtoState", required, tag = "1")]
    pub state: i32,
    /// Field 2 `txid`.
    #[prost(uint64, required, tag = "2")]
    pub txid: u64,
}

/// `hadoop.hdfs.NamenodeCommandProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct NamenodeCommandProto {
    /// Field 1 `action`.
    #[prost(uint32, required, tag = "1")]
    pub action: u32,
    /// Field 2 `type`.
    #[prost(enumeration = "NamenodeCommandProtoType", required, tag = "2")]
    pub r#type: i32,
    /// Field 3 `checkpointCmd`.
    #[prost(message, optional, tag = "3")]
    pub checkpoint_cmd: ::core::option::Option<CheckpointCommandProto>,
}

/// `hadoop.hdfs.NamenodeRegistrationProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct NamenodeRegistrationProto {
    /// Field 1 `rpcAddress`.
    #[prost(string, required, tag = "1")]
    pub rpc_address: ::std::string::String,
    /// Field 2 `httpAddress`.
    #[prost(string, required, tag = "2")]
    pub http_address: ::std::string::String,
    /// Field 3 `storageInfo`.
    #[prost(message, required, tag = "3")]
    pub storage_info: StorageInfoProto,
    /// Field 4 `role`.
    #[prost(enumeration = "NamenodeRegistrationProtoNamenodeRoleProto", optional, tag = "4", default = "Namenode")]
    pub role: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.NamespaceInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct NamespaceInfoProto {
    /// Field 1 `buildVersion`.
    #[prost(string, required, tag = "1")]
    pub build_version: ::std::string::String,
    /// Field 2 `unused`.
    #[prost(uint32, required, tag = "2")]
    pub unused: u32,
    /// Field 3 `blockPoolID`.
    #[prost(string, required, tag = "3")]
    pub block_pool_id: ::std::string::String,
    /// Field 4 `storageInfo`.
    #[prost(message, required, tag = "4")]
    pub storage_info: StorageInfoProto,
    /// Field 5 `softwareVersion`.
    #[prost(string, required, tag = "5")]
    pub software_version: ::std::string::String,
    /// Field 6 `capabilities`.
    #[prost(uint64, optional, tag = "6", default = "0")]
    pub capabilities: ::core::option::Option<u64>,
    /// Field 7 `state`.
    #[prost(enumeration = "NNHAStatusHeartbeatProtoState", optional, tag = "7")]
    pub state: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.OpBlockChecksumProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpBlockChecksumProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: BaseHeaderProto,
    /// Field 2 `blockChecksumOptions`.
    #[prost(message, optional, tag = "2")]
    pub block_checksum_options: ::core::option::Option<BlockChecksumOptionsProto>,
    /// Field 1000 `fromServer`.
    #[prost(bool, optional, tag = "1000")]
    pub from_server: ::core::option::Option<bool>,
    /// Field 1001 `fromDisk`.
    #[prost(bool, optional, tag = "1001")]
    pub from_disk: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.OpBlockChecksumResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpBlockChecksumResponseProto {
    /// Field 1 `bytesPerCrc`.
    #[prost(uint32, required, tag = "1")]
    pub bytes_per_crc: u32,
    /// Field 2 `crcPerBlock`.
    #[prost(uint64, required, tag = "2")]
    pub crc_per_block: u64,
    /// Field 3 `blockChecksum`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub block_checksum: ::std::vec::Vec<u8>,
    /// Field 4 `crcType`.
    #[prost(enumeration = "ChecksumTypeProto", optional, tag = "4")]
    pub crc_type: ::core::option::Option<i32>,
    /// Field 5 `blockChecksumOptions`.
    #[prost(message, optional, tag = "5")]
    pub block_checksum_options: ::core::option::Option<BlockChecksumOptionsProto>,
    /// Field 1000 `fromDisk`.
    #[prost(bool, optional, tag = "1000")]
    pub from_disk: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.OpBlockGroupChecksumProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpBlockGroupChecksumProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: BaseHeaderProto,
    /// Field 2 `datanodes`.
    #[prost(message, required, tag = "2")]
    pub datanodes: DatanodeInfosProto,
    /// Field 3 `blockTokens`.
    #[prost(message, repeated, tag = "3")]
    pub block_tokens: ::std::vec::Vec<super::common::TokenProto>,
    /// Field 4 `ecPolicy`.
    #[prost(message, required, tag = "4")]
    pub ec_policy: ErasureCodingPolicyProto,
    /// Field 5 `blockIndices`.
    #[prost(uint32, repeated, tag = "5", packed = "false")]
    pub block_indices: ::std::vec::Vec<u32>,
    /// Field 6 `requestedNumBytes`.
    #[prost(uint64, required, tag = "6")]
    pub requested_num_bytes: u64,
    /// Field 7 `blockChecksumOptions`.
    #[prost(message, optional, tag = "7")]
    pub block_checksum_options: ::core::option::Option<BlockChecksumOptionsProto>,
}

/// `hadoop.hdfs.OpCopyBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpCopyBlockProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: BaseHeaderProto,
}

/// `hadoop.hdfs.OpCustomProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpCustomProto {
    /// Field 1 `customId`.
    #[prost(string, required, tag = "1")]
    pub custom_id: ::std::string::String,
}

/// `hadoop.hdfs.OpReadBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpReadBlockProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: ClientOperationHeaderProto,
    /// Field 2 `offset`.
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    /// Field 3 `len`.
    #[prost(uint64, required, tag = "3")]
    pub len: u64,
    /// Field 4 `sendChecksums`.
    #[prost(bool, optional, tag = "4", default = "true")]
    pub send_checksums: ::core::option::Option<bool>,
    /// Field 5 `cachingStrategy`.
    #[prost(message, optional, tag = "5")]
    pub caching_strategy: ::core::option::Option<CachingStrategyProto>,
    /// Field 1000 `longestPacket`.
    #[prost(uint32, optional, tag = "1000")]
    pub longest_packet: ::core::option::Option<u32>,
    /// Field 1001 `fromServer`.
    #[prost(bool, optional, tag = "1001")]
    pub from_server: ::core::option::Option<bool>,
    /// Field 1002 `fromDisk`.
    #[prost(bool, optional, tag = "1002")]
    pub from_disk: ::core::option::Option<bool>,
    /// Field 1003 `sums`.
    #[prost(bool, optional, tag = "1003")]
    pub sums: ::core::option::Option<bool>,
    /// Field 1004 `also`.
    #[prost(message, repeated, tag = "1004")]
    pub also: ::std::vec::Vec<AlsoReadProto>,
}

/// `hadoop.hdfs.OpReplaceBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpReplaceBlockProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: BaseHeaderProto,
    /// Field 2 `delHint`.
    #[prost(string, required, tag = "2")]
    pub del_hint: ::std::string::String,
    /// Field 3 `source`.
    #[prost(message, required, tag = "3")]
    pub source: DatanodeInfoProto,
    /// Field 4 `storageType`.
    #[prost(enumeration = "StorageTypeProto", optional, tag = "4", default = "Disk")]
    pub storage_type: ::core::option::Option<i32>,
    /// Field 5 `storageId`.
    #[prost(string, optional, tag = "5")]
    pub storage_id: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.OpRequestShortCircuitAccessProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpRequestShortCircuitAccessProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: BaseHeaderProto,
    /// Field 2 `maxVersion`.
    #[prost(uint32, required, tag = "2")]
    pub max_version: u32,
    /// Field 3 `slotId`.
    #[prost(message, optional, tag = "3")]
    pub slot_id: ::core::option::Option<ShortCircuitShmSlotProto>,
    /// Field 4 `supportsReceiptVerification`.
    #[prost(bool, optional, tag = "4", default = "false")]
    pub supports_receipt_verification: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.OpTransferBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpTransferBlockProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: ClientOperationHeaderProto,
    /// Field 2 `targets`.
    #[prost(message, repeated, tag = "2")]
    pub targets: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 3 `targetStorageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "3", packed = "false")]
    pub target_storage_types: ::std::vec::Vec<i32>,
    /// Field 4 `targetStorageIds`.
    #[prost(string, repeated, tag = "4")]
    pub target_storage_ids: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.OpWriteBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpWriteBlockProto {
    /// Field 1 `header`.
    #[prost(message, required, tag = "1")]
    pub header: ClientOperationHeaderProto,
    /// Field 2 `targets`.
    #[prost(message, repeated, tag = "2")]
    pub targets: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 3 `source`.
    #[prost(message, optional, tag = "3")]
    pub source: ::core::option::Option<DatanodeInfoProto>,
    /// Field 4 `stage`.
    #[prost(enumeration = "OpWriteBlockProtoBlockConstructionStage", required, tag = "4")]
    pub stage: i32,
    /// Field 5 `pipelineSize`.
    #[prost(uint32, required, tag = "5")]
    pub pipeline_size: u32,
    /// Field 6 `minBytesRcvd`.
    #[prost(uint64, required, tag = "6")]
    pub min_bytes_rcvd: u64,
    /// Field 7 `maxBytesRcvd`.
    #[prost(uint64, required, tag = "7")]
    pub max_bytes_rcvd: u64,
    /// Field 8 `latestGenerationStamp`.
    #[prost(uint64, required, tag = "8")]
    pub latest_generation_stamp: u64,
    /// Field 9 `requestedChecksum`.
    #[prost(message, required, tag = "9")]
    pub requested_checksum: ChecksumProto,
    /// Field 10 `cachingStrategy`.
    #[prost(message, optional, tag = "10")]
    pub caching_strategy: ::core::option::Option<CachingStrategyProto>,
    /// Field 11 `storageType`.
    #[prost(enumeration = "StorageTypeProto", optional, tag = "11", default = "Disk")]
    pub storage_type: ::core::option::Option<i32>,
    /// Field 12 `targetStorageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "12", packed = "false")]
    pub target_storage_types: ::std::vec::Vec<i32>,
    /// Field 13 `allowLazyPersist`.
    #[prost(bool, optional, tag = "13", default = "false")]
    pub allow_lazy_persist: ::core::option::Option<bool>,
    /// Field 14 `pinning`.
    #[prost(bool, optional, tag = "14", default = "false")]
    pub pinning: ::core::option::Option<bool>,
    /// Field 15 `targetPinnings`.
    #[prost(bool, repeated, tag = "15", packed = "false")]
    pub target_pinnings: ::std::vec::Vec<bool>,
    /// Field 16 `storageId`.
    #[prost(string, optional, tag = "16")]
    pub storage_id: ::core::option::Option<::std::string::String>,
    /// Field 17 `targetStorageIds`.
    #[prost(string, repeated, tag = "17")]
    pub target_storage_ids: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.OpenFilesBatchResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpenFilesBatchResponseProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
    /// Field 2 `path`.
    #[prost(string, required, tag = "2")]
    pub path: ::std::string::String,
    /// Field 3 `clientName`.
    #[prost(string, required, tag = "3")]
    pub client_name: ::std::string::String,
    /// Field 4 `clientMachine`.
    #[prost(string, required, tag = "4")]
    pub client_machine: ::std::string::String,
}

/// `hadoop.hdfs.PacketHeaderProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PacketHeaderProto {
    /// Field 1 `offsetInBlock`.
    #[prost(sfixed64, required, tag = "1")]
    pub offset_in_block: i64,
    /// Field 2 `seqno`.
    #[prost(sfixed64, required, tag = "2")]
    pub seqno: i64,
    /// Field 3 `lastPacketInBlock`.
    #[prost(bool, required, tag = "3")]
    pub last_packet_in_block: bool,
    /// Field 4 `dataLen`.
    #[prost(sfixed32, required, tag = "4")]
    pub data_len: i32,
    /// Field 5 `syncBlock`.
    #[prost(bool, optional, tag = "5", default = "false")]
    pub sync_block: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.PauseGroupsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PauseGroupsRequestProto {
    /// Field 1000 `what`.
    #[prost(uint32, required, tag = "1000")]
    pub what: u32,
    /// Field 1001 `pause`.
    #[prost(bool, required, tag = "1001")]
    pub pause: bool,
}

/// `hadoop.hdfs.PauseGroupsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PauseGroupsResponseProto {
    /// Field 1000 `paused`.
    #[prost(uint32, required, tag = "1000")]
    pub paused: u32,
}

/// `hadoop.hdfs.PauseWorkersRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PauseWorkersRequestProto {
    /// Field 1000 `names`.
    #[prost(string, repeated, tag = "1000")]
    pub names: ::std::vec::Vec<::std::string::String>,
    /// Field 1001 `pause`.
    #[prost(bool, required, tag = "1001")]
    pub pause: bool,
}

/// `hadoop.hdfs.PerFileEncryptionInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PerFileEncryptionInfoProto {
    /// Field 1 `key`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub key: ::std::vec::Vec<u8>,
    /// Field 2 `iv`.
    #[prost(bytes = "vec", required, tag = "2")]
    pub iv: ::std::vec::Vec<u8>,
    /// Field 3 `ezKeyVersionName`.
    #[prost(string, required, tag = "3")]
    pub ez_key_version_name: ::std::string::String,
}

/// `hadoop.hdfs.PipelineAckProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PipelineAckProto {
    /// Field 1 `seqno`.
    #[prost(sint64, required, tag = "1")]
    pub seqno: i64,
    /// Field 2 `reply`.
    #[prost(enumeration = "Status", repeated, tag = "2", packed = "false")]
    pub reply: ::std::vec::Vec<i32>,
    /// Field 3 `downstreamAckTimeNanos`.
    #[prost(uint64, optional, tag = "3", default = "0")]
    pub downstream_ack_time_nanos: ::core::option::Option<u64>,
    /// Field 4 `flag`.
    #[prost(uint32, repeated, tag = "4", packed = "true")]
    pub flag: ::std::vec::Vec<u32>,
}

/// `hadoop.hdfs.ProvidedStorageLocationProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProvidedStorageLocationProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `offset`.
    #[prost(int64, required, tag = "2")]
    pub offset: i64,
    /// Field 3 `length`.
    #[prost(int64, required, tag = "3")]
    pub length: i64,
    /// Field 4 `nonce`.
    #[prost(bytes = "vec", required, tag = "4")]
    pub nonce: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.QueryPlanStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct QueryPlanStatusRequestProto {}

/// `hadoop.hdfs.QueryPlanStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct QueryPlanStatusResponseProto {
    /// Field 1 `result`.
    #[prost(uint32, optional, tag = "1")]
    pub result: ::core::option::Option<u32>,
    /// Field 2 `planID`.
    #[prost(string, optional, tag = "2")]
    pub plan_id: ::core::option::Option<::std::string::String>,
    /// Field 3 `currentStatus`.
    #[prost(string, optional, tag = "3")]
    pub current_status: ::core::option::Option<::std::string::String>,
    /// Field 4 `planFile`.
    #[prost(string, optional, tag = "4")]
    pub plan_file: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.QuorumMemberProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct QuorumMemberProto {
    /// Field 1000 `name`.
    #[prost(string, required, tag = "1000")]
    pub name: ::std::string::String,
    /// Field 1001 `id`.
    #[prost(fixed64, optional, tag = "1001")]
    pub id: ::core::option::Option<u64>,
    /// Field 1002 `part`.
    #[prost(string, required, tag = "1002")]
    pub part: ::std::string::String,
    /// Field 1003 `rpcAddress`.
    #[prost(string, optional, tag = "1003")]
    pub rpc_address: ::core::option::Option<::std::string::String>,
    /// Field 1004 `quorumAddress`.
    #[prost(string, optional, tag = "1004")]
    pub quorum_address: ::core::option::Option<::std::string::String>,
    /// Field 1005 `last`.
    #[prost(uint64, optional, tag = "1005")]
    pub last: ::core::option::Option<u64>,
    /// Field 1006 `isThere`.
    #[prost(bool, required, tag = "1006")]
    pub is_there: bool,
    /// Field 1007 `ready`.
    #[prost(bool, required, tag = "1007")]
    pub ready: bool,
}

/// `hadoop.hdfs.QuotaUsageProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct QuotaUsageProto {
    /// Field 1 `fileAndDirectoryCount`.
    #[prost(uint64, required, tag = "1")]
    pub file_and_directory_count: u64,
    /// Field 2 `quota`.
    #[prost(uint64, required, tag = "2")]
    pub quota: u64,
    /// Field 3 `spaceConsumed`.
    #[prost(uint64, required, tag = "3")]
    pub space_consumed: u64,
    /// Field 4 `spaceQuota`.
    #[prost(uint64, required, tag = "4")]
    pub space_quota: u64,
    /// Field 5 `typeQuotaInfos`.
    #[prost(message, optional, tag = "5")]
    pub type_quota_infos: ::core::option::Option<StorageTypeQuotaInfosProto>,
}

/// `hadoop.hdfs.ReadOpChecksumInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReadOpChecksumInfoProto {
    /// Field 1 `checksum`.
    #[prost(message, required, tag = "1")]
    pub checksum: ChecksumProto,
    /// Field 2 `chunkOffset`.
    #[prost(uint64, required, tag = "2")]
    pub chunk_offset: u64,
}

/// `hadoop.hdfs.RecoverLeaseRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RecoverLeaseRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
}

/// `hadoop.hdfs.RecoverLeaseResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RecoverLeaseResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.RecoveringBlockProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RecoveringBlockProto {
    /// Field 1 `newGenStamp`.
    #[prost(uint64, required, tag = "1")]
    pub new_gen_stamp: u64,
    /// Field 2 `block`.
    #[prost(message, required, tag = "2")]
    pub block: LocatedBlockProto,
    /// Field 3 `truncateBlock`.
    #[prost(message, optional, tag = "3")]
    pub truncate_block: ::core::option::Option<BlockProto>,
    /// Field 4 `ecPolicy`.
    #[prost(message, optional, tag = "4")]
    pub ec_policy: ::core::option::Option<ErasureCodingPolicyProto>,
    /// Field 5 `blockIndices`.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub block_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1000 `awayIndices`.
    #[prost(bytes = "vec", optional, tag = "1000")]
    pub away_indices: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 1001 `earlierGenStamp`.
    #[prost(uint64, optional, tag = "1001")]
    pub earlier_gen_stamp: ::core::option::Option<u64>,
    /// Field 1002 `earlierLocs`.
    #[prost(message, repeated, tag = "1002")]
    pub earlier_locs: ::std::vec::Vec<DatanodeInfoProto>,
    /// Field 1003 `earlierAwayCount`.
    #[prost(uint32, optional, tag = "1003")]
    pub earlier_away_count: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.ReencryptEncryptionZoneRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReencryptEncryptionZoneRequestProto {
    /// Field 1 `action`.
    #[prost(enumeration = "ReencryptActionProto", required, tag = "1")]
    pub action: i32,
    /// Field 2 `zone`.
    #[prost(string, required, tag = "2")]
    pub zone: ::std::string::String,
}

/// `hadoop.hdfs.ReencryptEncryptionZoneResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReencryptEncryptionZoneResponseProto {}

/// `hadoop.hdfs.ReencryptionInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReencryptionInfoProto {
    /// Field 1 `ezKeyVersionName`.
    #[prost(string, required, tag = "1")]
    pub ez_key_version_name: ::std::string::String,
    /// Field 2 `submissionTime`.
    #[prost(uint64, required, tag = "2")]
    pub submission_time: u64,
    /// Field 3 `canceled`.
    #[prost(bool, required, tag = "3")]
    pub canceled: bool,
    /// Field 4 `numReencrypted`.
    #[prost(int64, required, tag = "4")]
    pub num_reencrypted: i64,
    /// Field 5 `numFailures`.
    #[prost(int64, required, tag = "5")]
    pub num_failures: i64,
    /// Field 6 `completionTime`.
    #[prost(uint64, optional, tag = "6")]
    pub completion_time: ::core::option::Option<u64>,
    /// Field 7 `lastFile`.
    #[prost(string, optional, tag = "7")]
    pub last_file: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.RefreshNamenodesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshNamenodesRequestProto {}

/// `hadoop.hdfs.RefreshNamenodesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshNamenodesResponseProto {}

/// `hadoop.hdfs.RefreshNodesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshNodesRequestProto {}

/// `hadoop.hdfs.RefreshNodesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RefreshNodesResponseProto {}

/// `hadoop.hdfs.ReleaseShortCircuitAccessRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReleaseShortCircuitAccessRequestProto {
    /// Field 1 `slotId`.
    #[prost(message, required, tag = "1")]
    pub slot_id: ShortCircuitShmSlotProto,
    /// Field 2 `traceInfo`.
    #[prost(message, optional, tag = "2")]
    pub trace_info: ::core::option::Option<DataTransferTraceInfoProto>,
}

/// `hadoop.hdfs.ReleaseShortCircuitAccessResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReleaseShortCircuitAccessResponseProto {
    /// Field 1 `status`.
    #[prost(enumeration = "Status", required, tag = "1")]
    pub status: i32,
    /// Field 2 `error`.
    #[prost(string, optional, tag = "2")]
    pub error: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.RemoteEditLogManifestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoteEditLogManifestProto {
    /// Field 1 `logs`.
    #[prost(message, repeated, tag = "1")]
    pub logs: ::std::vec::Vec<RemoteEditLogProto>,
    /// Field 2 `committedTxnId`.
    #[prost(uint64, optional, tag = "2")]
    pub committed_txn_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.RemoteEditLogProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoteEditLogProto {
    /// Field 1 `startTxId`.
    #[prost(uint64, required, tag = "1")]
    pub start_tx_id: u64,
    /// Field 2 `endTxId`.
    #[prost(uint64, required, tag = "2")]
    pub end_tx_id: u64,
    /// Field 3 `isInProgress`.
    #[prost(bool, optional, tag = "3", default = "false")]
    pub is_in_progress: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.RemoteExceptionProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoteExceptionProto {
    /// Field 1 `className`.
    #[prost(string, required, tag = "1")]
    pub class_name: ::std::string::String,
    /// Field 2 `message`.
    #[prost(string, optional, tag = "2")]
    pub message: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.RemoveAclEntriesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveAclEntriesRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `aclSpec`.
    #[prost(message, repeated, tag = "2")]
    pub acl_spec: ::std::vec::Vec<AclEntryProto>,
}

/// `hadoop.hdfs.RemoveAclEntriesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveAclEntriesResponseProto {}

/// `hadoop.hdfs.RemoveAclRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveAclRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.RemoveAclResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveAclResponseProto {}

/// `hadoop.hdfs.RemoveCacheDirectiveRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveCacheDirectiveRequestProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
}

/// `hadoop.hdfs.RemoveCacheDirectiveResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveCacheDirectiveResponseProto {}

/// `hadoop.hdfs.RemoveCachePoolRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveCachePoolRequestProto {
    /// Field 1 `poolName`.
    #[prost(string, required, tag = "1")]
    pub pool_name: ::std::string::String,
}

/// `hadoop.hdfs.RemoveCachePoolResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveCachePoolResponseProto {}

/// `hadoop.hdfs.RemoveDefaultAclRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveDefaultAclRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.RemoveDefaultAclResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveDefaultAclResponseProto {}

/// `hadoop.hdfs.RemoveErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveErasureCodingPolicyRequestProto {
    /// Field 1 `ecPolicyName`.
    #[prost(string, required, tag = "1")]
    pub ec_policy_name: ::std::string::String,
}

/// `hadoop.hdfs.RemoveErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveErasureCodingPolicyResponseProto {}

/// `hadoop.hdfs.RemoveXAttrRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveXAttrRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `xAttr`.
    #[prost(message, optional, tag = "2")]
    pub x_attr: ::core::option::Option<XAttrProto>,
}

/// `hadoop.hdfs.RemoveXAttrResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RemoveXAttrResponseProto {}

/// `hadoop.hdfs.Rename2RequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Rename2RequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `dst`.
    #[prost(string, required, tag = "2")]
    pub dst: ::std::string::String,
    /// Field 3 `overwriteDest`.
    #[prost(bool, required, tag = "3")]
    pub overwrite_dest: bool,
    /// Field 4 `moveToTrash`.
    #[prost(bool, optional, tag = "4")]
    pub move_to_trash: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.Rename2ResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Rename2ResponseProto {}

/// `hadoop.hdfs.RenameEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameEventProto {
    /// Field 1 `srcPath`.
    #[prost(string, required, tag = "1")]
    pub src_path: ::std::string::String,
    /// Field 2 `destPath`.
    #[prost(string, required, tag = "2")]
    pub dest_path: ::std::string::String,
    /// Field 3 `timestamp`.
    #[prost(int64, required, tag = "3")]
    pub timestamp: i64,
}

/// `hadoop.hdfs.RenameRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `dst`.
    #[prost(string, required, tag = "2")]
    pub dst: ::std::string::String,
}

/// `hadoop.hdfs.RenameResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.RenameSnapshotRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameSnapshotRequestProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `snapshotOldName`.
    #[prost(string, required, tag = "2")]
    pub snapshot_old_name: ::std::string::String,
    /// Field 3 `snapshotNewName`.
    #[prost(string, required, tag = "3")]
    pub snapshot_new_name: ::std::string::String,
}

/// `hadoop.hdfs.RenameSnapshotResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameSnapshotResponseProto {}

/// `hadoop.hdfs.RenewLeaseRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenewLeaseRequestProto {
    /// Field 1 `clientName`.
    #[prost(string, required, tag = "1")]
    pub client_name: ::std::string::String,
    /// Field 2 `namespaces`.
    #[prost(string, repeated, tag = "2")]
    pub namespaces: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.RenewLeaseResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenewLeaseResponseProto {}

/// `hadoop.hdfs.ReportBadBlocksRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReportBadBlocksRequestProto {
    /// Field 1 `blocks`.
    #[prost(message, repeated, tag = "1")]
    pub blocks: ::std::vec::Vec<LocatedBlockProto>,
}

/// `hadoop.hdfs.ReportBadBlocksResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReportBadBlocksResponseProto {}

/// `hadoop.hdfs.RestoreFailedStorageRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RestoreFailedStorageRequestProto {
    /// Field 1 `arg`.
    #[prost(string, required, tag = "1")]
    pub arg: ::std::string::String,
}

/// `hadoop.hdfs.RestoreFailedStorageResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RestoreFailedStorageResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.RollEditsRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollEditsRequestProto {}

/// `hadoop.hdfs.RollEditsResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollEditsResponseProto {
    /// Field 1 `newSegmentTxId`.
    #[prost(uint64, required, tag = "1")]
    pub new_segment_tx_id: u64,
}

/// `hadoop.hdfs.RollingUpgradeInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollingUpgradeInfoProto {
    /// Field 1 `status`.
    #[prost(message, required, tag = "1")]
    pub status: RollingUpgradeStatusProto,
    /// Field 2 `startTime`.
    #[prost(uint64, required, tag = "2")]
    pub start_time: u64,
    /// Field 3 `finalizeTime`.
    #[prost(uint64, required, tag = "3")]
    pub finalize_time: u64,
    /// Field 4 `createdRollbackImages`.
    #[prost(bool, required, tag = "4")]
    pub created_rollback_images: bool,
}

/// `hadoop.hdfs.RollingUpgradeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollingUpgradeRequestProto {
    /// Field 1 `action`.
    #[prost(enumeration = "RollingUpgradeActionProto", required, tag = "1")]
    pub action: i32,
}

/// `hadoop.hdfs.RollingUpgradeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollingUpgradeResponseProto {
    /// Field 1 `rollingUpgradeInfo`.
    #[prost(message, optional, tag = "1")]
    pub rolling_upgrade_info: ::core::option::Option<RollingUpgradeInfoProto>,
}

/// `hadoop.hdfs.RollingUpgradeStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RollingUpgradeStatusProto {
    /// Field 1 `blockPoolId`.
    #[prost(string, required, tag = "1")]
    pub block_pool_id: ::std::string::String,
    /// Field 2 `finalized`.
    #[prost(bool, optional, tag = "2", default = "false")]
    pub finalized: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.RouterFederatedStateProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RouterFederatedStateProto {
    /// Field 1 `namespaceStateIds`.
    #[prost(message, repeated, tag = "1")]
    pub namespace_state_ids: ::std::vec::Vec<RouterFederatedStateProtoNamespaceStateIdsEntry>,
}

/// `hadoop.hdfs.RouterFederatedStateProto.NamespaceStateIdsEntry`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RouterFederatedStateProtoNamespaceStateIdsEntry {
    /// Field 1 `key`.
    #[prost(string, optional, tag = "1")]
    pub key: ::core::option::Option<::std::string::String>,
    /// Field 2 `value`.
    #[prost(int64, optional, tag = "2")]
    pub value: ::core::option::Option<i64>,
}

/// `hadoop.hdfs.SatisfyStoragePolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SatisfyStoragePolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.SatisfyStoragePolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SatisfyStoragePolicyResponseProto {}

/// `hadoop.hdfs.SaveNamespaceRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SaveNamespaceRequestProto {
    /// Field 1 `timeWindow`.
    #[prost(uint64, optional, tag = "1", default = "0")]
    pub time_window: ::core::option::Option<u64>,
    /// Field 2 `txGap`.
    #[prost(uint64, optional, tag = "2", default = "0")]
    pub tx_gap: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.SaveNamespaceResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SaveNamespaceResponseProto {
    /// Field 1 `saved`.
    #[prost(bool, optional, tag = "1", default = "true")]
    pub saved: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.SetAclRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetAclRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `aclSpec`.
    #[prost(message, repeated, tag = "2")]
    pub acl_spec: ::std::vec::Vec<AclEntryProto>,
}

/// `hadoop.hdfs.SetAclResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetAclResponseProto {}

/// `hadoop.hdfs.SetBalancerBandwidthRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetBalancerBandwidthRequestProto {
    /// Field 1 `bandwidth`.
    #[prost(int64, required, tag = "1")]
    pub bandwidth: i64,
}

/// `hadoop.hdfs.SetBalancerBandwidthResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetBalancerBandwidthResponseProto {}

/// `hadoop.hdfs.SetDatanodeStateRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetDatanodeStateRequestProto {
    /// Field 1000 `datanodes`.
    #[prost(string, repeated, tag = "1000")]
    pub datanodes: ::std::vec::Vec<::std::string::String>,
    /// Field 1001 `adminState`.
    #[prost(enumeration = "DatanodeInfoProtoAdminState", required, tag = "1001")]
    pub admin_state: i32,
    /// Field 1002 `untilMs`.
    #[prost(uint64, optional, tag = "1002")]
    pub until_ms: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.SetDatanodeStateResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetDatanodeStateResponseProto {
    /// Field 1000 `addresses`.
    #[prost(string, repeated, tag = "1000")]
    pub addresses: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.SetErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetErasureCodingPolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `ecPolicyName`.
    #[prost(string, optional, tag = "2")]
    pub ec_policy_name: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.SetErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetErasureCodingPolicyResponseProto {}

/// `hadoop.hdfs.SetOwnerRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetOwnerRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `username`.
    #[prost(string, optional, tag = "2")]
    pub username: ::core::option::Option<::std::string::String>,
    /// Field 3 `groupname`.
    #[prost(string, optional, tag = "3")]
    pub groupname: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.SetOwnerResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetOwnerResponseProto {}

/// `hadoop.hdfs.SetPermissionRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetPermissionRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `permission`.
    #[prost(message, required, tag = "2")]
    pub permission: FsPermissionProto,
}

/// `hadoop.hdfs.SetPermissionResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetPermissionResponseProto {}

/// `hadoop.hdfs.SetQuotaRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetQuotaRequestProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `namespaceQuota`.
    #[prost(uint64, required, tag = "2")]
    pub namespace_quota: u64,
    /// Field 3 `storagespaceQuota`.
    #[prost(uint64, required, tag = "3")]
    pub storagespace_quota: u64,
    /// Field 4 `storageType`.
    #[prost(enumeration = "StorageTypeProto", optional, tag = "4")]
    pub storage_type: ::core::option::Option<i32>,
}

/// `hadoop.hdfs.SetQuotaResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetQuotaResponseProto {}

/// `hadoop.hdfs.SetReplicationRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetReplicationRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `replication`.
    #[prost(uint32, required, tag = "2")]
    pub replication: u32,
}

/// `hadoop.hdfs.SetReplicationResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetReplicationResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.SetSafeModeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetSafeModeRequestProto {
    /// Field 1 `action`.
    #[prost(enumeration = "SafeModeActionProto", required, tag = "1")]
    pub action: i32,
    /// Field 2 `checked`.
    #[prost(bool, optional, tag = "2", default = "false")]
    pub checked: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.SetSafeModeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetSafeModeResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.SetStoragePolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetStoragePolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `policyName`.
    #[prost(string, required, tag = "2")]
    pub policy_name: ::std::string::String,
}

/// `hadoop.hdfs.SetStoragePolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetStoragePolicyResponseProto {}

/// `hadoop.hdfs.SetTimesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetTimesRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `mtime`.
    #[prost(uint64, required, tag = "2")]
    pub mtime: u64,
    /// Field 3 `atime`.
    #[prost(uint64, required, tag = "3")]
    pub atime: u64,
}

/// `hadoop.hdfs.SetTimesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetTimesResponseProto {}

/// `hadoop.hdfs.SetXAttrRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetXAttrRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `xAttr`.
    #[prost(message, optional, tag = "2")]
    pub x_attr: ::core::option::Option<XAttrProto>,
    /// Field 3 `flag`.
    #[prost(uint32, optional, tag = "3")]
    pub flag: ::core::option::Option<u32>,
}

/// `hadoop.hdfs.SetXAttrResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SetXAttrResponseProto {}

/// `hadoop.hdfs.ShortCircuitShmIdProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShortCircuitShmIdProto {
    /// Field 1 `hi`.
    #[prost(int64, required, tag = "1")]
    pub hi: i64,
    /// Field 2 `lo`.
    #[prost(int64, required, tag = "2")]
    pub lo: i64,
}

/// `hadoop.hdfs.ShortCircuitShmRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShortCircuitShmRequestProto {
    /// Field 1 `clientName`.
    #[prost(string, required, tag = "1")]
    pub client_name: ::std::string::String,
    /// Field 2 `traceInfo`.
    #[prost(message, optional, tag = "2")]
    pub trace_info: ::core::option::Option<DataTransferTraceInfoProto>,
}

/// `hadoop.hdfs.ShortCircuitShmResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShortCircuitShmResponseProto {
    /// Field 1 `status`.
    #[prost(enumeration = "Status", required, tag = "1")]
    pub status: i32,
    /// Field 2 `error`.
    #[prost(string, optional, tag = "2")]
    pub error: ::core::option::Option<::std::string::String>,
    /// Field 3 `id`.
    #[prost(message, optional, tag = "3")]
    pub id: ::core::option::Option<ShortCircuitShmIdProto>,
}

/// `hadoop.hdfs.ShortCircuitShmSlotProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShortCircuitShmSlotProto {
    /// Field 1 `shmId`.
    #[prost(message, required, tag = "1")]
    pub shm_id: ShortCircuitShmIdProto,
    /// Field 2 `slotIdx`.
    #[prost(int32, required, tag = "2")]
    pub slot_idx: i32,
}

/// `hadoop.hdfs.ShutdownDatanodeRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShutdownDatanodeRequestProto {
    /// Field 1 `forUpgrade`.
    #[prost(bool, required, tag = "1")]
    pub for_upgrade: bool,
}

/// `hadoop.hdfs.ShutdownDatanodeResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ShutdownDatanodeResponseProto {}

/// `hadoop.hdfs.SnapshotDiffReportCursorProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotDiffReportCursorProto {
    /// Field 1 `startPath`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub start_path: ::std::vec::Vec<u8>,
    /// Field 2 `index`.
    #[prost(int32, required, tag = "2")]
    pub index: i32,
}

/// `hadoop.hdfs.SnapshotDiffReportEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotDiffReportEntryProto {
    /// Field 1 `fullpath`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub fullpath: ::std::vec::Vec<u8>,
    /// Field 2 `modificationLabel`.
    #[prost(string, required, tag = "2")]
    pub modification_label: ::std::string::String,
    /// Field 3 `targetPath`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub target_path: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.SnapshotDiffReportListingEntryProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotDiffReportListingEntryProto {
    /// Field 1 `fullpath`.
    #[prost(bytes = "vec", required, tag = "1")]
    pub fullpath: ::std::vec::Vec<u8>,
    /// Field 2 `dirId`.
    #[prost(uint64, required, tag = "2")]
    pub dir_id: u64,
    /// Field 3 `isReference`.
    #[prost(bool, required, tag = "3")]
    pub is_reference: bool,
    /// Field 4 `targetPath`.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub target_path: ::core::option::Option<::std::vec::Vec<u8>>,
    /// Field 5 `fileId`.
    #[prost(uint64, optional, tag = "5")]
    pub file_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.SnapshotDiffReportListingProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotDiffReportListingProto {
    /// Field 1 `modifiedEntries`.
    #[prost(message, repeated, tag = "1")]
    pub modified_entries: ::std::vec::Vec<SnapshotDiffReportListingEntryProto>,
    /// Field 2 `createdEntries`.
    #[prost(message, repeated, tag = "2")]
    pub created_entries: ::std::vec::Vec<SnapshotDiffReportListingEntryProto>,
    /// Field 3 `deletedEntries`.
    #[prost(message, repeated, tag = "3")]
    pub deleted_entries: ::std::vec::Vec<SnapshotDiffReportListingEntryProto>,
    /// Field 4 `isFromEarlier`.
    #[prost(bool, required, tag = "4")]
    pub is_from_earlier: bool,
    /// Field 5 `cursor`.
    #[prost(message, optional, tag = "5")]
    pub cursor: ::core::option::Option<SnapshotDiffReportCursorProto>,
}

/// `hadoop.hdfs.SnapshotDiffReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotDiffReportProto {
    /// Field 1 `snapshotRoot`.
    #[prost(string, required, tag = "1")]
    pub snapshot_root: ::std::string::String,
    /// Field 2 `fromSnapshot`.
    #[prost(string, required, tag = "2")]
    pub from_snapshot: ::std::string::String,
    /// Field 3 `toSnapshot`.
    #[prost(string, required, tag = "3")]
    pub to_snapshot: ::std::string::String,
    /// Field 4 `diffReportEntries`.
    #[prost(message, repeated, tag = "4")]
    pub diff_report_entries: ::std::vec::Vec<SnapshotDiffReportEntryProto>,
}

/// `hadoop.hdfs.SnapshotInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotInfoProto {
    /// Field 1 `snapshotName`.
    #[prost(string, required, tag = "1")]
    pub snapshot_name: ::std::string::String,
    /// Field 2 `snapshotRoot`.
    #[prost(string, required, tag = "2")]
    pub snapshot_root: ::std::string::String,
    /// Field 3 `permission`.
    #[prost(message, required, tag = "3")]
    pub permission: FsPermissionProto,
    /// Field 4 `owner`.
    #[prost(string, required, tag = "4")]
    pub owner: ::std::string::String,
    /// Field 5 `group`.
    #[prost(string, required, tag = "5")]
    pub group: ::std::string::String,
    /// Field 6 `createTime`.
    #[prost(string, required, tag = "6")]
    pub create_time: ::std::string::String,
}

/// `hadoop.hdfs.SnapshotListingProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotListingProto {
    /// Field 1 `snapshotListing`.
    #[prost(message, repeated, tag = "1")]
    pub snapshot_listing: ::std::vec::Vec<SnapshotStatusProto>,
}

/// `hadoop.hdfs.SnapshotStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshotStatusProto {
    /// Field 1 `dirStatus`.
    #[prost(message, required, tag = "1")]
    pub dir_status: HdfsFileStatusProto,
    /// Field 2 `snapshotID`.
    #[prost(uint32, required, tag = "2")]
    pub snapshot_id: u32,
    /// Field 3 `parent_fullpath`.
    #[prost(bytes = "vec", required, tag = "3")]
    pub parent_fullpath: ::std::vec::Vec<u8>,
    /// Field 4 `isDeleted`.
    #[prost(bool, required, tag = "4")]
    pub is_deleted: bool,
}

/// `hadoop.hdfs.SnapshottableDirectoryListingProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshottableDirectoryListingProto {
    /// Field 1 `snapshottableDirListing`.
    #[prost(message, repeated, tag = "1")]
    pub snapshottable_dir_listing: ::std::vec::Vec<SnapshottableDirectoryStatusProto>,
}

/// `hadoop.hdfs.SnapshottableDirectoryStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SnapshottableDirectoryStatusProto {
    /// Field 1 `dirStatus`.
    #[prost(message, required, tag = "1")]
    pub dir_status: HdfsFileStatusProto,
    /// Field 2 `snapshot_quota`.
    #[prost(uint32, required, tag = "2")]
    pub snapshot_quota: u32,
    /// Field 3 `snapshot_number`.
    #[prost(uint32, required, tag = "3")]
    pub snapshot_number: u32,
    /// Field 4 `parent_fullpath`.
    #[prost(bytes = "vec", required, tag = "4")]
    pub parent_fullpath: ::std::vec::Vec<u8>,
}

/// `hadoop.hdfs.StartReconfigurationRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StartReconfigurationRequestProto {}

/// `hadoop.hdfs.StartReconfigurationResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StartReconfigurationResponseProto {}

/// `hadoop.hdfs.StorageInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageInfoProto {
    /// Field 1 `layoutVersion`.
    #[prost(uint32, required, tag = "1")]
    pub layout_version: u32,
    /// Field 2 `namespceID`.
    #[prost(uint32, required, tag = "2")]
    pub namespce_id: u32,
    /// Field 3 `clusterID`.
    #[prost(string, required, tag = "3")]
    pub cluster_id: ::std::string::String,
    /// Field 4 `cTime`.
    #[prost(uint64, required, tag = "4")]
    pub c_time: u64,
}

/// `hadoop.hdfs.StorageReportProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageReportProto {
    /// Field 1 `storageUuid`.
    #[prost(string, required, tag = "1")]
    pub storage_uuid: ::std::string::String,
    /// Field 2 `failed`.
    #[prost(bool, optional, tag = "2", default = "false")]
    pub failed: ::core::option::Option<bool>,
    /// Field 3 `capacity`.
    #[prost(uint64, optional, tag = "3", default = "0")]
    pub capacity: ::core::option::Option<u64>,
    /// Field 4 `dfsUsed`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub dfs_used: ::core::option::Option<u64>,
    /// Field 5 `remaining`.
    #[prost(uint64, optional, tag = "5", default = "0")]
    pub remaining: ::core::option::Option<u64>,
    /// Field 6 `blockPoolUsed`.
    #[prost(uint64, optional, tag = "6", default = "0")]
    pub block_pool_used: ::core::option::Option<u64>,
    /// Field 7 `storage`.
    #[prost(message, optional, tag = "7")]
    pub storage: ::core::option::Option<DatanodeStorageProto>,
    /// Field 8 `nonDfsUsed`.
    #[prost(uint64, optional, tag = "8")]
    pub non_dfs_used: ::core::option::Option<u64>,
    /// Field 9 `mount`.
    #[prost(string, optional, tag = "9")]
    pub mount: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.StorageTypeQuotaInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageTypeQuotaInfoProto {
    /// Field 1 `type`.
    #[prost(enumeration = "StorageTypeProto", optional, tag = "1", default = "Disk")]
    pub r#type: ::core::option::Option<i32>,
    /// Field 2 `quota`.
    #[prost(uint64, required, tag = "2")]
    pub quota: u64,
    /// Field 3 `consumed`.
    #[prost(uint64, required, tag = "3")]
    pub consumed: u64,
}

/// `hadoop.hdfs.StorageTypeQuotaInfosProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageTypeQuotaInfosProto {
    /// Field 1 `typeQuotaInfo`.
    #[prost(message, repeated, tag = "1")]
    pub type_quota_info: ::std::vec::Vec<StorageTypeQuotaInfoProto>,
}

/// `hadoop.hdfs.StorageTypesProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageTypesProto {
    /// Field 1 `storageTypes`.
    #[prost(enumeration = "StorageTypeProto", repeated, tag = "1", packed = "false")]
    pub storage_types: ::std::vec::Vec<i32>,
}

/// `hadoop.hdfs.StorageUuidsProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StorageUuidsProto {
    /// Field 1 `storageUuids`.
    #[prost(string, repeated, tag = "1")]
    pub storage_uuids: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.SubmitDiskBalancerPlanRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SubmitDiskBalancerPlanRequestProto {
    /// Field 1 `planID`.
    #[prost(string, required, tag = "1")]
    pub plan_id: ::std::string::String,
    /// Field 2 `plan`.
    #[prost(string, required, tag = "2")]
    pub plan: ::std::string::String,
    /// Field 3 `planVersion`.
    #[prost(uint64, optional, tag = "3")]
    pub plan_version: ::core::option::Option<u64>,
    /// Field 4 `ignoreDateCheck`.
    #[prost(bool, optional, tag = "4")]
    pub ignore_date_check: ::core::option::Option<bool>,
    /// Field 5 `planFile`.
    #[prost(string, required, tag = "5")]
    pub plan_file: ::std::string::String,
}

/// `hadoop.hdfs.SubmitDiskBalancerPlanResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SubmitDiskBalancerPlanResponseProto {}

/// `hadoop.hdfs.SwapBlocksRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SwapBlocksRequestProto {
    /// Field 1000 `fileId`.
    #[prost(uint64, required, tag = "1000")]
    pub file_id: u64,
    /// Field 1001 `copyId`.
    #[prost(uint64, required, tag = "1001")]
    pub copy_id: u64,
    /// Field 1002 `modificationTime`.
    #[prost(uint64, required, tag = "1002")]
    pub modification_time: u64,
    /// Field 1003 `length`.
    #[prost(uint64, required, tag = "1003")]
    pub length: u64,
}

/// `hadoop.hdfs.SwapBlocksResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SwapBlocksResponseProto {
    /// Field 1000 `outcome`.
    #[prost(uint32, required, tag = "1000")]
    pub outcome: u32,
    /// Field 1001 `refusal`.
    #[prost(string, optional, tag = "1001")]
    pub refusal: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.TriggerBlockReportRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TriggerBlockReportRequestProto {
    /// Field 1 `incremental`.
    #[prost(bool, required, tag = "1")]
    pub incremental: bool,
    /// Field 2 `nnAddress`.
    #[prost(string, optional, tag = "2")]
    pub nn_address: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.TriggerBlockReportResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TriggerBlockReportResponseProto {}

/// `hadoop.hdfs.TruncateEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TruncateEventProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `fileSize`.
    #[prost(int64, required, tag = "2")]
    pub file_size: i64,
    /// Field 3 `timestamp`.
    #[prost(int64, required, tag = "3")]
    pub timestamp: i64,
}

/// `hadoop.hdfs.TruncateRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TruncateRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
    /// Field 2 `newLength`.
    #[prost(uint64, required, tag = "2")]
    pub new_length: u64,
    /// Field 3 `clientName`.
    #[prost(string, required, tag = "3")]
    pub client_name: ::std::string::String,
}

/// `hadoop.hdfs.TruncateResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TruncateResponseProto {
    /// Field 1 `result`.
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}

/// `hadoop.hdfs.UnlinkEventProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnlinkEventProto {
    /// Field 1 `path`.
    #[prost(string, required, tag = "1")]
    pub path: ::std::string::String,
    /// Field 2 `timestamp`.
    #[prost(int64, required, tag = "2")]
    pub timestamp: i64,
}

/// `hadoop.hdfs.UnpackFilesRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnpackFilesRequestProto {
    /// Field 1000 `fileIds`.
    #[prost(uint64, repeated, tag = "1000", packed = "true")]
    pub file_ids: ::std::vec::Vec<u64>,
    /// Field 1001 `dryRun`.
    #[prost(bool, optional, tag = "1001")]
    pub dry_run: ::core::option::Option<bool>,
}

/// `hadoop.hdfs.UnpackFilesResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnpackFilesResponseProto {
    /// Field 1000 `blocks`.
    #[prost(uint64, required, tag = "1000")]
    pub blocks: u64,
    /// Field 1001 `bytes`.
    #[prost(uint64, required, tag = "1001")]
    pub bytes: u64,
}

/// `hadoop.hdfs.UnsetErasureCodingPolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnsetErasureCodingPolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.UnsetErasureCodingPolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnsetErasureCodingPolicyResponseProto {}

/// `hadoop.hdfs.UnsetStoragePolicyRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnsetStoragePolicyRequestProto {
    /// Field 1 `src`.
    #[prost(string, required, tag = "1")]
    pub src: ::std::string::String,
}

/// `hadoop.hdfs.UnsetStoragePolicyResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UnsetStoragePolicyResponseProto {}

/// `hadoop.hdfs.UpdateBlockForPipelineRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateBlockForPipelineRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `clientName`.
    #[prost(string, required, tag = "2")]
    pub client_name: ::std::string::String,
}

/// `hadoop.hdfs.UpdateBlockForPipelineResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateBlockForPipelineResponseProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: LocatedBlockProto,
}

/// `hadoop.hdfs.UpdatePipelineRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdatePipelineRequestProto {
    /// Field 1 `clientName`.
    #[prost(string, required, tag = "1")]
    pub client_name: ::std::string::String,
    /// Field 2 `oldBlock`.
    #[prost(message, required, tag = "2")]
    pub old_block: ExtendedBlockProto,
    /// Field 3 `newBlock`.
    #[prost(message, required, tag = "3")]
    pub new_block: ExtendedBlockProto,
    /// Field 4 `newNodes`.
    #[prost(message, repeated, tag = "4")]
    pub new_nodes: ::std::vec::Vec<DatanodeIDProto>,
    /// Field 5 `storageIDs`.
    #[prost(string, repeated, tag = "5")]
    pub storage_i_ds: ::std::vec::Vec<::std::string::String>,
}

/// `hadoop.hdfs.UpdatePipelineResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdatePipelineResponseProto {}

/// `hadoop.hdfs.UpdateReplicaUnderRecoveryRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateReplicaUnderRecoveryRequestProto {
    /// Field 1 `block`.
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlockProto,
    /// Field 2 `recoveryId`.
    #[prost(uint64, required, tag = "2")]
    pub recovery_id: u64,
    /// Field 3 `newLength`.
    #[prost(uint64, required, tag = "3")]
    pub new_length: u64,
    /// Field 4 `newBlockId`.
    #[prost(uint64, optional, tag = "4", default = "0")]
    pub new_block_id: ::core::option::Option<u64>,
}

/// `hadoop.hdfs.UpdateReplicaUnderRecoveryResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpdateReplicaUnderRecoveryResponseProto {
    /// Field 1 `storageUuid`.
    #[prost(string, optional, tag = "1")]
    pub storage_uuid: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.UpgradeStatusRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpgradeStatusRequestProto {}

/// `hadoop.hdfs.UpgradeStatusResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UpgradeStatusResponseProto {
    /// Field 1 `upgradeFinalized`.
    #[prost(bool, required, tag = "1")]
    pub upgrade_finalized: bool,
}

/// `hadoop.hdfs.VersionRequestProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct VersionRequestProto {}

/// `hadoop.hdfs.VersionResponseProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct VersionResponseProto {
    /// Field 1 `info`.
    #[prost(message, required, tag = "1")]
    pub info: NamespaceInfoProto,
}

/// `hadoop.hdfs.WorkerProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct WorkerProto {
    /// Field 1000 `name`.
    #[prost(string, required, tag = "1000")]
    pub name: ::std::string::String,
    /// Field 1001 `of`.
    #[prost(string, required, tag = "1001")]
    pub of: ::std::string::String,
    /// Field 1002 `does`.
    #[prost(string, required, tag = "1002")]
    pub does: ::std::string::String,
    /// Field 1003 `state`.
    #[prost(string, required, tag = "1003")]
    pub state: ::std::string::String,
    /// Field 1004 `sinceMs`.
    #[prost(uint64, required, tag = "1004")]
    pub since_ms: u64,
    /// Field 1005 `paused`.
    #[prost(bool, required, tag = "1005")]
    pub paused: bool,
    /// Field 1006 `pausable`.
    #[prost(bool, required, tag = "1006")]
    pub pausable: bool,
    /// Field 1007 `rounds`.
    #[prost(uint64, required, tag = "1007")]
    pub rounds: u64,
    /// Field 1008 `busyMs`.
    #[prost(uint64, required, tag = "1008")]
    pub busy_ms: u64,
    /// Field 1009 `done`.
    #[prost(uint64, optional, tag = "1009")]
    pub done: ::core::option::Option<u64>,
    /// Field 1010 `doneOf`.
    #[prost(uint64, optional, tag = "1010")]
    pub done_of: ::core::option::Option<u64>,
    /// Field 1011 `doneWhat`.
    #[prost(string, optional, tag = "1011")]
    pub done_what: ::core::option::Option<::std::string::String>,
    /// Field 1012 `bytesPerSecond`.
    #[prost(uint64, optional, tag = "1012")]
    pub bytes_per_second: ::core::option::Option<u64>,
    /// Field 1013 `failures`.
    #[prost(uint64, required, tag = "1013")]
    pub failures: u64,
    /// Field 1014 `lastFailure`.
    #[prost(string, optional, tag = "1014")]
    pub last_failure: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.XAttrProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct XAttrProto {
    /// Field 1 `namespace`.
    #[prost(enumeration = "XAttrProtoXAttrNamespaceProto", required, tag = "1")]
    pub namespace: i32,
    /// Field 2 `name`.
    #[prost(string, required, tag = "2")]
    pub name: ::std::string::String,
    /// Field 3 `value`.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub value: ::core::option::Option<::std::vec::Vec<u8>>,
}

/// `hadoop.hdfs.ZoneEncryptionInfoProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ZoneEncryptionInfoProto {
    /// Field 1 `suite`.
    #[prost(enumeration = "CipherSuiteProto", required, tag = "1")]
    pub suite: i32,
    /// Field 2 `cryptoProtocolVersion`.
    #[prost(enumeration = "CryptoProtocolVersionProto", required, tag = "2")]
    pub crypto_protocol_version: i32,
    /// Field 3 `keyName`.
    #[prost(string, required, tag = "3")]
    pub key_name: ::std::string::String,
    /// Field 4 `reencryptionProto`.
    #[prost(message, optional, tag = "4")]
    pub reencryption_proto: ::core::option::Option<ReencryptionInfoProto>,
}

/// `hadoop.hdfs.ZoneReencryptionStatusProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ZoneReencryptionStatusProto {
    /// Field 1 `id`.
    #[prost(int64, required, tag = "1")]
    pub id: i64,
    /// Field 2 `path`.
    #[prost(string, required, tag = "2")]
    pub path: ::std::string::String,
    /// Field 3 `state`.
    #[prost(enumeration = "ReencryptionStateProto", required, tag = "3")]
    pub state: i32,
    /// Field 4 `ezKeyVersionName`.
    #[prost(string, required, tag = "4")]
    pub ez_key_version_name: ::std::string::String,
    /// Field 5 `submissionTime`.
    #[prost(int64, required, tag = "5")]
    pub submission_time: i64,
    /// Field 6 `canceled`.
    #[prost(bool, required, tag = "6")]
    pub canceled: bool,
    /// Field 7 `numReencrypted`.
    #[prost(int64, required, tag = "7")]
    pub num_reencrypted: i64,
    /// Field 8 `numFailures`.
    #[prost(int64, required, tag = "8")]
    pub num_failures: i64,
    /// Field 9 `completionTime`.
    #[prost(int64, optional, tag = "9")]
    pub completion_time: ::core::option::Option<i64>,
    /// Field 10 `lastFile`.
    #[prost(string, optional, tag = "10")]
    pub last_file: ::core::option::Option<::std::string::String>,
}

/// `hadoop.hdfs.AccessModeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AccessModeProto {
    /// `READ`.
    Read = 1,
    /// `WRITE`.
    Write = 2,
    /// `COPY`.
    Copy = 3,
    /// `REPLACE`.
    Replace = 4,
}

/// `hadoop.hdfs.AclEntryProto.AclEntryScopeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AclEntryProtoAclEntryScopeProto {
    /// `ACCESS`.
    Access = 0,
    /// `DEFAULT`.
    Default = 1,
}

/// `hadoop.hdfs.AclEntryProto.AclEntryTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AclEntryProtoAclEntryTypeProto {
    /// `USER`.
    User = 0,
    /// `GROUP`.
    Group = 1,
    /// `MASK`.
    Mask = 2,
    /// `OTHER`.
    Other = 3,
}

/// `hadoop.hdfs.AclEntryProto.FsActionProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AclEntryProtoFsActionProto {
    /// `NONE`.
    None = 0,
    /// `EXECUTE`.
    Execute = 1,
    /// `WRITE`.
    Write = 2,
    /// `WRITE_EXECUTE`.
    WriteExecute = 3,
    /// `READ`.
    Read = 4,
    /// `READ_EXECUTE`.
    ReadExecute = 5,
    /// `READ_WRITE`.
    ReadWrite = 6,
    /// `PERM_ALL`.
    PermAll = 7,
}

/// `hadoop.hdfs.AddBlockFlagProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum AddBlockFlagProto {
    /// `NO_LOCAL_WRITE`.
    NoLocalWrite = 1,
    /// `IGNORE_CLIENT_LOCALITY`.
    IgnoreClientLocality = 2,
}

/// `hadoop.hdfs.BlockChecksumTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum BlockChecksumTypeProto {
    /// `MD5CRC`.
    Md5crc = 1,
    /// `COMPOSITE_CRC`.
    CompositeCrc = 2,
}

/// `hadoop.hdfs.BlockTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum BlockTypeProto {
    /// `CONTIGUOUS`.
    Contiguous = 0,
    /// `STRIPED`.
    Striped = 1,
}

/// `hadoop.hdfs.CacheFlagProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CacheFlagProto {
    /// `FORCE`.
    Force = 1,
}

/// `hadoop.hdfs.ChecksumTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ChecksumTypeProto {
    /// `CHECKSUM_NULL`.
    ChecksumNull = 0,
    /// `CHECKSUM_CRC32`.
    ChecksumCrc32 = 1,
    /// `CHECKSUM_CRC32C`.
    ChecksumCrc32c = 2,
}

/// `hadoop.hdfs.CipherSuiteProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CipherSuiteProto {
    /// `UNKNOWN`.
    Unknown = 1,
    /// `AES_CTR_NOPADDING`.
    AesCtrNopadding = 2,
    /// `SM4_CTR_NOPADDING`.
    Sm4CtrNopadding = 3,
}

/// `hadoop.hdfs.CreateFlagProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CreateFlagProto {
    /// `CREATE`.
    Create = 1,
    /// `OVERWRITE`.
    Overwrite = 2,
    /// `APPEND`.
    Append = 4,
    /// `LAZY_PERSIST`.
    LazyPersist = 16,
    /// `NEW_BLOCK`.
    NewBlock = 32,
    /// `SHOULD_REPLICATE`.
    ShouldReplicate = 128,
}

/// `hadoop.hdfs.CryptoProtocolVersionProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CryptoProtocolVersionProto {
    /// `UNKNOWN_PROTOCOL_VERSION`.
    UnknownProtocolVersion = 1,
    /// `ENCRYPTION_ZONES`.
    EncryptionZones = 2,
}

/// `hadoop.hdfs.DataTransferEncryptorMessageProto.DataTransferEncryptorStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DataTransferEncryptorMessageProtoDataTransferEncryptorStatus {
    /// `SUCCESS`.
    Success = 0,
    /// `ERROR_UNKNOWN_KEY`.
    ErrorUnknownKey = 1,
    /// `ERROR`.
    Error = 2,
}

/// `hadoop.hdfs.DatanodeInfoProto.AdminState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DatanodeInfoProtoAdminState {
    /// `NORMAL`.
    Normal = 0,
    /// `DECOMMISSION_INPROGRESS`.
    DecommissionInprogress = 1,
    /// `DECOMMISSIONED`.
    Decommissioned = 2,
    /// `ENTERING_MAINTENANCE`.
    EnteringMaintenance = 3,
    /// `IN_MAINTENANCE`.
    InMaintenance = 4,
}

/// `hadoop.hdfs.DatanodeReportTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DatanodeReportTypeProto {
    /// `ALL`.
    All = 1,
    /// `LIVE`.
    Live = 2,
    /// `DEAD`.
    Dead = 3,
    /// `DECOMMISSIONING`.
    Decommissioning = 4,
    /// `ENTERING_MAINTENANCE`.
    EnteringMaintenance = 5,
    /// `IN_MAINTENANCE`.
    InMaintenance = 6,
}

/// `hadoop.hdfs.DatanodeStorageProto.StorageState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DatanodeStorageProtoStorageState {
    /// `NORMAL`.
    Normal = 0,
    /// `READ_ONLY_SHARED`.
    ReadOnlyShared = 1,
}

/// `hadoop.hdfs.ErasureCodingPolicyState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ErasureCodingPolicyState {
    /// `DISABLED`.
    Disabled = 1,
    /// `ENABLED`.
    Enabled = 2,
    /// `REMOVED`.
    Removed = 3,
}

/// `hadoop.hdfs.EventType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// `EVENT_CREATE`.
    EventCreate = 0,
    /// `EVENT_CLOSE`.
    EventClose = 1,
    /// `EVENT_APPEND`.
    EventAppend = 2,
    /// `EVENT_RENAME`.
    EventRename = 3,
    /// `EVENT_METADATA`.
    EventMetadata = 4,
    /// `EVENT_UNLINK`.
    EventUnlink = 5,
    /// `EVENT_TRUNCATE`.
    EventTruncate = 6,
}

/// `hadoop.hdfs.HdfsFileStatusProto.FileType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HdfsFileStatusProtoFileType {
    /// `IS_DIR`.
    IsDir = 1,
    /// `IS_FILE`.
    IsFile = 2,
    /// `IS_SYMLINK`.
    IsSymlink = 3,
}

/// `hadoop.hdfs.HdfsFileStatusProto.Flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum HdfsFileStatusProtoFlags {
    /// `HAS_ACL`.
    HasAcl = 1,
    /// `HAS_CRYPT`.
    HasCrypt = 2,
    /// `HAS_EC`.
    HasEc = 4,
    /// `SNAPSHOT_ENABLED`.
    SnapshotEnabled = 8,
}

/// `hadoop.hdfs.INodeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum INodeType {
    /// `I_TYPE_FILE`.
    ITypeFile = 0,
    /// `I_TYPE_DIRECTORY`.
    ITypeDirectory = 1,
    /// `I_TYPE_SYMLINK`.
    ITypeSymlink = 2,
}

/// `hadoop.hdfs.MetadataUpdateType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum MetadataUpdateType {
    /// `META_TYPE_TIMES`.
    MetaTypeTimes = 0,
    /// `META_TYPE_REPLICATION`.
    MetaTypeReplication = 1,
    /// `META_TYPE_OWNER`.
    MetaTypeOwner = 2,
    /// `META_TYPE_PERMS`.
    MetaTypePerms = 3,
    /// `META_TYPE_ACLS`.
    MetaTypeAcls = 4,
    /// `META_TYPE_XATTRS`.
    MetaTypeXattrs = 5,
}

/// `hadoop.hdfs.NNHAStatusHeartbeatProto.State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum NNHAStatusHeartbeatProtoState {
    /// `ACTIVE`.
    Active = 0,
    /// `STANDBY`.
    Standby = 1,
    /// `OBSERVER`.
    Observer = 2,
}

/// `hadoop.hdfs.NamenodeCommandProto.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum NamenodeCommandProtoType {
    /// `NamenodeCommand`.
    NamenodeCommand = 0,
    /// `CheckPointCommand`.
    CheckPointCommand = 1,
}

/// `hadoop.hdfs.NamenodeRegistrationProto.NamenodeRoleProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum NamenodeRegistrationProtoNamenodeRoleProto {
    /// `NAMENODE`.
    Namenode = 1,
    /// `BACKUP`.
    Backup = 2,
    /// `CHECKPOINT`.
    Checkpoint = 3,
}

/// `hadoop.hdfs.OpWriteBlockProto.BlockConstructionStage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum OpWriteBlockProtoBlockConstructionStage {
    /// `PIPELINE_SETUP_APPEND`.
    PipelineSetupAppend = 0,
    /// `PIPELINE_SETUP_APPEND_RECOVERY`.
    PipelineSetupAppendRecovery = 1,
    /// `DATA_STREAMING`.
    DataStreaming = 2,
    /// `PIPELINE_SETUP_STREAMING_RECOVERY`.
    PipelineSetupStreamingRecovery = 3,
    /// `PIPELINE_CLOSE`.
    PipelineClose = 4,
    /// `PIPELINE_CLOSE_RECOVERY`.
    PipelineCloseRecovery = 5,
    /// `PIPELINE_SETUP_CREATE`.
    PipelineSetupCreate = 6,
    /// `TRANSFER_RBW`.
    TransferRbw = 7,
    /// `TRANSFER_FINALIZED`.
    TransferFinalized = 8,
}

/// `hadoop.hdfs.OpenFilesTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum OpenFilesTypeProto {
    /// `ALL_OPEN_FILES`.
    AllOpenFiles = 1,
    /// `BLOCKING_DECOMMISSION`.
    BlockingDecommission = 2,
}

/// `hadoop.hdfs.ReencryptActionProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ReencryptActionProto {
    /// `CANCEL_REENCRYPT`.
    CancelReencrypt = 1,
    /// `START_REENCRYPT`.
    StartReencrypt = 2,
}

/// `hadoop.hdfs.ReencryptionStateProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ReencryptionStateProto {
    /// `SUBMITTED`.
    Submitted = 1,
    /// `PROCESSING`.
    Processing = 2,
    /// `COMPLETED`.
    Completed = 3,
}

/// `hadoop.hdfs.ReplicaStateProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ReplicaStateProto {
    /// `FINALIZED`.
    Finalized = 0,
    /// `RBW`.
    Rbw = 1,
    /// `RWR`.
    Rwr = 2,
    /// `RUR`.
    Rur = 3,
    /// `TEMPORARY`.
    Temporary = 4,
}

/// `hadoop.hdfs.RollingUpgradeActionProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum RollingUpgradeActionProto {
    /// `QUERY`.
    Query = 1,
    /// `START`.
    Start = 2,
    /// `FINALIZE`.
    Finalize = 3,
}

/// `hadoop.hdfs.SafeModeActionProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum SafeModeActionProto {
    /// `SAFEMODE_LEAVE`.
    SafemodeLeave = 1,
    /// `SAFEMODE_ENTER`.
    SafemodeEnter = 2,
    /// `SAFEMODE_GET`.
    SafemodeGet = 3,
    /// `SAFEMODE_FORCE_EXIT`.
    SafemodeForceExit = 4,
}

/// `hadoop.hdfs.ShortCircuitFdResponse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ShortCircuitFdResponse {
    /// `DO_NOT_USE_RECEIPT_VERIFICATION`.
    DoNotUseReceiptVerification = 0,
    /// `USE_RECEIPT_VERIFICATION`.
    UseReceiptVerification = 1,
}

/// `hadoop.hdfs.Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Status {
    /// `SUCCESS`.
    Success = 0,
    /// `ERROR`.
    Error = 1,
    /// `ERROR_CHECKSUM`.
    ErrorChecksum = 2,
    /// `ERROR_INVALID`.
    ErrorInvalid = 3,
    /// `ERROR_EXISTS`.
    ErrorExists = 4,
    /// `ERROR_ACCESS_TOKEN`.
    ErrorAccessToken = 5,
    /// `CHECKSUM_OK`.
    ChecksumOk = 6,
    /// `ERROR_UNSUPPORTED`.
    ErrorUnsupported = 7,
    /// `OOB_RESTART`.
    OobRestart = 8,
    /// `OOB_RESERVED1`.
    OobReserved1 = 9,
    /// `OOB_RESERVED2`.
    OobReserved2 = 10,
    /// `OOB_RESERVED3`.
    OobReserved3 = 11,
    /// `IN_PROGRESS`.
    InProgress = 12,
    /// `ERROR_BLOCK_PINNED`.
    ErrorBlockPinned = 13,
}

/// `hadoop.hdfs.StorageTypeProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum StorageTypeProto {
    /// `DISK`.
    Disk = 1,
    /// `SSD`.
    Ssd = 2,
    /// `ARCHIVE`.
    Archive = 3,
    /// `RAM_DISK`.
    RamDisk = 4,
    /// `PROVIDED`.
    Provided = 5,
    /// `NVDIMM`.
    Nvdimm = 6,
}

/// `hadoop.hdfs.XAttrProto.XAttrNamespaceProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum XAttrProtoXAttrNamespaceProto {
    /// `USER`.
    User = 0,
    /// `TRUSTED`.
    Trusted = 1,
    /// `SECURITY`.
    Security = 2,
    /// `SYSTEM`.
    System = 3,
    /// `RAW`.
    Raw = 4,
}

/// `hadoop.hdfs.XAttrSetFlagProto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum XAttrSetFlagProto {
    /// `XATTR_CREATE`.
    XattrCreate = 1,
    /// `XATTR_REPLACE`.
    XattrReplace = 2,
}

/// Methods of `hadoop.hdfs.ClientDatanodeProtocolService`.
pub const CLIENT_DATANODE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "getReplicaVisibleLength",
    "refreshNamenodes",
    "deleteBlockPool",
    "getBlockLocalPathInfo",
    "shutdownDatanode",
    "evictWriters",
    "getDatanodeInfo",
    "getVolumeReport",
    "getReconfigurationStatus",
    "startReconfiguration",
    "listReconfigurableProperties",
    "triggerBlockReport",
    "getBalancerBandwidth",
    "submitDiskBalancerPlan",
    "cancelDiskBalancerPlan",
    "queryDiskBalancerPlan",
    "getDiskBalancerSetting",
];

/// Methods of `hadoop.hdfs.ClientNamenodeProtocol`.
pub const CLIENT_NAMENODE_PROTOCOL_METHODS: &[&str] = &[
    "getBlockLocations",
    "getServerDefaults",
    "create",
    "append",
    "setReplication",
    "setStoragePolicy",
    "unsetStoragePolicy",
    "getStoragePolicy",
    "getStoragePolicies",
    "setPermission",
    "setOwner",
    "abandonBlock",
    "addBlock",
    "getAdditionalDatanode",
    "complete",
    "reportBadBlocks",
    "concat",
    "truncate",
    "rename",
    "rename2",
    "delete",
    "mkdirs",
    "getListing",
    "getBatchedListing",
    "renewLease",
    "recoverLease",
    "getFsStats",
    "getFsReplicatedBlockStats",
    "getFsECBlockGroupStats",
    "getDatanodeReport",
    "getDatanodeStorageReport",
    "getPreferredBlockSize",
    "setSafeMode",
    "saveNamespace",
    "rollEdits",
    "restoreFailedStorage",
    "refreshNodes",
    "finalizeUpgrade",
    "upgradeStatus",
    "rollingUpgrade",
    "listCorruptFileBlocks",
    "metaSave",
    "getFileInfo",
    "getLocatedFileInfo",
    "addCacheDirective",
    "modifyCacheDirective",
    "removeCacheDirective",
    "listCacheDirectives",
    "addCachePool",
    "modifyCachePool",
    "removeCachePool",
    "listCachePools",
    "getFileLinkInfo",
    "getContentSummary",
    "setQuota",
    "fsync",
    "setTimes",
    "createSymlink",
    "getLinkTarget",
    "updateBlockForPipeline",
    "updatePipeline",
    "getDelegationToken",
    "renewDelegationToken",
    "cancelDelegationToken",
    "setBalancerBandwidth",
    "getDataEncryptionKey",
    "createSnapshot",
    "renameSnapshot",
    "allowSnapshot",
    "disallowSnapshot",
    "getSnapshottableDirListing",
    "getSnapshotListing",
    "deleteSnapshot",
    "getSnapshotDiffReport",
    "getSnapshotDiffReportListing",
    "isFileClosed",
    "modifyAclEntries",
    "removeAclEntries",
    "removeDefaultAcl",
    "removeAcl",
    "setAcl",
    "getAclStatus",
    "setXAttr",
    "getXAttrs",
    "listXAttrs",
    "removeXAttr",
    "checkAccess",
    "createEncryptionZone",
    "listEncryptionZones",
    "reencryptEncryptionZone",
    "listReencryptionStatus",
    "getEZForPath",
    "setErasureCodingPolicy",
    "unsetErasureCodingPolicy",
    "getECTopologyResultForPolicies",
    "getCurrentEditLogTxid",
    "getEditsFromTxid",
    "getErasureCodingPolicies",
    "addErasureCodingPolicies",
    "removeErasureCodingPolicy",
    "enableErasureCodingPolicy",
    "disableErasureCodingPolicy",
    "getErasureCodingPolicy",
    "getErasureCodingCodecs",
    "getQuotaUsage",
    "listOpenFiles",
    "msync",
    "satisfyStoragePolicy",
    "getHAServiceState",
    "getSlowDatanodeReport",
    "getEnclosingRoot",
];

/// Methods of `hadoop.hdfs.InterDatanodeProtocolService`.
pub const INTER_DATANODE_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "initReplicaRecovery",
    "updateReplicaUnderRecovery",
];

/// Methods of `hadoop.hdfs.ReconfigurationProtocolService`.
pub const RECONFIGURATION_PROTOCOL_SERVICE_METHODS: &[&str] = &[
    "getReconfigurationStatus",
    "startReconfiguration",
    "listReconfigurableProperties",
];
