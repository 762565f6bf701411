//! Leases whose holder is gone: their files are closed one after the other, or when somebody else wants one.

use cairn_master::{OpError, lease};
use cairn_namespace::query::{self, ExpiredLease};
use cairn_namespace::{Command, InodeId, Outcome};
use cairn_net::rpc_server::Call;

use crate::node::NameNode;

/// Files of expired holders that are looked up at a time.
const PAGE: usize = 256;

impl NameNode {
    /// Closes files of holders beyond the hard limit, or begins the recovery that must come first.
    /// Returns how many files it looked at.
    ///
    /// Source: Hadoop 3.5.0 `LeaseManager#checkLeases`.
    pub(crate) async fn check_leases(&self) -> usize {
        if self.safe_mode_tip().is_some() {
            return 0;
        }
        let mut looked_at = 0;
        let mut last: Option<ExpiredLease> = None;
        loop {
            // One that cannot be released stays where it is, so the next page begins behind it.
            let now_ms = self.now().elapsed_ms;
            let page =
                self.ns.read(|store| query::expired_leases(store, now_ms, last.as_ref(), PAGE));
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "cannot look for expired leases");
                    return looked_at;
                }
            };
            let is_last = page.len() < PAGE;
            for lease in page {
                if last.as_ref().is_none_or(|last| last.holder != lease.holder) {
                    tracing::info!(holder = %lease.holder, "lease has expired");
                }
                self.release(lease.file).await;
                looked_at += 1;
                last = Some(lease);
            }
            if is_last {
                return looked_at;
            }
        }
    }

    /// Submits a command that needs `path` closed; see [`lease::submit_or_recover`].
    pub(crate) async fn submit_or_recover(
        &self,
        call: &Call,
        command: impl Into<Command>,
        path: &str,
    ) -> Result<Outcome, OpError> {
        let (caller, command) = (self.caller(call).await, command.into());
        let op = self.operation(command.name(), call).await;
        lease::submit_or_recover(&op, &caller, self.call_id(call), command, path).await
    }

    async fn release(&self, file: InodeId) {
        match lease::release(&self.own_operation("releaseLease"), file).await {
            Ok(closed) => tracing::info!(%file, closed, "lease recovery"),
            Err(error) => tracing::info!(%file, %error, "lease not released"),
        }
    }
}
