//! How long the NameNode's lock on the cluster is held, step by step, where there are many replicas or units, and
//! what memory it takes to know where they are:
//! `cargo run --release -p cairn-redundancy --example lock_times -- 1000000 RS-6-3 9 1` for a million groups on 9
//! DataNodes with a storage each. The namespace is a function here, so the time that its store takes comes on top.
//!
//! As after a start, safe mode ends when two thirds of the storages have reported. Then the same for a member of a quorum
//! that begins to lead, and has kept what all of them have told.

use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockRef, BlockState, Changes, Cluster, Config, FullReport,
    GroupFacts, Heartbeat, Layout, NodeAddress, NodeHandle, Now, Registration, ReplicaState,
    ReportedReplica, Standby, StoragePolicy, StorageReport, StorageType,
};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, UnitIndex};
use std::time::Duration;

/// As many blocks or groups as told.
struct Blocks {
    count: i64,
    layout: Layout,
}

impl Blocks {
    fn parse(count: i64, layout: &str) -> Option<Blocks> {
        let layout = match layout.strip_prefix("RS-") {
            None => Layout::Replicated { copies: layout.parse().ok()? },
            Some(schema) => {
                let (k, m) = schema.split_once('-')?;
                let (k, m) = (k.parse().ok()?, m.parse().ok()?);
                Layout::Striped { policy: PolicyId(1), k, m, cell_len: 1 << 20 }
            }
        };
        Some(Blocks { count, layout })
    }

    fn facts(&self) -> BlockFacts {
        let data_units = match self.layout {
            Layout::Replicated { .. } | Layout::Parity { .. } => 1,
            Layout::Striped { k, .. } => u64::from(k),
        };
        let state = BlockState::Complete;
        let (gs, len) = (GenerationStamp(1001), data_units << 20);
        BlockFacts { gs, len, layout: self.layout, state, group: None, packed: None }
    }

    fn id(&self, number: i64) -> BlockId {
        BlockId(if self.layout.is_striped() { i64::MIN + 16 * number } else { number })
    }

    fn number(&self, id: BlockId) -> i64 {
        if self.layout.is_striped() { (id.0 & i64::MAX) / 16 } else { id.0 }
    }

    /// The node of a replica or unit: another one for each of a block, and no pattern from block to block.
    fn node_of(&self, number: i64, unit: usize, nodes: usize) -> usize {
        let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (mixed as usize + unit) % nodes
    }

    fn storage_of(&self, number: i64, unit: usize, storages: usize) -> usize {
        (number as u64).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(unit as u32 * 5) as usize
            % storages
    }
}

impl BlockLookup for Blocks {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        let is_one = id.is_striped() == self.layout.is_striped();
        (is_one && (1..=self.count).contains(&self.number(id))).then(|| self.facts())
    }

    fn group(&self, _: BlockId) -> Option<GroupFacts> {
        None
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let first = after.map_or(1, |id| self.number(id) + 1);
        let numbers = (first..=self.count).take(limit);
        numbers.map(|number| (self.id(number), self.facts())).collect()
    }

    fn storage_policy(&self, _: BlockId) -> StoragePolicy {
        StoragePolicy::HOT
    }

    fn unit_crc(&self, _: BlockId, _: UnitIndex) -> Option<u32> {
        None
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        gs > self.facts().gs
    }
}

fn registration(number: usize) -> Registration {
    let (uuid, ip) = (format!("uuid-{number}"), format!("10.0.{}.{}", number / 250, number % 250));
    let address = NodeAddress { ip, xfer_port: 9866, ..NodeAddress::default() };
    let rack = "/rack".to_string();
    Registration { uuid, address, rack, ..Registration::default() }
}

fn heartbeat(number: usize, storages: usize) -> Heartbeat {
    let named = |storage| StorageReport { uuid: name(number, storage), ..StorageReport::default() };
    Heartbeat { storages: (0..storages).map(named).collect(), ..Heartbeat::default() }
}

fn add_node(cluster: &mut Cluster, blocks: &Blocks, number: usize, storages: usize) -> NodeHandle {
    let registered = cluster.register(blocks, registration(number), Now::default());
    let node = registered.expect("it is the only one");
    let (claimed, heartbeat) = (registration(number), heartbeat(number, storages));
    let beat = cluster.heartbeat(blocks, &claimed.claim(), heartbeat, Now::default());
    beat.expect("it has registered");
    node
}

fn name(node: usize, storage: usize) -> String {
    format!("DS-{node}-{storage}")
}

/// What this thread has had of a processor: others that run beside it do not count.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Steps of one kind: how many, and what they took.
#[derive(Default)]
struct Times {
    steps: u32,
    longest: Duration,
    total: Duration,
}

impl Times {
    /// Runs `step` until it says that it was the last.
    fn run(&mut self, mut step: impl FnMut() -> bool) {
        let mut more = true;
        while more {
            let began = cpu_time();
            more = step();
            let took = cpu_time() - began;
            self.steps += 1;
            self.longest = self.longest.max(took);
            self.total += took;
        }
    }

    /// Tells what they took, and what that makes for each of `count` replicas or units.
    fn print(&self, what: &str, count: usize) {
        let Times { steps, longest, total } = self;
        let each = total.as_secs_f64() * 1e6 / count.max(1) as f64;
        println!(
            "{what}: {steps} steps, the longest {longest:.2?}, all {total:.2?} of processor time, {each:.2} us each"
        );
    }
}

/// What one storage holds.
fn held(blocks: &Blocks, at: (usize, usize), size: (usize, usize)) -> Vec<ReportedReplica> {
    let facts = blocks.facts();
    let units = blocks.layout.width();
    let of = |number: i64| {
        let here = (0..units).filter(move |unit| {
            let node = blocks.node_of(number, *unit, size.0);
            (node, blocks.storage_of(number, *unit, size.1)) == at
        });
        here.map(move |unit| {
            let (id, unit) = (blocks.id(number), UnitIndex(unit as u8));
            let own_id = if id.is_striped() { id.internal(unit) } else { id };
            let block = BlockRef { id: own_id, gs: facts.gs, len: facts.unit_len(unit) };
            ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None }
        })
    };
    (1..=blocks.count).flat_map(of).collect()
}

/// What a NameNode takes over that begins to lead: before it serves, and then, while it does.
fn take_over(blocks: &Blocks, all: &[(usize, usize)], size: (usize, usize)) {
    let mut standby = Standby::new(&Config::default());
    let mut cluster = Cluster::new(Config::default());
    let mut units = 0;
    for node in 0..size.0 {
        let (registration, heartbeat) = (registration(node), heartbeat(node, size.1));
        standby.register(registration.clone(), Now::default());
        standby.heartbeat(&registration.claim(), heartbeat, Now::default());
        for at in all.iter().filter(|at| at.0 == node) {
            let replicas = held(blocks, *at, size);
            units += replicas.len();
            let list = vec![(name(at.0, at.1), StorageType::Disk, replicas)];
            let told = standby.full_report(&registration.claim(), (0, true), list, Now::default());
            told.expect("it has registered");
        }
        add_node(&mut cluster, blocks, node, size.1);
    }
    cluster.begin_to_lead(1 << 32);
    cluster.start_safe_mode(blocks.count as u64, Now::default());
    let mut times = Times::default();
    let mut standby = Some(standby);
    times.run(|| {
        let kept = standby.take().map(|standby| standby.hand_over(Now::default(), u64::MAX));
        kept.into_iter().for_each(|kept| cluster.take_over(kept, true));
        false
    });
    times.print("taken over before it serves", units);
    let mut times = Times::default();
    times.run(|| {
        for number in (1..=1000).map(|number| number * 7919 % blocks.count) {
            cluster.settle(blocks, &[blocks.id(number)]);
        }
        false
    });
    times.print("settled as somebody asks", 1000);
    let mut times = Times::default();
    let mut changes = Changes::default();
    times.run(|| cluster.take_over_step(blocks, &mut changes));
    times.print("judged while it serves", units);
    cluster.end_taking_over(Now::default());
    let (mut times, mut ms, mut dice) = (Times::default(), 0, || 4);
    times.run(|| {
        ms += 1000;
        cluster.tick(blocks, Now { mono_ms: ms, elapsed_ms: ms, wall_ms: ms }, &mut dice);
        ms < 120_000
    });
    times.print("ticks after that", 1);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| args.get(at).map_or(default, String::as_str).to_string();
    let number = |at: usize, default: &str| word(at, default).parse::<usize>().unwrap_or(0);
    let (count, layout) = (number(0, "100000"), word(1, "2"));
    let size = (number(2, "9"), number(3, "1"));
    let Some(blocks) = Blocks::parse(count as i64, &layout).filter(|_| size.0 * size.1 > 0) else {
        eprintln!("usage: lock_times COUNT COPIES|RS-K-M NODES STORAGES");
        return;
    };
    let mut cluster = Cluster::new(Config::default());
    let nodes: Vec<NodeHandle> =
        (0..size.0).map(|number| add_node(&mut cluster, &blocks, number, size.1)).collect();
    cluster.start_safe_mode(count as u64, Now::default());
    let all: Vec<(usize, usize)> =
        (0..size.0).flat_map(|node| (0..size.1).map(move |storage| (node, storage))).collect();
    let report = |cluster: &mut Cluster, times: &mut Times, at: (usize, usize)| {
        let mut report = FullReport::new(held(&blocks, at, size));
        let (units, uuid) = (report.replica_count(), name(at.0, at.1));
        let named = (uuid.as_str(), StorageType::Disk);
        let call = cluster
            .begin_report_call(nodes[at.0], 0, Now::default())
            .expect("a node that is alive");
        cluster.begin_full_report(call, named, &mut report).expect("a storage that is known");
        let mut changes = Changes::default();
        times.run(|| cluster.full_report_step(&blocks, &mut report, Now::default(), &mut changes));
        units
    };
    let empty = resident();
    let (mut times, mut units) = (Times::default(), 0);
    for (number, at) in all.iter().enumerate() {
        if number * 3 >= all.len() * 2 {
            cluster.leave_safe_mode(true);
        }
        units += report(&mut cluster, &mut times, *at);
    }
    times.print("first full reports", units);
    let bytes = resident().saturating_sub(empty);
    println!(
        "{units} replicas or units of {count} blocks or groups: {} MiB, {} bytes a block or group",
        bytes >> 20,
        bytes / count.max(1) as u64
    );
    let mut times = Times::default();
    let units = report(&mut cluster, &mut times, all[0]);
    times.print("full report of what is known", units);
    let mut times = Times::default();
    let mut found = 0;
    times.run(|| {
        for number in (1..=1000).map(|number| number * 7919 % blocks.count) {
            found += cluster.locations(blocks.id(number)).len();
        }
        false
    });
    times.print("look-ups", found);
    let mut times = Times::default();
    times.run(|| {
        cluster.node_died(&blocks, nodes[0]);
        false
    });
    times.print("death", 1);
    let mut times = Times::default();
    times.run(|| cluster.drop_lost(&blocks));
    times.print("what the dead node held", units * size.1);
    let mut dice = || 4;
    let mut ms = 0;
    let mut times = Times::default();
    times.run(|| {
        ms += 1000;
        cluster.tick(&blocks, Now { mono_ms: ms, elapsed_ms: ms, wall_ms: ms }, &mut dice);
        ms < 120_000
    });
    times.print("ticks", 1);
    drop(cluster);
    take_over(&blocks, &all, size);
}
