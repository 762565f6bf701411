//! How many files and connections this process may have open at once.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process open as many files and connections as it may: what it starts with is often far less.
///
/// Source: HotSpot, which does so for every Hadoop process (`MaxFDLimit`).
pub fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Files and connections that this process may have open at once.
pub fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
