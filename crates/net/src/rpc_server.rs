//! A Hadoop RPC server, for users that are believed (SIMPLE) or show who they are (SASL).
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
mod service;
mod slow;
mod who;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use cairn_process::descriptors;
use cairn_process::disk_work::movable;
use memory::RequestMemory;

pub use call::{Authentication, Call, CallerContext, Name, StateId, UserInfo, respond};
pub use metrics::RpcMetrics;
pub use service::{LocalService, RpcServerOptions, Service};
use service::{Shared, State};

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

    /// Counts its calls there, where other servers may count theirs; without this by no method, and nobody sees them.
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
        let mut counted = 0;
        tokio::pin!(shutdown);
        loop {
            shared.metrics.change_open_connections(counted, connections.len());
            counted = connections.len();
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((_, peer)) if !shared.options.reach.may_take(peer) => {}
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
        shared.metrics.change_open_connections(counted, 0);
        stop.send_replace(State::Draining);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(shared.options.shutdown_timeout, drained).await.is_err() {
            warn!("RPC calls still running at shutdown are dropped");
        }
    }
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
    connections.spawn(movable(async move {
        match connection::serve(stream, peer, shared).await {
            Ok(()) => debug!(%peer, "RPC connection ended"),
            Err(error) => warn!(%peer, %error, "closed RPC connection"),
        }
    }));
}

#[cfg(test)]
mod tests;
