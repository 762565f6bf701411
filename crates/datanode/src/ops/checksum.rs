//! BLOCK_CHECKSUM: the MD5 of a replica's CRCs, or their composition.
//!
//! Source: Hadoop 3.5.0 `BlockChecksumHelper.ReplicatedBlockChecksumComputer`, `CrcComposer`.

use super::answer::answer_error;
use crate::dataset::{Block, ReadView, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use cairn_codec::crc::{CRC_LEN, ChecksumKind};
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

/// Computes the checksum of the first `block.len` bytes of a replica.
pub(crate) async fn serve_block(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpBlockChecksumProto,
) -> Result<bool> {
    let block = messages::block(&request.header.block);
    match block_checksum(node, &block, request.block_checksum_options).await {
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

/// How the checksum is made; Hadoop's default without options.
pub(super) fn checksum_type(options: Option<&BlockChecksumOptionsProto>) -> BlockChecksumTypeProto {
    options.map_or(BlockChecksumTypeProto::Md5crc, |options| options.block_checksum_type())
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
        let bytes = match checksum_type(options.as_ref()) {
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
