//! Snapshots, and what was different in them.

use crate::error::{ImageError, Malformed};
use crate::fields::{Fields, Packed};
use crate::inode::{Block, Blocks, Directory, File, Inode, InodeKind};
use crate::section::Section;

/// Most snapshots, as many as a NameNode numbers.
const SNAPSHOTS_MAX: u32 = 1 << 24;

/// A snapshot, with its root as it was.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Its number.
    pub id: u32,
    /// The directory's number, the snapshot's name, and the directory as it was.
    pub root: Inode<'a>,
}

/// Section SNAPSHOT.
pub struct Snapshots<'a> {
    section: Section<'a>,
    /// The number that the next snapshot gets.
    pub counter: u32,
    /// Directories of which snapshots may be made.
    pub snapshottable: Vec<u64>,
    /// How many snapshots follow.
    pub count: u32,
}

impl<'a> Snapshots<'a> {
    /// Begins with the section.
    pub fn read(mut section: Section<'a>) -> Result<Snapshots<'a>, ImageError> {
        let (counter, snapshottable, count) = section.required(|message| {
            let (mut counter, mut snapshottable, mut count) = (0, Vec::new(), 0);
            let mut fields = Fields::of(message);
            while let Some((field, value)) = fields.next()? {
                match field {
                    1 => counter = value.small()?,
                    2 => Packed::of(value)?.each(|id| {
                        snapshottable.push(id);
                        Ok(())
                    })?,
                    3 => count = value.small()?,
                    _ => return Err(Malformed("snapshots have a field that is not known")),
                }
            }
            match count {
                0..=SNAPSHOTS_MAX => Ok((counter, snapshottable, count)),
                _ => Err(Malformed("there are more snapshots than a NameNode has numbers for")),
            }
        })?;
        Ok(Snapshots { section, counter, snapshottable, count })
    }

    /// The next snapshot.
    pub fn snapshot(&mut self) -> Result<Option<Snapshot<'_>>, ImageError> {
        self.section.record(|message| {
            let (mut id, mut root) = (0, None);
            let mut fields = Fields::of(message);
            while let Some((field, value)) = fields.next()? {
                match field {
                    1 => id = value.small()?,
                    2 => root = Some(Inode::decode(value.bytes()?)?),
                    _ => return Err(Malformed("a snapshot has a field that is not known")),
                }
            }
            match root {
                Some(root) if matches!(root.kind, InodeKind::Directory(_)) => {
                    Ok(Snapshot { id, root })
                }
                _ => Err(Malformed("a snapshot has no root")),
            }
        })
    }
}

/// What a directory was in a snapshot.
#[derive(Clone, Debug)]
pub struct DirectoryDiff<'a> {
    /// The snapshot.
    pub snapshot: u32,
    /// The directory is the snapshot's root, as that has it.
    pub is_root: bool,
    /// The name it had.
    pub name: &'a [u8],
    /// What it was, if that has changed since.
    pub copy: Option<Directory<'a>>,
    /// How many [`Diff::Created`] follow.
    pub created: u32,
    /// Children that were there and are not any more.
    pub deleted: Vec<u64>,
    /// References to such.
    pub deleted_references: Vec<u32>,
}

impl<'a> DirectoryDiff<'a> {
    fn decode(message: &'a [u8]) -> Result<DirectoryDiff<'a>, Malformed> {
        let mut diff = DirectoryDiff {
            snapshot: 0,
            is_root: false,
            name: &[],
            copy: None,
            created: 0,
            deleted: Vec::new(),
            deleted_references: Vec::new(),
        };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => diff.snapshot = value.small()?,
                2 => {}
                3 => diff.is_root = value.number()? != 0,
                4 => diff.name = value.bytes()?,
                5 => diff.copy = Some(Directory::decode(value.bytes()?)?),
                6 => diff.created = value.small()?,
                7 => Packed::of(value)?.each(|id| {
                    diff.deleted.push(id);
                    Ok(())
                })?,
                8 => Packed::of(value)?.each(|number| {
                    let number = u32::try_from(number);
                    diff.deleted_references
                        .push(number.map_err(|_| Malformed("a reference has too large a number"))?);
                    Ok(())
                })?,
                _ => return Err(Malformed("a difference has a field that is not known")),
            }
        }
        Ok(diff)
    }
}

/// What a file was in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct FileDiff<'a> {
    /// The snapshot.
    pub snapshot: u32,
    /// Bytes that it had.
    pub len: u64,
    /// The name it had.
    pub name: &'a [u8],
    /// What it was, if that has changed since.
    pub copy: Option<File<'a>>,
    /// The blocks that it had, if they are others now.
    pub blocks: Blocks<'a>,
}

impl<'a> FileDiff<'a> {
    fn decode(message: &'a [u8]) -> Result<FileDiff<'a>, Malformed> {
        let mut diff =
            FileDiff { snapshot: 0, len: 0, name: &[], copy: None, blocks: Blocks::default() };
        let (mut blocks, mut fields) = (0, Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => diff.snapshot = value.small()?,
                2 => diff.len = value.number()?,
                3 => diff.name = value.bytes()?,
                4 => diff.copy = Some(File::decode(value.bytes()?)?),
                5 => {
                    Block::decode(value.bytes()?)?;
                    blocks += 1;
                }
                _ => return Err(Malformed("a difference has a field that is not known")),
            }
        }
        diff.blocks = Blocks::checked(message, 5, blocks);
        Ok(diff)
    }
}

/// A record of section SNAPSHOT_DIFF.
#[derive(Clone, Debug)]
pub enum Diff<'a> {
    /// So many differences of this inode follow, the newest first.
    Of {
        /// A file or directory.
        inode: u64,
        /// How many.
        count: u32,
    },
    /// A difference of a directory.
    Directory(DirectoryDiff<'a>),
    /// The name of a child that was not there yet.
    Created(&'a [u8]),
    /// A difference of a file.
    File(FileDiff<'a>),
}

/// Goes over section SNAPSHOT_DIFF, whose records say what follows them.
pub struct Diffs<'a> {
    section: Section<'a>,
    is_directory: bool,
    diffs_left: u32,
    names_left: u32,
}

impl<'a> Diffs<'a> {
    /// Begins with the section.
    pub fn read(section: Section<'a>) -> Diffs<'a> {
        Diffs { section, is_directory: false, diffs_left: 0, names_left: 0 }
    }

    /// The next record.
    pub fn diff(&mut self) -> Result<Option<Diff<'_>>, ImageError> {
        if self.names_left > 0 {
            self.names_left -= 1;
            return self.section.required(created).map(|name| Some(Diff::Created(name)));
        }
        if self.diffs_left > 0 {
            self.diffs_left -= 1;
            if !self.is_directory {
                return self.section.required(FileDiff::decode).map(|diff| Some(Diff::File(diff)));
            }
            let diff = self.section.required(DirectoryDiff::decode)?;
            self.names_left = diff.created;
            return Ok(Some(Diff::Directory(diff)));
        }
        let Some((is_directory, inode, count)) = self.section.record(head)? else {
            return Ok(None);
        };
        self.is_directory = is_directory;
        self.diffs_left = count;
        Ok(Some(Diff::Of { inode, count }))
    }
}

fn created(message: &[u8]) -> Result<&[u8], Malformed> {
    let (mut name, mut fields) = (&[][..], Fields::of(message));
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => name = value.bytes()?,
            _ => return Err(Malformed("a name has a field that is not known")),
        }
    }
    Ok(name)
}

fn head(message: &[u8]) -> Result<(bool, u64, u32), Malformed> {
    let (mut kind, mut inode, mut count) = (0, 0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => kind = value.number()?,
            2 => inode = value.number()?,
            3 => count = value.small()?,
            _ => return Err(Malformed("differences have a field that is not known")),
        }
    }
    match kind {
        1 => Ok((false, inode, count)),
        2 => Ok((true, inode, count)),
        _ => Err(Malformed("there are differences of what is no file and no directory")),
    }
}
