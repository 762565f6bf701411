//! A file that lines are appended to by a thread of its own.

use cairn_process::held::{held, whole};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Bytes that wait for the disk at most; who brings more waits, too. An audit log that leaves lines out is none.
const WAITING_MAX: usize = 16 << 20;

/// The file. Dropping it writes what waits.
pub(super) struct AuditFile {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Lines wait, or the end has come.
    due: Condvar,
    /// There is room for more.
    room: Condvar,
}

#[derive(Default)]
struct State {
    waiting: String,
    ended: bool,
}

impl AuditFile {
    pub(super) fn open(path: &Path) -> io::Result<AuditFile> {
        let mut target = Target { path: path.to_path_buf(), file: append_to(path)? };
        let shared = Arc::new(Shared::default());
        let taken = shared.clone();
        let writer = std::thread::Builder::new().name("audit".to_string()).spawn(move || {
            while let Some(lines) = taken.take() {
                if let Err(error) = target.write(&lines) {
                    let path = target.path.display();
                    tracing::error!(%error, %path, bytes = lines.len(), "audit lines are lost");
                }
            }
        })?;
        Ok(AuditFile { shared, writer: Some(writer) })
    }

    /// Hands over a line with its end.
    pub(super) fn write(&self, line: &str) {
        let mut state = self.shared.lock();
        while state.waiting.len() >= WAITING_MAX && !state.ended {
            state = whole(self.shared.room.wait(state));
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.push_str(line);
        drop(state);
        if was_empty {
            self.shared.due.notify_one();
        }
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.due.notify_one();
        self.shared.room.notify_all();
        if let Some(writer) = self.writer.take() {
            // It has said what failed.
            let _ = writer.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        held(&self.state)
    }

    /// Waits for lines; `None` at the end.
    fn take(&self) -> Option<String> {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended {
            state = whole(self.due.wait(state));
        }
        let lines = std::mem::take(&mut state.waiting);
        self.room.notify_all();
        (!lines.is_empty()).then_some(lines)
    }
}

struct Target {
    path: PathBuf,
    file: File,
}

impl Target {
    /// Appends lines; to a new file, where the old one was moved away or removed.
    fn write(&mut self, lines: &str) -> io::Result<()> {
        let id = |file: &std::fs::Metadata| (file.dev(), file.ino());
        let own = id(&self.file.metadata()?);
        if std::fs::metadata(&self.path).map_or(true, |there| id(&there) != own) {
            self.file = append_to(&self.path)?;
        }
        self.file.write_all(lines.as_bytes())
    }
}

/// Opens a file that its owner writes and its group reads.
fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait_for(path: &Path, want: &str) {
        let start = Instant::now();
        while std::fs::read_to_string(path).unwrap_or_default() != want {
            assert!(start.elapsed() < Duration::from_secs(30), "{}", path.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_file_that_is_moved_away_gets_no_more_and_a_new_one_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("audit.log"), dir.path().join("audit.log.1"));
        std::fs::write(&path, "before\n").unwrap();
        let file = AuditFile::open(&path).unwrap();
        file.write("one\n");
        wait_for(&path, "before\none\n");
        std::fs::rename(&path, &old).unwrap();
        file.write("two\n");
        wait_for(&path, "two\n");
        file.write("three\n");
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\nthree\n");
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before\none\n");
    }

    #[test]
    fn all_lines_of_all_threads_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let file = AuditFile::open(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let file = &file;
                scope.spawn(move || (0..1000).for_each(|n| file.write(&format!("{thread} {n}\n"))));
            }
        });
        drop(file);
        let text = std::fs::read_to_string(&path).unwrap();
        for thread in 0..4 {
            let own = text.lines().filter(|line| line.starts_with(&format!("{thread} ")));
            let numbers: Vec<usize> =
                own.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
            assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        }
    }
}
