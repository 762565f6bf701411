//! READ_BLOCK.

use super::answer::{answer_error, is_hang_up};
use super::send::{Packets, Range, Sending, hear_verdict};
use super::virtual_block;
use crate::dataset::{Block, Checksum, DiskReader, ReadView, blocking};
use crate::error::{DataNodeError, Result};
use crate::messages;
use crate::node::{Node, SOURCE_BUFFER};
use cairn_codec::crc::{self, ChecksumKind};
use cairn_net::transfer_stream::{TransferError, TransferStream};
use cairn_stripe::group::SUM_LEN;
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, OpReadBlockProto, ReadOpChecksumInfoProto, Status,
};
use cairn_wire::transfer::Op;
use std::sync::Arc;

/// Data bytes of a packet at most, whatever a reader takes.
const LONGEST_PACKET: usize = 1 << 20;
/// How CRCs are checked that are sent as bytes.
const SUMS_CHECKSUM: Checksum = Checksum { kind: ChecksumKind::Crc32c, chunk_len: 512 };

/// Sends what was asked for, then reads the client's verdict.
///
/// Source: Hadoop 3.5.0 `DataXceiver#readBlock`.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReadBlockProto,
) -> Result<bool> {
    let block = messages::block(&request.header.base_header.block);
    let is_client = !request.header.client_name.is_empty();
    let is_marked = request.from_server();
    if !is_marked && let Err(error) = virtual_block::check_unfenced(node, &block) {
        return refuse(node, stream, &error).await;
    }
    if is_client && !is_marked && virtual_block::may_be_elsewhere(node, &block) {
        return virtual_block::serve_read(node, stream, request, &block).await;
    }
    if request.from_disk() || request.sums() {
        return serve_server(node, stream, request, &block).await;
    }
    match send_here(node, stream, &request, &block, None).await? {
        Ok(()) => hear_verdict(node, stream, &block).await,
        Err(error) => refuse(node, stream, &error).await,
    }
}

/// Sends what was asked for of a replica that is here; why nothing of it can be read, if so. `answered` says which of several
/// blocks it is.
pub(super) async fn send_here(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &OpReadBlockProto,
    block: &Block,
    answered: Option<u32>,
) -> Result<Result<()>> {
    let (offset, len) =
        if answered.is_some() { (0, block.len) } else { (request.offset, request.len) };
    let view = match node.dataset.open_kept(block, offset.saturating_add(len)).await {
        Ok(view) => view,
        Err(error) => {
            node.note_read_error(block, &error);
            return Ok(Err(error));
        }
    };
    let with_crcs = request.send_checksums.unwrap_or(true);
    let range = match Range::new(&view, offset, len, with_crcs) {
        Ok(range) => range,
        Err(error) => return Ok(Err(error)),
    };
    let is_client = !request.header.client_name.is_empty();
    let flow = match is_client {
        true => &node.metrics.read_by_clients,
        false => &node.metrics.read_by_datanodes,
    };
    if !is_client {
        // Another DataNode, for a rebuild, as with Hadoop's `StripedBlockReader`.
        stream.writer.set_send_buffer(SOURCE_BUFFER).map_err(TransferError::from)?;
    }
    node.dataset.note_read_in_memory(block.id);
    // It travels with the first packet.
    let answer = range.answer();
    let storage_uuid = request.from_server().then(|| view.storage_id().to_string());
    stream.writer.hold_message(&BlockOpResponseProto { storage_uuid, answered, ..answer });
    let how = Sending::new(node, flow, Some(&node.read_budget), request.caching_strategy.clone());
    let longest_packet = request.longest_packet.map_or(0, |len| len as usize).min(LONGEST_PACKET);
    let how = Sending { longest_packet, ..how };
    let sent = range.send(&mut stream.writer, &how).await;
    if sent.as_ref().map_or_else(is_hang_up, |()| true) {
        flow.blocks.add(1);
    }
    sent.inspect_err(|error| {
        // Whoever tries again opens the files anew.
        node.dataset.close_kept(block.id);
        node.note_read_error(block, error);
    })?;
    Ok(Ok(()))
}

/// Serves what only Cairn's DataNodes ask for: a replica as its disk has it, or the CRCs of its chunks as bytes.
async fn serve_server(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: OpReadBlockProto,
    block: &Block,
) -> Result<bool> {
    stream.writer.set_send_buffer(SOURCE_BUFFER).map_err(TransferError::from)?;
    let opened = async {
        let view = Arc::new(node.dataset.open_read(block, block.len).await?);
        let source = match request.sums() {
            true => Marked::sums(view, &request)?,
            false => Marked::on_disk(node, view, &request, block).await?,
        };
        Ok::<_, DataNodeError>(source)
    };
    let mut source = match opened.await {
        Ok(source) => source,
        Err(error) => {
            node.note_read_error(block, &error);
            return refuse(node, stream, &error).await;
        }
    };
    stream.writer.hold_message(&source.answer());
    let flow = &node.metrics.read_by_datanodes;
    let mut packets = Packets::new(&mut stream.writer, source.at);
    loop {
        let read = source.next().await;
        let (data, crcs) = read.inspect_err(|error| node.note_read_error(block, error))?;
        flow.bytes.add(data.len() as u64);
        packets.send(&data, &crcs).await?;
        if data.is_empty() {
            break;
        }
    }
    flow.blocks.add(1);
    hear_verdict(node, stream, block).await
}

/// What a server has asked for, read as it is sent.
struct Marked {
    view: Arc<ReadView>,
    /// `None` for CRCs.
    disk: Option<DiskReader>,
    checksum: Checksum,
    at: u64,
    to: u64,
}

impl Marked {
    async fn on_disk(
        node: &Arc<Node>,
        view: Arc<ReadView>,
        request: &OpReadBlockProto,
        block: &Block,
    ) -> Result<Marked> {
        let disk = Some(node.dataset.read_from_disk(block, &view).await?);
        let (at, to) = Range::new(&view, request.offset, request.len, true)?.bounds();
        let checksum = view.checksum;
        Ok(Marked { view, disk, checksum, at, to })
    }

    fn sums(view: Arc<ReadView>, request: &OpReadBlockProto) -> Result<Marked> {
        let len = view.end.div_ceil(view.checksum.chunk_len as u64) * SUM_LEN;
        let chunk = SUMS_CHECKSUM.chunk_len as u64;
        let end = request.offset.checked_add(request.len).filter(|end| *end <= len);
        let end = end.filter(|_| view.checksum.kind != ChecksumKind::Null);
        let end = end.ok_or_else(|| DataNodeError::peer(format!("it has {len} bytes of CRCs")))?;
        let (at, to) =
            (request.offset - request.offset % chunk, end.next_multiple_of(chunk).min(len));
        Ok(Marked { view, disk: None, checksum: SUMS_CHECKSUM, at, to })
    }

    fn answer(&self) -> BlockOpResponseProto {
        let checksum = messages::checksum_proto(self.checksum);
        BlockOpResponseProto {
            status: Status::Success as i32,
            read_op_checksum_info: Some(ReadOpChecksumInfoProto {
                checksum,
                chunk_offset: self.at,
            }),
            storage_uuid: Some(self.view.storage_id().to_string()),
            ..Default::default()
        }
    }

    /// The next bytes and the CRCs of their chunks; none at the end.
    async fn next(&mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        let Checksum { kind, chunk_len } = self.checksum;
        let step = (LONGEST_PACKET / chunk_len).max(1) * chunk_len;
        let (at, end) = (self.at, (self.at + step as u64).min(self.to));
        if at == end {
            return Ok((Vec::new(), Vec::new()));
        }
        self.at = end;
        self.view.turn().await?;
        let (view, waiting, disk) = (self.view.clone(), self.view.waiting(), self.disk.take());
        let work = move || {
            let _waiting = waiting;
            match disk {
                Some(mut disk) => {
                    let (bytes, crcs) = disk.read_chunks(&view, at, end)?;
                    Ok((bytes, crcs, Some(disk)))
                }
                None => {
                    let bytes = view.sums(at, (end - at) as usize)?;
                    let mut crcs = vec![0; kind.total_len(chunk_len, bytes.len())];
                    crc::chunk_crcs(kind, chunk_len, &bytes, &mut crcs);
                    Ok((bytes, crcs, None))
                }
            }
        };
        let (bytes, crcs, disk) = blocking(work).await?;
        self.disk = disk;
        Ok((bytes, crcs))
    }
}

/// Says why nothing is read, and closes: who sleeps until the bytes are there is woken by that.
async fn refuse(node: &Node, stream: &mut TransferStream, error: &DataNodeError) -> Result<bool> {
    answer_error(node, stream, Op::ReadBlock, "opReadBlock", error).await.map(|_| false)
}
