//! Keeps the lease of open files alive: one renewal for all files of a file system.
//!
//! Source: Hadoop 3.5.0 `LeaseRenewer`: every half of the soft limit (60 s) while a file is open.

use crate::protocol::namenode::NameNode;
use cairn_wire::proto::hdfs::{RenewLeaseRequestProto, RenewLeaseResponseProto};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Half of the soft limit.
const RENEW_EVERY: Duration = Duration::from_secs(30);

/// The lease of one client name.
pub(crate) struct Leases {
    namenode: NameNode,
    client_name: String,
    /// Alive while a file is open.
    open: Mutex<Weak<Lease>>,
}

/// Keeps the lease renewed until dropped; clones count as one.
pub(crate) struct Lease {
    renewal: tokio::task::AbortHandle,
}

impl Leases {
    pub(crate) fn new(namenode: NameNode, client_name: String) -> Leases {
        Leases { namenode, client_name, open: Mutex::default() }
    }

    /// Renews the lease for as long as the answer, or a clone of it, lives.
    pub(crate) fn hold(&self) -> Arc<Lease> {
        let mut open = self.open.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(lease) = open.upgrade() {
            return lease;
        }
        let task = tokio::spawn(renew(self.namenode.clone(), self.client_name.clone()));
        let lease = Arc::new(Lease { renewal: task.abort_handle() });
        *open = Arc::downgrade(&lease);
        lease
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

async fn renew(namenode: NameNode, client_name: String) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let request =
            RenewLeaseRequestProto { client_name: client_name.clone(), namespaces: Vec::new() };
        let renewed: Result<RenewLeaseResponseProto, _> =
            namenode.call("renewLease", &request).await;
        if let Err(error) = renewed {
            // The hard limit is minutes away: the next renewal may still come in time.
            tracing::warn!(%error, client = client_name, "could not renew the lease");
        }
    }
}
