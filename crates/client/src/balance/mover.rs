//! Brings replicas and units to the storage types of their files' storage policies.
//!
//! Source: Hadoop 3.5.0 `Mover.Processor`.

use super::dispatch::{Dispatcher, Nodes};
use super::plan::{self, Kind, Piece, Place};
use super::progress::{IDLE_ROUNDS, MoveEnd, MoveProgress};
use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert::{self, Located};
use crate::types::FileStatus;
use cairn_stripe::BlockId;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
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
        let before = progress.moved;
        let mut round = Round {
            fs,
            policies: &policies,
            default_policy,
            progress,
            told,
            nodes: fs.storages(&|_| true, false).await?,
            seen: BTreeSet::new(),
            moves: Vec::new(),
            planned: 0,
            stuck: 0,
        };
        for path in paths {
            round.walk(path.clone()).await?;
        }
        for path in snapshots(fs, paths).await? {
            round.walk(path).await?;
        }
        round.run().await?;
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
        fs.session.namenode.call("getStoragePolicies", &request).await?;
    let policies = response.policies.into_iter();
    Ok(policies.map(|policy| (policy.policy_id, policy.creation_policy.storage_types)).collect())
}

/// Where the snapshots below `paths` are: what was deleted since has its blocks in them alone.
async fn snapshots(fs: &FileSystem, paths: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for directory in fs.snapshottable_directories().await? {
        let dir = directory.status.path;
        let is_below = |path: &String| {
            let rest = dir.strip_prefix(path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if paths.iter().any(is_below) {
            found.push(format!("{}/.snapshot", dir.trim_end_matches('/')));
        }
    }
    Ok(found)
}

struct Round<'a> {
    fs: &'a FileSystem,
    policies: &'a BTreeMap<u32, Vec<Kind>>,
    default_policy: u32,
    progress: &'a mut MoveProgress,
    told: &'a dyn Fn(MoveProgress),
    nodes: Nodes,
    /// Blocks with something on a wrong type: a snapshot may have them as well.
    seen: BTreeSet<BlockId>,
    /// Planned and not yet run.
    moves: Vec<plan::Move>,
    planned: usize,
    stuck: usize,
}

impl Round<'_> {
    /// Plans and runs what all files at and below a path need. What is deleted meanwhile needs nothing.
    async fn walk(&mut self, path: String) -> Result<()> {
        let mut left = vec![path];
        while let Some(path) = left.pop() {
            let mut start_after = Vec::new();
            loop {
                let request = GetListingRequestProto {
                    src: path.clone(),
                    start_after,
                    // Unlike a question for its blocks this does not count as reading a file.
                    need_location: true,
                    read_up_to: None,
                };
                let page: Result<GetListingResponseProto> =
                    self.fs.session.namenode.call("getListing", &request).await;
                let page = match page {
                    Err(error) if is_gone(&error) => break,
                    page => page?.dir_list,
                };
                let Some(page) = page else { break };
                let last = page.partial_listing.last().map(|status| status.path.clone());
                for mut proto in page.partial_listing {
                    let blocks = proto.locations.take();
                    let status = convert::status(proto, &path)?;
                    match blocks {
                        Some(blocks) => self.plan(&status, blocks)?,
                        None if status.is_dir() => left.push(status.path),
                        None => {}
                    }
                }
                if self.moves.len() >= BATCH {
                    self.run().await?;
                }
                match last {
                    Some(last) if page.remaining_entries > 0 => start_after = last,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Plans the moves of a file's complete blocks.
    fn plan(&mut self, status: &FileStatus, blocks: LocatedBlocksProto) -> Result<()> {
        let wanted = match status.storage_policy {
            0 => self.default_policy,
            set => set,
        };
        let Some(policy) = self.policies.get(&wanted) else { return Ok(()) };
        let file = convert::located_file(blocks)?;
        let schema = file.policy.as_ref();
        let stripes = schema.map(|policy| (policy.schema.data_units(), u64::from(policy.cell_len)));
        let open = file.last_block.as_ref().filter(|_| file.under_construction);
        let open = open.map(|last| last.block.block.id);
        for located in &file.blocks {
            let id = located.block.block.id;
            if open == Some(id) || self.seen.contains(&id) {
                continue;
            }
            let Some(piece) = self.piece(located, stripes) else {
                self.stuck += 1;
                continue;
            };
            let found = plan::resettle(&piece, policy, &mut self.nodes.shelves, &self.nodes.racks);
            if found.stuck > 0 || !found.moves.is_empty() {
                self.seen.insert(id);
            }
            self.stuck += found.stuck;
            self.moves.extend(found.moves);
        }
        Ok(())
    }

    /// A block; none with a place on a node that came just now.
    fn piece(&self, located: &Located, stripes: Option<(usize, u64)>) -> Option<Piece> {
        let places = located.block.locations.iter().enumerate().map(|(index, location)| {
            let is_it = |info: &DatanodeInfoProto| info.id.datanode_uuid == location.addr.uuid;
            let node = self.nodes.infos.iter().position(is_it)?;
            let kind = located.storage_types.get(index).copied().unwrap_or(1);
            Some(Place { node, kind, unit: location.unit })
        });
        let block = &located.block.block;
        let places = places.collect::<Option<_>>()?;
        Some(Piece { id: block.id, gs: block.stamp, len: block.len, stripes, places })
    }

    /// Runs what is planned.
    async fn run(&mut self) -> Result<()> {
        let moves = std::mem::take(&mut self.moves);
        self.planned += moves.len();
        self.progress.left = moves.iter().map(|planned| planned.len).sum();
        (self.told)(*self.progress);
        Dispatcher::new(self.fs, &self.nodes).run(moves, self.progress, self.told).await
    }
}

/// Whether what was asked for is not there any more.
fn is_gone(error: &ClientError) -> bool {
    let is_snapshot = |class: &str| class == class::SNAPSHOT;
    error.kind() == ErrorKind::NotFound
        || matches!(error, ClientError::Remote { class, .. } if is_snapshot(class))
}
