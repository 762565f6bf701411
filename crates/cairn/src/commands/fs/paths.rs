//! Paths as users write them.

/// `path` with `name` below it.
pub fn below(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_join_with_one_slash() {
        assert_eq!(below("/", "a"), "/a");
        assert_eq!(below("/a/", "b"), "/a/b");
    }
}
