//! Saves what is in memory to disks, round by round, and tells the NameNode of what has left memory.
//!
//! Runs wherever there is a RAM_DISK volume, also if nothing new may go there: what an earlier start has left in
//! memory is to be saved. Tested in `tests/it/ram_disk.rs`.
//!
//! Source: Hadoop 3.5.0 `FsDatasetImpl.LazyWriter`, `RamDiskAsyncLazyPersistService`.

use crate::dataset::Block;
use crate::error::DataNodeError;
use crate::node::Node;
use crate::scanner::name_node_known;
use crate::workers;
use cairn_stripe::BlockId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The shortest time between two rounds.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// Starts the lazy writer, if there is work for it.
pub(crate) fn start(node: &Arc<Node>) {
    if node.dataset.has_ram_disk() && !node.saves_memory.swap(true, Ordering::AcqRel) {
        node.spawn_lasting("the lazy writer", save(node.clone()));
        node.spawn_lasting("the news of the lazy writer", tell(node.clone()));
    }
}

async fn save(node: Arc<Node>) {
    let interval = node.config.lazy_writer_interval.max(SHORTEST_INTERVAL);
    let worker = node.workers.begin(&workers::LAZY_WRITER, "");
    loop {
        worker.pass().await;
        // What fails waits for the next round.
        for _ in 0..node.dataset.ram_disk_stats().unsaved {
            let Some((id, saved)) = node.dataset.save_next().await else { break };
            let Err(error) = saved else { continue };
            tracing::warn!(block = %id, %error, "cannot save a replica that is in memory");
            worker.failed(&error);
            match error {
                DataNodeError::Checksum(_) => {
                    node.tasks.spawn(report_bad(node.clone(), id, error));
                }
                // The disk it should go to, most likely.
                _ => node.check_volume(&error),
            }
        }
        worker.rest(tokio::time::sleep(interval)).await;
    }
}

/// Tells the NameNode, once it knows this DataNode, that memory has other bytes than were written.
async fn report_bad(node: Arc<Node>, id: BlockId, error: DataNodeError) {
    name_node_known(&node).await;
    if let (Some(replica), Some(pool)) = (node.dataset.get(id), node.dataset.pool_id()) {
        let (gs, len) = (replica.gs(), replica.on_disk_len());
        node.note_read_error(&Block { pool: pool.into(), id, gs, len }, &error);
    }
}

async fn tell(node: Arc<Node>) {
    loop {
        match node.dataset.left_memory().await {
            Ok(left) => left.iter().for_each(|done| node.report_received(done, None)),
            Err(error) => tracing::warn!(%error, "cannot tell what has left memory"),
        }
    }
}
