//! Waits for the NameNode.

use crate::node::Node;
use std::time::Duration;

/// How often to look whether the NameNode has accepted this DataNode.
const WAIT_FOR_NAME_NODE: Duration = Duration::from_millis(100);

/// Completes when the NameNode has accepted this DataNode: before, nobody would hear of what is found.
pub(crate) async fn name_node_known(node: &Node) {
    while node.dataset.pool_id().is_none() || node.registration().is_err() {
        tokio::time::sleep(WAIT_FOR_NAME_NODE).await;
    }
}
