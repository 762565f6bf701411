//! Known bugs of other systems, put back: simulation must find each of them.
//!
//! Which seed finds a bug changes with every change of the cores. `sim/README.md` has the seeds at the
//! time of writing; here each bug must be found within three times as many.

use cairn_redundancy::{BlockRef, Cluster, Command, NodeHandle};
use cairn_replica::recovery::{Agreement, Aim, Answer, Earlier, Order, RecoveryError};
use cairn_sim::{Options, Parts, Right, run};
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeMap;

/// The first seed that finds the bug, of so many.
fn found<P: Parts + Default>(most: u64, options: Options) -> Option<(u64, String)> {
    (0..most).find_map(|seed| {
        let report = run(seed, options, &mut P::default());
        report.violation.map(|why| (seed, why))
    })
}

#[track_caller]
fn must_find<P: Parts + Default>(seed: u64, promises: &[&str]) {
    must_find_with::<P>(Options::default(), seed, promises);
}

/// The same in simulations that have such options.
#[track_caller]
pub fn must_find_with<P: Parts + Default>(options: Options, seed: u64, promises: &[&str]) {
    let (at, why) = found::<P>(3 * (seed + 10), options).expect("no seed has found the bug");
    println!("seed {at}: {why}");
    assert!(promises.iter().any(|promise| why.contains(promise)), "seed {at}: {why}");
}

/// The targets beyond the first get the bytes of unit 0, and nobody looks.
#[derive(Default)]
struct SurplusTargetsGetUnit0;

impl Parts for SurplusTargetsGetUnit0 {
    fn compares_crcs(&self) -> bool {
        false
    }

    fn target_units(&self, units: Vec<UnitIndex>) -> Vec<UnitIndex> {
        units.iter().enumerate().map(|(at, u)| if at == 0 { *u } else { UnitIndex(0) }).collect()
    }
}

#[test]
fn hdfs_14768_surplus_targets_default_to_index_0() {
    must_find::<SurplusTargetsGetUnit0>(0, &["wrong bytes", "are left", "are good"]);
}

/// A read that was given up still writes to the buffer that the next one uses.
#[derive(Default)]
struct ReusedBuffer;

impl Parts for ReusedBuffer {
    fn compares_crcs(&self) -> bool {
        false
    }

    fn source_bytes(&self, read: Vec<u8>, late: Option<&[u8]>) -> Vec<u8> {
        late.map_or(read, <[u8]>::to_vec)
    }
}

#[test]
fn hdfs_15240_a_buffer_is_used_again_after_a_timeout() {
    must_find::<ReusedBuffer>(0, &["wrong bytes", "are left"]);
}

/// Of a group with one unit too many, any unit goes.
#[derive(Default)]
struct AnyUnitIsSurplus {
    victims: BTreeMap<NodeHandle, Vec<BlockRef>>,
}

impl Parts for AnyUnitIsSurplus {
    fn commands(
        &mut self,
        cluster: &Cluster,
        node: NodeHandle,
        commands: Vec<Command>,
    ) -> Vec<Command> {
        let mut told = Vec::new();
        for command in commands {
            let Command::Invalidate(blocks) = command else {
                told.push(command);
                continue;
            };
            for block in blocks {
                let id = block.id.group();
                let others = cluster.locations(id);
                let twin = others.iter().any(|place| place.unit == block.id.unit());
                let other = others.iter().find(|place| place.unit != block.id.unit());
                match other.filter(|_| id.is_striped() && twin) {
                    Some(other) => {
                        let victim = BlockRef { id: id.internal(other.unit), ..block };
                        self.victims.entry(other.node).or_default().push(victim);
                    }
                    None => told.push(Command::Invalidate(vec![block])),
                }
            }
        }
        let victims = self.victims.remove(&node).into_iter();
        told.extend(victims.map(Command::Invalidate));
        told
    }
}

#[test]
fn hdfs_16420_the_only_copy_of_a_unit_is_deleted_as_surplus() {
    must_find::<AnyUnitIsSurplus>(0, &["the last of its index", "are left"]);
}

/// The index of a unit is lost on the way from the reader that found it bad.
#[derive(Default)]
struct BadUnitWithoutIndex;

impl Parts for BadUnitWithoutIndex {
    fn reported_unit(&self, _: UnitIndex) -> UnitIndex {
        UnitIndex(0)
    }
}

#[test]
fn hdfs_17003_the_wrong_unit_is_taken_for_bad() {
    must_find::<BadUnitWithoutIndex>(
        2,
        &["should have", "are good", "is not good", "are left", "the last of"],
    );
}

/// Rebuilt units are believed.
#[derive(Default)]
struct NoProof;

impl Parts for NoProof {
    fn compares_crcs(&self) -> bool {
        false
    }
}

#[test]
fn hdfs_15759_a_rebuilt_unit_is_believed_without_proof() {
    must_find::<NoProof>(0, &["wrong bytes"]);
}

/// The longest unit decides how long a recovered group is.
#[derive(Default)]
struct LongestUnitDecides;

impl Parts for LongestUnitDecides {
    fn agree(&self, order: &Order, answers: &[Answer]) -> Result<Agreement, RecoveryError> {
        let (mut agreed, Aim::Units(geometry)) = (order.agree(answers)?, order.aim) else {
            return order.agree(answers);
        };
        if let Agreement::Cut(cutting) = &mut agreed {
            let longest = cutting.cuts.iter().map(|cut| cut.info.len).max().unwrap_or(0);
            cutting.len = longest / geometry.cell_len() * geometry.stripe_len();
            for cut in &mut cutting.cuts {
                cut.len = geometry.internal_block_len(cutting.len, cut.unit);
            }
            cutting.cuts.retain(|cut| cut.info.len >= cut.len);
        }
        Ok(agreed)
    }
}

#[test]
fn hdfs_17358_a_group_is_recovered_with_a_wrong_length() {
    must_find::<LongestUnitDecides>(3, &["than what was written", "are left", "acknowledged"]);
}

/// Who is away or does not answer has nothing.
#[derive(Default)]
struct SilenceIsEmptiness;

impl Parts for SilenceIsEmptiness {
    fn agree(&self, order: &Order, answers: &[Answer]) -> Result<Agreement, RecoveryError> {
        let empty = |answer: &Answer| match answer {
            Answer::Silent => Answer::Nothing,
            answer => *answer,
        };
        let order = Order { away: Some(Vec::new()), ..order.clone() };
        order.agree(&answers.iter().map(empty).collect::<Vec<_>>())
    }
}

#[test]
fn a_dead_place_that_is_not_counted_in_a_recovery_is_found() {
    must_find::<SilenceIsEmptiness>(11, &["acknowledged", "are left"]);
}

/// Nobody asks what those have that the writer went on without: a block of which the others have lost all ends empty, and one
/// of which they have lost a part with the rest.
#[derive(Default)]
struct ForgetsEarlierStamps;

impl ForgetsEarlierStamps {
    fn forgetting(order: &Order) -> Order {
        let none = |earlier| Earlier { place_count: 0, away_count: 0, ..earlier };
        Order { earlier: order.earlier.map(none), ..order.clone() }
    }
}

impl Parts for ForgetsEarlierStamps {
    fn next_asked(&self, order: &Order, answers: &[Answer]) -> Option<BlockId> {
        ForgetsEarlierStamps::forgetting(order).next_asked(answers)
    }

    fn agree(&self, order: &Order, answers: &[Answer]) -> Result<Agreement, RecoveryError> {
        ForgetsEarlierStamps::forgetting(order).agree(answers)
    }
}

/// Of a million seeds one in 40,000 has it.
#[test]
fn what_is_left_under_an_earlier_stamp_and_dropped_is_found() {
    for seed in [1_086_321, 1_088_902, 1_111_758, 1_163_691] {
        let found = run(seed, Options::default(), &mut ForgetsEarlierStamps).violation;
        let why = found.expect("the bug is not found");
        assert!(why.contains("that were acknowledged are on"), "seed {seed}: {why}");
    }
}

/// A leaving node is let go whatever it holds.
#[derive(Default)]
struct LetsGoAtOnce;

impl Parts for LetsGoAtOnce {
    fn lets_go_at_once(&self) -> bool {
        true
    }
}

#[test]
fn a_node_that_is_let_go_too_soon_is_found() {
    must_find::<LetsGoAtOnce>(0, &["others have", "are left"]);
}

/// The first rack of a DataNode is its rack for good.
#[derive(Default)]
struct FirstRackCounts;

impl Parts for FirstRackCounts {
    fn rack(&self, known: Option<&str>, told: &str) -> String {
        known.unwrap_or(told).to_string()
    }
}

#[test]
fn blocks_that_are_thought_to_be_on_more_racks_than_they_are_on_are_found() {
    must_find::<FirstRackCounts>(4, &["on the racks"]);
}

/// Answers first, makes it durable later.
#[derive(Default)]
struct AnswersBeforeSync;

impl Parts for AnswersBeforeSync {
    fn syncs_before_answer(&self) -> bool {
        false
    }
}

#[test]
fn an_answer_before_the_log_is_durable_is_found() {
    must_find::<AnswersBeforeSync>(
        0,
        &["namespace", "names where", "is called", "is open", "are left"],
    );
}

/// The cluster hears of what some entries did after it has heard of later ones.
#[derive(Default)]
struct EffectsReordered;

impl Parts for EffectsReordered {
    fn reorders_effects(&self) -> bool {
        true
    }
}

/// The cluster does not hear of all that entries did.
#[derive(Default)]
struct EffectsDropped;

impl Parts for EffectsDropped {
    fn drops_effects(&self) -> bool {
        true
    }
}

/// A durable entry is answered as failed, and nobody is told of it.
#[derive(Default)]
struct DurableFails;

impl Parts for DurableFails {
    fn fails_what_is_durable(&self) -> bool {
        true
    }
}

/// Whoever calls with a DataNode's UUID is taken for it.
#[derive(Default)]
struct GoesByUuids;

impl Parts for GoesByUuids {
    fn goes_by_uuids(&self) -> bool {
        true
    }
}

#[test]
fn orders_of_another_node_with_the_same_identity_that_are_obeyed_are_found() {
    must_find::<GoesByUuids>(89, &["the last of its index", "are left"]);
}

/// Entries get their times of a clock that goes back when it is set.
#[derive(Default)]
struct WallClock;

impl Parts for WallClock {
    fn follows_wall_clock(&self) -> bool {
        true
    }
}

#[test]
fn a_clock_that_goes_back_is_found() {
    must_find::<WallClock>(1, &["the clock of the log goes back"]);
}

/// Commands are applied though what they rest on has changed.
#[derive(Default)]
struct NoGuards;

impl Parts for NoGuards {
    fn ignores_guards(&self) -> bool {
        true
    }
}

#[test]
fn commands_that_rest_on_what_has_changed_are_found() {
    let options = Options { is_contended: true, ..Options::default() };
    let why = |seed, parts: &mut dyn Parts| run(seed, options, parts).violation;
    // Nothing else is wrong with that seed.
    let is_found = |seed: &u64| {
        why(*seed, &mut NoGuards).is_some_and(|why| why.contains("acknowledged"))
            && why(*seed, &mut Right).is_none()
    };
    (0..3 * (4 + 10)).find(is_found).expect("no seed has found the bug");
}

/// What the cluster knows is not what a start would derive.
const DERIVED: [&str; 3] =
    ["taken for open", "the known and the real stamp", "nothing is known of that"];

#[test]
fn effects_that_the_cluster_hears_of_in_another_order_are_found() {
    must_find::<EffectsReordered>(0, &DERIVED);
}

#[test]
fn effects_that_the_cluster_does_not_hear_of_are_found() {
    must_find::<EffectsDropped>(0, &DERIVED);
}

#[test]
fn durable_entries_that_are_answered_as_failed_are_found() {
    must_find::<DurableFails>(0, &["no file has it", "taken for open", "nothing is known of that"]);
}
