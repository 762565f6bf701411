//! What a NameNode has done, operation by operation.
//!
//! How it is written is known to `decode.rs`.
//!
//! Source: Hadoop 3.5.0 `FSEditLogOp` and its classes.

use super::AclKind;

pub use crate::inode::Block;

/// Owner, group and mode of what is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// The owner.
    pub owner: String,
    /// The group.
    pub group: String,
    /// The mode.
    pub mode: u16,
}

/// An entry of an access control list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// Whether it is what children get.
    pub is_default: bool,
    /// Of whom it speaks.
    pub kind: AclKind,
    /// The name of a user or a group.
    pub name: Option<String>,
    /// Its three bits.
    pub permission: u16,
}

/// An extended attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XAttr {
    /// Its space: 0 user, 1 trusted, 2 security, 3 system, 4 raw.
    pub namespace: u32,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
}

/// A file that is made, or one that is opened again by an old client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddFile {
    /// Its number.
    pub inode: u64,
    /// Its path.
    pub path: String,
    /// Copies of its blocks; nothing if it is striped.
    pub replication: u16,
    /// When it was written, in milliseconds since 1970.
    pub modified_ms: u64,
    /// When it was read.
    pub accessed_ms: u64,
    /// Bytes of a full block.
    pub block_len: u64,
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// Owner, group and mode.
    pub owned: Owned,
    /// All entries of its list, those of the mode among them; none if it has no list.
    pub acl: Vec<AclEntry>,
    /// Its attributes.
    pub xattrs: Vec<XAttr>,
    /// The client's name.
    pub client: String,
    /// The client's host.
    pub machine: String,
    /// Whether it takes the place of one that is there.
    pub overwrite: bool,
    /// The number of its own storage policy; 0 for none.
    pub storage_policy: u8,
    /// The number of its policy of erasure coding; 0 for copies.
    pub ec_policy: u8,
}

/// A cache directive, or what changes of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheDirectiveInfo {
    /// Its number.
    pub id: u64,
    /// The path.
    pub path: Option<String>,
    /// Copies in memory.
    pub replication: Option<u16>,
    /// The pool.
    pub pool: Option<String>,
    /// When it ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// A pool of cache directives, or what changes of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePoolInfo {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its mode.
    pub mode: Option<u16>,
    /// Most bytes that its directives may ask for.
    pub limit: Option<u64>,
    /// The longest that a directive may last, in milliseconds.
    pub ttl_max_ms: Option<u64>,
    /// Copies in memory for directives that name no number.
    pub replication: Option<u16>,
}

/// A policy of erasure coding that an administrator has added; its number follows from those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EcPolicyInfo {
    /// Its code.
    pub codec: String,
    /// Data units of a group.
    pub data_units: u32,
    /// Parity units of a group.
    pub parity_units: u32,
    /// Bytes of a cell.
    pub cell_len: u32,
}

/// What was done. Times are in milliseconds since 1970; negative ones, and quotas of `i64::MAX`, change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "fields are called as in Hadoop's classes, which each variant names"
)]
pub enum Operation {
    /// `AddOp`.
    Add(Box<AddFile>),
    /// `CloseOp`.
    Close { path: String, modified_ms: u64, accessed_ms: u64, blocks: Vec<Block> },
    /// `AppendOp`.
    Append { path: String, client: String, machine: String, new_block: bool },
    /// `AddBlockOp`: the last block, and what the one before it has become.
    AddBlock { path: String, before: Option<Block>, block: Block },
    /// `UpdateBlocksOp`.
    UpdateBlocks { path: String, blocks: Vec<Block> },
    /// `TruncateOp`: a block is cut off unless the length is one where a block ends.
    Truncate {
        path: String,
        client: String,
        machine: String,
        new_len: u64,
        time_ms: u64,
        block: Option<Block>,
    },
    /// `ReassignLeaseOp`.
    ReassignLease { holder: String, path: String, new_holder: String },
    /// `MkdirOp`.
    Mkdir {
        inode: u64,
        path: String,
        time_ms: u64,
        owned: Owned,
        acl: Vec<AclEntry>,
        xattrs: Vec<XAttr>,
    },
    /// `DeleteOp`.
    Delete { path: String, time_ms: u64 },
    /// `RenameOldOp`: never over anything.
    RenameOld { from: String, to: String, time_ms: u64 },
    /// `RenameOp`.
    Rename { from: String, to: String, time_ms: u64, overwrite: bool },
    /// `ConcatDeleteOp`.
    Concat { target: String, sources: Vec<String>, time_ms: u64 },
    /// `SymlinkOp`.
    Symlink { path: String },
    /// `SetReplicationOp`.
    SetReplication { path: String, replication: u16 },
    /// `SetPermissionsOp`.
    SetPermissions { path: String, mode: u16 },
    /// `SetOwnerOp`.
    SetOwner { path: String, owner: Option<String>, group: Option<String> },
    /// `TimesOp`.
    Times { path: String, modified_ms: i64, accessed_ms: i64 },
    /// `SetQuotaOp`.
    SetQuota { path: String, names: i64, space: i64 },
    /// `SetQuotaByStorageTypeOp`.
    SetTypeQuota { path: String, storage_type: u32, space: i64 },
    /// `SetStoragePolicyOp`.
    SetStoragePolicy { path: String, policy: u8 },
    /// `SetAclOp`: all entries; none for no list.
    SetAcl { path: String, entries: Vec<AclEntry> },
    /// `SetXAttrOp`.
    SetXAttrs { path: String, xattrs: Vec<XAttr> },
    /// `RemoveXAttrOp`.
    RemoveXAttrs { path: String, xattrs: Vec<XAttr> },
    /// `AllowSnapshotOp`.
    AllowSnapshot { path: String },
    /// `DisallowSnapshotOp`.
    DisallowSnapshot { path: String },
    /// `CreateSnapshotOp`. Logs of Hadoop before 3.3 have no time.
    CreateSnapshot { path: String, name: String, time_ms: u64 },
    /// `DeleteSnapshotOp`.
    DeleteSnapshot { path: String, name: String, time_ms: u64 },
    /// `RenameSnapshotOp`.
    RenameSnapshot { path: String, from: String, to: String, time_ms: u64 },
    /// `SetGenstampV1Op`: the stamp of blocks of Hadoop 1.
    LegacyStamp,
    /// `SetGenstampV2Op`.
    Stamp(u64),
    /// `AllocateBlockIdOp`.
    AllocateBlock(i64),
    /// `AddCacheDirectiveInfoOp`.
    AddCacheDirective(CacheDirectiveInfo),
    /// `ModifyCacheDirectiveInfoOp`.
    ModifyCacheDirective(CacheDirectiveInfo),
    /// `RemoveCacheDirectiveInfoOp`.
    RemoveCacheDirective(u64),
    /// `AddCachePoolOp`.
    AddCachePool(CachePoolInfo),
    /// `ModifyCachePoolOp`.
    ModifyCachePool(CachePoolInfo),
    /// `RemoveCachePoolOp`.
    RemoveCachePool(String),
    /// `AddErasureCodingPolicyOp`.
    AddEcPolicy(EcPolicyInfo),
    /// `EnableErasureCodingPolicyOp`.
    EnableEcPolicy(String),
    /// `DisableErasureCodingPolicyOp`.
    DisableEcPolicy(String),
    /// `RemoveErasureCodingPolicyOp`.
    RemoveEcPolicy(String),
    /// `RollingUpgradeStartOp`.
    RollingUpgradeStart,
    /// `RollingUpgradeFinalizeOp`.
    RollingUpgradeFinalize,
    /// Of delegation tokens and their keys, which are not read.
    Token,
    /// `StartLogSegmentOp` and `EndLogSegmentOp`.
    Boundary,
}
