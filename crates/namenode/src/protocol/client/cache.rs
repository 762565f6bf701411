//! Cache pools and directives.
//!
//! Source: Hadoop 3.5.0 `FSNamesystem`, `CacheManager`, `PBHelperClient`.

use cairn_namespace::cache::{self, CacheDirective, CachePool, TTL_MAX_MS};
use cairn_namespace::ops::cache_directive::{
    AddCacheDirective, CacheDirectiveSpec, Expiry, ModifyCacheDirective, RemoveCacheDirective,
};
use cairn_namespace::ops::cache_pool::{
    AddCachePool, CachePoolSpec, ModifyCachePool, RemoveCachePool,
};
use cairn_namespace::path::is_valid;
use cairn_namespace::{NamespaceError, Outcome};
use cairn_net::rpc_server::Call;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use crate::node::NameNode;
use crate::node::caching::CacheFigures;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// Directives read at a time.
const READ_PAGE: usize = 256;
/// In the flags of a call: do not ask whether the pool has room (`CacheFlagProto.FORCE`).
const FORCE: u32 = 1;

/// Source: Hadoop 3.5.0 `FSNamesystem#addCachePool`.
pub async fn add_pool(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AddCachePoolRequestProto = call.decode()?;
    let pool = pool_spec(request.info)?;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot add cache pool{}", pool.name))?;
    node.submit(call, AddCachePool { pool }).await?;
    node.caching.note_change();
    answer(&pb::AddCachePoolResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#modifyCachePool`.
pub async fn modify_pool(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ModifyCachePoolRequestProto = call.decode()?;
    let pool = pool_spec(request.info)?;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot modify cache pool{}", pool.name))?;
    node.submit(call, ModifyCachePool { pool }).await?;
    node.caching.note_change();
    answer(&pb::ModifyCachePoolResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeCachePool`.
pub async fn remove_pool(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveCachePoolRequestProto = call.decode()?;
    let name = request.pool_name;
    node.check_superuser(call).await?;
    node.check_change(call, || format!("Cannot modify cache pool{name}"))?;
    node.submit(call, RemoveCachePool { name }).await?;
    node.caching.note_change();
    answer(&pb::RemoveCachePoolResponseProto {})
}

/// Of a pool that the caller may not read only the name is told.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#listCachePools`, `CachePool#getEntry`.
pub async fn list_pools(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListCachePoolsRequestProto = call.decode()?;
    let scanned = node.caching.figures().await;
    let page = node.config.cache_pools_page.max(1);
    let ask = node.query(call, |store, caller| {
        let mut pools = cache::pools_after(store, &request.prev_pool_name, page + 1)?;
        let has_more = pools.len() > page;
        pools.truncate(page);
        let mut seen = Vec::new();
        for pool in pools {
            seen.push((cache::is_visible(store, caller, &pool)?, pool));
        }
        Ok((seen, has_more))
    });
    let (pools, has_more) = ask.await?;
    let entry = |(visible, pool): (bool, CachePool)| {
        let figures = scanned.pools.get(&pool.name).filter(|_| visible);
        let figures = figures.copied().unwrap_or_default();
        let limit = pool.limit;
        pb::CachePoolEntryProto {
            info: pool_info(pool, visible),
            stats: pb::CachePoolStatsProto {
                bytes_needed: signed(figures.bytes_needed),
                bytes_cached: signed(figures.bytes_cached),
                bytes_overlimit: signed(figures.bytes_needed.saturating_sub(limit)),
                files_needed: signed(figures.files_needed),
                files_cached: signed(figures.files_cached),
            },
        }
    };
    let entries = pools.into_iter().map(entry).collect();
    answer(&pb::ListCachePoolsResponseProto { entries, has_more })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#addCacheDirective`.
pub async fn add_directive(node: &NameNode, call: &Call) -> Answer {
    let request: pb::AddCacheDirectiveRequestProto = call.decode()?;
    let id = request.info.id;
    let directive = directive_spec(request.info, request.cache_flags)?;
    node.check_change(call, || "Cannot add cache directive".to_string())?;
    if id.is_some() {
        return Err(Refusal::io("addDirective: you cannot specify an ID for this operation."));
    }
    match node.submit(call, AddCacheDirective { directive }).await? {
        Outcome::CacheDirective(id) => {
            node.caching.note_change();
            answer(&pb::AddCacheDirectiveResponseProto { id: signed(id) })
        }
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#modifyCacheDirective`.
pub async fn modify_directive(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ModifyCacheDirectiveRequestProto = call.decode()?;
    let id = request.info.id;
    let directive = directive_spec(request.info, request.cache_flags)?;
    node.check_change(call, || "Cannot add cache directive".to_string())?;
    node.submit(call, ModifyCacheDirective { id, directive }).await?;
    node.caching.note_change();
    answer(&pb::ModifyCacheDirectiveResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeCacheDirective`.
pub async fn remove_directive(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveCacheDirectiveRequestProto = call.decode()?;
    node.check_change(call, || "Cannot remove cache directives".to_string())?;
    node.submit(call, RemoveCacheDirective { id: request.id }).await?;
    node.caching.note_change();
    answer(&pb::RemoveCacheDirectiveResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#listCacheDirectives`, `CacheManager#listCacheDirectives`.
pub async fn list_directives(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListCacheDirectivesRequestProto = call.decode()?;
    let scanned = node.caching.figures().await;
    let wanted = directive_spec(request.filter.clone(), None)?;
    let refuse = |text: String| Err(NamespaceError::InvalidRequest(text).into());
    if let Some(path) = wanted.path.as_deref().filter(|path| !is_valid(path)) {
        return refuse(format!("Invalid path '{path}'."));
    }
    if wanted.replication.is_some() {
        return refuse("Filtering by replication is unsupported.".to_string());
    }
    let mut from = u64::try_from(request.prev_id.saturating_add(1)).unwrap_or(0);
    let only = request.filter.id;
    if let Some(id) = only {
        let found = u64::try_from(id).ok();
        let known = match found {
            Some(id) => node.ns.read(|store| cache::directive(store, id))?.is_some(),
            None => false,
        };
        if !known {
            return refuse(format!("Did not find requested id {id}"));
        }
        from = found.unwrap_or(0);
    }
    let fits = |directive: &CacheDirective| {
        only.is_none_or(|id| id == signed(directive.id))
            && wanted.pool.as_ref().is_none_or(|pool| *pool == directive.pool)
            && wanted.path.as_ref().is_none_or(|path| *path == directive.path)
    };
    let most = node.config.cache_directives_page.max(1);
    let ask = node.query(call, |store, caller| {
        let mut found = Vec::new();
        loop {
            let page = cache::directives_from(store, from, READ_PAGE)?;
            let full = page.len() == READ_PAGE && only.is_none();
            for directive in page {
                if found.len() == most {
                    return Ok((found, true));
                }
                from = directive.id + 1;
                if !fits(&directive) {
                    continue;
                }
                let pool = cache::pool(store, &directive.pool)?;
                let visible = match &pool {
                    Some(pool) => cache::is_visible(store, caller, pool)?,
                    None => false,
                };
                if visible {
                    found.push(directive);
                }
            }
            if !full {
                return Ok((found, false));
            }
        }
    });
    let (found, has_more) = ask.await?;
    let now_ms = node.now().wall_ms;
    let entry = |directive: CacheDirective| {
        let figures = scanned.directives.get(&directive.id).copied().unwrap_or_default();
        directive_entry(directive, &figures, now_ms)
    };
    let elements = found.into_iter().map(entry).collect();
    answer(&pb::ListCacheDirectivesResponseProto { elements, has_more })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn out_of_range(number: u32) -> Refusal {
    Refusal::new(class::ILLEGAL_ARGUMENT, format!("Out of range: {}", number as i32))
}

/// A number that Java keeps in 16 bits.
fn short(number: u32) -> Result<i32, Refusal> {
    i16::try_from(number as i32).map(i32::from).map_err(|_| out_of_range(number))
}

fn pool_spec(info: pb::CachePoolInfoProto) -> Result<CachePoolSpec, Refusal> {
    Ok(CachePoolSpec {
        replication: info.default_replication.map(short).transpose()?,
        name: info.pool_name.unwrap_or_default(),
        owner: info.owner_name,
        group: info.group_name,
        mode: info.mode.map(|mode| (mode & 0o1777) as u16),
        limit: info.limit,
        ttl_max_ms: info.max_relative_expiry,
    })
}

fn pool_info(pool: CachePool, visible: bool) -> pb::CachePoolInfoProto {
    if !visible {
        return pb::CachePoolInfoProto { pool_name: Some(pool.name), ..Default::default() };
    }
    pb::CachePoolInfoProto {
        pool_name: Some(pool.name),
        owner_name: Some(pool.owner),
        group_name: Some(pool.group),
        mode: Some(pool.mode.into()),
        limit: Some(signed(pool.limit)),
        max_relative_expiry: Some(signed(pool.ttl_max_ms)),
        default_replication: Some(pool.replication.into()),
    }
}

fn directive_spec(
    info: pb::CacheDirectiveInfoProto,
    flags: Option<u32>,
) -> Result<CacheDirectiveSpec, Refusal> {
    let expiry = match info.expiration {
        None => None,
        Some(told) if told.is_relative && told.millis > TTL_MAX_MS as i64 => {
            let text = "Expiration time is too far in the future!";
            return Err(Refusal::new(class::ILLEGAL_ARGUMENT, text));
        }
        Some(told) if told.is_relative => Some(Expiry::After { ms: told.millis }),
        Some(told) => Some(Expiry::At { ms: told.millis }),
    };
    Ok(CacheDirectiveSpec {
        path: info.path.map(|path| java_path(&path)).transpose()?,
        replication: info.replication.map(short).transpose()?,
        pool: info.pool,
        expiry,
        force: flags.unwrap_or(0) & FORCE != 0,
    })
}

fn directive_entry(
    directive: CacheDirective,
    figures: &CacheFigures,
    now_ms: u64,
) -> pb::CacheDirectiveEntryProto {
    let has_expired = now_ms > directive.expires_ms;
    pb::CacheDirectiveEntryProto {
        info: pb::CacheDirectiveInfoProto {
            id: Some(signed(directive.id)),
            path: Some(directive.path),
            replication: Some(directive.replication.into()),
            pool: Some(directive.pool),
            expiration: Some(pb::CacheDirectiveInfoExpirationProto {
                millis: signed(directive.expires_ms),
                is_relative: false,
            }),
        },
        stats: pb::CacheDirectiveStatsProto {
            bytes_needed: signed(figures.bytes_needed),
            bytes_cached: signed(figures.bytes_cached),
            files_needed: signed(figures.files_needed),
            files_cached: signed(figures.files_cached),
            has_expired,
        },
    }
}

/// A path as Java's class for paths makes it: without doubled slashes, `.` and `..`.
///
/// Source: Hadoop 3.5.0 `Path#Path`.
fn java_path(path: &str) -> Result<String, Refusal> {
    if path.is_empty() {
        let text = "Can not create a Path from an empty string";
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, text));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Ok(format!("{root}{}", names.join("/")))
}

#[cfg(test)]
mod tests {
    use super::java_path;

    #[test]
    fn paths_are_normalized_as_java_does() {
        for (given, made) in [
            ("/", "/"),
            ("//a//b/", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/../a"),
            ("a/b", "a/b"),
        ] {
            assert_eq!(java_path(given).unwrap(), made, "{given}");
        }
        assert!(java_path("").is_err());
    }
}
