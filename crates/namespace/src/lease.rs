//! Who holds which files open, and since when nothing was heard of them.
//!
//! All times are elapsed ones.
//!
//! Table `lease`: holder -> time of the last renewal, number of files. Table `lease-age`: that time, holder. Table
//! `lease-file`: holder, inode id. Holders are keyed with their length first. A renewal of all leases
//! is one number in `meta`, which no lease counts as older than.
//!
//! Source: Hadoop 3.5.0 `LeaseManager`.

use crate::encoding::{Decode, Decoder, Encode, Encoder};
use crate::error::Result;
use crate::inode::InodeId;
use crate::settings::Settings;
use crate::store::{StoreError, StoreRead, StoreTxn, Table, prefix_end};
use std::ops::ControlFlow;

/// How the holders begin that stand for the NameNode: those of files whose last block it has recovered.
pub const NAMENODE_HOLDER: &str = "HDFS_NameNode";

/// The NameNode as a holder: another one in each period of the hard limit, so that a file that is taken
/// over today does not renew the lease of one whose recovery has not ended yet.
///
/// Source: Hadoop 3.5.0 `LeaseManager#updateInternalLeaseHolder`.
pub fn namenode_holder(settings: &Settings, elapsed_ms: u64) -> String {
    format!("{NAMENODE_HOLDER}-{}", elapsed_ms / settings.lease_hard_limit_ms.max(1))
}

/// Key in `meta` of the time of the last renewal of all leases.
const RENEWED_ALL: &[u8] = b"leases-renewed";

/// A file that is to be closed, as its holder is silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredLease {
    /// The holder.
    pub holder: String,
    /// When the holder was heard of last.
    pub renewed_ms: u64,
    /// The file.
    pub file: InodeId,
}

fn holder_key(holder: &str) -> Vec<u8> {
    let mut out = Encoder::new();
    out.bytes(holder.as_bytes());
    out.into_bytes()
}

fn age_key(renewed_ms: u64, holder: &str) -> Vec<u8> {
    [&renewed_ms.to_be_bytes()[..], holder.as_bytes()].concat()
}

fn file_key(holder: &str, file: InodeId) -> Vec<u8> {
    [&holder_key(holder)[..], &file.key()].concat()
}

fn number(bytes: &[u8]) -> Result<u64> {
    let mut input = Decoder::new(bytes);
    let value = u64::decode(&mut input)?;
    input.finish()?;
    Ok(value)
}

fn number_bytes(value: u64) -> Vec<u8> {
    let mut out = Encoder::new();
    value.encode(&mut out);
    out.into_bytes()
}

/// When every lease was renewed last: as the NameNode that serves began to.
pub(crate) fn renewed_all(store: &dyn StoreRead) -> Result<u64> {
    Ok(store.get(Table::Meta, RENEWED_ALL)?.map(|bytes| number(&bytes)).transpose()?.unwrap_or(0))
}

/// What is known of a holder.
struct Lease {
    renewed_ms: u64,
    /// How many files it has open; none in a record of an older build, which did not count them.
    files: Option<u64>,
}

impl Lease {
    fn get(store: &dyn StoreRead, holder: &str) -> Result<Option<Lease>> {
        let Some(bytes) = store.get(Table::Lease, &holder_key(holder))? else { return Ok(None) };
        let mut input = Decoder::new(&bytes);
        let renewed_ms = u64::decode(&mut input)?;
        let files = if input.remaining() == 0 { None } else { Some(u64::decode(&mut input)?) };
        input.finish()?;
        Ok(Some(Lease { renewed_ms, files }))
    }

    fn put(&self, store: &mut dyn StoreTxn, holder: &str) -> Result<()> {
        let mut out = Encoder::new();
        self.renewed_ms.encode(&mut out);
        if let Some(files) = self.files {
            files.encode(&mut out);
        }
        Ok(store.put(Table::Lease, &holder_key(holder), &out.into_bytes())?)
    }

    /// The same as of `elapsed_ms`.
    fn renew(&mut self, store: &mut dyn StoreTxn, holder: &str, elapsed_ms: u64) -> Result<()> {
        if self.renewed_ms != elapsed_ms {
            store.remove(Table::LeaseAge, &age_key(self.renewed_ms, holder))?;
            store.put(Table::LeaseAge, &age_key(elapsed_ms, holder), &[])?;
            self.renewed_ms = elapsed_ms;
        }
        self.put(store, holder)
    }
}

/// Whether the holder has been silent for longer than the soft limit, or has no lease.
pub fn is_soft_expired(
    store: &dyn StoreRead,
    settings: &Settings,
    holder: &str,
    elapsed_ms: u64,
) -> Result<bool> {
    let Some(lease) = Lease::get(store, holder)? else { return Ok(true) };
    let renewed = lease.renewed_ms.max(renewed_all(store)?);
    Ok(elapsed_ms.saturating_sub(renewed) > settings.lease_soft_limit_ms)
}

/// Whether the holder has the file open.
pub fn holds(store: &dyn StoreRead, holder: &str, file: InodeId) -> Result<bool> {
    Ok(store.get(Table::LeaseFile, &file_key(holder, file))?.is_some())
}

/// What refusals say of a holder.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#leaseExceptionString`, `LeaseManager.Lease#toString`.
pub(crate) fn describe(store: &dyn StoreRead, holder: &str) -> Result<String> {
    let Some(lease) = Lease::get(store, holder)? else {
        return Ok(format!("Holder {holder} does not have any open files."));
    };
    let count = match lease.files {
        Some(count) => count,
        None => files(store, holder, None, usize::MAX)?.len() as u64,
    };
    Ok(format!("[Lease.  Holder: {holder}, pending creates: {count}]"))
}

/// At most `limit` files of a holder with ids greater than `after`.
pub fn files(
    store: &dyn StoreRead,
    holder: &str,
    after: Option<InodeId>,
    limit: usize,
) -> Result<Vec<InodeId>> {
    let prefix = holder_key(holder);
    let from = after.map_or(prefix.clone(), |id| file_key(holder, InodeId(id.0 + 1)));
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    let mut bad = None;
    store.scan(Table::LeaseFile, &from, &prefix_end(&prefix), &mut |key, _| {
        match <[u8; 8]>::try_from(&key[prefix.len()..]) {
            Ok(id) => found.push(InodeId(u64::from_be_bytes(id))),
            Err(_) => bad = Some(key.len()),
        }
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match bad {
        Some(len) => {
            Err(StoreError::Corrupt { what: "lease", reason: format!("a key of {len} bytes") }
                .into())
        }
        None => Ok(found),
    }
}

/// Files of holders that were silent beyond the hard limit, the oldest holder first: at most `limit`, those behind
/// `after` in that order.
pub fn expired(
    store: &dyn StoreRead,
    settings: &Settings,
    elapsed_ms: u64,
    after: Option<&ExpiredLease>,
    limit: usize,
) -> Result<Vec<ExpiredLease>> {
    let Some(oldest) = elapsed_ms.checked_sub(settings.lease_hard_limit_ms) else {
        return Ok(Vec::new());
    };
    if renewed_all(store)? >= oldest {
        return Ok(Vec::new());
    }
    let from = after.map_or(Vec::new(), |lease| age_key(lease.renewed_ms, &lease.holder));
    let mut holders = Vec::new();
    store.scan(Table::LeaseAge, &from, &oldest.to_be_bytes(), &mut |key, _| {
        if let Some((age, holder)) = key.split_first_chunk() {
            let holder = String::from_utf8_lossy(holder).into_owned();
            holders.push((u64::from_be_bytes(*age), holder));
        }
        // The first may have no file behind `after`.
        if holders.len() <= limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let mut found = Vec::new();
    for (renewed_ms, holder) in holders {
        let last = after.filter(|after| (after.renewed_ms, &after.holder) == (renewed_ms, &holder));
        let files = files(store, &holder, last.map(|last| last.file), limit - found.len())?;
        let lease = |file| ExpiredLease { holder: holder.clone(), renewed_ms, file };
        found.extend(files.into_iter().map(lease));
    }
    Ok(found)
}

/// Sets the time of a lease that exists; says whether it does.
pub(crate) fn renew(store: &mut dyn StoreTxn, holder: &str, elapsed_ms: u64) -> Result<bool> {
    let Some(mut lease) = Lease::get(store, holder)? else { return Ok(false) };
    lease.renew(store, holder, elapsed_ms)?;
    Ok(true)
}

/// Every lease counts as renewed now.
pub(crate) fn renew_all(store: &mut dyn StoreTxn, elapsed_ms: u64) -> Result<()> {
    Ok(store.put(Table::Meta, RENEWED_ALL, &number_bytes(elapsed_ms))?)
}

/// The holder opens a file, which renews its lease.
pub(crate) fn add(
    store: &mut dyn StoreTxn,
    holder: &str,
    file: InodeId,
    elapsed_ms: u64,
) -> Result<()> {
    let is_new = !holds(store, holder, file)?;
    if is_new {
        store.put(Table::LeaseFile, &file_key(holder, file), &[])?;
    }
    match Lease::get(store, holder)? {
        Some(mut lease) => {
            lease.files = lease.files.map(|files| files + u64::from(is_new));
            lease.renew(store, holder, elapsed_ms)
        }
        None => {
            store.put(Table::LeaseAge, &age_key(elapsed_ms, holder), &[])?;
            Lease { renewed_ms: elapsed_ms, files: Some(1) }.put(store, holder)
        }
    }
}

/// The file is closed or gone; the lease goes with its last file.
pub(crate) fn remove(store: &mut dyn StoreTxn, holder: &str, file: InodeId) -> Result<()> {
    if !holds(store, holder, file)? {
        return Ok(());
    }
    store.remove(Table::LeaseFile, &file_key(holder, file))?;
    let Some(mut lease) = Lease::get(store, holder)? else { return Ok(()) };
    let left = match &mut lease.files {
        Some(count) => {
            *count = count.saturating_sub(1);
            *count
        }
        None => files(store, holder, None, 1)?.len() as u64,
    };
    if left > 0 {
        return if lease.files.is_some() { lease.put(store, holder) } else { Ok(()) };
    }
    store.remove(Table::LeaseAge, &age_key(lease.renewed_ms, holder))?;
    Ok(store.remove(Table::Lease, &holder_key(holder))?)
}

/// At most `limit` open files of all holders with ids greater than `after`, ascending. Walks every
/// open file once.
///
/// Source: Hadoop 3.5.0 `LeaseManager#getUnderConstructionFiles`.
pub fn open_files(store: &dyn StoreRead, after: InodeId, limit: usize) -> Result<Vec<InodeId>> {
    let mut found = std::collections::BTreeSet::new();
    store.scan(Table::LeaseFile, &[], &[], &mut |key, _| {
        let id = key.last_chunk().map_or(InodeId::NONE, |id| InodeId(u64::from_be_bytes(*id)));
        if id > after {
            found.insert(id);
            if found.len() > limit {
                found.pop_last();
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    const HOLDER: &str = "holder";

    fn is_known(store: &MemoryStore) -> bool {
        Lease::get(store, HOLDER).unwrap().is_some()
    }

    #[test]
    fn a_lease_goes_with_its_last_file_however_often_each_comes_and_goes() {
        let mut store = MemoryStore::new();
        let file = InodeId;
        for (id, elapsed_ms) in [(1, 10), (2, 10), (1, 20), (2, 20), (3, 30)] {
            add(&mut store, HOLDER, file(id), elapsed_ms).unwrap();
        }
        assert!(renew(&mut store, HOLDER, 40).unwrap());
        for id in [2, 2, 4, 1] {
            remove(&mut store, HOLDER, file(id)).unwrap();
            assert!(is_known(&store), "without {id}");
        }
        remove(&mut store, HOLDER, file(3)).unwrap();
        assert_eq!(store, MemoryStore::new());
        assert!(!renew(&mut store, HOLDER, 50).unwrap());
    }

    #[test]
    fn files_that_an_older_build_did_not_count_are_looked_for() {
        let mut store = MemoryStore::new();
        for id in [1, 2] {
            add(&mut store, HOLDER, InodeId(id), 10).unwrap();
        }
        store.put(Table::Lease, &holder_key(HOLDER), &number_bytes(10)).unwrap();
        add(&mut store, HOLDER, InodeId(3), 20).unwrap();
        for id in [1, 3] {
            remove(&mut store, HOLDER, InodeId(id)).unwrap();
            assert!(is_known(&store), "without {id}");
        }
        remove(&mut store, HOLDER, InodeId(2)).unwrap();
        assert_eq!(store, MemoryStore::new());
    }
}
