//! Files and directories of a namespace turned into those of an image.

use super::error::ExportError;
use cairn_fsimage::write as image;
use cairn_fsimage::{self as fsimage, AclKind, TypeQuota};
use cairn_namespace::acl::{self, AclScope};
use cairn_namespace::export;
use cairn_namespace::inode::{Directory, File, Kind, Quota};
use cairn_namespace::ops::xattr::XAttrSpace;
use cairn_namespace::policy_admin::REPLICATION_NAME;
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Block, FileRedundancy, Inode, InodeId};
use cairn_stripe::{PolicyId, PolicyLayout};
use std::io::{self, Write};

/// Attributes in which a directory has its policies. Source: Hadoop 3.5.0 `HdfsServerConstants`.
const EC_POLICY: &str = "hdfs.erasurecoding.policy";
const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";
/// The quota of names that the root always has. Source: Hadoop 3.5.0 `DirectoryWithQuotaFeature`.
const ROOT_QUOTA: u64 = i64::MAX as u64;

/// An extended attribute: space, name, value.
pub(super) type Attribute = (XAttrSpace, String, Vec<u8>);

/// All attributes of an inode as an image has them, its policies among them.
pub(super) fn attributes(
    store: &dyn StoreRead,
    inode: &Inode,
) -> Result<Vec<Attribute>, ExportError> {
    let mut attributes = export::attributes(store, inode.id)?;
    if let Kind::Directory(directory) = &inode.kind {
        attributes.extend(policies_of(store, inode, directory)?);
    }
    Ok(attributes)
}

/// Gives what files and directories have alike.
pub(super) fn described(
    inode: &Inode,
    attributes: &[Attribute],
    write: impl FnOnce(&image::Common<'_>) -> io::Result<()>,
) -> Result<(), ExportError> {
    let xattrs: Vec<image::XAttr<'_>> = attributes
        .iter()
        .map(|(space, name, value)| image::XAttr { namespace: *space as u8, name, value })
        .collect();
    let acl: Vec<image::AclEntry<'_>> = inode.acl.iter().map(acl_entry).collect();
    Ok(write(&image::Common {
        id: inode.id.0,
        name: inode.name.as_bytes(),
        owner: &inode.owner,
        group: &inode.group,
        mode: inode.mode,
        acl: &acl,
        xattrs: &xattrs,
        modified_ms: inode.mtime,
    })?)
}

/// Writes an inode of section INODE.
pub(super) fn inode_to<W: Write>(
    store: &dyn StoreRead,
    inode: &Inode,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let attributes = attributes(store, inode)?;
    match &inode.kind {
        Kind::Directory(directory) => {
            let (quota, types) = quota_of(inode.id, directory);
            let directory = image::Directory { type_quotas: &types, ..quota };
            described(inode, &attributes, |common| to.directory(common, &directory))
        }
        Kind::File(file) => {
            let blocks: Vec<fsimage::Block> =
                export::blocks(store, inode.id)?.iter().map(block).collect();
            described(inode, &attributes, |common| to.file(common, &file_of(inode, file), &blocks))
        }
    }
}

pub(super) fn block(of: &Block) -> fsimage::Block {
    fsimage::Block { id: of.id.0, stamp: of.gs.0, len: of.len }
}

/// The limits of a directory, those by type of storage by themselves.
pub(super) fn quota_of(
    id: InodeId,
    directory: &Directory,
) -> (image::Directory<'static>, Vec<TypeQuota>) {
    quota(directory.quota.as_ref(), id == InodeId::ROOT)
}

fn acl_entry(of: &acl::AclEntry) -> image::AclEntry<'_> {
    image::AclEntry {
        permission: of.permission as u8,
        kind: match of.kind {
            acl::AclKind::User => AclKind::User,
            acl::AclKind::Group => AclKind::Group,
            acl::AclKind::Mask => AclKind::Mask,
            acl::AclKind::Other => AclKind::Other,
        },
        is_default: of.scope == AclScope::Default,
        name: of.name.as_deref(),
    }
}

/// What only a file has.
pub(super) fn file_of<'a>(inode: &Inode, file: &'a File) -> image::File<'a> {
    image::File {
        redundancy: match file.redundancy {
            FileRedundancy::Striped(policy) => image::FileRedundancy::Striped(policy.0.into()),
            FileRedundancy::Replicated(copies) | FileRedundancy::Contiguous { copies, .. } => {
                image::FileRedundancy::Replicated(copies.into())
            }
        },
        accessed_ms: inode.atime,
        block_len: file.block_size,
        writer: file.writer.as_ref().map(|writer| fsimage::Writer {
            client: &writer.holder,
            machine: &writer.client_machine,
        }),
        storage_policy: inode.storage_policy.into(),
    }
}

/// Policies of a directory as attributes.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#setErasureCodingPolicyXAttr`, `INodeDirectory#getLocalStoragePolicyID`.
fn policies_of(
    store: &dyn StoreRead,
    inode: &Inode,
    directory: &Directory,
) -> Result<Vec<Attribute>, ExportError> {
    let mut found = Vec::new();
    if let Some(id) = directory.policy {
        let name = match id {
            PolicyId::REPLICATION => REPLICATION_NAME.to_string(),
            id => {
                let policy = store.policy(id)?;
                match policy.layout {
                    PolicyLayout::Striped => policy.name.clone(),
                    PolicyLayout::Contiguous => REPLICATION_NAME.to_string(),
                }
            }
        };
        let value = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
        found.push((XAttrSpace::System, EC_POLICY.to_string(), value));
    }
    if inode.storage_policy != 0 {
        let value = vec![inode.storage_policy];
        found.push((XAttrSpace::System, STORAGE_POLICY.to_string(), value));
    }
    Ok(found)
}

fn quota(of: Option<&Quota>, is_root: bool) -> (image::Directory<'static>, Vec<TypeQuota>) {
    let max = of.and_then(|quota| quota.names_max);
    let limits = image::Directory {
        name_quota: max.or(is_root.then_some(ROOT_QUOTA)),
        space_quota: of.and_then(|quota| quota.space_max),
        type_quotas: &[],
    };
    let by_type = of.into_iter().flat_map(|quota| quota.types_max.iter());
    let types = by_type.filter_map(|(kind, max)| {
        Some(TypeQuota { storage_type: kind.number().cast_unsigned(), bytes: (*max)? })
    });
    (limits, types.collect())
}
