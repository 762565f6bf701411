//! What `hdfs dfsadmin` asks of a DataNode, and of whom it takes it.

use crate::cluster::*;
use cairn_datanode::{DataNode, DataNodeConfig};
use cairn_net::rpc_client::{RpcClient, RpcClientOptions};
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{
    DeleteBlockPoolRequestProto, DeleteBlockPoolResponseProto, EvictWritersRequestProto,
    EvictWritersResponseProto, GetDatanodeInfoRequestProto, GetDatanodeInfoResponseProto,
    GetVolumeReportRequestProto, GetVolumeReportResponseProto, QueryPlanStatusRequestProto,
    QueryPlanStatusResponseProto, ShutdownDatanodeRequestProto, ShutdownDatanodeResponseProto,
    TriggerBlockReportRequestProto, TriggerBlockReportResponseProto,
};

fn client(cluster: &Cluster, user: &str) -> RpcClient {
    let protocol = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
    let addr = cluster.node(0).ipc_addr();
    RpcClient::new(addr, protocol, user, RpcClientOptions::default())
}

#[tokio::test]
async fn a_volume_report_tells_what_each_volume_holds() {
    let cluster = Cluster::start_tuned(1, |config| config.reserved_bytes = 4096).await;
    write_block(&cluster, &[0], 7, 1001, &bytes(1000)).await;
    let open = Writer::create(&cluster, &[0], 8, 1001).await;
    let report: GetVolumeReportResponseProto = client(&cluster, "hdfs")
        .call("getVolumeReport", &GetVolumeReportRequestProto {})
        .await
        .unwrap();
    let [volume] = &report.volume_info[..] else { panic!("{report:?}") };
    assert_eq!(volume.path, cluster.dir(0).display().to_string());
    // An open replica has its header of checksums and room set aside, and is not counted.
    assert_eq!((volume.num_blocks, volume.reserved_space), (1, 4096));
    assert!(volume.used_space >= 1000 + 7 + 8, "{volume:?}");
    assert!(volume.reserved_space_for_replicas > 0 && volume.free_space > 0, "{volume:?}");
    drop(open);
}

#[tokio::test]
async fn only_superusers_manage_a_datanode() {
    fn tune(config: &mut DataNodeConfig) {
        config.supergroup = "ops".into();
        config.groups.fixed =
            vec![("ann".into(), vec!["ops".into()]), ("alice".into(), vec!["staff".into()])];
    }
    let cluster = Cluster::start_tuned(1, tune).await;
    let alice = client(&cluster, "alice");
    macro_rules! refused {
        ($method:literal, $request:expr, $response:ty) => {
            let error = alice.call::<_, $response>($method, &$request).await.unwrap_err();
            assert!(error.is_remote(class::ACCESS_CONTROL), "{}: {error}", $method);
        };
    }
    let report = TriggerBlockReportRequestProto::default();
    let shutdown = ShutdownDatanodeRequestProto { for_upgrade: false };
    refused!("evictWriters", EvictWritersRequestProto {}, EvictWritersResponseProto);
    refused!("triggerBlockReport", report, TriggerBlockReportResponseProto);
    refused!("getVolumeReport", GetVolumeReportRequestProto {}, GetVolumeReportResponseProto);
    refused!("shutdownDatanode", shutdown, ShutdownDatanodeResponseProto);
    let query = QueryPlanStatusRequestProto {};
    refused!("queryDiskBalancerPlan", query, QueryPlanStatusResponseProto);
    let hdfs = client(&cluster, "hdfs");
    let off = hdfs.call::<_, QueryPlanStatusResponseProto>("queryDiskBalancerPlan", &query).await;
    let class = "org.apache.hadoop.hdfs.server.diskbalancer.DiskBalancerException";
    assert!(off.unwrap_err().is_remote(class));
    let _: GetDatanodeInfoResponseProto =
        alice.call("getDatanodeInfo", &GetDatanodeInfoRequestProto {}).await.unwrap();
    let _: EvictWritersResponseProto =
        client(&cluster, "ann").call("evictWriters", &EvictWritersRequestProto {}).await.unwrap();
}

#[tokio::test]
async fn the_block_pool_that_is_served_is_not_deleted() {
    let cluster = Cluster::start(1).await;
    write_block(&cluster, &[0], 7, 1001, &bytes(1000)).await;
    let admin = client(&cluster, "hdfs");
    let delete = async |pool: &str| {
        let request = DeleteBlockPoolRequestProto { block_pool: pool.to_string(), force: true };
        admin.call::<_, DeleteBlockPoolResponseProto>("deleteBlockPool", &request).await
    };
    assert!(delete(&block(7, 1001, 0).pool_id).await.unwrap_err().is_remote(class::IO));
    assert_eq!(cluster.files(0, 7).len(), 2);
    delete("BP-2-127.0.0.1-1").await.unwrap();
    delete("../..").await.unwrap();
    std::fs::create_dir(cluster.dir(0).join("current/BP-2-127.0.0.1-1")).unwrap();
    let refused = delete("BP-2-127.0.0.1-1").await.unwrap_err();
    assert!(refused.is_remote(class::UNSUPPORTED_OPERATION), "{refused}");
}

#[tokio::test]
async fn a_datanode_that_is_shut_down_answers_and_stops() {
    let cluster = Cluster::start(1).await;
    let admin = client(&cluster, "hdfs");
    let request = ShutdownDatanodeRequestProto { for_upgrade: false };
    let _: ShutdownDatanodeResponseProto = admin.call("shutdownDatanode", &request).await.unwrap();
    let again = admin.call::<_, ShutdownDatanodeResponseProto>("shutdownDatanode", &request).await;
    let again = again.unwrap_err();
    assert!(again.to_string().contains("Shutdown already in progress."), "{again}");
    let why = cluster.node(0).stopped().await;
    assert!(cluster.node(0).was_told_to_stop() && why.contains("hdfs"), "{why}");
}

#[tokio::test]
async fn a_policy_says_who_may_use_a_datanode() {
    fn tune(config: &mut DataNodeConfig) {
        let lists = [("client.datanode.protocol.acl", "bob staff"), ("client.protocol.acl", "")];
        let pair = |(key, text): (&str, &str)| (format!("security.{key}"), text.to_string());
        config.service_policy = Some(lists.map(pair).to_vec());
        config.groups.fixed =
            vec![("ann".into(), vec!["staff".into()]), ("carol".into(), Vec::new())];
    }
    let cluster = Cluster::start_tuned(1, tune).await;
    for user in ["ann", "bob"] {
        let _: GetDatanodeInfoResponseProto = client(&cluster, user)
            .call("getDatanodeInfo", &GetDatanodeInfoRequestProto {})
            .await
            .unwrap();
    }
    let refused = client(&cluster, "carol")
        .call::<_, GetDatanodeInfoResponseProto>("getDatanodeInfo", &GetDatanodeInfoRequestProto {})
        .await
        .unwrap_err();
    assert!(refused.is_remote(class::AUTHORIZATION), "{refused}");
    assert!(
        refused.to_string().contains("User carol (auth:SIMPLE) is not authorized"),
        "{refused}"
    );
}

#[tokio::test]
async fn no_datanode_starts_with_a_policy_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let hosts = ("security.client.datanode.protocol.hosts", "10.0.0.0/33");
    let config = DataNodeConfig {
        data_dirs: vec![dir.path().to_path_buf().into()],
        xfer_addr: any,
        ipc_addr: any,
        service_policy: Some(vec![(hosts.0.to_string(), hosts.1.to_string())]),
        ..DataNodeConfig::default()
    };
    let why = DataNode::start(config).await.err().expect("no start").to_string();
    assert_eq!(why, "the access lists of services are wrong: Value [33] not in range [0,32]");
}
