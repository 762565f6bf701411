//! Commands for the developers of Cairn.
//!
//! `cargo xtask proto` writes `crates/wire/src/proto/*.rs` from the message lists in
//! `crates/wire/proto`; `cargo xtask proto --check` only says whether they are up to date.
//!
//! `cargo xtask fuzz RUNS` has each fuzz target that is about a decoder of outside bytes run so often.

mod proto;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["proto"] => proto::write(),
        ["proto", "--check"] => proto::check(),
        ["fuzz", runs] => fuzz(runs),
        _ => Err("usage: cargo xtask proto [--check] | fuzz RUNS".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs each decoder of outside bytes over so many inputs, one target on each processor, and prints how many there were.
/// All that are read of a peer before it is known are among them.
fn fuzz(runs: &str) -> Result<(), String> {
    runs.parse::<u64>().map_err(|_| format!("no number of runs: {runs}"))?;
    let words = "test --release --package cairn-net --test any_bytes -- --nocapture";
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let status = cargo.args(words.split(' ')).env("CAIRN_FUZZ_RUNS", runs).status();
    match status.map_err(|error| format!("cargo cannot be run: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("cargo test: {status}")),
    }
}
