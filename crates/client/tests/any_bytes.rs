//! Runs the fuzz targets of whole servers over their corpora, and over what comes of these when a few bytes change, so that
//! they are checked without a fuzzer.

#[path = "../../../fuzz/src/servers.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A xorshift generator: the same bytes in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// Changes one byte, puts one in, or takes some out.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        let (at, byte) = (self.below(bytes.len() + 1), self.below(256) as u8);
        match (self.below(8), bytes.get_mut(at)) {
            (0, _) | (_, None) => bytes.insert(at, byte),
            (1, _) => bytes.truncate(at),
            (2, Some(there)) => *there ^= 1 << (byte % 8),
            (_, Some(there)) => *there = byte,
        }
    }
}

fn run(target: fn(&[u8]), bytes: &[u8]) {
    if let Err(why) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        println!("found by {bytes:?}");
        resume_unwind(why);
    }
}

/// For how long each target is to run over other inputs in every run, if for any time.
fn longer() -> Option<Duration> {
    let seconds = std::env::var("CAIRN_FUZZ_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("a number of seconds")))
}

#[track_caller]
fn check(name: &str, target: fn(&[u8]), changed: usize) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&corpus).unwrap().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    assert!(files.len() > 3, "{} has {} inputs", corpus.display(), files.len());
    let inputs: Vec<_> = files.iter().map(|file| std::fs::read(file.path()).unwrap()).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for input in &inputs {
        run(target, input);
        for _ in 0..changed {
            let mut bytes = input.clone();
            (0..=random.below(3)).for_each(|_| random.change(&mut bytes));
            run(target, &bytes);
        }
    }
    let Some(time) = longer() else { return };
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let (mut random, end, mut runs) = (Random(seed), Instant::now() + time, 0);
    while Instant::now() < end {
        let mut bytes = inputs[random.below(inputs.len())].clone();
        if random.below(2) == 0 {
            bytes.extend(&inputs[random.below(inputs.len())]);
        }
        (0..=random.below(6)).for_each(|_| random.change(&mut bytes));
        run(target, &bytes);
        runs += 1;
    }
    println!("{name}: {runs} runs from {seed}");
}

#[test]
fn calls_of_a_name_node() {
    // A request of each method of each protocol, with what most have first: a path, or nothing.
    for (protocol, method) in targets::name_node_methods() {
        for body in [&b""[..], b"\x0a\x02/a\x12\x02/a\x18\x01"] {
            targets::namenode_call(&targets::piece(protocol, method, body));
        }
    }
    check("namenode_call", targets::namenode_call, 3);
}

#[test]
fn calls_of_a_data_node() {
    check("datanode_call", targets::datanode_call, 3);
}

#[test]
fn operations_of_a_data_node() {
    check("datanode_transfer", targets::datanode_transfer, 3);
}

#[test]
fn requests_for_pages() {
    check("http_request", targets::http_request, 3);
}

#[test]
fn entries_of_the_log() {
    check("log_entry", targets::log_entry, 300);
}

#[test]
fn folders_of_a_name_node() {
    check("name_folder", targets::name_folder, 1);
}
