//! BLOCK_CHECKSUM: the MD5 of a replica's CRCs, or their composition.
//!
//! Source: Hadoop 3.5.0 `BlockChecksumHelper.ReplicatedBlockChecksumComputer`, `CrcComposer`.

use super::answer::answer_error;
use super::virtual_block;
use crate::dataset::{Block, Checksum, ReadView, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_codec::crc::{self, CRC_LEN, ChecksumKind};
use cairn_net::transfer_stream::TransferStream;
use cairn_replica::CrcFold;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockOpResponseProto, OpBlockChecksumProto,
    OpBlockChecksumResponseProto, Status,
};
use cairn_wire::transfer::Op;
use md5::{Digest, Md5};
use std::sync::Arc;

/// Bytes of CRCs read at once.
const READ_LEN: usize = 256 << 10;
/// Bytes read at once past the page cache.
const DISK_STEP: usize = 1 << 20;

/// Computes the checksum of the first `block.len` bytes of a replica.
pub(crate) async fn serve_block(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpBlockChecksumProto,
) -> Result<bool> {
    let block = messages::block(&request.header.block);
    let on_disk = request.from_disk();
    let is_marked = request.from_server() || on_disk;
    let options = request.block_checksum_options;
    let unfenced = if is_marked { Ok(()) } else { virtual_block::check_unfenced(node, &block) };
    let made = match unfenced {
        Err(error) => Err(error),
        Ok(()) if on_disk => checksum_on_disk(node, &block, options.unwrap_or_default()).await,
        Ok(()) if !is_marked && virtual_block::may_be_elsewhere(node, &block) => {
            virtual_block::checksum(node, &block, options).await
        }
        Ok(()) => block_checksum(node, &block, options).await,
    };
    match made {
        Ok(checksum) => answer(stream, checksum).await.map(|()| true),
        Err(error) => answer_error(node, stream, Op::BlockChecksum, "blockChecksum", &error).await,
    }
}

/// Sends a checksum.
pub(super) async fn answer(
    stream: &mut TransferStream,
    checksum: OpBlockChecksumResponseProto,
) -> Result<()> {
    let answer = BlockOpResponseProto {
        status: Status::Success as i32,
        checksum_response: Some(checksum),
        ..Default::default()
    };
    Ok(stream.writer.send_message(&answer).await?)
}

/// The checksum of the first `block.len` bytes of the replica here.
pub(super) async fn block_checksum(
    node: &Arc<Node>,
    block: &Block,
    options: Option<BlockChecksumOptionsProto>,
) -> Result<OpBlockChecksumResponseProto> {
    let view = node.dataset.open_read(block, 0).await?;
    let len = block.len;
    if len > view.end {
        let (id, end) = (block.id, view.end);
        return Err(DataNodeError::peer(format!("{id} has {end} bytes, {len} are to be summed")));
    }
    let waiting = view.waiting();
    blocking(move || {
        let _waiting = waiting;
        let bytes = match messages::block_checksum_type(options.as_ref()) {
            BlockChecksumTypeProto::Md5crc => md5_of_crcs(&view, len)?,
            BlockChecksumTypeProto::CompositeCrc => {
                composed(&view, len, options.as_ref().and_then(|o| o.stripe_length).unwrap_or(0))?
            }
        };
        Ok(OpBlockChecksumResponseProto {
            bytes_per_crc: view.checksum.chunk_len as u32,
            crc_per_block: view.crc_count()?,
            block_checksum: bytes,
            crc_type: Some(messages::checksum_type(view.checksum.kind)),
            block_checksum_options: options,
            from_disk: None,
        })
    })
    .await
}

/// The CRC of all bytes of the replica here, read as the disk has them and checked. Only composite ones without
/// stripes.
pub(super) async fn checksum_on_disk(
    node: &Arc<Node>,
    block: &Block,
    options: BlockChecksumOptionsProto,
) -> Result<OpBlockChecksumResponseProto> {
    let is_composite = options.block_checksum_type() == BlockChecksumTypeProto::CompositeCrc;
    if !is_composite || options.stripe_length.unwrap_or(0) != 0 {
        return Err(DataNodeError::peer("what is on a disk is summed as one CRC"));
    }
    let (crc, view) = sum_on_disk(node, block, None).await?;
    let Checksum { kind, chunk_len } = view.checksum;
    Ok(OpBlockChecksumResponseProto {
        bytes_per_crc: chunk_len as u32,
        crc_per_block: view.crc_count()?,
        block_checksum: crc.to_be_bytes().to_vec(),
        crc_type: Some(messages::checksum_type(kind)),
        block_checksum_options: Some(options),
        from_disk: Some(true),
    })
}

/// The CRC of all bytes of the replica here, by `sum` or else as its chunks are summed: synced, then read as the disk has
/// them, each chunk checked.
pub(crate) async fn sum_on_disk(
    node: &Arc<Node>,
    block: &Block,
    sum: Option<ChecksumKind>,
) -> Result<(u32, Arc<ReadView>)> {
    let view = Arc::new(node.dataset.open_read(block, block.len).await?);
    let mut disk = node.dataset.read_from_disk(block, &view).await?;
    let Checksum { kind, chunk_len } = view.checksum;
    if kind == ChecksumKind::Null {
        return Err(DataNodeError::peer("a block without CRCs has no composite CRC"));
    }
    let sum = sum.unwrap_or(kind);
    let step = (DISK_STEP / chunk_len).max(1) * chunk_len;
    let (mut crc, mut at) = (0, 0);
    while at < view.end {
        let end = (at + step as u64).min(view.end);
        node.reconstructions.budgets(false).read.pass(end - at).await;
        view.turn().await?;
        let (waiting, reading) = (view.waiting(), view.clone());
        let read = blocking(move || {
            let _waiting = waiting;
            let (bytes, crcs) = disk.read_chunks(&reading, at, end)?;
            crc::verify_chunks(kind, chunk_len, &bytes, &crcs)
                .map_err(|bad| DataNodeError::Checksum(format!("at {at}: {bad}")))?;
            Ok((sum.update(crc, &bytes), disk))
        });
        (crc, disk) = read.await.inspect_err(|error| node.note_read_error(block, error))?;
        at = end;
    }
    Ok((crc, view))
}

/// All CRCs of the file if the whole replica is asked for, else those of the range with a new one for its last chunk.
fn md5_of_crcs(view: &ReadView, len: u64) -> Result<Vec<u8>> {
    let mut md5 = Md5::new();
    let chunk = view.checksum.chunk_len as u64;
    let is_part = len < view.visible && view.crc_count()? > 0;
    let mut left = if is_part { len / chunk * CRC_LEN as u64 } else { u64::MAX };
    let (mut at, mut buffer) = (0, vec![0; READ_LEN]);
    while left > 0 {
        let room = left.min(READ_LEN as u64) as usize;
        let read = view.read_crc_bytes(at, &mut buffer[..room])?;
        if read == 0 {
            break;
        }
        md5.update(&buffer[..read]);
        at += read as u64;
        left -= read as u64;
    }
    if let Some(crc) = part_crc(view, len).transpose().filter(|_| is_part) {
        md5.update(crc?.to_be_bytes());
    }
    Ok(md5.finalize().to_vec())
}

/// The CRC of the bytes of the last chunk below `len`, if that is within a chunk.
fn part_crc(view: &ReadView, len: u64) -> Result<Option<u32>> {
    let part = (len % view.checksum.chunk_len as u64) as usize;
    if part == 0 {
        return Ok(None);
    }
    let mut bytes = vec![0; part];
    view.read_at(len - part as u64, &mut bytes)?;
    Ok(Some(view.checksum.kind.update(0, &bytes)))
}

/// The CRCs of stretches of `stripe_len` bytes (0: one of everything), big-endian.
fn composed(view: &ReadView, len: u64, stripe_len: u64) -> Result<Vec<u8>> {
    let (kind, chunk) = (view.checksum.kind, view.checksum.chunk_len as u64);
    if kind == ChecksumKind::Null {
        return Err(DataNodeError::peer("a block without CRCs has no composite CRC"));
    }
    let total = len.min(view.visible);
    let stripe = if stripe_len == 0 || stripe_len > total { total } else { stripe_len };
    if stripe < total && !stripe.is_multiple_of(chunk) {
        return Err(DataNodeError::peer(format!(
            "stripe length {stripe} is no multiple of {chunk}"
        )));
    }
    let empty = CrcFold::new(kind, chunk as usize);
    let (mut out, mut crcs) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < total {
        let end = (start + stripe).min(total);
        let full_end = end - end % chunk;
        let mut fold = empty.clone();
        let mut offset = start;
        while offset < full_end {
            let step = (offset + (READ_LEN / CRC_LEN) as u64 * chunk).min(full_end);
            view.crcs(offset, step, &mut crcs)?;
            crcs.chunks_exact(CRC_LEN).for_each(|crc| fold.push(be_u32(crc)));
            offset = step;
        }
        let composed = fold.finish(part_crc(view, end)?.unwrap_or(0), end % chunk);
        out.extend_from_slice(&composed.to_be_bytes());
        start = end;
    }
    Ok(out)
}

/// A big-endian number.
pub(super) fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
