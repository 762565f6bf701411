//! Which directory has which children, inodes with several places, and leases.

use crate::error::{ImageError, Malformed};
use crate::fields::{Fields, Packed};
use crate::inode::{Inode, InodeHead};
use crate::section::Section;

/// The inodes of an image, one after the other.
pub struct Tree<'a> {
    section: Section<'a>,
    /// The highest number that an inode has had.
    pub last_id: u64,
    /// How many inodes the image says it has.
    pub count: u64,
}

impl<'a> Tree<'a> {
    /// Begins with section INODE.
    pub fn read(mut section: Section<'a>) -> Result<Tree<'a>, ImageError> {
        let InodeHead { last_id, count } = section.required(InodeHead::decode)?;
        Ok(Tree { section, last_id, count })
    }

    /// The next inode.
    pub fn inode(&mut self) -> Result<Option<Inode<'_>>, ImageError> {
        self.section.inode()
    }
}

/// Children of one directory.
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// The directory.
    pub parent: u64,
    message: &'a [u8],
}

/// What a directory has at a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// The inode of that number.
    Inode(u64),
    /// The inode that the reference of that number leads to, counted in section INODE_REFERENCE.
    Reference(u32),
}

impl<'a> DirEntry<'a> {
    fn decode(message: &'a [u8]) -> Result<DirEntry<'a>, Malformed> {
        let mut entry = DirEntry { parent: 0, message };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => entry.parent = value.number()?,
                2 | 3 => _ = Packed::of(value)?,
                _ => return Err(Malformed("children have a field that is not known")),
            }
        }
        Ok(entry)
    }

    /// Gives each child.
    pub fn each(&self, mut take: impl FnMut(Child)) -> Result<(), ImageError> {
        let mut fields = Fields::of(self.message);
        let mut all = || {
            while let Some((field, value)) = fields.next()? {
                match field {
                    2 => Packed::of(value)?.each(|id| {
                        take(Child::Inode(id));
                        Ok(())
                    })?,
                    3 => Packed::of(value)?.each(|number| {
                        let number = u32::try_from(number);
                        take(Child::Reference(
                            number.map_err(|_| Malformed("a reference has too large a number"))?,
                        ));
                        Ok(())
                    })?,
                    _ => {}
                }
            }
            Ok(())
        };
        all().map_err(|why: Malformed| ImageError::Damaged {
            section: crate::sections::INODE_DIR.into(),
            what: why.0,
        })
    }
}

impl Section<'_> {
    /// The next directory's children, of section INODE_DIR.
    pub fn children(&mut self) -> Result<Option<DirEntry<'_>>, ImageError> {
        self.record(DirEntry::decode)
    }
}

/// One of several places of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The inode.
    pub inode: u64,
    /// The name by which a snapshot has it; empty for the place where it is now.
    pub name: Vec<u8>,
    /// The newest snapshot of the place that it was moved to, at that time; only of the place where it is now.
    pub dst_snapshot: Option<u32>,
    /// The newest snapshot of the place that it was moved from, at that time; only of that place.
    pub last_snapshot: Option<u32>,
}

impl Reference {
    /// Reads section INODE_REFERENCE, to whose order others refer; an image without snapshots may have none.
    pub fn read(section: Option<Section<'_>>) -> Result<Vec<Reference>, ImageError> {
        let mut all = Vec::new();
        let Some(mut section) = section else { return Ok(all) };
        while let Some(one) = section.record(Reference::decode)? {
            all.push(one);
        }
        Ok(all)
    }

    fn decode(message: &[u8]) -> Result<Reference, Malformed> {
        let (mut found, mut fields) = (Reference::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => found.inode = value.number()?,
                2 => found.name = value.bytes()?.to_vec(),
                3 => found.dst_snapshot = Some(value.small()?),
                4 => found.last_snapshot = Some(value.small()?),
                _ => return Err(Malformed("a reference has a field that is not known")),
            }
        }
        Ok(found)
    }
}

/// A file that is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFile {
    /// The file.
    pub inode: u64,
    /// Its path when the image was written.
    pub path: String,
}

impl OpenFile {
    /// Reads section FILES_UNDERCONSTRUCTION.
    pub fn read(section: Option<Section<'_>>) -> Result<Vec<OpenFile>, ImageError> {
        let mut all = Vec::new();
        let Some(mut section) = section else { return Ok(all) };
        while let Some(one) = section.record(OpenFile::decode)? {
            all.push(one);
        }
        Ok(all)
    }

    fn decode(message: &[u8]) -> Result<OpenFile, Malformed> {
        let (mut found, mut fields) = (OpenFile::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => found.inode = value.number()?,
                2 => found.path = value.text()?.to_string(),
                _ => return Err(Malformed("an open file has a field that is not known")),
            }
        }
        Ok(found)
    }
}
