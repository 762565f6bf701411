//! Machines that are cloned: a second process starts with a copy of the disks and the UUID of a first.
//!
//! Which of them is the DataNode is decided by the cores: the one that has registered last, until another does. The other
//! goes on with what it was told until it hears that it is refused, and then stops. An operator starts the first one again
//! after a while, as one does who has not understood; a clone that was refused is taken away. What one of the two lacks of
//! what the other had is as if it had failed, so it does not register while blocks do not bear that.

use crate::data_node::{DataNode, Intent};
use crate::rng::Rng;
use crate::world::{Event, World};

impl World<'_> {
    /// The machine that is a DataNode: whose process has registered last.
    pub(crate) fn standing_of(&self, identity: usize) -> usize {
        self.standing.get(&identity).copied().unwrap_or(identity)
    }

    /// Whether a machine is its DataNode.
    pub(crate) fn stands(&self, node: usize) -> bool {
        self.standing_of(self.name_node.identity(node)) == node
    }

    /// Another machine that may speak for the same DataNode.
    pub(crate) fn twin(&self, node: usize) -> Option<usize> {
        let identity = self.name_node.identity(node);
        let is_twin = |other: &&DataNode| {
            let number = other.number;
            number != node && !other.is_removed && self.name_node.identity(number) == identity
        };
        self.nodes.iter().find(is_twin).map(|other| other.number)
    }

    /// DataNodes, of which some may be on several machines.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len() - self.name_node.clones.len()
    }

    /// A machine is cloned. Its clone starts soon.
    pub(crate) fn clone_machine(&mut self) {
        if self.is_quiet || self.faults.left == 0 {
            return;
        }
        let delay = self.looks.range(20_000, 200_000);
        self.after(delay, Event::Clone);
        let node = self.looks.index(self.nodes.len());
        let serves = self.nodes[node].intent == Intent::Serve && !self.nodes[node].is_gone;
        if !serves || self.twin(node).is_some() || self.nodes[node].replicas.is_empty() {
            return;
        }
        let number = self.nodes.len();
        let rack = match self.looks.one_in(2) {
            true => self.nodes[node].rack.clone(),
            false => self.any_rack(),
        };
        self.note(|| format!("dn-{number} in {rack} is a clone of dn-{node}"));
        self.count("DataNodes cloned");
        let copy = self.nodes[node].cloned(number, rack, &mut Rng::new(self.looks.any()));
        self.name_node.clones.insert(number, self.name_node.identity(node));
        let (delay, life) = (self.looks.range(100, 60_000), copy.life);
        self.nodes.push(copy);
        self.after(delay, Event::NodeStarts { node: number, life });
        self.after(delay, Event::Heartbeat { node: number });
        self.faults.left -= 1;
    }

    /// Some clones are switched off before anybody refuses them.
    pub(crate) fn clone_started(&mut self, node: usize) {
        if self.name_node.clones.contains_key(&node) && self.rng.one_in(2) {
            let (delay, life) = (self.rng.range(1000, 60_000), self.nodes[node].life);
            self.after(delay, Event::CloneOff { node, life });
        }
    }

    /// A clone is switched off, and the machine that it is a clone of is switched on.
    pub(crate) fn switch_clone_off(&mut self, node: usize) {
        let Some(other) = self.twin(node).filter(|_| !self.is_quiet && self.nodes[node].up) else {
            return;
        };
        self.note(|| format!("dn-{node} is switched off, dn-{other} is to do its work"));
        self.count("clones switched off");
        self.nodes[node].crash(false, &mut Rng::new(0));
        self.starts_again(node);
        if !self.nodes[other].up {
            self.starts_again(other);
        }
    }

    /// A process registers. Says whether it is taken.
    pub(crate) fn register(&mut self, node: usize) -> bool {
        let identity = self.name_node.identity(node);
        let before = self.standing_of(identity);
        let (mut lost, mut called_bad) = (Vec::new(), Vec::new());
        if before != node {
            self.nodes[node].drop_damaged();
            lost = self.loss(before, &self.nodes[node]);
            let held = self.held(node).into_iter();
            called_bad = held.filter(|id| self.counts_as_bad(before, *id)).collect();
            if !self.bears_all(node, lost.iter().chain(&called_bad).copied()) {
                return false;
            }
        }
        let rack = self.parts.rack(self.name_node.rack_of(node), &self.nodes[node].rack);
        let (life, intent) = (self.nodes[node].life, self.nodes[node].intent);
        if !self.name_node.register(node, life, &rack, intent) {
            self.refused_for_other(node);
            return false;
        }
        if before != node {
            self.note(|| format!("dn-{node} takes the place of dn-{before}, and lacks {lost:?}"));
            self.count("DataNodes in the place of others");
            let held = self.held(before).into_iter().chain(self.held(node));
            let held: Vec<_> = held.collect();
            self.fail_for(node, &lost);
            self.fail_for(node, &called_bad);
            self.note_torn(node, &lost);
            self.standing.insert(identity, node);
            // What is known of it is what the other one has told.
            self.nodes[node].has_reported = false;
            self.note_called_bad(node, called_bad);
            held.into_iter().for_each(|id| self.touch(id));
        }
        true
    }

    /// The NameNode refuses a process in whose place another one is: it stops.
    pub(crate) fn refused_for_other(&mut self, node: usize) {
        self.note(|| format!("dn-{node} is refused, another one is in its place"));
        self.count("DataNodes refused for others");
        self.nodes[node].crash(false, &mut Rng::new(0));
        match self.name_node.clones.contains_key(&node) {
            true => self.nodes[node].remove(),
            false => self.starts_again(node),
        }
    }

    /// Of two machines that could be a DataNode, the one that is it stays.
    pub(crate) fn settle_clones(&mut self) {
        for node in 0..self.nodes.len() {
            if !self.stands(node) {
                self.note(|| format!("dn-{node} is taken away"));
                self.nodes[node].remove();
            }
        }
    }
}
