//! How far nodes that leave have got, and what holds them back.

use crate::block::{BlockLookup, BlockState};
use crate::clock::Now;
use crate::cluster::Cluster;
use crate::handle::NodeHandle;
use crate::node::AdminState;
use crate::slots::Slots;
use crate::storage::StorageState;
use cairn_stripe::{BlockId, StoragePolicy};
use std::fmt;

/// Why a leaving node must stay although nothing is said of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeHeldBack {
    /// As many others are followed as may be at a time.
    WaitingForTurn {
        /// Leaving nodes before it.
        ahead: usize,
    },
    /// What it holds is not known: a storage has not sent its first full report.
    NotReported,
    /// It is dead, and blocks that it may hold wait for mending.
    Dead {
        /// Blocks and groups with too little redundancy.
        low: u64,
        /// Blocks and groups whose mending is under way.
        under_way: u64,
    },
}

impl fmt::Display for NodeHeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeHeldBack::WaitingForTurn { ahead } => write!(
                f,
                "it waits for its turn behind {ahead} others \
                 (dfs.namenode.decommission.max.concurrent.tracked.nodes)"
            ),
            NodeHeldBack::NotReported => f.write_str("it has not sent its first full block report"),
            NodeHeldBack::Dead { low, under_way } => write!(
                f,
                "it is dead while {low} blocks have too little redundancy and {under_way} are being \
                 mended: start it, or take it off the lists and put it on again"
            ),
        }
    }
}

/// Why a block keeps a leaving node from going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// It is being copied or decoded.
    UnderWay,
    /// It waits for DataNodes that are free to copy or decode it.
    Waiting,
    /// A client writes to it.
    Open,
    /// Too little of it can be read to bring it back.
    Unreadable {
        /// Good replicas or distinct units that can be read.
        readable: usize,
        /// As many as it takes.
        needed: usize,
    },
    /// No DataNode can take it.
    NoTarget {
        /// Replicas or units that nodes in service have.
        live: usize,
        /// As many as they should have.
        wanted: usize,
        /// Live DataNodes in service.
        in_service: usize,
        /// Dead ones that are meant to serve.
        dead: usize,
    },
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldBack::UnderWay => f.write_str("it is being copied or decoded"),
            HeldBack::Waiting => f.write_str("it waits for free DataNodes"),
            HeldBack::Open => f.write_str("its file is open for writing"),
            HeldBack::Unreadable { readable, needed } => {
                write!(f, "only {readable} good replicas or units can be read, {needed} are needed")
            }
            HeldBack::NoTarget { live, wanted, in_service, dead } => {
                write!(
                    f,
                    "{live} of {wanted} are on DataNodes in service, and none of the {in_service} live \
                     ones can take another: each has one or lacks room"
                )?;
                if *dead > 0 {
                    write!(f, "; {dead} more are dead")?;
                }
                Ok(())
            }
        }
    }
}

/// A node that leaves, and how far it has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingNode {
    /// The node.
    pub node: NodeHandle,
    /// Decommission or maintenance.
    pub state: AdminState,
    /// Milliseconds since it was told to.
    pub age_ms: u64,
    /// Whether all it holds was looked at; until then what is left is what was found so far.
    pub counted: bool,
    /// Replicas and units that others do not have yet.
    pub blocks_left: u64,
    /// Their bytes.
    pub bytes_left: u64,
    /// Those that others have by now.
    pub blocks_done: u64,
    /// Their bytes.
    pub bytes_done: u64,
    /// Those left of which no node in service has a replica or unit.
    pub only_leaving: u64,
    /// Those left to which clients write.
    pub open: u64,
    /// Bytes that others got in a second, over the last minute or since it began.
    pub bytes_per_second: u64,
    /// When it is through at this rate; `None` while nothing moves.
    pub seconds_left: Option<u64>,
    /// What holds the node itself back.
    pub held_back: Option<NodeHeldBack>,
    /// Some of the blocks left, stuck ones first, and what holds each back.
    pub blocks: Vec<(BlockId, HeldBack)>,
}

impl Cluster {
    /// How far a node has got that is being decommissioned or about to be in maintenance, with up to
    /// `limit` of its blocks; `None` for other nodes.
    pub fn leaving_node(
        &self,
        lookup: &dyn BlockLookup,
        handle: NodeHandle,
        limit: usize,
        now: Now,
    ) -> Option<LeavingNode> {
        let since = self.leaving.since(handle)?;
        let node = self.node(handle);
        let mut told = LeavingNode {
            node: handle,
            state: node.admin,
            age_ms: now.mono_ms.saturating_sub(since),
            counted: false,
            blocks_left: 0,
            bytes_left: 0,
            blocks_done: 0,
            bytes_done: 0,
            only_leaving: 0,
            open: 0,
            bytes_per_second: 0,
            seconds_left: None,
            held_back: self.node_held_back(handle),
            blocks: Vec::new(),
        };
        let Some(count) = self.leaving.count(handle, now) else { return Some(told) };
        told.counted = count.is_whole;
        told.blocks_left = count.blocks_left;
        told.bytes_left = count.bytes_left;
        told.blocks_done = count.blocks_done;
        told.bytes_done = count.bytes_done;
        told.only_leaving = count.only_leaving;
        told.open = count.open;
        let mut open = self.open_on(lookup, handle);
        open.retain(|id, _| !self.leaving.is_left(handle, *id));
        for left in open.values() {
            told.blocks_left += 1;
            told.bytes_left += left.len;
            told.only_leaving += u64::from(left.only_leaving);
            told.open += 1;
        }
        told.bytes_per_second = count.bytes_per_second;
        told.seconds_left = match told.bytes_per_second {
            _ if told.blocks_left == 0 && told.counted => Some(0),
            0 => None,
            rate => Some(told.bytes_left.div_ceil(rate)),
        };
        let (stuck, others) =
            (self.leaving.left_on(handle, true), self.leaving.left_on(handle, false));
        let all = stuck.chain(open.into_keys()).chain(others);
        let some: Vec<BlockId> = all.take(limit).collect();
        told.blocks = some
            .into_iter()
            .filter_map(|id| {
                let (group, facts) = (id.group(), lookup.block(id.group())?);
                let slots = Slots::of(lookup, group, &facts);
                Some((id, self.held_back(&slots, lookup.storage_policy(group), now)))
            })
            .collect();
        Some(told)
    }

    /// Every node that is being decommissioned or about to be in maintenance.
    pub fn leaving_nodes(&self) -> impl Iterator<Item = NodeHandle> + '_ {
        self.leaving.nodes()
    }

    /// Whether a node that leaves holds a replica or unit of a block or group that others do not have yet, as far as
    /// is known.
    pub fn keeps_a_node_from_leaving(&self, lookup: &dyn BlockLookup, id: BlockId) -> bool {
        let group = id.group();
        if self.leaving.nodes().next().is_some() {
            let mut open = self.open_of(lookup, group).into_iter();
            if open.any(|(node, ..)| self.leaving.since(node).is_some()) {
                return true;
            }
        }
        self.leaving.is_any_left(group)
    }

    /// What keeps a node from going whose blocks others have.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#isNodeHealthyForDecommissionOrMaintenance`.
    pub(super) fn node_held_back(&self, handle: NodeHandle) -> Option<NodeHeldBack> {
        if let Some(ahead) = self.leaving.ahead_of(handle) {
            return Some(NodeHeldBack::WaitingForTurn { ahead });
        }
        let node = self.node(handle);
        let mut storages = node.storages.iter().map(|storage| self.storage(*storage));
        let reported = if node.alive {
            !node.storages.is_empty()
                && storages.all(|storage| storage.reported || storage.state == StorageState::Failed)
        } else {
            node.last_report_mono_ms > 0
        };
        if !reported {
            return Some(NodeHeldBack::NotReported);
        }
        let (low, under_way) = (self.low.queues().len() as u64, self.work.under_way_count());
        let risky = !node.alive && low + under_way > 0;
        risky.then_some(NodeHeldBack::Dead { low, under_way })
    }

    /// What keeps others from having a block.
    fn held_back(&self, slots: &Slots, policy: StoragePolicy, now: Now) -> HeldBack {
        let Slots { id, facts, .. } = slots;
        if facts.state != BlockState::Complete {
            return HeldBack::Open;
        }
        if !self.work.coming(*id).is_empty() {
            return HeldBack::UnderWay;
        }
        let readable = self.readable_units(slots);
        let copies = self.can_copy_some(slots);
        let needed = facts.data_units();
        if readable < needed && !copies {
            return HeldBack::Unreadable { readable, needed };
        }
        if self.has_target(slots, policy, now) {
            return HeldBack::Waiting;
        }
        let tally = self.tally_of(slots);
        let meant_to_serve = || self.nodes().filter(|node| !node.disallowed && !node.is_leaving());
        HeldBack::NoTarget {
            live: tally.live,
            wanted: self.need_of(*id, facts, &tally).wanted(),
            in_service: meant_to_serve().filter(|node| node.alive).count(),
            dead: meant_to_serve().filter(|node| !node.alive).count(),
        }
    }
}
