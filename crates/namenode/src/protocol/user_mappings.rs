//! The small administrative protocols: users' groups, and refreshes of what is read at start.
//!
//! Source: Hadoop 3.5.0 `NameNodeRpcServer`.

use cairn_net::rpc_server::Call;
use cairn_wire::exception::class;
use cairn_wire::proto::common as pb;

use crate::node::NameNode;
use crate::refusal::{Answer, Refusal, answer};

/// `GetUserMappingsProtocol`: the groups of a user, as this NameNode sees them.
pub async fn get_user_mappings(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "getGroupsForUser" => {
            let request: pb::GetGroupsForUserRequestProto = call.decode()?;
            let groups = node.groups.of(&request.user).await;
            answer(&pb::GetGroupsForUserResponseProto { groups })
        }
        _ => Err(call.unknown_method().into()),
    }
}

/// `RefreshUserMappingsProtocol`.
pub async fn refresh_user_mappings(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "refreshUserToGroupsMappings" => {
            node.groups.refresh();
            answer(&pb::RefreshUserToGroupsMappingsResponseProto {})
        }
        "refreshSuperUserGroupsConfiguration" => {
            node.refresh_proxy_users().await?;
            answer(&pb::RefreshSuperUserGroupsConfigurationResponseProto {})
        }
        _ => Err(call.unknown_method().into()),
    }
}

/// `RefreshAuthorizationPolicyProtocol`.
pub async fn refresh_authorization_policy(node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "refreshServiceAcl" => {
            node.refresh_service_policy().await?;
            answer(&pb::RefreshServiceAclResponseProto {})
        }
        _ => Err(call.unknown_method().into()),
    }
}

/// `RefreshCallQueueProtocol`: calls are not queued, so there is nothing to read again.
pub async fn refresh_call_queue(_node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "refreshCallQueue" => answer(&pb::RefreshCallQueueResponseProto {}),
        _ => Err(call.unknown_method().into()),
    }
}

/// `GenericRefreshProtocol`: nothing is registered to be refreshed by a name.
///
/// Source: Hadoop 3.5.0 `RefreshRegistry#dispatch`.
pub async fn generic_refresh(_node: &NameNode, call: &Call) -> Answer {
    match call.method.as_str() {
        "refresh" => {
            let request: pb::GenericRefreshRequestProto = call.decode()?;
            let identifier = request.identifier.unwrap_or_default();
            Err(Refusal::new(
                class::ILLEGAL_ARGUMENT,
                format!(
                    "Identifier '{identifier}' does not exist in RefreshRegistry. Valid options \
                     are: "
                ),
            ))
        }
        _ => Err(call.unknown_method().into()),
    }
}
