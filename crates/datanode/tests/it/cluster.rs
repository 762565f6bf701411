//! A recording NameNode, DataNodes in temporary folders, and a client for them.

use cairn_codec::crc::{ChecksumKind, chunk_crcs, crc32c};
use cairn_datanode::{DataNode, DataNodeConfig, Durability, RunningDataNode};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, respond};
use cairn_net::transfer_stream::{TransferOptions, TransferStream};
use cairn_wire::RemoteException;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::datanode::{self, *};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::{Op, PacketHeader};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

pub use cairn_wire::proto::hdfs::OpWriteBlockProtoBlockConstructionStage as Stage;

pub const POOL: &str = "BP-1-127.0.0.1-1";
pub const CHUNK: usize = 512;

/// What the DataNodes have told, and what they are to be told.
#[derive(Default)]
pub struct Record {
    pub registrations: HashMap<String, DatanodeRegistrationProto>,
    pub registered: usize,
    pub events: Vec<(String, ReceivedDeletedBlockInfoProto)>,
    /// Id, length, stamp, state by DataNode, of the last full report.
    pub reports: HashMap<String, Vec<(i64, u64, u64, u64)>>,
    pub synchronized: Vec<CommitBlockSynchronizationRequestProto>,
    pub commands: HashMap<String, Vec<DatanodeCommandProto>>,
    pub heartbeats: usize,
    /// Transfers in progress, as each DataNode's last heartbeat told.
    pub transfers: HashMap<String, u32>,
    /// A method that is answered with an exception of this class, and how often it was.
    pub refusal: Option<(&'static str, &'static str)>,
    pub refused: usize,
    /// What each DataNode's last heartbeat told of its first storage.
    pub storage: HashMap<String, StorageReportProto>,
    /// Who was called slow, and by whom; the last report of each counts.
    pub slow_peers: Vec<(String, SlowPeerReportProto)>,
    /// The most that any heartbeat told of.
    pub most_transfers: u32,
    /// What block scanners have summed: id, CRC32C.
    pub scanned: Vec<(i64, u32)>,
    /// Replicas reported to be bad: id, UUID of the DataNode.
    pub bad: Vec<(i64, String)>,
    /// How often each DataNode was given work, where they are told.
    pub orders: Option<u64>,
    /// Calls that wait for work, by now.
    pub awaited: usize,
    /// Replicas in memory, as the last report told.
    pub cached: Vec<i64>,
    /// Bytes of memory, and those in use, as the last heartbeat told.
    pub cache: (u64, u64),
    /// Work reported to have failed: id, UUID of the target, UUID of the suspect.
    pub failed: Vec<(i64, String, Option<String>)>,
    /// Type of the storage on which each block was last told to be.
    pub places: HashMap<i64, i32>,
    /// The DataNode that is told to be slow.
    pub slow: Option<String>,
    /// Groups to encode and units of groups to rebuild, by DataNode.
    pub encodes: HashMap<String, Vec<EncodeOrderProto>>,
    pub rebuilds: HashMap<String, Vec<GroupRebuildOrderProto>>,
    /// What was encoded.
    pub encoded: Vec<EncodedGroupProto>,
    /// Replicas to prove and blocks that no file has, by DataNode, and what was proven.
    pub proves: HashMap<String, Vec<ProveOrderProto>>,
    pub retired: HashMap<String, Vec<BlockProto>>,
    pub proved: Vec<ProvedReplicaProto>,
    /// How blocks can be had that are not where they are asked for, and how often that was asked.
    pub located: HashMap<i64, LocateUnitsResponseProto>,
    pub locates: usize,
    /// Whether this NameNode says to be active, and how far it is.
    pub status: NNHAStatusHeartbeatProto,
}

#[derive(Default)]
pub struct FakeNameNode {
    pub record: Mutex<Record>,
}

impl Service for FakeNameNode {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        if call.method == "awaitOrders" {
            return self.await_orders(call.decode()?).await;
        }
        let mut record = self.record.lock().unwrap();
        if let Some((_, class)) = record.refusal.filter(|(method, _)| *method == call.method) {
            record.refused += 1;
            return Err(RemoteException::new(class, "not wanted"));
        }
        match call.method.as_str() {
            "versionRequest" => respond(&VersionResponseProto { info: namespace() }),
            "registerDatanode" => {
                let request: RegisterDatanodeRequestProto = call.decode()?;
                let registration = request.registration;
                let uuid = registration.datanode_id.datanode_uuid.clone();
                record.registrations.insert(uuid, registration.clone());
                record.registered += 1;
                respond(&RegisterDatanodeResponseProto { registration })
            }
            "sendHeartbeat" => {
                let request: HeartbeatRequestProto = call.decode()?;
                let transfers = request.xmits_in_progress();
                record.cache = (request.cache_capacity(), request.cache_used());
                for failed in request.failed_work {
                    let id = failed.block.block_id as i64;
                    record.failed.push((id, failed.target_uuid, failed.suspect_uuid));
                }
                let uuid = request.registration.datanode_id.datanode_uuid;
                record.heartbeats += 1;
                assert_eq!(request.takes_groups, Some(true));
                record.encoded.extend(request.encoded);
                record.proved.extend(request.proved);
                let proves = record.proves.remove(&uuid).unwrap_or_default();
                let retired = record.retired.remove(&uuid).unwrap_or_default();
                let encodes = record.encodes.remove(&uuid).unwrap_or_default();
                let group_rebuilds = record.rebuilds.remove(&uuid).unwrap_or_default();
                for slow in request.slow_peers {
                    let is_other = |(from, known): &(String, SlowPeerReportProto)| {
                        *from != uuid || known.data_node_id != slow.data_node_id
                    };
                    record.slow_peers.retain(is_other);
                    record.slow_peers.push((uuid.clone(), slow));
                }
                if let Some(first) = request.reports.into_iter().next() {
                    record.storage.insert(uuid.clone(), first);
                }
                record.transfers.insert(uuid.clone(), transfers);
                record.most_transfers = record.most_transfers.max(transfers);
                let is_known = record.registrations.contains_key(&uuid);
                let mut cmds = record.commands.remove(&uuid).unwrap_or_default();
                if !is_known {
                    cmds = vec![command(DatanodeCommandProtoType::RegisterCommand)];
                }
                let lease = (request.request_full_block_report_lease == Some(true)).then_some(77);
                respond(&HeartbeatResponseProto {
                    cmds,
                    full_block_report_lease_id: lease,
                    orders: record.orders,
                    encodes,
                    group_rebuilds,
                    proves,
                    retired,
                    is_slownode: Some(record.slow.as_ref() == Some(&uuid)),
                    ha_status: record.status.clone(),
                    ..Default::default()
                })
            }
            "locateUnits" => {
                let request: LocateUnitsRequestProto = call.decode()?;
                record.locates += 1;
                let located = record.located.get(&(request.block.block_id as i64));
                respond(&located.cloned().unwrap_or_default())
            }
            "blockReport" => {
                let request: BlockReportRequestProto = call.decode()?;
                assert_eq!(request.context.unwrap().lease_id, Some(77));
                let uuid = request.registration.datanode_id.datanode_uuid;
                let lines = request.reports.iter().flat_map(decode_report).collect();
                record.reports.insert(uuid, lines);
                respond(&BlockReportResponseProto::default())
            }
            "blockReceivedAndDeleted" => {
                let request: BlockReceivedAndDeletedRequestProto = call.decode()?;
                let uuid = request.registration.datanode_id.datanode_uuid;
                for storage in request.blocks {
                    let kind = storage.storage.map_or(0, |s| s.storage_type() as i32);
                    for event in storage.blocks {
                        record.places.insert(event.block.block_id as i64, kind);
                        record.events.push((uuid.clone(), event));
                    }
                }
                for sum in request.scanned.into_iter().flat_map(|storage| storage.blocks) {
                    record.scanned.push((sum.block.block_id as i64, sum.crc32c.unwrap()));
                }
                respond(&BlockReceivedAndDeletedResponseProto {})
            }
            "reportBadBlocks" => {
                let request: datanode::ReportBadBlocksRequestProto = call.decode()?;
                for block in request.blocks {
                    let uuid = block.locs[0].id.datanode_uuid.clone();
                    record.bad.push((block.b.block_id as i64, uuid));
                }
                respond(&datanode::ReportBadBlocksResponseProto {})
            }
            "cacheReport" => {
                let request: CacheReportRequestProto = call.decode()?;
                record.cached = request.blocks.iter().map(|id| *id as i64).collect();
                respond(&CacheReportResponseProto { cmd: None })
            }
            "commitBlockSynchronization" => {
                record.synchronized.push(call.decode()?);
                respond(&CommitBlockSynchronizationResponseProto {})
            }
            _ => Err(call.unknown_method()),
        }
    }
}

impl FakeNameNode {
    /// Waits until the record is as wanted.
    pub async fn wait(&self, what: &str, mut is_so: impl FnMut(&mut Record) -> bool) {
        for _ in 0..3000 {
            if is_so(&mut self.record.lock().unwrap()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("waited in vain for {what}");
    }

    /// Holds a call until there is news.
    async fn await_orders(
        &self,
        request: AwaitOrdersRequestProto,
    ) -> Result<Vec<u8>, RemoteException> {
        self.record.lock().unwrap().awaited += 1;
        loop {
            let orders = self.record.lock().unwrap().orders.unwrap_or_default();
            if orders != request.seen {
                return respond(&AwaitOrdersResponseProto { orders });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn namespace() -> NamespaceInfoProto {
    NamespaceInfoProto {
        build_version: "test".into(),
        block_pool_id: POOL.into(),
        storage_info: StorageInfoProto {
            layout_version: 0,
            namespce_id: 5,
            cluster_id: "CID-1".into(),
            c_time: 1,
        },
        software_version: "3.5.0".into(),
        ..Default::default()
    }
}

fn decode_report(report: &StorageBlockReportProto) -> Vec<(i64, u64, u64, u64)> {
    let bytes = report.blocks_buffers.concat();
    let mut rest = &bytes[..];
    let mut next = || prost::encoding::decode_varint(&mut rest).unwrap();
    let line = |_| {
        let id = next();
        ((id >> 1) as i64 ^ -((id & 1) as i64), next(), next(), next())
    };
    (0..report.number_of_blocks.unwrap()).map(line).collect()
}

pub fn command(kind: DatanodeCommandProtoType) -> DatanodeCommandProto {
    DatanodeCommandProto { cmd_type: kind as i32, ..Default::default() }
}

/// A NameNode and some DataNodes.
pub struct Cluster {
    pub name_node: Arc<FakeNameNode>,
    name_node_addr: SocketAddr,
    serving: JoinHandle<()>,
    /// Further NameNodes of the nameservice.
    pub others: Vec<(Arc<FakeNameNode>, SocketAddr)>,
    pub nodes: Vec<Option<RunningDataNode>>,
    tune: fn(&mut DataNodeConfig),
    dirs: Vec<tempfile::TempDir>,
}

impl Cluster {
    pub async fn start(count: usize) -> Cluster {
        Cluster::start_tuned(count, |_| {}).await
    }

    /// A cluster whose DataNodes have `tune` done to their configurations.
    pub async fn start_tuned(count: usize, tune: fn(&mut DataNodeConfig)) -> Cluster {
        Cluster::start_beside(count, tune, Vec::new()).await
    }

    /// The same, whose DataNodes report to `others` too.
    pub async fn start_beside(
        count: usize,
        tune: fn(&mut DataNodeConfig),
        others: Vec<(Arc<FakeNameNode>, SocketAddr)>,
    ) -> Cluster {
        let name_node = Arc::new(FakeNameNode::default());
        let (name_node_addr, serving) = serve(&name_node, "127.0.0.1:0".parse().unwrap()).await;
        let dirs = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut cluster =
            Cluster { name_node, name_node_addr, serving, others, nodes: Vec::new(), tune, dirs };
        for index in 0..count {
            cluster.nodes.push(None);
            cluster.start_node(index).await;
        }
        cluster
    }

    pub async fn start_node(&mut self, index: usize) {
        let mut config = DataNodeConfig {
            data_dirs: vec![self.dirs[index].path().to_path_buf().into()],
            name_nodes: std::iter::once(self.name_node_addr)
                .chain(self.others.iter().map(|(_, addr)| *addr))
                .map(|addr| addr.to_string())
                .collect(),
            xfer_addr: "127.0.0.1:0".parse().unwrap(),
            ipc_addr: "127.0.0.1:0".parse().unwrap(),
            heartbeat_interval: Duration::from_millis(50),
            read_timeout: Duration::from_secs(10),
            block_len_estimate: 1 << 20,
            durability: if index.is_multiple_of(2) {
                Durability::Stable
            } else {
                Durability::PageCache
            },
            send_packet_len: 4096,
            reconstruction_read_timeout: Duration::from_millis(300),
            // The smallest that there is: several steps for small units.
            reconstruction_buffer_len: 1,
            ..DataNodeConfig::default()
        };
        (self.tune)(&mut config);
        self.nodes[index] = Some(DataNode::start(config).await.unwrap());
        let uuid = self.uuid(index);
        self.wait("registration and first report", |r| {
            r.registrations.contains_key(&uuid) && r.reports.contains_key(&uuid)
        })
        .await;
    }

    /// Stops a DataNode as a crash would, and forgets what it told.
    pub fn kill_node(&mut self, index: usize) {
        let uuid = self.uuid(index);
        let node = self.nodes[index].take().unwrap();
        node.kill();
        let mut record = self.name_node.record.lock().unwrap();
        record.registrations.remove(&uuid);
        record.reports.remove(&uuid);
    }

    /// The NameNode forgets everything and its connections break.
    pub async fn restart_name_node(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
        *self.name_node.record.lock().unwrap() = Record::default();
        (self.name_node_addr, self.serving) = serve(&self.name_node, self.name_node_addr).await;
    }

    pub fn node(&self, index: usize) -> &RunningDataNode {
        self.nodes[index].as_ref().unwrap()
    }

    pub fn name_node_addr(&self) -> SocketAddr {
        self.name_node_addr
    }

    pub fn uuid(&self, index: usize) -> String {
        self.node(index).uuid().to_string()
    }

    pub fn dir(&self, index: usize) -> &Path {
        self.dirs[index].path()
    }

    pub fn info(&self, index: usize) -> DatanodeInfoProto {
        let id = self.name_node.record.lock().unwrap().registrations[&self.uuid(index)]
            .datanode_id
            .clone();
        DatanodeInfoProto { id, ..Default::default() }
    }

    pub fn send_command(&self, index: usize, command: DatanodeCommandProto) {
        let uuid = self.uuid(index);
        self.name_node.record.lock().unwrap().commands.entry(uuid).or_default().push(command);
    }

    pub async fn connect(&self, index: usize) -> TransferStream {
        TransferStream::connect(self.node(index).xfer_addr(), &TransferOptions::default())
            .await
            .unwrap()
    }

    /// Waits until the NameNode's record is as wanted.
    pub async fn wait(&self, what: &str, is_so: impl FnMut(&mut Record) -> bool) {
        self.name_node.wait(what, is_so).await;
    }

    /// Waits until DataNode `index` has reported `id` with `status`, and returns the event.
    pub async fn wait_event(
        &self,
        index: usize,
        id: i64,
        status: ReceivedDeletedBlockInfoProtoBlockStatus,
    ) -> ReceivedDeletedBlockInfoProto {
        self.wait_event_of(index, id, 0, status).await
    }

    /// As [`Cluster::wait_event`], for stamps from `gs` on.
    pub async fn wait_event_of(
        &self,
        index: usize,
        id: i64,
        gs: u64,
        status: ReceivedDeletedBlockInfoProtoBlockStatus,
    ) -> ReceivedDeletedBlockInfoProto {
        let uuid = self.uuid(index);
        let mut found = None;
        self.wait(&format!("{status:?} of {id} from {index}"), |record| {
            let is_it = |(from, event): &&(String, ReceivedDeletedBlockInfoProto)| {
                *from == uuid && {
                    let block = &event.block;
                    block.block_id as i64 == id
                        && block.gen_stamp >= gs
                        && event.status == status as i32
                }
            };
            found = record.events.iter().rev().find(is_it).map(|(_, event)| event.clone());
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Files of the replica `id` on DataNode `index`, relative to its folder.
    pub fn files(&self, index: usize, id: i64) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.dir(index).to_path_buf()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    dirs.push(path);
                } else if name == format!("blk_{id}") || name.starts_with(&format!("blk_{id}_")) {
                    found.push(path.strip_prefix(self.dir(index)).unwrap().to_path_buf());
                }
            }
        }
        found.sort();
        found
    }
}

pub async fn serve(
    name_node: &Arc<FakeNameNode>,
    addr: SocketAddr,
) -> (SocketAddr, JoinHandle<()>) {
    let server = loop {
        match RpcServer::bind(addr, RpcServerOptions::default()).await {
            Ok(server) => break server,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let addr = server.local_addr();
    (addr, tokio::spawn(server.serve(name_node.clone(), std::future::pending())))
}

pub fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

pub fn crcs(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0; data.len().div_ceil(CHUNK) * 4];
    chunk_crcs(ChecksumKind::Crc32c, CHUNK, data, &mut out);
    out
}

pub fn block(id: i64, gs: u64, len: u64) -> ExtendedBlockProto {
    ExtendedBlockProto {
        pool_id: POOL.into(),
        block_id: id as u64,
        generation_stamp: gs,
        num_bytes: Some(len),
    }
}

pub fn base_header(block: ExtendedBlockProto) -> BaseHeaderProto {
    BaseHeaderProto { block, token: Some(TokenProto::default()), trace_info: None }
}

pub fn header(block: ExtendedBlockProto) -> ClientOperationHeaderProto {
    ClientOperationHeaderProto { base_header: base_header(block), client_name: "test".into() }
}

pub fn checksum() -> ChecksumProto {
    ChecksumProto {
        r#type: ChecksumTypeProto::ChecksumCrc32c as i32,
        bytes_per_checksum: CHUNK as u32,
    }
}

/// What a client writing a block sends first.
pub fn write_request(
    block: ExtendedBlockProto,
    stage: Stage,
    targets: Vec<DatanodeInfoProto>,
) -> OpWriteBlockProto {
    OpWriteBlockProto {
        header: header(block),
        pipeline_size: targets.len() as u32 + 1,
        targets,
        stage: stage as i32,
        requested_checksum: checksum(),
        ..Default::default()
    }
}

/// A pipeline that a client writes to.
pub struct Writer {
    pub stream: TransferStream,
    pub seqno: i64,
    pub offset: u64,
}

impl Writer {
    /// Sets a pipeline of the DataNodes `nodes` up.
    pub async fn open(cluster: &Cluster, nodes: &[usize], request: OpWriteBlockProto) -> Writer {
        let mut stream = cluster.connect(nodes[0]).await;
        let targets: Vec<_> = nodes[1..].iter().map(|&n| cluster.info(n)).collect();
        let request = OpWriteBlockProto { targets, ..request };
        stream.writer.send_op(Op::WriteBlock, &request).await.unwrap();
        let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
        assert_eq!(
            (answer.status, answer.first_bad_link.as_deref()),
            (Status::Success as i32, Some(""))
        );
        Writer { stream, seqno: 0, offset: 0 }
    }

    pub async fn create(cluster: &Cluster, nodes: &[usize], id: i64, gs: u64) -> Writer {
        let request = write_request(block(id, gs, 0), Stage::PipelineSetupCreate, Vec::new());
        Writer::open(cluster, nodes, request).await
    }

    pub async fn send(&mut self, data: &[u8], crcs: &[u8], last_packet: bool, sync_block: bool) {
        let header = PacketHeader {
            offset_in_block: self.offset as i64,
            seqno: self.seqno,
            last_packet,
            data_len: data.len() as u32,
            sync_block,
        };
        self.stream.writer.send_packet(&header, crcs, data).await.unwrap();
        self.offset = self.offset.wrapping_add(data.len() as u64);
        self.seqno += 1;
    }

    pub async fn ack(&mut self) -> PipelineAckProto {
        self.stream.reader.read_message("acknowledgement").await.unwrap()
    }

    /// Sends a packet and waits for its acknowledgement by `replies` DataNodes.
    pub async fn write(&mut self, data: &[u8], replies: usize) {
        self.send(data, &crcs(data), false, false).await;
        self.expect_ack(replies).await;
    }

    pub async fn expect_ack(&mut self, replies: usize) {
        let ack = self.ack().await;
        assert_eq!((ack.seqno, ack.reply), (self.seqno - 1, vec![Status::Success as i32; replies]));
    }

    pub async fn close(mut self, replies: usize) -> TransferStream {
        self.send(&[], &[], true, false).await;
        self.expect_ack(replies).await;
        self.stream
    }
}

/// Writes a whole block and waits for its reports.
pub async fn write_block(cluster: &Cluster, nodes: &[usize], id: i64, gs: u64, data: &[u8]) {
    let mut writer = Writer::create(cluster, nodes, id, gs).await;
    for packet in data.chunks(64 * CHUNK) {
        writer.write(packet, nodes.len()).await;
    }
    writer.close(nodes.len()).await;
    for &node in nodes {
        let event =
            cluster.wait_event(node, id, ReceivedDeletedBlockInfoProtoBlockStatus::Received).await;
        assert_eq!(event.block.num_bytes, Some(data.len() as u64));
        assert_eq!(event.crc32c, Some(crc32c(0, data)), "CRC of the whole replica");
    }
}

/// Reads a range over `stream`, checking every CRC; the error is the DataNode's message.
pub async fn read(
    stream: &mut TransferStream,
    block: ExtendedBlockProto,
    offset: u64,
    len: u64,
) -> Result<Vec<u8>, String> {
    let request = OpReadBlockProto { header: header(block), offset, len, ..Default::default() };
    stream.writer.send_op(Op::ReadBlock, &request).await.unwrap();
    let answer: BlockOpResponseProto = stream.reader.read_message("answer").await.unwrap();
    if answer.status != Status::Success as i32 {
        return Err(answer.message.unwrap());
    }
    let info = answer.read_op_checksum_info.unwrap();
    assert_eq!(info.checksum, checksum());
    assert_eq!(info.chunk_offset, offset - offset % CHUNK as u64);
    let (mut got, mut last_seqno) = (Vec::new(), -1);
    loop {
        let packet = stream.reader.read_packet().await.unwrap();
        assert!(packet.header.follows(last_seqno), "{:?}", packet.header);
        last_seqno = packet.header.seqno;
        if packet.header.last_packet {
            break;
        }
        assert_eq!(packet.header.offset_in_block as u64, info.chunk_offset + got.len() as u64);
        if packet.checksums != crcs(&packet.data) {
            return Err("bad CRC".into());
        }
        got.extend_from_slice(&packet.data);
    }
    let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
    stream.writer.send_message(&status).await.unwrap();
    let skip = (offset - info.chunk_offset) as usize;
    Ok(got[skip..skip + len as usize].to_vec())
}

/// The answer of a server's HTTP port, head and body.
pub async fn page(addr: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
