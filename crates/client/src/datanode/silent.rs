//! DataNodes that could not be reached lately, so that not every block pays for trying them again.
//!
//! Only a preference: where nothing else can serve, they are asked all the same.
//! Source: Hadoop 3.5.0 `DFSInputStream#addToLocalDeadNodes`, `DeadNodeDetector`.

use crate::error::ClientError;
use crate::types::DataNodeAddr;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a DataNode is avoided.
const AVOID_FOR: Duration = Duration::from_secs(30);

/// Since when DataNodes, by identity, are avoided.
#[derive(Default)]
pub(crate) struct SilentNodes {
    since: Mutex<HashMap<String, Instant>>,
}

impl SilentNodes {
    /// Avoids a DataNode for a while. True if it was not avoided already.
    pub(crate) fn note(&self, addr: &DataNodeAddr) -> bool {
        let mut since = self.lock();
        since.retain(|_, since| since.elapsed() < AVOID_FOR);
        since.insert(addr.uuid.clone(), Instant::now()).is_none()
    }

    /// Whether a DataNode should be asked only when nobody else can serve.
    pub(crate) fn is_avoided(&self, addr: &DataNodeAddr) -> bool {
        self.lock().get(&addr.uuid).is_some_and(|since| since.elapsed() < AVOID_FOR)
    }

    /// Gives all DataNodes another chance.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.since.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Whether an error says that nobody answers at the DataNode's address.
pub(crate) fn is_silence(error: &ClientError) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut};
    let kinds = [ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut];
    matches!(error, ClientError::DataNode { source, .. } if kinds.contains(&source.kind()))
}
