//! The simulated cluster: time, the network, and what happens next.

use crate::data_node::DataNode;
use crate::fault_kinds::Faults;
use crate::model::{BlockModel, DIRECTORIES, Model, Part, Restored, Units};
use crate::name_node::{
    CallError, GROUP_POLICIES, Grouping, Happening, NameNode, Target, pack_rules,
};
use crate::options::{Options, Report};
use crate::parts::Parts;
use crate::rng::Rng;
use crate::tasks::{LateReport, Recovery, Task, Told};
use cairn_codec::{Codec, CodecKind};
use cairn_master::contiguous::rounds::News;
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::snapshot::AllowSnapshot;
use cairn_namespace::{CallId, Command, InodeId, Outcome};
use cairn_redundancy::{AdminState, BlockRef, StorageType};
use cairn_stripe::{BlockId, CodecName, GenerationStamp, Policy};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Events between two looks at all that the cluster knows, on average: looks that cost next to nothing.
const EVENTS_A_LOOK: u64 = 200;
/// Quiet time in which no DataNode was told anything, after which all goes on more slowly until one is: what is waited for is
/// a time that must pass.
const IDLE_MS: u64 = 30_000;

/// Something that will happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The NameNode's clock ticks.
    Tick,
    /// Something goes on in the NameNode.
    NameNode { happening: Happening, life: u64 },
    /// The NameNode starts again.
    NameNodeStarts,
    /// A DataNode's heartbeat is due.
    Heartbeat { node: usize },
    /// A DataNode has something to tell at once.
    Urgent { node: usize, life: u64 },
    /// A report arrives that its DataNode has given up.
    LateReport { report: LateReport },
    /// Commands arrive at a DataNode.
    Commands { node: usize, life: u64, tasks: Vec<Task> },
    /// A DataNode goes on with its work.
    Work { node: usize, life: u64, task: Task },
    /// A DataNode starts again.
    NodeStarts { node: usize, life: u64 },
    /// A DataNode is no longer cut off.
    NodeJoins { node: usize },
    /// A machine is cloned.
    Clone,
    /// A clone is switched off.
    CloneOff { node: usize, life: u64 },
    /// A DataNode that was to leave is to stay.
    NodeStays { node: usize },
    /// A DataNode that died on its way out will not be back.
    NodeGivenUp { node: usize },
    /// A DataNode that was let go is switched off.
    NodeOff { node: usize, state: AdminState },
    /// A failed disk has been replaced, or a full one emptied.
    DiskMended { node: usize, volume: usize },
    /// The NameNode's disk has room again.
    LogMended,
    /// A client takes its next step.
    Client { client: usize },
    /// A balancer or mover looks for something to do.
    Rebalance,
    /// A fault may happen.
    Fault,
    /// Everything is looked at.
    Check,
    /// The namespace is backed up.
    BackUp,
}

/// A client.
pub(crate) struct Client {
    number: usize,
    /// Clients that died before it in its place.
    deaths: u32,
    calls: i32,
    pub(crate) renewed_ms: u64,
    /// What it is at.
    pub(crate) job: Option<Box<dyn Job>>,
    /// Files that it writes, also while a step of that is under way.
    pub(crate) writes: BTreeSet<InodeId>,
}

/// What a client is at; between two of its steps anything can happen.
pub(crate) trait Job {
    /// Takes the next step, and leaves with the client what there is still to do.
    fn step(self: Box<Self>, world: &mut World<'_>, client: usize);

    /// What a file that is being written waits for; `None` if nothing is being written.
    fn waits_for(&self) -> Option<&'static str>;
}

impl Client {
    pub(crate) fn new(number: usize) -> Client {
        Client { number, deaths: 0, calls: 0, renewed_ms: 0, job: None, writes: BTreeSet::new() }
    }

    pub(crate) fn holder(&self) -> String {
        format!("client-{}-{}", self.number, self.deaths)
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        self.calls += 1;
        let mut client_id = [0; 16];
        client_id[0] = self.number as u8 + 1;
        client_id[1..5].copy_from_slice(&self.deaths.to_be_bytes());
        CallId { client_id, call_id: self.calls }
    }

    /// Forgets everything, as a client does that is killed; another one takes its place.
    pub(crate) fn die(&mut self) {
        self.deaths += 1;
        self.calls = 0;
        self.job = None;
        self.writes.clear();
    }
}

/// See the module.
pub(crate) struct World<'a> {
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    /// When the cluster is looked at, and machines are cloned: by dice of its own, so that it changes nothing else.
    pub(crate) looks: Rng,
    pub(crate) now_ms: u64,
    queue: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    pub(crate) name_node: NameNode,
    /// Machines, some of which may be clones of others.
    pub(crate) nodes: Vec<DataNode>,
    /// The machines whose processes have registered last, of DataNodes that have several.
    pub(crate) standing: BTreeMap<usize, usize>,
    /// How contiguous groups are made, if they are.
    pub(crate) grouping: Option<Grouping>,
    /// Blocks that readers have found at some time, and where.
    pub(crate) located: VecDeque<(BlockRef, Vec<Target>)>,
    /// Volumes are of several types, and files have storage policies.
    pub(crate) has_kinds: bool,
    pub(crate) clients: Vec<Client>,
    pub(crate) model: Model,
    pub(crate) faults: Faults,
    pub(crate) parts: &'a mut dyn Parts,
    codecs: BTreeMap<(usize, usize), Codec>,
    /// Nothing fails any more and nobody writes.
    pub(crate) is_quiet: bool,
    /// When a DataNode was told something last, or quiet time began.
    pub(crate) active_ms: u64,
    pub(crate) report: Report,
    /// What reads that were given up have left in buffers, by the unit.
    pub(crate) late_reads: BTreeMap<BlockId, Vec<u8>>,
    pub(crate) units: Units,
    /// When blocks came to another file.
    pub(crate) joined: BTreeMap<BlockId, u64>,
    /// Recoveries that the NameNode was told of and that are not in force.
    pub(crate) told_recoveries: BTreeMap<(BlockId, GenerationStamp), (Recovery, Told)>,
    /// Who is in the pipelines that the NameNode was told of and that are not in force.
    pub(crate) pipelines: BTreeMap<(BlockId, GenerationStamp), Vec<Part>>,
    /// The version of the namespace with which the model was compared last.
    pub(crate) compared: u64,
    /// Calls that wait for answers of the NameNode.
    waiting: u32,
    /// The NameNode was restored from a backup, after all was as it should be.
    pub(crate) restored: Option<Restored>,
    /// All is as it should be in the end.
    is_over: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(seed: u64, options: Options, parts: &'a mut dyn Parts) -> World<'a> {
        let mut rng = Rng::new(seed);
        let node_count = rng.range(5, 12) as usize;
        let racks = rng.range(1, 5) as usize;
        let has_kinds = rng.one_in(2);
        let mut nodes: Vec<DataNode> = (0..node_count)
            .map(|number| {
                let kinds = volume_kinds(&mut rng, has_kinds);
                DataNode::new(number, format!("/rack{}", number % racks), &kinds)
            })
            .collect();
        let client_count = (rng.range(1, 4) as usize).min(options.clients);
        let clients = (0..client_count).map(Client::new).collect();
        let grouping = grouping(&mut rng, &options, node_count);
        let is_lazy = grouping.is_some() && rng.one_in(2);
        nodes.iter_mut().for_each(|node| node.is_lazy = is_lazy);
        let name_node = NameNode::format(Rng::new(rng.any()), grouping, &options, parts);
        let mut looks = Rng::new(!seed);
        let faults = Faults::new(&mut rng, &mut looks, &options);
        let model = Model { is_lazy, ..Model::default() };
        let mut world = World {
            options,
            rng,
            looks,
            now_ms: 1000,
            queue: BTreeMap::new(),
            scheduled: 0,
            name_node,
            nodes,
            standing: BTreeMap::new(),
            grouping,
            located: VecDeque::new(),
            has_kinds,
            clients,
            model,
            faults,
            parts,
            codecs: BTreeMap::new(),
            is_quiet: false,
            active_ms: 0,
            report: Report::default(),
            late_reads: BTreeMap::new(),
            units: Units::new(),
            joined: BTreeMap::new(),
            told_recoveries: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            compared: 0,
            waiting: 0,
            restored: None,
            is_over: false,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.name_node.pass(self.now_ms);
        for path in DIRECTORIES.map(str::to_string) {
            _ = self.call(None, Mkdirs { path, mode: 0o755.into(), create_parent: true });
        }
        if let Some(Grouping { policy, .. }) = self.grouping {
            let (path, policy) = (DIRECTORIES[1].to_string(), Some(GROUP_POLICIES[policy].into()));
            let set = self.call(None, SetEcPolicy { path: path.clone(), policy });
            assert!(set.is_ok(), "nothing would be grouped: {set:?}");
            let (names_max, space_max) = (QuotaChange::Keep, QuotaChange::Set { max: 1 << 40 });
            _ = self.call(None, SetQuota { path: path.clone(), names_max, space_max });
            _ = self.call(None, AllowSnapshot { path });
        }
        for node in 0..self.nodes.len() {
            let delay = self.rng.range(0, 1000);
            self.after(delay, Event::Heartbeat { node });
        }
        for client in 0..self.clients.len() {
            self.after(8000, Event::Client { client });
        }
        self.after(500, Event::Tick);
        self.after(15_000, Event::Fault);
        if self.faults.balancer {
            self.after(20_000, Event::Rebalance);
        }
        if self.faults.clones {
            let delay = self.looks.range(15_000, 120_000);
            self.after(delay, Event::Clone);
        }
        self.after(5000, Event::Check);
        if self.options.restores {
            let delay = self.looks.range(60_000, 200_000);
            self.after(delay, Event::BackUp);
        }
    }

    /// Runs to the end, or to the first thing that must not be.
    pub(crate) fn run(mut self) -> Report {
        while !self.is_over && self.advance() {}
        self.report.time_ms = self.now_ms;
        self.report
    }

    /// Lets the next thing happen while somebody waits for an answer. False if there is nothing to wait for any more.
    pub(crate) fn happens_meanwhile(&mut self) -> bool {
        self.waiting += 1;
        let goes_on = self.advance();
        self.waiting -= 1;
        goes_on
    }

    /// Lets the next thing happen. False if nothing is left to happen, or something must not have.
    fn advance(&mut self) -> bool {
        if self.report.violation.is_some() {
            return false;
        }
        let Some(((time, _), event)) = self.queue.pop_first() else { return false };
        let quiet_from = 1000 + self.options.busy_ms;
        let end = quiet_from + self.options.quiet_ms;
        self.now_ms = time;
        self.name_node.pass(time);
        if time >= quiet_from && !self.is_quiet {
            self.begin_quiet();
        }
        if time >= end && self.restored.is_none() {
            let why = self.unfinished().unwrap_or_else(|| "the end was missed".to_string());
            self.violate(format!("after quiet time: {why}"));
            return false;
        }
        let is_last_look = self.waiting == 0 && self.is_quiet && matches!(event, Event::Check);
        if is_last_look && self.restored.is_some() {
            self.is_over = self.look_at_restored();
            self.after(5000, Event::Check);
            return !self.is_over;
        }
        if is_last_look && !self.is_at_work() && self.unfinished().is_none() {
            self.check_all();
            self.check_replay();
            self.is_over = self.report.violation.is_some() || !self.restore();
            return !self.is_over;
        }
        self.happen(event);
        self.follow_namespace();
        if self.looks.one_in(EVENTS_A_LOOK) {
            self.name_node.check_cluster();
        }
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick => {
                if self.name_node.up {
                    for (node, state) in self.name_node.tick() {
                        self.let_go(node, state);
                    }
                    self.name_node.check_leases();
                    self.look_after_groups();
                    self.leave_safe_mode();
                }
                self.after(1000 * self.pace(), Event::Tick);
            }
            Event::NameNode { happening, life } => {
                if self.name_node.life == life {
                    self.name_node.happen(happening);
                }
            }
            Event::NameNodeStarts => self.name_node_starts(),
            Event::Heartbeat { node } => self.heartbeat(node),
            Event::Urgent { node, life } => {
                if self.nodes[node].life == life {
                    self.tell_events(node);
                }
            }
            Event::LateReport { report } => self.late_report(report),
            Event::Commands { node, life, tasks } => {
                if self.nodes[node].life == life {
                    self.take_tasks(node, tasks);
                }
            }
            Event::Work { node, life, task } => {
                if self.nodes[node].life == life {
                    self.work(node, task);
                }
            }
            Event::NodeStarts { node, life } => {
                let is_off = !self.nodes[node].up && !self.nodes[node].is_gone;
                if self.nodes[node].life == life && is_off {
                    self.note(|| format!("dn-{node} starts"));
                    self.nodes[node].up = true;
                    self.clone_started(node);
                }
            }
            Event::NodeJoins { node } => {
                self.note(|| format!("dn-{node} is back on the network"));
                self.nodes[node].is_isolated = false;
            }
            Event::Clone => self.clone_machine(),
            Event::CloneOff { node, life } => {
                if self.nodes[node].life == life {
                    self.switch_clone_off(node);
                }
            }
            Event::NodeStays { node } => {
                if !self.is_quiet {
                    self.recommission(node);
                }
            }
            Event::NodeGivenUp { node } => self.give_up(node),
            Event::NodeOff { node, state } => self.switch_off(node, state),
            Event::DiskMended { node, volume } => self.mend_disk(node, volume),
            Event::LogMended => _ = self.name_node.cluster.set_low_resources(false),
            Event::Client { client } => self.client_step(client),
            Event::Rebalance => self.rebalance(),
            Event::Fault => self.fault(),
            Event::BackUp => self.back_up(),
            Event::Check => {
                self.check_all();
                self.after(5000 * self.pace(), Event::Check);
            }
        }
    }

    /// How many times as long as usual it is to the next heartbeat, tick and look at everything: more when nothing is done, but
    /// no DataNode is late by that.
    pub(crate) fn pace(&self) -> u64 {
        if self.is_quiet && self.now_ms - self.active_ms > IDLE_MS { 3 } else { 1 }
    }

    /// An operator sees that what safe mode waits for will not come: more of a block was in memory than it bore to lose.
    fn leave_safe_mode(&mut self) {
        let is_lost = |block: &BlockModel| block.exposed.len() > block.tolerance;
        if self.name_node.is_safe_mode()
            && self.restored.is_none()
            && self.model.blocks.values().any(is_lost)
            && (self.is_quiet || self.rng.one_in(100))
        {
            self.note(|| "the NameNode is to leave safe mode".to_string());
            self.name_node.cluster.leave_safe_mode(false);
        }
    }

    /// The NameNode takes a round over its contiguous groups.
    fn look_after_groups(&mut self) {
        for news in self.name_node.look_after_groups(true) {
            self.note(|| format!("{news:?}"));
            self.count(match news {
                News::Begun(_) => "groups begun",
                News::NotBegun(_) => "groups not begun",
                News::Formed(_) => "groups formed",
                News::Abandoned(..) => "groups abandoned",
                News::Renewing { .. } => "groups begun anew",
                News::NotRenewed { .. } => "groups not begun anew",
                News::Dissolving(_) => "groups dissolved",
                News::NotDissolved(..) => "groups not dissolved",
                News::OfContainer(_) => "containers looked after",
                News::OfFound(_) => "groups found on DataNodes",
            });
        }
    }

    pub(crate) fn after(&mut self, delay_ms: u64, event: Event) {
        self.scheduled += 1;
        self.queue.insert((self.now_ms + delay_ms, self.scheduled), event);
    }

    pub(crate) fn name_node_starts(&mut self) {
        if !self.name_node.up {
            self.name_node.restart();
            self.note(|| "the NameNode starts".to_string());
        }
    }

    /// Has a NameNode that fell start again.
    pub(crate) fn raise_name_node(&mut self) {
        self.note(|| "the NameNode falls".to_string());
        self.count("NameNode falls");
        let delay = self.rng.range(500, 20_000);
        self.after(delay, Event::NameNodeStarts);
    }

    /// Schedules what the NameNode is at, and keeps the model in step with what has come into force.
    pub(crate) fn follow_namespace(&mut self) {
        let life = self.name_node.life;
        for (delay_ms, happening) in std::mem::take(&mut self.name_node.happenings) {
            self.after(delay_ms, Event::NameNode { happening, life });
        }
        if self.restored.is_some() {
            self.name_node.done.clear();
            return;
        }
        let mut is_recovered = false;
        let replayed = std::mem::take(&mut self.name_node.replayed);
        let done = std::mem::take(&mut self.name_node.done);
        for (at, (command, outcome, life)) in done.into_iter().enumerate() {
            if let Command::CommitBlockSynchronization(done) = &command {
                is_recovered = true;
                self.recovered(done.block.id, done.new_gs);
            }
            is_recovered |= matches!(outcome, Outcome::Recovery { closed: true });
            let rests_on = match &command {
                Command::UpdatePipeline(update) => Some(update.new),
                Command::AddBlock(add) => add.previous,
                Command::Complete(complete) => complete.last,
                _ => None,
            };
            if let Some(block) = rests_on {
                self.rests_on_pipeline(block.id, block.gs);
                self.ended_torn(block.id);
            }
            if let (Command::Append(append), Outcome::Appended { .. }) = (&command, &outcome) {
                self.note_reopened(&append.path);
            }
            self.note(|| format!("namespace: {command:?} -> {}", brief(&outcome)));
            if matches!(outcome, Outcome::Removed { more: true, .. }) {
                self.name_node.purge();
            }
            self.follow_groups(&command, &outcome, life, at < replayed);
            self.follow_packs(&command, &outcome);
            if let Err(why) = self.model.follow(&command, &outcome) {
                self.violate(why);
            }
            let shorter = match &command {
                Command::AbandonBlock(abandon) => abandon.file,
                Command::WithdrawBlock(withdraw) => Some(withdraw.file),
                _ => None,
            };
            if let Some(file) = shorter {
                self.taken_back(file);
            }
            if let (Command::Concat(concat), Outcome::Done) = (&command, &outcome) {
                self.note_joined(&concat.target);
                self.wants_fewer(&concat.target);
            }
        }
        if replayed > 0 {
            self.ended_in_the_log();
        }
        if is_recovered && let Err(why) = self.model.compare(&self.name_node.store) {
            self.violate(why);
        }
        let fell = !self.name_node.up
            && !self.queue.values().any(|event| matches!(event, Event::NameNodeStarts));
        if fell {
            self.raise_name_node();
        }
    }

    pub(crate) fn violate(&mut self, why: String) {
        // What the model knows is of a namespace that is no more.
        if self.restored.is_some() {
            return;
        }
        self.note(|| format!("VIOLATION: {why}"));
        self.report.violation.get_or_insert(why);
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.options.trace {
            let seconds = self.now_ms as f64 / 1000.0;
            self.report.trace.push(format!("{seconds:9.3} {}", line()));
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.report.counts.entry(what).or_default() += 1;
    }

    /// Whether a DataNode answers now. One whose place another process has taken is found by nobody.
    pub(crate) fn answers(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.answers(self.now_ms)) && self.stands(node)
    }

    /// Whether a call from a DataNode reaches the NameNode.
    pub(crate) fn reaches_name_node(&mut self, node: usize) -> bool {
        self.name_node.up && self.nodes[node].answers(self.now_ms) && !self.unlucky(60)
    }

    /// Something goes wrong that costs no more than time; never in quiet time.
    pub(crate) fn unlucky(&mut self, times: u64) -> bool {
        !self.is_quiet && self.faults.network && self.rng.one_in(times)
    }

    /// The volumes of a node that joins.
    pub(crate) fn volume_kinds(&mut self) -> Vec<StorageType> {
        volume_kinds(&mut self.rng, self.has_kinds)
    }

    /// The code of a policy.
    pub(crate) fn codec(&mut self, policy: &Policy) -> Codec {
        let key = (policy.schema.data_units(), policy.schema.parity_units());
        let kind = match policy.schema.codec {
            CodecName::Rs => CodecKind::Rs,
            CodecName::RsLegacy => CodecKind::RsLegacy,
            CodecName::Xor => CodecKind::Xor,
        };
        let code = self.codecs.entry(key);
        let make = || Codec::new(kind, key.0, key.1).expect("the policies have codes");
        code.or_insert_with(make).clone()
    }

    /// Notes a call that the NameNode refused.
    pub(crate) fn refused(&mut self, who: &str, what: &str, error: &CallError) {
        let why = match error {
            CallError::Refused(why) => why.as_str(),
            CallError::Lost => "no answer",
            CallError::NotNow => "not now",
        };
        self.note(|| format!("{who}: {what}: {why}"));
    }
}

/// Whether and how contiguous groups are made.
fn grouping(rng: &mut Rng, options: &Options, node_count: usize) -> Option<Grouping> {
    if !rng.one_in(5) && !options.groups && !options.packing {
        return None;
    }
    let mut grouping = Grouping {
        policy: usize::from(node_count >= 10 && rng.one_in(3)),
        // Half of the time groups may have any members.
        pays: if rng.one_in(2) { 0.6 } else { 100.0 },
        dead_share_max: [0.25, 1.0][rng.index(2)],
        quiet_ms: rng.range(0, 3) * 5000,
        len_min: [1, 1024][rng.index(2)],
        pack: None,
    };
    if options.packing {
        grouping.len_min = [1024, 4096, 1 << 20][rng.index(3)];
        grouping.pack = Some(pack_rules(rng));
    }
    Some(grouping)
}

/// The volumes of a new node. The first is a disk, so that there is a place for everything.
fn volume_kinds(rng: &mut Rng, has_kinds: bool) -> Vec<StorageType> {
    const OTHERS: [StorageType; 4] =
        [StorageType::Disk, StorageType::Ssd, StorageType::Archive, StorageType::Archive];
    let mut kinds = vec![StorageType::Disk];
    for _ in 1..rng.range(1, 4) {
        let other = OTHERS[rng.index(OTHERS.len())];
        kinds.push(if has_kinds { other } else { StorageType::Disk });
    }
    kinds
}

fn brief(outcome: &cairn_namespace::Outcome) -> String {
    let mut text = format!("{outcome:?}");
    if text.len() > 160 {
        let cut = (0..=160).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}
