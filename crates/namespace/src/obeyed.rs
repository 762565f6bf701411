//! What commands obey of the configuration, and where two differ in that, in the words of the configuration.

use crate::encoding::{Encode, Encoder};
use crate::error::Result;
use crate::settings::{self, RULES, Settings};
use crate::snapshot::{self, SnapshotSettings};
use crate::store::{StoreRead, Table};
use std::fmt::Debug;

/// All that decides what comes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obeyed {
    settings: Settings,
    snapshots: SnapshotSettings,
}

/// A setting that has two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key of the configuration.
    pub key: &'static str,
    /// The first value.
    pub first: String,
    /// The second one.
    pub second: String,
}

fn difference(key: &'static str, first: &impl Debug, second: &impl Debug) -> Option<Difference> {
    let (first, second) = (format!("{first:?}"), format!("{second:?}"));
    (first != second).then_some(Difference { key, first, second })
}

/// Compares all fields of a struct but those that are left out; one that is in neither list does not compile.
macro_rules! compare {
    ($first:expr, $second:expr, $type:ident without { $($out:ident),* }: $($field:ident = $key:literal,)*) => {{
        let $type { $($field: _,)* $($out: _,)* } = $first;
        [$(difference($key, &$first.$field, &$second.$field),)*]
    }};
}

impl Obeyed {
    /// That these are obeyed.
    pub fn new(settings: Settings, snapshots: SnapshotSettings) -> Obeyed {
        // What a build knows is not configured.
        Obeyed { settings: Settings { rules: RULES, ..settings }, snapshots }
    }

    /// What is in force; none before anything is.
    pub fn in_force(store: &dyn StoreRead) -> Result<Option<Obeyed>> {
        if store.get(Table::Meta, settings::KEY)?.is_none() {
            return Ok(None);
        }
        let settings = Settings::clone(&*settings::get(store)?);
        Ok(Some(Obeyed::new(settings, snapshot::settings(store)?)))
    }

    /// The same bytes for what is the same.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        self.settings.encode(&mut out);
        self.snapshots.encode(&mut out);
        out.into_bytes()
    }

    /// The settings of which the two have different values.
    pub fn differences(&self, other: &Obeyed) -> Vec<Difference> {
        let settings = compare!(&self.settings, &other.settings, Settings without { rules }:
            permissions_enabled = "dfs.permissions.enabled",
            superuser_group = "dfs.permissions.superusergroup",
            component_len_max = "dfs.namenode.fs-limits.max-component-length",
            directory_items_max = "dfs.namenode.fs-limits.max-directory-items",
            block_size_min = "dfs.namenode.fs-limits.min-block-size",
            blocks_per_file_max = "dfs.namenode.fs-limits.max-blocks-per-file",
            replication_min = "dfs.namenode.replication.min",
            replication_max = "dfs.replication.max",
            access_time_precision_ms = "dfs.namenode.accesstime.precision",
            retry_expiry_ms = "dfs.namenode.retrycache.expirytime.millis",
            retry_entries_max = "cairn.namenode.retrycache.max-entries",
            lease_soft_limit_ms = "soft limit of leases",
            lease_hard_limit_ms = "dfs.namenode.lease-hard-limit-sec",
            block_recovery_timeout_ms = "dfs.heartbeat.interval",
            default_policy = "dfs.namenode.ec.system.default.policy",
            cell_len_max = "dfs.namenode.ec.policies.max.cellsize",
            user_policies_allowed = "dfs.namenode.ec.userdefined.policy.allowed",
            xattrs_per_inode_max = "dfs.namenode.fs-limits.max-xattrs-per-inode",
            xattr_len_max = "dfs.namenode.fs-limits.max-xattr-size",
            xattrs_enabled = "dfs.namenode.xattrs.enabled",
            acls_enabled = "dfs.namenode.acls.enabled",
            posix_acl_inheritance = "dfs.namenode.posix.acl.inheritance.enabled",
            type_quotas_enabled = "dfs.quota.by.storage.type.enabled",
            default_storage_policy = "dfs.storage.default.policy",
            summaries_check_first = "dfs.permissions.ContentSummary.subAccess",
            owners_set_quotas = "dfs.permissions.allow.owner.set.quota",
            protects_subdirectories = "dfs.protected.subdirectories.enable",
            objects_max = "dfs.namenode.max.objects",
            snapshots_deleted_in_order = "dfs.namenode.snapshot.deletion.ordered",
            snapshot_trash_roots = "dfs.namenode.snapshot.trashroot.enabled",
            group_quiet_ms = "cairn.ec.contiguous.quiet-time",
            group_short_quiet_ms = "cairn.ec.contiguous.short-quiet-time",
            group_len_min = "cairn.ec.contiguous.min-length",
            packs = "cairn.ec.packing.enabled",
            protected_directories = "fs.protected.directories",
        );
        let snapshots = compare!(&self.snapshots, &other.snapshots, SnapshotSettings without {}:
            per_directory_max = "dfs.namenode.snapshot.max.limit",
            total_max = "dfs.namenode.snapshot.filesystem.limit",
            capture_open_files = "dfs.namenode.snapshot.capture.openfiles",
            skip_access_time = "dfs.namenode.snapshot.skip.capture.accesstime-only-change",
            diff_below_root = "dfs.namenode.snapshotdiff.allow.snap-root-descendant",
            diff_page = "dfs.namenode.snapshotdiff.listing.limit",
        );
        settings.into_iter().chain(snapshots).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_differs_is_named() {
        let (settings, snapshots) = (Settings::default(), SnapshotSettings::default());
        let here = Obeyed::new(settings.clone(), snapshots);
        assert_eq!(here.differences(&here), []);
        let other = Settings {
            permissions_enabled: false,
            protected_directories: vec!["/a".to_string()],
            rules: 0,
            ..settings
        };
        let there = Obeyed::new(other, SnapshotSettings { total_max: 7, ..snapshots });
        let found = here.differences(&there);
        let keys: Vec<_> = found.iter().map(|it| it.key).collect();
        let expected = [
            "dfs.permissions.enabled",
            "fs.protected.directories",
            "dfs.namenode.snapshot.filesystem.limit",
        ];
        assert_eq!(keys, expected);
        assert_eq!((found[0].first.as_str(), found[0].second.as_str()), ("true", "false"));
        assert_ne!(here.to_bytes(), there.to_bytes());
        let older = Obeyed::new(Settings { rules: 0, ..Settings::default() }, snapshots);
        assert_eq!(here.to_bytes(), older.to_bytes(), "what a build knows is not configured");
    }
}
