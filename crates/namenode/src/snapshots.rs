//! What is done for snapshottable directories without being asked: snapshots that are deleted in order go when they have
//! become the earliest, and directories get trash of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_master::Submission;
use cairn_namespace::command::Caller;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::snapshot::CollectSnapshot;
use cairn_namespace::snapshot::{self, listing};
use cairn_namespace::{Outcome, query};
use cairn_operate::workers::Worker;
use cairn_redundancy::Cluster;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::clock::TICK_MIN;
use crate::node::NameNode;
use crate::refusal::Refusal;

/// Everybody throws things away there, and nobody what is another's.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#SHARED_TRASH_PERMISSION`.
const SHARED_TRASH: u16 = 0o1777;

/// The trash of a directory, in which each user has a folder.
pub(crate) const TRASH: &str = ".Trash";

/// Deletes snapshots that were marked as deleted and are the earliest of their directories by now, once in each period;
/// never where snapshots are not deleted in order.
///
/// Source: Hadoop 3.5.0 `SnapshotDeletionGc`. Deviation: Hadoop deletes one in each period.
pub(crate) async fn collect(node: Arc<NameNode>, worker: Arc<Worker>) {
    if !node.config.snapshots_deleted_in_order {
        return worker.off().await;
    }
    let period = node.config.snapshot_collection_period.max(TICK_MIN);
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        worker.rest(ticks.tick()).await;
        if let Err(refusal) = node.collect_snapshots().await {
            tracing::warn!(refusal = %refusal.0, "deleted snapshots stay where they are");
            worker.failed(&refusal.0);
        }
    }
}

/// Makes what trash snapshottable directories lack, each time that safe mode has ended and nobody who was told of it
/// has.
pub(crate) async fn provision(node: Arc<NameNode>, worker: Arc<Worker>) {
    loop {
        worker.rest(node.missing_trash.ended.notified()).await;
        node.make_missing_trash().await;
    }
}

impl NameNode {
    /// Does something that may begin or end safe mode. Before others are told that it is off they are to wait for
    /// [`NameNode::make_missing_trash`].
    pub(crate) fn change_safe_mode<R>(&self, change: impl FnOnce(&mut Cluster) -> R) -> R {
        let mut cluster = self.cluster();
        let was_on = cluster.safe_mode().is_on();
        let done = change(&mut cluster);
        self.note_safe_mode(&cluster, was_on);
        done
    }

    /// Notes the end of safe mode, if it was on, while the cluster is locked.
    pub(crate) fn note_safe_mode(&self, cluster: &Cluster, was_on: bool) {
        if was_on && !cluster.safe_mode().is_on() {
            self.trash_may_be_missing();
        }
    }

    /// Has somebody look for trash that directories lack, if they are to have any.
    pub(crate) fn trash_may_be_missing(&self) {
        if self.config.snapshot_trash_roots {
            self.missing_trash.due.store(true, Ordering::SeqCst);
            self.missing_trash.ended.notify_one();
        }
    }

    /// Makes what trash snapshottable directories lack, if safe mode has ended and nobody has looked since, or waits for
    /// who does.
    ///
    /// Source: Hadoop 3.5.0 `FSNamesystem#checkAndProvisionSnapshotTrashRoots`, which holds the lock of the tree.
    pub(crate) async fn make_missing_trash(&self) {
        let _alone = self.missing_trash.alone.lock().await;
        if self.missing_trash.due.swap(false, Ordering::SeqCst)
            && let Err(refusal) = self.provision_trash().await
        {
            tracing::error!(refusal = %refusal.0, "cannot look for snapshottable directories");
        }
    }

    async fn collect_snapshots(&self) -> Result<(), Refusal> {
        self.check_safe_mode(|| "Cannot delete snapshots".to_string())?;
        while let Some((directory, found)) = self.ns.read(|store| snapshot::first_due(store))? {
            let outcome = self.submit_own(CollectSnapshot {}).await?;
            if !matches!(outcome, Outcome::Removed { done: true, .. }) {
                break;
            }
            tracing::info!(%directory, snapshot = %found.name, "a deleted snapshot is gone");
        }
        Ok(())
    }

    /// Makes the trash of each snapshottable directory that has none, in the NameNode's own name.
    async fn provision_trash(&self) -> Result<(), Refusal> {
        for path in self.snapshot_trash_roots()? {
            let system = Caller::system();
            if self.ns.read(|store| query::get_file_info(store, &system, &path))?.is_some() {
                continue;
            }
            let command =
                Mkdirs { path: path.clone(), mode: SHARED_TRASH.into(), create_parent: false };
            let caller = self.caller_named(self.superuser.clone()).await;
            match self.log(Submission::of(caller, None, command)).await {
                Ok(_) => tracing::info!(%path, "a snapshottable directory gets its trash"),
                Err(error) => {
                    tracing::error!(%path, %error, "a snapshottable directory gets no trash");
                }
            }
        }
        Ok(())
    }

    /// Where the trash of each snapshottable directory is or would be.
    pub(crate) fn snapshot_trash_roots(&self) -> Result<Vec<String>, Refusal> {
        let system = Caller::system();
        let found = self.ns.read(|store| listing::snapshottable_directories(store, &system))?;
        let path = |found: &listing::SnapshottableDirectory| {
            let parent = found.parent.trim_end_matches('/');
            match found.inode.name.as_str() {
                "" => format!("/{TRASH}"),
                name => format!("{parent}/{name}/{TRASH}"),
            }
        };
        Ok(found.iter().map(path).collect())
    }
}
