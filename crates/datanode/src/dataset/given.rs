//! Which order of the NameNode it is.

use std::time::Instant;

/// What an order of the NameNode is known by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// The registration to which it belongs.
    pub(crate) registration: u64,
    /// Since when it is here.
    pub(crate) since: Instant,
}
