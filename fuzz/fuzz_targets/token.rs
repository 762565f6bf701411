//! Run with `cargo +nightly fuzz run token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::strangers::token(data));
