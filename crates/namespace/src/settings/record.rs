//! What is recorded of the settings.

use crate::encoding::{Decode, DecodeError, Decoder, Encode, Encoder, from_record};
use crate::error::Result;
use cairn_stripe::StoragePolicy;

/// Where they are in table `meta`.
pub const KEY: &[u8] = b"settings";
pub(super) const VERSION: u8 = 1;

/// The rules of this build, see [`Settings::rules`].
///
/// - 0: those of builds that did not count them
/// - 1: a file's `LAZY_PERSIST` stays when its storage policy is unset
/// - 2: blocks have a largest size, what replaces a file may be kept as that is, and the attribute of an encryption zone
///   makes one
/// - 3: a client tells no more bytes of a block than it may have
/// - 4: owners alone change modes, owners and access control lists, also while permissions are off
/// - 5: a file in the place of one that a snapshot has counts beside it
/// - 6: names of codes are in small letters
pub const RULES: u64 = 6;

/// Limits and switches of the namespace. Defaults are Hadoop's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Check permissions (`dfs.permissions.enabled`).
    pub permissions_enabled: bool,
    /// Group of the superusers and of the root directory (`dfs.permissions.superusergroup`).
    pub superuser_group: String,
    /// Longest name in UTF-8 bytes; 0 for any (`dfs.namenode.fs-limits.max-component-length`).
    pub component_len_max: u64,
    /// Most children of a directory (`dfs.namenode.fs-limits.max-directory-items`).
    pub directory_items_max: u64,
    /// Smallest block (`dfs.namenode.fs-limits.min-block-size`), in bytes.
    pub block_size_min: u64,
    /// Most blocks of a file (`dfs.namenode.fs-limits.max-blocks-per-file`).
    pub blocks_per_file_max: u64,
    /// Fewest copies (`dfs.namenode.replication.min`).
    pub replication_min: u16,
    /// Most copies (`dfs.replication.max`).
    pub replication_max: u16,
    /// Reads set the access time when it is older than this, in ms; 0 never
    /// (`dfs.namenode.accesstime.precision`).
    pub access_time_precision_ms: u64,
    /// How long the outcome of a call is kept (`dfs.namenode.retrycache.expirytime.millis`).
    pub retry_expiry_ms: u64,
    /// How many of them are kept; 0 for any number (`cairn.namenode.retrycache.max-entries`).
    pub retry_entries_max: u64,
    /// After this a lease can be taken over by another writer, in ms.
    pub lease_soft_limit_ms: u64,
    /// After this the NameNode closes the holder's files, in ms
    /// (`dfs.namenode.lease-hard-limit-sec`).
    pub lease_hard_limit_ms: u64,
    /// A recovery of a block that has not ended after this long is ordered again, in ms: thirty times
    /// `dfs.heartbeat.interval`.
    ///
    /// Source: Hadoop 3.5.0 `BlockManager#getBlockRecoveryTimeout`.
    pub block_recovery_timeout_ms: u64,
    /// The policy that `setPolicy` without a name sets, which is always enabled; empty for none
    /// (`dfs.namenode.ec.system.default.policy`).
    pub default_policy: String,
    /// Largest cell of a user-defined policy (`dfs.namenode.ec.policies.max.cellsize`), in bytes.
    pub cell_len_max: u32,
    /// Let administrators add policies (`dfs.namenode.ec.userdefined.policy.allowed`).
    pub user_policies_allowed: bool,
    /// Most extended attributes of an inode (`dfs.namenode.fs-limits.max-xattrs-per-inode`).
    pub xattrs_per_inode_max: u64,
    /// Most bytes of an attribute's name and value (`dfs.namenode.fs-limits.max-xattr-size`).
    pub xattr_len_max: u64,
    /// Let extended attributes be used (`dfs.namenode.xattrs.enabled`).
    pub xattrs_enabled: bool,
    /// Let access control lists be used (`dfs.namenode.acls.enabled`).
    pub acls_enabled: bool,
    /// New children get their mode without the client's umask where a default list is inherited
    /// (`dfs.namenode.posix.acl.inheritance.enabled`).
    pub posix_acl_inheritance: bool,
    /// Let quotas by type of storage be set (`dfs.quota.by.storage.type.enabled`).
    pub type_quotas_enabled: bool,
    /// Number of the storage policy of files for which none is set (`dfs.storage.default.policy`).
    pub default_storage_policy: u8,
    /// Ask for the rights to all that is below a path before its content is summed up, not on the way
    /// (`dfs.permissions.ContentSummary.subAccess`).
    pub summaries_check_first: bool,
    /// Let owners of a folder set the quotas of those in it (`dfs.permissions.allow.owner.set.quota`).
    pub owners_set_quotas: bool,
    /// What is below a protected directory and not empty stays where it is as well
    /// (`dfs.protected.subdirectories.enable`).
    pub protects_subdirectories: bool,
    /// Most inodes and blocks together; 0 for any number (`dfs.namenode.max.objects`).
    pub objects_max: u64,
    /// A snapshot is deleted when it is the earliest of its directory; before, it is only marked
    /// (`dfs.namenode.snapshot.deletion.ordered`).
    pub snapshots_deleted_in_order: bool,
    /// Snapshottable directories have trash of their own; where snapshots are deleted in order, nothing is moved out of
    /// them or into them (`dfs.namenode.snapshot.trashroot.enabled`).
    pub snapshot_trash_roots: bool,
    /// Blocks of a contiguous file that was closed so long ago may be grouped, in ms
    /// (`cairn.ec.contiguous.quiet-time`).
    pub group_quiet_ms: u64,
    /// The same for a last block that is shorter than a whole one, in ms; twice as long after each append that met it
    /// (`cairn.ec.contiguous.short-quiet-time`).
    pub group_short_quiet_ms: u64,
    /// Fewest bytes of a block that may be grouped (`cairn.ec.contiguous.min-length`).
    pub group_len_min: u64,
    /// Blocks that are too short for a group wait to be packed with others (`cairn.ec.packing.enabled`).
    pub packs: bool,
    /// What commands refuse that they once let pass: a log is replayed by the rules under which it was written, or a
    /// start would fail at what was done then. No key sets it; the NameNode puts its own [`RULES`] in force.
    pub rules: u64,
    /// Paths of directories that nobody deletes or renames while they are not empty, as Java sorts them
    /// (`fs.protected.directories`).
    pub protected_directories: Vec<String>,
}

/// Encodes settings: the first ones in their order, then of the numbered ones those that do not have the
/// value behind their type, which is what they were before they had a number. Numbers are never reused. The protected
/// directories are last, if there are any.
macro_rules! encode_settings {
    ($($field:ident),* ; $($number:literal $more:ident: $type:ty = $base:expr),* $(,)?) => {
        impl Settings {
            fn numbered(&self) -> Vec<(u8, u64)> {
                let mut values = Vec::new();
                $(if self.$more != $base {
                    values.push(($number, u64::from(self.$more)));
                })*
                values
            }
        }

        impl Encode for Settings {
            fn encode(&self, out: &mut Encoder) {
                let numbered = self.numbered();
                let more = if numbered.is_empty() { 0 } else { HAS_NUMBERED };
                let last = if self.protected_directories.is_empty() { 0 } else { HAS_PROTECTED };
                out.byte(u8::from(self.permissions_enabled) | more | last);
                $(self.$field.encode(out);)*
                if more != 0 {
                    numbered.encode(out);
                }
                if last != 0 {
                    self.protected_directories.encode(out);
                }
            }
        }

        impl Decode for Settings {
            fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let first = input.byte()?;
                if first > HAS_PROTECTED | HAS_NUMBERED | 1 {
                    return Err(DecodeError::Invalid { what: "flag", value: first.into() });
                }
                let mut settings = Settings {
                    permissions_enabled: first & 1 != 0,
                    $($field: Decode::decode(input)?,)*
                    $($more: $base,)*
                    protected_directories: Vec::new(),
                };
                if first & HAS_NUMBERED != 0 {
                    let numbered = Vec::<(u8, u64)>::decode(input)?;
                    for (number, value) in &numbered {
                        let invalid = DecodeError::Invalid { what: "setting", value: *value };
                        match number {
                            $($number => settings.$more = <$type>::from_number(*value).ok_or(invalid)?,)*
                            _ => return Err(invalid),
                        }
                    }
                    if numbered.is_empty() || numbered != settings.numbered() {
                        return Err(DecodeError::Invalid { what: "list of settings", value: 0 });
                    }
                }
                if first & HAS_PROTECTED != 0 {
                    settings.protected_directories = Decode::decode(input)?;
                    if settings.protected_directories.is_empty() {
                        return Err(DecodeError::Invalid { what: "list of directories", value: 0 });
                    }
                }
                Ok(settings)
            }
        }
    };
}

/// In the first byte of a record: a list of numbered settings is at its end.
const HAS_NUMBERED: u8 = 2;
/// In the first byte of a record: behind these is a list of protected directories.
const HAS_PROTECTED: u8 = 4;

/// A value that numbered settings can have.
trait FromNumber: Sized {
    fn from_number(number: u64) -> Option<Self>;
}

impl FromNumber for u64 {
    fn from_number(number: u64) -> Option<u64> {
        Some(number)
    }
}

impl FromNumber for u8 {
    fn from_number(number: u64) -> Option<u8> {
        u8::try_from(number).ok()
    }
}

impl FromNumber for bool {
    fn from_number(number: u64) -> Option<bool> {
        (number <= 1).then_some(number == 1)
    }
}

encode_settings! {
    superuser_group,
    component_len_max,
    directory_items_max,
    block_size_min,
    blocks_per_file_max,
    replication_min,
    replication_max,
    access_time_precision_ms,
    retry_expiry_ms,
    lease_soft_limit_ms,
    lease_hard_limit_ms,
    default_policy,
    cell_len_max,
    user_policies_allowed,
    xattrs_per_inode_max,
    xattr_len_max;
    1 acls_enabled: bool = true,
    2 posix_acl_inheritance: bool = true,
    3 xattrs_enabled: bool = true,
    4 type_quotas_enabled: bool = true,
    5 retry_entries_max: u64 = 0,
    6 protects_subdirectories: bool = false,
    7 owners_set_quotas: bool = false,
    8 default_storage_policy: u8 = StoragePolicy::HOT.id,
    9 summaries_check_first: bool = false,
    10 rules: u64 = 0,
    11 block_recovery_timeout_ms: u64 = 90_000,
    12 objects_max: u64 = 0,
    13 snapshots_deleted_in_order: bool = false,
    14 snapshot_trash_roots: bool = false,
    15 group_quiet_ms: u64 = 600_000,
    16 group_short_quiet_ms: u64 = 3_600_000,
    17 group_len_min: u64 = 1 << 20,
    18 packs: bool = false,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            permissions_enabled: true,
            superuser_group: "supergroup".to_string(),
            component_len_max: 255,
            directory_items_max: 1024 * 1024,
            block_size_min: 1024 * 1024,
            blocks_per_file_max: 10_000,
            replication_min: 1,
            replication_max: 512,
            access_time_precision_ms: 3_600_000,
            retry_expiry_ms: 600_000,
            retry_entries_max: 1 << 20,
            lease_soft_limit_ms: 60_000,
            lease_hard_limit_ms: 20 * 60_000,
            block_recovery_timeout_ms: 90_000,
            default_policy: "RS-6-3-1024k".to_string(),
            cell_len_max: 4 * 1024 * 1024,
            user_policies_allowed: true,
            xattrs_per_inode_max: 32,
            xattr_len_max: 16_384,
            xattrs_enabled: true,
            acls_enabled: true,
            posix_acl_inheritance: true,
            type_quotas_enabled: true,
            default_storage_policy: StoragePolicy::HOT.id,
            summaries_check_first: false,
            owners_set_quotas: false,
            protects_subdirectories: false,
            objects_max: 0,
            snapshots_deleted_in_order: false,
            snapshot_trash_roots: false,
            group_quiet_ms: 600_000,
            group_short_quiet_ms: 3_600_000,
            group_len_min: 1 << 20,
            packs: false,
            rules: RULES,
            protected_directories: Vec::new(),
        }
    }
}

impl Settings {
    /// The storage policy in force where `set` is set on a file or above it; 0 for none.
    ///
    /// Source: Hadoop 3.5.0 `BlockStoragePolicySuite#getPolicy`.
    pub fn storage_policy(&self, set: u8) -> StoragePolicy {
        StoragePolicy::by_id(match set {
            StoragePolicy::UNSPECIFIED => self.default_storage_policy,
            set => set,
        })
    }
}

/// The settings of a record; the defaults if there is none.
pub fn from_bytes(bytes: Option<&[u8]>) -> Result<Settings> {
    Ok(bytes.map_or_else(|| Ok(Settings::default()), |bytes| from_record(VERSION, bytes))?)
}
