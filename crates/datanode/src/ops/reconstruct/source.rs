//! Reading the units that are there: one task per unit, each with its own buffers.
//!
//! An answer owns its bytes, so one that comes late can only be thrown away. Every chunk is checked
//! against its CRC; a replica with a bad one is reported to the NameNode, and the unit's next holder asked.

use super::buffers::{Buffer, Buffers};
use super::plan::Plan;
use crate::dataset::{Block, Checksum, ReadView};
use crate::error::{DataNodeError, Result};
use crate::node::{Node, transfer_error};
use crate::ops::send::Range as ChunkRange;
use crate::protocol;
use bytes::{Buf, Bytes};
use cairn_codec::crc;
use cairn_net::transfer_stream::TransferStream;
use cairn_stripe::UnitIndex;
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, BlockOpResponseProto, ClientOperationHeaderProto, ClientReadStatusProto,
    DatanodeInfoProto, OpReadBlockProto, Status,
};
use cairn_wire::transfer::Op;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Reads that one unit has to do: it is asked once for each step, and steps end one after the other.
const MAX_ASKS: usize = 64;

/// How long to wait for the empty packet that ends a unit whose bytes are all there.
const FAREWELL: Duration = Duration::from_millis(500);

/// A range of a unit to read for a step.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) step: u64,
    pub(super) range: Range<u64>,
}

/// What came of an [`Ask`].
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) unit: UnitIndex,
    pub(super) step: u64,
    pub(super) result: Result<Piece>,
}

/// Bytes of a unit, checked.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) data: Buffer,
    /// How its source checks it.
    pub(super) checksum: Checksum,
    /// CRC32C of the unit from its start to the end of `data`, unless a part was left out.
    pub(super) crc32c: Option<u32>,
}

/// What a reader reads.
pub(super) struct Wanted {
    /// What its answers are named by.
    pub(super) unit: UnitIndex,
    pub(super) block: Block,
    /// Who has it.
    pub(super) holders: Vec<DatanodeInfoProto>,
    pub(super) is_urgent: bool,
}

impl Wanted {
    pub(super) fn of_plan(plan: &Plan, unit: UnitIndex) -> Wanted {
        let holders = plan.holders[unit.as_usize()].clone();
        Wanted { unit, block: plan.block(unit), holders, is_urgent: plan.is_urgent }
    }
}

/// Starts a reader of a unit within `tasks`. It ends when its asks end, or when the last holder fails.
pub(super) fn start(
    tasks: &mut tokio::task::JoinSet<()>,
    node: &Arc<Node>,
    wanted: Wanted,
    buffers: Arc<Buffers>,
    answers: mpsc::Sender<Answer>,
) -> mpsc::Sender<Ask> {
    let (sender, mut asks) = mpsc::channel::<Ask>(MAX_ASKS);
    let unit = wanted.unit;
    let mut reader = UnitReader {
        node: node.clone(),
        block: wanted.block,
        holders: wanted.holders.into_iter(),
        open: None,
        crc: Some((0, 0)),
        is_urgent: wanted.is_urgent,
        buffers,
    };
    tasks.spawn(async move {
        while let Some(Ask { step, range }) = asks.recv().await {
            let result = reader.read(range).await;
            let is_over = result.is_err();
            if answers.send(Answer { unit, step, result }).await.is_err() || is_over {
                return;
            }
        }
    });
    sender
}

struct UnitReader {
    node: Arc<Node>,
    block: Block,
    /// Those not tried yet.
    holders: std::vec::IntoIter<DatanodeInfoProto>,
    open: Option<(DatanodeInfoProto, Source)>,
    /// CRC32C of the first bytes, and how many.
    crc: Option<(u32, u64)>,
    is_urgent: bool,
    buffers: Arc<Buffers>,
}

enum Source {
    Local(Box<ReadView>),
    Remote(Box<RemoteSource>),
}

impl UnitReader {
    /// Reads from the first holder that can.
    async fn read(&mut self, range: Range<u64>) -> Result<Piece> {
        let len = range.end - range.start;
        self.node.reconstructions.budgets(self.is_urgent).read.pass(len).await;
        let mut last_error = DataNodeError::peer("no DataNode has it");
        loop {
            let Some((holder, mut source)) = self.open.take().or_else(|| self.next_holder()) else {
                return Err(last_error);
            };
            let asked = Instant::now();
            let buffer = self.buffers.take(len as usize);
            match source.read(&self.node, &holder, &self.block, range.clone(), buffer).await {
                Ok((data, checksum)) => {
                    self.node.reconstructions.paces.answered(asked.elapsed());
                    self.open = Some((holder, source));
                    let crc32c = self.sum(&range, &data);
                    return Ok(Piece { data: self.buffers.lend(data), checksum, crc32c });
                }
                Err(error) => {
                    let name = protocol::xfer_name(&holder);
                    tracing::warn!(block = %self.block.id, source = %name, %error, "cannot read a unit");
                    if matches!(error, DataNodeError::Checksum(_)) {
                        self.node.report_bad_block(&self.block, holder);
                    }
                    last_error = error;
                }
            }
        }
    }

    fn next_holder(&mut self) -> Option<(DatanodeInfoProto, Source)> {
        let holder = self.holders.next()?;
        // What another replica gave must not stand for this one.
        self.crc = Some((0, 0));
        Some((holder, Source::Remote(Box::default())))
    }

    fn sum(&mut self, range: &Range<u64>, data: &[u8]) -> Option<u32> {
        self.crc = match self.crc {
            Some((crc, end)) if end == range.start => Some((crc::crc32c(crc, data), range.end)),
            _ => None,
        };
        self.crc.map(|(crc, _)| crc)
    }
}

impl Source {
    async fn read(
        &mut self,
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        block: &Block,
        range: Range<u64>,
        buffer: Vec<u8>,
    ) -> Result<(Vec<u8>, Checksum)> {
        if holder.id.datanode_uuid == node.dataset.uuid() && matches!(self, Source::Remote(_)) {
            *self = Source::Local(Box::new(node.dataset.open_read(block, block.len).await?));
        }
        match self {
            Source::Local(view) => Ok((read_local(view, block, range, buffer)?, view.checksum)),
            Source::Remote(remote) => remote.read(node, holder, block, range, buffer).await,
        }
    }
}

/// Reads a range of a replica on this DataNode.
fn read_local(
    view: &ReadView,
    block: &Block,
    range: Range<u64>,
    mut data: Vec<u8>,
) -> Result<Vec<u8>> {
    let whole = ChunkRange::new(view, range.start, range.end - range.start, true)?;
    let (from, to) = whole.bounds();
    data.resize((to - from) as usize, 0);
    view.read_at(from, &mut data)?;
    let mut crcs = Vec::new();
    view.crcs(from, to, &mut crcs)?;
    check(block, from, view.checksum, &data, &crcs)?;
    data.truncate((range.end - from) as usize);
    data.drain(..(range.start - from) as usize);
    Ok(data)
}

fn check(block: &Block, at: u64, checksum: Checksum, data: &[u8], crcs: &[u8]) -> Result<()> {
    let Checksum { kind, chunk_len } = checksum;
    if crcs.len() != kind.total_len(chunk_len, data.len()) {
        let (id, got) = (block.id, crcs.len());
        return Err(DataNodeError::Peer(format!("{id} at {at} comes with {got} bytes of CRCs")));
    }
    crc::verify_chunks(kind, chunk_len, data, crcs)
        .map_err(|bad| DataNodeError::Checksum(format!("{} at {at}: {bad}", block.id)))
}

/// A unit that another DataNode sends from `at` to its end, as long as it is read in order.
#[derive(Default)]
struct RemoteSource {
    stream: Option<Stream>,
}

struct Stream {
    peer: TransferStream,
    checksum: Checksum,
    seqno: i64,
    /// The next byte to hand out; `rest` starts with it.
    at: u64,
    rest: Bytes,
    /// Where the next packet must start.
    next_packet: u64,
}

impl RemoteSource {
    async fn read(
        &mut self,
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        block: &Block,
        range: Range<u64>,
        mut data: Vec<u8>,
    ) -> Result<(Vec<u8>, Checksum)> {
        let stream = match self.stream.take() {
            Some(stream) if stream.at == range.start => self.stream.insert(stream),
            _ => self.stream.insert(Stream::open(node, holder, block, range.start).await?),
        };
        while stream.at < range.end {
            if stream.rest.is_empty() {
                stream.next_packet(block).await?;
                continue;
            }
            let count = stream.rest.len().min((range.end - stream.at) as usize);
            data.extend_from_slice(&stream.rest[..count]);
            stream.rest.advance(count);
            stream.at += count as u64;
        }
        let checksum = stream.checksum;
        if range.end == block.len
            && let Some(stream) = self.stream.take()
        {
            stream.finish().await;
        }
        Ok((data, checksum))
    }
}

impl Stream {
    /// Source: Hadoop 3.5.0 `BlockReaderRemote#newBlockReader`.
    async fn open(
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        block: &Block,
        from: u64,
    ) -> Result<Stream> {
        let failed = |error| transfer_error(format!("reading {}", block.id), error);
        let mut peer = node.connect(holder, 0).await?;
        let base_header = BaseHeaderProto {
            block: protocol::extended_block(block),
            token: Some(TokenProto::default()),
            trace_info: None,
        };
        let request = OpReadBlockProto {
            header: ClientOperationHeaderProto { base_header, client_name: String::new() },
            offset: from,
            len: block.len - from,
            send_checksums: Some(true),
            caching_strategy: None,
        };
        peer.writer.send_op(Op::ReadBlock, &request).await.map_err(failed)?;
        let answer: BlockOpResponseProto =
            peer.reader.read_message("read answer").await.map_err(failed)?;
        let info = match answer.read_op_checksum_info {
            Some(info) if answer.status == Status::Success as i32 => info,
            _ => return Err(DataNodeError::Peer(answer.message.unwrap_or_default())),
        };
        let checksum = protocol::checksum(&info.checksum)?;
        let start = info.chunk_offset;
        if start > from || from - start >= checksum.chunk_len as u64 {
            let message = format!("asked for {} from {from}, it comes from {start}", block.id);
            return Err(DataNodeError::Peer(message));
        }
        Ok(Stream { peer, checksum, seqno: -1, at: from, rest: Bytes::new(), next_packet: start })
    }

    async fn next_packet(&mut self, block: &Block) -> Result<()> {
        let packet = self.peer.reader.read_packet().await?;
        let header = packet.header;
        let offset = u64::try_from(header.offset_in_block).unwrap_or(u64::MAX);
        if !header.follows(self.seqno) || header.last_packet || offset != self.next_packet {
            return Err(DataNodeError::Peer(format!(
                "{}: packet {} with {} bytes at {offset} where packet {} at {} was due",
                block.id,
                header.seqno,
                header.data_len,
                self.seqno + 1,
                self.next_packet
            )));
        }
        check(block, offset, self.checksum, &packet.data, &packet.checksums)?;
        self.seqno = header.seqno;
        self.next_packet += packet.data.len() as u64;
        self.rest = packet.data;
        // The first packet may start a little earlier, at a chunk's start.
        let early = self.at.saturating_sub(offset).min(self.rest.len() as u64);
        self.rest.advance(early as usize);
        Ok(())
    }

    /// Tells the sender that all was good; its failure to hear that changes nothing.
    async fn finish(mut self) {
        let verdict = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
        self.peer.reader.set_timeout(FAREWELL);
        if self.peer.reader.read_packet().await.is_ok_and(|packet| packet.header.last_packet)
            && let Err(error) = self.peer.writer.send_message(&verdict).await
        {
            tracing::debug!(%error, "the sender does not wait for the verdict");
        }
    }
}
