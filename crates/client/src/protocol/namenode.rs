//! Calls to the NameNode, retried where Hadoop's client retries them, and at the other NameNodes of a nameservice.
//!
//! `RetriableException` is waited out, and so is a time in which no NameNode is active; everything else goes to the
//! caller, who knows what a `NotReplicatedYetException` means. Reads may be asked of NameNodes that follow ([`Followers`]).
//!
//! Source: Hadoop 3.5.0 `ConfiguredFailoverProxyProvider`, `RetryPolicies.FailoverOnNetworkExceptionRetry`.

use super::followers::{Asked, Followers, is_read};
use super::watch::Watch;
use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::types::Backoff;
use cairn_net::rpc_client::{LastSeen, RpcClient, RpcClientOptions, RpcError};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{MsyncRequestProto, MsyncResponseProto};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The protocol that clients speak to NameNodes.
const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

/// First and longest wait between tries.
const RETRY_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How long one of several NameNodes may take for a connection. A host that is gone does not answer at all, and each
/// process begins with the first one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The NameNode of one file system: the active one, where there are more.
#[derive(Clone)]
pub(crate) struct NameNode {
    /// At least one; all with one identity, so that any of them knows a call that another has executed.
    rpcs: Arc<[RpcClient]>,
    /// The one that answered last.
    active: Arc<AtomicUsize>,
    retry_for: Duration,
    /// Who is asked to read, where the configuration says so.
    followers: Option<Arc<Followers>>,
    watch: Arc<Watch>,
}

impl NameNode {
    /// A NameNode at the address of `config`; connects at the first call.
    pub(crate) fn new(config: &ClientConfig) -> NameNode {
        NameNode::with_protocol(config, CLIENT_PROTOCOL)
    }

    /// The same NameNode, with the Java name of another protocol.
    pub(crate) fn speaking(&self, config: &ClientConfig, protocol: &'static str) -> NameNode {
        let active = self.active.clone();
        NameNode { active, ..NameNode::with_protocol(config, protocol) }
    }

    /// One with the Java name of another protocol, on its own.
    pub(crate) fn with_protocol(config: &ClientConfig, protocol: &'static str) -> NameNode {
        let mut options = RpcClientOptions {
            call_timeout: config.rpc_timeout,
            real_user: config.real_user.clone(),
            credentials: config.credentials.clone(),
            ..RpcClientOptions::default()
        };
        let user = config.user.as_str();
        let addresses = match &config.namenode_addresses[..] {
            [] => std::slice::from_ref(&config.namenode),
            addresses => addresses,
        };
        let mut followers = None;
        if addresses.len() > 1 {
            options.connect_timeout = CONNECT_TIMEOUT;
            if config.reads_followers && protocol == CLIENT_PROTOCOL {
                let last_seen = LastSeen::default();
                options.last_seen = Some(last_seen.clone());
                followers = Some(Arc::new(Followers::new(last_seen, config.msync_period)));
            }
        }
        let first = RpcClient::new(&addresses[0], protocol, user, options);
        let others: Vec<RpcClient> =
            addresses[1..].iter().map(|address| first.beside(address)).collect();
        let rpcs = std::iter::once(first).chain(others).collect();
        let retry_for = config.retry_for;
        NameNode { rpcs, active: Arc::default(), retry_for, followers, watch: Arc::default() }
    }

    /// Which of the addresses the configuration has is that of the NameNode that answered last.
    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// One call.
    pub(crate) async fn call<Req, Resp>(&self, method: &'static str, request: &Req) -> Result<Resp>
    where
        Req: prost::Message,
        Resp: prost::Message + Default,
    {
        if let Some(followers) = self.followers.as_ref().filter(|_| is_read(method))
            && !followers.is_nobody()
            && followers.sync(async { self.msync().await.is_ok() }).await
            && let Asked::Answered(answer) = followers.ask(&self.rpcs, method, request).await
        {
            return answer.map_err(|(at, error)| failure(&self.rpcs[at], error));
        }
        self.call_leader(method, request).await
    }

    /// Asks the leader how far it is. What anybody was told before is seen by reads that begin after it.
    ///
    /// Source: Hadoop 3.5.0 `ClientProtocol#msync`.
    pub(crate) async fn msync(&self) -> Result<()> {
        let _: MsyncResponseProto = self.call_leader("msync", &MsyncRequestProto {}).await?;
        Ok(())
    }

    async fn call_leader<Req, Resp>(&self, method: &'static str, request: &Req) -> Result<Resp>
    where
        Req: prost::Message,
        Resp: prost::Message + Default,
    {
        let deadline = Instant::now() + self.retry_for;
        let mut backoff = Backoff::new(RETRY_WAITS.0, RETRY_WAITS.1);
        // All tries have one number: the NameNode's retry cache knows a call that it has executed.
        let mut number = self.rpcs[0].new_call();
        let mut is_told = false;
        let mut elsewhere = 0;
        loop {
            let asked = self.active();
            let rpc = &self.rpcs[asked];
            let answer = tokio::select! {
                answer = rpc.call_numbered(method, request, number) => answer,
                leader = self.watch.another(&self.rpcs, &self.active, asked), if self.has_others() => {
                    tracing::debug!(method, from = rpc.addr(), to = self.rpcs[leader].addr(),
                        "a NameNode that gives no sign of life is not waited for: another one leads");
                    let _ = self.active.compare_exchange(
                        asked, leader, Ordering::Relaxed, Ordering::Relaxed);
                    number.retry_count += 1;
                    continue;
                }
            };
            let error = match answer {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let is_for_another = self.has_others() && is_for_another(&error);
            if is_for_another {
                elsewhere += 1;
                let next = (asked + 1) % self.rpcs.len();
                // Another call may have gone on from there already.
                let _ =
                    self.active.compare_exchange(asked, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            let goes_on = is_for_another || is_retriable(&error);
            // One that hangs takes all the time: every one of them is asked before a call ends.
            let is_left = is_for_another && elsewhere < self.rpcs.len();
            if !goes_on || Instant::now() >= deadline && !is_left {
                return Err(failure(rpc, error));
            }
            number.retry_count += 1;
            if is_for_another && !elsewhere.is_multiple_of(self.rpcs.len()) {
                tracing::debug!(method, %error, "the next NameNode is asked");
                continue;
            }
            if std::mem::replace(&mut is_told, true) {
                tracing::debug!(method, %error, "retrying a call to the NameNode");
            } else {
                tracing::warn!(%error, "the NameNode does not answer yet, it is asked again");
            }
            tokio::time::sleep(backoff.step()).await;
        }
    }

    /// Whether there are more NameNodes than one.
    pub(crate) fn has_others(&self) -> bool {
        self.rpcs.len() > 1
    }
}

fn failure(rpc: &RpcClient, error: RpcError) -> ClientError {
    match error {
        RpcError::Remote(remote) => remote_error(remote),
        source => ClientError::NameNode { addr: rpc.addr().to_string(), source },
    }
}

/// An exception of the other side as our error, without the stack trace that Hadoop appends.
pub(crate) fn remote_error(remote: RemoteException) -> ClientError {
    let message = remote.message.split("\n\tat ").next().unwrap_or_default().to_string();
    ClientError::Remote { class: remote.class, message }
}

fn is_retriable(error: &RpcError) -> bool {
    match error {
        RpcError::Remote(remote) => remote.is(class::RETRIABLE) || remote.is(class::STANDBY),
        RpcError::Connect { source, .. } => !is_denied(source),
        RpcError::Lost { .. } => true,
        _ => false,
    }
}

/// Whether both sides spoke, and one of them did not believe the other: that does not change by itself.
fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether another NameNode may be the active one.
fn is_for_another(error: &RpcError) -> bool {
    match error {
        RpcError::Remote(remote) => remote.is(class::STANDBY),
        RpcError::Connect { source, .. } => !is_denied(source),
        RpcError::Lost { .. } | RpcError::Timeout { .. } => true,
        RpcError::Answer { .. } => false,
    }
}
