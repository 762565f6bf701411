//! Pools and directives of the cache (section CACHE_MANAGER).

use crate::error::{ImageError, Malformed};
use crate::fields::Fields;
use crate::section::Section;

/// A pool of directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePool {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// Its group.
    pub group: String,
    /// Its mode.
    pub mode: u16,
    /// Most bytes that its directives may ask for; none if it has no limit.
    pub limit: Option<u64>,
    /// The longest that a directive may last, in milliseconds; none if it has no limit.
    pub ttl_max_ms: Option<u64>,
    /// Copies in memory for directives that name no number.
    pub replication: u32,
}

/// What is to be kept in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheDirective {
    /// Its number.
    pub id: u64,
    /// The path.
    pub path: String,
    /// Copies in memory.
    pub replication: u32,
    /// Its pool.
    pub pool: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// All of the section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// The number that the next directive gets.
    pub next_directive: u64,
    /// Pools.
    pub pools: Vec<CachePool>,
    /// Directives.
    pub directives: Vec<CacheDirective>,
}

impl Cache {
    /// Reads the section; an image may have none.
    pub fn read(section: Option<Section<'_>>) -> Result<Cache, ImageError> {
        let Some(mut section) = section else { return Ok(Cache::default()) };
        let (next_directive, pools, directives) = section.required(head)?;
        let mut cache = Cache { next_directive, ..Cache::default() };
        for _ in 0..pools {
            cache.pools.push(section.required(CachePool::decode)?);
        }
        for _ in 0..directives {
            cache.directives.push(section.required(CacheDirective::decode)?);
        }
        Ok(cache)
    }
}

/// The next directive's number, and how many pools and directives follow.
fn head(message: &[u8]) -> Result<(u64, u32, u32), Malformed> {
    let (mut next, mut pools, mut directives) = (0, 0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => next = value.number()?,
            2 => pools = value.small()?,
            3 => directives = value.small()?,
            _ => return Err(Malformed("the cache has a field that is not known")),
        }
    }
    Ok((next, pools, directives))
}

impl CachePool {
    fn decode(message: &[u8]) -> Result<CachePool, Malformed> {
        let mut pool = CachePool { replication: 1, ..CachePool::default() };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => pool.name = value.text()?.to_string(),
                2 => pool.owner = value.text()?.to_string(),
                3 => pool.group = value.text()?.to_string(),
                4 => {
                    let mode = u16::try_from(value.number()?);
                    pool.mode = mode.map_err(|_| Malformed("a pool has no mode"))?;
                }
                5 => pool.limit = Some(value.number()?),
                6 => pool.ttl_max_ms = Some(value.number()?),
                7 => pool.replication = value.small()?,
                _ => return Err(Malformed("a pool has a field that is not known")),
            }
        }
        Ok(pool)
    }
}

impl CacheDirective {
    fn decode(message: &[u8]) -> Result<CacheDirective, Malformed> {
        let mut directive = CacheDirective::default();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => directive.id = value.number()?,
                2 => directive.path = value.text()?.to_string(),
                3 => directive.replication = value.small()?,
                4 => directive.pool = value.text()?.to_string(),
                5 => directive.expires_ms = expiration(value.bytes()?)?,
                _ => return Err(Malformed("a directive has a field that is not known")),
            }
        }
        Ok(directive)
    }
}

/// When a directive ends; images have that as a time, not as a span.
fn expiration(message: &[u8]) -> Result<u64, Malformed> {
    let (mut millis, mut fields) = (0, Fields::of(message));
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => millis = value.number()?,
            2 if value.number()? == 0 => {}
            _ => return Err(Malformed("a directive does not end at a time")),
        }
    }
    Ok(millis)
}
