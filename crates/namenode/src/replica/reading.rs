//! What a member reads for clients while it follows.

use super::front::Front;
use crate::config::NameNodeConfig;
use crate::journal::follower::Follower;
use crate::kept_reports::KeptReports;
use crate::protocol::Protocols;
use crate::reports::looking::watch_nodes;
use crate::run;
use crate::standing::Standing;
use cairn_net::rpc_server::RpcMetrics;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// From now on reads are answered from what the follower has.
pub(super) fn begin(
    front: &Front,
    follower: &Follower,
    (config, superuser): (&NameNodeConfig, &str),
    kept: &Arc<KeptReports>,
    outside: (watch::Receiver<Standing>, (SocketAddr, Arc<RpcMetrics>)),
) {
    // Nobody asks Ranger for its policies here.
    if config.ranger.is_some() {
        return;
    }
    let from = (follower.namespace(&config.name_dir), Arc::clone(kept));
    match run::reading(config, superuser, from, outside) {
        Ok(node) => {
            tokio::spawn(watch_nodes(Arc::downgrade(&node)));
            let names = Arc::new(Protocols(node));
            front.reads().read_from(Some(names), follower.last());
        }
        Err(error) => tracing::error!(%error, "all reads go to the leader"),
    }
}

/// Has nothing read any more from what this member follows when it goes.
pub(super) struct Reading(pub Arc<Front>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.reads().read_from(None, 0);
    }
}
