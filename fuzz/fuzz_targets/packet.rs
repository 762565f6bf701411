//! Run with `cargo +nightly fuzz run packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::decoders::packet(data));
