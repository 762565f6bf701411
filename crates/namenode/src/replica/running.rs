//! A member as whoever has started it sees it.

use super::error::ReplicaError;
use super::front::Front;
use crate::quorum::Member;
use crate::standing::Standing;
use cairn_quorum::{MemberId, Membership};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long it is waited until another one leads.
const PATIENCE: Duration = Duration::from_secs(3);

/// A member that runs. Dropping it stops it at once; see [`RunningReplica::shutdown`].
pub struct RunningReplica {
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Where pages are served, if they are.
    pub http_addr: Option<SocketAddr>,
    /// Where pages are served by HTTPS, if they are.
    pub https_addr: Option<SocketAddr>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) member: Arc<Member>,
    pub(super) front: Arc<Front>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) roles: JoinHandle<Result<(), ReplicaError>>,
    pub(super) serving: JoinSet<()>,
}

impl RunningReplica {
    /// What it is; changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Who is in the quorum, as far as it knows.
    pub fn members(&self) -> Membership {
        self.member.status().members
    }

    /// Which of them it is.
    pub fn id(&self) -> MemberId {
        self.member.id()
    }

    /// Reads that it has answered while another one led.
    pub fn reads(&self) -> u64 {
        self.front.reads().answered()
    }

    /// Completes when it has stopped by itself, and says why.
    pub async fn stopped(&mut self) -> String {
        match (&mut self.roles).await {
            Ok(Ok(())) => "it was told to stop".to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic.to_string(),
        }
    }

    /// Has another member lead, if this one does and another one could; takes no more calls, ends the running ones, and
    /// closes log and store.
    pub async fn shutdown(mut self) {
        self.relieve().await;
        self.stop.send_replace(true);
        while let Some(ended) = self.serving.join_next().await {
            if ended.is_err() {
                tracing::error!("a port was not closed in order");
            }
        }
        // It may have ended before.
        if !self.roles.is_finished() && !matches!(self.roles.await, Ok(Ok(()))) {
            tracing::error!("this member of the quorum was not closed in order");
        }
    }

    /// Begins to have another member lead: the one that is called so, or the best of the others. Says which; none if this
    /// one does not lead or no such member could.
    pub async fn hand_over(&self, to: Option<&str>) -> Option<String> {
        let (member, to) = (Arc::clone(&self.member), to.map(str::to_string));
        let asked = tokio::task::spawn_blocking(move || member.hand_over(to.as_deref())).await;
        asked.ok().flatten()
    }

    /// Until another one leads, calls that come here wait, and go on to that one.
    async fn relieve(&self) {
        if let Some(name) = self.hand_over(None).await {
            let mut standing = self.standing.clone();
            let relieved = standing.wait_for(|now| matches!(now, Standing::Follows { .. }));
            if tokio::time::timeout(PATIENCE, relieved).await.is_err() {
                tracing::warn!(name, "the lead was not taken over in time");
            }
        }
    }
}
