//! `cairn-sim`: many seeds, or one with its trace.

use cairn_sim::{FAULT_KINDS, Options, Report, Right, run, shrink};
use clap::Parser;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tikv_jemallocator::Jemalloc;

/// Much of a seed's time is small pieces of memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

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
    /// Clients at most.
    #[arg(long)]
    clients: Option<usize>,
    /// Files are in contiguous groups in all simulations.
    #[arg(long)]
    groups: bool,
    /// Short blocks of such files are packed into containers in all simulations.
    #[arg(long)]
    packing: bool,
    /// The NameNode's log is slow at each write, and clients often want files closed that others write.
    #[arg(long)]
    contended: bool,
    /// Faults come five times as often, and scanners a twentieth as often while they do.
    #[arg(long)]
    harsh: bool,
    /// In the end the NameNode is restored from a backup of some time ago.
    #[arg(long)]
    restores: bool,
    /// Kinds of faults that do not happen, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = FAULT_KINDS)]
    without: Vec<String>,
    /// How long clients work and faults happen, in simulated seconds.
    #[arg(long)]
    busy: Option<u64>,
    /// Go on after a failure.
    #[arg(long)]
    all: bool,
    /// Of a failing seed, find fewer kinds of faults, fewer faults and a shorter time that still fail.
    #[arg(long, requires = "seed")]
    shrink: bool,
}

impl Arguments {
    fn without_bits(&self) -> u16 {
        let named = |kind: &str| self.without.iter().any(|name| name == kind);
        let bits = FAULT_KINDS.iter().enumerate().filter(|(_, kind)| named(kind));
        bits.fold(0, |bits, (bit, _)| bits | 1 << bit)
    }

    fn options(&self) -> Options {
        let default = Options::default();
        Options {
            trace: self.trace,
            faults: self.faults.unwrap_or(default.faults),
            clients: self.clients.unwrap_or(default.clients),
            groups: self.groups,
            packing: self.packing,
            is_contended: self.contended,
            is_harsh: self.harsh,
            restores: self.restores,
            without: self.without_bits(),
            busy_ms: self.busy.map_or(default.busy_ms, |seconds| seconds * 1000),
            ..default
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) if arguments.shrink => shorten(seed, arguments.options()),
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
        let groups = if arguments.groups { " --groups" } else { "" };
        let packing = if arguments.packing { " --packing" } else { "" };
        let contended = if arguments.contended { " --contended" } else { "" };
        let harsh = if arguments.harsh { " --harsh" } else { "" };
        let restores = if arguments.restores { " --restores" } else { "" };
        let busy = arguments.busy.map(|busy| format!(" --busy {busy}")).unwrap_or_default();
        println!(
            "seed {seed}: {why}\n  replay: cargo run -p cairn-sim -- --seed {seed}{groups}{packing}{contended}{harsh}{restores}{busy} --trace"
        );
    }
    println!("{} seeds, {} failed", arguments.seeds, failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints how to replay what a failing seed comes down to.
fn shorten(seed: u64, options: Options) -> ExitCode {
    let Some(best) = shrink(options, &mut |options| run(seed, options, &mut Right)) else {
        println!("seed {seed} does not fail");
        return ExitCode::SUCCESS;
    };
    let report = run(seed, Options { trace: true, ..best }, &mut Right);
    println!("seed {seed}, {} lines: {}", report.trace.len(), report.violation.unwrap_or_default());
    let mut command =
        format!("cargo run -p cairn-sim -- --seed {seed} --trace --busy {}", best.busy_ms / 1000);
    if best.groups {
        command += " --groups";
    }
    if best.packing {
        command += " --packing";
    }
    if best.is_contended {
        command += " --contended";
    }
    if best.is_harsh {
        command += " --harsh";
    }
    if best.faults != u32::MAX {
        command += &format!(" --faults {}", best.faults);
    }
    if best.clients != usize::MAX {
        command += &format!(" --clients {}", best.clients);
    }
    let left_out = FAULT_KINDS.iter().enumerate().filter(|(bit, _)| best.without & 1 << bit != 0);
    let left_out: Vec<&str> = left_out.map(|(_, kind)| *kind).collect();
    if !left_out.is_empty() {
        command += &format!(" --without {}", left_out.join(","));
    }
    println!("{command}");
    ExitCode::FAILURE
}
