//! What storages are made of.

/// What a storage is made of. The numbers are Hadoop's (`StorageTypeProto`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StorageType {
    /// Spinning disk, and whatever says nothing of itself.
    #[default]
    Disk = 1,
    /// Flash.
    Ssd = 2,
    /// Dense and slow.
    Archive = 3,
    /// Memory, which forgets.
    RamDisk = 4,
    /// Kept by another system.
    Provided = 5,
    /// Memory that does not forget.
    Nvdimm = 6,
}

impl StorageType {
    /// All types in the order in which Java sorts them.
    ///
    /// Source: Hadoop 3.5.0 `StorageType`.
    pub const ALL: [StorageType; 6] = [
        StorageType::RamDisk,
        StorageType::Ssd,
        StorageType::Disk,
        StorageType::Archive,
        StorageType::Provided,
        StorageType::Nvdimm,
    ];

    /// Its place in [`StorageType::ALL`].
    pub fn rank(self) -> usize {
        StorageType::ALL.iter().position(|kind| *kind == self).unwrap_or(0)
    }

    /// Its name as Hadoop writes it.
    pub fn name(self) -> &'static str {
        match self {
            StorageType::RamDisk => "RAM_DISK",
            StorageType::Ssd => "SSD",
            StorageType::Disk => "DISK",
            StorageType::Archive => "ARCHIVE",
            StorageType::Provided => "PROVIDED",
            StorageType::Nvdimm => "NVDIMM",
        }
    }

    /// The type of that name, in any case of letters.
    pub fn by_name(name: &str) -> Option<StorageType> {
        StorageType::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// Its number on the wire.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The type with that number on the wire; [`StorageType::Disk`] for unknown ones.
    pub fn by_number(number: i32) -> StorageType {
        StorageType::ALL.into_iter().find(|kind| kind.number() == number).unwrap_or_default()
    }

    /// Whether bytes on it count in quotas: not where they are gone after a restart.
    ///
    /// Source: Hadoop 3.5.0 `StorageType#supportTypeQuota`.
    pub fn is_counted(self) -> bool {
        self != StorageType::RamDisk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_rank_name_and_number() {
        for (rank, kind) in StorageType::ALL.into_iter().enumerate() {
            assert_eq!(kind.rank(), rank);
            assert_eq!(StorageType::by_name(&kind.name().to_lowercase()), Some(kind));
            assert_eq!(StorageType::by_number(kind.number()), kind);
        }
        assert_eq!(StorageType::by_name("TAPE"), None);
        assert_eq!(StorageType::by_number(99), StorageType::Disk);
    }
}
