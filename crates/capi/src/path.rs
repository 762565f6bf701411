//! Paths as libhdfs takes them: absolute, relative to a working directory, or URIs of the file system.
//!
//! Source: Hadoop 3.5.0 `Path`, `FileSystem#checkPath`.

use crate::failure::{Failure, Result};

/// The port of a NameNode that no URI names.
const DEFAULT_PORT: &str = ":8020";

/// The absolute path, without empty components, `.` and `..`, that `text` names on the file system at
/// `authority` (`host:port`).
pub fn resolve(authority: &str, working_directory: &str, text: &str) -> Result<String> {
    if text.is_empty() {
        return Err(Failure::argument("Can not create a Path from an empty string"));
    }
    let local = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            let (named, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let is_here = named.is_empty() || same(named, authority);
            if scheme != "hdfs" || !is_here {
                let what = format!("Wrong FS: {text}, expected: hdfs://{authority}");
                return Err(Failure::argument(what));
            }
            if path.is_empty() { "/" } else { path }
        }
        _ => text,
    };
    let whole = match local.starts_with('/') {
        true => local.to_string(),
        false => format!("{working_directory}/{local}"),
    };
    let mut components: Vec<&str> = Vec::new();
    for component in whole.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                let above = || Failure::argument(format!("Invalid path name {text}"));
                components.pop().ok_or_else(above)?;
            }
            name => components.push(name),
        }
    }
    Ok(format!("/{}", components.join("/")))
}

/// Whether both name the same port of the same host.
pub fn same(one: &str, other: &str) -> bool {
    let host = |text: &str| text.strip_suffix(DEFAULT_PORT).unwrap_or(text).to_ascii_lowercase();
    host(one) == host(other)
}

/// The last component of an absolute path; empty for the root.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The path of an entry of a directory.
pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved() {
        let resolved = |text: &str| resolve("nn:9000", "/user/ann", text).ok();
        for (text, path) in [
            ("/a//b/", "/a/b"),
            ("/", "/"),
            ("b/./c/../d", "/user/ann/b/d"),
            ("..", "/user"),
            ("hdfs://nn:9000/x y", "/x y"),
            ("hdfs://NN:9000", "/"),
            ("hdfs:///x", "/x"),
            ("a/b://c", "/user/ann/a/b:/c"),
        ] {
            assert_eq!(resolved(text).as_deref(), Some(path), "{text}");
        }
        for text in ["", "/..", "hdfs://other/x", "hdfs://nn/x", "file:///x"] {
            assert_eq!(resolved(text), None, "{text}");
        }
        assert!(same("nn", "nn:8020") && !same("nn", "nn:9000"));
    }

    #[test]
    fn entries_have_names_and_paths() {
        assert_eq!((name("/a/b"), name("/")), ("b", ""));
        assert_eq!((join("/", "a").as_str(), join("/a", "b").as_str()), ("/a", "/a/b"));
    }
}
