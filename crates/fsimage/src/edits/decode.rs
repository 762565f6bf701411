//! How an operation is written: its code, and the fields behind that.
//!
//! Source: Hadoop 3.5.0 `FSEditLogOpCodes`, `FSEditLogOp` and its classes.

use super::AclKind;
use super::field::Input;
use super::operation::{
    AclEntry, AddFile, CacheDirectiveInfo, CachePoolInfo, EcPolicyInfo, Operation, Owned, XAttr,
};
use crate::error::Malformed;
use crate::fields::Fields;

/// Hadoop's name of an operation; none for a code that Hadoop 3.5 does not write.
pub(super) fn name(code: u8) -> Option<&'static str> {
    Some(match code {
        0 => "OP_ADD",
        1 => "OP_RENAME_OLD",
        2 => "OP_DELETE",
        3 => "OP_MKDIR",
        4 => "OP_SET_REPLICATION",
        7 => "OP_SET_PERMISSIONS",
        8 => "OP_SET_OWNER",
        9 => "OP_CLOSE",
        10 => "OP_SET_GENSTAMP_V1",
        13 => "OP_TIMES",
        14 => "OP_SET_QUOTA",
        15 => "OP_RENAME",
        16 => "OP_CONCAT_DELETE",
        17 => "OP_SYMLINK",
        18 => "OP_GET_DELEGATION_TOKEN",
        19 => "OP_RENEW_DELEGATION_TOKEN",
        20 => "OP_CANCEL_DELEGATION_TOKEN",
        21 => "OP_UPDATE_MASTER_KEY",
        22 => "OP_REASSIGN_LEASE",
        23 => "OP_END_LOG_SEGMENT",
        24 => "OP_START_LOG_SEGMENT",
        25 => "OP_UPDATE_BLOCKS",
        26 => "OP_CREATE_SNAPSHOT",
        27 => "OP_DELETE_SNAPSHOT",
        28 => "OP_RENAME_SNAPSHOT",
        29 => "OP_ALLOW_SNAPSHOT",
        30 => "OP_DISALLOW_SNAPSHOT",
        31 => "OP_SET_GENSTAMP_V2",
        32 => "OP_ALLOCATE_BLOCK_ID",
        33 => "OP_ADD_BLOCK",
        34 => "OP_ADD_CACHE_DIRECTIVE",
        35 => "OP_REMOVE_CACHE_DIRECTIVE",
        36 => "OP_ADD_CACHE_POOL",
        37 => "OP_MODIFY_CACHE_POOL",
        38 => "OP_REMOVE_CACHE_POOL",
        39 => "OP_MODIFY_CACHE_DIRECTIVE",
        40 => "OP_SET_ACL",
        41 => "OP_ROLLING_UPGRADE_START",
        42 => "OP_ROLLING_UPGRADE_FINALIZE",
        43 => "OP_SET_XATTR",
        44 => "OP_REMOVE_XATTR",
        45 => "OP_SET_STORAGE_POLICY",
        46 => "OP_TRUNCATE",
        47 => "OP_APPEND",
        48 => "OP_SET_QUOTA_BY_STORAGETYPE",
        49 => "OP_ADD_ERASURE_CODING_POLICY",
        50 => "OP_ENABLE_ERASURE_CODING_POLICY",
        51 => "OP_DISABLE_ERASURE_CODING_POLICY",
        52 => "OP_REMOVE_ERASURE_CODING_POLICY",
        _ => return None,
    })
}

/// Reads the fields of an operation; `has_times` says whether those on snapshots have times.
pub(super) fn operation(
    code: u8,
    of: &mut Input<'_>,
    has_times: bool,
) -> Result<Operation, Malformed> {
    Ok(match code {
        0 => Operation::Add(Box::new(add(of)?)),
        1 => {
            let (from, to, time_ms) = (of.text()?, of.text()?, of.count()?);
            call(of)?;
            Operation::RenameOld { from, to, time_ms }
        }
        2 => {
            let (path, time_ms) = (of.text()?, of.count()?);
            call(of)?;
            Operation::Delete { path, time_ms }
        }
        3 => {
            let (inode, path, time_ms) = (of.count()?, of.text()?, of.count()?);
            of.long()?;
            let (owned, acl, xattrs) = (owned(of)?, acl(of)?, xattrs(of.message()?)?.1);
            Operation::Mkdir { inode, path, time_ms, owned, acl, xattrs }
        }
        4 => Operation::SetReplication { path: of.text()?, replication: of.short()? },
        7 => Operation::SetPermissions { path: of.text()?, mode: of.short()? },
        8 => {
            let named = |name: String| Some(name).filter(|name| !name.is_empty());
            let (path, owner, group) = (of.text()?, named(of.text()?), named(of.text()?));
            Operation::SetOwner { path, owner, group }
        }
        9 => close(of)?,
        10 => {
            of.long()?;
            Operation::LegacyStamp
        }
        13 => {
            Operation::Times { path: of.text()?, modified_ms: of.long()?, accessed_ms: of.long()? }
        }
        14 => Operation::SetQuota { path: of.text()?, names: of.long()?, space: of.long()? },
        15 => rename(of)?,
        16 => concat(of)?,
        17 => {
            of.long()?;
            let path = of.text()?;
            of.text()?;
            of.long()?;
            of.long()?;
            owned(of)?;
            call(of)?;
            Operation::Symlink { path }
        }
        18..=21 => {
            of.rest();
            Operation::Token
        }
        22 => Operation::ReassignLease {
            holder: of.text()?,
            path: of.text()?,
            new_holder: of.text()?,
        },
        23 | 24 => Operation::Boundary,
        25 => {
            let (path, blocks) = (of.text()?, of.compact_blocks()?);
            call(of)?;
            Operation::UpdateBlocks { path, blocks }
        }
        26 | 27 => {
            let (path, name) = (of.text()?, of.text()?);
            let time_ms = if has_times { of.count()? } else { 0 };
            call(of)?;
            match code {
                26 => Operation::CreateSnapshot { path, name, time_ms },
                _ => Operation::DeleteSnapshot { path, name, time_ms },
            }
        }
        28 => {
            let (path, from, to) = (of.text()?, of.text()?, of.text()?);
            let time_ms = if has_times { of.count()? } else { 0 };
            call(of)?;
            Operation::RenameSnapshot { path, from, to, time_ms }
        }
        29 => Operation::AllowSnapshot { path: of.text()? },
        30 => Operation::DisallowSnapshot { path: of.text()? },
        31 => Operation::Stamp(of.count()?),
        32 => Operation::AllocateBlock(of.long()?),
        33 => add_block(of)?,
        34 => called(of, |of| Ok(Operation::AddCacheDirective(directive(of)?)))?,
        35 => called(of, |of| Ok(Operation::RemoveCacheDirective(of.count()?)))?,
        36 => called(of, |of| Ok(Operation::AddCachePool(pool(of)?)))?,
        37 => called(of, |of| Ok(Operation::ModifyCachePool(pool(of)?)))?,
        38 => called(of, |of| Ok(Operation::RemoveCachePool(of.text()?)))?,
        39 => called(of, |of| Ok(Operation::ModifyCacheDirective(directive(of)?)))?,
        40 => set_acl(of.message()?)?,
        41 | 42 => {
            of.long()?;
            if code == 41 {
                Operation::RollingUpgradeStart
            } else {
                Operation::RollingUpgradeFinalize
            }
        }
        43 | 44 => called(of, |of| {
            let (path, xattrs) = xattrs(of.message()?)?;
            let path = path.ok_or(Malformed("it has no path"))?;
            Ok(match code {
                43 => Operation::SetXAttrs { path, xattrs },
                _ => Operation::RemoveXAttrs { path, xattrs },
            })
        })?,
        45 => Operation::SetStoragePolicy { path: of.text()?, policy: of.byte()? },
        46 => truncate(of)?,
        47 => {
            let (path, client, machine) = (of.text()?, of.text()?, of.text()?);
            let new_block = of.flag()?;
            call(of)?;
            Operation::Append { path, client, machine, new_block }
        }
        48 => {
            Operation::SetTypeQuota { path: of.text()?, storage_type: of.int()?, space: of.long()? }
        }
        49 => called(of, |of| Ok(Operation::AddEcPolicy(ec_policy(of)?)))?,
        50 => called(of, |of| Ok(Operation::EnableEcPolicy(of.text()?)))?,
        51 => called(of, |of| Ok(Operation::DisableEcPolicy(of.text()?)))?,
        52 => called(of, |of| Ok(Operation::RemoveEcPolicy(of.text()?)))?,
        _ => return Err(Malformed("it is not known")),
    })
}

/// The client's call, which is of no use any more.
fn call(of: &mut Input<'_>) -> Result<(), Malformed> {
    of.short_bytes()?;
    of.int()?;
    Ok(())
}

fn called<'a>(
    of: &mut Input<'a>,
    read: impl FnOnce(&mut Input<'a>) -> Result<Operation, Malformed>,
) -> Result<Operation, Malformed> {
    let operation = read(of)?;
    call(of)?;
    Ok(operation)
}

fn owned(of: &mut Input<'_>) -> Result<Owned, Malformed> {
    Ok(Owned { owner: of.utf8()?, group: of.utf8()?, mode: of.short()? })
}

/// What files have alike when they are made and closed.
fn file(of: &mut Input<'_>) -> Result<AddFile, Malformed> {
    Ok(AddFile {
        inode: of.count()?,
        path: of.text()?,
        replication: of.short()?,
        modified_ms: of.count()?,
        accessed_ms: of.count()?,
        block_len: of.count()?,
        blocks: of.blocks()?,
        owned: owned(of)?,
        ..AddFile::default()
    })
}

fn add(of: &mut Input<'_>) -> Result<AddFile, Malformed> {
    let file = file(of)?;
    let file = AddFile {
        acl: acl(of)?,
        xattrs: xattrs(of.message()?)?.1,
        client: of.text()?,
        machine: of.text()?,
        overwrite: of.flag()?,
        storage_policy: of.byte()?,
        ec_policy: of.byte()?,
        ..file
    };
    call(of)?;
    Ok(file)
}

fn close(of: &mut Input<'_>) -> Result<Operation, Malformed> {
    let AddFile { path, modified_ms, accessed_ms, blocks, .. } = file(of)?;
    Ok(Operation::Close { path, modified_ms, accessed_ms, blocks })
}

fn add_block(of: &mut Input<'_>) -> Result<Operation, Malformed> {
    let (path, blocks) = (of.text()?, of.compact_blocks()?);
    call(of)?;
    let (before, block) = match blocks[..] {
        [block] => (None, block),
        [before, block] => (Some(before), block),
        _ => return Err(Malformed("it has not one block or two")),
    };
    Ok(Operation::AddBlock { path, before, block })
}

fn truncate(of: &mut Input<'_>) -> Result<Operation, Malformed> {
    let (path, client, machine) = (of.text()?, of.text()?, of.text()?);
    let (new_len, time_ms, blocks) = (of.count()?, of.count()?, of.compact_blocks()?);
    let block = match blocks[..] {
        [] => None,
        [block] => Some(block),
        _ => return Err(Malformed("it cuts several blocks off")),
    };
    Ok(Operation::Truncate { path, client, machine, new_len, time_ms, block })
}

/// Source: Hadoop 3.5.0 `Options.Rename`.
fn rename(of: &mut Input<'_>) -> Result<Operation, Malformed> {
    let (from, to, time_ms) = (of.text()?, of.text()?, of.count()?);
    let len = of.len(1)?;
    let options = of.bytes(len)?;
    if options.iter().any(|option| *option > 2) {
        return Err(Malformed("it has an option that is not known"));
    }
    call(of)?;
    Ok(Operation::Rename { from, to, time_ms, overwrite: options.contains(&1) })
}

fn concat(of: &mut Input<'_>) -> Result<Operation, Malformed> {
    let target = of.text()?;
    let len = of.len(2)?;
    let sources = (0..len).map(|_| of.text()).collect::<Result<_, _>>()?;
    let time_ms = of.count()?;
    call(of)?;
    Ok(Operation::Concat { target, sources, time_ms })
}

fn kind(number: u64) -> Result<AclKind, Malformed> {
    Ok(match number {
        0 => AclKind::User,
        1 => AclKind::Group,
        2 => AclKind::Mask,
        3 => AclKind::Other,
        _ => return Err(Malformed("an entry of a list speaks of nobody")),
    })
}

/// Source: Hadoop 3.5.0 `FSEditLogOp.AclEditLogUtil`.
fn acl(of: &mut Input<'_>) -> Result<Vec<AclEntry>, Malformed> {
    let len = of.len(1)?;
    (0..len)
        .map(|_| {
            let bits = of.byte()?;
            Ok(AclEntry {
                is_default: bits >> 5 & 1 == 1,
                kind: kind(u64::from(bits >> 3 & 3))?,
                permission: u16::from(bits & 7),
                name: (bits >> 6 & 1 == 1).then(|| of.text()).transpose()?,
            })
        })
        .collect()
}

/// Source: Hadoop 3.5.0 `AclEditLogProto`, `AclEntryProto`.
fn set_acl(message: &[u8]) -> Result<Operation, Malformed> {
    let (mut path, mut entries, mut fields) = (None, Vec::new(), Fields::of(message));
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => path = Some(value.text()?.to_string()),
            2 => entries.push(acl_entry(value.bytes()?)?),
            _ => return Err(Malformed("it has a field that is not known")),
        }
    }
    let path = path.ok_or(Malformed("it has no path"))?;
    Ok(Operation::SetAcl { path, entries })
}

fn acl_entry(message: &[u8]) -> Result<AclEntry, Malformed> {
    let mut entry = AclEntry { is_default: false, kind: AclKind::User, name: None, permission: 0 };
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => entry.kind = kind(value.number()?)?,
            2 => entry.is_default = value.number()? == 1,
            3 => entry.permission = (value.number()? & 7) as u16,
            4 => entry.name = Some(value.text()?.to_string()),
            _ => return Err(Malformed("an entry of a list has a field that is not known")),
        }
    }
    Ok(entry)
}

/// Source: Hadoop 3.5.0 `XAttrEditLogProto`, `XAttrProto`.
fn xattrs(message: &[u8]) -> Result<(Option<String>, Vec<XAttr>), Malformed> {
    let (mut path, mut all, mut fields) = (None, Vec::new(), Fields::of(message));
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => path = Some(value.text()?.to_string()),
            2 => all.push(xattr(value.bytes()?)?),
            _ => return Err(Malformed("it has a field that is not known")),
        }
    }
    Ok((path, all))
}

fn xattr(message: &[u8]) -> Result<XAttr, Malformed> {
    let (mut found, mut fields) = (XAttr::default(), Fields::of(message));
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => found.namespace = value.small()?,
            2 => found.name = value.text()?.to_string(),
            3 => found.value = value.bytes()?.to_vec(),
            _ => return Err(Malformed("an attribute has a field that is not known")),
        }
    }
    Ok(found)
}

/// Source: Hadoop 3.5.0 `FSImageSerialization#readCacheDirectiveInfo`.
fn directive(of: &mut Input<'_>) -> Result<CacheDirectiveInfo, Malformed> {
    let (id, flags) = (of.count()?, of.int()?);
    if flags & !0xf != 0 {
        return Err(Malformed("a directive has flags that are not known"));
    }
    let has = |bit: u32| flags & bit != 0;
    Ok(CacheDirectiveInfo {
        id,
        path: has(1).then(|| of.text()).transpose()?,
        replication: has(2).then(|| of.short()).transpose()?,
        pool: has(4).then(|| of.text()).transpose()?,
        expires_ms: has(8).then(|| of.count()).transpose()?,
    })
}

/// Source: Hadoop 3.5.0 `FSImageSerialization#readCachePoolInfo`.
fn pool(of: &mut Input<'_>) -> Result<CachePoolInfo, Malformed> {
    let (name, flags) = (of.text()?, of.int()?);
    if flags & !0x3f != 0 {
        return Err(Malformed("a pool has flags that are not known"));
    }
    let has = |bit: u32| flags & bit != 0;
    Ok(CachePoolInfo {
        name,
        owner: has(1).then(|| of.text()).transpose()?,
        group: has(2).then(|| of.text()).transpose()?,
        mode: has(4).then(|| of.short()).transpose()?,
        limit: has(8).then(|| of.count()).transpose()?,
        ttl_max_ms: has(0x10).then(|| of.count()).transpose()?,
        replication: has(0x20).then(|| of.short()).transpose()?,
    })
}

/// Source: Hadoop 3.5.0 `FSImageSerialization#readErasureCodingPolicy`.
fn ec_policy(of: &mut Input<'_>) -> Result<EcPolicyInfo, Malformed> {
    let policy = EcPolicyInfo {
        codec: of.text()?,
        data_units: of.int()?,
        parity_units: of.int()?,
        cell_len: of.int()?,
    };
    // Options of codecs; none of Hadoop's has any.
    for _ in 0..of.len(4)? {
        of.text()?;
        of.text()?;
    }
    Ok(policy)
}
