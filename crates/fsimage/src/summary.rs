//! The frame of an image: magic, summary, and where the sections are.

use crate::error::{ImageError, Malformed};
use crate::fields::{Fields, number};
use crate::section::{Codec, Section};
use std::io::{Read, Seek, SeekFrom};

pub(crate) const MAGIC: &[u8; 8] = b"HDFSIMG1";
/// The only order of sections there is.
pub(crate) const FILE_VERSION: u32 = 1;
/// Hadoop 2.6: storage policies of blocks.
const OLDEST: i32 = -60;
/// Hadoop 3.3 to 3.5: NVDIMM.
pub(crate) const NEWEST: i32 = -67;
/// Longest summary: a NameNode with parts of a million inodes has few hundred places.
const SUMMARY_MAX: u64 = 16 << 20;

/// Names of sections.
///
/// Source: Hadoop 3.5.0 `FSImageFormatProtobuf.SectionName`.
pub mod sections {
    /// Numbers and counters of the namespace.
    pub const NS_INFO: &str = "NS_INFO";
    /// Names of users, groups and attributes.
    pub const STRING_TABLE: &str = "STRING_TABLE";
    /// Policies of erasure coding.
    pub const ERASURE_CODING: &str = "ERASURE_CODING";
    /// Files, directories and symbolic links.
    pub const INODE: &str = "INODE";
    /// Inodes that are in several places because of renames out of snapshots.
    pub const INODE_REFERENCE: &str = "INODE_REFERENCE";
    /// Which directory has which children.
    pub const INODE_DIR: &str = "INODE_DIR";
    /// Leases.
    pub const FILES_UNDERCONSTRUCTION: &str = "FILES_UNDERCONSTRUCTION";
    /// Snapshots and their roots.
    pub const SNAPSHOT: &str = "SNAPSHOT";
    /// What was different in snapshots.
    pub const SNAPSHOT_DIFF: &str = "SNAPSHOT_DIFF";
    /// Delegation tokens and their keys: nothing reads them.
    pub const SECRET_MANAGER: &str = "SECRET_MANAGER";
    /// Pools and directives of the cache.
    pub const CACHE_MANAGER: &str = "CACHE_MANAGER";

    /// All that are known, but for those that only repeat parts of others for readers with several threads.
    pub const ALL: [&str; 12] = [
        NS_INFO,
        STRING_TABLE,
        "EXTENDED_ACL",
        ERASURE_CODING,
        INODE,
        INODE_REFERENCE,
        INODE_DIR,
        FILES_UNDERCONSTRUCTION,
        SNAPSHOT,
        SNAPSHOT_DIFF,
        SECRET_MANAGER,
        CACHE_MANAGER,
    ];
}

/// Where a section is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionPlace {
    /// What it is called.
    pub name: String,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub len: u64,
}

/// An image whose summary was read.
#[derive(Debug)]
pub struct Image<F> {
    file: F,
    file_len: u64,
    layout: i32,
    codec: Codec,
    sections: Vec<SectionPlace>,
}

impl<F: Read + Seek> Image<F> {
    /// Reads the frame of an image.
    ///
    /// Fails if it is none, or one of a Hadoop or a codec that is not known.
    pub fn open(mut file: F) -> Result<Image<F>, ImageError> {
        let mut magic = [0; MAGIC.len()];
        let file_len = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        if file_len < (MAGIC.len() + 4) as u64 {
            return Err(ImageError::NotAnImage);
        }
        file.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(ImageError::NotAnImage);
        }
        let mut len = [0; 4];
        file.seek(SeekFrom::End(-4))?;
        file.read_exact(&mut len)?;
        let len = u64::from(u32::from_be_bytes(len));
        if len > SUMMARY_MAX || len > file_len - (MAGIC.len() + 4) as u64 {
            return Err(damaged(Malformed("it is longer than the file")));
        }
        let end = file_len - 4 - len;
        file.seek(SeekFrom::Start(end))?;
        let mut bytes = vec![0; len as usize];
        file.read_exact(&mut bytes)?;
        let summary = Summary::decode(&bytes).map_err(damaged)?;
        if summary.version != FILE_VERSION {
            return Err(ImageError::Version(summary.version));
        }
        if !(NEWEST..=OLDEST).contains(&summary.layout) {
            let (oldest, newest) = (OLDEST, NEWEST);
            return Err(ImageError::Layout { found: summary.layout, oldest, newest });
        }
        let codec = Codec::of(&summary.codec).ok_or(ImageError::Codec(summary.codec))?;
        for place in &summary.sections {
            let is_inside = place.offset >= MAGIC.len() as u64
                && place.offset.checked_add(place.len).is_some_and(|last| last <= end);
            if !is_inside {
                return Err(damaged(Malformed("a section lies outside of the file")));
            }
        }
        let Summary { layout, sections, .. } = summary;
        Ok(Image { file, file_len, layout, codec, sections })
    }

    /// The version of what the image may hold, a negative number.
    ///
    /// Source: Hadoop 3.5.0 `NameNodeLayoutVersion`.
    pub fn layout(&self) -> i32 {
        self.layout
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Whether sections are compressed.
    pub fn is_compressed(&self) -> bool {
        self.codec != Codec::None
    }

    /// All sections, in the order of the summary.
    pub fn sections(&self) -> &[SectionPlace] {
        &self.sections
    }

    /// The messages of a section; none if the image has no such section.
    pub fn section(&mut self, name: &str) -> Result<Option<Section<'_>>, ImageError> {
        let Some(place) = self.sections.iter().find(|place| place.name == name) else {
            return Ok(None);
        };
        self.file.seek(SeekFrom::Start(place.offset))?;
        Section::new(place.name.clone(), self.codec, &mut self.file, place.len).map(Some)
    }

    /// The messages of a section that every image has.
    pub fn required(&mut self, name: &'static str) -> Result<Section<'_>, ImageError> {
        self.section(name)?.ok_or(ImageError::Missing(name))
    }
}

fn damaged(why: Malformed) -> ImageError {
    ImageError::Damaged { section: "summary".into(), what: why.0 }
}

#[derive(Default)]
struct Summary {
    version: u32,
    layout: i32,
    codec: String,
    sections: Vec<SectionPlace>,
}

impl Summary {
    fn decode(mut bytes: &[u8]) -> Result<Summary, Malformed> {
        let len = number(&mut bytes)?;
        if len != bytes.len() as u64 {
            return Err(Malformed("its two lengths differ"));
        }
        let mut summary = Summary::default();
        let mut fields = Fields::of(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => summary.version = value.small()?,
                // Negative numbers stand as unsigned ones of 32 bits.
                2 => summary.layout = value.small()? as i32,
                3 => summary.codec = value.text()?.to_string(),
                4 => summary.sections.push(SectionPlace::decode(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(summary)
    }
}

impl SectionPlace {
    fn decode(bytes: &[u8]) -> Result<SectionPlace, Malformed> {
        let mut place = SectionPlace { name: String::new(), offset: 0, len: 0 };
        let mut fields = Fields::of(bytes);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => place.name = value.text()?.to_string(),
                2 => place.len = value.number()?,
                3 => place.offset = value.number()?,
                _ => {}
            }
        }
        Ok(place)
    }
}
