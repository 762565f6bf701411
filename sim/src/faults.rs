//! What goes wrong, and how much of it: never more is destroyed than the blocks bear, so that a loss is a fault of the
//! cores and not of the dice. What passes may come to any number of nodes.

use crate::name_node::Fall;
use crate::rng::Rng;
use crate::world::{Client, Event, World};
use cairn_replica::ReplicaState;
use cairn_stripe::BlockId;

impl World<'_> {
    /// Something may fail now.
    pub(crate) fn fault(&mut self) {
        if self.is_quiet {
            return;
        }
        let delay = self.rng.range(500, self.faults.pause_ms);
        self.after(delay, Event::Fault);
        if self.faults.left == 0 {
            return;
        }
        let node = self.rng.index(self.nodes.len());
        if self.rng.one_in(8) {
            self.nodes[node].take_image();
        }
        // What has another one in its place is nobody's loss.
        let is_counted = self.stands(node);
        let happened = match self.rng.range(0, 17) {
            0 | 1 | 4..=7 if !is_counted => false,
            0 | 1 if self.faults.nodes => self.crash_node(node),
            2 if self.faults.nodes => self.isolate(node),
            3 if self.faults.nodes => self.stall(node),
            4 if self.faults.disks => self.lose_disk(node),
            5 if self.faults.disks => self.fill_disk(node),
            6 if self.faults.disks => self.flip_bit(node),
            7 if self.faults.disks => self.lose_replica(node),
            8 | 9 if self.faults.name_node => self.drop_name_node(),
            10..=12 if self.faults.operator => self.operate(node),
            13 if self.faults.nodes => self.isolate_rack(node),
            14 if self.faults.nodes => self.cut_power(),
            15 if self.faults.name_node => self.set_clock(),
            16 if self.faults.name_node => self.fill_log(),
            _ => false,
        };
        self.faults.left -= u32::from(happened);
    }

    /// All replicas and units that a node holds.
    pub(crate) fn held(&self, node: usize) -> Vec<BlockId> {
        self.nodes[node].replicas.keys().copied().collect()
    }

    /// A node stops. If its blocks bear what that destroys, it loses what was not synced, or comes back as an image of
    /// its disks was.
    pub(crate) fn crash_node(&mut self, node: usize) -> bool {
        if !self.nodes[node].up {
            return false;
        }
        let held = self.held(node);
        let (power_cut, is_old) = (self.rng.one_in(2), self.rng.one_in(4));
        let mut next = self.nodes[node].clone();
        let is_old = is_old && next.restore_image();
        next.crash(power_cut, &mut Rng::new(self.rng.any()));
        if is_old {
            next.has_all_on_disk();
        }
        let lost = self.loss(node, &next);
        // What was told to be bad may be good on an image, and is taken for bad.
        let ids = next.replicas.keys().copied().filter(|_| is_old);
        let called_bad: Vec<BlockId> = ids.filter(|id| self.counts_as_bad(node, *id)).collect();
        let failing: Vec<BlockId> = lost.iter().chain(&called_bad).copied().collect();
        if self.fail_for(node, &failing) {
            self.note(|| {
                format!(
                    "dn-{node} crashes, power cut: {power_cut}, old state: {is_old}, loses {lost:?}"
                )
            });
            self.nodes[node] = next;
            self.note_torn(node, &lost);
            if is_old {
                self.note_restored(node, &lost);
            }
            self.note_called_bad(node, called_bad);
            self.count(if is_old { "DataNodes restored" } else { "DataNodes crash" });
        } else {
            self.note(|| format!("dn-{node} crashes"));
            self.nodes[node].crash(false, &mut Rng::new(0));
            self.count("DataNodes crash");
        }
        held.into_iter().for_each(|id| self.touch(id));
        self.starts_again(node);
        true
    }

    pub(crate) fn note_torn(&mut self, node: usize, lost: &[BlockId]) {
        for id in lost {
            if let Some(stored) = self.nodes[node].replicas.get_mut(id) {
                stored.is_torn = true;
            }
        }
    }

    pub(crate) fn starts_again(&mut self, node: usize) {
        let (delay, life) = (self.rng.range(1000, 150_000), self.nodes[node].life);
        self.after(delay, Event::NodeStarts { node, life });
    }

    /// The power fails everywhere.
    fn cut_power(&mut self) -> bool {
        self.note(|| "the power fails everywhere".to_string());
        self.count("power failures");
        if self.name_node.up {
            self.name_node.crash();
        }
        let mut torn = Vec::new();
        for node in 0..self.nodes.len() {
            if !self.nodes[node].up {
                continue;
            }
            if !self.stands(node) {
                self.nodes[node].crash(false, &mut Rng::new(0));
                self.starts_again(node);
                continue;
            }
            let mut next = self.nodes[node].clone();
            next.crash(true, &mut Rng::new(self.rng.any()));
            let lost = self.loss(node, &next);
            self.nodes[node] = next;
            self.note_torn(node, &lost);
            self.note(|| format!("dn-{node} loses the end of {lost:?}"));
            torn.extend(lost.into_iter().map(|id| (node, id)));
            self.starts_again(node);
        }
        self.tear(&torn);
        torn.into_iter().for_each(|(_, id)| self.touch(id));
        true
    }

    pub(crate) fn isolate(&mut self, node: usize) -> bool {
        if self.nodes[node].is_gone || self.nodes[node].is_isolated {
            return false;
        }
        self.nodes[node].is_isolated = true;
        self.note(|| format!("dn-{node} is cut off from the network"));
        self.count("DataNodes cut off");
        let delay = self.rng.range(1000, 120_000);
        self.after(delay, Event::NodeJoins { node });
        true
    }

    fn stall(&mut self, node: usize) -> bool {
        self.nodes[node].stalled_until_ms = self.now_ms + self.rng.range(1000, 40_000);
        self.note(|| format!("dn-{node} stalls"));
        self.count("DataNodes stall");
        true
    }

    fn lose_disk(&mut self, node: usize) -> bool {
        let volume = self.rng.index(self.nodes[node].volumes.len());
        let on_it = self.nodes[node].replicas.iter().filter(|(_, s)| s.volume == volume);
        let lost: Vec<BlockId> = on_it.map(|(id, _)| *id).collect();
        if self.nodes[node].volumes[volume].is_failed || !self.fail_for(node, &lost) {
            return false;
        }
        self.nodes[node].fail_volume(volume);
        self.note(|| format!("dn-{node} loses volume {volume} with {lost:?}"));
        self.count("disks lost");
        let delay = self.rng.range(10_000, 100_000);
        self.after(delay, Event::DiskMended { node, volume });
        lost.into_iter().for_each(|id| self.touch(id));
        true
    }

    fn fill_disk(&mut self, node: usize) -> bool {
        let volume = self.rng.index(self.nodes[node].volumes.len());
        self.nodes[node].volumes[volume].is_full = true;
        self.note(|| format!("volume {volume} of dn-{node} is full"));
        self.count("disks full");
        let delay = self.rng.range(10_000, 100_000);
        self.after(delay, Event::DiskMended { node, volume });
        true
    }

    /// A failed disk is replaced by a new one, a full one has room again.
    pub(crate) fn mend_disk(&mut self, node: usize, volume: usize) {
        let node = &mut self.nodes[node];
        node.volumes[volume].is_full = false;
        let kind = node.volumes[volume].kind;
        if !node.has_kind(kind) {
            node.add_volume(kind);
        }
    }

    fn finalized(&mut self, node: usize) -> Option<BlockId> {
        let all = self.nodes[node].replicas.iter();
        let done = all.filter(|(_, s)| s.replica.state() == ReplicaState::Finalized);
        let ids: Vec<BlockId> = done.map(|(id, _)| *id).collect();
        self.rng.pick(&ids).copied()
    }

    fn flip_bit(&mut self, node: usize) -> bool {
        let Some(id) = self.finalized(node) else { return false };
        let mut rng = Rng::new(self.rng.any());
        if !self.fail_for(node, &[id]) {
            return false;
        }
        let flipped = self.nodes[node].replicas.get_mut(&id).is_some_and(|s| s.flip(&mut rng));
        self.note(|| format!("a bit flips in {id:?} on dn-{node}: {flipped}"));
        self.count("bits flipped on disk");
        self.check_block(id.group());
        flipped
    }

    fn lose_replica(&mut self, node: usize) -> bool {
        let Some(id) = self.finalized(node) else { return false };
        if !self.fail_for(node, &[id]) {
            return false;
        }
        self.nodes[node].replicas.remove(&id);
        self.note(|| format!("the file of {id:?} on dn-{node} is lost"));
        self.count("block files lost");
        self.check_block(id.group());
        true
    }

    fn drop_name_node(&mut self) -> bool {
        if !self.name_node.up {
            return false;
        }
        match self.rng.range(0, 4) {
            0 => self.name_node.crash(),
            1 => self.name_node.fall = Some((self.rng.range(0, 20) as u32, Fall::Unanswered)),
            _ => self.name_node.fall = Some((self.rng.range(0, 20) as u32, Fall::Unsynced)),
        }
        true
    }

    /// The NameNode's wall clock is set, forwards or back.
    fn set_clock(&mut self) -> bool {
        let ms = self.rng.range(1000, 300_000) as i64;
        self.name_node.skew_ms = [0, ms, -ms][self.rng.index(3)];
        self.note(|| format!("the clock of the NameNode is set by {ms} ms"));
        self.count("clocks set");
        true
    }

    /// The NameNode's disk has no more room: it changes nothing until there is some.
    fn fill_log(&mut self) -> bool {
        if !self.name_node.up {
            return false;
        }
        self.name_node.cluster.set_low_resources(true);
        self.note(|| "the disk of the NameNode is full".to_string());
        self.count("logs full");
        let delay = self.rng.range(1000, 60_000);
        self.after(delay, Event::LogMended);
        true
    }

    /// Nothing fails from now on, what failed is mended, and all writers are gone.
    pub(crate) fn begin_quiet(&mut self) {
        self.note(|| "quiet time begins".to_string());
        self.is_quiet = true;
        self.active_ms = self.now_ms;
        self.name_node.fall = None;
        self.name_node.skew_ms = 0;
        self.name_node.cluster.set_low_resources(false);
        for node in 0..self.nodes.len() {
            for volume in 0..self.nodes[node].volumes.len() {
                self.mend_disk(node, volume);
            }
            let node = &mut self.nodes[node];
            (node.is_isolated, node.stalled_until_ms) = (false, 0);
        }
        self.settle_clones();
        self.settle_operator();
        self.clients.iter_mut().for_each(Client::die);
    }
}
