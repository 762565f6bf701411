//! The loops that turn time into events.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_namespace::Outcome;
use cairn_namespace::ops::delete::Purge;
use cairn_operate::workers::Worker;
use cairn_process::disk_work::step_aside;
use cairn_process::lasting;
use cairn_redundancy::Sample;
use tokio::sync::watch;

use crate::clock::TICK_MIN;
use crate::dice::dice;
use crate::node::NameNode;

/// The longest time between two looks at the clock for the cluster's sake; [`TICK_MIN`] is the shortest.
const TICK_MAX: Duration = Duration::from_secs(1);
/// Blocks of which it is looked with each tick whether what is known of them fits together: a fraction of a millisecond
/// of who holds the cluster, but where tests may be running.
const CHECKED: usize = if cfg!(debug_assertions) { 20_000 } else { 1000 };
/// Inodes and blocks of deleted trees that one command removes.
const PURGE_LIMIT: u64 = 500;
/// Longest rest between two of these.
const PURGE_REST_MAX: Duration = Duration::from_millis(100);

/// Ends all service when no change can be made durable any more: clients of a NameNode that only reads would wait.
pub(super) async fn stop_without_log(
    node: Arc<NameNode>,
    worker: Arc<Worker>,
    stop: watch::Sender<bool>,
) {
    let why = worker.rest(node.ns.failed()).await;
    tracing::error!(%why, "the NameNode stops");
    stop.send_replace(true);
}

/// Finds dead DataNodes, ends safe mode, plans what is to be mended.
pub(super) async fn tick_cluster(node: Arc<NameNode>, worker: Arc<Worker>) {
    let period = (node.config.heartbeat_interval / 4).clamp(TICK_MIN, TICK_MAX);
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut last, mut sample) = (node.now(), Sample::default());
    loop {
        worker.rest(ticks.tick()).await;
        let planner = Arc::clone(&node);
        // Planning can take longer than a task should hold its thread.
        let now = node.now();
        let tick = lasting::blocking(move || {
            planner.with_cluster(|cluster, lookup| {
                if cluster.excuse_silence(last, now) {
                    tracing::warn!("this process stood still: DataNodes' silence is excused");
                }
                let was_on = cluster.safe_mode().is_on();
                let inputs = planner.ns.last_inputs();
                inputs.note("tick", 0, now);
                let tick = cluster.tick(lookup, now, &mut dice);
                planner.note_safe_mode(cluster, was_on);
                (tick, cluster.check_some(sample, CHECKED))
            })
        });
        last = now;
        let (tick, next) = tick.await;
        sample = next;
        node.replace_disproved_crcs().await;
        if tick.more {
            take_steps(period, || walk_on(Arc::clone(&node))).await;
        }
        for handle in tick.died {
            let cluster = node.cluster();
            tracing::warn!(datanode = %cluster.node(handle).address, "DataNode is dead");
        }
        for handle in tick.admin {
            let cluster = node.cluster();
            let datanode = cluster.node(handle);
            tracing::info!(datanode = %datanode.address, state = %datanode.admin, "a DataNode changes");
        }
        if tick.left_safe_mode {
            tracing::info!("safe mode is off");
        }
    }
}

/// Goes on with what takes the cluster long. Returns whether more is to follow.
async fn walk_on(node: Arc<NameNode>) -> bool {
    lasting::blocking(move || node.with_cluster(|cluster, lookup| cluster.go_on(lookup))).await
}

/// Takes steps as long as more are to follow, but not longer than `most`: the next tick goes on, and what else it does
/// must not wait until millions of replicas are forgotten. Between the steps others get the lock.
async fn take_steps<F: Future<Output = bool>>(most: Duration, mut step: impl FnMut() -> F) {
    let begun = Instant::now();
    while step().await && begun.elapsed() < most {
        step_aside().await;
    }
}

/// Submits what follows from entries that came into force.
pub(super) async fn follow_up(node: Arc<NameNode>, worker: Arc<Worker>) {
    loop {
        let due = worker.rest(node.keeper.due()).await;
        if let Err(refusal) = node.follow_up(due).await {
            tracing::warn!(refusal = %refusal.0, "what DataNodes have told is not recorded");
            worker.failed(&refusal.0);
        }
    }
}

/// Closes files whose writers are gone.
pub(super) async fn watch_leases(node: Arc<NameNode>, worker: Arc<Worker>) {
    let mut ticks = tokio::time::interval(node.config.lease_recheck_interval.max(TICK_MIN));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        worker.rest(ticks.tick()).await;
        node.check_leases().await;
    }
}

/// Removes what is left of deleted trees, a piece at a time, beginning with what a stop left.
pub(super) async fn remove_garbage(node: Arc<NameNode>, worker: Arc<Worker>) {
    loop {
        worker.pass().await;
        // The start counts on being told of these blocks too: without them it would wait forever.
        while node.cluster().safe_mode().is_starting() {
            tokio::time::sleep(TICK_MAX).await;
        }
        // Deleted trees go as fast as the store's file takes them, so that nobody waits for it because of them.
        while node.ns.is_behind() {
            tokio::time::sleep(PURGE_REST_MAX).await;
        }
        let begun = Instant::now();
        match node.submit_own(Purge { limit: PURGE_LIMIT }).await {
            Ok(outcome) => {
                if matches!(outcome, Outcome::Removed { more: true, .. }) {
                    // Half of the time is others'.
                    tokio::time::sleep(begun.elapsed().min(PURGE_REST_MAX)).await;
                    continue;
                }
            }
            Err(refusal) => {
                tracing::error!(refusal = %refusal.0, "deleted trees are not cleaned up");
                worker.failed(&refusal.0);
            }
        }
        worker.rest(node.garbage.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn steps_end_with_the_last_one_and_when_their_time_is_over() {
        let taken = Cell::new(0);
        let step = |last: u32| {
            taken.set(taken.get() + 1);
            std::future::ready(taken.get() < last)
        };
        take_steps(Duration::MAX, || step(3)).await;
        assert_eq!(taken.get(), 3);
        let endless = take_steps(Duration::from_millis(5), || step(u32::MAX));
        assert!(tokio::time::timeout(Duration::from_secs(60), endless).await.is_ok());
    }
}
