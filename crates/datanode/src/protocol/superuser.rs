//! Calls that are not for everybody.

use crate::node::Node;
use cairn_net::http::Admins;
use cairn_net::rpc_server::{Authentication, Call};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use std::sync::Arc;

/// Refuses whoever is neither the user of this DataNode nor in the superusers' group.
///
/// Source: Hadoop 3.5.0 `DataNode#checkSuperuserPrivilege`.
pub(super) async fn check_superuser(node: &Node, call: &Call) -> Result<(), RemoteException> {
    // A token to a block is for nothing else, whomever it names.
    if matches!(call.user.by, Authentication::Block(_)) {
        return Err(RemoteException::new(class::ACCESS_CONTROL, "Permission denied."));
    }
    match is_superuser(node, &call.user.effective).await {
        true => Ok(()),
        false => Err(RemoteException::new(class::ACCESS_CONTROL, "Permission denied.")),
    }
}

async fn is_superuser(node: &Node, user: &str) -> bool {
    let config = &node.config;
    let is_free = !config.permissions_enabled || user == config.user;
    is_free || node.groups.of(user).await.contains(&config.supergroup)
}

/// Who may administer a DataNode by its pages.
pub(crate) fn admins(node: &Arc<Node>) -> Admins {
    let node = Arc::clone(node);
    Arc::new(move |user| {
        let node = Arc::clone(&node);
        Box::pin(async move { is_superuser(&node, &user).await })
    })
}
