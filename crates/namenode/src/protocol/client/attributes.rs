//! What hangs on a path besides its mode: storage policies, extended attributes, access control.

use cairn_namespace::ops::satisfy_storage_policy::{SatisfyStoragePolicy, mark};
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::perm::Access;
use cairn_namespace::{Outcome, query};
use cairn_net::rpc_server::Call;
use cairn_redundancy::StoragePolicy;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs as pb;

use super::super::storage_policy::to_proto;
use super::refused::UNSUPPORTED_ACTION;
use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// Refuses what needs storage policies where these are switched off.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#checkStoragePolicyEnabled`.
fn check_policies_enabled(node: &NameNode, what: &str) -> Result<(), Refusal> {
    if node.config.storage_policies_enabled {
        return Ok(());
    }
    Err(Refusal::io(format!("Failed to {what} since dfs.storage.policy.enabled is set to false.")))
}

/// The same of a change of them, which may be the superuser's alone.
async fn check_may_set_policy(node: &NameNode, call: &Call, what: &str) -> Result<(), Refusal> {
    check_policies_enabled(node, what)?;
    if node.config.storage_policies_superuser_only {
        node.check_superuser(call).await?;
    }
    Ok(())
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setStoragePolicy`.
pub async fn set_storage_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetStoragePolicyRequestProto = call.decode()?;
    check_may_set_policy(node, call, "set storage policy").await?;
    node.check_safe_mode(|| format!("Cannot set storage policy for {}", request.src))?;
    let policy = Some(request.policy_name);
    node.submit(call, SetStoragePolicy { path: request.src, policy }).await?;
    answer(&pb::SetStoragePolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#unsetStoragePolicy`.
pub async fn unset_storage_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::UnsetStoragePolicyRequestProto = call.decode()?;
    check_may_set_policy(node, call, "unset storage policy").await?;
    node.check_safe_mode(|| format!("Cannot unset storage policy for {}", request.src))?;
    node.submit(call, SetStoragePolicy { path: request.src, policy: None }).await?;
    answer(&pb::UnsetStoragePolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#satisfyStoragePolicy`.
pub async fn satisfy_storage_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SatisfyStoragePolicyRequestProto = call.decode()?;
    check_policies_enabled(node, "satisfy storage policy")?;
    let checked = match (node.satisfier.is_enabled(), node.satisfier.is_full()) {
        (false, _) => Err(Refusal::new(
            UNSUPPORTED_ACTION,
            "Cannot request to satisfy storage policy when storage policy satisfier feature has \
             been disabled by admin. Seek for an admin help to enable it or use Mover tool.",
        )),
        (true, Some(limit)) => Err(Refusal::io(format!(
            "Outstanding satisfier queue limit: {limit} exceeded, try later!"
        ))),
        (true, None) => Ok(()),
    };
    node.unless_answered(call, checked)?;
    let what = || format!("Cannot satisfy storage policy for {}", request.src);
    node.check_change(call, what)?;
    let path = request.src;
    if let Outcome::ToSatisfy(Some(id)) = node.submit(call, SatisfyStoragePolicy { path }).await? {
        node.satisfier.add(id);
    }
    answer(&pb::SatisfyStoragePolicyResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSDirAttrOp#getStoragePolicy`.
pub async fn get_storage_policy(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetStoragePolicyRequestProto = call.decode()?;
    let path = &request.path;
    let found = node
        .query(call, |store, caller| {
            query::check_readable(store, caller, path)?;
            let status = query::get_file_info(store, caller, path)?;
            status.map_or_else(|| query::real_path(store, path).map(Err), |status| Ok(Ok(status)))
        })
        .await?;
    let status = found.map_err(|path| {
        let message = format!("File/Directory does not exist: {path}");
        Refusal::new(class::FILE_NOT_FOUND, message)
    })?;
    let storage_policy = to_proto(node.config.storage_policy(status.storage_policy));
    answer(&pb::GetStoragePolicyResponseProto { storage_policy })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#getStoragePolicies`.
pub async fn get_storage_policies(_node: &NameNode, call: &Call) -> Answer {
    let _: pb::GetStoragePoliciesRequestProto = call.decode()?;
    let policies = StoragePolicy::ALL.into_iter().map(to_proto).collect();
    answer(&pb::GetStoragePoliciesResponseProto { policies })
}

fn xattr_name(proto: &pb::XAttrProto) -> XAttrName {
    let space = match proto.namespace() {
        pb::XAttrProtoXAttrNamespaceProto::User => XAttrSpace::User,
        pb::XAttrProtoXAttrNamespaceProto::Trusted => XAttrSpace::Trusted,
        pb::XAttrProtoXAttrNamespaceProto::Security => XAttrSpace::Security,
        pb::XAttrProtoXAttrNamespaceProto::System => XAttrSpace::System,
        pb::XAttrProtoXAttrNamespaceProto::Raw => XAttrSpace::Raw,
    };
    XAttrName { space, name: proto.name.clone() }
}

pub(super) fn xattr_proto(name: XAttrName, value: Option<Vec<u8>>) -> pb::XAttrProto {
    let namespace = match name.space {
        XAttrSpace::User => pb::XAttrProtoXAttrNamespaceProto::User,
        XAttrSpace::Trusted => pb::XAttrProtoXAttrNamespaceProto::Trusted,
        XAttrSpace::Security => pb::XAttrProtoXAttrNamespaceProto::Security,
        XAttrSpace::System => pb::XAttrProtoXAttrNamespaceProto::System,
        XAttrSpace::Raw => pb::XAttrProtoXAttrNamespaceProto::Raw,
    };
    pb::XAttrProto { namespace: namespace as i32, name: name.name, value }
}

fn required(xattr: Option<pb::XAttrProto>) -> Result<pb::XAttrProto, Refusal> {
    xattr.ok_or_else(|| Refusal::new(class::ILLEGAL_ARGUMENT, "xAttr cannot be null."))
}

/// Source: Hadoop 3.5.0 `FSNamesystem#setXAttr`.
pub async fn set_xattr(node: &NameNode, call: &Call) -> Answer {
    let request: pb::SetXAttrRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot set XAttr on {}", request.src))?;
    let xattr = required(request.x_attr)?;
    let flags = request.flag.unwrap_or(0);
    let name = xattr_name(&xattr);
    let asks = (name == mark()).then(|| request.src.clone());
    let command = SetXAttr {
        path: request.src,
        name,
        value: xattr.value.unwrap_or_default(),
        create: flags & pb::XAttrSetFlagProto::XattrCreate as u32 != 0,
        replace: flags & pb::XAttrSetFlagProto::XattrReplace as u32 != 0,
    };
    node.submit(call, command).await?;
    // The mark that stands for a request, made by hand.
    if let Some(path) = asks
        && let Some(status) =
            node.query(call, |store, caller| query::get_file_info(store, caller, &path)).await?
    {
        node.satisfier.add(status.inode.id);
    }
    answer(&pb::SetXAttrResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSNamesystem#removeXAttr`.
pub async fn remove_xattr(node: &NameNode, call: &Call) -> Answer {
    let request: pb::RemoveXAttrRequestProto = call.decode()?;
    node.check_change(call, || format!("Cannot remove XAttr entry on {}", request.src))?;
    let attribute = required(request.x_attr)?;
    let (name, path) = (xattr_name(&attribute), request.src.as_str());
    node.query(call, |store, caller| {
        query::check_xattr(store, caller, path, &name, attribute.value.is_some())
    })
    .await?;
    node.submit(call, RemoveXAttr { path: request.src, name }).await?;
    answer(&pb::RemoveXAttrResponseProto {})
}

/// Source: Hadoop 3.5.0 `FSDirXAttrOp#getXAttrs`.
pub async fn get_xattrs(node: &NameNode, call: &Call) -> Answer {
    let request: pb::GetXAttrsRequestProto = call.decode()?;
    let names: Vec<XAttrName> = request.x_attrs.iter().map(xattr_name).collect();
    let path = &request.src;
    let found = node
        .query(call, |store, caller| {
            for (name, proto) in names.iter().zip(&request.x_attrs) {
                query::check_xattr(store, caller, path, name, proto.value.is_some())?;
            }
            query::get_xattrs(store, caller, path, &names)
        })
        .await?;
    let x_attrs = found.into_iter().map(|(name, value)| xattr_proto(name, Some(value))).collect();
    answer(&pb::GetXAttrsResponseProto { x_attrs })
}

/// Source: Hadoop 3.5.0 `FSDirXAttrOp#listXAttrs`.
pub async fn list_xattrs(node: &NameNode, call: &Call) -> Answer {
    let request: pb::ListXAttrsRequestProto = call.decode()?;
    let path = &request.src;
    let found = node.query(call, |store, caller| query::list_xattrs(store, caller, path)).await?;
    let x_attrs = found.into_iter().map(|(name, value)| xattr_proto(name, Some(value))).collect();
    answer(&pb::ListXAttrsResponseProto { x_attrs })
}

/// Source: Hadoop 3.5.0 `FSNamesystem#checkAccess`.
pub async fn check_access(node: &NameNode, call: &Call) -> Answer {
    let request: pb::CheckAccessRequestProto = call.decode()?;
    let access = Access::from_bits(request.mode as u32);
    let path = &request.path;
    node.query(call, |store, caller| query::check_access(store, caller, path, access)).await?;
    answer(&pb::CheckAccessResponseProto {})
}
