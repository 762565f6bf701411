//! Which storage policy is in force where.
//!
//! One that is set on a directory holds for what is below it, as far as nothing else is set there.

use crate::error::{NamespaceError, Result};
use crate::inode::{FileRedundancy, Inode};
use cairn_stripe::StoragePolicy;
use std::sync::Arc;

/// Whether a striped file heeds the policy of that number.
fn suits_stripes(id: u8) -> bool {
    StoragePolicy::by_id(id).suits_stripes()
}

/// The storage policy in force for the last inode of a chain from the root; 0 for the default.
///
/// Source: Hadoop 3.5.0 `INodeFile#getStoragePolicyID`.
pub(crate) fn effective<'a>(
    chain: impl IntoIterator<Item = &'a Arc<Inode>, IntoIter: DoubleEndedIterator>,
) -> u8 {
    let mut upwards = chain.into_iter().rev().peekable();
    let file = upwards.peek().and_then(|inode| inode.file());
    let set = upwards.map(|inode| inode.storage_policy).find(|id| *id != 0);
    let striped = file.is_some_and(|file| file.redundancy.is_striped());
    set.filter(|id| !striped || suits_stripes(*id)).unwrap_or(0)
}

/// The storage policy set on the last inode of a chain from the root, or nearest above it; 0 for none.
pub(crate) fn set_above(chain: &[Arc<Inode>]) -> u8 {
    chain.iter().rev().map(|inode| inode.storage_policy).find(|id| *id != 0).unwrap_or(0)
}

/// The storage policy set on an inode, or nearest above it in the chain that leads to its directory.
pub(crate) fn in_force(above: &[Arc<Inode>], inode: &Inode) -> u8 {
    match inode.storage_policy {
        0 => set_above(above),
        own => own,
    }
}

/// What a storage policy set on a file or above it means for the file: striped ones ignore most.
pub(crate) fn for_file(set: u8, redundancy: FileRedundancy) -> u8 {
    match redundancy {
        FileRedundancy::Striped(_) if !suits_stripes(set) => 0,
        _ => set,
    }
}

/// Whether the last inode of a chain from the root is a file that is kept in memory first.
pub(crate) fn is_lazy(chain: &[Arc<Inode>]) -> bool {
    effective(chain) == StoragePolicy::LAZY_PERSIST.id
}

/// The id of a storage policy, its name in any case of letters.
pub(crate) fn id_of(name: &str) -> Result<u8> {
    let policy = StoragePolicy::by_name(name).ok_or_else(|| {
        NamespaceError::HadoopIllegalArgument(format!(
            "Cannot find a block policy with the name {name}"
        ))
    })?;
    Ok(policy.id)
}
