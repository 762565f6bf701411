//! Storage policies.

use crate::counter::{self, Counter};
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode};
use crate::ops::{self, Context};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::storage_policy;
use crate::tree::walk;
use crate::usage;
use cairn_stripe::StoragePolicy;
use std::sync::Arc;

/// Sets or unsets a storage policy.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirAttrOp#setStoragePolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetStoragePolicy {
    /// What.
    pub path: String,
    /// By name; `None` unsets.
    pub policy: Option<String>,
}

encode_struct!(SetStoragePolicy { path, policy });

impl SetStoragePolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let id = self.policy.as_deref().map_or(Ok(0), storage_policy::id_of)?;
        if self.policy.is_none() {
            cx.command = "UnsetStoragePolicy";
        }
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let Some(target) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!(
                "File/Directory does not exist: {}",
                at.path
            )));
        };
        let lazy = |id| id == StoragePolicy::LAZY_PERSIST.id && !target.is_directory();
        if lazy(id) {
            return Err(NamespaceError::HadoopIllegalArgument(
                "Policy BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], \
                 creationFallbacks=[DISK], replicationFallbacks=[DISK]} cannot be set after file \
                 creation."
                    .to_string(),
            ));
        }
        let stays = id != 0 || cx.settings.rules >= 1;
        if stays && lazy(target.storage_policy) {
            return Err(NamespaceError::HadoopIllegalArgument(
                "Existing policy LAZY_PERSIST cannot be changed after file creation.".to_string(),
            ));
        }
        let changed = Inode { storage_policy: id, ..target.clone() };
        if id != target.storage_policy && counter::get(cx.store, Counter::QuotasSet)? > 0 {
            recount(cx, &at, target, &changed)?;
        }
        // Its own quota may have been counted anew.
        let mut inode = inode::expect(cx.store, target.id)?;
        inode.storage_policy = id;
        ops::save(cx, &inode)
    }
}

/// Counts on the right types of storage what a changed policy puts elsewhere, in all quotas above and below.
fn recount(cx: &mut Context<'_, '_>, at: &Resolved, old: &Inode, new: &Inode) -> Result<()> {
    let chain = &at.chain[..at.chain.len() - 1];
    let above = storage_policy::set_above(chain);
    if usage::has_quota(&at.chain) {
        let before = usage::below(cx.store, old, above)?;
        let after = usage::below(cx.store, new, above)?;
        usage::charge(cx.store, &at.chain, after.minus(before))?;
    }
    let mut limited = Vec::new();
    walk::descend(cx.store, new, &mut |inode| {
        if inode.id != new.id && usage::is_limited(inode) {
            limited.push(inode.clone());
        }
        Ok(())
    })?;
    for inode in limited {
        let Some(way) = path::of_inode(cx.store, inode.id)? else { continue };
        let between: Vec<_> = way.chain.into_iter().skip(at.chain.len()).collect();
        let policy_below = |policy| match storage_policy::set_above(&between) {
            0 => policy,
            own => own,
        };
        let policy = |of: &Inode| if of.storage_policy == 0 { above } else { of.storage_policy };
        let before = usage::below(cx.store, &inode, policy_below(policy(old)))?;
        let after = usage::below(cx.store, &inode, policy_below(policy(new)))?;
        usage::charge(cx.store, &[Arc::new(inode)], after.minus(before))?;
    }
    Ok(())
}
