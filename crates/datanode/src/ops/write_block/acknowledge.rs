//! The acknowledging half: waits for the mirror, finalizes the block with its last packet, and answers upstream.
//!
//! Source: Hadoop 3.5.0 `BlockReceiver.PacketResponder`.

use super::halves::{Handover, Pending};
use crate::dataset::AckNotes;
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use crate::slow_io::Step;
use cairn_net::transfer_stream::{TransferReader, TransferWriter};
use cairn_stripe::BlockId;
use cairn_wire::proto::hdfs::{PipelineAckProto, Status};
use cairn_wire::rpc;
use cairn_wire::transfer::{AckFlag, UNKNOWN_SEQNO, ack_flags, pipeline_ack};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

/// Answers the packets of one block in order.
pub(super) struct Acknowledger<'a> {
    pub(super) node: Arc<Node>,
    pub(super) block: BlockId,
    pub(super) notes: AckNotes,
    pub(super) pending: &'a Handover,
    pub(super) upstream: &'a mut TransferWriter,
    pub(super) mirror: Option<TransferReader>,
    /// Encoded answers that are not sent yet.
    pub(super) answers: Vec<u8>,
}

impl Acknowledger<'_> {
    /// Runs until the last packet is answered.
    pub(super) async fn run(mut self) -> Result<()> {
        loop {
            let packet = match self.pending.try_next() {
                Some(packet) => packet,
                None => {
                    self.send_answers().await?;
                    self.pending.next().await
                }
            };
            if self.answer(packet).await? {
                return self.send_answers().await;
            }
        }
    }

    /// Answers a packet, together with those after it if these are there already. Returns whether it is the last.
    async fn answer(&mut self, mut packet: Pending) -> Result<bool> {
        let is_last = packet.last.is_some();
        if let Some(writer) = &packet.last {
            writer.turn().await?;
        }
        // The block is made durable here while the mirror does the same.
        let finalizing = packet.last.take().map(|writer| {
            let node = self.node.clone();
            writer.finalize_then(move |done| {
                node.metrics.written_by_clients.blocks.add(1);
                node.report_received(done, None);
            })
        });
        let received = Instant::now();
        let (flags, mirror_is_good) = match self.downstream(&packet).await? {
            Downstream::None => (Vec::new(), true),
            Downstream::Acked(flags) => (flags, true),
            Downstream::Failed => (vec![AckFlag::from(Status::Error)], false),
        };
        // Who has sent the end waits for its answer only: those before it travel with that.
        if let Some(finalizing) = finalizing {
            finalizing.await?;
        }
        if flags.first().is_some_and(|flag| flag.status() == Status::ErrorChecksum) {
            self.send_answers().await?;
            // What this DataNode sent was good when it was checked here, so this DataNode is to blame.
            return Err(DataNodeError::Checksum(
                "the mirror received corrupt data from here".into(),
            ));
        }
        let status = if mirror_is_good { packet.status } else { Status::Success };
        if status == Status::Success && flags.iter().all(|flag| flag.status() == Status::Success) {
            self.notes.note(packet.end);
        }
        let nanos = if flags.is_empty() { 0 } else { received.elapsed().as_nanos() as u64 };
        let all = std::iter::once(self.node.marks.flag(status)).chain(flags);
        rpc::put_delimited(&pipeline_ack(packet.seqno, all, nanos), &mut self.answers);
        if status == Status::ErrorChecksum {
            self.send_answers().await?;
            return Err(DataNodeError::Checksum("corrupt data received".into()));
        }
        Ok(is_last)
    }

    /// Sends the answers so far.
    async fn send_answers(&mut self) -> Result<()> {
        send(&self.node, self.block, self.upstream, &mut self.answers).await
    }

    /// What the mirror says to `packet`.
    async fn downstream(&mut self, packet: &Pending) -> Result<Downstream> {
        if packet.status != Status::Success {
            return Ok(Downstream::None);
        }
        if packet.mirror_failed {
            self.mirror = None;
            return Ok(Downstream::Failed);
        }
        loop {
            let Some(mirror) = &mut self.mirror else { return Ok(Downstream::None) };
            let ack = {
                let mut reading = pin!(mirror.read_message("pipeline acknowledgement"));
                // Where the mirror's word is not there yet, the answers so far do not wait for it.
                match poll_once(reading.as_mut()).await {
                    Poll::Ready(ack) => ack,
                    Poll::Pending => {
                        send(&self.node, self.block, self.upstream, &mut self.answers).await?;
                        reading.await
                    }
                }
            };
            let ack: PipelineAckProto = match ack {
                Ok(ack) => ack,
                Err(error) => {
                    tracing::info!(%error, "no acknowledgement from the mirror");
                    return Ok(Downstream::Failed);
                }
            };
            let flags = ack_flags(&ack);
            let is_out_of_band =
                ack.seqno == UNKNOWN_SEQNO && flags.iter().all(|f| f.status() != Status::Error);
            if is_out_of_band {
                // A DataNode restarts, say.
                let all = std::iter::once(self.node.marks.flag(Status::Success)).chain(flags);
                rpc::put_delimited(&pipeline_ack(UNKNOWN_SEQNO, all, 0), &mut self.answers);
                self.send_answers().await?;
            } else if ack.seqno == packet.seqno
                || flags.iter().any(|f| f.status() != Status::Success)
            {
                return Ok(Downstream::Acked(flags));
            } else {
                return Err(DataNodeError::peer(format!(
                    "seqno: expected={}, received={}",
                    packet.seqno, ack.seqno
                )));
            }
        }
    }
}

/// Sends `answers`, if there are any, and empties them.
async fn send(
    node: &Node,
    block: BlockId,
    upstream: &mut TransferWriter,
    answers: &mut Vec<u8>,
) -> Result<()> {
    if answers.is_empty() {
        return Ok(());
    }
    let begun = Instant::now();
    upstream.send(answers).await?;
    answers.clear();
    node.dataset.slow_io().note(Step::Ack, block, begun.elapsed(), || upstream.peer_name());
    Ok(())
}

/// What a future says when it is asked once.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

enum Downstream {
    /// There is no mirror.
    None,
    Acked(Vec<AckFlag>),
    Failed,
}
