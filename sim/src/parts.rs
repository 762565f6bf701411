//! The places where the known bugs of other systems were, so that tests can put them back.
//!
//! Everything here has a right default; [`Right`] takes all of them. Implementations that misbehave
//! are in `tests/it/bugs.rs` only.

use cairn_redundancy::{BlockRef, Cluster, Command, NodeHandle};
use cairn_replica::group::{Encoder, Unbelieved};
use cairn_replica::recovery::{Agreement, Answer, Order, RecoveryError};
use cairn_stripe::{BlockId, UnitIndex};
use std::ops::Range;

/// What a simulated server does at the places where bugs are put back.
pub trait Parts {
    /// Whether the NameNode makes its log durable before it answers.
    fn syncs_before_answer(&self) -> bool {
        true
    }

    /// Whether the cluster hears of what some entries did after it has heard of later ones.
    fn reorders_effects(&self) -> bool {
        false
    }

    /// Whether the cluster does not hear of all that entries did.
    fn drops_effects(&self) -> bool {
        false
    }

    /// Whether commands are applied though what they rest on has changed since it was looked at.
    fn ignores_guards(&self) -> bool {
        false
    }

    /// Whether callers of some commands that are durable are told that they have failed, and the cluster hears of nothing.
    fn fails_what_is_durable(&self) -> bool {
        false
    }

    /// Whether the NameNode goes by the UUIDs of DataNodes alone: whoever calls with one gets its orders, whose process it
    /// may be.
    fn goes_by_uuids(&self) -> bool {
        false
    }

    /// Whether entries get their times of the wall clock, which somebody sets.
    fn follows_wall_clock(&self) -> bool {
        false
    }

    /// Whether leaving nodes are let go without a look at what they hold.
    fn lets_go_at_once(&self) -> bool {
        false
    }

    /// The rack that the NameNode has a DataNode in, which registers in the rack `told`.
    fn rack(&self, known: Option<&str>, told: &str) -> String {
        let _ = known;
        told.to_string()
    }

    /// What a DataNode is told of the `commands` that the cluster has for it.
    fn commands(
        &mut self,
        cluster: &Cluster,
        node: NodeHandle,
        commands: Vec<Command>,
    ) -> Vec<Command> {
        let _ = (cluster, node);
        commands
    }

    /// Whether CRCs of units are compared with those recorded when they were written.
    fn compares_crcs(&self) -> bool {
        true
    }

    /// The bytes of a source that a reconstruction decodes from: what was read now. `late` is what an
    /// earlier read of the unit, given up, has left in its buffer.
    fn source_bytes(&self, read: Vec<u8>, late: Option<&[u8]>) -> Vec<u8> {
        let _ = late;
        read
    }

    /// The unit that the NameNode takes a report of a bad unit to be about.
    fn reported_unit(&self, unit: UnitIndex) -> UnitIndex {
        unit
    }

    /// The units whose bytes a reconstruction writes to its targets, which are for `units`.
    fn target_units(&self, units: Vec<UnitIndex>) -> Vec<UnitIndex> {
        units
    }

    /// Whether the parities of an attempt to make a contiguous group are unwanted until it is formed.
    fn forgets_attempts(&self) -> bool {
        false
    }

    /// Whether a member of a group is unwanted when its file is gone.
    fn frees_members(&self) -> bool {
        false
    }

    /// Whether the ids of groups are given out again after an attempt that was abandoned.
    fn reuses_handles(&self) -> bool {
        false
    }

    /// Whether a group is formed as soon as anybody says that it was encoded.
    fn believes_encoders(&self) -> bool {
        false
    }

    /// Whether a group is formed though its members are not as they were when its attempt began.
    fn forms_unchecked(&self) -> bool {
        false
    }

    /// Whether an encoder reads members without having them synced.
    fn leaves_members_unsynced(&self) -> bool {
        false
    }

    /// Whether DataNodes relay blocks that no file has to clients.
    fn serves_tombstones(&self) -> bool {
        false
    }

    /// The parities of a slice of the members of a group.
    fn encode(
        &self,
        encoder: &mut Encoder<'_>,
        range: &Range<u64>,
        members: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, Unbelieved> {
        encoder.slice(range, members)
    }

    /// The members of a contiguous group, for those who delete what is surplus of it.
    fn note_group(&mut self, handle: BlockId, members: Vec<BlockRef>) {
        let _ = (handle, members);
    }

    /// What a DataNode writes into a container for the blocks that its index names, by slot and with the zeros behind them.
    fn packed_bytes(&self, blocks: &mut Vec<Vec<u8>>) {
        let _ = blocks;
    }

    /// CRC32C of what is packed in a container, as its DataNode says that it was read back: what it has found. `recorded`
    /// is what the index says.
    fn read_back(&self, recorded: &[u32], found: Vec<u32>) -> Vec<u32> {
        let _ = recorded;
        found
    }

    /// The blocks of a container that is sealed, for those who delete replicas of them.
    fn note_sealed(&mut self, blocks: Vec<BlockRef>) {
        let _ = blocks;
    }

    /// Whether a packed block that a reader says is bad makes its container bad.
    fn blames_containers(&self) -> bool {
        false
    }

    /// Whether readers are told the place where a block was packed first.
    fn keeps_places(&self) -> bool {
        false
    }

    /// Whether `Pack` looks at blocks as they were when the group of their container was formed, and not as they are.
    fn packs_unchecked(&self) -> bool {
        false
    }

    /// Whether a container goes when as much has left it as was packed in it, by a count in which what leaves is counted twice.
    fn frees_by_count(&self) -> bool {
        false
    }

    /// Of which block or unit a recovery asks the next place, if any, after those before it have answered.
    fn next_asked(&self, order: &Order, answers: &[Answer]) -> Option<BlockId> {
        order.next_asked(answers)
    }

    /// What the answers to a recovery come to.
    fn agree(&self, order: &Order, answers: &[Answer]) -> Result<Agreement, RecoveryError> {
        order.agree(answers)
    }
}

/// No bug.
#[derive(Clone, Copy, Debug, Default)]
pub struct Right;

impl Parts for Right {}
