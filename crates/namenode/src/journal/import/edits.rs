//! What is beside an image in the folder of Hadoop's NameNode, and whether any of it is newer.

use super::error::{ImportError, OLDEST};
use md5::{Digest, Md5};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Operations that begin and end a part of the log, and change nothing.
///
/// Source: Hadoop 3.5.0 `FSEditLogOpCodes`.
const BEGINNING: u8 = 24;
const END: u8 = 23;
/// What a part of the log is filled up with.
const FILLING: u8 = 0xff;
/// Version and flags, before the operations.
const HEAD_LEN: usize = 8;
/// Longest operation. Source: Hadoop 3.5.0 `DFSConfigKeys#DFS_NAMENODE_MAX_OP_SIZE_DEFAULT`.
const OPERATION_MAX: u64 = 50 << 20;

/// The newest image of a folder, or the file itself.
pub(super) fn newest(path: &Path) -> Result<PathBuf, ImportError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let current = path.join("current");
    let folder = if current.is_dir() { current } else { path.to_owned() };
    let images = names(&folder)?.into_iter().filter_map(|name| Some((image_number(&name)?, name)));
    let newest = images.max().ok_or_else(|| ImportError::NoImage { path: folder.clone() })?;
    Ok(folder.join(newest.1))
}

fn names(folder: &Path) -> Result<Vec<String>, ImportError> {
    let io = |source| ImportError::Io { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        found.extend(entry.map_err(io)?.file_name().into_string().ok());
    }
    Ok(found)
}

/// The last transaction of an image, by its name.
fn image_number(name: &str) -> Option<u64> {
    name.strip_prefix("fsimage_")?.parse().ok()
}

/// The transactions of a part of the log, by its name: the first, and the last unless it is still written.
fn part_numbers(name: &str) -> Option<(u64, Option<u64>)> {
    let numbers = name.strip_prefix("edits_")?;
    if let Some(first) = numbers.strip_prefix("inprogress_") {
        return Some((first.parse().ok()?, None));
    }
    let (first, last) = numbers.split_once('-')?;
    Some((first.parse().ok()?, Some(last.parse().ok()?)))
}

/// The folder that an image is in.
pub(super) struct Beside<'a> {
    image: &'a Path,
    folder: PathBuf,
}

impl<'a> Beside<'a> {
    pub fn of(image: &'a Path) -> Beside<'a> {
        let folder = image.parent().filter(|of| !of.as_os_str().is_empty());
        Beside { image, folder: folder.unwrap_or(Path::new(".")).to_owned() }
    }

    /// Fails if there is a newer image or a part of the log that changes something behind transaction `last`.
    pub fn check(&self, last: u64) -> Result<(), ImportError> {
        for name in names(&self.folder)? {
            let path = self.folder.join(&name);
            let newer = image_number(&name).is_some_and(|number| number > last);
            let goes_on = match part_numbers(&name) {
                Some((first, end)) if end.is_none_or(|end| end > last) => {
                    first <= last || changes_something(&path)?
                }
                _ => false,
            };
            if newer || goes_on {
                return Err(ImportError::Later { path, last });
            }
        }
        self.check_digest()
    }

    /// Compares the image with the digest that Hadoop has put beside it, if there is one.
    fn check_digest(&self) -> Result<(), ImportError> {
        let mut name = self.image.file_name().unwrap_or_default().to_owned();
        name.push(".md5");
        let io = |source| ImportError::Io { path: self.image.to_owned(), source };
        let wanted = match fs::read_to_string(self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text.map_err(io)?,
        };
        let wanted = wanted.split_whitespace().next().unwrap_or_default().to_lowercase();
        let found = md5_of(self.image).map_err(io)?;
        match found == wanted {
            true => Ok(()),
            false => Err(ImportError::Digest { path: self.image.to_owned(), found, wanted }),
        }
    }
}

/// The digest of a file, as Hadoop writes it.
///
/// Source: Hadoop 3.5.0 `MD5FileUtils`.
fn md5_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Md5::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        let len = file.read(&mut piece)?;
        if len == 0 {
            return Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        digest.update(&piece[..len]);
    }
}

/// Whether a part of the log has any operation but those that begin and end it. One that cannot be read counts as such.
fn changes_something(path: &Path) -> Result<bool, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    let mut head = [0; HEAD_LEN];
    if !is_there(&mut input, &mut head).map_err(io)? {
        return Ok(false);
    }
    let version = i32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if version > OLDEST {
        return Ok(true);
    }
    loop {
        let (mut code, mut len) = ([0], [0; 4]);
        if !is_there(&mut input, &mut code).map_err(io)? || code[0] == FILLING {
            return Ok(false);
        }
        if ![BEGINNING, END].contains(&code[0]) || !is_there(&mut input, &mut len).map_err(io)? {
            return Ok(true);
        }
        // The length counts itself, and not the checksum, which is as long: so many bytes follow.
        let rest = u64::from(u32::from_be_bytes(len));
        if rest > OPERATION_MAX {
            return Ok(true);
        }
        let passed = io::copy(&mut input.by_ref().take(rest), &mut io::sink()).map_err(io)?;
        if passed < rest {
            return Ok(true);
        }
    }
}

/// Fills `bytes`; false at the end of the file.
fn is_there(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
