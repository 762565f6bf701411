//! The order of questions, whichever units fail, and when.

use super::*;
use crate::now;
use cairn_stripe::BlockId;
use std::collections::BTreeSet;

const CELL: u64 = 4;
const STRIPE: u64 = 3 * CELL;

/// Answers at once, and writes down what it was asked.
#[derive(Default)]
struct Script {
    asked: Vec<String>,
    down: BTreeSet<u8>,
    /// Fails while it is reopened.
    falls: Option<u8>,
    /// Units that the next groups have no place for; `None`: not even for the data.
    places: Vec<Option<usize>>,
    left_out: usize,
    stamp: u64,
}

impl Script {
    fn ask(&mut self, what: impl Into<String>) {
        self.asked.push(what.into());
    }

    fn asked(&mut self) -> String {
        std::mem::take(&mut self.asked).join(", ")
    }
}

fn names(units: &[UnitIndex]) -> String {
    units.iter().map(|unit| unit.0.to_string()).collect()
}

impl Peers for Script {
    type Error = &'static str;

    async fn add_block(
        &mut self,
        previous: Option<Block>,
    ) -> Result<(Block, Vec<bool>), &'static str> {
        self.stamp += 1;
        self.ask(format!("add behind {:?}", previous.map(|block| block.len)));
        let lost = if self.places.is_empty() { Some(0) } else { self.places.remove(0) };
        let Some(lost) = lost else { return Err("no places") };
        let block = Block { id: BlockId(-16), stamp: GenerationStamp(self.stamp), len: 0 };
        Ok((block, (0..5).map(|unit| unit < 5 - lost).collect()))
    }

    fn lacks_places(&self, error: &&'static str) -> bool {
        *error == "no places"
    }

    fn forget_left_out(&mut self) -> bool {
        std::mem::take(&mut self.left_out) > 0
    }

    async fn new_stamp(&mut self, block: Block) -> Result<GenerationStamp, &'static str> {
        self.stamp += 1;
        self.ask(format!("stamp for {}", block.len));
        Ok(GenerationStamp(self.stamp))
    }

    async fn update_pipeline(
        &mut self,
        old: Block,
        new: Block,
        units: &[UnitIndex],
    ) -> Result<(), &'static str> {
        let (old, new, len) = (old.stamp.0, new.stamp.0, new.len);
        self.ask(format!("tell {old}>{new} {len} {}", names(units)));
        Ok(())
    }

    async fn complete(&mut self, last: Option<Block>) -> Result<(), &'static str> {
        self.ask(format!("complete {:?}", last.map(|block| block.len)));
        Ok(())
    }

    async fn flush(&mut self, live: &[UnitIndex], spare: usize) {
        self.ask(format!("flush {} spare {spare}", names(live)));
    }

    fn has_failed(&self, unit: UnitIndex) -> bool {
        self.down.contains(&unit.0)
    }

    fn acked_len(&self, _: UnitIndex) -> u64 {
        CELL
    }

    async fn reopen(&mut self, units: &[UnitIndex], _: GenerationStamp) {
        self.ask(format!("reopen {}", names(units)));
    }

    async fn reopened(&mut self, unit: UnitIndex, _: bool) -> bool {
        if self.falls == Some(unit.0) {
            self.falls = None;
            self.down.insert(unit.0);
        }
        !self.down.contains(&unit.0)
    }

    async fn send_last(&mut self, units: &[UnitIndex]) {
        self.ask(format!("end {}", names(units)));
    }

    fn leave_out(&mut self, unit: UnitIndex) {
        self.left_out += 1;
        self.ask(format!("without {unit}"));
    }

    fn ends_early(&mut self, _: Block) {
        self.ask("early");
    }

    fn end(&mut self) {
        self.ask("over");
    }
}

/// Of three data units and two of parity, with room for four stripes.
fn writing(margin: usize) -> Groups<Script> {
    let geometry = Geometry::new(3, 2, CELL);
    let rules = Rules { geometry, block_size: 4 * CELL, tolerated: 2, margin };
    let mut groups = Groups::new(Script::default(), rules);
    now(groups.begin(false)).unwrap();
    assert_eq!(groups.peers.asked(), "add behind None");
    groups
}

fn band(groups: &mut Groups<Script>, len: u64) -> Done<(), &'static str> {
    now(groups.begin(false))?;
    groups.sent(len);
    now(groups.end_band())
}

#[test]
fn a_group_ends_when_it_is_full_and_the_next_begins_with_its_length() {
    let mut groups = writing(1);
    for left in [3, 2, 1] {
        band(&mut groups, STRIPE).unwrap();
        assert_eq!(groups.room(), left * STRIPE);
    }
    assert_eq!(groups.peers.asked(), "", "nobody waits between bands");
    band(&mut groups, STRIPE).unwrap();
    let end = "flush 01234 spare 1, end 01234, flush 01234 spare 1, over";
    assert_eq!(groups.peers.asked(), end);
    assert!(!groups.is_open());
    now(groups.begin(false)).unwrap();
    groups.sent(1);
    now(groups.close()).unwrap();
    // Units 1 and 2 have nothing.
    let end = "flush 01234 spare 1, end 034, flush 01234 spare 1, over";
    assert_eq!(groups.peers.asked(), format!("add behind Some(48), {end}, complete Some(1)"));
}

#[test]
fn a_group_that_comes_whole_is_flushed_once() {
    let mut groups = writing(1);
    now(groups.close()).unwrap();
    groups.peers.asked();
    now(groups.begin(true)).unwrap();
    assert!(groups.is_whole());
    groups.sent(5);
    now(groups.close()).unwrap();
    let wanted = "add behind Some(0), flush 01234 spare 1, over, complete Some(5)";
    assert_eq!(groups.peers.asked(), wanted);
}

#[test]
fn units_that_fail_are_fenced_off_before_anything_more_is_sent() {
    let mut groups = writing(0);
    groups.peers.down.insert(1);
    band(&mut groups, STRIPE).unwrap();
    let mended = "flush 0234 spare 0, stamp for 12, reopen 0234, tell 1>2 12 0234";
    assert_eq!(groups.peers.asked(), format!("without 1, {mended}"));
    assert!(!groups.is_live(UnitIndex(1)));
    // One that fails while it takes the stamp costs the others another one; the first is not told of.
    groups.peers.falls = Some(3);
    groups.peers.down.insert(4);
    let lost = band(&mut groups, STRIPE).unwrap_err();
    assert!(matches!(lost, GroupError::Lost { source: GroupLost { failed: 3, .. }, .. }));
    let asked = groups.peers.asked();
    assert_eq!(asked, "without 4, flush 023 spare 0, stamp for 24, reopen 023, without 3");
}

#[test]
fn a_unit_that_fails_while_it_takes_a_stamp_costs_the_others_another_one() {
    let mut groups = writing(0);
    groups.peers.down.insert(0);
    groups.peers.falls = Some(4);
    band(&mut groups, STRIPE).unwrap();
    let first = "without 0, flush 1234 spare 0, stamp for 12, reopen 1234, without 4";
    let second = "flush 123 spare 0, stamp for 12, reopen 123, tell 1>3 12 123";
    assert_eq!(groups.peers.asked(), format!("{first}, {second}"));
    assert!(groups.is_open(), "m units may fail");
}

#[test]
fn what_fails_at_the_end_is_counted_only() {
    for (down, is_lost) in [(1, false), (2, false), (3, true)] {
        let mut groups = writing(0);
        now(groups.begin(false)).unwrap();
        groups.sent(STRIPE);
        let group = groups.group.as_mut().unwrap();
        group.is_whole = true;
        groups.peers.down.extend(0..down);
        let done = now(groups.close());
        assert_eq!(done.is_err(), is_lost, "{done:?}");
        assert!(!groups.peers.asked().contains("stamp"));
    }
}

#[test]
fn a_group_that_is_left_with_few_units_ends_and_the_next_is_placed_elsewhere() {
    let mut groups = writing(2);
    groups.peers.down.insert(2);
    band(&mut groups, STRIPE).unwrap();
    let asked = groups.peers.asked();
    assert!(
        asked.ends_with(
            "tell 1>2 12 0134, early, flush 0134 spare 0, end 0134, flush 0134 spare 0, over"
        ),
        "{asked}"
    );
    assert!(!groups.is_open());
}

#[test]
fn who_was_left_out_may_be_chosen_where_the_others_are_not_enough() {
    // Refused without it: asked again. Given too few: for one band only.
    for (places, asked) in [
        (vec![None, Some(0)], "add behind None, add behind None"),
        (vec![Some(2)], "add behind None, early"),
        (vec![Some(1)], "add behind None"),
    ] {
        let mut groups = writing(1);
        groups.group = None;
        groups.peers.left_out = 1;
        groups.peers.places = places.clone();
        band(&mut groups, STRIPE).unwrap();
        assert!(groups.peers.asked().starts_with(asked), "{places:?}");
        assert_eq!(groups.is_open(), places != [Some(2)]);
    }
    let mut groups = writing(1);
    groups.group = None;
    groups.peers.places = vec![None];
    assert!(matches!(band(&mut groups, 1), Err(GroupError::Peer("no places"))), "nobody was");
}
