//! What a block or group has, counted.

/// What a block or group has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Good replicas, or distinct good units, on nodes in service.
    pub live: usize,
    /// Good replicas, or distinct good units that are not live, on nodes that leave.
    pub leaving: usize,
    /// Those of `live`, or distinct ones, that an order to delete may take, or may have taken.
    pub doubted: usize,
    /// Those of `leaving` on nodes in maintenance, or about to be: these will be back.
    pub maintenance: usize,
    /// Bad ones.
    pub corrupt: usize,
    /// Chosen for deletion.
    pub excess: usize,
    /// Good ones beyond the first of the same unit, for a group.
    pub duplicates: usize,
    /// Live ones beyond the first on the same node, for a group.
    pub sharing: usize,
    /// Racks of the live ones.
    pub racks: usize,
    /// Upgrade domains of the live ones, where these count.
    pub domains: usize,
    /// Whether every storage that holds the block has reported since its node registered, every replica
    /// that its node was told to delete, if it is to stay after all, and no order to delete one that is
    /// to stay may still be under way.
    pub certain: bool,
}
