//! Hadoop's built-in block storage policies, which clients list and files name by number.
//!
//! Source: Hadoop 3.5.0 `BlockStoragePolicySuite#createDefaultSuite`,
//! `HdfsConstants.StoragePolicy`.

use cairn_redundancy::StorageType::{self, Archive, Disk, Nvdimm, Provided, RamDisk, Ssd};
use cairn_wire::proto::hdfs as pb;

/// Which types of storage a file's replicas go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoragePolicy {
    /// The number that inodes carry.
    pub id: u8,
    /// Its name, in capitals.
    pub name: &'static str,
    creation: &'static [StorageType],
    creation_fallback: &'static [StorageType],
    replication_fallback: &'static [StorageType],
}

const fn policy(
    id: u8,
    name: &'static str,
    creation: &'static [StorageType],
    creation_fallback: &'static [StorageType],
    replication_fallback: &'static [StorageType],
) -> StoragePolicy {
    StoragePolicy { id, name, creation, creation_fallback, replication_fallback }
}

/// The number of an inode that names no policy of its own.
pub const UNSPECIFIED: u8 = 0;

/// The policy of files for which none is set.
pub const HOT: StoragePolicy = policy(7, "HOT", &[Disk], &[], &[Archive]);

/// All policies in the order of their numbers.
pub const ALL: [StoragePolicy; 8] = [
    policy(1, "PROVIDED", &[Provided, Disk], &[Provided, Disk], &[Provided, Disk]),
    policy(2, "COLD", &[Archive], &[], &[]),
    policy(5, "WARM", &[Disk, Archive], &[Disk, Archive], &[Disk, Archive]),
    HOT,
    policy(10, "ONE_SSD", &[Ssd, Disk], &[Ssd, Disk], &[Ssd, Disk]),
    policy(12, "ALL_SSD", &[Ssd], &[Disk], &[Disk]),
    policy(14, "ALL_NVDIMM", &[Nvdimm], &[Disk], &[Disk]),
    policy(15, "LAZY_PERSIST", &[RamDisk, Disk], &[Disk], &[Disk]),
];

impl StoragePolicy {
    /// The policy of that number; [`HOT`] for [`UNSPECIFIED`] and unknown ones.
    pub fn by_id(id: u8) -> StoragePolicy {
        ALL.into_iter().find(|policy| policy.id == id).unwrap_or(HOT)
    }

    /// The policy of that name, in any case of letters.
    pub fn by_name(name: &str) -> Option<StoragePolicy> {
        ALL.into_iter().find(|policy| policy.name.eq_ignore_ascii_case(name))
    }

    /// The types that a new block's replicas go to; for the default policy the placement's own
    /// choice.
    pub fn creation_types(&self) -> &'static [StorageType] {
        self.creation
    }

    /// The types that are taken when those of the policy are full or missing.
    pub fn creation_fallback_types(&self) -> &'static [StorageType] {
        self.creation_fallback
    }

    /// As clients get it.
    pub fn to_proto(self) -> pb::BlockStoragePolicyProto {
        let types = |types: &[StorageType]| {
            let storage_types = types.iter().map(|kind| *kind as i32).collect();
            pb::StorageTypesProto { storage_types }
        };
        let some_types = |list: &[StorageType]| (!list.is_empty()).then(|| types(list));
        pb::BlockStoragePolicyProto {
            policy_id: self.id.into(),
            name: self.name.to_string(),
            creation_policy: types(self.creation),
            creation_fallback_policy: some_types(self.creation_fallback),
            replication_fallback_policy: some_types(self.replication_fallback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_found_by_number_and_name() {
        assert_eq!(StoragePolicy::by_id(UNSPECIFIED), HOT);
        assert_eq!(StoragePolicy::by_id(12).name, "ALL_SSD");
        assert_eq!(StoragePolicy::by_name("cold").map(|policy| policy.id), Some(2));
        assert_eq!(StoragePolicy::by_name("tepid"), None);
        let cold = StoragePolicy::by_id(2).to_proto();
        assert_eq!(cold.creation_policy.storage_types, [pb::StorageTypeProto::Archive as i32]);
        assert_eq!(cold.creation_fallback_policy, None);
    }
}
