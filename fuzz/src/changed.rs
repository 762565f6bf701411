//! Inputs, and what comes of them when a few bytes change: how a target is checked without a fuzzer.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A xorshift generator: the same bytes in every run.
struct Random(u64);

impl Random {
    /// The same ones in every run.
    fn same() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// Makes them any bytes, not many.
    fn any(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.extend((0..self.below(65)).map(|_| self.below(256) as u8));
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

/// For how much longer each target is to run over other inputs than in the last run.
enum Longer {
    For(Duration),
    Runs(u64),
}

impl Longer {
    /// What `CAIRN_FUZZ_RUNS` says, or `CAIRN_FUZZ_SECONDS`, if either is there.
    fn told() -> Option<Longer> {
        let told = |name| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}: no number: {text}")))
        };
        let seconds = || Some(Longer::For(Duration::from_secs(told("CAIRN_FUZZ_SECONDS")?)));
        told("CAIRN_FUZZ_RUNS").map(Longer::Runs).or_else(seconds)
    }

    fn is_over(&self, begun: Instant, runs: u64) -> bool {
        match *self {
            Longer::For(time) => begun.elapsed() >= time,
            Longer::Runs(most) => runs >= most,
        }
    }
}

/// Runs a target over inputs, over `changed` more that each of these becomes, and over as many of any bytes; for as long as
/// is asked for also over others than in the last run.
pub fn check(name: &str, inputs: &[Vec<u8>], target: fn(&[u8]), changed: usize) {
    let (mut random, mut bytes) = (Random::same(), Vec::new());
    for input in inputs {
        run(target, input);
        for _ in 0..changed {
            let mut bytes = input.clone();
            (0..=random.below(3)).for_each(|_| random.change(&mut bytes));
            run(target, &bytes);
        }
    }
    for _ in 0..changed {
        random.any(&mut bytes);
        run(target, &bytes);
    }
    let Some(longer) = Longer::told() else { return };
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let (mut random, begun, mut runs) = (Random(seed), Instant::now(), 0);
    while !longer.is_over(begun, runs) {
        match random.below(16) {
            0 => random.any(&mut bytes),
            other => {
                bytes.clear();
                for _ in 0..=other % 2 {
                    bytes.extend(&inputs[random.below(inputs.len())]);
                }
                (0..=random.below(6)).for_each(|_| random.change(&mut bytes));
            }
        }
        run(target, &bytes);
        runs += 1;
    }
    println!("{name}: {runs} runs from {seed} in {} s", begun.elapsed().as_secs());
}
