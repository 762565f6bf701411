//! What counts against quotas: names, bytes on disk, and bytes by type of storage.
//!
//! Bytes count by type where a storage policy is set, as the policy spreads a file's copies; a group's units are
//! all on one type. Types whose content does not survive are left out.

pub(crate) mod by_type;

use crate::block::{self, Block};
use crate::error::{NamespaceError, Result};
use crate::inode::{self, FileRedundancy, Inode};
use crate::path::name::join;
use crate::policy_admin;
use crate::snapshot::{garbage, kept};
use crate::storage_policy;
use crate::store::{StoreRead, StoreTxn};
use crate::tree::walk;
use cairn_stripe::geometry::Geometry;
use cairn_stripe::{StoragePolicy, StorageType};
use std::sync::Arc;

pub use by_type::ByType;

/// The type of a file's first copy under a storage policy, and that of all others; `None` for an unknown policy
/// and where none is set. A copy in memory does not count: it is on a disk soon.
///
/// Source: Hadoop 3.5.0 `BlockStoragePolicy#chooseStorageTypes`.
fn types_of(policy: u8) -> Option<(StorageType, StorageType)> {
    let policy = StoragePolicy::ALL.into_iter().find(|known| known.id == policy)?;
    match policy.types(2)[..] {
        [first, others] => Some((first, others)),
        _ => None,
    }
}

/// The most bytes that anything counts as, so that sums and differences of clients' wildest lengths stay
/// numbers.
const SPACE_MAX: u64 = i64::MAX as u64;

/// Bytes on disk of a block with all copies or parity.
fn block_space(store: &dyn StoreRead, of: FileRedundancy, len: u64) -> Result<u64> {
    let space = match of {
        FileRedundancy::Replicated(copies) | FileRedundancy::Contiguous { copies, .. } => {
            len.saturating_mul(u64::from(copies))
        }
        FileRedundancy::Striped(id) => {
            Geometry::from(&policy_admin::by_id(store, id)?).raw_len(len)
        }
    };
    Ok(space.min(SPACE_MAX))
}

/// What counts against quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Inodes.
    pub names: i64,
    /// Bytes on disk.
    pub space: i64,
    /// Bytes on disk by type, where a storage policy says which.
    pub types: ByType<i64>,
}

impl Usage {
    /// One inode without blocks.
    pub fn name() -> Usage {
        Usage { names: 1, ..Usage::default() }
    }

    fn combined(self, other: Usage, with: impl Fn(i64, i64) -> i64) -> Usage {
        let mut types = self.types;
        for kind in StorageType::ALL {
            types[kind] = with(types[kind], other.types[kind]);
        }
        Usage { names: with(self.names, other.names), space: with(self.space, other.space), types }
    }

    /// Both together.
    pub fn plus(self, other: Usage) -> Usage {
        self.combined(other, i64::saturating_add)
    }

    /// What is left without `other`, or less than nothing.
    pub fn minus(self, other: Usage) -> Usage {
        self.combined(other, i64::saturating_sub)
    }

    /// The same, taken away.
    pub fn negated(self) -> Usage {
        Usage::default().minus(self)
    }
}

/// What bytes of a file that are in no contiguous group take when the storage policy `policy` is set on it or above; 0
/// for none. For replicated files blocks need not be told apart.
///
/// Source: Hadoop 3.5.0 `INodeFile#storagespaceConsumed`.
pub(crate) fn of_bytes(
    store: &dyn StoreRead,
    redundancy: FileRedundancy,
    policy: u8,
    len: u64,
) -> Result<Usage> {
    let space = block_space(store, redundancy, len)? as i64;
    let mut types = ByType::default();
    let len = len.min(SPACE_MAX) as i64;
    match (redundancy.copies(), types_of(storage_policy::for_file(policy, redundancy))) {
        (_, None) | (Some(0), _) => {}
        (Some(copies), Some((first, others))) => {
            types[first] = len;
            types[others] = len.saturating_mul(i64::from(copies) - 1).saturating_add(types[others]);
        }
        (None, Some((kind, _))) => types[kind] = space,
    }
    Ok(Usage { names: 0, space, types })
}

/// As [`of_bytes`], of a block that may be in a contiguous group, or packed in a member of one: its bytes and its share of the parities, as if all
/// members were as long. What pads the others and what is dead counts nowhere.
pub(crate) fn of_block(
    store: &dyn StoreRead,
    redundancy: FileRedundancy,
    policy: u8,
    block: &Block,
    len: u64,
) -> Result<Usage> {
    let FileRedundancy::Contiguous { policy: id, .. } = redundancy else {
        return of_bytes(store, redundancy, policy, len);
    };
    if !block.is_coded() {
        return of_bytes(store, redundancy, policy, len);
    }
    let schema = store.policy(id)?.schema;
    let len = len.min(SPACE_MAX) as i64;
    let parity = len.saturating_mul(i64::from(schema.m)) / i64::from(schema.k).max(1);
    let mut types = ByType::default();
    if let Some((first, others)) = types_of(policy) {
        types[first] = len;
        types[others] = parity.saturating_add(types[others]);
    }
    Ok(Usage { names: 0, space: len.saturating_add(parity), types })
}

/// How many copies of a file count: those of the snapshot that saw it with most.
///
/// Source: Hadoop 3.5.0 `INodeFile#getPreferredBlockReplication`.
pub(crate) fn counted_redundancy(
    store: &dyn StoreRead,
    file: &Inode,
) -> Result<Option<FileRedundancy>> {
    let Some(now) = file.file().map(|file| file.redundancy) else { return Ok(None) };
    if !garbage::in_use(store)? {
        return Ok(Some(now));
    }
    kept::redundancy(store, file.id, Some(now))
}

/// What a file's blocks take with all copies and parity, those too that were cut off it and that snapshots hold;
/// nothing for a directory.
pub(crate) fn of_blocks(store: &dyn StoreRead, file: &Inode, policy: u8) -> Result<Usage> {
    let Some(redundancy) = counted_redundancy(store, file)? else { return Ok(Usage::default()) };
    let here = of_blocks_as(store, file, redundancy, policy)?;
    if garbage::in_use(store)? {
        return Ok(here.plus(of_cut_off(store, file, policy)?));
    }
    Ok(here)
}

/// As [`of_blocks`], of a file in a directory at the end of `above`; nothing where no quota counts it.
pub(crate) fn counted(store: &dyn StoreRead, above: &[Arc<Inode>], file: &Inode) -> Result<Usage> {
    match has_quota(above) {
        true => of_blocks(store, file, storage_policy::in_force(above, file)),
        false => Ok(Usage::default()),
    }
}

/// What the blocks take that snapshots hold of a file and that are not at their places any more.
pub(crate) fn of_cut_off(store: &dyn StoreRead, file: &Inode, policy: u8) -> Result<Usage> {
    let mut sum = Usage::default();
    let Some(now) = file.file().map(|file| file.redundancy) else { return Ok(sum) };
    let blocks = kept::cut_off(store, file.id)?;
    if blocks.is_empty() {
        return Ok(sum);
    }
    let counted = kept::redundancy(store, file.id, Some(now))?.unwrap_or(now);
    for block in blocks {
        sum = sum.plus(of_block(store, counted, policy, &block, block.len)?);
    }
    Ok(sum)
}

/// What a file's blocks take if they are kept in a certain way.
pub(crate) fn of_blocks_as(
    store: &dyn StoreRead,
    inode: &Inode,
    redundancy: FileRedundancy,
    policy: u8,
) -> Result<Usage> {
    let Some(file) = inode.file() else { return Ok(Usage::default()) };
    if let FileRedundancy::Replicated(_) = redundancy {
        return of_bytes(store, redundancy, policy, file.len);
    }
    let mut sum = Usage::default();
    for index in 0..file.block_count as u32 {
        let (_, block) = block::at(store, inode.id, index)?;
        sum = sum.plus(of_block(store, redundancy, policy, &block, block.len)?);
    }
    Ok(sum)
}

/// What a subtree uses, itself counted. `above` is the storage policy set above it.
pub(crate) fn below(store: &dyn StoreRead, root: &Inode, above: u8) -> Result<Usage> {
    let mut usage = Usage::default();
    walk::descend_with_policy(store, root, above, &mut |inode, policy| {
        usage = usage.plus(Usage::name()).plus(of_blocks(store, inode, policy)?);
        Ok(())
    })?;
    Ok(usage)
}

/// Bytes by type and more of them, never less than none.
pub(crate) fn added(mut types: ByType<u64>, more: ByType<i64>) -> ByType<u64> {
    for (kind, more) in more.iter() {
        types[kind] = types[kind].saturating_add_signed(*more);
    }
    types
}

/// Whether any of these directories has a quota.
pub(crate) fn has_quota(chain: &[Arc<Inode>]) -> bool {
    chain.iter().any(|inode| is_limited(inode))
}

/// Whether it is a directory with a quota.
pub(crate) fn is_limited(inode: &Inode) -> bool {
    inode.directory().is_some_and(|directory| directory.quota.is_some())
}

/// Fails if `usage` more would exceed the quota of a directory in `chain`, which begins at the root.
///
/// Source: Hadoop 3.5.0 `FSDirectory#verifyQuota`.
pub(crate) fn verify(store: &dyn StoreRead, chain: &[Arc<Inode>], usage: Usage) -> Result<()> {
    verify_from(store, chain, 0, usage)
}

/// As [`verify`], without the first `skip` directories.
pub(crate) fn verify_from(
    store: &dyn StoreRead,
    chain: &[Arc<Inode>],
    skip: usize,
    usage: Usage,
) -> Result<()> {
    for (depth, old) in chain.iter().enumerate().skip(skip).rev() {
        if old.directory().is_none_or(|directory| directory.quota.is_none()) {
            continue;
        }
        let inode = inode::expect(store, old.id)?;
        let Some(quota) = inode.directory().and_then(|d| d.quota.as_ref()) else { continue };
        let path = || {
            let names: Vec<_> = chain[1..=depth].iter().map(|inode| inode.name.clone()).collect();
            join(&names)
        };
        let names = quota.names.saturating_add_signed(usage.names);
        if let Some(max) = quota.names_max.filter(|max| usage.names > 0 && names > *max) {
            return Err(NamespaceError::NsQuotaExceeded(format!(
                "The NameSpace quota (directories and files) of directory {} is exceeded: \
                 quota={max} file count={names}",
                path()
            )));
        }
        let space = quota.space.saturating_add_signed(usage.space);
        if let Some(max) = quota.space_max.filter(|max| usage.space > 0 && space > *max) {
            return Err(NamespaceError::DsQuotaExceeded(format!(
                "The DiskSpace quota of {} is exceeded: quota = {max} B = {} but diskspace consumed \
                 = {space} B = {}",
                path(),
                in_binary_units(max),
                in_binary_units(space)
            )));
        }
        for (kind, max) in quota.types_max.iter().filter(|(kind, _)| kind.is_counted()) {
            let (more, space) = (usage.types[kind], quota.types[kind]);
            let space = space.saturating_add_signed(more);
            if let Some(max) = max.filter(|max| more > 0 && space > *max) {
                return Err(NamespaceError::TypeQuotaExceeded(format!(
                    "Quota by storage type : {} on path : {} is exceeded. quota = {} but space \
                     consumed = {}",
                    kind.name(),
                    path(),
                    in_binary_units(max),
                    in_binary_units(space)
                )));
            }
        }
    }
    Ok(())
}

/// A number of bytes as Hadoop prints it for people: with a unit, and two decimals unless it is whole.
///
/// Source: Hadoop 3.5.0 `StringUtils.TraditionalBinaryPrefix#long2String`.
fn in_binary_units(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let mut unit = bytes.checked_ilog2().unwrap_or(0) as usize / 10;
    let shift = 10 * unit as u32;
    if bytes & ((1_u64 << shift) - 1) == 0 {
        return format!("{} {}B", bytes >> shift, UNITS[unit]);
    }
    let in_unit = |unit: usize| format!("{:.2}", bytes as f64 / (1_u64 << (10 * unit)) as f64);
    let mut text = in_unit(unit);
    if text.starts_with("1024") {
        unit += 1;
        text = in_unit(unit);
    }
    format!("{text} {}B", UNITS[unit])
}

/// Counts `usage` in the quotas of the directories in `chain`, as far as they are still there.
pub(crate) fn charge(store: &mut dyn StoreTxn, chain: &[Arc<Inode>], usage: Usage) -> Result<()> {
    if usage == Usage::default() {
        return Ok(());
    }
    for old in chain {
        if old.directory().is_none_or(|directory| directory.quota.is_none()) {
            continue;
        }
        let Some(mut inode) = inode::get(store, old.id)? else { continue };
        if let Some(quota) = inode.directory_mut().and_then(|d| d.quota.as_mut()) {
            quota.names = quota.names.saturating_add_signed(usage.names);
            quota.space = quota.space.saturating_add_signed(usage.space);
            quota.types = added(quota.types, usage.types);
            inode::put(store, &inode)?;
        }
    }
    Ok(())
}

/// Gives the last block of an attached file a length, counts it, and writes both records. `chain` leads to the
/// file's directory.
pub(crate) fn set_last_len(
    store: &mut dyn StoreTxn,
    chain: &[Arc<Inode>],
    inode: &mut Inode,
    block: &mut Block,
    len: u64,
) -> Result<()> {
    let was = block.clone();
    replace_last(store, chain, inode, &was, block, len)
}

/// As [`set_last_len`], of a block in the place of another one.
pub(crate) fn replace_last(
    store: &mut dyn StoreTxn,
    chain: &[Arc<Inode>],
    inode: &mut Inode,
    was: &Block,
    block: &mut Block,
    len: u64,
) -> Result<()> {
    if has_quota(chain)
        && let Some(redundancy) = counted_redundancy(store, inode)?
    {
        let policy = storage_policy::in_force(chain, inode);
        let before = of_block(store, redundancy, policy, was, was.len)?;
        let after = of_block(store, redundancy, policy, block, len)?;
        charge(store, chain, after.minus(before))?;
    }
    if let Some(file) = inode.file_mut() {
        file.len = file.len.saturating_sub(was.len).saturating_add(len);
    }
    block.len = len;
    block::put(store, block)?;
    inode::put(store, inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (1536, "1.50 KB"),
            (1 << 20, "1 MB"),
            (402_653_196, "384.00 MB"),
            ((1 << 30) - 1, "1.00 GB"),
            (i64::MAX as u64, "8.00 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(in_binary_units(bytes), text);
        }
    }
}
