//! Brings replicas and units to the storage types of their files' storage policies.
//!
//! Source: Hadoop 3.5.0 `Mover.Processor`.

use super::dispatch::{Dispatcher, Nodes};
use super::plan::{self, Kind, Piece, Place};
use super::{BalanceOptions, IDLE_ROUNDS, MoveEnd, MoveProgress};
use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert;
use cairn_wire::proto::hdfs::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// Moves that are planned before they are run.
const BATCH: usize = 1000;

/// Goes over all files again and again until nothing is on a wrong type.
pub(super) async fn rounds(
    fs: &FileSystem,
    paths: &[String],
    settle: Duration,
    progress: &mut MoveProgress,
    told: &dyn Fn(MoveProgress),
) -> Result<MoveEnd> {
    let policies = policies(fs).await?;
    let default_policy = fs.server_defaults().await?.storage_policy;
    let mut idle = 0;
    loop {
        let policies = &policies;
        let (planned, stuck) = (0, 0);
        let mut round = Round { fs, policies, default_policy, progress, told, planned, stuck };
        let before = round.progress.moved;
        for path in paths {
            round.walk(path).await?;
        }
        let (planned, stuck, moved) = (round.planned, round.stuck, progress.moved - before);
        if planned == 0 {
            return Ok(if stuck > 0 { MoveEnd::NoMoveBlock } else { MoveEnd::Done });
        }
        idle = if moved > 0 { 0 } else { idle + 1 };
        if idle == IDLE_ROUNDS {
            return Ok(MoveEnd::NoMoveProgress);
        }
        tokio::time::sleep(settle).await;
    }
}

/// The types that each policy wants, by its number.
async fn policies(fs: &FileSystem) -> Result<BTreeMap<u32, Vec<Kind>>> {
    let request = GetStoragePoliciesRequestProto {};
    let response: GetStoragePoliciesResponseProto =
        fs.inner.namenode.call("getStoragePolicies", &request).await?;
    let policies = response.policies.into_iter();
    Ok(policies.map(|policy| (policy.policy_id, policy.creation_policy.storage_types)).collect())
}

struct Round<'a> {
    fs: &'a FileSystem,
    policies: &'a BTreeMap<u32, Vec<Kind>>,
    default_policy: u32,
    progress: &'a mut MoveProgress,
    told: &'a dyn Fn(MoveProgress),
    planned: usize,
    stuck: usize,
}

impl Round<'_> {
    async fn walk(&mut self, path: &str) -> Result<()> {
        let anything = BalanceOptions {
            threshold: 0.0,
            by_pool: false,
            include: Vec::new(),
            exclude: Vec::new(),
            min_block_len: 0,
            settle: Duration::ZERO,
        };
        let mut nodes = self.fs.storages(&anything).await?;
        let mut left = vec![path.to_string()];
        let mut moves = Vec::new();
        while let Some(path) = left.pop() {
            // What was deleted meanwhile needs no move.
            let Some(status) = self.fs.file_info(&path).await? else {
                if self.planned == 0 && moves.is_empty() && left.is_empty() {
                    tracing::info!(path, "nothing is there");
                }
                continue;
            };
            if status.is_dir() {
                let children = self.fs.list(&path).collect().await?;
                left.extend(children.into_iter().map(|child| child.path));
                continue;
            }
            let wanted = match status.storage_policy {
                0 => self.default_policy,
                set => set,
            };
            let Some(policy) = self.policies.get(&wanted) else { continue };
            for piece in self.pieces(&path, &nodes).await? {
                let racks = nodes.racks.clone();
                let found = plan::resettle(&piece, policy, &mut nodes.shelves, &racks);
                self.stuck += found.stuck;
                moves.extend(found.moves);
            }
            if moves.len() >= BATCH {
                self.run(&nodes, std::mem::take(&mut moves)).await?;
            }
        }
        self.run(&nodes, moves).await
    }

    async fn run(&mut self, nodes: &Nodes, moves: Vec<plan::Move>) -> Result<()> {
        self.planned += moves.len();
        self.progress.left = moves.iter().map(|planned| planned.len).sum();
        (self.told)(*self.progress);
        Dispatcher::new(self.fs, nodes).run(moves, self.progress, self.told).await
    }

    /// The complete blocks of a file; one with a place on a node that is out of service waits.
    async fn pieces(&self, path: &str, nodes: &Nodes) -> Result<Vec<Piece>> {
        let request = GetBlockLocationsRequestProto {
            src: path.to_string(),
            offset: 0,
            length: i64::MAX as u64,
            ..Default::default()
        };
        let response: GetBlockLocationsResponseProto =
            self.fs.inner.namenode.call("getBlockLocations", &request).await?;
        let missing = || ClientError::NotFound { path: path.to_string() };
        let file = convert::located_file(response.locations.ok_or_else(missing)?)?;
        let policy = file.policy;
        let stripes = policy.map(|policy| (policy.schema.data_units(), u64::from(policy.cell_len)));
        let mut pieces = Vec::new();
        for located in file.blocks {
            let last = file
                .last_block
                .as_ref()
                .is_some_and(|l| l.block.block.id == located.block.block.id);
            if file.under_construction && last {
                continue;
            }
            let places = located.block.locations.iter().enumerate().map(|(index, location)| {
                let is_it = |info: &DatanodeInfoProto| info.id.datanode_uuid == location.addr.uuid;
                let node = nodes.infos.iter().position(is_it)?;
                let kind = located.storage_types.get(index).copied().unwrap_or(1);
                Some(Place { node, kind, unit: location.unit })
            });
            let Some(places) = places.collect() else { continue };
            let block = located.block.block;
            pieces.push(Piece { id: block.id, gs: block.stamp, len: block.len, stripes, places });
        }
        Ok(pieces)
    }
}
