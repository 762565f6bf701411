//! Storage policies.

use crate::apply::Outcome;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::{self, Context};
use crate::path::Purpose;
use crate::perm::{self, Access};

/// Names and ids of the storage policies.
///
/// Source: Hadoop 3.5.0 `HdfsConstants.StoragePolicy`.
pub const POLICIES: [(&str, u8); 8] = [
    ("PROVIDED", 1),
    ("COLD", 2),
    ("WARM", 5),
    ("HOT", 7),
    ("ONE_SSD", 10),
    ("ALL_SSD", 12),
    ("ALL_NVDIMM", 14),
    ("LAZY_PERSIST", 15),
];

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
