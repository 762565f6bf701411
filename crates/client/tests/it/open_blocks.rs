//! How much of a block that is being written a reader sees, from what NameNode and DataNodes say of it.

use crate::cluster::*;
use cairn_client::{ClientConfig, ClientError, FileSystem, Result};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, respond};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Bytes of the blocks before the open one.
const CLOSED: u64 = 1000;

/// What a DataNode says of the open replica.
type Said = std::result::Result<u64, &'static str>;

/// Answers one call after the other; the last answer again and again.
struct Script<T>(Mutex<Vec<T>>);

impl<T: Clone> Script<T> {
    fn next(&self) -> T {
        let mut left = self.0.lock().unwrap();
        if left.len() > 1 { left.remove(0) } else { left[0].clone() }
    }
}

impl Service for Script<Said> {
    async fn call(&self, call: Call) -> std::result::Result<Vec<u8>, RemoteException> {
        assert_eq!(&*call.method, "getReplicaVisibleLength");
        match self.next() {
            Ok(length) => respond(&GetReplicaVisibleLengthResponseProto { length }),
            Err(class) => Err(RemoteException::new(class, "not now")),
        }
    }
}

impl Service for Script<LocatedBlocksProto> {
    async fn call(&self, call: Call) -> std::result::Result<Vec<u8>, RemoteException> {
        assert_eq!(&*call.method, "getBlockLocations");
        respond(&GetBlockLocationsResponseProto { locations: Some(self.next()) })
    }
}

async fn serve(service: impl Service) -> SocketAddr {
    let server = RpcServer::bind(any_port(), RpcServerOptions::default()).await.unwrap();
    let addr = server.local_addr();
    tokio::spawn(server.serve(std::sync::Arc::new(service), std::future::pending()));
    addr
}

/// A file whose last block is open and has `len` bytes for all that the NameNode knows.
fn file(len: u64, datanodes: &[SocketAddr]) -> LocatedBlocksProto {
    let info = |addr: &SocketAddr| DatanodeInfoProto {
        id: DatanodeIDProto {
            ip_addr: addr.ip().to_string(),
            datanode_uuid: addr.port().to_string(),
            ipc_port: addr.port().into(),
            ..Default::default()
        },
        ..Default::default()
    };
    let last = LocatedBlockProto {
        b: ExtendedBlockProto {
            pool_id: "BP-1".to_string(),
            block_id: 1 << 30,
            generation_stamp: 1001,
            num_bytes: Some(len),
        },
        offset: CLOSED,
        locs: datanodes.iter().map(info).collect(),
        ..Default::default()
    };
    LocatedBlocksProto {
        file_length: CLOSED,
        under_construction: true,
        last_block: Some(last),
        is_last_block_complete: false,
        ..Default::default()
    }
}

/// The length that a reader finds after the NameNode has given these answers.
async fn len_of(answers: Vec<LocatedBlocksProto>, timeout: Duration) -> Result<u64> {
    let config = ClientConfig {
        namenode: serve(Script(Mutex::new(answers))).await.to_string(),
        socket_timeout: timeout,
        ..ClientConfig::default()
    };
    let fs = FileSystem::new(config)?;
    Ok(fs.open("/f").await?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_block_is_empty_only_if_no_datanode_has_it() {
    const TIMEOUT: Duration = Duration::from_secs(60);
    const GONE: &str = class::REPLICA_NOT_FOUND;
    /// What Hadoop's DataNode says of a replica that waits to be recovered.
    const WAITS: u64 = -1i64 as u64;
    let cases: [(&[&[Said]], Option<u64>); 10] = [
        (&[&[Ok(7)]], Some(7)),
        (&[&[Err(GONE)], &[Err(GONE)]], Some(0)),
        (&[&[Err(GONE)], &[Ok(7)]], Some(7)),
        (&[&[Err(class::IO)], &[Ok(7)]], Some(7)),
        // All have been started anew, here and in Hadoop.
        (&[&[Err(class::IO)], &[Err(class::IO)]], None),
        (&[&[Ok(WAITS)], &[Ok(WAITS)]], None),
        (&[&[Ok(WAITS)], &[Ok(7)]], Some(7)),
        // One of them may have it.
        (&[&[Err(class::IO)], &[Err(GONE)]], None),
        (&[&[Err(class::RETRIABLE), Ok(7)], &[Err(GONE)]], Some(7)),
        (&[&[Err(class::RETRIABLE), Err(GONE)], &[Err(GONE)]], Some(0)),
    ];
    for (said, want) in cases {
        let mut datanodes = Vec::new();
        for said in said {
            datanodes.push(serve(Script(Mutex::new(said.to_vec()))).await);
        }
        match (len_of(vec![file(0, &datanodes)], TIMEOUT).await, want) {
            (Ok(len), Some(want)) => assert_eq!(len, CLOSED + want, "{said:?}"),
            (Err(ClientError::UnknownLength { .. }), None) => {}
            (found, _) => panic!("{said:?}: {found:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_datanode_that_never_gets_ready_is_given_up() {
    let starting = serve(Script(Mutex::new(vec![Said::Err(class::RETRIABLE)]))).await;
    let found = len_of(vec![file(0, &[starting])], Duration::from_secs(2)).await;
    assert!(matches!(found, Err(ClientError::UnknownLength { .. })), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_locations_of_a_block_that_is_appended_to_are_waited_for() {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let datanode = serve(Script(Mutex::new(vec![Said::Ok(700)]))).await;
    let answers = vec![file(500, &[]), file(500, &[datanode])];
    assert_eq!(len_of(answers, TIMEOUT).await.unwrap(), CLOSED + 700);
    assert_eq!(len_of(vec![file(0, &[])], TIMEOUT).await.unwrap(), CLOSED, "nothing was written");
    let found = len_of(vec![file(500, &[])], TIMEOUT).await;
    assert!(matches!(found, Err(ClientError::UnknownLength { .. })), "{found:?}");
}
