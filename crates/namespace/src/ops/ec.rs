//! Erasure coding policies: on directories, and their administration.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::Inode;
use crate::ops::{self, Context};
use crate::outcome::{Outcome, PolicyAdded};
use crate::path::{Purpose, Resolved};
use crate::perm::{self, Access};
use crate::policy_admin::{self, PolicyInfo};
use cairn_stripe::id::MAX_UNITS_PER_GROUP;
use cairn_stripe::{CodecName, Policy, PolicyId, PolicyState, Schema};

/// A policy that an administrator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The code's name, as given.
    pub codec: String,
    /// Data units.
    pub k: u32,
    /// Parity units.
    pub m: u32,
    /// Bytes of a cell.
    pub cell_len: u32,
}

encode_struct!(PolicySpec { codec, k, m, cell_len });

/// Sets the policy of a directory for files made in it from now on.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#setErasureCodingPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetEcPolicy {
    /// The directory.
    pub path: String,
    /// By name; `replicate` turns coding off; `None` is the default policy.
    pub policy: Option<String>,
}

encode_struct!(SetEcPolicy { path, policy });

impl SetEcPolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let name = match self.policy.as_deref() {
            None => cx.settings.default_policy.as_str(),
            Some(name) => name,
        };
        let id = policy_admin::enabled(cx.store, name)?;
        let (at, mut inode) = directory(cx, &self.path)?;
        let Some(directory) = inode.directory_mut() else {
            return Err(NamespaceError::Io(format!(
                "Attempt to set an erasure coding policy for a file {}",
                at.path
            )));
        };
        directory.policy = Some(id);
        ops::save(cx, &inode)
    }
}

/// Takes the policy that was set on a directory away.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#unsetErasureCodingPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsetEcPolicy {
    /// The directory.
    pub path: String,
}

encode_struct!(UnsetEcPolicy { path });

impl UnsetEcPolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let (at, mut inode) = directory(cx, &self.path)?;
        let Some(directory) = inode.directory_mut() else {
            return Err(NamespaceError::Io(format!(
                "Cannot unset an erasure coding policy on a file {}",
                at.path
            )));
        };
        if directory.policy.take().is_none() {
            return Err(NamespaceError::NoEcPolicySet(format!(
                "No erasure coding policy explicitly set on {}",
                at.path
            )));
        }
        ops::save(cx, &inode)
    }
}

/// Adds policies, disabled.
///
/// Answer: `Outcome::PoliciesAdded`, one each.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#addPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddEcPolicies {
    /// Which.
    pub policies: Vec<PolicySpec>,
}

encode_struct!(AddEcPolicies { policies });

impl AddEcPolicies {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let mut added = Vec::with_capacity(self.policies.len());
        for spec in &self.policies {
            added.push(match add_policy(cx, spec) {
                Ok(policy) => PolicyAdded { policy: Some(policy), error: None },
                Err(NamespaceError::HadoopIllegalArgument(text)) => {
                    PolicyAdded { policy: None, error: Some(text) }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(Outcome::PoliciesAdded(added))
    }
}

/// Removes a user-defined policy; files that have it keep it.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#removePolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveEcPolicy {
    /// Which.
    pub name: String,
}

encode_struct!(RemoveEcPolicy { name });

impl RemoveEcPolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let info = known(cx, &self.name)?;
        if info.policy.id < PolicyId::FIRST_USER_DEFINED {
            return Err(NamespaceError::HadoopIllegalArgument(format!(
                "System erasure coding policy {} cannot be removed",
                self.name
            )));
        }
        policy_admin::put(cx.store, &PolicyInfo { state: PolicyState::Removed, ..info })?;
        Ok(Outcome::Done)
    }
}

/// Lets a policy be set on directories.
///
/// Answer: `Outcome::Flag`: whether that changed anything.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#enablePolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnableEcPolicy {
    /// Which.
    pub name: String,
}

encode_struct!(EnableEcPolicy { name });

impl EnableEcPolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let info = known(cx, &self.name)?;
        let changes = info.state != PolicyState::Enabled;
        if changes {
            policy_admin::put(cx.store, &PolicyInfo { state: PolicyState::Enabled, ..info })?;
        }
        Ok(Outcome::Flag(changes))
    }
}

/// No longer lets a policy be set on directories.
///
/// Answer: `Outcome::Flag`: whether that changed anything.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#disablePolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisableEcPolicy {
    /// Which.
    pub name: String,
}

encode_struct!(DisableEcPolicy { name });

impl DisableEcPolicy {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        perm::check_superuser(cx.settings, cx.caller)?;
        let info = known(cx, &self.name)?;
        let changes = info.state == PolicyState::Enabled;
        if changes {
            policy_admin::put(cx.store, &PolicyInfo { state: PolicyState::Disabled, ..info })?;
        }
        Ok(Outcome::Flag(changes))
    }
}

/// The directory (or file, for the caller to refuse) at a path that the caller may write.
fn directory(cx: &Context<'_, '_>, path: &str) -> Result<(Resolved, Inode)> {
    let at = cx.resolve(path, Purpose::Use)?;
    perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
    match at.target().cloned() {
        Some(inode) => Ok((at, inode)),
        None => Err(NamespaceError::FileNotFound(format!("Path not found: {}", at.path))),
    }
}

fn known(cx: &Context<'_, '_>, name: &str) -> Result<PolicyInfo> {
    policy_admin::by_name(cx.store, name)?.ok_or_else(|| {
        NamespaceError::HadoopIllegalArgument(format!("The policy name {name} does not exist"))
    })
}

fn add_policy(cx: &mut Context<'_, '_>, spec: &PolicySpec) -> Result<Policy> {
    let refuse = |text: String| Err(NamespaceError::HadoopIllegalArgument(text));
    if !cx.settings.user_policies_allowed {
        return refuse("Addition of user defined erasure coding policy is disabled.".to_string());
    }
    let name = match cx.settings.rules {
        // Once it was taken in any case of letters.
        ..6 => &spec.codec.to_ascii_lowercase(),
        _ => &spec.codec,
    };
    let Some(codec) = CodecName::parse(name) else {
        return refuse(format!("Codec name {} is not supported", spec.codec));
    };
    let units = u64::from(spec.k) + u64::from(spec.m);
    if units > MAX_UNITS_PER_GROUP as u64 {
        return refuse(format!(
            "Number of data and parity blocks in an EC group {units} should not exceed maximum \
             {MAX_UNITS_PER_GROUP}"
        ));
    }
    if spec.cell_len > cx.settings.cell_len_max {
        return refuse(format!(
            "Cell size {} should not exceed maximum {} bytes",
            spec.cell_len, cx.settings.cell_len_max
        ));
    }
    let all = policy_admin::all(cx.store)?;
    let last = all.iter().map(|info| info.policy.id).max().unwrap_or(PolicyId::REPLICATION);
    // The id is a signed byte on the wire.
    let Some(id) = last.0.checked_add(1).filter(|id| *id <= i8::MAX as u8) else {
        return refuse(format!(
            "Adding erasure coding policy failed because the number of policies stored in the system \
             already reached the threshold, which is {}",
            i8::MAX
        ));
    };
    let schema = Schema { codec, k: spec.k as u8, m: spec.m as u8 };
    let id = PolicyId(id).max(PolicyId::FIRST_USER_DEFINED);
    let policy = match Policy::new(id, schema, spec.cell_len) {
        Ok(policy) => policy,
        Err(error) => return refuse(error.to_string()),
    };
    let same = |info: &&PolicyInfo| {
        let known = &info.policy;
        known.name == policy.name
            || (known.schema, known.cell_len, known.layout)
                == (policy.schema, policy.cell_len, policy.layout)
    };
    if let Some(info) = all.iter().find(same) {
        return Ok(info.policy.clone());
    }
    let info = PolicyInfo { policy, state: PolicyState::Disabled };
    policy_admin::put(cx.store, &info)?;
    Ok(info.policy)
}
