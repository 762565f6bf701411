//! One check: what was asked for, and what was found so far.

use super::options::Options;
use super::out::Out;
use super::storage::StorageSummary;
use super::totals::Totals;
use crate::java_text::java_date;
use crate::node::NameNode;
use cairn_namespace::Caller;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// One check.
pub(super) struct Check {
    pub(super) node: Arc<NameNode>,
    pub(super) caller: Caller,
    /// How it is known who that is, by its name in Hadoop.
    pub(super) by: &'static str,
    pub(super) peer: IpAddr,
    pub(super) options: Options,
    pub(super) out: Out,
    pub(super) started: Instant,
    pub(super) directories: u64,
    pub(super) replicated: Totals,
    pub(super) striped: Totals,
    pub(super) storage: StorageSummary,
    /// Files that could not be looked at.
    pub(super) passed_over: u64,
    /// Whether something that was asked for could not be done.
    pub(super) internal_error: bool,
    /// Whether `/lost+found` can be used, once that is known.
    pub(super) lost_found: Option<bool>,
}

impl Check {
    pub(super) fn new(
        node: Arc<NameNode>,
        (caller, by): (Caller, &'static str),
        peer: IpAddr,
        options: Options,
        out: Out,
    ) -> Check {
        Check {
            node,
            caller,
            by,
            peer,
            options,
            out,
            started: Instant::now(),
            directories: 0,
            replicated: Totals::default(),
            striped: Totals::default(),
            storage: StorageSummary::default(),
            passed_over: 0,
            internal_error: false,
            lost_found: None,
        }
    }

    /// `FSCK started by USER (auth:WAY) from /HOST`
    pub(super) fn tell_start(&mut self, what: &str) {
        let now = java_date(self.node.now().wall_ms);
        let line = format!(
            "FSCK started by {} (auth:{}) from /{}{what} at {now}",
            self.caller.user, self.by, self.peer
        );
        tracing::info!("{line}");
        self.out.print(&format!("{line}\n"));
    }

    /// `FSCK ended at TIME in NUMBER milliseconds`
    pub(super) fn tell_end(&mut self) {
        let millis = self.started.elapsed().as_millis();
        let now = java_date(self.node.now().wall_ms);
        self.out.print(&format!("FSCK ended at {now} in {millis} milliseconds\n"));
    }
}
