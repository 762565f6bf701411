//! Pools of cache directives.

use crate::cache::{self, CachePool, TTL_MAX_MS, UNLIMITED};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::perm;

/// Permission bits of a pool that was given none. Source: Hadoop 3.5.0 `FsPermission#getCachePoolDefault`.
const MODE_DEFAULT: u16 = 0o755;

/// What a pool is to be like. Numbers are as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePoolSpec {
    /// Its name.
    pub name: String,
    /// Owning user.
    pub owner: Option<String>,
    /// Owning group.
    pub group: Option<String>,
    /// Permission bits.
    pub mode: Option<u16>,
    /// Most bytes.
    pub limit: Option<i64>,
    /// Copies in memory for directives that name no number.
    pub replication: Option<i32>,
    /// The longest that a directive may last, in ms.
    pub ttl_max_ms: Option<i64>,
}

encode_struct!(CachePoolSpec { name, owner, group, mode, limit, replication, ttl_max_ms });

/// Makes a pool.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `CacheManager#addCachePool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCachePool {
    /// What it is like.
    pub pool: CachePoolSpec,
}

encode_struct!(AddCachePool { pool });

impl AddCachePool {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let spec = &self.pool;
        spec.check()?;
        if cache::pool(cx.store, &spec.name)?.is_some() {
            return Err(NamespaceError::InvalidRequest(format!(
                "Cache pool {} already exists.",
                spec.name
            )));
        }
        let user = &cx.caller.user;
        let group = match spec.group.as_ref().or(cx.caller.groups.first()) {
            Some(group) => group.clone(),
            None => {
                let text = format!("There is no primary group for UGI {user} (auth:SIMPLE)");
                return Err(NamespaceError::Io(text));
            }
        };
        let mut pool = CachePool {
            name: spec.name.clone(),
            owner: user.clone(),
            group,
            mode: MODE_DEFAULT,
            limit: UNLIMITED,
            replication: 1,
            ttl_max_ms: TTL_MAX_MS,
        };
        spec.write_to(&mut pool);
        cache::put_pool(cx.store, &pool)?;
        Ok(Outcome::Done)
    }
}

/// Changes a pool. What it is not told stays.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `CacheManager#modifyCachePool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyCachePool {
    /// Which, and what changes.
    pub pool: CachePoolSpec,
}

encode_struct!(ModifyCachePool { pool });

impl ModifyCachePool {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        self.pool.check()?;
        let Some(mut pool) = cache::pool(cx.store, &self.pool.name)? else {
            return Err(NamespaceError::InvalidRequest(format!(
                "Cache pool {} does not exist.",
                self.pool.name
            )));
        };
        self.pool.write_to(&mut pool);
        cache::put_pool(cx.store, &pool)?;
        Ok(Outcome::Done)
    }
}

/// Removes a pool and its directives.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `CacheManager#removeCachePool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveCachePool {
    /// Which.
    pub name: String,
}

encode_struct!(RemoveCachePool { name });

impl RemoveCachePool {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        check_name(&self.name)?;
        if cache::pool(cx.store, &self.name)?.is_none() {
            return Err(NamespaceError::InvalidRequest(format!(
                "Cannot remove non-existent cache pool {}",
                self.name
            )));
        }
        let mut ids = Vec::new();
        cache::each_directive_of(cx.store, &self.name, &mut |directive| {
            ids.push(directive.id);
            Ok(())
        })?;
        for id in ids {
            cache::delete_directive(cx.store, id)?;
        }
        cache::delete_pool(cx.store, &self.name)?;
        Ok(Outcome::Done)
    }
}

impl CachePoolSpec {
    /// Source: Hadoop 3.5.0 `CachePoolInfo#validate`.
    fn check(&self) -> Result<()> {
        let refuse = |text: &str| Err(NamespaceError::InvalidRequest(text.to_string()));
        if self.limit.is_some_and(|limit| limit < 0) {
            return refuse("Limit is negative.");
        }
        if self.replication.is_some_and(|replication| replication < 0) {
            return refuse("Default Replication is negative");
        }
        if self.ttl_max_ms.is_some_and(|ttl| ttl < 0) {
            return refuse("Max relative expiry is negative.");
        }
        if self.ttl_max_ms.is_some_and(|ttl| ttl as u64 > TTL_MAX_MS) {
            return refuse("Max relative expiry is too big.");
        }
        check_name(&self.name)
    }

    fn write_to(&self, pool: &mut CachePool) {
        if let Some(owner) = &self.owner {
            pool.owner.clone_from(owner);
        }
        if let Some(group) = &self.group {
            pool.group.clone_from(group);
        }
        pool.mode = self.mode.unwrap_or(pool.mode);
        // None of them is negative: `check` comes first.
        pool.limit = self.limit.map_or(pool.limit, |limit| limit as u64);
        pool.ttl_max_ms = self.ttl_max_ms.map_or(pool.ttl_max_ms, |ttl| ttl as u64);
        let replication = self.replication.and_then(|replication| u16::try_from(replication).ok());
        pool.replication = replication.unwrap_or(pool.replication);
    }
}

/// Source: Hadoop 3.5.0 `CachePoolInfo#validateName`.
fn check_name(name: &str) -> Result<()> {
    match name {
        "" => Err(NamespaceError::Io("invalid empty cache pool name".to_string())),
        _ => Ok(()),
    }
}
