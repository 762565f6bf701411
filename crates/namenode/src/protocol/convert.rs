//! Values of the cores as Hadoop's messages, and back: DataNodes, storages, policies, blocks.
//!
//! Source: Hadoop 3.5.0 `PBHelperClient`.

use cairn_namespace::encryption::FileEncryption;
use cairn_redundancy::{
    AdminState, DataNode, LeavingNode, NodeAddress, Storage, StorageState, StorageUsage,
};
use cairn_stripe::{Policy, PolicyId, PolicyState, Schema};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs as pb;

use crate::topology::DEFAULT_RACK;

/// The name that Hadoop has for the schema and policy of whole replicas.
pub const REPLICATION_NAME: &str = "replication";
/// Replication's cell length, which means nothing but is sent (`SystemErasureCodingPolicies`).
const REPLICATION_CELL_LEN: u32 = 1024 * 1024;

/// The token of a cluster without block tokens.
pub fn no_token() -> TokenProto {
    TokenProto::default()
}

/// How to reach a DataNode.
pub fn datanode_id(node: &DataNode) -> pb::DatanodeIDProto {
    let address = &node.address;
    pb::DatanodeIDProto {
        ip_addr: address.ip.clone(),
        host_name: address.host.clone(),
        datanode_uuid: node.uuid.clone(),
        xfer_port: address.xfer_port.into(),
        info_port: address.info_port.into(),
        ipc_port: address.ipc_port.into(),
        info_secure_port: Some(address.info_secure_port.into()),
    }
}

/// A DataNode with its figures. `num_blocks` counts what its storages hold.
///
/// Source: Hadoop 3.5.0 `PBHelperClient#convert(DatanodeInfo)`.
pub fn datanode_info(node: &DataNode, num_blocks: usize) -> pb::DatanodeInfoProto {
    let StorageUsage { capacity, dfs_used, non_dfs_used, remaining, block_pool_used } = node.usage;
    pb::DatanodeInfoProto {
        id: datanode_id(node),
        capacity: Some(capacity),
        dfs_used: Some(dfs_used),
        remaining: Some(remaining),
        block_pool_used: Some(block_pool_used),
        last_update: Some(node.last_update_wall_ms),
        xceiver_count: Some(node.xceivers),
        location: Some(node.rack.clone()),
        non_dfs_used: Some(non_dfs_used),
        admin_state: Some(admin_state(node.admin)),
        cache_capacity: Some(node.cache_capacity),
        cache_used: Some(node.cache_used),
        last_update_monotonic: Some(node.last_update_mono_ms),
        upgrade_domain: node.upgrade_domain.clone(),
        last_block_report_time: Some(node.last_report_wall_ms),
        last_block_report_monotonic: Some(node.last_report_mono_ms),
        num_blocks: Some(u32::try_from(num_blocks).unwrap_or(u32::MAX)),
        software_version: Some(node.software_version.clone()),
    }
}

/// A DataNode that a list of hosts names and that never came: dead, with nothing to tell.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#getDatanodeListForReport`.
pub fn unseen_datanode(address: &NodeAddress, decommissioned: bool) -> pb::DatanodeInfoProto {
    let state = if decommissioned { AdminState::Decommissioned } else { AdminState::InService };
    pb::DatanodeInfoProto {
        id: pb::DatanodeIDProto {
            ip_addr: address.ip.clone(),
            host_name: address.host.clone(),
            datanode_uuid: String::new(),
            xfer_port: address.xfer_port.into(),
            info_port: address.info_port.into(),
            ipc_port: address.ipc_port.into(),
            info_secure_port: Some(address.info_secure_port.into()),
        },
        location: Some(DEFAULT_RACK.to_string()),
        last_update: Some(0),
        admin_state: Some(admin_state(state)),
        ..pb::DatanodeInfoProto::default()
    }
}

/// How far a leaving DataNode has got.
pub fn leaving(uuid: &str, told: &LeavingNode) -> pb::LeavingDatanodeProto {
    let blocks = told
        .blocks
        .iter()
        .map(|(id, why)| pb::HeldBackBlockProto { block_id: id.0, held_back: why.to_string() });
    pb::LeavingDatanodeProto {
        datanode_uuid: uuid.to_string(),
        counted: told.counted,
        blocks_left: told.blocks_left,
        bytes_left: told.bytes_left,
        blocks_done: told.blocks_done,
        bytes_done: told.bytes_done,
        bytes_per_second: told.bytes_per_second,
        seconds_left: told.seconds_left,
        age_ms: told.age_ms,
        held_back: told.held_back.map(|why| why.to_string()),
        blocks: blocks.collect(),
    }
}

/// What an administrator has done with a DataNode, as its number.
pub fn admin_state(state: AdminState) -> i32 {
    let state = match state {
        AdminState::InService => pb::DatanodeInfoProtoAdminState::Normal,
        AdminState::DecommissionInProgress => {
            pb::DatanodeInfoProtoAdminState::DecommissionInprogress
        }
        AdminState::Decommissioned => pb::DatanodeInfoProtoAdminState::Decommissioned,
        AdminState::EnteringMaintenance => pb::DatanodeInfoProtoAdminState::EnteringMaintenance,
        AdminState::InMaintenance => pb::DatanodeInfoProtoAdminState::InMaintenance,
    };
    state as i32
}

/// A storage with its figures. Source: Hadoop 3.5.0 `PBHelperClient#convert(StorageReport)`.
pub fn storage_report(storage: &Storage) -> pb::StorageReportProto {
    let StorageUsage { capacity, dfs_used, non_dfs_used, remaining, block_pool_used } =
        storage.usage;
    let state = match storage.state {
        StorageState::ReadOnlyShared => pb::DatanodeStorageProtoStorageState::ReadOnlyShared,
        StorageState::Normal | StorageState::Failed => pb::DatanodeStorageProtoStorageState::Normal,
    };
    pb::StorageReportProto {
        storage_uuid: storage.uuid.clone(),
        failed: Some(storage.state == StorageState::Failed),
        capacity: Some(capacity),
        dfs_used: Some(dfs_used),
        remaining: Some(remaining),
        block_pool_used: Some(block_pool_used),
        storage: Some(pb::DatanodeStorageProto {
            storage_uuid: storage.uuid.clone(),
            state: Some(state as i32),
            storage_type: Some(storage.storage_type.number()),
        }),
        non_dfs_used: Some(non_dfs_used),
        mount: None,
    }
}

/// A schema as Hadoop sends it: codec in lower case, counts, no options.
pub fn schema(schema: &Schema) -> pb::ECSchemaProto {
    pb::ECSchemaProto {
        codec_name: schema.codec.as_str().to_string(),
        data_units: schema.k.into(),
        parity_units: schema.m.into(),
        options: Vec::new(),
    }
}

/// A policy with all its fields, as clients need it that do not know our policies.
///
/// Source: Hadoop 3.5.0 `PBHelperClient#convertErasureCodingPolicy`, which leaves name, schema and
/// cell size out for built-in policies except where a client asks for policies; Cairn always sends
/// them, since clients take them as they are.
pub fn policy(policy: &Policy, state: Option<PolicyState>) -> pb::ErasureCodingPolicyProto {
    pb::ErasureCodingPolicyProto {
        name: Some(policy.name.clone()),
        schema: Some(schema(&policy.schema)),
        cell_size: Some(policy.cell_len),
        id: policy.id.0.into(),
        state: state.map(policy_state),
    }
}

/// The policy that marks a directory of whole replicas.
///
/// Source: Hadoop 3.5.0 `SystemErasureCodingPolicies#getReplicationPolicy`.
pub fn replication_policy() -> pb::ErasureCodingPolicyProto {
    pb::ErasureCodingPolicyProto {
        name: Some(REPLICATION_NAME.to_string()),
        schema: Some(pb::ECSchemaProto {
            codec_name: REPLICATION_NAME.to_string(),
            data_units: 1,
            parity_units: 2,
            options: Vec::new(),
        }),
        cell_size: Some(REPLICATION_CELL_LEN),
        id: PolicyId::REPLICATION.0.into(),
        state: None,
    }
}

fn policy_state(state: PolicyState) -> i32 {
    let state = match state {
        PolicyState::Disabled => pb::ErasureCodingPolicyState::Disabled,
        PolicyState::Enabled => pb::ErasureCodingPolicyState::Enabled,
        PolicyState::Removed => pb::ErasureCodingPolicyState::Removed,
    };
    state as i32
}

/// What a client needs to read or write an encrypted file.
pub fn file_encryption(encryption: &FileEncryption) -> pb::FileEncryptionInfoProto {
    pb::FileEncryptionInfoProto {
        suite: encryption.suite,
        crypto_protocol_version: encryption.protocol_version,
        key: encryption.key.key.clone(),
        iv: encryption.key.iv.clone(),
        key_name: encryption.key_name.clone(),
        ez_key_version_name: encryption.key.key_version.clone(),
    }
}
