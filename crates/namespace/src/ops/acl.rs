//! Changing and reading access control lists.

use crate::acl::{self, AclEntry, change};
use crate::caller::Caller;
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, InSnapshot, Purpose};
use crate::perm;
use crate::settings::{self, Settings};
use crate::store::StoreRead;

/// What happens to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclChange {
    /// `modifyAclEntries`: entries are added, or replace their like.
    Modify {
        /// The entries.
        entries: Vec<AclEntry>,
    },
    /// `removeAclEntries`: entries go.
    Remove {
        /// The entries; their permissions mean nothing.
        entries: Vec<AclEntry>,
    },
    /// `removeDefaultAcl`: the default list goes.
    RemoveDefault,
    /// `removeAcl`: only the mode stays.
    RemoveAll,
    /// `setAcl`: these entries and no others in the scopes that they name; without any, as
    /// [`AclChange::RemoveAll`].
    Set {
        /// The entries.
        entries: Vec<AclEntry>,
    },
}

encode_enum!(AclChange {
    1 => Modify { entries },
    2 => Remove { entries },
    3 => RemoveDefault,
    4 => RemoveAll,
    5 => Set { entries },
});

/// Changes the access control list of a file or directory.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAclOp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeAcl {
    /// What.
    pub path: String,
    /// How.
    pub change: AclChange,
}

encode_struct!(ChangeAcl { path, change });

impl ChangeAcl {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        check_enabled(cx.settings)?;
        cx.command = match self.change {
            AclChange::Modify { .. } => "ModifyAclEntries",
            AclChange::Remove { .. } => "RemoveAclEntries",
            AclChange::RemoveDefault => "RemoveDefaultAcl",
            AclChange::RemoveAll => "RemoveAcl",
            AclChange::Set { .. } => "SetAcl",
        };
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_owner(cx.settings, cx.caller, &at)?;
        let mut inode = at.existing()?.clone();
        let existing = acl::whole(&inode);
        let entries = match &self.change {
            AclChange::Modify { entries } => change::merged(&existing, entries),
            AclChange::Remove { entries } => change::without(&existing, entries),
            AclChange::RemoveDefault => change::without_defaults(&existing),
            AclChange::Set { entries } if !entries.is_empty() => {
                change::replaced(&existing, entries)
            }
            AclChange::RemoveAll | AclChange::Set { .. } => {
                acl::remove(&mut inode);
                return ops::save(cx, &inode);
            }
        };
        let given =
            if matches!(self.change, AclChange::Set { .. }) { &self.path } else { &at.path };
        entries.and_then(|entries| acl::replace(&mut inode, &entries, &at.path)).map_err(
            |error| match error {
                NamespaceError::Acl(text) => NamespaceError::Acl(format!("{text} Path: {given}")),
                error => error,
            },
        )?;
        ops::save(cx, &inode)
    }
}

/// Source: Hadoop 3.5.0 `FSDirAclOp#checkAclsConfigFlag`.
fn check_enabled(settings: &Settings) -> Result<()> {
    if settings.acls_enabled {
        return Ok(());
    }
    Err(NamespaceError::Acl(
        "The ACL operation has been rejected.  Support for ACLs has been disabled by setting \
         dfs.namenode.acls.enabled to false."
            .to_string(),
    ))
}

/// What `getAclStatus` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AclStatus {
    /// Owning user.
    pub owner: String,
    /// Owning group.
    pub group: String,
    /// Permission bits with the sticky bit; the list of a directory's snapshots has none.
    pub mode: Option<u16>,
    /// What the inode keeps beside its mode.
    pub entries: Vec<AclEntry>,
}

/// The access control list of a path.
///
/// Source: Hadoop 3.5.0 `FSDirAclOp#getAclStatus`.
pub fn get_acl_status(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<AclStatus> {
    let settings = settings::get(store)?;
    check_enabled(&settings)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    if matches!(at.snapshot, Some(InSnapshot::Names(_))) {
        return Ok(AclStatus::default());
    }
    let Some(inode) = at.target().cloned() else {
        return Err(NamespaceError::FileNotFound(format!("cannot find {}", at.path)));
    };
    let (owner, group, entries) = (inode.owner, inode.group, inode.acl);
    Ok(AclStatus { owner, group, mode: Some(inode.mode), entries })
}
