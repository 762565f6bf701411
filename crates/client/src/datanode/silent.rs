//! DataNodes that could not be reached lately, so that not every block pays for trying them again.
//!
//! Only a preference: where nothing else can serve, they are asked all the same. After a while they are tried
//! again, beside the others.
//! Source: Hadoop 3.5.0 `DFSInputStream#addToLocalDeadNodes`, `DeadNodeDetector`.

use crate::datanode::pace::Expected;
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
        let before = self.lock().insert(addr.uuid.clone(), Instant::now());
        before.is_none_or(|since| since.elapsed() >= AVOID_FOR)
    }

    /// A DataNode has answered.
    pub(crate) fn answered(&self, addr: &DataNodeAddr) {
        let mut since = self.lock();
        if !since.is_empty() {
            since.remove(&addr.uuid);
        }
    }

    /// What to expect of a DataNode.
    pub(crate) fn expect(&self, addr: &DataNodeAddr) -> Expected {
        match self.lock().get(&addr.uuid) {
            None => Expected::Timely,
            Some(since) if since.elapsed() < AVOID_FOR => Expected::Slow,
            Some(_) => Expected::Uncertain,
        }
    }

    /// Whether no DataNode has been silent.
    pub(crate) fn is_clear(&self) -> bool {
        self.lock().is_empty()
    }

    /// Gives all DataNodes another chance.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.since.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// Whether an error says that a DataNode has closed its connection, as it does to readers that pause for long.
pub(crate) fn is_closed(error: &ClientError) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    matches!(error, ClientError::DataNode { source, .. } if kinds.contains(&source.kind()))
}

/// Whether an error says that nobody answers at the DataNode's address.
pub(crate) fn is_silence(error: &ClientError) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut};
    let kinds = [ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut];
    matches!(error, ClientError::DataNode { source, .. } if kinds.contains(&source.kind()))
}
