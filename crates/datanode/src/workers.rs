//! The kinds of background work that a DataNode does.

use cairn_operate::workers::{Kind, Pause};

/// One for each NameNode.
pub(crate) static REPORTS: Kind = Kind {
    name: "reports",
    does: "Sends heartbeats and reports to a NameNode, and does what it orders.",
    pause: Pause::Never,
};
/// One for each volume.
pub(crate) static BLOCK_SCANNER: Kind = Kind {
    name: "block-scanner",
    does: "Reads every replica of a volume now and then. A round is a replica.",
    pause: Pause::Safe,
};
pub(crate) static DIRECTORY_SCANNER: Kind = Kind {
    name: "directory-scanner",
    does: "Compares the folders of all volumes with what is known of them.",
    pause: Pause::Safe,
};
pub(crate) static LAZY_WRITER: Kind = Kind {
    name: "lazy-writer",
    does: "Saves replicas that are in memory only.",
    pause: Pause::Never,
};
