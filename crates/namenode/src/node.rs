//! What all handlers and loops of a NameNode share, and the questions that each of them asks.
//!
//! Parts that know nothing of the whole are in `node/`; what works with them has a module of its own, such as
//! [`crate::caching`].
//!
//! Locks: `cluster` is held for short work and never across an await; a namespace snapshot that the
//! cluster looks blocks up in is taken while that lock is held, so it is never older than the cluster.

pub(crate) mod caching;
pub(crate) mod missing_trash;
pub(crate) mod reencryptor;
pub(crate) mod satisfier;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_namespace::apply::RemovedBlock;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs, ReplaceCrc};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{CallId, Caller, Command, Entry, InodeId, Outcome, query};
use cairn_net::access::Access;
use cairn_net::groups::Groups;
use cairn_net::reconfiguration::Reconfiguration;
use cairn_net::rpc_server::{Call, RpcMetrics};
use cairn_redundancy::{BlockLookup, BlockState, Cluster, DisprovedCrc, LateCrc, Now};
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use tokio::sync::{Notify, Semaphore};

use crate::audit::AuditLog;
use crate::clock::wall_ms;
use crate::config::NameNodeConfig;
use crate::diff_listings::DiffListings;
use crate::hosts::Hosts;
use crate::journal::Namesystem;
use crate::key_provider::KeyProvider;
use crate::lookup::{Ahead, Lookup};
use crate::refusal::Refusal;
use crate::store::Snapshot;
use crate::topology::Topology;
use caching::Caching;
use missing_trash::MissingTrash;
use reencryptor::Reencryptor;
use satisfier::Satisfier;

/// A NameNode that has its state open; [`crate::run`] puts sockets and loops around it.
pub struct NameNode {
    /// Settings.
    pub config: NameNodeConfig,
    /// The namespace with its log and store.
    pub ns: Arc<Namesystem>,
    /// DataNodes, locations and pending work.
    pub cluster: Mutex<Cluster>,
    /// Settings that can change.
    pub reconfiguration: Reconfiguration<NameNodeConfig>,
    /// Who may speak to this NameNode by RPC.
    pub(crate) access: Mutex<Arc<Access>>,
    /// What directives want in DataNodes' memory.
    pub caching: Caching,
    /// What storage policies are to be satisfied for.
    pub(crate) satisfier: Satisfier,
    /// Where keys of encryption zones are.
    pub(crate) keys: Option<KeyProvider>,
    /// What encrypts them anew.
    pub(crate) reencryptor: Reencryptor,
    /// Racks and the lists of DataNodes that may serve.
    pub topology: Topology,
    /// Turns to walk over large trees for clients. More than these would leave no thread for what else may wait.
    pub(crate) walks: Arc<Semaphore>,
    /// Users' groups.
    pub groups: Groups,
    /// The user who may do everything.
    pub superuser: String,
    /// What is told of calls, and where.
    pub(crate) audit: Option<AuditLog>,
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Calls that were served there.
    pub rpc_metrics: Arc<RpcMetrics>,
    /// Where pages are served.
    pub http_addr: Option<SocketAddr>,
    /// When it started, ms since the epoch.
    pub started_ms: u64,
    /// Wakes calls that wait for DataNodes to report blocks.
    pub reported: Notify,
    /// Wakes the calls of DataNodes that wait for work.
    pub(crate) ordered: Notify,
    /// No call is to be held any more.
    pub(crate) is_stopping: AtomicBool,
    /// Wakes the loop that removes what is left of deleted trees.
    pub(crate) garbage: Notify,
    /// Trash that directories may lack since safe mode has ended.
    pub(crate) missing_trash: MissingTrash,
    /// Held while a rolling upgrade is prepared or finalized.
    pub(crate) upgrading: tokio::sync::Mutex<()>,
    /// What `restoreFailedStorage` was told last.
    pub(crate) restores_storage: AtomicBool,
    /// Snapshot diffs that are given out page by page.
    pub(crate) diff_listings: DiffListings,
    /// When the store was written out on request, ms since the epoch, and the last entry in it then.
    pub(crate) saved: Mutex<(u64, u64)>,
    /// The beginning of monotonic time.
    pub(crate) epoch: Instant,
}

impl NameNode {
    /// The time of both clocks.
    pub fn now(&self) -> Now {
        Now { mono_ms: self.epoch.elapsed().as_millis() as u64, wall_ms: wall_ms() }
    }

    /// The cluster state. A panic elsewhere while it was held leaves it as it was: its own checks
    /// come before its changes.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the cluster with a snapshot of the namespace that is not older than it.
    pub fn with_cluster<R>(&self, work: impl FnOnce(&mut Cluster, &Lookup<'_>) -> R) -> R {
        self.locked(|cluster, store| work(cluster, &Lookup::new(store)))
    }

    /// As [`NameNode::with_cluster`], with those blocks, in the order of their ids, looked up before others have to wait.
    pub fn with_cluster_and<R>(
        &self,
        blocks: &[BlockId],
        work: impl FnOnce(&mut Cluster, &Lookup<'_>) -> R,
    ) -> cairn_namespace::Result<R> {
        let ahead = self.ns.read(|store| Ahead::read(store, blocks))?;
        Ok(self.locked(|cluster, store| work(cluster, &Lookup::with(store, &ahead))))
    }

    fn locked<R>(&self, work: impl FnOnce(&mut Cluster, &Snapshot) -> R) -> R {
        let mut cluster = self.cluster();
        let done = self.ns.read(|store| work(&mut cluster, store));
        if cluster.take_new_orders() {
            self.ordered.notify_waiters();
        }
        done
    }

    /// Answers the calls that wait for work, now and from now on.
    pub(crate) fn hold_no_calls(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.ordered.notify_waiters();
    }

    /// Asks the namespace for somebody: a query with its snapshot.
    pub async fn query<R>(
        &self,
        call: &Call,
        ask: impl FnOnce(&dyn StoreRead, &Caller) -> cairn_namespace::Result<R>,
    ) -> Result<R, Refusal> {
        let caller = self.caller(call).await;
        Ok(self.ns.read(|store| ask(store, &caller))?)
    }

    /// Who a call is made for.
    ///
    /// Source: Hadoop 3.5.0 `FSPermissionChecker#FSPermissionChecker`.
    pub async fn caller(&self, call: &Call) -> Caller {
        self.caller_named(call.user.effective.clone()).await
    }

    /// As [`NameNode::caller`], if the user's groups are known.
    pub fn caller_now(&self, call: &Call) -> Option<Caller> {
        let user = &call.user.effective;
        Some(self.caller_in(user.clone(), self.groups.known(user)?))
    }

    /// A user with the groups and rights that it has here.
    pub async fn caller_named(&self, user: String) -> Caller {
        let groups = self.groups.of(&user).await;
        self.caller_in(user, groups)
    }

    fn caller_in(&self, user: String, groups: Vec<String>) -> Caller {
        let superuser = user == self.superuser || groups.contains(&self.config.supergroup);
        Caller { user, groups, superuser }
    }

    /// Refuses callers that are no superusers, if permissions are on; the refusal names the method as Hadoop does.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#checkSuperuserPrivilege`.
    pub async fn check_superuser(&self, call: &Call) -> Result<(), Refusal> {
        let operation = match call.method.as_str() {
            "getDatanodeReport" => "datanodeReport",
            "getSlowDatanodeReport" => "slowDataNodesReport",
            "rollEdits" => "rollEditLog",
            "startReconfiguration" => "startNamenodeReconfiguration",
            "getReconfigurationStatus" => "getNamenodeReconfigurationStatus",
            "listReconfigurableProperties" => "listNamenodeReconfigurableProperties",
            method => method,
        };
        self.check_superuser_for(call, operation).await
    }

    /// As [`NameNode::check_superuser`], for an operation that is not called like its method.
    pub async fn check_superuser_for(&self, call: &Call, operation: &str) -> Result<(), Refusal> {
        self.require_superuser(&self.caller(call).await, operation)
    }

    /// Refuses a caller that is no superuser, if permissions are on.
    pub fn require_superuser(&self, caller: &Caller, operation: &str) -> Result<(), Refusal> {
        if !self.config.permissions_enabled || caller.superuser {
            return Ok(());
        }
        let user = &caller.user;
        Err(Refusal::new(
            class::ACCESS_CONTROL,
            format!(
                "Access denied for user {user}. Superuser privilege is required for operation {operation}"
            ),
        ))
    }

    /// What safe mode says to operators, if it is on.
    pub fn safe_mode_tip(&self) -> Option<String> {
        let now = self.now();
        let cluster = self.cluster();
        cluster.safe_mode().is_on().then(|| cluster.safe_mode_tip(now))
    }

    /// Refuses changes in safe mode; `what` begins the message, such as `Cannot create file/x`.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#checkNameNodeSafeMode`.
    pub fn check_safe_mode(&self, what: impl FnOnce() -> String) -> Result<(), Refusal> {
        let Some(tip) = self.safe_mode_tip() else { return Ok(()) };
        let host = self.rpc_addr.ip();
        let what = what();
        let message = format!("{what}. Name node is in safe mode.\n{tip} NamenodeHostName:{host}");
        Err(Refusal::new(class::SAFE_MODE, message))
    }

    /// As [`NameNode::check_safe_mode`], for a call that is carried out once: one that comes again because its answer
    /// was lost in a restart gets that answer, though the NameNode is in safe mode then.
    ///
    /// Source: Hadoop 3.5.0 `NameNodeRpcServer`, which looks into its `RetryCache` first.
    pub fn check_change(&self, call: &Call, what: impl FnOnce() -> String) -> Result<(), Refusal> {
        self.unless_answered(call, self.check_safe_mode(what))
    }

    /// What a check has said, unless the call is one that was carried out before: that gets its answer again.
    pub(crate) fn unless_answered(
        &self,
        call: &Call,
        checked: Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(call) = call_id(call).filter(|_| checked.is_err()) else { return checked };
        match self.ns.is_answered(call, wall_ms())? {
            true => Ok(()),
            false => checked,
        }
    }

    /// Has a client's command logged and applied.
    pub async fn submit(
        &self,
        call: &Call,
        command: impl Into<Command>,
    ) -> Result<Outcome, Refusal> {
        let caller = self.caller(call).await;
        self.submit_as(call, caller, command).await
    }

    /// As [`NameNode::submit`], for a command of which something was found out before: groups of a caller may take
    /// seconds to be found, in which that may change.
    pub async fn submit_as(
        &self,
        call: &Call,
        caller: Caller,
        command: impl Into<Command>,
    ) -> Result<Outcome, Refusal> {
        let (now_ms, call, command) = (wall_ms(), call_id(call), command.into());
        self.submit_entry(Entry { now_ms, caller, call, command }).await
    }

    /// Has an entry logged and applied, and copies deleted that only what it took away had wanted.
    pub(crate) async fn submit_entry(&self, entry: Entry) -> Result<Outcome, Refusal> {
        let (outcome, fewer_copies) = self.ns.submit(entry).await?.without_fewer_copies();
        for file in fewer_copies {
            self.replication_changed(file)?;
        }
        Ok(outcome)
    }

    /// Has a command of the NameNode's own logged and applied.
    pub async fn submit_own(&self, command: impl Into<Command>) -> Result<Outcome, Refusal> {
        self.submit_entry(self.own_entry(command)).await
    }

    /// A log entry of the NameNode's own.
    pub fn own_entry(&self, command: impl Into<Command>) -> Entry {
        let (now_ms, caller) = (wall_ms(), Caller::system());
        Entry { now_ms, caller, call: None, command: command.into() }
    }

    /// Has the DataNodes delete what a command took out of the namespace.
    pub fn settle(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Removed { blocks, more, .. } => {
                self.forget(blocks);
                if *more {
                    self.garbage.notify_one();
                }
            }
            Outcome::Created { removed, .. }
            | Outcome::TakenOver { removed, .. }
            | Outcome::Recovery { removed, .. } => {
                self.forget(removed);
            }
            _ => {}
        }
    }

    fn forget(&self, removed: &[RemovedBlock]) {
        if removed.is_empty() {
            return;
        }
        let mut cluster = self.cluster();
        for removed in removed {
            cluster.block_removed(removed.block.id, removed.block.gs);
        }
    }

    /// Asks `look` until it says that there is nothing to wait for, again after each report from
    /// DataNodes, for `patience` at most. Returns what it said last.
    pub(crate) async fn wait_for_reports<T>(
        &self,
        patience: Duration,
        look: impl Fn() -> Result<(bool, T), Refusal>,
    ) -> Result<T, Refusal> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let reported = self.reported.notified();
            tokio::pin!(reported);
            // Counts from here, so that a report between the look and the wait is not missed.
            reported.as_mut().enable();
            let (enough, found) = look()?;
            if enough || tokio::time::timeout_at(deadline, reported).await.is_err() {
                return Ok(found);
            }
        }
    }

    /// Blocks of a file that are not complete, for [`NameNode::note_completed`] after a command that
    /// may close it.
    pub(crate) fn incomplete_blocks(&self, file: InodeId) -> Vec<BlockId> {
        let blocks = self.ns.read(|store| query::incomplete_blocks(store, file));
        blocks.unwrap_or_default().iter().map(|block| block.id).collect()
    }

    /// Tells the cluster of those of `blocks` that are final now.
    pub(crate) fn note_completed(&self, blocks: &[BlockId]) {
        if blocks.is_empty() {
            return;
        }
        let late = self.with_cluster(|cluster, lookup| {
            let finals =
                blocks.iter().filter(|id| lookup.block(**id).is_some_and(|facts| facts.is_final()));
            finals.flat_map(|id| cluster.block_completed(lookup, *id)).collect()
        });
        self.record_late(late);
    }

    /// Completes those of `committed` that have their minimum of replicas. Their DataNodes may have reported after
    /// the command that has committed them was decided on and before it came into force, and then say no more.
    pub(crate) async fn complete_reported(&self, committed: &[BlockId]) -> Result<(), Refusal> {
        if committed.is_empty() {
            return Ok(());
        }
        let ready: Vec<BlockId> = self.with_cluster(|cluster, lookup| {
            let is_ready = |id: &BlockId| {
                let facts = lookup.block(*id).filter(|facts| facts.state == BlockState::Committed);
                facts.is_some_and(|facts| cluster.min_reached(*id, &facts))
            };
            committed.iter().copied().filter(is_ready).collect()
        });
        self.complete_blocks(&ready).await
    }

    /// Blocks of open files that have their minimum of replicas are complete: what they lack is mended from
    /// now on, however long their file stays open.
    pub(crate) async fn complete_blocks(&self, ready: &[BlockId]) -> Result<(), Refusal> {
        if ready.is_empty() {
            return Ok(());
        }
        let blocks = self.with_cluster(|cluster, lookup| {
            let crcs = |id: &BlockId| {
                let facts = lookup.block(*id)?;
                Some(BlockCrcs { id: *id, gs: facts.gs, units: cluster.unit_crcs(*id, &facts) })
            };
            ready.iter().filter_map(crcs).collect()
        });
        self.submit_own(CompleteBlocks { blocks }).await?;
        self.note_completed(ready);
        Ok(())
    }

    /// Records CRCs that came too late for the command that has completed their blocks. Nobody waits for it.
    pub(crate) fn record_late(&self, late: Vec<LateCrc>) {
        if late.is_empty() {
            return;
        }
        let (ns, entry) = (Arc::clone(&self.ns), self.own_entry(late_command(late)));
        tokio::spawn(async move {
            if let Err(error) = ns.submit(entry).await {
                tracing::warn!(%error, "CRCs of units are not recorded");
            }
        });
    }

    /// Replaces records of CRCs that replicas have proven wrong.
    pub(crate) async fn replace_disproved_crcs(&self) {
        let disproved = self.cluster().take_disproved();
        for DisprovedCrc { id, gs, recorded, crc32c } in disproved {
            tracing::warn!(block = %id, recorded, crc32c, "most replicas, or all units of the group, prove the recorded CRC wrong: it is replaced");
            match self.submit_own(ReplaceCrc { id, gs, recorded, crc32c }).await {
                Ok(_) => self.with_cluster(|cluster, lookup| cluster.record_replaced(lookup, id)),
                Err(refusal) => tracing::error!(refusal = %refusal.0, "the record stays"),
            }
        }
    }

    /// Tells the cluster that a file wants another number of copies.
    pub fn replication_changed(&self, file: InodeId) -> Result<(), Refusal> {
        self.with_cluster(|cluster, lookup| {
            for block in query::blocks_of_file(lookup.store, file)? {
                cluster.block_changed(lookup, block);
            }
            Ok(())
        })
    }

    /// Reads racks and lists of DataNodes again and acts on them: each node is told what is wanted of it,
    /// and nodes that may not serve any more are dropped.
    ///
    /// Source: Hadoop 3.5.0 `DatanodeManager#refreshDatanodes`.
    pub async fn refresh_nodes(&self) -> Result<(), Refusal> {
        let config = self.config.clone();
        let read = tokio::task::spawn_blocking(move || Hosts::read(&config)).await;
        let hosts = read.map_err(|_| Refusal::io("refreshNodes was interrupted"))?;
        self.topology.refresh(hosts.map_err(|error| Refusal::io(error.to_string()))?);
        let (hosts, now) = (self.topology.hosts(), self.now());
        let known: Vec<_> = self.cluster().nodes().map(|n| (n.handle, n.address.clone())).collect();
        // One after the other: a change has blocks looked at, and others wait for the lock.
        for (handle, address) in known {
            self.with_cluster(|cluster, lookup| {
                if hosts.is_included(&address) {
                    cluster.set_admin_intent(lookup, handle, hosts.intent(&address), now);
                } else {
                    cluster.disallow_node(lookup, handle);
                }
                cluster.set_upgrade_domain(handle, hosts.upgrade_domain(&address));
            });
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// What a repetition of this call is known by. Clients that tell no identity of their own do not repeat
/// calls, and all share one: their numbers tell nothing.
///
/// Source: Hadoop 3.5.0 `RetryCache#skipRetryCache`.
fn call_id(call: &Call) -> Option<CallId> {
    let has_identity = call.client_id != [0; 16] && call.call_id >= 0;
    has_identity.then_some(CallId { client_id: call.client_id, call_id: call.call_id })
}

/// The command that records CRCs, block by block.
pub(crate) fn late_command(all: Vec<LateCrc>) -> RecordUnitCrcs {
    let mut blocks: BTreeMap<BlockId, BlockCrcs> = BTreeMap::new();
    for late in all {
        let new = || BlockCrcs { id: late.id, gs: late.gs, units: Vec::new() };
        let units = &mut blocks.entry(late.id).or_insert_with(new).units;
        if units.len() <= late.unit.as_usize() {
            units.resize(late.unit.as_usize() + 1, None);
        }
        units[late.unit.as_usize()] = Some(late.crc32c);
    }
    RecordUnitCrcs { blocks: blocks.into_values().collect() }
}
