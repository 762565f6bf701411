//! The CRC of a joined range from the CRCs of its parts, without the bytes.
//!
//! Appending n bytes to a range multiplies its CRC by x^(8n) modulo the polynomial.

use super::ChecksumKind;
use super::table::{CRC32_POLYNOMIAL, CRC32C_POLYNOMIAL};

/// The CRC of range A followed by range B, from `crc_a`, `crc_b` and the number of bytes of B.
///
/// Takes some tens of nanoseconds for each bit that is set in `len_b`. Zero for
/// [`ChecksumKind::Null`].
///
/// Source: Hadoop 3.5.0 `CrcUtil#compose`.
pub fn combine(kind: ChecksumKind, crc_a: u32, crc_b: u32, len_b: u64) -> u32 {
    let (polynomial, powers) = match kind {
        ChecksumKind::Null => return 0,
        ChecksumKind::Crc32 => (CRC32_POLYNOMIAL, &CRC32_POWERS),
        ChecksumKind::Crc32c => (CRC32C_POLYNOMIAL, &CRC32C_POWERS),
    };
    let mut shifted = crc_a;
    let mut rest = len_b;
    while rest != 0 {
        shifted = multiply(polynomial, shifted, powers[rest.trailing_zeros() as usize]);
        rest &= rest - 1;
    }
    shifted ^ crc_b
}

/// `POWERS[n]` is x^(8 * 2^n): the factor of 2^n more bytes.
static CRC32_POWERS: [u32; 64] = powers(CRC32_POLYNOMIAL);
static CRC32C_POWERS: [u32; 64] = powers(CRC32C_POLYNOMIAL);

const fn powers(polynomial: u32) -> [u32; 64] {
    // x^8: the highest bit is x^0.
    let mut powers = [1 << 23; 64];
    let mut n = 1;
    while n < 64 {
        powers[n] = multiply(polynomial, powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
}

/// `a * b` modulo the polynomial, all with the lowest power in the highest bit.
const fn multiply(polynomial: u32, mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    while a != 0 {
        // Add b where the next lower power of x is set in a, without a branch to mispredict.
        product ^= b & ((a as i32) >> 31) as u32;
        a <<= 1;
        b = (b >> 1) ^ (polynomial & (b & 1).wrapping_neg());
    }
    product
}
