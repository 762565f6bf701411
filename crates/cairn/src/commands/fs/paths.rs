//! Paths as users write them.

/// `path` with `name` below it.
pub fn below(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}
