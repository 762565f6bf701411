//! One server, a NameNode or a DataNode, as its operator speaks to it: by its address, about itself.

use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert;
use crate::protocol::namenode::NameNode;
use crate::types::*;
use cairn_wire::proto::common::*;
use cairn_wire::proto::hdfs::*;
use prost::Message;
use std::time::Duration;

const RECONFIGURATION: &str = "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol";
const MEMBERS: &str = "cairn.MembersProtocol";
const DATANODE: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
const USER_MAPPINGS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";
const REFRESH_USERS: &str = "org.apache.hadoop.security.RefreshUserMappingsProtocol";
const REFRESH_POLICY: &str =
    "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol";
const REFRESH_QUEUE: &str = "org.apache.hadoop.ipc.RefreshCallQueueProtocol";

/// What a server is to read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refresh {
    /// Who may use which protocol.
    ServiceAcl,
    /// Which groups users are in.
    UserToGroupsMappings,
    /// Who may act for whom.
    SuperUserGroups,
    /// How calls wait.
    CallQueue,
}

/// A server by its address. Connects at each first call of a protocol, and does not try again.
#[derive(Clone, Debug)]
pub struct Server {
    config: ClientConfig,
}

impl FileSystem {
    /// The NameNode that answered last.
    pub fn namenode(&self) -> Server {
        let config = self.config();
        let active = config.namenode_addresses.get(self.active_namenode());
        Server::new(config, active.unwrap_or(&config.namenode))
    }
}

impl Server {
    /// The NameNode at `host:port` of RPC, asked by the user of `config`.
    pub fn new(config: &ClientConfig, addr: &str) -> Server {
        let config = ClientConfig {
            namenode: addr.to_string(),
            namenode_addresses: vec![addr.to_string()],
            retry_for: Duration::ZERO,
            ..config.clone()
        };
        Server { config }
    }

    /// The DataNode at `host:port` of RPC, likewise.
    pub fn datanode(config: &ClientConfig, addr: &str) -> Server {
        let credentials = config.datanode_credentials.clone();
        Server::new(&ClientConfig { credentials, ..config.clone() }, addr)
    }

    /// Its `host:port`.
    pub fn addr(&self) -> &str {
        &self.config.namenode
    }

    async fn call<Req, Resp>(
        &self,
        protocol: &'static str,
        method: &'static str,
        request: &Req,
    ) -> Result<Resp>
    where
        Req: Message,
        Resp: Message + Default,
    {
        // It is called a NameNode in errors.
        let called = NameNode::with_protocol(&self.config, protocol).call(method, request).await;
        called.map_err(|error| match error {
            ClientError::NameNode { addr, source } => ClientError::Server { addr, source },
            other => other,
        })
    }

    /// Has it read its configuration, and change what may change while it runs.
    pub async fn start_reconfiguration(&self) -> Result<()> {
        let request = StartReconfigurationRequestProto {};
        let _: StartReconfigurationResponseProto =
            self.call(RECONFIGURATION, "startReconfiguration", &request).await?;
        Ok(())
    }

    /// How far that has come.
    pub async fn reconfiguration(&self) -> Result<Reconfiguration> {
        let request = GetReconfigurationStatusRequestProto {};
        let told: GetReconfigurationStatusResponseProto =
            self.call(RECONFIGURATION, "getReconfigurationStatus", &request).await?;
        let moment = |ms: i64| u64::try_from(ms).ok().filter(|ms| *ms > 0);
        let change = |change: GetReconfigurationStatusConfigChangeProto| ConfigurationChange {
            name: change.name,
            old: change.old_value,
            new: change.new_value,
            error: change.error_message,
        };
        Ok(Reconfiguration {
            start_ms: moment(told.start_time),
            end_ms: told.end_time.and_then(moment),
            changes: told.changes.into_iter().map(change).collect(),
        })
    }

    /// The properties that may change while it runs.
    pub async fn reconfigurable_properties(&self) -> Result<Vec<String>> {
        let request = ListReconfigurablePropertiesRequestProto {};
        let told: ListReconfigurablePropertiesResponseProto =
            self.call(RECONFIGURATION, "listReconfigurableProperties", &request).await?;
        Ok(told.name)
    }

    /// Its background work.
    pub async fn workers(&self) -> Result<Vec<Worker>> {
        let told: ListWorkersResponseProto =
            self.call(RECONFIGURATION, "listWorkers", &ListWorkersRequestProto {}).await?;
        Ok(told.workers.into_iter().map(worker).collect())
    }

    /// Has all of its background work of those names rest, or go on, and tells what there is then. A pause lasts until
    /// it is lifted, or the server ends.
    pub async fn pause_workers(&self, names: &[String], pause: bool) -> Result<Vec<Worker>> {
        let request = PauseWorkersRequestProto { names: names.to_vec(), pause };
        let told: ListWorkersResponseProto =
            self.call(RECONFIGURATION, "pauseWorkers", &request).await?;
        Ok(told.workers.into_iter().map(worker).collect())
    }

    /// Has a NameNode read something again.
    pub async fn refresh(&self, what: Refresh) -> Result<()> {
        match what {
            Refresh::ServiceAcl => {
                let request = RefreshServiceAclRequestProto {};
                let _: RefreshServiceAclResponseProto =
                    self.call(REFRESH_POLICY, "refreshServiceAcl", &request).await?;
            }
            Refresh::UserToGroupsMappings => {
                let request = RefreshUserToGroupsMappingsRequestProto {};
                let _: RefreshUserToGroupsMappingsResponseProto =
                    self.call(REFRESH_USERS, "refreshUserToGroupsMappings", &request).await?;
            }
            Refresh::SuperUserGroups => {
                let request = RefreshSuperUserGroupsConfigurationRequestProto {};
                let method = "refreshSuperUserGroupsConfiguration";
                let _: RefreshSuperUserGroupsConfigurationResponseProto =
                    self.call(REFRESH_USERS, method, &request).await?;
            }
            Refresh::CallQueue => {
                let request = RefreshCallQueueRequestProto {};
                let _: RefreshCallQueueResponseProto =
                    self.call(REFRESH_QUEUE, "refreshCallQueue", &request).await?;
            }
        }
        Ok(())
    }

    /// What a member of a quorum of NameNodes says of itself, and knows of the others.
    pub async fn members(&self) -> Result<Members> {
        let told: GetMembersResponseProto =
            self.call(MEMBERS, "getMembers", &GetMembersRequestProto {}).await?;
        let member = |member: QuorumMemberProto| QuorumMember {
            name: member.name,
            id: member.id,
            part: member.part,
            rpc_address: member.rpc_address,
            quorum_address: member.quorum_address,
            last: member.last,
            is_there: member.is_there,
            is_ready: member.ready,
        };
        Ok(Members {
            name: told.name,
            quorum: told.quorum,
            term: told.term,
            leader: told.leader,
            leads: told.leads,
            last: told.last,
            is_ready: told.ready,
            reads: told.reads.unwrap_or_default(),
            members: told.members.into_iter().map(member).collect(),
        })
    }

    /// Has the leader of a quorum shut a member out, or let it join again.
    pub async fn change_member(&self, name: &str, out: bool) -> Result<()> {
        let request = ChangeMemberRequestProto { name: name.to_string(), out };
        let _: ChangeMemberResponseProto = self.call(MEMBERS, "changeMember", &request).await?;
        Ok(())
    }

    /// The groups that a user is in for a NameNode.
    pub async fn groups(&self, user: &str) -> Result<Vec<String>> {
        let request = GetGroupsForUserRequestProto { user: user.to_string() };
        let told: GetGroupsForUserResponseProto =
            self.call(USER_MAPPINGS, "getGroupsForUser", &request).await?;
        Ok(told.groups)
    }

    /// What a DataNode tells of itself.
    pub async fn datanode_info(&self) -> Result<DataNodeLocalInfo> {
        let request = GetDatanodeInfoRequestProto {};
        let told: GetDatanodeInfoResponseProto =
            self.call(DATANODE, "getDatanodeInfo", &request).await?;
        let info = told.local_info;
        Ok(DataNodeLocalInfo {
            software: info.software_version,
            configuration: info.config_version,
            uptime_seconds: info.uptime,
        })
    }

    /// The volumes of a DataNode.
    pub async fn volumes(&self) -> Result<Vec<VolumeInfo>> {
        let request = GetVolumeReportRequestProto {};
        let told: GetVolumeReportResponseProto =
            self.call(DATANODE, "getVolumeReport", &request).await?;
        let volume = |volume: DatanodeVolumeInfoProto| VolumeInfo {
            path: volume.path,
            storage_type: convert::storage_type(volume.storage_type),
            used: volume.used_space,
            free: volume.free_space,
            reserved: volume.reserved_space,
            reserved_for_replicas: volume.reserved_space_for_replicas,
            blocks: volume.num_blocks,
        };
        Ok(told.volume_info.into_iter().map(volume).collect())
    }

    /// Bytes a second that a DataNode may move for a balancer.
    pub async fn balancer_bandwidth(&self) -> Result<u64> {
        let request = GetBalancerBandwidthRequestProto {};
        let told: GetBalancerBandwidthResponseProto =
            self.call(DATANODE, "getBalancerBandwidth", &request).await?;
        Ok(told.bandwidth)
    }

    /// Has a DataNode tell the NameNode what it holds; only what is new if `incremental`.
    pub async fn trigger_block_report(&self, incremental: bool) -> Result<()> {
        let request = TriggerBlockReportRequestProto { incremental, nn_address: None };
        let _: TriggerBlockReportResponseProto =
            self.call(DATANODE, "triggerBlockReport", &request).await?;
        Ok(())
    }

    /// Ends a DataNode; with `for_upgrade` its clients wait for it to be back.
    pub async fn shutdown_datanode(&self, for_upgrade: bool) -> Result<()> {
        let request = ShutdownDatanodeRequestProto { for_upgrade };
        let _: ShutdownDatanodeResponseProto =
            self.call(DATANODE, "shutdownDatanode", &request).await?;
        Ok(())
    }

    /// Ends all writes to a DataNode; writers go on with others.
    pub async fn evict_writers(&self) -> Result<()> {
        let request = EvictWritersRequestProto {};
        let _: EvictWritersResponseProto = self.call(DATANODE, "evictWriters", &request).await?;
        Ok(())
    }
}

fn worker(told: WorkerProto) -> Worker {
    let progress =
        |what| WorkerProgress { done: told.done.unwrap_or_default(), of: told.done_of, what };
    Worker {
        progress: told.done_what.map(progress),
        name: told.name,
        of: told.of,
        does: told.does,
        state: told.state,
        since: Duration::from_millis(told.since_ms),
        is_paused: told.paused,
        may_be_paused: told.pausable,
        rounds: told.rounds,
        busy: Duration::from_millis(told.busy_ms),
        bytes_per_second: told.bytes_per_second,
        failures: told.failures,
        last_failure: told.last_failure,
    }
}
