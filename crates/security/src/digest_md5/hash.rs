//! MD5 of texts in pieces, and how it is written.

use md5::{Digest, Md5};

/// The hash of all parts behind each other.
pub(super) fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Md5::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().into()
}

/// In small hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
