//! A Hadoop RPC server for SIMPLE authentication.
//!
//! One task for each connection reads frames and starts calls; calls of one connection run side by
//! side and are answered as they finish. A connection that has `max_in_flight` calls running is not
//! read further. A service sees decoded headers and an undecoded request; which protocols and
//! methods exist is its own affair. Tests: `rpc_server/tests.rs`.

mod call;
mod caller;
mod connection;
mod memory;
pub mod metrics;
mod respond;
mod slow;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cairn_wire::RemoteException;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::descriptors;
use memory::RequestMemory;

pub use call::{Call, CallerContext, Name, UserInfo, respond};
pub use metrics::RpcMetrics;

/// Answers calls.
pub trait Service: Send + Sync + 'static {
    /// Answers one call with the encoded response message (see [`respond`]) or an exception.
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

/// Limits of an [`RpcServer`]. `Default` is Hadoop's defaults where it has any.
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
        }
    }
}

/// A bound socket that is not served yet.
pub struct RpcServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    options: RpcServerOptions,
    metrics: Arc<RpcMetrics>,
}

impl RpcServer {
    /// Listens on `addr`; port 0 takes a free one.
    pub async fn bind(addr: SocketAddr, options: RpcServerOptions) -> io::Result<RpcServer> {
        let listener = TcpListener::bind(addr).await?;
        let local_addr = listener.local_addr()?;
        let metrics = Arc::new(RpcMetrics::new([], &[]));
        let max_connections = options.max_connections.min(descriptors::limit() / 4 * 3);
        let options = RpcServerOptions { max_connections, ..options };
        Ok(RpcServer { listener, local_addr, options, metrics })
    }

    /// Counts its calls there; without this by no method, and nobody sees them.
    pub fn counting_in(self, metrics: Arc<RpcMetrics>) -> RpcServer {
        RpcServer { metrics, ..self }
    }

    /// Where the server listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` completes; then takes no more frames and waits for the running
    /// calls, `shutdown_timeout` at most. When the returned future is dropped, every connection
    /// and call ends at once.
    pub async fn serve<S: Service>(self, service: Arc<S>, shutdown: impl Future<Output = ()>) {
        let (stop, stopped) = watch::channel(State::Serving);
        let (options, metrics) = (self.options, self.metrics);
        let memory = RequestMemory::new(options.max_request_memory);
        let shared = Arc::new(Shared { service, options, metrics, memory, stopped });
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            shared.metrics.set_open_connections(connections.len());
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        start(stream, peer, &shared, &mut connections);
                    }
                    Err(error) => {
                        // Out of descriptors, most likely: serve those who are here.
                        warn!(%error, "cannot accept RPC connections");
                        sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        stop.send_replace(State::Draining);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(shared.options.shutdown_timeout, drained).await.is_err() {
            warn!("RPC calls still running at shutdown are dropped");
        }
    }
}

/// Whether the server takes more frames; the channel's closing ends everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serving,
    Draining,
}

/// What all connections of a server share.
struct Shared<S> {
    service: Arc<S>,
    options: RpcServerOptions,
    metrics: Arc<RpcMetrics>,
    memory: RequestMemory,
    stopped: watch::Receiver<State>,
}

fn start<S: Service>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: &Arc<Shared<S>>,
    connections: &mut JoinSet<()>,
) {
    if connections.len() >= shared.options.max_connections {
        shared.metrics.note_dropped_connection();
        warn!(%peer, limit = shared.options.max_connections, "too many RPC connections");
        return;
    }
    let shared = shared.clone();
    connections.spawn(async move {
        match connection::serve(stream, peer, shared).await {
            Ok(()) => debug!(%peer, "RPC connection ended"),
            Err(error) => warn!(%peer, %error, "closed RPC connection"),
        }
    });
}

#[cfg(test)]
mod tests;
