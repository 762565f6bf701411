//! Run with `cargo +nightly fuzz run datanode_call`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::servers::datanode_call(data));
