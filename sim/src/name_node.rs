//! A simulated NameNode: the operations that ship (`cairn_master`) over a log that can be torn, with groups of entries
//! that are applied, logged and shown one after the other. Between any two of these steps anything can happen.

mod commits;
mod core;
mod entries;
mod files;
mod grouping;
mod groups;
mod log;
mod names;
mod op;
mod packs;
mod reports;
mod restore;
mod store;

use crate::options::Options;
use crate::parts::Parts;
use crate::rng::Rng;
use cairn_master::contiguous::elsewhere::PackedAt;
use cairn_master::contiguous::rounds::{Rounds, Unjudged};
use cairn_master::effects::EntryEffects;
use cairn_master::facts::facts;
use cairn_master::group::Groups;
use cairn_master::{Lookup, Op, Submission, follow_up};
use cairn_namespace::group::Group as BlockGroup;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::ec::{AddEcPolicies, EnableEcPolicy, PolicySpec};
use cairn_namespace::ops::lease::RenewAllLeases;
use cairn_namespace::query::BlockInfo;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{
    BlockState as Written, Clock, Command, Entry, Retries, Settings, Times, apply, query,
};
use cairn_redundancy::{
    AdminState, BlockFacts, BlockLookup, Cluster, Config, GroupFacts, NodeHandle, Now,
    StoragePolicy, Ticket,
};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use entries::{Group, LIMITS, Request};
use grouping::Round;
use log::Log;
use names::machine_at;
use op::Running;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;
use store::Store;

pub(crate) use self::core::Core;
pub(crate) use entries::{Happening, InForce};
pub(crate) use grouping::{GROUP_POLICIES, Grouping, Located, NamedOrder, NamedRebuild};
pub(crate) use names::{CallError, Fall, LocatedBlock, Named, Target, sure};
pub(crate) use op::{Answer, Carrier};
pub(crate) use packs::pack_rules;

/// The policies that files get, all with cells of 1 KiB.
pub(crate) const POLICIES: [(&str, u32, u32); 3] = [("XOR", 2, 1), ("RS", 3, 2), ("RS", 6, 3)];

/// What the namespace says of blocks, for the cluster; CRCs only where they are compared.
pub(crate) struct Facts<'a> {
    lookup: Lookup<'a>,
    store: &'a Store,
    bugs: &'a Bugs,
}

impl BlockLookup for Facts<'_> {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        if id.is_parity() {
            let group =
                self.lookup.group(id).filter(|group| group.formed || !self.bugs.forgets_attempts);
            return group.map(|group| group.facts());
        }
        let info = self.store.block(id)?;
        let is_freed = self.bugs.frees_members && info.block.is_tombstone();
        (!is_freed).then(|| facts(&info.block, &info.redundancy))
    }

    fn group(&self, handle: BlockId) -> Option<GroupFacts> {
        self.lookup.group(handle)
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        self.lookup.blocks_after(after, limit)
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        self.store.storage_policy(id)
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        self.lookup.unit_crc(id, unit).filter(|_| self.bugs.compares_crcs)
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        self.lookup.is_future(gs)
    }
}

/// Known mistakes that are put back.
#[derive(Clone, Copy, Debug)]
struct Bugs {
    compares_crcs: bool,
    syncs_before_answer: bool,
    lets_go_at_once: bool,
    reorders_effects: bool,
    drops_effects: bool,
    ignores_guards: bool,
    fails_what_is_durable: bool,
    goes_by_uuids: bool,
    follows_wall_clock: bool,
    forgets_attempts: bool,
    frees_members: bool,
    reuses_handles: bool,
    believes_encoders: bool,
    forms_unchecked: bool,
    keeps_places: bool,
    packs_unchecked: bool,
    frees_by_count: bool,
}

/// What the first entries of the log give.
#[derive(Clone, Debug, Default)]
struct Read {
    entries: usize,
    log_len: usize,
    store: Store,
    retries: Retries,
    times: Times,
}

/// See the module.
pub(crate) struct NameNode {
    pub(crate) up: bool,
    /// Starts and falls so far.
    pub(crate) life: u64,
    /// Lent to the operation that is polled.
    core: Option<Box<Core>>,
    log: Log,
    /// Its disk is slow at each write, not at some.
    is_contended: bool,
    /// The namespace with what was applied and is not in force yet.
    ahead: Store,
    retries: Retries,
    /// Of the last entry that was applied.
    last_times: Times,
    groups: Groups,
    /// Commands that wait to be applied.
    backlog: VecDeque<Request>,
    open: Group,
    logging: Option<Group>,
    unshown: VecDeque<Group>,
    /// Operations that were begun so far.
    operations: u64,
    running: BTreeMap<u64, Running>,
    /// Operations that can go on.
    ready: VecDeque<u64>,
    waits: BTreeMap<Ticket, u64>,
    /// What is to happen after so many ms.
    pub(crate) happenings: Vec<(u64, Happening)>,
    /// Entries of the log that the model knows of.
    logged: usize,
    bugs: Bugs,
    /// How contiguous groups are made here, if they are.
    grouping: Option<Grouping>,
    rounds: Rounds,
    round: Option<Answer<Round>>,
    /// What DataNodes have said of groups that they were to encode.
    unjudged: Vec<Unjudged>,
    /// The namespace as it was when attempts began, where that mistake is put back.
    begun: BTreeMap<BlockId, Store>,
    /// Where blocks were packed first, where that mistake is put back.
    kept_places: BTreeMap<BlockId, PackedAt>,
    /// Effects that the cluster hears of late, where that mistake is put back.
    late_effects: Vec<EntryEffects>,
    /// Machines that are clones of others, with the DataNodes for which they speak.
    pub(crate) clones: BTreeMap<usize, usize>,
    /// The processes that have registered last, where claims are not compared.
    processes: BTreeMap<String, u64>,
    /// The namespace as it was when it was backed up.
    backup: Option<Store>,
    /// What the entries give that a start has read: they are in the log for good.
    read: Read,
    /// The last stamp that a block had at the start.
    since: GenerationStamp,
    /// Where to fall: after so many commands, and how.
    pub(crate) fall: Option<(u32, Fall)>,
    /// How often the namespace has changed.
    pub(crate) version: u64,
    /// Commands that came into force, for the model of the namespace.
    pub(crate) done: Vec<InForce>,
    /// How many of the first of these a start has found in the log.
    pub(crate) replayed: usize,
}

impl Deref for NameNode {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.core()
    }
}

impl DerefMut for NameNode {
    fn deref_mut(&mut self) -> &mut Core {
        self.core_mut()
    }
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

fn settings(grouping: Option<Grouping>) -> Settings {
    let quiet_ms = grouping.map_or(u64::MAX, |grouping| grouping.quiet_ms);
    Settings {
        group_quiet_ms: quiet_ms,
        group_short_quiet_ms: quiet_ms,
        packs: grouping.is_some_and(|grouping| grouping.pack.is_some()),
        group_len_min: grouping.map_or(1, |grouping| grouping.len_min),
        block_size_min: 0,
        permissions_enabled: false,
        lease_soft_limit_ms: 30_000,
        lease_hard_limit_ms: 60_000,
        ..Settings::default()
    }
}

impl NameNode {
    pub(crate) fn format(
        rng: Rng,
        grouping: Option<Grouping>,
        options: &Options,
        parts: &dyn Parts,
    ) -> NameNode {
        let bugs = Bugs {
            compares_crcs: parts.compares_crcs(),
            forgets_attempts: parts.forgets_attempts(),
            frees_members: parts.frees_members(),
            reuses_handles: parts.reuses_handles(),
            believes_encoders: parts.believes_encoders(),
            forms_unchecked: parts.forms_unchecked(),
            keeps_places: parts.keeps_places(),
            packs_unchecked: parts.packs_unchecked(),
            frees_by_count: parts.frees_by_count(),
            syncs_before_answer: parts.syncs_before_answer(),
            lets_go_at_once: parts.lets_go_at_once(),
            reorders_effects: parts.reorders_effects(),
            drops_effects: parts.drops_effects(),
            ignores_guards: parts.ignores_guards(),
            fails_what_is_durable: parts.fails_what_is_durable(),
            goes_by_uuids: parts.goes_by_uuids(),
            follows_wall_clock: parts.follows_wall_clock(),
        };
        let (store, cluster) = (Store::default(), Cluster::new(cluster_config()));
        let mut node = NameNode {
            up: true,
            life: 0,
            core: Some(Box::new(Core::new(store, cluster, rng))),
            log: Log::default(),
            is_contended: options.is_contended,
            ahead: Store::default(),
            retries: Retries::default(),
            last_times: Times::default(),
            groups: Groups::new(LIMITS, 0, 0),
            backlog: VecDeque::new(),
            open: Group::default(),
            logging: None,
            unshown: VecDeque::new(),
            operations: 0,
            running: BTreeMap::new(),
            ready: VecDeque::new(),
            waits: BTreeMap::new(),
            happenings: Vec::new(),
            logged: 0,
            bugs,
            grouping,
            rounds: Rounds::default(),
            round: None,
            unjudged: Vec::new(),
            begun: BTreeMap::new(),
            kept_places: BTreeMap::new(),
            late_effects: Vec::new(),
            clones: BTreeMap::new(),
            processes: BTreeMap::new(),
            backup: None,
            read: Read::default(),
            since: GenerationStamp(0),
            fall: None,
            version: 0,
            done: Vec::new(),
            replayed: 0,
        };
        node.serve();
        let policies = POLICIES.map(|(codec, k, m)| PolicySpec {
            codec: codec.to_lowercase(),
            k,
            m,
            cell_len: 1024,
        });
        node.own(AddEcPolicies { policies: policies.into() });
        for (codec, k, m) in POLICIES {
            node.own(EnableEcPolicy { name: policy_name(codec, k, m) });
        }
        for name in GROUP_POLICIES.iter().filter(|_| grouping.is_some()) {
            node.own(EnableEcPolicy { name: name.to_string() });
        }
        let known = sure(query::policies(&node.store));
        let is_known = |name: String| known.iter().any(|info| info.policy.name == name);
        let all = POLICIES.into_iter().map(|(codec, k, m)| policy_name(codec, k, m));
        assert!(all.into_iter().all(is_known), "refused, nothing would be erasure coded");
        node.log.sync();
        node
    }

    fn core(&self) -> &Core {
        self.core.as_deref().expect("no operation is being polled")
    }

    fn core_mut(&mut self) -> &mut Core {
        self.core.as_deref_mut().expect("no operation is being polled")
    }

    /// Works on the cluster with what the namespace says of blocks, the time and chance.
    pub(crate) fn with_cluster<R>(
        &mut self,
        work: impl FnOnce(&mut Cluster, &dyn BlockLookup, Now, &mut dyn FnMut() -> u64) -> R,
    ) -> R {
        let (bugs, now) = (&self.bugs, self.now());
        let core = self.core.as_deref_mut().expect("no operation is being polled");
        let Core { store, cluster, rng, .. } = core;
        let facts = Facts { lookup: Lookup::new(&*store), store, bugs };
        work(cluster, &facts, now, &mut || rng.any())
    }

    /// Puts the settings in force and begins to serve.
    fn serve(&mut self) {
        self.up = true;
        self.own(Configure { settings: settings(self.grouping).into() });
        let blocks = sure(query::blocks_after(&self.store, None, usize::MAX));
        // It is waited for containers that are needed, and not for what is packed in them.
        let lookup = Lookup::new(&self.store);
        let counts = |block: &cairn_namespace::Block| {
            let is_complete = block.state == Written::Complete;
            is_complete && block.packed.is_none() && !lookup.is_spare(block.id)
        };
        let complete = blocks.iter().filter(|info| counts(&info.block)).count();
        let stamps = blocks.iter().map(|info| info.block.gs);
        self.since = stamps.max().unwrap_or(GenerationStamp(0));
        let now = self.now();
        self.cluster = Cluster::new(cluster_config());
        self.cluster.start_safe_mode(complete as u64, now);
        self.own(RenewAllLeases {});
        self.log.sync();
    }

    /// Stops as by a power cut. What it had set out to do just before does not happen.
    pub(crate) fn crash(&mut self) {
        self.up = false;
        self.life += 1;
        self.fall = None;
        self.happenings.clear();
        let mut rng = self.rng.clone();
        self.log.crash(&mut rng);
        self.rng = rng;
    }

    /// Starts again from the log.
    pub(crate) fn restart(&mut self) {
        self.life += 1;
        self.store = self.replay();
        self.version += 1;
        self.ahead = self.store.clone();
        let reading = self.reading();
        self.clock = Clock::begin(self.last_times, reading, false);
        self.groups = Groups::new(LIMITS, self.logged as u64, self.now_ms);
        self.backlog.clear();
        self.open = Group::default();
        self.logging = None;
        self.unshown.clear();
        self.late_effects.clear();
        self.rounds = Rounds::default();
        self.round = None;
        if !self.bugs.believes_encoders {
            self.unjudged.clear();
        }
        self.running.clear();
        self.ready.clear();
        self.waits.clear();
        self.happenings.clear();
        self.serve();
    }

    /// The store that the log gives. What starts before have read gives what it gave then.
    fn replay(&mut self) -> Store {
        let mut read = std::mem::take(&mut self.read);
        for entry in self.log.recover(read.log_len) {
            read.times = entry.times();
            let (answer, _) = apply(&mut read.store, &entry).unwrap_or_else(|error| {
                panic!("an entry of the log can't be applied again: {error}: {entry:?}")
            });
            self.forget_handle(&mut read.store, &entry.command);
            let limits = sure(read.store.settings());
            sure(read.retries.remember(&entry, &limits, &answer));
            // Not in force when the NameNode fell, and there all the same.
            if read.entries >= self.logged {
                self.done.push((entry.command, answer, self.life));
            }
            read.entries += 1;
        }
        read.log_len = self.log.len();
        self.logged = self.logged.max(read.entries);
        self.replayed = self.done.len();
        (self.retries, self.last_times) = (read.retries.clone(), read.times);
        self.read = read;
        self.read.store.clone()
    }

    /// Whether a replay of the log gives the store that is in force, and with the entries that wait to be logged what was
    /// applied: of the whole log, or of what no start has read.
    pub(crate) fn is_replayable(&self, is_whole: bool) -> bool {
        let Read { entries, log_len, mut store, .. } =
            if is_whole { Read::default() } else { self.read.clone() };
        let mut all = self.log.clone().recover(log_len);
        let open = self.open.entries.iter().filter_map(|done| done.logged.as_ref());
        all.extend(open.map(|(entry, _)| entry.clone()));
        let (in_force, later) = all.split_at((self.logged - entries).min(all.len()));
        let are_applied = |store: &mut Store, entries: &[Entry]| {
            entries.iter().all(|entry| {
                let is_ok = apply(store, entry).is_ok();
                self.forget_handle(store, &entry.command);
                is_ok
            })
        };
        let is_in_force = are_applied(&mut store, in_force) && store == self.store;
        is_in_force && are_applied(&mut store, later) && store == self.ahead
    }

    /// Panics if what the cluster knows does not follow from the namespace, or does not fit together.
    pub(crate) fn check_cluster(&self) {
        if self.up {
            self.cluster.check_invariants();
            self.cluster.check_derived(&self.lookup(), self.since);
        }
    }

    pub(crate) fn is_safe_mode(&self) -> bool {
        self.cluster.safe_mode().is_on()
    }

    /// A command of its own at a start, when nothing else happens; refusals are of no interest.
    fn own(&mut self, command: impl Into<Command>) {
        let submission = Submission::own(command);
        let answer = self.begin(|op| async move { op.submit(submission).await });
        while answer.borrow().is_none() && !self.happenings.is_empty() {
            let (_, happening) = self.happenings.remove(0);
            self.happen(happening);
        }
    }

    /// Lets time pass, and says which nodes are let go.
    pub(crate) fn tick(&mut self) -> Vec<(usize, AdminState)> {
        let tick = self.with_cluster(|cluster, lookup, now, dice| cluster.tick(lookup, now, dice));
        let mut more = tick.more;
        while more {
            more = self.with_cluster(|cluster, lookup, _, _| cluster.go_on(lookup));
        }
        for disproved in self.cluster.take_disproved() {
            self.begin(|op| async move { follow_up::replace_crc(&op, disproved).await });
        }
        let mut changed = tick.admin;
        if self.bugs.lets_go_at_once {
            changed.extend(self.let_all_go());
        }
        let states = changed.into_iter().map(|node| self.cluster.node(node));
        let states = states.map(|node| (machine_at(&node.address), node.admin));
        states
            .filter(|(_, state)| {
                matches!(state, AdminState::Decommissioned | AdminState::InMaintenance)
            })
            .collect()
    }

    /// Lets nodes go that others may still need.
    fn let_all_go(&mut self) -> Vec<NodeHandle> {
        let leaving: Vec<NodeHandle> = self.cluster.leaving_nodes().collect();
        for node in &leaving {
            let next = match self.cluster.node(*node).is_maintenance() {
                true => AdminState::InMaintenance,
                false => AdminState::Decommissioned,
            };
            self.with_cluster(|cluster, lookup, _, _| cluster.set_admin_state(lookup, *node, next));
        }
        leaving
    }

    /// Nodes that the widest block is spread over.
    pub(crate) fn widest(&self) -> usize {
        self.all_blocks().iter().map(|info| info.redundancy.width()).max().unwrap_or(0)
    }

    pub(crate) fn lookup(&self) -> Facts<'_> {
        let lookup = Lookup::new(&self.store);
        Facts { lookup, store: &self.store, bugs: &self.bugs }
    }

    pub(crate) fn block(&self, id: BlockId) -> Option<Rc<BlockInfo>> {
        self.store.block(id)
    }

    /// All blocks, in their order.
    pub(crate) fn all_blocks(&self) -> Rc<Vec<Rc<BlockInfo>>> {
        self.store.all_blocks()
    }

    /// All contiguous groups, and attempts to make them, in their order.
    pub(crate) fn all_groups(&self) -> Rc<Vec<BlockGroup>> {
        self.store.all_groups()
    }

    pub(crate) fn facts_of(&self, id: BlockId) -> Option<BlockFacts> {
        if id.is_parity() {
            return self.lookup().group(id.group()).map(|group| group.facts());
        }
        self.block(id).map(|info| facts(&info.block, &info.redundancy))
    }
}

pub(crate) fn policy_name(codec: &str, k: u32, m: u32) -> String {
    format!("{codec}-{k}-{m}-1k")
}
