//! Starting and stopping a NameNode: its sockets, and the loops that turn time into events.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::lease::RenewAllLeases;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{InodeId, Outcome, Settings, lease, query};
use cairn_net::Boxed;
use cairn_net::descriptors;
use cairn_net::groups::{Groups, process_user};
use cairn_net::http;
use cairn_net::lasting;
use cairn_net::proxy_users::ProxyUsers;
use cairn_net::reconfiguration::Reconfiguration;
use cairn_net::rpc_server::{RpcServer, RpcServerOptions};
use cairn_redundancy::{Cluster, Config};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::audit::AuditLog;
use crate::caching::{self, Caching};
use crate::config::{self, NameNodeConfig};
use crate::diff_listings::DiffListings;
use crate::journal::{Durability, Namesystem, NamesystemOptions, OpenError};
use crate::key_provider::{self, KeyProvider};
use crate::lazy_files;
use crate::node::{NameNode, dice, wall_ms};
use crate::pages;
use crate::protocol::{self, Protocols};
use crate::reencryption::{self, Reencryptor};
use crate::resources;
use crate::satisfier::{self, Satisfier};
use crate::snapshots::{self, MissingTrash};
use crate::topology::{Topology, TopologyError};
use crate::trash;

/// The longest time between two looks at the clock for the cluster's sake.
pub(crate) const TICK_MAX: Duration = Duration::from_secs(1);
/// The shortest.
pub(crate) const TICK_MIN: Duration = Duration::from_millis(20);
/// Inodes and blocks of deleted trees that one command removes.
const PURGE_LIMIT: u64 = 500;
/// Longest rest between two of these.
const PURGE_REST_MAX: Duration = Duration::from_millis(100);

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
    /// The audit log cannot be written.
    #[error("cannot open the audit log {}: {source}", path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
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
    /// Where pages are served, if they are.
    pub http_addr: Option<SocketAddr>,
    node: Arc<NameNode>,
    stop: watch::Sender<bool>,
    /// Which loop has ended that must not, and with what.
    broken: watch::Sender<Option<String>>,
    tasks: JoinSet<()>,
}

impl RunningNameNode {
    /// Its state, for an embedded cluster and for tests.
    pub fn node(&self) -> &Arc<NameNode> {
        &self.node
    }

    /// Completes when the NameNode has stopped by itself because its log, its store or one of its loops failed, and
    /// says why. What runs it should then end with an error: it can promise nothing any more.
    ///
    /// Source: Hadoop 3.5.0 `JournalSet#mapJournalsAndReportErrors`, which ends the process.
    pub async fn stopped(&self) -> String {
        let mut broken = self.broken.subscribe();
        let broken = async move {
            let why = broken.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            // The sender lives as long as `self`.
            why.unwrap_or_default()
        };
        tokio::select! {
            why = self.node.ns.failed() => why,
            why = broken => why,
        }
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
            let superuser = match config.superuser.clone() {
                Some(user) => user,
                None => tokio::task::spawn_blocking(process_user)
                    .await
                    .map_err(|_| StartError::Interrupted)?
                    .unwrap_or_else(|| "root".to_string()),
            };
            let ns = open_namespace(&config, &superuser).await?;
            let lists = config.clone();
            let topology = tokio::task::spawn_blocking(move || Topology::open(&lists));
            let topology = topology.await.map_err(|_| StartError::Interrupted)??;
            let audit = config.audit.clone();
            let audit = tokio::task::spawn_blocking(move || AuditLog::open(&audit));
            let audit = audit.await.map_err(|_| StartError::Interrupted)?.map_err(|source| {
                StartError::Audit { path: config.audit.file.clone().unwrap_or_default(), source }
            })?;
            let properties = config.properties.clone();
            let proxy_users = tokio::task::spawn_blocking(move || ProxyUsers::read(&properties));
            let proxy_users = proxy_users.await.map_err(|_| StartError::Interrupted)?;
            let rpc =
                RpcServer::bind(config.rpc_addr, rpc_options(&config)).await.map_err(|source| {
                    StartError::Bind { addr: config.rpc_addr, purpose: "RPC", source }
                })?;
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
            let http_addr = http.as_ref().and_then(|listener| listener.local_addr().ok());
            let rpc_addr = rpc.local_addr();
            let rpc_metrics = Arc::new(protocol::catalogue::metrics());
            rpc_metrics.set_slow_threshold(config.slow_call_threshold);
            rpc_metrics.log_slow_calls(config.logs_slow_calls);
            let rpc = rpc.counting_in(Arc::clone(&rpc_metrics));
            let groups = Groups::new(&config.groups);
            let node = Arc::new(NameNode {
                cluster: Mutex::new(Cluster::new(cluster_config(&config))),
                reconfiguration: Reconfiguration::new(
                    config.reload.clone(),
                    protocol::reconfigure::PROPERTIES,
                ),
                walks: Arc::new(Semaphore::new(WALKS)),
                groups,
                proxy_users: Mutex::new(proxy_users),
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
                reported: Notify::new(),
                garbage: Notify::new(),
                ordered: Notify::new(),
                is_stopping: AtomicBool::new(false),
                missing_trash: MissingTrash::default(),
                upgrading: tokio::sync::Mutex::default(),
                restores_storage: AtomicBool::new(false),
                diff_listings: DiffListings::default(),
                saved: Mutex::new((wall_ms(), ns.last_sequence())),
                epoch: Instant::now(),
                ns,
                config,
            });
            node.cluster().hold_deletions(node.ns.rollback_point().is_some());
            let complete = node.ns.read(|store| complete_blocks(store))?;
            node.cluster().start_safe_mode(complete, node.now());
            if let Err(refusal) = node.submit_own(RenewAllLeases {}).await {
                tracing::error!(refusal = %refusal.0, "leases were not renewed at the start");
            }
            if node.safe_mode_tip().is_none() {
                node.trash_may_be_missing();
                node.make_missing_trash().await;
            }
            Ok(RunningNameNode::serve(node, rpc, http, http_addr))
        })
    }

    /// Whether `config.name_dir` holds a file system.
    pub fn is_formatted(config: &NameNodeConfig) -> bool {
        config.name_dir.join("VERSION").exists()
    }
}

impl RunningNameNode {
    fn serve(
        node: Arc<NameNode>,
        rpc: RpcServer,
        http: Option<TcpListener>,
        http_addr: Option<SocketAddr>,
    ) -> RunningNameNode {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let service = Arc::new(Protocols(Arc::clone(&node)));
        tasks.spawn(rpc.serve(service, until_stopped(stopped.clone())));
        let (held, until_stop) = (Arc::clone(&node), until_stopped(stopped.clone()));
        tasks.spawn(async move {
            until_stop.await;
            held.hold_no_calls();
        });
        if let Some(listener) = http {
            let node = Arc::clone(&node);
            let page = move |request: &http::Request| pages::page(&node, request);
            tasks.spawn(http::serve(listener, page, until_stopped(stopped.clone())));
        }
        let broken = watch::Sender::new(None);
        let rpc_addr = node.rpc_addr;
        let mut running =
            RunningNameNode { rpc_addr, http_addr, node: Arc::clone(&node), stop, broken, tasks };
        let again = || Arc::clone(&node);
        running.spawn_vital("the watch over DataNodes", tick_cluster(again()));
        running.spawn_vital("the watch over leases", watch_leases(again()));
        running.spawn_vital("the watch over free space", resources::watch(again()));
        running.spawn_vital("the removal of deleted trees", remove_garbage(again()));
        let stop = running.stop.clone();
        running.spawn_vital("the watch over the log", stop_without_log(again(), stop));
        running.spawn_service("the watch over cache directives", caching::watch_directives);
        running.spawn_service("the satisfier of storage policies", satisfier::take_up);
        running.spawn_service("the warming-up of keys", key_provider::warm_up);
        running.spawn_service("re-encryption", reencryption::run);
        running.spawn_service("the emptier of the trash", trash::empty_trash);
        running.spawn_service("the watch over lazy files", lazy_files::watch);
        running.spawn_service("the deletion of snapshots in order", snapshots::collect);
        running.spawn_service(
            "the making of trash for snapshottable directories",
            snapshots::provision,
        );
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

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the handle was dropped, which stops as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
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
        settings: settings(config),
        snapshots: config.snapshots,
        durability: match config.durability {
            config::Durability::Stable => Durability::Stable,
            config::Durability::PageCache => Durability::PageCache,
        },
        cache_len: config.store_cache_len,
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

/// A block's recovery is ordered again when it has taken as long as these.
const BLOCK_RECOVERY_HEARTBEATS: u32 = 30;

/// The settings that commands obey.
fn settings(config: &NameNodeConfig) -> Settings {
    let ms = |duration: Duration| duration.as_millis() as u64;
    Settings {
        permissions_enabled: config.permissions_enabled,
        superuser_group: config.supergroup.clone(),
        component_len_max: config.max_component_len as u64,
        directory_items_max: config.max_directory_items,
        block_size_min: config.min_block_len,
        blocks_per_file_max: config.max_blocks_per_file,
        replication_min: config.min_replication,
        replication_max: config.max_replication,
        access_time_precision_ms: ms(config.access_time_precision),
        retry_expiry_ms: ms(config.retry_cache_expiry),
        retry_entries_max: config.retry_cache_max,
        lease_soft_limit_ms: ms(config.lease_soft_limit),
        lease_hard_limit_ms: ms(config.lease_hard_limit),
        block_recovery_timeout_ms: ms(BLOCK_RECOVERY_HEARTBEATS * config.heartbeat_interval),
        default_policy: config.ec_default_policy.clone(),
        cell_len_max: config.ec_max_cell_len,
        user_policies_allowed: config.ec_user_policies,
        xattrs_per_inode_max: config.max_xattrs_per_inode,
        xattr_len_max: config.max_xattr_len,
        xattrs_enabled: config.xattrs_enabled,
        acls_enabled: config.acls_enabled,
        posix_acl_inheritance: config.posix_acl_inheritance,
        type_quotas_enabled: config.type_quotas_enabled,
        summaries_check_first: config.summaries_check_first,
        owners_set_quotas: config.owners_set_quotas,
        default_storage_policy: config.default_storage_policy.id,
        protects_subdirectories: config.protects_subdirectories,
        objects_max: config.max_objects,
        snapshots_deleted_in_order: config.snapshots_deleted_in_order,
        snapshot_trash_roots: config.snapshot_trash_roots,
        rules: cairn_namespace::settings::RULES,
        protected_directories: config.protected_directories.clone(),
    }
}

/// The settings of the cluster state.
pub(crate) fn cluster_config(config: &NameNodeConfig) -> Config {
    Config {
        heartbeat_interval: config.heartbeat_interval,
        recheck_interval: config.heartbeat_recheck_interval,
        stale_interval: config.stale_interval,
        avoid_stale_for_read: config.avoid_stale_for_read,
        avoid_stale_for_write: config.avoid_stale_for_write,
        stale_write_ratio: config.stale_write_ratio,
        tolerated_heartbeats: config.tolerated_heartbeats,
        replication_min: config.min_replication,
        safe_mode_threshold: config.safe_mode_threshold,
        safe_mode_replication_min: config.safe_mode_min_replication,
        queue_threshold: config.queue_threshold,
        safe_mode_min_nodes: config.safe_mode_min_datanodes,
        safe_mode_extension: config.safe_mode_extension,
        invalidate_limit: config.invalidate_limit,
        deletion_delay: config.deletion_delay,
        blocks_of_room: config.blocks_of_room,
        max_streams: config.max_streams as usize,
        max_streams_hard: config.max_streams_hard as usize,
        work_multiplier: config.work_multiplier as usize,
        redundancy_interval: config.redundancy_interval,
        pending_timeout: config.pending_timeout,
        consider_load: config.consider_load,
        load_factor: config.load_factor,
        replication: config.replication,
        maintenance_replication_min: config.maintenance_min_replication,
        decommission_interval: config.decommission_interval,
        max_tracked_nodes: config.max_tracked_nodes,
        upgrade_domain_factor: config.upgrade_domain_factor,
        scrub_period: config.scrub_period,
        scrub_bytes_per_second: config.scrub_bytes_per_second,
        cache_retry: config.cache_retry_interval,
        slow: config.slow.clone(),
        ..Config::default()
    }
}

fn rpc_options(config: &NameNodeConfig) -> RpcServerOptions {
    RpcServerOptions {
        max_frame_len: u32::try_from(config.rpc_max_request_len).unwrap_or(u32::MAX),
        idle_timeout: config.rpc_idle_timeout,
        ..RpcServerOptions::default()
    }
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
    Ok(query::totals(store)?.blocks.saturating_sub(open))
}

/// Ends all service when no change can be made durable any more: clients of a NameNode that only reads would wait.
async fn stop_without_log(node: Arc<NameNode>, stop: watch::Sender<bool>) {
    let why = node.ns.failed().await;
    tracing::error!(%why, "the NameNode stops");
    stop.send_replace(true);
}

/// Finds dead DataNodes, ends safe mode, plans what is to be mended.
async fn tick_cluster(node: Arc<NameNode>) {
    let period = (node.config.heartbeat_interval / 4).clamp(TICK_MIN, TICK_MAX);
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = node.now();
    loop {
        ticks.tick().await;
        let worker = Arc::clone(&node);
        // Planning can take longer than a task should hold its thread.
        let now = node.now();
        let tick = tokio::task::spawn_blocking(move || {
            worker.with_cluster(|cluster, lookup| {
                if cluster.excuse_silence(last, now) {
                    tracing::warn!("this process stood still: DataNodes' silence is excused");
                }
                let was_on = cluster.safe_mode().is_on();
                let tick = cluster.tick(lookup, now, &mut dice);
                worker.note_safe_mode(cluster, was_on);
                tick
            })
        });
        last = now;
        let Ok(tick) = tick.await else {
            tracing::error!("a look at the cluster has failed");
            continue;
        };
        node.replace_disproved_crcs().await;
        if tick.more {
            take_steps(period, || walk_on(Arc::clone(&node))).await;
        }
        for handle in tick.died {
            let cluster = node.cluster();
            tracing::warn!(datanode = %cluster.node(handle).address, "DataNode is dead");
        }
        for handle in tick.admin {
            let cluster = node.cluster();
            let datanode = cluster.node(handle);
            tracing::info!(datanode = %datanode.address, state = %datanode.admin, "a DataNode changes");
        }
        if tick.left_safe_mode {
            tracing::info!("safe mode is off");
        }
    }
}

/// Goes on with what takes the cluster long. Returns whether more is to follow.
async fn walk_on(node: Arc<NameNode>) -> bool {
    let step = move || node.with_cluster(|cluster, lookup| cluster.go_on(lookup));
    tokio::task::spawn_blocking(step).await.unwrap_or(false)
}

/// Takes steps as long as more are to follow, but not longer than `most`: the next tick goes on, and what else it does
/// must not wait until millions of replicas are forgotten. Between the steps others get the lock.
async fn take_steps<F: Future<Output = bool>>(most: Duration, mut step: impl FnMut() -> F) {
    let begun = Instant::now();
    while step().await && begun.elapsed() < most {
        tokio::task::yield_now().await;
    }
}

/// Closes files whose writers are gone.
async fn watch_leases(node: Arc<NameNode>) {
    let mut ticks = tokio::time::interval(node.config.lease_recheck_interval.max(TICK_MIN));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        node.check_leases().await;
    }
}

/// Removes what is left of deleted trees, a piece at a time, beginning with what a stop left.
async fn remove_garbage(node: Arc<NameNode>) {
    loop {
        // The start counts on being told of these blocks too: without them it would wait forever.
        while node.cluster().safe_mode().is_starting() {
            tokio::time::sleep(TICK_MAX).await;
        }
        // Deleted trees go as fast as the store's file takes them, so that nobody waits for it because of them.
        while node.ns.is_behind() {
            tokio::time::sleep(PURGE_REST_MAX).await;
        }
        let begun = Instant::now();
        match node.submit_own(Purge { limit: PURGE_LIMIT }).await {
            Ok(outcome) => {
                node.settle(&outcome);
                if matches!(outcome, Outcome::Removed { more: true, .. }) {
                    // Half of the time is others'.
                    tokio::time::sleep(begun.elapsed().min(PURGE_REST_MAX)).await;
                    continue;
                }
            }
            Err(refusal) => {
                tracing::error!(refusal = %refusal.0, "deleted trees are not cleaned up");
            }
        }
        node.garbage.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn steps_end_with_the_last_one_and_when_their_time_is_over() {
        let taken = Cell::new(0);
        let step = |last: u32| {
            taken.set(taken.get() + 1);
            std::future::ready(taken.get() < last)
        };
        take_steps(Duration::MAX, || step(3)).await;
        assert_eq!(taken.get(), 3);
        let endless = take_steps(Duration::from_millis(5), || step(u32::MAX));
        assert!(tokio::time::timeout(Duration::from_secs(60), endless).await.is_ok());
    }

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
