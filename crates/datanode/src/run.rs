//! Starts and stops a DataNode.

use crate::actor;
use crate::callers::Callers;
use crate::config::DataNodeConfig;
use crate::dataset::{Dataset, RamDiskStats, blocking};
use crate::domain_socket;
use crate::error::{Context, DataNodeError};
use crate::lazy_writer;
use crate::node::scans::VolumeScan;
use crate::node::{INTER_DATANODE, Node};
use crate::page_cache::PageCacheStats;
use crate::pages;
use crate::protocol::{self, client, inter, reconfigure};
use crate::scanner;
use crate::server;
use cairn_access::access::Access;
use cairn_net::Boxed;
use cairn_net::http::{self, Gate, Handler, Limits, Port, Request, SharedHandler, Site, WEBHDFS};
use cairn_net::page::live::{self, Live};
use cairn_net::rpc_server::{Call, RpcServer, RpcServerOptions, Service, UserInfo};
use cairn_net::tls::{Tls, TlsFiles};
use cairn_net::transfer_stream;
use cairn_operate::reconfiguration::Reconfiguration;
use cairn_process::descriptors;
use cairn_process::held;
use cairn_security::server::Authority;
use cairn_stripe::BlockId;
use cairn_wire::RemoteException;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;

/// A DataNode that is not running yet.
pub struct DataNode;

impl DataNode {
    /// Opens the volumes, binds the ports and starts to serve, within the caller's tokio runtime. Does not wait for
    /// the NameNode: the DataNode registers as soon as that answers, and again whenever it restarts.
    ///
    /// Fails if the volumes are not usable or a port is taken.
    pub fn start(config: DataNodeConfig) -> Boxed<'static, Result<RunningDataNode, DataNodeError>> {
        Box::pin(async move {
            descriptors::raise_limit();
            let volumes = config.clone();
            let dataset = blocking(move || Dataset::open(&volumes)).await?;
            let listener = TcpListener::bind(config.xfer_addr)
                .await
                .context(|| format!("binding {}", config.xfer_addr))?;
            transfer_stream::prepare_listener(&listener);
            let xfer_addr = listener.local_addr().context(|| "data transfer port".into())?;
            let domain = match &config.domain_socket {
                Some(path) => {
                    Some(domain_socket::bind(path, xfer_addr.port(), config.check_domain_socket)?)
                }
                None => None,
            };
            let options =
                RpcServerOptions { reach: config.reach.clone(), ..RpcServerOptions::default() };
            let ipc = RpcServer::bind(config.ipc_addr, options)
                .await
                .context(|| format!("binding {}", config.ipc_addr))?;
            let ipc_addr = ipc.local_addr();
            let rpc_metrics = Arc::new(protocol::metrics());
            let ipc = ipc.counting_in(Arc::clone(&rpc_metrics));
            let http = match config.http_addr {
                Some(addr) => {
                    Some(TcpListener::bind(addr).await.context(|| format!("binding {addr}"))?)
                }
                None => None,
            };
            let http_addr = http.as_ref().and_then(|listener| listener.local_addr().ok());
            let https = match &config.https {
                Some((addr, files)) => Some(secure_port(*addr, files).await?),
                None => None,
            };
            let https_addr = https.as_ref().and_then(|port| port.listener.local_addr().ok());
            let (proxies, policy) = (config.proxy_users.clone(), config.service_policy.clone());
            // Names of hosts are looked up.
            let read = move || Access::read(&proxies, policy.as_deref());
            let access = blocking(move || read().map_err(DataNodeError::Policy)).await?;
            let addresses = (xfer_addr, ipc_addr, [http_addr, https_addr]);
            let reconfiguration =
                Reconfiguration::new(config.reload.clone(), cairn_keys::live(DataNodeConfig::KEYS));
            let node = Arc::new(Node::new(
                config,
                dataset,
                access,
                rpc_metrics,
                reconfiguration,
                addresses,
            ));
            node.tasks.open();
            node.spawn_lasting("the data port", server::serve(node.clone(), listener));
            if let Some(listener) = domain {
                node.spawn_lasting(
                    "the domain socket",
                    server::serve_domain(node.clone(), listener),
                );
            }
            let callers = Callers {
                tokens: node.block_tokens.clone(),
                security: node.config.security.clone(),
            };
            let service = Arc::new(Ipc { node: node.clone(), callers });
            node.spawn_lasting("the RPC port", ipc.serve(service, std::future::pending()));
            let ports: Vec<Port> = http.map(Port::from).into_iter().chain(https).collect();
            if !ports.is_empty() {
                let served = node.clone();
                let page = move |request: &Request| pages::page(&served, request);
                let looked_at = node.clone();
                let live = Live::new(move |request| pages::live(&looked_at, request));
                let live = SharedHandler(Arc::new(live));
                let site = Site::new(page)
                    .with(WEBHDFS, node.config.web.clone())
                    .with(live::PATH, Some(live));
                let limits = Limits {
                    idle: node.config.http_idle_timeout,
                    reach: node.config.reach.clone(),
                    ..Limits::default()
                };
                let site: Arc<dyn Handler> = Arc::new(site);
                let site: Arc<dyn Handler> = match &node.config.http_auth {
                    Some(auth) => {
                        let gate = Gate::new(auth.clone(), site);
                        Arc::new(gate.with_admins(protocol::admins(&node)))
                    }
                    None => site,
                };
                for port in ports {
                    let (site, limits) = (Arc::clone(&site), limits.clone());
                    node.tasks.spawn(http::serve(port, site, limits, std::future::pending()));
                }
            }
            for member in node.name_nodes.members() {
                let reports = actor::run(node.clone(), member);
                node.spawn_lasting("the reports to the NameNode", reports);
                let watch = actor::watch_orders(node.clone(), member);
                node.spawn_lasting("the watch over orders", watch);
            }
            node.tasks.spawn(stop_when_given_up(node.clone()));
            scanner::start(&node);
            lazy_writer::start(&node);
            tracing::info!(%xfer_addr, %ipc_addr, uuid = node.dataset.uuid(), "DataNode started");
            Ok(RunningDataNode { node })
        })
    }
}

/// A port for HTTPS.
async fn secure_port(addr: SocketAddr, files: &TlsFiles) -> Result<Port, DataNodeError> {
    let files = files.clone();
    let opened = blocking(move || Ok(Tls::open(files))).await?;
    let tls = opened.map_err(io::Error::other).context(|| "the certificate of HTTPS".into())?;
    let listener = TcpListener::bind(addr).await.context(|| format!("binding {addr}"))?;
    Ok(Port { listener, tls: Some(tls) })
}

/// A DataNode that serves until it is shut down, killed or dropped.
pub struct RunningDataNode {
    node: Arc<Node>,
}

impl RunningDataNode {
    /// Where data transfer is served.
    pub fn xfer_addr(&self) -> SocketAddr {
        self.node.xfer_addr
    }

    /// Where RPC is served.
    pub fn ipc_addr(&self) -> SocketAddr {
        self.node.ipc_addr
    }

    /// Where pages are served, if they are.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.node.http_addr
    }

    /// Where pages are served by HTTPS, if they are.
    pub fn https_addr(&self) -> Option<SocketAddr> {
        self.node.https_addr
    }

    /// The DataNode's UUID, the same at every start on the same volumes.
    pub fn uuid(&self) -> &str {
        self.node.dataset.uuid()
    }

    /// Whether a NameNode has accepted this DataNode since its start.
    pub fn is_registered(&self) -> bool {
        self.node.registration().is_ok()
    }

    /// Work that comes to an end only if no part of the DataNode's state is held for good.
    pub fn look(&self) -> impl Fn() + Clone + Send + 'static {
        let node = Arc::clone(&self.node);
        move || {
            let _ = node.registration();
            let _ = node.dataset.get(BlockId(0));
        }
    }

    /// How far the block scanner of each volume has come.
    pub fn volume_scans(&self) -> Vec<VolumeScan> {
        self.node.scanner.status()
    }

    /// What the page cache was asked for.
    pub fn page_cache_stats(&self) -> PageCacheStats {
        self.node.dataset.page_cache().stats()
    }

    /// What has become of replicas on RAM_DISK volumes.
    pub fn ram_disk_stats(&self) -> RamDiskStats {
        self.node.dataset.ram_disk_stats()
    }

    /// Completes when the DataNode has stopped by itself, because more volumes failed than may, because the NameNode
    /// does not want it, a superuser told it to, or a panic has struck at a part of its state, and says why. What runs it should then end, and with an
    /// error unless [`RunningDataNode::was_told_to_stop`].
    ///
    /// Source: Hadoop 3.5.0 `DataNode#handleVolumeFailures`, `BPServiceActor#offerService`.
    pub async fn stopped(&self) -> String {
        tokio::select! {
            why = self.node.dataset.given_up() => why,
            why = held::broken() => why,
        }
    }

    /// Whether it has stopped because a superuser told it to (`hdfs dfsadmin -shutdownDatanode`), which is no error.
    pub fn was_told_to_stop(&self) -> bool {
        self.node.is_told_to_stop.load(Ordering::Acquire)
    }

    /// Why the DataNode has stopped by itself; `None` while it serves. See [`RunningDataNode::stopped`].
    pub fn stop_reason(&self) -> Option<String> {
        self.node.dataset.why_given_up()
    }

    /// Stops: closes ports and connections, and returns when every task has ended and the folders are free. Replicas
    /// that are being written stay as they are, for their writers' recovery.
    pub async fn shutdown(self) {
        if let Some(mut tasks) = self.node.tasks.close() {
            while tasks.join_next().await.is_some() {}
        }
        self.node.dataset.close();
    }

    /// Stops at once, without waiting for anything but a change of file names that is under way: for tests that want what
    /// a killed process leaves behind.
    pub fn kill(&self) {
        drop(self.node.tasks.close());
        self.node.dataset.close();
    }
}

impl Drop for RunningDataNode {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends all service when too many volumes have failed, or the NameNode refuses this DataNode.
async fn stop_when_given_up(node: Arc<Node>) {
    let why = node.dataset.given_up().await;
    tracing::error!(%why, "the DataNode stops");
    node.dataset.close();
    // This task too ends with it.
    drop(node.tasks.close());
}

/// The RPC service.
struct Ipc {
    node: Arc<Node>,
    callers: Callers,
}

impl Service for Ipc {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        call.check_protocol(&[
            (client::NAME, 1),
            (INTER_DATANODE, 1),
            (cairn_operate::reconfiguration::NAME, 1),
        ])?;
        self.node.access.authorize_call(&call, &self.node.groups).await?;
        match call.protocol.as_str() {
            client::NAME => client::call(&self.node, &call).await,
            cairn_operate::reconfiguration::NAME => reconfigure::call(&self.node, &call).await,
            _ => {
                if let Some(security) = &self.callers.security {
                    security.check_datanode(&call.user)?;
                }
                inter::call(&self.node, &call).await
            }
        }
    }

    fn authority(&self) -> Option<&dyn Authority> {
        Some(&self.callers)
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        self.node.access.authorize(user, protocol, peer.ip(), &self.node.groups).await
    }
}
