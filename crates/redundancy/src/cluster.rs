//! The whole of what the NameNode knows of its DataNodes and of where blocks are.
//!
//! Callers hold one lock around a `Cluster`, and take their namespace snapshot *after* that lock, so
//! that a lookup is never older than what this knows. After a namespace command is applied they tell
//! it here: `block_allocated`, `pipeline_updated`, `block_completed`, `block_changed`, `block_removed`.

use crate::block::{BlockFacts, BlockLookup, BlockState, Location};
use crate::caching::cached::Caching;
use crate::clock::{Dice, Now};
use crate::config::Config;
use crate::groups::known::Groups;
use crate::handle::{NodeHandle, StorageHandle};
use crate::leaving::lists::Leaving;
use crate::low_redundancy::LowRedundancy;
use crate::nodes::Nodes;
use crate::packed::known::Packed;
use crate::places::Places;
use crate::places::construction::Construction;
use crate::places::construction::Expected;
use crate::places::map::Place;
use crate::places::waits::Ticket;
use crate::replica::LateCrc;
use crate::report::ongoing::Reports;
use crate::safe_mode::SafeMode;
use crate::scrub::walk::Scrubs;
use crate::slow::reports::SlowReports;
use crate::standby::pending::Pending;
use crate::work::Work;
use crate::work::rounds::Rounds;
use crate::work::walks::Walks;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use std::collections::BTreeSet;

/// DataNodes, storages, locations, and the work that follows from them.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) config: Config,
    pub(crate) nodes: Nodes,
    pub(crate) blocks: Places,
    pub(crate) safe_mode: SafeMode,
    /// No deletion is ordered.
    pub(crate) holds_deletions: bool,
    /// Bytes a second that each DataNode may move for balancers; 0 for what its settings say.
    pub(crate) balancer_bandwidth: u64,
    /// When it started, on the monotonic clock.
    pub(crate) started_ms: u64,
    pub(crate) low: LowRedundancy,
    pub(crate) work: Work,
    pub(crate) rounds: Rounds,
    pub(crate) walks: Walks,
    pub(crate) leaving: Leaving,
    pub(crate) scrubs: Scrubs,
    pub(crate) groups: Groups,
    pub(crate) packed: Packed,
    pub(crate) caching: Caching,
    pub(crate) slow: SlowReports,
    /// Lost storages whose blocks are not all forgotten yet.
    pub(crate) lost: BTreeSet<StorageHandle>,
    /// Full reports that are being taken.
    pub(crate) reports: Reports,
    /// What was kept before this NameNode led, and is not taken over yet.
    pub(crate) pending: Option<Box<Pending>>,
    /// The time of the last heartbeat or tick, for events that bring no time of their own.
    pub(crate) last_event: Now,
    /// Nobody is found dead before, on the monotonic clock.
    pub(crate) no_deaths_before_ms: u64,
    /// No DataNode is asked to prove what it has told another leader before, on the monotonic clock.
    pub(crate) asks_next_ms: u64,
}

/// What happened while time passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Nodes that were found dead.
    pub died: Vec<NodeHandle>,
    /// Whether the start's safe mode has ended just now.
    pub left_safe_mode: bool,
    /// Nodes whose decommission or way into maintenance has ended, and those whose maintenance has.
    pub admin: Vec<NodeHandle>,
    /// Whether [`Cluster::go_on`] is to be called soon.
    pub more: bool,
}

impl Cluster {
    /// A cluster without DataNodes. Safe mode is off until [`Cluster::start_safe_mode`].
    pub fn new(config: Config) -> Cluster {
        Cluster {
            safe_mode: SafeMode::new(&config),
            holds_deletions: false,
            balancer_bandwidth: 0,
            started_ms: 0,
            config,
            nodes: Nodes::default(),
            blocks: Places::default(),
            low: LowRedundancy::default(),
            work: Work::default(),
            rounds: Rounds::default(),
            walks: Walks::default(),
            leaving: Leaving::default(),
            scrubs: Scrubs::default(),
            groups: Groups::default(),
            packed: Packed::default(),
            caching: Caching::default(),
            slow: SlowReports::default(),
            lost: BTreeSet::new(),
            reports: Reports::default(),
            pending: None,
            last_event: Now::default(),
            no_deaths_before_ms: 0,
            asks_next_ms: 0,
        }
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the settings; they hold from the next decision on.
    pub fn set_config(&mut self, config: Config) {
        if self.config.slow != config.slow {
            self.slow.follow(&config.slow);
        }
        self.config = config;
        self.nodes.count_width(self.config.upgrade_domain_factor.is_some());
        self.leaving.judge_anew();
        self.low.queues_mut().wake_all();
    }

    /// Begins the safe mode of a start; `block_total` is the number of complete blocks and groups.
    pub fn start_safe_mode(&mut self, block_total: u64, now: Now) {
        let live = self.live_count();
        self.started_ms = now.mono_ms;
        self.safe_mode.start(block_total, now, live);
        self.scan_if_new();
    }

    /// Has all blocks looked at when what lacks redundancy is queued from now on.
    pub(crate) fn scan_if_new(&mut self) {
        if self.safe_mode.begin_to_queue() {
            self.walks.scan().restart();
            self.rounds.begin_anew();
        }
    }

    /// Safe mode, to ask.
    pub fn safe_mode(&self) -> &SafeMode {
        &self.safe_mode
    }

    /// Turns safe mode on for an administrator (`dfsadmin -safemode enter`).
    pub fn enter_safe_mode(&mut self) {
        self.safe_mode.enter();
    }

    /// Orders no deletion from now on, or those that have waited again: the tree may go back to where it was.
    ///
    /// Source: Hadoop 3.5.0 `BlockPoolSliceStorage#getTrashDirectory`, where DataNodes keep what is deleted.
    pub fn hold_deletions(&mut self, hold: bool) {
        self.holds_deletions = hold;
    }

    /// Turns it off for an administrator; see [`SafeMode::leave`]. The next ticks look for blocks
    /// that need mending. Returns whether it is off now.
    pub fn leave_safe_mode(&mut self, force: bool) -> bool {
        let off = self.safe_mode.leave(force);
        self.scan_if_new();
        off
    }

    /// Turns it on or off for lack of space on the NameNode's disks; whether that is a change.
    pub fn set_low_resources(&mut self, low: bool) -> bool {
        self.safe_mode.set_low_resources(low)
    }

    /// What an operator and refused clients read while safe mode is on.
    pub fn safe_mode_tip(&self, now: Now) -> String {
        self.safe_mode.tip(now, self.live_count())
    }

    /// Lets time pass: finds dead nodes, ends safe mode, schedules mending. To be called about every
    /// second (or some times per heartbeat interval where that is shorter).
    pub fn tick(&mut self, lookup: &dyn BlockLookup, now: Now, dice: Dice<'_>) -> Tick {
        self.last_event = now;
        let died = self.find_dead(lookup, now);
        let live = self.live_count();
        let left_safe_mode = self.safe_mode.tick(now, live);
        self.scan_if_new();
        let admin = self.follow_leaving(lookup, now);
        self.collect_slow(now);
        self.look_for_surplus(lookup);
        self.look_at_packed(lookup);
        self.walks.grant();
        let more = self.go_on(lookup);
        self.mend(lookup, now, dice);
        self.pass_recoveries_on(lookup, now);
        self.look_for_scrubs(lookup, now);
        Tick { died, left_safe_mode, admin, more }
    }

    /// The next step of what takes long: forgetting what lost storages held, and the walks over many blocks. Returns
    /// whether another is to follow, after others had their turn.
    pub fn go_on(&mut self, lookup: &dyn BlockLookup) -> bool {
        let more_lost = self.drop_lost(lookup);
        let more_blocks = self.look_at_blocks(lookup);
        more_lost || more_blocks
    }

    /// Panics if what is known does not fit together. Looks at everything; see [`Cluster::check_some`].
    pub fn check_invariants(&self) {
        self.blocks.check_invariants(|storage| self.storage(storage).reported);
        self.safe_mode.check_invariants();
        let is_taking_over = self.safe_mode.is_taking_over();
        assert_eq!(self.is_taking_over(), is_taking_over, "safe mode knows what is taken over");
        self.low.check_invariants();
        self.work.check_invariants();
        self.walks.check_invariants();
        self.nodes.check_invariants(self.config.upgrade_domain_factor.is_some());
        self.leaving.check_invariants();
        self.groups.check_invariants();
        self.packed.check_invariants();
        self.scrubs.check_invariants();
        self.caching.check_invariants();
        self.slow.check_invariants();
        self.reports.check_invariants();
    }

    /// Where replicas or units of a block or group are, good and bad ones, in no special order.
    /// For a block under construction these are the finalized ones; see [`Cluster::expected`].
    /// Surplus ones that are about to be deleted are left out.
    pub fn locations(&self, id: BlockId) -> Vec<Location> {
        self.places(id.group())
            .filter(|place| !place.excess)
            .map(|place| Location {
                node: self.storage(place.storage).node,
                storage: place.storage,
                unit: place.unit,
                corrupt: place.corrupt,
            })
            .collect()
    }

    /// Whether enough good replicas or units are reported for a block to be complete: one (or
    /// `dfs.namenode.replication.min`) for a replicated block, the data units that hold bytes for a
    /// group. `facts` must have the final length and stamp; replicas that differ do not count.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#hasMinStorage`.
    pub fn min_reached(&self, id: BlockId, facts: &BlockFacts) -> bool {
        self.good_units(id, facts) >= self.min_units(facts)
    }

    /// Good replicas, or distinct good units, that [`Cluster::min_reached`] counts.
    pub fn good_units(&self, id: BlockId, facts: &BlockFacts) -> usize {
        self.count_good(id, facts, self.places(id))
    }

    /// Those of `places` that are good, as [`Cluster::good_units`] counts.
    pub(crate) fn count_good(
        &self,
        id: BlockId,
        facts: &BlockFacts,
        places: impl Iterator<Item = Place>,
    ) -> usize {
        let construction = self.blocks.construction(id);
        let mut seen = 0_u32;
        let mut replicas = 0;
        for place in places {
            let fits = construction.is_none_or(|c| c.fits(&place, facts));
            if fits && !place.corrupt && facts.has_bytes(place.unit) {
                seen |= 1 << place.unit.0;
                replicas += 1;
            }
        }
        if facts.layout.has_units() { seen.count_ones() as usize } else { replicas }
    }

    pub(crate) fn min_units(&self, facts: &BlockFacts) -> usize {
        if facts.layout.has_units() {
            facts.data_units()
        } else {
            usize::from(self.config.replication_min.max(1))
        }
    }

    /// Good replicas or units with which a block counts as found when the NameNode starts.
    ///
    /// Source: Hadoop 3.5.0 `BlockManagerSafeMode#incrementSafeBlockCount`.
    pub(crate) fn safe_min(&self, facts: &BlockFacts) -> usize {
        match self.config.safe_mode_replication_min {
            Some(min) if !facts.layout.has_units() => usize::from(min.max(1)),
            _ => self.min_units(facts).max(1),
        }
    }

    /// Places of the writer's pipeline that have not reported what they have of a block since it became complete, while
    /// they have time for that.
    pub fn unreported(&self, id: BlockId) -> impl Iterator<Item = (StorageHandle, UnitIndex)> {
        let from_writer = self.work.coming(id).iter().filter(|task| task.worker.is_none());
        from_writer.map(|task| (task.storage, task.unit))
    }

    /// Whether a complete block has too few replicas or units for that, and some are awaited.
    pub fn awaits_reports(&self, id: BlockId, facts: &BlockFacts) -> bool {
        self.unreported(id).next().is_some() && !self.min_reached(id, facts)
    }

    /// Begins a wait for news of blocks and groups: from now on any change of what is known of one of them (a report of a
    /// replica, of its loss, a new stamp, completion, removal) wakes it, once. Never, if there are none.
    pub fn await_change(&mut self, blocks: &[BlockId]) -> Ticket {
        self.blocks.await_change(blocks)
    }

    /// Nobody waits for it any more: its time was over.
    pub fn forget_wait(&mut self, ticket: Ticket) {
        self.blocks.forget_wait(ticket);
    }

    /// The waits that have ended since this was asked last, in the order in which they did.
    pub fn take_woken(&mut self) -> Vec<Ticket> {
        self.blocks.take_woken()
    }

    /// Tells that `addBlock` (or `append`) gave a block to a writer, with the storages it was given;
    /// unit `i` of a group is at `targets[i]`.
    pub fn block_allocated(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        targets: &[Option<StorageHandle>],
    ) {
        let mut construction = Construction::new(id, gs, targets);
        for expected in &mut construction.expected {
            let storage = self.nodes.storage_mut(expected.storage);
            expected.promise = Some(storage.promised.add());
        }
        self.blocks.begin_construction(id, construction);
    }

    /// Takes what is known of a block out that is no longer written; `facts` if it is complete.
    pub(crate) fn end_construction(
        &mut self,
        id: BlockId,
        facts: Option<&BlockFacts>,
    ) -> Option<Construction> {
        let construction = self.blocks.end_construction(id)?;
        for expected in &construction.expected {
            self.settle_promise(expected, facts);
        }
        Some(construction)
    }

    /// What was sent to a place has come, if the block is complete with those `facts`, or will not.
    pub(crate) fn settle_promise(&mut self, expected: &Expected, facts: Option<&BlockFacts>) {
        // A list of targets comes from outside and may have more of them than there are units.
        let unit = expected.unit;
        let facts = facts.filter(|facts| unit.as_usize() < facts.layout.width());
        let len = facts.map_or(0, |facts| facts.unit_len(unit));
        let storage = self.nodes.storage_mut(expected.storage);
        storage.promised.settle(expected.promise, len);
    }

    /// Tells that a writer goes on with a new stamp and other storages (`updatePipeline`).
    pub fn pipeline_updated(
        &mut self,
        id: BlockId,
        gs: GenerationStamp,
        targets: &[Option<StorageHandle>],
    ) {
        let update = |c: &mut Construction| c.update_pipeline(id, gs, targets);
        self.blocks.change_construction(id, gs, update);
    }

    /// Tells that a block is complete: what differs from its final length and stamp is bad from now
    /// on, and its redundancy is looked after. Replicas and units of the pipeline that are not
    /// reported yet count as coming for ten heartbeats. To be called for every block that became complete.
    ///
    /// Returns the CRCs that were reported between the command's look at them and its coming into force, and so
    /// are not recorded yet.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#completeBlock`, `#addExpectedReplicasToPending`.
    pub fn block_completed(&mut self, lookup: &dyn BlockLookup, id: BlockId) -> Vec<LateCrc> {
        self.blocks.note_change(id);
        let Some(facts) = lookup.block(id) else { return Vec::new() };
        let mut late_crcs = Vec::new();
        if facts.state == BlockState::Complete
            && let Some(construction) = self.blocks.construction(id)
        {
            let late = construction.unreported(&facts);
            let alive = |s: &StorageHandle| self.node(self.storage(*s).node).alive;
            let late = late.into_iter().filter(|(storage, _)| alive(storage)).collect();
            self.work.expect(id, late, None, self.last_event);
        }
        self.settle_replicas(lookup, id, &facts);
        if facts.state == BlockState::Complete {
            for (unit, crc32c) in (0u8..).map(UnitIndex).zip(self.unit_crcs(id, &facts)) {
                let new = crc32c.filter(|_| lookup.unit_crc(id, unit).is_none());
                late_crcs.extend(new.map(|crc32c| LateCrc { id, gs: facts.gs, unit, crc32c }));
            }
            if self.end_construction(id, Some(&facts)).is_some() {
                self.safe_mode.count_served(true);
            }
        }
        self.check_redundancy(lookup, id);
        late_crcs
    }

    /// Tells that something else of a block has changed (its number of copies, say).
    pub fn block_changed(&mut self, lookup: &dyn BlockLookup, id: BlockId) {
        self.blocks.note_change(id);
        self.check_redundancy(lookup, id);
    }

    /// Tells that no file has the block any more: its replicas and units will be deleted.
    pub fn block_removed(&mut self, id: BlockId, gs: GenerationStamp) {
        if self.pending.as_ref().is_some_and(|pending| pending.has(id)) {
            self.safe_mode.take_from_total(1);
        } else if self.blocks.construction(id).is_none() && self.blocks.of(id).next().is_some() {
            self.safe_mode.count_served(false);
        }
        self.groups.forget_retired(id);
        self.groups.forget_container(id);
        self.packed.forget(id);
        self.forget_block(id, gs);
    }

    /// CRC32C of each unit (one entry for a replicated block) as reported by the DataNodes that
    /// finalized it with the final stamp and length of `facts`.
    pub fn unit_crcs(&self, id: BlockId, facts: &BlockFacts) -> Vec<Option<u32>> {
        let count = if facts.layout.has_units() { facts.layout.width() } else { 1 };
        let construction = self.blocks.construction(id);
        (0..count)
            .map(|unit| construction.and_then(|c| c.crc(UnitIndex(unit as u8), facts)))
            .collect()
    }
}
