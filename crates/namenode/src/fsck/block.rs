//! What is told of one block: its verdict and its places.

use super::options::Options;
use cairn_master::Lookup;
use cairn_redundancy::{
    AdminState, BlockFacts, BlockState, Cluster, DataNode, Now, Replica, ReplicaCounts, Spread,
    Standing, StorageHandle, StorageType, Verdict,
};
use cairn_stripe::{BlockId, UnitIndex};
use std::fmt::Write as _;

/// What all reports on blocks draw on.
pub(super) struct View<'a> {
    pub options: &'a Options,
    pub cluster: &'a Cluster,
    pub replication_min: u16,
    pub now: Now,
}

/// What is known of one block.
pub(super) struct Look {
    pub verdict: Verdict,
    /// Whether its replicas agree with each other against the recorded CRC.
    pub is_record_doubtful: bool,
    /// Whether they disagreed when they were read last, and nobody knows which one is wrong.
    pub disagrees: bool,
    pub spread: Spread,
    /// Its places as they are shown, or nothing.
    pub places: String,
    /// The types of storage that readers find it on.
    pub types: Vec<StorageType>,
}

impl View<'_> {
    /// Looks at a block; `facts` must be as new as the cluster.
    pub(super) fn look(&self, lookup: &Lookup<'_>, id: BlockId, facts: &BlockFacts) -> Look {
        let replicas = self.cluster.replicas(id, facts);
        let verdict = self.verdict(lookup, (id, facts), &replicas);
        let served = replicas.iter().filter(|replica| match replica.standing {
            Standing::InMaintenance => false,
            Standing::Corrupt(_) => verdict.corrupt,
            _ => true,
        });
        let types = served.map(|r| self.cluster.storage(r.storage).storage_type).collect();
        Look {
            spread: self.cluster.spread_of(facts, &verdict, &replicas),
            places: self.places(id, facts, replicas),
            is_record_doubtful: self.cluster.is_record_doubtful(id),
            disagrees: self.cluster.disagrees(id, facts),
            types,
            verdict,
        }
    }

    /// Judges a block by its replicas, or by the contiguous group that it is in.
    fn verdict(
        &self,
        lookup: &Lookup<'_>,
        (id, facts): (BlockId, &BlockFacts),
        replicas: &[Replica],
    ) -> Verdict {
        let verdict = Verdict::of(facts, replicas, self.replication_min);
        match (facts.group.is_some() || facts.packed.is_some())
            && self.cluster.is_decodable(lookup, id, facts)
        {
            true => verdict.of_decodable(),
            false => verdict,
        }
    }

    /// Places of a block, such as ` [blk_-16:/rack/host:port(LIVE), ...]`, if they are asked for.
    ///
    /// Source: Hadoop 3.5.0 `NamenodeFsck#getReplicaInfo`.
    fn places(&self, id: BlockId, facts: &BlockFacts, mut replicas: Vec<Replica>) -> String {
        if !self.options.show_places() {
            return String::new();
        }
        replicas.sort_by_key(|replica| replica.unit);
        let texts = replicas.iter().map(|replica| {
            let unit = match facts.layout.is_striped() {
                true => format!("blk_{}:", id.internal(replica.unit).0),
                false => String::new(),
            };
            let details = self.options.replica_details.then(|| self.details(replica));
            format!("{unit}{}{}", self.place(replica.storage), details.unwrap_or_default())
        });
        format!(" [{}]", texts.collect::<Vec<_>>().join(", "))
    }

    /// Where a block that is not complete is being written.
    pub(super) fn pipeline(&self, id: BlockId) -> (usize, String) {
        let places = self.cluster.pipeline(id);
        if !self.options.show_places() {
            return (places.len(), String::new());
        }
        let texts = places.iter().map(|(storage, unit)| {
            let replica = Replica {
                node: self.cluster.storage(*storage).node,
                storage: *storage,
                unit: *unit,
                standing: Standing::Live,
                stale: !self.cluster.storage(*storage).reported,
            };
            let details = self.options.replica_details.then(|| self.details(&replica));
            format!("{}{}", self.place(*storage), details.unwrap_or_default())
        });
        (places.len(), format!(" [{}]", texts.collect::<Vec<_>>().join(", ")))
    }

    fn place(&self, storage: StorageHandle) -> String {
        let storage = self.cluster.storage(storage);
        let node = self.cluster.node(storage.node);
        let mut text = if self.options.racks {
            format!("{}/{}", node.rack, node.address)
        } else {
            let kind = storage.storage_type.name();
            format!("DatanodeInfoWithStorage[{},{},{kind}]", node.address, storage.uuid)
        };
        if self.options.upgrade_domains {
            let domain = node.upgrade_domain.as_deref().unwrap_or("undefined");
            let _ = write!(text, "(ud={domain})");
        }
        text
    }

    fn details(&self, replica: &Replica) -> &'static str {
        let node = self.cluster.node(replica.node);
        let maintenance = self.options.maintenance;
        match (node.admin, replica.standing) {
            (AdminState::Decommissioned, _) => "(DECOMMISSIONED)",
            (AdminState::DecommissionInProgress, _) => "(DECOMMISSIONING)",
            (AdminState::EnteringMaintenance, _) if maintenance => "(ENTERING MAINTENANCE)",
            (AdminState::InMaintenance, _) if maintenance => "(IN MAINTENANCE)",
            (_, Standing::Corrupt(_)) => "(CORRUPT)",
            (_, Standing::Excess) => "(EXCESS)",
            _ if self.cluster.is_stale(node, self.now) => "(STALE_NODE)",
            _ if replica.stale => "(STALE_BLOCK_CONTENT)",
            _ => "(LIVE)",
        }
    }

    /// Source: Hadoop 3.5.0 `NamenodeFsck#printDatanodeReplicaStatus`.
    pub(super) fn status(&self, replica: &Replica, node: &DataNode) -> String {
        let maintenance = self.options.maintenance;
        let status = match (replica.standing, node.admin) {
            (Standing::Corrupt(reason), _) => {
                return format!("is CORRUPT\t ReasonCode: {reason}");
            }
            (_, AdminState::Decommissioned) => "is DECOMMISSIONED",
            (_, AdminState::DecommissionInProgress) => "is DECOMMISSIONING",
            (_, AdminState::EnteringMaintenance) if maintenance => "is ENTERING MAINTENANCE",
            (_, AdminState::InMaintenance) if maintenance => "is IN MAINTENANCE",
            _ if self.cluster.is_stale(node, self.now) => "is STALE",
            (Standing::Excess, _) => "is EXCESS",
            _ => "is HEALTHY",
        };
        status.to_string()
    }

    /// Source: Hadoop 3.5.0 `NamenodeFsck#blockIdCK`.
    pub(super) fn block_text(
        &self,
        name: &str,
        path: &str,
        id: BlockId,
        facts: &BlockFacts,
    ) -> String {
        let striped = facts.layout.is_striped();
        let mut replicas = self.cluster.replicas(id, facts);
        let counts = ReplicaCounts::of(striped, &replicas);
        let mut text = format!("Block Id: {name}\nBlock belongs to: {path}\n");
        let mut line = |what: &str, count: usize| {
            let _ = writeln!(text, "No. of {what} Replica: {count}");
        };
        line("Expected", facts.expected_units());
        line("live", counts.live);
        line("excess", counts.excess);
        line("stale", counts.stale);
        line("decommissioned", counts.decommissioned);
        line("decommissioning", counts.decommissioning);
        if self.options.maintenance {
            line("entering maintenance", counts.entering_maintenance);
            line("in maintenance", counts.in_maintenance);
        }
        line("corrupted", counts.corrupt);
        if striped {
            line("redundant", counts.redundant);
        }
        replicas.sort_by_key(|replica| replica.unit);
        for replica in replicas.iter().rev() {
            let node = self.cluster.node(replica.node);
            let (host, rack) = (&node.address.host, &node.rack);
            let status = self.status(replica, node);
            let _ = writeln!(text, "Block replica on datanode/rack: {host}{rack} {status}");
        }
        text
    }
}

/// One block for programs.
pub(super) fn finding(
    view: &View<'_>,
    lookup: &Lookup<'_>,
    (id, facts): (BlockId, &BlockFacts),
    path: &str,
) -> serde_json::Value {
    let replicas = view.cluster.replicas(id, facts);
    let verdict = view.verdict(lookup, (id, facts), &replicas);
    let unit = |unit: UnitIndex| facts.layout.is_striped().then_some(unit.0);
    let places: Vec<serde_json::Value> = replicas
        .iter()
        .map(|replica| {
            let node = view.cluster.node(replica.node);
            serde_json::json!({
                "unit": unit(replica.unit),
                "datanode": node.address.to_string(),
                "rack": node.rack,
                "status": view.status(replica, node).trim_start_matches("is ").replace('\t', ""),
            })
        })
        .collect();
    serde_json::json!({
        "path": path,
        "block": format!("blk_{}_{}", id.0, facts.gs.0),
        "len": facts.len,
        "complete": facts.state == BlockState::Complete,
        "corrupt": verdict.corrupt,
        "missing": verdict.is_missing() && !verdict.corrupt,
        "disagree": view.cluster.disagrees(id, facts),
        "expected": verdict.expected,
        "live": verdict.counts.live,
        "places": places,
    })
}
