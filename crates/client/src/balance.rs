//! Moving replicas and units between DataNodes: the balancer and the mover.
//!
//! Both ask the NameNode, plan (`balance/plan.rs`, `balance/mover.rs`), have DataNodes move, and begin
//! again until nothing is left to do. Only one of each kind runs on a file system: it holds an open file.
//! Source: Hadoop 3.5.0 `Balancer`, `Mover`, `Dispatcher`, `NameNodeConnector`.

mod dispatch;
mod mark;
mod mover;
mod plan;
mod progress;

pub use progress::{MoveEnd, MoveProgress};

use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::namenode::NameNode;
use cairn_security::block_keys::BlockKeys;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_wire::proto::{hdfs::*, namenode as nn};
use dispatch::{Dispatcher, Nodes, now_ms};
use mark::Mark;
use plan::{Piece, Place, RAM_DISK, Shelf};
use progress::IDLE_ROUNDS;
use std::collections::BTreeSet;
use std::time::Duration;

const NAMENODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";
/// The file that the one running balancer holds open.
const BALANCER_ID: &str = "/system/balancer.id";
/// The same for the mover.
const MOVER_ID: &str = "/system/mover.id";
/// Most bytes to ask blocks for at once: `dfs.balancer.getBlocks.size`.
const BLOCKS_AT_ONCE: u64 = 2 << 30;
/// What to balance, and when it is balanced.
#[derive(Clone, Debug)]
pub struct BalanceOptions {
    /// Percentage points that a DataNode may be off the mean: `-threshold`.
    pub threshold: f64,
    /// Count only what belongs to the file system's block pool: `-policy blockpool`.
    pub by_pool: bool,
    /// DataNodes to balance, by host, address or `address:port`; empty for all.
    pub include: Vec<String>,
    /// DataNodes to leave out.
    pub exclude: Vec<String>,
    /// Blocks and groups shorter than this stay: `dfs.balancer.getBlocks.min-block-size`.
    pub min_block_len: u64,
    /// Time that heartbeats and deletions need after a round.
    pub settle: Duration,
    /// Begin also while a rolling upgrade lasts: `-runDuringUpgrade`. No replica is deleted then.
    pub run_during_upgrade: bool,
}

impl FileSystem {
    /// Moves replicas and units until every DataNode's use is near the mean, or `stop` completes. Needs a superuser.
    ///
    /// Source: Hadoop 3.5.0 `Balancer#runOneIteration`.
    pub async fn balance(
        &self,
        options: &BalanceOptions,
        stop: impl Future<Output = ()>,
        told: &dyn Fn(MoveProgress),
    ) -> Result<(MoveEnd, MoveProgress)> {
        let mut progress = MoveProgress::default();
        let Some(mark) = Mark::take(self, BALANCER_ID).await? else {
            return Ok((MoveEnd::AlreadyRunning, progress));
        };
        let end = tokio::select! {
            end = self.balance_rounds(options, &mut progress, told) => end,
            () = stop => Ok(MoveEnd::Interrupted),
        };
        mark.give_up(self).await;
        Ok((end?, progress))
    }

    async fn balance_rounds(
        &self,
        options: &BalanceOptions,
        progress: &mut MoveProgress,
        told: &dyn Fn(MoveProgress),
    ) -> Result<MoveEnd> {
        let namenode = self.session.namenode.speaking(self.config(), NAMENODE_PROTOCOL);
        let (mut idle, mut planned) = (0, 0);
        loop {
            if !options.run_during_upgrade && is_upgrading(&namenode).await? {
                return Ok(MoveEnd::UnfinalizedUpgrade);
            }
            let nodes = self.storages(&|id| is_wanted(options, id), options.by_pool).await?;
            if plan::is_balanced(&nodes.shelves, options.threshold) {
                return Ok(MoveEnd::Done);
            }
            let flows = plan::flows(&nodes.shelves, options.threshold);
            if flows.is_empty() {
                return Ok(MoveEnd::NoMoveBlock);
            }
            progress.left = flows.iter().map(|flow| flow.bytes).sum();
            told(*progress);
            let (mut taken, mut moves) = (BTreeSet::new(), Vec::new());
            let sources: BTreeSet<usize> = flows.iter().map(|flow| flow.from).collect();
            for from in sources {
                let pieces = pieces(&namenode, &nodes, from, options.min_block_len).await?;
                for flow in flows.iter().filter(|flow| flow.from == from) {
                    let (shelves, racks) = (&nodes.shelves, &nodes.racks);
                    moves.extend(plan::moves_for(*flow, shelves, &pieces, racks, &mut taken));
                }
            }
            planned += moves.len();
            let before = progress.moved;
            Dispatcher::new(self, &nodes).run(moves, progress, told).await?;
            if progress.moved > before {
                (idle, planned) = (0, 0);
            } else {
                // The NameNode names some of the blocks, each time others.
                idle += 1;
            }
            if idle == IDLE_ROUNDS {
                let end = if planned == 0 { MoveEnd::NoMoveBlock } else { MoveEnd::NoMoveProgress };
                return Ok(end);
            }
            tokio::time::sleep(options.settle).await;
        }
    }

    /// Brings the replicas and units of the files under `paths` to the storage types that their storage
    /// policies want, until `stop` completes. Needs a superuser.
    ///
    /// Source: Hadoop 3.5.0 `Mover#run`.
    pub async fn settle_storage_types(
        &self,
        paths: &[String],
        settle: Duration,
        stop: impl Future<Output = ()>,
        told: &dyn Fn(MoveProgress),
    ) -> Result<(MoveEnd, MoveProgress)> {
        let mut progress = MoveProgress::default();
        let Some(mark) = Mark::take(self, MOVER_ID).await? else {
            return Ok((MoveEnd::AlreadyRunning, progress));
        };
        let end = tokio::select! {
            end = mover::rounds(self, paths, settle, &mut progress, told) => end,
            () = stop => Ok(MoveEnd::Interrupted),
        };
        mark.give_up(self).await;
        Ok((end?, progress))
    }

    /// What proves to DataNodes that they are to move blocks, where anything does.
    async fn block_keys(&self) -> Result<Option<BlockKeys>> {
        let namenode = self.session.namenode.speaking(self.config(), NAMENODE_PROTOCOL);
        let answer: nn::GetBlockKeysResponseProto =
            namenode.call("getBlockKeys", &nn::GetBlockKeysRequestProto {}).await?;
        let keys = BlockKeys::imported(None, &answer.keys.unwrap_or_default(), now_ms());
        keys.map_err(|error| ClientError::Protocol(error.to_string()))
    }

    /// The block pool, which names the file system to DataNodes.
    async fn block_pool(&self) -> Result<String> {
        let namenode = self.session.namenode.speaking(self.config(), NAMENODE_PROTOCOL);
        let response: VersionResponseProto =
            namenode.call("versionRequest", &VersionRequestProto {}).await?;
        Ok(response.info.block_pool_id)
    }

    /// All DataNodes, and of those that are live, in service and wanted what their storages hold. Memory is left out.
    async fn storages(
        &self,
        is_wanted: &dyn Fn(&DatanodeIDProto) -> bool,
        by_pool: bool,
    ) -> Result<Nodes> {
        let mut nodes = Nodes::default();
        for report in self.storage_reports(DatanodeReportTypeProto::Live).await? {
            let info = report.datanode_info;
            let in_service = info.admin_state.unwrap_or(0) == 0;
            if !in_service || !is_wanted(&info.id) {
                nodes.know(info);
                continue;
            }
            let node = nodes.know(info);
            for storage in report.storage_reports.into_iter().filter(|s| !s.failed.unwrap_or(false))
            {
                let kind =
                    storage.storage.as_ref().map_or(1, |storage| storage.storage_type() as i32);
                if kind == RAM_DISK {
                    continue;
                }
                let used = match by_pool {
                    true => storage.block_pool_used.unwrap_or(0),
                    false => storage.dfs_used.unwrap_or(0),
                };
                nodes.add(Shelf {
                    node,
                    kind,
                    capacity: storage.capacity.unwrap_or(0),
                    used,
                    remaining: storage.remaining.unwrap_or(0),
                });
            }
        }
        // Those in maintenance still count as places of blocks.
        for report in self.storage_reports(DatanodeReportTypeProto::Dead).await? {
            nodes.know(report.datanode_info);
        }
        Ok(nodes)
    }

    async fn storage_reports(
        &self,
        kind: DatanodeReportTypeProto,
    ) -> Result<Vec<DatanodeStorageReportProto>> {
        let request = GetDatanodeStorageReportRequestProto { r#type: kind as i32 };
        let response: GetDatanodeStorageReportResponseProto =
            self.session.namenode.call("getDatanodeStorageReport", &request).await?;
        Ok(response.datanode_storage_reports)
    }
}

/// Whether a rolling upgrade keeps deletions back: what is moved would only fill more room.
///
/// Source: Hadoop 3.5.0 `NameNodeConnector#isUpgrading`.
async fn is_upgrading(namenode: &NameNode) -> Result<bool> {
    let request = nn::IsRollingUpgradeRequestProto {};
    let response: nn::IsRollingUpgradeResponseProto =
        namenode.call("isRollingUpgrade", &request).await?;
    Ok(response.is_rolling_upgrade)
}

fn is_wanted(options: &BalanceOptions, id: &DatanodeIDProto) -> bool {
    let names =
        [id.host_name.clone(), id.ip_addr.clone(), format!("{}:{}", id.ip_addr, id.xfer_port)];
    let listed = |list: &[String]| list.iter().any(|name| names.contains(name));
    (options.include.is_empty() || listed(&options.include)) && !listed(&options.exclude)
}

/// Blocks and groups of which a shelf has something.
async fn pieces(
    namenode: &NameNode,
    nodes: &Nodes,
    from: usize,
    min_block_len: u64,
) -> Result<Vec<Piece>> {
    let shelf = &nodes.shelves[from];
    let request = nn::GetBlocksRequestProto {
        datanode: nodes.infos[shelf.node].id.clone(),
        size: BLOCKS_AT_ONCE,
        min_block_size: Some(min_block_len),
        time_interval: None,
        storage_type: Some(shelf.kind),
    };
    let response: nn::GetBlocksResponseProto = namenode.call("getBlocks", &request).await?;
    Ok(response.blocks.blocks.into_iter().filter_map(|block| piece(nodes, block)).collect())
}

/// A block as it was told. One with a place on a node that came just now stays: what its move would do to
/// the spread over racks cannot be seen.
fn piece(nodes: &Nodes, block: BlockWithLocationsProto) -> Option<Piece> {
    let units = block.indices.unwrap_or_else(|| vec![0; block.datanode_uuids.len()]);
    let stripes = block.data_block_num.zip(block.cell_size);
    let mut places = Vec::new();
    for (index, uuid) in block.datanode_uuids.iter().enumerate() {
        let node = nodes.infos.iter().position(|info| info.id.datanode_uuid == *uuid)?;
        let kind = block.storage_types.get(index).copied().unwrap_or(1);
        places.push(Place { node, kind, unit: UnitIndex(*units.get(index)?) });
    }
    Some(Piece {
        id: BlockId(block.block.block_id as i64),
        gs: GenerationStamp(block.block.gen_stamp),
        len: block.block.num_bytes(),
        stripes: stripes
            .filter(|(k, cell)| (1..=32).contains(k) && *cell > 0)
            .map(|(k, cell)| (k as usize, u64::from(cell))),
        places,
    })
}
