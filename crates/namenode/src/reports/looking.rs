//! DataNodes as a NameNode knows them that only reads what a member of a quorum follows: who they are, how they are, and what
//! operators want of them. What they have it does not take in: where a block is it asks what was told.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use cairn_namespace::orders::NodeOrder;
use cairn_namespace::query;
use cairn_redundancy::{Heartbeat, Registration};
use tracing::{debug, warn};

use crate::node::NameNode;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(500);

/// Looks at DataNodes as long as somebody reads.
pub(crate) async fn watch_nodes(node: Weak<NameNode>) {
    let mut looked = Looked::default();
    while let Some(node) = node.upgrade() {
        node.look_at_orders(&mut looked).await;
        node.look_at_nodes(&mut looked).await;
        drop(node);
        tokio::time::sleep(EVERY).await;
    }
}

/// What was looked at.
#[derive(Default)]
struct Looked {
    /// What was heard before that time of the clock of what was told.
    since_ms: u64,
    /// When each DataNode has registered that was not taken in, by its UUID.
    refused: BTreeMap<String, u64>,
    /// What operators have said of DataNodes.
    orders: Option<Vec<NodeOrder>>,
}

impl NameNode {
    async fn look_at_orders(&self, looked: &mut Looked) {
        let Ok(orders) = self.ns.read(|store| query::orders(store)) else { return };
        let is_new = looked.orders.as_ref().is_some_and(|known| *known != orders.nodes);
        if is_new && let Err(refusal) = self.refresh_nodes().await {
            warn!(refusal = %refusal.0, "what is wanted of DataNodes is not known here");
        }
        looked.orders = Some(orders.nodes);
    }

    async fn look_at_nodes(&self, looked: &mut Looked) {
        let heard = self.told.as_ref().and_then(|kept| kept.heard_since(looked.since_ms));
        let Some((heard, now_ms)) = heard else { return };
        looked.since_ms = now_ms;
        for (registration, heartbeat) in heard {
            let (uuid, asked_ms) = (registration.uuid.clone(), registration.asked.mono_ms);
            if looked.refused.get(&uuid) == Some(&asked_ms) {
                continue;
            }
            if self.look_at(registration, heartbeat).await {
                looked.refused.remove(&uuid);
            } else {
                looked.refused.insert(uuid, asked_ms);
            }
        }
    }

    /// Looks at a DataNode. Returns whether it is one that may serve.
    async fn look_at(&self, registration: Registration, heartbeat: Option<Heartbeat>) -> bool {
        let is_known = self.cluster().registered(&registration.claim()).is_ok();
        let uuid = &registration.uuid;
        if !is_known {
            let Some(found) = self.with_rack(registration.clone()).await else { return false };
            if let Err(why) = self.take_in(found) {
                warn!(uuid, ?why, "nobody who reads here is sent to a DataNode");
                return false;
            }
        }
        if let Some(heartbeat) = heartbeat
            && let Err(why) = self.take_lifeline(&registration.claim(), heartbeat)
        {
            debug!(uuid, %why, "a DataNode is not looked at");
        }
        true
    }
}
