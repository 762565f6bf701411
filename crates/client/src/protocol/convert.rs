//! Wire messages to the client's own types and back. Everything from outside is checked here.

use super::encryption;
use crate::error::{ClientError, Result};
use crate::types::*;
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::{
    BlockId, CodecName, GenerationStamp, Policy, PolicyId, PolicyLayout, PolicyState, Schema,
    UnitIndex,
};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::*;

/// A block access token, as opaque as it came.
pub(crate) type Token = TokenProto;

/// A located block with what only the data path needs.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub block: FileBlock,
    /// The token of the block or of the whole group.
    pub whole: Box<Token>,
    /// The token of the block, or of each location of a group.
    pub tokens: Vec<Token>,
    /// `StorageTypeProto` of each location.
    pub storage_types: Vec<i32>,
    /// The locations as they came, to be sent back.
    pub infos: Vec<DatanodeInfoProto>,
}

impl Located {
    /// The token for location `index`; the block's own where there is only that.
    pub(crate) fn token(&self, index: usize) -> Token {
        self.tokens.get(index).or(self.tokens.first()).cloned().unwrap_or_else(no_token)
    }
}

/// The token of a cluster without block tokens.
pub(crate) fn no_token() -> Token {
    Token { identifier: vec![], password: vec![], kind: String::new(), service: String::new() }
}

pub(crate) fn block(proto: ExtendedBlockProto) -> Block {
    Block {
        pool: proto.pool_id,
        id: BlockId(proto.block_id as i64),
        stamp: GenerationStamp(proto.generation_stamp),
        len: proto.num_bytes.unwrap_or(0),
    }
}

pub(crate) fn block_proto(block: &Block) -> ExtendedBlockProto {
    ExtendedBlockProto {
        pool_id: block.pool.clone(),
        block_id: block.id.0 as u64,
        generation_stamp: block.stamp.0,
        num_bytes: Some(block.len),
    }
}

pub(crate) fn permission_proto(permission: u16) -> FsPermissionProto {
    FsPermissionProto { perm: u32::from(permission) }
}

fn port(value: u32) -> u16 {
    u16::try_from(value).unwrap_or(0)
}

pub(crate) fn addr(proto: &DatanodeIDProto) -> DataNodeAddr {
    DataNodeAddr {
        ip: proto.ip_addr.clone(),
        host: proto.host_name.clone(),
        uuid: proto.datanode_uuid.clone(),
        xfer_port: port(proto.xfer_port),
        info_port: port(proto.info_port),
        info_secure_port: port(proto.info_secure_port.unwrap_or_default()),
        ipc_port: port(proto.ipc_port),
    }
}

pub(crate) fn datanode_info(proto: DatanodeInfoProto) -> DataNodeInfo {
    use DatanodeInfoProtoAdminState as State;
    let admin_state = match State::try_from(proto.admin_state.unwrap_or(0)) {
        Ok(State::DecommissionInprogress) => AdminState::Decommissioning,
        Ok(State::Decommissioned) => AdminState::Decommissioned,
        Ok(State::EnteringMaintenance) => AdminState::EnteringMaintenance,
        Ok(State::InMaintenance) => AdminState::InMaintenance,
        Ok(State::Normal) | Err(_) => AdminState::Normal,
    };
    DataNodeInfo {
        addr: addr(&proto.id),
        rack: proto.location.unwrap_or_default(),
        admin_state,
        capacity: proto.capacity.unwrap_or(0),
        used: proto.dfs_used.unwrap_or(0),
        non_dfs_used: proto.non_dfs_used.unwrap_or(0),
        remaining: proto.remaining.unwrap_or(0),
        block_pool_used: proto.block_pool_used.unwrap_or(0),
        xceiver_count: proto.xceiver_count.unwrap_or(0),
        last_heartbeat_ms: proto.last_update.unwrap_or(0),
        last_block_report_ms: proto.last_block_report_time.unwrap_or(0),
        block_count: proto.num_blocks.unwrap_or(0),
        upgrade_domain: proto.upgrade_domain,
        failed_volumes: None,
        leaving: None,
    }
}

/// DataNodes with the volumes that each has lost, and how far each is that leaves.
pub(crate) fn datanode_report(report: GetDatanodeReportResponseProto) -> Vec<DataNodeInfo> {
    let mut nodes: Vec<DataNodeInfo> = report.di.into_iter().map(datanode_info).collect();
    if report.failed_volumes.len() == nodes.len() {
        let told = nodes.iter_mut().zip(report.failed_volumes);
        told.for_each(|(node, failed)| node.failed_volumes = Some(failed));
    }
    for told in report.leaving {
        let Some(node) = nodes.iter_mut().find(|n| n.addr.uuid == told.datanode_uuid) else {
            continue;
        };
        let blocks = told.blocks.into_iter().map(|b| (BlockId(b.block_id), b.held_back));
        node.leaving = Some(LeavingStatus {
            counted: told.counted,
            blocks_left: told.blocks_left,
            bytes_left: told.bytes_left,
            blocks_done: told.blocks_done,
            bytes_done: told.bytes_done,
            bytes_per_second: told.bytes_per_second,
            seconds_left: told.seconds_left,
            age_ms: told.age_ms,
            held_back: told.held_back,
            blocks: blocks.collect(),
        });
    }
    nodes
}

/// A located block. Fails when its unit indices do not match its locations.
pub(crate) fn located(proto: LocatedBlockProto) -> Result<Located> {
    let block = block(proto.b);
    let indices = proto.block_indices;
    if let Some(indices) = &indices
        && indices.len() < proto.locs.len()
    {
        return Err(ClientError::Protocol(format!("{block}: fewer unit indices than locations")));
    }
    let locations = proto
        .locs
        .iter()
        .enumerate()
        .map(|(i, info)| BlockLocation {
            addr: addr(&info.id),
            rack: info.location.clone().unwrap_or_default(),
            storage_id: proto.storage_i_ds.get(i).cloned().unwrap_or_default(),
            unit: UnitIndex(indices.as_ref().map_or(0, |indices| indices[i])),
        })
        .collect();
    let whole = Box::new(proto.block_token.clone());
    let tokens =
        if proto.block_tokens.is_empty() { vec![proto.block_token] } else { proto.block_tokens };
    Ok(Located {
        block: FileBlock { block, offset_in_file: proto.offset, corrupt: proto.corrupt, locations },
        whole,
        tokens,
        storage_types: proto.storage_types,
        infos: proto.locs,
    })
}

/// A file's blocks, and of each the CRC32C recorded of its units, by unit (of a replicated block: the first).
#[derive(Clone, Debug)]
pub(crate) struct LocatedWithCrcs {
    pub file: LocatedFile,
    pub unit_crcs: Vec<Vec<Option<u32>>>,
}

/// What a located block says of its units' CRCs.
pub(crate) fn unit_crcs(proto: &LocatedBlockProto) -> Result<Vec<Option<u32>>> {
    let units = proto.unit_crc_indices.as_deref().unwrap_or_default();
    if units.len() != proto.unit_crc32cs.len() {
        return Err(ClientError::Protocol("CRCs that do not fit their units".to_string()));
    }
    let count = units.iter().max().map_or(0, |unit| usize::from(*unit) + 1);
    let mut crcs = vec![None; count];
    for (unit, crc) in units.iter().zip(&proto.unit_crc32cs) {
        crcs[usize::from(*unit)] = Some(*crc);
    }
    Ok(crcs)
}

/// A file's blocks with what the data path needs.
#[derive(Clone, Debug)]
pub(crate) struct LocatedFile {
    pub len: u64,
    pub blocks: Vec<Located>,
    pub under_construction: bool,
    pub last_block: Option<Located>,
    pub last_block_complete: bool,
    pub policy: Option<Policy>,
    pub encryption: Option<FileEncryption>,
}

pub(crate) fn located_file(proto: LocatedBlocksProto) -> Result<LocatedFile> {
    Ok(LocatedFile {
        len: proto.file_length,
        blocks: proto.blocks.into_iter().map(located).collect::<Result<_>>()?,
        under_construction: proto.under_construction,
        last_block: proto.last_block.map(located).transpose()?,
        last_block_complete: proto.is_last_block_complete,
        policy: policy_of_file(proto.ec_policy)?,
        encryption: proto.file_encryption_info.map(encryption::file),
    })
}

pub(crate) fn file_blocks(file: LocatedFile) -> FileBlocks {
    FileBlocks {
        len: file.len,
        blocks: file.blocks.into_iter().map(|located| located.block).collect(),
        under_construction: file.under_construction,
        last_block: file.last_block.map(|located| located.block),
        last_block_complete: file.last_block_complete,
        policy: file.policy,
    }
}

/// A policy. One with a known number may come without the rest, as Hadoop sends its built-in ones.
///
/// Source: Hadoop 3.5.0 `PBHelperClient#convertErasureCodingPolicy`.
pub(crate) fn policy(proto: ErasureCodingPolicyProto) -> Result<PolicyInfo> {
    use ErasureCodingPolicyState as State;
    let state = match State::try_from(proto.state.unwrap_or(State::Enabled as i32)) {
        Ok(State::Disabled) => PolicyState::Disabled,
        Ok(State::Removed) => PolicyState::Removed,
        Ok(State::Enabled) | Err(_) => PolicyState::Enabled,
    };
    let bad = |what: &str| ClientError::Protocol(format!("erasure coding policy: bad {what}"));
    let id = PolicyId(u8::try_from(proto.id).map_err(|_| bad("id"))?);
    let Some(schema) = proto.schema else {
        let known = Policy::built_in().into_iter().find(|known| known.id == id);
        return Ok(PolicyInfo { policy: known.ok_or_else(|| bad("id"))?, state });
    };
    let codec = CodecName::parse(&schema.codec_name).ok_or_else(|| bad("codec"))?;
    let k = u8::try_from(schema.data_units).map_err(|_| bad("data units"))?;
    let m = u8::try_from(schema.parity_units).map_err(|_| bad("parity units"))?;
    let cell_len = proto.cell_size.ok_or_else(|| bad("cell size"))?;
    let mut policy = Policy::new(id, Schema { codec, k, m }, cell_len)?;
    if let Some(name) = proto.name {
        policy.name = name;
    }
    // The wire does not say it.
    let contiguous = Policy::built_in().into_iter().find(|known| {
        known.layout == PolicyLayout::Contiguous && known.id == id && known.name == policy.name
    });
    policy.layout = contiguous.map_or(PolicyLayout::Striped, |known| known.layout);
    Ok(PolicyInfo { policy, state })
}

/// The policy of a file or directory; the one that stands for replication is none.
fn policy_of_file(proto: Option<ErasureCodingPolicyProto>) -> Result<Option<Policy>> {
    match proto {
        Some(proto) if proto.id != u32::from(PolicyId::REPLICATION.0) => {
            Ok(Some(policy(proto)?.policy))
        }
        _ => Ok(None),
    }
}

pub(crate) fn policy_proto(policy: &Policy) -> ErasureCodingPolicyProto {
    ErasureCodingPolicyProto {
        name: Some(policy.name.clone()),
        schema: Some(ECSchemaProto {
            codec_name: policy.schema.codec.as_str().to_string(),
            data_units: u32::from(policy.schema.k),
            parity_units: u32::from(policy.schema.m),
            options: Vec::new(),
        }),
        cell_size: Some(policy.cell_len),
        id: u32::from(policy.id.0),
        state: None,
    }
}

/// What `getErasureCodingPolicy` says of a path.
pub(crate) fn path_policy(proto: Option<ErasureCodingPolicyProto>) -> Result<Option<Policy>> {
    policy_of_file(proto)
}

/// A file's description; `parent` is put before the name that came.
pub(crate) fn status(proto: HdfsFileStatusProto, parent: &str) -> Result<FileStatus> {
    use HdfsFileStatusProtoFileType as Type;
    let file_type = match Type::try_from(proto.file_type) {
        Ok(Type::IsDir) => FileType::Directory,
        Ok(Type::IsFile) => FileType::File,
        Ok(Type::IsSymlink) => FileType::Symlink,
        Err(_) => return Err(ClientError::Protocol(format!("file type {}", proto.file_type))),
    };
    let flags = proto.flags.unwrap_or(0);
    let name = String::from_utf8_lossy(&proto.path);
    let path = match (name.is_empty(), parent) {
        (true, _) => parent.to_string(),
        (false, "/") => format!("/{name}"),
        (false, _) => format!("{parent}/{name}"),
    };
    Ok(FileStatus {
        path,
        file_type,
        len: proto.length,
        permission: (proto.permission.perm & 0o7777) as u16,
        owner: proto.owner,
        group: proto.group,
        modification_time_ms: proto.modification_time,
        access_time_ms: proto.access_time,
        replication: u16::try_from(proto.block_replication.unwrap_or(0)).unwrap_or(u16::MAX),
        block_size: proto.blocksize.unwrap_or(0),
        file_id: proto.file_id.unwrap_or(0),
        children_count: proto.children_num.and_then(|count| u32::try_from(count).ok()),
        policy: policy_of_file(proto.ec_policy)?,
        storage_policy: proto.storage_policy.unwrap_or(0),
        has_acl: flags & HdfsFileStatusProtoFlags::HasAcl as u32 != 0,
        is_encrypted: flags & HdfsFileStatusProtoFlags::HasCrypt as u32 != 0
            || proto.file_encryption_info.is_some(),
        encryption: proto.file_encryption_info.map(|proto| Box::new(encryption::file(proto))),
    })
}

/// Hadoop sends "no quota" as -1.
fn quota(value: u64) -> Option<u64> {
    (value as i64 >= 0).then_some(value)
}

pub(crate) fn summary(proto: ContentSummaryProto) -> ContentSummary {
    ContentSummary {
        len: proto.length,
        file_count: proto.file_count,
        directory_count: proto.directory_count,
        quota: quota(proto.quota),
        space_consumed: proto.space_consumed,
        space_quota: quota(proto.space_quota),
        type_quotas: type_quotas(proto.type_quota_infos),
        snapshot: SnapshotSummary {
            len: proto.snapshot_length.unwrap_or(0),
            file_count: proto.snapshot_file_count.unwrap_or(0),
            directory_count: proto.snapshot_directory_count.unwrap_or(0),
            space_consumed: proto.snapshot_space_consumed.unwrap_or(0),
        },
        policy_name: proto.erasure_coding_policy,
    }
}

pub(crate) fn quota_usage(proto: QuotaUsageProto) -> QuotaUsage {
    QuotaUsage {
        name_count: proto.file_and_directory_count,
        quota: quota(proto.quota),
        space_consumed: proto.space_consumed,
        space_quota: quota(proto.space_quota),
        type_quotas: type_quotas(proto.type_quota_infos),
    }
}

fn type_quotas(proto: Option<StorageTypeQuotaInfosProto>) -> Vec<TypeQuota> {
    let told = |info: StorageTypeQuotaInfoProto| {
        let quota = quota(info.quota);
        Some(TypeQuota {
            storage_type: storage_type(info.r#type?)?,
            quota,
            consumed: info.consumed,
        })
    };
    proto
        .map(|infos| infos.type_quota_info)
        .unwrap_or_default()
        .into_iter()
        .filter_map(told)
        .collect()
}

/// `StorageTypeProto` of a type.
pub(crate) fn storage_type_number(kind: StorageType) -> i32 {
    use StorageTypeProto as Type;
    (match kind {
        StorageType::Disk => Type::Disk,
        StorageType::Ssd => Type::Ssd,
        StorageType::Archive => Type::Archive,
        StorageType::RamDisk => Type::RamDisk,
        StorageType::Provided => Type::Provided,
        StorageType::Nvdimm => Type::Nvdimm,
    }) as i32
}

/// The type of a `StorageTypeProto`, if it is known.
pub(crate) fn storage_type(number: i32) -> Option<StorageType> {
    StorageType::ALL.into_iter().find(|kind| storage_type_number(*kind) == number)
}

pub(crate) fn storage_policy(proto: BlockStoragePolicyProto) -> StoragePolicyInfo {
    let types = |types: StorageTypesProto| -> Vec<StorageType> {
        types.storage_types.into_iter().filter_map(storage_type).collect()
    };
    StoragePolicyInfo {
        id: proto.policy_id,
        name: proto.name,
        storage_types: types(proto.creation_policy),
        creation_fallbacks: proto.creation_fallback_policy.map(types).unwrap_or_default(),
        replication_fallbacks: proto.replication_fallback_policy.map(types).unwrap_or_default(),
    }
}

pub(crate) fn stats(proto: GetFsStatsResponseProto) -> FsStats {
    FsStats {
        capacity: proto.capacity,
        used: proto.used,
        remaining: proto.remaining,
        under_replicated: proto.under_replicated,
        corrupt_blocks: proto.corrupt_blocks,
        missing_blocks: proto.missing_blocks,
        missing_replication_one_blocks: proto.missing_repl_one_blocks.unwrap_or(0),
        pending_deletion_blocks: proto.pending_deletion_blocks.unwrap_or(0),
    }
}

pub(crate) fn checksum_type(kind: ChecksumKind) -> i32 {
    i32::from(kind.id())
}
