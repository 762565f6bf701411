//! Run with `cargo +nightly fuzz run meta_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::decoders::meta_file(data));
