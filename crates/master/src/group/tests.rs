use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    entries: 4,
    bytes: 100,
    effects: 10,
    step: 3,
    unshown: 2,
    checkpoint_entries: 12,
    checkpoint_interval_ms: 50,
    records: 30,
};

/// A disk, a shower and callers around the groups.
struct World {
    groups: Groups,
    waiting: Waiting,
    now_ms: u64,
    sequence: u64,
    open: Vec<u64>,
    logging: Option<Vec<u64>>,
    unshown: Vec<Vec<u64>>,
    /// Entries in the order in which they were shown.
    shown: Vec<u64>,
    checkpointing: bool,
    worked: usize,
    ended: bool,
}

impl World {
    fn new() -> World {
        World {
            groups: Groups::new(LIMITS, 0, 0),
            waiting: Waiting::default(),
            now_ms: 0,
            sequence: 0,
            open: Vec::new(),
            logging: None,
            unshown: Vec::new(),
            shown: Vec::new(),
            checkpointing: false,
            worked: 0,
            ended: false,
        }
    }

    fn is_at_rest(&self) -> bool {
        self.open.is_empty() && self.logging.is_none() && self.unshown.is_empty()
    }

    /// Does what comes next until something must happen first.
    fn run(&mut self) {
        loop {
            match self.groups.next(self.waiting, self.now_ms) {
                Step::Apply => {
                    self.waiting.entries -= 1;
                    self.waiting.records += 1;
                    self.sequence += 1;
                    self.open.push(self.sequence);
                    assert!(self.open.len() <= LIMITS.entries);
                    self.groups.applied(Some(self.sequence), self.open.len(), 1);
                }
                Step::Seal => {
                    assert!(self.logging.is_none(), "one group after the other");
                    assert!(!self.open.is_empty() && self.unshown.len() < LIMITS.unshown);
                    self.logging = Some(std::mem::take(&mut self.open));
                    self.groups.sealed();
                }
                Step::Checkpoint => {
                    assert!(self.is_at_rest() && !self.checkpointing);
                    self.checkpointing = true;
                    self.waiting.records = 0;
                    self.groups.checkpoint_begun(self.now_ms);
                }
                Step::Work => {
                    assert!(self.is_at_rest() && !self.checkpointing);
                    self.waiting.works -= 1;
                    self.worked += 1;
                }
                Step::Listen => self.groups.heard(),
                Step::Wait { .. } => break self.groups.heard(),
                Step::End => break self.ended = true,
            }
        }
    }

    fn happen(&mut self, what: u8) {
        match what {
            0..=3 => self.waiting.entries += usize::from(what) + 1,
            4..=6 => {
                if let Some(group) = self.logging.take() {
                    self.unshown.push(group);
                    self.groups.durable();
                }
            }
            7 | 8 => {
                if !self.unshown.is_empty() {
                    self.shown.extend(self.unshown.remove(0));
                    self.groups.shown();
                }
            }
            9 => {
                if std::mem::take(&mut self.checkpointing) {
                    self.groups.checkpoint_ended();
                }
            }
            10 => self.now_ms += 20,
            _ => self.waiting.works += 1,
        }
        self.run();
    }
}

proptest! {
    #[test]
    fn every_entry_is_shown_once_and_in_order_and_work_is_done_at_rest_only(
        events in prop::collection::vec(0..12_u8, 0..300),
    ) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
        world.groups.close();
        // Whatever was asked for comes to an end when the disk goes on.
        for _ in 0..2000 {
            for event in [4, 7, 9] {
                world.happen(event);
            }
        }
        prop_assert!(world.ended);
        prop_assert_eq!(world.waiting, Waiting { records: world.waiting.records, ..Waiting::default() });
        prop_assert_eq!(world.shown, (1..=world.sequence).collect::<Vec<_>>());
    }
}

#[test]
fn an_entry_alone_is_logged_at_once() {
    let mut world = World::new();
    world.happen(0);
    assert_eq!(world.logging, Some(vec![1]));
}

#[test]
fn what_comes_while_the_disk_is_busy_shares_a_group() {
    let mut world = World::new();
    world.happen(0);
    world.happen(1);
    world.happen(0);
    assert_eq!((world.open.len(), world.shown.len()), (3, 0));
    world.happen(4);
    assert_eq!(world.logging, Some(vec![2, 3, 4]), "while the first is shown");
    assert_eq!(world.unshown, [vec![1]]);
}

#[test]
fn an_idle_namespace_waits_for_its_checkpoint_only() {
    let mut world = World::new();
    assert_eq!(world.groups.next(world.waiting, 0), Step::Wait { at_most_ms: None });
    for event in [0, 4, 7] {
        world.happen(event);
    }
    assert_eq!(world.groups.next(world.waiting, 20), Step::Wait { at_most_ms: Some(30) });
    assert_eq!(world.groups.next(world.waiting, 50), Step::Checkpoint);
}

#[test]
fn a_group_with_many_effects_is_closed() {
    let mut groups = Groups::new(LIMITS, 0, 0);
    let waiting = Waiting { entries: 5, ..Waiting::default() };
    groups.applied(Some(1), 1, 10);
    assert_eq!(groups.next(waiting, 0), Step::Seal);
}
