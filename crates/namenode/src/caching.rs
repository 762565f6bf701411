//! Centralized caching: what the directives ask for, read from the tree, for the cluster to choose DataNodes.
//!
//! The tree is walked again after each change of a directive or pool and once in an interval, as files
//! come and go below the paths. The figures of the last walk are what listings tell.
//!
//! Source: Hadoop 3.5.0 `CacheReplicationMonitor`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_namespace::cache::{self, CacheDirective, UNLIMITED};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{BlockState, query};
use cairn_operate::workers::Worker;
use cairn_redundancy::{CacheWant, Cluster};
use cairn_stripe::{BlockId, Geometry, Redundancy, UnitIndex};

use crate::dice::dice;
use crate::node::NameNode;

pub use crate::node::caching::{CacheFigures, Caching, Scanned};

/// Directives read at a time.
const PAGE: usize = 256;
/// The shortest time between two walks.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Walks when something has changed, and once in each interval.
pub(crate) async fn watch_directives(node: Arc<NameNode>, worker: Arc<Worker>) {
    loop {
        worker.pass().await;
        let wanted = node.caching.changes();
        if !node.config.caching_enabled {
            node.caching.note_walk(wanted, None);
            worker.rest(node.caching.changed()).await;
            continue;
        }
        let scanner = Arc::clone(&node);
        let scan = tokio::task::spawn_blocking(move || scan(&scanner)).await;
        let found = match scan {
            Ok(Ok(scanned)) => Some(scanned),
            Ok(Err(error)) => {
                tracing::error!(%error, "the cache directives cannot be read");
                worker.failed(&error);
                None
            }
            Err(error) => {
                tracing::error!(%error, "a walk over the cache directives has failed");
                worker.failed(&error);
                None
            }
        };
        node.caching.note_walk(wanted, found);
        let interval = node.config.cache_refresh_interval.max(INTERVAL_MIN);
        // Nobody needs to know which of the two it was.
        let _ = worker.rest(tokio::time::timeout(interval, node.caching.changed())).await;
    }
}

/// A replica or unit that a directive wants in memory.
struct Wanted {
    id: BlockId,
    len: u64,
}

/// A file that a directive names: what it takes, and what of it can be cached.
struct FilePlan {
    needed: u64,
    blocks: Vec<Wanted>,
}

fn scan(node: &NameNode) -> cairn_namespace::Result<Scanned> {
    let now = node.now();
    let mut scanned = Scanned::default();
    let mut wants: BTreeMap<BlockId, CacheWant> = BTreeMap::new();
    let mut from = 0;
    loop {
        // Each page with a snapshot of its own: a long walk holds no old state.
        let (page, full) = node.ns.read(|store| -> cairn_namespace::Result<_> {
            let page = cache::directives_from(store, from, PAGE)?;
            let full = page.len() == PAGE;
            let mut planned = Vec::new();
            for directive in page {
                let files = plan(store, &directive, now.wall_ms)?;
                let limit = cache::pool(store, &directive.pool)?.map_or(UNLIMITED, |it| it.limit);
                planned.push((directive, limit, files));
            }
            Ok((planned, full))
        })?;
        let Some((last, ..)) = page.last() else { break };
        from = last.id + 1;
        let cluster = node.cluster();
        for (directive, limit, files) in &page {
            let copies = directive.replication;
            let pool = scanned.pools.entry(directive.pool.clone()).or_default();
            let mut of_directive = CacheFigures::default();
            for file in files {
                let mut figures = CacheFigures {
                    bytes_needed: file.needed,
                    files_needed: 1,
                    ..CacheFigures::default()
                };
                let fits = pool.bytes_needed.saturating_add(file.needed) <= *limit;
                if fits {
                    figures.bytes_cached = cached_bytes(&cluster, file, copies);
                    figures.files_cached = u64::from(figures.bytes_cached == file.needed);
                    for block in &file.blocks {
                        let want = wants.entry(block.id);
                        let want = want.or_insert(CacheWant { copies, len: block.len });
                        want.copies = want.copies.max(copies);
                    }
                }
                pool.add(&figures);
                of_directive.add(&figures);
            }
            scanned.directives.insert(directive.id, of_directive);
        }
        if !full {
            break;
        }
    }
    let mut cluster = node.cluster();
    if !wants.is_empty() || cluster.caches_anything() {
        cluster.rescan_cache(&wants, now, &mut dice);
    }
    Ok(scanned)
}

fn cached_bytes(cluster: &Cluster, file: &FilePlan, copies: u16) -> u64 {
    let of = |block: &Wanted| {
        let there = cluster.cached_copies(block.id).min(copies.into());
        block.len.saturating_mul(there as u64)
    };
    file.blocks.iter().map(of).fold(0, u64::saturating_add)
}

/// The files of a directive. An expired one names none.
fn plan(
    store: &dyn StoreRead,
    directive: &CacheDirective,
    now_ms: u64,
) -> cairn_namespace::Result<Vec<FilePlan>> {
    let mut files = Vec::new();
    if directive.has_expired(now_ms) {
        return Ok(files);
    }
    cache::each_file(store, &directive.path, &mut |inode| {
        let len = cache::cacheable_len(store, inode)?;
        let mut blocks = Vec::new();
        if let Some(of) = query::file_blocks(store, inode.id)? {
            let complete = of.blocks.iter().map(|(_, block)| block);
            for block in complete.filter(|block| block.state == BlockState::Complete) {
                replicas(block.id, block.len, &of.redundancy, &mut blocks);
            }
        }
        files.push(FilePlan { needed: len.saturating_mul(directive.replication.into()), blocks });
        Ok(())
    })?;
    Ok(files)
}

/// What of a block is to be in memory: a replica, or the data units of a group.
fn replicas(id: BlockId, len: u64, redundancy: &Redundancy, out: &mut Vec<Wanted>) {
    match redundancy {
        Redundancy::Replicated(_) => out.push(Wanted { id, len }),
        Redundancy::Striped(policy) => {
            let geometry = Geometry::from(policy);
            for unit in (0..policy.schema.k).map(UnitIndex) {
                let len = geometry.internal_block_len(len, unit);
                if len > 0 {
                    out.push(Wanted { id: id.internal(unit), len });
                }
            }
        }
    }
}
