//! Mistakes that could be made with contiguous groups, put back: simulation must find each of them.

use crate::bugs::must_find_with;
use cairn_codec::{Codec, CodecKind};
use cairn_redundancy::{BlockRef, Cluster, Command, NodeHandle};
use cairn_replica::group::{Encoder, Unbelieved};
use cairn_sim::{Options, Parts, run};
use cairn_stripe::BlockId;
use std::collections::BTreeMap;
use std::ops::Range;

#[track_caller]
fn must_find<P: Parts + Default>(seed: u64, promises: &[&str]) {
    let options = Options { groups: true, ..Options::default() };
    must_find_with::<P>(options, seed, promises);
}

/// Of a member's replicas another one stays than the one that was read for its group.
#[derive(Default)]
struct UnprovenReplicaStays {
    members: BTreeMap<BlockId, BlockId>,
    victims: BTreeMap<NodeHandle, Vec<BlockRef>>,
}

impl Parts for UnprovenReplicaStays {
    fn note_group(&mut self, handle: BlockId, members: Vec<BlockRef>) {
        self.members.extend(members.into_iter().map(|member| (member.id, handle)));
    }

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
                let others = cluster.locations(block.id);
                let other = others.iter().find(|place| place.node != node && !place.corrupt);
                match other.filter(|_| self.members.contains_key(&block.id)) {
                    Some(other) => self.victims.entry(other.node).or_default().push(block),
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
fn a_replica_that_stays_and_was_never_proven_is_found() {
    must_find::<UnprovenReplicaStays>(0, &["no other replica is proven", "the last of its index"]);
}

/// The replicas that two members of a group do not need go at once.
#[derive(Default)]
struct TwoMembersAtOnce {
    groups: BTreeMap<BlockId, Vec<BlockRef>>,
    due: BTreeMap<NodeHandle, Vec<BlockRef>>,
}

impl Parts for TwoMembersAtOnce {
    fn note_group(&mut self, handle: BlockId, members: Vec<BlockRef>) {
        self.groups.insert(handle, members);
    }

    fn commands(
        &mut self,
        cluster: &Cluster,
        node: NodeHandle,
        mut commands: Vec<Command>,
    ) -> Vec<Command> {
        for command in &commands {
            let Command::Invalidate(blocks) = command else { continue };
            for block in blocks {
                let is_it = |member: &&BlockRef| member.id == block.id;
                let of_group = self.groups.values().find(|of| of.iter().any(|m| is_it(&m)));
                for other in of_group.into_iter().flatten().filter(|member| !is_it(member)) {
                    let places = cluster.locations(other.id);
                    if let (true, Some(place)) = (places.len() > 1, places.last()) {
                        self.due.entry(place.node).or_default().push(*other);
                    }
                }
            }
        }
        let due = self.due.remove(&node).into_iter();
        commands.extend(due.map(Command::Invalidate));
        commands
    }
}

#[test]
fn surplus_of_two_members_that_goes_at_once_is_found() {
    must_find::<TwoMembersAtOnce>(
        1,
        &["may still delete", "no other replica is proven", "the last of its index"],
    );
}

/// The parities are those of another code, and nobody decodes them back.
#[derive(Default)]
struct WrongCoefficient;

impl Parts for WrongCoefficient {
    fn encode(
        &self,
        encoder: &mut Encoder<'_>,
        range: &Range<u64>,
        members: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Unbelieved> {
        let mut parities = encoder.slice(range, members)?;
        let wrong = Codec::new(CodecKind::RsLegacy, members.len(), parities.len())?;
        let data: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        let mut sinks: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
        wrong.encode(&data, &mut sinks)?;
        Ok(parities)
    }
}

#[test]
fn a_wrong_coefficient_in_the_encoder_is_found() {
    must_find::<WrongCoefficient>(0, &["not the code of its members"]);
}

/// Parities are unwanted until their group is formed.
#[derive(Default)]
struct OrphansGo;

impl Parts for OrphansGo {
    fn forgets_attempts(&self) -> bool {
        true
    }
}

#[test]
fn parities_that_are_deleted_before_their_group_is_formed_are_found() {
    must_find::<OrphansGo>(0, &["of an open attempt", "is known, and no file has it"]);
}

/// What nobody has a file of is not wanted.
#[derive(Default)]
struct MembersFreed;

impl Parts for MembersFreed {
    fn frees_members(&self) -> bool {
        true
    }
}

#[test]
fn members_that_are_freed_with_their_files_are_found() {
    must_find::<MembersFreed>(
        19,
        &["is nowhere else", "is lost", "no other replica is proven", "the last of its index"],
    );
}

/// Numbers of groups are given out again after an attempt that came to nothing.
#[derive(Default)]
struct HandlesReused;

impl Parts for HandlesReused {
    fn reuses_handles(&self) -> bool {
        true
    }
}

#[test]
fn ids_of_parities_that_are_given_out_twice_are_found() {
    must_find::<HandlesReused>(0, &["is given out again"]);
}

/// A group is formed on its encoder's word, also by a NameNode that has started since.
#[derive(Default)]
struct LateSuccess;

impl Parts for LateSuccess {
    fn believes_encoders(&self) -> bool {
        true
    }
}

#[test]
fn a_success_that_comes_after_a_restart_is_found() {
    must_find::<LateSuccess>(114, &["which another NameNode has begun"]);
}

/// Whoever has changed a member since the attempt began has not won.
#[derive(Default)]
struct FormsUnchecked;

impl Parts for FormsUnchecked {
    fn forms_unchecked(&self) -> bool {
        true
    }
}

#[test]
fn a_group_that_is_formed_of_members_that_have_changed_is_found() {
    let promises = ["is no member of", "taken for open", "counted are"];
    must_find::<FormsUnchecked>(0, &promises);
}

/// Blocks of files that are gone are served.
#[derive(Default)]
struct TombstonesServed;

impl Parts for TombstonesServed {
    fn serves_tombstones(&self) -> bool {
        true
    }
}

#[test]
fn a_tombstone_that_is_served_is_found() {
    must_find::<TombstonesServed>(54, &["which no file has, is served"]);
}

/// Members that are to stay as the only replicas are in memory only.
#[derive(Default)]
struct MembersUnsynced;

impl Parts for MembersUnsynced {
    fn leaves_members_unsynced(&self) -> bool {
        true
    }
}

#[test]
fn members_that_were_not_synced_when_they_were_proven_are_found() {
    must_find::<MembersUnsynced>(0, &["no other replica is proven"]);
}

/// All DataNodes are taken to be in one rack.
#[derive(Default)]
struct OneRack;

impl Parts for OneRack {
    fn rack(&self, _: Option<&str>, _: &str) -> String {
        "/rack0".to_string()
    }
}

#[test]
fn groups_that_are_placed_without_regard_to_racks_are_found() {
    let options = Options { groups: true, ..Options::default() };
    let is_found = |seed: &u64| {
        let why = run(*seed, options, &mut OneRack).violation;
        why.is_some_and(|why| why.contains("units of") && why.contains("at most"))
    };
    (0..3 * (8 + 10)).find(is_found).expect("no seed has found the bug");
}
