//! What is beside an image in the folder of Hadoop's NameNode, and whether any of it is newer.

use super::error::ImportError;
use cairn_fsimage::edits::{Operation, Segment};
use md5::{Digest, Md5};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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

pub(super) fn names(folder: &Path) -> Result<Vec<String>, ImportError> {
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
pub(super) fn part_numbers(name: &str) -> Option<(u64, Option<u64>)> {
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

    /// Fails if there is an image that goes beyond transaction `last`, or if this one is not what was written.
    pub fn check_image(&self, last: u64) -> Result<(), ImportError> {
        for name in names(&self.folder)? {
            if image_number(&name).is_some_and(|number| number > last) {
                return Err(ImportError::Later { path: self.folder.join(name), last });
            }
        }
        self.check_digest()
    }

    /// Fails if there is a part of the log that changes something behind transaction `last`.
    pub fn check_log(&self, last: u64) -> Result<(), ImportError> {
        for name in names(&self.folder)? {
            let path = self.folder.join(&name);
            let may_go_on =
                part_numbers(&name).is_some_and(|(_, end)| end.is_none_or(|end| end > last));
            if may_go_on && goes_beyond(&path, last)? {
                return Err(ImportError::Later { path, last });
            }
        }
        Ok(())
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

/// Whether a part of the log changes anything behind transaction `last`. One that cannot be read counts as such.
fn goes_beyond(path: &Path, last: u64) -> Result<bool, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let mut segment = match Segment::open(File::open(path).map_err(io)?) {
        Ok(Some(segment)) => segment,
        Ok(None) => return Ok(false),
        Err(_) => return Ok(true),
    };
    loop {
        match segment.transaction() {
            Ok(None) => return Ok(false),
            Ok(Some(of)) if of.id > last && of.operation != Operation::Boundary => return Ok(true),
            Ok(Some(_)) => {}
            Err(_) => return Ok(true),
        }
    }
}
