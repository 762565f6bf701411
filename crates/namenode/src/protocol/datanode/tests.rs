//! DataNodes that come in, report, and get their commands, over real sockets.

use std::time::Duration;

use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_redundancy::{
    BlockRecovery, BlockRef, Command, EarlierPlaces, Layout, Reconstruction, Registration, Transfer,
};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, UnitIndex};
use cairn_wire::exception::class;
use cairn_wire::proto::{datanode as dn, hdfs as pb};
use tempfile::TempDir;

use super::commands;
use crate::{NameNode, NameNodeConfig, RunningNameNode};

const PROTOCOL: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

struct Server {
    _dir: TempDir,
    running: RunningNameNode,
    client: RpcClient,
}

async fn start(change: impl FnOnce(&mut NameNodeConfig)) -> Server {
    let dir = tempfile::tempdir().unwrap();
    let mut config = NameNodeConfig {
        superuser: Some("hdfs".to_string()),
        heartbeat_interval: Duration::from_millis(200),
        ..NameNodeConfig::of_test(dir.path())
    };
    change(&mut config);
    let running = NameNode::start(config).await.unwrap();
    let client = RpcClient::new(running.rpc_addr, PROTOCOL, "hdfs", RpcClientOptions::default());
    Server { _dir: dir, running, client }
}

impl Server {
    async fn call<A: prost::Message, B: prost::Message + Default>(
        &self,
        method: &str,
        request: A,
    ) -> Result<B, RpcError> {
        self.client.call(method, &request).await
    }

    async fn version(&self) -> pb::NamespaceInfoProto {
        let answer: pb::VersionResponseProto =
            self.call("versionRequest", pb::VersionRequestProto {}).await.unwrap();
        answer.info
    }

    async fn registration(&self, number: u32) -> dn::DatanodeRegistrationProto {
        dn::DatanodeRegistrationProto {
            datanode_id: pb::DatanodeIDProto {
                ip_addr: "0.0.0.0".to_string(),
                host_name: format!("dn{number}"),
                datanode_uuid: format!("uuid-{number}"),
                xfer_port: 10_000 + number,
                info_port: 1,
                ipc_port: 2,
                info_secure_port: None,
            },
            storage_info: pb::StorageInfoProto {
                layout_version: -57_i32 as u32,
                ..self.version().await.storage_info
            },
            keys: pb::ExportedBlockKeysProto::default(),
            software_version: "3.5.0".to_string(),
            process_number: None,
        }
    }

    async fn register(
        &self,
        registration: &dn::DatanodeRegistrationProto,
    ) -> Result<dn::DatanodeRegistrationProto, RpcError> {
        let request = dn::RegisterDatanodeRequestProto { registration: registration.clone() };
        let answer: dn::RegisterDatanodeResponseProto =
            self.call("registerDatanode", request).await?;
        Ok(answer.registration)
    }

    async fn heartbeat(
        &self,
        registration: &dn::DatanodeRegistrationProto,
    ) -> dn::HeartbeatResponseProto {
        let storage_uuid = format!("DS-{}", registration.datanode_id.datanode_uuid);
        let request = dn::HeartbeatRequestProto {
            registration: registration.clone(),
            reports: vec![pb::StorageReportProto {
                storage_uuid: storage_uuid.clone(),
                capacity: Some(1 << 40),
                dfs_used: Some(1 << 30),
                remaining: Some(1 << 39),
                storage: Some(pb::DatanodeStorageProto {
                    storage_uuid,
                    state: Some(0),
                    storage_type: Some(pb::StorageTypeProto::Ssd as i32),
                }),
                ..Default::default()
            }],
            request_full_block_report_lease: Some(true),
            xceiver_count: Some(3),
            ..Default::default()
        };
        self.call("sendHeartbeat", request).await.unwrap()
    }

    /// One finalized replica in a full report. `lease` 0 asks for no check.
    async fn block_report(
        &self,
        registration: &dn::DatanodeRegistrationProto,
        lease: u64,
    ) -> Result<dn::BlockReportResponseProto, RpcError> {
        let request = dn::BlockReportRequestProto {
            registration: registration.clone(),
            block_pool_id: String::new(),
            reports: vec![dn::StorageBlockReportProto {
                storage: pb::DatanodeStorageProto {
                    storage_uuid: format!("DS-{}", registration.datanode_id.datanode_uuid),
                    ..Default::default()
                },
                blocks: Vec::new(),
                number_of_blocks: Some(1),
                // Block 5 (zigzag 10), 100 bytes, stamp 64, finalized.
                blocks_buffers: vec![vec![10, 100], vec![64, 0]],
            }],
            context: Some(dn::BlockReportContextProto {
                total_rpcs: 1,
                cur_rpc: 0,
                id: 0x77,
                lease_id: Some(lease),
            }),
        };
        self.call("blockReport", request).await
    }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, RpcError>) -> (String, String) {
    match answer {
        Err(RpcError::Remote(e)) => (e.class.clone(), e.first_line().to_string()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datanode_registers_reports_and_is_told_to_delete() {
    let server = start(|_| {}).await;
    let info = server.version().await;
    assert_eq!(info.storage_info.layout_version as i32, -67);
    assert_eq!((info.software_version.as_str(), info.capabilities), ("3.5.0", Some(1)));
    assert!(info.block_pool_id.starts_with("BP-"), "{}", info.block_pool_id);

    let registration = server.registration(1).await;
    let before = server.heartbeat(&registration).await;
    let kind = dn::DatanodeCommandProtoType::RegisterCommand as i32;
    assert_eq!(before.cmds.iter().map(|cmd| cmd.cmd_type).collect::<Vec<_>>(), [kind]);
    let early = server.block_report(&registration, 0).await.unwrap();
    assert_eq!(early.cmd.map(|cmd| cmd.cmd_type), Some(kind));

    let registration = server.register(&registration).await.unwrap();
    assert_eq!(registration.datanode_id.ip_addr, "127.0.0.1", "as seen by the NameNode");
    let answer = server.heartbeat(&registration).await;
    assert_eq!(answer.ha_status.state, pb::NNHAStatusHeartbeatProtoState::Active as i32);
    let lease = answer.full_block_report_lease_id();
    assert_ne!(lease, 0);
    {
        let cluster = server.running.node().cluster();
        let node = cluster.node_by_uuid("uuid-1").unwrap();
        assert_eq!((node.usage.capacity, node.usage.remaining), (1 << 40, 1 << 39));
        assert_eq!(node.usage.non_dfs_used, (1 << 40) - (1 << 39) - (1 << 30));
        assert_eq!((node.rack.as_str(), node.xceivers), ("/default-rack", 3));
    }
    let (java, text) = refusal(server.block_report(&registration, lease + 1).await);
    assert_eq!(java, class::BLOCK_REPORT_LEASE_INVALID);
    let want = format!("Block report 0x77 was rejected as lease 0x{:x} is invalid", lease + 1);
    assert_eq!(text, want);
    server.block_report(&registration, lease).await.unwrap();
    let cmds = server.heartbeat(&registration).await.cmds;
    let command = cmds[0].blk_cmd.as_ref().unwrap();
    assert_eq!(command.action, dn::BlockCommandProtoAction::Invalidate as i32);
    assert_eq!(command.block_pool_id, info.block_pool_id);
    let named: Vec<_> = command.blocks.iter().map(|b| (b.block_id, b.gen_stamp)).collect();
    assert_eq!(named, [(5, 64)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let server = start(|_| {}).await;
    let good = server.registration(1).await;
    let mut other = good.clone();
    other.storage_info.cluster_id = "CID-other".to_string();
    let (java, text) = refusal(server.register(&other).await);
    assert_eq!(java, class::UNREGISTERED_NODE);
    assert!(text.starts_with("Unregistered server: DatanodeRegistration("), "{text}");
    let old = dn::DatanodeRegistrationProto { software_version: "2.0.9".into(), ..good.clone() };
    assert_eq!(refusal(server.register(&old).await).0, class::INCORRECT_VERSION);
    let mut nameless = good.clone();
    nameless.datanode_id.datanode_uuid = String::new();
    assert_eq!(refusal(server.register(&nameless).await).0, class::IO);
    assert_eq!(server.running.node().cluster().live_count(), 0);
    let unknown: Result<dn::RegisterDatanodeResponseProto, _> =
        server.call("no such method", pb::VersionRequestProto {}).await;
    assert_eq!(refusal(unknown).0, class::RPC_NO_SUCH_METHOD);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_hosts_may_serve() {
    let lists = tempfile::tempdir().unwrap();
    let hosts = lists.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1:10001\n").unwrap();
    let server = start(|config| config.hosts_file = Some(hosts)).await;
    server.register(&server.registration(1).await).await.unwrap();
    let (java, text) = refusal(server.register(&server.registration(2).await).await);
    assert_eq!(java, class::DISALLOWED_DATANODE);
    assert!(text.contains("not in the include-list"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_carry_what_hadoops_datanodes_read() {
    let server = start(|_| {}).await;
    for number in 0..3 {
        let registration = server.registration(number).await;
        let registration = server.register(&registration).await.unwrap();
        server.heartbeat(&registration).await;
    }
    let group = BlockId(i64::MIN + 16);
    let block = BlockRef { id: group, gs: GenerationStamp(1001), len: 9000 };
    let layout = Layout::Striped { policy: PolicyId(2), k: 3, m: 2, cell_len: 1 << 20 };
    let protos = server.running.node().with_cluster(|cluster, lookup| {
        let storage = |number: u32| {
            let uuid = format!("DS-uuid-{number}");
            cluster.storage_by_uuid(&uuid).unwrap().handle
        };
        let (new_gs, locations) = (GenerationStamp(1002), vec![storage(0), storage(1)]);
        let (units, away) = (vec![UnitIndex(0), UnitIndex(4)], vec![UnitIndex(2)]);
        let earlier = EarlierPlaces::default();
        let recovery = BlockRecovery { block, new_gs, layout, locations, units, away, earlier };
        let pairs = |list: &[(u32, u8)]| {
            list.iter().map(|(node, unit)| (storage(*node), UnitIndex(*unit))).collect()
        };
        let work = vec![
            Command::Transfer(vec![Transfer {
                block,
                slot: (group, UnitIndex(0)),
                targets: vec![storage(1), storage(2)],
            }]),
            Command::Recover(vec![recovery]),
            Command::Reconstruct(vec![Reconstruction {
                group: block,
                layout,
                sources: pairs(&[(0, 3), (1, 1)]),
                targets: pairs(&[(2, 2)]),
                excluded_units: vec![UnitIndex(4)],
                is_urgent: true,
            }]),
            Command::BalancerBandwidth(77),
        ];
        commands::encode(cluster, lookup, "BP-1", &work).unwrap()
    });
    let uuids = |infos: &[pb::DatanodeInfoProto]| -> Vec<String> {
        infos.iter().map(|info| info.id.datanode_uuid.clone()).collect()
    };
    let transfer = protos[0].blk_cmd.as_ref().unwrap();
    assert_eq!(uuids(&transfer.targets[0].datanodes), ["uuid-1", "uuid-2"]);
    assert_eq!(transfer.target_storage_uuids[0].storage_uuids, ["DS-uuid-1", "DS-uuid-2"]);
    assert_eq!(transfer.target_storage_types[0].storage_types, [2, 2]);
    let recovery = &protos[1].recovery_cmd.as_ref().unwrap().blocks[0];
    assert_eq!((recovery.new_gen_stamp, recovery.block.b.block_id), (1002, group.0 as u64));
    assert_eq!(recovery.block_indices.as_deref(), Some(&[0, 4][..]));
    assert_eq!(recovery.away_indices.as_deref(), Some(&[2][..]));
    assert_eq!(recovery.ec_policy.as_ref().unwrap().name(), "RS-3-2-1024k");
    assert_eq!(uuids(&recovery.block.locs), ["uuid-0", "uuid-1"]);
    let work = protos[2].blk_ec_reconstruction_cmd.as_ref().unwrap();
    let work = &work.block_ec_reconstructioninfo[0];
    assert_eq!((work.block.pool_id.as_str(), work.block.num_bytes()), ("BP-1", 9000));
    assert_eq!(work.live_block_indices, [3, 1]);
    assert_eq!(work.exclude_reconstructed_indices.as_deref(), Some(&[4][..]));
    assert_eq!(uuids(&work.target_dn_infos.datanodes), ["uuid-2"]);
    assert_eq!(work.ec_policy.cell_size, Some(1 << 20));
    assert_eq!(protos[3].balancer_cmd.as_ref().unwrap().bandwidth, 77);
}

/// A list of replicas that no file has.
fn unwanted(storage_uuid: &str, count: i64) -> dn::StorageBlockReportProto {
    dn::StorageBlockReportProto {
        storage: pb::DatanodeStorageProto {
            storage_uuid: storage_uuid.to_string(),
            ..Default::default()
        },
        // Three numbers for each finalized replica, after how many there are of these and of open ones.
        blocks: [count as u64, 0]
            .into_iter()
            .chain((1..=count as u64).flat_map(|id| [id, 100, 64]))
            .chain([u64::MAX; 3])
            .collect(),
        number_of_blocks: None,
        blocks_buffers: Vec::new(),
    }
}

/// What is left of a report when its DataNode registers anew is older than what that tells next.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_ends_with_all_its_storages_when_its_datanode_registers() {
    let server = start(|_| {}).await;
    let registration = server.registration(1).await;
    let registration = server.register(&registration).await.unwrap();
    let request = dn::BlockReportRequestProto {
        registration: registration.clone(),
        block_pool_id: String::new(),
        reports: vec![unwanted("DS-a", 300_000), unwanted("DS-b", 1)],
        context: None,
    };
    let client = server.client.clone();
    let call = async move { client.call("blockReport", &request).await };
    let report = tokio::spawn(call);
    let node = server.running.node();
    let begun = || node.cluster().storage_by_uuid("DS-a").is_some();
    while !begun() && !report.is_finished() {
        tokio::task::yield_now().await;
    }
    node.with_cluster(|cluster, lookup| {
        assert!(!cluster.storage_by_uuid("DS-a").unwrap().reported, "it is still being taken");
        let known = cluster.node_by_uuid("uuid-1").unwrap();
        let again = Registration {
            uuid: known.uuid.clone(),
            address: known.address.clone(),
            rack: known.rack.clone(),
            software_version: known.software_version.clone(),
            ..Registration::default()
        };
        cluster.register(lookup, again, node.now()).unwrap();
    });
    let answer: Result<dn::BlockReportResponseProto, _> = report.await.unwrap();
    assert_eq!(refusal(answer).0, class::BLOCK_REPORT_LEASE_INVALID);
    assert!(node.cluster().storage_by_uuid("DS-b").is_none(), "its list is not looked at");
}

/// A call that waits for work, in a task of its own.
fn awaiting(
    server: &Server,
    registration: &dn::DatanodeRegistrationProto,
    seen: u64,
) -> tokio::task::JoinHandle<Result<dn::AwaitOrdersResponseProto, RpcError>> {
    let (client, registration) = (server.client.clone(), registration.clone());
    let request = dn::AwaitOrdersRequestProto { registration, seen };
    tokio::spawn(async move { client.call("awaitOrders", &request).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_work_ends_when_there_is_some() {
    let server = start(|_| {}).await;
    let registration = server.registration(1).await;
    let stranger = awaiting(&server, &registration, 0).await.unwrap();
    assert_eq!(refusal(stranger).0, class::UNREGISTERED_NODE);
    let registration = server.register(&registration).await.unwrap();
    let told = server.heartbeat(&registration).await.orders.unwrap();
    let waiting = awaiting(&server, &registration, told);
    // Other calls of the connection are answered meanwhile.
    assert_eq!(server.heartbeat(&registration).await.orders, Some(told));
    assert!(!waiting.is_finished());
    server.running.node().with_cluster(|cluster, _| cluster.set_balancer_bandwidth(1 << 20));
    let orders = waiting.await.unwrap().unwrap().orders;
    assert_ne!(orders, told);
    let missed = awaiting(&server, &registration, told).await.unwrap();
    assert_eq!(missed.unwrap().orders, orders, "it is answered at once");
    let answer = server.heartbeat(&registration).await;
    assert_eq!((answer.orders, answer.cmds.len()), (Some(orders), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_for_work_are_held_for_a_while_only_and_not_when_it_stops() {
    let server = start(|config| config.order_hold = Duration::from_millis(50)).await;
    let registration = server.registration(1).await;
    let registration = server.register(&registration).await.unwrap();
    let told = server.heartbeat(&registration).await.orders.unwrap();
    let answer = awaiting(&server, &registration, told).await.unwrap().unwrap();
    assert_eq!(answer.orders, told);

    let server = start(|_| {}).await;
    let registration = server.registration(1).await;
    let registration = server.register(&registration).await.unwrap();
    let told = server.heartbeat(&registration).await.orders.unwrap();
    let waiting = awaiting(&server, &registration, told);
    // An answer to a later call says that this one is being held.
    server.heartbeat(&registration).await;
    let stopping = std::time::Instant::now();
    server.running.shutdown().await;
    assert!(stopping.elapsed() < Duration::from_secs(20), "{:?}", stopping.elapsed());
    waiting.abort();

    let server = start(|config| config.order_hold = Duration::ZERO).await;
    let registration = server.registration(1).await;
    let registration = server.register(&registration).await.unwrap();
    assert_eq!(server.heartbeat(&registration).await.orders, None, "nobody is to wait");
}
