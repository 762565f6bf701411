//! What another NameNode has done since its records were put in, step by step.
//!
//! It has decided all of it: numbers, stamps and lengths come from outside, and nothing is asked that was asked there, as
//! rights and limits. Snapshots go on seeing what was there before. Quotas are counted when all is done
//! ([`recount`]): on the way they may count too little, never too much.
//!
//! Source: Hadoop 3.5.0 `FSEditLogLoader#applyEditLogOp`.

mod blocks;
mod carried;

use crate::acl::{self, AclEntry};
use crate::counter::{self, Counter};
use crate::error::{NamespaceError, Result};
use crate::import::{change, count_held, count_quota};
use crate::inode::{self, Directory, File, FileRedundancy, Inode, InodeId, Kind, Writer};
use crate::ops::delete::Purge;
use crate::outcome::Outcome;
use crate::path::{self, Resolved};
use crate::store::{StoreRead, StoreTxn, Table};
use crate::xattr::{self, XAttrName, XAttrSpace};
use crate::{cache, encryption, lease, tree};
use cairn_stripe::{BlockId, PolicyId};
use carried::{change_at, raise};
use std::ops::ControlFlow;

pub use blocks::{Truncated, add_block, close, reassign, reopen, set_blocks, truncate};
pub use carried::{command, stamp_given};

/// What is removed at a time of what was deleted.
const PURGED_AT_ONCE: u64 = 100_000;

/// A file or directory that is made.
#[derive(Clone, Debug)]
pub struct New {
    /// Where.
    pub path: String,
    /// Its number.
    pub id: InodeId,
    /// Its owner.
    pub owner: String,
    /// Its group.
    pub group: String,
    /// Its mode.
    pub mode: u16,
    /// All entries of its access control list; none for no list.
    pub acl: Vec<AclEntry>,
    /// Its extended attributes.
    pub attributes: Vec<Attribute>,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
}

/// What is particular to a file that is made.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// How its blocks are kept.
    pub redundancy: FileRedundancy,
    /// Bytes of a full block.
    pub block_size: u64,
    /// The number of its own storage policy; 0 for none.
    pub storage_policy: u8,
    /// When it was read.
    pub accessed_ms: u64,
    /// Who writes it.
    pub writer: Writer,
}

/// An extended attribute and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// One that is kept as it is.
    Plain {
        /// Its space.
        space: XAttrSpace,
        /// Its name.
        name: String,
        /// Its value; none to remove it.
        value: Option<Vec<u8>>,
    },
    /// The policy of a directory; none to remove it.
    Policy(Option<PolicyId>),
}

/// Whether there is anything at a path.
pub fn is_there(store: &dyn StoreRead, path: &str) -> Result<bool> {
    Ok(path::follow(store, path)?.target().is_some())
}

/// Whether a file at a path is open; none if there is none.
pub fn is_open(store: &dyn StoreRead, path: &str) -> Result<Option<bool>> {
    let at = path::follow(store, path)?;
    Ok(at.target().and_then(Inode::file).map(|file| file.writer.is_some()))
}

/// Makes a directory, whose parent is there.
pub fn make_directory(store: &mut dyn StoreTxn, new: &New) -> Result<()> {
    make(store, new, 0, (0, Kind::Directory(Directory::default())))
}

/// Makes a file, whose parent is there, and opens it.
pub fn make_file(store: &mut dyn StoreTxn, new: &New, file: &NewFile) -> Result<()> {
    let kind = Kind::File(File {
        redundancy: file.redundancy,
        block_size: file.block_size,
        block_count: 0,
        len: 0,
        writer: Some(file.writer.clone()),
        short_appends: 0,
    });
    make(store, new, file.storage_policy, (file.accessed_ms, kind))
}

fn make(
    store: &mut dyn StoreTxn,
    new: &New,
    storage_policy: u8,
    (atime, kind): (u64, Kind),
) -> Result<()> {
    change(store, &mut |store| {
        let at = path::follow(store, &new.path)?;
        let parent = free_place(&at)?;
        let mut inode = Inode {
            id: new.id,
            parent,
            name: at.name().to_string(),
            owner: new.owner.clone(),
            group: new.group.clone(),
            mode: new.mode,
            acl: Vec::new(),
            mtime: new.time_ms,
            atime,
            storage_policy,
            kind: kind.clone(),
        };
        if inode::get(store, new.id)?.is_some() {
            return Err(NamespaceError::Io(format!("there is an inode {} already", new.id)));
        }
        if !new.acl.is_empty() {
            acl::replace(&mut inode, &new.acl, &new.path)?;
        }
        for attribute in &new.attributes {
            set_attribute(store, &mut inode, attribute)?;
        }
        tree::attach(store, &inode, new.time_ms)?;
        if let Some(writer) = inode.file().and_then(|file| file.writer.as_ref()) {
            lease::add(store, &writer.holder, inode.id, 0)?;
        }
        counter::add(store, Counter::Inodes, 1)?;
        raise(store, Counter::InodeId, new.id.0)
    })
}

/// The directory in which a path would be the one name that is missing.
fn free_place(at: &Resolved) -> Result<InodeId> {
    let missing = at.names.len() + 1 - at.chain.len();
    match at.parent() {
        Some(parent) if missing == 1 && parent.is_directory() => Ok(parent.id),
        _ if missing == 0 => {
            Err(NamespaceError::FileAlreadyExists(format!("{} already exists", at.path)))
        }
        _ => Err(NamespaceError::FileNotFound(format!("the parent of {} is missing", at.path))),
    }
}

/// Gives what is at a path this access control list, or none.
pub fn set_acl(store: &mut dyn StoreTxn, path: &str, entries: &[AclEntry]) -> Result<()> {
    change_at(store, path, &mut |_, inode| match entries {
        [] => {
            acl::remove(inode);
            Ok(())
        }
        _ => acl::replace(inode, entries, path),
    })
}

/// Sets or removes extended attributes.
pub fn set_attributes(
    store: &mut dyn StoreTxn,
    path: &str,
    attributes: &[Attribute],
) -> Result<()> {
    change_at(store, path, &mut |store, inode| {
        attributes.iter().try_for_each(|attribute| set_attribute(store, inode, attribute))
    })
}

fn set_attribute(store: &mut dyn StoreTxn, inode: &mut Inode, attribute: &Attribute) -> Result<()> {
    match attribute {
        Attribute::Policy(policy) => {
            let directory = inode.directory_mut();
            let directory = directory.ok_or_else(|| {
                NamespaceError::Io("a file has the attribute of a directory's policy".into())
            })?;
            directory.policy = *policy;
        }
        Attribute::Plain { space, name, value } => {
            let name = XAttrName { space: *space, name: name.clone() };
            let key = xattr::key(inode.id, &name);
            match value {
                Some(value) => store.put(Table::XAttr, &key, value)?,
                None => store.delete(Table::XAttr, &key)?,
            }
            if name == encryption::zone_attribute()
                && let Some(directory) = inode.directory_mut()
            {
                encryption::parse_zone(value.as_deref().unwrap_or_default())?;
                directory.is_zone = true;
                store.put(Table::EncryptionZone, &inode.id.key(), &[])?;
            }
        }
    }
    Ok(())
}

/// Gives what is at a path a storage policy by its number, or none by 0.
pub fn set_storage_policy(store: &mut dyn StoreTxn, path: &str, policy: u8) -> Result<()> {
    change_at(store, path, &mut |_, inode| {
        inode.storage_policy = policy;
        Ok(())
    })
}

/// The number of a block or a group was given out.
pub fn block_given(store: &mut dyn StoreTxn, id: BlockId) -> Result<()> {
    match id.is_striped() {
        // Numbers of groups are negative, and grow.
        true if (counter::get(store, Counter::GroupId)? as i64) < id.0 => {
            counter::set(store, Counter::GroupId, id.0 as u64)
        }
        true => Ok(()),
        false => raise(store, Counter::BlockId, id.0 as u64),
    }
}

/// Puts in a cache directive that was added, whose number is new.
pub fn add_cache_directive(
    store: &mut dyn StoreTxn,
    directive: &cache::CacheDirective,
) -> Result<()> {
    cache::put_directive(store, directive)?;
    raise(store, Counter::CacheDirective, directive.id)
}

/// Removes a cache directive.
pub fn remove_cache_directive(store: &mut dyn StoreTxn, id: u64) -> Result<()> {
    cache::delete_directive(store, id)
}

/// Removes what was deleted, to the last of it.
pub fn purge(store: &mut dyn StoreTxn) -> Result<()> {
    let purge = Purge { limit: PURGED_AT_ONCE };
    while let Outcome::Removed { more: true, .. } = command(store, 0, purge.clone())? {}
    Ok(())
}

/// Counts quotas anew when all is done.
pub fn recount(store: &mut dyn StoreTxn) -> Result<()> {
    let (mut limited, mut failed) = (Vec::new(), Ok(()));
    store.scan(Table::Inode, &[], &[], &mut |_, record| match inode::from_bytes(record) {
        Ok(inode) => {
            if inode.directory().is_some_and(|directory| directory.quota.is_some()) {
                limited.push(inode.id);
            }
            ControlFlow::Continue(())
        }
        Err(error) => {
            failed = Err(error);
            ControlFlow::Break(())
        }
    })?;
    failed?;
    counter::set(store, Counter::QuotasSet, 0)?;
    for directory in &limited {
        count_quota(store, *directory)?;
    }
    match limited.is_empty() {
        true => Ok(()),
        false => count_held(store),
    }
}
