//! Centralized caching: what the directives ask for, read from the tree, for the cluster to choose DataNodes.
//!
//! The tree is walked again after each change of a directive or pool and once in an interval, as files
//! come and go below the paths. The figures of the last walk are what listings tell.
//!
//! Source: Hadoop 3.5.0 `CacheReplicationMonitor`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_namespace::cache::{self, CacheDirective, UNLIMITED};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{BlockState, query};
use cairn_redundancy::{CacheWant, Cluster};
use cairn_stripe::{BlockId, Geometry, Redundancy, UnitIndex};
use tokio::sync::{Notify, watch};

use crate::dice::dice;
use crate::node::NameNode;

/// Directives read at a time.
const PAGE: usize = 256;
/// The shortest time between two walks.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// What directives or a pool ask for, and how much of it is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Bytes with all copies.
    pub bytes_needed: u64,
    /// Bytes with all copies that are there.
    pub bytes_cached: u64,
    /// Files.
    pub files_needed: u64,
    /// Files with all copies there.
    pub files_cached: u64,
}

impl CacheFigures {
    fn add(&mut self, other: &CacheFigures) {
        self.bytes_needed = self.bytes_needed.saturating_add(other.bytes_needed);
        self.bytes_cached = self.bytes_cached.saturating_add(other.bytes_cached);
        self.files_needed += other.files_needed;
        self.files_cached += other.files_cached;
    }
}

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// By the directive's number.
    pub directives: BTreeMap<u64, CacheFigures>,
    /// By the pool's name.
    pub pools: BTreeMap<String, CacheFigures>,
}

/// When to walk, and what the last walk has found.
#[derive(Debug)]
pub struct Caching {
    /// Changes so far.
    wanted: AtomicU64,
    /// Changes that the last walk has seen.
    seen: watch::Sender<u64>,
    wake: Notify,
    last: Mutex<Arc<Scanned>>,
}

impl Default for Caching {
    fn default() -> Caching {
        Caching {
            wanted: AtomicU64::new(0),
            seen: watch::Sender::new(0),
            wake: Notify::new(),
            last: Mutex::default(),
        }
    }
}

impl Caching {
    /// A directive or a pool has changed.
    pub fn note_change(&self) {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// What a walk has found that has seen every change so far.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#waitForRescanIfNeeded`.
    pub async fn figures(&self) -> Arc<Scanned> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        let mut seen = self.seen.subscribe();
        // It ends only with the NameNode, which holds the sender.
        let _ = seen.wait_for(|seen| *seen >= wanted).await;
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Walks when something has changed, and once in each interval.
pub(crate) async fn watch_directives(node: Arc<NameNode>) {
    loop {
        let wanted = node.caching.wanted.load(Ordering::SeqCst);
        if !node.config.caching_enabled {
            node.caching.seen.send_replace(wanted);
            node.caching.wake.notified().await;
            continue;
        }
        let worker = Arc::clone(&node);
        let scan = tokio::task::spawn_blocking(move || scan(&worker)).await;
        match scan {
            Ok(Ok(scanned)) => {
                *node.caching.last.lock().unwrap_or_else(PoisonError::into_inner) =
                    Arc::new(scanned);
            }
            Ok(Err(error)) => tracing::error!(%error, "the cache directives cannot be read"),
            Err(error) => tracing::error!(%error, "a walk over the cache directives has failed"),
        }
        node.caching.seen.send_replace(wanted);
        let interval = node.config.cache_refresh_interval.max(INTERVAL_MIN);
        // Nobody needs to know which of the two it was.
        let _ = tokio::time::timeout(interval, node.caching.wake.notified()).await;
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
