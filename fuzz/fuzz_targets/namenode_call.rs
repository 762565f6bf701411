//! Run with `cargo +nightly fuzz run namenode_call`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::servers::namenode_call(data));
