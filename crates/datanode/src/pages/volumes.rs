//! What all pages tell alike: volumes, and the name of this DataNode.

use crate::node::Node;
use crate::volume::Usage;

/// A volume as pages show it.
pub(super) struct VolumeView {
    pub(super) dir: String,
    /// `DS-` and a UUID; empty of one that could not be opened.
    pub(super) storage_id: String,
    /// `DISK`, say; empty likewise.
    pub(super) storage_type: &'static str,
    pub(super) is_failed: bool,
    pub(super) usage: Usage,
    pub(super) reserved: u64,
    pub(super) promised: u64,
    pub(super) replicas: u64,
}

/// All volumes, also those that are lost.
pub(super) fn volumes(node: &Node) -> Vec<VolumeView> {
    let open = node.dataset.volumes();
    let mut views: Vec<VolumeView> = open
        .iter()
        .map(|volume| VolumeView {
            dir: volume.root().display().to_string(),
            storage_id: volume.storage_id().to_string(),
            storage_type: volume.storage_type().name(),
            is_failed: volume.is_failed(),
            // Heartbeats tell if it cannot be asked for.
            usage: match volume.is_failed() {
                true => Usage::default(),
                false => volume.usage().unwrap_or_default(),
            },
            reserved: volume.reserved(),
            promised: volume.promised(),
            replicas: volume.replicas(),
        })
        .collect();
    views.extend(node.dataset.unusable_dirs().into_iter().map(|dir| VolumeView {
        dir: dir.display().to_string(),
        storage_id: String::new(),
        storage_type: "",
        is_failed: true,
        usage: Usage::default(),
        reserved: 0,
        promised: 0,
        replicas: 0,
    }));
    views.sort_by(|a, b| a.dir.cmp(&b.dir));
    views
}

/// All volumes together.
pub(super) fn sum(volumes: &[VolumeView]) -> Usage {
    volumes.iter().fold(Usage::default(), |sum, volume| Usage {
        capacity: sum.capacity + volume.usage.capacity,
        used: sum.used + volume.usage.used,
        remaining: sum.remaining + volume.usage.remaining,
        non_dfs_used: sum.non_dfs_used + volume.usage.non_dfs_used,
    })
}

/// The name that the NameNode knows this DataNode by.
pub(super) fn host(node: &Node) -> String {
    node.config.hostname.clone().unwrap_or_else(|| node.xfer_addr.ip().to_string())
}
