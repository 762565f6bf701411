//! Reads a byte range of one block into the caller's memory: a request in one system call, and where the
//! answer is as long as it is expected to be, the answer in one as well.

use super::read_block::{self, Dial, Piece, RemoteReader, checksum_info};
use super::read_range::ReadRange;
use super::verify::verify_parts;
use super::{checked, failure};
use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::types::DataNodeAddr;
use cairn_codec::crc::{CRC_LEN, ChecksumKind};
use cairn_net::transfer_stream::TransferStream;
use cairn_wire::proto::hdfs::*;
use cairn_wire::rpc;
use cairn_wire::transfer::{PACKET_LENGTHS_LEN, PacketHeader, PacketLengths};
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of lengths and header of a packet that is read: all fields are of fixed width.
const PACKET_HEAD_LEN: usize = PACKET_LENGTHS_LEN + 25;

/// How the blocks of a file came when they were last read: what the next answer is expected to look like.
/// A wrong guess costs a copy.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Bytes that a checksum covers, its type's number, and the most bytes that came in one packet.
    packed: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    chunk_len: u32,
    kind: ChecksumKind,
    packet_len: u32,
}

/// What an answer to a read consists of if it comes as expected: `head` bytes of answer, packet header and
/// checksums, `lead` bytes of data before the range, the range, `trail` bytes behind it, and an empty packet.
#[derive(Clone, Copy, Debug)]
struct Expected {
    form: Form,
    answer: usize,
    crcs: usize,
    lead: usize,
    trail: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { packed: AtomicU64::new(0) }
    }
}

impl Shape {
    fn form(&self) -> Form {
        let packed = self.packed.load(Ordering::Relaxed);
        let kind = ChecksumKind::from_id((packed >> 56) as u8).unwrap_or(ChecksumKind::Null);
        match packed {
            // Hadoop's default, and Cairn's packets.
            0 => Form { chunk_len: 512, kind: ChecksumKind::Crc32c, packet_len: 256 << 10 },
            _ => Form {
                chunk_len: (packed & 0xff_ffff) as u32,
                kind,
                packet_len: (packed >> 24) as u32,
            },
        }
    }

    /// Takes note of how a block came. Chunks and packets are at most 16 MiB.
    fn note(&self, chunk_len: usize, kind: ChecksumKind, packet_len: usize) {
        let packed =
            chunk_len as u64 & 0xff_ffff | (packet_len as u64) << 24 | u64::from(kind.id()) << 56;
        self.packed.store(packed, Ordering::Relaxed);
    }

    /// What is expected to come for a range; `None` if it is too long for one packet.
    fn expect(&self, range: &ReadRange) -> Option<Expected> {
        let form = self.form();
        let chunk = u64::from(form.chunk_len);
        let from = range.offset - range.offset % chunk;
        let end = range.offset + range.len;
        let to = end.next_multiple_of(chunk).min(range.block.len).max(end);
        if form.kind == ChecksumKind::Null || to - from > form.packet_len.into() {
            return None;
        }
        let checksum =
            ChecksumProto { r#type: form.kind.id().into(), bytes_per_checksum: form.chunk_len };
        let answer = BlockOpResponseProto {
            status: Status::Success as i32,
            read_op_checksum_info: Some(ReadOpChecksumInfoProto { checksum, chunk_offset: from }),
            ..Default::default()
        };
        Some(Expected {
            form,
            answer: rpc::delimited_len(&answer),
            crcs: (to - from).div_ceil(chunk) as usize * CRC_LEN,
            lead: (range.offset - from) as usize,
            trail: (to - end) as usize,
        })
    }
}

/// Reads a range from one DataNode; `into` is as long as the range.
pub(crate) async fn read_into(
    session: &Arc<Session>,
    addr: &DataNodeAddr,
    range: &ReadRange,
    shape: &Shape,
    into: &mut [u8],
) -> Result<()> {
    let Session { config, connections, local, .. } = &**session;
    if let Some(replica) = local.open(config, connections, addr, range).await {
        match replica.read_into(range.offset, into, range.block.len) {
            Ok(()) => return Ok(()),
            Err(error) => {
                tracing::debug!(block = %range.block, %error, "read through its DataNode");
                local.forget(&replica);
            }
        }
    }
    let mut dial = Dial::new(session, addr, &range.token);
    loop {
        let (stream, peer, is_kept) = dial.next().await?;
        match exchange(session, addr, range, shape, into, stream, peer).await {
            Err(ClientError::DataNode { .. }) if is_kept => {} // closed meanwhile
            done => return done,
        }
    }
}

async fn exchange(
    session: &Arc<Session>,
    addr: &DataNodeAddr,
    range: &ReadRange,
    shape: &Shape,
    into: &mut [u8],
    mut stream: TransferStream,
    peer: String,
) -> Result<()> {
    read_block::request(session, addr, range, &[], &mut stream).await?;
    if let Some(expected) = shape.expect(range) {
        let head_len = expected.answer + PACKET_HEAD_LEN + expected.crcs + expected.lead;
        // Room for one byte more than comes shows that nothing follows.
        let mut around = vec![0; head_len + expected.trail + PACKET_HEAD_LEN + 1];
        let total = around.len() - 1 + into.len();
        let (head, tail) = around.split_at_mut(head_len);
        let what = "the answer to a read";
        // So many come, whatever they look like; a refusal is followed by the end.
        let certain = (into.len() + 2 * PACKET_HEAD_LEN).min(total);
        let parts = [&mut *head, &mut *into, &mut *tail];
        let got = stream.reader.read_parts(parts, 0, certain, what).await;
        let mut got = got.map_err(|error| failure(addr, error))?;
        if got >= certain && expected.begins(range, head) {
            let parts = [&mut *head, &mut *into, &mut *tail];
            let all = stream.reader.read_parts(parts, got, total, what).await;
            got = all.map_err(|error| failure(addr, error))?;
        }
        if got == total && expected.begins(range, head) && expected.ends(tail) {
            let crcs = &head[head_len - expected.lead - expected.crcs..head_len - expected.lead];
            let lead = &head[head_len - expected.lead..];
            let (kind, chunk_len) = (expected.form.kind, expected.form.chunk_len as usize);
            verify_parts(kind, chunk_len, [lead, into, &tail[..expected.trail]], crcs).map_err(
                |chunk| ClientError::Checksum {
                    block: range.block.to_string(),
                    addr: addr.xfer_addr(),
                    offset: range.offset - expected.lead as u64 + (chunk * chunk_len) as u64,
                },
            )?;
            read_block::keep(session, stream, peer);
            return Ok(());
        }
        let mut left = got;
        let parts: [&[u8]; 3] = [head, into, tail];
        let came = parts.map(|part| {
            let count = part.len().min(left);
            left -= count;
            &part[..count]
        });
        came.iter().rev().for_each(|part| stream.reader.unread(part));
    }
    let answer = stream.reader.read_message("BlockOpResponseProto").await;
    let answer = checked(answer.map_err(|error| failure(addr, error))?, addr)?;
    let (kind, chunk_len, first) = checksum_info(answer, range)?;
    let mut reader = RemoteReader::new(
        session.clone(),
        addr.clone(),
        range,
        stream,
        peer,
        (kind, chunk_len, first),
    );
    let (mut filled, mut longest) = (0, 0);
    while filled < into.len() {
        match reader.next_piece(&mut into[filled..]).await? {
            Some(Piece::Placed(count)) => filled += count,
            Some(Piece::Apart(bytes)) => {
                into[filled..filled + bytes.len()].copy_from_slice(&bytes);
                filled += bytes.len();
            }
            None => {
                let what = format!("{} from {addr}: {filled} bytes", range.block);
                return Err(ClientError::Protocol(what));
            }
        }
        longest = longest.max(reader.last_len());
    }
    shape.note(chunk_len, kind, longest);
    reader.finish().await;
    Ok(())
}

impl Expected {
    /// Whether the answer and the header of its packet are the expected ones, so that the rest is as long as expected.
    fn begins(&self, range: &ReadRange, head: &[u8]) -> bool {
        let Some((answer, head)) = head.split_at_checked(self.answer) else { return false };
        let Ok(answer) = BlockOpResponseProto::decode_length_delimited(answer) else {
            return false;
        };
        if answer.status != Status::Success as i32 {
            return false;
        }
        let Ok((kind, chunk_len, from)) = checksum_info(answer, range) else { return false };
        let data_len = self.lead + range.len as usize + self.trail;
        let header = PacketHeader {
            offset_in_block: from as i64,
            seqno: 0,
            last_packet: false,
            data_len: data_len as u32,
            sync_block: false,
        };
        (kind, chunk_len) == (self.form.kind, self.form.chunk_len as usize)
            && from + self.lead as u64 == range.offset
            && packet(head, self.crcs + data_len) == Some(header)
    }

    /// Whether the packet behind the data ends the read.
    fn ends(&self, tail: &[u8]) -> bool {
        let end = tail.get(self.trail..).and_then(|end| packet(end, 0));
        end.is_some_and(|end| end.last_packet && end.data_len == 0)
    }
}

/// The header of a packet, if it is of the usual width and has a body of `body_len` bytes.
fn packet(bytes: &[u8], body_len: usize) -> Option<PacketHeader> {
    let lengths = *bytes.first_chunk::<PACKET_LENGTHS_LEN>()?;
    let lengths = PacketLengths::decode(lengths, u32::MAX).ok()?;
    let is_usual = PACKET_LENGTHS_LEN + lengths.header_len == PACKET_HEAD_LEN;
    let header = PacketHeader::decode(bytes.get(PACKET_LENGTHS_LEN..PACKET_HEAD_LEN)?).ok()?;
    (is_usual && lengths.body_len == body_len).then_some(header)
}

#[cfg(test)]
mod tests;
