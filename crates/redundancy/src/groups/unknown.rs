//! What is known of groups that DataNodes have and a restored namespace does not know.

use crate::block::BlockRef;
use cairn_stripe::group::GroupRecord;
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A group that parities tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGroup {
    /// What the first of them has told.
    pub record: GroupRecord,
    /// Length and CRC32C of each that was read.
    pub parities: BTreeMap<UnitIndex, (u64, u32)>,
    /// Why it is not taken over; none before that was judged.
    pub refusal: Option<String>,
}

/// A container that nobody knows, which no group that can be taken over has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundContainer {
    /// Its replica.
    pub block: BlockRef,
    /// CRC32C of all its bytes.
    pub crc32c: u32,
    /// What is in it.
    pub index: Arc<PackIndex>,
}

/// How far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Parities that nobody knows and that were not read yet.
    pub unread: u64,
    /// Groups that they tell of, but for those that were taken over.
    pub found: u64,
    /// Groups that were taken over.
    pub adopted: u64,
    /// Groups that are not taken over as things stand, and why.
    pub refused: Vec<(BlockId, String)>,
    /// Containers whose index was not read yet: those that were taken over, and those that no group has.
    pub unread_containers: u64,
    /// Small blocks that were taken over with them.
    pub adopted_blocks: u64,
}

/// What was asked and told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unknown {
    /// By handle.
    pub found: BTreeMap<BlockId, FoundGroup>,
    /// Containers that no such group has, by id.
    pub containers: BTreeMap<BlockId, FoundContainer>,
    /// Containers that no block needs.
    pub passed_over: BTreeSet<BlockId>,
    /// Parities and containers that were seen, whether they were read or not.
    pub seen: BTreeSet<BlockId>,
    /// When there was something new, on the monotonic clock.
    pub news_ms: Option<u64>,
    /// Parities that were not read yet.
    pub unread: u64,
    /// Groups that were taken over.
    pub adopted: u64,
    /// What was read of containers that were taken over.
    pub indexes: BTreeMap<BlockId, Arc<PackIndex>>,
    /// Containers that were taken over and of which nothing was read yet.
    pub unread_containers: u64,
    /// Those that no group has and that were not read yet.
    pub unread_alone: u64,
    /// Small blocks that were taken over.
    pub adopted_blocks: u64,
}
