//! WRITE_BLOCK: sets up a place in a pipeline, then receives packets.
//!
//! ```text
//! upstream --packets--> receive --packets--> mirror
//! upstream <---acks---- acknowledge <-acks-- mirror      (`ops/write_block/{receive,acknowledge}.rs`)
//! ```
//! Both halves run in one task (`ops/write_block/halves.rs`) and end together: a failure of either, or a newer
//! operation on the replica, drops both.
//!
//! Source: Hadoop 3.5.0 `DataXceiver#writeBlock`, `BlockReceiver`.

mod acknowledge;
mod halves;
mod receive;

use super::answer::{answer_error, answer_success};
use crate::cache;
use crate::dataset::{Block, Checksum, Finalized, ReplicaWriter, StorageWish, WriteKind};
use crate::error::{DataNodeError, Result, transfer_error};
use crate::messages;
use crate::node::Node;
use crate::peers::{Kind, Measured};
use acknowledge::Acknowledger;
use cairn_net::transfer_stream::{TransferStream, trace_info};
use cairn_process::disk_work::step_aside;
use cairn_stripe::{GenerationStamp, StorageType};
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, ClientOperationHeaderProto, OpWriteBlockProto,
    OpWriteBlockProtoBlockConstructionStage as Stage, Status,
};
use cairn_wire::transfer::Op;
use halves::Handover;
pub(crate) use receive::Receiver;
use std::sync::Arc;

/// What a request asks for, decoded.
struct Request {
    block: Block,
    stage: Stage,
    new_gs: GenerationStamp,
    checksum: Checksum,
    wish: StorageWish,
    message: OpWriteBlockProto,
}

impl Request {
    /// `may_be_lazy` says whether the writer may have the replica in memory, if it wants.
    fn decode(message: OpWriteBlockProto, may_be_lazy: bool) -> Result<Request> {
        let stage = Stage::try_from(message.stage)
            .map_err(|_| DataNodeError::peer(format!("unknown stage {}", message.stage)))?;
        let storage_type = StorageType::by_number(message.storage_type.unwrap_or_default());
        let request = Request {
            block: messages::block(&message.header.base_header.block),
            stage,
            new_gs: GenerationStamp(message.latest_generation_stamp),
            checksum: messages::checksum(&message.requested_checksum)?,
            wish: StorageWish {
                storage_type,
                storage_id: message.storage_id.clone().unwrap_or_default(),
                // The NameNode names memory for copies that a group makes needless soon.
                in_memory: storage_type == StorageType::RamDisk
                    || (may_be_lazy && message.allow_lazy_persist()),
                is_type_needed: false,
            },
            message,
        };
        if request.is_transfer() && !request.message.targets.is_empty() {
            return Err(DataNodeError::peer(format!(
                "{stage:?} does not support multiple targets"
            )));
        }
        Ok(request)
    }

    /// Whether a client writes, and waits for acknowledgements.
    fn is_client(&self) -> bool {
        !self.message.header.client_name.is_empty()
    }

    fn is_transfer(&self) -> bool {
        matches!(self.stage, Stage::TransferRbw | Stage::TransferFinalized)
    }

    /// Whether a client writes a unit of a block group as a replica, through a pipeline: one that knows no erasure coding.
    fn is_unit_in_pipeline(&self) -> bool {
        self.is_client() && self.block.id.is_striped() && !self.message.targets.is_empty()
    }

    /// The mirror, if it is to be measured: the last one of a pipeline, where nobody behind it makes it wait.
    ///
    /// Source: Hadoop 3.5.0 `BlockReceiver#trackSendPacketToLastNodeInPipeline`.
    fn measured<'a>(&self, node: &'a Node) -> Option<Measured<'a>> {
        let [last] = &self.message.targets[..] else { return None };
        node.peers.of(&last.id, Kind::Send)
    }

    /// The same request for the next DataNode.
    fn forwarded(&self) -> OpWriteBlockProto {
        let m = &self.message;
        OpWriteBlockProto {
            targets: m.targets[1..].to_vec(),
            storage_type: m.target_storage_types.first().copied(),
            target_storage_types: m.target_storage_types.get(1..).unwrap_or_default().to_vec(),
            pinning: m.target_pinnings.first().copied(),
            storage_id: m.target_storage_ids.first().cloned(),
            target_storage_ids: m.target_storage_ids.get(1..).unwrap_or_default().to_vec(),
            header: self.forwarded_header(),
            ..m.clone()
        }
    }

    /// The next one is asked by this operation, where a trace is recorded.
    fn forwarded_header(&self) -> ClientOperationHeaderProto {
        let mut header = self.message.header.clone();
        if let Some(info) = trace_info() {
            header.base_header.trace_info = Some(info);
        }
        header
    }
}

/// Serves the operation. A client learns of a failure here by the connection's end, as with Hadoop: it then
/// knows which DataNode of the pipeline to leave out.
pub(crate) async fn serve(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    message: OpWriteBlockProto,
) -> Result<bool> {
    // Source: Hadoop 3.5.0 `DataXceiver#writeBlock`.
    let may_be_lazy = node.config.non_local_lazy_persist || stream.is_local();
    let request = Request::decode(message, may_be_lazy)?;
    if request.is_unit_in_pipeline() {
        let error = DataNodeError::Peer(format!(
            "{} is a block group, and its client knows no erasure coding: it is to use the address of \
             cairn.namenode.plain.rpc-address",
            request.block.id
        ));
        return answer_error(node, stream, Op::WriteBlock, "opWriteBlock", &error).await;
    }
    let served = serve_request(node, stream, &request).await;
    served.inspect_err(|error| {
        if let DataNodeError::NoSpace { .. } = error {
            tracing::warn!(block = %request.block.id, %error, "a write is refused");
        }
        node.check_volume(error);
        node.note_corrupt(&request.block, error);
        if !request.is_client() {
            report_failed_copy(node, &request, error);
        }
    })
}

/// A copy that the NameNode has ordered has failed here. The sender is not answered, and so cannot tell; what
/// it can tell, that the connection broke, it tells itself.
fn report_failed_copy(node: &Arc<Node>, request: &Request, error: &DataNodeError) {
    let (block, own) = (&request.block, node.dataset.uuid());
    let suspect = match error {
        DataNodeError::Checksum(_) => {
            let Some(source) = &request.message.source else { return };
            // Source: Hadoop 3.5.0 `BlockReceiver#verifyChunks`.
            node.report_bad_block(block, source.clone());
            source.id.datanode_uuid.as_str()
        }
        DataNodeError::Disk { .. }
        | DataNodeError::Unsynced { .. }
        | DataNodeError::NoSpace { .. }
        | DataNodeError::Storage { .. }
        | DataNodeError::Replica(_) => own,
        _ => return,
    };
    node.report_failed_work((block.id, block.gs), own, Some(suspect), error);
}

async fn serve_request(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    request: &Request,
) -> Result<bool> {
    let is_close_recovery = request.is_client() && request.stage == Stage::PipelineCloseRecovery;
    let writer = match is_close_recovery {
        true => {
            let (gs, len) = (request.new_gs, request.message.min_bytes_rcvd);
            let done = node.dataset.recover_close(&request.block, gs, len).await?;
            node.metrics.written_by_clients.blocks.add(1);
            node.report_received(&done, None);
            step_aside().await;
            None
        }
        false => {
            let mut writer = open(node, request).await?;
            writer.set_caching(request.message.caching_strategy.as_ref());
            Some(writer)
        }
    };
    stream.reader.set_behind(request.message.targets.len());
    // Before a byte comes that nobody has checked.
    cache::recheck(node, request.block.id);
    let stopped = async {
        match &writer {
            Some(writer) => writer.stopped().await,
            None => std::future::pending().await,
        }
    };
    let mirror = tokio::select! {
        mirror = connect_mirror(node, stream, request) => mirror?,
        () = stopped => return Err(DataNodeError::Stopped),
    };
    let Some(writer) = writer else { return Ok(true) };
    match request.is_client() && !request.is_transfer() {
        true => receive_from_client(node, stream, writer, mirror, request).await.map(|()| true),
        false => receive_copy(node, stream, writer, mirror, request).await,
    }
}

/// Opens the replica as the stage wants it.
async fn open(node: &Arc<Node>, request: &Request) -> Result<ReplicaWriter> {
    let (data, block, gs) = (&node.dataset, &request.block, request.new_gs);
    let (min, max) = (request.message.min_bytes_rcvd, request.message.max_bytes_rcvd);
    let create = |kind| data.create(block, gs, kind, &request.wish, request.checksum);
    if !request.is_client() || request.is_transfer() {
        return create(WriteKind::Temporary { is_transfer: request.is_transfer() }).await;
    }
    let writer = match request.stage {
        Stage::PipelineSetupCreate => create(WriteKind::Rbw).await?,
        Stage::PipelineSetupStreamingRecovery => {
            return data.recover_rbw(block, gs, (min, max)).await;
        }
        Stage::PipelineSetupAppend => data.append(block, gs, min).await?,
        Stage::PipelineSetupAppendRecovery => data.recover_append(block, gs, min).await?,
        other => {
            return Err(DataNodeError::peer(format!(
                "Unsupported stage {other:?} while receiving block"
            )));
        }
    };
    let (id, gs) = writer.block();
    node.reports.receiving(id, gs, writer.len(), writer.storage_id());
    // Who tells the NameNode goes first on this thread, which may come to wait for a disk.
    step_aside().await;
    Ok(writer)
}

/// Connects to the next DataNode of the pipeline, and answers upstream whether all of it stands.
async fn connect_mirror(
    node: &Node,
    stream: &mut TransferStream,
    request: &Request,
) -> Result<Option<TransferStream>> {
    let wants_answer = request.is_client() && !request.is_transfer();
    let mut answer = BlockOpResponseProto {
        status: Status::Success as i32,
        first_bad_link: Some(String::new()),
        ..Default::default()
    };
    let mut mirror = None;
    if let Some(target) = request.message.targets.first() {
        match set_up_mirror(node, request, wants_answer).await {
            Ok((next, its_answer)) => {
                if let Some(its_answer) = its_answer {
                    answer.status = its_answer.status;
                    answer.first_bad_link = Some(its_answer.first_bad_link.unwrap_or_default());
                }
                mirror = Some(next);
            }
            Err(error) if wants_answer => {
                answer.status = Status::Error as i32;
                answer.first_bad_link = Some(messages::xfer_name(target));
                stream.writer.send_message(&answer).await?;
                return Err(error);
            }
            Err(error) => {
                tracing::info!(%error, "continuing without the mirror");
                let block = (request.block.id, request.block.gs);
                let suspect = target.id.datanode_uuid.as_str();
                for lost in &request.message.targets {
                    let lost = lost.id.datanode_uuid.as_str();
                    node.report_failed_work(block, lost, Some(suspect), &error);
                }
            }
        }
    }
    if wants_answer {
        // Who sends packets already learns it with their acknowledgements.
        let is_begun = request.stage == Stage::PipelineSetupCreate && stream.reader.has_more();
        match is_begun {
            true => stream.writer.hold_message(&answer),
            false => stream.writer.send_message(&answer).await?,
        }
    }
    Ok(mirror)
}

async fn set_up_mirror(
    node: &Node,
    request: &Request,
    wants_answer: bool,
) -> Result<(TransferStream, Option<BlockOpResponseProto>)> {
    let targets = &request.message.targets;
    let token = request.message.header.base_header.token.clone().unwrap_or_default();
    let mut mirror = node.connect(&targets[0], targets.len(), &token).await?;
    let failed =
        |error| transfer_error(format!("mirror {}", messages::xfer_name(&targets[0])), error);
    mirror.writer.send_op(Op::WriteBlock, &request.forwarded()).await.map_err(failed)?;
    let answer = match wants_answer {
        true => Some(mirror.reader.read_message("pipeline answer").await.map_err(failed)?),
        false => None,
    };
    Ok((mirror, answer))
}

async fn receive_from_client(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    writer: ReplicaWriter,
    mirror: Option<TransferStream>,
    request: &Request,
) -> Result<()> {
    let (mirror_in, mirror_out) = mirror.map(TransferStream::split).unzip();
    let handover = Handover::default();
    let stopped = writer.stopped();
    let acknowledger = Acknowledger {
        node: node.clone(),
        block: request.block.id,
        notes: writer.acks(),
        pending: &handover,
        upstream: &mut stream.writer,
        mirror: mirror_in,
        answers: Vec::new(),
    };
    let flow = &node.metrics.written_by_clients;
    let receiver = Receiver::new(writer, &mut stream.reader, mirror_out, request.checksum, flow)
        .measuring(request.measured(node))
        .may_lack_crcs(request.message.allow_lazy_persist());
    let received = receiver.receive_acknowledged(&handover, &node.write_budget);
    let both = handover.run(received, acknowledger.run());
    tokio::select! {
        ended = both => ended,
        () = stopped => Err(DataNodeError::Stopped),
    }
}

/// Receives a copy from another DataNode. Returns whether the connection can go on.
async fn receive_copy(
    node: &Arc<Node>,
    stream: &mut TransferStream,
    writer: ReplicaWriter,
    mirror: Option<TransferStream>,
    request: &Request,
) -> Result<bool> {
    let stopped = writer.stopped();
    let mirror_out = mirror.map(|mirror| mirror.writer);
    let flow = &node.metrics.written_by_datanodes;
    let receiver = Receiver::new(writer, &mut stream.reader, mirror_out, request.checksum, flow)
        .measuring(request.measured(node));
    let writer = tokio::select! {
        received = receiver.receive_all(Some(&node.write_budget)) => received?,
        () = stopped => return Err(DataNodeError::Stopped),
    };
    if request.stage == Stage::TransferRbw {
        let visible = request.block.len;
        crate::dataset::blocking(move || writer.convert_to_rbw(visible)).await?;
    } else {
        let done: Finalized = writer.finalize().await?;
        node.report_received(&done, None);
    }
    flow.blocks.add(1);
    if request.is_transfer() {
        answer_success(stream).await?;
    }
    Ok(true)
}
