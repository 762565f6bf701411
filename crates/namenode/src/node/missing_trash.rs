//! What is known of the trash that snapshottable directories may lack.

use std::sync::atomic::AtomicBool;

use tokio::sync::{Mutex, Notify};

/// What is to be done when safe mode has ended.
#[derive(Default)]
pub(crate) struct MissingTrash {
    /// Safe mode has ended, and nobody has looked since.
    pub(crate) due: AtomicBool,
    /// Wakes [`provision`](crate::snapshots::provision).
    pub(crate) ended: Notify,
    /// Held while somebody looks.
    pub(crate) alone: Mutex<()>,
}
