//! How a namespace is opened.

use super::agree::Agreement;
use cairn_namespace::Settings;
use cairn_namespace::obeyed::Obeyed;
use cairn_namespace::snapshot::SnapshotSettings;
use std::time::Duration;

/// When an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the entry is on stable storage.
    Stable,
    /// After the entry is with the operating system: a power cut can lose it, a crash of the process
    /// can't.
    PageCache,
}

/// How to open a [`Namesystem`](super::Namesystem).
#[derive(Clone, Debug)]
pub struct NamesystemOptions {
    /// Limits and switches, put in force at the start.
    pub settings: Settings,
    /// The same of snapshots.
    pub snapshots: SnapshotSettings,
    /// When an answer is given.
    pub durability: Durability,
    /// Bound of the store's cache, in bytes.
    pub cache_len: usize,
    /// A segment of the log that is longer is closed at the next checkpoint, in bytes.
    pub segment_len: u64,
    /// Entries between durable commits of the store, which is what a start replays at most.
    pub checkpoint_entries: u64,
    /// Time between durable commits of the store, if anything has changed.
    pub checkpoint_interval: Duration,
    /// Bytes of the log that stay behind the store, for backups of changes.
    pub kept_log_len: u64,
    /// Most bytes of what entries have done that are kept on the disk for watchers.
    pub event_history_len: u64,
    /// Bytes of the disk that a copy of the store leaves free.
    pub reserved_len: u64,
    /// Most entries that one sync makes durable.
    pub group_max: usize,
    /// The NameNode's own user, who owns the root directory.
    pub superuser: String,
    /// The cluster's id for a new file system; `None` makes one up.
    pub cluster_id: Option<String>,
    /// The address in the block pool's name of a new file system.
    pub block_pool_host: String,
    /// Goes back to the rollback point first; fails without one.
    pub roll_back: bool,
    /// Permission bits of the directory.
    pub dir_mode: u32,
    /// Who has to agree on entries; none for a namespace that is on this machine only. What others agree on need not be
    /// synced here.
    pub agreement: Option<Agreement>,
}

impl NamesystemOptions {
    /// What commands are to obey.
    pub fn obeyed(&self) -> Obeyed {
        Obeyed::new(self.settings.clone(), self.snapshots)
    }
}

impl Default for NamesystemOptions {
    fn default() -> NamesystemOptions {
        NamesystemOptions {
            settings: Settings::default(),
            snapshots: SnapshotSettings::default(),
            durability: Durability::Stable,
            cache_len: 64 << 20,
            segment_len: 8 << 20,
            checkpoint_entries: 20_000,
            checkpoint_interval: Duration::from_secs(10),
            kept_log_len: 0,
            event_history_len: 128 << 20,
            reserved_len: 0,
            group_max: 512,
            superuser: "root".to_string(),
            cluster_id: None,
            block_pool_host: "127.0.0.1".to_string(),
            roll_back: false,
            dir_mode: 0o700,
            agreement: None,
        }
    }
}
