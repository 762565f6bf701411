//! Path strings and the names in them, whatever is there.
//!
//! Source: Hadoop 3.5.0 `DFSUtilClient#isValidName`.

use crate::error::{NamespaceError, Result};

/// Names to a path.
pub fn join(names: &[String]) -> String {
    if names.is_empty() { "/".to_string() } else { format!("/{}", names.join("/")) }
}

/// Whether a new file or directory may have this path.
pub fn is_valid(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    // NFS asks for the directory above an inode.
    let up = rest.strip_prefix(".reserved/.inodes/").is_some_and(|rest| rest.contains('/'));
    let is_valid = |name: &str| !name.is_empty() && name != "." && !name.contains(':');
    rest.is_empty() || rest.split('/').all(|name| is_valid(name) && (name != ".." || up))
}

/// Whether `path` lies below `ancestor`; both without trailing slashes.
pub fn is_below(path: &str, ancestor: &str) -> bool {
    ancestor == "/" && path != "/"
        || path.strip_prefix(ancestor).is_some_and(|rest| rest.starts_with('/'))
}

/// The first name of all reserved ones.
pub(crate) const RESERVED: &str = ".reserved";

/// Whether the path lies in the namespace's own corner, `/.reserved`.
pub fn is_reserved(path: &str) -> bool {
    path.strip_prefix("/.reserved").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether the path names an inode by its id.
pub fn is_inode_path(path: &str) -> bool {
    path.starts_with("/.reserved/.inodes")
}

/// Whether the path is the one by which superusers reach what is encrypted as it is, and attributes in
/// the space `raw`. Source: Hadoop 3.5.0 `FSDirectory#isReservedRawName(String)`.
pub fn is_raw(path: &str) -> bool {
    path.starts_with("/.reserved/raw")
}

/// The same name by name. Source: Hadoop 3.5.0 `FSDirectory#isReservedRawName(byte[][])`.
pub(super) fn is_raw_names(path: &str) -> bool {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.next() == Some(".reserved") && names.next() == Some("raw")
}

/// Fails unless the path begins with a slash.
///
/// Source: Hadoop 3.5.0 `INode#checkAbsolutePath`.
pub fn check_absolute(path: &str) -> Result<()> {
    if path.starts_with('/') {
        return Ok(());
    }
    Err(NamespaceError::Assertion(format!("Absolute path required, but got '{path}'")))
}

/// The names of a path.
pub(crate) fn split(path: &str) -> Result<Vec<String>> {
    check_absolute(path)?;
    Ok(path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_files_may_have() {
        for good in ["/", "/a", "/a/", "/a/b c", "/ä/.x", "/.reserved/.inodes/7/.."] {
            assert!(is_valid(good), "{good}");
        }
        for bad in
            ["", "a", "/a/../b", "/.", "/a//b", "/a:b", "///", "/a/..", "/.reserved/.inodes/.."]
        {
            assert!(!is_valid(bad), "{bad}");
        }
    }

    #[test]
    fn below_means_a_whole_name() {
        assert!(is_below("/a/b", "/a"));
        assert!(is_below("/a", "/"));
        assert!(!is_below("/ab", "/a"));
        assert!(!is_below("/a", "/a"));
        assert!(!is_below("/", "/"));
    }
}
