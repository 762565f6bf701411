//! A DataNode that waits for work: its call is held until work is queued for it, so that nothing waits for
//! its next heartbeat, which still is what brings the work.
//!
//! The call is Cairn's own. Only DataNodes that are told of it make it: the answer to a heartbeat names how
//! often they were given work (`HeartbeatResponseProto` 1001, which Hadoop's DataNodes skip).

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_net::rpc_server::Call;
use cairn_redundancy::{Cluster, NodeHandle};
use cairn_wire::proto::datanode as dn;

use super::register::{claim, unregistered, verify};
use crate::node::NameNode;
use crate::refusal::{Answer, answer};

/// No call is held longer, whatever the configuration says: callers have a time limit too.
const LONGEST_HOLD: Duration = Duration::from_secs(30);

/// What the answer to a heartbeat tells a DataNode, if it may wait for work.
pub(super) fn told(node: &NameNode, cluster: &Cluster, datanode: NodeHandle) -> Option<u64> {
    (!node.config.order_hold.is_zero()).then(|| cluster.orders(datanode))
}

/// Answers once the DataNode was given more work than it has `seen`, or the time to hold it is over.
pub(super) async fn await_orders(node: &NameNode, call: &Call) -> Answer {
    let request: dn::AwaitOrdersRequestProto = call.decode()?;
    verify(node, &request.registration)?;
    let claim = claim(&request.registration);
    let hold = node.config.order_hold.min(LONGEST_HOLD);
    let deadline = tokio::time::Instant::now() + hold;
    loop {
        let ordered = node.keeper.ordered().notified();
        tokio::pin!(ordered);
        // Counts from here, so that work queued between the look and the wait is not missed.
        ordered.as_mut().enable();
        let orders = node.see_cluster(|cluster| {
            let caller = cluster.registered(&claim)?;
            Ok(cluster.orders(caller))
        });
        let orders = orders.map_err(|error| unregistered(&error))?;
        let is_over = orders != request.seen || node.is_stopping.load(Ordering::SeqCst);
        if is_over || tokio::time::timeout_at(deadline, ordered).await.is_err() {
            return answer(&dn::AwaitOrdersResponseProto { orders });
        }
    }
}
