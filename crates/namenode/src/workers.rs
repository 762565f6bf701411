//! The kinds of background work that a NameNode does.
//!
//! Each has its loop in the file of what it is for; `run.rs` begins them.

use cairn_operate::workers::{Kind, Pause};

const fn kind(name: &'static str, does: &'static str, pause: Pause) -> Kind {
    Kind { name, does, pause }
}

pub(crate) static REDUNDANCY: Kind = kind(
    "redundancy",
    "Finds dead DataNodes, ends safe mode, plans what is to be copied, decoded and deleted.",
    Pause::Never,
);
pub(crate) static TAKING_OVER: Kind = kind(
    "taking-over",
    "Judges what DataNodes have told another leader, once after this NameNode has begun to lead.",
    Pause::Never,
);
pub(crate) static FOLLOW_UP: Kind =
    kind("follow-up", "Submits what follows from changes and reports.", Pause::Never);
pub(crate) static LEASES: Kind =
    kind("leases", "Closes files whose writers are gone.", Pause::Never);
pub(crate) static FREE_SPACE: Kind =
    kind("free-space", "Turns safe mode on when the disk is nearly full.", Pause::Never);
pub(crate) static DELETED_TREES: Kind =
    kind("deleted-trees", "Removes what is left of deleted trees.", Pause::Safe);
pub(crate) static LOG: Kind = kind("log", "Ends the NameNode when its log fails.", Pause::Never);
pub(crate) static CACHE_DIRECTIVES: Kind =
    kind("cache-directives", "Finds what is to be in DataNodes' memory.", Pause::Never);
pub(crate) static CONTIGUOUS_GROUPS: Kind = kind(
    "contiguous-groups",
    "Has blocks put into contiguous groups and containers, and both made anew.",
    Pause::By("cairn ec pause"),
);
pub(crate) static CONVERTED: Kind =
    kind("converted", "Deletes what converted files were made of.", Pause::Safe);
pub(crate) static SATISFIER: Kind =
    kind("satisfier", "Queues what was asked of the satisfier before the start.", Pause::Never);
pub(crate) static KEY_WARM_UP: Kind =
    kind("key-warm-up", "Fetches keys for files in encryption zones.", Pause::Never);
pub(crate) static DELEGATION_TOKENS: Kind =
    kind("delegation-tokens", "Removes ended tokens, and makes new keys for them.", Pause::Never);
pub(crate) static BLOCK_TOKEN_KEYS: Kind =
    kind("block-token-keys", "Makes new keys for block tokens.", Pause::Never);
pub(crate) static POLICIES: Kind =
    kind("policies", "Gets Ranger's policies when they change.", Pause::Never);
pub(crate) static REENCRYPTION: Kind =
    kind("re-encryption", "Encrypts the keys of files anew.", Pause::Safe);
pub(crate) static TRASH: Kind =
    kind("trash", "Makes checkpoints of the trash, and deletes old ones.", Pause::Safe);
pub(crate) static LAZY_FILES: Kind =
    kind("lazy-files", "Deletes lost files with the policy LAZY_PERSIST.", Pause::Safe);
pub(crate) static SNAPSHOTS: Kind =
    kind("snapshots", "Deletes snapshots that have become the earliest.", Pause::Safe);
pub(crate) static SNAPSHOT_TRASH: Kind =
    kind("snapshot-trash", "Makes the trash of snapshottable directories.", Pause::Never);
pub(crate) static CHART_SAMPLES: Kind =
    kind("chart-samples", "Takes samples for the charts of the pages.", Pause::Safe);
pub(crate) static LAYOUT_COUNT: Kind =
    kind("layout-count", "Counts how data is kept, for the pages.", Pause::Safe);
