//! The acknowledging half: waits for the mirror, finalizes the block with its last packet, and answers upstream.
//!
//! Source: Hadoop 3.5.0 `BlockReceiver.PacketResponder`.

use crate::dataset::{AckNotes, ReplicaWriter};
use crate::error::{DataNodeError, Result};
use crate::node::Node;
use cairn_net::transfer_stream::{TransferError, TransferReader, TransferWriter};
use cairn_wire::proto::hdfs::{PipelineAckProto, Status};
use cairn_wire::transfer::{AckFlag, UNKNOWN_SEQNO, ack_flags, pipeline_ack};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A packet that was received here.
pub(super) struct Pending {
    pub(super) seqno: i64,
    /// Where its bytes end in the block.
    pub(super) end: u64,
    pub(super) status: Status,
    /// The mirror did not get it.
    pub(super) mirror_failed: bool,
    /// The writer, with the last packet of the block.
    pub(super) last: Option<ReplicaWriter>,
}

/// Answers the packets of one block in order.
pub(super) struct Acknowledger<'a> {
    pub(super) node: Arc<Node>,
    pub(super) notes: AckNotes,
    pub(super) pending: mpsc::Receiver<Pending>,
    pub(super) upstream: &'a mut TransferWriter,
    pub(super) mirror: Option<TransferReader>,
}

impl Acknowledger<'_> {
    /// Runs until the last packet is answered, or nothing more will come.
    pub(super) async fn run(mut self) -> Result<()> {
        while let Some(mut packet) = self.pending.recv().await {
            let is_last = packet.last.is_some();
            // The block is made durable here while the mirror does the same.
            let finalizing = packet.last.take().map(|writer| self.finalize(writer));
            let received = Instant::now();
            let (flags, mirror_is_good) = match self.downstream(&packet).await? {
                Downstream::None => (Vec::new(), true),
                Downstream::Acked(flags) => (flags, true),
                Downstream::Failed => (vec![AckFlag::from(Status::Error)], false),
            };
            if let Some(finalizing) = finalizing {
                finalizing.await.map_err(|_| DataNodeError::Stopped)??;
            }
            if flags.first().is_some_and(|flag| flag.status() == Status::ErrorChecksum) {
                // What this DataNode sent was good when it was checked here, so this DataNode is to blame.
                return Err(DataNodeError::Checksum(
                    "the mirror received corrupt data from here".into(),
                ));
            }
            let status = if mirror_is_good { packet.status } else { Status::Success };
            if status == Status::Success
                && flags.iter().all(|flag| flag.status() == Status::Success)
            {
                self.notes.note(packet.end);
            }
            let nanos = if flags.is_empty() { 0 } else { received.elapsed().as_nanos() as u64 };
            let all = std::iter::once(AckFlag::from(status)).chain(flags);
            self.upstream.send_message(&pipeline_ack(packet.seqno, all, nanos)).await?;
            if status == Status::ErrorChecksum {
                return Err(DataNodeError::Checksum("corrupt data received".into()));
            }
            if is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Completes the replica and reports it, also if this connection ends meanwhile.
    fn finalize(&self, writer: ReplicaWriter) -> JoinHandle<Result<()>> {
        let node = self.node.clone();
        tokio::spawn(async move {
            let done = writer.finalize().await?;
            node.report_received(&done, None);
            Ok(())
        })
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
        let Some(mirror) = &mut self.mirror else { return Ok(Downstream::None) };
        match read_ack(mirror, self.upstream, packet.seqno).await? {
            Ok(ack) => Ok(Downstream::Acked(ack_flags(&ack))),
            Err(error) => {
                tracing::info!(%error, "no acknowledgement from the mirror");
                Ok(Downstream::Failed)
            }
        }
    }
}

enum Downstream {
    /// There is no mirror.
    None,
    Acked(Vec<AckFlag>),
    Failed,
}

/// Reads the mirror's next acknowledgement; those out of band (a DataNode restarts, say) are passed on at once.
/// The inner result is the mirror's fault.
async fn read_ack(
    mirror: &mut TransferReader,
    upstream: &mut TransferWriter,
    seqno: i64,
) -> Result<Result<PipelineAckProto, TransferError>> {
    loop {
        let ack: PipelineAckProto = match mirror.read_message("pipeline acknowledgement").await {
            Ok(ack) => ack,
            Err(error) => return Ok(Err(error)),
        };
        let flags = ack_flags(&ack);
        let is_out_of_band =
            ack.seqno == UNKNOWN_SEQNO && flags.iter().all(|f| f.status() != Status::Error);
        if is_out_of_band {
            let all = std::iter::once(AckFlag::from(Status::Success)).chain(flags);
            upstream.send_message(&pipeline_ack(UNKNOWN_SEQNO, all, 0)).await?;
        } else if ack.seqno == seqno || flags.iter().any(|f| f.status() != Status::Success) {
            return Ok(Ok(ack));
        } else {
            return Err(DataNodeError::peer(format!(
                "seqno: expected={seqno}, received={}",
                ack.seqno
            )));
        }
    }
}
