//! Changing owners.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose};
use crate::perm;

/// Changes owner or group.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setOwner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOwner {
    /// What.
    pub path: String,
    /// The new owner.
    pub owner: Option<String>,
    /// The new group.
    pub group: Option<String>,
}

encode_struct!(SetOwner { path, owner, group });

impl SetOwner {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        path::check_not_reserved(&self.path)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_owner(cx.settings, cx.caller, &at)?;
        let mut inode = at.existing()?.clone();
        let caller = cx.caller;
        // Whether permissions are on or off, but for logs of older builds.
        let is_checked = cx.settings.permissions_enabled || cx.settings.rules >= 4;
        let bound = is_checked && !caller.superuser;
        if let Some(owner) = &self.owner {
            if bound && *owner != caller.user {
                return Err(NamespaceError::AccessControl(format!(
                    "User {} is not a super user (non-super user cannot change owner).",
                    caller.user
                )));
            }
            inode.owner.clone_from(owner);
        }
        if let Some(group) = &self.group {
            if bound && !caller.groups.contains(group) {
                return Err(NamespaceError::AccessControl(format!(
                    "User {} does not belong to {group}",
                    caller.user
                )));
            }
            inode.group.clone_from(group);
        }
        ops::save(cx, &inode)
    }
}
