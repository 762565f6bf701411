//! What a placement is asked, and its answer.

use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::StoragePolicy;

/// What is to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementRequest<'a> {
    /// How many more storages are wanted.
    pub count: usize,
    /// Address or host name of the writer; empty for none (a copy that the NameNode orders).
    pub writer: &'a str,
    /// The writer's rack, where that is known other than by a DataNode on its host.
    pub writer_rack: Option<&'a str>,
    /// Bytes that each storage must have room for.
    pub block_len: u64,
    /// Nodes that must not be chosen.
    pub excluded: &'a [NodeHandle],
    /// Nodes to choose first, where possible.
    pub favored: &'a [NodeHandle],
    /// Nodes to choose only where no other would do as well.
    pub busy: &'a [NodeHandle],
    /// Where the block is already: not chosen again, and counted for the spread over racks.
    pub existing: &'a [StorageHandle],
    /// Which types of storage are wanted.
    pub storage_policy: StoragePolicy,
    /// Take the policy's fallbacks for new blocks, not those for copies.
    pub is_new: bool,
    /// Do not put the first replica on the writer's own host (`NO_LOCAL_WRITE`).
    pub avoid_local: bool,
}

/// The answer of a placement: the storages in the order of a pipeline, or of unit indices.
pub type Chosen = Vec<StorageHandle>;
