//! Limits of directories.

use crate::caller::Caller;
use crate::counter::{self, Counter};
use crate::encoding::{encode_enum, encode_struct};
use crate::error::{NamespaceError, Result};
use crate::inode::{Directory, Quota};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm;
use crate::settings::{self, Settings};
use crate::snapshot::held;
use crate::storage_policy;
use crate::store::StoreRead;
use crate::usage::{self, ByType, Usage};
use cairn_stripe::StorageType;

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
        let at = resolve(cx, &self.path)?;
        let quota = directory(&at)?.quota.clone().unwrap_or_default();
        set(
            cx,
            &at,
            Quota {
                names_max: self.names_max.applied_to(quota.names_max),
                space_max: self.space_max.applied_to(quota.space_max),
                ..quota
            },
        )
    }
}

/// Sets or clears a directory's limit on one type of storage.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setQuota` with a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTypeQuota {
    /// The directory.
    pub path: String,
    /// The type, by its place in [`StorageType::ALL`].
    pub kind: u8,
    /// Bytes on disk. To keep it means in Hadoop to take that on all types together.
    pub space_max: QuotaChange,
    /// Whether the limit on inodes was to be kept, as must be.
    pub keeps_names: bool,
    /// That limit as Java knows it, for the refusal.
    pub names: u64,
}

encode_struct!(SetTypeQuota { path, kind, space_max, keeps_names, names });

impl SetTypeQuota {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = resolve(cx, &self.path)?;
        let enabled = cx.settings.type_quotas_enabled;
        let kind =
            StorageType::ALL.get(usize::from(self.kind)).filter(|_| enabled && self.keeps_names);
        let Some(&kind) = kind else {
            return Err(NamespaceError::UnsupportedAction(format!(
                "Failed to set quota by storage type because eitherdfs.quota.by.storage.type.enabled \
                 is set to {enabled} or nsQuota value is illegal {}",
                self.names as i64
            )));
        };
        let mut quota = directory(&at)?.quota.clone().unwrap_or_default();
        quota.types_max[kind] = match self.space_max {
            QuotaChange::Keep => quota.space_max,
            change => change.applied_to(quota.types_max[kind]),
        };
        set(cx, &at, quota)
    }
}

/// Fails if the caller may not set limits of what is at a path, as [`SetQuota`] does before it looks at them.
pub fn check_quota(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<()> {
    let settings = settings::get(store)?;
    follow(store, (&settings, caller, "SetQuota"), path).map(drop)
}

fn resolve(cx: &Context<'_, '_>, path: &str) -> Result<Resolved> {
    follow(cx.store, (cx.settings, cx.caller, cx.command), path)
}

/// Follows a path to a directory whose limits the caller of a command may set.
fn follow(
    store: &dyn StoreRead,
    (settings, caller, command): (&Settings, &Caller, &str),
    path: &str,
) -> Result<Resolved> {
    let is_superuser = match perm::check_superuser(settings, caller) {
        Err(refusal) if !settings.owners_set_quotas => return Err(refusal),
        checked => checked.is_ok(),
    };
    let at = path::resolve_to_change(store, settings, caller, path, Purpose::Use, command)?;
    let is_owners = || at.parent().is_some_and(|parent| parent.owner == caller.user);
    if is_superuser || is_owners() {
        return Ok(at);
    }
    if at.parent().is_none() && !at.names.is_empty() {
        return Err(NamespaceError::FileNotFound(format!(
            "Directory/File does not exist {}",
            at.parent_path()
        )));
    }
    Err(NamespaceError::AccessControl(format!(
        "Access denied for user {}. Superuser or owner of parent folder privilege is required",
        caller.user
    )))
}

/// Source: Hadoop 3.5.0 `INodeDirectory#valueOf`.
fn directory(at: &Resolved) -> Result<&Directory> {
    let Some(target) = at.target() else {
        return Err(NamespaceError::FileNotFound(format!("Directory does not exist: {}", at.path)));
    };
    target.directory().ok_or_else(|| {
        NamespaceError::PathIsNotDirectory(format!("`{}': Is not a directory", at.path))
    })
}

/// Puts limits in force and counts what there is.
fn set(cx: &mut Context<'_, '_>, at: &Resolved, limits: Quota) -> Result<Outcome> {
    let Some(target) = at.target() else { return Ok(Outcome::Done) };
    let mut inode = target.clone();
    let any = limits.names_max.is_some()
        || limits.space_max.is_some()
        || limits.types_max.iter().any(|(_, max)| max.is_some());
    let mut quota = None;
    if any {
        let above = storage_policy::set_above(&at.chain[..at.chain.len() - 1]);
        let mut usage = usage::below(cx.store, target, above)?;
        for id in held::below(cx.store, target)? {
            usage =
                usage.plus(held::account(cx.store, id)?.map_or(Usage::default(), |(_, held)| held));
        }
        quota = Some(Quota {
            names: usage.names.max(0) as u64,
            space: usage.space.max(0) as u64,
            types: usage::added(ByType::default(), usage.types),
            ..limits
        });
        counter::add(cx.store, Counter::QuotasSet, 1)?;
    }
    if let Some(directory) = inode.directory_mut() {
        directory.quota = quota;
    }
    ops::save(cx, &inode)
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
