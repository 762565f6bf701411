//! What keeps replicas from being deleted until somebody decides, over restarts and whoever leads.
//!
//! One record of table `meta`. Changes are in `ops/holds.rs`.

use crate::encoding::{encode_struct, from_record, to_record};
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};

const VERSION: u8 = 1;
const KEY: &[u8] = b"holds";

/// What is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// A rolling upgrade of several NameNodes that was prepared and is not finalized. That of a single one is known by
    /// the copy in its folder.
    pub upgrade: Option<Upgrade>,
    /// The namespace was restored from a backup, or imported, and nobody has accepted that yet: DataNodes may have what
    /// it does not know.
    pub restored: Option<Restored>,
}

/// A rolling upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// When it was prepared, ms since the epoch.
    pub start_ms: u64,
    /// The last entry of the log before.
    pub sequence: u64,
}

/// The moment that a namespace has gone back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last entry that was there.
    pub sequence: u64,
    /// When it was made, ms since the epoch; 0 if that is not known.
    pub entry_ms: u64,
    /// When it was restored, ms since the epoch.
    pub at_ms: u64,
}

encode_struct!(Holds { upgrade, restored });
encode_struct!(Upgrade { start_ms, sequence });
encode_struct!(Restored { sequence, entry_ms, at_ms });

/// What is in force.
pub fn get(store: &dyn StoreRead) -> Result<Holds> {
    let mut found = None;
    store.peek(Table::Meta, KEY, &mut |record| found = Some(from_record(VERSION, record)))?;
    Ok(found.transpose()?.unwrap_or_default())
}

/// Puts something else in force.
pub fn put(store: &mut dyn StoreTxn, holds: &Holds) -> Result<()> {
    match *holds == Holds::default() {
        true => store.delete(Table::Meta, KEY)?,
        false => store.put(Table::Meta, KEY, &to_record(VERSION, holds))?,
    }
    Ok(())
}
