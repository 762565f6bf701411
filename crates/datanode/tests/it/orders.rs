//! Work that a DataNode gets without waiting for its next heartbeat.

use crate::cluster::*;
use crate::failed_work::copy_order;
use std::time::Duration;

/// Longer than any of these tests may take.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_does_not_wait_for_a_heartbeat() {
    let mut cluster = Cluster::start_tuned(2, |config| config.heartbeat_interval = NEVER).await;
    let before = cluster.name_node.record.lock().unwrap().awaited;
    assert_eq!(before, 0, "a NameNode that does not offer it is not asked");
    cluster.name_node.record.lock().unwrap().orders = Some(1);
    cluster.kill_node(0);
    cluster.start_node(0).await;
    write_block(&cluster, &[0], 7, 1001, &bytes(5000)).await;
    cluster.wait("a call that waits", |r| r.awaited > 0).await;
    cluster.send_command(0, copy_order(7, vec![cluster.info(1)]));
    cluster.name_node.record.lock().unwrap().orders = Some(2);
    let target = cluster.uuid(1);
    let is_there = |r: &mut Record| {
        r.events.iter().any(|(uuid, event)| *uuid == target && event.block.block_id == 7)
    };
    cluster.wait("the copy", is_there).await;
}
