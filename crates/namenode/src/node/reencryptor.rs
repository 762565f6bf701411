//! Which encryption zone has the keys of its files encrypted anew.

use std::sync::Mutex;

use cairn_namespace::InodeId;
use cairn_process::held::held;
use tokio::sync::Notify;

/// Which zone is worked on.
#[derive(Debug, Default)]
pub(crate) struct Reencryptor {
    wanted: Notify,
    at: Mutex<Option<InodeId>>,
}

impl Reencryptor {
    /// Looks for zones to work on.
    pub(crate) fn wake(&self) {
        self.wanted.notify_one();
    }

    /// Waits until somebody wants that.
    pub(crate) async fn woken(&self) {
        self.wanted.notified().await;
    }

    /// Whether this zone is the one.
    pub(crate) fn is_at(&self, zone: InodeId) -> bool {
        *held(&self.at) == Some(zone)
    }

    /// This zone is, or none.
    pub(crate) fn set(&self, zone: Option<InodeId>) {
        *held(&self.at) = zone;
    }
}
