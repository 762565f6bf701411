//! CRCs by the instructions that 64-bit ARM has for both polynomials, 8 bytes a step.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

pub(super) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("crc")
}

/// The state of a CRC32 after `data`. Panics without the instructions.
pub(super) fn update_crc32(state: u32, data: &[u8]) -> u32 {
    assert!(is_available());
    // SAFETY: the instructions are there.
    unsafe { crc32(state, data) }
}

/// The state of a CRC32C after `data`. Panics without the instructions.
pub(super) fn update_crc32c(state: u32, data: &[u8]) -> u32 {
    assert!(is_available());
    // SAFETY: the instructions are there.
    unsafe { crc32c(state, data) }
}

#[target_feature(enable = "crc")]
fn crc32(mut state: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        state = __crc32d(state, u64::from_le_bytes(*word));
    }
    for byte in rest {
        state = __crc32b(state, *byte);
    }
    state
}

#[target_feature(enable = "crc")]
fn crc32c(mut state: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        state = __crc32cd(state, u64::from_le_bytes(*word));
    }
    for byte in rest {
        state = __crc32cb(state, *byte);
    }
    state
}
