//! The erasure coding policies of this file system and their states.
//!
//! Table `policy`: id -> policy and state. The default policy of the settings is enabled whenever
//! settings are put in force, as Hadoop does at each start.
//!
//! Source: Hadoop 3.5.0 `ErasureCodingPolicyManager`.

pub(crate) mod record;

use crate::encoding::{DecodeError, from_record, to_record};
use crate::error::{NamespaceError, Result};
use crate::inode::{FileRedundancy, Inode};
use crate::path::resolved::Resolved;
use crate::settings::Settings;
use crate::store::{StoreRead, StoreTxn, Table};
use cairn_stripe::{Policy, PolicyId, PolicyState, Redundancy};
use record::VERSION;
use std::ops::ControlFlow;
use std::sync::Arc;

pub use record::{PolicyInfo, from_bytes};

/// The name under which files are kept as whole replicas, whatever the directory above says.
pub const REPLICATION_NAME: &str = "replication";

/// Every policy that was ever known, by id.
pub fn all(store: &dyn StoreRead) -> Result<Vec<PolicyInfo>> {
    let mut found = Vec::new();
    store.scan(Table::Policy, &[], &[], &mut |_, value| {
        found.push(from_record(VERSION, value));
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().collect::<Result<_, DecodeError>>()?)
}

/// The policy with that id, which a file or directory has.
pub fn by_id(store: &dyn StoreRead, id: PolicyId) -> Result<Policy> {
    store.policy(id).map(Arc::unwrap_or_clone)
}

/// Writes a policy and its state.
pub(crate) fn put(store: &mut dyn StoreTxn, info: &PolicyInfo) -> Result<()> {
    Ok(store.put(Table::Policy, &[info.policy.id.0], &to_record(VERSION, info))?)
}

/// The policy of that name, in any state.
pub fn by_name(store: &dyn StoreRead, name: &str) -> Result<Option<PolicyInfo>> {
    Ok(all(store)?.into_iter().find(|info| info.policy.name == name))
}

/// The id of a policy that may be set; `replication` in any case of letters is one.
///
/// Source: Hadoop 3.5.0 `FSDirErasureCodingOp#getEnabledErasureCodingPolicyByName`.
pub fn enabled(store: &dyn StoreRead, name: &str) -> Result<PolicyId> {
    let mut enabled: Vec<Policy> = all(store)?
        .into_iter()
        .filter(|info| info.state == PolicyState::Enabled)
        .map(|info| info.policy)
        .collect();
    if let Some(policy) = enabled.iter().find(|policy| policy.name == name) {
        return Ok(policy.id);
    }
    if name.eq_ignore_ascii_case(REPLICATION_NAME) {
        return Ok(PolicyId::REPLICATION);
    }
    enabled.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = enabled.iter().map(|policy| policy.name.as_str()).collect();
    Err(NamespaceError::HadoopIllegalArgument(format!(
        "Policy '{name}' does not match any enabled erasure coding policies: [{}]. An erasure \
         coding policy can be enabled by enableErasureCodingPolicy API.",
        names.join(", ")
    )))
}

/// The policy that a new file below `at` gets, or that `at` itself has; `None` means replicas.
pub fn effective(store: &dyn StoreRead, at: &Resolved) -> Result<Option<Policy>> {
    match effective_id(&at.chain) {
        Some(id) if id != PolicyId::REPLICATION => by_id(store, id).map(Some),
        _ => Ok(None),
    }
}

/// As [`effective`] for the last inode of a chain from the root, with `PolicyId::REPLICATION` for a directory that
/// says so.
pub fn effective_id(chain: &[Arc<Inode>]) -> Option<PolicyId> {
    for inode in chain.iter().rev() {
        if let Some(file) = inode.file() {
            return file.redundancy.policy();
        }
        if let Some(id) = inode.directory().and_then(|directory| directory.policy) {
            return Some(id);
        }
    }
    None
}

/// How blocks of a file that are in no group are kept, with the policy of striped ones looked up.
pub fn redundancy(store: &dyn StoreRead, of: FileRedundancy) -> Result<Redundancy> {
    Ok(match of {
        FileRedundancy::Replicated(copies) | FileRedundancy::Contiguous { copies, .. } => {
            Redundancy::Replicated(copies)
        }
        FileRedundancy::Striped(id) => Redundancy::Striped(by_id(store, id)?),
    })
}

/// The policy of a file, if it is striped.
pub fn of_file(store: &dyn StoreRead, inode: &Inode) -> Result<Option<Policy>> {
    match inode.file().map(|file| file.redundancy) {
        Some(FileRedundancy::Striped(id)) => by_id(store, id).map(Some),
        _ => Ok(None),
    }
}

/// Puts the built-in policies in, and enables the default one.
pub(crate) fn initialize(store: &mut dyn StoreTxn, settings: &Settings) -> Result<()> {
    for policy in Policy::built_in() {
        if store.get(Table::Policy, &[policy.id.0])?.is_none() {
            put(store, &PolicyInfo { policy, state: PolicyState::Disabled })?;
        }
    }
    if settings.default_policy.is_empty() {
        return Ok(());
    }
    match by_name(store, &settings.default_policy)? {
        Some(info) => put(store, &PolicyInfo { state: PolicyState::Enabled, ..info }),
        None => {
            let names: Vec<String> = all(store)?.into_iter().map(|info| info.policy.name).collect();
            Err(NamespaceError::Io(format!(
                "EC policy '{}' specified at dfs.namenode.ec.system.default.policy is not a valid \
                 policy. Please choose from list of available policies: [{}]",
                settings.default_policy,
                names.join(", ")
            )))
        }
    }
}
