//! Snapshots: read-only pictures of a directory that cost what changes after them.
//!
//! Table `snapshot-root`: inode id -> [`Root`]. Table `snapshot`: root, complement of the id (so that the newest
//! comes first) -> [`Snapshot`]. Table `snapshot-name`: root, name -> id. Table `snapshot-seen`: inode id, root ->
//! the newest snapshot of that root that may still see the inode from where it was before it was moved or removed,
//! and 1 if it was removed. Table `snapshot-garbage`: root, id of deleted snapshots whose versions are still to be
//! given up.
//!
//! Taking a snapshot writes its own records only. A record that changes later is kept as it was, once for
//! each snapshot at most ([`capture`]), under the newest snapshot that sees it ([`version`]); reading a
//! snapshot finds the first version that was kept for it or for a newer one, else the record as it is
//! ([`view`]). What is kept of inodes and blocks is found by `kept`; which quotas count it, by `held`. A deleted
//! snapshot hands its versions to the one before, or gives them up ([`reclaim`]).
//!
//! Source: Hadoop 3.5.0 `SnapshotManager`, `DirectorySnapshottableFeature`.

pub(crate) mod capture;
pub mod diff;
pub(crate) mod garbage;
pub(crate) mod held;
pub(crate) mod kept;
pub mod listing;
pub mod paths;
pub(crate) mod reclaim;
pub(crate) mod version;
pub mod view;

use crate::encoding::{
    Decode, DecodeError, Decoder, Encode, Encoder, encode_struct, from_record, to_record,
};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, InodeId};
use crate::store::{StoreError, StoreRead, StoreTxn, Table, prefix_end};
use std::fmt;
use std::ops::ControlFlow;

/// The name below a snapshottable directory that leads to its snapshots.
///
/// Source: Hadoop 3.5.0 `HdfsConstants#DOT_SNAPSHOT_DIR`.
pub const DOT_SNAPSHOT: &str = ".snapshot";

/// Most snapshots of a directory, which no call changes.
///
/// Source: Hadoop 3.5.0 `DirectorySnapshottableFeature#SNAPSHOT_QUOTA_DEFAULT`.
pub const QUOTA: u32 = 1 << 16;

/// The first id that is not given out any more.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#getMaxSnapshotID`.
pub const ID_MAX: u32 = (1 << 28) - 1;

const VERSION: u8 = 1;

/// The number of a snapshot, unique in the file system; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotId(pub u32);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Encode for SnapshotId {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }
}

impl Decode for SnapshotId {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        u32::decode(input).map(SnapshotId)
    }
}

/// A directory of which snapshots may be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// Snapshots there are.
    pub count: u32,
    /// The newest of them.
    pub newest: Option<SnapshotId>,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number.
    pub id: SnapshotId,
    /// Its name below `.snapshot`.
    pub name: String,
    /// When it was taken or got its name, ms since the epoch.
    pub mtime: u64,
    /// The last inode id that was given out before it.
    pub last_inode: InodeId,
    /// It was deleted while there were earlier ones, and goes when it is the earliest.
    ///
    /// Source: Hadoop 3.5.0 `Snapshot.Root#isMarkedAsDeleted`.
    pub deleted: bool,
}

encode_struct!(Root { count, newest });

impl Encode for Snapshot {
    fn encode(&self, out: &mut Encoder) {
        self.id.encode(out);
        self.name.encode(out);
        self.mtime.encode(out);
        self.last_inode.encode(out);
        // Records of before there was the mark have nothing here.
        if self.deleted {
            out.byte(MARKED);
        }
    }
}

impl Decode for Snapshot {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut snapshot = Snapshot {
            id: Decode::decode(input)?,
            name: Decode::decode(input)?,
            mtime: Decode::decode(input)?,
            last_inode: Decode::decode(input)?,
            deleted: false,
        };
        if input.remaining() > 0 {
            match input.byte()? {
                MARKED => snapshot.deleted = true,
                value => {
                    return Err(DecodeError::Invalid { what: "mark", value: u64::from(value) });
                }
            }
        }
        Ok(snapshot)
    }
}

/// At the end of the record of a snapshot that is marked as deleted.
const MARKED: u8 = 1;

/// What an operator configures of snapshots. Defaults are Hadoop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// Most snapshots of a directory (`dfs.namenode.snapshot.max.limit`).
    pub per_directory_max: u32,
    /// Most snapshots of the file system (`dfs.namenode.snapshot.filesystem.limit`).
    pub total_max: u32,
    /// Freeze the length of open files (`dfs.namenode.snapshot.capture.openfiles`).
    pub capture_open_files: bool,
    /// Do not keep the old access time (`dfs.namenode.snapshot.skip.capture.accesstime-only-change`).
    pub skip_access_time: bool,
    /// Compare directories below a snapshottable one
    /// (`dfs.namenode.snapshotdiff.allow.snap-root-descendant`).
    pub diff_below_root: bool,
    /// Most entries of one answer of `getSnapshotDiffReportListing`
    /// (`dfs.namenode.snapshotdiff.listing.limit`).
    pub diff_page: u32,
}

encode_struct!(SnapshotSettings {
    per_directory_max,
    total_max,
    capture_open_files,
    skip_access_time,
    diff_below_root,
    diff_page,
});

impl Default for SnapshotSettings {
    fn default() -> SnapshotSettings {
        SnapshotSettings {
            per_directory_max: 65_536,
            total_max: 65_536,
            capture_open_files: false,
            skip_access_time: false,
            diff_below_root: true,
            diff_page: 1000,
        }
    }
}

const SETTINGS: &[u8] = b"snapshot-settings";

/// The settings in force.
pub fn settings(store: &dyn StoreRead) -> Result<SnapshotSettings> {
    match store.get(Table::Meta, SETTINGS)? {
        Some(bytes) => Ok(from_record(VERSION, &bytes)?),
        None => Ok(SnapshotSettings::default()),
    }
}

pub(crate) fn put_settings(store: &mut dyn StoreTxn, settings: &SnapshotSettings) -> Result<()> {
    if self::settings(store)? == *settings {
        return Ok(());
    }
    Ok(store.put(Table::Meta, SETTINGS, &to_record(VERSION, settings))?)
}

fn snapshot_key(root: InodeId, id: SnapshotId) -> Vec<u8> {
    [&root.key()[..], &(!id.0).to_be_bytes()].concat()
}

/// The directory and number that a key of the `snapshot` table names.
pub(crate) fn id_of(key: &[u8]) -> Option<(InodeId, SnapshotId)> {
    let root = InodeId(u64::from_be_bytes(*key.first_chunk()?));
    Some((root, SnapshotId(!u32::from_be_bytes(*key.last_chunk()?))))
}

fn name_key(root: InodeId, name: &str) -> Vec<u8> {
    [&root.key()[..], name.as_bytes()].concat()
}

fn damaged(what: &'static str, reason: impl Into<String>) -> NamespaceError {
    NamespaceError::Store(StoreError::Corrupt { what, reason: reason.into() })
}

/// What is known of a directory as a snapshottable one; `None` if it is none.
pub fn root(store: &dyn StoreRead, directory: InodeId) -> Result<Option<Root>> {
    match store.get(Table::SnapshotRoot, &directory.key())? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Ok(None),
    }
}

/// Whether a directory has a `.snapshot`. The root always has, though no snapshot can be taken of it before
/// that is allowed.
///
/// Source: Hadoop 3.5.0 `FSDirectory#createRoot`.
pub fn is_snapshottable(store: &dyn StoreRead, directory: InodeId) -> Result<bool> {
    Ok(directory == InodeId::ROOT || root(store, directory)?.is_some())
}

pub(crate) fn put_root(store: &mut dyn StoreTxn, directory: InodeId, root: &Root) -> Result<()> {
    Ok(store.put(Table::SnapshotRoot, &directory.key(), &to_record(VERSION, root))?)
}

pub(crate) fn delete_root(store: &mut dyn StoreTxn, directory: InodeId) -> Result<()> {
    Ok(store.delete(Table::SnapshotRoot, &directory.key())?)
}

/// Every snapshottable directory by id.
pub fn roots(store: &dyn StoreRead) -> Result<Vec<(InodeId, Root)>> {
    let mut found = Vec::new();
    store.scan(Table::SnapshotRoot, &[], &[], &mut |key, value| {
        let id = key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
        found.push((id.unwrap_or(InodeId::NONE), from_record(VERSION, value)));
        ControlFlow::Continue(())
    })?;
    found.into_iter().map(|(id, root)| Ok((id, root?))).collect()
}

/// The newest snapshot of `root` that is not newer than `most`.
pub(crate) fn at_most(
    store: &dyn StoreRead,
    root: InodeId,
    most: SnapshotId,
) -> Result<Option<Snapshot>> {
    let mut found = None;
    let end = prefix_end(&root.key());
    store.scan(Table::Snapshot, &snapshot_key(root, most), &end, &mut |_, value| {
        found = Some(from_record(VERSION, value));
        ControlFlow::Break(())
    })?;
    Ok(found.transpose()?)
}

/// The newest snapshot of `root` older than one.
pub(crate) fn older_than(
    store: &dyn StoreRead,
    root: InodeId,
    id: SnapshotId,
) -> Result<Option<Snapshot>> {
    match id.0.checked_sub(1) {
        Some(most) => at_most(store, root, SnapshotId(most)),
        None => Ok(None),
    }
}

/// Whether that snapshot of `root` is marked as deleted.
pub(crate) fn is_marked(store: &dyn StoreRead, root: InodeId, id: SnapshotId) -> Result<bool> {
    let found = at_most(store, root, id)?.filter(|found| found.id == id);
    Ok(found.is_some_and(|found| found.deleted))
}

/// Whether a snapshot of `root` in that range is marked as deleted.
pub(crate) fn any_marked(
    store: &dyn StoreRead,
    root: InodeId,
    from: SnapshotId,
    before: Option<SnapshotId>,
) -> Result<bool> {
    let mut at = match before {
        Some(before) => older_than(store, root, before)?,
        None => at_most(store, root, SnapshotId(u32::MAX))?,
    };
    while let Some(snapshot) = at.filter(|snapshot| snapshot.id >= from) {
        if snapshot.deleted {
            return Ok(true);
        }
        at = older_than(store, root, snapshot.id)?;
    }
    Ok(false)
}

/// The first directory whose earliest snapshot is marked as deleted, and that snapshot.
///
/// Source: Hadoop 3.5.0 `SnapshotManager#chooseDeletedSnapshot`.
pub fn first_due(store: &dyn StoreRead) -> Result<Option<(InodeId, Snapshot)>> {
    // The earliest of a directory is the last of its records.
    let mut last: Option<(InodeId, Result<Snapshot, DecodeError>)> = None;
    let mut found = None;
    store.scan(Table::Snapshot, &[], &[], &mut |key, value| {
        let Some((root, _)) = id_of(key) else { return ControlFlow::Continue(()) };
        if let Some((before, snapshot)) = last.take()
            && before != root
            && snapshot.as_ref().map_or(true, |snapshot| snapshot.deleted)
        {
            found = Some((before, snapshot));
            return ControlFlow::Break(());
        }
        last = Some((root, from_record(VERSION, value)));
        ControlFlow::Continue(())
    })?;
    let is_due = |at: &(InodeId, Result<Snapshot, DecodeError>)| match &at.1 {
        Ok(snapshot) => snapshot.deleted,
        Err(_) => true,
    };
    match found.or_else(|| last.filter(is_due)) {
        Some((root, snapshot)) => Ok(Some((root, snapshot?))),
        None => Ok(None),
    }
}

/// The snapshot of `root` with that name.
pub fn by_name(store: &dyn StoreRead, root: InodeId, name: &str) -> Result<Option<Snapshot>> {
    let Some(bytes) = store.get(Table::SnapshotName, &name_key(root, name))? else {
        return Ok(None);
    };
    let id = bytes
        .as_slice()
        .try_into()
        .map(|id| SnapshotId(u32::from_be_bytes(id)))
        .map_err(|_| damaged("snapshot name", format!("an id of {} bytes", bytes.len())))?;
    match store.get(Table::Snapshot, &snapshot_key(root, id))? {
        Some(bytes) => Ok(Some(from_record(VERSION, &bytes)?)),
        None => Err(damaged("snapshot name", format!("there is no snapshot {id} of {root}"))),
    }
}

pub(crate) fn put(store: &mut dyn StoreTxn, root: InodeId, snapshot: &Snapshot) -> Result<()> {
    store.put(
        Table::SnapshotName,
        &name_key(root, &snapshot.name),
        &snapshot.id.0.to_be_bytes(),
    )?;
    let record = to_record(VERSION, snapshot);
    Ok(store.put(Table::Snapshot, &snapshot_key(root, snapshot.id), &record)?)
}

pub(crate) fn delete_name(store: &mut dyn StoreTxn, root: InodeId, name: &str) -> Result<()> {
    Ok(store.delete(Table::SnapshotName, &name_key(root, name))?)
}

pub(crate) fn delete(store: &mut dyn StoreTxn, root: InodeId, snapshot: &Snapshot) -> Result<()> {
    delete_name(store, root, &snapshot.name)?;
    Ok(store.delete(Table::Snapshot, &snapshot_key(root, snapshot.id))?)
}

/// At most `limit` snapshots of `root` in byte order of their names, which follow `after`.
pub fn by_names(
    store: &dyn StoreRead,
    root: InodeId,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<Snapshot>> {
    let from = names_from(root, after);
    let mut names = Vec::new();
    if limit > 0 {
        store.scan(Table::SnapshotName, &from, &prefix_end(&root.key()), &mut |key, _| {
            names.push(String::from_utf8_lossy(key.get(8..).unwrap_or_default()).into_owned());
            if names.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        found.extend(by_name(store, root, &name)?);
    }
    Ok(found)
}

/// How many snapshots of `root` have names that follow `after`.
pub(crate) fn count_after(
    store: &dyn StoreRead,
    root: InodeId,
    after: Option<&[u8]>,
) -> Result<u64> {
    let (from, end) = (names_from(root, after), prefix_end(&root.key()));
    let mut count = 0;
    store.scan(Table::SnapshotName, &from, &end, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

/// The first key of a name that follows `after`.
fn names_from(root: InodeId, after: Option<&[u8]>) -> Vec<u8> {
    let mut from = root.key().to_vec();
    if let Some(after) = after {
        from.extend_from_slice(after);
        from.push(0);
    }
    from
}

fn seen_key(inode: InodeId, root: InodeId) -> Vec<u8> {
    [inode.key(), root.key()].concat()
}

/// From which snapshots an inode was moved or removed: root and newest.
pub(crate) fn seen(store: &dyn StoreRead, inode: InodeId) -> Result<Vec<(InodeId, SnapshotId)>> {
    let mut found = Vec::new();
    store.scan(
        Table::SnapshotSeen,
        &inode.key(),
        &prefix_end(&inode.key()),
        &mut |key, value| {
            let root = key.last_chunk().map(|id| InodeId(u64::from_be_bytes(*id)));
            let id = value.first_chunk().map(|id| SnapshotId(u32::from_be_bytes(*id)));
            found.extend(root.zip(id));
            ControlFlow::Continue(())
        },
    )?;
    Ok(found)
}

/// Some snapshot of `root` up to `id` sees the inode, wherever it is now. `removed` says that it is nowhere.
pub(crate) fn put_seen(
    store: &mut dyn StoreTxn,
    inode: InodeId,
    root: InodeId,
    id: SnapshotId,
    removed: bool,
) -> Result<()> {
    let key = seen_key(inode, root);
    let before = store.get(Table::SnapshotSeen, &key)?;
    let before = before.and_then(|bytes| Some(u32::from_be_bytes(*bytes.first_chunk()?)));
    let id = before.map_or(id.0, |before| before.max(id.0));
    let value = [&id.to_be_bytes()[..], if removed { &[1] } else { &[] }].concat();
    Ok(store.put(Table::SnapshotSeen, &key, &value)?)
}

/// Whether an inode was removed while snapshots hold it.
pub(crate) fn is_removed(store: &dyn StoreRead, inode: InodeId) -> Result<bool> {
    let mut found = false;
    let end = prefix_end(&inode.key());
    store.scan(Table::SnapshotSeen, &inode.key(), &end, &mut |_, value| {
        found |= value.len() > 4;
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Every inode that was removed while snapshots hold it.
pub(crate) fn all_removed(store: &dyn StoreRead) -> Result<Vec<InodeId>> {
    let mut found = Vec::new();
    store.scan(Table::SnapshotSeen, &[], &[], &mut |key, value| {
        if value.len() > 4 {
            found.extend(key.first_chunk().map(|id| InodeId(u64::from_be_bytes(*id))));
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The inode is gone from the current tree.
pub(crate) fn forget(store: &mut dyn StoreTxn, inode: InodeId) -> Result<()> {
    for (root, _) in seen(store, inode)? {
        store.delete(Table::SnapshotSeen, &seen_key(inode, root))?;
    }
    delete_root(store, inode)
}

/// The snapshottable directory that an inode is in or is; `None` if there is none.
pub fn root_above(store: &dyn StoreRead, inode: InodeId) -> Result<Option<InodeId>> {
    let mut at = inode;
    while at != InodeId::NONE {
        if root(store, at)?.is_some() {
            return Ok(Some(at));
        }
        let Some(inode) = inode::get(store, at)? else { return Ok(None) };
        at = inode.parent;
    }
    Ok(None)
}
