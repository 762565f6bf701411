//! The operations on the tree, one to a file.
//!
//! A file holds the command, its encoding, what it checks and what it changes. Changes go to an overlay
//! that is dropped when the operation fails.

pub mod abandon_block;
pub mod acl;
pub mod add_block;
pub mod adopt;
pub mod adopt_container;
pub mod adopt_packed;
pub mod append;
pub mod cache_directive;
pub mod cache_pool;
pub mod commit_block_synchronization;
pub mod complete;
pub mod complete_blocks;
pub mod concat;
pub mod configure;
pub mod convert;
pub mod create;
pub mod delete;
pub mod ec;
pub mod encryption;
pub mod fsync;
pub mod group;
pub mod holds;
pub mod lease;
pub mod mkdirs;
pub mod orders;
pub mod pack;
pub mod pipeline;
pub mod rename;
pub mod repack;
pub mod satisfy_storage_policy;
pub mod set_owner;
pub mod set_permission;
pub mod set_quota;
pub mod set_replication;
pub mod set_storage_policy;
pub mod set_times;
pub mod snapshot;
pub mod swap_blocks;
pub mod token;
pub mod truncate;
pub mod unit_crcs;
pub mod unpack;
pub mod watch_events;
pub mod xattr;

use crate::block::{self, Block, BlockRef, BlockState};
use crate::caller::Caller;
use crate::clock::Times;
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::inode::{File, Inode, InodeId};
use crate::outcome::Outcome;
use crate::path::{self, Purpose, Resolved};
use crate::settings::Settings;
use crate::snapshot::kept;
use crate::store::{Overlay, StoreRead};
use crate::{inode, policy_admin, settings, usage};
use cairn_stripe::Redundancy;

/// What an operation works with.
pub(crate) struct Context<'a, 'b> {
    /// The state and the changes so far.
    pub store: &'a mut Overlay<'b>,
    /// When its turn came.
    pub times: Times,
    /// Who sent it.
    pub caller: &'a Caller,
    /// Limits in force.
    pub settings: &'a Settings,
    /// Files of whose blocks another number of copies may be wanted when the command is done.
    pub other_copies: &'a mut Vec<InodeId>,
    /// The command's name; one that stands for several of Hadoop's methods sets it to the one that was called.
    pub command: &'static str,
}

impl Context<'_, '_> {
    /// Follows a path on behalf of the caller, who means to change something there.
    ///
    /// Source: Hadoop 3.5.0 `FSDirectory#checkTraverse`.
    pub fn resolve(&self, path: &str, purpose: Purpose) -> Result<Resolved> {
        let (store, settings, caller) = (&*self.store, self.settings, self.caller);
        path::resolve_to_change(store, settings, caller, path, purpose, self.command)
    }
}

/// The way to a file that `holder` has open, by its id or, from old clients, by its path, for a command of a caller.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#checkLease`.
pub(crate) fn open_file(
    store: &dyn StoreRead,
    (caller, command): (&Caller, &str),
    path: &str,
    file: Option<InodeId>,
    holder: &str,
) -> Result<Resolved> {
    let at = match file {
        Some(id) => path::of_inode(store, id)?,
        None => {
            let settings = settings::get(store)?;
            let purpose = Purpose::Use;
            Some(path::resolve_to_change(store, &settings, caller, path, purpose, command)?)
        }
    };
    let refused = |what: &str, path: &str, id: InodeId| -> Result<String> {
        // As Java shows an id.
        let id = id.0 as i64;
        Ok(format!("{what}: {path} (inode {id}) {}", crate::lease::describe(store, holder)?))
    };
    let missing = "File does not exist";
    let given = file.unwrap_or(InodeId::NONE);
    let Some(at) = at else {
        if let Some(path) = kept::open_when_kept(store, given)? {
            return Err(NamespaceError::FileNotFound(refused("File is deleted", &path, given)?));
        }
        let path = path::join(&path::split(path)?);
        return Err(NamespaceError::FileNotFound(refused(missing, &path, given)?));
    };
    let Some(target) = at.target() else {
        return Err(NamespaceError::FileNotFound(refused(missing, &at.path, given)?));
    };
    let what = match target.file().map(|file| &file.writer) {
        None => "INode is not a regular file".to_string(),
        Some(None) => "File is not open for writing".to_string(),
        Some(Some(writer)) if writer.holder != holder => {
            format!("Client (={holder}) is not the lease owner (={}", writer.holder)
        }
        Some(Some(_)) => return Ok(at),
    };
    Err(NamespaceError::LeaseExpired(refused(&what, &at.path, target.id)?))
}

/// The most bytes that a block of a file may have.
pub(crate) fn whole_block_len(store: &dyn StoreRead, file: &File) -> Result<u64> {
    Ok(match policy_admin::redundancy(store, file.redundancy)? {
        Redundancy::Replicated(_) => file.block_size,
        Redundancy::Striped(policy) => file.block_size.saturating_mul(u64::from(policy.schema.k)),
    })
}

/// Refuses one more inode or block where there are as many as there may be.
///
/// Source: Hadoop 3.5.0 `FSNamesystem#checkFsObjectLimit`.
pub(crate) fn check_object_limit(store: &dyn StoreRead, settings: &Settings) -> Result<()> {
    let max = settings.objects_max;
    if max == 0 {
        return Ok(());
    }
    let there = counter::get(store, Counter::Inodes)? + counter::get(store, Counter::Blocks)?;
    if there < max {
        return Ok(());
    }
    Err(NamespaceError::Io(format!(
        "Exceeded the configured number of objects {max} in the filesystem."
    )))
}

/// What of the bytes that a client says a block has may be true: they count in quotas before any DataNode has them.
///
/// Deviation: Hadoop takes any number, and counts an open block as a whole one.
pub(crate) fn credible_len(
    cx: &Context<'_, '_>,
    inode: &Inode,
    block: &Block,
    told: u64,
) -> Result<u64> {
    let Some(file) = inode.file().filter(|_| cx.settings.rules >= 3) else { return Ok(told) };
    Ok(told.min(whole_block_len(cx.store, file)?.max(block.len)))
}

/// Makes the length that the client gives the last block's final one. Writes `inode`.
///
/// Source: Hadoop 3.5.0 `BlockManager#commitOrCompleteLastBlock`, `#commitBlock`.
pub(crate) fn commit_last(
    cx: &mut Context<'_, '_>,
    at: &Resolved,
    inode: &mut Inode,
    commit: BlockRef,
    crcs: &[Option<u32>],
    complete: bool,
) -> Result<()> {
    let Some(mut block) = block::last(cx.store, inode)? else { return Ok(()) };
    if block.state == BlockState::Complete {
        return Ok(());
    }
    let name = |id, gs| format!("{id}_{gs}");
    if block.recovery().is_some() {
        return Err(NamespaceError::Io(format!(
            "Commit or complete block {}, whereas it is under recovery.",
            name(commit.id, commit.gs)
        )));
    }
    if block.id != commit.id.group() || block.gs != commit.gs {
        return Err(NamespaceError::Io(format!(
            "Commit block with mismatching GS. NN has {}, client submits {}",
            name(block.id, block.gs),
            name(commit.id, commit.gs)
        )));
    }
    if commit.len < block.len {
        return Err(NamespaceError::Io(format!(
            "Commit block {} with {} bytes, less than the {} that it has",
            name(block.id, block.gs),
            commit.len,
            block.len
        )));
    }
    let most = credible_len(cx, inode, &block, commit.len)?;
    if commit.len > most {
        return Err(NamespaceError::Io(format!(
            "Commit block {} with {} bytes, more than the {most} that it may have",
            name(block.id, block.gs),
            commit.len
        )));
    }
    block.state = if complete { BlockState::Complete } else { BlockState::Committed };
    merge_crcs(&mut block.unit_crcs, crcs);
    let above = &at.chain[..at.chain.len() - 1];
    usage::set_last_len(cx.store, above, inode, &mut block, commit.len)
}

/// Keeps what is known and adds what is new.
pub(crate) fn merge_crcs(known: &mut Vec<Option<u32>>, new: &[Option<u32>]) {
    let count = new.len().min(cairn_stripe::id::MAX_UNITS_PER_GROUP);
    if known.len() < count {
        known.resize(count, None);
    }
    for (known, new) in known.iter_mut().zip(new) {
        *known = known.or(*new);
    }
}

/// The file at a path, or Hadoop's complaint.
///
/// Source: Hadoop 3.5.0 `INodeFile#valueOf`.
pub(crate) fn existing_file(at: &Resolved) -> Result<&Inode> {
    match at.existing()? {
        inode if inode.is_directory() => {
            Err(NamespaceError::FileNotFound(format!("Path is not a file: {}", at.path)))
        }
        inode => Ok(inode),
    }
}

/// Writes an inode that an operation has changed.
pub(crate) fn save(cx: &mut Context<'_, '_>, inode: &Inode) -> Result<Outcome> {
    inode::put(cx.store, inode)?;
    Ok(Outcome::Done)
}
