//! Inodes of an image turned into those of a namespace.

use super::known::Known;
use cairn_fsimage::{self as fsimage, AclEntries, InodeKind, Permission, ROOT, XAttrs};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::inode::{Directory, File, InodeId, Kind, Quota, Writer};
use cairn_namespace::ops::xattr::XAttrSpace;
use cairn_namespace::{Block, BlockRef, BlockState, FileRedundancy, Inode};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId, StorageType};

/// Attributes in which a directory has its policies. Source: Hadoop 3.5.0 `HdfsServerConstants`.
pub(super) const EC_POLICY: &str = "hdfs.erasurecoding.policy";
const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";
/// The attribute of an encryption zone's root.
const ZONE: &str = "hdfs.crypto.encryption.zone";
/// The policy that is called so keeps copies. Source: Hadoop 3.5.0 `ErasureCodeConstants`.
const REPLICATION: &str = "replication";
/// The bits of a mode that an inode keeps.
pub(super) const MODE_MASK: u16 = 0o1777;

/// An inode as the namespace has it.
#[derive(Clone)]
pub(super) struct Turned {
    pub inode: Inode,
    pub attributes: Vec<((XAttrSpace, String), Vec<u8>)>,
    pub blocks: Vec<Block>,
    /// It is the root of an encryption zone.
    pub is_zone: bool,
}

impl Turned {
    /// A block that a snapshot has of this file, at that place.
    pub fn block(&self, index: usize, of: &fsimage::Block) -> Block {
        let now = self.blocks.iter().find(|block| block.id.0 == of.id);
        let index = index as u32;
        match now {
            Some(now) => Block { index, ..now.clone() },
            None => block(self.inode.id, index, of, BlockState::Complete),
        }
    }
}

/// Turns an inode; what cannot be taken over is the error.
pub(super) fn turned(known: &Known, inode: &fsimage::Inode<'_>) -> Result<Turned, String> {
    let is_root = inode.id == ROOT;
    let parent = match (is_root, known.parent(inode.id)) {
        (true, _) => InodeId::NONE,
        (false, Some(parent)) => InodeId(parent),
        (false, None) => return Err("inodes that no directory has".to_string()),
    };
    if !is_root && (inode.name.is_empty() || inode.name.contains(&b'/')) {
        return Err("names that no path can have".to_string());
    }
    turned_in(known, parent, inode)
}

/// As [`turned`], for an inode as it was, wherever that was.
pub(super) fn turned_in(
    known: &Known,
    parent: InodeId,
    inode: &fsimage::Inode<'_>,
) -> Result<Turned, String> {
    let name = std::str::from_utf8(inode.name).map_err(|_| "names that are not UTF-8")?;
    let is_root = inode.id == ROOT;
    let id = InodeId(inode.id);
    match &inode.kind {
        InodeKind::Symlink(_) => Err("symbolic links".to_string()),
        InodeKind::File(file) => {
            let attributes = attributes(known, file.xattrs)?;
            let (redundancy, blocks) = blocks(known, id, file)?;
            let writer = file.writer.map(|of| Writer {
                holder: of.client.to_string(),
                client_machine: of.machine.to_string(),
                began_after: None,
            });
            let kind = Kind::File(File {
                redundancy,
                block_size: file.block_len,
                block_count: blocks.len() as u64,
                len: file.len(),
                writer,
                short_appends: 0,
            });
            let storage_policy = storage_policy(file.storage_policy)?;
            let mut inode = of(known, (id, parent, name), file.permission, file.acl, kind)?;
            (inode.mtime, inode.atime) = (file.modified_ms, file.accessed_ms);
            inode.storage_policy = storage_policy;
            Ok(Turned { inode, attributes: attributes.kept, blocks, is_zone: false })
        }
        InodeKind::Directory(directory) => {
            let attributes = attributes(known, directory.xattrs)?;
            let kind = Kind::Directory(Directory {
                children: known.children.get(&inode.id).copied().unwrap_or(0),
                policy: attributes.policy,
                quota: quota(directory, is_root)?,
                is_zone: false,
            });
            let (permission, acl) = (directory.permission, directory.acl);
            let mut inode = of(known, (id, parent, name), permission, acl, kind)?;
            inode.mtime = directory.modified_ms;
            inode.storage_policy = attributes.storage_policy;
            let is_zone = attributes.is_zone;
            Ok(Turned { inode, attributes: attributes.kept, blocks: Vec::new(), is_zone })
        }
    }
}

/// What files and directories have alike.
fn of(
    known: &Known,
    (id, parent, name): (InodeId, InodeId, &str),
    permission: Permission,
    acl: Option<AclEntries<'_>>,
    kind: Kind,
) -> Result<Inode, String> {
    let (owner, group) = (permission.owner(&known.names), permission.group(&known.names));
    let (Some(owner), Some(group)) = (owner, group) else {
        return Err("inodes without owner or group".to_string());
    };
    let acl = acl.unwrap_or_default().iter().map(|entry| AclEntry {
        scope: if entry.is_default() { AclScope::Default } else { AclScope::Access },
        kind: match entry.kind() {
            fsimage::AclKind::User => AclKind::User,
            fsimage::AclKind::Group => AclKind::Group,
            fsimage::AclKind::Mask => AclKind::Mask,
            fsimage::AclKind::Other => AclKind::Other,
        },
        name: entry.name(&known.names).map(str::to_string),
        permission: u16::from(entry.permission()),
    });
    Ok(Inode {
        id,
        parent,
        name: name.to_string(),
        owner: owner.to_string(),
        group: group.to_string(),
        mode: permission.mode() & MODE_MASK,
        acl: acl.collect(),
        mtime: 0,
        atime: 0,
        storage_policy: 0,
        kind,
    })
}

fn storage_policy(number: u32) -> Result<u8, String> {
    let number = u8::try_from(number).ok();
    number.ok_or_else(|| "storage policies that are not known".to_string())
}

/// Attributes of an inode, without those that say what its record says.
#[derive(Default)]
struct Attributes {
    kept: Vec<((XAttrSpace, String), Vec<u8>)>,
    policy: Option<PolicyId>,
    storage_policy: u8,
    is_zone: bool,
}

fn attributes(known: &Known, xattrs: XAttrs<'_>) -> Result<Attributes, String> {
    let mut found = Attributes::default();
    for of in xattrs.iter() {
        let name = of.name(&known.names).ok_or("attributes without names")?;
        let space = attribute_space(of.namespace())?;
        match space {
            XAttrSpace::System if name == EC_POLICY => {
                found.policy = Some(named_policy(known, of.value)?);
                continue;
            }
            XAttrSpace::System if name == STORAGE_POLICY => {
                let [number] = of.value else { return Err(format!("attribute system.{name}")) };
                found.storage_policy = *number;
                continue;
            }
            XAttrSpace::System => return Err(format!("attribute system.{name}")),
            XAttrSpace::Raw => found.is_zone |= name == ZONE,
            XAttrSpace::User | XAttrSpace::Trusted | XAttrSpace::Security => {}
        }
        found.kept.push(((space, name.to_string()), of.value.to_vec()));
    }
    Ok(found)
}

/// The space of an attribute by Hadoop's number.
///
/// Source: Hadoop 3.5.0 `XAttrProto.XAttrNamespaceProto`.
pub(super) fn attribute_space(number: impl Into<u32>) -> Result<XAttrSpace, String> {
    Ok(match number.into() {
        0 => XAttrSpace::User,
        1 => XAttrSpace::Trusted,
        2 => XAttrSpace::Security,
        3 => XAttrSpace::System,
        4 => XAttrSpace::Raw,
        _ => return Err("attributes of spaces that are not known".to_string()),
    })
}

/// The name of a policy that an attribute has behind its length in four bytes; empty if there is none.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#setErasureCodingPolicyXAttr`.
pub(super) fn policy_name(value: &[u8]) -> &str {
    value.get(4..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
}

/// The policy whose name an attribute has.
fn named_policy(known: &Known, value: &[u8]) -> Result<PolicyId, String> {
    let name = policy_name(value);
    if name.eq_ignore_ascii_case(REPLICATION) {
        return Ok(PolicyId::REPLICATION);
    }
    let policy = known.policies.iter().map(|(policy, _)| policy).find(|of| of.name == name);
    policy.map(|policy| policy.id).ok_or_else(|| format!("erasure coding policy {name}"))
}

/// The limits of a directory; what is used comes later.
fn quota(directory: &fsimage::Directory<'_>, is_root: bool) -> Result<Option<Quota>, String> {
    // The root has a quota that limits nothing.
    let no_limit = |max: &u64| is_root && *max >= i64::MAX as u64;
    let mut quota = Quota {
        names_max: directory.name_quota.filter(|max| !no_limit(max)),
        space_max: directory.space_quota,
        ..Quota::default()
    };
    let mut is_limited = quota.names_max.is_some() || quota.space_max.is_some();
    for of in directory.type_quotas.iter() {
        let kind =
            StorageType::ALL.into_iter().find(|kind| kind.number() as u32 == of.storage_type);
        quota.types_max[kind.ok_or("quotas on types of storage that are not known")?] =
            Some(of.bytes);
        is_limited = true;
    }
    Ok(is_limited.then_some(quota))
}

fn block(file: InodeId, index: u32, of: &fsimage::Block, state: BlockState) -> Block {
    let of = BlockRef { id: BlockId(of.id), gs: GenerationStamp(of.stamp), len: of.len };
    Block::new(of, (file, index), state)
}

/// How a file is kept, and its blocks.
fn blocks(
    known: &Known,
    id: InodeId,
    file: &fsimage::File<'_>,
) -> Result<(FileRedundancy, Vec<Block>), String> {
    let redundancy = match file.ec_policy {
        None => FileRedundancy::Replicated(
            u16::try_from(file.replication).map_err(|_| "numbers of copies that are too large")?,
        ),
        Some(number) => FileRedundancy::Striped(
            known
                .policy(number)
                .ok_or_else(|| format!("files of erasure coding policy {number}"))?,
        ),
    };
    let count = file.blocks.len();
    let blocks = file.blocks.iter().enumerate().map(|(index, of)| {
        let is_written = file.writer.is_some() && index + 1 == count;
        let state = match is_written {
            true => BlockState::UnderConstruction,
            false => BlockState::Complete,
        };
        let block = block(id, index as u32, &of, state);
        // Whether it was opened again is not known.
        Block { reopened_gs: is_written.then_some(block.gs), ..block }
    });
    let blocks: Vec<Block> = blocks.collect();
    if blocks.iter().any(|block| block.id.is_striped() != redundancy.is_striped()) {
        return Err("files with blocks and block groups".to_string());
    }
    if u32::try_from(count).is_err() {
        return Err("files with too many blocks".to_string());
    }
    Ok((redundancy, blocks))
}
