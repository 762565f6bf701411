//! One place, and how many bits it takes.

use crate::handle::StorageHandle;
use cairn_stripe::UnitIndex;

/// Bits of the ids of groups that are taken up by units.
pub(super) const UNIT_BITS: u32 = cairn_stripe::id::MAX_UNITS_PER_GROUP.ilog2();
/// Bits of a place that say more than its storage and unit.
pub(super) const FLAG_BITS: u32 = 3;
/// Storages that places can tell apart.
pub(crate) const STORAGES_MAX: usize = 1 << (u32::BITS - UNIT_BITS - FLAG_BITS);

/// One replica or unit on one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// One of the first [`STORAGES_MAX`].
    pub storage: StorageHandle,
    pub unit: UnitIndex,
    pub corrupt: bool,
    /// Chosen for deletion, and not reported deleted yet.
    pub excess: bool,
    /// Its node was told to delete it, and has not said since that it has it.
    pub told: bool,
}
