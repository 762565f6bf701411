//! What is recorded of files and directories, and of the names that lead to them.

use crate::acl::entry::AclEntry;
use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, encode_enum};
use crate::error::{Result, StoreError};
use crate::usage::by_type::ByType;
use cairn_stripe::{BlockId, PolicyId, StorageType};
use std::fmt;

/// Version byte of inode records.
pub(super) const VERSION: u8 = 1;

/// The number of a file or directory; the wire calls it file id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InodeId(pub u64);

impl InodeId {
    /// No inode: the parent of the root and of detached subtrees.
    pub const NONE: InodeId = InodeId(0);
    /// No inode has it: the owner of containers, in which blocks of files are packed.
    pub const CONTAINERS: InodeId = InodeId(u64::MAX);
    /// The root directory. Source: Hadoop 3.5.0 `INodeId#ROOT_INODE_ID`.
    pub const ROOT: InodeId = InodeId(16385);

    /// The key in the inode table.
    pub fn key(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for InodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Encode for InodeId {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

impl Decode for InodeId {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        u64::decode(input).map(InodeId)
    }
}

/// The sticky bit: of a directory's children only the owner removes or renames one.
pub const STICKY: u16 = 0o1000;

/// One file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub id: InodeId,
    /// The directory that holds it.
    pub parent: InodeId,
    /// Its name in the parent; empty for the root.
    pub name: String,
    /// Owning user.
    pub owner: String,
    /// Owning group.
    pub group: String,
    /// Permission bits with the sticky bit: `0o1777`. With an access control list the group's bits are
    /// its mask.
    pub mode: u16,
    /// What of its access control list the mode does not say, in order.
    pub acl: Vec<AclEntry>,
    /// Modification time, ms since the epoch.
    pub mtime: u64,
    /// Access time, ms since the epoch; 0 for directories.
    pub atime: u64,
    /// Storage policy id set here; 0 means inherited.
    pub storage_policy: u8,
    /// What it is.
    pub kind: Kind,
}

/// What an inode is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory(Directory),
    /// A file.
    File(File),
}

/// What only directories have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Number of children.
    pub children: u64,
    /// The policy set on this directory; `PolicyId::REPLICATION` is an explicit `replicate`.
    pub policy: Option<PolicyId>,
    /// Limits and what is used below.
    pub quota: Option<Quota>,
    /// Whether it is the root of an encryption zone; [`crate::encryption`] has the details.
    pub is_zone: bool,
}

/// Limits of a directory and what counts against them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Most inodes, the directory itself counted.
    pub names_max: Option<u64>,
    /// Most bytes on disk.
    pub space_max: Option<u64>,
    /// Most bytes on disk by type of storage.
    pub types_max: ByType<Option<u64>>,
    /// Inodes now.
    pub names: u64,
    /// Bytes on disk now.
    pub space: u64,
    /// Bytes on disk now by type of storage, where a storage policy is set.
    pub types: ByType<u64>,
}

/// What only files have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Replicas or policy.
    pub redundancy: FileRedundancy,
    /// Bytes of a whole block; of a whole internal block, if striped.
    pub block_size: u64,
    /// Number of blocks.
    pub block_count: u64,
    /// Bytes of all blocks, as far as known for the last one of an open file.
    pub len: u64,
    /// Who writes it, while it is open.
    pub writer: Option<Writer>,
    /// How often a contiguous file was opened at its end while its last block was short; see [`crate::waiting`].
    pub short_appends: u8,
}

/// How a file's blocks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRedundancy {
    /// That many whole copies.
    Replicated(u16),
    /// Striped with that policy.
    Striped(PolicyId),
    /// That many whole copies of each block until it is in a group of that policy.
    Contiguous {
        /// Copies of what is in no group.
        copies: u16,
        /// The policy of groups.
        policy: PolicyId,
    },
}

impl FileRedundancy {
    /// Whole copies of each block that is in no group; `None` if it is striped.
    pub fn copies(self) -> Option<u16> {
        match self {
            FileRedundancy::Replicated(copies) | FileRedundancy::Contiguous { copies, .. } => {
                Some(copies)
            }
            FileRedundancy::Striped(_) => None,
        }
    }

    /// The same with another number of copies; what is striped stays.
    pub(crate) fn with_copies(self, copies: u16) -> FileRedundancy {
        match self {
            FileRedundancy::Replicated(_) => FileRedundancy::Replicated(copies),
            FileRedundancy::Contiguous { policy, .. } => {
                FileRedundancy::Contiguous { copies, policy }
            }
            FileRedundancy::Striped(_) => self,
        }
    }

    /// The erasure coding policy, if there is one.
    pub fn policy(self) -> Option<PolicyId> {
        match self {
            FileRedundancy::Replicated(_) => None,
            FileRedundancy::Striped(policy) | FileRedundancy::Contiguous { policy, .. } => {
                Some(policy)
            }
        }
    }

    /// Whether clients write it striped.
    pub fn is_striped(self) -> bool {
        matches!(self, FileRedundancy::Striped(_))
    }

    /// Whether its blocks go into contiguous groups.
    pub fn is_contiguous(self) -> bool {
        matches!(self, FileRedundancy::Contiguous { .. })
    }
}

/// The client that holds a file open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The lease holder.
    pub holder: String,
    /// Host of the client that created or reopened it.
    pub client_machine: String,
    /// The last block when it was opened at its end, if the writer was told of none and begins with a new one.
    pub began_after: Option<BlockId>,
}

encode_enum!(Kind { 1 => Directory(value), 2 => File(value) });
encode_enum!(FileRedundancy {
    1 => Replicated(value),
    2 => Striped(value),
    3 => Contiguous { copies, policy },
});

/// What follows the other fields of a file: its writer, the block after which the writer began, the number of short
/// appends.
const HAS_WRITER: u8 = 1;
const HAS_BEGAN_AFTER: u8 = 2;
const HAS_SHORT_APPENDS: u8 = 4;

impl Encode for File {
    fn encode(&self, out: &mut Encoder) {
        self.redundancy.encode(out);
        self.block_size.encode(out);
        self.block_count.encode(out);
        self.len.encode(out);
        let began_after = self.writer.as_ref().and_then(|writer| writer.began_after);
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        out.byte(
            flag(self.writer.is_some(), HAS_WRITER)
                | flag(began_after.is_some(), HAS_BEGAN_AFTER)
                | flag(self.short_appends > 0, HAS_SHORT_APPENDS),
        );
        if let Some(writer) = &self.writer {
            writer.holder.encode(out);
            writer.client_machine.encode(out);
        }
        if let Some(began_after) = began_after {
            began_after.encode(out);
        }
        if self.short_appends > 0 {
            self.short_appends.encode(out);
        }
    }
}

impl Decode for File {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let redundancy = Decode::decode(input)?;
        let (block_size, block_count) = Decode::decode(input)?;
        let len = Decode::decode(input)?;
        let flags = input.byte()?;
        let invalid = DecodeError::Invalid { what: "flag", value: flags.into() };
        if flags > HAS_WRITER | HAS_BEGAN_AFTER | HAS_SHORT_APPENDS
            || flags & (HAS_WRITER | HAS_BEGAN_AFTER) == HAS_BEGAN_AFTER
        {
            return Err(invalid);
        }
        let mut writer = None;
        if flags & HAS_WRITER != 0 {
            let (holder, client_machine) = Decode::decode(input)?;
            let began_after = match flags & HAS_BEGAN_AFTER {
                0 => None,
                _ => Some(Decode::decode(input)?),
            };
            writer = Some(Writer { holder, client_machine, began_after });
        }
        let short_appends = match flags & HAS_SHORT_APPENDS {
            0 => 0,
            _ => u8::decode(input)?,
        };
        if flags & HAS_SHORT_APPENDS != 0 && short_appends == 0 {
            return Err(invalid);
        }
        Ok(File { redundancy, block_size, block_count, len, writer, short_appends })
    }
}

/// Limits, or bytes, with the places of their types in [`StorageType::ALL`].
type Listed = Vec<(u8, u64)>;

impl Quota {
    /// What it has by type: limits, and bytes where there are any.
    fn by_type(&self) -> (Listed, Listed) {
        let max =
            self.types_max.iter().filter_map(|(kind, max)| Some((kind.rank() as u8, (*max)?)));
        let used = self.types.iter().filter(|(_, used)| **used != 0);
        (max.collect(), used.map(|(kind, used)| (kind.rank() as u8, *used)).collect())
    }
}

impl Encode for Directory {
    fn encode(&self, out: &mut Encoder) {
        self.children.encode(out);
        self.policy.encode(out);
        let zone = if self.is_zone { ZONE } else { 0 };
        let Some(quota) = &self.quota else { return out.byte(NO_QUOTA | zone) };
        let (max, used) = quota.by_type();
        let has_types = !max.is_empty() || !used.is_empty();
        out.byte(zone | if has_types { QUOTA_BY_TYPE } else { QUOTA });
        (quota.names_max, quota.space_max).encode(out);
        (quota.names, quota.space).encode(out);
        if has_types {
            (max, used).encode(out);
        }
    }
}

impl Decode for Directory {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (children, policy) = (Decode::decode(input)?, Decode::decode(input)?);
        let first = input.byte()?;
        let (tag, is_zone) = (first & !ZONE, first & ZONE != 0);
        let invalid = |value: u8| DecodeError::Invalid { what: "quota", value: value.into() };
        match tag {
            NO_QUOTA => return Ok(Directory { children, policy, quota: None, is_zone }),
            QUOTA | QUOTA_BY_TYPE => {}
            _ => return Err(invalid(tag)),
        }
        let (names_max, space_max) = Decode::decode(input)?;
        let (names, space) = Decode::decode(input)?;
        let mut quota = Quota { names_max, space_max, names, space, ..Quota::default() };
        if tag == QUOTA_BY_TYPE {
            let listed: (Listed, Listed) = Decode::decode(input)?;
            let kind =
                |index: u8| StorageType::ALL.get(usize::from(index)).copied().ok_or(invalid(index));
            for (index, value) in &listed.0 {
                quota.types_max[kind(*index)?] = Some(*value);
            }
            for (index, value) in &listed.1 {
                quota.types[kind(*index)?] = *value;
            }
            if quota.by_type() != listed || listed == (Vec::new(), Vec::new()) {
                return Err(invalid(tag));
            }
        }
        Ok(Directory { children, policy, quota: Some(quota), is_zone })
    }
}

/// What follows in a directory's record: no quota, one without types of storage, or one with limits and bytes of
/// some of them, each with its place in [`StorageType::ALL`].
const NO_QUOTA: u8 = 0;
const QUOTA: u8 = 1;
const QUOTA_BY_TYPE: u8 = 2;
/// Beside these: the directory is the root of an encryption zone.
const ZONE: u8 = 1 << 7;

/// Beside the mode's bits in records: an access control list follows the other fields.
const HAS_ACL: u16 = 1 << 15;

impl Encode for Inode {
    fn encode(&self, out: &mut Encoder) {
        let flag = if self.acl.is_empty() { 0 } else { HAS_ACL };
        self.id.encode(out);
        self.parent.encode(out);
        self.name.encode(out);
        self.owner.encode(out);
        self.group.encode(out);
        (self.mode | flag).encode(out);
        self.mtime.encode(out);
        self.atime.encode(out);
        self.storage_policy.encode(out);
        self.kind.encode(out);
        if flag != 0 {
            self.acl.encode(out);
        }
    }
}

impl Decode for Inode {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut inode = Inode {
            id: Decode::decode(input)?,
            parent: Decode::decode(input)?,
            name: Decode::decode(input)?,
            owner: Decode::decode(input)?,
            group: Decode::decode(input)?,
            mode: Decode::decode(input)?,
            acl: Vec::new(),
            mtime: Decode::decode(input)?,
            atime: Decode::decode(input)?,
            storage_policy: Decode::decode(input)?,
            kind: Decode::decode(input)?,
        };
        if inode.mode & HAS_ACL != 0 {
            inode.mode &= !HAS_ACL;
            inode.acl = Decode::decode(input)?;
            if inode.acl.is_empty() {
                return Err(DecodeError::Invalid { what: "length of an ACL", value: 0 });
            }
        }
        Ok(inode)
    }
}

impl Inode {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }

    /// The file part, if it is a file.
    pub fn file(&self) -> Option<&File> {
        match &self.kind {
            Kind::File(file) => Some(file),
            Kind::Directory(_) => None,
        }
    }

    /// The file part, if it is a file.
    pub fn file_mut(&mut self) -> Option<&mut File> {
        match &mut self.kind {
            Kind::File(file) => Some(file),
            Kind::Directory(_) => None,
        }
    }

    /// The directory part, if it is a directory.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::File(_) => None,
        }
    }

    /// The directory part, if it is a directory.
    pub fn directory_mut(&mut self) -> Option<&mut Directory> {
        match &mut self.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::File(_) => None,
        }
    }
}

/// A record as it lies in the store, with nothing copied that a listing shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeRef<'a> {
    /// Its number.
    pub id: InodeId,
    /// Its name.
    pub name: &'a str,
    /// Owning user.
    pub owner: &'a str,
    /// Owning group.
    pub group: &'a str,
    /// Permission bits, see [`Inode::mode`].
    pub mode: u16,
    /// Whether it has an access control list.
    pub has_acl: bool,
    /// Modification time, ms since the epoch.
    pub mtime: u64,
    /// Access time, ms since the epoch; 0 for directories.
    pub atime: u64,
    /// Storage policy id set here; 0 means inherited.
    pub storage_policy: u8,
    /// What it is.
    pub kind: Kind,
}

impl<'a> From<&'a Inode> for InodeRef<'a> {
    fn from(inode: &'a Inode) -> InodeRef<'a> {
        InodeRef {
            id: inode.id,
            name: &inode.name,
            owner: &inode.owner,
            group: &inode.group,
            mode: inode.mode,
            has_acl: !inode.acl.is_empty(),
            mtime: inode.mtime,
            atime: inode.atime,
            storage_policy: inode.storage_policy,
            kind: inode.kind.clone(),
        }
    }
}

impl<'a> InodeRef<'a> {
    /// Reads a record.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<InodeRef<'a>> {
        let mut input = Decoder::new(bytes);
        let version = input.byte()?;
        if version != VERSION {
            return Err(DecodeError::Version { version }.into());
        }
        let id = InodeId::decode(&mut input)?;
        InodeId::decode(&mut input)?;
        let [name, owner, group] = [input.text()?, input.text()?, input.text()?];
        let mode = u16::decode(&mut input)?;
        let has_acl = mode & HAS_ACL != 0;
        let found = InodeRef {
            id,
            name,
            owner,
            group,
            mode: mode & !HAS_ACL,
            has_acl,
            mtime: Decode::decode(&mut input)?,
            atime: Decode::decode(&mut input)?,
            storage_policy: Decode::decode(&mut input)?,
            kind: Decode::decode(&mut input)?,
        };
        if has_acl {
            Vec::<AclEntry>::decode(&mut input)?;
        }
        input.finish()?;
        Ok(found)
    }
}

/// Reads an inode's record.
pub fn from_bytes(bytes: &[u8]) -> Result<Inode> {
    Ok(crate::encoding::from_record(VERSION, bytes)?)
}

/// Where the child of a name is found.
pub fn child_key(parent: InodeId, name: &str) -> Vec<u8> {
    [&parent.key()[..], name.as_bytes()].concat()
}

/// Where the inode of a record is found by its name.
pub fn child_key_in(record: &[u8]) -> Result<Vec<u8>> {
    let mut input = Decoder::new(record);
    input.byte()?;
    InodeId::decode(&mut input)?;
    let parent = InodeId::decode(&mut input)?;
    Ok(child_key(parent, input.text()?))
}

/// What the child at an entry is, beside its id, so that a walk over directories need not read files. Entries of
/// older builds have neither bit.
pub(super) const IS_DIRECTORY: u64 = 1 << 63;
pub(super) const IS_FILE: u64 = 1 << 62;

/// An entry's value: the bits of the child's id and what it is.
pub(super) fn entry_bits(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| StoreError::Corrupt {
        what: "child",
        reason: format!("an id of {} bytes", value.len()),
    })?;
    Ok(u64::from_be_bytes(bytes))
}

/// The child that is found there.
pub fn child_id(value: &[u8]) -> Result<InodeId> {
    Ok(InodeId(entry_bits(value)? & !(IS_DIRECTORY | IS_FILE)))
}

/// What a reference to an inode that is not there is.
pub(crate) fn dangling(id: InodeId) -> StoreError {
    StoreError::Corrupt { what: "reference", reason: format!("there is no inode {id}") }
}
