//! DataNodes that hear of all members who leads, and obey one.

use super::{Mistake, World};
use cairn_quorum::{Role, claim};
use cairn_replica::following::{Claim, Following, Heard};

const NODES: usize = 3;

#[derive(Default)]
struct Node {
    following: Following,
    /// The greatest term that it has heard of.
    term: u64,
}

/// All DataNodes.
#[derive(Default)]
pub struct Nodes {
    nodes: [Node; NODES],
    /// How often one has begun to follow another leader.
    pub followed: u64,
}

impl World {
    /// A DataNode hears what a member says of itself.
    pub(super) fn heartbeat(&mut self) -> Result<(), String> {
        let (node, at) = (self.dice.below(NODES as u64) as usize, self.dice.below(3) as usize);
        if self.has_faults && self.dice.one_in(500) {
            self.nodes.nodes[node] = Node::default();
        }
        if !self.is_running(at) {
            return Ok(());
        }
        let clock = self.clock(at);
        let Some(process) = &self.places[at].process else { return Ok(()) };
        let (quorum, term) = (&process.quorum, process.quorum.term());
        let is_active = quorum.role() == (Role::Leader { is_ready: true });
        if is_active && quorum.lease(clock).is_none_or(|until| until <= clock) {
            // It has no right to answer, and so says nothing.
            return Ok(());
        }
        let txid = match self.mistake {
            Some(Mistake::ClaimByAppended) => {
                (process.agreed..).take_while(|index| quorum.entry(index + 1).is_some()).count()
                    as u64
                    + process.agreed
            }
            _ => claim(term, process.agreed),
        };
        let Node { following, term: greatest } = &mut self.nodes.nodes[node];
        let heard = following.hear(at, Claim { is_active, txid, term: Some(term) });
        *greatest = term.max(*greatest);
        self.nodes.followed += u64::from(heard == Heard::Begun);
        if is_active && term == *greatest && !following.obeys(at) {
            return Err(format!(
                "{at} leads in {term}, and DataNode {node} does not obey: {heard:?}"
            ));
        }
        if following.obeys(at) && term < *greatest {
            return Err(format!(
                "DataNode {node} obeys {at} of {term}, and has heard of {greatest}"
            ));
        }
        Ok(())
    }
}
