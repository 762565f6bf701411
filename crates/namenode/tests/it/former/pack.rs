//! The files of a NameNode's folder as one file, in which zeros take no room.
//!
//! ```text
//! for each file: name length 2 | name | file length 8 | count of runs 4 | runs
//! run: offset 8 | length 4 | bytes
//! ```
//! Numbers are little endian. What no run covers is zero.

use std::path::Path;

/// So many zeros are worth a new run.
const GAP: usize = 32;

/// Packs the files of a folder, but for those that a start makes anew.
pub fn pack(dir: &Path) -> Vec<u8> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    let mut packed = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "in_use.lock" {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let runs = runs(&bytes);
        packed.extend((name.len() as u16).to_le_bytes());
        packed.extend(name.as_bytes());
        packed.extend((bytes.len() as u64).to_le_bytes());
        packed.extend((runs.len() as u32).to_le_bytes());
        for (begin, end) in runs {
            packed.extend((begin as u64).to_le_bytes());
            packed.extend(((end - begin) as u32).to_le_bytes());
            packed.extend(&bytes[begin..end]);
        }
    }
    packed
}

/// Where there is something, from and to.
fn runs(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match runs.last_mut() {
            Some((_, end)) if at < *end + GAP => *end = at + 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

/// Writes the files to a folder.
pub fn unpack(mut packed: &[u8], dir: &Path) {
    fn take<'a>(packed: &mut &'a [u8], len: usize) -> &'a [u8] {
        packed.split_off(..len).expect("what is packed is whole")
    }
    fn number(packed: &mut &[u8], len: usize) -> usize {
        take(packed, len).iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    }
    while !packed.is_empty() {
        let len = number(&mut packed, 2);
        let name = std::str::from_utf8(take(&mut packed, len)).unwrap();
        let mut bytes = vec![0; number(&mut packed, 8)];
        for _ in 0..number(&mut packed, 4) {
            let begin = number(&mut packed, 8);
            let len = number(&mut packed, 4);
            bytes[begin..begin + len].copy_from_slice(take(&mut packed, len));
        }
        std::fs::write(dir.join(name), bytes).unwrap();
    }
}

#[test]
fn what_is_packed_comes_out_as_it_was() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files: [(&str, Vec<u8>); 4] = [
        ("empty", Vec::new()),
        ("zeros", vec![0; 100_000]),
        ("ends", [vec![7], vec![0; GAP - 1], vec![8; 3], vec![0; GAP], vec![9]].concat()),
        ("long", (0..70_000_u32).map(|at| (at % 251) as u8).collect()),
    ];
    for (name, bytes) in &files {
        std::fs::write(from.path().join(name), bytes).unwrap();
    }
    unpack(&pack(from.path()), to.path());
    for (name, bytes) in &files {
        assert_eq!(&std::fs::read(to.path().join(name)).unwrap(), bytes, "{name}");
    }
}
