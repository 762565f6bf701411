//! BLOCK_GROUP_CHECKSUM: asks the DataNodes of the data units for their checksums and joins them. A unit that none of
//! them can answer for is decoded from the others.
//!
//! Source: Hadoop 3.5.0 `BlockChecksumHelper.BlockGroupNonStripedChecksumComputer`.

use super::answer::answer_error;
use super::checksum::{answer, be_u32};
use super::peer_checksum::peer_checksum;
use crate::dataset::Block;
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::Node;
use crate::ops::reconstruct::decoded_checksum;
use cairn_codec::crc::{self, CRC_LEN, ChecksumKind};
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::UnitIndex;
use cairn_stripe::geometry::Geometry;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, DatanodeInfoProto,
    OpBlockChecksumResponseProto, OpBlockGroupChecksumProto,
};
use cairn_wire::transfer::Op;
use md5::{Digest, Md5};
use std::sync::Arc;

/// Computes the checksum of the first `requested_num_bytes` of a block group.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpBlockGroupChecksumProto,
) -> Result<bool> {
    match group_checksum(node, &request).await {
        Ok(checksum) => answer(stream, checksum).await.map(|()| true),
        Err(error) => {
            answer_error(node, stream, Op::BlockGroupChecksum, "blockGroupChecksum", &error).await
        }
    }
}

async fn group_checksum(
    node: &Arc<Node>,
    request: &OpBlockGroupChecksumProto,
) -> Result<OpBlockChecksumResponseProto> {
    let geometry = messages::geometry(&request.ec_policy)?;
    let kind = messages::block_checksum_type(request.block_checksum_options.as_ref());
    let options = match kind {
        BlockChecksumTypeProto::Md5crc => request.block_checksum_options.clone(),
        BlockChecksumTypeProto::CompositeCrc => Some(BlockChecksumOptionsProto {
            block_checksum_type: Some(kind as i32),
            stripe_length: Some(geometry.cell_len()),
        }),
    };
    let group = messages::block(&request.header.block);
    if !group.id.is_striped() {
        return Err(DataNodeError::peer(format!("{} is not a block group", group.id)));
    }
    let mut parts: Vec<OpBlockChecksumResponseProto> = Vec::new();
    let (mut covered, mut failed) = (0, Vec::new());
    for unit in 0..geometry.k() {
        let index = UnitIndex(unit as u8);
        let len = geometry.internal_block_len(request.requested_num_bytes, index);
        let block = Block { id: group.id.internal(index), len, ..group.clone() };
        parts.push(match ask_holders(node, request, &block, index, &options).await {
            Some(checksum) => checksum,
            None => {
                let decoded = decoded_checksum(node, request, index, len, &failed).await?;
                failed.push(index);
                decoded
            }
        });
        covered += len;
        if covered >= request.requested_num_bytes {
            break;
        }
    }
    join(&geometry, kind, request.block_checksum_options.clone(), &parts, covered)
}

/// The checksum of a unit from the first DataNode that gives it.
async fn ask_holders(
    node: &Arc<Node>,
    request: &OpBlockGroupChecksumProto,
    block: &Block,
    unit: UnitIndex,
    options: &Option<BlockChecksumOptionsProto>,
) -> Option<OpBlockChecksumResponseProto> {
    let places = request.block_indices.iter().zip(&request.datanodes.datanodes);
    for (_, holder) in places.filter(|(index, _)| **index == u32::from(unit.0)) {
        match ask(node, holder, block, options.clone()).await {
            Ok(checksum) => return Some(checksum),
            Err(error) => {
                let name = messages::xfer_name(holder);
                tracing::warn!(block = %block.id, holder = %name, %error, "no checksum of a unit");
            }
        }
    }
    None
}

async fn ask(
    node: &Arc<Node>,
    holder: &DatanodeInfoProto,
    block: &Block,
    options: Option<BlockChecksumOptionsProto>,
) -> Result<OpBlockChecksumResponseProto> {
    if holder.id.datanode_uuid == node.dataset.uuid() {
        return super::checksum::block_checksum(node, block, options).await;
    }
    peer_checksum(node, holder, block, options, false).await
}

/// Joins the units' checksums to the group's.
fn join(
    geometry: &Geometry,
    kind: BlockChecksumTypeProto,
    options: Option<BlockChecksumOptionsProto>,
    parts: &[OpBlockChecksumResponseProto],
    covered: u64,
) -> Result<OpBlockChecksumResponseProto> {
    let first =
        parts.first().ok_or_else(|| DataNodeError::peer("an empty block group has no checksum"))?;
    if let Some(other) = parts
        .iter()
        .find(|p| p.bytes_per_crc != first.bytes_per_crc || p.crc_type != first.crc_type)
    {
        return Err(DataNodeError::peer(format!(
            "Byte-per-checksum not matched: bpc={} but bytesPerCRC={}",
            other.bytes_per_crc, first.bytes_per_crc
        )));
    }
    let block_checksum = match kind {
        BlockChecksumTypeProto::Md5crc => md5_of_md5s(parts),
        BlockChecksumTypeProto::CompositeCrc => {
            recompose(geometry, first.crc_type(), parts, covered)?
        }
    };
    Ok(OpBlockChecksumResponseProto {
        block_checksum,
        block_checksum_options: options,
        ..first.clone()
    })
}

/// Hadoop digests its whole growing buffer, with the zeros at its end; so must this.
fn md5_of_md5s(parts: &[OpBlockChecksumResponseProto]) -> Vec<u8> {
    let mut buffer: Vec<u8> =
        parts.iter().flat_map(|part| part.block_checksum.iter().copied()).collect();
    // `ByteArrayOutputStream`: 32 bytes at first, then doubling.
    let mut capacity = 32;
    while capacity < buffer.len() {
        capacity *= 2;
    }
    buffer.resize(capacity, 0);
    Md5::digest(&buffer).to_vec()
}

/// Puts the CRCs of the cells, which come unit by unit, in the order of the file, and composes them.
fn recompose(
    geometry: &Geometry,
    kind: cairn_wire::proto::hdfs::ChecksumTypeProto,
    parts: &[OpBlockChecksumResponseProto],
    covered: u64,
) -> Result<Vec<u8>> {
    let kind = ChecksumKind::from_id(kind as u8)
        .ok_or_else(|| DataNodeError::peer("unknown checksum type"))?;
    let (cell, k) = (geometry.cell_len(), geometry.k() as u64);
    let mut composed = 0;
    for index in 0..covered.div_ceil(cell) {
        let (unit, row) = ((index % k) as usize, (index / k) as usize);
        let crcs = parts.get(unit).map(|part| part.block_checksum.as_slice()).unwrap_or_default();
        let crc = crcs.get(row * CRC_LEN..(row + 1) * CRC_LEN);
        let crc =
            crc.ok_or_else(|| DataNodeError::peer("a unit has fewer cells than its group needs"))?;
        composed = crc::combine(kind, composed, be_u32(crc), cell.min(covered - index * cell));
    }
    Ok(composed.to_be_bytes().to_vec())
}
