//! Work that has failed: which nodes to leave out for a while, and how long to wait for the next try.
//!
//! The first failure of a block costs nothing but the node that is suspected; further ones double the
//! wait each time, so that work that cannot succeed does not keep nodes busy.

use crate::clock::{Now, millis};
use crate::config::Config;
use crate::handle::NodeHandle;
use cairn_stripe::BlockId;
use std::collections::BTreeMap;

/// How many rounds a suspected node is left out after the first failure.
const ROUNDS_AVOIDED: u64 = 10;
/// Doublings of the wait, at most.
const MOST_DOUBLINGS: u32 = 8;

#[derive(Clone, Debug, Default)]
struct Setback {
    failures: u32,
    not_before_ms: u64,
    forgotten_ms: u64,
    suspects: Vec<(NodeHandle, u64)>,
}

/// The blocks whose work has failed of late.
#[derive(Clone, Debug, Default)]
pub(super) struct Setbacks {
    blocks: BTreeMap<BlockId, Setback>,
}

impl Setbacks {
    /// Notes that work on a block has failed, through `suspect` if that is known.
    pub(super) fn note(
        &mut self,
        id: BlockId,
        suspect: Option<NodeHandle>,
        config: &Config,
        now: Now,
    ) {
        let (round, longest) = (millis(config.redundancy_interval), millis(config.pending_timeout));
        let setback = self.blocks.entry(id).or_default();
        let factor = 1_u64 << setback.failures.min(MOST_DOUBLINGS);
        let wait = if setback.failures == 0 { 0 } else { round.saturating_mul(factor) };
        let avoided = round.saturating_mul(ROUNDS_AVOIDED * factor).min(longest);
        setback.failures = setback.failures.saturating_add(1);
        setback.not_before_ms = now.mono_ms.saturating_add(wait.min(longest));
        setback.forgotten_ms = now.mono_ms.saturating_add(longest.saturating_mul(2));
        if let Some(suspect) = suspect {
            setback.suspects.retain(|(node, _)| *node != suspect);
            setback.suspects.push((suspect, now.mono_ms.saturating_add(avoided)));
        }
    }

    /// When a block may be tried again, if that is later than now.
    pub(super) fn wait_of(&self, id: BlockId, now: Now) -> Option<u64> {
        let until = self.blocks.get(&id)?.not_before_ms;
        (until > now.mono_ms).then_some(until)
    }

    /// Nodes to do without for this block, if it can be done without them.
    pub(super) fn suspects(&self, id: BlockId, now: Now) -> Vec<NodeHandle> {
        let suspects = self.blocks.get(&id).map_or(&[][..], |setback| &setback.suspects);
        suspects.iter().filter(|(_, until)| *until > now.mono_ms).map(|(node, _)| *node).collect()
    }

    pub(super) fn forget(&mut self, id: BlockId) {
        self.blocks.remove(&id);
    }

    /// Forgets blocks whose work has not failed for long.
    pub(super) fn expire(&mut self, now: Now) {
        self.blocks.retain(|_, setback| setback.forgotten_ms > now.mono_ms);
    }
}
