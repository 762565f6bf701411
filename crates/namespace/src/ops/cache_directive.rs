//! Directives: which paths are to be kept in memory.

use crate::cache::{self, CacheDirective, CachePool, TTL_MAX_MS, UNLIMITED};
use crate::counter::{self, Counter};
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::ops::Context;
use crate::outcome::Outcome;
use crate::path;
use crate::perm::Access;

/// When a directive ends, as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// So many ms after the command.
    After {
        /// How many.
        ms: i64,
    },
    /// At this time, ms since the epoch.
    At {
        /// When.
        ms: i64,
    },
}

encode_enum!(Expiry { 1 => After { ms }, 2 => At { ms } });

/// What a directive is to be like. What is left out is as it was, or the pool's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheDirectiveSpec {
    /// The path.
    pub path: Option<String>,
    /// Copies in memory, as they came.
    pub replication: Option<i32>,
    /// The pool.
    pub pool: Option<String>,
    /// When it ends.
    pub expiry: Option<Expiry>,
    /// Do not ask whether the pool has room for it.
    pub force: bool,
}

encode_struct!(CacheDirectiveSpec { path, replication, pool, expiry, force });

/// Makes a directive.
///
/// Answer: `Outcome::CacheDirective`, its number.
///
/// Source: Hadoop 3.5.0 `CacheManager#addDirective`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCacheDirective {
    /// What it is like.
    pub directive: CacheDirectiveSpec,
}

encode_struct!(AddCacheDirective { directive });

impl AddCacheDirective {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let spec = &self.directive;
        let pool = match spec.pool.as_deref() {
            None => return refuse("No pool specified."),
            Some(name) => pool(cx, name)?,
        };
        cache::check_pool(cx.settings, cx.caller, &pool, Access::WRITE)?;
        let path = match &spec.path {
            None => return refuse("No path specified."),
            Some(path) => valid_path(path)?,
        };
        let replication = replication(spec.replication.unwrap_or(pool.replication.into()))?;
        let expires_ms = expires_at(cx, spec.expiry, &pool)?;
        if !spec.force {
            check_room(cx, &pool, path, replication)?;
        }
        let last = counter::get(cx.store, Counter::CacheDirective)?;
        if last >= i64::MAX as u64 - 1 {
            return Err(NamespaceError::Io("No more available IDs.".to_string()));
        }
        counter::add(cx.store, Counter::CacheDirective, 1)?;
        let (id, path) = (last + 1, path.to_string());
        let directive = CacheDirective { id, path, replication, pool: pool.name, expires_ms };
        cache::put_directive(cx.store, &directive)?;
        Ok(Outcome::CacheDirective(id))
    }
}

/// Changes a directive.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `CacheManager#modifyDirective`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifyCacheDirective {
    /// Which, if it was told.
    pub id: Option<i64>,
    /// What changes.
    pub directive: CacheDirectiveSpec,
}

encode_struct!(ModifyCacheDirective { id, directive });

impl ModifyCacheDirective {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let spec = &self.directive;
        let Some(id) = self.id else { return refuse("Must supply an ID.") };
        let before = directive(cx, id)?;
        let from = pool(cx, &before.pool)?;
        cache::check_pool(cx.settings, cx.caller, &from, Access::WRITE)?;
        let path = valid_path(spec.path.as_ref().unwrap_or(&before.path))?.to_string();
        let replication = replication(spec.replication.unwrap_or(before.replication.into()))?;
        let to = match spec.pool.as_deref() {
            None => from.clone(),
            Some(name) => pool(cx, name)?,
        };
        if to.name != from.name {
            cache::check_pool(cx.settings, cx.caller, &to, Access::WRITE)?;
            if !spec.force {
                check_room(cx, &to, &path, replication)?;
            }
        }
        let kept = Expiry::At { ms: i64::try_from(before.expires_ms).unwrap_or(i64::MAX) };
        let expires_ms = expires_at(cx, Some(spec.expiry.unwrap_or(kept)), &to)?;
        let changed =
            CacheDirective { id: before.id, path, replication, pool: to.name, expires_ms };
        cache::put_directive(cx.store, &changed)?;
        Ok(Outcome::Done)
    }
}

/// Removes a directive.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `CacheManager#removeDirective`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveCacheDirective {
    /// Which.
    pub id: i64,
}

encode_struct!(RemoveCacheDirective { id });

impl RemoveCacheDirective {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let found = directive(cx, self.id)?;
        let pool = pool(cx, &found.pool)?;
        cache::check_pool(cx.settings, cx.caller, &pool, Access::WRITE)?;
        cache::delete_directive(cx.store, found.id)?;
        Ok(Outcome::Done)
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T> {
    Err(NamespaceError::InvalidRequest(text.into()))
}

/// Source: Hadoop 3.5.0 `CacheManager#getById`.
fn directive(cx: &Context<'_, '_>, id: i64) -> Result<CacheDirective> {
    if id <= 0 {
        return refuse("Invalid negative ID.");
    }
    match cache::directive(cx.store, id as u64)? {
        Some(found) => Ok(found),
        None => refuse(format!("No directive with ID {id} found.")),
    }
}

fn pool(cx: &Context<'_, '_>, name: &str) -> Result<CachePool> {
    if name.is_empty() {
        return refuse("Invalid empty pool name.");
    }
    match cache::pool(cx.store, name)? {
        Some(found) => Ok(found),
        None => refuse(format!("Unknown pool {name}")),
    }
}

/// Source: Hadoop 3.5.0 `CacheManager#validatePath`.
pub(crate) fn valid_path(path: &str) -> Result<&str> {
    match path::is_valid(path) {
        true => Ok(path),
        false => refuse(format!("Invalid path '{path}'.")),
    }
}

fn replication(asked: i32) -> Result<u16> {
    match u16::try_from(asked) {
        Ok(copies) if copies > 0 => Ok(copies),
        _ => refuse(format!("Invalid replication factor {asked} <= 0")),
    }
}

/// Source: Hadoop 3.5.0 `CacheManager#validateExpiryTime`.
fn expires_at(cx: &Context<'_, '_>, expiry: Option<Expiry>, pool: &CachePool) -> Result<u64> {
    let now = i64::try_from(cx.times.wall_ms).unwrap_or(i64::MAX);
    let (Expiry::After { ms } | Expiry::At { ms }) = match expiry {
        None => return Ok(cx.times.wall_ms.saturating_add(pool.ttl_max_ms)),
        Some(expiry) => expiry,
    };
    if ms < 0 {
        return refuse(format!("Cannot set a negative expiration: {ms}"));
    }
    let (after, at, text) = match expiry {
        Some(Expiry::At { .. }) => (ms.saturating_sub(now), ms, time_text(ms as u64)),
        _ => (ms, now.saturating_add(ms), duration_text(ms as u64)),
    };
    if after > TTL_MAX_MS as i64 {
        return refuse(format!("Expiration {text} is too far in the future!"));
    }
    if after > i64::try_from(pool.ttl_max_ms).unwrap_or(i64::MAX) {
        return refuse(format!(
            "Expiration {text} exceeds the max relative expiration time of {} ms.",
            pool.ttl_max_ms
        ));
    }
    Ok(at as u64)
}

/// Source: Hadoop 3.5.0 `CacheManager#checkLimit`, `#computeNeeded`.
fn check_room(cx: &Context<'_, '_>, pool: &CachePool, path: &str, replication: u16) -> Result<()> {
    if pool.limit == UNLIMITED {
        return Ok(());
    }
    let mut len = 0_u64;
    cache::each_file(cx.store, path, &mut |file| {
        len = len.saturating_add(file.file().map_or(0, |file| file.len));
        Ok(())
    })?;
    let before = cache::bytes_needed(cx.store, &pool.name, cx.times.wall_ms)?;
    let more = len.saturating_mul(replication.into());
    if before.saturating_add(more) <= pool.limit {
        return Ok(());
    }
    let left = i128::from(pool.limit) - i128::from(before);
    refuse(format!(
        "Caching path {path} of size {len} bytes at replication {replication} would exceed pool \
         {}'s remaining capacity of {left} bytes.",
        pool.name
    ))
}

/// Days, hours, minutes, seconds. Source: Hadoop 3.5.0 `DFSUtilClient#durationToString`.
fn duration_text(ms: u64) -> String {
    let seconds = ms / 1000;
    format!(
        "{:03}:{:02}:{:02}:{:02}.{:03}",
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        ms % 1000
    )
}

/// The time in UTC. Source: Hadoop 3.5.0 `DFSUtilClient#dateToIso8601String`.
fn time_text(ms: u64) -> String {
    let seconds = ms / 1000;
    // The civil calendar in years that begin in March: the leap day is the last.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let year = year + era * 400 + next;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+0000")
}

#[cfg(test)]
mod tests {
    use super::{duration_text, time_text};

    #[test]
    fn times_are_written_as_hadoop_does() {
        assert_eq!(duration_text(93_784_005), "001:02:03:04.005");
        assert_eq!(duration_text(0), "000:00:00:00.000");
        assert_eq!(time_text(0), "1970-01-01T00:00:00+0000");
        assert_eq!(time_text(951_827_696_000), "2000-02-29T12:34:56+0000");
        assert_eq!(time_text(1_767_225_599_999), "2025-12-31T23:59:59+0000");
    }
}
