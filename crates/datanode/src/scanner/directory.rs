//! Compares the folders of each volume with what is known of its finalized replicas.
//!
//! A replica whose block file has vanished is forgotten, and the NameNode told; one that has appeared is taken in;
//! one of another length, or without its meta file, is reported to be bad. Nothing is deleted. What the walk over
//! the folders finds is only a hint, for replicas come and go meanwhile: each is looked at once more while nothing
//! can change it.
//!
//! Source: Hadoop 3.5.0 `DirectoryScanner`, `FsDatasetImpl#checkAndUpdate`.

use super::acceptance::name_node_known;
use crate::cache;
use crate::dataset::{Block, Finalized, blocking};
use crate::error::Result;
use crate::node::Node;
use crate::volume::Volume;
use crate::volume::scan::{OnDisk, finalized_files};
use cairn_stripe::{BlockId, GenerationStamp};
use std::sync::Arc;

/// What differs on a volume.
#[derive(Default)]
struct Differences {
    vanished: Vec<(BlockId, GenerationStamp)>,
    appeared: Vec<Finalized>,
    misshapen: Vec<BlockId>,
}

/// Looks at all volumes each time the interval has passed.
pub(super) async fn run(node: Arc<Node>) {
    name_node_known(&node).await;
    loop {
        tokio::time::sleep(node.config.directory_scan_interval).await;
        for volume in node.dataset.volumes().iter().filter(|volume| !volume.is_failed()) {
            let (reader, disk) = (node.clone(), volume.clone());
            match blocking(move || reconcile(&reader, &disk)).await {
                Ok(differences) => tell(&node, volume, differences),
                Err(error) => {
                    tracing::warn!(dir = %volume.root().display(), %error, "cannot compare a volume");
                    node.check_volume(&error);
                }
            }
        }
    }
}

fn reconcile(node: &Node, volume: &Arc<Volume>) -> Result<Differences> {
    let dataset = &node.dataset;
    let mut known = dataset.all_finalized_on(volume);
    let mut found = Differences::default();
    for OnDisk { id, gs, len } in finalized_files(volume)? {
        match known.remove(&id) {
            Some(replica) => {
                let fits = gs == replica.gs() && len == replica.on_disk_len();
                if !fits && dataset.is_misshapen(id, volume)? {
                    found.misshapen.push(id);
                }
            }
            None => found.appeared.extend(dataset.adopt(id, gs, volume)?),
        }
    }
    for id in known.into_keys() {
        found.vanished.extend(dataset.forget_vanished(id, volume)?.map(|gs| (id, gs)));
    }
    Ok(found)
}

fn tell(node: &Arc<Node>, volume: &Volume, found: Differences) {
    let dir = volume.root().display();
    for (id, gs) in found.vanished {
        tracing::error!(block = %id, %dir, "a block file has vanished");
        cache::recheck(node, id);
        node.reports.deleted(id, gs, volume.storage_id());
    }
    for replica in found.appeared {
        tracing::warn!(block = %replica.id, %dir, "a block file has appeared");
        node.report_received(&replica, None);
    }
    for id in found.misshapen {
        let Some(replica) = node.dataset.finalized_on(id, volume) else { continue };
        tracing::error!(block = %id, %dir, "a block file has another length, or no meta file");
        let pool = node.dataset.pool_id().unwrap_or_default().into();
        let block = Block { pool, id, gs: replica.gs(), len: replica.on_disk_len() };
        node.report_own_bad_block(&block, volume);
    }
}
