//! Copies that the NameNode has ordered and that are not done.

use cairn_process::held::held;
use cairn_stripe::BlockId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// Each is known by its block and the first target's UUID.
#[derive(Default)]
pub(crate) struct Copies(Mutex<HashSet<(BlockId, String)>>);

impl Copies {
    /// A copy begins; false if it is under way already.
    pub(crate) fn begin(&self, copy: &(BlockId, String)) -> bool {
        self.lock().insert(copy.clone())
    }

    /// A copy has ended.
    pub(crate) fn end(&self, copy: &(BlockId, String)) {
        self.lock().remove(copy);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(BlockId, String)>> {
        held(&self.0)
    }
}
