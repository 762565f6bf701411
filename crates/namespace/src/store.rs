//! The ordered key-value store that the namespace lives in.
//!
//! A backend gives point reads, ordered scans and writes over a few tables of byte strings, nothing
//! more. [`memory`] is the one for tests; the NameNode has one on disk. [`conformance`] is the suite
//! that each must pass.

mod changes;
pub mod conformance;
pub mod memory;
mod overlay;
pub(crate) mod state;
mod table;

pub use crate::error::StoreError;
pub use changes::Changes;
pub use overlay::Overlay;
pub use state::{StoreRead, StoreTxn, Visit};
pub use table::Table;

use std::ops::ControlFlow;

/// Records in a row that are not wanted, after which [`scan_prefixes`] goes on elsewhere.
const PASSED_MAX: usize = 8;

/// What [`scan_prefixes`] calls with the place of a prefix, for each key and value.
pub(crate) type VisitPlaced<'a> = &'a mut dyn FnMut(usize, &[u8], &[u8]);

/// Calls `visit` for the records whose keys begin with one of `prefixes`, which ascend.
/// Where they lie side by side this is one walk, much cheaper than looking each up.
pub(crate) fn scan_prefixes(
    store: &dyn StoreRead,
    table: Table,
    prefixes: &[[u8; 8]],
    visit: VisitPlaced<'_>,
) -> Result<(), StoreError> {
    let Some(last) = prefixes.last() else { return Ok(()) };
    let end = prefix_end(last);
    let mut next = 0;
    while let Some(from) = prefixes.get(next) {
        let (mut at, mut passed) = (next, 0);
        next = prefixes.len();
        store.scan(table, from, &end, &mut |key, value| {
            while prefixes
                .get(at)
                .is_some_and(|prefix| prefix.as_slice() < key && !key.starts_with(prefix))
            {
                at += 1;
            }
            match prefixes.get(at) {
                Some(prefix) if key.starts_with(prefix) => {
                    visit(at, key, value);
                    passed = 0;
                }
                _ => passed += 1,
            }
            if passed < PASSED_MAX {
                return ControlFlow::Continue(());
            }
            next = at;
            ControlFlow::Break(())
        })?;
    }
    Ok(())
}

/// The smallest key that is greater than every key with this prefix; empty if there is none.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}
