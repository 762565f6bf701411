//! Writes an image that a NameNode of Hadoop 3.5 starts from, section by section, record by record.
//!
//! [`ImageWriter`] keeps the frame and the names that records have by number; what a record says is in [`records`]. As the
//! reader does, it holds one record at a time: memory is bounded by the longest of them, and by the names.
//!
//! Source: Hadoop 3.5.0 `FSImageFormatProtobuf.Saver`, `FSImageFormatPBINode.Saver`.

mod message;
mod names;
mod records;
mod snapshots;

pub use names::TooManyNames;
pub use records::{AclEntry, Common, Directory, File, FileRedundancy, XAttr};
pub use snapshots::{DirectoryDiff, FileDiff};

use crate::cache::Cache;
use crate::inode::Block;
use crate::policy::{Counters, EcPolicy};
use crate::summary::{FILE_VERSION, MAGIC, NEWEST, SectionPlace, sections};
use crate::tree::{OpenFile, Reference};
use message::{Message, push_number};
use names::Numbers;
use std::io::{self, Write};

/// An image that is being written.
#[derive(Debug)]
pub struct ImageWriter<W> {
    out: W,
    /// Bytes written.
    at: u64,
    /// What the names are numbered with, which are written last.
    names: Numbers,
    sections: Vec<SectionPlace>,
}

impl<W: Write> ImageWriter<W> {
    /// Begins an image.
    pub fn begin(mut out: W) -> io::Result<ImageWriter<W>> {
        out.write_all(MAGIC)?;
        let (names, sections) = (Numbers::default(), Vec::new());
        Ok(ImageWriter { out, at: MAGIC.len() as u64, names, sections })
    }

    /// Writes the records that `fill` gives as a section of that name ([`sections`]).
    pub fn section<E: From<io::Error>>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut Records<'_, W>) -> Result<(), E>,
    ) -> Result<(), E> {
        let offset = self.at;
        fill(&mut Records { image: self })?;
        let len = self.at - offset;
        self.sections.push(SectionPlace { name: name.to_string(), offset, len });
        Ok(())
    }

    /// Ends the image with its names and the places of its sections. Returns what it was written to.
    pub fn end(mut self) -> io::Result<W> {
        let names = std::mem::take(&mut self.names);
        self.section(sections::STRING_TABLE, |records| {
            records.put(&names.head())?;
            names.entries().try_for_each(|entry| records.put(&entry))
        })?;
        let mut summary = Message::default();
        summary.number(1, FILE_VERSION.into());
        // A negative number stands as an unsigned one of 32 bits.
        summary.number(2, (NEWEST as u32).into());
        for place in &self.sections {
            let mut section = Message::default();
            section.text(1, &place.name).number(2, place.len).number(3, place.offset);
            summary.message(4, &section);
        }
        let before = self.at;
        self.record(&summary)?;
        let len = u32::try_from(self.at - before).map_err(io::Error::other)?;
        self.out.write_all(&len.to_be_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes a message behind its length.
    fn record(&mut self, message: &Message) -> io::Result<()> {
        let mut head = Vec::with_capacity(10);
        push_number(&mut head, message.bytes().len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(message.bytes())?;
        self.at += (head.len() + message.bytes().len()) as u64;
        Ok(())
    }
}

/// The records of the section that is being written.
#[derive(Debug)]
pub struct Records<'a, W> {
    image: &'a mut ImageWriter<W>,
}

impl<W: Write> Records<'_, W> {
    fn put(&mut self, message: &Message) -> io::Result<()> {
        self.image.record(message)
    }

    /// All of section NS_INFO.
    pub fn counters(&mut self, counters: &Counters) -> io::Result<()> {
        self.put(&records::counters(counters))
    }

    /// All of section ERASURE_CODING.
    pub fn policies(&mut self, policies: &[EcPolicy]) -> io::Result<()> {
        self.put(&records::policies(policies))
    }

    /// What section INODE begins with: the highest number that an inode has had, and how many follow.
    pub fn inode_head(&mut self, last_id: u64, count: u64) -> io::Result<()> {
        let mut head = Message::default();
        head.number(1, last_id).number(2, count);
        self.put(&head)
    }

    /// A file of section INODE, with its blocks in order.
    pub fn file(&mut self, of: &Common<'_>, file: &File<'_>, blocks: &[Block]) -> io::Result<()> {
        let message = records::file(&mut self.image.names, of, file, blocks)?;
        self.put(&message)
    }

    /// A directory of section INODE.
    pub fn directory(&mut self, of: &Common<'_>, directory: &Directory<'_>) -> io::Result<()> {
        let message = records::directory(&mut self.image.names, of, directory)?;
        self.put(&message)
    }

    /// The children of one directory, of section INODE_DIR, in the order that [`compare_names`] gives.
    pub fn children(&mut self, parent: u64, children: &[u64]) -> io::Result<()> {
        self.children_and_references(parent, children, &[])
    }

    /// As [`Records::children`], with those that have several places, by their numbers in section INODE_REFERENCE.
    pub fn children_and_references(
        &mut self,
        parent: u64,
        children: &[u64],
        references: &[u64],
    ) -> io::Result<()> {
        let mut entry = Message::default();
        entry.number(1, parent).numbers(2, children);
        if !references.is_empty() {
            entry.numbers(3, references);
        }
        self.put(&entry)
    }

    /// A file of section FILES_UNDERCONSTRUCTION.
    pub fn open_file(&mut self, open: &OpenFile) -> io::Result<()> {
        let mut entry = Message::default();
        entry.number(1, open.inode).text(2, &open.path);
        self.put(&entry)
    }

    /// All of section SNAPSHOT where there are no snapshots: the number that the next one gets, and the directories of
    /// which some may be made.
    pub fn no_snapshots(&mut self, counter: u32, snapshottable: &[u64]) -> io::Result<()> {
        self.snapshots_head(counter, snapshottable, 0)
    }

    /// What section SNAPSHOT begins with, as [`Records::no_snapshots`], and how many snapshots follow.
    pub fn snapshots_head(
        &mut self,
        counter: u32,
        snapshottable: &[u64],
        count: u64,
    ) -> io::Result<()> {
        self.put(&snapshots::head(counter, snapshottable, count))
    }

    /// A snapshot: its number, and the directory as it was, with the snapshot's name. Those of one directory stand together,
    /// in the order of their names.
    pub fn snapshot(
        &mut self,
        id: u32,
        of: &Common<'_>,
        directory: &Directory<'_>,
    ) -> io::Result<()> {
        let message = snapshots::snapshot(&mut self.image.names, id, of, directory)?;
        self.put(&message)
    }

    /// So many differences of a directory, or of a file, follow, the newest first.
    pub fn differences(&mut self, of: u64, is_directory: bool, count: u64) -> io::Result<()> {
        self.put(&snapshots::differences(of, is_directory, count))
    }

    /// A difference of a directory.
    pub fn directory_diff(&mut self, diff: &DirectoryDiff<'_>) -> io::Result<()> {
        let message = snapshots::directory_diff(&mut self.image.names, diff)?;
        self.put(&message)
    }

    /// The name of a child that was not there yet, behind its directory's difference, in the order that [`compare_names`]
    /// gives.
    pub fn created(&mut self, name: &[u8]) -> io::Result<()> {
        self.put(&snapshots::created(name))
    }

    /// A difference of a file.
    pub fn file_diff(&mut self, diff: &FileDiff<'_>) -> io::Result<()> {
        let message = snapshots::file_diff(&mut self.image.names, diff)?;
        self.put(&message)
    }

    /// One of several places of an inode, of section INODE_REFERENCE.
    pub fn reference(&mut self, of: &Reference) -> io::Result<()> {
        self.put(&snapshots::reference(of))
    }

    /// All of section SECRET_MANAGER where there are no tokens.
    pub fn no_tokens(&mut self) -> io::Result<()> {
        let mut message = Message::default();
        (1..=4).for_each(|field| _ = message.number(field, 0));
        self.put(&message)
    }

    /// All of section CACHE_MANAGER.
    pub fn cache(&mut self, cache: &Cache) -> io::Result<()> {
        let Cache { next_directive, pools, directives } = cache;
        let mut head = Message::default();
        let (pool_count, directive_count) = (pools.len() as u64, directives.len() as u64);
        head.number(1, *next_directive).number(2, pool_count).number(3, directive_count);
        self.put(&head)?;
        pools.iter().try_for_each(|pool| self.put(&records::cache_pool(pool)))?;
        directives.iter().try_for_each(|of| self.put(&records::cache_directive(of)))
    }
}

/// The order in which a NameNode keeps names: that of their bytes as signed numbers.
///
/// It looks for names by halving and does not sort what it reads: in another order they are not found.
///
/// Source: Hadoop 3.5.0 `INode#compareTo`, `DFSUtilClient#compareBytes`.
pub fn compare_names(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
    one.iter().map(|byte| byte.cast_signed()).cmp(other.iter().map(|byte| byte.cast_signed()))
}

#[cfg(test)]
mod tests;
