//! What the client tells about files, DataNodes and policies: its own types, none of the wire's.

mod acl;
mod admin;
mod caching;
mod encryption;
mod groups;
mod members;
mod snapshot;
mod xattr;

pub use acl::*;
pub use admin::*;
pub use caching::*;
pub use encryption::*;
pub use groups::*;
pub use members::*;
pub use snapshot::*;
pub use xattr::*;

use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyState, UnitIndex};
use std::fmt;
use std::time::Duration;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link.
    Symlink,
}

/// A file or directory as the NameNode describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Absolute path.
    pub path: String,
    /// Directory, file or link.
    pub file_type: FileType,
    /// Bytes of a file; 0 for a directory.
    pub len: u64,
    /// Permission bits, as `chmod` counts them (with the sticky bit, 0o1000).
    pub permission: u16,
    /// Owner.
    pub owner: String,
    /// Group.
    pub group: String,
    /// When last modified, milliseconds since 1970.
    pub modification_time_ms: u64,
    /// When last read, milliseconds since 1970.
    pub access_time_ms: u64,
    /// Copies of each block; 0 for directories. Hadoop shows an erasure coded file with 1.
    pub replication: u16,
    /// Bytes of a block (of each unit, when erasure coded); 0 for directories.
    pub block_size: u64,
    /// The inode's number; 0 when the NameNode does not tell.
    pub file_id: u64,
    /// Entries of a directory, when known.
    pub children_count: Option<u32>,
    /// The policy of an erasure coded file, or that a directory gives its new files.
    pub policy: Option<Policy>,
    /// Number of the storage policy in force; 0 for the default.
    pub storage_policy: u32,
    /// Whether it has an access control list.
    pub has_acl: bool,
    /// Whether it is in an encryption zone, or the root of one.
    pub is_encrypted: bool,
    /// How an encrypted file is encrypted.
    pub encryption: Option<Box<FileEncryption>>,
}

impl FileStatus {
    /// The last component of the path; empty for the root.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.file_type == FileType::Directory
    }
}

/// A block with all that tells its versions apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The block pool, which names the file system to DataNodes.
    pub pool: String,
    /// Block, block group or internal block.
    pub id: BlockId,
    /// Its version.
    pub stamp: GenerationStamp,
    /// Bytes, of data for a block group.
    pub len: u64,
}

impl fmt::Display for Block {
    /// As Hadoop's logs name a block: pool, id and stamp.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}_{}", self.pool, self.id, self.stamp)
    }
}

/// Where and what a DataNode is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataNodeAddr {
    /// IP address.
    pub ip: String,
    /// Host name as it registered.
    pub host: String,
    /// Its lasting identity.
    pub uuid: String,
    /// Port of the data transfer protocol.
    pub xfer_port: u16,
    /// Port of its HTTP pages.
    pub info_port: u16,
    /// Port of its pages by TLS; 0 for none.
    pub info_secure_port: u16,
    /// Port of its RPC.
    pub ipc_port: u16,
}

impl DataNodeAddr {
    /// `ip:port` of the data transfer protocol, which is how Hadoop names a DataNode.
    pub fn xfer_addr(&self) -> String {
        format!("{}:{}", self.ip, self.xfer_port)
    }
}

impl fmt::Display for DataNodeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.xfer_port)
    }
}

/// Whether a DataNode is to keep its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdminState {
    /// In service.
    Normal,
    /// Its data is being moved away.
    Decommissioning,
    /// Its data is elsewhere.
    Decommissioned,
    /// About to leave for a while.
    EnteringMaintenance,
    /// Away for a while.
    InMaintenance,
}

/// Which DataNodes to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataNodeFilter {
    /// All that ever registered.
    All,
    /// Those that send heartbeats.
    Live,
    /// Those that stopped.
    Dead,
    /// Those being decommissioned.
    Decommissioning,
    /// Those about to be in maintenance.
    EnteringMaintenance,
    /// Those in maintenance.
    InMaintenance,
}

/// What the NameNode knows of a DataNode; lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataNodeInfo {
    /// Where it is.
    pub addr: DataNodeAddr,
    /// Its place in the topology, for example `/rack-1`.
    pub rack: String,
    /// Whether it is in service.
    pub admin_state: AdminState,
    /// Size of its volumes.
    pub capacity: u64,
    /// Taken by blocks.
    pub used: u64,
    /// Taken by others.
    pub non_dfs_used: u64,
    /// Free for blocks.
    pub remaining: u64,
    /// Taken by blocks of this block pool.
    pub block_pool_used: u64,
    /// Transfers running.
    pub xceiver_count: u32,
    /// Last heartbeat, milliseconds since 1970.
    pub last_heartbeat_ms: u64,
    /// Last block report, milliseconds since 1970; 0 when none came.
    pub last_block_report_ms: u64,
    /// Replicas it holds.
    pub block_count: u32,
    /// DataNodes with the same one may be restarted together.
    pub upgrade_domain: Option<String>,
    /// Volumes that it has lost, where the NameNode tells (Hadoop's does not).
    pub failed_volumes: Option<u32>,
    /// How far it is, where it leaves and the NameNode tells (Hadoop's does not).
    pub leaving: Option<LeavingStatus>,
}

/// How far a DataNode has got that is being decommissioned or about to be in maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeavingStatus {
    /// Whether all it holds was looked at; until then what is left is what was found so far.
    pub counted: bool,
    /// Replicas and units that others do not have yet.
    pub blocks_left: u64,
    /// Their bytes.
    pub bytes_left: u64,
    /// Replicas and units that others have by now.
    pub blocks_done: u64,
    /// Their bytes.
    pub bytes_done: u64,
    /// Bytes that others get in a second.
    pub bytes_per_second: u64,
    /// When it is through at this rate; `None` while nothing moves.
    pub seconds_left: Option<u64>,
    /// Milliseconds since it was told to leave.
    pub age_ms: u64,
    /// What holds the DataNode itself back.
    pub held_back: Option<String>,
    /// Some of the blocks left, and what holds each back.
    pub blocks: Vec<(BlockId, String)>,
}

/// One place of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLocation {
    /// The DataNode.
    pub addr: DataNodeAddr,
    /// Its rack.
    pub rack: String,
    /// The storage on it.
    pub storage_id: String,
    /// Which unit of the group it holds; 0 for replicas.
    pub unit: UnitIndex,
}

/// A block or block group of a file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// The block; of a group, the length is that of its data.
    pub block: Block,
    /// Where its bytes start in the file.
    pub offset_in_file: u64,
    /// Whether no healthy replica (or fewer than `k` units) is known.
    pub corrupt: bool,
    /// Its replicas or units, the nearest replica first.
    pub locations: Vec<BlockLocation>,
}

/// A file's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlocks {
    /// Bytes of the file, without a last block that is being written.
    pub len: u64,
    /// The blocks of the range asked for.
    pub blocks: Vec<FileBlock>,
    /// Whether the file is open for writing.
    pub under_construction: bool,
    /// The last block of the file, whatever the range asked for.
    pub last_block: Option<FileBlock>,
    /// Whether `last_block` has its final length.
    pub last_block_complete: bool,
    /// The file's policy, when it is erasure coded.
    pub policy: Option<Policy>,
}

/// Totals over a file or a tree; lengths in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentSummary {
    /// Bytes of all files.
    pub len: u64,
    /// Files.
    pub file_count: u64,
    /// Directories.
    pub directory_count: u64,
    /// Names allowed; `None` without a quota.
    pub quota: Option<u64>,
    /// Bytes on disk, redundancy included.
    pub space_consumed: u64,
    /// Bytes on disk allowed; `None` without a quota.
    pub space_quota: Option<u64>,
    /// What is allowed and used by type of storage, of those types that have a quota.
    pub type_quotas: Vec<TypeQuota>,
    /// What of all this only snapshots hold.
    pub snapshot: SnapshotSummary,
    /// Name of the erasure coding policy; empty when there is none, `None` when not told.
    pub policy_name: Option<String>,
}

/// What of a tree only snapshots hold; lengths in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Bytes of files.
    pub len: u64,
    /// Files.
    pub file_count: u64,
    /// Directories.
    pub directory_count: u64,
    /// Bytes on disk.
    pub space_consumed: u64,
}

/// What a directory may hold and holds, as the NameNode counts it against quotas; lengths in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Files and directories.
    pub name_count: u64,
    /// Names allowed; `None` without a quota.
    pub quota: Option<u64>,
    /// Bytes on disk.
    pub space_consumed: u64,
    /// Bytes on disk allowed; `None` without a quota.
    pub space_quota: Option<u64>,
    /// The same by type of storage, of those types that have a quota.
    pub type_quotas: Vec<TypeQuota>,
}

/// Totals over the file system; lengths in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsStats {
    /// Size of all volumes.
    pub capacity: u64,
    /// Taken by blocks.
    pub used: u64,
    /// Free for blocks.
    pub remaining: u64,
    /// Blocks with too little redundancy.
    pub under_replicated: u64,
    /// Blocks with corrupt replicas.
    pub corrupt_blocks: u64,
    /// Blocks that can't be read.
    pub missing_blocks: u64,
    /// Of the missing blocks, those that should have one replica.
    pub missing_replication_one_blocks: u64,
    /// Replicas still to be deleted.
    pub pending_deletion_blocks: u64,
}

/// What the NameNode recommends for new files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDefaults {
    /// Bytes of a block.
    pub block_size: u64,
    /// Bytes that a checksum covers.
    pub bytes_per_checksum: u32,
    /// Bytes of a packet.
    pub packet_len: u32,
    /// Copies of each block.
    pub replication: u16,
    /// Minutes that deleted files stay in the trash; 0 for none.
    pub trash_interval_minutes: u64,
    /// Number of the storage policy of files for which none is set.
    pub storage_policy: u32,
    /// Who has the keys of encrypted files. Empty when nobody does, `None` when that is not told.
    pub key_provider: Option<String>,
    /// Whether what is thrown away in a snapshottable directory stays in trash of that directory.
    pub snapshot_trash_roots: bool,
    /// The port of the NameNode's pages, where it has some and tells (Hadoop's does not).
    pub http_port: Option<u16>,
}

/// A policy and whether directories can have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// The policy.
    pub policy: Policy,
    /// Its state.
    pub state: PolicyState,
}

/// The answer to one policy that was to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddPolicyResult {
    /// Name of the policy as the NameNode made it.
    pub name: String,
    /// Its number, when it was added.
    pub id: Option<u8>,
    /// Why it was not added.
    pub error: Option<String>,
}

/// Whether the cluster has the nodes and racks that policies need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyCheck {
    /// The NameNode's sentence.
    pub message: String,
    /// Whether it is enough.
    pub supported: bool,
}

/// What to do about safe mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SafeModeAction {
    /// Leave it.
    Leave,
    /// Enter it.
    Enter,
    /// Tell only.
    Get,
    /// Leave it even when blocks from the future were reported.
    ForceExit,
}

/// How the checksums of blocks make the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumMode {
    /// MD5 of the blocks' MD5s of chunk CRCs; depends on block size and chunk length.
    #[default]
    Md5Md5Crc,
    /// The CRC of the file's bytes; equal for equal bytes however they are stored.
    CompositeCrc,
}

/// The checksum of a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChecksum {
    /// Hadoop's name, for example `MD5-of-0MD5-of-512CRC32C` or `COMPOSITE-CRC32C`.
    pub algorithm: String,
    /// Its bytes, as Hadoop's `FileChecksum#getBytes` has them.
    pub bytes: Vec<u8>,
}

impl FileChecksum {
    /// The bytes in hexadecimal, as `hdfs dfs -checksum` prints them.
    pub fn to_hex(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// How a new file is to be.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Replace a file of that name.
    pub overwrite: bool,
    /// Make missing parent directories.
    pub create_parents: bool,
    /// Copies of each block; the client's default when `None`. Ignored for erasure coded files.
    pub replication: Option<u16>,
    /// Bytes of a block, or of each unit of a group; the client's default when `None`.
    pub block_size: Option<u64>,
    /// Name of the erasure coding policy; the parent directory's when `None`.
    pub policy: Option<String>,
    /// Replicate even where the parent has an erasure coding policy.
    pub should_replicate: bool,
    /// Permission bits; 0o644 when `None`.
    pub permission: Option<u16>,
    /// What is left of them, where the client's umask does not say it. A default access control list of the parent takes
    /// `permission` instead.
    pub masked: Option<u16>,
}

/// How a file system answers: how long to wait, how often to try.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// Waits of `first`, then twice as long each time up to `max`.
    pub(crate) fn new(first: Duration, max: Duration) -> Backoff {
        Backoff { next: first, max }
    }

    /// How long to wait now.
    pub(crate) fn step(&mut self) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.max);
        wait
    }
}
