//! What answers about blocks that are not here have in common.

use crate::dataset::Checksum;
use crate::error::{DataNodeError, Result};
use crate::messages;
use cairn_codec::crc::CRC_LEN;
use cairn_replica::CrcFold;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockOpResponseProto,
    OpBlockChecksumResponseProto, OpReadBlockProto, ReadOpChecksumInfoProto, Status,
};
use md5::{Digest, Md5};
use std::ops::Range;

/// Bytes of a range that are decoded and sent at once.
pub(super) const STEP: u64 = 256 << 10;

/// The bytes that a request asks for of a block with `len`.
pub(super) fn wanted(request: &OpReadBlockProto, len: u64) -> Result<Range<u64>> {
    let (from, count) = (request.offset, request.len);
    let end = from.checked_add(count).filter(|end| *end <= len).ok_or_else(|| {
        DataNodeError::Peer(format!(
            "Offset {from} and length {count} don't match block ( blockLen {len} )"
        ))
    })?;
    Ok(from..end)
}

/// What goes before the packets, the first of which begins at `from`.
pub(super) fn success(checksum: Checksum, from: u64) -> BlockOpResponseProto {
    BlockOpResponseProto {
        status: Status::Success as i32,
        read_op_checksum_info: Some(ReadOpChecksumInfoProto {
            checksum: messages::checksum_proto(checksum),
            chunk_offset: from,
        }),
        ..Default::default()
    }
}

/// Refuses a checksum of none of a block's bytes, or of more than all `whole`.
pub(super) fn check_summed(len: u64, whole: u64) -> Result<()> {
    if len == 0 || len > whole {
        return Err(DataNodeError::peer(format!("it has {whole} bytes, {len} are to be summed")));
    }
    Ok(())
}

/// The checksum of `len` bytes whose chunks have these CRCs.
pub(super) fn summed(
    crcs: &[u8],
    len: u64,
    Checksum { kind, chunk_len }: Checksum,
    crc_per_block: u64,
    options: Option<BlockChecksumOptionsProto>,
) -> Result<OpBlockChecksumResponseProto> {
    let chunk = chunk_len as u64;
    let block_checksum = match messages::block_checksum_type(options.as_ref()) {
        BlockChecksumTypeProto::Md5crc => Md5::digest(crcs).to_vec(),
        BlockChecksumTypeProto::CompositeCrc => {
            let stripe = options.as_ref().and_then(|options| options.stripe_length).unwrap_or(0);
            if stripe != 0 && stripe < len {
                return Err(DataNodeError::peer("a block that is no replica has no stripes"));
            }
            let mut fold = CrcFold::new(kind, chunk_len);
            let (whole_chunks, part) = crcs.split_at((len / chunk) as usize * CRC_LEN);
            for crc in whole_chunks.as_chunks::<CRC_LEN>().0 {
                fold.push(u32::from_be_bytes(*crc));
            }
            let part = part.first_chunk().map_or(0, |crc| u32::from_be_bytes(*crc));
            fold.finish(part, len % chunk).to_be_bytes().to_vec()
        }
    };
    Ok(OpBlockChecksumResponseProto {
        bytes_per_crc: chunk_len as u32,
        crc_per_block,
        block_checksum,
        crc_type: Some(messages::checksum_type(kind)),
        block_checksum_options: options,
        from_disk: None,
    })
}
