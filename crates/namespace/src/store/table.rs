//! The tables of the store.

macro_rules! tables {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The tables. Their keys are in the module that owns each, and in `docs/on-disk.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Table {
            $($(#[$doc])* $variant,)*
        }

        impl Table {
            /// Every table.
            pub const ALL: &[Table] = &[$(Table::$variant),*];

            /// The name on disk.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$variant => $name,)*
                }
            }
        }
    };
}

// Their order is in the format of the log: new ones go last.
tables! {
    /// Counters and settings, by name.
    Meta = "meta",
    /// Inodes by id.
    Inode = "inode",
    /// Ids of children by parent and name, which is the order of listings.
    Child = "child",
    /// Ids and offsets of a file's blocks by file and position.
    FileBlock = "file-block",
    /// Blocks and block groups by id.
    Block = "block",
    /// Time of the last renewal by lease holder.
    Lease = "lease",
    /// Files by lease holder.
    LeaseFile = "lease-file",
    /// Lease holders by time of the last renewal.
    LeaseAge = "lease-age",
    /// Erasure coding policies by id.
    Policy = "policy",
    /// Extended attributes by inode and name.
    XAttr = "xattr",
    /// Outcomes of calls that may come again, many to a record.
    Outcome = "outcome",
    /// Roots of deleted subtrees whose inodes are still to be removed.
    Garbage = "garbage",
    /// Snapshottable directories by inode.
    SnapshotRoot = "snapshot-root",
    /// Snapshots by directory, the newest first.
    Snapshot = "snapshot",
    /// Ids of snapshots by directory and name.
    SnapshotName = "snapshot-name",
    /// Snapshots that see what was moved or removed, by inode and directory.
    SnapshotSeen = "snapshot-seen",
    /// Deleted snapshots whose versions are still to be given up.
    SnapshotGarbage = "snapshot-garbage",
    /// Records as snapshots see them, by record, directory and snapshot.
    Version = "version",
    /// The same by directory and snapshot.
    VersionOf = "version-of",
    /// Pools of cache directives by name.
    CachePool = "cache-pool",
    /// Cache directives by number.
    CacheDirective = "cache-directive",
    /// Roots of encryption zones by inode.
    EncryptionZone = "encryption-zone",
    /// Contiguous groups by handle.
    Group = "group",
    /// Open attempts to make a group, by the blocks that are to be members.
    Encoding = "encoding",
    /// Blocks that may be grouped, by the time from which on.
    Waiting = "waiting",
    /// That time by block.
    WaitingDue = "waiting-due",
    /// Delegation tokens by number.
    DelegationToken = "delegation-token",
    /// Master keys of delegation tokens by number.
    TokenKey = "token-key",
    /// Containers of small blocks by id.
    Container = "container",
    /// What is packed in them, or to be, by container and slot.
    PackSlot = "pack-slot",
    /// Packed blocks that are to be plain again.
    Unpacking = "unpacking",
}
