//! What is said of contiguous groups by name, and how they are made here.

use super::names::Target;
use cairn_master::contiguous::elsewhere::PackedAt;
use cairn_master::contiguous::pack::batch::PackRules;
use cairn_master::contiguous::rounds::{News, Rounds, Unjudged};
use cairn_namespace::Group;
use cairn_redundancy::EncodeOrder;

/// The policies of contiguous groups that directories may have.
pub(crate) const GROUP_POLICIES: [&str; 2] = ["RS-3-2-contiguous", "RS-6-3-contiguous"];

/// How contiguous groups are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouping {
    /// By what policy, as an index of [`GROUP_POLICIES`].
    pub(crate) policy: usize,
    pub(crate) pays: f64,
    /// The part of a group's members that may be dead.
    pub(crate) dead_share_max: f64,
    pub(crate) quiet_ms: u64,
    pub(crate) len_min: u64,
    /// How shorter blocks are packed, if they are.
    pub(crate) pack: Option<PackRules>,
}

/// What comes back from a round.
pub(super) struct Round {
    pub(super) rounds: Rounds,
    pub(super) unjudged: Vec<Unjudged>,
    pub(super) news: Vec<News>,
}

/// How a DataNode can have a block that it lacks, in the names of the simulation.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) len: u64,
    pub(crate) relays: Vec<Target>,
    /// Its group, its slot, and what it can be decoded from.
    pub(crate) group: Option<(Group, usize, Units)>,
    /// Of a packed block, where it is in its container: the others are of that.
    pub(crate) packed: Option<PackedAt>,
}

/// Where units are, by slot.
pub(crate) type Units = Vec<(usize, Target)>;

/// An order to encode with the names that travel with it.
#[derive(Clone, Debug)]
pub(crate) struct NamedOrder {
    pub(crate) order: EncodeOrder,
    /// Where members are, in their order.
    pub(crate) members: Vec<Target>,
    /// Where parities go, in their order.
    pub(crate) targets: Vec<Target>,
}

/// An order to rebuild with the names that travel with it.
#[derive(Clone, Debug)]
pub(crate) struct NamedRebuild {
    pub(crate) group: Group,
    pub(crate) sources: Vec<(usize, Target)>,
    pub(crate) targets: Vec<(usize, Target)>,
}
