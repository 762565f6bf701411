//! Opens a write to a pipeline of DataNodes, and copies a replica from one DataNode to others.
//!
//! Source: Hadoop 3.5.0 `DataStreamer#createBlockOutputStream`, `Sender#writeBlock`.

use super::pool::ConnectionPool;
use super::{connect, failure, read_timeout, response};
use crate::config::ClientConfig;
use crate::error::{ClientError, Result};
use crate::packet::{Checksums, Packet};
use crate::protocol::convert::{self, Located, Token};
use crate::types::{Block, DataNodeAddr};
use cairn_net::transfer_stream::{TransferError, TransferStream, TransferWriter};
use cairn_stripe::GenerationStamp;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::{Op, PacketHeader};
use std::io::ErrorKind;
use std::time::Duration;

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

/// The number of the packet of a block that is whole in one, and of the packet that ends it.
pub(crate) const WHOLE_SEQNOS: [i64; 2] = [0, 1];

/// Opens a write; the pipeline is ready for packets. A new block may begin over a connection of `pool`. Where all
/// of it is in the packet `whole`, that and the block's end are sent with the operation: what is left is to be
/// acknowledged.
pub(crate) async fn open_write(
    config: &ClientConfig,
    pool: &ConnectionPool,
    op: &WriteOp<'_>,
    whole: Option<&Packet>,
) -> Result<TransferStream> {
    let first = &op.targets[0];
    let request = request(config, op);
    let kept = || pool.take(&first.addr.xfer_addr());
    while op.stage == Stage::PipelineSetupCreate
        && let Some(mut stream) = kept()
    {
        let patience = read_timeout(config, op.targets.len());
        stream.reader.set_timeout(patience);
        stream.writer.set_timeout(patience);
        match begin(&mut stream, &first.addr, &request, whole).await {
            Err(error) if was_closed(&error) => {}
            done => return done.map(|()| stream),
        }
    }
    let mut stream = connect(config, &first.addr, op.targets.len(), op.token).await?;
    begin(&mut stream, &first.addr, &request, whole).await?;
    Ok(stream)
}

/// Keeps a connection over which a block was written to its end. Hadoop's DataNodes close it, Cairn's do not.
pub(crate) fn keep(
    config: &ClientConfig,
    pool: &ConnectionPool,
    addr: &DataNodeAddr,
    mut stream: TransferStream,
) {
    stream.release_memory();
    // Others do not wait for a whole pipeline.
    let patience = read_timeout(config, 0);
    stream.reader.set_timeout(patience);
    stream.writer.set_timeout(patience);
    pool.put(addr.xfer_addr(), stream);
}

/// Whether the DataNode has closed the connection: most likely before it has seen what was asked over it. Where it has
/// seen a whole block, that is there already, and Cairn's refuses it, as one that has failed.
fn was_closed(error: &ClientError) -> bool {
    let ClientError::DataNode { source, .. } = error else { return false };
    use ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(source.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

async fn begin(
    stream: &mut TransferStream,
    addr: &DataNodeAddr,
    request: &OpWriteBlockProto,
    whole: Option<&Packet>,
) -> Result<()> {
    let sent = match whole {
        Some(packet) => {
            stream.writer.hold_op(Op::WriteBlock, request);
            send_whole(&mut stream.writer, packet).await
        }
        None => stream.writer.send_op(Op::WriteBlock, request).await,
    };
    sent.map_err(|error| failure(addr, error))?;
    response(stream, addr).await.map(|_| ())
}

/// Sends all data of a block, and its end.
async fn send_whole(
    writer: &mut TransferWriter,
    packet: &Packet,
) -> std::result::Result<(), TransferError> {
    let header = |seqno, offset: usize, data_len: usize| PacketHeader {
        offset_in_block: offset as i64,
        seqno,
        last_packet: data_len == 0,
        data_len: data_len as u32,
        sync_block: false,
    };
    let (len, [first, last]) = (packet.data.len(), WHOLE_SEQNOS);
    let (data, end) = (header(first, 0, len), header(last, len, 0));
    writer.send_packet_and_end(&data, &packet.checksums, &packet.data, Some(&end)).await
}

fn request(config: &ClientConfig, op: &WriteOp<'_>) -> OpWriteBlockProto {
    let first = &op.targets[0];
    let rest = &op.targets[1..];
    let block = Block { len: op.block_size, ..op.block.clone() };
    OpWriteBlockProto {
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
        caching_strategy: Some(config.caching(config.drop_behind_writes)),
        storage_type: Some(first.storage_type),
        target_storage_types: rest.iter().map(|target| target.storage_type).collect(),
        allow_lazy_persist: Some(op.is_lazy),
        pinning: Some(false),
        target_pinnings: vec![false; rest.len()],
        storage_id: Some(first.storage_id.clone()),
        target_storage_ids: rest.iter().map(|target| target.storage_id.clone()).collect(),
    }
}

/// How long a DataNode may take to copy a replica of `len` bytes: it says nothing before the copy is whole.
///
/// Source: Hadoop 3.5.0 `DataStreamer#computeTransferReadTimeout`.
fn transfer_timeout(config: &ClientConfig, len: u64) -> Duration {
    /// 200 packets of Hadoop's.
    const STEP: u64 = 200 * 64 * 1024;
    read_timeout(config, 2 + (len / STEP) as usize)
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
    let mut stream = connect(config, &source.addr, 2, token).await?;
    stream.reader.set_timeout(transfer_timeout(config, block.len));
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
            trace_info: cairn_net::transfer_stream::trace_info(),
        },
        client_name: client_name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use cairn_codec::crc::{ChecksumKind, crc32c};
    use cairn_net::transfer_stream::TransferOptions;
    use cairn_stripe::BlockId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpListener;

    /// A DataNode that takes `writes` on each connection, with two packets if they are `whole`, and then closes it;
    /// with the number of connections.
    async fn agreeable(writes: usize, whole: bool) -> (DataNodeAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let xfer_port = listener.local_addr().unwrap().port().into();
        let id = DatanodeIDProto { ip_addr: "127.0.0.1".into(), xfer_port, ..Default::default() };
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let stream = TransferStream::from_tcp(socket, &TransferOptions::default()).unwrap();
                tokio::spawn(agree(stream, writes, whole));
            }
        });
        (convert::addr(&id), count)
    }

    async fn agree(mut stream: TransferStream, writes: usize, whole: bool) {
        for _ in 0..writes {
            let Some((Op::WriteBlock, _)) = stream.reader.read_op().await.unwrap() else { return };
            let packets: &[(i64, &[u8])] = if whole { &[(0, DATA), (1, b"")] } else { &[] };
            for (seqno, data) in packets {
                let packet = stream.reader.read_packet().await.unwrap();
                assert_eq!((packet.header.seqno, &packet.data[..]), (*seqno, *data));
                assert_eq!(packet.header.last_packet, data.is_empty());
            }
            let answer =
                BlockOpResponseProto { status: Status::Success as i32, ..Default::default() };
            stream.writer.send_message(&answer).await.unwrap();
        }
    }

    const DATA: &[u8] = b"all of the block";

    async fn write(
        config: &ClientConfig,
        pool: &ConnectionPool,
        addr: &DataNodeAddr,
        whole: bool,
    ) -> TransferStream {
        let target = Target {
            info: DatanodeInfoProto::default(),
            addr: addr.clone(),
            storage_id: String::new(),
            storage_type: 1,
        };
        let (id, stamp) = (BlockId(1 << 30), GenerationStamp(1001));
        let block = Block { pool: "BP-1".to_string(), id, stamp, len: 0 };
        let op = WriteOp {
            block: &block,
            token: &Token::default(),
            client_name: "client",
            targets: std::slice::from_ref(&target),
            stage: Stage::PipelineSetupCreate,
            acked: 0,
            sent: 0,
            new_stamp: block.stamp,
            block_size: 1 << 20,
            checksums: Checksums { kind: ChecksumKind::Crc32c, chunk_len: 512 },
            is_lazy: false,
        };
        let data = Bytes::from_static(DATA);
        let checksums = Bytes::copy_from_slice(&crc32c(0, DATA).to_be_bytes());
        let packet = whole.then_some(Packet { data, checksums });
        open_write(config, pool, &op, packet.as_ref()).await.unwrap()
    }

    #[test]
    fn a_copy_may_take_longer_the_more_there_is_to_copy() {
        let config = ClientConfig::default();
        for (len, seconds) in [(0, 70), (12 << 20, 70), (128 << 20, 120), (1 << 30, 475)] {
            assert_eq!(transfer_timeout(&config, len), Duration::from_secs(seconds), "{len}");
        }
    }

    #[tokio::test]
    async fn a_connection_takes_one_block_after_another_until_it_is_closed() {
        let config = ClientConfig::default();
        for whole in [false, true] {
            let pool = ConnectionPool::new(16, config.idle_connection_expiry);
            for (writes, connections) in [(10, 1), (1, 4), (2, 2)] {
                let (addr, count) = agreeable(writes, whole).await;
                for _ in 0..4 {
                    let stream = write(&config, &pool, &addr, whole).await;
                    keep(&config, &pool, &addr, stream);
                }
                assert_eq!(count.load(Ordering::Relaxed), connections, "{writes} on each, {whole}");
            }
        }
    }
}
