//! Who answers calls, within which limits.

use super::call::{Call, UserInfo};
use super::memory::RequestMemory;
use super::metrics::RpcMetrics;
use super::who;
use crate::Boxed;
use crate::reach::Reach;
use cairn_process::disk_work::may_wait;
use cairn_security::server::Authority;
use cairn_security::token::{Token, is_same};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::UserInformationProto;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Answers calls.
pub trait Service: Send + Sync + 'static {
    /// Answers one call with the encoded response message (see [`respond`](super::respond)) or an exception.
    ///
    /// Runs to its end even when the caller's connection closes meanwhile; it is dropped only when
    /// the server stops.
    fn call(&self, call: Call) -> impl Future<Output = Result<Vec<u8>, RemoteException>> + Send;

    /// As [`Service::call`], where the answer is there without a wait; `None` where that is not known. Called first, by
    /// the task that reads the connection.
    fn call_now(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        let _ = call;
        None
    }

    /// How connections show who they are; `None` where they are believed.
    fn authority(&self) -> Option<&dyn Authority> {
        None
    }

    /// Ends as soon as [`Service::authority`] can judge the token with that identifier, or is to judge it all the same. Who
    /// asks has shown nothing yet, so the wait is to be bounded, and to cost nothing. Nothing else is read from the
    /// connection meanwhile.
    fn await_token(&self, identifier: &[u8]) -> impl Future<Output = ()> + Send {
        let _ = identifier;
        std::future::ready(())
    }

    /// Whether a connection from `peer` may speak `protocol`, if it names one, for `user`; an error closes it, told to the
    /// client. Nothing else is read from it meanwhile. The default lets every user in as itself and nobody as another.
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#authorizeConnection`.
    fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> impl Future<Output = Result<(), RemoteException>> + Send {
        let _ = (protocol, peer);
        std::future::ready(user.refuse_impersonation())
    }
}

/// A service that its own process calls, without a connection.
pub trait LocalService: Send + Sync + 'static {
    /// Answers a call as if it came over a connection of its own: whether its user may make it is asked first.
    fn call_here(&self, call: Call) -> Boxed<'_, Result<Vec<u8>, RemoteException>>;

    /// For whom a token speaks, if it is good.
    fn user_of_token<'a>(
        &'a self,
        token: &'a Token,
    ) -> Boxed<'a, Result<UserInfo, RemoteException>>;
}

impl<S: Service> LocalService for S {
    fn call_here(&self, call: Call) -> Boxed<'_, Result<Vec<u8>, RemoteException>> {
        Box::pin(async move {
            self.authorize(&call.user, Some(&call.connection_protocol), call.peer).await?;
            match self.call_now(&call) {
                Some(answer) => answer,
                None => self.call(call).await,
            }
        })
    }

    fn user_of_token<'a>(
        &'a self,
        token: &'a Token,
    ) -> Boxed<'a, Result<UserInfo, RemoteException>> {
        let invalid = || RemoteException::new(class::INVALID_TOKEN, "Invalid token");
        Box::pin(async move {
            let authority = self.authority().ok_or_else(invalid)?;
            self.await_token(&token.identifier).await;
            let (identity, password) = may_wait(|| authority.token(&token.identifier))?;
            if !is_same(&password, &token.password) {
                return Err(invalid());
            }
            who::user(Some((&identity, authority)), UserInformationProto::default())
        })
    }
}

/// Limits of an [`RpcServer`](super::RpcServer). `Default` is Hadoop's defaults where it has any.
#[derive(Clone, Debug)]
pub struct RpcServerOptions {
    /// `ipc.maximum.data.length`: bytes of the longest frame taken.
    pub max_frame_len: u32,
    /// Bytes of the longest frame taken before a user is known.
    pub max_setup_frame_len: u32,
    /// Calls of one connection that run or wait for their answer to be sent.
    pub max_in_flight: usize,
    /// Bytes of requests of all connections that have been read and whose calls run, and of long ones that are being read.
    /// The longest frame is taken in any case, and each connection may hold a short one beside.
    pub max_request_memory: u64,
    /// `ipc.server.max.connections`: connections at a time, more are closed at once. Never more than three quarters of
    /// what the process may open when the server is bound: a log that gets no file ends the process.
    pub max_connections: usize,
    /// A connection is closed when nothing arrives for this long and no call runs, or when nothing
    /// arrives for this long in the middle of a frame.
    pub idle_timeout: Duration,
    /// A connection is closed when an answer cannot be written for this long.
    pub write_timeout: Duration,
    /// How long running calls may take to end once the server shuts down.
    pub shutdown_timeout: Duration,
    /// Whose connections are taken.
    pub reach: Reach,
}

impl Default for RpcServerOptions {
    fn default() -> RpcServerOptions {
        RpcServerOptions {
            max_frame_len: cairn_wire::rpc::MAX_FRAME_LEN,
            max_setup_frame_len: 64 << 10,
            max_in_flight: 128,
            max_request_memory: 1 << 30,
            max_connections: 65_536,
            idle_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(5),
            reach: Reach::default(),
        }
    }
}

/// Whether the server takes more frames; the channel's closing ends everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Serving,
    Draining,
}

/// What all connections of a server share.
pub(super) struct Shared<S> {
    pub(super) service: Arc<S>,
    pub(super) options: RpcServerOptions,
    pub(super) metrics: Arc<RpcMetrics>,
    pub(super) memory: RequestMemory,
    pub(super) stopped: watch::Receiver<State>,
}
