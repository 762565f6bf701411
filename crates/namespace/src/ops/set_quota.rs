//! Limits of directories.

use crate::apply::Outcome;
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::inode::Quota;
use crate::ops::{self, Context};
use crate::path::Purpose;
use crate::snapshot::reclaim;
use crate::{perm, tree};

/// What happens to one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaChange {
    /// It stays.
    Keep,
    /// There is none any more.
    Clear,
    /// It becomes this.
    Set {
        /// The limit.
        max: u64,
    },
}

encode_enum!(QuotaChange { 0 => Keep, 1 => Clear, 2 => Set { max } });

/// Sets or clears limits of a directory.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setQuota`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetQuota {
    /// The directory.
    pub path: String,
    /// Inodes.
    pub names_max: QuotaChange,
    /// Bytes on disk.
    pub space_max: QuotaChange,
}

encode_struct!(SetQuota { path, names_max, space_max });

impl SetQuota {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        let Some(target) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!(
                "Directory does not exist: {}",
                at.path
            )));
        };
        let mut inode = target.clone();
        let usage = tree::usage_below(cx.store, target)?;
        let Some(directory) = inode.directory_mut() else {
            return Err(NamespaceError::PathIsNotDirectory(format!(
                "`{}': Is not a directory",
                at.path
            )));
        };
        let old = directory.quota.take().unwrap_or_default();
        let names_max = self.names_max.applied_to(old.names_max);
        let space_max = self.space_max.applied_to(old.space_max);
        if names_max.is_some() || space_max.is_some() {
            let held = reclaim::held_below(cx.store, target.id)?;
            let names = usage.names.max(0) as u64 + held.directories + held.files;
            let space = (usage.space.max(0) as u64).saturating_add(held.space);
            directory.quota = Some(Quota { names_max, space_max, names, space });
        }
        ops::save(cx, &inode)
    }
}

impl QuotaChange {
    fn applied_to(self, old: Option<u64>) -> Option<u64> {
        match self {
            QuotaChange::Keep => old,
            QuotaChange::Clear => None,
            QuotaChange::Set { max } => Some(max),
        }
    }
}
