//! Bit matrices on 64-byte vectors: `GF2P8AFFINEQB` multiplies a vector by a coefficient.
//!
//! The first bytes, up to the next boundary of a cache line, and the last ones are done under a
//! mask, so that no load between them straddles two lines where all cells are aligned alike.
#![allow(unsafe_code)]

use super::Pass;
use std::arch::x86_64::*;

/// Bytes of a vector.
const VECTOR_LEN: usize = 64;

/// How far ahead of their use sources are fetched. The processor's own prefetchers stop at every
/// page, and a stripe runs through pages of a dozen cells at once: from memory this is worth up to a tenth.
const PREFETCH_LEN: usize = 512;

/// Outputs from which on arithmetic and not the cache is the limit, so that adding two products at
/// once pays; for fewer outputs it slows the loads down.
const PAIR_ROWS: usize = 4;

/// The truth table of the exclusive or of three bits.
const ADD_THREE: i32 = 0x96;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("gfni")
}

/// Writes the outputs of the pass. Panics without the instructions.
pub(super) fn run(pass: Pass<'_, '_>) {
    assert!(is_available());
    // Sums, one or two sources, factors and products share 32 registers.
    // SAFETY: the instructions are there; `Pass::new` checked every length.
    unsafe {
        match pass.outputs.len() {
            1 => columns::<1, 4>(pass),
            2 => columns::<2, 4>(pass),
            3 => columns::<3, 4>(pass),
            4 => columns::<4, 4>(pass),
            5 => columns::<5, 3>(pass),
            _ => columns::<6, 2>(pass),
        }
    }
}

/// # Safety
///
/// The processor has the instructions and the pass has `M` outputs.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn columns<const M: usize, const V: usize>(pass: Pass<'_, '_>) {
    let len = pass.len;
    let mut outputs = [std::ptr::null_mut(); M];
    for (pointer, output) in outputs.iter_mut().zip(pass.outputs.iter_mut()) {
        *pointer = output.as_mut_ptr();
    }
    let kernel = Kernel { affine: pass.affine, sources: pass.sources, outputs };
    // SAFETY: every step below lies within `len` bytes, which all buffers have.
    unsafe {
        let mut at = len.min(pass.sources[0].as_ptr().align_offset(VECTOR_LEN));
        if at != 0 {
            kernel.masked_step(0, at);
        }
        while at + V * VECTOR_LEN <= len {
            kernel.step::<V>(at);
            at += V * VECTOR_LEN;
        }
        while at + VECTOR_LEN <= len {
            kernel.step::<1>(at);
            at += VECTOR_LEN;
        }
        if at < len {
            kernel.masked_step(at, len - at);
        }
    }
}

/// # Safety
///
/// Bytes `at .. at + V * VECTOR_LEN` lie in `source`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const V: usize>(source: &[u8], at: usize) -> [__m512i; V] {
    let mut vectors = [_mm512_setzero_si512(); V];
    for (v, vector) in vectors.iter_mut().enumerate() {
        // Only a hint: the address may lie behind the buffer.
        _mm_prefetch::<_MM_HINT_T0>(
            source.as_ptr().wrapping_add(at + v * VECTOR_LEN + PREFETCH_LEN).cast(),
        );
        // SAFETY: the caller's promise.
        *vector = unsafe { _mm512_loadu_si512(source.as_ptr().add(at + v * VECTOR_LEN).cast()) };
    }
    vectors
}

/// Adds the products of one source, `x`, to the sums.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn add_source<const M: usize, const V: usize>(
    sums: &mut [[__m512i; V]; M],
    factors: &[u64],
    x: [__m512i; V],
) {
    for (sums, &factor) in sums.iter_mut().zip(factors) {
        let factor = _mm512_set1_epi64(factor as i64);
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8::<0>(x, factor));
        }
    }
}

/// Adds the products of two sources to the sums, with one addition for both.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn add_pair<const M: usize, const V: usize>(
    sums: &mut [[__m512i; V]; M],
    factors: &[u64],
    [x, y]: [[__m512i; V]; 2],
) {
    for (row, sums) in sums.iter_mut().enumerate() {
        let x_factor = _mm512_set1_epi64(factors[row] as i64);
        let y_factor = _mm512_set1_epi64(factors[M + row] as i64);
        for (v, sum) in sums.iter_mut().enumerate() {
            let x = _mm512_gf2p8affine_epi64_epi8::<0>(x[v], x_factor);
            let y = _mm512_gf2p8affine_epi64_epi8::<0>(y[v], y_factor);
            *sum = _mm512_ternarylogic_epi64::<ADD_THREE>(*sum, x, y);
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
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    unsafe fn step<const V: usize>(&self, at: usize) {
        for output in self.outputs {
            for v in 0..V {
                // Only a hint. Without it, stores wait for lines that no cache holds.
                _mm_prefetch::<_MM_HINT_ET0>(output.wrapping_add(at + v * VECTOR_LEN).cast());
            }
        }
        let mut sums = [[_mm512_setzero_si512(); V]; M];
        if M < PAIR_ROWS {
            for (source, factors) in self.sources.iter().zip(self.affine.chunks_exact(M)) {
                // SAFETY: the caller's promise.
                add_source(&mut sums, factors, unsafe { load(source, at) });
            }
        } else {
            let (pairs, last) = self.sources.as_chunks::<2>();
            for ([x, y], factors) in pairs.iter().zip(self.affine.chunks_exact(2 * M)) {
                // SAFETY: the caller's promise.
                add_pair(&mut sums, factors, unsafe { [load(x, at), load(y, at)] });
            }
            if let [source] = last {
                let factors = &self.affine[pairs.len() * 2 * M..];
                // SAFETY: the caller's promise.
                add_source(&mut sums, factors, unsafe { load(source, at) });
            }
        }
        for (output, sums) in self.outputs.iter().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { _mm512_storeu_si512(output.add(at + v * VECTOR_LEN).cast(), sum) };
            }
        }
    }

    /// # Safety
    ///
    /// Bytes `at .. at + len` lie in every buffer and `len` is at most [`VECTOR_LEN`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    unsafe fn masked_step(&self, at: usize, len: usize) {
        let mask = u64::MAX >> (VECTOR_LEN - len);
        let mut sums = [_mm512_setzero_si512(); M];
        for (source, factors) in self.sources.iter().zip(self.affine.chunks_exact(M)) {
            // SAFETY: the caller's promise; bytes outside of the mask are not touched.
            let x = unsafe { _mm512_maskz_loadu_epi8(mask, source.as_ptr().add(at).cast()) };
            for (sum, &factor) in sums.iter_mut().zip(factors) {
                let factor = _mm512_set1_epi64(factor as i64);
                *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8::<0>(x, factor));
            }
        }
        for (output, sum) in self.outputs.iter().zip(sums) {
            // SAFETY: the caller's promise; bytes outside of the mask are not touched.
            unsafe { _mm512_mask_storeu_epi8(output.add(at).cast(), mask, sum) };
        }
    }
}
