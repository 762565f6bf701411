//! Log, state machine and checkpointer as they ship, on disks from which power cuts take what was not synced, by seeds.
//!
//! Machines have one namespace between them: one leads ([`Writer`]), the others follow ([`Follower`]) and fetch snapshots
//! ([`install_on`]) where what was agreed on begins behind what they have. Whatever is under way, the power of a machine
//! fails at any change or sync of its disk ([`PowerDisk`]), at a start too. Or the lead is lost, with what was evaluated.
//! A model makes the same of the commands alone. What is not here: threads, events for watchers, and who agrees, of
//! which the quorum's own tests are.
//!
//! `JOURNAL_SEEDS` has the first two tests take more seeds.

mod machine;
mod world;

use crate::disk::power::Lie;
use world::{Alone, Mistake, World};

const SEEDS: u64 = 12;
const STEPS: usize = 120;

fn seeds() -> u64 {
    let seeds = std::env::var("JOURNAL_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    seeds.unwrap_or(SEEDS)
}

fn together(seed: u64, mistake: Option<Mistake>) -> Result<World, String> {
    let mut world = World::new(seed, mistake);
    for _ in 0..STEPS {
        world.step()?;
    }
    world.end()?;
    Ok(world)
}

fn alone(seed: u64, lie: Option<Lie>) -> Result<Alone, String> {
    let mut world = Alone::new(seed, lie);
    for _ in 0..STEPS {
        world.step()?;
    }
    world.end()?;
    Ok(world)
}

#[test]
fn members_have_what_was_agreed_on_whatever_a_power_cut_leaves() {
    let (mut answered, mut cuts, mut dropped, mut installed, mut led) = (0, 0, 0, 0, 0);
    for seed in 0..seeds() {
        let world = together(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        answered += world.answered;
        cuts += world.cuts();
        (dropped, installed) = (dropped + world.dropped, installed + world.installed);
        led += world.led;
    }
    // The faults are there, and work is done in spite of them.
    assert!(answered > 20 * seeds(), "{answered}");
    assert!(cuts > 5 * seeds() && dropped > seeds() && led > 3 * seeds(), "{cuts} {dropped} {led}");
    assert!(installed > seeds() / 2, "{installed}");
}

#[test]
fn one_has_what_it_has_answered_whatever_a_power_cut_leaves() {
    let (mut answered, mut cuts) = (0, 0);
    for seed in 0..seeds() {
        let world = alone(seed, None).unwrap_or_else(|why| panic!("seed {seed}, alone: {why}"));
        (answered, cuts) = (answered + world.answered, cuts + world.cuts());
    }
    assert!(answered > 20 * seeds() && cuts > 3 * seeds(), "{answered} {cuts}");
}

/// The mistake is found within so many seeds, for that reason.
#[track_caller]
fn is_found(mistake: Mistake, why: &str) {
    let found = (0..10 * SEEDS).find_map(|seed| together(seed, Some(mistake)).err());
    let found = found.unwrap_or_else(|| panic!("nobody has noticed {mistake:?}"));
    assert!(found.contains(why), "{mistake:?} is found as: {found}");
}

#[test]
fn an_answer_that_is_kept_of_a_dropped_entry_is_found() {
    is_found(Mistake::KeepsAnswers, "call ");
}

#[test]
fn changes_that_differ_from_the_command_are_found() {
    is_found(Mistake::OtherCommand, "entry ");
}

#[test]
fn a_member_to_which_other_changes_come_notices_by_their_checksum() {
    is_found(Mistake::OtherChanges, "of another history");
}

#[test]
fn a_snapshot_that_is_put_in_force_half_is_found() {
    is_found(Mistake::HalfSnapshot, "");
}

#[test]
fn a_clock_that_goes_back_is_found() {
    is_found(Mistake::ClockGoesBack, "goes back");
}

#[test]
fn an_answer_before_the_log_is_synced_is_found() {
    let found = (0..10 * SEEDS).find_map(|seed| alone(seed, Some(Lie::Files("log-"))).err());
    assert!(found.is_some(), "nobody has noticed");
}

#[test]
fn a_checkpoint_that_is_not_synced_is_found() {
    let found =
        (0..10 * SEEDS).find_map(|seed| alone(seed, Some(Lie::Files("namespace.redb"))).err());
    assert!(found.is_some(), "nobody has noticed");
}
