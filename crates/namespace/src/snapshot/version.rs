//! Records as snapshots see them, where they have changed since.
//!
//! Table `version`: kind, key of the record (what follows its first 8 bytes ends in 0 0, a 0 in it being
//! 0 255), root, newest snapshot of the root that sees it -> 1 and the record, or 0 if there was none.
//! Table `version-of`: root, snapshot, kind, key as above (an inode's id complemented) -> nothing: the same
//! by snapshot.

use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::snapshot::{SnapshotId, damaged};
use crate::store::{StoreRead, StoreTxn, Table, prefix_end};
use std::ops::ControlFlow;

/// Kinds of records that are kept, in the order in which they are given up: what names an inode or a
/// block goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A file's block at a position.
    FileBlock = 1,
    /// An extended attribute.
    XAttr = 2,
    /// A name in a directory.
    Child = 3,
    /// A file or directory.
    Inode = 4,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::FileBlock, Kind::XAttr, Kind::Child, Kind::Inode];

    /// The kind of records of a table.
    pub(crate) fn of(table: Table) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.table() == table)
    }

    pub(crate) fn table(self) -> Table {
        match self {
            Kind::FileBlock => Table::FileBlock,
            Kind::XAttr => Table::XAttr,
            Kind::Child => Table::Child,
            Kind::Inode => Table::Inode,
        }
    }
}

/// One version: which record it was, and for which snapshots it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub kind: Kind,
    /// The key in the record's own table.
    pub key: Vec<u8>,
    /// The snapshottable directory.
    pub root: InodeId,
    /// The newest snapshot that sees it.
    pub upto: SnapshotId,
}

/// The inode that a record belongs to: its own, or the directory of a name.
pub(crate) fn owner(key: &[u8]) -> InodeId {
    key.first_chunk().map_or(InodeId::NONE, |id| InodeId(u64::from_be_bytes(*id)))
}

/// A key or its beginning, without the end mark: keeps the order of keys.
fn escaped(kind: Kind, key: &[u8]) -> Vec<u8> {
    let mut out = vec![kind as u8];
    let (id, rest) = key.split_at(key.len().min(8));
    out.extend_from_slice(id);
    for byte in rest {
        out.push(*byte);
        if *byte == 0 {
            out.push(255);
        }
    }
    out
}

fn record_prefix(kind: Kind, key: &[u8]) -> Vec<u8> {
    let mut out = escaped(kind, key);
    out.extend_from_slice(&[0, 0]);
    out
}

impl Version {
    fn row(&self) -> Vec<u8> {
        let mut out = record_prefix(self.kind, &self.key);
        out.extend_from_slice(&self.root.key());
        out.extend_from_slice(&self.upto.0.to_be_bytes());
        out
    }

    fn index_row(&self) -> Vec<u8> {
        let mut out = snapshot_prefix(self.root, self.upto);
        out.extend_from_slice(&record_prefix(self.kind, &turned(self.kind, &self.key)));
        out
    }
}

/// The key in the index: newer inodes come first, so that a file mostly goes before its directory.
fn turned(kind: Kind, key: &[u8]) -> Vec<u8> {
    if kind == Kind::Inode { key.iter().map(|byte| !byte).collect() } else { key.to_vec() }
}

fn snapshot_prefix(root: InodeId, id: SnapshotId) -> Vec<u8> {
    [&root.key()[..], &id.0.to_be_bytes()].concat()
}

/// Reads kind and key back, and says how many bytes they took.
fn parse(row: &[u8]) -> Option<(Kind, Vec<u8>, usize)> {
    let kind = Kind::ALL.into_iter().find(|kind| Some(&(*kind as u8)) == row.first())?;
    let mut key = row.get(1..9)?.to_vec();
    let mut at = 9;
    loop {
        match (*row.get(at)?, row.get(at + 1)) {
            (0, Some(0)) => return Some((kind, key, at + 2)),
            (0, Some(255)) => {
                key.push(0);
                at += 2;
            }
            (0, _) => return None,
            (byte, _) => {
                key.push(byte);
                at += 1;
            }
        }
    }
}

fn parse_row(row: &[u8]) -> Result<Version> {
    let read = || {
        let (kind, key, end) = parse(row)?;
        let root = InodeId(u64::from_be_bytes(row.get(end..end + 8)?.try_into().ok()?));
        let upto = SnapshotId(u32::from_be_bytes(row.get(end + 8..)?.try_into().ok()?));
        Some(Version { kind, key, root, upto })
    };
    read().ok_or_else(|| damaged("version", format!("a key of {} bytes", row.len())))
}

fn parse_value(value: &[u8]) -> Result<Option<Vec<u8>>> {
    match value.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, record)) => Ok(Some(record.to_vec())),
        _ => Err(damaged("version", format!("a value of {} bytes", value.len()))),
    }
}

/// Keeps a record as it was.
pub(crate) fn put(
    store: &mut dyn StoreTxn,
    version: &Version,
    record: Option<&[u8]>,
) -> Result<()> {
    let value = match record {
        Some(record) => [&[1], record].concat(),
        None => vec![0],
    };
    store.put(Table::Version, &version.row(), &value)?;
    Ok(store.put(Table::VersionOf, &version.index_row(), &[])?)
}

/// Gives a version up.
pub(crate) fn delete(store: &mut dyn StoreTxn, version: &Version) -> Result<()> {
    store.delete(Table::Version, &version.row())?;
    Ok(store.delete(Table::VersionOf, &version.index_row())?)
}

/// The record that was kept as `version`, which must exist.
pub(crate) fn record(store: &dyn StoreRead, version: &Version) -> Result<Option<Vec<u8>>> {
    match store.get(Table::Version, &version.row())? {
        Some(value) => parse_value(&value),
        None => Err(damaged("version", "the index names one that is not there")),
    }
}

/// What snapshot `id` of `root` sees of a record: `None` if it has not changed since, else the record or
/// that there was none.
pub(crate) fn kept(
    store: &dyn StoreRead,
    kind: Kind,
    key: &[u8],
    root: InodeId,
    id: SnapshotId,
) -> Result<Option<Option<Vec<u8>>>> {
    let from = Version { kind, key: key.to_vec(), root, upto: id }.row();
    let end = prefix_end(&from[..from.len() - 4]);
    let mut found = None;
    store.scan(Table::Version, &from, &end, &mut |_, value| {
        found = Some(parse_value(value));
        ControlFlow::Break(())
    })?;
    found.transpose()
}

/// Whether a version of the same record is kept for a snapshot from `from` on that is older than
/// `version`.
pub(crate) fn any_between(
    store: &dyn StoreRead,
    version: &Version,
    from: SnapshotId,
) -> Result<bool> {
    let low = Version { upto: from, ..version.clone() }.row();
    let mut found = false;
    store.scan(Table::Version, &low, &version.row(), &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Every version of a record with what was kept, by root and then age.
pub(crate) fn all_of(
    store: &dyn StoreRead,
    kind: Kind,
    key: &[u8],
) -> Result<Vec<(Version, Option<Vec<u8>>)>> {
    let prefix = record_prefix(kind, key);
    let mut found = Vec::new();
    store.scan(Table::Version, &prefix, &prefix_end(&prefix), &mut |row, value| {
        found.push((parse_row(row), parse_value(value)));
        ControlFlow::Continue(())
    })?;
    found.into_iter().map(|(version, record)| Ok((version?, record?))).collect()
}

/// Keys with the records that were kept of them.
pub(crate) type Records = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Records of `kind` with keys in `from..to` that differ for snapshot `id` of `root`: at most `limit` in
/// order, and whether there are more.
pub(crate) fn page(
    store: &dyn StoreRead,
    kind: Kind,
    (from, to): (&[u8], &[u8]),
    (root, id): (InodeId, SnapshotId),
    limit: usize,
) -> Result<(Records, bool)> {
    let end = if to.is_empty() { prefix_end(&[kind as u8]) } else { escaped(kind, to) };
    let mut found: Records = Vec::new();
    let mut failed = None;
    let mut more = false;
    store.scan(Table::Version, &escaped(kind, from), &end, &mut |row, value| {
        let read = parse_row(row).and_then(|version| {
            let same = found.last().is_some_and(|(key, _)| *key == version.key);
            if version.root != root || version.upto < id || same {
                return Ok(true);
            }
            if found.len() >= limit {
                more = true;
                return Ok(false);
            }
            found.push((version.key, parse_value(value)?));
            Ok(true)
        });
        match read {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok((found, more)),
    }
}

/// At most `limit` versions that are kept for exactly that snapshot.
pub(crate) fn of_snapshot(
    store: &dyn StoreRead,
    root: InodeId,
    id: SnapshotId,
    limit: usize,
) -> Result<Vec<Version>> {
    let prefix = snapshot_prefix(root, id);
    let mut found = Vec::new();
    store.scan(Table::VersionOf, &prefix, &prefix_end(&prefix), &mut |row, _| {
        found.push(row.get(12..).and_then(parse).map(|(kind, key, _)| (kind, key)));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    found
        .into_iter()
        .map(|parsed| {
            let (kind, key) = parsed.ok_or_else(|| damaged("version", "a key of the index"))?;
            Ok(Version { kind, key: turned(kind, &key), root, upto: id })
        })
        .collect()
}

/// Calls `visit` for kind and key of every version that is kept for a snapshot of `root` from the first on
/// and before the second, if there is one.
pub(crate) fn between(
    store: &dyn StoreRead,
    root: InodeId,
    (from, before): (SnapshotId, Option<SnapshotId>),
    visit: &mut dyn FnMut(Kind, &[u8]) -> Result<()>,
) -> Result<()> {
    let end = match before {
        Some(before) => snapshot_prefix(root, before),
        None => prefix_end(&root.key()),
    };
    let mut result = Ok(());
    store.scan(Table::VersionOf, &snapshot_prefix(root, from), &end, &mut |row, _| {
        let parsed = row.get(12..).and_then(parse);
        let Some((kind, key, _)) = parsed else {
            result = Err(damaged("version", "a key of the index"));
            return ControlFlow::Break(());
        };
        result = visit(kind, &turned(kind, &key));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result
}

/// Every record of a kind that is kept and belongs to an inode, or to the names in a directory, with its key.
pub(crate) fn below(
    store: &dyn StoreRead,
    kind: Kind,
    owner: InodeId,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let prefix = escaped(kind, &owner.key());
    let mut found = Vec::new();
    store.scan(Table::Version, &prefix, &prefix_end(&prefix), &mut |row, value| {
        found.push((parse_row(row), parse_value(value)));
        ControlFlow::Continue(())
    })?;
    let mut records = Vec::with_capacity(found.len());
    for (version, record) in found {
        records.extend(
            record?.map(|record| Ok::<_, NamespaceError>((version?.key, record))).transpose()?,
        );
    }
    Ok(records)
}
