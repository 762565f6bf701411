//! What an entry of the log is: a command alone, or with what it has done.
//!
//! ```text
//! an entry as `Entry` writes it, which begins with 1
//! 2 | checksum 4 | length of the entry | entry | what it has done (`Done`)
//! ```
//!
//! The checksum is that of all that entries have done up to here: CRC32C that goes on from the one before. Log and store
//! that are not of one history are found by it. Earlier builds have written commands alone; this one does where what
//! was done is very long.

use cairn_codec::crc::crc32c;
use cairn_namespace::encoding::{Decode, DecodeError, Decoder, Encode, Encoder};
use cairn_namespace::{Done, Entry};

/// First byte of an entry with what it has done.
const VERSION: u8 = 2;

/// What was done is left out if it is longer: with it a frame would not have room for an entry.
const DONE_LEN_MAX: usize = super::frame::PAYLOAD_LEN_MAX / 2;

/// An entry of the log.
#[derive(Debug)]
pub(super) struct Record<'a> {
    /// The command.
    pub entry: Entry,
    /// What it has done; none if that is not known.
    pub known: Option<Known<'a>>,
}

/// What an entry has done.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// Answer and changes.
    pub done: Done,
    bytes: &'a [u8],
    /// The checksum up to here.
    pub chain: u32,
}

impl Known<'_> {
    /// Whether it follows what has this checksum.
    pub fn follows(&self, chain: u32) -> bool {
        extend(chain, self.bytes) == self.chain
    }
}

/// The bytes of what an entry has done.
pub(super) fn encode(done: &Done) -> Vec<u8> {
    let mut out = Encoder::new();
    done.encode(&mut out);
    out.into_bytes()
}

/// The checksum of all up to what has these bytes, if that of all before is known.
pub(super) fn extend(chain: u32, done: &[u8]) -> u32 {
    crc32c(chain, done)
}

/// The bytes of an entry with what it has done, after which the checksum is `chain`.
pub(super) fn to_bytes(entry: &[u8], done: &[u8], chain: u32) -> Vec<u8> {
    if done.len() > DONE_LEN_MAX {
        return entry.to_vec();
    }
    let mut out = Encoder::onto(Vec::with_capacity(entry.len() + done.len() + 12));
    out.byte(VERSION);
    out.raw(&chain.to_le_bytes());
    out.bytes(entry);
    out.raw(done);
    out.into_bytes()
}

impl Record<'_> {
    /// Reads an entry of the log.
    pub fn from_bytes(bytes: &[u8]) -> Result<Record<'_>, DecodeError> {
        if bytes.first() != Some(&VERSION) {
            return Ok(Record { entry: Entry::from_bytes(bytes)?, known: None });
        }
        let mut input = Decoder::new(&bytes[1..]);
        let chain = u32::from_le_bytes(Decode::decode(&mut input)?);
        let entry = Entry::from_bytes(input.bytes()?)?;
        let bytes = &bytes[bytes.len() - input.remaining()..];
        let done = Decode::decode(&mut input)?;
        input.finish()?;
        Ok(Record { entry, known: Some(Known { done, bytes, chain }) })
    }
}
