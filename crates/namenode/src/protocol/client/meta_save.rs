//! `metaSave`: what waits to be mended or deleted, and the DataNodes, in a file beside the log.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem#metaSave`, `BlockManager#metaSave`.

use cairn_master::Lookup;
use cairn_namespace::query;
use cairn_namespace::snapshot::paths::path_or_kept;
use cairn_net::rpc_server::Call;
use cairn_redundancy::queue::Priority;
use cairn_redundancy::{
    AdminState, BlockFacts, BlockLookup, BlockRef, Cluster, DataNode, Now, Replica, ReplicaCounts,
    Standing, StorageState,
};
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;
use std::fmt::Write as _;

use crate::java_text::java_date;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Longest name that is taken, bytes.
const MAX_NAME: usize = 200;
/// The rack that a DataNode's line leaves out. Source: Hadoop 3.5.0 `NetworkTopology.DEFAULT_RACK`.
const DEFAULT_RACK: &str = "/default-rack";

/// Writes what is known of the cluster into a file of that name, beside the log.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#metaSave`.
pub async fn meta_save(node: &NameNode, call: &Call) -> Answer {
    let request: pb::MetaSaveRequestProto = call.decode()?;
    node.check_superuser(call).await?;
    let name = request.filename;
    // The name comes from a client: it must not lead out of the folder, nor to the log or the store.
    let plain = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !plain {
        let message = format!("{name:?} is no plain file name for metaSave");
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let path = node.config.name_dir.join(format!("metasave-{name}"));
    let text = text(node)?;
    let write = tokio::task::spawn_blocking(move || std::fs::write(path, text)).await;
    match write {
        Ok(Ok(())) => answer(&pb::MetaSaveResponseProto {}),
        Ok(Err(error)) => Err(Refusal::io(format!("metaSave: {error}"))),
        Err(_) => Err(Refusal::io("metaSave was interrupted")),
    }
}

/// What is written: all of one moment, as in Hadoop.
fn text(node: &NameNode) -> Result<String, Refusal> {
    let now = node.now();
    node.see(|cluster, lookup| {
        let totals = query::totals(lookup.store)?;
        let (inodes, blocks) = (totals.inodes, totals.blocks);
        let mut text = format!(
            "{inodes} files and directories, {blocks} blocks = {} total filesystem objects\n",
            inodes + blocks
        );
        let dump = Dump { cluster, lookup, now };
        dump.nodes_count(&mut text);
        dump.queues(&mut text)?;
        dump.under_way(&mut text);
        dump.deletions(&mut text);
        dump.bad_replicas(&mut text);
        dump.nodes(&mut text);
        Ok(text)
    })
}

struct Dump<'a> {
    cluster: &'a Cluster,
    lookup: &'a Lookup<'a>,
    now: Now,
}

impl Dump<'_> {
    fn nodes_count(&self, text: &mut String) {
        let live = self.cluster.live_count();
        let dead = self.cluster.nodes().filter(|node| !node.alive).count();
        let _ = writeln!(text, "Live Datanodes: {live}\nDead Datanodes: {dead}");
    }

    fn queues(&self, text: &mut String) -> Result<(), Refusal> {
        const LEVELS: [Priority; 4] =
            [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::BadlyDistributed];
        let queues = self.cluster.queues();
        let lost = queues.level(Priority::Corrupt).count();
        let _ =
            writeln!(text, "Metasave: Blocks waiting for reconstruction: {}", queues.len() - lost);
        for id in LEVELS.into_iter().flat_map(|level| queues.level(level)) {
            self.block(text, id)?;
        }
        let _ = writeln!(text, "Metasave: Blocks currently missing: {lost}");
        for id in queues.level(Priority::Corrupt) {
            self.block(text, id)?;
        }
        let doubtful: Vec<BlockId> = self.cluster.blocks_with_doubtful_records().collect();
        if !doubtful.is_empty() {
            let _ =
                writeln!(text, "Metasave: Blocks with doubtful CRC records: {}", doubtful.len());
        }
        for id in doubtful {
            self.block(text, id)?;
        }
        let disagreeing: Vec<BlockId> = self.disagreeing().collect();
        if !disagreeing.is_empty() {
            let count = disagreeing.len();
            let _ = writeln!(text, "Metasave: Blocks whose replicas or units disagree: {count}");
        }
        for id in disagreeing {
            self.block(text, id)?;
        }
        text.push_str("Mis-replicated blocks that have been postponed:\n");
        for id in self.cluster.postponed_blocks() {
            self.block(text, id)?;
        }
        Ok(())
    }

    fn disagreeing(&self) -> impl Iterator<Item = BlockId> + '_ {
        let found = self.cluster.blocks_that_disagree();
        found.map(|(id, _)| id).filter(|id| {
            self.lookup.block(*id).is_some_and(|facts| self.cluster.disagrees(*id, &facts))
        })
    }

    /// Source: Hadoop 3.5.0 `BlockManager#dumpBlockMeta`.
    fn block(&self, text: &mut String, id: BlockId) -> Result<(), Refusal> {
        let Some((facts, replicas)) = self.find(id) else {
            let _ = writeln!(text, "Block {id} is Null");
            return Ok(());
        };
        let file = match query::get_block(self.lookup.store, id)? {
            Some(info) => path_or_kept(self.lookup.store, info.block.file)?,
            None => None,
        };
        let path = file.unwrap_or_else(|| "[orphaned]".to_string());
        let counts = ReplicaCounts::of(facts.layout.is_striped(), &replicas);
        let leaving = counts.decommissioned + counts.decommissioning;
        let missing = if counts.live + leaving > 0 { "" } else { " MISSING" };
        let _ = write!(
            text,
            "{path}: {id}_{}{missing} (replicas: live: {} decommissioning and decommissioned: \
             {leaving} corrupt: {} in excess: {} maintenance mode: {}) ",
            facts.gs.0,
            counts.live,
            counts.corrupt,
            counts.excess,
            counts.entering_maintenance + counts.in_maintenance,
        );
        for replica in &replicas {
            let node = self.cluster.node(replica.node);
            let state = match replica.standing {
                Standing::Corrupt(_) => "(corrupt)",
                Standing::Decommissioned | Standing::Decommissioning => "(decommissioned)",
                Standing::EnteringMaintenance | Standing::InMaintenance => "(maintenance)",
                _ => "",
            };
            let stale = if replica.stale { " (block deletions maybe out of date)" } else { "" };
            let _ = write!(text, " {}{state}{stale} : ", node.address);
        }
        text.push('\n');
        Ok(())
    }

    fn find(&self, id: BlockId) -> Option<(BlockFacts, Vec<Replica>)> {
        let facts = self.lookup.block(id)?;
        Some((facts, self.cluster.replicas(id, &facts)))
    }

    /// Source: Hadoop 3.5.0 `PendingReconstructionBlocks#metaSave`.
    fn under_way(&self, text: &mut String) {
        let work: Vec<_> = self.cluster.work_under_way().collect();
        let _ = writeln!(text, "Metasave: Blocks being reconstructed: {}", work.len());
        for (id, since_ms, count) in work {
            let ago = self.now.mono_ms.saturating_sub(since_ms);
            let second = self.now.wall_ms.saturating_sub(ago) / 1000 % 86_400;
            let gs = self.lookup.block(id).map_or(0, |facts| facts.gs.0);
            let _ = writeln!(
                text,
                "{id}_{gs} StartTime: {:02}:{:02}:{:02} NumReconstructInProgress: {count}",
                second / 3600,
                second / 60 % 60,
                second % 60,
            );
        }
    }

    /// Source: Hadoop 3.5.0 `InvalidateBlocks#dump`.
    fn deletions(&self, text: &mut String) {
        let waiting = self.cluster.waiting_deletions();
        let lists: Vec<(&DataNode, Vec<&BlockRef>)> = [false, true]
            .into_iter()
            .flat_map(|striped| waiting.iter().map(move |(node, blocks)| (striped, node, blocks)))
            .map(|(striped, node, blocks)| {
                let of_kind = blocks.iter().filter(|block| block.id.is_striped() == striped);
                (self.cluster.node(*node), of_kind.collect::<Vec<_>>())
            })
            .filter(|(_, blocks)| !blocks.is_empty())
            .collect();
        let count: usize = lists.iter().map(|(_, blocks)| blocks.len()).sum();
        let nodes = lists.len();
        let _ = writeln!(text, "Metasave: Blocks {count} waiting deletion from {nodes} datanodes.");
        for (node, blocks) in lists {
            let names = blocks.iter().map(|block| format!("{}_{}", block.id, block.gs.0));
            let _ = writeln!(text, "{}\n{}", node.address, names.collect::<Vec<_>>().join(","));
        }
    }

    fn bad_replicas(&self, text: &mut String) {
        text.push_str("Corrupt Blocks:\n");
        for id in self.cluster.blocks_with_bad_replicas() {
            let Some((facts, replicas)) = self.find(id) else { continue };
            for replica in &replicas {
                let Standing::Corrupt(reason) = replica.standing else { continue };
                let storage = self.cluster.storage(replica.storage);
                let state = match storage.state {
                    StorageState::Normal => "NORMAL",
                    StorageState::ReadOnlyShared => "READ_ONLY_SHARED",
                    StorageState::Failed => "FAILED",
                };
                let _ = writeln!(
                    text,
                    "Block={id}_{}\tSize={}\tNode={}\tStorageID={}\tStorageState={state}\t\
                     TotalReplicas={}\tReason={reason}",
                    facts.gs.0,
                    facts.len,
                    self.cluster.node(replica.node).address,
                    storage.uuid,
                    replicas.len(),
                );
            }
        }
    }

    /// Source: Hadoop 3.5.0 `DatanodeManager#datanodeDump`.
    fn nodes(&self, text: &mut String) {
        let mut nodes: Vec<&DataNode> = self.cluster.nodes().collect();
        nodes.sort_by(|a, b| a.uuid.cmp(&b.uuid));
        let _ = writeln!(text, "Metasave: Number of datanodes: {}", nodes.len());
        for node in nodes {
            self.node(text, node);
        }
    }

    /// Source: Hadoop 3.5.0 `DatanodeDescriptor#dumpDatanode`, `DatanodeInfo#dumpDatanode`.
    fn node(&self, text: &mut String, node: &DataNode) {
        let rack = if node.rack == DEFAULT_RACK { "" } else { node.rack.as_str() };
        let admin = match node.admin {
            AdminState::InService => "IN",
            AdminState::DecommissionInProgress => "DP",
            AdminState::Decommissioned => "DD",
            AdminState::EnteringMaintenance => "EM",
            AdminState::InMaintenance => "IM",
        };
        let domain = node.upgrade_domain.as_deref().unwrap_or_default();
        let _ = write!(text, "{}", node.address);
        for word in [rack, domain, admin].into_iter().filter(|word| !word.is_empty()) {
            let _ = write!(text, " {word}");
        }
        let usage = &node.usage;
        let size = |bytes: u64| format!("{bytes}({})", byte_desc(bytes));
        let cache_left = node.cache_capacity.saturating_sub(node.cache_used);
        let _ = write!(
            text,
            " {} {} {} {} {} {} {} {} {}",
            size(usage.capacity),
            size(usage.dfs_used),
            percent(usage.dfs_used, usage.capacity),
            size(usage.remaining),
            size(node.cache_capacity),
            size(node.cache_used),
            percent(node.cache_used, node.cache_capacity),
            size(cache_left),
            java_date(node.last_update_wall_ms),
        );
        let waiting = self.cluster.waiting_work(node.handle);
        for (count, what) in [
            (waiting.replicas, "blocks to be replicated"),
            (waiting.units, "ec blocks to be replicated"),
            (waiting.groups, "blocks to be erasure coded"),
            (waiting.recoveries, "blocks to be recovered"),
        ] {
            if count > 0 {
                let _ = write!(text, " {count} {what};");
            }
        }
        text.push('\n');
    }
}

/// Bytes with a unit. Source: Hadoop 3.5.0 `StringUtils#byteDesc`.
fn byte_desc(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    let unit = (1..=6).rev().find(|power| bytes >= 1 << (10 * power));
    let Some(power) = unit else { return format!("{bytes} B") };
    let scaled = |power: u32| bytes as f64 / (1_u64 << (10 * power)) as f64;
    if bytes.is_multiple_of(1 << (10 * power)) {
        return format!("{} {}", bytes >> (10 * power), UNITS[power as usize - 1]);
    }
    let text = format!("{:.2}", scaled(power));
    match text.starts_with("1024") && power < 6 {
        true => format!("{:.2} {}", scaled(power + 1), UNITS[power as usize]),
        false => format!("{text} {}", UNITS[power as usize - 1]),
    }
}

/// Source: Hadoop 3.5.0 `DFSUtilClient#getPercentUsed`, where nothing is all of nothing.
fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 100.0 } else { part as f32 * 100.0 / whole as f32 };
    format!("{share:.2}%")
}

#[cfg(test)]
mod tests {
    use super::{byte_desc, percent};

    #[test]
    fn sizes_are_hadoops() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.50 KB"),
            ((1 << 20) - 1, "1.00 MB"),
            (5 << 30, "5 GB"),
            (u64::MAX, "16.00 EB"),
        ] {
            assert_eq!(byte_desc(bytes), text);
        }
        assert_eq!((percent(1, 3).as_str(), percent(0, 0).as_str()), ("33.33%", "100.00%"));
    }
}
