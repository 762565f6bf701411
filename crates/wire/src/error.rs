//! What can be wrong with bytes from outside.

/// Bytes that are not what Hadoop's protocols allow: always the peer's (or the disk's) fault.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes end before the value does.
    #[error("{what}: needs {needed} bytes, has {have}")]
    Truncated {
        /// The value that was being read.
        what: &'static str,
        /// Bytes needed at least.
        needed: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A length that is negative or above the limit.
    #[error("{what}: length {len} is outside 0..={limit}")]
    Length {
        /// The value that was being read.
        what: &'static str,
        /// The length the peer announced.
        len: i64,
        /// The most that is taken.
        limit: u64,
    },
    /// A varint of more than ten bytes, or a value above 2^32 where a length belongs.
    #[error("{what}: malformed varint")]
    Varint {
        /// The value that was being read.
        what: &'static str,
    },
    /// Not a message of the expected type.
    #[error("{what}: {source}")]
    Proto {
        /// The message that was being read.
        what: &'static str,
        /// The decoder's reason.
        source: prost::DecodeError,
    },
    /// A field with a value that has no meaning.
    #[error("{what}: invalid value {value}")]
    Value {
        /// The field.
        what: &'static str,
        /// What it held.
        value: i64,
    },
    /// The peer speaks another version of the data transfer protocol.
    ///
    /// Source: Hadoop 3.5.0 `Receiver#readOp`.
    #[error("Version Mismatch (Expected: {expected}, Received: {received} )")]
    Version {
        /// The only version taken.
        expected: i16,
        /// What the peer sent.
        received: i16,
    },
}
