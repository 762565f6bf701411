//! Cache pools and directives: what DataNodes keep in memory.

/// A pool of cache directives, as it is or as it is to be; what is `None` was not told, or stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePool {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Permission bits.
    pub mode: Option<u16>,
    /// Most bytes that its directives may have in memory; `u64::MAX` for no limit.
    pub limit: Option<u64>,
    /// The longest that a directive of it may last, milliseconds; `u64::MAX` for no limit.
    pub max_ttl_ms: Option<u64>,
    /// Copies in memory where a directive names no number.
    pub default_replication: Option<u16>,
}

/// What a pool's directives ask for and have; lengths in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// What should be in memory.
    pub bytes_needed: u64,
    /// What is.
    pub bytes_cached: u64,
    /// What is above the pool's limit; 0 for a directive.
    pub bytes_over_limit: u64,
    /// Files that should be.
    pub files_needed: u64,
    /// Files that are as a whole.
    pub files_cached: u64,
}

/// A directive: a path whose bytes DataNodes are to keep in memory; what is `None` was not told, or stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheDirective {
    /// Its number.
    pub id: Option<u64>,
    /// The file, or the directory whose files are meant.
    pub path: Option<String>,
    /// Copies in memory.
    pub replication: Option<u16>,
    /// Its pool.
    pub pool: Option<String>,
    /// When it ends.
    pub expiry: Option<CacheExpiry>,
}

/// When a directive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheExpiry {
    /// Milliseconds from now; `i64::MAX / 4` for never.
    In(i64),
    /// Milliseconds since 1970.
    At(i64),
}
