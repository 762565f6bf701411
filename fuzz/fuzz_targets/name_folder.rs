//! Run with `cargo +nightly fuzz run name_folder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cairn_fuzz::servers::name_folder(data));
