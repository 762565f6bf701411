//! A namespace in memory and a cluster with as many nodes and racks as a test wants.

use crate::*;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, UnitIndex};
use std::collections::BTreeMap;

/// The namespace of a test.
#[derive(Clone, Debug, Default)]
pub struct Blocks(
    pub BTreeMap<BlockId, BlockFacts>,
    pub BTreeMap<(BlockId, UnitIndex), u32>,
    pub BTreeMap<BlockId, StoragePolicy>,
    pub BTreeMap<BlockId, GroupFacts>,
);

impl BlockLookup for Blocks {
    fn block(&self, id: BlockId) -> Option<BlockFacts> {
        assert_eq!(id, id.group(), "a group is looked up by its own id");
        self.3.get(&id).map(GroupFacts::facts).or_else(|| self.0.get(&id).copied())
    }

    fn group(&self, handle: BlockId) -> Option<GroupFacts> {
        self.3.get(&handle).cloned()
    }

    fn blocks_after(&self, after: Option<BlockId>, limit: usize) -> Vec<(BlockId, BlockFacts)> {
        let all = self.0.iter().map(|(id, facts)| (*id, *facts));
        all.filter(|(id, _)| after.is_none_or(|after| *id > after)).take(limit).collect()
    }

    fn unit_crc(&self, id: BlockId, unit: UnitIndex) -> Option<u32> {
        self.1.get(&(id, unit)).copied()
    }

    fn storage_policy(&self, id: BlockId) -> StoragePolicy {
        self.2.get(&id).copied().unwrap_or_default()
    }

    fn is_future(&self, gs: GenerationStamp) -> bool {
        gs.0 > 1_000_000
    }
}

/// Numbers that look random and follow from a seed.
pub fn dice(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

pub const GIB: u64 = 1 << 30;

pub fn at(ms: u64) -> Now {
    Now { mono_ms: ms, elapsed_ms: 1_700_000_000_000 + ms, wall_ms: 1_700_000_000_000 + ms }
}

pub fn replicated(copies: u16, len: u64, state: BlockState) -> BlockFacts {
    let layout = Layout::Replicated { copies };
    BlockFacts { gs: GenerationStamp(1001), len, layout, state, group: None, packed: None }
}

pub fn rs(k: u8, m: u8, len: u64, state: BlockState) -> BlockFacts {
    let layout = Layout::Striped { policy: PolicyId(1), k, m, cell_len: 1024 };
    BlockFacts { gs: GenerationStamp(1001), len, layout, state, group: None, packed: None }
}

pub fn block(number: i64) -> BlockId {
    BlockId(BlockId::LAST_RESERVED.0 + number)
}

pub fn group(number: i64) -> BlockId {
    BlockId(i64::MIN + 16 * number)
}

/// A contiguous group of these members and `m` parities, of which `parity` tells the handle, the stamp and the length.
pub fn formed_group(parity: BlockRef, m: u8, members: &[BlockRef]) -> GroupFacts {
    let slot = |block: &BlockRef| {
        let BlockRef { id, gs, len } = *block;
        Some(SlotFacts { id, gs, len, live: true })
    };
    GroupFacts {
        handle: parity.id,
        gs: parity.gs,
        k: members.len() as u8,
        m,
        attempt: false,
        formed: true,
        dissolving: false,
        slots: members.iter().map(slot).collect(),
        parity_len: parity.len,
    }
}

/// The same while it is being encoded.
pub fn begun_group(
    handle: BlockId,
    gs: GenerationStamp,
    m: u8,
    members: &[BlockRef],
) -> GroupFacts {
    let parity = BlockRef { id: handle, gs, len: 0 };
    GroupFacts { attempt: true, formed: false, ..formed_group(parity, m, members) }
}

/// A cluster with a namespace and a clock.
pub struct World {
    pub cluster: Cluster,
    pub blocks: Blocks,
    pub now: Now,
    pub dice: Box<dyn FnMut() -> u64>,
}

pub fn registration(node: usize, rack: usize) -> Registration {
    let address = NodeAddress {
        ip: format!("10.0.{rack}.{node}"),
        host: format!("dn{node}"),
        xfer_port: 9866,
        ..NodeAddress::default()
    };
    let (uuid, rack) = (format!("uuid-{node}"), format!("/rack{rack}"));
    let software_version = "3.5.0".to_string();
    Registration { uuid, address, rack, software_version, ..Registration::default() }
}

/// What a DataNode of Hadoop claims to be.
pub fn claim_of<'a>(uuid: &'a str, address: &'a NodeAddress) -> NodeClaim<'a> {
    NodeClaim { uuid, ip: &address.ip, xfer_port: address.xfer_port.into(), process: None }
}

pub fn storage_uuid(node: usize) -> String {
    format!("DS-{node}")
}

pub fn heartbeat_of(node: usize, remaining: u64) -> Heartbeat {
    let usage = StorageUsage {
        capacity: 100 * GIB,
        remaining,
        dfs_used: 100 * GIB - remaining,
        ..StorageUsage::default()
    };
    let uuid = storage_uuid(node);
    let storages = vec![StorageReport { uuid, usage, ..StorageReport::default() }];
    Heartbeat { storages, takes_groups: true, ..Heartbeat::default() }
}

impl World {
    /// `nodes` DataNodes, dealt out to `racks` racks in turn, which have sent a heartbeat and an empty
    /// full report.
    pub fn new(nodes: usize, racks: usize) -> World {
        World::with_racks(&(0..nodes).map(|node| node % racks).collect::<Vec<_>>())
    }

    /// DataNode `i` in the rack with number `racks[i]`.
    pub fn with_racks(racks: &[usize]) -> World {
        let (cluster, blocks) = (Cluster::new(Config::default()), Blocks::default());
        let mut world = World { cluster, blocks, now: at(1000), dice: Box::new(dice(7)) };
        for (node, rack) in racks.iter().enumerate() {
            world.register(registration(node, *rack));
            world.heartbeat(node);
            world.full_report(node, &[]);
        }
        world
    }

    pub fn handle(&self, node: usize) -> NodeHandle {
        self.cluster.node_by_uuid(&format!("uuid-{node}")).unwrap().handle
    }

    pub fn storage(&self, node: usize) -> StorageHandle {
        self.cluster.storage_by_uuid(&storage_uuid(node)).unwrap().handle
    }

    /// The number of the node that a storage belongs to.
    pub fn number(&self, storage: StorageHandle) -> usize {
        let uuid = &self.cluster.storage(storage).uuid;
        uuid.strip_prefix("DS-").unwrap().parse().unwrap()
    }

    pub fn rack(&self, storage: StorageHandle) -> String {
        self.cluster.node(self.cluster.storage(storage).node).rack.clone()
    }

    /// Takes a node in whom nothing is to keep out.
    pub fn register(&mut self, registration: Registration) -> NodeHandle {
        self.cluster.register(&self.blocks, registration, self.now).unwrap()
    }

    pub fn heartbeat(&mut self, node: usize) -> Vec<Command> {
        self.beat(&format!("uuid-{node}"), heartbeat_of(node, 50 * GIB)).commands
    }

    /// A heartbeat of the node that has registered under `uuid`, or of one that never has.
    pub fn beat(&mut self, uuid: &str, heartbeat: Heartbeat) -> HeartbeatAnswer {
        let known = self.cluster.node_by_uuid(uuid).map(|node| node.address.clone());
        let address = known.unwrap_or_default();
        let claim = claim_of(uuid, &address);
        self.cluster.heartbeat(&self.blocks, &claim, heartbeat, self.now).unwrap()
    }

    /// Node `node` begins to tell all that it has.
    pub fn report_call(&mut self, node: usize) -> ReportCall {
        let handle = self.handle(node);
        self.cluster.begin_report_call(handle, 0, self.now).unwrap()
    }

    pub fn full_report(&mut self, node: usize, replicas: &[ReportedReplica]) -> Changes {
        let (call, uuid) = (self.report_call(node), storage_uuid(node));
        let storage = (uuid.as_str(), StorageType::Disk);
        let changes = self.cluster.full_report(&self.blocks, call, storage, replicas, self.now);
        self.check();
        changes
    }

    /// Looks at all there is, if that is little.
    fn check(&self) {
        if self.blocks.0.len() < 50 {
            self.cluster.check_invariants();
        }
    }

    pub fn event(&mut self, node: usize, event: ReplicaEvent) -> Changes {
        let (handle, uuid) = (self.handle(node), storage_uuid(node));
        let storage = (uuid.as_str(), StorageType::Disk);
        let changes = self.cluster.incremental_report(&self.blocks, handle, storage, &[event]);
        self.check();
        changes
    }

    /// What a replica or unit of `id` is when it is as the namespace wants it.
    pub fn good(&self, id: BlockId, unit: u8) -> BlockRef {
        let facts = self.blocks.0[&id];
        let own_id = if id.is_striped() { id.internal(UnitIndex(unit)) } else { id };
        BlockRef { id: own_id, gs: facts.gs, len: facts.unit_len(UnitIndex(unit)) }
    }

    /// Node `node` tells that it has finalized `block`.
    pub fn received(&mut self, node: usize, block: BlockRef) -> Changes {
        self.received_with_crc(node, block, None)
    }

    pub fn received_with_crc(
        &mut self,
        node: usize,
        block: BlockRef,
        crc32c: Option<u32>,
    ) -> Changes {
        let kind = ReplicaEventKind::Received { delete_hint: None };
        self.event(node, ReplicaEvent { block, kind, crc32c })
    }

    pub fn deleted(&mut self, node: usize, block: BlockRef) -> Changes {
        self.event(node, ReplicaEvent { block, kind: ReplicaEventKind::Deleted, crc32c: None })
    }

    /// A complete block on those nodes; unit `i` of a group on the `i`th of them.
    pub fn store(&mut self, id: BlockId, facts: BlockFacts, nodes: &[usize]) {
        self.blocks.0.insert(id, facts);
        for (unit, node) in nodes.iter().enumerate() {
            let block = self.good(id, unit as u8);
            self.received(*node, block);
        }
    }

    /// The nodes where a block is, with their units, in order.
    pub fn places(&self, id: BlockId) -> Vec<(usize, u8)> {
        let locations = self.cluster.locations(id);
        let mut places: Vec<(usize, u8)> =
            locations.iter().map(|l| (self.number(l.storage), l.unit.0)).collect();
        places.sort_unstable();
        places
    }

    /// Lets time pass with heartbeats of all nodes but `silent`. Returns the commands of each node.
    pub fn run(&mut self, ms: u64, silent: &[usize]) -> BTreeMap<usize, Vec<Command>> {
        let mut commands: BTreeMap<usize, Vec<Command>> = BTreeMap::new();
        let end = self.now.mono_ms + ms;
        while self.now.mono_ms < end {
            self.now = at((self.now.mono_ms + 3000).min(end));
            let nodes: Vec<usize> =
                (0..self.cluster.nodes.all().len()).filter(|node| !silent.contains(node)).collect();
            let mut more = self.cluster.tick(&self.blocks, self.now, &mut *self.dice).more;
            while more {
                more = self.cluster.go_on(&self.blocks);
            }
            for node in nodes {
                commands.entry(node).or_default().extend(self.heartbeat(node));
            }
            self.check();
        }
        commands
    }
}
