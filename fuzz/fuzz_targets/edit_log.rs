//! Run with `cargo +nightly fuzz run edit_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::edits::edit_log(data));
