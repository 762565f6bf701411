//! A simulated NameNode: the real namespace over a log that can be torn, the real cluster state, and
//! the glue between them.
//!
//! The glue mirrors what `crates/namenode` does around the cores, without the wire: each function
//! names the file that it follows. An RPC is one call here, at one moment of simulated time.

mod files;
mod log;
mod reports;

use crate::parts::Parts;
use crate::rng::Rng;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::ec::{AddEcPolicies, EnableEcPolicy, PolicySpec};
use cairn_namespace::ops::lease::RenewAllLeases;
use cairn_namespace::ops::unit_crcs::ReplaceCrc;
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{Changes, StoreRead, StoreTxn};
use cairn_namespace::{
    Block, BlockState as Written, CallId, Caller, Command, Entry, NamespaceError, Outcome, Retries,
    Settings, apply, evaluate, query,
};
use cairn_redundancy::{
    AdminState, BlockFacts, BlockLookup, BlockState, Cluster, Config, DisprovedCrc, Layout,
    NodeClaim, NodeHandle, Now, StoragePolicy,
};
use cairn_stripe::{BlockId, GenerationStamp, Redundancy, UnitIndex};
use log::Log;
use std::time::Duration;

pub(crate) use files::{LocatedBlock, Target};

/// Where each DataNode listens, at an address of its own.
const XFER_PORT: u16 = 9866;
/// Wall time at the start of a simulation.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// The policies that files get, all with cells of 1 KiB.
pub(crate) const POLICIES: [(&str, u32, u32); 3] = [("XOR", 2, 1), ("RS", 3, 2), ("RS", 6, 3)];

/// The time of both clocks.
pub(crate) fn now(ms: u64) -> Now {
    Now { mono_ms: ms, wall_ms: EPOCH_MS + ms }
}

/// Why a call has no good answer.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// The NameNode is down, or fell while it worked: what became of the call is not known.
    Lost,
    /// It says no; the text is for traces.
    Refused(String),
    /// It asks to try again later, or has no place.
    NotNow,
}

impl From<NamespaceError> for CallError {
    fn from(error: NamespaceError) -> CallError {
        CallError::Refused(error.to_string())
    }
}

/// How a NameNode falls in the middle of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fall {
    /// The entry is not durable; a part of it may be on disk.
    Unsynced,
    /// The entry is durable, and nobody was told.
    Unanswered,
}

/// One snapshot of the namespace, as the cluster asks it. Follows `crates/namenode/src/lookup.rs`.
pub(crate) struct Lookup<'a> {
    store: &'a dyn StoreRead,
    compares_crcs: bool,
}

pub(crate) fn facts(block: &Block, redundancy: &Redundancy) -> BlockFacts {
    let state = match block.state {
        Written::UnderConstruction => BlockState::UnderConstruction,
        Written::UnderRecovery { .. }
        | Written::UnderTruncation { .. }
        | Written::UnderCopy { .. } => BlockState::UnderRecovery,
        Written::Committed => BlockState::Committed,
        Written::Complete => BlockState::Complete,
    };
    BlockFacts { gs: block.gs, len: block.len, layout: Layout::from(redundancy), state }
}

/// What the store in memory answers; it never fails.
pub(crate) fn sure<T>(answer: cairn_namespace::Result<T>) -> T {
    answer.unwrap_or_else(|error| panic!("the store in memory failed: {error}"))
}

impl BlockLookup for Lookup<'_> {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        sure(query::get_block(self.store, id)).map(|info| facts(&info.block, &info.redundancy))
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let infos = sure(query::blocks_after(self.store, after, limit));
        infos.iter().map(|info| (info.block.id, facts(&info.block, &info.redundancy))).collect()
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        StoragePolicy::by_id(sure(query::storage_policy_of_block(self.store, id)))
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        let info = sure(query::get_block(self.store, id)).filter(|_| self.compares_crcs);
        info.and_then(|info| info.block.unit_crcs.get(unit.as_usize()).copied().flatten())
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        sure(query::is_future_stamp(self.store, gs))
    }
}

/// See the module.
pub(crate) struct NameNode {
    pub(crate) up: bool,
    pub(crate) now_ms: u64,
    log: Log,
    pub(crate) store: MemoryStore,
    retries: Retries,
    pub(crate) cluster: Cluster,
    rng: Rng,
    /// Entries of the log that the model knows of.
    logged: usize,
    compares_crcs: bool,
    syncs_before_answer: bool,
    lets_go_at_once: bool,
    /// Where to fall: after so many commands, and how.
    pub(crate) fall: Option<(u32, Fall)>,
    /// Commands that were made durable or answered, for the model of the namespace.
    pub(crate) done: Vec<(Command, Outcome)>,
}

fn cluster_config() -> Config {
    Config {
        recheck_interval: Duration::from_secs(15),
        stale_interval: Duration::from_secs(12),
        safe_mode_extension: Duration::from_secs(5),
        pending_timeout: Duration::from_secs(40),
        decommission_interval: Duration::from_secs(5),
        ..Config::default()
    }
}

fn settings() -> Settings {
    Settings {
        block_size_min: 0,
        permissions_enabled: false,
        lease_soft_limit_ms: 30_000,
        lease_hard_limit_ms: 60_000,
        ..Settings::default()
    }
}

/// Works on the cluster with a lookup into the store beside it.
macro_rules! with_cluster {
    ($self:ident, |$cluster:ident, $lookup:ident| $work:expr) => {{
        let $lookup = &crate::name_node::Lookup::new(&$self.store, $self.compares_crcs);
        let $cluster = &mut $self.cluster;
        $work
    }};
}
use with_cluster;

impl<'a> Lookup<'a> {
    pub(crate) fn new(store: &'a dyn StoreRead, compares_crcs: bool) -> Lookup<'a> {
        Lookup { store, compares_crcs }
    }
}

impl NameNode {
    pub(crate) fn format(rng: Rng, parts: &dyn Parts) -> NameNode {
        let mut node = NameNode {
            up: true,
            now_ms: 0,
            log: Log::default(),
            store: MemoryStore::new(),
            retries: Retries::default(),
            cluster: Cluster::new(cluster_config()),
            rng,
            logged: 0,
            compares_crcs: parts.compares_crcs(),
            syncs_before_answer: parts.syncs_before_answer(),
            lets_go_at_once: parts.lets_go_at_once(),
            fall: None,
            done: Vec::new(),
        };
        node.serve();
        let policies = POLICIES.map(|(codec, k, m)| PolicySpec {
            codec: codec.to_string(),
            k,
            m,
            cell_len: 1024,
        });
        node.own(AddEcPolicies { policies: policies.into() });
        for (codec, k, m) in POLICIES {
            node.own(EnableEcPolicy { name: policy_name(codec, k, m) });
        }
        node.log.sync();
        node
    }

    /// Puts the settings in force and begins to serve. Follows `crates/namenode/src/run.rs`.
    fn serve(&mut self) {
        self.up = true;
        self.own(Configure { settings: settings().into() });
        let blocks = sure(query::blocks_after(&self.store, None, usize::MAX));
        let complete = blocks.iter().filter(|info| info.block.state == Written::Complete).count();
        self.cluster = Cluster::new(cluster_config());
        self.cluster.start_safe_mode(complete as u64, self.now());
        self.own(RenewAllLeases {});
        self.log.sync();
    }

    /// Stops as by a power cut.
    pub(crate) fn crash(&mut self) {
        self.up = false;
        self.fall = None;
        self.log.crash(&mut self.rng);
    }

    /// Starts again from the log.
    pub(crate) fn restart(&mut self) {
        self.store = self.replay();
        self.serve();
    }

    /// The store that the log gives.
    fn replay(&mut self) -> MemoryStore {
        let mut store = MemoryStore::new();
        self.retries = Retries::default();
        let entries = self.log.recover();
        for (at, entry) in entries.into_iter().enumerate() {
            let outcome = apply(&mut store, &entry).unwrap_or_else(|error| {
                panic!("an entry of the log can't be applied again: {error}: {entry:?}")
            });
            let limits = sure(store.settings());
            sure(self.retries.remember(&entry, &limits, &outcome));
            // Not synced when the NameNode fell, and there all the same.
            if at >= self.logged {
                self.done.push((entry.command, outcome));
            }
            self.logged = self.logged.max(at + 1);
        }
        store
    }

    /// Whether a replay of the log gives the store.
    pub(crate) fn is_replayable(&self) -> bool {
        let mut store = MemoryStore::new();
        let all = self.log.clone().recover();
        all.iter().all(|entry| apply(&mut store, entry).is_ok()) && store == self.store
    }

    pub(crate) fn now(&self) -> Now {
        now(self.now_ms)
    }

    pub(crate) fn is_safe_mode(&self) -> bool {
        self.cluster.safe_mode().is_on()
    }

    /// Logs and applies a command. Follows `crates/namenode/src/journal/writer.rs`.
    pub(crate) fn submit(
        &mut self,
        call: Option<CallId>,
        command: impl Into<Command>,
    ) -> Result<Outcome, CallError> {
        if !self.up {
            return Err(CallError::Lost);
        }
        let entry = Entry {
            now_ms: self.now().wall_ms,
            caller: Caller::system(),
            call,
            command: command.into(),
        };
        let known = self.retries.find(&entry)?;
        let is_known = known.is_some();
        let (outcome, changes) = match known {
            Some(outcome) => (outcome, Changes::default()),
            None => evaluate(&self.store, &entry)?,
        };
        let fall = match &mut self.fall {
            Some((0, fall)) => Some(*fall),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        };
        if !changes.is_empty() || !is_known && entry.once().is_some() {
            self.log.append(&entry);
            if fall == Some(Fall::Unsynced) {
                self.crash();
                return Err(CallError::Lost);
            }
            if self.syncs_before_answer {
                self.log.sync();
            }
            sure(changes.write_to(&mut self.store as &mut dyn StoreTxn).map_err(Into::into));
            let limits = sure(self.store.settings());
            sure(self.retries.remember(&entry, &limits, &outcome));
            self.logged += 1;
            self.done.push((entry.command, outcome.clone()));
        }
        if fall.is_some() {
            self.log.sync();
            self.crash();
            return Err(CallError::Lost);
        }
        Ok(outcome)
    }

    /// A command of its own; refusals are of no interest.
    fn own(&mut self, command: impl Into<Command>) {
        _ = self.submit(None, command);
    }

    /// Lets time pass, and says which nodes are let go. Follows the loops of `crates/namenode/src/run.rs`.
    pub(crate) fn tick(&mut self) -> Vec<(usize, AdminState)> {
        let now = self.now();
        let mut rng = self.rng.clone();
        let tick =
            with_cluster!(self, |cluster, lookup| cluster.tick(lookup, now, &mut || rng.any()));
        self.rng = rng;
        self.finish_tick(tick.more);
        let mut changed = tick.admin;
        if self.lets_go_at_once {
            changed.extend(self.let_all_go());
        }
        let states = changed.into_iter().map(|node| self.cluster.node(node));
        let states = states.map(|node| (number_of(&node.uuid), node.admin));
        states
            .filter(|(_, state)| {
                matches!(state, AdminState::Decommissioned | AdminState::InMaintenance)
            })
            .collect()
    }

    /// Forgets all that is lost, and replaces records that are proven wrong.
    fn finish_tick(&mut self, mut more: bool) {
        while more {
            more = with_cluster!(self, |cluster, lookup| cluster.go_on(lookup));
        }
        for DisprovedCrc { id, gs, recorded, crc32c } in self.cluster.take_disproved() {
            self.own(ReplaceCrc { id, gs, recorded, crc32c });
            with_cluster!(self, |cluster, lookup| cluster.record_replaced(lookup, id));
        }
    }

    /// Lets nodes go that others may still need.
    fn let_all_go(&mut self) -> Vec<NodeHandle> {
        let leaving: Vec<NodeHandle> = self.cluster.leaving_nodes().collect();
        for node in &leaving {
            let next = match self.cluster.node(*node).is_maintenance() {
                true => AdminState::InMaintenance,
                false => AdminState::Decommissioned,
            };
            with_cluster!(self, |cluster, lookup| cluster.set_admin_state(lookup, *node, next));
        }
        leaving
    }

    /// Nodes that the widest block is spread over.
    pub(crate) fn widest(&self) -> usize {
        let all = sure(query::blocks_after(&self.store, None, usize::MAX));
        all.iter().map(|info| info.redundancy.width()).max().unwrap_or(0)
    }

    /// Has DataNodes delete what a command took out. Follows `crates/namenode/src/node.rs`.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        let removed = match outcome {
            Outcome::Removed { blocks, .. } | Outcome::Reclaimed { blocks, .. } => blocks,
            Outcome::Created { removed, .. }
            | Outcome::Replaced { removed, .. }
            | Outcome::Recovery { removed, .. } => removed,
            _ => return,
        };
        for removed in removed {
            self.cluster.block_removed(removed.block.id, removed.block.gs);
        }
    }

    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup::new(&self.store, self.compares_crcs)
    }

    pub(crate) fn block(&self, id: BlockId) -> Option<query::BlockInfo> {
        sure(query::get_block(&self.store, id))
    }

    pub(crate) fn facts_of(&self, id: BlockId) -> Option<BlockFacts> {
        self.block(id).map(|info| facts(&info.block, &info.redundancy))
    }
}

/// The names of a DataNode.
struct Named {
    uuid: String,
    ip: String,
}

impl Named {
    fn of(node: usize) -> Named {
        Named { uuid: format!("dn-{node}"), ip: format!("10.0.0.{node}") }
    }

    /// What is said of it, by others or by itself.
    fn claim(&self) -> NodeClaim<'_> {
        NodeClaim { uuid: &self.uuid, ip: &self.ip, xfer_port: XFER_PORT.into(), process: None }
    }
}

/// The number in a DataNode's UUID.
fn number_of(uuid: &str) -> usize {
    uuid.trim_start_matches("dn-").parse().unwrap_or(usize::MAX)
}

pub(crate) fn policy_name(codec: &str, k: u32, m: u32) -> String {
    format!("{codec}-{k}-{m}-1k")
}
