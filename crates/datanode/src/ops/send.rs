//! Sends a range of a replica as packets: CRCs from memory, data from the page cache.
//!
//! Source: Hadoop 3.5.0 `BlockSender`.

use crate::dataset::{Checksum, ReadView};
use crate::error::{DataNodeError, Result};
use crate::metrics::Flow;
use crate::ops::budget::Budget;
use crate::page_cache::PageCache;
use cairn_codec::crc::ChecksumKind;
use cairn_net::transfer_stream::{FilePart, TransferError, TransferWriter};
use cairn_wire::proto::hdfs::{
    BlockOpResponseProto, CachingStrategyProto, ReadOpChecksumInfoProto, Status,
};
use cairn_wire::transfer::PacketHeader;

/// Chunk length of a transfer without CRCs.
const DEFAULT_CHUNK: usize = 512;

/// How a range is sent.
pub(crate) struct Sending<'a> {
    /// Data bytes of a packet.
    pub(crate) packet_len: usize,
    /// Where the bytes count.
    pub(crate) flow: &'a Flow,
    /// Whose bound on bytes per second holds.
    pub(crate) budget: Option<&'a Budget>,
    pub(crate) cache: &'a PageCache,
    /// What the request wants of the page cache.
    pub(crate) caching: Option<CachingStrategyProto>,
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
                checksum: crate::protocol::checksum_proto(self.checksum),
                chunk_offset: self.from,
            }),
            ..Default::default()
        }
    }

    /// Sends the packets and the empty one that ends them.
    pub(crate) async fn send(&self, out: &mut TransferWriter, how: &Sending<'_>) -> Result<()> {
        let mut counted = how.flow.batch();
        let mut reading = how.cache.reading(how.caching.as_ref(), (self.from, self.to));
        let chunk = self.checksum.chunk_len as u64;
        let step = (how.packet_len as u64 / chunk).max(1) * chunk;
        let (mut crcs, mut offset, mut seqno) = (Vec::new(), self.from, 0);
        if offset == self.to {
            return Ok(out.send_packet(&self.header(self.to, 0, 0), &[], &[]).await?);
        }
        while offset < self.to {
            let end = (offset + step).min(self.to);
            reading.at(&self.view.data, offset, self.view.end);
            if self.checksum.kind != ChecksumKind::Null {
                self.view.crcs(offset, end, &mut crcs)?;
            }
            let header = self.header(offset, seqno, (end - offset) as u32);
            let last = (end == self.to).then(|| self.header(end, seqno + 1, 0));
            let part = FilePart { file: &self.view.data, offset, read_len: self.to - self.from };
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
