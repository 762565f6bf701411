//! A namespace made of Hadoop's fsimage, and of the edit log behind it, so that the cluster's DataNodes go on with their disks as they are.
//!
//! Inodes, blocks and groups keep their numbers, stamps and lengths, and the file system its names: a DataNode finds the
//! block pool it knows. What is in the image and not known here is named and refused, and then nothing is made. `VERSION`
//! comes last: a folder without it is no namespace. Until somebody accepts what was imported, no replica is deleted.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatPBINode.Loader`, `FSImageFormatProtobuf.Loader`, `NNStorage`.

mod applied;
mod edits;
mod error;
mod known;
mod log;
mod out;
mod past;
mod records;
mod replay;
mod turned;

pub use super::counts::Counts;
pub use error::ImportError;

use crate::clock::wall_ms;
use crate::disk::sync_dir;
use crate::journal::log::Log;
use crate::journal::restored::{self, Restored};
use crate::store::{Identity, Store};
use cairn_fsimage::{Counters, Image, sections};
use cairn_process::storage_dir;
use edits::Beside;
use out::Out;
use records::Reader;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What a namespace is made of.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The image, or a folder of Hadoop's NameNode that has some.
    pub image: PathBuf,
    /// Its `VERSION` file, if that is not beside it.
    pub version: Option<PathBuf>,
    /// The folder of the edit log, if it is to be read: one of Hadoop's NameNode, or of a JournalNode.
    pub edits: Option<PathBuf>,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Whose it is.
    pub identity: Identity,
    /// The last transaction of Hadoop's log that it has.
    pub transaction: u64,
    /// How much there is.
    pub counts: Counts,
    /// What was left out, which nobody misses or everybody gets anew.
    pub left_out: Vec<String>,
}

/// Makes a namespace in `dir`, which must be empty or missing. Blocks.
pub fn import(sources: &Sources, dir: &Path, cache_len: usize) -> Result<Imported, ImportError> {
    let image = edits::newest(&sources.image)?;
    let version = sources.version.as_deref();
    let identity = identity(&image, version)?;
    let read = |source| ImportError::Image { path: image.clone(), source };
    let file = File::open(&image);
    let file = file.map_err(|source| ImportError::Io { path: image.clone(), source })?;
    let mut opened = Image::open(file).map_err(read)?;
    let counters = opened.required(sections::NS_INFO).and_then(Counters::read).map_err(read)?;
    if counters.namespace_id != identity.namespace_id {
        let (image, version) = (counters.namespace_id, identity.namespace_id);
        return Err(ImportError::Mixed { image, version });
    }
    let beside = Beside::of(&image);
    beside.check_image(counters.transaction)?;
    if sources.edits.is_none() {
        beside.check_log(counters.transaction)?;
    }
    let io = |source| ImportError::Io { path: dir.to_owned(), source };
    storage_dir::create(dir).map_err(io)?;
    if fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(ImportError::NotEmpty { path: dir.to_owned() });
    }
    let log = sources.edits.as_deref().map(|folder| (folder, &beside));
    let made = make((&image, &mut opened), log, &counters, &identity, dir, cache_len);
    if made.is_err() {
        // The folder was empty: all that is in it is of this attempt.
        for entry in fs::read_dir(dir).map_err(io)? {
            fs::remove_file(entry.map_err(io)?.path()).map_err(io)?;
        }
    }
    made
}

fn make(
    (path, image): (&Path, &mut Image<File>),
    log: Option<(&Path, &Beside<'_>)>,
    counters: &Counters,
    identity: &Identity,
    dir: &Path,
    cache_len: usize,
) -> Result<Imported, ImportError> {
    let io = |source| ImportError::Io { path: dir.to_owned(), source };
    let store = Store::open(&dir.join("namespace.redb"), cache_len)?;
    let mut reader = Reader::new(path, image, counters);
    reader.look_for_what_is_not_known()?;
    let mut out = Out::new(&store);
    let mut counts = reader.read(&mut out)?;
    let (mut transaction, mut has_tokens) = (counters.transaction, reader.has_tokens());
    let mut left_out = Vec::new();
    if let Some((folder, beside)) = log {
        out.write_out()?;
        let applied = log::apply(folder, transaction, &mut out)?;
        beside.check_log(applied.last)?;
        (transaction, has_tokens) = (applied.last, has_tokens || applied.has_tokens);
        let torn = |path: PathBuf| {
            let path = path.display();
            format!("the end of {path}, where its writer stopped within an operation")
        };
        left_out.extend(applied.torn.map(torn));
        counts = Counts::of(out.records()?)?;
    }
    out.end()?;
    let tokens = "delegation tokens and their keys: clients get new ones";
    left_out.extend(has_tokens.then(|| tokens.to_string()));
    let now_ms = wall_ms();
    let restored = Restored { sequence: 0, entry_ms: now_ms, at_ms: now_ms };
    restored::hold(&store, &|holds| holds.restored = Some(restored))?;
    store.close();
    Log::create(dir, identity.namespace_id, 1)?;
    identity.write(&dir.join("VERSION"))?;
    sync_dir(dir).map_err(io)?;
    Ok(Imported { identity: identity.clone(), transaction, counts, left_out })
}

fn identity(image: &Path, version: Option<&Path>) -> Result<Identity, ImportError> {
    let beside = image.with_file_name("VERSION");
    let path = version.unwrap_or(&beside);
    Identity::read(path)?.ok_or_else(|| ImportError::NoVersion { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
