//! The corpora.

use std::fs::{self, DirEntry};
use std::path::Path;

/// The corpus of a target, in the same order in every run.
pub fn inputs(corpora: &str, name: &str) -> Vec<Vec<u8>> {
    let corpus = Path::new(corpora).join(name);
    let mut files: Vec<_> = fs::read_dir(&corpus).unwrap().flatten().collect();
    files.sort_by_key(DirEntry::file_name);
    assert!(files.len() > 3, "{} has {} inputs", corpus.display(), files.len());
    files.iter().map(|file| fs::read(file.path()).unwrap()).collect()
}
