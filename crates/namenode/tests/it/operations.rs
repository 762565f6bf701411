//! Operations that are under way: what the page tells of them, and calls that come again meanwhile.

use crate::cluster::{CLIENT, Client, SUPERUSER, page, start};
use cairn_namenode::RunningNameNode;
use cairn_net::rpc_client::{CallNumber, RpcClient, RpcClientOptions};
use cairn_wire::proto::hdfs as pb;
use serde_json::Value;

/// What operations are called and wait for, those that were begun first.
async fn under_way(node: &RunningNameNode) -> Vec<(String, String)> {
    let told: Value = serde_json::from_str(&page(node, "/operations").await).unwrap();
    let operations = told["operations"].as_array().unwrap();
    assert_eq!(told["count"], operations.len());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    operations.iter().map(|one| (text(&one["operation"]), text(&one["waitsFor"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_comes_again_meanwhile_waits_for_the_first_one() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _datanodes) = start(dir.path(), 1).await;
    let client = Client::new(&node, CLIENT, SUPERUSER);
    client.create("/a", "me").await;
    let located = client.add_block("/a", "me", None).await;
    let request = pb::CompleteRequestProto {
        src: "/a".to_string(),
        client_name: "me".to_string(),
        last: Some(pb::ExtendedBlockProto { num_bytes: Some(10), ..located.b }),
        file_id: None,
    };
    let connect = || {
        let (addr, options) = (node.rpc_addr.to_string(), RpcClientOptions::default());
        RpcClient::with_client_id(addr, CLIENT, SUPERUSER, options, [9; 16])
    };
    let (first, again) = (connect(), connect());
    let both = [("complete", "blocks"), ("complete", "same call")];
    // Nobody reports the block: the file is not closed, and each try waits a moment for that.
    for call_id in 0..200 {
        let call = |rpc: &RpcClient, retry_count| {
            let (rpc, request, number) =
                (rpc.clone(), request.clone(), CallNumber { call_id, retry_count });
            tokio::spawn(async move {
                let answer = rpc.call_numbered("complete", &request, number).await;
                let answer: pb::CompleteResponseProto = answer.unwrap();
                answer.result
            })
        };
        let calls = [call(&first, 0), call(&again, 1)];
        let mut is_seen = false;
        while !is_seen && !calls.iter().all(|call| call.is_finished()) {
            let told = under_way(&node).await;
            is_seen = told.iter().map(|(name, waits)| (name.as_str(), waits.as_str())).eq(both);
        }
        for call in calls {
            assert!(!call.await.unwrap(), "there is no replica");
        }
        if is_seen {
            assert!(under_way(&node).await.is_empty(), "all are over");
            return;
        }
    }
    panic!("the page has never told of both");
}
