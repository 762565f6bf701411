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
    match kind {
        ChecksumKind::Null => 0,
        ChecksumKind::Crc32 => shift(CRC32_POLYNOMIAL, &CRC32_POWERS, crc_a, len_b) ^ crc_b,
        ChecksumKind::Crc32c => shift(CRC32C_POLYNOMIAL, &CRC32C_POWERS, crc_a, len_b) ^ crc_b,
    }
}

/// The CRC of bytes, from the CRC `padded` of the same bytes followed by `zeros` zero bytes: a zero byte multiplies the
/// register by x^8, which has an inverse. No byte is looked at, so what was not summed right before is not right after.
///
/// Zero for [`ChecksumKind::Null`].
pub fn without_zeros(kind: ChecksumKind, padded: u32, zeros: u64) -> u32 {
    // The register is the complement of the CRC.
    match kind {
        ChecksumKind::Null => 0,
        ChecksumKind::Crc32 => !shift(CRC32_POLYNOMIAL, &CRC32_INVERSES, !padded, zeros),
        ChecksumKind::Crc32c => !shift(CRC32C_POLYNOMIAL, &CRC32C_INVERSES, !padded, zeros),
    }
}

/// `value` times the factor of so many bytes more.
fn shift(polynomial: u32, powers: &[u32; 64], mut value: u32, mut len: u64) -> u32 {
    while len != 0 {
        value = multiply(polynomial, value, powers[len.trailing_zeros() as usize]);
        len &= len - 1;
    }
    value
}

/// `POWERS[n]` is x^(8 * 2^n): the factor of 2^n more bytes.
static CRC32_POWERS: [u32; 64] = powers(CRC32_POLYNOMIAL, X8);
static CRC32C_POWERS: [u32; 64] = powers(CRC32C_POLYNOMIAL, X8);
/// `INVERSES[n]` is x^(-8 * 2^n): the factor of 2^n bytes less.
static CRC32_INVERSES: [u32; 64] = powers(CRC32_POLYNOMIAL, inverse_of_x8(CRC32_POLYNOMIAL));
static CRC32C_INVERSES: [u32; 64] = powers(CRC32C_POLYNOMIAL, inverse_of_x8(CRC32C_POLYNOMIAL));

/// x^8: the highest bit is x^0.
const X8: u32 = 1 << 23;

/// x^-8. A polynomial has the term x^0, so what is to be divided by x and has it, has it no more with the polynomial
/// added.
const fn inverse_of_x8(polynomial: u32) -> u32 {
    let mut inverse: u32 = 1 << 31;
    let mut n = 0;
    while n < 8 {
        inverse = match inverse >> 31 {
            0 => inverse << 1,
            // The term x^32 of the polynomial, which is not in its number, becomes x^31.
            _ => ((inverse ^ polynomial) << 1) | 1,
        };
        n += 1;
    }
    inverse
}

/// `first` to the power of 2^n, by n.
const fn powers(polynomial: u32, first: u32) -> [u32; 64] {
    let mut powers = [first; 64];
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
