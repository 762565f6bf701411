//! Of a failing seed: fewer kinds of faults, fewer faults, fewer clients and less time that still fail.

use crate::fault_kinds::KINDS;
use crate::options::{Options, Report};

/// Most faults of which each number is tried.
const MOST_FAULTS: u32 = 64;
/// Steps in which the time is cut.
const TIME_STEP_MS: u64 = 1000;

/// The options with which a seed still fails, and its trace is shortest; `None` if it does not fail.
/// `run` simulates the seed.
pub fn shrink(options: Options, run: &mut dyn FnMut(Options) -> Report) -> Option<Options> {
    let mut search = Search { run, best: options, lines: usize::MAX };
    if !search.tries(options) {
        return None;
    }
    let mut is_shorter = true;
    while is_shorter {
        let before = search.lines;
        search.round();
        is_shorter = search.lines < before;
    }
    Some(search.best)
}

struct Search<'a> {
    run: &'a mut dyn FnMut(Options) -> Report,
    best: Options,
    /// Of its trace.
    lines: usize,
}

impl Search<'_> {
    /// Takes what fails with fewer lines.
    fn tries(&mut self, options: Options) -> bool {
        let report = (self.run)(Options { trace: true, ..options });
        let is_better = report.violation.is_some() && report.trace.len() < self.lines;
        if is_better {
            (self.best, self.lines) = (options, report.trace.len());
        }
        is_better
    }

    fn round(&mut self) {
        for kind in 0..KINDS.len() {
            let without = self.best.without | 1 << kind;
            if without != self.best.without {
                self.tries(Options { without, ..self.best });
            }
        }
        for clients in 1..self.best.clients.min(3) {
            if self.tries(Options { clients, ..self.best }) {
                break;
            }
        }
        for faults in 0..self.best.faults.min(MOST_FAULTS) {
            if self.tries(Options { faults, ..self.best }) {
                break;
            }
        }
        let mut step = (self.best.busy_ms / 2).next_multiple_of(TIME_STEP_MS);
        while step >= TIME_STEP_MS {
            let busy_ms = self.best.busy_ms.saturating_sub(step).max(TIME_STEP_MS);
            let is_cut = busy_ms < self.best.busy_ms;
            if !is_cut || !self.tries(Options { busy_ms, ..self.best }) {
                step = (step / 2) / TIME_STEP_MS * TIME_STEP_MS;
            }
        }
    }
}
