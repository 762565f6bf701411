//! Replicas that are kept in memory because the NameNode says so: their pages are mapped and locked.
//!
//! Readers find them in the page cache, from which they are served anyway. A replica is checked against its CRCs
//! once when it comes in. It leaves when it is not what came in any more: appended to, cut, moved or deleted. Whoever
//! does that asks for [`recheck`]; what else becomes of a replica shows before the next report.
//!
//! Source: Hadoop 3.5.0 `FsDatasetCache`, `MappableBlockLoader`.

use crate::dataset::{Block, ReadView, blocking};
use crate::error::{Context, DataNodeError, Result};
use crate::node::Node;
use crate::node::cached::{Held, Image, Pages};
use crate::sys;
use cairn_codec::crc::{self, ChecksumKind};
use cairn_stripe::BlockId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long clients may hold a replica in memory that is to leave it: the default of
/// `dfs.datanode.cache.revocation.timeout.ms`, and of `dfs.datanode.cache.revocation.polling.ms`.
const LONGEST_ANCHOR: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Bytes checked at once.
const STEP: u64 = 1 << 20;

/// Takes replicas into memory, one after the other.
pub(crate) async fn fill(node: Arc<Node>, ids: Vec<BlockId>) {
    for id in ids {
        match node.cache.lock().entry(id) {
            Entry::Occupied(mut held) => {
                match held.get_mut() {
                    Held::Coming { unwanted } => *unwanted = false,
                    Held::There { image, is_leaving, .. } => {
                        if image.is_current(&node.dataset, id) {
                            *is_leaving = false;
                            node.short_circuit.allow_anchors(id);
                        }
                    }
                }
                continue;
            }
            Entry::Vacant(place) => _ = place.insert(Held::Coming { unwanted: false }),
        }
        let taken = take_in(&node, id).await;
        let mut held = node.cache.lock();
        let is_unwanted = matches!(held.get(&id), Some(Held::Coming { unwanted: true }));
        match taken {
            Ok(_) if is_unwanted => _ = held.remove(&id),
            Ok((image, _)) if !image.is_current(&node.dataset, id) => {
                held.remove(&id);
                node.metrics.failed_to_cache.add(1);
                tracing::info!(block = %id, "a replica was changed while it was taken into memory");
            }
            Ok((image, pages)) => {
                node.metrics.cached.add(1);
                held.insert(id, Held::There { image, _pages: pages, is_leaving: false });
                node.short_circuit.allow_anchors(id);
                node.cache.note_change();
            }
            Err(error) => {
                held.remove(&id);
                node.metrics.failed_to_cache.add(1);
                tracing::warn!(block = %id, %error, "a replica cannot be kept in memory");
            }
        }
    }
}

/// Gives replicas up; those that clients read without checking, once they have done.
pub(crate) fn drain(node: &Arc<Node>, ids: &[BlockId]) {
    let mut held = node.cache.lock();
    for id in ids {
        match held.get_mut(id) {
            Some(Held::Coming { unwanted }) => *unwanted = true,
            Some(Held::There { .. }) => leave(node, &mut held, *id),
            // The NameNode believes that it is here.
            None => node.cache.note_change(),
        }
    }
}

/// Gives a replica up that is not what is in memory any more.
pub(crate) fn recheck(node: &Arc<Node>, id: BlockId) {
    let mut held = node.cache.lock();
    if let Some(Held::There { image, .. }) = held.get(&id)
        && !image.is_current(&node.dataset, id)
    {
        leave(node, &mut held, id);
    }
}

fn leave(node: &Arc<Node>, held: &mut HashMap<BlockId, Held>, id: BlockId) {
    if !node.short_circuit.refuse_anchors(id) {
        if let Some(Held::There { is_leaving, .. }) = held.get_mut(&id)
            && !std::mem::replace(is_leaving, true)
        {
            node.tasks.spawn(wait_for_readers(node.clone(), id));
        }
        return;
    }
    held.remove(&id);
    node.metrics.uncached.add(1);
    node.cache.note_change();
}

/// Gives a replica up when no client reads it without checking any more, or has done so for too long.
///
/// Source: Hadoop 3.5.0 `FsDatasetCache.UncachingTask`.
async fn wait_for_readers(node: Arc<Node>, id: BlockId) {
    let deadline = Instant::now() + LONGEST_ANCHOR;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut held = node.cache.lock();
        if !matches!(held.get(&id), Some(Held::There { is_leaving: true, .. })) {
            return;
        }
        if node.short_circuit.refuse_anchors(id) || Instant::now() >= deadline {
            held.remove(&id);
            node.metrics.uncached.add(1);
            node.cache.note_change();
            return;
        }
    }
}

async fn take_in(node: &Arc<Node>, id: BlockId) -> Result<(Image, Pages)> {
    let dataset = &node.dataset;
    let Some((replica, volume)) = dataset.finalized(id) else {
        return Err(DataNodeError::peer(format!("there is no finalized replica of {id}")));
    };
    if volume.is_ram() {
        let what = format!("Caching not supported on {id} since the volume is backed by RAM");
        return Err(DataNodeError::peer(what));
    }
    let image = Image::of(&replica, &volume);
    let len = image.len;
    let block =
        Block { pool: dataset.pool_id().unwrap_or_default().into(), id, gs: replica.gs(), len };
    let view = dataset.open_read(&block, 0).await?;
    let Some(memory) = node.memory.reserve(len) else {
        return Err(DataNodeError::peer(format!("there is no room in memory for {len} bytes")));
    };
    let locked = blocking(move || {
        let locked = sys::lock_pages(&view.data, len);
        let locked = locked.context(|| format!("locking {len} bytes in memory"))?;
        check(&view, id, len)?;
        Ok(locked)
    });
    Ok((image, Pages::new(locked.await?, memory)))
}

/// Compares all bytes with their CRCs.
fn check(view: &ReadView, id: BlockId, len: u64) -> Result<()> {
    let (kind, chunk_len) = (view.checksum.kind, view.checksum.chunk_len);
    if kind == ChecksumKind::Null {
        return Ok(());
    }
    let step = STEP.next_multiple_of(chunk_len as u64);
    let (mut data, mut crcs) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < len {
        let end = (at + step).min(len);
        data.resize((end - at) as usize, 0);
        view.read_at(at, &mut data)?;
        view.crcs(at, end, &mut crcs)?;
        crc::verify_chunks(kind, chunk_len, &data, &crcs)
            .map_err(|bad| DataNodeError::Checksum(format!("{id} at {at}: {bad}")))?;
        at = end;
    }
    Ok(())
}
