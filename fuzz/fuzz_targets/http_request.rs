//! Run with `cargo +nightly fuzz run http_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::servers::http_request(data));
