//! Hadoop's fsimage made of a namespace, so that Hadoop's NameNode goes on where Cairn's has stopped.
//!
//! The way back of [`super::import`]. Inodes, blocks and groups keep their numbers, stamps and lengths, and the file system
//! its names. What Hadoop has no form for is looked for first, in all of the namespace ([`plan`]): it is named and nothing is
//! written, or it is named and written as what comes next to it. `VERSION` comes last: a folder without it is none of a
//! NameNode.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatPBINode.Saver`, `NNStorage`, `MD5FileUtils`.

mod differences;
mod error;
mod out;
mod past;
mod plan;
mod records;
mod turned;

pub use super::counts::Counts;
pub use error::ExportError;

use super::offline::{self, Whole};
use crate::disk::sync_dir;
use crate::store::Identity;
use cairn_fsimage::write::ImageWriter;
use cairn_namespace::store::StoreRead;
use cairn_process::storage_dir;
use out::Digested;
use plan::Plan;
use records::Records;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The layout version of what is written. Source: Hadoop 3.5.0 `NameNodeLayoutVersion`.
const LAYOUT: i32 = -67;

/// Where an image goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file that is not there yet; its MD5 goes beside it.
    File(PathBuf),
    /// A folder for Hadoop's NameNode, empty or missing: `dfs.namenode.name.dir`.
    Folder(PathBuf),
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The image.
    pub image: PathBuf,
    /// Whose it is.
    pub identity: Identity,
    /// The transaction that the image is numbered with: the last entry of the log.
    pub transaction: u64,
    /// What is in it.
    pub written: Written,
}

/// What an image has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How much there is.
    pub counts: Counts,
    /// What is there in another form than here, and how often.
    pub changed: Vec<String>,
    /// What was left out, which nobody misses or everybody gets anew.
    pub left_out: Vec<String>,
    /// The MD5 of its bytes, as Hadoop writes it.
    pub md5: String,
}

/// Writes the namespace in `dir`, whose NameNode does not run, as an image. Everything in it is read and checked first. What
/// was begun is removed if it fails. Blocks.
pub fn export(dir: &Path, target: &Target, cache_len: usize) -> Result<Exported, ExportError> {
    let whole = offline::open_whole(dir, cache_len)?.map_err(ExportError::Damaged)?;
    let (image, made) = match target {
        Target::File(file) => (file.clone(), None),
        Target::Folder(folder) => {
            let current = folder.join("current");
            check_empty(folder)?;
            let made = current.clone();
            (current.join(format!("fsimage_{:019}", whole.last)), Some(made))
        }
    };
    let io = |source| ExportError::Io { path: image.clone(), source };
    if let Some(current) = &made {
        storage_dir::create(current).map_err(io)?;
    }
    let written = put(&whole, &image, made.as_deref());
    if !matches!(written, Err(ExportError::Exists { .. }) | Ok(_)) {
        match &made {
            Some(current) => fs::remove_dir_all(current).map_err(io)?,
            None => [image.clone(), md5_name(&image)].iter().for_each(|path| {
                // What is not there need not go.
                let _ = fs::remove_file(path);
            }),
        }
    }
    let Whole { identity, last: transaction, .. } = whole;
    Ok(Exported { image, identity, transaction, written: written? })
}

fn check_empty(folder: &Path) -> Result<(), ExportError> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ExportError::Io { path: folder.to_owned(), source }),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(ExportError::NotEmpty { path: folder.to_owned() }),
        },
    }
}

/// Writes the image, its MD5, and in a folder what Hadoop has beside it.
fn put(whole: &Whole, image: &Path, current: Option<&Path>) -> Result<Written, ExportError> {
    let io = |source| ExportError::Io { path: image.to_owned(), source };
    let file = match File::create_new(image) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(ExportError::Exists { path: image.to_owned() });
        }
        file => file.map_err(io)?,
    };
    let written = write(&whole.state, whole.identity.namespace_id, whole.last, &file)?;
    file.sync_all().map_err(io)?;
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let md5 = md5_name(image);
    write_text(&md5, &format!("{} *{name}\n", written.md5))?;
    if let Some(current) = current {
        write_text(&current.join("seen_txid"), &format!("{}\n", whole.last))?;
        write_text(&current.join("VERSION"), &version(&whole.identity))?;
    }
    let folder = image.parent().filter(|of| !of.as_os_str().is_empty());
    sync_dir(folder.unwrap_or(Path::new("."))).map_err(io)?;
    Ok(written)
}

fn md5_name(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".md5");
    name.into()
}

fn write_text(path: &Path, text: &str) -> Result<(), ExportError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| ExportError::Io { path: path.to_owned(), source })
}

/// Hadoop's `VERSION` of a file system.
///
/// Source: Hadoop 3.5.0 `NNStorage#setPropertiesFromFields`.
fn version(of: &Identity) -> String {
    format!(
        "namespaceID={}\nclusterID={}\ncTime={}\nstorageType=NAME_NODE\nblockpoolID={}\nlayoutVersion={LAYOUT}\n",
        of.namespace_id, of.cluster_id, of.created_ms, of.block_pool_id
    )
}

/// Writes a state of a namespace as an image that has everything up to `transaction`. Nothing is written of one that has what
/// an image can't have.
pub(crate) fn write(
    store: &dyn StoreRead,
    namespace_id: u32,
    transaction: u64,
    out: impl Write,
) -> Result<Written, ExportError> {
    let plan = Plan::of(store)?;
    let image = ImageWriter::begin(Digested::new(BufWriter::with_capacity(1 << 20, out)))?;
    let image = Records::new(store, &plan, image).write(namespace_id, transaction)?;
    let (out, md5) = image.end()?.end();
    out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let Plan { counts, changed, left_out, .. } = plan;
    Ok(Written { counts, changed, left_out, md5 })
}

#[cfg(test)]
mod tests;
