//! How a DataNode comes in: `versionRequest`, `registerDatanode`, and the check that every later call
//! is of a DataNode of this file system.

use cairn_net::rpc_server::Call;
use cairn_redundancy::{NodeAddress, NodeClaim, RedundancyError, Registration};
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tracing::{info, warn};

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};
use crate::reports::{NotRegistered, check_listed};
use crate::store::Identity;
use crate::topology::DEFAULT_RACK;

/// The version of Hadoop whose NameNode this one stands in for, as DataNodes and `dfsadmin` see it.
pub const SOFTWARE_VERSION: &str = "3.5.0";
/// `NameNodeLayoutVersion.CURRENT_LAYOUT_VERSION` of Hadoop 3.5.0.
const LAYOUT_VERSION: i32 = -67;
/// `NamespaceInfo.Capability.STORAGE_BLOCK_REPORT_BUFFERS`.
const BLOCK_REPORT_BUFFERS: u64 = 1;
/// `dfs.namenode.min.supported.datanode.version`.
const MIN_DATANODE_VERSION: (u32, u32) = (2, 1);
/// Longest names that a DataNode may have.
const MAX_NAME_LEN: usize = 1024;

pub(super) use pb::NNHAStatusHeartbeatProtoState as ServiceState;

fn storage_info(identity: &Identity) -> pb::StorageInfoProto {
    pb::StorageInfoProto {
        layout_version: LAYOUT_VERSION as u32,
        namespce_id: identity.namespace_id,
        cluster_id: identity.cluster_id.clone(),
        c_time: identity.created_ms,
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getNamespaceInfo`.
pub(crate) fn version_request(node: &NameNode, call: &Call) -> Answer {
    namespace_info(node.ns.identity(), ServiceState::Active, call)
}

/// The same of a NameNode in that state.
pub(super) fn namespace_info(identity: &Identity, state: ServiceState, call: &Call) -> Answer {
    call.decode::<pb::VersionRequestProto>()?;
    answer(&pb::VersionResponseProto {
        info: pb::NamespaceInfoProto {
            build_version: format!("cairn {}", env!("CARGO_PKG_VERSION")),
            unused: 0,
            block_pool_id: identity.block_pool_id.clone(),
            storage_info: storage_info(identity),
            software_version: SOFTWARE_VERSION.to_string(),
            capabilities: Some(BLOCK_REPORT_BUFFERS),
            state: Some(state as i32),
        },
    })
}

/// A DataNode as Hadoop's exceptions write it.
fn describe(registration: &dn::DatanodeRegistrationProto) -> String {
    let id = &registration.datanode_id;
    let info = &registration.storage_info;
    format!(
        "DatanodeRegistration({}:{}, datanodeUuid={}, infoPort={}, infoSecurePort={}, ipcPort={}, \
         storageInfo=lv={};cid={};nsid={};c={})",
        id.ip_addr,
        id.xfer_port,
        id.datanode_uuid,
        id.info_port,
        id.info_secure_port(),
        id.ipc_port,
        info.layout_version as i32,
        info.cluster_id,
        info.namespce_id,
        info.c_time
    )
}

/// Refuses a DataNode of another file system. Source: Hadoop 3.5.0 `NameNodeRpcServer#verifyRequest`.
pub(super) fn verify(
    node: &NameNode,
    registration: &dn::DatanodeRegistrationProto,
) -> Result<(), Refusal> {
    same_file_system(node.ns.identity(), registration)
}

/// The same for who has no NameNode.
pub(super) fn same_file_system(
    identity: &Identity,
    registration: &dn::DatanodeRegistrationProto,
) -> Result<(), Refusal> {
    let (own, theirs) = (storage_info(identity), &registration.storage_info);
    let same = own.namespce_id == theirs.namespce_id
        && own.cluster_id == theirs.cluster_id
        && own.c_time == theirs.c_time;
    if same {
        return Ok(());
    }
    let who = describe(registration);
    warn!(%who, "a DataNode of another file system called");
    Err(Refusal::new(class::UNREGISTERED_NODE, format!("Unregistered server: {who}")))
}

/// Whom a DataNode's message says that it is from.
pub(super) fn claim(registration: &dn::DatanodeRegistrationProto) -> NodeClaim<'_> {
    NodeClaim { process: registration.process_number, ..named(&registration.datanode_id) }
}

/// Whom a message is about.
pub(crate) fn named(id: &pb::DatanodeIDProto) -> NodeClaim<'_> {
    NodeClaim { uuid: &id.datanode_uuid, ip: &id.ip_addr, xfer_port: id.xfer_port, process: None }
}

/// The refusal of a DataNode that is not the one that has registered: it stops.
///
/// Source: Hadoop 3.5.0 `UnregisteredNodeException`.
pub(super) fn unregistered(error: &RedundancyError) -> Refusal {
    if let RedundancyError::OtherNode { uuid, claimed, registered, .. } = error
        && error.shows_twin()
    {
        warn!(
            uuid,
            older = claimed,
            newer = registered,
            "two DataNodes have one UUID, was a machine cloned? The older one is refused"
        );
    }
    Refusal::new(class::UNREGISTERED_NODE, error.to_string())
}

/// Refuses one whose place another DataNode with its UUID has taken; others that are not registered, or not as they
/// say, are told to register by the next heartbeat.
pub(super) fn unless_replaced(error: RedundancyError) -> Result<RedundancyError, Refusal> {
    match error {
        RedundancyError::OtherNode { is_replaced: true, .. } => Err(unregistered(&error)),
        _ => Ok(error),
    }
}

/// Refuses DataNodes that are too old. Source: Hadoop 3.5.0 `NameNodeRpcServer#verifySoftwareVersion`.
pub(super) fn verify_version(registration: &dn::DatanodeRegistrationProto) -> Result<(), Refusal> {
    let version = registration.software_version.as_str();
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let parsed = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if parsed >= MIN_DATANODE_VERSION {
        return Ok(());
    }
    let (major, minor) = MIN_DATANODE_VERSION;
    Err(Refusal::new(
        class::INCORRECT_VERSION,
        format!(
            "The reported DataNode version is too low to communicate with this NameNode. DataNode \
             version: '{version}' Minimum DataNode version: '{major}.{minor}'"
        ),
    ))
}

/// Where a DataNode is: its address as seen from here, the rest as it tells.
pub(super) fn address(call: &Call, id: &pb::DatanodeIDProto) -> Result<NodeAddress, Refusal> {
    let port = |number: u32, what: &str| {
        u16::try_from(number).map_err(|_| Refusal::io(format!("{number} is no {what} port")))
    };
    let names = [&id.host_name, &id.datanode_uuid];
    if id.datanode_uuid.is_empty() || names.iter().any(|name| name.len() > MAX_NAME_LEN) {
        return Err(Refusal::io("a DataNode needs a UUID and a host name of reasonable length"));
    }
    Ok(NodeAddress {
        ip: call.peer.ip().to_canonical().to_string(),
        host: id.host_name.clone(),
        xfer_port: port(id.xfer_port, "data transfer")?,
        info_port: port(id.info_port, "HTTP")?,
        info_secure_port: port(id.info_secure_port(), "HTTPS")?,
        ipc_port: port(id.ipc_port, "IPC")?,
    })
}

/// The refusal of a DataNode that is not on the list of those that may serve.
pub(super) fn disallow(registration: &dn::DatanodeRegistrationProto) -> Refusal {
    disallow_because(registration, "the host is not in the include-list")
}

/// The refusal of a DataNode that may not serve. Source: Hadoop 3.5.0 `DisallowedDatanodeException`.
fn disallow_because(registration: &dn::DatanodeRegistrationProto, reason: &str) -> Refusal {
    let who = describe(registration);
    let message = format!("Datanode denied communication with namenode because {reason}: {who}");
    Refusal::new(class::DISALLOWED_DATANODE, message)
}

/// The refusal of a DataNode that is not taken in.
fn not_registered(registration: &dn::DatanodeRegistrationProto, why: NotRegistered) -> Refusal {
    match why {
        NotRegistered::NotListed => disallow(registration),
        NotRegistered::Refused(error) => unregistered(&error),
    }
}

/// Refuses a DataNode at an address without a name: lists of hosts go by names as well.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#registerDatanode`.
async fn verify_name(
    node: &NameNode,
    call: &Call,
    registration: &dn::DatanodeRegistrationProto,
) -> Result<(), Refusal> {
    let Some(is_resolved) = node.config.name_check else { return Ok(()) };
    let ip = call.peer.ip().to_canonical();
    let asked = tokio::task::spawn_blocking(move || is_resolved(ip)).await;
    if asked.map_err(|_| Refusal::io("registerDatanode was interrupted"))? {
        return Ok(());
    }
    warn!(%ip, "a DataNode's address has no name");
    let reason = format!("hostname cannot be resolved (ip={ip}, hostname={ip})");
    Err(disallow_because(registration, &reason))
}

/// The rack of a DataNode.
///
/// Source: Hadoop 3.5.0 `DatanodeManager#resolveNetworkLocation`.
async fn rack(node: &NameNode, address: &NodeAddress) -> Result<String, Refusal> {
    match node.topology.rack_of_node(address).await {
        Some(rack) => Ok(rack),
        None if node.config.refuses_unknown_racks => {
            let message = format!("Unresolved topology mapping for host {}", address.host);
            Err(Refusal::new(class::UNRESOLVED_TOPOLOGY, message))
        }
        None => Ok(DEFAULT_RACK.to_string()),
    }
}

/// Source: Hadoop 3.5.0 `DatanodeManager#registerDatanode`.
pub(super) async fn register_datanode(node: &NameNode, call: &Call) -> Answer {
    let asked = node.now();
    let request: dn::RegisterDatanodeRequestProto = call.decode()?;
    let mut registration = request.registration;
    verify_version(&registration)?;
    verify(node, &registration)?;
    let address = address(call, &registration.datanode_id)?;
    verify_name(node, call, &registration).await?;
    registration.datanode_id.ip_addr = address.ip.clone();
    check_listed(&node.topology.hosts(), &address)
        .map_err(|why| not_registered(&registration, why))?;
    let rack = rack(node, &address).await?;
    info!(%address, rack, uuid = registration.datanode_id.datanode_uuid, "a DataNode registers");
    let uuid = registration.datanode_id.datanode_uuid.clone();
    let software_version = registration.software_version.clone();
    let process = registration.process_number;
    let known = Registration { uuid, address, rack, software_version, process, asked };
    node.take_in(known).map_err(|why| not_registered(&registration, why))?;
    registration.keys = node.block_tokens.for_new(&registration.datanode_id.datanode_uuid);
    answer(&dn::RegisterDatanodeResponseProto { registration })
}
