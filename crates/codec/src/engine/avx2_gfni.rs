//! Bit matrices on 32-byte vectors, for processors that have them without AVX-512.
#![allow(unsafe_code)]

use super::{Pass, portable};
use std::arch::x86_64::*;

/// Bytes of a vector.
const VECTOR_LEN: usize = 32;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")
}

/// Writes the outputs of the pass. Panics without the instructions.
pub(super) fn run(pass: Pass<'_, '_>) {
    assert!(is_available());
    if pass.len < VECTOR_LEN {
        return portable::run(pass);
    }
    // Sums, sources and one factor share 16 registers.
    // SAFETY: the instructions are there; `Pass::new` checked every length.
    unsafe {
        match pass.outputs.len() {
            1 => columns::<1, 4>(pass),
            2 => columns::<2, 4>(pass),
            3 => columns::<3, 3>(pass),
            4 => columns::<4, 2>(pass),
            5 => columns::<5, 2>(pass),
            _ => columns::<6, 2>(pass),
        }
    }
}

/// # Safety
///
/// The processor has the instructions; the pass has `M` outputs and at least [`VECTOR_LEN`] bytes.
#[target_feature(enable = "avx2,gfni")]
unsafe fn columns<const M: usize, const V: usize>(pass: Pass<'_, '_>) {
    let len = pass.len;
    let mut outputs = [std::ptr::null_mut(); M];
    for (pointer, output) in outputs.iter_mut().zip(pass.outputs.iter_mut()) {
        *pointer = output.as_mut_ptr();
    }
    let kernel = Kernel { affine: pass.affine, sources: pass.sources, outputs };
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
    affine: &'a [u64],
    sources: &'a [&'a [u8]],
    outputs: [*mut u8; M],
}

impl<const M: usize> Kernel<'_, M> {
    /// # Safety
    ///
    /// Bytes `at .. at + V * VECTOR_LEN` lie in every buffer.
    #[inline]
    #[target_feature(enable = "avx2,gfni")]
    unsafe fn step<const V: usize>(&self, at: usize) {
        let mut sums = [[_mm256_setzero_si256(); V]; M];
        for (source, factors) in self.sources.iter().zip(self.affine.chunks_exact(M)) {
            let mut x = [_mm256_setzero_si256(); V];
            for (v, x) in x.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *x = unsafe { _mm256_loadu_si256(source.as_ptr().add(at + v * VECTOR_LEN).cast()) };
            }
            for (sums, &factor) in sums.iter_mut().zip(factors) {
                let factor = _mm256_set1_epi64x(factor as i64);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = _mm256_xor_si256(*sum, _mm256_gf2p8affine_epi64_epi8::<0>(x, factor));
                }
            }
        }
        for (output, sums) in self.outputs.iter().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { _mm256_storeu_si256(output.add(at + v * VECTOR_LEN).cast(), sum) };
            }
        }
    }
}
