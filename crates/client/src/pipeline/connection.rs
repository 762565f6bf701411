//! The connection to the first DataNode of a pipeline, with a task that receives acknowledgements.

use crate::datanode::failure;
use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::types::DataNodeAddr;
use cairn_net::transfer_stream::{TransferReader, TransferStream, TransferWriter};
use cairn_wire::proto::hdfs::{PipelineAckProto, Status};
use cairn_wire::transfer::{HEARTBEAT_SEQNO, PacketHeader, ack_flags, ack_is_success};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// What the pipeline answered.
pub(super) enum AckEvent {
    /// Every DataNode took this packet.
    Ack(i64),
    /// A DataNode failed; nothing follows.
    Bad { index: usize, reason: String },
}

/// An open pipeline. Dropping it closes the socket.
pub(super) struct Connection {
    writer: TransferWriter,
    addr: DataNodeAddr,
    events: mpsc::UnboundedReceiver<AckEvent>,
    acks: AbortHandle,
}

impl Connection {
    pub(super) fn new(stream: TransferStream, addr: DataNodeAddr) -> Connection {
        let (reader, writer) = stream.split();
        // Not more acknowledgements can come than packets are in flight.
        let (report, events) = mpsc::unbounded_channel();
        let acks = tokio::spawn(receive(reader, addr.clone(), report)).abort_handle();
        Connection { writer, addr, events, acks }
    }

    pub(super) async fn send(&mut self, header: &PacketHeader, packet: &Packet) -> Result<()> {
        let sent = self.writer.send_packet(header, &packet.checksums, &packet.data);
        // A failed pipeline may stop taking data: its word must not wait for the write to time out.
        let failed = async {
            while !self.events.is_closed() {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        };
        tokio::select! {
            biased;
            sent = sent => sent.map_err(|error| failure(&self.addr, error)),
            () = failed => Err(ClientError::Protocol(format!("pipeline of {} failed", self.addr))),
        }
    }

    pub(super) async fn ack(&mut self) -> AckEvent {
        let gone = || AckEvent::Bad { index: 0, reason: "the connection was closed".to_string() };
        self.events.recv().await.unwrap_or_else(gone)
    }

    /// An acknowledgement that is already there.
    pub(super) fn try_ack(&mut self) -> Option<AckEvent> {
        self.events.try_recv().ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.acks.abort();
    }
}

async fn receive(
    mut reader: TransferReader,
    addr: DataNodeAddr,
    report: mpsc::UnboundedSender<AckEvent>,
) {
    loop {
        let ack: Result<PipelineAckProto, _> = reader.read_message("PipelineAckProto").await;
        let event = match ack {
            Ok(ack) if ack_is_success(&ack) && ack.seqno == HEARTBEAT_SEQNO => continue,
            Ok(ack) if ack_is_success(&ack) => AckEvent::Ack(ack.seqno),
            Ok(ack) => bad_node(&ack),
            Err(error) => AckEvent::Bad { index: 0, reason: failure(&addr, error).to_string() },
        };
        let last = matches!(event, AckEvent::Bad { .. });
        if report.send(event).is_err() || last {
            return;
        }
    }
}

/// Which DataNode of the pipeline failed: the last that did not answer well, as those before it only
/// pass its failure on.
///
/// Source: Hadoop 3.5.0 `DataStreamer.ResponseProcessor`.
fn bad_node(ack: &PipelineAckProto) -> AckEvent {
    let flags = ack_flags(ack);
    let index = flags.iter().rposition(|flag| flag.status() != Status::Success).unwrap_or(0);
    let status = flags.get(index).map(|flag| flag.status());
    AckEvent::Bad { index, reason: format!("DataNode {index} of the pipeline: {status:?}") }
}
