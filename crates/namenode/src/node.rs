//! What all handlers and loops of a NameNode share, and the questions that each of them asks.
//!
//! Parts that know nothing of the whole are in `node/`; what works with them has a module of its own, such as
//! [`crate::caching`].
//!
//! Who may hold the cluster, and who waits for it, is in [`crate::keeper`]; operations on both states are in
//! `cairn_master`, which [`crate::carrier`] carries.

pub(crate) mod caching;
pub(crate) mod encoded;
pub(crate) mod group_work;
pub(crate) mod missing_trash;
pub(crate) mod reencryptor;
pub(crate) mod satisfier;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_master::{FollowUp, Look, Lookup, Submission};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{CallId, Caller, Command, Outcome, Rights};
use cairn_net::rpc_server::{Call, RpcMetrics};
use cairn_operate::reconfiguration::Reconfiguration;
use cairn_operate::workers::Workers;
use cairn_redundancy::{Cluster, Now};
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use tokio::sync::{Notify, Semaphore, watch};

use crate::ahead::Ahead;
use crate::audit::AuditLog;
use crate::block_tokens::BlockTokens;
use crate::config::NameNodeConfig;
use crate::dice::dice;
use crate::diff_listings::DiffListings;
use crate::journal::{Namesystem, SubmitError};
use crate::keeper::{Held, Keeper};
use crate::kept_reports::KeptReports;
use crate::key_provider::KeyProvider;
use crate::lead::Lead;
use crate::operations::Operations;
use crate::ranger::{Ranger, Tell};
use crate::refusal::{Answer, Refusal};
use crate::standing::Standing;
use crate::topology::Topology;
use caching::Caching;
use encoded::EncodedGroups;
use group_work::GroupWork;
use missing_trash::MissingTrash;
use reencryptor::Reencryptor;
use satisfier::Satisfier;

/// A NameNode that has its state open; [`crate::run`] puts sockets and loops around it.
pub struct NameNode {
    /// Settings.
    pub config: NameNodeConfig,
    /// What it is among the NameNodes of its file system.
    pub standing: watch::Receiver<Standing>,
    /// The lead of the quorum that it is the NameNode of; none if it is alone.
    pub(crate) lead: Option<Arc<Lead>>,
    /// What DataNodes tell a member that follows, whose namespace this one only reads.
    pub(crate) told: Option<Arc<KeptReports>>,
    /// The namespace with its log and store.
    pub ns: Arc<Namesystem>,
    /// DataNodes, locations and pending work.
    pub(crate) keeper: Arc<Keeper>,
    /// What is under way for callers.
    pub(crate) operations: Operations,
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
    /// What issues block tokens.
    pub(crate) block_tokens: Arc<BlockTokens>,
    /// Users' groups.
    pub groups: Groups,
    /// The user who may do everything.
    pub superuser: String,
    /// What is told of calls, and where.
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// Policies that go before modes, if there are such.
    pub(crate) ranger: Option<Ranger>,
    /// Where RPC is served.
    pub rpc_addr: SocketAddr,
    /// Calls that were served there.
    pub rpc_metrics: Arc<RpcMetrics>,
    /// Where pages are served.
    pub http_addr: Option<SocketAddr>,
    /// When it started, ms since the epoch.
    pub started_ms: u64,
    /// No call is to be held any more.
    pub(crate) is_stopping: AtomicBool,
    /// Contiguous groups that DataNodes have encoded, to be judged.
    pub(crate) encoded: EncodedGroups,
    /// What was done about contiguous groups.
    pub(crate) group_work: GroupWork,
    /// Wakes the loop that removes what is left of deleted trees.
    pub(crate) garbage: Notify,
    /// Trash that directories may lack since safe mode has ended.
    pub(crate) missing_trash: MissingTrash,
    /// Held while an order of an operator is logged and followed: the cluster follows them as the log has them.
    pub(crate) ordering: tokio::sync::Mutex<()>,
    /// Held while a rolling upgrade is prepared or finalized.
    pub(crate) upgrading: tokio::sync::Mutex<()>,
    /// What `restoreFailedStorage` was told last.
    pub(crate) restores_storage: AtomicBool,
    /// Snapshot diffs that are given out page by page.
    pub(crate) diff_listings: DiffListings,
    /// When the store was written out on request, ms since the epoch, and the last entry in it then.
    pub(crate) saved: Mutex<(u64, u64)>,
    /// Its background work.
    pub(crate) workers: Workers,
}

impl NameNode {
    /// The time of both clocks.
    pub fn now(&self) -> Now {
        self.keeper.now()
    }

    /// Whether nobody else can decide at this moment, so that what it answers now is so.
    pub(crate) fn may_answer(&self) -> bool {
        self.lead.as_ref().is_none_or(|lead| lead.may_answer())
    }

    /// An answer, if it may be given: what was read may not be so any more where another one leads, and orders to DataNodes
    /// are that one's to give. Asked when the answer is there, not before.
    pub(crate) fn if_it_may(&self, answer: Answer) -> Answer {
        if self.may_answer() { answer } else { Err(Refusal::standby(&self.standing.borrow())) }
    }

    /// The cluster, for whoever holds what comes back: for short work, and never across an await.
    pub fn cluster(&self) -> Held<'_> {
        self.keeper.lock()
    }

    /// Looks at the cluster and at the state of the namespace that it has been told of.
    pub fn see<R>(&self, look: impl FnOnce(&Cluster, &Lookup<'_>) -> R) -> R {
        self.with_cluster(|cluster, lookup| look(cluster, lookup))
    }

    /// Looks at the cluster alone.
    pub fn see_cluster<R>(&self, look: impl FnOnce(&Cluster) -> R) -> R {
        look(&self.cluster())
    }

    /// Looks at the cluster alone, which knows where those blocks are, as far as it has been told.
    pub fn see_blocks<R>(
        &self,
        blocks: impl FnOnce() -> Vec<BlockId>,
        look: impl FnOnce(&Cluster) -> R,
    ) -> R {
        let mut cluster = self.cluster();
        if cluster.is_taking_over() {
            self.ns.read(|store| cluster.settle(&Lookup::new(store), &blocks()));
        }
        look(&cluster)
    }

    /// Works on the cluster with the state of the namespace that it has been told of.
    pub fn with_cluster<R>(&self, work: impl FnOnce(&mut Cluster, &Lookup<'_>) -> R) -> R {
        let mut cluster = self.cluster();
        self.ns.read(|store| work(&mut cluster, &Lookup::new(store)))
    }

    /// Looks at both at one moment, and may change what is known of DataNodes.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Look<'_>) -> R) -> R {
        let mut cluster = self.cluster();
        self.ns.read(|store| {
            let (cluster, now) = (&mut *cluster, self.now());
            look(&mut Look { store, cluster, now, dice: &mut dice })
        })
    }

    /// As [`NameNode::with_cluster`], with those blocks, in the order of their ids, looked up before others have to wait.
    pub fn with_cluster_and<R>(
        &self,
        blocks: &[BlockId],
        work: impl FnOnce(&mut Cluster, &Lookup<'_>) -> R,
    ) -> cairn_namespace::Result<R> {
        let ahead = self.ns.read(|store| Ahead::read(store, blocks))?;
        let mut cluster = self.cluster();
        Ok(self.ns.read(|store| {
            let known = ahead.in_state(store);
            work(&mut cluster, &Lookup::with(store, &known))
        }))
    }

    /// Answers the calls that wait for work, now and from now on.
    pub(crate) fn hold_no_calls(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.keeper.ordered().notify_waiters();
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
        let user = call.user.effective.clone();
        let groups = self.groups.of(&user).await;
        self.caller_in(user, groups, Some(call))
    }

    /// As [`NameNode::caller`], if the user's groups are known.
    pub fn caller_now(&self, call: &Call) -> Option<Caller> {
        let user = &call.user.effective;
        Some(self.caller_in(user.clone(), self.groups.known(user)?, Some(call)))
    }

    /// A user with the groups and rights that it has here.
    pub async fn caller_named(&self, user: String) -> Caller {
        let groups = self.groups.of(&user).await;
        self.caller_in(user, groups, None)
    }

    fn caller_in(&self, user: String, groups: Vec<String>, call: Option<&Call>) -> Caller {
        let superuser = user == self.superuser || groups.contains(&self.config.supergroup);
        let rights = match &self.ranger {
            Some(ranger) if !superuser && self.config.permissions_enabled => {
                let from = call.map(|call| (call.user.by.name(), call.peer.ip()));
                let audit = self.audit.clone().map(|audit| audit as Arc<dyn Tell>);
                ranger.rights(audit, (&user, &groups), from)
            }
            _ => Rights::Modes,
        };
        Caller { user, groups, superuser, rights }
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

    /// Whether nothing is to be mended, moved, grouped or deleted now, nor taken for lost.
    pub(crate) fn holds_work(&self) -> bool {
        self.cluster().safe_mode().holds_work()
    }

    /// Refuses changes in safe mode; `what` begins the message, such as `Cannot create file/x`.
    ///
    /// Clients of a quorum wait for the end of a start's: locations come to a new leader soon.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#checkNameNodeSafeMode`.
    pub fn check_safe_mode(&self, what: impl FnOnce() -> String) -> Result<(), Refusal> {
        let Some(tip) = self.safe_mode_tip() else { return Ok(()) };
        let host = self.rpc_addr.ip();
        let what = what();
        let message = format!("{what}. Name node is in safe mode.\n{tip} NamenodeHostName:{host}");
        let waits = self.lead.is_some() && !self.cluster().safe_mode().has_enough();
        Err(Refusal::new(if waits { class::RETRIABLE } else { class::SAFE_MODE }, message))
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
        match self.ns.is_answered(call, self.now().elapsed_ms)? {
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
        Ok(self.log(Submission::of(caller, call_id(call), command)).await?)
    }

    /// Has a command logged and applied.
    pub(crate) async fn log(&self, submission: Submission) -> Result<Outcome, SubmitError> {
        let outcome = self.ns.submit(submission).await?;
        if matches!(outcome, Outcome::Removed { more: true, .. }) {
            self.garbage.notify_one();
        }
        Ok(outcome)
    }

    /// Has a command of the NameNode's own logged and applied.
    pub async fn submit_own(&self, command: impl Into<Command>) -> Result<Outcome, Refusal> {
        Ok(self.log(Submission::own(command)).await?)
    }

    /// What a repetition of this call is known by; see [`call_id`].
    pub(crate) fn call_id(&self, call: &Call) -> Option<CallId> {
        call_id(call)
    }

    /// Has what follows from reports submitted, without waiting for it.
    pub(crate) fn follow_up_later(&self, follow_up: FollowUp) {
        self.keeper.add_due(follow_up);
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
