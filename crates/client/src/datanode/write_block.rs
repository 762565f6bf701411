//! Opens a write to a pipeline of DataNodes, and copies a replica from one DataNode to others.
//!
//! Source: Hadoop 3.5.0 `DataStreamer#createBlockOutputStream`, `Sender#writeBlock`.

use super::{connect, failure, response};
use crate::config::ClientConfig;
use crate::error::Result;
use crate::packet::Checksums;
use crate::protocol::convert::{self, Located, Token};
use crate::types::{Block, DataNodeAddr};
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::GenerationStamp;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;

pub(crate) use cairn_wire::proto::hdfs::OpWriteBlockProtoBlockConstructionStage as Stage;

/// One DataNode of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub info: DatanodeInfoProto,
    pub addr: DataNodeAddr,
    pub storage_id: String,
    pub storage_type: i32,
}

/// The locations of a block, as places to write to.
pub(crate) fn targets(located: &Located) -> Vec<Target> {
    let target = |(i, info): (usize, &DatanodeInfoProto)| Target {
        info: info.clone(),
        addr: convert::addr(&info.id),
        storage_id: located.block.locations[i].storage_id.clone(),
        storage_type: located.storage_types.get(i).copied().unwrap_or(1),
    };
    located.infos.iter().enumerate().map(target).collect()
}

/// A write to open.
pub(crate) struct WriteOp<'a> {
    /// The block with the stamp that its replicas have.
    pub block: &'a Block,
    pub token: &'a Token,
    pub client_name: &'a str,
    pub targets: &'a [Target],
    pub stage: Stage,
    /// Bytes of the block that are acknowledged.
    pub acked: u64,
    /// Bytes of the block that were ever sent.
    pub sent: u64,
    /// The stamp that the replicas are to have.
    pub new_stamp: GenerationStamp,
    /// Full length of a block, for placing it on a volume.
    pub block_size: u64,
    pub checksums: Checksums,
    /// The DataNode may keep the block in memory first.
    pub is_lazy: bool,
}

/// Opens a write; the pipeline is ready for packets.
pub(crate) async fn open_write(config: &ClientConfig, op: &WriteOp<'_>) -> Result<TransferStream> {
    let first = &op.targets[0];
    let rest = &op.targets[1..];
    let block = Block { len: op.block_size, ..op.block.clone() };
    let request = OpWriteBlockProto {
        header: header(&block, op.token, op.client_name),
        targets: rest.iter().map(|target| target.info.clone()).collect(),
        source: None,
        stage: op.stage as i32,
        pipeline_size: op.targets.len() as u32,
        min_bytes_rcvd: op.acked,
        max_bytes_rcvd: op.sent,
        latest_generation_stamp: op.new_stamp.0,
        requested_checksum: ChecksumProto {
            r#type: convert::checksum_type(op.checksums.kind),
            bytes_per_checksum: op.checksums.chunk_len as u32,
        },
        caching_strategy: Some(CachingStrategyProto { drop_behind: None, readahead: None }),
        storage_type: Some(first.storage_type),
        target_storage_types: rest.iter().map(|target| target.storage_type).collect(),
        allow_lazy_persist: Some(op.is_lazy),
        pinning: Some(false),
        target_pinnings: vec![false; rest.len()],
        storage_id: Some(first.storage_id.clone()),
        target_storage_ids: rest.iter().map(|target| target.storage_id.clone()).collect(),
    };
    let mut stream = connect(config, &first.addr, op.targets.len()).await?;
    let sent = stream.writer.send_op(Op::WriteBlock, &request).await;
    sent.map_err(|error| failure(&first.addr, error))?;
    response(&mut stream, &first.addr).await?;
    Ok(stream)
}

/// Has `source` copy its replica to `target`, and waits until it is there.
pub(crate) async fn transfer(
    config: &ClientConfig,
    block: &Block,
    token: &Token,
    client_name: &str,
    source: &Target,
    target: &Target,
) -> Result<()> {
    let request = OpTransferBlockProto {
        header: header(block, token, client_name),
        targets: vec![target.info.clone()],
        target_storage_types: vec![target.storage_type],
        target_storage_ids: vec![target.storage_id.clone()],
    };
    let mut stream = connect(config, &source.addr, 2).await?;
    let sent = stream.writer.send_op(Op::TransferBlock, &request).await;
    sent.map_err(|error| failure(&source.addr, error))?;
    response(&mut stream, &source.addr).await?;
    Ok(())
}

fn header(block: &Block, token: &Token, client_name: &str) -> ClientOperationHeaderProto {
    ClientOperationHeaderProto {
        base_header: BaseHeaderProto {
            block: convert::block_proto(block),
            token: Some(token.clone()),
            trace_info: None,
        },
        client_name: client_name.to_string(),
    }
}
