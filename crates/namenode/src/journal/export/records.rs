//! The second way through a namespace: its records turned into those of an image.

use super::error::ExportError;
use super::plan::{Plan, STEP};
use cairn_fsimage::write::{self as image, ImageWriter, compare_names};
use cairn_fsimage::{self as fsimage, AclKind, Counters, EcPolicy, OpenFile, TypeQuota, sections};
use cairn_namespace::acl::{self, AclScope};
use cairn_namespace::export::{self, Entry};
use cairn_namespace::inode::{Directory, File, Kind, Quota, path_of};
use cairn_namespace::ops::xattr::XAttrSpace;
use cairn_namespace::policy_admin::{PolicyInfo, REPLICATION_NAME};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{FileRedundancy, Inode, InodeId, cache, snapshot};
use cairn_stripe::{PolicyId, PolicyLayout, PolicyState};
use std::io::Write;

/// The stamp of Hadoop 1's blocks when there are none. Source: Hadoop 3.5.0 `GenerationStamp#LAST_RESERVED_STAMP`.
const NO_LEGACY_STAMP: u64 = 1000;
/// Attributes in which a directory has its policies. Source: Hadoop 3.5.0 `HdfsServerConstants`.
const EC_POLICY: &str = "hdfs.erasurecoding.policy";
const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";
/// The quota of names that the root always has. Source: Hadoop 3.5.0 `DirectoryWithQuotaFeature`.
const ROOT_QUOTA: u64 = i64::MAX as u64;

type Attribute = (XAttrSpace, String, Vec<u8>);

/// Writes an image.
pub(super) struct Records<'a, W> {
    store: &'a dyn StoreRead,
    plan: &'a Plan,
    image: ImageWriter<W>,
}

impl<'a, W: Write> Records<'a, W> {
    pub fn new(store: &'a dyn StoreRead, plan: &'a Plan, image: ImageWriter<W>) -> Records<'a, W> {
        Records { store, plan, image }
    }

    /// Writes all sections but what ends an image.
    pub fn write(
        mut self,
        namespace_id: u32,
        transaction: u64,
    ) -> Result<ImageWriter<W>, ExportError> {
        let numbers = &self.plan.last.numbers;
        let counters = Counters {
            namespace_id,
            stamp: numbers.stamp.0,
            legacy_stamp: NO_LEGACY_STAMP,
            last_block: numbers.block.0.cast_unsigned(),
            last_group: Some(numbers.group.0),
            transaction,
            rolling_upgrade: false,
        };
        self.image.section(sections::NS_INFO, |to| to.counters(&counters))?;
        let policies: Vec<EcPolicy> = self.plan.policies.iter().map(policy).collect();
        self.image.section(sections::ERASURE_CODING, |to| to.policies(&policies))?;
        self.inodes()?;
        self.children()?;
        self.open_files()?;
        self.snapshottable()?;
        self.image.section(sections::SECRET_MANAGER, |to| to.no_tokens())?;
        self.cache()?;
        Ok(self.image)
    }

    fn inodes(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        let count = plan.counts.files + plan.counts.directories;
        self.image.section(sections::INODE, |to| {
            to.inode_head(plan.last.numbers.inode.0, count)?;
            let mut after = InodeId::NONE;
            loop {
                let inodes = export::inodes_after(store, after, STEP)?;
                let Some(last) = inodes.last() else { return Ok(()) };
                after = last.id;
                for inode in inodes.iter().filter(|inode| !plan.detached.contains(&inode.id)) {
                    inode_to(store, inode, to)?;
                }
            }
        })
    }

    fn children(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        self.image.section(sections::INODE_DIR, |to| {
            let mut of_one: Vec<Entry> = Vec::new();
            let mut after = None;
            loop {
                let entries = export::entries_after(store, after.as_ref(), STEP)?;
                after = entries.last().cloned();
                let is_end = after.is_none();
                for entry in entries {
                    if of_one.first().is_some_and(|first| first.parent != entry.parent) {
                        children_to(&mut of_one, to)?;
                    }
                    if !plan.detached.contains(&entry.parent) {
                        of_one.push(entry);
                    }
                }
                if is_end {
                    return children_to(&mut of_one, to);
                }
            }
        })
    }

    fn open_files(&mut self) -> Result<(), ExportError> {
        let (store, plan) = (self.store, self.plan);
        self.image.section(sections::FILES_UNDERCONSTRUCTION, |to| {
            for id in &plan.open {
                let path = path_of(store, *id)?.unwrap_or_default();
                to.open_file(&OpenFile { inode: id.0, path })?;
            }
            Ok(())
        })
    }

    fn snapshottable(&mut self) -> Result<(), ExportError> {
        let roots = snapshot::roots(self.store)?.into_iter();
        let gone = &self.plan.detached;
        let roots: Vec<u64> =
            roots.map(|(id, _)| id).filter(|id| !gone.contains(id)).map(|id| id.0).collect();
        // Numbers of snapshots have 28 bits.
        let counter = self.plan.last.numbers.snapshot as u32;
        Ok(self.image.section(sections::SNAPSHOT, |to| to.no_snapshots(counter, &roots))?)
    }

    fn cache(&mut self) -> Result<(), ExportError> {
        let pools = cache::pools_after(self.store, "", usize::MAX)?.into_iter();
        let directives = cache::directives_from(self.store, 0, usize::MAX)?.into_iter();
        let cache = fsimage::Cache {
            next_directive: self.plan.last.numbers.cache_directive + 1,
            pools: pools.map(cache_pool).collect(),
            directives: directives.map(cache_directive).collect(),
        };
        Ok(self.image.section(sections::CACHE_MANAGER, |to| to.cache(&cache))?)
    }
}

fn cache_pool(of: cache::CachePool) -> fsimage::CachePool {
    fsimage::CachePool {
        name: of.name,
        owner: of.owner,
        group: of.group,
        mode: of.mode,
        limit: Some(of.limit),
        ttl_max_ms: Some(of.ttl_max_ms),
        replication: of.replication.into(),
    }
}

fn cache_directive(of: cache::CacheDirective) -> fsimage::CacheDirective {
    fsimage::CacheDirective {
        id: of.id,
        path: of.path,
        replication: of.replication.into(),
        pool: of.pool,
        expires_ms: of.expires_ms,
    }
}

/// Writes the children of one directory, and forgets them.
fn children_to<W: Write>(
    entries: &mut Vec<Entry>,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let Some(parent) = entries.first().map(|first| first.parent) else { return Ok(()) };
    entries.sort_by(|one, other| compare_names(&one.name, &other.name));
    let children: Vec<u64> = entries.drain(..).map(|entry| entry.child.0).collect();
    Ok(to.children(parent.0, &children)?)
}

fn policy(of: &PolicyInfo) -> EcPolicy {
    let schema = &of.policy.schema;
    EcPolicy {
        id: of.policy.id.0.into(),
        name: of.policy.name.clone(),
        codec: schema.codec.as_str().to_string(),
        data_units: schema.k.into(),
        parity_units: schema.m.into(),
        cell_len: of.policy.cell_len,
        state: match of.state {
            PolicyState::Disabled => fsimage::PolicyState::Disabled,
            PolicyState::Enabled => fsimage::PolicyState::Enabled,
            PolicyState::Removed => fsimage::PolicyState::Removed,
        },
    }
}

fn inode_to<W: Write>(
    store: &dyn StoreRead,
    inode: &Inode,
    to: &mut image::Records<'_, W>,
) -> Result<(), ExportError> {
    let mut attributes = export::attributes(store, inode.id)?;
    if let Kind::Directory(directory) = &inode.kind {
        attributes.extend(policies_of(store, inode, directory)?);
    }
    let xattrs: Vec<image::XAttr<'_>> = attributes
        .iter()
        .map(|(space, name, value)| image::XAttr { namespace: *space as u8, name, value })
        .collect();
    let acl: Vec<image::AclEntry<'_>> = inode.acl.iter().map(acl_entry).collect();
    let common = image::Common {
        id: inode.id.0,
        name: inode.name.as_bytes(),
        owner: &inode.owner,
        group: &inode.group,
        mode: inode.mode,
        acl: &acl,
        xattrs: &xattrs,
        modified_ms: inode.mtime,
    };
    match &inode.kind {
        Kind::Directory(directory) => {
            let is_root = inode.id == InodeId::ROOT;
            let (quota, types) = quota(directory.quota.as_ref(), is_root);
            to.directory(&common, &image::Directory { type_quotas: &types, ..quota })?;
        }
        Kind::File(file) => {
            let blocks: Vec<fsimage::Block> = export::blocks(store, inode.id)?
                .iter()
                .map(|of| fsimage::Block { id: of.id.0, stamp: of.gs.0, len: of.len })
                .collect();
            to.file(&common, &file_of(inode, file), &blocks)?;
        }
    }
    Ok(())
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

fn file_of<'a>(inode: &Inode, file: &'a File) -> image::File<'a> {
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
