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
    // Some need most of what they have.
    let comes_down = |seed: u64| {
        let whole = traced(seed, Options::default());
        let mut runs = 0;
        let mut again = |options| {
            runs += 1;
            run(seed, options, &mut NoProof)
        };
        let best = shrink(Options::default(), &mut again).expect("it fails");
        let short = traced(seed, best);
        let (lines, left) = (whole.trace.len(), short.trace.len());
        println!("seed {seed}: {lines} lines, {left} after {runs} runs: {best:?}");
        assert!(short.violation.is_some());
        (4 * left < 3 * lines).then_some((seed, best, short))
    };
    let found = (0..200).filter(fails_late).take(5).find_map(comes_down);
    let (seed, best, short) = found.expect("none of five that fail late comes down");
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
