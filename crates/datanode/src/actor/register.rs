//! The handshake: which namespace is it, and who are we.
//!
//! Source: Hadoop 3.5.0 `BPServiceActor#connectToNNAndHandshake`.

use super::call::call;
use crate::dataset::blocking;
use crate::error::{DataNodeError, Result};
use crate::members::Member;
use crate::messages::SOFTWARE_VERSION;
use crate::node::Node;
use crate::volume::layout::{LAYOUT_VERSION, PoolVersion};
use cairn_wire::proto::datanode::{
    DatanodeRegistrationProto, RegisterDatanodeRequestProto, RegisterDatanodeResponseProto,
};
use cairn_wire::proto::hdfs::{
    BlockKeyProto, DatanodeIDProto, ExportedBlockKeysProto, NamespaceInfoProto, StorageInfoProto,
    VersionRequestProto, VersionResponseProto,
};
use std::sync::Arc;

/// Oldest NameNode that is served: `dfs.datanode.min.supported.namenode.version`.
const MIN_NAMENODE_MAJOR: u32 = 3;

/// Opens the block pool of the NameNode `member` and registers.
pub(super) async fn register(node: &Arc<Node>, member: Member) -> Result<()> {
    let version: VersionResponseProto =
        call(node, member, "versionRequest", &VersionRequestProto {}).await?;
    let info = version.info;
    check_version(&info)?;
    let pool = PoolVersion {
        namespace_id: info.storage_info.namespce_id,
        block_pool_id: info.block_pool_id.clone(),
        c_time: info.storage_info.c_time,
    };
    let (dataset, cluster_id) = (node.dataset.clone(), info.storage_info.cluster_id.clone());
    {
        let _turn = node.name_nodes.opening.lock().await;
        blocking(move || dataset.open_pool(&cluster_id, &pool)).await?;
    }
    node.name_nodes.begin_registration(member, &node.dataset);
    let request = RegisterDatanodeRequestProto { registration: registration(node, &info) };
    let answer: RegisterDatanodeResponseProto =
        call(node, member, "registerDatanode", &request).await?;
    let keys = &answer.registration.keys;
    let needs_tokens = node.config.security.as_ref().is_some_and(|security| !security.may_be_open);
    if needs_tokens && !keys.is_block_token_enabled {
        let what = "the NameNode issues no block tokens (dfs.block.access.token.enable)";
        return Err(DataNodeError::peer(what));
    }
    node.block_tokens.take(keys)?;
    // A NameNode that does not know the number does not return it.
    let process_number = node.process_number;
    // What goes with each call needs no keys.
    let keys = ExportedBlockKeysProto::default();
    let registration = DatanodeRegistrationProto { process_number, keys, ..answer.registration };
    node.name_nodes.get(member).set_registration(registration);
    Ok(())
}

fn check_version(info: &NamespaceInfoProto) -> Result<()> {
    let major = info.software_version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= MIN_NAMENODE_MAJOR => Ok(()),
        _ => Err(DataNodeError::peer(format!(
            "The reported NameNode version is too low: {} (minimum {MIN_NAMENODE_MAJOR})",
            info.software_version
        ))),
    }
}

fn registration(node: &Node, info: &NamespaceInfoProto) -> DatanodeRegistrationProto {
    let ip = node.xfer_addr.ip();
    // The NameNode replaces an address that means nothing to others by the one it sees.
    let ip_addr = if ip.is_unspecified() { "127.0.0.1".to_string() } else { ip.to_string() };
    DatanodeRegistrationProto {
        datanode_id: DatanodeIDProto {
            host_name: node.config.hostname.clone().unwrap_or_else(|| ip_addr.clone()),
            ip_addr,
            datanode_uuid: node.dataset.uuid().into(),
            xfer_port: node.xfer_addr.port().into(),
            info_port: node.http_addr.map_or(0, |addr| addr.port()).into(),
            ipc_port: node.ipc_addr.port().into(),
            info_secure_port: Some(node.https_addr.map_or(0, |addr| addr.port()).into()),
        },
        storage_info: StorageInfoProto {
            layout_version: LAYOUT_VERSION as u32,
            ..info.storage_info.clone()
        },
        keys: ExportedBlockKeysProto {
            current_key: BlockKeyProto::default(),
            ..Default::default()
        },
        software_version: SOFTWARE_VERSION.into(),
        process_number: node.process_number,
    }
}
