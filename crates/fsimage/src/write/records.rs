//! Records of an image, as messages.

use super::message::Message;
use super::names::{Numbers, TooManyNames};
use crate::attributes::{AclKind, TypeQuota};
use crate::cache::{CacheDirective, CachePool};
use crate::inode::{Block, Writer};
use crate::names::NameKind;
use crate::policy::{Counters, EcPolicy, PolicyState};

/// An entry of an access control list, beyond the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclEntry<'a> {
    /// Read 4, write 2, execute 1.
    pub permission: u8,
    /// Whom it is about.
    pub kind: AclKind,
    /// Whether it is for what is made in a directory.
    pub is_default: bool,
    /// The user or group that it names.
    pub name: Option<&'a str>,
}

/// An extended attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAttr<'a> {
    /// The number of its name space: user 0, trusted 1, security 2, system 3, raw 4.
    pub namespace: u8,
    /// The name behind the name space.
    pub name: &'a str,
    /// What it holds.
    pub value: &'a [u8],
}

/// What files and directories have alike.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The inode's number.
    pub id: u64,
    /// Its name in its directory; empty for the root.
    pub name: &'a [u8],
    /// Its owner.
    pub owner: &'a str,
    /// Its group.
    pub group: &'a str,
    /// Its mode, the sticky bit included.
    pub mode: u16,
    /// What of its access control list the mode does not say.
    pub acl: &'a [AclEntry<'a>],
    /// Its extended attributes.
    pub xattrs: &'a [XAttr<'a>],
    /// When it, or what is in it, was last changed, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// What only a file has.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// How many copies there are, or the number of the policy by which it is striped.
    pub redundancy: FileRedundancy,
    /// When it was last opened.
    pub accessed_ms: u64,
    /// Bytes of a full block.
    pub block_len: u64,
    /// Who writes it, if it is open.
    pub writer: Option<Writer<'a>>,
    /// The number of its own storage policy; 0 if it has none.
    pub storage_policy: u32,
}

/// How a file is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRedundancy {
    /// As that many copies.
    Replicated(u32),
    /// Striped with the policy of that number.
    Striped(u32),
}

/// What only a directory has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directory<'a> {
    /// Most names below it.
    pub name_quota: Option<u64>,
    /// Most bytes on disk below it.
    pub space_quota: Option<u64>,
    /// The same by type of storage.
    pub type_quotas: &'a [TypeQuota],
}

/// A quota that is none.
const NO_QUOTA: u64 = u64::MAX;

pub(super) fn counters(of: &Counters) -> Message {
    let mut message = Message::default();
    message
        .number(1, of.namespace_id.into())
        .number(2, of.legacy_stamp)
        .number(3, of.stamp)
        // The first block behind those of Hadoop 1 has the stamp 0: there are none.
        .number(4, 0)
        .number(5, of.last_block)
        .number(6, of.transaction);
    if let Some(group) = of.last_group {
        message.number(8, group.cast_unsigned());
    }
    message
}

/// Hadoop's own policies are known by their numbers.
const LAST_OWN_POLICY: u32 = 5;

pub(super) fn policies(all: &[EcPolicy]) -> Message {
    let mut section = Message::default();
    for of in all {
        let mut message = Message::default();
        if of.id > LAST_OWN_POLICY {
            let mut schema = Message::default();
            let (data, parity) = (of.data_units.into(), of.parity_units.into());
            schema.text(1, &of.codec).number(2, data).number(3, parity);
            message.text(1, &of.name).message(2, &schema).number(3, of.cell_len.into());
        }
        let state = match of.state {
            PolicyState::Disabled => 1,
            PolicyState::Enabled => 2,
            PolicyState::Removed => 3,
        };
        message.number(4, of.id.into()).number(5, state);
        section.message(1, &message);
    }
    section
}

fn permission(names: &mut Numbers, of: &Common<'_>) -> Result<u64, TooManyNames> {
    let owner = names.of(NameKind::User, of.owner)?;
    let group = names.of(NameKind::Group, of.group)?;
    Ok(u64::from(owner) << 40 | u64::from(group) << 16 | u64::from(of.mode))
}

fn acl(names: &mut Numbers, entries: &[AclEntry<'_>]) -> Result<Option<Message>, TooManyNames> {
    if entries.is_empty() {
        return Ok(None);
    }
    let mut packed = Vec::with_capacity(4 * entries.len());
    for entry in entries {
        let (kind, names_of) = match entry.kind {
            AclKind::User => (0, Some(NameKind::User)),
            AclKind::Group => (1, Some(NameKind::Group)),
            AclKind::Mask => (2, None),
            AclKind::Other => (3, None),
        };
        let name = match names_of.zip(entry.name) {
            Some((kind, name)) => names.of(kind, name)?,
            None => 0,
        };
        let bits = u32::from(entry.permission & 7) | kind << 3 | u32::from(entry.is_default) << 5;
        packed.extend((bits | name << 6).to_le_bytes());
    }
    let mut message = Message::default();
    message.blob(2, &packed);
    Ok(Some(message))
}

fn xattrs(names: &mut Numbers, all: &[XAttr<'_>]) -> Result<Option<Message>, TooManyNames> {
    let mut list = Message::default();
    for of in all {
        let name = names.of(NameKind::XAttr, of.name)?;
        let namespace = u32::from(of.namespace);
        let mut message = Message::default();
        message.fixed32(1, (namespace & 3) << 30 | name << 6 | (namespace >> 2 & 1) << 5);
        message.blob(2, of.value);
        list.message(1, &message);
    }
    Ok((!all.is_empty()).then_some(list))
}

fn inode(of: &Common<'_>, kind: u64, field: u32, what: &Message) -> Message {
    let mut message = Message::default();
    message.number(1, kind).number(2, of.id).blob(3, of.name).message(field, what);
    message
}

pub(super) fn file(
    names: &mut Numbers,
    of: &Common<'_>,
    file: &File<'_>,
    blocks: &[Block],
) -> Result<Message, TooManyNames> {
    Ok(inode(of, 1, 4, &file_alone(names, of, file, blocks)?))
}

/// A file without its number and name, as snapshots have it.
pub(super) fn file_alone(
    names: &mut Numbers,
    of: &Common<'_>,
    file: &File<'_>,
    blocks: &[Block],
) -> Result<Message, TooManyNames> {
    let mut message = Message::default();
    if let FileRedundancy::Replicated(copies) = file.redundancy {
        message.number(1, copies.into());
    }
    message
        .number(2, of.modified_ms)
        .number(3, file.accessed_ms)
        .number(4, file.block_len)
        .fixed64(5, permission(names, of)?);
    for of in blocks {
        message.message(6, &block(of));
    }
    if let Some(writer) = file.writer {
        let mut one = Message::default();
        one.text(1, writer.client).text(2, writer.machine);
        message.message(7, &one);
    }
    if let Some(acl) = acl(names, of.acl)? {
        message.message(8, &acl);
    }
    if let Some(xattrs) = xattrs(names, of.xattrs)? {
        message.message(9, &xattrs);
    }
    message.number(10, file.storage_policy.into());
    match file.redundancy {
        FileRedundancy::Replicated(_) => message.number(11, 0),
        FileRedundancy::Striped(policy) => message.number(11, 1).number(12, policy.into()),
    };
    Ok(message)
}

pub(super) fn block(of: &Block) -> Message {
    let mut message = Message::default();
    message.number(1, of.id.cast_unsigned()).number(2, of.stamp).number(3, of.len);
    message
}

pub(super) fn directory(
    names: &mut Numbers,
    of: &Common<'_>,
    directory: &Directory<'_>,
) -> Result<Message, TooManyNames> {
    Ok(inode(of, 2, 5, &directory_alone(names, of, directory)?))
}

/// A directory without its number and name, as snapshots have it.
pub(super) fn directory_alone(
    names: &mut Numbers,
    of: &Common<'_>,
    directory: &Directory<'_>,
) -> Result<Message, TooManyNames> {
    let mut message = Message::default();
    message
        .number(1, of.modified_ms)
        .number(2, directory.name_quota.unwrap_or(NO_QUOTA))
        .number(3, directory.space_quota.unwrap_or(NO_QUOTA))
        .fixed64(4, permission(names, of)?);
    if let Some(acl) = acl(names, of.acl)? {
        message.message(5, &acl);
    }
    if let Some(xattrs) = xattrs(names, of.xattrs)? {
        message.message(6, &xattrs);
    }
    if !directory.type_quotas.is_empty() {
        let mut quotas = Message::default();
        for quota in directory.type_quotas {
            let mut one = Message::default();
            one.number(1, quota.storage_type.into()).number(2, quota.bytes);
            quotas.message(1, &one);
        }
        message.message(7, &quotas);
    }
    Ok(message)
}

pub(super) fn cache_pool(of: &CachePool) -> Message {
    let mut message = Message::default();
    message.text(1, &of.name).text(2, &of.owner).text(3, &of.group).number(4, of.mode.into());
    if let Some(limit) = of.limit {
        message.number(5, limit);
    }
    if let Some(ttl_max_ms) = of.ttl_max_ms {
        message.number(6, ttl_max_ms);
    }
    message.number(7, of.replication.into());
    message
}

pub(super) fn cache_directive(of: &CacheDirective) -> Message {
    let mut expiration = Message::default();
    expiration.number(1, of.expires_ms).number(2, 0);
    let mut message = Message::default();
    message
        .number(1, of.id)
        .text(2, &of.path)
        .number(3, of.replication.into())
        .text(4, &of.pool)
        .message(5, &expiration);
    message
}
