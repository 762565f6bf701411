//! The last things by which the state of namespace and cluster was changed, as values, to be written out when the
//! NameNode comes to a bad end: a mistake then need not be waited for a second time.
//!
//! What is kept is bounded by count and bytes, and costs a copy of what DataNodes tell and nothing of entries, which are
//! encoded for the log anyway. A file has a line for each: the time (ms since the epoch), what it was, and the value as
//! text; an entry's number and its bytes in the log, in hexadecimal digits, come before that, so that it can be applied
//! again.

use cairn_namespace::Entry;
use cairn_process::held::held;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Write};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::clock::wall_ms;

/// Inputs that are kept.
const COUNT_MAX: usize = 1000;
/// Bytes of all of them, about.
const BYTES_MAX: usize = 8 << 20;
/// What the names of files begin with.
const PREFIX: &str = "last-inputs-";
/// Files that stay: a NameNode that is started again and again must not fill its disk.
const FILES_MAX: usize = 8;

/// The inputs.
#[derive(Default)]
pub struct LastInputs(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    inputs: VecDeque<Noted>,
    bytes: usize,
}

struct Noted {
    wall_ms: u64,
    bytes: usize,
    input: Input,
}

enum Input {
    /// An entry, by its number, as it is in the log.
    Entry(u64, Vec<u8>),
    /// Another value, and what it is.
    Other(&'static str, Box<dyn Debug + Send>),
}

impl LastInputs {
    /// Keeps an entry that is applied, by its number and as it is in the log.
    pub(crate) fn note_entry(&self, sequence: u64, bytes: Vec<u8>) {
        self.push(bytes.len(), Input::Entry(sequence, bytes));
    }

    /// Keeps what is told the cluster, of about so many bytes.
    pub(crate) fn note(
        &self,
        what: &'static str,
        bytes: usize,
        value: impl Debug + Send + 'static,
    ) {
        self.push(bytes, Input::Other(what, Box::new(value)));
    }

    fn push(&self, bytes: usize, input: Input) {
        let bytes = bytes + size_of::<Noted>();
        let noted = Noted { wall_ms: wall_ms(), bytes, input };
        let mut ring = held(&self.0);
        ring.bytes += bytes;
        ring.inputs.push_back(noted);
        while ring.inputs.len() > COUNT_MAX || ring.bytes > BYTES_MAX && ring.inputs.len() > 1 {
            let oldest = ring.inputs.pop_front();
            ring.bytes -= oldest.map_or(0, |oldest| oldest.bytes);
        }
    }

    /// Writes them to a new file in the folder. Blocks.
    pub(crate) fn write(&self, dir: &Path, why: &str) -> io::Result<PathBuf> {
        let path = dir.join(format!("{PREFIX}{:020}", wall_ms()));
        let mut text = format!("# The NameNode has ended: {}\n", why.replace('\n', " "));
        for noted in &held(&self.0).inputs {
            let (time, line) = (noted.wall_ms, Line(&noted.input));
            writeln!(text, "{time} {line}").map_err(io::Error::other)?;
        }
        std::fs::write(&path, text)?;
        File::open(&path)?.sync_all()?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
                files.push(entry.path());
            }
        }
        files.sort();
        let surplus = files.len().saturating_sub(FILES_MAX);
        files[..surplus].iter().try_for_each(std::fs::remove_file)?;
        Ok(path)
    }
}

/// An input as a line of a file.
struct Line<'a>(&'a Input);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Entry(sequence, bytes) => {
                write!(f, "entry {sequence} ")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                match Entry::from_bytes(bytes) {
                    Ok(entry) => write!(f, " {entry:?}"),
                    Err(error) => write!(f, " {error}"),
                }
            }
            Input::Other(what, value) => write!(f, "{what} {value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
    }

    #[test]
    fn the_last_ones_are_kept_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let inputs = LastInputs::default();
        for number in 0..COUNT_MAX + 5 {
            inputs.note("number", 0, number);
        }
        let told = lines(&inputs.write(dir.path(), "a\nmistake").unwrap());
        assert_eq!(
            (told.len(), told[0].as_str()),
            (COUNT_MAX + 1, "# The NameNode has ended: a mistake")
        );
        assert!(told[1].ends_with(" number 5"), "{}", told[1]);
        assert!(told[COUNT_MAX].ends_with(&format!(" number {}", COUNT_MAX + 4)));
        // Two of which each takes half of the room push all others out, and the first.
        for number in [1, 2] {
            inputs.note_entry(number, vec![0; BYTES_MAX / 2]);
        }
        assert!(held(&inputs.0).bytes <= BYTES_MAX);
        assert_eq!(held(&inputs.0).inputs.len(), 1);
        inputs.note("long", 2 * BYTES_MAX, "stays until another comes");
        assert_eq!(held(&inputs.0).inputs.len(), 1);
    }

    #[test]
    fn few_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..FILES_MAX + 3 {
            std::fs::write(dir.path().join(format!("{PREFIX}{number:020}")), "").unwrap();
        }
        std::fs::write(dir.path().join("log-1"), "").unwrap();
        let newest = LastInputs::default().write(dir.path(), "why").unwrap();
        assert!(newest.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), FILES_MAX + 1);
    }
}
