//! Sends a range of a replica as packets: CRCs from memory, data from the page cache.
//!
//! Source: Hadoop 3.5.0 `BlockSender`.

use crate::budget::Budget;
use crate::dataset::{Block, Checksum, ReadView};
use crate::error::{DataNodeError, Result};
use crate::metrics::{Flow, Metrics};
use crate::node::Node;
use crate::page_cache::PageCache;
use cairn_codec::crc::ChecksumKind;
use cairn_net::transfer_stream::{FilePart, TransferError, TransferStream, TransferWriter};
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, CachingStrategyProto, ClientReadStatusProto, ReadOpChecksumInfoProto,
    Status,
};
use cairn_wire::transfer::PacketHeader;

/// Chunk length of a transfer without CRCs.
const DEFAULT_CHUNK: usize = 512;

/// How a range is sent.
pub(crate) struct Sending<'a> {
    /// Data bytes of the first packets, and of all for who asks for no longer ones.
    pub(crate) packet_len: usize,
    /// Data bytes of the longest.
    pub(crate) longest_packet: usize,
    /// Where the bytes count.
    pub(crate) flow: &'a Flow,
    pub(crate) metrics: &'a Metrics,
    /// Whose bound on bytes per second holds.
    pub(crate) budget: Option<&'a Budget>,
    pub(crate) cache: &'a PageCache,
    /// What the request wants of the page cache.
    pub(crate) caching: Option<CachingStrategyProto>,
}

impl<'a> Sending<'a> {
    /// How `node` sends a replica whose bytes count in `flow`.
    pub(crate) fn new(
        node: &'a Node,
        flow: &'a Flow,
        budget: Option<&'a Budget>,
        caching: Option<CachingStrategyProto>,
    ) -> Sending<'a> {
        let cache = node.dataset.page_cache();
        let (packet_len, metrics) = (node.config.send_packet_len, &node.metrics);
        let longest_packet = packet_len;
        Sending { packet_len, longest_packet, flow, metrics, budget, cache, caching }
    }

    /// Data bytes of the next packet, in whole chunks, when so many were sent: long ones cost both ends less, but nobody
    /// is to wait long for the first bytes.
    fn next_packet(&self, sent: u64, chunk_len: usize) -> u64 {
        let as_much_again = (sent as usize).checked_ilog2().map_or(0, |log| 1 << log);
        let len = as_much_again.min(self.longest_packet).max(self.packet_len);
        ((len / chunk_len).max(1) * chunk_len) as u64
    }
}

/// A range of a replica, widened to chunk boundaries.
pub(crate) struct Range<'a> {
    view: &'a ReadView,
    checksum: Checksum,
    from: u64,
    to: u64,
}

impl<'a> Range<'a> {
    /// The chunks that hold `len` bytes at `offset`. Fails if the replica ends before.
    pub(crate) fn new(
        view: &'a ReadView,
        offset: u64,
        len: u64,
        with_crcs: bool,
    ) -> Result<Range<'a>> {
        let wanted = offset.checked_add(len).filter(|end| *end <= view.end).ok_or_else(|| {
            DataNodeError::peer(format!(
                "Offset {offset} and length {len} don't match block ( blockLen {} )",
                view.end
            ))
        })?;
        let checksum = match with_crcs {
            true => view.checksum,
            false => Checksum { kind: ChecksumKind::Null, chunk_len: DEFAULT_CHUNK },
        };
        let chunk = checksum.chunk_len as u64;
        let to = wanted.next_multiple_of(chunk).min(view.end);
        Ok(Range { view, checksum, from: offset - offset % chunk, to })
    }

    /// How the CRCs that are sent are made.
    pub(crate) fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// The bytes of the chunks.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    /// The answer that precedes the packets.
    pub(crate) fn answer(&self) -> BlockOpResponseProto {
        BlockOpResponseProto {
            status: Status::Success as i32,
            read_op_checksum_info: Some(ReadOpChecksumInfoProto {
                checksum: crate::messages::checksum_proto(self.checksum),
                chunk_offset: self.from,
            }),
            ..Default::default()
        }
    }

    /// Sends the packets and the empty one that ends them.
    pub(crate) async fn send(&self, out: &mut TransferWriter, how: &Sending<'_>) -> Result<()> {
        let done = self.send_packets(out, how).await;
        let sent = out.take_sent();
        how.metrics.sent_copied.add(sent.copied);
        how.metrics.sent_by_sendfile.add(sent.by_sendfile);
        done
    }

    async fn send_packets(&self, out: &mut TransferWriter, how: &Sending<'_>) -> Result<()> {
        let mut counted = how.flow.batch();
        let mut reading = how.cache.reading(how.caching.as_ref(), (self.from, self.to));
        let (mut crcs, mut offset, mut seqno) = (Vec::new(), self.from, 0);
        if offset == self.to {
            return Ok(out.send_packet(&self.header(self.to, 0, 0), &[], &[]).await?);
        }
        while offset < self.to {
            let step = how.next_packet(offset - self.from, self.checksum.chunk_len);
            let end = (offset + step).min(self.to);
            self.view.turn().await?;
            reading.at(&self.view.data, offset, self.view.end);
            if self.checksum.kind != ChecksumKind::Null {
                self.view.crcs(offset, end, &mut crcs)?;
            }
            let header = self.header(offset, seqno, (end - offset) as u32);
            let last = (end == self.to).then(|| self.header(end, seqno + 1, 0));
            let (file, read_len) = (&*self.view.data, self.to - self.from);
            let part = FilePart { file, offset, read_len, watch: Some(self.view) };
            let sent = out.send_packet_from_file(&header, &crcs, part, last.as_ref()).await;
            sent.map_err(|error| match error {
                TransferError::File(source) => self.view.damaged(source),
                error => error.into(),
            })?;
            counted.add(end - offset);
            if let Some(budget) = how.budget {
                budget.pass(end - offset).await;
            }
            // A peer that takes everything at once must not keep this thread from all others.
            tokio::task::consume_budget().await;
            (offset, seqno) = (end, seqno + 1);
        }
        reading.end(&self.view.data, self.to);
        Ok(())
    }

    fn header(&self, offset: u64, seqno: i64, data_len: u32) -> PacketHeader {
        let last_packet = data_len == 0;
        PacketHeader {
            offset_in_block: offset as i64,
            seqno,
            last_packet,
            data_len,
            sync_block: false,
        }
    }
}

/// A range that is sent from memory: what is read past the page cache, or is no file's.
pub(crate) struct Packets<'a> {
    out: &'a mut TransferWriter,
    at: u64,
    seqno: i64,
}

impl<'a> Packets<'a> {
    /// The first packet starts at byte `from` of the block.
    pub(crate) fn new(out: &'a mut TransferWriter, from: u64) -> Packets<'a> {
        Packets { out, at: from, seqno: 0 }
    }

    /// Sends the next bytes; an empty packet ends them.
    pub(crate) async fn send(&mut self, data: &[u8], crcs: &[u8]) -> Result<()> {
        let header = PacketHeader {
            offset_in_block: self.at as i64,
            seqno: self.seqno,
            last_packet: data.is_empty(),
            data_len: data.len() as u32,
            sync_block: false,
        };
        self.out.send_packet(&header, crcs, data).await?;
        (self.at, self.seqno) = (self.at + data.len() as u64, self.seqno + 1);
        Ok(())
    }
}

/// Reads what the reader found. False if it just closes: a client that has seen enough.
pub(crate) async fn hear_verdict(
    node: &Node,
    stream: &mut TransferStream,
    block: &Block,
) -> Result<bool> {
    let verdict = stream.reader.read_message::<ClientReadStatusProto>("read status").await;
    if verdict.as_ref().is_ok_and(|verdict| verdict.status == Status::ErrorChecksum as i32) {
        node.suspect_block(block.id);
    }
    Ok(verdict.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DataNodeConfig;
    use crate::metrics::Metrics;

    #[test]
    fn packets_grow_with_what_was_sent_for_who_takes_long_ones() {
        let (metrics, cache) = (Metrics::default(), PageCache::new(&DataNodeConfig::default()));
        let packets = |longest_packet: usize, chunk_len: usize| -> Vec<u64> {
            let flow = &metrics.read_by_clients;
            let how = Sending {
                packet_len: 256 << 10,
                longest_packet,
                flow,
                metrics: &metrics,
                budget: None,
                cache: &cache,
                caching: None,
            };
            let mut sent = 0;
            let next = |_| {
                let len = how.next_packet(sent, chunk_len);
                sent += len;
                len >> 10
            };
            (0..6).map(next).collect()
        };
        assert_eq!(packets(1 << 20, 512), [256, 256, 512, 1024, 1024, 1024]);
        assert_eq!(packets(256 << 10, 512), [256; 6]);
        assert_eq!(packets(0, 512), [256; 6]);
        assert_eq!(packets(1 << 20, 1 << 20), [1024; 6], "a packet has a chunk at least");
    }
}
