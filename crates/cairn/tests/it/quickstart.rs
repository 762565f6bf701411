//! `cairn quickstart` that is ended, and that is run again.

use crate::cluster::{cairn, interrupt, text};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn an_interrupt_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (temporary, file) = (dir.path().join("tmp"), dir.path().join("file"));
    std::fs::create_dir(&temporary).unwrap();
    std::fs::write(&file, vec![7; 64 << 20]).unwrap();
    let mut quickstart = cairn();
    quickstart.arg("quickstart").arg(&file).env("TMPDIR", &temporary);
    let mut quickstart = quickstart.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(quickstart.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Storing ")));
    assert!(temporary.read_dir().unwrap().count() > 0);
    let ended = interrupt(quickstart);
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
    assert_eq!(temporary.read_dir().unwrap().count(), 0);
}
