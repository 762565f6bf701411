//! Full reports that are being taken.

use cairn_stripe::BlockId;
use std::collections::BTreeSet;

/// What is known of a report while it is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ongoing {
    pub(super) number: u64,
    /// Blocks of which something was told since it began.
    pub(super) newer: BTreeSet<BlockId>,
}
