//! How a segment of the log begins.
//!
//! ```text
//! magic 8 | version 4 | namespace id 4 | first sequence 8 | salt 4 (from version 2 on) | crc32c 4
//! numbers little endian, crc of all before
//! ```
//!
//! Later versions begin with these 32 bytes, so that a build says of a newer one what it is.

use cairn_codec::crc::crc32c;

const MAGIC: &[u8; 8] = b"CAIRNLOG";
/// Without a salt: written by earlier builds.
const FIRST_VERSION: u32 = 1;
/// With it; entries are commands alone. Written by earlier builds.
const SALTED_VERSION: u32 = 2;
/// Entries have what they have done. A log of an earlier build stays at it until it is finalized.
pub const DONE_VERSION: u32 = 3;
/// They have two times.
pub const VERSION: u32 = 4;

/// Longest header, in bytes.
pub const LEN_MAX: usize = 32;

/// What a segment tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    version: u32,
    /// Whose it is.
    pub namespace_id: u32,
    /// Number of its first entry.
    pub first: u64,
    /// What the CRCs of its frames begin with; none in segments of version 1.
    salt: Option<u32>,
}

impl Header {
    /// Of a new segment, with a salt that nobody knows.
    pub fn new(namespace_id: u32, first: u64, version: u32) -> Result<Header, getrandom::Error> {
        Ok(Header { version, namespace_id, first, salt: Some(getrandom::u32()?) })
    }

    /// The version of the segment that follows one like this.
    pub fn next_version(&self) -> u32 {
        if self.is_gone_on_with() { self.version } else { VERSION }
    }

    /// What the CRCs of frames begin with.
    pub fn salt(&self) -> u32 {
        self.salt.unwrap_or_default()
    }

    /// Whether a user may have stored what looks like a frame.
    pub fn can_be_forged(&self) -> bool {
        self.salt.is_none()
    }

    /// Whether entries of this build may be added.
    pub fn is_gone_on_with(&self) -> bool {
        self.version >= DONE_VERSION
    }

    /// Whether there is no newer version.
    pub fn is_newest(&self) -> bool {
        self.version == VERSION
    }

    /// Where the first frame begins.
    pub fn len(&self) -> usize {
        if self.salt.is_some() { LEN_MAX } else { LEN_MAX - 4 }
    }

    /// As it is written.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.namespace_id.to_le_bytes());
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend(self.salt.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        bytes
    }

    /// The version of a segment that begins with `bytes`, if it is one that this build does not know yet.
    pub fn newer(bytes: &[u8]) -> Option<u32> {
        let (header, crc) = bytes.get(..LEN_MAX)?.split_at(LEN_MAX - 4);
        let version = u32::from_le_bytes(*header[8..].first_chunk()?);
        let is_whole = header.starts_with(MAGIC) && crc == crc32c(0, header).to_le_bytes();
        (is_whole && version > VERSION).then_some(version)
    }

    /// The header that `bytes` begin with; none if it is damaged or of another version.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let version = number(8)?;
        let salt = match version {
            FIRST_VERSION => None,
            SALTED_VERSION | DONE_VERSION | VERSION => Some(number(24)?),
            _ => return None,
        };
        let first = bytes.get(16..24)?.try_into().ok().map(u64::from_le_bytes)?;
        let header = Header { version, namespace_id: number(12)?, first, salt };
        bytes.starts_with(&header.to_bytes()).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_versions_come_back_and_damage_is_noticed() {
        let new = Header::new(7, 9, VERSION).unwrap();
        let salted = Header { version: SALTED_VERSION, ..new };
        let done = Header { version: DONE_VERSION, ..new };
        for header in [new, done, salted, Header { version: FIRST_VERSION, salt: None, ..new }] {
            let bytes = header.to_bytes();
            assert_eq!((bytes.len(), Header::parse(&bytes)), (header.len(), Some(header)));
            for bit in 0..bytes.len() * 8 {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!((Header::parse(&bad), Header::newer(&bad)), (None, None), "bit {bit}");
            }
            for len in 0..bytes.len() {
                assert_eq!(Header::parse(&bytes[..len]), None, "{len} bytes");
            }
        }
        assert_ne!(
            Header::new(7, 9, VERSION).unwrap().salt(),
            Header::new(7, 9, VERSION).unwrap().salt()
        );
    }

    #[test]
    fn one_of_a_newer_version_is_told_from_a_damaged_one() {
        let newer =
            Header { version: VERSION + 4, ..Header::new(7, 9, VERSION).unwrap() }.to_bytes();
        assert_eq!((Header::parse(&newer), Header::newer(&newer)), (None, Some(VERSION + 4)));
        assert_eq!(Header::newer(&newer[..LEN_MAX - 1]), None);
        assert_eq!(Header::newer(&Header::new(7, 9, VERSION).unwrap().to_bytes()), None);
    }

    #[test]
    fn a_header_of_the_first_version_is_as_it_was() {
        let header = Header { version: FIRST_VERSION, namespace_id: 7, first: 9, salt: None };
        let mut bytes = b"CAIRNLOG\x01\0\0\0\x07\0\0\0\x09\0\0\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&crc32c(0, &bytes).to_le_bytes());
        assert_eq!(header.to_bytes(), bytes);
        assert_eq!((header.salt(), header.can_be_forged()), (0, true));
    }
}
