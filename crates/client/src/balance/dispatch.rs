//! Has DataNodes move what was planned, many at once but few at each.
//!
//! Source: Hadoop 3.5.0 `Dispatcher.PendingMove`.

use super::plan::{Move, Shelf};
use super::progress::MoveProgress;
use crate::datanode::{self, failure};
use crate::error::{ClientError, Result};
use crate::fs::FileSystem;
use crate::protocol::convert;
use crate::types::Block;
use cairn_security::block_keys::BlockKeys;
use cairn_security::block_token::{AccessMode, BlockTokenId};
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Moves at each DataNode at once, as source and as target; DataNodes take 100 by default.
const MOVES_OF_A_NODE: usize = 16;

/// The DataNodes of a round; only those with shelves take part in it.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub infos: Vec<DatanodeInfoProto>,
    pub racks: Vec<String>,
    pub shelves: Vec<Shelf>,
}

impl Nodes {
    /// Adds a node, and returns its index.
    pub(super) fn know(&mut self, info: DatanodeInfoProto) -> usize {
        self.racks.push(info.location.clone().unwrap_or_default());
        self.infos.push(info);
        self.infos.len() - 1
    }

    /// Adds a storage to those of its type on its node.
    pub(super) fn add(&mut self, storage: Shelf) {
        let same = |shelf: &&mut Shelf| (shelf.node, shelf.kind) == (storage.node, storage.kind);
        match self.shelves.iter_mut().find(same) {
            Some(shelf) => {
                shelf.capacity = shelf.capacity.saturating_add(storage.capacity);
                shelf.used = shelf.used.saturating_add(storage.used);
                shelf.remaining = shelf.remaining.saturating_add(storage.remaining);
            }
            None => self.shelves.push(storage),
        }
    }
}

/// Runs the moves of one round.
pub(super) struct Dispatcher<'a> {
    fs: &'a FileSystem,
    nodes: &'a Nodes,
    slots: Vec<Arc<Semaphore>>,
}

impl<'a> Dispatcher<'a> {
    pub(super) fn new(fs: &'a FileSystem, nodes: &'a Nodes) -> Dispatcher<'a> {
        let slot = || Arc::new(Semaphore::new(MOVES_OF_A_NODE));
        let slots = nodes.infos.iter().map(|_| slot()).collect();
        Dispatcher { fs, nodes, slots }
    }

    /// Runs all moves and counts what became of them.
    pub(super) async fn run(
        &self,
        moves: Vec<Move>,
        progress: &mut MoveProgress,
        told: &dyn Fn(MoveProgress),
    ) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        let identity = self.fs.block_pool().await?;
        let keys = self.fs.block_keys().await?.map(Arc::new);
        let mut running = JoinSet::new();
        for planned in moves {
            let block = Block {
                pool: identity.clone(),
                id: planned.id,
                stamp: planned.gs,
                len: planned.len,
            };
            let from = self.nodes.infos[planned.from].clone();
            let to = self.nodes.infos[planned.to].clone();
            let slots = (self.slots[planned.from].clone(), self.slots[planned.to].clone());
            let (fs, keys) = (self.fs.clone(), keys.clone());
            running.spawn(async move {
                // Always in the order of the slots' addresses, so that two moves never wait for each other.
                let (first, second) = match Arc::as_ptr(&slots.0) <= Arc::as_ptr(&slots.1) {
                    true => slots,
                    false => (slots.1, slots.0),
                };
                let _first = first.acquire().await;
                let _second =
                    if Arc::ptr_eq(&first, &second) { None } else { Some(second.acquire().await) };
                let token = token(keys.as_deref(), &block, planned.kind);
                (planned.len, replace(&fs, &block, token, from, &to, planned.kind).await)
            });
        }
        while let Some(done) = running.join_next().await {
            match done {
                Ok((bytes, Ok(()))) => {
                    progress.moved += 1;
                    progress.bytes += bytes;
                    progress.left = progress.left.saturating_sub(bytes);
                }
                Ok((_, Err(error))) => {
                    tracing::info!(%error, "a move failed");
                    progress.failed += 1;
                }
                Err(error) => {
                    return Err(ClientError::Protocol(format!("a move broke off: {error}")));
                }
            }
            told(*progress);
        }
        Ok(())
    }
}

/// A token for a move: what fetches a replica shows it to the DataNode that has it.
///
/// Source: Hadoop 3.5.0 `KeyManager#getAccessToken`.
fn token(keys: Option<&BlockKeys>, block: &Block, kind: i32) -> convert::Token {
    let Some(keys) = keys else { return convert::no_token() };
    let id = BlockTokenId {
        pool: Some(block.pool.clone()),
        block: block.id.0,
        modes: [AccessMode::Replace, AccessMode::Copy].into_iter().collect(),
        storage_types: vec![kind],
        ..BlockTokenId::default()
    };
    keys.issue(id, now_ms())
}

/// The time by which DataNodes see whether tokens have ended.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Has `to` fetch a replica from `from`, and the NameNode delete it there.
async fn replace(
    fs: &FileSystem,
    block: &Block,
    token: convert::Token,
    from: DatanodeInfoProto,
    to: &DatanodeInfoProto,
    kind: i32,
) -> Result<()> {
    let addr = convert::addr(&to.id);
    let request = OpReplaceBlockProto {
        header: BaseHeaderProto {
            block: convert::block_proto(block),
            token: Some(token.clone()),
            trace_info: cairn_net::transfer_stream::trace_info(),
        },
        del_hint: from.id.datanode_uuid.clone(),
        source: from,
        storage_type: Some(kind),
        storage_id: None,
    };
    let mut stream = datanode::connect(fs.config(), &addr, 2, &token).await?;
    let sent = stream.writer.send_op(Op::ReplaceBlock, &request).await;
    sent.map_err(|error| failure(&addr, error))?;
    loop {
        // While the move goes on the DataNode says so from time to time.
        match datanode::response(&mut stream, &addr).await {
            Err(ClientError::Refused { status, .. }) if status == Status::InProgress as i32 => {}
            answer => return answer.map(|_| ()),
        }
    }
}
