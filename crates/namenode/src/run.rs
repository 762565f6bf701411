//! Starting and stopping a NameNode: its sockets, and what runs beside the calls.
//!
//! What its parts are told of its settings is in `config/parts.rs`, the loops over the cluster in `run/loops.rs`.

mod assembly;
mod error;
mod loops;
mod opening;
mod site;
mod web_ports;

use assembly::{Parts, open_audit};
pub(crate) use assembly::{Shared, block_tokens, reading};
pub use error::StartError;
use opening::complete_blocks;
pub(crate) use opening::{
    access, bind_rpc, is_formatted, namesystem_options, open_namespace, rpc_metrics, superuser,
};
pub(crate) use site::chooser;
pub(crate) use web_ports::{WebAddrs, WebPorts};

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_namespace::ops::lease::RenewAllLeases;
use cairn_namespace::query;
use cairn_net::Boxed;
use cairn_net::http::Handler;
use cairn_net::rpc_server::{RpcMetrics, RpcServer};
use cairn_operate::workers::{Kind, Worker};
use cairn_process::descriptors;
use cairn_process::held;
use cairn_process::lasting;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::block_tokens::BlockTokens;
use crate::caching;
use crate::config::NameNodeConfig;
use crate::contiguous;
use crate::converted;
use crate::journal::agree::{Agree, Agreement};
use crate::keeper::Teller;
use crate::kept_reports::KeptReports;
use crate::lazy_files;
use crate::lead::Lead;
use crate::node::NameNode;
use crate::pages;
use crate::protocol::{PlainProtocols, Protocols};
use crate::ranger::Ranger;
use crate::reencryption;
use crate::resources;
use crate::satisfier;
use crate::snapshots;
use crate::standing::Standing;
use crate::tokens;
use crate::topology::Topology;
use crate::trash;
use crate::workers;

/// How long a service rests after it has failed.
const SERVICE_REST: Duration = Duration::from_secs(60);

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
    site: Option<Arc<dyn Handler>>,
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

    /// What it serves by HTTP, if it does: for the process around it that has the ports.
    pub(crate) fn site(&self) -> Option<Arc<dyn Handler>> {
        self.site.clone()
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
        NameNode::start_in(config, None)
    }

    /// The same for one that leads a quorum, in a process that has its port.
    pub(crate) fn start_within(
        config: NameNodeConfig,
        outside: Outside,
    ) -> Boxed<'static, Result<RunningNameNode, StartError>> {
        NameNode::start_in(NameNodeConfig { format_if_empty: false, ..config }, Some(outside))
    }

    fn start_in(
        config: NameNodeConfig,
        outside: Option<Outside>,
    ) -> Boxed<'static, Result<RunningNameNode, StartError>> {
        Box::pin(async move {
            descriptors::raise_limit();
            let superuser = superuser(&config).await?;
            let agreement = outside.as_ref().map(|outside| {
                let agrees: Arc<dyn Agree> = outside.lead.clone();
                Agreement(agrees)
            });
            let ns = open_namespace(&config, &superuser, agreement).await?;
            let lists = config.clone();
            let orders = ns.read(|store| query::orders(store))?.nodes;
            let topology = tokio::task::spawn_blocking(move || Topology::open(&lists, &orders));
            let topology = topology.await.map_err(|_| StartError::Interrupted)??;
            let audit = config.audit.clone();
            let audit = tokio::task::spawn_blocking(move || open_audit(&audit));
            let audit = audit.await.map_err(|_| StartError::Interrupted)??;
            let ranger = config.ranger.clone();
            let opened = tokio::task::spawn_blocking(move || ranger.map(Ranger::open)).await;
            let ranger = opened.map_err(|_| StartError::Interrupted)?;
            let access = access(&config).await?;
            let plain_rpc = match config.plain_rpc_addr {
                Some(addr) => Some(bind_rpc(addr, &config, 1).await?),
                None => None,
            };
            let rpc = match &outside {
                Some(_) => None,
                None => {
                    let quarters = if plain_rpc.is_some() { 3 } else { 4 };
                    Some(bind_rpc(config.rpc_addr, &config, quarters).await?)
                }
            };
            let web_ports = match &outside {
                Some(outside) => WebPorts::elsewhere(outside.web_addrs),
                None => WebPorts::open(&config).await?,
            };
            let kept = outside.as_ref().map(|outside| Arc::clone(&outside.kept));
            let block_tokens = match &outside {
                Some(outside) => Arc::clone(&outside.block_tokens),
                None => block_tokens(&config)?,
            };
            let (rpc_metrics, lead, standing, own_addr) = match outside {
                Some(Outside { rpc_addr, rpc_metrics, lead, standing, .. }) => {
                    (rpc_metrics, Some(lead), standing, rpc_addr)
                }
                None => (rpc_metrics(&config), None, Standing::alone(), config.rpc_addr),
            };
            let rpc_addr = rpc.as_ref().map_or(own_addr, RpcServer::local_addr);
            let rpc = rpc.map(|rpc| rpc.counting_in(Arc::clone(&rpc_metrics)));
            let plain_rpc = plain_rpc.map(|rpc| rpc.counting_in(Arc::clone(&rpc_metrics)));
            let parts = Parts {
                config,
                superuser,
                ns,
                standing,
                lead,
                told: None,
                topology,
                access,
                audit,
                ranger,
                rpc: (rpc_addr, rpc_metrics),
                block_tokens,
                http_addr: web_ports.addrs().http,
            };
            let node = parts.assemble();
            let teller = Teller {
                keeper: Arc::clone(&node.keeper),
                reader: node.ns.reader(),
                inputs: Arc::clone(node.ns.last_inputs()),
            };
            node.ns.listen(Arc::new(teller));
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
            if let Some(term) = node.standing.borrow().term() {
                node.cluster().begin_to_lead(leases_of_others(term));
            }
            let complete = node.ns.read(|store| complete_blocks(store))?;
            node.cluster().start_safe_mode(complete, node.now());
            if let Err(refusal) = node.log_own_hosts().await {
                tracing::error!(refusal = %refusal.0, "what is wanted of DataNodes stays in its file");
            }
            if let Err(refusal) = node.submit_own(RenewAllLeases {}).await {
                tracing::error!(refusal = %refusal.0, "leases were not renewed at the start");
            }
            // Once it is taken it can be had anew from DataNodes only.
            let is_lost = node.lead.as_ref().is_some_and(|lead| lead.is_lost());
            if let Some(kept) = kept.filter(|_| !is_lost) {
                node.take_over(&kept).await?;
            }
            if node.safe_mode_tip().is_none() {
                node.trash_may_be_missing();
                node.make_missing_trash().await;
            }
            Ok(RunningNameNode::serve(node, Listening { rpc, plain_rpc, web_ports }))
        })
    }

    /// Makes a new file system in `config.name_dir`, which must be empty or missing, and serves nothing.
    pub async fn format(config: NameNodeConfig) -> Result<(), StartError> {
        let config = NameNodeConfig { format_if_empty: true, ..config };
        let ns = open_namespace(&config, &superuser(&config).await?, None).await?;
        let closed = tokio::task::spawn_blocking(move || ns.close()).await;
        closed.map_err(|_| StartError::Interrupted)
    }

    /// Whether `config.name_dir` holds a file system.
    pub fn is_formatted(config: &NameNodeConfig) -> bool {
        is_formatted(config)
    }
}

/// The last lease for a full report that may have been given out before a term: followers count from 1, and every leader
/// from a number of its own.
fn leases_of_others(term: u64) -> u64 {
    term.min(i32::MAX as u64) << 32
}

/// What a NameNode that leads a quorum has from the process that it is in.
pub(crate) struct Outside {
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Calls that were served there.
    pub rpc_metrics: Arc<RpcMetrics>,
    /// Where pages are served.
    pub web_addrs: WebAddrs,
    /// What it is.
    pub standing: watch::Receiver<Standing>,
    /// As long as which it is that.
    pub lead: Arc<Lead>,
    /// What DataNodes have told before.
    pub kept: Arc<KeptReports>,
    /// What issues block tokens, also while another one leads.
    pub block_tokens: Arc<BlockTokens>,
}

/// Where a NameNode listens.
struct Listening {
    /// None where the process around it has it.
    rpc: Option<RpcServer>,
    plain_rpc: Option<RpcServer>,
    web_ports: WebPorts,
}

impl RunningNameNode {
    fn serve(node: Arc<NameNode>, listening: Listening) -> RunningNameNode {
        let Listening { rpc, plain_rpc, web_ports } = listening;
        let web_addrs = web_ports.addrs();
        let plain_rpc_addr = plain_rpc.as_ref().map(RpcServer::local_addr);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let service = Arc::new(Protocols(Arc::clone(&node)));
        if let Some(rpc) = rpc {
            tasks.spawn(rpc.serve(Arc::clone(&service), until_stopped(stopped.clone())));
        }
        if let Some(rpc) = plain_rpc {
            let service = Arc::new(PlainProtocols(Arc::clone(&service)));
            tasks.spawn(rpc.serve(service, until_stopped(stopped.clone())));
        }
        let (held, until_stop) = (Arc::clone(&node), until_stopped(stopped.clone()));
        tasks.spawn(async move {
            until_stop.await;
            held.hold_no_calls();
        });
        let served = web_addrs.are_some().then(|| site::site(&node, &service));
        let (site, watched) = served.unzip();
        if let Some(site) = &site {
            let until = || until_stopped(stopped.clone());
            let site = (Arc::clone(site), node.admins());
            web_ports.serve(site, &node.config, until, &mut tasks);
        }
        let broken = watch::Sender::new(None);
        let rpc_addr = node.rpc_addr;
        let (node_again, is_told) = (Arc::clone(&node), AtomicBool::new(false));
        let mut running = RunningNameNode {
            rpc_addr,
            plain_rpc_addr,
            http_addr: web_addrs.http,
            https_addr: web_addrs.https,
            site,
            node: node_again,
            stop,
            broken,
            is_told,
            tasks,
        };
        running.spawn_vital(&workers::REDUNDANCY, loops::tick_cluster);
        running.spawn_vital(&workers::TAKING_OVER, NameNode::finish_taking_over);
        running.spawn_vital(&workers::FOLLOW_UP, loops::follow_up);
        running.spawn_vital(&workers::LEASES, loops::watch_leases);
        running.spawn_vital(&workers::FREE_SPACE, resources::watch);
        running.spawn_vital(&workers::DELETED_TREES, loops::remove_garbage);
        let stop = running.stop.clone();
        running
            .spawn_vital(&workers::LOG, |node, worker| loops::stop_without_log(node, worker, stop));
        running.spawn_service(&workers::CACHE_DIRECTIVES, caching::watch_directives);
        running.spawn_service(&workers::CONTIGUOUS_GROUPS, contiguous::watch);
        running.spawn_service(&workers::CONVERTED, converted::watch);
        running.spawn_service(&workers::SATISFIER, satisfier::take_up);
        running.spawn_service(&workers::KEY_WARM_UP, warm_up_keys);
        running.spawn_service(&workers::DELEGATION_TOKENS, tokens::look_after);
        running.spawn_service(&workers::BLOCK_TOKEN_KEYS, |node, worker| async move {
            node.block_tokens.look_after_keys(&worker).await
        });
        running.spawn_service(&workers::POLICIES, |node, worker| async move {
            if let Some(ranger) = &node.ranger {
                ranger.watch(&worker).await;
            }
        });
        running.spawn_service(&workers::REENCRYPTION, reencryption::run);
        running.spawn_service(&workers::TRASH, trash::empty_trash);
        running.spawn_service(&workers::LAZY_FILES, lazy_files::watch);
        running.spawn_service(&workers::SNAPSHOTS, snapshots::collect);
        running.spawn_service(&workers::SNAPSHOT_TRASH, snapshots::provision);
        if let Some(watched) = watched {
            let again = Arc::clone(&watched);
            running.spawn_service(&workers::CHART_SAMPLES, move |_, worker| {
                pages::sample(Arc::clone(&again), worker)
            });
            running.spawn_service(&workers::LAYOUT_COUNT, move |_, worker| {
                pages::count(Arc::clone(&watched), worker)
            });
        }
        running
    }

    /// Does work until the NameNode stops; if it panics, it is begun again after a while.
    fn spawn_service<F>(
        &mut self,
        kind: &'static Kind,
        work: impl Fn(Arc<NameNode>, Arc<Worker>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (node, stopped) = (Arc::clone(&self.node), until_stopped(self.stop.subscribe()));
        let worker = Arc::new(node.workers.begin(kind, ""));
        let lasting = async move {
            loop {
                let work = work(Arc::clone(&node), Arc::clone(&worker));
                let Err(panic) = lasting::unbroken(work).await else { break };
                tracing::error!(panic, "the work {} has failed, and begins again", kind.name);
                worker.broken(panic);
                tokio::time::sleep(SERVICE_REST).await;
            }
            worker.off().await;
        };
        self.tasks.spawn(async move {
            tokio::select! {
                () = stopped => {}
                () = lasting => {}
            }
        });
    }

    /// Does work without which data is in danger until the NameNode stops; if it panics, the NameNode does.
    fn spawn_vital<F>(
        &mut self,
        kind: &'static Kind,
        work: impl FnOnce(Arc<NameNode>, Arc<Worker>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let stopped = until_stopped(self.stop.subscribe());
        let (stop, broken) = (self.stop.clone(), self.broken.clone());
        let worker = Arc::new(self.node.workers.begin(kind, ""));
        let work = work(Arc::clone(&self.node), worker);
        self.tasks.spawn(async move {
            tokio::select! {
                () = stopped => {}
                ended = lasting::unbroken(work) => if let Err(panic) = ended {
                    let why = format!("the work {} has failed: {panic}", kind.name);
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
async fn warm_up_keys(node: Arc<NameNode>, worker: Arc<Worker>) {
    worker.pass().await;
    if let Some(keys) = &node.keys {
        keys.warm_up(&node.ns, &node.config.encryption).await;
    }
}

pub(crate) async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the handle was dropped, which stops as well.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_node_without_a_vital_loop_stops() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = NameNode::start(NameNodeConfig::of_test(dir.path())).await.unwrap();
        running.spawn_vital(&workers::LOG, |_, _| async { panic!("a number is odd") });
        assert_eq!(running.stopped().await, "the work log has failed: a number is odd");
        running.shutdown().await;
    }
}
