//! What operators order for the whole file system.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::ops::Context;
use crate::orders::{self, NODES_MAX, NodeName, NodeOrder, Orders};
use crate::outcome::Outcome;
use crate::perm;

/// Has nothing changed from now on, or ends that.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSafeMode {
    /// Whether it is on.
    pub on: bool,
}

/// Bounds what each DataNode moves for balancers.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetBalancerBandwidth {
    /// Bytes; 0 for what each has in its settings.
    pub bytes_per_second: u64,
}

/// Says what is to become of DataNodes.
///
/// Answer: `Outcome::Done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderNodes {
    /// Names of which what was ordered before is withdrawn.
    pub withdrawn: Vec<NodeName>,
    /// What is ordered, in the place of what was ordered before of the same names.
    pub ordered: Vec<NodeOrder>,
}

encode_struct!(SetSafeMode { on });
encode_struct!(SetBalancerBandwidth { bytes_per_second });
encode_struct!(OrderNodes { withdrawn, ordered });

/// Changes the orders, if that is a change.
fn change(cx: &mut Context<'_, '_>, change: impl FnOnce(&mut Orders)) -> Result<Outcome> {
    perm::check_superuser(cx.settings, cx.caller)?;
    let was = orders::get(cx.store)?;
    let mut now = was.clone();
    change(&mut now);
    if now.nodes.len() > NODES_MAX {
        return Err(NamespaceError::Io(format!("Orders are for {NODES_MAX} DataNodes at most")));
    }
    if now != was {
        orders::put(cx.store, &now)?;
    }
    Ok(Outcome::Done)
}

impl SetSafeMode {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        change(cx, |orders| orders.safe_mode = self.on)
    }
}

impl SetBalancerBandwidth {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        change(cx, |orders| orders.balancer_bandwidth = self.bytes_per_second)
    }
}

impl OrderNodes {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        change(cx, |orders| {
            let is_named = |order: &NodeOrder| {
                let is_ordered = self.ordered.iter().any(|new| new.name == order.name);
                is_ordered || self.withdrawn.contains(&order.name)
            };
            orders.nodes.retain(|order| !is_named(order));
            orders.nodes.extend(self.ordered.iter().cloned());
        })
    }
}
