//! A corpus, and what comes of it when a few bytes change: how a target is checked without a fuzzer.

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

/// Runs a target over the corpus in a folder, and over `changed` inputs more that each of these becomes; for as long as
/// `CAIRN_FUZZ_SECONDS` says also over others than in the last run.
#[track_caller]
pub fn check(corpora: &str, name: &str, target: fn(&[u8]), changed: usize) {
    let corpus = Path::new(corpora).join(name);
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
