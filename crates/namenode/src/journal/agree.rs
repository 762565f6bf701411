//! Others who have to have what is logged before anybody is told of it.
//!
//! A group of entries is agreed on as a frame without a salt, and then comes to the log of this machine, which need not be
//! synced for it: what is lost there is agreed on and comes again.

use super::frame::{self, Frame, FrameBuilder};
use std::fmt;
use std::sync::Arc;

/// Nobody looks for frames in what is agreed on.
const SALT: u32 = 0;

/// Why a group of entries is not in the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was to be logged was not agreed on: {0}")]
pub struct NotAgreed(pub String);

/// Those who have to agree.
pub trait Agree: Send + Sync {
    /// Has all agree that this group comes next, which [`last_entry`] and a [`Follower`](super::Follower) understand.
    /// Blocks until they have. After an error nothing may be proposed any more: what was evaluated since does not hold.
    fn agree(&self, group: Vec<u8>) -> Result<(), NotAgreed>;

    /// Whoever reads here sees what was agreed on up to the entry `last`: now others may show it, too.
    fn shown(&self, last: u64);

    /// What was agreed on is in the log of this machine up to the entry `last`.
    fn logged(&self, last: u64);

    /// The store's file has everything up to the entry `last` durably.
    fn stored(&self, last: u64);
}

/// Who is asked.
#[derive(Clone)]
pub struct Agreement(pub Arc<dyn Agree>);

impl fmt::Debug for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Agreement")
    }
}

/// A group as it is agreed on.
pub(super) fn to_bytes(group: FrameBuilder) -> Vec<u8> {
    group.finish(false, SALT)
}

/// Reads one.
pub(super) fn parse(group: &[u8]) -> Option<Frame<'_>> {
    frame::parse(group, SALT).filter(|frame| frame.len == group.len())
}

/// The number of the last entry of a group that was agreed on; none if it is no group.
pub fn last_entry(group: &[u8]) -> Option<u64> {
    frame::last(group)
}
