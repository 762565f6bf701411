//! What pages are made of, looked at once for all who ask at about the same time.

use std::sync::Arc;
use std::time::Duration;

use cairn_namespace::query::{self, Totals};
use cairn_redundancy::{ClusterStats, DataNode, LeavingNode, Now, ReportKind};

use super::census::Censuses;
use super::history::History;
use super::kept::Kept;
use super::leaving;
use crate::node::NameNode;

/// How old what people look at may be.
const AGE: Duration = Duration::from_secs(1);

/// What all pages draw on, taken at one time.
pub(super) struct View {
    pub(super) stats: ClusterStats,
    pub(super) totals: Totals,
    pub(super) nodes: Vec<(DataNode, usize)>,
    pub(super) safe_mode: Option<String>,
    pub(super) now: Now,
    /// From when on DataNodes are told to delete, ms since the epoch.
    pub(super) deletions_begin_ms: u64,
}

impl View {
    /// Whether every block and group is known to lack nothing.
    pub(super) fn is_whole(&self) -> bool {
        let stats = &self.stats;
        let lost = stats.replicated.missing + stats.groups.missing;
        let low = stats.replicated.low_redundancy + stats.groups.low_redundancy;
        self.safe_mode.is_none() && lost + low + stats.pending_reconstruction == 0
    }
}

/// Looks.
pub(super) fn view(node: &NameNode) -> View {
    let now = node.now();
    let delay_ms = node.config.deletion_delay.as_millis() as u64;
    let totals = node.ns.read(|store| query::totals(store)).unwrap_or_default();
    let cluster = node.cluster();
    View {
        stats: cluster.stats(now),
        totals,
        nodes: cluster
            .datanode_report(ReportKind::All)
            .into_iter()
            .map(|n| (n.clone(), cluster.block_count(n)))
            .collect(),
        safe_mode: cluster.safe_mode().is_on().then(|| cluster.safe_mode_tip(now)),
        now,
        deletions_begin_ms: node.started_ms.saturating_add(delay_ms),
    }
}

/// A block or group that is lost.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    pub(super) path: String,
    pub(super) block: String,
    pub(super) why: String,
}

/// What the pages of a NameNode share.
pub(crate) struct Pages {
    pub(super) node: Arc<NameNode>,
    view: Kept<View>,
    leaving: Kept<Vec<(String, LeavingNode)>>,
    pub(super) lost: Kept<Vec<Lost>>,
    pub(super) history: History,
    pub(super) censuses: Censuses,
}

impl Pages {
    /// Nothing is known yet.
    pub(crate) fn new(node: Arc<NameNode>) -> Pages {
        Pages {
            node,
            view: Kept::default(),
            leaving: Kept::default(),
            lost: Kept::default(),
            history: History::default(),
            censuses: Censuses::default(),
        }
    }

    /// The cluster as it is, or was a moment ago.
    pub(super) fn now(&self) -> Arc<View> {
        self.view.get(AGE, || view(&self.node))
    }

    /// DataNodes that are taken out, with how far each is.
    pub(super) fn leaving(&self) -> Arc<Vec<(String, LeavingNode)>> {
        let told = || leaving::leaving_nodes(&self.node, 0).into_iter();
        self.leaving.get(AGE, || told().map(|(name, _, told)| (name, told)).collect())
    }
}
