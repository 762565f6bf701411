//! Snapshots that other members send: each comes to a file, one at a time, and counts when it is whole.

use super::link_error::LinkError;
use crate::disk::sync_dir;
use cairn_process::held::held;
use cairn_quorum::Base;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

const PART: &str = "snapshot.part";
const WHOLE: &str = "snapshot";

/// A snapshot that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the log goes on behind it. The snapshot may have more than that.
    pub base: Base,
    /// The quorum of who has sent it.
    pub(super) quorum: u64,
    /// The file; the next one takes its place.
    pub path: PathBuf,
}

/// Where they come to.
#[derive(Debug)]
pub(super) struct Incoming {
    dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// One is on its way.
    is_coming: bool,
    whole: Option<Snapshot>,
}

impl Incoming {
    pub fn new(dir: PathBuf) -> Incoming {
        Incoming { dir, state: Mutex::default() }
    }

    /// One begins, unless another is on its way or waits.
    pub fn begin(&self, base: Base, quorum: u64) -> Result<Part<'_>, LinkError> {
        {
            let mut state = held(&self.state);
            if state.is_coming || state.whole.is_some() {
                return Err(LinkError::Busy);
            }
            state.is_coming = true;
        }
        // From here on the place is given back.
        let mut part = Part { incoming: self, base, quorum, file: None };
        fs::create_dir_all(&self.dir)?;
        part.file = Some(File::create(self.dir.join(PART))?);
        Ok(part)
    }

    /// The one that is whole.
    pub fn whole(&self) -> Option<Snapshot> {
        held(&self.state).whole.clone()
    }

    /// It is not needed any more.
    pub fn remove(&self) {
        if let Some(Snapshot { path, .. }) = held(&self.state).whole.take() {
            // The next one takes its place.
            let _ = fs::remove_file(path);
        }
    }
}

/// One that comes.
pub(super) struct Part<'a> {
    incoming: &'a Incoming,
    base: Base,
    quorum: u64,
    file: Option<File>,
}

impl Part<'_> {
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        Ok(())
    }

    /// It is whole.
    pub fn end(mut self) -> Result<(), LinkError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.sync_all()?;
        let dir = &self.incoming.dir;
        let path = dir.join(WHOLE);
        fs::rename(dir.join(PART), &path)?;
        sync_dir(dir)?;
        let whole = Snapshot { base: self.base.clone(), quorum: self.quorum, path };
        held(&self.incoming.state).whole = Some(whole);
        Ok(())
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        held(&self.incoming.state).is_coming = false;
    }
}
