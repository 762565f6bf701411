//! `cairn-sim`: many seeds, or one with its trace.

use cairn_sim::{Options, Report, Right, run};
use clap::Parser;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Simulates clusters, one for each seed, and stops at the first that breaks a promise.
#[derive(Parser)]
#[command(name = "cairn-sim")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happens in it.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Faults at most: a failing seed may be easier to read with fewer.
    #[arg(long)]
    faults: Option<u32>,
    /// How long clients work and faults happen, in simulated seconds.
    #[arg(long)]
    busy: Option<u64>,
    /// Go on after a failure.
    #[arg(long)]
    all: bool,
    /// Of a failing seed, find the fewest faults and the shortest time that still fail.
    #[arg(long, requires = "seed")]
    shrink: bool,
}

impl Arguments {
    fn options(&self) -> Options {
        let default = Options::default();
        Options {
            trace: self.trace,
            faults: self.faults.unwrap_or(default.faults),
            busy_ms: self.busy.map_or(default.busy_ms, |seconds| seconds * 1000),
            ..default
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) if arguments.shrink => shrink(seed, arguments.options()),
        Some(seed) => one(seed, arguments.options()),
        None => many(&arguments),
    }
}

fn one(seed: u64, options: Options) -> ExitCode {
    let report = run(seed, options, &mut Right);
    report.trace.iter().for_each(|line| println!("{line}"));
    for (what, count) in &report.counts {
        println!("{count:8} {what}");
    }
    println!("{:8} simulated seconds", report.time_ms / 1000);
    match report.violation {
        Some(why) => {
            println!("seed {seed}: {why}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn many(arguments: &Arguments) -> ExitCode {
    let next = AtomicU64::new(arguments.from);
    let end = arguments.from.saturating_add(arguments.seeds);
    let failed: Mutex<BTreeMap<u64, String>> = Mutex::default();
    let counts: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    let worker = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let is_over = !arguments.all && failed.lock().is_ok_and(|failed| !failed.is_empty());
        if seed >= end || is_over {
            return;
        }
        let Report { violation, counts: own, .. } = run(seed, arguments.options(), &mut Right);
        if let Ok(mut counts) = counts.lock() {
            own.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
        }
        if let (Some(why), Ok(mut failed)) = (violation, failed.lock()) {
            failed.insert(seed, why);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        (0..workers).for_each(|_| _ = scope.spawn(worker));
    });
    for (what, count) in counts.into_inner().unwrap_or_default() {
        println!("{count:10} {what}");
    }
    let failed = failed.into_inner().unwrap_or_default();
    for (seed, why) in &failed {
        println!("seed {seed}: {why}\n  replay: cargo run -p cairn-sim -- --seed {seed} --trace");
    }
    println!("{} seeds, {} failed", arguments.seeds, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Bisects the number of faults, then the time.
fn shrink(seed: u64, options: Options) -> ExitCode {
    let fails = |options: Options| run(seed, options, &mut Right).violation;
    if fails(options).is_none() {
        println!("seed {seed} does not fail");
        return ExitCode::SUCCESS;
    }
    let mut best = options;
    for faults in 0..=64 {
        let fewer = Options { faults, ..best };
        if fails(fewer).is_some() {
            best = fewer;
            break;
        }
    }
    let mut step = best.busy_ms / 2;
    while step >= 1000 {
        let shorter = Options { busy_ms: best.busy_ms.saturating_sub(step), ..best };
        if fails(shorter).is_some() {
            best = shorter;
        }
        step /= 2;
    }
    let seconds = best.busy_ms / 1000;
    let busy = Options { busy_ms: seconds * 1000, ..best };
    let best = if fails(busy).is_some() {
        busy
    } else {
        Options { busy_ms: (seconds + 1) * 1000, ..best }
    };
    let faults =
        if best.faults == u32::MAX { String::new() } else { format!(" --faults {}", best.faults) };
    let seconds = best.busy_ms / 1000;
    println!("seed {seed}: {}", fails(best).unwrap_or_default());
    println!("cargo run -p cairn-sim -- --seed {seed} --trace --busy {seconds}{faults}");
    ExitCode::FAILURE
}
