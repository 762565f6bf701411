//! Cache pools and directives.

use super::FileSystem;
use crate::error::Result;
use crate::types::*;
use cairn_wire::proto::hdfs::*;

/// `CacheFlag.FORCE`: a directive may go beyond the limit of its pool.
const FORCE: u32 = CacheFlagProto::Force as u32;

impl FileSystem {
    /// The pools with what they ask for and have.
    pub async fn cache_pools(&self) -> Result<Vec<(CachePool, CacheStats)>> {
        let mut pools: Vec<(CachePool, CacheStats)> = Vec::new();
        loop {
            let prev_pool_name = pools.last().map_or(String::new(), |(last, _)| last.name.clone());
            let request = ListCachePoolsRequestProto { prev_pool_name };
            let response: ListCachePoolsResponseProto =
                self.session.namenode.call("listCachePools", &request).await?;
            let got = response.entries.len();
            pools.extend(response.entries.into_iter().map(|e| (pool(e.info), pool_stats(e.stats))));
            if got == 0 || !response.has_more {
                return Ok(pools);
            }
        }
    }

    /// Makes a pool.
    pub async fn add_cache_pool(&self, pool: &CachePool) -> Result<()> {
        let request = AddCachePoolRequestProto { info: pool_proto(pool) };
        let _: AddCachePoolResponseProto =
            self.session.namenode.call("addCachePool", &request).await?;
        Ok(())
    }

    /// Changes a pool: what is told of it here, and nothing else.
    pub async fn modify_cache_pool(&self, pool: &CachePool) -> Result<()> {
        let request = ModifyCachePoolRequestProto { info: pool_proto(pool) };
        let _: ModifyCachePoolResponseProto =
            self.session.namenode.call("modifyCachePool", &request).await?;
        Ok(())
    }

    /// Removes a pool and its directives.
    pub async fn remove_cache_pool(&self, name: &str) -> Result<()> {
        let request = RemoveCachePoolRequestProto { pool_name: name.to_string() };
        let _: RemoveCachePoolResponseProto =
            self.session.namenode.call("removeCachePool", &request).await?;
        Ok(())
    }

    /// The directives that fit what is told of `filter`, with what each asks for and has.
    pub async fn cache_directives(
        &self,
        filter: &CacheDirective,
    ) -> Result<Vec<(CacheDirective, CacheStats)>> {
        let mut directives: Vec<(CacheDirective, CacheStats)> = Vec::new();
        loop {
            let last = directives.last().and_then(|(last, _)| last.id);
            let request = ListCacheDirectivesRequestProto {
                prev_id: last.map_or(0, |id| id as i64),
                filter: directive_proto(filter),
            };
            let response: ListCacheDirectivesResponseProto =
                self.session.namenode.call("listCacheDirectives", &request).await?;
            let got = response.elements.len();
            let told = |e: CacheDirectiveEntryProto| (directive(e.info), directive_stats(e.stats));
            directives.extend(response.elements.into_iter().map(told));
            if got == 0 || !response.has_more {
                return Ok(directives);
            }
        }
    }

    /// Makes a directive, with `force` also beyond the limit of its pool. Returns its number.
    pub async fn add_cache_directive(&self, info: &CacheDirective, force: bool) -> Result<u64> {
        let cache_flags = force.then_some(FORCE);
        let request = AddCacheDirectiveRequestProto { info: directive_proto(info), cache_flags };
        let response: AddCacheDirectiveResponseProto =
            self.session.namenode.call("addCacheDirective", &request).await?;
        Ok(response.id as u64)
    }

    /// Changes the directive with the number of `info`: what is told of it there, and nothing else.
    pub async fn modify_cache_directive(&self, info: &CacheDirective, force: bool) -> Result<()> {
        let cache_flags = force.then_some(FORCE);
        let request = ModifyCacheDirectiveRequestProto { info: directive_proto(info), cache_flags };
        let _: ModifyCacheDirectiveResponseProto =
            self.session.namenode.call("modifyCacheDirective", &request).await?;
        Ok(())
    }

    /// Removes a directive.
    pub async fn remove_cache_directive(&self, id: u64) -> Result<()> {
        let request = RemoveCacheDirectiveRequestProto { id: id as i64 };
        let _: RemoveCacheDirectiveResponseProto =
            self.session.namenode.call("removeCacheDirective", &request).await?;
        Ok(())
    }
}

/// Hadoop's `Long.MAX_VALUE` stands for no limit.
fn limit(value: i64) -> u64 {
    if value == i64::MAX { u64::MAX } else { u64::try_from(value).unwrap_or(0) }
}

fn limit_proto(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn pool(proto: CachePoolInfoProto) -> CachePool {
    CachePool {
        name: proto.pool_name.unwrap_or_default(),
        owner: proto.owner_name,
        group: proto.group_name,
        mode: proto.mode.map(|mode| (mode & 0o7777) as u16),
        limit: proto.limit.map(limit),
        max_ttl_ms: proto.max_relative_expiry.map(limit),
        default_replication: proto
            .default_replication
            .and_then(|copies| u16::try_from(copies).ok()),
    }
}

fn pool_proto(pool: &CachePool) -> CachePoolInfoProto {
    CachePoolInfoProto {
        pool_name: Some(pool.name.clone()),
        owner_name: pool.owner.clone(),
        group_name: pool.group.clone(),
        mode: pool.mode.map(i32::from),
        limit: pool.limit.map(limit_proto),
        max_relative_expiry: pool.max_ttl_ms.map(limit_proto),
        default_replication: pool.default_replication.map(u32::from),
    }
}

fn pool_stats(stats: CachePoolStatsProto) -> CacheStats {
    CacheStats {
        bytes_needed: count(stats.bytes_needed),
        bytes_cached: count(stats.bytes_cached),
        bytes_over_limit: count(stats.bytes_overlimit),
        files_needed: count(stats.files_needed),
        files_cached: count(stats.files_cached),
    }
}

fn directive(proto: CacheDirectiveInfoProto) -> CacheDirective {
    let expiry = |expiry: CacheDirectiveInfoExpirationProto| match expiry.is_relative {
        true => CacheExpiry::In(expiry.millis),
        false => CacheExpiry::At(expiry.millis),
    };
    CacheDirective {
        id: proto.id.map(count),
        path: proto.path,
        replication: proto.replication.and_then(|copies| u16::try_from(copies).ok()),
        pool: proto.pool,
        expiry: proto.expiration.map(expiry),
    }
}

fn directive_proto(info: &CacheDirective) -> CacheDirectiveInfoProto {
    let expiration = |expiry| match expiry {
        CacheExpiry::In(millis) => CacheDirectiveInfoExpirationProto { millis, is_relative: true },
        CacheExpiry::At(millis) => CacheDirectiveInfoExpirationProto { millis, is_relative: false },
    };
    CacheDirectiveInfoProto {
        id: info.id.map(|id| id as i64),
        path: info.path.clone(),
        replication: info.replication.map(u32::from),
        pool: info.pool.clone(),
        expiration: info.expiry.map(expiration),
    }
}

fn directive_stats(stats: CacheDirectiveStatsProto) -> CacheStats {
    CacheStats {
        bytes_needed: count(stats.bytes_needed),
        bytes_cached: count(stats.bytes_cached),
        bytes_over_limit: 0,
        files_needed: count(stats.files_needed),
        files_cached: count(stats.files_cached),
    }
}
