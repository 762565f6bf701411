//! Members say whether they would serve well if they led, and whoever leads whether it does.

use super::*;

const MEMBERS: &str = "cairn.MembersProtocol";

impl Three {
    /// Until the member `at` says of `whom` that it is ready, or that it is not.
    pub(super) async fn wait_for_ready(&self, at: usize, whom: usize, is_ready: bool) {
        let begun = Instant::now();
        let client = Client::at(&self.members[NAMES[at]].rpc, MEMBERS, "hdfs");
        loop {
            let told: pb::GetMembersResponseProto =
                client.call("getMembers", &pb::GetMembersRequestProto {}).await.unwrap();
            let row = told.members.iter().find(|row| row.name == NAMES[whom]);
            if row.is_some_and(|row| row.ready == is_ready) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{at} says of {whom}: {row:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// It was given the lead before DataNodes had told it what they have.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_says_that_it_is_ready_once_it_knows_where_blocks_are() {
    let mut three = Three::new().await;
    let leader = three.begin().await;
    let (next, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let datanode = ToAll::start(&three, 1).await;
    let client = three.client(leader);
    let mut replicas = Vec::new();
    for path in ["/a", "/b"] {
        client.create(path, "writer").await;
        let block = client.add_block(path, "writer", None).await.b;
        let replica = replica_of(&block, 77);
        datanode.received([leader, third].into_iter(), &replica).await;
        let last = pb::ExtendedBlockProto { num_bytes: Some(77), ..block };
        assert!(client.complete(path, "writer", Some(last)).await, "{path}");
        replicas.push(replica);
    }
    // Whoever follows takes what it has heard for enough by how much it is, and none is too little.
    three.wait_for_ready(next, next, false).await;
    three.wait_for_ready(third, third, true).await;
    let running = three.running[leader].as_ref().unwrap();
    running.hand_over(Some(NAMES[next])).await.unwrap();
    three.wait_for_standing(next, Standing::leads).await;
    assert_eq!(three.leader().await, next);
    assert!(three.client(next).safe_mode(pb::SafeModeActionProto::SafemodeGet).await);
    three.wait_for_ready(next, next, false).await;
    for replica in &replicas {
        datanode.received([next].into_iter(), replica).await;
    }
    for at in [next, third] {
        three.wait_for_ready(at, next, true).await;
    }
    assert!(!three.client(next).safe_mode(pb::SafeModeActionProto::SafemodeGet).await);
    three.stop_all().await;
}
