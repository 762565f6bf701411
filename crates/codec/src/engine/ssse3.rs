//! Byte shuffles on 16-byte vectors: each half byte looks up its product in a 16-byte table.
#![allow(unsafe_code)]

use super::{Pass, portable};
use crate::field::NIBBLES;
use std::arch::x86_64::*;

/// Bytes of a vector.
const VECTOR_LEN: usize = 16;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("ssse3")
}

/// Writes the outputs of the pass. Panics without the instructions.
pub(super) fn run(pass: Pass<'_, '_>) {
    assert!(is_available());
    if pass.len < VECTOR_LEN {
        return portable::run(pass);
    }
    // Sums, both halves of the sources, two tables and the mask share 16 registers.
    // SAFETY: the instructions are there; `Pass::new` checked every length.
    unsafe {
        match pass.outputs.len() {
            1 => columns::<1, 4>(pass),
            2 => columns::<2, 2>(pass),
            3 => columns::<3, 2>(pass),
            4 => columns::<4, 2>(pass),
            5 => columns::<5, 1>(pass),
            _ => columns::<6, 1>(pass),
        }
    }
}

/// # Safety
///
/// The processor has the instructions; the pass has `M` outputs and at least [`VECTOR_LEN`] bytes.
#[target_feature(enable = "ssse3")]
unsafe fn columns<const M: usize, const V: usize>(pass: Pass<'_, '_>) {
    let len = pass.len;
    let mut outputs = [std::ptr::null_mut(); M];
    for (pointer, output) in outputs.iter_mut().zip(pass.outputs.iter_mut()) {
        *pointer = output.as_mut_ptr();
    }
    let kernel = Kernel { coefficients: pass.coefficients, sources: pass.sources, outputs };
    let mut at = 0;
    // SAFETY: every step below lies within `len` bytes, which all buffers have.
    unsafe {
        while at + V * VECTOR_LEN <= len {
            kernel.step::<V>(at);
            at += V * VECTOR_LEN;
        }
        while at + VECTOR_LEN <= len {
            kernel.step::<1>(at);
            at += VECTOR_LEN;
        }
        if at < len {
            // The last vector overlaps the one before: it computes the same bytes again.
            kernel.step::<1>(len - VECTOR_LEN);
        }
    }
}

struct Kernel<'a, const M: usize> {
    coefficients: &'a [u8],
    sources: &'a [&'a [u8]],
    outputs: [*mut u8; M],
}

impl<const M: usize> Kernel<'_, M> {
    /// # Safety
    ///
    /// Bytes `at .. at + V * VECTOR_LEN` lie in every buffer.
    #[inline]
    #[target_feature(enable = "ssse3")]
    unsafe fn step<const V: usize>(&self, at: usize) {
        let low_half = _mm_set1_epi8(0x0f);
        let mut sums = [[_mm_setzero_si128(); V]; M];
        for (source, coefficients) in self.sources.iter().zip(self.coefficients.chunks_exact(M)) {
            let mut low = [_mm_setzero_si128(); V];
            let mut high = [_mm_setzero_si128(); V];
            for v in 0..V {
                // SAFETY: the caller's promise.
                let x = unsafe { _mm_loadu_si128(source.as_ptr().add(at + v * VECTOR_LEN).cast()) };
                low[v] = _mm_and_si128(x, low_half);
                high[v] = _mm_and_si128(_mm_srli_epi64::<4>(x), low_half);
            }
            for (sums, &coefficient) in sums.iter_mut().zip(coefficients) {
                let table = NIBBLES[coefficient as usize].as_ptr();
                // SAFETY: a table has 32 bytes.
                let (low_table, high_table) = unsafe {
                    (_mm_loadu_si128(table.cast()), _mm_loadu_si128(table.add(16).cast()))
                };
                for v in 0..V {
                    let low_product = _mm_shuffle_epi8(low_table, low[v]);
                    let high_product = _mm_shuffle_epi8(high_table, high[v]);
                    let product = _mm_xor_si128(low_product, high_product);
                    sums[v] = _mm_xor_si128(sums[v], product);
                }
            }
        }
        for (output, sums) in self.outputs.iter().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { _mm_storeu_si128(output.add(at + v * VECTOR_LEN).cast(), sum) };
            }
        }
    }
}
