//! A NameNode in this process, a client that speaks RPC to it, and DataNodes that keep no bytes.

use std::path::Path;
use std::time::Duration;

use cairn_access::groups::GroupsConfig;
use cairn_namenode::config::SatisfierMode;
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_net::rpc_client::{LastSeen, RpcClient, RpcClientOptions, RpcError};
use cairn_wire::proto::datanodelifeline::LifelineResponseProto;
use cairn_wire::proto::{common, datanode as dn, hdfs as pb};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
pub const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
pub const LIFELINE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol";

/// The user of the NameNode in these tests.
pub const SUPERUSER: &str = "hdfs";

/// Short times, so that tests do not wait.
pub fn config(dir: &Path) -> NameNodeConfig {
    NameNodeConfig {
        name_dir: dir.to_path_buf(),
        format_if_empty: true,
        rpc_addr: "127.0.0.1:0".parse().unwrap(),
        http_addr: Some("127.0.0.1:0".parse().unwrap()),
        superuser: Some(SUPERUSER.to_string()),
        groups: GroupsConfig {
            fixed: vec![("alice".to_string(), vec!["staff".to_string()])],
            ..GroupsConfig::default()
        },
        safe_mode_extension: Duration::ZERO,
        heartbeat_interval: Duration::from_millis(200),
        lease_recheck_interval: Duration::from_millis(50),
        consider_load: false,
        satisfier_mode: SatisfierMode::External,
        ..NameNodeConfig::default()
    }
}

/// A client of one protocol.
#[derive(Clone)]
pub struct Client(RpcClient);

impl Client {
    pub fn new(node: &RunningNameNode, protocol: &'static str, user: &str) -> Client {
        Client::at(&node.rpc_addr.to_string(), protocol, user)
    }

    /// Of a NameNode that may be another process.
    pub fn at(addr: &str, protocol: &'static str, user: &str) -> Client {
        Client(RpcClient::new(addr, protocol, user, RpcClientOptions::default()))
    }

    /// Of one that may be answered by members that follow.
    pub fn seeing(addr: &str, protocol: &'static str, user: &str, last_seen: &LastSeen) -> Client {
        let last_seen = Some(last_seen.clone());
        let options = RpcClientOptions { last_seen, ..RpcClientOptions::default() };
        Client(RpcClient::new(addr, protocol, user, options))
    }

    /// Of one that asks who it is.
    pub fn shown(rpc: RpcClient) -> Client {
        Client(rpc)
    }

    pub async fn call<A: Message, B: Message + Default>(
        &self,
        method: &str,
        request: &A,
    ) -> Result<B, RpcError> {
        self.0.call(method, request).await
    }

    /// Calls, and gives the class and first line of the exception that must come.
    pub async fn refused<A: Message>(&self, method: &str, request: &A) -> (String, String) {
        let answer: Result<common::ProtocolVersionProto, RpcError> =
            self.0.call(method, request).await;
        match answer {
            Err(RpcError::Remote(e)) => (e.class.clone(), e.first_line().to_string()),
            other => panic!("{method} was not refused: {other:?}"),
        }
    }

    pub async fn mkdirs(&self, path: &str) {
        self.try_mkdirs(path).await.unwrap();
    }

    pub async fn try_mkdirs(&self, path: &str) -> Result<(), RpcError> {
        let request = pb::MkdirsRequestProto {
            src: path.to_string(),
            masked: pb::FsPermissionProto { perm: 0o755 },
            create_parent: true,
            unmasked: None,
        };
        let answer: pb::MkdirsResponseProto = self.call("mkdirs", &request).await?;
        assert!(answer.result);
        Ok(())
    }

    pub async fn set_policy(&self, path: &str, policy: &str) {
        let request = pb::SetErasureCodingPolicyRequestProto {
            src: path.to_string(),
            ec_policy_name: Some(policy.to_string()),
        };
        let _: pb::SetErasureCodingPolicyResponseProto =
            self.call("setErasureCodingPolicy", &request).await.unwrap();
    }

    pub async fn create(&self, path: &str, holder: &str) -> pb::HdfsFileStatusProto {
        let answer: pb::CreateResponseProto =
            self.call("create", &create_request(path, holder)).await.unwrap();
        answer.fs.expect("create answers with the file")
    }

    pub async fn add_block(
        &self,
        path: &str,
        holder: &str,
        previous: Option<pb::ExtendedBlockProto>,
    ) -> pb::LocatedBlockProto {
        let answer: pb::AddBlockResponseProto =
            self.call("addBlock", &add_block_request(path, holder, previous)).await.unwrap();
        answer.block
    }

    pub async fn complete(
        &self,
        path: &str,
        holder: &str,
        last: Option<pb::ExtendedBlockProto>,
    ) -> bool {
        let request = pb::CompleteRequestProto {
            src: path.to_string(),
            client_name: holder.to_string(),
            last,
            file_id: None,
        };
        let answer: pb::CompleteResponseProto = self.call("complete", &request).await.unwrap();
        answer.result
    }

    pub async fn file_info(&self, path: &str) -> Option<pb::HdfsFileStatusProto> {
        let request = pb::GetFileInfoRequestProto { src: path.to_string() };
        let answer: pb::GetFileInfoResponseProto =
            self.call("getFileInfo", &request).await.unwrap();
        answer.fs
    }

    pub async fn locations(&self, path: &str) -> pb::LocatedBlocksProto {
        let src = path.to_string();
        let request = pb::GetBlockLocationsRequestProto {
            src,
            offset: 0,
            length: i64::MAX as u64,
            ..Default::default()
        };
        let answer: pb::GetBlockLocationsResponseProto =
            self.call("getBlockLocations", &request).await.unwrap();
        answer.locations.expect("a file has locations")
    }

    /// Names of a directory, through as many pages as it takes.
    pub async fn list(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let start_after = names.last().cloned().unwrap_or_default().into_bytes();
            let src = path.to_string();
            let request = pb::GetListingRequestProto {
                src,
                start_after,
                need_location: false,
                read_up_to: None,
            };
            let answer: pb::GetListingResponseProto =
                self.call("getListing", &request).await.unwrap();
            let list = answer.dir_list.expect("the directory is there");
            let page = list.partial_listing.into_iter();
            names.extend(page.map(|entry| String::from_utf8(entry.path).unwrap()));
            if list.remaining_entries == 0 {
                return names;
            }
        }
    }

    pub async fn safe_mode(&self, action: pb::SafeModeActionProto) -> bool {
        let request = pb::SetSafeModeRequestProto { action: action as i32, checked: None };
        let answer: pb::SetSafeModeResponseProto =
            self.call("setSafeMode", &request).await.unwrap();
        answer.result
    }
}

pub fn create_request(path: &str, holder: &str) -> pb::CreateRequestProto {
    pb::CreateRequestProto {
        src: path.to_string(),
        masked: pb::FsPermissionProto { perm: 0o644 },
        client_name: holder.to_string(),
        create_flag: pb::CreateFlagProto::Create as u32,
        create_parent: true,
        replication: 3,
        block_size: 1024 * 1024,
        ..pb::CreateRequestProto::default()
    }
}

pub fn add_block_request(
    path: &str,
    holder: &str,
    previous: Option<pb::ExtendedBlockProto>,
) -> pb::AddBlockRequestProto {
    pb::AddBlockRequestProto {
        src: path.to_string(),
        client_name: holder.to_string(),
        previous,
        ..pb::AddBlockRequestProto::default()
    }
}

/// The pool of blocks, and the call by which DataNode `number` registers.
pub async fn registration(rpc: &Client, number: u16) -> (String, dn::RegisterDatanodeRequestProto) {
    let version: pb::VersionResponseProto =
        rpc.call("versionRequest", &pb::VersionRequestProto {}).await.unwrap();
    let registration = dn::DatanodeRegistrationProto {
        datanode_id: pb::DatanodeIDProto {
            ip_addr: "127.0.0.1".to_string(),
            host_name: format!("host{number}"),
            datanode_uuid: format!("datanode-{number}"),
            xfer_port: (10_000 + number).into(),
            info_port: (20_000 + number).into(),
            ipc_port: (30_000 + number).into(),
            info_secure_port: None,
        },
        storage_info: version.info.storage_info,
        keys: pb::ExportedBlockKeysProto::default(),
        software_version: "3.5.0".to_string(),
        process_number: None,
    };
    (version.info.block_pool_id, dn::RegisterDatanodeRequestProto { registration })
}

/// A DataNode that says that it holds what it is told to say.
pub struct FakeDataNode {
    rpc: Client,
    registration: dn::DatanodeRegistrationProto,
    pool: String,
    pub storage: String,
}

impl FakeDataNode {
    /// Registers DataNode `number` and sends its first heartbeat and an empty or given full report.
    pub async fn start(node: &RunningNameNode, number: u16, blocks: &[pb::BlockProto]) -> Self {
        FakeDataNode::start_at(&node.rpc_addr.to_string(), number, blocks).await
    }

    /// What a DataNode that registers is told with its first heartbeat.
    pub async fn told_first(node: &RunningNameNode, number: u16) -> Vec<dn::DatanodeCommandProto> {
        FakeDataNode::register(&node.rpc_addr.to_string(), number).await.heartbeat().await
    }

    /// The same at a NameNode that may be another process.
    pub async fn start_at(addr: &str, number: u16, blocks: &[pb::BlockProto]) -> Self {
        let datanode = FakeDataNode::register(addr, number).await;
        datanode.heartbeat().await;
        datanode.report(blocks).await;
        datanode
    }

    /// One that has registered, and has not said yet what it has.
    pub async fn told_nothing(addr: &str, number: u16) -> Self {
        let datanode = FakeDataNode::register(addr, number).await;
        datanode.heartbeat().await;
        datanode
    }

    /// One that has registered and nothing else.
    pub async fn register(addr: &str, number: u16) -> Self {
        let rpc = Client::at(addr, DATANODE, SUPERUSER);
        let (pool, request) = registration(&rpc, number).await;
        let answer: dn::RegisterDatanodeResponseProto =
            rpc.call("registerDatanode", &request).await.unwrap();
        let storage = format!("DS-{number}");
        let registration = answer.registration;
        FakeDataNode { rpc, registration, pool, storage }
    }

    /// The keys of block tokens that it was given when it registered.
    pub fn keys(&self) -> &pb::ExportedBlockKeysProto {
        &self.registration.keys
    }

    pub async fn heartbeat(&self) -> Vec<dn::DatanodeCommandProto> {
        self.heartbeat_with(0, Vec::new()).await
    }

    /// A sign of life to the NameNode at that address, which answers nothing.
    pub async fn lifeline(&self, addr: &str) {
        let rpc = Client::at(addr, LIFELINE, SUPERUSER);
        let request = self.heartbeat_request(0, Vec::new());
        let _: LifelineResponseProto = rpc.call("sendLifeline", &request).await.unwrap();
    }

    /// A heartbeat of a DataNode that has so many bytes of memory for replicas.
    pub async fn heartbeat_caching(&self, capacity: u64) -> Vec<dn::DatanodeCommandProto> {
        let request = dn::HeartbeatRequestProto {
            cache_capacity: Some(capacity),
            ..self.heartbeat_request(0, Vec::new())
        };
        let answer: dn::HeartbeatResponseProto =
            self.rpc.call("sendHeartbeat", &request).await.unwrap();
        answer.cmds
    }

    /// Tells what is in its memory.
    pub async fn cache_report(&self, blocks: &[u64]) {
        let request = dn::CacheReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            blocks: blocks.to_vec(),
        };
        let _: dn::CacheReportResponseProto = self.rpc.call("cacheReport", &request).await.unwrap();
    }

    /// A heartbeat of a DataNode with so many copies under way, and with those that have failed.
    pub async fn heartbeat_with(
        &self,
        xmits: u32,
        failed_work: Vec<dn::FailedWorkProto>,
    ) -> Vec<dn::DatanodeCommandProto> {
        let request = self.heartbeat_request(xmits, failed_work);
        let answer: dn::HeartbeatResponseProto =
            self.rpc.call("sendHeartbeat", &request).await.unwrap();
        answer.cmds
    }

    /// A heartbeat of a DataNode that takes scrubs, with what it has read. Returns what it is to read next.
    pub async fn heartbeat_with_scrubs(
        &self,
        scrubbed: Vec<dn::ScrubbedBlockProto>,
    ) -> Vec<dn::ScrubOrderProto> {
        let takes_scrubs = Some(true);
        let request = self.heartbeat_request(0, Vec::new());
        let request = dn::HeartbeatRequestProto { takes_scrubs, scrubbed, ..request };
        let answer: dn::HeartbeatResponseProto =
            self.rpc.call("sendHeartbeat", &request).await.unwrap();
        answer.scrubs
    }

    /// A heartbeat of a DataNode that takes contiguous groups, with those that it has encoded.
    pub async fn heartbeat_with_groups(
        &self,
        encoded: Vec<dn::EncodedGroupProto>,
    ) -> dn::HeartbeatResponseProto {
        let request = self.heartbeat_request(0, Vec::new());
        let request = dn::HeartbeatRequestProto { takes_groups: Some(true), encoded, ..request };
        self.rpc.call("sendHeartbeat", &request).await.unwrap()
    }

    /// A heartbeat of a DataNode that calls others and disks of its own slow.
    pub async fn heartbeat_with_slow(
        &self,
        slow_peers: Vec<dn::SlowPeerReportProto>,
        slow_disks: Vec<dn::SlowDiskReportProto>,
    ) -> dn::HeartbeatResponseProto {
        let request = self.heartbeat_request(0, Vec::new());
        let request = dn::HeartbeatRequestProto { slow_peers, slow_disks, ..request };
        self.rpc.call("sendHeartbeat", &request).await.unwrap()
    }

    fn heartbeat_request(
        &self,
        xmits: u32,
        failed_work: Vec<dn::FailedWorkProto>,
    ) -> dn::HeartbeatRequestProto {
        let report = pb::StorageReportProto {
            storage_uuid: self.storage.clone(),
            capacity: Some(1 << 40),
            dfs_used: Some(0),
            remaining: Some(1 << 40),
            block_pool_used: Some(0),
            storage: Some(self.storage_proto()),
            ..pb::StorageReportProto::default()
        };
        dn::HeartbeatRequestProto {
            registration: self.registration.clone(),
            reports: vec![report],
            xceiver_count: Some(1),
            xmits_in_progress: Some(xmits),
            failed_work,
            ..dn::HeartbeatRequestProto::default()
        }
    }

    /// Says that it cannot go on.
    pub async fn fail(&self) {
        let request = dn::ErrorReportRequestProto {
            registartion: self.registration.clone(),
            error_code: dn::ErrorReportRequestProtoErrorCode::FatalDiskError as u32,
            msg: "all volumes have failed".to_string(),
        };
        let _: dn::ErrorReportResponseProto = self.rpc.call("errorReport", &request).await.unwrap();
    }

    fn storage_proto(&self) -> pb::DatanodeStorageProto {
        pb::DatanodeStorageProto {
            storage_uuid: self.storage.clone(),
            state: None,
            storage_type: Some(pb::StorageTypeProto::Disk as i32),
        }
    }

    /// A full report, as who has heard who leads sends it: under a lease that it has granted.
    pub async fn report_under_lease(&self, blocks: &[pb::BlockProto]) {
        let request_full_block_report_lease = Some(true);
        let request = dn::HeartbeatRequestProto {
            request_full_block_report_lease,
            ..self.heartbeat_request(0, Vec::new())
        };
        let answer: dn::HeartbeatResponseProto =
            self.rpc.call("sendHeartbeat", &request).await.unwrap();
        let lease_id = answer.full_block_report_lease_id;
        assert_ne!(lease_id, Some(0));
        let context = dn::BlockReportContextProto { total_rpcs: 1, cur_rpc: 0, id: 1, lease_id };
        self.report_in(blocks, Some(context)).await;
    }

    pub async fn report(&self, blocks: &[pb::BlockProto]) {
        self.report_in(blocks, None).await;
    }

    /// A full report, in the old form: finalized count, open count, three numbers a block, three -1.
    async fn report_in(
        &self,
        blocks: &[pb::BlockProto],
        context: Option<dn::BlockReportContextProto>,
    ) {
        let mut longs = vec![blocks.len() as u64, 0];
        for block in blocks {
            longs.extend([block.block_id, block.num_bytes(), block.gen_stamp]);
        }
        longs.extend([u64::MAX; 3]);
        let report = dn::StorageBlockReportProto {
            storage: self.storage_proto(),
            blocks: longs,
            number_of_blocks: None,
            blocks_buffers: Vec::new(),
        };
        let request = dn::BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            reports: vec![report],
            context,
        };
        let _: dn::BlockReportResponseProto = self.rpc.call("blockReport", &request).await.unwrap();
    }

    /// Says that it has finalized a replica or internal block.
    pub async fn received(&self, block: pb::BlockProto, crc32c: Option<u32>) {
        use dn::ReceivedDeletedBlockInfoProtoBlockStatus::Received;
        self.event(block, Received, crc32c).await;
    }

    /// Says that it has deleted one.
    pub async fn deleted(&self, block: pb::BlockProto) {
        use dn::ReceivedDeletedBlockInfoProtoBlockStatus::Deleted;
        self.event(block, Deleted, None).await;
    }

    async fn event(
        &self,
        block: pb::BlockProto,
        status: dn::ReceivedDeletedBlockInfoProtoBlockStatus,
        crc32c: Option<u32>,
    ) {
        let event = dn::ReceivedDeletedBlockInfoProto {
            block,
            status: status as i32,
            delete_hint: None,
            crc32c,
        };
        let request = dn::BlockReceivedAndDeletedRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            blocks: vec![dn::StorageReceivedDeletedBlocksProto {
                storage_uuid: self.storage.clone(),
                blocks: vec![event],
                storage: Some(self.storage_proto()),
            }],
            ..Default::default()
        };
        let _: dn::BlockReceivedAndDeletedResponseProto =
            self.rpc.call("blockReceivedAndDeleted", &request).await.unwrap();
    }

    pub async fn commit_synchronization(
        &self,
        recovering: &pb::RecoveringBlockProto,
        new_len: u64,
        delete: bool,
    ) {
        let request = dn::CommitBlockSynchronizationRequestProto {
            block: recovering.block.b.clone(),
            new_gen_stamp: recovering.new_gen_stamp,
            new_length: new_len,
            close_file: true,
            delete_block: delete,
            new_taragets: vec![self.registration.datanode_id.clone()],
            new_target_storages: vec![self.storage.clone()],
        };
        let _: dn::CommitBlockSynchronizationResponseProto =
            self.rpc.call("commitBlockSynchronization", &request).await.unwrap();
    }

    pub fn client(&self) -> &Client {
        &self.rpc
    }

    pub fn uuid(&self) -> &str {
        &self.registration.datanode_id.datanode_uuid
    }

    pub fn registration(&self) -> &dn::DatanodeRegistrationProto {
        &self.registration
    }
}

/// A NameNode with `count` DataNodes.
pub async fn start(dir: &Path, count: u16) -> (RunningNameNode, Vec<FakeDataNode>) {
    let node = NameNode::start(config(dir)).await.unwrap();
    let mut datanodes = Vec::new();
    for number in 0..count {
        datanodes.push(FakeDataNode::start(&node, number, &[]).await);
    }
    (node, datanodes)
}

/// The body of a page of the HTTP port.
pub async fn page(node: &RunningNameNode, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(node.http_addr.unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_string()
}

/// The bytes that a located block has, as its DataNodes hold it, for `len` bytes of data.
pub fn replicas(
    located: &pb::LocatedBlockProto,
    len: u64,
    policy: Option<&cairn_stripe::Policy>,
) -> Vec<(String, pb::BlockProto)> {
    let block = &located.b;
    let units = located.block_indices.clone();
    let unit_len = |unit: u8| match policy {
        Some(policy) => {
            let unit = cairn_stripe::UnitIndex(unit);
            cairn_stripe::geometry::internal_block_len(policy, len, unit)
        }
        None => len,
    };
    let one = |(index, info): (usize, &pb::DatanodeInfoProto)| {
        let unit = units.as_ref().map_or(0, |units| units[index]);
        let replica = pb::BlockProto {
            block_id: block.block_id + u64::from(unit),
            gen_stamp: block.generation_stamp,
            num_bytes: Some(unit_len(unit)),
        };
        (info.id.datanode_uuid.clone(), replica)
    };
    located.locs.iter().enumerate().map(one).collect()
}

/// Has the DataNodes of a located block report that they have it whole.
pub async fn finish(
    datanodes: &[FakeDataNode],
    located: &pb::LocatedBlockProto,
    len: u64,
    policy: Option<&cairn_stripe::Policy>,
) -> pb::ExtendedBlockProto {
    for (uuid, replica) in replicas(located, len, policy) {
        let datanode = datanodes.iter().find(|datanode| datanode.uuid() == uuid).unwrap();
        datanode.received(replica, Some(7)).await;
    }
    pb::ExtendedBlockProto { num_bytes: Some(len), ..located.b.clone() }
}
