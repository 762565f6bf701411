//! What a failing seed comes down to still fails, is shorter, and replays.

use cairn_sim::{FAULT_KINDS, Options, Parts, Report, run, shrink};

/// Rebuilt units are believed.
struct NoProof;

impl Parts for NoProof {
    fn compares_crcs(&self) -> bool {
        false
    }
}

fn traced(seed: u64, options: Options) -> Report {
    run(seed, Options { trace: true, ..options }, &mut NoProof)
}

#[test]
fn a_failing_seed_comes_down_to_a_shorter_one_that_replays() {
    // One that fails late, so that there is much to leave out.
    let fails_late = |seed: &u64| {
        let report = traced(*seed, Options::default());
        report.violation.is_some() && report.trace.len() > 1000
    };
    let seed = (0..200).find(fails_late);
    let seed = seed.expect("no seed has found the bug");
    let whole = traced(seed, Options::default());
    let mut runs = 0;
    let mut again = |options| {
        runs += 1;
        run(seed, options, &mut NoProof)
    };
    let best = shrink(Options::default(), &mut again).expect("it fails");
    let short = traced(seed, best);
    println!(
        "seed {seed}: {} lines, {} after {runs} runs: {best:?}",
        whole.trace.len(),
        short.trace.len()
    );
    assert!(short.violation.is_some());
    assert!(4 * short.trace.len() < 3 * whole.trace.len(), "{} lines", short.trace.len());
    assert_eq!(short, traced(seed, best), "it is the same each time");
    let memory = FAULT_KINDS.iter().position(|kind| *kind == "memory").expect("a kind of faults");
    assert_eq!(best.without & 1 << memory, 0, "the kind of faults that it takes is left");
}

#[test]
fn a_seed_that_does_not_fail_comes_down_to_nothing() {
    let mut runs = 0;
    let mut right = |options| {
        runs += 1;
        run(1, options, &mut cairn_sim::Right)
    };
    assert_eq!(shrink(Options::default(), &mut right), None);
    assert_eq!(runs, 1);
}
