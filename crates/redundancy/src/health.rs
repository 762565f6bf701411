//! What a block or group has against what it should have, counted as Hadoop counts it for operators.
//!
//! `excess` counts for mending and `queue` orders by risk; this only tells. Bad replicas that their
//! nodes were told to delete are left out, as Hadoop has forgotten them by then. The counting is a pure
//! function of where replicas stand; tested in `health/tests.rs`.
//!
//! Source: Hadoop 3.5.0 `NumberReplicas`, `BlockManager#countNodes`,
//! `NamenodeFsck#collectBlocksSummary`.

use crate::block::BlockFacts;
use crate::cluster::Cluster;
use crate::handle::{NodeHandle, StorageHandle};
use crate::node::{AdminState, DataNode};
use crate::places::bad::Bad;
use crate::places::map::Place;
use crate::places::own_id;
use crate::storage::StorageState;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeSet;
use std::fmt;

/// Why a replica or unit is bad. Source: Hadoop 3.5.0 `CorruptReplicasMap.Reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReason {
    /// Its generation stamp is not the block's.
    WrongStamp,
    /// It is not as long as it should be.
    WrongLength,
    /// A client or DataNode found bad bytes in it.
    Reported,
}

impl fmt::Display for BadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadReason::WrongStamp => "GENSTAMP_MISMATCH",
            BadReason::WrongLength => "SIZE_MISMATCH",
            BadReason::Reported => "CORRUPTION_REPORTED",
        })
    }
}

/// How a replica or unit counts. Source: Hadoop 3.5.0 `NumberReplicas.StoredReplicaState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Good, on a node in service.
    Live,
    /// Good, on a storage that is shared and can only be read.
    ReadOnly,
    /// Good, on a node that is being decommissioned.
    Decommissioning,
    /// Good, on a node that is decommissioned.
    Decommissioned,
    /// Good, on a live node that will be away for a while.
    EnteringMaintenance,
    /// On a node that is away for a while, or died on the way there.
    InMaintenance,
    /// Known to be bad.
    Corrupt(BadReason),
    /// Good, and chosen for deletion.
    Excess,
}

/// One replica or unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its node.
    pub node: NodeHandle,
    /// Its storage.
    pub storage: StorageHandle,
    /// The unit; 0 for a replica.
    pub unit: UnitIndex,
    /// How it counts.
    pub standing: Standing,
    /// Whether its storage has not reported since its node registered.
    pub stale: bool,
}

/// Replicas or units of one block or group by how they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Good replicas, or distinct good units, on nodes in service.
    pub live: usize,
    /// On storages that can only be read.
    pub read_only: usize,
    /// On nodes that are being decommissioned; of a group, units that are not live as well.
    pub decommissioning: usize,
    /// On decommissioned nodes.
    pub decommissioned: usize,
    /// On live nodes that enter maintenance.
    pub entering_maintenance: usize,
    /// On nodes in maintenance.
    pub in_maintenance: usize,
    /// Bad ones.
    pub corrupt: usize,
    /// Chosen for deletion.
    pub excess: usize,
    /// On storages that have not reported yet; counted under another name as well.
    pub stale: usize,
    /// Live units of a group beyond the first with the same index.
    pub redundant: usize,
}

impl ReplicaCounts {
    /// Counts replicas, or units if `striped`.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#countReplicasForStripedBlock`.
    pub fn of(striped: bool, replicas: &[Replica]) -> ReplicaCounts {
        let mut counts = ReplicaCounts::default();
        let units_of = |wanted: Standing| {
            let of_kind = replicas.iter().filter(move |r| r.standing == wanted);
            of_kind.map(|r| r.unit).collect::<BTreeSet<UnitIndex>>()
        };
        for replica in replicas {
            counts.stale += usize::from(replica.stale);
            match replica.standing {
                Standing::Live => counts.live += 1,
                Standing::ReadOnly => counts.read_only += 1,
                Standing::Decommissioning => counts.decommissioning += 1,
                Standing::Decommissioned => counts.decommissioned += 1,
                Standing::EnteringMaintenance => counts.entering_maintenance += 1,
                Standing::InMaintenance => counts.in_maintenance += 1,
                Standing::Corrupt(_) => counts.corrupt += 1,
                Standing::Excess => counts.excess += 1,
            }
        }
        if striped {
            let live = units_of(Standing::Live);
            counts.redundant = counts.live - live.len();
            counts.live = live.len();
            counts.decommissioning = units_of(Standing::Decommissioning).difference(&live).count();
        }
        counts
    }

    /// Those that data can be had from now or when a node returns.
    pub fn found(&self) -> usize {
        self.live
            + self.decommissioning
            + self.decommissioned
            + self.entering_maintenance
            + self.in_maintenance
    }
}

/// What an operator is told of a block or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What there is.
    pub counts: ReplicaCounts,
    /// How many there should be.
    pub expected: usize,
    /// How many are needed to read it.
    pub min: usize,
    /// Whether it is called corrupt: bad ones are there, and too few others.
    pub corrupt: bool,
    /// Whether it is a group.
    pub striped: bool,
    /// Whether its bytes can be had from the contiguous group that it is in, whatever has become of its replicas.
    pub decodes: bool,
}

impl Verdict {
    /// Judges a block whose length is final. `replication_min` is `dfs.namenode.replication.min`.
    ///
    /// Deviation: Hadoop calls a group corrupt that has enough good units, but not on nodes in service.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck#collectBlocksSummary`, `BlockManager#createLocatedBlock`.
    pub fn of(facts: &BlockFacts, replicas: &[Replica], replication_min: u16) -> Verdict {
        let striped = facts.layout.has_units();
        let replicas: Vec<Replica> =
            replicas.iter().filter(|replica| facts.has_bytes(replica.unit)).copied().collect();
        let counts = ReplicaCounts::of(striped, &replicas);
        let min = if striped { facts.data_units() } else { usize::from(replication_min.max(1)) };
        let corrupt = if striped {
            let good = replicas.iter().filter(|r| !matches!(r.standing, Standing::Corrupt(_)));
            let units: BTreeSet<UnitIndex> = good.map(|replica| replica.unit).collect();
            counts.corrupt > 0 && units.len() < min
        } else {
            counts.corrupt > 0 && counts.corrupt == replicas.len()
        };
        let expected = facts.expected_units();
        Verdict { counts, expected, min, corrupt, striped, decodes: false }
    }

    /// The same of a member of a contiguous group from which its bytes can be had.
    pub fn of_decodable(self) -> Verdict {
        Verdict { corrupt: false, decodes: true, ..self }
    }

    /// Whether its data cannot be had, bad ones left aside: no replica, or fewer units than data units.
    pub fn is_missing(&self) -> bool {
        match self.striped {
            true => self.is_below_min(),
            false => self.counts.found() == 0 && !self.decodes,
        }
    }

    /// Whether fewer are there than the minimum.
    pub fn is_below_min(&self) -> bool {
        self.counts.found() < self.min && !self.decodes
    }

    /// How many are lacking; none of a block that is missing.
    pub fn lacking(&self) -> usize {
        if self.is_missing() { 0 } else { self.expected.saturating_sub(self.counts.found()) }
    }

    /// How many live ones are too many.
    pub fn surplus(&self) -> usize {
        self.counts.live.saturating_sub(self.expected)
    }
}

/// Racks that replicas or units are on, and should be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Racks that they are on.
    pub racks: usize,
    /// Racks that the policy asks for.
    pub wanted: usize,
    /// Racks with live nodes.
    pub total: usize,
}

impl Spread {
    /// Whether there are as many as wanted, or as there can be.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementStatusDefault`.
    pub fn is_satisfied(&self) -> bool {
        self.wanted <= self.racks || self.racks >= self.total
    }
}

impl fmt::Display for Spread {
    /// What is wrong with it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Block should be additionally replicated on {} more rack(s). Total number of racks in \
             the cluster: {}",
            self.wanted.saturating_sub(self.racks),
            self.total
        )
    }
}

impl Cluster {
    /// Replicas or units of a block or group, with how each counts, in the order in which they were
    /// first reported.
    pub fn replicas(&self, id: BlockId, facts: &BlockFacts) -> Vec<Replica> {
        let id = id.group();
        self.places(id).filter_map(|place| self.replica(id, facts, place)).collect()
    }

    fn replica(&self, id: BlockId, facts: &BlockFacts, place: Place) -> Option<Replica> {
        let storage = self.storage(place.storage);
        let node = self.node(storage.node);
        let standing = match storage.state {
            StorageState::Failed => return None,
            StorageState::ReadOnlyShared => Standing::ReadOnly,
            StorageState::Normal if place.corrupt && place.excess => return None,
            StorageState::Normal if place.corrupt => {
                let mark = self.blocks.mark(place.storage, own_id(id, place.unit));
                Standing::Corrupt(mark.map_or(BadReason::Reported, |bad| reason(facts, &bad)))
            }
            StorageState::Normal => good_standing(node, place.excess),
        };
        let stale = !storage.reported;
        let (node, storage) = (storage.node, place.storage);
        Some(Replica { node, storage, unit: place.unit, standing, stale })
    }

    /// The racks of those replicas or units of a block that readers get.
    ///
    /// Source: Hadoop 3.5.0 `BlockPlacementPolicyDefault#verifyBlockPlacement`,
    /// `BlockPlacementPolicyRackFaultTolerant#verifyBlockPlacement`.
    pub fn spread_of(&self, facts: &BlockFacts, verdict: &Verdict, replicas: &[Replica]) -> Spread {
        if self.nodes.width().racks <= 1 {
            return Spread { racks: 1, wanted: 1, total: 1 };
        }
        let served = replicas.iter().filter(|replica| match replica.standing {
            Standing::InMaintenance => false,
            Standing::Corrupt(_) => verdict.corrupt,
            _ => true,
        });
        let racks: BTreeSet<&str> =
            served.map(|replica| self.node(replica.node).rack.as_str()).collect();
        let most = if facts.layout.has_units() { usize::MAX } else { 2 };
        let wanted = verdict.expected.min(most);
        Spread { racks: racks.len(), wanted, total: self.nodes.width().racks }
    }
}

/// Source: Hadoop 3.5.0 `BlockManager#checkReplicaOnStorage`.
fn good_standing(node: &DataNode, excess: bool) -> Standing {
    match node.admin {
        AdminState::DecommissionInProgress => Standing::Decommissioning,
        AdminState::Decommissioned => Standing::Decommissioned,
        AdminState::EnteringMaintenance if node.alive => Standing::EnteringMaintenance,
        AdminState::EnteringMaintenance | AdminState::InMaintenance => Standing::InMaintenance,
        AdminState::InService if excess => Standing::Excess,
        AdminState::InService => Standing::Live,
    }
}

fn reason(facts: &BlockFacts, bad: &Bad) -> BadReason {
    if bad.block.gs != facts.gs {
        BadReason::WrongStamp
    } else if facts.is_final() && bad.block.len != facts.unit_len(bad.block.id.unit()) {
        BadReason::WrongLength
    } else {
        BadReason::Reported
    }
}

#[cfg(test)]
mod tests;
