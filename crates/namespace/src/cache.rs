//! Which paths DataNodes are to keep in memory: cache pools and the directives in them.
//!
//! Table `cache-pool`: name -> pool. Table `cache-directive`: id, 8 bytes, big endian -> directive. What
//! is in memory is soft state and not here; what directives ask for is counted from the tree when it is
//! needed. Changes are in `ops/cache_pool.rs` and `ops/cache_directive.rs`.
//!
//! Source: Hadoop 3.5.0 `CacheManager`.

use crate::block::{self, BlockState};
use crate::caller::Caller;
use crate::encoding::{DecodeError, encode_struct, from_record, to_record};
use crate::error::{NamespaceError, Result};
use crate::inode::Inode;
use crate::path;
use crate::perm::{self, Access};
use crate::settings::{self, Settings};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::tree::walk;
use std::ops::ControlFlow;

const VERSION: u8 = 1;

/// The limit of a pool that has none. Source: Hadoop 3.5.0 `CachePoolInfo#LIMIT_UNLIMITED`.
pub const UNLIMITED: u64 = i64::MAX as u64;

/// The longest time, in ms, that a directive can be told to last: in practice, for ever.
///
/// Source: Hadoop 3.5.0 `CacheDirectiveInfo.Expiration#MAX_RELATIVE_EXPIRY_MS`.
pub const TTL_MAX_MS: u64 = i64::MAX as u64 / 4;

/// A pool of directives, with its rights and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePool {
    /// Its name.
    pub name: String,
    /// Owning user.
    pub owner: String,
    /// Owning group.
    pub group: String,
    /// Permission bits: who reads sees it, who writes adds directives.
    pub mode: u16,
    /// Most bytes that its directives may ask for; [`UNLIMITED`] for any.
    pub limit: u64,
    /// Copies in memory for directives that name no number.
    pub replication: u16,
    /// The longest that a directive may last, in ms.
    pub ttl_max_ms: u64,
}

/// One file, or the files of one directory, to be kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDirective {
    /// Its number.
    pub id: u64,
    /// The path; nothing needs to be there.
    pub path: String,
    /// Copies in memory.
    pub replication: u16,
    /// Its pool.
    pub pool: String,
    /// When it ends, ms since the epoch.
    pub expires_ms: u64,
}

encode_struct!(CachePool { name, owner, group, mode, limit, replication, ttl_max_ms });
encode_struct!(CacheDirective { id, path, replication, pool, expires_ms });

impl CacheDirective {
    /// Whether DataNodes need not obey it any more.
    ///
    /// Source: Hadoop 3.5.0 `CacheReplicationMonitor#rescanCacheDirectives`.
    pub fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms > 0 && self.expires_ms <= now_ms
    }
}

/// The pool of that name.
pub fn pool(store: &dyn StoreRead, name: &str) -> Result<Option<CachePool>> {
    match store.get(Table::CachePool, name.as_bytes())? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Ok(None),
    }
}

/// Writes a pool.
pub(crate) fn put_pool(store: &mut dyn StoreTxn, pool: &CachePool) -> Result<()> {
    Ok(store.put(Table::CachePool, pool.name.as_bytes(), &to_record(VERSION, pool))?)
}

/// Removes a pool.
pub(crate) fn delete_pool(store: &mut dyn StoreTxn, name: &str) -> Result<()> {
    Ok(store.delete(Table::CachePool, name.as_bytes())?)
}

/// Up to `limit` pools behind the name `after`, by name.
///
/// Source: Hadoop 3.5.0 `CacheManager#listCachePools`.
pub fn pools_after(store: &dyn StoreRead, after: &str, limit: usize) -> Result<Vec<CachePool>> {
    let from = [after.as_bytes(), &[0]].concat();
    let from: &[u8] = if after.is_empty() { &[] } else { &from };
    records(store, Table::CachePool, from, limit)
}

/// The directive of that number.
pub fn directive(store: &dyn StoreRead, id: u64) -> Result<Option<CacheDirective>> {
    match store.get(Table::CacheDirective, &id.to_be_bytes())? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Ok(None),
    }
}

/// Writes a directive.
pub(crate) fn put_directive(store: &mut dyn StoreTxn, directive: &CacheDirective) -> Result<()> {
    let record = to_record(VERSION, directive);
    Ok(store.put(Table::CacheDirective, &directive.id.to_be_bytes(), &record)?)
}

/// Removes a directive.
pub(crate) fn delete_directive(store: &mut dyn StoreTxn, id: u64) -> Result<()> {
    Ok(store.delete(Table::CacheDirective, &id.to_be_bytes())?)
}

/// Up to `limit` directives with numbers from `from` on, in their order.
pub fn directives_from(
    store: &dyn StoreRead,
    from: u64,
    limit: usize,
) -> Result<Vec<CacheDirective>> {
    records(store, Table::CacheDirective, &from.to_be_bytes(), limit)
}

fn records<T: crate::encoding::Decode>(
    store: &dyn StoreRead,
    table: Table,
    from: &[u8],
    limit: usize,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    store.scan(table, from, &[], &mut |_, value| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push(from_record(VERSION, value));
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().collect::<Result<_, DecodeError>>()?)
}

/// Refuses a caller who may not do this with a pool.
///
/// Source: Hadoop 3.5.0 `FSPermissionChecker#checkPermission(CachePool, FsAction)`.
pub fn check_pool(
    settings: &Settings,
    caller: &Caller,
    pool: &CachePool,
    access: Access,
) -> Result<()> {
    if perm::mode_allows(settings, caller, &pool.owner, &pool.group, pool.mode, access) {
        return Ok(());
    }
    Err(NamespaceError::AccessControl(format!(
        "Permission denied while accessing pool {}: user {} does not have {} permissions.",
        pool.name,
        caller.user,
        access.name()
    )))
}

/// Whether a caller sees a pool and what is in it.
pub fn is_visible(store: &dyn StoreRead, caller: &Caller, pool: &CachePool) -> Result<bool> {
    Ok(check_pool(&*settings::get(store)?, caller, pool, Access::READ).is_ok())
}

/// Calls `visit` for the files that a directive names: the file, or those right in the directory.
///
/// Source: Hadoop 3.5.0 `CacheReplicationMonitor#rescanCacheDirectives`.
pub fn each_file(
    store: &dyn StoreRead,
    directive_path: &str,
    visit: &mut dyn FnMut(&Inode) -> Result<()>,
) -> Result<()> {
    // A path that cannot be followed names nothing, whatever is wrong with it.
    let at = match path::follow(store, directive_path) {
        Ok(at) => at,
        Err(NamespaceError::Store(error)) => return Err(NamespaceError::Store(error)),
        Err(_) => return Ok(()),
    };
    match at.target() {
        None => Ok(()),
        Some(file) if !file.is_directory() => visit(file),
        Some(directory) => walk::each_child(store, directory.id, &mut |child| {
            if child.is_directory() { Ok(()) } else { visit(child) }
        }),
    }
}

/// Bytes of a file that can be in memory: an open file's last block can not, unless it is complete.
///
/// Source: Hadoop 3.5.0 `INodeFile#computeFileSizeNotIncludingLastUcBlock`.
pub fn cacheable_len(store: &dyn StoreRead, inode: &Inode) -> Result<u64> {
    let Some(file) = inode.file() else { return Ok(0) };
    if file.writer.is_none() {
        return Ok(file.len);
    }
    let open = block::last(store, inode)?.filter(|last| last.state != BlockState::Complete);
    Ok(file.len.saturating_sub(open.map_or(0, |last| last.len)))
}

/// Bytes that the directives of a pool ask for now, with all copies.
///
/// Source: Hadoop 3.5.0 `CachePool#getBytesNeeded`.
pub(crate) fn bytes_needed(store: &dyn StoreRead, pool: &str, now_ms: u64) -> Result<u64> {
    let mut sum = 0_u64;
    each_directive_of(store, pool, &mut |directive| {
        if directive.has_expired(now_ms) {
            return Ok(());
        }
        each_file(store, &directive.path, &mut |file| {
            let len = cacheable_len(store, file)?;
            sum = sum.saturating_add(len.saturating_mul(directive.replication.into()));
            Ok(())
        })
    })?;
    Ok(sum)
}

/// Calls `visit` for the directives of a pool.
pub(crate) fn each_directive_of(
    store: &dyn StoreRead,
    pool: &str,
    visit: &mut dyn FnMut(&CacheDirective) -> Result<()>,
) -> Result<()> {
    const PAGE: usize = 256;
    let mut from = 0;
    loop {
        let page = directives_from(store, from, PAGE)?;
        for directive in page.iter().filter(|directive| directive.pool == pool) {
            visit(directive)?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE => from = last.id + 1,
            _ => return Ok(()),
        }
    }
}
