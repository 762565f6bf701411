//! Workers as figures for monitors.

use cairn_net::monitoring::Metrics;

use super::{State, Told, Workers};

/// Adds one figure of a worker, under its labels.
type AddFigure<'a> = dyn FnMut(&Told, &[(&str, &str)]) + 'a;

impl Workers {
    /// Adds what there is to be known of each.
    pub fn figures(&self, metrics: &mut Metrics) {
        let all = self.told();
        let labels =
            |told: &Told| [("worker", told.kind.name.to_string()), ("of", told.of.clone())];
        let each = |add: &mut AddFigure<'_>| {
            for told in &all {
                let labels = labels(told);
                let labels = [0, 1].map(|at: usize| (labels[at].0, labels[at].1.as_str()));
                add(told, if told.of.is_empty() { &labels[..1] } else { &labels });
            }
        };
        each(&mut |told, labels| {
            let name = "worker_rounds_total";
            metrics.counter(name, "Rounds of background work", labels, told.rounds);
        });
        each(&mut |told, labels| {
            let name = "worker_busy_seconds_total";
            metrics.counter(name, "Time that they have taken", labels, told.busy.as_secs_f64());
        });
        each(&mut |told, labels| {
            let name = "worker_failures_total";
            metrics.counter(name, "Rounds that have failed", labels, told.failures);
        });
        each(&mut |told, labels| {
            let is_at_work = u8::from(told.state == State::Working);
            metrics.gauge_of("worker_working", "Whether a round is under way", labels, is_at_work);
        });
        each(&mut |told, labels| {
            let help = "Whether an operator holds it back";
            metrics.gauge_of("worker_paused", help, labels, u8::from(told.is_paused));
        });
    }
}
