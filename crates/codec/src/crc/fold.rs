//! CRCs by carry-less multiplication: 16-byte lanes of the data are folded onto later lanes.
//!
//! A lane that is followed by n bits is worth itself times x^n. Modulo the polynomial, x^n has 32
//! bits, so a lane can be replaced by a short multiple that is added to the lane n bits later. Four
//! vectors are folded side by side, then into each other, down to the 32 bits of the CRC.
//! Bits are in reflected order: the first bit of the data has the highest power of x.
//!
//! Source: Intel, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction".
#![allow(unsafe_code)]

use super::table;
use std::arch::x86_64::*;

/// Bytes of a lane: the unit of folding.
const LANE_LEN: usize = 16;

/// Vectors that are folded side by side, to hide the latency of a multiplication.
const STREAMS: usize = 4;

/// What folding needs to know of a polynomial.
pub(super) struct Constants {
    /// Factors of the first and second half of a lane that moves by 1, 4 or 16 lanes.
    by_1: [u64; 2],
    by_4: [u64; 2],
    by_16: [u64; 2],
    /// The lanes of a vector move onto its last one, which itself stays out.
    onto_last: [u64; 8],
    /// Factor of the first half of the last lane, on the second half.
    half_lane: u64,
    /// Factor of the first four bytes of what is left then.
    quarter_lane: u64,
    /// The quotient of x^64 by the polynomial, for Barrett's reduction.
    quotient: u64,
    /// The polynomial with its leading term.
    polynomial: u64,
}

impl Constants {
    /// The constants of a reflected polynomial without its leading term.
    pub(super) const fn new(polynomial: u32) -> Constants {
        let [by_1, by_2, by_3] =
            [lane_power(polynomial, 1), lane_power(polynomial, 2), lane_power(polynomial, 3)];
        Constants {
            by_1,
            by_4: lane_power(polynomial, 4),
            by_16: lane_power(polynomial, 16),
            onto_last: [by_3[0], by_3[1], by_2[0], by_2[1], by_1[0], by_1[1], 0, 0],
            half_lane: power(polynomial, 96),
            quarter_lane: power(polynomial, 64),
            quotient: quotient(polynomial),
            polynomial: (polynomial as u64) << 1 | 1,
        }
    }
}

/// The factors of both halves of a lane that moves by some lanes.
const fn lane_power(polynomial: u32, lanes: u32) -> [u64; 2] {
    [power(polynomial, lanes * 128 + 32), power(polynomial, lanes * 128 - 32)]
}

/// x^exponent modulo the polynomial, reflected in 33 bits: products of reflected factors come out
/// one bit too low.
const fn power(polynomial: u32, exponent: u32) -> u64 {
    let mut value = 1 << 31;
    let mut n = 0;
    while n < exponent {
        value = (value >> 1) ^ if value & 1 != 0 { polynomial } else { 0 };
        n += 1;
    }
    (value as u64) << 1
}

/// x^64 divided by the polynomial, reflected in 33 bits.
const fn quotient(polynomial: u32) -> u64 {
    let divisor = (1 << 32) | polynomial.reverse_bits() as u128;
    let mut rest = 1u128 << 64;
    let mut quotient = 0u64;
    let mut degree = 64;
    while degree >= 32 {
        if rest >> degree & 1 != 0 {
            rest ^= divisor << (degree - 32);
            // Bit degree - 32, reflected.
            quotient |= 1 << (64 - degree);
        }
        degree -= 1;
    }
    quotient
}

/// Whether [`update_by_lanes`] can run.
pub(super) fn has_lanes() -> bool {
    is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1")
}

/// Whether [`update_by_vectors`] can run.
pub(super) fn has_vectors() -> bool {
    has_lanes() && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq")
}

/// The state after `data`, on 16-byte vectors. Panics without the instructions.
pub(super) fn update_by_lanes(
    constants: &Constants,
    tables: &table::Tables,
    state: u32,
    data: &[u8],
) -> u32 {
    assert!(has_lanes());
    if data.len() < LANE_LEN {
        return table::update(tables, state, data);
    }
    let (lanes, rest) = data.as_chunks::<LANE_LEN>();
    // SAFETY: the instructions are there.
    table::update(tables, unsafe { fold_lanes(constants, state, lanes) }, rest)
}

/// The state after `data`, on 64-byte vectors. Panics without the instructions.
pub(super) fn update_by_vectors(
    constants: &Constants,
    tables: &table::Tables,
    state: u32,
    data: &[u8],
) -> u32 {
    assert!(has_vectors());
    let (vectors, _) = data.as_chunks::<64>();
    if vectors.is_empty() {
        return update_by_lanes(constants, tables, state, data);
    }
    let (lanes, rest) = data[vectors.len() * 64..].as_chunks::<LANE_LEN>();
    // SAFETY: the instructions are there.
    table::update(tables, unsafe { fold_vectors(constants, state, vectors, lanes) }, rest)
}

/// At least one lane.
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn fold_lanes(constants: &Constants, state: u32, lanes: &[[u8; LANE_LEN]]) -> u32 {
    let start = _mm_cvtsi32_si128(state as i32);
    let (mut sum, mut done) = (_mm_xor_si128(load_lane(&lanes[0]), start), 1);
    if lanes.len() >= 2 * STREAMS {
        let factors = lane_factors(&constants.by_4);
        let mut sums = [sum, load_lane(&lanes[1]), load_lane(&lanes[2]), load_lane(&lanes[3])];
        let (steps, _) = lanes[STREAMS..].as_chunks::<STREAMS>();
        for step in steps {
            for (sum, lane) in sums.iter_mut().zip(step) {
                *sum = fold_lane(*sum, factors, load_lane(lane));
            }
        }
        let factors = lane_factors(&constants.by_1);
        sum = fold_lane(sums[0], factors, sums[1]);
        sum = fold_lane(sum, factors, sums[2]);
        sum = fold_lane(sum, factors, sums[3]);
        done = STREAMS * (1 + steps.len());
    }
    reduce(constants, fold_rest(constants, sum, &lanes[done..]))
}

/// At least one vector, which the lanes follow.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.1")]
fn fold_vectors(
    constants: &Constants,
    state: u32,
    vectors: &[[u8; 64]],
    lanes: &[[u8; LANE_LEN]],
) -> u32 {
    let start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state as i32));
    let (mut sum, mut done) = (_mm512_xor_si512(load_vector(&vectors[0]), start), 1);
    let next_vector = vector_factors(&constants.by_4);
    if vectors.len() >= STREAMS {
        let factors = vector_factors(&constants.by_16);
        let [_, b, c, d] = [0, 1, 2, 3].map(|i| &vectors[i]);
        let mut sums = [sum, load_vector(b), load_vector(c), load_vector(d)];
        let (steps, _) = vectors[STREAMS..].as_chunks::<STREAMS>();
        for step in steps {
            for (sum, vector) in sums.iter_mut().zip(step) {
                *sum = fold_vector(*sum, factors, load_vector(vector));
            }
        }
        sum = fold_vector(sums[0], next_vector, sums[1]);
        sum = fold_vector(sum, next_vector, sums[2]);
        sum = fold_vector(sum, next_vector, sums[3]);
        done = STREAMS * (1 + steps.len());
    }
    for vector in &vectors[done..] {
        sum = fold_vector(sum, next_vector, load_vector(vector));
    }
    // The first three lanes move onto the last, which stays as it is.
    // SAFETY: a vector has 64 bytes.
    let factors = unsafe { _mm512_loadu_si512(constants.onto_last.as_ptr().cast()) };
    let last = _mm512_maskz_mov_epi64(0b1100_0000, sum);
    let folded = fold_vector(sum, factors, last);
    let sum = _mm_xor_si128(
        _mm_xor_si128(
            _mm512_extracti32x4_epi32::<0>(folded),
            _mm512_extracti32x4_epi32::<1>(folded),
        ),
        _mm_xor_si128(
            _mm512_extracti32x4_epi32::<2>(folded),
            _mm512_extracti32x4_epi32::<3>(folded),
        ),
    );
    reduce(constants, fold_rest(constants, sum, lanes))
}

#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn fold_rest(constants: &Constants, mut sum: __m128i, lanes: &[[u8; LANE_LEN]]) -> __m128i {
    let factors = lane_factors(&constants.by_1);
    for lane in lanes {
        sum = fold_lane(sum, factors, load_lane(lane));
    }
    sum
}

/// The state that the last lane stands for.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
fn reduce(constants: &Constants, lane: __m128i) -> u32 {
    let four_bytes = _mm_set_epi32(0, 0, 0, -1);
    // 16 bytes to 12, to 8.
    let factor = _mm_set_epi64x(0, constants.half_lane as i64);
    let rest = _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(lane, factor), _mm_srli_si128::<8>(lane));
    let factor = _mm_set_epi64x(0, constants.quarter_lane as i64);
    let first = _mm_and_si128(rest, four_bytes);
    let rest =
        _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(first, factor), _mm_srli_si128::<4>(rest));
    // Barrett: the multiple of the polynomial that leaves 4 bytes.
    let factors = _mm_set_epi64x(constants.polynomial as i64, constants.quotient as i64);
    let multiple = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(rest, four_bytes), factors);
    let multiple = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(multiple, four_bytes), factors);
    _mm_extract_epi32::<1>(_mm_xor_si128(rest, multiple)) as u32
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn fold_lane(sum: __m128i, factors: __m128i, next: __m128i) -> __m128i {
    let first = _mm_clmulepi64_si128::<0x00>(sum, factors);
    let second = _mm_clmulepi64_si128::<0x11>(sum, factors);
    _mm_xor_si128(_mm_xor_si128(first, second), next)
}

#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_vector(sum: __m512i, factors: __m512i, next: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
    let second = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
    // The exclusive or of all three.
    _mm512_ternarylogic_epi64::<0x96>(first, second, next)
}

#[inline]
#[target_feature(enable = "sse2")]
fn lane_factors(factors: &[u64; 2]) -> __m128i {
    // SAFETY: two factors have 16 bytes.
    unsafe { _mm_loadu_si128(factors.as_ptr().cast()) }
}

/// The same factors for all four lanes of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn vector_factors(factors: &[u64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(lane_factors(factors))
}

#[inline]
#[target_feature(enable = "sse2")]
fn load_lane(lane: &[u8; LANE_LEN]) -> __m128i {
    // SAFETY: a lane has 16 bytes.
    unsafe { _mm_loadu_si128(lane.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_vector(vector: &[u8; 64]) -> __m512i {
    // SAFETY: a vector has 64 bytes.
    unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) }
}
