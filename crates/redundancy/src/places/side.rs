//! What is known of few blocks only, beside where they are.

use crate::handle::StorageHandle;
use crate::places::bad::Bad;
use crate::places::construction::Construction;
use crate::replica::DisprovedCrc;
use cairn_stripe::{BlockId, GenerationStamp, UnitIndex};

/// What is known of one block.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// It is being written, or was when it was heard of last.
    pub(super) construction: Option<Box<Construction>>,
    /// Its replicas and units that are known to be bad.
    pub(super) bad: Vec<(StorageHandle, Bad)>,
    /// Records of its CRCs that are to be replaced.
    pub(super) disproved: Vec<DisprovedCrc>,
    /// The node (by UUID) to delete a surplus replica or unit from, as a balancer has asked for.
    pub(super) delete_hint: Option<Box<(UnitIndex, String)>>,
    /// Something is to be deleted of it when all its storages have reported.
    pub(super) is_postponed: bool,
    /// Its parts disagreed when they were read last, with that stamp, and nobody knows which one is wrong.
    pub(super) disagrees: Option<GenerationStamp>,
}

/// By what blocks are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Bad,
    Disproved,
    Postponed,
    Disagrees,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::Open, Kind::Bad, Kind::Disproved, Kind::Postponed, Kind::Disagrees];
}

impl Side {
    /// Whether it is found by that.
    pub(super) fn is(&self, kind: Kind) -> bool {
        match kind {
            Kind::Open => self.construction.is_some(),
            Kind::Bad => !self.bad.is_empty(),
            Kind::Disproved => !self.disproved.is_empty(),
            Kind::Postponed => self.is_postponed,
            Kind::Disagrees => self.disagrees.is_some(),
        }
    }

    /// Whether nothing is known that is not known of most blocks.
    pub(super) fn is_empty(&self) -> bool {
        !Kind::ALL.into_iter().any(|kind| self.is(kind)) && self.delete_hint.is_none()
    }

    /// The mark of a replica, or of an internal block by its own id.
    pub(super) fn mark(&self, storage: StorageHandle, own_id: BlockId) -> Option<Bad> {
        let marks = self.bad.iter();
        let own = marks.filter(|(at, bad)| *at == storage && bad.block.id == own_id);
        own.map(|(_, bad)| *bad).next()
    }
}
