//! Run with `cargo +nightly fuzz run log_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::servers::log_entry(data));
