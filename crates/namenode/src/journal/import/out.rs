//! Records on their way to an empty store.

use super::error::ImportError;
use crate::store::{Batch, Position, Store};

/// Records that are written to the store at a time.
const RECORDS: usize = 100_000;

/// Records on their way to an empty store.
pub(super) struct Out<'a> {
    store: &'a Store,
    batch: Batch,
    group: u64,
    waiting: usize,
}

impl Out<'_> {
    pub fn new(store: &Store) -> Out<'_> {
        let group = store.group() + 1;
        Out { store, batch: store.begin(group), group, waiting: 0 }
    }

    /// Where the next few records go.
    pub fn records(&mut self) -> Result<&mut Batch, ImportError> {
        self.waiting += 1;
        if self.waiting >= RECORDS {
            self.write_out()?;
        }
        Ok(&mut self.batch)
    }

    /// Writes all that waits, so that it can be read.
    pub fn write_out(&mut self) -> Result<(), ImportError> {
        self.store.commit(self.group, Position::default());
        self.store.write_out()?;
        self.group += 1;
        self.waiting = 0;
        self.batch = self.store.begin(self.group);
        Ok(())
    }

    pub fn end(mut self) -> Result<(), ImportError> {
        self.write_out()
    }
}
