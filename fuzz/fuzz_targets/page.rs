//! Run with `cargo +nightly fuzz run page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::strangers::page(data));
