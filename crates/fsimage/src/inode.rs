//! Files, directories and symbolic links, as section INODE and snapshots have them.

use crate::attributes::{AclEntries, Permission, TypeQuotas, XAttrs};
use crate::error::{ImageError, Malformed};
use crate::fields::{Fields, Value};
use crate::section::Section;

/// A block or a block group of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its number; a group's is negative.
    pub id: i64,
    /// Its generation stamp.
    pub stamp: u64,
    /// Its bytes; of a block that is still written, those that the NameNode was told of.
    pub len: u64,
}

impl Block {
    #[inline]
    pub(crate) fn decode(message: &[u8]) -> Result<Block, Malformed> {
        let (mut block, mut fields) = (Block::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => block.id = value.number()? as i64,
                2 => block.stamp = value.number()?,
                3 => block.len = value.number()?,
                _ => return Err(Malformed("a block has a field that is not known")),
            }
        }
        Ok(block)
    }
}

/// Blocks of a file, in its order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocks<'a> {
    message: &'a [u8],
    field: u32,
    count: usize,
}

impl<'a> Blocks<'a> {
    /// The blocks of a message, whose caller has decoded each of the `count` fields `field` once.
    pub(crate) fn checked(message: &'a [u8], field: u32, count: usize) -> Blocks<'a> {
        Blocks { message, field, count }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Block> + 'a {
        let mut fields = Fields::of(self.message);
        let mut left = self.count;
        std::iter::from_fn(move || {
            while left > 0 {
                let (field, value) = fields.next().ok()??;
                if field == self.field {
                    left -= 1;
                    return Block::decode(value.bytes().ok()?).ok();
                }
            }
            None
        })
    }
}

/// Who writes a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer<'a> {
    /// The client's name for its lease.
    pub client: &'a str,
    /// Its machine.
    pub machine: &'a str,
}

impl<'a> Writer<'a> {
    fn decode(message: &'a [u8]) -> Result<Writer<'a>, Malformed> {
        let (mut writer, mut fields) = (Writer::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => writer.client = value.text()?,
                2 => writer.machine = value.text()?,
                _ => return Err(Malformed("a writer has a field that is not known")),
            }
        }
        Ok(writer)
    }
}

/// What a file has beside its name.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Copies of its blocks; 0 if it is striped.
    pub replication: u32,
    /// When it was last written, in milliseconds since 1970.
    pub modified_ms: u64,
    /// When it was last opened, if the NameNode keeps that.
    pub accessed_ms: u64,
    /// Bytes of a full block.
    pub block_len: u64,
    /// Owner, group and mode.
    pub permission: Permission,
    /// Its blocks or groups.
    pub blocks: Blocks<'a>,
    /// Who writes it, if it is open.
    pub writer: Option<Writer<'a>>,
    /// Its access control list, if it has one.
    pub acl: Option<AclEntries<'a>>,
    /// Its extended attributes.
    pub xattrs: XAttrs<'a>,
    /// The number of its own storage policy; 0 if it has none.
    pub storage_policy: u32,
    /// The number of its policy of erasure coding, if it is striped.
    pub ec_policy: Option<u32>,
}

impl<'a> File<'a> {
    #[inline]
    pub(crate) fn decode(message: &'a [u8]) -> Result<File<'a>, Malformed> {
        let mut file = File {
            replication: 0,
            modified_ms: 0,
            accessed_ms: 0,
            block_len: 0,
            permission: Permission(0),
            blocks: Blocks::default(),
            writer: None,
            acl: None,
            xattrs: XAttrs::default(),
            storage_policy: 0,
            ec_policy: None,
        };
        let (mut blocks, mut is_striped) = (0, false);
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => file.replication = value.small()?,
                2 => file.modified_ms = value.number()?,
                3 => file.accessed_ms = value.number()?,
                4 => file.block_len = value.number()?,
                5 => file.permission = Permission(value.fixed64()?),
                6 => {
                    Block::decode(value.bytes()?)?;
                    blocks += 1;
                }
                7 => file.writer = Some(Writer::decode(value.bytes()?)?),
                8 => file.acl = Some(AclEntries::check(value.bytes()?)?),
                9 => file.xattrs = XAttrs::check(value.bytes()?)?,
                10 => file.storage_policy = value.small()?,
                11 => is_striped = striped(value)?,
                12 => file.ec_policy = Some(value.small()?),
                _ => return Err(Malformed("a file has a field that is not known")),
            }
        }
        if is_striped && file.ec_policy.is_none() {
            return Err(Malformed("a striped file has no policy"));
        }
        file.blocks = Blocks::checked(message, 6, blocks);
        Ok(file)
    }

    /// Its bytes, as far as the NameNode was told.
    pub fn len(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, block| sum.saturating_add(block.len))
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn striped(value: Value<'_>) -> Result<bool, Malformed> {
    match value.number()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("a file has blocks of a kind that is not known")),
    }
}

/// What a directory has beside its name.
#[derive(Clone, Copy, Debug)]
pub struct Directory<'a> {
    /// When a child last came or went, in milliseconds since 1970.
    pub modified_ms: u64,
    /// Most names below it; none without such a quota.
    pub name_quota: Option<u64>,
    /// Most bytes on disk below it; none without such a quota.
    pub space_quota: Option<u64>,
    /// Owner, group and mode.
    pub permission: Permission,
    /// Its access control list, if it has one.
    pub acl: Option<AclEntries<'a>>,
    /// Its extended attributes: its policies are among them.
    pub xattrs: XAttrs<'a>,
    /// Quotas by type of storage.
    pub type_quotas: TypeQuotas<'a>,
}

impl<'a> Directory<'a> {
    pub(crate) fn decode(message: &'a [u8]) -> Result<Directory<'a>, Malformed> {
        let mut directory = Directory {
            modified_ms: 0,
            name_quota: None,
            space_quota: None,
            permission: Permission(0),
            acl: None,
            xattrs: XAttrs::default(),
            type_quotas: TypeQuotas::default(),
        };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => directory.modified_ms = value.number()?,
                2 => directory.name_quota = quota(value.number()?),
                3 => directory.space_quota = quota(value.number()?),
                4 => directory.permission = Permission(value.fixed64()?),
                5 => directory.acl = Some(AclEntries::check(value.bytes()?)?),
                6 => directory.xattrs = XAttrs::check(value.bytes()?)?,
                7 => directory.type_quotas = TypeQuotas::check(value.bytes()?)?,
                _ => return Err(Malformed("a directory has a field that is not known")),
            }
        }
        Ok(directory)
    }
}

/// A quota; -1 stands for none.
fn quota(number: u64) -> Option<u64> {
    (number as i64 >= 0).then_some(number)
}

/// What a symbolic link has beside its name.
#[derive(Clone, Copy, Debug)]
pub struct Symlink<'a> {
    /// Owner, group and mode.
    pub permission: Permission,
    /// Where it leads.
    pub target: &'a [u8],
}

impl<'a> Symlink<'a> {
    fn decode(message: &'a [u8]) -> Result<Symlink<'a>, Malformed> {
        let mut link = Symlink { permission: Permission(0), target: &[] };
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => link.permission = Permission(value.fixed64()?),
                2 => link.target = value.bytes()?,
                3 | 4 => {}
                _ => return Err(Malformed("a symbolic link has a field that is not known")),
            }
        }
        Ok(link)
    }
}

/// What an inode is.
#[derive(Clone, Copy, Debug)]
pub enum InodeKind<'a> {
    /// A file.
    File(File<'a>),
    /// A directory.
    Directory(Directory<'a>),
    /// A symbolic link.
    Symlink(Symlink<'a>),
}

/// An inode.
#[derive(Clone, Copy, Debug)]
pub struct Inode<'a> {
    /// Its number.
    pub id: u64,
    /// Its name in its directory; empty for the root.
    pub name: &'a [u8],
    /// What it is.
    pub kind: InodeKind<'a>,
}

impl<'a> Inode<'a> {
    #[inline]
    pub(crate) fn decode(message: &'a [u8]) -> Result<Inode<'a>, Malformed> {
        let (mut kind, mut id, mut name) = (0, 0, &[][..]);
        let (mut file, mut directory, mut link) = (None, None, None);
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => kind = value.number()?,
                2 => id = value.number()?,
                3 => name = value.bytes()?,
                4 => file = Some(value.bytes()?),
                5 => directory = Some(value.bytes()?),
                6 => link = Some(value.bytes()?),
                _ => return Err(Malformed("an inode has a field that is not known")),
            }
        }
        let kind = match (kind, file, directory, link) {
            (1, Some(file), None, None) => InodeKind::File(File::decode(file)?),
            (2, None, Some(directory), None) => InodeKind::Directory(Directory::decode(directory)?),
            (4, None, None, Some(link)) => InodeKind::Symlink(Symlink::decode(link)?),
            _ => return Err(Malformed("an inode is no file, no directory and no symbolic link")),
        };
        Ok(Inode { id, name, kind })
    }
}

/// What section INODE begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InodeHead {
    pub last_id: u64,
    pub count: u64,
}

impl InodeHead {
    pub fn decode(message: &[u8]) -> Result<InodeHead, Malformed> {
        let (mut head, mut fields) = (InodeHead::default(), Fields::of(message));
        while let Some((field, value)) = fields.next()? {
            match field {
                1 => head.last_id = value.number()?,
                2 => head.count = value.number()?,
                _ => {}
            }
        }
        Ok(head)
    }
}

impl Section<'_> {
    /// The next inode of a section whose head was read.
    pub fn inode(&mut self) -> Result<Option<Inode<'_>>, ImageError> {
        self.record(Inode::decode)
    }
}
