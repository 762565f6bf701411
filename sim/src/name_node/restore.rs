//! A NameNode that goes back to a backup of its namespace.

use super::log::Log;
use super::{NameNode, Read, sure};
use cairn_namespace::holds::{self, Holds, Restored};
use cairn_namespace::query::{self, BlockInfo};
use std::rc::Rc;

impl NameNode {
    /// Keeps the namespace as it is.
    pub(crate) fn back_up(&mut self) {
        self.backup = Some(self.store.clone());
    }

    /// The blocks that it had when it was kept.
    pub(crate) fn blocks_of_backup(&self) -> Option<Rc<Vec<Rc<BlockInfo>>>> {
        self.backup.as_ref().map(|store| store.all_blocks())
    }

    /// Starts with the namespace as it was kept, which nobody has accepted.
    pub(crate) fn restore(&mut self) {
        let Some(mut store) = self.backup.take() else { return };
        sure(query::skip_numbers(&mut store));
        let restored = Some(Restored { sequence: 0, entry_ms: 0, at_ms: 0 });
        sure(holds::put(&mut store, &Holds { restored, ..Holds::default() }));
        (self.log, self.logged) = (Log::default(), 0);
        self.read = Read { store, times: self.last_times, ..Read::default() };
        self.restart();
        self.cluster.hold_deletions(true);
    }
}
