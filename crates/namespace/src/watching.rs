//! That somebody watches events (inotify): what entries do is kept for a while then, by all who have the log.
//!
//! One record of table `meta`. It changes by `ops/watch_events.rs`.

use crate::encoding::{encode_struct, from_record, to_record};
use crate::error::Result;
use crate::store::{StoreRead, StoreTxn, Table};

const VERSION: u8 = 1;
const KEY: &[u8] = b"watched";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    asked_ms: u64,
}

encode_struct!(Watched { asked_ms });

/// About when somebody has last asked for events, wall time, ms since the epoch.
pub fn asked_ms(store: &dyn StoreRead) -> Result<Option<u64>> {
    let mut found = None;
    let mut read = |record: &[u8]| found = Some(from_record::<Watched>(VERSION, record));
    store.peek(Table::Meta, KEY, &mut read)?;
    Ok(found.transpose()?.map(|watched| watched.asked_ms))
}

/// Somebody asks.
pub(crate) fn put(store: &mut dyn StoreTxn, asked_ms: u64) -> Result<()> {
    Ok(store.put(Table::Meta, KEY, &to_record(VERSION, &Watched { asked_ms }))?)
}
