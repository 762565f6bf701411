//! Reads a byte range of one block from one DataNode, with checksums.
//!
//! Source: Hadoop 3.5.0 `BlockReaderRemote`.

use super::{connect, failure, response};
use crate::error::{ClientError, Result};
use crate::fs::Inner;
use crate::protocol::convert::{self, Token};
use crate::types::{Block, DataNodeAddr};
use bytes::Bytes;
use cairn_codec::crc::{ChecksumKind, verify_chunks};
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::*;
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Longest chunk taken from a DataNode.
const MAX_CHUNK_LEN: u32 = 1 << 20;

/// A read that is under way.
pub(crate) struct BlockReader {
    fs: Arc<Inner>,
    addr: DataNodeAddr,
    block: String,
    stream: TransferStream,
    checksum: ChecksumKind,
    chunk_len: usize,
    /// Offset in the block of the next packet.
    next_packet: u64,
    next_seqno: i64,
    /// Offset in the block of the next byte for the caller.
    at: u64,
    end: u64,
}

/// What to read.
#[derive(Clone, Debug)]
pub(crate) struct ReadRange {
    pub block: Block,
    pub token: Token,
    /// First byte, from the start of the block.
    pub offset: u64,
    /// Bytes, at least 1.
    pub len: u64,
}

impl BlockReader {
    /// Asks a DataNode for a range of a block, over a kept connection if there is one that works.
    pub(crate) async fn open(
        fs: Arc<Inner>,
        addr: DataNodeAddr,
        range: &ReadRange,
    ) -> Result<BlockReader> {
        if let Some(stream) = fs.connections.take(&addr.xfer_addr()) {
            match BlockReader::start(fs.clone(), addr.clone(), range, stream).await {
                Err(ClientError::DataNode { .. }) => {} // closed meanwhile
                done => return done,
            }
        }
        let stream = connect(&fs.config, &addr, 1).await?;
        BlockReader::start(fs, addr, range, stream).await
    }

    async fn start(
        fs: Arc<Inner>,
        addr: DataNodeAddr,
        range: &ReadRange,
        mut stream: TransferStream,
    ) -> Result<BlockReader> {
        let request = OpReadBlockProto {
            header: ClientOperationHeaderProto {
                base_header: BaseHeaderProto {
                    block: convert::block_proto(&range.block),
                    token: Some(range.token.clone()),
                    trace_info: None,
                },
                client_name: fs.client_name.clone(),
            },
            offset: range.offset,
            len: range.len,
            send_checksums: Some(true),
            caching_strategy: Some(CachingStrategyProto { drop_behind: None, readahead: None }),
        };
        let sent = stream.writer.send_op(Op::ReadBlock, &request).await;
        sent.map_err(|error| failure(&addr, error))?;
        let answer = response(&mut stream, &addr).await?;
        let (checksum, chunk_len, first) = checksum_info(answer, range)?;
        Ok(BlockReader {
            fs,
            addr,
            block: range.block.to_string(),
            stream,
            checksum,
            chunk_len,
            next_packet: first,
            next_seqno: 0,
            at: range.offset,
            end: range.offset + range.len,
        })
    }

    /// The next bytes of the range, checked; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        while self.at < self.end {
            let packet = self.stream.reader.read_packet().await;
            let packet = packet.map_err(|error| failure(&self.addr, error))?;
            let header = packet.header;
            let in_order = header.seqno == self.next_seqno
                && u64::try_from(header.offset_in_block).is_ok_and(|at| at == self.next_packet);
            if !in_order || packet.data.is_empty() {
                return Err(self.protocol_error(format!(
                    "packet {} of {} bytes at {} where {} at {} was due",
                    header.seqno,
                    header.data_len,
                    header.offset_in_block,
                    self.next_seqno,
                    self.next_packet
                )));
            }
            self.verify(&packet.data, &packet.checksums)?;
            let start = self.next_packet;
            self.next_packet += packet.data.len() as u64;
            self.next_seqno += 1;
            if self.next_packet <= self.at {
                continue;
            }
            let from = (self.at - start) as usize;
            let to = (self.end.min(self.next_packet) - start) as usize;
            self.at = start + to as u64;
            return Ok(Some(packet.data.slice(from..to)));
        }
        Ok(None)
    }

    /// Ends a read whose range was read whole, so that the connection can be used again. Failures
    /// are of no interest: the bytes are there.
    pub(crate) async fn finish(mut self) {
        if self.at < self.end {
            return;
        }
        let Ok(last) = self.stream.reader.read_packet().await else { return };
        if !last.header.last_packet || !last.data.is_empty() {
            return;
        }
        let status = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
        if self.stream.writer.send_message(&status).await.is_ok() {
            self.fs.connections.put(self.addr.xfer_addr(), self.stream);
        }
    }

    fn verify(&self, data: &[u8], checksums: &[u8]) -> Result<()> {
        if checksums.len() != self.checksum.total_len(self.chunk_len, data.len()) {
            return Err(self.protocol_error("a packet with too few checksums".to_string()));
        }
        verify_chunks(self.checksum, self.chunk_len, data, checksums).map_err(|mismatch| {
            ClientError::Checksum {
                block: self.block.clone(),
                addr: self.addr.xfer_addr(),
                offset: self.next_packet + (mismatch.chunk * self.chunk_len) as u64,
            }
        })
    }

    fn protocol_error(&self, what: String) -> ClientError {
        ClientError::Protocol(format!("{} from {}: {what}", self.block, self.addr))
    }
}

/// All bytes of a range, from one DataNode.
pub(crate) async fn read_whole(
    fs: Arc<Inner>,
    addr: DataNodeAddr,
    range: ReadRange,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(range.len as usize);
    let mut reader = BlockReader::open(fs, addr, &range).await?;
    while let Some(chunk) = reader.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() as u64 != range.len {
        return Err(reader.protocol_error(format!("{} bytes of {}", bytes.len(), range.len)));
    }
    reader.finish().await;
    Ok(bytes)
}

/// How the block is checked, and where the first packet starts: at a chunk, not behind the range.
fn checksum_info(
    answer: BlockOpResponseProto,
    range: &ReadRange,
) -> Result<(ChecksumKind, usize, u64)> {
    let bad = |what: &str| ClientError::Protocol(format!("{}: {what}", range.block));
    let info = answer.read_op_checksum_info.ok_or_else(|| bad("no checksum info"))?;
    let kind = u8::try_from(info.checksum.r#type).ok().and_then(ChecksumKind::from_id);
    let kind = kind.ok_or_else(|| bad("unknown checksum type"))?;
    let chunk_len = info.checksum.bytes_per_checksum;
    if chunk_len == 0 || chunk_len > MAX_CHUNK_LEN {
        return Err(bad("bad chunk length"));
    }
    if info.chunk_offset > range.offset {
        return Err(bad("the read starts behind the range"));
    }
    Ok((kind, chunk_len as usize, info.chunk_offset))
}
