//! What only administrators ask for: quotas by storage type, open files, upgrades, changes of a configuration.

use std::time::Duration;

/// A type of storage.
///
/// Source: Hadoop 3.5.0 `StorageType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageType {
    /// A hard disk.
    Disk,
    /// A solid state disk.
    Ssd,
    /// Dense and slow.
    Archive,
    /// Memory.
    RamDisk,
    /// Outside of the cluster.
    Provided,
    /// Memory that lasts.
    Nvdimm,
}

impl StorageType {
    /// All of them.
    pub const ALL: [StorageType; 6] = [
        StorageType::Disk,
        StorageType::Ssd,
        StorageType::Archive,
        StorageType::RamDisk,
        StorageType::Provided,
        StorageType::Nvdimm,
    ];

    /// Hadoop's name, such as `RAM_DISK`.
    pub fn name(self) -> &'static str {
        match self {
            StorageType::Disk => "DISK",
            StorageType::Ssd => "SSD",
            StorageType::Archive => "ARCHIVE",
            StorageType::RamDisk => "RAM_DISK",
            StorageType::Provided => "PROVIDED",
            StorageType::Nvdimm => "NVDIMM",
        }
    }

    /// The type of a name, in capitals or not.
    pub fn parse(name: &str) -> Option<StorageType> {
        StorageType::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// What a directory may hold on one type of storage, and holds, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeQuota {
    /// The type.
    pub storage_type: StorageType,
    /// Bytes on disk allowed; `None` without a quota.
    pub quota: Option<u64>,
    /// Bytes on disk.
    pub consumed: u64,
}

/// A limit that is to be set or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaChange {
    /// At most so many names, or bytes on disk.
    Set(u64),
    /// No limit.
    Clear,
}

/// A file that is open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFileInfo {
    /// The inode's number.
    pub id: u64,
    /// Its path.
    pub path: String,
    /// The name of the client that has its lease.
    pub client: String,
    /// The address of that client.
    pub machine: String,
}

/// A rolling upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingUpgrade {
    /// The block pool.
    pub pool: String,
    /// When it began, milliseconds since 1970.
    pub start_ms: u64,
    /// When it was finalized, milliseconds since 1970; `None` while it lasts.
    pub finalize_ms: Option<u64>,
    /// Whether there is a copy of the namespace to go back to.
    pub has_rollback: bool,
}

/// The moment of a backup that a namespace was restored to; nothing is deleted before somebody has accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredNamespace {
    /// The last entry of the log that was there.
    pub sequence: u64,
    /// When that was made, milliseconds since 1970.
    pub entry_ms: u64,
    /// When it was restored, milliseconds since 1970.
    pub restored_ms: u64,
    /// Parities that belong to no group that it knows, and that DataNodes are still to read.
    pub unread_parities: u64,
    /// Groups that such parities tell of, but for those that were taken over.
    pub found_groups: u64,
    /// Groups that were taken over since the NameNode's start.
    pub adopted_groups: u64,
    /// Containers of small blocks that were taken over, and that DataNodes are still to read.
    pub unread_containers: u64,
    /// Small blocks that were taken over with their containers.
    pub adopted_blocks: u64,
    /// Groups that are not taken over as things stand, each with the reason; the first of them.
    pub refused_groups: Vec<String>,
}

/// What to do about a rolling upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RollingUpgradeAction {
    /// Tell only.
    Query,
    /// Begin it, or have it ready to begin.
    Prepare,
    /// Keep what is.
    Finalize,
}

/// What is to become of a DataNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedState {
    /// It is to serve.
    Normal,
    /// It is to give all it holds to others, and go.
    Decommissioned,
    /// It is to be away, and to come back with what it holds.
    InMaintenance {
        /// When it should be back, milliseconds since 1970; `None` for whenever it is said.
        until_ms: Option<u64>,
    },
}

/// Blocks, or groups of erasure coded files, that are not as they should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedundancyStats {
    /// With too little redundancy.
    pub low_redundancy: u64,
    /// With corrupt replicas or units.
    pub corrupt: u64,
    /// That cannot be read.
    pub missing: u64,
    /// Of these, blocks that should have one replica.
    pub missing_one_copy: u64,
    /// Bytes of blocks that were reported and are not known yet.
    pub bytes_in_future: u64,
    /// Replicas or units still to be deleted.
    pub pending_deletion: u64,
    /// Those of the low ones that would not survive one more failure, when told.
    pub highest_priority: Option<u64>,
    /// On too few racks, when told.
    pub badly_distributed: Option<u64>,
}

/// How far a change of a server's configuration has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconfiguration {
    /// When the last one began, milliseconds since 1970; `None` when there was none.
    pub start_ms: Option<u64>,
    /// When it ended; `None` while it goes on.
    pub end_ms: Option<u64>,
    /// What it changed.
    pub changes: Vec<ConfigurationChange>,
}

/// One property that was changed, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationChange {
    /// The property.
    pub name: String,
    /// What it was.
    pub old: String,
    /// What it is to be; `None` for the default.
    pub new: Option<String>,
    /// Why it was not changed.
    pub error: Option<String>,
}

/// One kind of background work of a server, or one worker of several of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// A short word for it.
    pub name: String,
    /// What of several things it is on; empty for the one there is.
    pub of: String,
    /// What it is for, as a sentence.
    pub does: String,
    /// What it is doing, in a word: working, resting, paused, off or failed.
    pub state: String,
    /// For how long.
    pub since: Duration,
    /// Whether an operator holds it back, now or after its round.
    pub is_paused: bool,
    /// Whether one may.
    pub may_be_paused: bool,
    /// Rounds that have ended.
    pub rounds: u64,
    /// The time that rounds have taken.
    pub busy: Duration,
    /// How far the last round has come, where that is told.
    pub progress: Option<WorkerProgress>,
    /// Bytes that it may handle in a second; `None` without a bound.
    pub bytes_per_second: Option<u64>,
    /// Rounds that have failed.
    pub failures: u64,
    /// Why the last of these did.
    pub last_failure: Option<String>,
}

/// How far a round has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgress {
    /// So many are done.
    pub done: u64,
    /// Of so many, where that is known.
    pub of: Option<u64>,
    /// What is counted.
    pub what: String,
}

/// What a DataNode tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataNodeLocalInfo {
    /// The version of its program.
    pub software: String,
    /// The version of its configuration.
    pub configuration: String,
    /// Seconds since its start.
    pub uptime_seconds: u64,
}

/// A volume of a DataNode; lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its folder.
    pub path: String,
    /// Its type, when known.
    pub storage_type: Option<StorageType>,
    /// Taken by blocks.
    pub used: u64,
    /// Free.
    pub free: u64,
    /// Kept free for others.
    pub reserved: u64,
    /// Kept free for replicas that are being written.
    pub reserved_for_replicas: u64,
    /// Replicas.
    pub blocks: u64,
}

/// A storage policy: which types of storage a file's replicas are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePolicyInfo {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The types of the replicas, the last for all further ones.
    pub storage_types: Vec<StorageType>,
    /// In their place when a file is written and there is no room.
    pub creation_fallbacks: Vec<StorageType>,
    /// In their place when redundancy is restored and there is no room.
    pub replication_fallbacks: Vec<StorageType>,
}
