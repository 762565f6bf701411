//! Reading the units that are there: one task per unit, each with its own buffers.
//!
//! What is asked of other DataNodes is marked: they answer from their own disks, or with an error.
//! An answer owns its bytes, so one that comes late can only be thrown away. Every chunk is checked
//! against its CRC; a replica with a bad one is reported to the NameNode, and the unit's next holder asked.

use super::buffers::{Buffer, Buffers};
use super::plan::Plan;
use crate::dataset::{Block, Checksum, DiskReader, ReadView, blocking};
use crate::error::{DataNodeError, Result, transfer_error};
use crate::messages;
use crate::node::Node;
use crate::ops::send::Range as ChunkRange;
use crate::peers::{Kind, Measured};
use bytes::{Buf, Bytes};
use cairn_codec::crc;
use cairn_net::transfer_stream::TransferStream;
use cairn_net::transfer_stream::trace_info;
use cairn_process::disk_work::movable;
use cairn_replica::UnitSum;
use cairn_security::block_token::AccessMode;
use cairn_stripe::UnitIndex;
use cairn_trace::carried;
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
    /// The storage that it was read from, where its DataNode says so.
    pub(super) storage: Option<Arc<str>>,
}

/// What a reader reads.
pub(super) struct Wanted {
    /// What its answers are named by.
    pub(super) unit: UnitIndex,
    pub(super) block: Block,
    /// Who has it.
    pub(super) holders: Vec<DatanodeInfoProto>,
    pub(super) is_urgent: bool,
    /// Where the last read ends.
    pub(super) until: u64,
    pub(super) what: What,
}

/// What of a replica is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    /// Its bytes.
    #[default]
    Bytes,
    /// Its bytes as the disk has them, past the page cache, after they were synced.
    BytesOnDisk,
    /// The CRCs of its chunks, as bytes: only Cairn's DataNodes send these.
    Sums,
}

impl Wanted {
    /// All of a block's bytes.
    pub(super) fn new(block: Block, holders: Vec<DatanodeInfoProto>) -> Wanted {
        let (until, what) = (block.len, What::Bytes);
        Wanted { unit: UnitIndex(0), block, holders, is_urgent: false, until, what }
    }

    /// The same, if the last read ends there or before.
    pub(super) fn until(self, until: u64) -> Wanted {
        Wanted { until: self.until.min(until), ..self }
    }

    pub(super) fn of_plan(plan: &Plan, unit: UnitIndex) -> Wanted {
        let holders = plan.holders[unit.as_usize()].clone();
        Wanted { unit, is_urgent: plan.is_urgent, ..Wanted::new(plan.block(unit), holders) }
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
        asked: Asked { block: wanted.block, until: wanted.until, what: wanted.what },
        holders: wanted.holders.into_iter(),
        open: None,
        sum: UnitSum::default(),
        is_urgent: wanted.is_urgent,
        buffers,
    };
    tasks.spawn(movable(carried(async move {
        while let Some(Ask { step, range }) = asks.recv().await {
            let result = reader.read(range).await;
            let is_over = result.is_err();
            if answers.send(Answer { unit, step, result }).await.is_err() || is_over {
                return;
            }
        }
    })));
    sender
}

struct UnitReader {
    node: Arc<Node>,
    asked: Asked,
    /// Those not tried yet.
    holders: std::vec::IntoIter<DatanodeInfoProto>,
    open: Option<(DatanodeInfoProto, Source)>,
    sum: UnitSum,
    is_urgent: bool,
    buffers: Arc<Buffers>,
}

/// What all reads of a reader have in common.
struct Asked {
    block: Block,
    until: u64,
    what: What,
}

enum Source {
    Local(Arc<ReadView>),
    LocalDisk(Arc<ReadView>, Option<DiskReader>),
    Remote(Box<RemoteSource>),
}

impl UnitReader {
    /// Reads from the first holder that can.
    async fn read(&mut self, range: Range<u64>) -> Result<Piece> {
        let len = range.end - range.start;
        self.node.reconstructions.budgets(self.is_urgent).read.pass(len).await;
        let mut last_error = DataNodeError::peer("no DataNode has it");
        let mut data = self.buffers.take(len as usize);
        loop {
            let Some((holder, mut source)) = self.open.take().or_else(|| self.next_holder()) else {
                return Err(last_error);
            };
            let asked = Instant::now();
            let place = Place { asked: &self.asked, start: range.start, data: &mut data };
            let is_own = holder.id.datanode_uuid == self.node.dataset.uuid();
            let measured = self.node.peers.of(&holder.id, Kind::Read).filter(|_| !is_own);
            let measurement = measured.as_ref().map(Measured::start);
            let read = source.read(&self.node, &holder, place, &mut self.sum).await;
            if let Some(measurement) = measurement {
                measurement.end(read.is_ok());
            }
            match read {
                Ok(checksum) => {
                    self.node.reconstructions.paces.answered(asked.elapsed());
                    let storage = source.storage();
                    self.open = Some((holder, source));
                    let crc32c = self.sum.of_first(range.end);
                    let data = self.buffers.lend(data);
                    return Ok(Piece { data, checksum, crc32c, storage });
                }
                Err(error) => {
                    let name = messages::xfer_name(&holder);
                    tracing::warn!(block = %self.asked.block.id, source = %name, %error, "cannot read a unit");
                    if matches!(error, DataNodeError::Checksum(_)) {
                        self.node.report_bad_block(&self.asked.block, holder);
                    }
                    last_error = error;
                }
            }
        }
    }

    fn next_holder(&mut self) -> Option<(DatanodeInfoProto, Source)> {
        let holder = self.holders.next()?;
        // What another replica gave must not stand for this one.
        self.sum = UnitSum::default();
        Some((holder, Source::Remote(Box::default())))
    }
}

/// Bytes of a unit to read, and where they go: all of them, or it is a failure.
struct Place<'a> {
    asked: &'a Asked,
    start: u64,
    data: &'a mut [u8],
}

impl Source {
    async fn read(
        &mut self,
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        place: Place<'_>,
        sum: &mut UnitSum,
    ) -> Result<Checksum> {
        if holder.id.datanode_uuid == node.dataset.uuid() && matches!(self, Source::Remote(_)) {
            let block = &place.asked.block;
            let view = Arc::new(node.dataset.open_read(block, block.len).await?);
            *self = match place.asked.what {
                What::BytesOnDisk => {
                    let disk = node.dataset.read_from_disk(block, &view).await?;
                    Source::LocalDisk(view, Some(disk))
                }
                What::Bytes | What::Sums => Source::Local(view),
            };
        }
        match self {
            Source::Local(view) if place.asked.what == What::Sums => {
                view.turn().await?;
                let crcs = view.sums(place.start, place.data.len())?;
                place.data.copy_from_slice(&crcs);
                sum.add(place.start, place.data);
                Ok(view.checksum)
            }
            Source::Local(view) => read_local(view, place, sum).map(|()| view.checksum),
            Source::LocalDisk(view, disk) => {
                read_local_disk(view, disk, place, sum).await.map(|()| view.checksum)
            }
            Source::Remote(remote) => remote.read(node, holder, place, sum).await,
        }
    }

    fn storage(&self) -> Option<Arc<str>> {
        match self {
            Source::Local(view) | Source::LocalDisk(view, _) => Some(view.storage_id().into()),
            Source::Remote(remote) => remote.storage.clone(),
        }
    }
}

/// The same past the page cache. Pieces begin with a chunk.
async fn read_local_disk(
    view: &Arc<ReadView>,
    disk: &mut Option<DiskReader>,
    Place { asked, start, data }: Place<'_>,
    sum: &mut UnitSum,
) -> Result<()> {
    let mut reader = disk.take().ok_or(DataNodeError::Stopped)?;
    let end = start + data.len() as u64;
    if !start.is_multiple_of(view.checksum.chunk_len as u64) {
        return Err(DataNodeError::peer("a read past the page cache begins within a chunk"));
    }
    view.turn().await?;
    let (bytes, crcs, reader) = reader_step(view.clone(), move |view| {
        let (bytes, crcs) = reader.read_chunks(view, start, end)?;
        Ok((bytes, crcs, reader))
    })
    .await?;
    *disk = Some(reader);
    check(&asked.block, start, view.checksum, &bytes, &crcs)?;
    sum.add_chunks(start, view.checksum, &bytes, &crcs);
    data.copy_from_slice(&bytes);
    Ok(())
}

async fn reader_step<T: Send + 'static>(
    view: Arc<ReadView>,
    work: impl FnOnce(&ReadView) -> Result<T> + Send + 'static,
) -> Result<T> {
    let waiting = view.waiting();
    blocking(move || {
        let _waiting = waiting;
        work(&view)
    })
    .await
}

/// Reads a range of a replica on this DataNode.
fn read_local(view: &ReadView, place: Place<'_>, sum: &mut UnitSum) -> Result<()> {
    let Place { asked: Asked { block, .. }, start, data } = place;
    let (from, to) = ChunkRange::new(view, start, data.len() as u64, true)?.bounds();
    let mut crcs = Vec::new();
    view.crcs(from, to, &mut crcs)?;
    let is_whole = (from, to) == (start, start + data.len() as u64);
    let mut wide = vec![0; if is_whole { 0 } else { (to - from) as usize }];
    let chunks = if is_whole { &mut *data } else { &mut wide };
    view.read_at(from, chunks)?;
    check(block, from, view.checksum, chunks, &crcs)?;
    match is_whole {
        true => sum.add_chunks(start, view.checksum, data, &crcs),
        false => {
            data.copy_from_slice(&wide[(start - from) as usize..][..data.len()]);
            sum.add(start, data);
        }
    }
    Ok(())
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
    /// What its DataNode has named.
    storage: Option<Arc<str>>,
}

struct Stream {
    peer: TransferStream,
    checksum: Checksum,
    storage: Option<Arc<str>>,
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
        place: Place<'_>,
        sum: &mut UnitSum,
    ) -> Result<Checksum> {
        let Place { asked, start, data: mut left } = place;
        let end = start + left.len() as u64;
        let stream = match self.stream.take() {
            Some(stream) if stream.at == start => self.stream.insert(stream),
            _ => self.stream.insert(Stream::open(node, holder, asked, start).await?),
        };
        while !left.is_empty() {
            let count = match stream.rest.is_empty() {
                true => stream.next_packet(&asked.block, left, sum).await?,
                false => stream.hand_out(left, sum),
            };
            left = &mut left[count..];
        }
        let checksum = stream.checksum;
        self.storage = stream.storage.clone();
        if end == asked.until
            && let Some(stream) = self.stream.take()
        {
            stream.finish().await;
        }
        Ok(checksum)
    }
}

impl Stream {
    /// Source: Hadoop 3.5.0 `BlockReaderRemote#newBlockReader`.
    async fn open(
        node: &Arc<Node>,
        holder: &DatanodeInfoProto,
        Asked { block, until, what }: &Asked,
        from: u64,
    ) -> Result<Stream> {
        let failed = |error| transfer_error(format!("reading {}", block.id), error);
        let token = node.block_tokens.own(block, AccessMode::Read);
        let mut peer = node.connect_to_source(holder, &token).await?;
        let base_header = BaseHeaderProto {
            block: messages::extended_block(block),
            token: Some(token),
            trace_info: trace_info(),
        };
        let request = OpReadBlockProto {
            header: ClientOperationHeaderProto { base_header, client_name: String::new() },
            offset: from,
            len: until.saturating_sub(from),
            send_checksums: Some(true),
            caching_strategy: None,
            from_server: Some(true),
            from_disk: (*what == What::BytesOnDisk).then_some(true),
            sums: (*what == What::Sums).then_some(true),
            ..OpReadBlockProto::default()
        };
        peer.writer.send_op(Op::ReadBlock, &request).await.map_err(failed)?;
        let answer: BlockOpResponseProto =
            peer.reader.read_message("read answer").await.map_err(failed)?;
        let info = match answer.read_op_checksum_info {
            Some(info) if answer.status == Status::Success as i32 => info,
            _ => return Err(DataNodeError::Peer(answer.message.unwrap_or_default())),
        };
        let checksum = messages::checksum(&info.checksum)?;
        let start = info.chunk_offset;
        if start > from || from - start >= checksum.chunk_len as u64 {
            let message = format!("asked for {} from {from}, it comes from {start}", block.id);
            return Err(DataNodeError::Peer(message));
        }
        let storage: Option<Arc<str>> = answer.storage_uuid.map(Arc::from);
        if *what == What::Sums && storage.is_none() {
            // Hadoop's, which has sent the bytes themselves.
            return Err(DataNodeError::peer("its DataNode sends no CRCs by themselves"));
        }
        let (seqno, at, rest, next_packet) = (-1, from, Bytes::new(), start);
        Ok(Stream { peer, checksum, storage, seqno, at, rest, next_packet })
    }

    /// Reads the next packet, to the start of `into` if that is where all of it goes, else to be handed out. Returns
    /// how many bytes `into` has got.
    async fn next_packet(
        &mut self,
        block: &Block,
        into: &mut [u8],
        sum: &mut UnitSum,
    ) -> Result<usize> {
        // The first packet may start a little earlier, at a chunk's start.
        let early = self.at.saturating_sub(self.next_packet);
        let room = if early == 0 { &mut *into } else { &mut [] };
        let packet = self.peer.reader.read_packet_into(room).await?;
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
        let len = header.data_len as usize;
        let data = packet.apart.as_deref().unwrap_or_else(|| &into[..len]);
        check(block, offset, self.checksum, data, &packet.checksums)?;
        self.seqno = header.seqno;
        self.next_packet += len as u64;
        match packet.apart {
            None => {
                sum.add_chunks(offset, self.checksum, data, &packet.checksums);
                self.at += len as u64;
                Ok(len)
            }
            Some(apart) => {
                self.rest = apart;
                self.rest.advance(early.min(len as u64) as usize);
                Ok(0)
            }
        }
    }

    /// Copies what was read already to the start of `into`.
    fn hand_out(&mut self, into: &mut [u8], sum: &mut UnitSum) -> usize {
        let count = self.rest.len().min(into.len());
        let part = self.rest.split_to(count);
        into[..count].copy_from_slice(&part);
        sum.add(self.at, &part);
        self.at += count as u64;
        if self.rest.is_empty() {
            // Its memory can be used for the next packet.
            self.rest = Bytes::new();
        }
        count
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
