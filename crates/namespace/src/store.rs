//! The ordered key-value store that the namespace lives in.
//!
//! A backend gives point reads, ordered scans and writes over a few tables of byte strings, nothing
//! more. [`memory`] is the one for tests; the NameNode has one on disk. [`conformance`] is the suite
//! that each must pass.

pub mod conformance;
pub mod memory;
mod overlay;

use crate::block::{self, Block};
use crate::error::Result as Found;
pub use crate::error::StoreError;
use crate::inode::{self, Inode, InodeId, InodeRef};
use crate::policy_admin;
use crate::settings::{self, Settings};
use cairn_stripe::{Policy, PolicyId};
pub use overlay::{Changes, Overlay};
use std::ops::ControlFlow;
use std::sync::Arc;

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
}

/// What a scan calls for each key and value; `Break` ends the scan.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A consistent state of the store.
pub trait StoreRead {
    /// The value at `key`.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Hands the value at `key` to `look`, if there is one, and says whether there is.
    fn peek(
        &self,
        table: Table,
        key: &[u8],
        look: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, StoreError> {
        let value = self.get(table, key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }

    /// Calls `visit` for the keys in `from..to` in ascending byte order; an empty `to` means no end.
    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), StoreError>;

    /// The inode with that id. A backend may keep directories decoded: each path leads through some.
    fn inode(&self, id: InodeId) -> Found<Option<Arc<Inode>>> {
        inode::read(self, id)
    }

    /// The inode of that name in a directory. A backend may know the way to directories.
    fn child(&self, parent: InodeId, name: &str) -> Found<Option<Arc<Inode>>> {
        inode::read_child(self, parent, name)
    }

    /// Hands the inode of that name in a directory to `look`, if there is one, and says whether there is. A backend may
    /// keep records of files.
    fn look_up(
        &self,
        parent: InodeId,
        name: &str,
        look: &mut dyn FnMut(&InodeRef<'_>),
    ) -> Found<bool> {
        let found = self.child(parent, name)?;
        if let Some(inode) = &found {
            look(&InodeRef::from(&**inode));
        }
        Ok(found.is_some())
    }

    /// The first block of a file that has one, with its place in the file.
    fn first_block(&self, file: InodeId) -> Found<(u64, Block)> {
        block::at(self, file, 0)
    }

    /// The policy with that id, which a file or directory has. Nothing of it ever changes but its state.
    fn policy(&self, id: PolicyId) -> Found<Arc<Policy>> {
        policy_admin::read(self, id)
    }

    /// The settings in force, which each call asks for.
    fn settings(&self) -> Found<Arc<Settings>> {
        settings::read(self)
    }
}

/// A state that can be changed.
pub trait StoreTxn: StoreRead {
    /// Sets the value at `key`.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Removes `key` if it is there.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError>;

    /// Removes `key`, which is there: a store may do without looking.
    fn remove(&mut self, table: Table, key: &[u8]) -> Result<(), StoreError> {
        self.delete(table, key)
    }
}

/// Records in a row that are not wanted, after which [`scan_prefixes`] goes on elsewhere.
const PASSED_MAX: usize = 8;

/// What [`scan_prefixes`] calls with the place of a prefix, for each key and value.
pub(crate) type VisitPlaced<'a> = &'a mut dyn FnMut(usize, &[u8], &[u8]);

/// Calls `visit` for the records whose keys begin with one of `prefixes`, which ascend.
/// Where they lie side by side this is one walk, much cheaper than looking each up.
pub(crate) fn scan_prefixes(
    store: &dyn StoreRead,
    table: Table,
    prefixes: &[[u8; 8]],
    visit: VisitPlaced<'_>,
) -> Result<(), StoreError> {
    let Some(last) = prefixes.last() else { return Ok(()) };
    let end = prefix_end(last);
    let mut next = 0;
    while let Some(from) = prefixes.get(next) {
        let (mut at, mut passed) = (next, 0);
        next = prefixes.len();
        store.scan(table, from, &end, &mut |key, value| {
            while prefixes
                .get(at)
                .is_some_and(|prefix| prefix.as_slice() < key && !key.starts_with(prefix))
            {
                at += 1;
            }
            match prefixes.get(at) {
                Some(prefix) if key.starts_with(prefix) => {
                    visit(at, key, value);
                    passed = 0;
                }
                _ => passed += 1,
            }
            if passed < PASSED_MAX {
                return ControlFlow::Continue(());
            }
            next = at;
            ControlFlow::Break(())
        })?;
    }
    Ok(())
}

/// The smallest key that is greater than every key with this prefix; empty if there is none.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}
