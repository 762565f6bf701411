//! What is said by name to and by a NameNode: DataNodes, storages, blocks and refusals.

use cairn_namespace::{Block, NamespaceError};
use cairn_redundancy::{NodeAddress, NodeClaim};
use cairn_stripe::{Redundancy, UnitIndex};

/// Where each DataNode listens, at an address of its own.
pub(super) const XFER_PORT: u16 = 9866;

/// Why a call has no good answer.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// The NameNode is down, or fell while it worked: what became of the call is not known.
    Lost,
    /// It says no; the text is for traces.
    Refused(String),
    /// It asks to try again later, or has no place.
    NotNow,
}

impl From<NamespaceError> for CallError {
    fn from(error: NamespaceError) -> CallError {
        CallError::Refused(error.to_string())
    }
}

/// How a NameNode falls in the middle of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fall {
    /// The entry is not durable; a part of it may be on disk.
    Unsynced,
    /// The entry is durable, and nobody was told.
    Unanswered,
}

/// What the store in memory answers; it never fails.
pub(crate) fn sure<T>(answer: cairn_namespace::Result<T>) -> T {
    answer.unwrap_or_else(|error| panic!("the store in memory failed: {error}"))
}

/// A storage as clients know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The number of its DataNode.
    pub(crate) node: usize,
    /// Its UUID.
    pub(crate) storage: String,
}

/// A block with the places where clients find its units.
#[derive(Clone, Debug)]
pub(crate) struct LocatedBlock {
    pub(crate) offset: u64,
    pub(crate) block: Block,
    pub(crate) redundancy: Redundancy,
    pub(crate) places: Vec<(Target, UnitIndex)>,
}

/// The names of a DataNode.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(super) uuid: String,
    pub(super) ip: String,
}

impl Named {
    /// What nobody has.
    pub(crate) fn none() -> Named {
        Named { uuid: String::new(), ip: String::new() }
    }

    /// What is said of it, by others or by itself.
    pub(crate) fn claim(&self) -> NodeClaim<'_> {
        NodeClaim { uuid: &self.uuid, ip: &self.ip, xfer_port: XFER_PORT.into(), process: None }
    }
}

/// The machine at an address.
pub(super) fn machine_at(address: &NodeAddress) -> usize {
    let number = address.ip.strip_prefix("10.0.0.");
    number.and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
}
