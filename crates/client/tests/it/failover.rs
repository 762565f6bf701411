//! Nameservices: calls go to the NameNode that is active, and none is executed twice.

use crate::cluster::*;
use cairn_client::{ClientConfig, CreateOptions, FileSystem};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// A NameNode that is not the active one, and counts who asks.
#[derive(Default)]
struct Standby(AtomicU64);

impl Service for Standby {
    async fn call(&self, _: Call) -> Result<Vec<u8>, RemoteException> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(RemoteException::new(
            class::STANDBY,
            "Operation category READ is not supported in state standby",
        ))
    }
}

async fn standby() -> (Arc<Standby>, SocketAddr) {
    let standby = Arc::new(Standby::default());
    let server = RpcServer::bind(any_port(), RpcServerOptions::default()).await.unwrap();
    let addr = server.local_addr();
    tokio::spawn(server.serve(standby.clone(), std::future::pending()));
    (standby, addr)
}

/// A way to a NameNode that ends when it is aborted, with all that goes over it.
async fn way(to: SocketAddr) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let way = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            open.spawn(async move {
                let mut node = TcpStream::connect(to).await.unwrap();
                // Either side may close at any time.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
            });
        }
    });
    (addr, way)
}

/// A way that takes what is asked to the NameNode, and ends when that answers.
async fn way_without_answers(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let (mut from_node, mut to_node) = TcpStream::connect(to).await.unwrap().into_split();
        let (mut from_client, _to_client) = client.into_split();
        let asking =
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_node).await });
        from_node.read_u8().await.unwrap();
        asking.abort();
    });
    addr
}

fn client(cluster: &Cluster, addresses: &[SocketAddr]) -> FileSystem {
    let namenode_addresses = addresses.iter().map(SocketAddr::to_string).collect();
    let namenode = "nameservice".to_string();
    let config = ClientConfig { namenode, namenode_addresses, ..cluster.fs.config().clone() };
    FileSystem::new(config).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_to_the_namenode_that_is_active_and_follow_when_another_is() {
    let cluster = Cluster::start(1).await;
    let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
    // Bound and not listening: nobody else gets the port, and nobody can connect.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(any_port()).unwrap();
    let nobody = socket.local_addr().unwrap();
    let (standby, standby_addr) = standby().await;
    let (first_addr, first) = way(cluster.namenode.rpc_addr).await;
    let (second_addr, _second) = way(cluster.namenode.rpc_addr).await;
    let fs = client(&cluster, &[nobody, standby_addr, first_addr, second_addr]);
    let data = bytes(1, 100_000);
    put(&fs, "/f", &data, &options).await.unwrap();
    assert_eq!((fs.active_namenode(), standby.0.load(Ordering::Relaxed)), (2, 1));
    let mut writer = fs.create("/g", &options).await.unwrap();
    writer.write(&data[..1000]).await.unwrap();
    first.abort();
    writer.write(&data[1000..]).await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(fs.active_namenode(), 3);
    assert_same(&get(&fs, "/g").await.unwrap(), &data, "written while another became active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_was_lost_is_known_to_the_other_namenode() {
    let cluster = Cluster::start(1).await;
    cluster.fs.mkdirs("/d", 0o755).await.unwrap();
    let addresses =
        [way_without_answers(cluster.namenode.rpc_addr).await, cluster.namenode.rpc_addr];
    let fs = client(&cluster, &addresses);
    assert!(fs.delete("/d", false).await.unwrap(), "it was there when the call came first");
    assert_eq!(fs.active_namenode(), 1);
    assert!(!fs.delete("/d", false).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_nobody_active_calls_end_in_time_with_the_reason() {
    let cluster = Cluster::start(1).await;
    let (one, one_addr) = standby().await;
    let (other, other_addr) = standby().await;
    let mut config = client(&cluster, &[one_addr, other_addr]).config().clone();
    config.retry_for = Duration::from_millis(300);
    let error = FileSystem::new(config).unwrap().file_info("/").await.unwrap_err();
    assert!(error.to_string().contains("not supported in state standby"), "{error}");
    let asked = [one, other].map(|standby| standby.0.load(Ordering::Relaxed));
    assert!(asked.iter().all(|asked| (1..20).contains(asked)), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namenode_that_hangs_is_left_by_the_call_that_has_waited_for_it() {
    let cluster = Cluster::start(1).await;
    let hanging = TcpListener::bind(any_port()).await.unwrap();
    let addresses = [hanging.local_addr().unwrap(), cluster.namenode.rpc_addr];
    let mut config = client(&cluster, &addresses).config().clone();
    // No call may go on for as long as it waits for one answer.
    config.rpc_timeout = Duration::from_secs(2);
    config.retry_for = Duration::from_millis(100);
    let fs = FileSystem::new(config).unwrap();
    let calls = (0..4).map(|i| {
        let fs = fs.clone();
        tokio::spawn(async move { fs.mkdirs(&format!("/{i}"), 0o755).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().unwrap());
    }
    assert_eq!(fs.active_namenode(), 1);
}

/// No call waits for as long as one may take: the other NameNode says that it leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namenode_that_stands_still_is_not_waited_for_when_another_one_leads() {
    let cluster = Cluster::start(1).await;
    let hanging = TcpListener::bind(any_port()).await.unwrap();
    let addresses = [hanging.local_addr().unwrap(), cluster.namenode.rpc_addr];
    let fs = client(&cluster, &addresses);
    let calls = (0..4).map(|i| {
        let fs = fs.clone();
        tokio::spawn(async move { fs.mkdirs(&format!("/{i}"), 0o755).await })
    });
    let all = futures_of(calls.collect()).await;
    assert!(all.into_iter().all(|made| made.unwrap()));
    assert_eq!(fs.active_namenode(), 1);
}

async fn futures_of<T>(calls: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut all = Vec::new();
    for call in calls {
        // Far less than a call may take.
        let ended = tokio::time::timeout(Duration::from_secs(20), call).await;
        all.push(ended.expect("it waits for who stands still").unwrap());
    }
    all
}

/// A NameNode that takes a second for each call, but says at once what it is.
struct Slow(Arc<AtomicU64>);

impl Service for Slow {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        if call.method != "getHAServiceState" {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Err(RemoteException::new(class::FILE_NOT_FOUND, "it has nothing"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namenode_that_is_only_slow_is_waited_for() {
    let cluster = Cluster::start(1).await;
    let answered = Arc::new(AtomicU64::new(0));
    let server = RpcServer::bind(any_port(), RpcServerOptions::default()).await.unwrap();
    let slow = server.local_addr();
    tokio::spawn(server.serve(Arc::new(Slow(answered.clone())), std::future::pending()));
    let fs = client(&cluster, &[slow, cluster.namenode.rpc_addr]);
    let error = fs.mkdirs("/d", 0o755).await.unwrap_err();
    assert!(error.to_string().contains("it has nothing"), "{error}");
    assert_eq!((fs.active_namenode(), answered.load(Ordering::Relaxed)), (0, 1));
}
