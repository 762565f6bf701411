//! What an operator does while everything else fails: DataNodes leave, for good or for a while, are
//! switched off, come back, are joined by new ones, and move to other racks.

use crate::data_node::{DataNode, Intent};
use crate::rng::Rng;
use crate::world::{Event, World};
use cairn_redundancy::{AdminState, StorageType};

/// DataNodes that a simulation has at most.
const MOST_NODES: usize = 14;
/// When an operator says of a node that has died on its way out that it will not be back: it is known to be dead by then.
const GIVEN_UP_MS: u64 = 120_000;

impl World<'_> {
    /// Does something with a node; returns whether anything was done.
    pub(crate) fn operate(&mut self, node: usize) -> bool {
        match self.rng.range(0, 10) {
            0..=3 => self.decommission(node),
            4..=6 => self.begin_maintenance(node),
            7 => self.join_node(),
            _ => self.change_rack(node),
        }
    }

    fn can_be_told_to_leave(&self, node: usize) -> bool {
        let is_serving = !self.nodes[node].is_gone && self.nodes[node].intent == Intent::Serve;
        self.name_node.up && is_serving && self.twin(node).is_none()
    }

    /// A node is to leave; for a while, or until quiet time.
    fn decommission(&mut self, node: usize) -> bool {
        if !self.can_be_told_to_leave(node) {
            return false;
        }
        self.note(|| format!("dn-{node} is to leave"));
        self.count("DataNodes leave");
        self.nodes[node].intent = Intent::Leave;
        self.name_node.set_intent(node, Intent::Leave);
        let delay = self.rng.range(5000, 200_000);
        self.after(delay, Event::NodeStays { node });
        true
    }

    /// A node is to be away for a while. It comes back before that is over, or late.
    fn begin_maintenance(&mut self, node: usize) -> bool {
        if !self.can_be_told_to_leave(node) {
            return false;
        }
        let until_ms = self.now_ms + self.rng.range(10_000, 200_000);
        self.note(|| format!("dn-{node} is to be away until {until_ms}"));
        self.count("DataNodes in maintenance");
        self.nodes[node].intent = Intent::Away { until_ms };
        self.name_node.set_intent(node, Intent::Away { until_ms });
        let delay = self.rng.range(5000, 250_000);
        self.after(delay, Event::NodeStays { node });
        true
    }

    /// A node is to serve, with whatever it holds.
    pub(crate) fn recommission(&mut self, node: usize) {
        if self.nodes[node].intent == Intent::Serve {
            return;
        }
        self.note(|| format!("dn-{node} is to stay"));
        self.nodes[node].intent = Intent::Serve;
        if self.name_node.up {
            self.name_node.set_intent(node, Intent::Serve);
        }
        if std::mem::take(&mut self.nodes[node].is_gone) {
            self.count("DataNodes return");
            self.nodes[node].up = true;
        }
    }

    /// A node has been let go, and may be switched off soon.
    pub(crate) fn let_go(&mut self, node: usize, state: AdminState) {
        self.note(|| format!("dn-{node} is let go: {state:?}"));
        self.count("DataNodes let go");
        self.check_let_go(node, state);
        if !self.is_quiet && self.rng.one_in(2) {
            let delay = self.rng.range(500, 20_000);
            self.after(delay, Event::NodeOff { node, state });
        }
    }

    /// Switches a node off that was let go. What others have without it needs no more room for failures.
    pub(crate) fn switch_off(&mut self, node: usize, state: AdminState) {
        let is_so = self.name_node.up && self.name_node.admin_state(node) == Some(state);
        let is_leaving = !self.nodes[node].is_serving(self.now_ms);
        if self.is_quiet || !is_so || !is_leaving || !self.nodes[node].up {
            return;
        }
        // One in maintenance comes back.
        if state == AdminState::Decommissioned && !self.can_lose(node) {
            return;
        }
        let mut rng = Rng::new(self.rng.any());
        self.nodes[node].crash(false, &mut rng);
        self.note(|| format!("dn-{node} is switched off, {state:?}"));
        self.count("DataNodes switched off");
        if state == AdminState::Decommissioned {
            self.nodes[node].is_gone = true;
        } else {
            let (delay, life) = (self.rng.range(5000, 150_000), self.nodes[node].life);
            self.after(delay, Event::NodeStarts { node, life });
        }
    }

    /// Whether a node may be gone for good, which counts as a failure of what others have not without it.
    fn can_lose(&mut self, node: usize) -> bool {
        let mut at_risk = self.held(node);
        at_risk.retain(|id| !self.is_whole_without(id.group(), node));
        self.fail_for(node, &at_risk)
    }

    /// A new node, perhaps in a new rack.
    fn join_node(&mut self) -> bool {
        let number = self.nodes.len();
        if number >= MOST_NODES {
            return false;
        }
        let rack = self.any_rack();
        self.note(|| format!("dn-{number} is new, in {rack}"));
        self.count("DataNodes join");
        let kinds = self.volume_kinds();
        let is_lazy = self.nodes.first().is_some_and(|node| node.is_lazy);
        let mut node = DataNode::new(number, rack, &kinds);
        node.is_lazy = is_lazy;
        self.nodes.push(node);
        self.after(100, Event::Heartbeat { node: number });
        true
    }

    /// One of the racks, or one more.
    pub(crate) fn any_rack(&mut self) -> String {
        let mut racks: Vec<&str> = self.nodes.iter().map(|node| node.rack.as_str()).collect();
        racks.sort_unstable();
        racks.dedup();
        format!("/rack{}", self.rng.index(racks.len() + 1))
    }

    /// A node is carried to another rack, and started there.
    fn change_rack(&mut self, node: usize) -> bool {
        let rack = self.any_rack();
        if self.nodes[node].is_gone || !self.stands(node) || !self.crash_node(node) {
            return false;
        }
        self.note(|| format!("dn-{node} is moved to {rack}"));
        self.count("DataNodes change racks");
        self.nodes[node].rack = rack;
        true
    }

    /// A whole rack is cut off, or everything.
    pub(crate) fn isolate_rack(&mut self, node: usize) -> bool {
        if self.rng.one_in(4) {
            self.note(|| "all DataNodes are cut off".to_string());
            self.count("all DataNodes cut off");
            return (0..self.nodes.len()).fold(false, |any, node| any | self.isolate(node));
        }
        let rack = self.nodes[node].rack.clone();
        self.note(|| format!("{rack} is cut off"));
        self.count("racks cut off");
        let of_rack = (0..self.nodes.len()).filter(|at| self.nodes[*at].rack == rack);
        let of_rack: Vec<usize> = of_rack.collect();
        let mut any = false;
        for node in of_rack {
            any |= self.isolate(node);
        }
        any
    }

    /// Says once more that a node is to leave, as one does of one that is dead.
    pub(crate) fn give_up(&mut self, node: usize) {
        self.note(|| format!("dn-{node} is given up"));
        self.name_node.set_intent(node, Intent::Serve);
        self.name_node.set_intent(node, self.nodes[node].intent);
    }

    /// In quiet time some nodes stay away, if all that is there has places on the others.
    pub(crate) fn settle_operator(&mut self) {
        let widest = self.name_node.widest();
        let mut serving = self.node_count();
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_removed {
                continue;
            }
            let is_told = self.nodes[node].intent != Intent::Serve;
            let may_stay =
                is_told && !self.nodes[node].has_kind(StorageType::Archive) && self.rng.one_in(2);
            if may_stay && serving > widest.max(4) {
                serving -= 1;
                // One that died on its way out may stay dead.
                if !self.nodes[node].up && !self.nodes[node].is_gone && self.rng.one_in(2) {
                    self.nodes[node].is_gone = self.can_lose(node);
                }
                if self.nodes[node].is_gone {
                    // Nobody is to wait for it.
                    self.nodes[node].intent = Intent::Leave;
                }
                self.nodes[node].up = !self.nodes[node].is_gone;
                self.count("DataNodes stay away");
                // Its time may have been over by a clock that was wrong.
                if self.nodes[node].is_gone {
                    self.after(GIVEN_UP_MS, Event::NodeGivenUp { node });
                }
                if self.name_node.up {
                    self.name_node.set_intent(node, self.nodes[node].intent);
                }
                continue;
            }
            self.recommission(node);
            self.nodes[node].up = true;
        }
    }
}
