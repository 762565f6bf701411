//! Writing a container of small blocks here, and reading it back by its index.
//!
//! Blocks that cannot be read, are not what is recorded of them, or are summed otherwise than the first are left out: the
//! NameNode has them wait for another container. What is told is not what was written but what the disk has: each packed
//! block is summed where the index at the container's end says that it is.

use super::super::claim::{Claim, Refusal};
use super::super::plan::Target;
use super::super::source::Wanted;
use super::super::target::Destination;
use super::super::traced::{begun, part_of};
use super::MAX_WAITING;
use super::sinks::Sinks;
use super::units::{SLICE, Units};
use crate::dataset::{Block, Checksum, ReadView, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::virtual_block::read_packed;
use cairn_codec::crc::{ChecksumKind, crc32c, verify_chunks};
use cairn_stripe::group::{Layout, Part};
use cairn_stripe::pack::{self, MAX_PACKED, MAX_PACKED_LEN, PackIndex, padded_len};
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};
use cairn_trace::carried;
use cairn_wire::proto::datanode::{PackOrderProto, PackedContainerProto};
use cairn_wire::proto::hdfs::DatanodeInfoProto;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Small blocks that are read at a time.
const READ_AT_ONCE: usize = 8;
/// Bytes of a chunk above which blocks are left out of which more than a twentieth would be zeros.
const CHUNK_MAX: u32 = 4096;

/// A container to write, checked.
struct PackWork {
    container: Block,
    target: Target,
    blocks: Vec<ToPack>,
}

/// A block that is to be packed.
#[derive(Clone)]
struct ToPack {
    slot: u32,
    block: Block,
    crc32c: u32,
    holders: Vec<DatanodeInfoProto>,
}

impl PackWork {
    fn decode(node: &Node, order: PackOrderProto) -> Result<PackWork> {
        let container = Block { len: 0, ..messages::block(&order.container) };
        node.dataset.check_pool(&container.pool)?;
        if !container.id.is_container() || order.blocks.len() > MAX_PACKED {
            return Err(DataNodeError::Peer(format!("{} is no container", container.id)));
        }
        let mut blocks = Vec::with_capacity(order.blocks.len());
        for of in &order.blocks {
            let block = Block {
                pool: container.pool.clone(),
                id: BlockId(of.block.block_id as i64),
                gs: GenerationStamp(of.block.gen_stamp),
                len: of.block.num_bytes(),
            };
            if block.len == 0 || block.len > MAX_PACKED_LEN.into() {
                return Err(DataNodeError::Peer(format!("{} cannot be packed", block.id)));
            }
            let holder = |at: &u32| order.datanodes.get(*at as usize).cloned();
            let holders = of.datanodes.iter().filter_map(holder).collect();
            blocks.push(ToPack { slot: of.slot, block, crc32c: of.crc32c, holders });
        }
        let target = Target {
            unit: UnitIndex(0),
            node: DatanodeInfoProto {
                id: node.registration()?.datanode_id,
                ..DatanodeInfoProto::default()
            },
            storage_type: order.storage_type,
            storage_id: Some(order.storage_uuid),
        };
        Ok(PackWork { container, target, blocks })
    }
}

/// Writes containers in the background, as soon as few enough reconstructions run.
pub(crate) fn start_packs(node: &Arc<Node>, orders: Vec<PackOrderProto>) {
    for order in orders {
        let container = messages::block(&order.container);
        let taken = PackWork::decode(node, order).map_err(Refusal::Failed).and_then(|work| {
            let claim = Claim::new(node, vec![container.id], 1, MAX_WAITING)?;
            Ok((work, claim))
        });
        match taken {
            Ok((work, claim)) => {
                let span = begun("Pack/container", container.id);
                node.tasks.spawn(part_of(span, run(node.clone(), work, claim)));
            }
            Err(Refusal::Busy(unit)) => tracing::info!(%unit, "this is being packed already"),
            Err(Refusal::Failed(error)) => {
                tracing::warn!(container = %container.id, %error, "refused to write a container");
                node.packed.add(failed(&container, &error));
            }
        }
    }
}

async fn run(node: Arc<Node>, work: PackWork, _claim: Claim) {
    let Some(_permit) = node.reconstructions.permit(false).await else { return };
    let container = work.container.clone();
    tracing::info!(container = %container.id, "writes a container");
    let told = match pack(&node, &work).await {
        Ok(told) => {
            let (blocks, left_out) = (told.crcs.len(), told.left_out.len());
            tracing::info!(container = %container.id, blocks, left_out, "wrote a container");
            told
        }
        Err(error) => {
            tracing::warn!(container = %container.id, %error, "cannot write a container");
            failed(&container, &error)
        }
    };
    node.packed.add(told);
}

fn failed(container: &Block, error: &DataNodeError) -> PackedContainerProto {
    PackedContainerProto {
        container: messages::local_block(container.id, container.gs, 0),
        error: Some(error.to_string().chars().take(300).collect()),
        ..PackedContainerProto::default()
    }
}

fn peer(error: impl std::fmt::Display) -> DataNodeError {
    DataNodeError::Peer(error.to_string())
}

/// A container that is written.
struct Open {
    checksum: Checksum,
    index: PackIndex,
    sinks: Sinks,
}

/// Writes a container and reads it back. On a failure nothing is left but, if reading it back fails, a replica that the
/// NameNode does not want.
async fn pack(node: &Arc<Node>, work: &PackWork) -> Result<PackedContainerProto> {
    let mut open: Option<Open> = None;
    for some in work.blocks.chunks(READ_AT_ONCE) {
        for (of, read) in some.iter().zip(read_all(node, some).await) {
            let (bytes, checksum) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::info!(block = %of.block.id, %error, "a block is left out");
                    continue;
                }
            };
            if open.is_none() && checksum.kind != ChecksumKind::Null {
                open = Some(Open::begin(node, work, checksum)?);
            }
            if let Some(open) = &mut open {
                open.add(of, bytes, checksum).await?;
            }
        }
    }
    let Some(Open { index, mut sinks, .. }) = open.filter(|open| !open.index.packed().is_empty())
    else {
        return Err(DataNodeError::peer("none of its blocks could be read"));
    };
    sinks.write(0, &index.to_tail(|bytes| crc32c(0, bytes))).await;
    sinks.end().await;
    sinks.commit().await.into_iter().collect::<Result<()>>()?;
    let container = Block { len: index.container_len(), ..work.container.clone() };
    let found = read_back(node, &container, index.tail_len()).await?;
    let slots = found.index.packed();
    let is_left = |of: &&ToPack| slots.binary_search_by_key(&of.slot, |of| of.slot).is_err();
    Ok(PackedContainerProto {
        container: messages::local_block(container.id, container.gs, container.len),
        error: None,
        storage_uuid: Some(found.storage),
        crc32c: Some(found.crc32c),
        left_out: work.blocks.iter().filter(is_left).map(|of| of.slot).collect(),
        crcs: found.crcs,
        checksum_type: Some(messages::checksum_type(found.checksum.kind)),
        bytes_per_checksum: Some(found.checksum.chunk_len as u32),
    })
}

impl Open {
    fn begin(node: &Arc<Node>, work: &PackWork, checksum: Checksum) -> Result<Open> {
        let known = (work.container.id, work.container.gs);
        let index = PackIndex::new(known, checksum.kind.id(), checksum.chunk_len as u32);
        let len = work.blocks.iter().map(|of| of.block.len).sum();
        let destination = Destination {
            // What has to have room.
            block: Block { len, ..work.container.clone() },
            target: work.target.clone(),
            checksum,
            is_urgent: false,
            is_synced: true,
        };
        let sinks = Sinks::start(node, vec![destination]);
        Ok(Open { checksum, index: index.map_err(peer)?, sinks })
    }

    /// Adds a block, unless it is summed otherwise than the others, or would be mostly zeros.
    async fn add(&mut self, of: &ToPack, mut bytes: Vec<u8>, checksum: Checksum) -> Result<()> {
        let (len, chunk_len) = (bytes.len() as u32, self.index.chunk_len);
        let padded = padded_len(len, chunk_len);
        let is_sparse = chunk_len > CHUNK_MAX && (padded - u64::from(len)) * 20 > padded;
        if checksum != self.checksum || is_sparse {
            return Ok(());
        }
        let block = (of.block.id, of.block.gs);
        self.index.push(of.slot, block, (len, of.crc32c)).map_err(peer)?;
        bytes.resize(padded as usize, 0);
        self.sinks.write(0, &bytes).await;
        match self.sinks.is_open(0) {
            true => Ok(()),
            false => Err(DataNodeError::peer("a container cannot be written")),
        }
    }
}

/// Reads blocks side by side, in their order.
async fn read_all(node: &Arc<Node>, blocks: &[ToPack]) -> Vec<Result<(Vec<u8>, Checksum)>> {
    let mut tasks = JoinSet::new();
    for (at, of) in blocks.iter().enumerate() {
        let (node, of) = (node.clone(), of.clone());
        tasks.spawn(carried(async move { (at, read_whole(&node, &of).await) }));
    }
    let mut read: Vec<_> = blocks.iter().map(|_| Err(DataNodeError::Stopped)).collect();
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((at, done)) => read[at] = done,
            Err(error) => tracing::error!(%error, "a reader has ended"),
        }
    }
    read
}

/// All bytes of a block, which are what is recorded of it: from a replica, or from the container that it is in so far.
async fn read_whole(node: &Arc<Node>, of: &ToPack) -> Result<(Vec<u8>, Checksum)> {
    let (bytes, checksum) = match of.holders.is_empty() {
        true => {
            let (read, checksum) = read_packed(node, &of.block).await?;
            (read.bytes, checksum)
        }
        false => read_replica(node, of).await?,
    };
    match bytes.len() as u64 == of.block.len && crc32c(0, &bytes) == of.crc32c {
        true => Ok((bytes, checksum)),
        false => Err(DataNodeError::peer("it is not what is recorded of it")),
    }
}

async fn read_replica(node: &Arc<Node>, of: &ToPack) -> Result<(Vec<u8>, Checksum)> {
    let len = of.block.len;
    let layout = Layout::new(1, vec![len], len, 1).map_err(peer)?;
    let wanted = Wanted::new(of.block.clone(), of.holders.clone());
    let mut units = Units::start(node, vec![0], vec![wanted]);
    let mut bytes = Vec::with_capacity(len as usize);
    while (bytes.len() as u64) < len {
        let start = bytes.len() as u64;
        let range = start..(start + SLICE).min(len);
        let step = units.step(&layout, Part::Data, &range).await;
        let step = step.map_err(|unread| unread.error)?.into_iter().next().flatten();
        bytes.extend_from_slice(&step.ok_or(DataNodeError::Stopped)?);
    }
    let checksum = units.checksum().ok_or_else(|| DataNodeError::peer("it has no checksum"))?;
    Ok((bytes, checksum))
}

/// A container as its disk has it.
struct ReadBack {
    index: PackIndex,
    crcs: Vec<u32>,
    crc32c: u32,
    storage: String,
    checksum: Checksum,
}

/// Reads a container past the page cache, after it was synced: its index first, then what is where that says.
async fn read_back(node: &Arc<Node>, container: &Block, tail_len: u64) -> Result<ReadBack> {
    let view = Arc::new(node.dataset.open_read(container, container.len).await?);
    let mut disk = node.dataset.read_from_disk(container, &view).await?;
    let container = container.clone();
    let waiting = view.waiting();
    blocking(move || {
        let _waiting = waiting;
        let checksum = view.checksum;
        let mut read = |view: &ReadView, from, to| -> Result<Vec<u8>> {
            let (bytes, crcs) = disk.read_chunks(view, from, to)?;
            let Checksum { kind, chunk_len } = checksum;
            verify_chunks(kind, chunk_len, &bytes, &crcs).map_err(peer)?;
            Ok(bytes)
        };
        let tail = read(&view, container.len - tail_len, container.len)?;
        let index = PackIndex::from_tail(&tail, |bytes| crc32c(0, bytes)).map_err(peer)?;
        let shape = (index.checksum_type, index.chunk_len as usize);
        let is_its = (index.container, index.gs) == (container.id, container.gs)
            && shape == (checksum.kind.id(), checksum.chunk_len)
            && index.container_len() == container.len;
        if !is_its {
            return Err(DataNodeError::Peer(format!("{} has another index", container.id)));
        }
        let end_of = |of: &pack::Packed| of.offset + padded_len(of.len, index.chunk_len);
        let (mut crcs, mut whole) = (Vec::with_capacity(index.packed().len()), 0);
        let mut packed = index.packed();
        while let Some(first) = packed.first() {
            // Many are read at once: a disk is slow to begin.
            let start = first.offset;
            let count = packed.iter().take_while(|of| end_of(of) <= start + SLICE).count().max(1);
            let (some, rest) = packed.split_at(count);
            let bytes = read(&view, start, some.last().map_or(start, end_of))?;
            whole = crc32c(whole, &bytes);
            for of in some {
                let at = (of.offset - start) as usize;
                crcs.push(crc32c(0, &bytes[at..at + of.len as usize]));
            }
            packed = rest;
        }
        let crc32c = crc32c(whole, &tail);
        let storage = view.storage_id().to_string();
        Ok(ReadBack { index, crcs, crc32c, storage, checksum })
    })
    .await
}
