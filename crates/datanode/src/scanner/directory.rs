//! Compares the folders of each volume with what is known of its finalized replicas.
//!
//! A replica whose block file has vanished is forgotten, and the NameNode told; one that has appeared is taken in;
//! one of another length, or without its meta file, is reported to be bad. A meta file whose block file is not there at
//! two walks is deleted, and nothing else is. What the walk over the folders finds is only a hint, for replicas come and
//! go meanwhile: each is looked at once more while nothing can change it.
//!
//! Source: Hadoop 3.5.0 `DirectoryScanner`, `FsDatasetImpl#checkAndUpdate`. Deviation: Hadoop deletes such a meta file at
//! once, and a block file that somebody puts back is no replica any more.

use super::acceptance::name_node_known;
use crate::cache;
use crate::dataset::{Block, Finalized, blocking};
use crate::error::Result;
use crate::node::Node;
use crate::volume::Volume;
use crate::volume::scan::{LoneMeta, OnDisk, finalized_files};
use crate::workers;
use cairn_stripe::{BlockId, GenerationStamp};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What differs on a volume.
#[derive(Default)]
struct Differences {
    vanished: Vec<(BlockId, GenerationStamp)>,
    appeared: Vec<Finalized>,
    misshapen: Vec<BlockId>,
    lone_metas: HashSet<LoneMeta>,
}

/// Looks at all volumes each time the interval has passed.
pub(super) async fn run(node: Arc<Node>) {
    let worker = node.workers.begin(&workers::DIRECTORY_SCANNER, "");
    name_node_known(&node).await;
    // Of each volume, what the last walk has found.
    let mut lone_metas: HashMap<String, HashSet<LoneMeta>> = HashMap::new();
    loop {
        worker.rest(tokio::time::sleep(node.config.directory_scan_interval)).await;
        for volume in node.dataset.volumes().iter().filter(|volume| !volume.is_failed()) {
            let (reader, disk) = (node.clone(), volume.clone());
            let before = lone_metas.remove(volume.storage_id()).unwrap_or_default();
            match blocking(move || reconcile(&reader, &disk, &before)).await {
                Ok(mut differences) => {
                    let lone = std::mem::take(&mut differences.lone_metas);
                    lone_metas.insert(volume.storage_id().to_string(), lone);
                    tell(&node, volume, differences);
                }
                Err(error) => {
                    tracing::warn!(dir = %volume.root().display(), %error, "cannot compare a volume");
                    worker.failed(&error);
                    node.check_volume(&error);
                }
            }
        }
    }
}

/// `lone_before` are the meta files that had no block file at the walk before.
fn reconcile(
    node: &Node,
    volume: &Arc<Volume>,
    lone_before: &HashSet<LoneMeta>,
) -> Result<Differences> {
    let dataset = &node.dataset;
    let mut known = dataset.all_finalized_on(volume);
    let mut found = Differences::default();
    let (blocks, lone_metas) = finalized_files(volume)?;
    for OnDisk { id, gs, len } in blocks {
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
    for (id, gs) in lone_metas {
        if !lone_before.contains(&(id, gs)) {
            found.lone_metas.insert((id, gs));
        } else if dataset.delete_lone_meta(id, gs, volume)? {
            let dir = volume.root().display();
            tracing::warn!(block = %id, %dir, "deleted a meta file whose block file has vanished");
        }
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
