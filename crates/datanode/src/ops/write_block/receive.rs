//! The receiving half: packets are checked, passed on, and written.

use super::halves::{Handover, Pending};
use crate::budget::Budget;
use crate::dataset::{Checksum, ReplicaWriter};
use crate::error::{DataNodeError, Result};
use crate::metrics::{Batch, Flow};
use crate::peers::Measured;
use crate::slow_io::Step;
use cairn_codec::crc;
use cairn_net::transfer_stream::{Packet, TransferReader, TransferWriter};
use cairn_wire::proto::hdfs::Status;
use std::time::{Duration, Instant};

/// How long a receiver that saw a bad packet waits for that to be acknowledged.
///
/// Source: Hadoop 3.5.0 `BlockReceiver#receivePacket`.
const BAD_PACKET_GRACE: Duration = Duration::from_secs(3);

/// Receives the packets of one block.
pub(crate) struct Receiver<'a> {
    writer: ReplicaWriter,
    upstream: &'a mut TransferReader,
    mirror: Option<TransferWriter>,
    mirror_failed: bool,
    measured: Option<Measured<'a>>,
    sent: Checksum,
    may_lack_crcs: bool,
    written: Batch<'a>,
}

impl<'a> Receiver<'a> {
    /// Receives into `writer` packets whose CRCs are made with `sent`, passing them on to `mirror`. What is
    /// written counts in `flow`.
    pub(crate) fn new(
        writer: ReplicaWriter,
        upstream: &'a mut TransferReader,
        mirror: Option<TransferWriter>,
        sent: Checksum,
        flow: &'a Flow,
    ) -> Receiver<'a> {
        Receiver {
            writer,
            upstream,
            mirror,
            mirror_failed: false,
            measured: None,
            sent,
            may_lack_crcs: false,
            written: flow.batch(),
        }
    }

    /// Has it measured how long the mirror takes.
    pub(super) fn measuring(self, measured: Option<Measured<'a>>) -> Receiver<'a> {
        Receiver { measured, ..self }
    }

    /// Makes the CRCs of packets that come without any, if `may` says so. Hadoop's client sends none of a
    /// file with one replica that is to be kept in memory (`DFSOutputStream#getChecksum4Compute`).
    pub(super) fn may_lack_crcs(self, may: bool) -> Receiver<'a> {
        Receiver { may_lack_crcs: may, ..self }
    }

    /// Receives until the last packet, which takes the writer to the acknowledging half, no faster than `budget`
    /// allows.
    pub(super) async fn receive_acknowledged(
        mut self,
        acks: &Handover,
        budget: &Budget,
    ) -> Result<()> {
        loop {
            let packet = self.upstream.read_packet().await?;
            let header = packet.header;
            let end = header.offset_in_block.saturating_add(header.data_len.into()).max(0) as u64;
            let pending = Pending {
                seqno: header.seqno,
                end,
                status: Status::Success,
                mirror_failed: false,
                last: None,
            };
            match self.take(&packet).await {
                Err(error @ DataNodeError::Checksum(_)) => {
                    // The other half answers, and its end ends this wait.
                    acks.pass(Pending { status: Status::ErrorChecksum, ..pending }).await;
                    tokio::time::sleep(BAD_PACKET_GRACE).await;
                    return Err(error);
                }
                done => done?,
            }
            // Its memory is not held while others are waited for.
            drop(packet);
            let pending = Pending { mirror_failed: self.mirror_failed, ..pending };
            if header.last_packet {
                acks.pass(Pending { last: Some(self.writer), ..pending }).await;
                return Ok(());
            }
            acks.pass(pending).await;
            budget.pass(header.data_len.into()).await;
        }
    }

    /// Receives until the last packet, without acknowledgements, no faster than `budget` allows.
    pub(crate) async fn receive_all(mut self, budget: Option<&Budget>) -> Result<ReplicaWriter> {
        loop {
            let packet = self.upstream.read_packet().await?;
            self.take(&packet).await?;
            let header = packet.header;
            drop(packet);
            if let Some(budget) = budget {
                budget.pass(header.data_len.into()).await;
            }
            if header.last_packet {
                return Ok(self.writer);
            }
        }
    }

    /// Checks, passes on and writes one packet. Only bytes that match their CRCs are passed on.
    async fn take(&mut self, packet: &Packet) -> Result<()> {
        let offset = u64::try_from(packet.header.offset_in_block)
            .map_err(|_| DataNodeError::peer("Got a negative offset in a packet"))?;
        let len = self.writer.len();
        if offset > len {
            let (block, _) = self.writer.block();
            return Err(DataNodeError::Peer(format!(
                "Received an out-of-sequence packet for {block} from {offset} while receiving bytes from {len}"
            )));
        }
        let mut made = Vec::new();
        let mut checksums = &packet.checksums[..];
        if self.may_lack_crcs && checksums.is_empty() {
            let Checksum { kind, chunk_len } = self.sent;
            made.resize(kind.total_len(chunk_len, packet.data.len()), 0);
            crc::chunk_crcs(kind, chunk_len, &packet.data, &mut made);
            checksums = &made;
        } else {
            self.verify(packet)?;
        }
        let passed_on = match &mut self.mirror {
            Some(mirror) => {
                let measurement = self.measured.as_ref().map(Measured::start);
                let begun = Instant::now();
                let passed_on = mirror.send(&packet.raw).await;
                if let Some(measurement) = measurement {
                    measurement.end(passed_on.is_ok());
                }
                if passed_on.is_ok() {
                    let (took, block) = (begun.elapsed(), self.writer.block().0);
                    self.writer.slow_io().note(Step::Mirror, block, took, || mirror.peer_name());
                }
                passed_on
            }
            None => Ok(()),
        };
        if let Err(error) = passed_on {
            // The client is told by the acknowledgements, and rebuilds the pipeline.
            tracing::info!(%error, "cannot pass a packet on to the mirror");
            self.mirror = None;
            self.mirror_failed = true;
        }
        if !packet.data.is_empty() {
            self.writer.turn().await?;
            self.writer.write_packet(offset, &packet.data, checksums, self.sent)?;
            self.written.add(packet.data.len() as u64);
        }
        if packet.header.sync_block {
            self.writer.sync().await?;
        }
        Ok(())
    }

    fn verify(&self, packet: &Packet) -> Result<()> {
        let Checksum { kind, chunk_len } = self.sent;
        let (want, got) = (kind.total_len(chunk_len, packet.data.len()), packet.checksums.len());
        if want != got {
            let message = format!(
                "Invalid checksum length: received length is {got} but expected length is {want}"
            );
            return Err(DataNodeError::Peer(message));
        }
        let block = self.writer.block().0;
        crc::verify_chunks(kind, chunk_len, &packet.data, &packet.checksums).map_err(|bad| {
            DataNodeError::Checksum(format!("{block} at {}: {bad}", packet.header.offset_in_block))
        })
    }
}
