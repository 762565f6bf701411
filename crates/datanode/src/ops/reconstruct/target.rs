//! Writing a rebuilt unit: to another DataNode as a copy, or here. It becomes a replica only when it is
//! committed; whatever ends before that leaves nothing behind.
//!
//! Source: Hadoop 3.5.0 `StripedBlockWriter`.

use super::buffers::Buffer;
use super::plan::Target;
use crate::dataset::{Block, Checksum, ReplicaWriter, WriteKind};
use crate::error::{DataNodeError, Result, transfer_error};
use crate::messages;
use crate::node::Node;
use cairn_net::transfer_stream::TransferStream;
use cairn_net::transfer_stream::trace_info;
use cairn_process::disk_work::movable;
use cairn_security::block_token::AccessMode;
use cairn_stripe::GenerationStamp;
use cairn_trace::carried;
use cairn_wire::proto::hdfs::{
    BaseHeaderProto, ClientOperationHeaderProto, DatanodeInfoProto, OpWriteBlockProto,
    OpWriteBlockProtoBlockConstructionStage as Stage,
};
use cairn_wire::transfer::{Op, PacketHeader};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Pieces that wait for a slow target.
const MAX_WAITING: usize = 2;
/// Pieces of a target that are not written yet: those that wait, the one that is written, the one that is made.
pub(super) const MAX_HELD: usize = MAX_WAITING + 2;

/// What a writer is told.
pub(super) enum Order {
    /// The next bytes of the unit, and the CRCs of their chunks.
    Write { data: Buffer, crcs: Vec<u8> },
    /// They were all, and they are proven.
    Commit,
}

/// What a writer writes, and where.
pub(super) struct Destination {
    pub(super) block: Block,
    pub(super) target: Target,
    pub(super) checksum: Checksum,
    /// Whose budget it uses.
    pub(super) is_urgent: bool,
    /// It is durable before it becomes a replica, whatever the settings of its DataNode.
    pub(super) is_synced: bool,
}

/// Starts the writer `at` within `tasks`. When its orders end without a commit, the replica is dropped.
pub(super) fn start(
    tasks: &mut JoinSet<(usize, Result<()>)>,
    node: &Arc<Node>,
    at: usize,
    to: Destination,
) -> mpsc::Sender<Order> {
    let (sender, orders) = mpsc::channel(MAX_WAITING);
    let node = node.clone();
    let work = async move { (at, write(&node, &to, orders).await) };
    tasks.spawn(movable(carried(work)));
    sender
}

async fn write(
    node: &Arc<Node>,
    to: &Destination,
    mut orders: mpsc::Receiver<Order>,
) -> Result<()> {
    let Destination { block, target, checksum, is_urgent, is_synced } = to;
    let (checksum, is_urgent) = (*checksum, *is_urgent);
    let mut sink = Sink::open(node, block, target, checksum).await?;
    // Each packet is whole chunks, but for the unit's last.
    let chunks = match sink {
        Sink::Local { .. } => usize::MAX / checksum.chunk_len,
        Sink::Remote { .. } => (node.config.send_packet_len / checksum.chunk_len).max(1),
    };
    let crc_len = checksum.kind.len();
    while let Some(order) = orders.recv().await {
        let Order::Write { data, crcs } = order else { return sink.commit(node, *is_synced).await };
        node.reconstructions.budgets(is_urgent).write.pass(data.len() as u64).await;
        for (at, packet) in data.chunks(chunks * checksum.chunk_len).enumerate() {
            let first = at * chunks * crc_len;
            let len = checksum.kind.total_len(checksum.chunk_len, packet.len());
            sink.write(node, packet, &crcs[first..first + len]).await?;
        }
    }
    sink.discard().await;
    Ok(())
}

enum Sink {
    Local { writer: ReplicaWriter, checksum: Checksum },
    Remote { peer: TransferStream, name: String, seqno: i64, at: u64 },
}

impl Sink {
    async fn open(
        node: &Arc<Node>,
        block: &Block,
        target: &Target,
        checksum: Checksum,
    ) -> Result<Sink> {
        if target.node.id.datanode_uuid == node.dataset.uuid() {
            let kind = WriteKind::Temporary { is_transfer: false };
            let wish = target.wish();
            let writer =
                node.dataset.create(block, GenerationStamp(0), kind, &wish, checksum).await?;
            return Ok(Sink::Local { writer, checksum });
        }
        let name = messages::xfer_name(&target.node);
        let token = node.block_tokens.own(block, AccessMode::Write);
        let mut peer = node.connect(&target.node, 0, &token).await?;
        let request = request(node, block, target, checksum);
        let sent = peer.writer.send_op(Op::WriteBlock, &request).await;
        sent.map_err(|error| transfer_error(format!("writing {} to {name}", block.id), error))?;
        Ok(Sink::Remote { peer, name, seqno: 0, at: 0 })
    }

    async fn write(&mut self, node: &Arc<Node>, data: &[u8], crcs: &[u8]) -> Result<()> {
        match self {
            Sink::Local { writer, checksum } => {
                tokio::select! {
                    biased;
                    () = writer.stopped() => return Err(DataNodeError::Stopped),
                    () = std::future::ready(()) => {}
                }
                let written = writer.write_packet(writer.len(), data, crcs, *checksum);
                let flow = &node.metrics.written_by_datanodes;
                written.inspect_err(|error| node.check_volume(error))?;
                flow.bytes.add(data.len() as u64);
                Ok(())
            }
            Sink::Remote { peer, seqno, at, .. } => {
                let header = PacketHeader {
                    offset_in_block: *at as i64,
                    seqno: *seqno,
                    last_packet: false,
                    data_len: data.len() as u32,
                    sync_block: false,
                };
                peer.writer.send_packet(&header, crcs, data).await?;
                *seqno += 1;
                *at += data.len() as u64;
                Ok(())
            }
        }
    }

    /// Makes it a replica.
    async fn commit(self, node: &Arc<Node>, is_synced: bool) -> Result<()> {
        match self {
            Sink::Local { writer, .. } => {
                if is_synced {
                    writer.sync().await?;
                }
                let done = writer.finalize().await?;
                node.metrics.written_by_datanodes.blocks.add(1);
                node.report_received(&done, None);
                Ok(())
            }
            Sink::Remote { mut peer, name, seqno, at } => {
                let header = PacketHeader {
                    offset_in_block: at as i64,
                    seqno,
                    last_packet: true,
                    data_len: 0,
                    sync_block: is_synced,
                };
                peer.writer.send_packet(&header, &[], &[]).await?;
                close(&mut peer, &name).await
            }
        }
    }

    /// Lets the replica go: the receiver deletes a copy that ends without its last packet.
    async fn discard(self) {
        if let Sink::Remote { mut peer, name, .. } = self
            && let Err(error) = close(&mut peer, &name).await
        {
            tracing::debug!(target = %name, %error, "cannot close the connection to a target");
        }
    }
}

/// Nothing is answered; a closed connection says that all was read.
async fn close(peer: &mut TransferStream, name: &str) -> Result<()> {
    let failed = |e: std::io::Error| transfer_error(format!("closing {name}"), e.into());
    peer.writer.shutdown().map_err(failed)?;
    peer.reader.wait_closed(1 << 10).await;
    Ok(())
}

fn request(
    node: &Arc<Node>,
    block: &Block,
    target: &Target,
    checksum: Checksum,
) -> OpWriteBlockProto {
    let base_header = BaseHeaderProto {
        block: messages::extended_block(block),
        token: Some(node.block_tokens.own(block, AccessMode::Write)),
        trace_info: trace_info(),
    };
    let source = node.registration().ok();
    OpWriteBlockProto {
        // Without a client's name it is a copy: temporary until its last packet, and not acknowledged.
        header: ClientOperationHeaderProto { base_header, client_name: String::new() },
        source: source.map(|reg| DatanodeInfoProto { id: reg.datanode_id, ..Default::default() }),
        stage: Stage::PipelineSetupCreate as i32,
        requested_checksum: messages::checksum_proto(checksum),
        storage_type: target.storage_type,
        storage_id: target.storage_id.clone(),
        ..Default::default()
    }
}
