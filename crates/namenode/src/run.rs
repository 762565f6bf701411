//! Starting and stopping a NameNode: its sockets, and what runs beside the calls.
//!
//! What its parts are told of its settings is in `config/parts.rs`, the loops over the cluster in `run/loops.rs`.

mod loops;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_namespace::ops::lease::RenewAllLeases;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{BlockState, InodeId, block, lease, query};
use cairn_net::Boxed;
use cairn_net::access::Access;
use cairn_net::descriptors;
use cairn_net::groups::{Groups, process_user};
use cairn_net::held;
use cairn_net::http::{self, Handler, Limits, Port, SharedHandler, Site, WEBHDFS};
use cairn_net::lasting;
use cairn_net::page::live::{self, Live};
use cairn_net::reconfiguration::Reconfiguration;
use cairn_net::rpc_server::RpcServer;
use cairn_net::tls::{Tls, TlsError, TlsFiles};
use cairn_redundancy::Cluster;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::audit::AuditLog;
use crate::backups::{self, Backups};
use crate::block_tokens::BlockTokens;
use crate::caching;
use crate::clock::wall_ms;
use crate::config::{self, NameNodeConfig, parts};
use crate::contiguous;
use crate::converted;
use crate::diff_listings::DiffListings;
use crate::host_files::TopologyError;
use crate::http_nodes;
use crate::journal::{Durability, Namesystem, NamesystemOptions, OpenError};
use crate::keeper::{Keeper, Teller};
use crate::key_provider::KeyProvider;
use crate::lazy_files;
use crate::node::NameNode;
use crate::node::caching::Caching;
use crate::node::encoded::EncodedGroups;
use crate::node::group_work::GroupWork;
use crate::node::missing_trash::MissingTrash;
use crate::node::reencryptor::Reencryptor;
use crate::node::satisfier::Satisfier;
use crate::operations::Operations;
use crate::pages::{self, FILES, Files, Pages};
use crate::protocol::{self, PlainProtocols, Protocols};
use crate::reencryption;
use crate::resources;
use crate::satisfier;
use crate::snapshots;
use crate::standing::Standing;
use crate::tokens;
use crate::topology::Topology;
use crate::trash;
use crate::web;

/// How long a service rests after it has failed.
const SERVICE_REST: Duration = Duration::from_secs(60);

/// Walks over large trees for clients at a time.
const WALKS: usize = 4;

/// Why a NameNode does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing in the folder, and it is not to be formatted.
    #[error("NameNode is not formatted: {}", path.display())]
    NotFormatted {
        /// The folder.
        path: PathBuf,
    },
    /// Log or store cannot be opened.
    #[error("cannot open the namespace: {0}")]
    Open(#[from] OpenError),
    /// The system has no random numbers.
    #[error("no random numbers: {why}")]
    NoRandomness {
        /// What it says.
        why: String,
    },
    /// Racks or lists of DataNodes cannot be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A socket cannot be bound.
    #[error("cannot listen on {addr} for {purpose}: {source}")]
    Bind {
        /// Where.
        addr: SocketAddr,
        /// What for.
        purpose: &'static str,
        /// Why.
        source: io::Error,
    },
    /// HTTPS cannot be served.
    #[error("cannot serve HTTPS: {0}")]
    Certificate(#[source] TlsError),
    /// The audit log cannot be written.
    #[error("cannot open the audit log {}: {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The keys that say who may use which protocol are wrong.
    #[error("the access lists of services are wrong: {0}")]
    Policy(String),
    /// The namespace is open but does not answer.
    #[error("cannot read the namespace: {0}")]
    Read(#[from] cairn_namespace::NamespaceError),
    /// The runtime is stopping.
    #[error("the start was interrupted")]
    Interrupted,
}

/// A NameNode that serves. Dropping it stops it at once; see [`RunningNameNode::shutdown`].
pub struct RunningNameNode {
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Where RPC is served for clients that know no erasure coding, if it is.
    pub plain_rpc_addr: Option<SocketAddr>,
    /// Where pages are served, if they are.
    pub http_addr: Option<SocketAddr>,
    /// Where pages are served by HTTPS, if they are.
    pub https_addr: Option<SocketAddr>,
    node: Arc<NameNode>,
    stop: watch::Sender<bool>,
    /// Which loop has ended that must not, and with what.
    broken: watch::Sender<Option<String>>,
    /// The last inputs were written, or could not be.
    is_told: AtomicBool,
    tasks: JoinSet<()>,
}

impl RunningNameNode {
    /// Its state, for an embedded cluster and for tests.
    pub fn node(&self) -> &Arc<NameNode> {
        &self.node
    }

    /// Completes when the NameNode has stopped by itself because its log, its store or one of its loops failed, or a
    /// panic has struck at its state, and says why. By then its folder has a file with the last inputs of its state
    /// (`docs/on-disk.md`). What runs it should then end with an error: it can promise nothing any more.
    ///
    /// Source: Hadoop 3.5.0 `JournalSet#mapJournalsAndReportErrors`, which ends the process.
    pub async fn stopped(&self) -> String {
        let mut broken = self.broken.subscribe();
        let broken = async move {
            let why = broken.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            // The sender lives as long as `self`.
            why.unwrap_or_default()
        };
        let why = tokio::select! {
            why = self.node.ns.failed() => why,
            why = self.node.keeper.broken() => why,
            why = held::broken() => why,
            why = broken => why,
        };
        if !self.is_told.swap(true, Ordering::SeqCst) {
            let (node, why) = (Arc::clone(&self.node), why.clone());
            lasting::blocking(move || tell_end(&node, &why)).await;
        }
        why
    }

    /// Takes no more calls, ends the running ones, and closes log and store.
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        while self.tasks.join_next().await.is_some() {}
        let ns = Arc::clone(&self.node.ns);
        if tokio::task::spawn_blocking(move || ns.close()).await.is_err() {
            tracing::error!("the namespace was not closed in order");
        }
    }
}

impl NameNode {
    /// Opens the namespace, formatting its folder if that is allowed and it is empty, and serves.
    ///
    /// Must run inside a tokio runtime with time and I/O. Prints nothing.
    pub fn start(config: NameNodeConfig) -> Boxed<'static, Result<RunningNameNode, StartError>> {
        Box::pin(async move {
            descriptors::raise_limit();
            let superuser = superuser(&config).await?;
            let ns = open_namespace(&config, &superuser).await?;
            let lists = config.clone();
            let orders = ns.read(|store| query::orders(store))?.nodes;
            let topology = tokio::task::spawn_blocking(move || Topology::open(&lists, &orders));
            let topology = topology.await.map_err(|_| StartError::Interrupted)??;
            let audit = config.audit.clone();
            let audit = tokio::task::spawn_blocking(move || AuditLog::open(&audit));
            let audit = audit.await.map_err(|_| StartError::Interrupted)?.map_err(|source| {
                StartError::Audit { path: config.audit.file.clone().unwrap_or_default(), source }
            })?;
            let (properties, policy) = (config.properties.clone(), config.service_policy.clone());
            let read = move || Access::read(&properties, policy.as_deref());
            let access = tokio::task::spawn_blocking(read).await;
            let access =
                access.map_err(|_| StartError::Interrupted)?.map_err(StartError::Policy)?;
            let (rpc, plain_rpc) = match config.plain_rpc_addr {
                None => (bind_rpc(config.rpc_addr, &config, 4).await?, None),
                Some(addr) => {
                    let rpc = bind_rpc(config.rpc_addr, &config, 3).await?;
                    (rpc, Some(bind_rpc(addr, &config, 1).await?))
                }
            };
            let http = match config.http_addr {
                Some(addr) => {
                    Some(TcpListener::bind(addr).await.map_err(|source| StartError::Bind {
                        addr,
                        purpose: "HTTP",
                        source,
                    })?)
                }
                None => None,
            };
            let https = match &config.https {
                Some((addr, files)) => Some(secure_port(*addr, files).await?),
                None => None,
            };
            let https_addr = https.as_ref().and_then(|port| port.listener.local_addr().ok());
            let http_addr = http.as_ref().and_then(|listener| listener.local_addr().ok());
            let rpc_addr = rpc.local_addr();
            let rpc_metrics = Arc::new(protocol::catalogue::metrics());
            rpc_metrics.set_slow_threshold(config.slow_call_threshold);
            rpc_metrics.log_slow_calls(config.logs_slow_calls);
            let rpc = rpc.counting_in(Arc::clone(&rpc_metrics));
            let plain_rpc = plain_rpc.map(|rpc| rpc.counting_in(Arc::clone(&rpc_metrics)));
            let groups = Groups::new(&config.groups);
            let keeper =
                Arc::new(Keeper::new(Cluster::new(parts::cluster_config(&config)), ns.clock()));
            let inputs = Arc::clone(ns.last_inputs());
            let teller = Teller { keeper: Arc::clone(&keeper), reader: ns.reader(), inputs };
            ns.listen(Arc::new(teller));
            let block_tokens = BlockTokens::new(config.block_tokens.as_ref())
                .map_err(|error| StartError::NoRandomness { why: error.to_string() })?;
            let node = Arc::new(NameNode {
                standing: Standing::alone(),
                keeper,
                block_tokens,
                operations: Operations::default(),
                reconfiguration: Reconfiguration::new(
                    config.reload.clone(),
                    protocol::reconfigure::PROPERTIES.to_vec(),
                ),
                walks: Arc::new(Semaphore::new(WALKS)),
                groups,
                access: Mutex::new(Arc::new(access)),
                caching: Caching::default(),
                satisfier: Satisfier::new(config.satisfier_mode, config.satisfier_queue_limit),
                keys: config
                    .encryption
                    .key_provider
                    .clone()
                    .map(|path| KeyProvider::new(path, &superuser, &config.encryption)),
                reencryptor: Reencryptor::default(),
                topology,
                superuser,
                audit,
                rpc_addr,
                rpc_metrics,
                http_addr,
                started_ms: wall_ms(),
                encoded: EncodedGroups::default(),
                group_work: GroupWork::default(),
                garbage: Notify::new(),
                is_stopping: AtomicBool::new(false),
                missing_trash: MissingTrash::default(),
                ordering: tokio::sync::Mutex::default(),
                upgrading: tokio::sync::Mutex::default(),
                restores_storage: AtomicBool::new(false),
                diff_listings: DiffListings::default(),
                saved: Mutex::new((wall_ms(), ns.last_sequence())),
                ns,
                config,
            });
            node.release_deletions();
            if let Some(restored) = node.ns.restored() {
                let sequence = restored.sequence;
                tracing::warn!(
                    sequence,
                    "the namespace was restored or imported: nothing is deleted until `cairn admin restored --accept`"
                );
            }
            node.heed_group_pauses()?;
            node.heed_orders()?;
            let complete = node.ns.read(|store| complete_blocks(store))?;
            node.cluster().start_safe_mode(complete, node.now());
            if let Err(refusal) = node.log_own_hosts().await {
                tracing::error!(refusal = %refusal.0, "what is wanted of DataNodes stays in its file");
            }
            if let Err(refusal) = node.submit_own(RenewAllLeases {}).await {
                tracing::error!(refusal = %refusal.0, "leases were not renewed at the start");
            }
            if node.safe_mode_tip().is_none() {
                node.trash_may_be_missing();
                node.make_missing_trash().await;
            }
            let http = http.map(Port::from).into_iter().chain(https).collect();
            let listening = Listening { rpc, plain_rpc, http, http_addr, https_addr };
            Ok(RunningNameNode::serve(node, listening))
        })
    }

    /// Makes a new file system in `config.name_dir`, which must be empty or missing, and serves nothing.
    pub async fn format(config: NameNodeConfig) -> Result<(), StartError> {
        let config = NameNodeConfig { format_if_empty: true, ..config };
        let ns = open_namespace(&config, &superuser(&config).await?).await?;
        let closed = tokio::task::spawn_blocking(move || ns.close()).await;
        closed.map_err(|_| StartError::Interrupted)
    }

    /// Whether `config.name_dir` holds a file system.
    pub fn is_formatted(config: &NameNodeConfig) -> bool {
        config.name_dir.join("VERSION").exists()
    }
}

/// A server that may take so many quarters of what all connections may.
async fn bind_rpc(
    addr: SocketAddr,
    config: &NameNodeConfig,
    quarters: u32,
) -> Result<RpcServer, StartError> {
    let bound = RpcServer::bind(addr, parts::rpc_options(config, quarters)).await;
    bound.map_err(|source| StartError::Bind { addr, purpose: "RPC", source })
}

/// Where a NameNode listens.
struct Listening {
    rpc: RpcServer,
    plain_rpc: Option<RpcServer>,
    http: Vec<Port>,
    http_addr: Option<SocketAddr>,
    https_addr: Option<SocketAddr>,
}

/// A port for HTTPS.
async fn secure_port(addr: SocketAddr, files: &TlsFiles) -> Result<Port, StartError> {
    let files = files.clone();
    let opened = tokio::task::spawn_blocking(move || Tls::open(files)).await;
    let tls = opened.map_err(|_| StartError::Interrupted)?.map_err(StartError::Certificate)?;
    let bound = TcpListener::bind(addr).await;
    let listener = bound.map_err(|source| StartError::Bind { addr, purpose: "HTTPS", source })?;
    Ok(Port { listener, tls: Some(tls) })
}

/// What serves the tree by HTTP is made of these.
fn web_parts(node: &Arc<NameNode>, service: Arc<Protocols>) -> web::Parts {
    let chooser = Arc::clone(node);
    let choose = move |client, excluded: &[String], by_tls| {
        http_nodes::choose(&chooser, client, excluded, by_tls)
    };
    web::Parts { service, rpc_addr: node.rpc_addr, choose: Arc::new(choose) }
}

impl RunningNameNode {
    fn serve(node: Arc<NameNode>, listening: Listening) -> RunningNameNode {
        let Listening { rpc, plain_rpc, http, http_addr, https_addr } = listening;
        let plain_rpc_addr = plain_rpc.as_ref().map(RpcServer::local_addr);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let service = Arc::new(Protocols(Arc::clone(&node)));
        tasks.spawn(rpc.serve(Arc::clone(&service), until_stopped(stopped.clone())));
        if let Some(rpc) = plain_rpc {
            let service = Arc::new(PlainProtocols(Arc::clone(&service)));
            tasks.spawn(rpc.serve(service, until_stopped(stopped.clone())));
        }
        let (held, until_stop) = (Arc::clone(&node), until_stopped(stopped.clone()));
        tasks.spawn(async move {
            until_stop.await;
            held.hold_no_calls();
        });
        let mut watched = None;
        if !http.is_empty() {
            let node = Arc::clone(&node);
            let idle = node.config.http_idle_timeout;
            let web = node.config.web.as_ref();
            let web = web.map(|web| web.of(web_parts(&node, Arc::clone(&service))));
            let backups = Backups::new(Arc::clone(&node));
            let made = Arc::new(Pages::new(node));
            let (for_page, for_live) = (Arc::clone(&made), Arc::clone(&made));
            let page = move |request: &http::Request| pages::page(&for_page, request);
            let live = Live::new(move |request| pages::live(&for_live, request));
            let files = Files::new(Arc::clone(&made), Arc::clone(&service));
            let shared = |handler: Arc<dyn Handler>| Some(SharedHandler(handler));
            let site = Site::new(page)
                .with(WEBHDFS, web)
                .with(live::PATH, shared(Arc::new(live)))
                .with(FILES, shared(Arc::new(files)))
                .with(backups::PATH, shared(Arc::new(backups)));
            let limits = Limits { idle, ..Limits::default() };
            let site = Arc::new(site);
            for port in http {
                let (site, limits) = (Arc::clone(&site), limits.clone());
                tasks.spawn(http::serve(port, site, limits, until_stopped(stopped.clone())));
            }
            watched = Some(made);
        }
        let broken = watch::Sender::new(None);
        let rpc_addr = node.rpc_addr;
        let (node_again, is_told) = (Arc::clone(&node), AtomicBool::new(false));
        let mut running = RunningNameNode {
            rpc_addr,
            plain_rpc_addr,
            http_addr,
            https_addr,
            node: node_again,
            stop,
            broken,
            is_told,
            tasks,
        };
        let again = || Arc::clone(&node);
        running.spawn_vital("the watch over DataNodes", loops::tick_cluster(again()));
        running.spawn_vital("what follows from entries", loops::follow_up(again()));
        running.spawn_vital("the watch over leases", loops::watch_leases(again()));
        running.spawn_vital("the watch over free space", resources::watch(again()));
        running.spawn_vital("the removal of deleted trees", loops::remove_garbage(again()));
        let stop = running.stop.clone();
        running.spawn_vital("the watch over the log", loops::stop_without_log(again(), stop));
        running.spawn_service("the watch over cache directives", caching::watch_directives);
        running.spawn_service("the watch over contiguous groups", contiguous::watch);
        running.spawn_service("the watch over what was converted", converted::watch);
        running.spawn_service("the satisfier of storage policies", satisfier::take_up);
        running.spawn_service("the warming-up of keys", warm_up_keys);
        running.spawn_service("the watch over delegation tokens", tokens::look_after);
        running.spawn_service("the keys of block tokens", |node| async move {
            node.block_tokens.look_after_keys().await
        });
        running.spawn_service("re-encryption", reencryption::run);
        running.spawn_service("the emptier of the trash", trash::empty_trash);
        running.spawn_service("the watch over lazy files", lazy_files::watch);
        running.spawn_service("the deletion of snapshots in order", snapshots::collect);
        running.spawn_service(
            "the making of trash for snapshottable directories",
            snapshots::provision,
        );
        if let Some(watched) = watched {
            let again = Arc::clone(&watched);
            running.spawn_service("the samples for charts", move |_| {
                pages::sample(Arc::clone(&again))
            });
            running
                .spawn_service("the count of layouts", move |_| pages::count(Arc::clone(&watched)));
        }
        running
    }

    /// Does work until the NameNode stops; if it panics, it is begun again after a while.
    fn spawn_service<F>(
        &mut self,
        what: &'static str,
        work: impl Fn(Arc<NameNode>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (node, stopped) = (Arc::clone(&self.node), until_stopped(self.stop.subscribe()));
        let lasting = async move {
            while let Err(panic) = lasting::unbroken(work(Arc::clone(&node))).await {
                tracing::error!(panic, "{what} has failed, and begins again");
                tokio::time::sleep(SERVICE_REST).await;
            }
        };
        self.tasks.spawn(async move {
            tokio::select! {
                () = stopped => {}
                () = lasting => {}
            }
        });
    }

    /// Does work without which data is in danger until the NameNode stops; if it panics, the NameNode does.
    fn spawn_vital(&mut self, what: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let stopped = until_stopped(self.stop.subscribe());
        let (stop, broken) = (self.stop.clone(), self.broken.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = stopped => {}
                ended = lasting::unbroken(work) => if let Err(panic) = ended {
                    let why = format!("{what} has failed: {panic}");
                    tracing::error!(%why, "the NameNode stops");
                    broken.send_replace(Some(why));
                    stop.send_replace(true);
                }
            }
        });
    }
}

/// Writes down what the NameNode's state was last changed by, and tells the operator what its end means.
fn tell_end(node: &NameNode, why: &str) {
    match node.ns.last_inputs().write(&node.config.name_dir, why) {
        Ok(file) => tracing::error!(
            why,
            file = %file.display(),
            "the NameNode has stopped; the file has the last inputs of its state, for who looks for the cause"
        ),
        Err(error) => {
            tracing::error!(why, %error, "the NameNode has stopped; its last inputs cannot be written down");
        }
    }
    tracing::error!(
        "after the next start locations of blocks come back by DataNodes' reports only: until enough have reported, safe mode is on and files cannot be read"
    );
}

/// Has keys for files made ready, if there is a key server.
async fn warm_up_keys(node: Arc<NameNode>) {
    if let Some(keys) = &node.keys {
        keys.warm_up(&node.ns, &node.config.encryption).await;
    }
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the handle was dropped, which stops as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Who may do everything: the user of the process, unless another one is named.
async fn superuser(config: &NameNodeConfig) -> Result<String, StartError> {
    if let Some(user) = &config.superuser {
        return Ok(user.clone());
    }
    let user = tokio::task::spawn_blocking(process_user).await;
    let user = user.map_err(|_| StartError::Interrupted)?;
    Ok(user.unwrap_or_else(|| "root".to_string()))
}

async fn open_namespace(
    config: &NameNodeConfig,
    superuser: &str,
) -> Result<Arc<Namesystem>, StartError> {
    let path = config.name_dir.clone();
    if !config.format_if_empty && !NameNode::is_formatted(config) {
        return Err(StartError::NotFormatted { path });
    }
    let options = NamesystemOptions {
        settings: parts::settings(config),
        snapshots: config.snapshots,
        durability: match config.durability {
            config::Durability::Stable => Durability::Stable,
            config::Durability::PageCache => Durability::PageCache,
        },
        cache_len: config.store_cache_len,
        kept_log_len: config.kept_log_len,
        event_history_len: config.inotify_history_len,
        superuser: superuser.to_string(),
        cluster_id: config.cluster_id.clone(),
        block_pool_host: config.rpc_addr.ip().to_string(),
        roll_back: config.roll_back,
        dir_mode: config.name_dir_mode,
        ..NamesystemOptions::default()
    };
    let open = tokio::task::spawn_blocking(move || Namesystem::open(&path, options));
    Ok(open.await.map_err(|_| StartError::Interrupted)??)
}

/// Complete blocks and groups, which safe mode waits for: all but the last ones of open files, and of those that were
/// removed while they were open and that snapshots have.
fn complete_blocks(store: &dyn StoreRead) -> cairn_namespace::Result<u64> {
    const PAGE: usize = 1000;
    let mut open = query::incomplete_held_blocks(store)?;
    let mut after = InodeId::NONE;
    loop {
        let files = lease::open_files(store, after, PAGE)?;
        for file in &files {
            open += query::incomplete_blocks(store, *file)?.len() as u64;
        }
        match files.last() {
            Some(last) if files.len() == PAGE => after = *last,
            _ => break,
        }
    }
    let mut after = None;
    loop {
        let containers = query::containers_after(store, after, PAGE)?;
        for container in &containers {
            let block = block::get(store, container.id)?;
            open += u64::from(block.is_some_and(|block| block.state != BlockState::Complete));
        }
        match containers.last() {
            Some(last) if containers.len() == PAGE => after = Some(last.id),
            _ => break,
        }
    }
    // What is packed is there with its container, for which it is waited.
    let totals = query::totals(store)?;
    Ok(totals.blocks.saturating_sub(totals.packed).saturating_sub(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_node_without_a_vital_loop_stops() {
        let dir = tempfile::tempdir().unwrap();
        let config = NameNodeConfig {
            name_dir: dir.path().join("name"),
            format_if_empty: true,
            rpc_addr: ([127, 0, 0, 1], 0).into(),
            http_addr: None,
            ..NameNodeConfig::default()
        };
        let mut running = NameNode::start(config).await.unwrap();
        running.spawn_vital("a loop", async { panic!("a number is odd") });
        assert_eq!(running.stopped().await, "a loop has failed: a number is odd");
        running.shutdown().await;
    }
}
