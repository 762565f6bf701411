//! The connection to the first DataNode of a pipeline, with a task that receives acknowledgements.

use crate::datanode::failure;
use crate::error::{ClientError, Result};
use crate::packet::Packet;
use crate::types::DataNodeAddr;
use cairn_net::transfer_stream::{TransferReader, TransferStream, TransferWriter};
use cairn_wire::proto::hdfs::{PipelineAckProto, Status};
use cairn_wire::transfer::{HEARTBEAT_SEQNO, PacketHeader, ack_flags, ack_is_success};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// No packet has this number.
const NOT_SENT: i64 = i64::MIN;

/// What the pipeline answered: the number of a packet that every DataNode took; or which DataNode failed, if
/// that is known, and why, after which nothing follows.
pub(super) type Ack = std::result::Result<i64, (Option<usize>, String)>;

/// An open pipeline. Dropping it closes the socket.
pub(super) struct Connection {
    writer: TransferWriter,
    addr: DataNodeAddr,
    events: mpsc::UnboundedReceiver<Ack>,
    /// The number of the packet that ends the block, once it is sent.
    last: Arc<AtomicI64>,
    acks: AckTask,
}

/// Receives acknowledgements until this is dropped; gives the reader back with that of the last packet.
struct AckTask(JoinHandle<Option<TransferReader>>);

impl Drop for AckTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(super) fn new(stream: TransferStream, addr: DataNodeAddr) -> Connection {
        let (reader, writer) = stream.split();
        // Not more acknowledgements can come than packets are in flight.
        let (report, events) = mpsc::unbounded_channel();
        let last = Arc::new(AtomicI64::new(NOT_SENT));
        let acks = AckTask(tokio::spawn(receive(reader, addr.clone(), report, last.clone())));
        Connection { writer, addr, events, last, acks }
    }

    pub(super) async fn send(&mut self, header: &PacketHeader, packet: &Packet) -> Result<()> {
        if header.last_packet {
            self.last.store(header.seqno, Ordering::Release);
        }
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

    pub(super) async fn ack(&mut self) -> Ack {
        let gone = || Err((None, "the connection was closed".to_string()));
        self.events.recv().await.unwrap_or_else(gone)
    }

    /// Whether the last packet was sent.
    pub(super) fn is_ended(&self) -> bool {
        self.last.load(Ordering::Acquire) != NOT_SENT
    }

    /// What can be used for another operation of that DataNode; nothing before the last packet is acknowledged.
    pub(super) async fn finish(mut self) -> Option<(TransferStream, DataNodeAddr)> {
        if !self.is_ended() {
            return None;
        }
        let reader = (&mut self.acks.0).await.ok()??;
        Some((TransferStream { reader, writer: self.writer }, self.addr))
    }

    /// An acknowledgement that is already there.
    pub(super) fn try_ack(&mut self) -> Option<Ack> {
        self.events.try_recv().ok()
    }
}

async fn receive(
    mut reader: TransferReader,
    addr: DataNodeAddr,
    report: mpsc::UnboundedSender<Ack>,
    last: Arc<AtomicI64>,
) -> Option<TransferReader> {
    loop {
        let ack: Result<PipelineAckProto, _> = reader.read_message("PipelineAckProto").await;
        let event = match ack {
            Ok(ack) if ack_is_success(&ack) && ack.seqno == HEARTBEAT_SEQNO => continue,
            Ok(ack) if ack_is_success(&ack) => Ok(ack.seqno),
            Ok(ack) => bad_node(&ack),
            Err(error) => Err((None, failure(&addr, error).to_string())),
        };
        let (is_last, is_bad) = match event {
            Ok(seqno) => (seqno == last.load(Ordering::Acquire), false),
            Err(_) => (false, true),
        };
        if report.send(event).is_err() || is_bad {
            return None;
        }
        if is_last {
            return Some(reader);
        }
    }
}

/// Which DataNode of the pipeline failed: the last that did not answer well, as those before it only
/// pass its failure on.
///
/// Source: Hadoop 3.5.0 `DataStreamer.ResponseProcessor`.
fn bad_node(ack: &PipelineAckProto) -> Ack {
    let flags = ack_flags(ack);
    let index = flags.iter().rposition(|flag| flag.status() != Status::Success).unwrap_or(0);
    let status = flags.get(index).map(|flag| flag.status());
    Err((Some(index), format!("DataNode {index} of the pipeline: {status:?}")))
}
