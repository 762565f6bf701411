//! Records of a namespace that another NameNode has kept until now: they come one by one, in any order, into an empty store.
//!
//! No command: a log begins behind them. What they must agree on, [`crate::check`] looks at afterwards.

use crate::block::{self, Block, Position};
use crate::cache::{self, CacheDirective, CachePool};
use crate::counter::{self, Counter};
use crate::error::Result;
use crate::inode::{self, Inode, InodeId};
use crate::policy_admin::{self, PolicyInfo};
use crate::snapshot::{self, Root};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::usage;
use crate::xattr::{self, XAttrName, XAttrSpace};
use crate::{Settings, encryption, lease, settings};

pub mod edit;
mod past;

pub use past::{change, count_held, link, moved, place, remove, replace, snapshot, unlink};

use cairn_stripe::{BlockId, GenerationStamp, Policy, PolicyState};

/// Numbers that were given out last, and how many there are of what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The last inode.
    pub inode: InodeId,
    /// The last block.
    pub block: BlockId,
    /// The last block group.
    pub group: BlockId,
    /// The last stamp.
    pub stamp: GenerationStamp,
    /// Inodes there are.
    pub inodes: u64,
    /// Blocks and groups there are.
    pub blocks: u64,
    /// The last cache directive; 0 before the first.
    pub cache_directive: u64,
    /// How many snapshots there have been, which is the number of the next.
    pub snapshot: u64,
}

/// Begins with settings and the built-in policies.
pub fn begin(store: &mut dyn StoreTxn, settings: &Settings) -> Result<()> {
    settings::put(store, settings)?;
    policy_admin::initialize(store, settings)
}

/// Puts a policy in, or gives a built-in one another state.
pub fn policy(store: &mut dyn StoreTxn, policy: Policy, state: PolicyState) -> Result<()> {
    policy_admin::put(store, &PolicyInfo { policy, state })
}

/// Puts an inode in, under its name in its directory if it has one.
pub fn inode(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    inode::put(store, inode)?;
    match inode.parent {
        InodeId::NONE => Ok(()),
        _ => inode::link(store, inode),
    }
}

/// Puts an inode in whose name comes later, if at all.
pub fn inode_alone(store: &mut dyn StoreTxn, inode: &Inode) -> Result<()> {
    inode::put(store, inode)
}

/// Puts a block of a file in, which begins at `offset` in it.
pub fn block(store: &mut dyn StoreTxn, block: &Block, offset: u64) -> Result<()> {
    block::put(store, block)?;
    block::put_position(store, block.file, block.index, Position { offset, id: block.id })
}

/// Puts an extended attribute in.
pub fn attribute(
    store: &mut dyn StoreTxn,
    of: InodeId,
    (space, name): (XAttrSpace, &str),
    value: &[u8],
) -> Result<()> {
    let name = XAttrName { space, name: name.to_string() };
    Ok(store.put(Table::XAttr, &xattr::key(of, &name), value)?)
}

/// The holder of a lease has a file open, and was heard of now.
pub fn open_file(store: &mut dyn StoreTxn, holder: &str, file: InodeId) -> Result<()> {
    lease::add(store, holder, file, 0)
}

/// Snapshots of a directory may be taken; there are none.
pub fn allow_snapshots(store: &mut dyn StoreTxn, directory: InodeId) -> Result<()> {
    snapshot::put_root(store, directory, &Root::default())
}

/// A directory that has the attribute of an encryption zone's root is one. Fails if the attribute says nothing.
pub fn encryption_zone(store: &mut dyn StoreTxn, directory: InodeId) -> Result<()> {
    encryption::mark(store, directory)?;
    encryption::zone(store, directory).map(|_| ())
}

/// Puts a pool of cache directives in.
pub fn cache_pool(store: &mut dyn StoreTxn, pool: &CachePool) -> Result<()> {
    cache::put_pool(store, pool)
}

/// Puts a cache directive in.
pub fn cache_directive(store: &mut dyn StoreTxn, directive: &CacheDirective) -> Result<()> {
    cache::put_directive(store, directive)
}

/// Counts what is below a directory that has a quota, once all is in.
pub fn count_quota(store: &mut dyn StoreTxn, directory: InodeId) -> Result<()> {
    let mut inode = inode::expect(store, directory)?;
    let above = policy_above(store, &inode)?;
    let used = usage::below(store, &inode, above)?;
    if let Some(quota) = inode.directory_mut().and_then(|of| of.quota.as_mut()) {
        quota.names = used.names.max(0) as u64;
        quota.space = used.space.max(0) as u64;
        quota.types = usage::added(usage::ByType::default(), used.types);
        counter::add(store, Counter::QuotasSet, 1)?;
    }
    inode::put(store, &inode)
}

/// Directories above each other that are looked at; Hadoop's paths have at most a thousand names.
const DEPTH_MAX: usize = 10_000;

/// The storage policy that is set nearest above an inode; 0 for none.
fn policy_above(store: &dyn StoreRead, inode: &Inode) -> Result<u8> {
    let mut at = inode.parent;
    for _ in 0..DEPTH_MAX {
        match inode::get(store, at)? {
            Some(above) if above.storage_policy == 0 => at = above.parent,
            Some(above) => return Ok(above.storage_policy),
            None => break,
        }
    }
    Ok(0)
}

/// Ends with the numbers.
pub fn end(store: &mut dyn StoreTxn, numbers: &Numbers) -> Result<()> {
    for (counter, value) in [
        (Counter::InodeId, numbers.inode.0),
        (Counter::BlockId, numbers.block.0 as u64),
        (Counter::GroupId, numbers.group.0 as u64),
        (Counter::GenerationStamp, numbers.stamp.0),
        (Counter::Inodes, numbers.inodes),
        (Counter::Blocks, numbers.blocks),
        (Counter::CacheDirective, numbers.cache_directive),
        (Counter::SnapshotId, numbers.snapshot),
    ] {
        counter::set(store, counter, value)?;
    }
    Ok(())
}
