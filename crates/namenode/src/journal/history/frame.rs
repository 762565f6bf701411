//! How the history of events lies on disk: a segment's header, and the frames behind it.
//!
//! ```text
//! header: magic 8 | version 4 | namespace id 4 | first entry 8 | crc32c of all before 4
//! frame:  crc32c 4 | payload length 4 | first entry 8 | last entry 8 | payload
//! payload: the list of the `EventBatch`es of these entries           numbers little endian, crc from the length on
//! ```
//!
//! A frame vouches for its entries: those of which it has no batch have done nothing that is told.

use cairn_codec::crc::crc32c;
use cairn_namespace::encoding::{Decode, Decoder, Encode, Encoder};
use cairn_namespace::events::EventBatch;

const MAGIC: &[u8; 8] = b"CAIRNEVT";
const VERSION: u32 = 1;

/// Bytes before the first frame.
pub const HEADER_LEN: usize = 28;
/// Bytes of a frame before its payload.
pub const FRAME_HEADER_LEN: usize = 24;
/// Longest frame, in bytes.
pub const FRAME_LEN_MAX: usize = 64 << 20;

/// What a segment begins with.
pub fn header(namespace_id: u32, first: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&namespace_id.to_le_bytes());
    bytes.extend_from_slice(&first.to_le_bytes());
    let crc = crc32c(0, &bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// The events of the entries from `first` to `last`. None if they are too many for a frame.
pub fn build(first: u64, last: u64, batches: &[impl AsRef<EventBatch>]) -> Option<Vec<u8>> {
    let mut out = Encoder::onto(vec![0; FRAME_HEADER_LEN]);
    out.unsigned(batches.len() as u64);
    batches.iter().for_each(|batch| batch.as_ref().encode(&mut out));
    let mut bytes = out.into_bytes();
    if bytes.len() > FRAME_LEN_MAX {
        return None;
    }
    let payload_len = (bytes.len() - FRAME_HEADER_LEN) as u32;
    bytes[4..8].copy_from_slice(&payload_len.to_le_bytes());
    bytes[8..16].copy_from_slice(&first.to_le_bytes());
    bytes[16..24].copy_from_slice(&last.to_le_bytes());
    let crc = crc32c(0, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    Some(bytes)
}

/// A frame that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The first entry.
    pub first: u64,
    /// The last entry.
    pub last: u64,
    payload: &'a [u8],
}

/// How long the frame is that begins with these bytes, if they are not damaged; none if it can be no frame.
pub fn len(header: &[u8; FRAME_HEADER_LEN]) -> Option<usize> {
    let payload_len = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
    let len = FRAME_HEADER_LEN + payload_len;
    (len <= FRAME_LEN_MAX).then_some(len)
}

/// The frame that these bytes are; none if they are damaged.
pub fn parse(bytes: &[u8]) -> Option<Frame<'_>> {
    let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (first, last) = (number(8)?, number(16)?);
    let payload = bytes.get(FRAME_HEADER_LEN..)?;
    let is_whole = crc32c(0, &bytes[4..]).to_le_bytes() == bytes[..4]
        && (payload.len() as u32).to_le_bytes() == bytes[4..8];
    (is_whole && first <= last).then_some(Frame { first, last, payload })
}

impl Frame<'_> {
    /// What the entries have done; none if that is damaged.
    pub fn batches(&self) -> Option<Vec<EventBatch>> {
        let mut input = Decoder::new(self.payload);
        let batches = Vec::<EventBatch>::decode(&mut input).ok()?;
        input.finish().ok()?;
        let is_ascending = batches.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
        let is_within = batches.first().is_none_or(|batch| batch.sequence >= self.first)
            && batches.last().is_none_or(|batch| batch.sequence <= self.last);
        (is_ascending && is_within).then_some(batches)
    }
}
