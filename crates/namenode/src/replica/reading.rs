//! What a member reads for clients while it follows.

use super::front::Front;
use crate::config::NameNodeConfig;
use crate::journal::follower::Follower;
use crate::kept_reports::KeptReports;
use crate::protocol::Protocols;
use crate::reports::looking::watch_nodes;
use crate::run;
use std::sync::Arc;

/// From now on reads are answered from what the follower has, and tokens judged by it.
pub(super) fn begin(
    front: &Front,
    follower: &Follower,
    (config, superuser): (&NameNodeConfig, &str),
    kept: &Arc<KeptReports>,
    outside: run::Shared,
) {
    let from = (follower.namespace(&config.name_dir), Arc::clone(kept));
    match run::reading(config, superuser, from, outside) {
        Ok(node) => {
            front.judge_by(Some(Arc::clone(&node)));
            // Nobody asks Ranger for its policies here.
            if config.ranger.is_none() {
                tokio::spawn(watch_nodes(Arc::downgrade(&node)));
                front.reads().read_from(Some(Arc::new(Protocols(node))), follower.last());
            }
        }
        Err(error) => tracing::error!(%error, "all reads go to the leader, and no token is known"),
    }
}

/// Nothing is read any more.
pub(super) fn end(front: &Front) {
    front.judge_by(None);
    front.reads().read_from(None, 0);
}

/// Has nothing read any more from what this member follows when it goes.
pub(super) struct Reading(pub Arc<Front>);

impl Drop for Reading {
    fn drop(&mut self) {
        end(&self.0);
    }
}
