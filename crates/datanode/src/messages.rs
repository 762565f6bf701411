//! Translates between messages and the DataNode's own types.

use crate::dataset::{Block, Checksum};
use crate::error::{DataNodeError, Result};
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{BlockId, GenerationStamp};
use cairn_wire::meta_file::MetaHeader;
use cairn_wire::proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockProto, ChecksumProto,
    ChecksumTypeProto, DatanodeIDProto, DatanodeInfoProto, ErasureCodingPolicyProto,
    ExtendedBlockProto,
};

/// The Hadoop version whose behaviour this is.
pub(crate) const SOFTWARE_VERSION: &str = "3.5.0";

/// Largest group and cell that a request may name.
const MAX_UNITS: usize = cairn_stripe::id::MAX_UNITS_PER_GROUP;
const MAX_CELL_LEN: u32 = 1 << 30;

/// The block of a message.
pub(crate) fn block(proto: &ExtendedBlockProto) -> Block {
    Block {
        pool: proto.pool_id.clone(),
        id: BlockId(proto.block_id as i64),
        gs: GenerationStamp(proto.generation_stamp),
        len: proto.num_bytes.unwrap_or(0),
    }
}

/// The message of a block.
pub(crate) fn extended_block(block: &Block) -> ExtendedBlockProto {
    ExtendedBlockProto {
        pool_id: block.pool.clone(),
        block_id: block.id.0 as u64,
        generation_stamp: block.gs.0,
        num_bytes: Some(block.len),
    }
}

/// The message of a block without its pool.
pub(crate) fn local_block(id: BlockId, gs: GenerationStamp, len: u64) -> BlockProto {
    BlockProto { block_id: id.0 as u64, gen_stamp: gs.0, num_bytes: Some(len) }
}

/// The checksum of a message.
pub(crate) fn checksum(proto: &ChecksumProto) -> Result<Checksum> {
    let header = MetaHeader::new(proto.r#type, proto.bytes_per_checksum)?;
    let kind = ChecksumKind::from_id(header.checksum as u8)
        .ok_or_else(|| DataNodeError::peer("unknown checksum type"))?;
    Ok(Checksum { kind, chunk_len: header.bytes_per_checksum as usize })
}

/// The message's number for a checksum.
pub(crate) fn checksum_type(kind: ChecksumKind) -> i32 {
    (match kind {
        ChecksumKind::Null => ChecksumTypeProto::ChecksumNull,
        ChecksumKind::Crc32 => ChecksumTypeProto::ChecksumCrc32,
        ChecksumKind::Crc32c => ChecksumTypeProto::ChecksumCrc32c,
    }) as i32
}

/// How the checksum of a block is made; Hadoop's default without options.
pub(crate) fn block_checksum_type(
    options: Option<&BlockChecksumOptionsProto>,
) -> BlockChecksumTypeProto {
    options.map_or(BlockChecksumTypeProto::Md5crc, |options| options.block_checksum_type())
}

/// The message of a checksum.
pub(crate) fn checksum_proto(checksum: Checksum) -> ChecksumProto {
    ChecksumProto {
        r#type: checksum_type(checksum.kind),
        bytes_per_checksum: checksum.chunk_len as u32,
    }
}

/// How a DataNode is named in a pipeline's answers: address and data port.
pub(crate) fn xfer_name(peer: &DatanodeInfoProto) -> String {
    id_name(&peer.id)
}

/// The same by its identity.
pub(crate) fn id_name(id: &DatanodeIDProto) -> String {
    format!("{}:{}", id.ip_addr, id.xfer_port)
}

/// The shape of a policy that a peer names, if it is possible at all.
pub(crate) fn geometry(policy: &ErasureCodingPolicyProto) -> Result<Geometry> {
    let schema = match &policy.schema {
        Some(schema) => (
            schema.data_units as usize,
            schema.parity_units as usize,
            policy.cell_size.unwrap_or(0),
        ),
        None => {
            let id = u8::try_from(policy.id).map_err(|_| DataNodeError::peer("unknown policy"))?;
            let known = cairn_stripe::Policy::built_in().into_iter().find(|p| p.id.0 == id);
            let known = known.ok_or_else(|| DataNodeError::peer(format!("unknown policy {id}")))?;
            (known.schema.data_units(), known.schema.parity_units(), known.cell_len)
        }
    };
    let (k, m, cell_len) = schema;
    if k == 0 || k + m > MAX_UNITS || cell_len == 0 || cell_len > MAX_CELL_LEN {
        return Err(DataNodeError::peer(format!(
            "impossible policy: {k} + {m} units of {cell_len} bytes"
        )));
    }
    Ok(Geometry::new(k, m, cell_len.into()))
}
