//! Which local files the quick start stores.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One local file, and its name below the directory that it is stored in.
#[derive(Clone, Debug)]
pub struct LocalFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name in the file system, with slashes.
    pub name: String,
    /// Its bytes.
    pub len: u64,
}

/// The files of the given paths; of this checkout and this program where none is given. `data`, where the cluster
/// keeps what it stores, is left out.
pub fn find(paths: &[PathBuf], data: Option<&Path>) -> Result<Vec<LocalFile>> {
    // What is not there yet cannot be found.
    let data = data.and_then(|folder| folder.canonicalize().ok());
    let mut found = BTreeMap::new();
    let collect =
        |path: &Path, name: &str, found: &mut _| collect(path, name, data.as_deref(), found);
    if paths.is_empty() {
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        let here = here.context("the current folder is gone")?;
        collect(&here, "checkout", &mut found)?;
        let program = std::env::current_exe().context("this program has no path")?;
        collect(&program, "bin/cairn", &mut found)?;
    }
    for path in paths {
        let full =
            path.canonicalize().with_context(|| format!("there is no {}", path.display()))?;
        let name = full.file_name().map_or("root".into(), |name| name.to_string_lossy());
        collect(&full, &name, &mut found)?;
    }
    if found.is_empty() {
        bail!("there are no files to store");
    }
    Ok(found.into_values().collect())
}

/// Adds a file, or the files below a folder; skips version control, build output and special files.
fn collect(
    path: &Path,
    name: &str,
    data: Option<&Path>,
    found: &mut BTreeMap<String, LocalFile>,
) -> Result<()> {
    if data == Some(path) {
        return Ok(());
    }
    let about = || format!("cannot look at {}", path.display());
    let meta = std::fs::symlink_metadata(path).with_context(about)?;
    if meta.is_file() {
        let file = LocalFile { path: path.to_path_buf(), name: name.to_string(), len: meta.len() };
        found.insert(name.to_string(), file);
    } else if meta.is_dir() {
        for entry in std::fs::read_dir(path).with_context(about)? {
            let entry = entry.with_context(about)?;
            let child = entry.file_name().to_string_lossy().into_owned();
            if child != ".git" && child != "target" {
                collect(&entry.path(), &format!("{name}/{child}"), data, found)?;
            }
        }
    }
    Ok(())
}

/// Bytes of all files below a folder; 0 where it does not exist.
pub fn bytes_below(folder: &Path) -> Result<u64> {
    let mut total = 0;
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).context(format!("cannot list {}", folder.display())),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => waiting.push(entry.path()),
                Ok(meta) => total += meta.len(),
                // A DataNode moves files while it works; a moved one is counted in its new place.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_walked_without_build_output() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/b.txt", "target/x", ".git/y"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "12345").unwrap();
        }
        let paths = [dir.path().to_path_buf()];
        let found = find(&paths, Some(&dir.path().join("absent"))).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].name.ends_with("/a/b.txt"));
        let without =
            find(&[dir.path().join("a/b.txt"), dir.path().join("a")], Some(&dir.path().join("a")));
        assert_eq!(without.unwrap().len(), 1, "the data folder of a cluster is stored");
        assert_eq!(bytes_below(dir.path()).unwrap(), 15);
        assert!(find(&[dir.path().join("absent")], None).is_err());
    }
}
