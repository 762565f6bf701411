//! The protocols that a NameNode serves: a folder or file for each, one function for each RPC.
//!
//! A handler decodes, runs one command or query, and encodes. It decides nothing: what may be done
//! is the namespace's to say, where blocks are the cluster's.

mod answers;
pub mod catalogue;
pub mod client;
pub mod convert;
pub mod datanode;
pub mod ha;
pub mod namenode;
pub mod reconfigure;
pub mod storage_policy;
pub mod user_mappings;

pub(crate) use answers::{Answers, Reads, answers, reads};

pub use crate::refusal;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_net::rpc_server::{Call, Service, UserInfo};
use cairn_operate::reconfiguration;
use cairn_security::server::Authority;
use cairn_wire::RemoteException;

use crate::node::NameNode;
use crate::refusal::Answer;
pub(crate) use crate::security::DATANODE;
pub(crate) use crate::security::LIFELINE;

/// The Java names of the protocols. All have version 1.
pub(crate) const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
const NAMENODE: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";
pub(crate) const HA: &str = "org.apache.hadoop.ha.HAServiceProtocol";
/// Of the members of a quorum; served around the NameNode, whoever leads.
pub(crate) const MEMBERS: &str = "cairn.MembersProtocol";
const USER_MAPPINGS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";
const REFRESH_USERS: &str = "org.apache.hadoop.security.RefreshUserMappingsProtocol";
const REFRESH_POLICY: &str =
    "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol";
const REFRESH_QUEUE: &str = "org.apache.hadoop.ipc.RefreshCallQueueProtocol";
const REFRESH_ANY: &str = "org.apache.hadoop.ipc.GenericRefreshProtocol";

/// What is served, with the version of each.
const SERVED: &[(&str, u64)] = &[
    (CLIENT, 1),
    (DATANODE, 1),
    (LIFELINE, 1),
    (NAMENODE, 1),
    (HA, 1),
    (reconfiguration::NAME, 1),
    (USER_MAPPINGS, 1),
    (REFRESH_USERS, 1),
    (REFRESH_POLICY, 1),
    (REFRESH_QUEUE, 1),
    (REFRESH_ANY, 1),
];

/// Answers the calls of all protocols.
pub struct Protocols(pub Arc<NameNode>);

/// The same for clients that know no erasure coding.
pub struct PlainProtocols(pub Arc<Protocols>);

/// The answer as it is sent; the log has it if it is a refusal.
pub(crate) fn logged(call: &Call, answer: Answer) -> Result<Vec<u8>, RemoteException> {
    answer.map_err(|refusal| {
        let (method, user, peer) = (&call.method, &call.user.effective, call.peer);
        tracing::debug!(%method, %user, %peer, refusal = %refusal.0, "refused");
        refusal.0
    })
}

/// How long a call waits for what its client has seen.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether a client has seen something that is not there to be read yet.
fn lacks(node: &NameNode, call: &Call) -> bool {
    let last = || i64::try_from(node.ns.last_sequence()).unwrap_or(i64::MAX);
    call.state.as_ref().is_some_and(|state| state.seen() > last())
}

/// Waits for what the client has seen: under a leader of an earlier build, members that followed showed things before that one
/// did. What does not come is of a time before the namespace was restored.
async fn catch_up(node: &NameNode, call: &Call) {
    let until = Instant::now() + PATIENCE;
    while lacks(node, call) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// An answer, if it may be given, and with it how far the namespace is: what shows in it is no later.
fn told(node: &NameNode, call: &Call, answer: Answer) -> Answer {
    call.tell_state(node.ns.last_sequence());
    node.if_it_may(answer)
}

/// Handles a client's or an operator's call by `handled`, and tells of it.
async fn audited(node: &NameNode, call: &Call, handled: impl Future<Output = Answer>) -> Answer {
    let Some(audit) = &node.audit else { return handled.await };
    let begun = audit.begin(&node.ns, &node.config, call);
    let answer = handled.await;
    audit.end(&node.ns, call, begun, &answer);
    answer
}

impl Service for Protocols {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let node = &*self.0;
        call.check_protocol(SERVED)?;
        node.authorize_call(&call).await?;
        catch_up(node, &call).await;
        let answer: Answer = match call.protocol.as_str() {
            CLIENT => audited(node, &call, client::handle(node, &call)).await,
            DATANODE => datanode::handle(node, &call).await,
            LIFELINE => datanode::handle_lifeline(node, &call),
            NAMENODE => namenode::handle(node, &call).await,
            HA => ha::handle(node, &call).await,
            reconfiguration::NAME => reconfigure::handle(&self.0, &call).await,
            USER_MAPPINGS => user_mappings::get_user_mappings(node, &call).await,
            REFRESH_USERS => {
                audited(node, &call, user_mappings::refresh_user_mappings(node, &call)).await
            }
            REFRESH_POLICY => {
                audited(node, &call, user_mappings::refresh_authorization_policy(node, &call)).await
            }
            REFRESH_QUEUE => {
                audited(node, &call, user_mappings::refresh_call_queue(node, &call)).await
            }
            REFRESH_ANY => user_mappings::generic_refresh(node, &call).await,
            _ => Err(call.unknown_protocol().into()),
        };
        logged(&call, told(node, &call, answer))
    }

    fn call_now(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        let is_read = call.protocol == CLIENT && call.version == 1 && client::is_read(&call.method);
        let node = &*self.0;
        if !is_read
            || lacks(node, call)
            || node.config.service_policy.is_some() && !call.is_of_its_connection()
        {
            return None;
        }
        let caller = node.caller_now(call)?;
        let begun = node.audit.as_ref().map(|audit| audit.begin(&node.ns, &node.config, call));
        let answer = client::handle_now(node, call, &caller)?;
        if let (Some(audit), Some(begun)) = (&node.audit, begun) {
            audit.end(&node.ns, call, begun, &answer);
        }
        Some(logged(call, told(node, call, answer)))
    }

    fn authority(&self) -> Option<&dyn Authority> {
        self.0.config.security.as_ref().map(|_| &*self.0 as &dyn Authority)
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        self.0.authorize(user, protocol, peer.ip()).await
    }
}

impl Service for PlainProtocols {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let node = &*self.0.0;
        if call.protocol != CLIENT || call.version != 1 {
            return self.0.call(call).await;
        }
        node.authorize_call(&call).await?;
        catch_up(node, &call).await;
        let answer = audited(node, &call, client::plain::handle(node, &call)).await;
        logged(&call, told(node, &call, answer))
    }

    fn authority(&self) -> Option<&dyn Authority> {
        self.0.authority()
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        self.0.authorize(user, protocol, peer).await
    }
}
