//! Byte shuffles on 16-byte vectors: each half byte looks up its product in a 16-byte table.
#![allow(unsafe_code)]

use super::{Pass, portable};
use crate::field::NIBBLES;
use std::arch::aarch64::*;

/// Bytes of a vector.
const VECTOR_LEN: usize = 16;

pub(super) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// Writes the outputs of the pass. Panics without the instructions.
pub(super) fn run(pass: Pass<'_, '_>) {
    assert!(is_available());
    if pass.len < VECTOR_LEN {
        return portable::run(pass);
    }
    // Sums, both halves of the sources, two tables and the mask fit in 32 registers.
    // SAFETY: the instructions are there; `Pass::new` checked every length.
    unsafe {
        match pass.outputs.len() {
            1 => columns::<1, 4>(pass),
            2 => columns::<2, 4>(pass),
            3 => columns::<3, 4>(pass),
            4 => columns::<4, 2>(pass),
            5 => columns::<5, 2>(pass),
            _ => columns::<6, 2>(pass),
        }
    }
}

/// # Safety
///
/// The processor has the instructions; the pass has `M` outputs and at least [`VECTOR_LEN`] bytes.
#[target_feature(enable = "neon")]
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
    #[target_feature(enable = "neon")]
    unsafe fn step<const V: usize>(&self, at: usize) {
        let low_half = vdupq_n_u8(0x0f);
        let mut sums = [[vdupq_n_u8(0); V]; M];
        for (source, coefficients) in self.sources.iter().zip(self.coefficients.chunks_exact(M)) {
            let mut low = [vdupq_n_u8(0); V];
            let mut high = [vdupq_n_u8(0); V];
            for v in 0..V {
                // SAFETY: the caller's promise.
                let x = unsafe { vld1q_u8(source.as_ptr().add(at + v * VECTOR_LEN)) };
                low[v] = vandq_u8(x, low_half);
                high[v] = vshrq_n_u8::<4>(x);
            }
            for (sums, &coefficient) in sums.iter_mut().zip(coefficients) {
                let table = NIBBLES[coefficient as usize].as_ptr();
                // SAFETY: a table has 32 bytes.
                let (low_table, high_table) = unsafe { (vld1q_u8(table), vld1q_u8(table.add(16))) };
                for v in 0..V {
                    let low_product = vqtbl1q_u8(low_table, low[v]);
                    let high_product = vqtbl1q_u8(high_table, high[v]);
                    let product = veorq_u8(low_product, high_product);
                    sums[v] = veorq_u8(sums[v], product);
                }
            }
        }
        for (output, sums) in self.outputs.iter().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { vst1q_u8(output.add(at + v * VECTOR_LEN), sum) };
            }
        }
    }
}
