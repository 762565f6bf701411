//! Commands for the developers of Cairn.
//!
//! `cargo xtask proto` writes `crates/wire/src/proto/*.rs` from the message lists in
//! `crates/wire/proto`; `cargo xtask proto --check` only says whether they are up to date.

mod proto;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["proto"] => proto::write(),
        ["proto", "--check"] => proto::check(),
        _ => Err("usage: cargo xtask proto [--check]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
