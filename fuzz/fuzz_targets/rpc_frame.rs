//! Run with `cargo +nightly fuzz run rpc_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::decoders::rpc_frame(data));
