//! Access control lists.

use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::perm::STICKY;
use cairn_namespace::query;
use cairn_net::rpc_server::Call;
use cairn_wire::proto::hdfs as pb;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Entries of a message. Source: Hadoop 3.5.0 `PBHelperClient#convertAclEntry`.
fn entries(messages: &[pb::AclEntryProto]) -> Vec<AclEntry> {
    let entry = |message: &pb::AclEntryProto| AclEntry {
        scope: match message.scope() {
            pb::AclEntryProtoAclEntryScopeProto::Access => AclScope::Access,
            pb::AclEntryProtoAclEntryScopeProto::Default => AclScope::Default,
        },
        kind: match message.r#type() {
            pb::AclEntryProtoAclEntryTypeProto::User => AclKind::User,
            pb::AclEntryProtoAclEntryTypeProto::Group => AclKind::Group,
            pb::AclEntryProtoAclEntryTypeProto::Mask => AclKind::Mask,
            pb::AclEntryProtoAclEntryTypeProto::Other => AclKind::Other,
        },
        name: message.name.clone().filter(|name| !name.is_empty()),
        permission: (message.permissions & 7) as u16,
    };
    messages.iter().map(entry).collect()
}

pub(super) fn message(entry: AclEntry) -> pb::AclEntryProto {
    let scope = match entry.scope {
        AclScope::Access => pb::AclEntryProtoAclEntryScopeProto::Access,
        AclScope::Default => pb::AclEntryProtoAclEntryScopeProto::Default,
    };
    let kind = match entry.kind {
        AclKind::User => pb::AclEntryProtoAclEntryTypeProto::User,
        AclKind::Group => pb::AclEntryProtoAclEntryTypeProto::Group,
        AclKind::Mask => pb::AclEntryProtoAclEntryTypeProto::Mask,
        AclKind::Other => pb::AclEntryProtoAclEntryTypeProto::Other,
    };
    pb::AclEntryProto {
        r#type: kind as i32,
        scope: scope as i32,
        permissions: entry.permission.into(),
        name: entry.name,
    }
}

async fn change(
    node: &NameNode,
    call: &Call,
    what: &str,
    path: String,
    change: AclChange,
) -> Result<(), Refusal> {
    node.check_safe_mode(|| format!("Cannot {what} on {path}"))?;
    node.submit(call, ChangeAcl { path, change }).await?;
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSNamesystem#modifyAclEntries`.
pub async fn modify_acl_entries(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ModifyAclEntriesRequestProto = call.decode()?;
    let asked = AclChange::Modify { entries: entries(&request.acl_spec) };
    change(node, call, "modify ACL entries", request.src, asked).await?;
    answer(&pb::ModifyAclEntriesResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeAclEntries`.
pub async fn remove_acl_entries(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveAclEntriesRequestProto = call.decode()?;
    let asked = AclChange::Remove { entries: entries(&request.acl_spec) };
    change(node, call, "remove ACL entries", request.src, asked).await?;
    answer(&pb::RemoveAclEntriesResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeDefaultAcl`.
pub async fn remove_default_acl(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveDefaultAclRequestProto = call.decode()?;
    let asked = AclChange::RemoveDefault;
    change(node, call, "remove default ACL entries", request.src, asked).await?;
    answer(&pb::RemoveDefaultAclResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeAcl`.
pub async fn remove_acl(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveAclRequestProto = call.decode()?;
    change(node, call, "remove ACL", request.src, AclChange::RemoveAll).await?;
    answer(&pb::RemoveAclResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setAcl`.
pub async fn set_acl(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetAclRequestProto = call.decode()?;
    let asked = AclChange::Set { entries: entries(&request.acl_spec) };
    change(node, call, "set ACL", request.src, asked).await?;
    answer(&pb::SetAclResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSDirAclOp#getAclStatus`, `PBHelperClient#convert(AclStatus)`.
pub async fn get_acl_status(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetAclStatusRequestProto = call.decode()?;
    let path = &request.src;
    let found =
        node.query(call, |store, caller| query::get_acl_status(store, caller, path)).await?;
    let result = pb::AclStatusProto {
        owner: found.owner,
        group: found.group,
        sticky: found.mode.is_some_and(|mode| mode & STICKY != 0),
        entries: found.entries.into_iter().map(message).collect(),
        permission: found.mode.map(|mode| pb::FsPermissionProto { perm: mode.into() }),
    };
    answer(&pb::GetAclStatusResponseProto { result })
}
