//! Block storage policies: which types of storage the replicas or units of a file go to, what is taken
//! instead where those are full or missing, and which of too many go first.
//!
//! Source: Hadoop 3.5.0 `BlockStoragePolicySuite#createDefaultSuite`, `BlockStoragePolicy`.

use crate::storage_type::StorageType::{self, Archive, Disk, Nvdimm, Provided, RamDisk, Ssd};

/// Which types of storage a file's replicas go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoragePolicy {
    /// The number that inodes carry.
    pub id: u8,
    /// Its name, in capitals.
    pub name: &'static str,
    /// One type for each replica, the last one for all that follow.
    pub creation: &'static [StorageType],
    /// What a new block takes instead, the first that is to be had.
    pub creation_fallback: &'static [StorageType],
    /// What a copy or a rebuilt unit takes instead.
    pub replication_fallback: &'static [StorageType],
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

impl Default for StoragePolicy {
    fn default() -> StoragePolicy {
        StoragePolicy::HOT
    }
}

impl StoragePolicy {
    /// The number of an inode that names no policy of its own.
    pub const UNSPECIFIED: u8 = 0;

    /// The policy of files for which none is set.
    pub const HOT: StoragePolicy = policy(7, "HOT", &[Disk], &[], &[Archive]);

    /// The policy of files that are hardly read.
    pub const COLD: StoragePolicy = policy(2, "COLD", &[Archive], &[], &[]);

    /// The policy of files that are on flash only.
    pub const ALL_SSD: StoragePolicy = policy(12, "ALL_SSD", &[Ssd], &[Disk], &[Disk]);

    /// The policy of files that DataNodes keep in memory first.
    pub const LAZY_PERSIST: StoragePolicy =
        policy(15, "LAZY_PERSIST", &[RamDisk, Disk], &[Disk], &[Disk]);

    /// In the place of [`StoragePolicy::HOT`] for new blocks that will soon be in a group: one replica on a disk, not on
    /// the writer's own machine if there are others, so that the blocks of a file are on different ones; the rest in
    /// memory until the group's parities are there. In the end all are on disks. No inode has it.
    pub const HOT_IN_MEMORY: StoragePolicy = policy(7, "HOT", &[RamDisk, Disk], &[Disk], &[Disk]);

    /// All policies in the order of their numbers.
    pub const ALL: [StoragePolicy; 8] = [
        policy(1, "PROVIDED", &[Provided, Disk], &[Provided, Disk], &[Provided, Disk]),
        StoragePolicy::COLD,
        policy(5, "WARM", &[Disk, Archive], &[Disk, Archive], &[Disk, Archive]),
        StoragePolicy::HOT,
        policy(10, "ONE_SSD", &[Ssd, Disk], &[Ssd, Disk], &[Ssd, Disk]),
        StoragePolicy::ALL_SSD,
        policy(14, "ALL_NVDIMM", &[Nvdimm], &[Disk], &[Disk]),
        StoragePolicy::LAZY_PERSIST,
    ];

    /// Whether it says where the units of striped files go; those ignore the others.
    ///
    /// Source: Hadoop 3.5.0 `ErasureCodingPolicyManager#checkStoragePolicySuitableForECStripedMode`.
    pub fn suits_stripes(&self) -> bool {
        [StoragePolicy::HOT.id, StoragePolicy::COLD.id, StoragePolicy::ALL_SSD.id]
            .contains(&self.id)
    }

    /// The policy of that number; [`StoragePolicy::HOT`] for [`StoragePolicy::UNSPECIFIED`] and
    /// unknown ones.
    pub fn by_id(id: u8) -> StoragePolicy {
        StoragePolicy::ALL.into_iter().find(|policy| policy.id == id).unwrap_or_default()
    }

    /// The policy of that name, in any case of letters.
    pub fn by_name(name: &str) -> Option<StoragePolicy> {
        StoragePolicy::ALL.into_iter().find(|policy| policy.name.eq_ignore_ascii_case(name))
    }

    /// The types that `copies` replicas should be on in the end. Memory that forgets is left out.
    pub fn types(&self, copies: usize) -> Vec<StorageType> {
        let kept = |kind: &StorageType| *kind != RamDisk;
        let last = self.creation.last().copied().filter(kept);
        let named = self.creation.iter().copied().filter(kept);
        named.chain(std::iter::repeat_with(|| last).map_while(|kind| kind)).take(copies).collect()
    }

    /// The types of the replicas that are still to be placed when `copies` are wanted and those on
    /// `present` are there. A type in `unavailable` is replaced by the first fallback that is not, or
    /// left out. The fallbacks are those of a new block or of one that lost replicas.
    pub fn missing(
        &self,
        copies: usize,
        present: &[StorageType],
        unavailable: &[StorageType],
        is_new: bool,
    ) -> Vec<StorageType> {
        let fallbacks = if is_new { self.creation_fallback } else { self.replication_fallback };
        let fallback = fallbacks.iter().copied().find(|kind| !unavailable.contains(kind));
        let in_the_end = self.types(copies);
        // With LAZY_PERSIST a DataNode puts replicas into memory by itself.
        let types = match is_new && *self == StoragePolicy::HOT_IN_MEMORY {
            true => self
                .creation
                .iter()
                .copied()
                .chain(std::iter::repeat(RamDisk))
                .take(copies)
                .collect(),
            false => in_the_end,
        };
        let (wanted, surplus) = difference(types, present);
        let replace =
            |kind: StorageType| if unavailable.contains(&kind) { fallback } else { Some(kind) };
        let placed = wanted.into_iter().filter_map(replace).collect();
        difference(placed, &surplus).0
    }

    /// The types of which there are too many when `copies` are wanted and those on `present` are
    /// there, as many times as there are.
    pub fn excess(&self, copies: usize, present: &[StorageType]) -> Vec<StorageType> {
        difference(self.types(copies), present).1
    }
}

/// What is left of `wanted` without `present`, and what of `present` was not wanted.
fn difference(
    mut wanted: Vec<StorageType>,
    present: &[StorageType],
) -> (Vec<StorageType>, Vec<StorageType>) {
    let mut surplus = Vec::new();
    for kind in present {
        match wanted.iter().position(|wanted| wanted == kind) {
            Some(at) => _ = wanted.remove(at),
            None => surplus.push(*kind),
        }
    }
    (wanted, surplus)
}

#[cfg(test)]
mod tests;
