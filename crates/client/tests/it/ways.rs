//! A NameNode between the client and a cluster, which sends it ways of its own to the DataNodes: they are slow, end and
//! break off as a test wants.

use crate::cluster::*;
use cairn_client::{ClientConfig, ClientError, CreateOptions, FileBlock, FileSystem};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, respond};
use cairn_stripe::BlockId;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(60);
const POLICY: &str = "RS-3-2-1024k";

/// How a way treats what a DataNode says.
#[derive(Clone)]
struct Manners {
    delay: Duration,
    /// A connection ends after so many bytes.
    budget: usize,
    is_open: bool,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners { delay: Duration::ZERO, budget: usize::MAX, is_open: true }
    }
}

/// A way to a DataNode; its port, and how it behaves.
async fn way(to: SocketAddr) -> (u32, watch::Sender<Manners>) {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let port = listener.local_addr().unwrap().port().into();
    let (manners, seen) = watch::channel(Manners::default());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(client, to, seen.clone()));
        }
    });
    (port, manners)
}

async fn pass(client: TcpStream, to: SocketAddr, mut manners: watch::Receiver<Manners>) {
    let node = TcpStream::connect(to).await.unwrap();
    let ((mut from_client, mut to_client), (mut from_node, mut to_node)) =
        (client.into_split(), node.into_split());
    let asking = tokio::spawn(async move {
        // Either side may close at any time.
        let _ = tokio::io::copy(&mut from_client, &mut to_node).await;
    });
    let mut closing = manners.clone();
    let answering = async {
        let (mut passed, mut buf) = (0, vec![0; 64 << 10]);
        while let Ok(count @ 1..) = from_node.read(&mut buf).await {
            let now = manners.borrow_and_update().clone();
            tokio::time::sleep(now.delay).await;
            passed += count;
            if passed > now.budget || to_client.write_all(&buf[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answering => {}
        _ = closing.wait_for(|manners| !manners.is_open) => {}
    }
    asking.abort();
}

/// Changes what the NameNode says.
type Edit = Box<dyn Fn(&mut LocatedBlocksProto) + Send + Sync>;

/// The NameNode between.
struct Between {
    namenode: RpcClient,
    edit: Edit,
    /// Replicas that the client has reported to be corrupt.
    reported: Arc<AtomicU64>,
}

impl Service for Between {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let refused = |error| match error {
            RpcError::Remote(remote) => remote,
            other => RemoteException::new(class::IO, other.to_string()),
        };
        match &*call.method {
            "getBlockLocations" => {
                let request: GetBlockLocationsRequestProto = call.decode()?;
                let answer = self.namenode.call("getBlockLocations", &request).await;
                let mut answer: GetBlockLocationsResponseProto = answer.map_err(refused)?;
                answer.locations.iter_mut().for_each(&self.edit);
                respond(&answer)
            }
            "getServerDefaults" => {
                let request = GetServerDefaultsRequestProto {};
                let answer = self.namenode.call("getServerDefaults", &request).await;
                let answer: GetServerDefaultsResponseProto = answer.map_err(refused)?;
                respond(&answer)
            }
            "reportBadBlocks" => {
                let request: ReportBadBlocksRequestProto = call.decode()?;
                self.reported.fetch_add(request.blocks.len() as u64, Ordering::Relaxed);
                respond(&ReportBadBlocksResponseProto {})
            }
            other => panic!("{other}"),
        }
    }
}

/// A client that hears of a cluster's files through `edit`; with the number of replicas that it has reported.
async fn client(
    cluster: &Cluster,
    change: impl FnOnce(&mut ClientConfig),
    edit: impl Fn(&mut LocatedBlocksProto) + Send + Sync + 'static,
) -> (FileSystem, Arc<AtomicU64>) {
    let address = cluster.namenode.rpc_addr.to_string();
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
    let namenode = RpcClient::new(&address, protocol, "root", RpcClientOptions::default());
    let reported = Arc::<AtomicU64>::default();
    let between = Between { namenode, edit: Box::new(edit), reported: reported.clone() };
    let server = RpcServer::bind(any_port(), RpcServerOptions::default()).await.unwrap();
    let addr = server.local_addr();
    tokio::spawn(server.serve(Arc::new(between), std::future::pending()));
    let mut config = cluster.fs.config().clone();
    config.namenode = addr.to_string();
    change(&mut config);
    (FileSystem::new(config).unwrap(), reported)
}

/// Has all DataNodes reached over ways; these are told by the DataNodes' own ports.
async fn ways(
    cluster: &Cluster,
) -> (HashMap<u16, watch::Sender<Manners>>, impl Fn(&mut LocatedBlocksProto) + use<>) {
    let (mut ports, mut ways) = (HashMap::new(), HashMap::new());
    for node in &cluster.datanodes {
        let (port, manners) = way(node.xfer_addr()).await;
        ports.insert(u32::from(node.xfer_addr().port()), port);
        ways.insert(node.xfer_addr().port(), manners);
    }
    let edit = move |file: &mut LocatedBlocksProto| {
        for place in file.blocks.iter_mut().chain(&mut file.last_block).flat_map(|b| &mut b.locs) {
            place.id.xfer_port = ports[&place.id.xfer_port];
        }
    };
    (ways, edit)
}

/// A port at which nobody answers.
async fn nobody() -> u32 {
    TcpListener::bind(any_port()).await.unwrap().local_addr().unwrap().port().into()
}

async fn read_range(reader: &cairn_client::FileReader, at: u64, data: &[u8]) {
    let mut buf = vec![0; data.len()];
    assert_eq!(reader.read_at(at, &mut buf).await.unwrap(), buf.len());
    assert_same(&buf, data, "a range");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_datanode_is_asked_when_others_are_gone() {
    let cluster = Cluster::start(5).await;
    cluster.fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(1, 6 << 20);
    put(&cluster.fs, "/f", &data, &striped(POLICY, 4 << 20)).await.unwrap();
    let block = reported(&cluster.fs, "/f", |block| block.locations.len() == 5).await;
    let (ways, edit) = ways(&cluster).await;
    let hedge = |config: &mut ClientConfig| config.hedge_after = Duration::from_millis(50);
    let (fs, _) = client(&cluster, hedge, edit).await;
    let reader = fs.open("/f").await.unwrap();
    let way = |unit: u8| {
        let place = block.locations.iter().find(|place| place.unit.0 == unit).unwrap();
        &ways[&place.addr.xfer_port]
    };
    way(0).send_modify(|manners| manners.delay = Duration::from_millis(500));
    // It is avoided for 1, 2, 4 seconds, and then for longer than a read may take.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(8) {
        read_range(&reader, 10, &data[10..70_000]).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for unit in [1, 2] {
        way(unit).send_modify(|manners| manners.is_open = false);
    }
    read_range(&reader, 10, &data[10..70_000]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_is_read_from_its_second_datanode_when_the_first_is_gone() {
    let cluster = Cluster::start(5).await;
    cluster.fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(2, 6 << 20);
    put(&cluster.fs, "/f", &data, &striped(POLICY, 4 << 20)).await.unwrap();
    reported(&cluster.fs, "/f", |block| block.locations.len() == 5).await;
    let nobody = nobody().await;
    let edit = move |file: &mut LocatedBlocksProto| {
        let block = &mut file.blocks[0];
        // Units 0 to 2, of unit 0 a copy on a DataNode that is gone before the real one.
        let mut gone = block.locs[0].clone();
        gone.id.xfer_port = nobody;
        gone.id.datanode_uuid = "gone".to_string();
        block.locs.truncate(3);
        block.locs.insert(0, gone);
        block.storage_types.insert(0, block.storage_types[0]);
        block.storage_i_ds.insert(0, "gone".to_string());
        block.block_indices = Some(vec![0, 0, 1, 2]);
        block.block_tokens.truncate(3);
        block.block_tokens.insert(0, block.block_tokens[0].clone());
    };
    let (fs, _) = client(&cluster, |_| {}, edit).await;
    read_range(&fs.open("/f").await.unwrap(), 10, &data[10..70_000]).await;
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "in order");
}

/// As DataNodes do when their writes time out because the reader pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_off_again_and_again_end_no_read() {
    const LEN: usize = 24 << 20;
    let cluster = Cluster::start(5).await;
    cluster.fs.enable_policy(POLICY).await.unwrap();
    let data = bytes(3, LEN);
    put(&cluster.fs, "/ec", &data, &striped(POLICY, 8 << 20)).await.unwrap();
    let one = CreateOptions {
        replication: Some(1),
        block_size: Some(LEN as u64),
        ..CreateOptions::default()
    };
    put(&cluster.fs, "/f", &data, &one).await.unwrap();
    let (ways, edit) = ways(&cluster).await;
    for way in ways.values() {
        // More than a cell, and less than two.
        way.send_modify(|manners| manners.budget = 3 << 19);
    }
    let (fs, _) = client(&cluster, |_| {}, edit).await;
    for path in ["/ec", "/f"] {
        assert_same(&get(&fs, path).await.unwrap(), &data, path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_places_of_an_open_block_are_found_where_hadoop_names_it() {
    let cluster = Cluster::start(3).await;
    let data = bytes(4, 300_000);
    let mut writer = cluster.fs.create("/f", &CreateOptions::default()).await.unwrap();
    writer.write(&data).await.unwrap();
    writer.hflush().await.unwrap();
    let (nobody, is_new) = (nobody().await, AtomicBool::new(false));
    let edit = move |file: &mut LocatedBlocksProto| {
        file.blocks.clear();
        if !is_new.swap(true, Ordering::Relaxed) {
            let last = file.last_block.as_mut().unwrap();
            last.locs.iter_mut().for_each(|place| place.id.xfer_port = nobody);
        }
    };
    let (fs, _) = client(&cluster, |_| {}, edit).await;
    assert_same(&get(&fs, "/f").await.unwrap(), &data, "an open file");
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_reported_unless_all_seem_to_be_corrupt() {
    let cluster = Cluster::start(3).await;
    let data = bytes(5, 300_000);
    for copies in [3, 1] {
        let path = format!("/{copies}");
        let options = CreateOptions { replication: Some(copies), ..CreateOptions::default() };
        put(&cluster.fs, &path, &data, &options).await.unwrap();
        let is_whole = |block: &FileBlock| block.locations.len() == usize::from(copies);
        let BlockId(id) = reported(&cluster.fs, &path, is_whole).await.block.id;
        let files = cluster.block_files(id);
        files.iter().for_each(|(data, _)| flip(data, 0));
        for is_positional in [true, false] {
            let (fs, reported) = client(&cluster, |_| {}, |_| {}).await;
            let read = match is_positional {
                true => fs.open(&path).await.unwrap().read_at(0, &mut [0; 10]).await.map(|_| ()),
                false => get(&fs, &path).await.map(|_| ()),
            };
            let error = read.unwrap_err();
            assert!(matches!(error, ClientError::NoReplica { .. }), "{error}");
            let start = Instant::now();
            while copies == 1 && reported.load(Ordering::Relaxed) == 0 {
                assert!(start.elapsed() < PATIENCE, "it is reported");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let is_reported = reported.load(Ordering::Relaxed) > 0;
            assert_eq!(is_reported, copies == 1, "{copies} {is_positional}");
        }
    }
}
