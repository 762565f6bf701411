//! Packed blocks: no seed breaks a promise, and mistakes that could be made are found when they are put back.

use crate::bugs::must_find_with;
use cairn_redundancy::{BlockRef, Cluster, Command, NodeHandle};
use cairn_sim::{Options, Parts, Right, run};
use cairn_stripe::BlockId;
use std::collections::{BTreeMap, BTreeSet};

fn options() -> Options {
    Options { packing: true, ..Options::default() }
}

#[track_caller]
fn must_find<P: Parts + Default>(seed: u64, promises: &[&str]) {
    must_find_with::<P>(options(), seed, promises);
}

#[test]
fn no_seed_breaks_a_promise_about_packed_blocks() {
    let seeds = if env!("CAIRN_SIM_OPT_LEVEL") == "0" { 40 } else { 150 };
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..seeds {
        let report = run(seed, options(), &mut Right);
        assert_eq!(report.violation, None, "replay with --packing --trace --seed {seed}");
        report.counts.into_iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    // What never happens proves nothing.
    for what in [
        "blocks unpacked",
        "containers emptied",
        "containers ended",
        "containers packed",
        "packed blocks decoded",
        "packed blocks read",
        "packed blocks reported bad",
        "replicas of packed blocks written",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count > 0), "never: {what}");
    }
}

/// Three blocks of such different lengths wait alone that no group of their containers pays (57, 87, 229).
#[test]
fn containers_that_no_group_would_take_are_not_written_again_and_again() {
    for seed in [57, 87, 229] {
        assert_eq!(run(seed, options(), &mut Right).violation, None, "seed {seed}");
    }
}

/// The disk of a container is lost while the NameNode is down, before anything is packed in it.
#[test]
fn a_start_does_not_wait_for_a_container_that_nobody_needs() {
    assert_eq!(run(700_455, options(), &mut Right).violation, None);
}

/// Two blocks are left in a container of which too much is dead, too few for the containers of a group.
#[test]
fn what_finds_no_others_does_not_keep_the_container_that_it_is_to_leave() {
    assert_eq!(run(700_036, options(), &mut Right).violation, None);
}

/// A container has a fourth copy in a group that is to end, and the only one that was proven is so no more (1387).
#[test]
fn what_a_container_has_too_much_stays_until_its_group_has_ended() {
    assert_eq!(run(1387, options(), &mut Right).violation, None);
}

/// A container whose group has ended has a packed block, and there are no others to be in a group with (2181).
#[test]
fn a_container_that_has_lost_its_group_is_emptied() {
    assert_eq!(run(2181, options(), &mut Right).violation, None);
}

/// A file was still written when the backup was made, and its block is in a group that was found (2028, 2274).
#[test]
fn a_member_that_was_open_when_it_was_backed_up_is_read_for_the_others() {
    let options = Options { groups: true, restores: true, ..Options::default() };
    for seed in [2028, 2274] {
        assert_eq!(run(seed, options, &mut Right).violation, None, "seed {seed}");
    }
}

/// Since the backup a member of a group that was found was written to, or its container was packed on (1096, 1154, 1370; two
/// nodes are gone in 2259).
#[test]
fn a_member_that_a_restored_name_node_has_otherwise_does_not_cost_the_others() {
    for seed in [1096, 1154, 1370, 2259] {
        assert_eq!(run(seed, restores(), &mut Right).violation, None, "seed {seed}");
    }
}

/// What was deleted since, or is longer, nobody reads again; what went into a container meanwhile everybody does.
#[test]
fn a_restored_name_node_takes_over_what_was_packed_since() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..12 {
        let report = run(seed, restores(), &mut Right);
        assert_eq!(
            report.violation, None,
            "replay with --packing --restores --trace --seed {seed}"
        );
        report.counts.into_iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
    }
    for what in ["backups restored", "groups taken over", "packed blocks taken over"] {
        assert!(counts.get(what).is_some_and(|count| *count > 0), "never: {what}");
    }
}

fn restores() -> Options {
    Options { restores: true, ..options() }
}

/// The packer slips by a slot, and says what it has meant to write.
#[derive(Default)]
struct ShiftedByASlot;

impl Parts for ShiftedByASlot {
    fn packed_bytes(&self, blocks: &mut Vec<Vec<u8>>) {
        if blocks.len() > 1 {
            blocks.rotate_left(1);
        }
    }

    fn read_back(&self, recorded: &[u32], _: Vec<u32>) -> Vec<u32> {
        recorded.to_vec()
    }
}

#[test]
fn an_index_that_is_shifted_by_a_slot_is_found() {
    must_find::<ShiftedByASlot>(1, &["has other bytes than"]);
}

/// Two blocks that take as many chunks change places, and nobody reads back what was written.
#[derive(Default)]
struct TwoOfALengthSwapped;

impl Parts for TwoOfALengthSwapped {
    fn packed_bytes(&self, blocks: &mut Vec<Vec<u8>>) {
        let pair = (1..blocks.len()).find(|at| blocks[at - 1].len() == blocks[*at].len());
        if let Some(at) = pair {
            blocks.swap(at - 1, at);
        }
    }

    fn read_back(&self, recorded: &[u32], _: Vec<u32>) -> Vec<u32> {
        recorded.to_vec()
    }
}

#[test]
fn two_blocks_of_a_length_that_are_swapped_are_found() {
    must_find::<TwoOfALengthSwapped>(1, &["has other bytes than"]);
}

/// The place is kept where it is not the block's: by a snapshot, or by an inode that has it twice.
#[derive(Default)]
struct PlacesKept;

impl Parts for PlacesKept {
    fn keeps_places(&self) -> bool {
        true
    }
}

#[test]
fn a_place_that_is_kept_after_its_block_has_moved_is_found() {
    must_find::<PlacesKept>(18, &["cannot be read", "reads wrong bytes"]);
}

/// Plain replicas go as soon as their container is sealed.
#[derive(Default)]
struct DeletedBeforeSafe {
    sealed: BTreeSet<BlockRef>,
}

impl Parts for DeletedBeforeSafe {
    fn note_sealed(&mut self, blocks: Vec<BlockRef>) {
        self.sealed.extend(blocks);
    }

    fn commands(
        &mut self,
        cluster: &Cluster,
        node: NodeHandle,
        mut commands: Vec<Command>,
    ) -> Vec<Command> {
        let is_here = |id: BlockId| cluster.locations(id).iter().any(|place| place.node == node);
        let due = self.sealed.iter().filter(|of| is_here(of.id)).copied();
        commands.push(Command::Invalidate(due.collect()));
        commands
    }
}

#[test]
fn a_replica_that_goes_before_its_container_is_safe_is_found() {
    must_find::<DeletedBeforeSafe>(
        1,
        &["the last of its index", "is in no group", "is not safe", "are left where"],
    );
}

/// The word of a reader about a packed block is taken to be about its container.
#[derive(Default)]
struct BlamesContainers;

impl Parts for BlamesContainers {
    fn blames_containers(&self) -> bool {
        true
    }
}

#[test]
fn a_slot_that_is_reported_bad_and_taken_for_its_container_is_found() {
    must_find::<BlamesContainers>(32, &["counts as bad on the word of a reader"]);
}

/// A `Pack` that comes late packs what is plain by then, and was written to.
#[derive(Default)]
struct PacksLate;

impl Parts for PacksLate {
    fn packs_unchecked(&self) -> bool {
        true
    }
}

#[test]
fn a_late_pack_is_found() {
    must_find::<PacksLate>(1, &["counted are", "are counted", "has other bytes where", "panic"]);
}

/// What leaves a container is counted twice, as by two snapshots that have had it; when the count says that nothing is left, the
/// container goes.
#[derive(Default)]
struct FreedByACounter;

impl Parts for FreedByACounter {
    fn frees_by_count(&self) -> bool {
        true
    }
}

#[test]
fn a_container_that_is_freed_by_a_counter_is_found() {
    must_find::<FreedByACounter>(
        10,
        &["the last of its index", "cannot be read", "is told to delete"],
    );
}
