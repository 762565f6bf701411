//! How far a volume's scanner has come, kept in Hadoop's `scanner.cursor` so that a restart goes on there.
//!
//! The walk follows names: folder, sub-folder, block file. Nothing is held in memory but the folder at hand.
//!
//! Source: Hadoop 3.5.0 `FsVolumeImpl.BlockIteratorImpl`, `FsVolumeImpl.BlockIteratorState`.

use crate::error::{Context, DataNodeError, Result};
use crate::volume::layout::{FileName, parse_name};
use cairn_stripe::BlockId;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// A cursor's file has some hundred bytes.
const MAX_LEN: u64 = 64 << 10;

/// A place in the walk over a volume's finalized replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    finalized: PathBuf,
    /// When the walk began, in milliseconds since 1970.
    started_ms: u64,
    /// Names of the folder, the folder in it and the last block file; the later ones `None` before the first.
    dir: Option<String>,
    sub_dir: Option<String>,
    entry: Option<String>,
    at_end: bool,
    /// Names behind `entry`, the next one last, if they are known.
    rest: Option<Vec<String>>,
}

impl Cursor {
    /// Where a former start has stopped, or the start of a walk if that is not known.
    pub(super) fn load(finalized: PathBuf, now_ms: u64) -> Cursor {
        let mut cursor = Cursor {
            finalized,
            started_ms: now_ms,
            dir: None,
            sub_dir: None,
            entry: None,
            at_end: false,
            rest: None,
        };
        let path = cursor.path();
        match read(&path) {
            Ok(Some(state)) => cursor.take(&state, now_ms),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read the scanner's cursor")
            }
        }
        cursor
    }

    fn take(&mut self, state: &Value, now_ms: u64) {
        let name = |key: &str| state[key].as_str().map(str::to_string);
        // A walk cannot have begun in the future; so said, the next would not begin before.
        self.started_ms = state["iterStartMs"].as_u64().unwrap_or(now_ms).min(now_ms);
        self.at_end = state["atEnd"].as_bool().unwrap_or(false);
        (self.dir, self.sub_dir) = (name("curFinalizedDir"), name("curFinalizedSubDir"));
        self.entry = name("curEntry");
    }

    /// Writes it beside the pool's folders.
    pub(super) fn save(&self, now_ms: u64) -> Result<()> {
        let state = json!({
            "lastSavedMs": now_ms,
            "iterStartMs": self.started_ms,
            "curFinalizedDir": self.dir,
            "curFinalizedSubDir": self.sub_dir,
            "curEntry": self.entry,
            "atEnd": self.at_end,
        });
        let (path, next) = (self.path(), self.path().with_extension("cursor.tmp"));
        let mut file = File::create(&next).at(&next)?;
        file.write_all(state.to_string().as_bytes()).at(&next)?;
        fs::rename(&next, &path).at(&path)
    }

    /// `BP-…/scanner.cursor`, two folders above `BP-…/current/finalized`.
    fn path(&self) -> PathBuf {
        let pool = self.finalized.ancestors().nth(2).unwrap_or(&self.finalized);
        pool.join("scanner.cursor")
    }

    /// When the walk began, in milliseconds since 1970.
    pub(super) fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Whether all has been walked over.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Starts another walk.
    pub(super) fn rewind(&mut self, now_ms: u64) {
        self.started_ms = now_ms;
        (self.dir, self.sub_dir, self.entry) = (None, None, None);
        (self.at_end, self.rest) = (false, None);
    }

    /// The next block file; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<BlockId>> {
        while !self.at_end {
            if let Some(name) = self.next_name()? {
                let id = match parse_name(&name) {
                    FileName::Block(id) => Some(id),
                    _ => None,
                };
                self.entry = Some(name);
                if id.is_some() {
                    return Ok(id);
                }
                continue;
            }
            self.next_folder()?;
        }
        Ok(None)
    }

    /// The next file in the folder at hand.
    fn next_name(&mut self) -> Result<Option<String>> {
        let (Some(dir), Some(sub_dir)) = (&self.dir, &self.sub_dir) else { return Ok(None) };
        if self.rest.is_none() {
            let mut names = names(&self.finalized.join(dir).join(sub_dir))?;
            names.retain(|name| self.entry.as_ref().is_none_or(|entry| name > entry));
            names.reverse();
            self.rest = Some(names);
        }
        Ok(self.rest.as_mut().and_then(Vec::pop))
    }

    fn next_folder(&mut self) -> Result<()> {
        (self.entry, self.rest) = (None, None);
        if let Some(dir) = &self.dir {
            self.sub_dir = following(&self.finalized.join(dir), self.sub_dir.as_deref())?;
            if self.sub_dir.is_some() {
                return Ok(());
            }
        }
        self.dir = following(&self.finalized, self.dir.as_deref())?;
        self.at_end = self.dir.is_none();
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<Value>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.at(path)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_LEN).read_to_end(&mut bytes).at(path)?;
    let why = |error: serde_json::Error| DataNodeError::Peer(error.to_string());
    serde_json::from_slice(&bytes).map(Some).map_err(why)
}

/// Names in a folder, in order. One that has gone has none.
fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.at(dir)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.at(dir)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// The first `subdir…` behind `after`.
fn following(dir: &Path, after: Option<&str>) -> Result<Option<String>> {
    let is_behind = |name: &String| {
        name.starts_with("subdir") && after.is_none_or(|after| name.as_str() > after)
    };
    Ok(names(dir)?.into_iter().find(is_behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[&str]) -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let finalized = root.path().join("BP-1/current/finalized");
        for file in files {
            let path = finalized.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        (root, finalized)
    }

    const FILES: [&str; 6] = [
        "subdir0/subdir1/blk_5",
        "subdir0/subdir1/blk_5_1001.meta",
        "subdir0/subdir1/blk_7",
        "subdir0/subdir2/blk_-16",
        "subdir3/subdir0/blk_900",
        "subdir3/subdir0/notes",
    ];

    #[test]
    fn a_walk_meets_each_block_once_also_across_restarts() {
        let (_root, finalized) = folder(&FILES);
        let mut cursor = Cursor::load(finalized.clone(), 50);
        let mut seen = Vec::new();
        while let Some(id) = cursor.next().unwrap() {
            seen.push(id.0);
            cursor.save(60).unwrap();
            cursor = Cursor::load(finalized.clone(), 70);
            assert_eq!(cursor.started_ms(), 50);
        }
        assert_eq!(seen, [5, 7, -16, 900]);
        assert!(cursor.is_at_end());
        cursor.rewind(80);
        assert_eq!(cursor.next().unwrap(), Some(BlockId(5)));
    }

    #[test]
    fn a_file_of_hadoops_is_gone_on_from() {
        let (root, finalized) = folder(&FILES);
        let state = r#"{"lastSavedMs":9,"iterStartMs":8,"curFinalizedDir":"subdir0",
            "curFinalizedSubDir":"subdir1","curEntry":"blk_5","atEnd":false}"#;
        fs::write(root.path().join("BP-1/scanner.cursor"), state).unwrap();
        let mut cursor = Cursor::load(finalized, 50);
        assert_eq!((cursor.started_ms(), cursor.next().unwrap()), (8, Some(BlockId(7))));
    }

    #[test]
    fn what_is_no_cursor_starts_anew() {
        let (root, finalized) = folder(&FILES);
        for state in ["", "{", "[1]", r#"{"curEntry":3,"iterStartMs":99999}"#] {
            fs::write(root.path().join("BP-1/scanner.cursor"), state).unwrap();
            let mut cursor = Cursor::load(finalized.clone(), 50);
            assert_eq!((cursor.started_ms(), cursor.next().unwrap()), (50, Some(BlockId(5))));
        }
    }
}
