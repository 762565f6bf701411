//! Run with `cargo +nightly fuzz run transfer_op`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::decoders::transfer_op(data));
