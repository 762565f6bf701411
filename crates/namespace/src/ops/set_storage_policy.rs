//! Storage policies.

use crate::apply::Outcome;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{FileRedundancy, Inode};
use crate::ops::{self, Context};
use crate::path::Purpose;
use crate::perm::{self, Access};

/// Names and ids of the storage policies.
///
/// Source: Hadoop 3.5.0 `HdfsConstants.StoragePolicy`.
pub const POLICIES: [(&str, u8); 8] = [
    ("PROVIDED", 1),
    ("COLD", COLD),
    ("WARM", 5),
    ("HOT", HOT),
    ("ONE_SSD", 10),
    ("ALL_SSD", ALL_SSD),
    ("ALL_NVDIMM", 14),
    ("LAZY_PERSIST", LAZY_PERSIST),
];

/// Those that suit striped files; a striped file ignores the others.
///
/// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#checkStoragePolicySuitableForECStripedMode`.
const SUITS_STRIPES: [u8; 3] = [HOT, COLD, ALL_SSD];
const COLD: u8 = 2;
const HOT: u8 = 7;
const ALL_SSD: u8 = 12;
/// It counts when a file is created only.
pub(crate) const LAZY_PERSIST: u8 = 15;

/// The storage policy in force for the last inode of a chain from the root; 0 for the default.
///
/// Source: Hadoop 3.5.0 `INodeFile#getStoragePolicyID`.
pub(crate) fn effective<'a>(
    chain: impl IntoIterator<Item = &'a Inode, IntoIter: DoubleEndedIterator>,
) -> u8 {
    let mut upwards = chain.into_iter().rev().peekable();
    let file = upwards.peek().and_then(|inode| inode.file());
    let set = upwards.map(|inode| inode.storage_policy).find(|id| *id != 0);
    let striped = file.is_some_and(|file| matches!(file.redundancy, FileRedundancy::Striped(_)));
    set.filter(|id| !striped || SUITS_STRIPES.contains(id)).unwrap_or(0)
}

/// Whether the last inode of a chain from the root is a file that is kept in memory first.
pub(crate) fn is_lazy<'a>(
    chain: impl IntoIterator<Item = &'a Inode, IntoIter: DoubleEndedIterator>,
) -> bool {
    effective(chain) == LAZY_PERSIST
}

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
        let id = self.policy.as_deref().map_or(Ok(0), id_of)?;
        let at = cx.resolve(&self.path, Purpose::Use)?;
        perm::check_access(cx.settings, cx.caller, &at, Access::WRITE)?;
        let Some(target) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!(
                "File/Directory does not exist: {}",
                at.path
            )));
        };
        let lazy = |id| id == LAZY_PERSIST && !target.is_directory();
        if lazy(id) {
            return Err(NamespaceError::HadoopIllegalArgument(
                "Policy BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], \
                 creationFallbacks=[DISK], replicationFallbacks=[DISK]} cannot be set after file \
                 creation."
                    .to_string(),
            ));
        }
        if id != 0 && lazy(target.storage_policy) {
            return Err(NamespaceError::HadoopIllegalArgument(
                "Existing policy LAZY_PERSIST cannot be changed after file creation.".to_string(),
            ));
        }
        let mut inode = target.clone();
        inode.storage_policy = id;
        ops::save(cx, &inode)
    }
}

/// The id of a storage policy, its name in any case of letters.
pub(crate) fn id_of(name: &str) -> Result<u8> {
    POLICIES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, id)| *id)
        .ok_or_else(|| {
            NamespaceError::HadoopIllegalArgument(format!(
                "Cannot find a block policy with the name {name}"
            ))
        })
}
