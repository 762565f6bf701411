//! Asks DataNodes for the checksum of a block or block group.
//!
//! Source: Hadoop 3.5.0 `FileChecksumHelper`, `Sender#blockChecksum`, `Sender#blockGroupChecksum`.

use super::{connect, failure, response};
use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::protocol::convert::{self, Located, Token};
use crate::types::{Block, ChecksumMode, DataNodeAddr};
use cairn_codec::crc::ChecksumKind;
use cairn_stripe::Policy;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use prost::Message;

/// What a DataNode says of a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockChecksum {
    pub bytes_per_crc: u32,
    /// Chunks of a block of full length.
    pub crcs_per_block: u64,
    pub kind: ChecksumKind,
    /// An MD5, or a CRC, as the mode asks.
    pub bytes: Vec<u8>,
}

fn options(mode: ChecksumMode, policy: Option<&Policy>) -> BlockChecksumOptionsProto {
    let kind = match mode {
        ChecksumMode::Md5Md5Crc => BlockChecksumTypeProto::Md5crc,
        ChecksumMode::CompositeCrc => BlockChecksumTypeProto::CompositeCrc,
    };
    BlockChecksumOptionsProto {
        block_checksum_type: Some(kind as i32),
        stripe_length: policy.map(|policy| u64::from(policy.cell_len)),
    }
}

/// The checksum of the first `block.len` bytes of a replica.
pub(crate) async fn block_checksum(
    config: &ClientConfig,
    addr: &DataNodeAddr,
    located: &Located,
    block: &Block,
    mode: ChecksumMode,
) -> Result<BlockChecksum> {
    let request = OpBlockChecksumProto {
        header: BaseHeaderProto {
            block: convert::block_proto(block),
            token: Some(located.token(0)),
            trace_info: cairn_net::transfer_stream::trace_info(),
        },
        block_checksum_options: Some(options(mode, None)),
        ..OpBlockChecksumProto::default()
    };
    ask(config, addr, Op::BlockChecksum, &located.token(0), &request).await
}

/// The checksum of the first `len` data bytes of a group, which the DataNode collects from the
/// group's others.
pub(crate) async fn group_checksum(
    config: &ClientConfig,
    addr: &DataNodeAddr,
    located: &Located,
    policy: &Policy,
    len: u64,
    mode: ChecksumMode,
) -> Result<BlockChecksum> {
    let block = Block { len, ..located.block.block.clone() };
    let request = OpBlockGroupChecksumProto {
        header: BaseHeaderProto {
            block: convert::block_proto(&block),
            token: Some(Token::clone(&located.whole)),
            trace_info: cairn_net::transfer_stream::trace_info(),
        },
        datanodes: DatanodeInfosProto { datanodes: located.infos.clone() },
        block_tokens: (0..located.infos.len()).map(|i| located.token(i)).collect(),
        ec_policy: convert::policy_proto(policy),
        block_indices: located
            .block
            .locations
            .iter()
            .map(|location| u32::from(location.unit.0))
            .collect(),
        requested_num_bytes: len,
        block_checksum_options: Some(options(mode, Some(policy))),
    };
    ask(config, addr, Op::BlockGroupChecksum, &located.whole, &request).await
}

async fn ask(
    config: &ClientConfig,
    addr: &DataNodeAddr,
    op: Op,
    token: &Token,
    request: &impl Message,
) -> Result<BlockChecksum> {
    let mut stream = connect(config, addr, 1, token).await?;
    let sent = stream.writer.send_op(op, request).await;
    sent.map_err(|error| failure(addr, error))?;
    let answer = response(&mut stream, addr).await?.checksum_response;
    let bad = |what: &str| ClientError::Protocol(format!("checksum from {addr}: {what}"));
    let answer = answer.ok_or_else(|| bad("none"))?;
    let kind = match answer.crc_type {
        Some(kind) => u8::try_from(kind).ok().and_then(ChecksumKind::from_id),
        None => Some(ChecksumKind::Crc32),
    };
    Ok(BlockChecksum {
        bytes_per_crc: answer.bytes_per_crc,
        crcs_per_block: answer.crc_per_block,
        kind: kind.ok_or_else(|| bad("unknown type"))?,
        bytes: answer.block_checksum,
    })
}
