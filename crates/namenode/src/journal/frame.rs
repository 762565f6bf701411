//! The framing of the log: one frame is one group of entries that were made durable together.
//!
//! ```text
//! magic 4 | crc32c 4 | payload length 4 | first sequence 8 | count 4 | flags 1 | payload
//! payload: count times (length 4 | entry)            numbers little endian, crc from the length on
//! ```
//!
//! The payload is compressed where that makes it shorter, as flag 2 says: `length as above 4 | block of LZ4`. Entries
//! repeat what the ones before have, and each in its changes what is in its command.
//!
//! The CRC goes on from the salt of the segment, which no user knows: what a user has stored, a whole frame even, is
//! never taken for one.

use cairn_codec::crc::crc32c;
use lz4_flex::block;
use std::borrow::Cow;
use std::ops::Range;

/// How a frame begins.
pub const MAGIC: [u8; 4] = *b"CRNF";
/// Bytes before the payload.
pub const HEADER_LEN: usize = 25;
/// Longest payload.
pub const PAYLOAD_LEN_MAX: usize = 64 << 20;
/// Flag: everything before this frame was on stable storage when it was written.
const FLAG_SYNCED_BEFORE: u8 = 1;
/// Flag: the payload is compressed.
const FLAG_COMPRESSED: u8 = 2;

/// A frame that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Sequence number of the first entry; the others follow without a gap.
    pub first: u64,
    /// Whether everything before was on stable storage.
    pub synced_before: bool,
    payload: Cow<'a, [u8]>,
    /// Where the entries are in it.
    places: Vec<Range<usize>>,
    /// Bytes of the whole frame.
    pub len: usize,
}

impl Frame<'_> {
    /// The entries' bytes.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.payload[place.clone()])
    }

    /// Sequence number of the last entry.
    pub fn last(&self) -> u64 {
        self.first + self.places.len() as u64 - 1
    }
}

/// Collects entries into a frame.
#[derive(Clone)]
pub struct FrameBuilder {
    bytes: Vec<u8>,
    first: u64,
    count: u32,
}

impl FrameBuilder {
    /// A frame whose first entry gets the number `first`.
    pub fn new(first: u64) -> FrameBuilder {
        FrameBuilder { bytes: vec![0; HEADER_LEN], first, count: 0 }
    }

    /// Adds an entry and returns its number.
    pub fn push(&mut self, entry: &[u8]) -> u64 {
        self.bytes.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(entry);
        self.count += 1;
        self.last()
    }

    /// Number of the last entry; one less than the first if there is none.
    pub fn last(&self) -> u64 {
        self.first + u64::from(self.count) - 1
    }

    /// How many entries there are.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame's bytes, for a segment with this salt.
    pub fn finish(mut self, synced_before: bool, salt: u32) -> Vec<u8> {
        let mut flags = if synced_before { FLAG_SYNCED_BEFORE } else { 0 };
        let compressed = block::compress_prepend_size(&self.bytes[HEADER_LEN..]);
        if HEADER_LEN + compressed.len() < self.bytes.len() {
            self.bytes.truncate(HEADER_LEN);
            self.bytes.extend_from_slice(&compressed);
            flags |= FLAG_COMPRESSED;
        }
        let payload_len = (self.bytes.len() - HEADER_LEN) as u32;
        self.bytes[..4].copy_from_slice(&MAGIC);
        self.bytes[8..12].copy_from_slice(&payload_len.to_le_bytes());
        self.bytes[12..20].copy_from_slice(&self.first.to_le_bytes());
        self.bytes[20..24].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[24] = flags;
        let crc = crc32c(salt, &self.bytes[8..]);
        self.bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        self.bytes
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Bytes of the frame that begins with this header; none if it is none.
pub fn len(header: &[u8]) -> Option<usize> {
    let payload_len = number(header, 8)? as usize;
    (header.starts_with(&MAGIC) && payload_len <= PAYLOAD_LEN_MAX)
        .then_some(HEADER_LEN + payload_len)
}

/// The number of the last entry of the frame that begins with this header; none if it is none.
pub fn last(header: &[u8]) -> Option<u64> {
    let first = u64::from_le_bytes(header.get(12..20)?.try_into().ok()?);
    let count = number(header, 20).filter(|count| *count > 0 && header.starts_with(&MAGIC))?;
    first.checked_add(u64::from(count) - 1)
}

/// The frame at the start of `bytes` of a segment with this salt; `None` if there is no whole and undamaged one.
pub fn parse(bytes: &[u8], salt: u32) -> Option<Frame<'_>> {
    let whole = bytes.get(..len(bytes)?)?;
    if crc32c(salt, &whole[8..]) != number(whole, 4)? {
        return None;
    }
    let first = u64::from_le_bytes(whole[12..20].try_into().ok()?);
    let (count, flags) = (number(whole, 20)?, whole[24]);
    let payload = match flags & FLAG_COMPRESSED {
        0 => Cow::Borrowed(&whole[HEADER_LEN..]),
        _ => Cow::Owned(decompressed(&whole[HEADER_LEN..])?),
    };
    let (mut places, mut at) = (Vec::new(), 0);
    for _ in 0..count {
        let begin = at + 4;
        at = begin + number(&payload, at)? as usize;
        places.push(begin..at);
        payload.get(begin..at)?;
    }
    let complete = at == payload.len() && count > 0 && first > 0;
    let synced_before = flags & FLAG_SYNCED_BEFORE != 0;
    complete.then_some(Frame { first, synced_before, payload, places, len: whole.len() })
}

fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (len, block) = bytes.split_first_chunk()?;
    let len = u32::from_le_bytes(*len) as usize;
    let payload = (len <= PAYLOAD_LEN_MAX).then(|| block::decompress(block, len))?.ok()?;
    (payload.len() == len).then_some(payload)
}

/// Where in `bytes` the first whole frame begins that is `wanted`.
pub fn find(bytes: &[u8], salt: u32, wanted: impl Fn(&Frame<'_>) -> bool) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes[at..].windows(MAGIC.len()).position(|window| window == MAGIC)?;
        if parse(&bytes[at..], salt).is_some_and(|frame| wanted(&frame)) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether a whole frame of entry `after` or later that vouches for what precedes it begins anywhere
/// in `bytes`.
pub fn vouched_by_later(bytes: &[u8], salt: u32, after: u64) -> bool {
    find(bytes, salt, |frame| frame.first >= after && frame.synced_before).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 0x5eed;

    fn frame(first: u64, entries: &[&[u8]], synced: bool) -> Vec<u8> {
        let mut builder = FrameBuilder::new(first);
        entries.iter().for_each(|entry| {
            builder.push(entry);
        });
        builder.finish(synced, SALT)
    }

    #[test]
    fn a_frame_comes_back() {
        let bytes = frame(5, &[b"one", b"", b"three"], true);
        let parsed = parse(&bytes, SALT).unwrap();
        assert_eq!((parsed.first, parsed.last(), parsed.synced_before), (5, 7, true));
        assert!(parsed.entries().eq([&b"one"[..], b"", b"three"]));
        assert_eq!(parsed.len, bytes.len());
        assert_eq!(parse(&bytes, SALT + 1), None);
    }

    #[test]
    fn what_is_repeated_is_compressed_and_comes_back() {
        let long: Vec<u8> = (0..5000u32).map(|at| ((at * at) >> 7) as u8).collect();
        let entries: Vec<&[u8]> = vec![&long; 100];
        let bytes = frame(5, &entries, true);
        assert!(bytes.len() < 2 * long.len(), "{}", bytes.len());
        let parsed = parse(&bytes, SALT).unwrap();
        assert_eq!((parsed.first, parsed.last(), parsed.synced_before), (5, 104, true));
        assert!(parsed.entries().eq(entries));
        assert_eq!(parsed.len, bytes.len());
    }

    /// Whatever a frame says of its length, no more memory is taken than a payload may have.
    #[test]
    fn a_compressed_payload_has_the_length_that_it_says() {
        let entries: Vec<&[u8]> = vec![b"many of the same"; 100];
        let bytes = frame(5, &entries, true);
        assert_eq!(bytes[24], FLAG_SYNCED_BEFORE | FLAG_COMPRESSED);
        for len in [0, 1, 1999, 2001, PAYLOAD_LEN_MAX as u32 + 1, u32::MAX] {
            let mut bad = bytes.clone();
            bad[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&len.to_le_bytes());
            let crc = crc32c(SALT, &bad[8..]);
            bad[4..8].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(parse(&bad, SALT), None, "{len}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        noticed(&frame(5, &[b"one", b"two"], false));
        noticed(&frame(5, &[&b"this is long and comes twice"[..]; 2], false));
    }

    fn noticed(bytes: &[u8]) {
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bad, SALT), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(parse(&bytes[..len], SALT), None, "{len} bytes");
        }
    }

    #[test]
    fn only_a_later_synced_frame_vouches() {
        let mut bytes = b"damaged".to_vec();
        bytes.extend(frame(6, &[b"x"], false));
        assert!(!vouched_by_later(&bytes, SALT, 5));
        bytes.extend(frame(7, &[b"x"], true));
        assert!(vouched_by_later(&bytes, SALT, 5));
        assert!(!vouched_by_later(&bytes, SALT, 8));
    }
}
