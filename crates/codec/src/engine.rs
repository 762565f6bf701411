//! Products of a small matrix of coefficients with long columns of bytes: all the work of a code.
//!
//! An engine computes `output[r] = sum over c of coefficient (r, c) * source[c]`, byte by byte. All
//! rows of a group (at most `GROUP_ROWS`) are computed in one pass over the sources, with the sums
//! in registers. More rows take several passes, over slices that stay in the cache.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_gfni;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pass;
mod portable;
#[cfg(target_arch = "x86_64")]
mod ssse3;

pub(crate) use pass::Tables;
use pass::{GROUP_ROWS, Pass};
use std::fmt;

/// Bytes of all sources together that one slice covers when several passes read it.
const SLICE_TOTAL_LEN: usize = 256 * 1024;

/// Which instructions compute. The order is from slow to fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Engine {
    /// Table look-ups: runs anywhere.
    Portable,
    /// Byte shuffles as look-ups, 16 bytes at once: x86-64 since 2006.
    Ssse3,
    /// Byte shuffles as look-ups, 16 bytes at once: every 64-bit ARM.
    Neon,
    /// Byte shuffles as look-ups, 32 bytes at once: x86-64 since 2013.
    Avx2,
    /// Bit matrices, 32 bytes at once: x86-64 since about 2021, also without AVX-512.
    Avx2Gfni,
    /// Bit matrices, 64 bytes at once: x86-64 servers since 2021.
    Avx512Gfni,
}

impl Engine {
    /// Every engine, also those of other processors, from slow to fast.
    pub const ALL: [Engine; 6] = [
        Engine::Portable,
        Engine::Ssse3,
        Engine::Neon,
        Engine::Avx2,
        Engine::Avx2Gfni,
        Engine::Avx512Gfni,
    ];

    /// The engines of this processor, from slow to fast.
    pub fn available() -> impl Iterator<Item = Engine> {
        Engine::ALL.into_iter().filter(|engine| engine.is_available())
    }

    /// The fastest engine of this processor.
    pub fn best() -> Engine {
        Engine::available().last().unwrap_or(Engine::Portable)
    }

    /// Whether this processor has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Engine::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Engine::Ssse3 => ssse3::is_available(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2Gfni => avx2_gfni::is_available(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512Gfni => avx512_gfni::is_available(),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon => neon::is_available(),
            _ => false,
        }
    }

    /// The engine's name, as figures and logs show it.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Portable => "portable",
            Engine::Ssse3 => "ssse3",
            Engine::Neon => "neon",
            Engine::Avx2 => "avx2",
            Engine::Avx2Gfni => "avx2-gfni",
            Engine::Avx512Gfni => "avx512-gfni",
        }
    }

    /// Overwrites `outputs` with the product of the tables' matrix and `sources`.
    ///
    /// Panics unless there are as many sources as columns, as many outputs as rows, and all have one
    /// length; [`crate::Codec`] has checked that.
    pub(crate) fn multiply(self, tables: &Tables, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        assert_eq!(tables.rows, outputs.len());
        if tables.rows <= GROUP_ROWS {
            return self.run(Pass::new(tables, 0, sources, outputs));
        }
        let len = sources[0].len();
        let slice_len = (SLICE_TOTAL_LEN / sources.len()).next_multiple_of(4096);
        for from in (0..len).step_by(slice_len) {
            let to = len.min(from + slice_len);
            let sources: Vec<&[u8]> = sources.iter().map(|source| &source[from..to]).collect();
            for (group, outputs) in outputs.chunks_mut(GROUP_ROWS).enumerate() {
                let mut outputs: Vec<&mut [u8]> =
                    outputs.iter_mut().map(|output| &mut output[from..to]).collect();
                self.run(Pass::new(tables, group, &sources, &mut outputs));
            }
        }
    }

    fn run(self, pass: Pass<'_, '_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Engine::Ssse3 => ssse3::run(pass),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => avx2::run(pass),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2Gfni => avx2_gfni::run(pass),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512Gfni => avx512_gfni::run(pass),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon => neon::run(pass),
            _ => portable::run(pass),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
