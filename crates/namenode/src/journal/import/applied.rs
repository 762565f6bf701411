//! Operations of Hadoop's edit log, carried out on the namespace that was made of the image.
//!
//! Source: Hadoop 3.5.0 `FSEditLogLoader#applyEditLogOp`.

use super::error::ImportError;
use super::out::Out;
use super::turned::{EC_POLICY, MODE_MASK, attribute_space, policy_name};
use cairn_fsimage::AclKind as ImageAclKind;
use cairn_fsimage::edits::{self, AddFile, CacheDirectiveInfo, CachePoolInfo, Operation, Owned};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::block::BlockRef;
use cairn_namespace::cache::{self, CacheDirective, CachePool};
use cairn_namespace::import::cache_pool;
use cairn_namespace::import::edit::{self, Attribute, New, NewFile, Truncated};
use cairn_namespace::inode::{FileRedundancy, InodeId, Writer};
use cairn_namespace::ops::cache_pool::RemoveCachePool;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::ec::{
    AddEcPolicies, DisableEcPolicy, EnableEcPolicy, PolicySpec, RemoveEcPolicy,
};
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_times::SetTimes;
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot, RenameSnapshot,
};
use cairn_namespace::ops::xattr::XAttrSpace;
use cairn_namespace::store::{StoreRead, StoreTxn};
use cairn_namespace::{Outcome, policy_admin};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};
use std::fmt::Display;

/// The mode of a pool for which none was told. Source: Hadoop 3.5.0 `FsPermission#getCachePoolDefault`.
const POOL_MODE: u16 = 0o755;

/// Why an operation is not carried out.
type Why = String;

fn failed(error: impl Display) -> Why {
    error.to_string()
}

/// Carries operations out.
#[derive(Default)]
pub(super) struct Applier {
    /// A rolling upgrade has begun, and not ended.
    is_upgrading: bool,
    /// There was something of delegation tokens.
    pub has_tokens: bool,
}

impl Applier {
    /// Carries one out, or says why it cannot be.
    pub fn apply(&mut self, out: &mut Out<'_>, operation: &Operation) -> Result<(), Why> {
        let store = out.records().map_err(failed)?;
        match operation {
            Operation::Boundary => Ok(()),
            Operation::Token => {
                self.has_tokens = true;
                Ok(())
            }
            Operation::RollingUpgradeStart => {
                self.is_upgrading = true;
                Ok(())
            }
            Operation::RollingUpgradeFinalize => {
                self.is_upgrading = false;
                Ok(())
            }
            Operation::Symlink { path } => Err(format!("{path} is a symbolic link")),
            Operation::LegacyStamp => Err("blocks of Hadoop 1".to_string()),
            other => files(store, other),
        }
    }

    /// Ends when all were carried out: what was deleted goes, and quotas are counted.
    pub fn end(&self, out: &mut Out<'_>) -> Result<(), ImportError> {
        if self.is_upgrading {
            let what = "a rolling upgrade that is not finalized".to_string();
            return Err(ImportError::Refused(vec![what]));
        }
        edit::purge(out.records()?)?;
        out.write_out()?;
        Ok(edit::recount(out.records()?)?)
    }
}

/// Operations on files and their blocks; the others follow.
fn files(store: &mut dyn StoreTxn, operation: &Operation) -> Result<(), Why> {
    match operation {
        Operation::Add(file) => add(store, file),
        Operation::Close { path, modified_ms, accessed_ms, blocks } => {
            let times = (*modified_ms, *accessed_ms);
            edit::close(store, path, &references(blocks), times).map_err(failed)
        }
        Operation::Append { path, client, machine, new_block } => {
            edit::reopen(store, path, &writer(client, machine), *new_block).map_err(failed)
        }
        Operation::AddBlock { path, before, block } => {
            let before = before.as_ref().map(reference);
            edit::add_block(store, path, before, reference(block)).map_err(failed)
        }
        Operation::UpdateBlocks { path, blocks } => {
            edit::set_blocks(store, path, &references(blocks)).map_err(failed)
        }
        Operation::Truncate { path, client, machine, new_len, time_ms, block } => {
            let truncated = Truncated {
                path: path.clone(),
                new_len: *new_len,
                writer: writer(client, machine),
                time_ms: *time_ms,
                block: block.as_ref().map(reference),
            };
            edit::truncate(store, &truncated).map_err(failed)
        }
        Operation::ReassignLease { path, new_holder, .. } => {
            edit::reassign(store, path, new_holder).map_err(failed)
        }
        Operation::Stamp(stamp) => {
            edit::stamp_given(store, GenerationStamp(*stamp)).map_err(failed)
        }
        Operation::AllocateBlock(id) => edit::block_given(store, BlockId(*id)).map_err(failed),
        Operation::SetReplication { path, replication } => {
            let (path, replication) = (path.clone(), *replication);
            let command = SetReplication { path, replication };
            match edit::command(store, 0, command).map_err(failed)? {
                Outcome::ReplicationSet { done: true, .. } => Ok(()),
                _ => Err("there is no such file with copies".to_string()),
            }
        }
        Operation::Concat { target, sources, time_ms } => {
            let command = Concat { target: target.clone(), sources: sources.clone() };
            done(edit::command(store, *time_ms, command))
        }
        other => tree(store, other),
    }
}

/// Operations that make, move and remove names, and on snapshots.
fn tree(store: &mut dyn StoreTxn, operation: &Operation) -> Result<(), Why> {
    match operation {
        Operation::Mkdir { inode, path, time_ms, owned, acl, xattrs } => {
            let new = new(store, (*inode, path, *time_ms), owned, acl, xattrs)?;
            edit::make_directory(store, &new).map_err(failed)
        }
        Operation::Delete { path, time_ms } => delete(store, path, *time_ms),
        Operation::RenameOld { from, to, time_ms } => {
            let command = Rename { src: from.clone(), dst: to.clone() };
            match edit::command(store, *time_ms, command).map_err(failed)? {
                Outcome::Flag(true) => Ok(()),
                _ => Err(format!("{from} cannot be renamed to {to}")),
            }
        }
        Operation::Rename { from, to, time_ms, overwrite } => {
            let (src, dst, overwrite) = (from.clone(), to.clone(), *overwrite);
            let command = RenameTo { src, dst, overwrite, to_trash: false };
            done(edit::command(store, *time_ms, command))
        }
        Operation::AllowSnapshot { path } => {
            done(edit::command(store, 0, AllowSnapshot { path: path.clone() }))
        }
        Operation::DisallowSnapshot { path } => {
            done(edit::command(store, 0, DisallowSnapshot { path: path.clone() }))
        }
        Operation::CreateSnapshot { path, name, time_ms } => {
            let command = CreateSnapshot { path: path.clone(), name: name.clone() };
            done(edit::command(store, *time_ms, command))
        }
        Operation::DeleteSnapshot { path, name, time_ms } => {
            let command = DeleteSnapshot { path: path.clone(), name: name.clone() };
            done(edit::command(store, *time_ms, command))
        }
        Operation::RenameSnapshot { path, from, to, time_ms } => {
            let (path, from, to) = (path.clone(), from.clone(), to.clone());
            done(edit::command(store, *time_ms, RenameSnapshot { path, from, to }))
        }
        other => attributes(store, other),
    }
}

/// Operations that change what files and directories are like.
fn attributes(store: &mut dyn StoreTxn, operation: &Operation) -> Result<(), Why> {
    match operation {
        Operation::SetPermissions { path, mode } => {
            let (path, mode) = (path.clone(), *mode & MODE_MASK);
            done(edit::command(store, 0, SetPermission { path, mode }))
        }
        Operation::SetOwner { path, owner, group } => {
            let (path, owner, group) = (path.clone(), owner.clone(), group.clone());
            done(edit::command(store, 0, SetOwner { path, owner, group }))
        }
        Operation::Times { path, modified_ms, accessed_ms } => {
            let set = |ms: i64| u64::try_from(ms).ok();
            let (mtime, atime) = (set(*modified_ms), set(*accessed_ms));
            done(edit::command(store, 0, SetTimes { path: path.clone(), mtime, atime }))
        }
        Operation::SetQuota { path, names, space } => {
            let (names_max, space_max) = (quota(*names)?, quota(*space)?);
            done(edit::command(store, 0, SetQuota { path: path.clone(), names_max, space_max }))
        }
        Operation::SetTypeQuota { path, storage_type, space } => {
            let kind = u8::try_from(*storage_type);
            let command = SetTypeQuota {
                path: path.clone(),
                // They stand there in Hadoop's order.
                kind: kind.map_err(|_| "a type of storage that is not known")?,
                space_max: quota(*space)?,
                keeps_names: true,
                names: 0,
            };
            done(edit::command(store, 0, command))
        }
        Operation::SetStoragePolicy { path, policy } => {
            edit::set_storage_policy(store, path, *policy).map_err(failed)
        }
        Operation::SetAcl { path, entries } => {
            edit::set_acl(store, path, &acl_of(entries)).map_err(failed)
        }
        Operation::SetXAttrs { path, xattrs } => {
            let attributes = attributes_of(store, xattrs, true)?;
            edit::set_attributes(store, path, &attributes).map_err(failed)
        }
        Operation::RemoveXAttrs { path, xattrs } => {
            let attributes = attributes_of(store, xattrs, false)?;
            edit::set_attributes(store, path, &attributes).map_err(failed)
        }
        other => others(store, other),
    }
}

/// Operations on policies and what is to be kept in memory.
fn others(store: &mut dyn StoreTxn, operation: &Operation) -> Result<(), Why> {
    match operation {
        Operation::AddEcPolicy(of) => {
            let codec = of.codec.clone();
            let (k, m, cell_len) = (of.data_units, of.parity_units, of.cell_len);
            let policies = vec![PolicySpec { codec, k, m, cell_len }];
            let added = edit::command(store, 0, AddEcPolicies { policies }).map_err(failed)?;
            match added {
                Outcome::PoliciesAdded(all) => {
                    all.into_iter().find_map(|of| of.error).map_or(Ok(()), Err)
                }
                _ => Ok(()),
            }
        }
        Operation::EnableEcPolicy(name) => {
            done(edit::command(store, 0, EnableEcPolicy { name: name.clone() }))
        }
        Operation::DisableEcPolicy(name) => {
            done(edit::command(store, 0, DisableEcPolicy { name: name.clone() }))
        }
        Operation::RemoveEcPolicy(name) => {
            done(edit::command(store, 0, RemoveEcPolicy { name: name.clone() }))
        }
        Operation::AddCacheDirective(of) => {
            let directive = directive(store, of, None)?;
            edit::add_cache_directive(store, &directive).map_err(failed)
        }
        Operation::ModifyCacheDirective(of) => {
            let before = cache::directive(store, of.id).map_err(failed)?;
            let before = before.ok_or_else(|| format!("there is no directive {}", of.id))?;
            let directive = directive(store, of, Some(before))?;
            edit::add_cache_directive(store, &directive).map_err(failed)
        }
        Operation::RemoveCacheDirective(id) => {
            edit::remove_cache_directive(store, *id).map_err(failed)
        }
        Operation::AddCachePool(of) => {
            let before = CachePool {
                name: of.name.clone(),
                owner: String::new(),
                group: String::new(),
                mode: POOL_MODE,
                limit: cache::UNLIMITED,
                replication: 1,
                ttl_max_ms: cache::TTL_MAX_MS,
            };
            cache_pool(store, &pool(of, before)).map_err(failed)
        }
        Operation::ModifyCachePool(of) => {
            let before = cache::pool(store, &of.name).map_err(failed)?;
            let before = before.ok_or_else(|| format!("there is no pool {}", of.name))?;
            cache_pool(store, &pool(of, before)).map_err(failed)
        }
        Operation::RemoveCachePool(name) => {
            done(edit::command(store, 0, RemoveCachePool { name: name.clone() }))
        }
        _ => Err("it is not known here".to_string()),
    }
}

fn done(outcome: cairn_namespace::Result<Outcome>) -> Result<(), Why> {
    outcome.map(|_| ()).map_err(failed)
}

fn delete(store: &mut dyn StoreTxn, path: &str, time_ms: u64) -> Result<(), Why> {
    let command = Delete { path: path.to_string(), recursive: true };
    match edit::command(store, time_ms, command).map_err(failed)? {
        Outcome::Removed { done: true, .. } => Ok(()),
        _ => Err(format!("there is no {path} to delete")),
    }
}

/// Makes a file; or opens one that is there, as logs of old clients have it, and gives it these blocks.
fn add(store: &mut dyn StoreTxn, file: &AddFile) -> Result<(), Why> {
    let path = &file.path;
    let mut is_there = edit::is_there(store, path).map_err(failed)?;
    if is_there && file.overwrite {
        delete(store, path, file.modified_ms)?;
        is_there = false;
    }
    let writer = writer(&file.client, &file.machine);
    if is_there {
        edit::reopen(store, path, &writer, false).map_err(failed)?;
        return edit::set_blocks(store, path, &references(&file.blocks)).map_err(failed);
    }
    let of = (file.inode, path.as_str(), file.modified_ms);
    let new = new(store, of, &file.owned, &file.acl, &file.xattrs)?;
    let redundancy = match PolicyId(file.ec_policy) {
        PolicyId::REPLICATION => FileRedundancy::Replicated(file.replication),
        id => {
            policy_admin::by_id(store, id).map_err(failed)?;
            FileRedundancy::Striped(id)
        }
    };
    let file = NewFile {
        redundancy,
        block_size: file.block_len,
        storage_policy: file.storage_policy,
        accessed_ms: file.accessed_ms,
        writer,
    };
    edit::make_file(store, &new, &file).map_err(failed)
}

fn new(
    store: &dyn StoreRead,
    (inode, path, time_ms): (u64, &str, u64),
    owned: &Owned,
    acl: &[edits::AclEntry],
    xattrs: &[edits::XAttr],
) -> Result<New, Why> {
    Ok(New {
        path: path.to_string(),
        id: InodeId(inode),
        owner: owned.owner.clone(),
        group: owned.group.clone(),
        mode: owned.mode & MODE_MASK,
        acl: acl_of(acl),
        attributes: attributes_of(store, xattrs, true)?,
        time_ms,
    })
}

fn writer(client: &str, machine: &str) -> Writer {
    let (holder, client_machine) = (client.to_string(), machine.to_string());
    Writer { holder, client_machine, began_after: None }
}

fn reference(of: &edits::Block) -> BlockRef {
    BlockRef { id: BlockId(of.id), gs: GenerationStamp(of.stamp), len: of.len }
}

fn references(of: &[edits::Block]) -> Vec<BlockRef> {
    of.iter().map(reference).collect()
}

/// A limit: -1 clears it, and the largest number leaves it.
///
/// Source: Hadoop 3.5.0 `HdfsConstants#QUOTA_RESET`, `#QUOTA_DONT_SET`.
fn quota(of: i64) -> Result<QuotaChange, Why> {
    match of {
        -1 => Ok(QuotaChange::Clear),
        i64::MAX => Ok(QuotaChange::Keep),
        _ => match u64::try_from(of) {
            Ok(max) => Ok(QuotaChange::Set { max }),
            Err(_) => Err("a quota is negative".to_string()),
        },
    }
}

fn acl_of(entries: &[edits::AclEntry]) -> Vec<AclEntry> {
    let entry = |of: &edits::AclEntry| AclEntry {
        scope: if of.is_default { AclScope::Default } else { AclScope::Access },
        kind: match of.kind {
            ImageAclKind::User => AclKind::User,
            ImageAclKind::Group => AclKind::Group,
            ImageAclKind::Mask => AclKind::Mask,
            ImageAclKind::Other => AclKind::Other,
        },
        name: of.name.clone(),
        permission: of.permission,
    };
    entries.iter().map(entry).collect()
}

fn attributes_of(
    store: &dyn StoreRead,
    xattrs: &[edits::XAttr],
    sets: bool,
) -> Result<Vec<Attribute>, Why> {
    let attribute = |of: &edits::XAttr| {
        let space = attribute_space(of.namespace)?;
        if space == XAttrSpace::System {
            return match of.name.as_str() {
                EC_POLICY if sets => Ok(Attribute::Policy(Some(policy_of(store, &of.value)?))),
                EC_POLICY => Ok(Attribute::Policy(None)),
                name => Err(format!("attribute system.{name}")),
            };
        }
        let (name, value) = (of.name.clone(), sets.then(|| of.value.clone()));
        Ok(Attribute::Plain { space, name, value })
    };
    xattrs.iter().map(attribute).collect()
}

/// The policy whose name an attribute has.
fn policy_of(store: &dyn StoreRead, value: &[u8]) -> Result<PolicyId, Why> {
    let name = policy_name(value);
    if name.eq_ignore_ascii_case(policy_admin::REPLICATION_NAME) {
        return Ok(PolicyId::REPLICATION);
    }
    let policy = policy_admin::by_name(store, name).map_err(failed)?;
    policy.map(|of| of.policy.id).ok_or_else(|| format!("erasure coding policy {name}"))
}

/// A directive as it is when `of` has changed the one before.
fn directive(
    store: &dyn StoreRead,
    of: &CacheDirectiveInfo,
    before: Option<CacheDirective>,
) -> Result<CacheDirective, Why> {
    let before = before.unwrap_or_else(|| CacheDirective {
        id: of.id,
        path: String::new(),
        replication: 1,
        pool: String::new(),
        expires_ms: 0,
    });
    let directive = CacheDirective {
        id: of.id,
        path: of.path.clone().unwrap_or(before.path),
        replication: of.replication.unwrap_or(before.replication),
        pool: of.pool.clone().unwrap_or(before.pool),
        expires_ms: of.expires_ms.unwrap_or(before.expires_ms),
    };
    match cache::pool(store, &directive.pool).map_err(failed)? {
        Some(_) => Ok(directive),
        None => Err(format!("there is no pool {}", directive.pool)),
    }
}

/// A pool as it is when `of` has changed the one before.
fn pool(of: &CachePoolInfo, before: CachePool) -> CachePool {
    CachePool {
        name: before.name,
        owner: of.owner.clone().unwrap_or(before.owner),
        group: of.group.clone().unwrap_or(before.group),
        mode: of.mode.unwrap_or(before.mode),
        limit: of.limit.unwrap_or(before.limit),
        replication: of.replication.unwrap_or(before.replication),
        ttl_max_ms: of.ttl_max_ms.unwrap_or(before.ttl_max_ms),
    }
}
