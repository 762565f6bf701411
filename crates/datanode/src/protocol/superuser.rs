//! Calls that are not for everybody.

use crate::node::Node;
use cairn_net::rpc_server::{Authentication, Call};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;

/// Refuses whoever is neither the user of this DataNode nor in the superusers' group.
///
/// Source: Hadoop 3.5.0 `DataNode#checkSuperuserPrivilege`.
pub(super) async fn check_superuser(node: &Node, call: &Call) -> Result<(), RemoteException> {
    // A token to a block is for nothing else, whomever it names.
    if matches!(call.user.by, Authentication::Block(_)) {
        return Err(RemoteException::new(class::ACCESS_CONTROL, "Permission denied."));
    }
    let (user, config) = (&call.user.effective, &node.config);
    let is_free = !config.permissions_enabled || *user == config.user;
    if is_free || node.groups.of(user).await.contains(&config.supergroup) {
        return Ok(());
    }
    Err(RemoteException::new(class::ACCESS_CONTROL, "Permission denied."))
}
