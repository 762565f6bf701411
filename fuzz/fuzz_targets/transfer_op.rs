//! Run with `cargo +nightly fuzz run transfer_op`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::transfer_op(data));
