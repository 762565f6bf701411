//! The tables of the store's file: how they are opened, read and written, and what older builds had in others.

use super::layer::Layer;
use cairn_namespace::store::{StoreError, Table, Visit};
use cairn_namespace::{Retries, Times};
use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition,
    TableError,
};
use std::ops::{Bound, ControlFlow};

/// Keys and values in all of them.
pub(super) type Bytes = &'static [u8];

/// Key: [`APPLIED`]; value: the sequence number, 8 bytes, big endian.
const JOURNAL: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("journal");
const APPLIED: &[u8] = b"applied";
/// Value: the same number, and behind it the checksum of all changes, 4 bytes, big endian. It counts if the number is
/// that of [`APPLIED`]: builds that know none leave it as it was.
const CHAIN: &[u8] = b"chain";
/// Value: the same number, and behind it wall and elapsed time of the last entry, the latest of each, 8 bytes each, big
/// endian. It counts as [`CHAIN`] does.
const TIMES: &[u8] = b"times";

/// How far in the log a state of the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Number of the last entry; 0 before the first.
    pub sequence: u64,
    /// Checksum of all changes up to there, if it is known.
    pub chain: Option<u32>,
    /// The latest times of entries up to there; 0 if they are not known.
    pub times: Times,
}

impl From<u64> for Position {
    fn from(sequence: u64) -> Position {
        Position { sequence, ..Position::default() }
    }
}

fn definition(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.name())
}

/// An error of redb's.
pub(super) fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(error.to_string())
}

/// Tables of older builds, which had each call's outcome in records of its own.
const FORMER: [&str; 2] = ["retry", "retry-age"];

pub(super) fn former(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

/// What an older build has kept of calls, as it is kept now.
pub(super) fn former_outcomes(database: &Database) -> Result<Layer, StoreError> {
    let layer = Layer::default();
    let txn = database.begin_read().map_err(backend)?;
    let table = match txn.open_table(former(FORMER[0])) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(layer),
        Err(error) => return Err(backend(error)),
    };
    let mut records = Vec::new();
    scan_in(&table, &[], &[], &mut |key, record| {
        records.push((key.to_vec(), record.to_vec()));
        ControlFlow::Continue(())
    })?;
    let kept = Retries::from_former(&records).map_err(|error| StoreError::Corrupt {
        what: "outcomes of calls",
        reason: error.to_string(),
    });
    for (key, record) in kept?.save() {
        layer.put(Table::Outcome, &key, record.as_deref(), 0);
    }
    Ok(layer)
}

/// Writes all of `layer` and how far in the log that is to the file, and syncs it.
pub(super) fn write_file(
    database: &Database,
    applied: Option<Position>,
    layer: &Layer,
) -> Result<(), StoreError> {
    let mut txn = database.begin_write().map_err(backend)?;
    // Without it a start after a crash would walk the whole file.
    txn.set_quick_repair(true);
    txn.set_durability(Durability::Immediate).map_err(backend)?;
    for table in Table::ALL {
        let mut file = txn.open_table(definition(*table)).map_err(backend)?;
        layer.newest(*table, |key, value| {
            match value {
                Some(value) => file.insert(key, value).map_err(backend)?,
                None => file.remove(key).map_err(backend)?,
            };
            Ok(())
        })?;
    }
    for name in FORMER {
        txn.delete_table(former(name)).map_err(backend)?;
    }
    let mut journal = txn.open_table(JOURNAL).map_err(backend)?;
    if let Some(Position { sequence, chain, times }) = applied {
        let sequence = sequence.to_be_bytes();
        journal.insert(APPLIED, &sequence[..]).map_err(backend)?;
        match chain {
            Some(chain) => {
                let value = [&sequence[..], &chain.to_be_bytes()].concat();
                journal.insert(CHAIN, &value[..]).map_err(backend)?;
            }
            None => drop(journal.remove(CHAIN).map_err(backend)?),
        }
        let times = [times.wall_ms.to_be_bytes(), times.elapsed_ms.to_be_bytes()].concat();
        journal.insert(TIMES, &[&sequence[..], &times].concat()[..]).map_err(backend)?;
    }
    drop(journal);
    txn.commit().map_err(backend)
}

pub(super) fn open_tables(
    database: &Database,
) -> Result<Box<[ReadOnlyTable<Bytes, Bytes>]>, StoreError> {
    let txn = database.begin_read().map_err(backend)?;
    Table::ALL.iter().map(|table| txn.open_table(definition(*table)).map_err(backend)).collect()
}

pub(super) fn applied_in(database: &Database) -> Result<Position, StoreError> {
    let txn = database.begin_read().map_err(backend)?;
    let table = txn.open_table(JOURNAL).map_err(backend)?;
    let Some(value) = table.get(APPLIED).map_err(backend)? else { return Ok(Position::default()) };
    let value = value.value();
    let sequence = value.try_into().map_err(|_| StoreError::Corrupt {
        what: "sequence number",
        reason: format!("{} bytes", value.len()),
    })?;
    let chain = table.get(CHAIN).map_err(backend)?.and_then(|chain| {
        let chain = chain.value().strip_prefix(value)?.try_into().ok()?;
        Some(u32::from_be_bytes(chain))
    });
    let times = table.get(TIMES).map_err(backend)?.and_then(|times| {
        let (wall_ms, elapsed_ms) = times.value().strip_prefix(value)?.split_first_chunk()?;
        let elapsed_ms = u64::from_be_bytes(elapsed_ms.try_into().ok()?);
        Some(Times { wall_ms: u64::from_be_bytes(*wall_ms), elapsed_ms })
    });
    let times = times.unwrap_or_default();
    Ok(Position { sequence: u64::from_be_bytes(sequence), chain, times })
}

/// Calls `visit` for the records of a table in `from..to`, which is not empty; an empty `to` means no end.
pub(super) fn scan_in(
    table: &impl ReadableTable<Bytes, Bytes>,
    from: &[u8],
    to: &[u8],
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
    let range = table.range::<&[u8]>((Bound::Included(from), end)).map_err(backend)?;
    for entry in range {
        let (key, value) = entry.map_err(backend)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}
