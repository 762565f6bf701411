//! Reads what a start has not read of the store, slowly: damage is to be found before somebody needs what it hit, and
//! what has room in memory is to be there.

use crate::store::Store;
use cairn_namespace::store::{StoreError, Table};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// Records that are read at a time.
const STEP: usize = 1000;
/// How many times as long as a step took nothing is read after it.
const REST: u32 = 4;

/// Reads all of the store; an error is damage, or a disk that fails. Ends early when `open` has no sender any more.
///
/// Of each table as large a part has been read at any time: what is read comes into memory, and where not all has room
/// there, it is to be all about the same files.
pub(super) fn check(store: &Arc<Store>, open: &Receiver<()>) -> Result<(), StoreError> {
    let mut tables = Table::ALL
        .iter()
        .map(|table| Progress::new(store, *table))
        .collect::<Result<Vec<_>, _>>()?;
    while let Some(behind) = tables.iter_mut().min_by(|a, b| a.part().total_cmp(&b.part())) {
        let begun = Instant::now();
        match store.look(behind.table, &behind.next, STEP)? {
            Some(next) => {
                behind.next = next;
                behind.steps += 1;
            }
            None => {
                let done = behind.table;
                tables.retain(|progress| progress.table != done);
            }
        }
        if let Err(RecvTimeoutError::Disconnected) = open.recv_timeout(REST * begun.elapsed()) {
            return Ok(());
        }
    }
    Ok(())
}

/// How far a table has been read.
struct Progress {
    table: Table,
    next: Vec<u8>,
    steps: u64,
    records: u64,
}

impl Progress {
    fn new(store: &Store, table: Table) -> Result<Progress, StoreError> {
        Ok(Progress { table, next: Vec::new(), steps: 0, records: store.len(table)? })
    }

    fn part(&self) -> f64 {
        self.steps as f64 / self.records.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::store::StoreTxn;
    use std::os::unix::fs::FileExt;
    use std::sync::mpsc::channel;

    #[test]
    fn damage_that_nobody_reads_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let store = Store::open(&path, 16 << 10).unwrap();
        let mut batch = store.begin(1);
        for number in 0..5000_u64 {
            batch.put(Table::Inode, &number.to_be_bytes(), &[0xa5; 40]).unwrap();
        }
        store.commit(1, 1);
        store.write_out().unwrap();
        drop((batch, store));
        let store = Arc::new(Store::open(&path, 16 << 10).unwrap());
        assert!(store.is_unread());
        let (is_open, until_closed) = channel();
        check(&store, &until_closed).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        // All of them, as some may lie where nothing counts any more.
        for at in (0..bytes.len() - 40).filter(|at| bytes[*at..].starts_with(&[0xa5; 40])) {
            file.write_all_at(&[0xa4], at as u64).unwrap();
        }
        let error = check(&store, &until_closed).unwrap_err().to_string();
        assert!(error.contains("are not those that were written"), "{error}");
        // It ends at once when the namespace is closed.
        drop(is_open);
        check(&store, &until_closed).unwrap();
    }
}
