//! A namespace made of Hadoop's fsimage, so that the cluster's DataNodes go on with their disks as they are.
//!
//! Inodes, blocks and groups keep their numbers, stamps and lengths, and the file system its names: a DataNode finds the
//! block pool it knows. What is in the image and not known here is named and refused, and then nothing is made. `VERSION`
//! comes last: a folder without it is no namespace. Until somebody accepts what was imported, no replica is deleted.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatPBINode.Loader`, `FSImageFormatProtobuf.Loader`, `NNStorage`.

mod edits;
mod error;
mod known;
mod out;
mod past;
mod records;
mod replay;
mod turned;

pub use error::ImportError;
pub use records::Counts;

use crate::clock::wall_ms;
use crate::disk::sync_dir;
use crate::journal::log::Log;
use crate::journal::restored::{self, Restored};
use crate::store::{Identity, Store};
use cairn_fsimage::{Counters, Image, sections};
use edits::Beside;
use out::Out;
use records::Reader;
use std::fs::{self, File};
use std::path::Path;

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

/// Makes a namespace in `dir`, which must be empty or missing, of an image: a file, or a folder of Hadoop's NameNode that
/// has some. `version` is its `VERSION` file, if that is not beside it. Blocks.
pub fn import(
    image: &Path,
    version: Option<&Path>,
    dir: &Path,
    cache_len: usize,
) -> Result<Imported, ImportError> {
    let image = edits::newest(image)?;
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
    Beside::of(&image).check(counters.transaction)?;
    let io = |source| ImportError::Io { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(io)?;
    if fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(ImportError::NotEmpty { path: dir.to_owned() });
    }
    let made = make(&image, &mut opened, &counters, &identity, dir, cache_len);
    if made.is_err() {
        // The folder was empty: all that is in it is of this attempt.
        for entry in fs::read_dir(dir).map_err(io)? {
            fs::remove_file(entry.map_err(io)?.path()).map_err(io)?;
        }
    }
    made
}

fn make(
    path: &Path,
    image: &mut Image<File>,
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
    let counts = reader.read(&mut out)?;
    out.end()?;
    let left_out = reader.left_out();
    store.close();
    Log::create(dir, identity.namespace_id, 1)?;
    let now_ms = wall_ms();
    let restored = Restored { sequence: 0, entry_ms: now_ms, at_ms: now_ms };
    restored::write(dir, restored).map_err(io)?;
    identity.write(&dir.join("VERSION"))?;
    sync_dir(dir).map_err(io)?;
    let transaction = counters.transaction;
    Ok(Imported { identity: identity.clone(), transaction, counts, left_out })
}

fn identity(image: &Path, version: Option<&Path>) -> Result<Identity, ImportError> {
    let beside = image.with_file_name("VERSION");
    let path = version.unwrap_or(&beside);
    Identity::read(path)?.ok_or_else(|| ImportError::NoVersion { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
