//! What must hold for whole servers, whatever arrives: a NameNode and a DataNode in this process, on folders in memory,
//! never panic, answer each call or refuse it, and close every other connection in time.
//!
//! Each function is a fuzz target, and `cargo test -p cairn-client` runs it over the corpus and over a fixed set of mutated
//! bytes (`crates/client/tests/any_bytes.rs` includes this file). The servers live as long as the process, so that what
//! one input has done is there for the next.

use cairn_datanode::{DataNode, DataNodeConfig, RunningDataNode};
use cairn_namenode::config::Durability;
use cairn_namenode::journal::{Identity, Namesystem, NamesystemOptions};
use cairn_namenode::{NameNode, NameNodeConfig, RunningNameNode};
use cairn_namespace::{Caller, Entry, query};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, ExtendedBlockProto, OpBlockChecksumProto, OpBlockGroupChecksumProto,
    OpCopyBlockProto, OpReadBlockProto, OpReplaceBlockProto, OpRequestShortCircuitAccessProto,
    OpTransferBlockProto, OpWriteBlockProto, ReleaseShortCircuitAccessRequestProto,
    ShortCircuitShmRequestProto,
};
use cairn_wire::proto::{common, datanode, datanodelifeline, hdfs, namenode};
use cairn_wire::transfer;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, skip_field};
use prost::{DecodeError, Message};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Longer than any server keeps a caller waiting.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls or edits of one input.
const STEPS_MAX: usize = 16;

type Methods = &'static [&'static str];

const OF_NAME_NODE: [(&str, Methods); 11] = [
    ("org.apache.hadoop.hdfs.protocol.ClientProtocol", hdfs::CLIENT_NAMENODE_PROTOCOL_METHODS),
    (
        "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol",
        datanode::DATANODE_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol",
        datanodelifeline::DATANODE_LIFELINE_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol",
        namenode::NAMENODE_PROTOCOL_SERVICE_METHODS,
    ),
    ("org.apache.hadoop.ha.HAServiceProtocol", common::HA_SERVICE_PROTOCOL_SERVICE_METHODS),
    (
        "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol",
        hdfs::RECONFIGURATION_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.tools.GetUserMappingsProtocol",
        common::GET_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.security.RefreshUserMappingsProtocol",
        common::REFRESH_USER_MAPPINGS_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol",
        common::REFRESH_AUTHORIZATION_POLICY_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.ipc.RefreshCallQueueProtocol",
        common::REFRESH_CALL_QUEUE_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.ipc.GenericRefreshProtocol",
        common::GENERIC_REFRESH_PROTOCOL_SERVICE_METHODS,
    ),
];

const OF_DATA_NODE: [(&str, Methods); 3] = [
    (
        "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol",
        hdfs::CLIENT_DATANODE_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol",
        hdfs::INTER_DATANODE_PROTOCOL_SERVICE_METHODS,
    ),
    (
        "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol",
        hdfs::RECONFIGURATION_PROTOCOL_SERVICE_METHODS,
    ),
];

/// A request as it is, or an answer of which only the form is looked at.
#[derive(Clone, Debug, Default)]
struct Raw(Vec<u8>);

impl Message for Raw {
    fn encode_raw(&self, out: &mut impl BufMut) {
        out.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        input: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, input, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Panics of all threads so far.
static PANICS: AtomicUsize = AtomicUsize::new(0);

struct Servers {
    runtime: Runtime,
    namenode: RunningNameNode,
    datanode: Mutex<RunningDataNode>,
    clients: Vec<RpcClient>,
    /// The folder of a NameNode that has some files, and is not running.
    image: PathBuf,
    dir: TempDir,
}

static SERVERS: LazyLock<Servers> = LazyLock::new(Servers::start);

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A folder that needs no disk, where there is one.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder")
}

fn name_config(dir: &Path) -> NameNodeConfig {
    NameNodeConfig {
        name_dir: dir.to_path_buf(),
        format_if_empty: true,
        rpc_addr: any_port(),
        http_addr: Some(any_port()),
        durability: Durability::PageCache,
        store_cache_len: 16 << 20,
        min_block_len: 1024,
        superuser: Some("root".into()),
        safe_mode_extension: Duration::ZERO,
        order_hold: Duration::ZERO,
        ..NameNodeConfig::default()
    }
}

/// The same in every run but for the number, so that inputs can name it.
fn identity() -> Identity {
    Identity {
        namespace_id: 1,
        cluster_id: "CID-1".into(),
        block_pool_id: "BP-1-127.0.0.1-1".into(),
        created_ms: 1,
    }
}

fn client(addr: SocketAddr, protocol: &'static str) -> RpcClient {
    let options = RpcClientOptions { call_timeout: PATIENCE, ..RpcClientOptions::default() };
    RpcClient::new(addr, protocol, "root", options)
}

impl Servers {
    fn start() -> Servers {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            told(info);
        }));
        let runtime = Runtime::new().expect("a runtime");
        let dir = folder();
        let (name, image) = (dir.path().join("name"), dir.path().join("image"));
        let namenode = runtime.block_on(async {
            let first = NameNode::start(name_config(&name)).await.expect("a NameNode");
            first.shutdown().await;
            let version = name.join("VERSION");
            let own = Identity::read(&version).expect("the VERSION file").expect("an identity");
            // The log has this number.
            let named = Identity { namespace_id: own.namespace_id, ..identity() };
            named.write(&version).expect("the VERSION file");
            let second = NameNode::start(name_config(&name)).await.expect("a NameNode");
            let files = client(second.rpc_addr, OF_NAME_NODE[0].0);
            for path in ["/a/b", "/a/c", "/d"] {
                let permission = hdfs::FsPermissionProto { perm: 0o755 };
                let request = hdfs::MkdirsRequestProto {
                    src: path.into(),
                    masked: permission,
                    create_parent: true,
                    ..Default::default()
                };
                let _: Raw = files.call("mkdirs", &request).await.expect("a folder");
            }
            second.shutdown().await;
            copy(&name, &image);
            NameNode::start(name_config(&name)).await.expect("a NameNode")
        });
        let datanode = runtime.block_on(data_node(dir.path(), &namenode));
        let clients =
            OF_NAME_NODE.iter().map(|(name, _)| client(namenode.rpc_addr, name)).collect();
        Servers { runtime, namenode, datanode: Mutex::new(datanode), clients, image, dir }
    }

    /// The DataNode, started again if it was shut down, as it may be told.
    fn data_node(&self) -> (SocketAddr, SocketAddr, SocketAddr) {
        let mut node = self.datanode.lock().expect("the DataNode");
        if node.was_told_to_stop() {
            *node = self.runtime.block_on(data_node(self.dir.path(), &self.namenode));
        }
        (node.xfer_addr(), node.ipc_addr(), node.http_addr().expect("its pages"))
    }
}

async fn data_node(dir: &Path, namenode: &RunningNameNode) -> RunningDataNode {
    let data = dir.join("data");
    fs::create_dir_all(&data).expect("a folder");
    let config = || DataNodeConfig {
        data_dirs: vec![data.clone().into()],
        name_nodes: vec![namenode.rpc_addr.to_string()],
        xfer_addr: any_port(),
        ipc_addr: any_port(),
        http_addr: Some(any_port()),
        user: "root".into(),
        durability: cairn_datanode::Durability::PageCache,
        read_timeout: Duration::from_secs(2),
        write_timeout: Duration::from_secs(2),
        heartbeat_interval: Duration::from_secs(1),
        ..DataNodeConfig::default()
    };
    // What it was before may not have given its folder up yet.
    for _ in 0..100 {
        if let Ok(node) = DataNode::start(config()).await {
            return node;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    DataNode::start(config()).await.expect("a DataNode")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// Fails when anything has panicked since.
fn check_panics() {
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a server has panicked");
}

/// Takes `len` bytes, or those that are left.
fn take<'a>(data: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = data.split_at(len.min(data.len()));
    *data = rest;
    taken
}

/// The pieces of an input: two bytes that choose, the length of what follows, little endian, and so many bytes.
fn pieces(mut data: &[u8]) -> Vec<(u8, u8, &[u8])> {
    let mut pieces = Vec::new();
    while let [first, second, low, high, rest @ ..] = data
        && pieces.len() < STEPS_MAX
    {
        data = rest;
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        pieces.push((*first, *second, take(&mut data, len)));
    }
    pieces
}

/// The reverse of what an input is taken for.
pub fn piece(first: u8, second: u8, bytes: &[u8]) -> Vec<u8> {
    let [low, high] = (bytes.len() as u16).to_le_bytes();
    [&[first, second, low, high], bytes].concat()
}

async fn call(client: &RpcClient, method: &str, body: &[u8]) -> bool {
    let called = timeout(PATIENCE, client.call::<Raw, Raw>(method, &Raw(body.to_vec()))).await;
    match called.unwrap_or_else(|_| panic!("{method} is not answered")) {
        Ok(_) => true,
        Err(error) => error.remote().is_some(),
    }
}

/// The numbers of each protocol of a NameNode and each method of it, as [`namenode_call`] takes them.
pub fn name_node_methods() -> impl Iterator<Item = (u8, u8)> {
    let numbered = (0..).zip(OF_NAME_NODE);
    numbered
        .flat_map(|(protocol, (_, methods))| (0..methods.len() as u8).map(move |m| (protocol, m)))
}

/// Calls of a NameNode: each piece chooses a protocol and a method, and is the request.
pub fn namenode_call(data: &[u8]) {
    let servers = &*SERVERS;
    for (protocol, method, body) in pieces(data) {
        let protocol = usize::from(protocol) % OF_NAME_NODE.len();
        let methods = OF_NAME_NODE[protocol].1;
        let method = methods[usize::from(method) % methods.len()];
        servers.runtime.block_on(async {
            let answered = call(&servers.clients[protocol], method, body).await;
            assert!(answered, "{method}: no answer");
            if method == "setSafeMode" {
                let leave = hdfs::SetSafeModeRequestProto {
                    action: hdfs::SafeModeActionProto::SafemodeForceExit.into(),
                    ..Default::default()
                };
                assert!(call(&servers.clients[0], method, &leave.encode_to_vec()).await);
            }
        });
        check_panics();
    }
}

/// Calls of a DataNode, likewise. It may be told to stop.
pub fn datanode_call(data: &[u8]) {
    let servers = &*SERVERS;
    for (protocol, method, body) in pieces(data) {
        let (_, ipc, _) = servers.data_node();
        let (name, methods) = OF_DATA_NODE[usize::from(protocol) % OF_DATA_NODE.len()];
        let method = methods[usize::from(method) % methods.len()];
        let answered = servers.runtime.block_on(call(&client(ipc, name), method, body));
        let stops = servers.datanode.lock().expect("the DataNode").was_told_to_stop();
        assert!(answered || stops, "{method}: no answer");
        check_panics();
    }
}

fn right_block(block: &mut ExtendedBlockProto) {
    block.pool_id = identity().block_pool_id;
}

fn right_header(header: &mut BaseHeaderProto) {
    right_block(&mut header.block);
}

/// An operation on a block of this cluster, where the message can be read.
fn of_this_pool(op: u8, message: &[u8]) -> Vec<u8> {
    fn again<M: Message + Default>(message: &[u8], right: impl FnOnce(&mut M)) -> Vec<u8> {
        match M::decode(message) {
            Ok(mut decoded) => {
                right(&mut decoded);
                decoded.encode_length_delimited_to_vec()
            }
            Err(_) => Raw(message.to_vec()).encode_length_delimited_to_vec(),
        }
    }
    match op {
        80 => again(message, |op: &mut OpWriteBlockProto| right_header(&mut op.header.base_header)),
        81 => again(message, |op: &mut OpReadBlockProto| right_header(&mut op.header.base_header)),
        83 => again(message, |op: &mut OpReplaceBlockProto| right_header(&mut op.header)),
        84 => again(message, |op: &mut OpCopyBlockProto| right_header(&mut op.header)),
        85 => again(message, |op: &mut OpBlockChecksumProto| right_header(&mut op.header)),
        86 => {
            again(message, |op: &mut OpTransferBlockProto| right_header(&mut op.header.base_header))
        }
        87 => {
            again(message, |op: &mut OpRequestShortCircuitAccessProto| right_header(&mut op.header))
        }
        88 => again(message, |_: &mut ReleaseShortCircuitAccessRequestProto| ()),
        89 => again(message, |_: &mut ShortCircuitShmRequestProto| ()),
        90 => again(message, |op: &mut OpBlockGroupChecksumProto| right_header(&mut op.header)),
        _ => Raw(message.to_vec()).encode_length_delimited_to_vec(),
    }
}

/// Sends bytes, and waits until the server closes the connection.
async fn exchange(addr: SocketAddr, bytes: &[u8]) {
    let exchanged = timeout(PATIENCE, async {
        let Ok(mut stream) = TcpStream::connect(addr).await else { return };
        // Either may fail when the server has heard enough.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = [0; 4096];
        while matches!(stream.read(&mut answer).await, Ok(1..)) {}
    });
    exchanged.await.expect("the connection ends");
}

/// Operations on a DataNode's data port, in one connection: the first byte of each piece is the operation's code; the
/// piece is its message, but for the second byte's number of bytes at its end, which follow as they are.
pub fn datanode_transfer(data: &[u8]) {
    let servers = &*SERVERS;
    let (xfer, ..) = servers.data_node();
    let mut bytes = Vec::new();
    for (op, rest, piece) in pieces(data) {
        let (message, packets) = piece.split_at(piece.len().saturating_sub(rest.into()));
        bytes.extend_from_slice(&transfer::DATA_TRANSFER_VERSION.to_be_bytes());
        bytes.push(op);
        bytes.extend(of_this_pool(op, message));
        bytes.extend_from_slice(packets);
    }
    servers.runtime.block_on(exchange(xfer, &bytes));
    check_panics();
}

/// What comes to the page port of a NameNode, or of a DataNode if the first byte is odd.
pub fn http_request(data: &[u8]) {
    let servers = &*SERVERS;
    let Some((which, request)) = data.split_first() else { return };
    let name_pages = servers.namenode.http_addr.expect("its pages");
    let addr = if which & 1 == 0 { name_pages } else { servers.data_node().2 };
    servers.runtime.block_on(exchange(addr, request));
    check_panics();
}

/// An entry of the log.
pub fn log_entry(data: &[u8]) {
    if let Ok(entry) = Entry::from_bytes(data) {
        let again = Entry::from_bytes(&entry.to_bytes());
        assert_eq!(again.ok(), Some(entry));
    }
}

/// Bytes of a NameNode's folder that change before a start: the first byte of each piece chooses a file, the piece says at
/// which byte and what is there. The NameNode starts with what it had, or says why not; at the end of the log some may lack.
pub fn name_folder(data: &[u8]) {
    let servers = &*SERVERS;
    let dir = folder();
    copy(&servers.image, dir.path());
    let mut files: Vec<_> =
        fs::read_dir(dir.path()).expect("a folder").flatten().map(|e| e.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    for (file, cut, piece) in pieces(data) {
        let path = &files[usize::from(file) % files.len()];
        let Some((at, bytes)) = piece.split_first_chunk() else { continue };
        let mut content = fs::read(path).expect("a file");
        if content.is_empty() {
            continue;
        }
        let at = u32::from_le_bytes(*at) as usize % content.len();
        let end = content.len().min(at + bytes.len());
        content[at..end].copy_from_slice(&bytes[..end - at]);
        if cut == 1 {
            content.truncate(end);
        }
        fs::write(path, content).expect("a file");
    }
    let options = NamesystemOptions { superuser: "root".into(), ..NamesystemOptions::default() };
    if let Ok(opened) = Namesystem::open(dir.path(), options) {
        let root = Caller { user: "root".into(), ..Caller::system() };
        let there = ["a", "d"].map(String::from);
        let listing = opened.read(|now| query::get_listing(now, &root, "/", b"", 1000));
        if let Ok(Some(listing)) = listing {
            let names: BTreeSet<_> =
                listing.entries.iter().map(|entry| entry.inode.name.clone()).collect();
            assert!(names.is_subset(&there.into()), "{names:?}");
        }
        opened.close();
    }
    check_panics();
}
