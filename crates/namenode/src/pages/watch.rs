//! What is watched for the pages as long as the NameNode runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_operate::workers::Worker;
use cairn_process::lasting;
use tokio::time::MissedTickBehavior;

use super::census;
use super::history::{PERIOD, Sample};
use super::seen::Pages;

/// How long a count of layouts holds: so many times as long as it took, within these bounds.
const HOLDS: u32 = 50;
const HOLDS_MIN: Duration = Duration::from_secs(5);
const HOLDS_MAX: Duration = Duration::from_secs(600);

/// Takes samples for charts.
pub(crate) async fn sample(pages: Arc<Pages>, worker: Arc<Worker>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        worker.rest(ticks.tick()).await;
        let pages = Arc::clone(&pages);
        lasting::blocking(move || {
            let node = &pages.node;
            let stats = node.see_cluster(|cluster| cluster.stats(node.now()));
            let calls = node.rpc_metrics.methods().iter().map(|method| method.times.calls()).sum();
            pages.history.add(Sample {
                waiting: stats.scheduled_reconstruction,
                under_way: stats.pending_reconstruction,
                mended: stats.mended,
                calls,
            });
        })
        .await;
    }
}

/// Counts how data is kept when somebody has looked and the last count is old.
pub(crate) async fn count(pages: Arc<Pages>, worker: Arc<Worker>) {
    loop {
        worker.rest(pages.censuses.wanted()).await;
        let begun = Instant::now();
        match census::take(&pages.node).await {
            Ok(census) => pages.censuses.put(census),
            Err(error) => {
                tracing::warn!(%error, "the layouts of blocks cannot be counted");
                worker.failed(error);
            }
        }
        let holds = (begun.elapsed() * HOLDS).clamp(HOLDS_MIN, HOLDS_MAX);
        worker.rest(tokio::time::sleep(holds)).await;
    }
}
