//! How long the NameNode's lock on the cluster is held, step by step, where a DataNode has many replicas:
//! `cargo run -p cairn-redundancy --example lock_times -- 1000000`. The namespace is a function here, so
//! the time that its store takes comes on top.

use cairn_redundancy::{
    BlockFacts, BlockLookup, BlockRef, BlockState, Changes, Cluster, Config, FullReport, Heartbeat,
    Layout, NodeAddress, NodeHandle, Now, Registration, ReplicaState, ReportedReplica,
    StorageReport, StorageType,
};
use cairn_stripe::{BlockId, GenerationStamp};
use std::time::Duration;

/// As many blocks of two copies as told.
struct Blocks(i64);

const FACTS: BlockFacts = BlockFacts {
    gs: GenerationStamp(1001),
    len: 100,
    layout: Layout::Replicated { copies: 2 },
    state: BlockState::Complete,
};

impl BlockLookup for Blocks {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        (1..=self.0).contains(&id.0).then_some(FACTS)
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let first = after.map_or(1, |id| id.0 + 1);
        (first..=self.0).take(limit).map(|id| (BlockId(id), FACTS)).collect()
    }
}

fn add_node(cluster: &mut Cluster, blocks: &Blocks, number: u8) -> NodeHandle {
    let (uuid, ip) = (format!("uuid-{number}"), format!("10.0.0.{number}"));
    let address = NodeAddress { ip, xfer_port: 9866, ..NodeAddress::default() };
    let rack = "/rack".to_string();
    let registration =
        Registration { uuid: uuid.clone(), address, rack, ..Registration::default() };
    let node = cluster.register(blocks, registration, Now::default());
    let uuid_of_storage = format!("DS-{number}");
    let storages = vec![StorageReport { uuid: uuid_of_storage, ..StorageReport::default() }];
    let heartbeat = Heartbeat { storages, ..Heartbeat::default() };
    cluster.heartbeat(blocks, &uuid, heartbeat, Now::default());
    node
}

/// What this thread has had of a processor: others that run beside it do not count.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// Runs `step` until it says that it was the last; tells of the longest.
fn time(what: &str, mut step: impl FnMut() -> bool) {
    let (mut steps, mut longest, mut total) = (0_u32, Duration::ZERO, Duration::ZERO);
    let mut more = true;
    while more {
        let began = cpu_time();
        more = step();
        let took = cpu_time() - began;
        (steps, longest, total) = (steps + 1, longest.max(took), total + took);
    }
    println!("{what}: {steps} steps, the longest {longest:.2?}, all {total:.2?} of processor time");
}

fn main() {
    let count = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(100_000);
    let blocks = Blocks(count);
    let mut cluster = Cluster::new(Config::default());
    let nodes = [1, 2, 3].map(|number| add_node(&mut cluster, &blocks, number));
    let replica = |id| {
        let block = BlockRef { id: BlockId(id), gs: FACTS.gs, len: FACTS.len };
        ReportedReplica { block, state: ReplicaState::Finalized, crc32c: None }
    };
    let all: Vec<ReportedReplica> = (1..=count).map(replica).collect();
    let now = Now::default();
    for (node, uuid) in nodes.iter().zip(["DS-1", "DS-2"]) {
        let mut report = FullReport::new(all.clone());
        cluster.begin_full_report(*node, (uuid, StorageType::Disk), &mut report);
        let mut changes = Changes::default();
        time("first full report", || {
            cluster.full_report_step(&blocks, &mut report, now, &mut changes)
        });
    }
    let mut report = FullReport::new(all);
    cluster.begin_full_report(nodes[0], ("DS-1", StorageType::Disk), &mut report);
    let mut changes = Changes::default();
    time("full report of what is known", || {
        cluster.full_report_step(&blocks, &mut report, now, &mut changes)
    });
    time("death", || {
        cluster.node_died(&blocks, nodes[0]);
        false
    });
    time("what the dead node held", || cluster.drop_lost(&blocks));
    let mut dice = || 4;
    let mut ms = 0;
    time("ticks", || {
        ms += 1000;
        cluster.tick(&blocks, Now { mono_ms: ms, wall_ms: ms }, &mut dice);
        ms < 120_000
    });
}
