//! Changes of the tree: directories, names, attributes.

use cairn_namespace::acl::CreateMode;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_times::SetTimes;
use cairn_namespace::{Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_stripe::StorageType;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::paths::check_path_len;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer, unexpected};

/// `HdfsConstants.QUOTA_DONT_SET`: leave the limit as it is.
const QUOTA_DONT_SET: u64 = i64::MAX as u64;
/// `HdfsConstants.QUOTA_RESET` (-1): no limit any more.
const QUOTA_RESET: u64 = u64::MAX;
/// Permission bits that inodes keep: the nine and the sticky one.
const MODE_MASK: u32 = 0o1777;

/// Permission bits of a message.
pub(super) fn mode(permission: &pb::FsPermissionProto) -> u16 {
    (permission.perm & MODE_MASK) as u16
}

/// The mode of something new. Clients send it with their umask applied, newer ones also without.
pub(super) fn create_mode(
    masked: &pb::FsPermissionProto,
    unmasked: Option<&pb::FsPermissionProto>,
) -> CreateMode {
    CreateMode { masked: mode(masked), unmasked: unmasked.map(mode) }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#mkdirs`.
pub async fn mkdirs(node: &NameNode, call: &Call) -> Answer {
    let request: pb::MkdirsRequestProto = call.decode()?;
    check_path_len("mkdirs", &request.src)?;
    node.check_safe_mode(|| format!("Cannot create directory {}", request.src))?;
    let mode = create_mode(&request.masked, request.unmasked.as_ref());
    let command = Mkdirs { path: request.src, mode, create_parent: request.create_parent };
    let outcome = node.submit(call, command).await?;
    answer(&pb::MkdirsResponseProto { result: flag(outcome)? })
}

fn flag(outcome: Outcome) -> Result<bool, Refusal> {
    match outcome {
        Outcome::Flag(flag) => Ok(flag),
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#renameTo` without options.
pub async fn rename(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RenameRequestProto = call.decode()?;
    check_path_len("rename", &request.dst)?;
    node.check_change(call, || format!("Cannot rename {}", request.src))?;
    let outcome = node.submit(call, Rename { src: request.src, dst: request.dst }).await?;
    answer(&pb::RenameResponseProto { result: flag(outcome)? })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#renameTo` with options.
pub async fn rename2(node: &NameNode, call: &Call) -> Answer {
    let request: pb::Rename2RequestProto = call.decode()?;
    check_path_len("rename", &request.dst)?;
    node.check_change(call, || format!("Cannot rename {}", request.src))?;
    let (overwrite, to_trash) = (request.overwrite_dest, request.move_to_trash.unwrap_or_default());
    let command = RenameTo { src: request.src, dst: request.dst, overwrite, to_trash };
    node.submit(call, command).await?;
    answer(&pb::Rename2ResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#delete`.
pub async fn delete(node: &NameNode, call: &Call) -> Answer {
    let request: pb::DeleteRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot delete {}", request.src))?;
    let command = Delete { path: request.src, recursive: request.recursive };
    let outcome = node.submit(call, command).await?;
    match outcome {
        Outcome::Removed { done, .. } => answer(&pb::DeleteResponseProto { result: done }),
        other => Err(unexpected(&other)),
    }
}

/// Source: Hadoop 3.5.0 `FSNamesystem#concat`.
pub async fn concat(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ConcatRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot concat {}", request.trg))?;
    node.submit(call, Concat { target: request.trg, sources: request.srcs }).await?;
    answer(&pb::ConcatResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setPermission`.
pub async fn set_permission(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetPermissionRequestProto = call.decode()?;
    node.check_safe_mode(|| format!("Cannot set permission for {}", request.src))?;
    let mode = mode(&request.permission);
    node.submit(call, SetPermission { path: request.src, mode }).await?;
    answer(&pb::SetPermissionResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setOwner`.
pub async fn set_owner(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetOwnerRequestProto = call.decode()?;
    node.check_safe_mode(|| format!("Cannot set owner for {}", request.src))?;
    let (owner, group) = (request.username, request.groupname);
    node.submit(call, SetOwner { path: request.src, owner, group }).await?;
    answer(&pb::SetOwnerResponseProto {})
}

/// A time of -1 stays as it is.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#setTimes`.
pub async fn set_times(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetTimesRequestProto = call.decode()?;
    node.check_safe_mode(|| format!("Cannot set times {}", request.src))?;
    // Java reads them as signed, and leaves be what a negative one is for.
    let time = |ms: u64| (ms <= i64::MAX as u64).then_some(ms);
    let (mtime, atime) = (time(request.mtime), time(request.atime));
    node.submit(call, SetTimes { path: request.src, mtime, atime }).await?;
    answer(&pb::SetTimesResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setReplication`.
pub async fn set_replication(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetReplicationRequestProto = call.decode()?;
    node.check_safe_mode(|| format!("Cannot set replication for {}", request.src))?;
    // Java's short.
    let copies = request.replication as i16;
    let Ok(replication) = u16::try_from(copies) else {
        return Err(Refusal::io(format!(
            "Requested replication factor of {copies} is less than the required minimum of {} for {}",
            node.config.min_replication, request.src
        )));
    };
    let outcome = node.submit(call, SetReplication { path: request.src, replication }).await?;
    let Outcome::ReplicationSet { done, .. } = outcome else { return Err(unexpected(&outcome)) };
    answer(&pb::SetReplicationResponseProto { result: done })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setQuota`.
pub async fn set_quota(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetQuotaRequestProto = call.decode()?;
    let operation = match (request.namespace_quota, request.storagespace_quota) {
        (QUOTA_RESET, QUOTA_DONT_SET) => "clearQuota",
        (QUOTA_DONT_SET, QUOTA_RESET) => "clearSpaceQuota",
        (_, QUOTA_DONT_SET) => "setQuota",
        _ => "setSpaceQuota",
    };
    if !node.config.owners_set_quotas {
        node.check_superuser_for(call, operation).await?;
    }
    node.check_safe_mode(|| format!("Cannot set quota on {}", request.path))?;
    let (names, space) = (request.namespace_quota as i64, request.storagespace_quota as i64);
    if names < -1 || space < -1 {
        node.query(call, |store, caller| query::check_quota(store, caller, &request.path)).await?;
        let message = format!("Illegal value for nsQuota or ssQuota : {names} and {space}");
        return Err(Refusal::new(class::ILLEGAL_ARGUMENT, message));
    }
    let change = |value: u64| match value {
        QUOTA_DONT_SET => QuotaChange::Keep,
        QUOTA_RESET => QuotaChange::Clear,
        max => QuotaChange::Set { max },
    };
    let names_max = change(request.namespace_quota);
    let space_max = change(request.storagespace_quota);
    if let Some(kind) = request.storage_type {
        let kind = StorageType::by_number(kind);
        let command = SetTypeQuota {
            path: request.path,
            kind: kind.rank() as u8,
            space_max,
            keeps_names: request.namespace_quota == QUOTA_DONT_SET,
            names: request.namespace_quota,
        };
        node.submit(call, command).await?;
        return answer(&pb::SetQuotaResponseProto {});
    }
    node.submit(call, SetQuota { path: request.path, names_max, space_max }).await?;
    answer(&pb::SetQuotaResponseProto {})
}
