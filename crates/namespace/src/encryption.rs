//! Encryption zones: directories below which every file is encrypted by its writers.
//!
//! A zone and the key of each file are extended attributes in the space `raw`, with the bytes that Hadoop gives them:
//! tools that copy files as they are stored copy these too. A zone's root is marked in its record, so that nobody looks
//! for attributes where there is no zone, and is in [`Table::EncryptionZone`], so that zones are found.
//!
//! Source: Hadoop 3.5.0 `EncryptionZoneManager`, `FSDirEncryptionZoneOp`.

mod attributes;
mod walk;

use crate::caller::Caller;
use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, Inode, InodeId};
use crate::path::{self, Purpose, Resolved};
use crate::perm::{self, Access};
use crate::settings;
use crate::snapshot::DOT_SNAPSHOT;
use crate::store::{StoreRead, Table};
use std::ops::ControlFlow;
use std::sync::Arc;

pub use attributes::{FileKey, PROTOCOL_VERSION, Reencryption, Zone};
pub(crate) use attributes::{
    file_key, mark, parse_zone, put_file_key, put_zone, zone, zone_attribute,
};
pub use walk::Walk;

/// What a client needs to read or write an encrypted file (`FileEncryptionInfoProto`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEncryption {
    /// Hadoop's number of the cipher suite.
    pub suite: i32,
    /// Hadoop's number of the version of the protocol.
    pub protocol_version: i32,
    /// The zone's key.
    pub key_name: String,
    /// The file's key.
    pub key: FileKey,
}

encode_struct!(FileEncryption { suite, protocol_version, key_name, key });

/// Whether a file or directory is in a zone, and what its bytes are encrypted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// In no zone.
    #[default]
    None,
    /// In a zone: a directory, a file without a key, or one that is seen as it is stored.
    Inside,
    /// An encrypted file.
    File(Box<FileEncryption>),
}

impl Encryption {
    /// Whether it is in a zone.
    pub fn is_inside(&self) -> bool {
        *self != Encryption::None
    }

    /// What its bytes are encrypted with.
    pub fn file(&self) -> Option<&FileEncryption> {
        match self {
            Encryption::File(file) => Some(file),
            Encryption::None | Encryption::Inside => None,
        }
    }

    /// Of the last of a chain from the root, which may be seen `raw`.
    pub(crate) fn of(store: &dyn StoreRead, chain: &[Arc<Inode>], raw: bool) -> Result<Encryption> {
        let below = Below::read(store, chain, raw)?;
        match chain.last() {
            Some(inode) if !inode.is_directory() => below.of_file(store, inode.id),
            _ => Ok(below.of_directory(false)),
        }
    }
}

/// What is known of everything in a directory.
pub(crate) struct Below {
    zone: Option<Zone>,
    raw: bool,
}

impl Below {
    /// Of the last directory of a chain from the root.
    pub(crate) fn read(store: &dyn StoreRead, chain: &[Arc<Inode>], raw: bool) -> Result<Below> {
        let zone = root_above(chain).map(|root| zone(store, root)).transpose()?;
        Ok(Below { zone, raw })
    }

    /// Of a directory in it, which may be the root of another zone.
    pub(crate) fn of_directory(&self, is_zone: bool) -> Encryption {
        match self.zone.is_some() || is_zone {
            true => Encryption::Inside,
            false => Encryption::None,
        }
    }

    /// Of a file in it.
    pub(crate) fn of_file(&self, store: &dyn StoreRead, file: InodeId) -> Result<Encryption> {
        let Some(zone) = &self.zone else { return Ok(Encryption::None) };
        if self.raw {
            return Ok(Encryption::Inside);
        }
        Ok(file_key(store, file)?.map_or(Encryption::Inside, |key| {
            Encryption::File(Box::new(FileEncryption {
                suite: zone.suite,
                protocol_version: zone.protocol_version,
                key_name: zone.key_name.clone(),
                key,
            }))
        }))
    }
}

/// The root of the innermost zone that a chain from the root leads into.
pub(crate) fn root_above(chain: &[Arc<Inode>]) -> Option<InodeId> {
    let is_zone = |inode: &&Arc<Inode>| inode.directory().is_some_and(|it| it.is_zone);
    chain.iter().rev().find(is_zone).map(|inode| inode.id)
}

/// A zone and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedZone {
    /// Its root.
    pub root: InodeId,
    /// The root's path.
    pub path: String,
    /// How its files are encrypted.
    pub zone: Zone,
}

/// The zone that a path is in, whether anything is there or not.
///
/// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#getEZForPath`.
pub fn zone_of_path(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<Option<PlacedZone>> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    perm::check_access(&settings, caller, &at, Access::READ)?;
    zone_at(store, &at)
}

/// As [`zone_of_path`], for a file that the caller is about to make and has the right to.
pub fn zone_of_new_file(
    store: &dyn StoreRead,
    caller: &Caller,
    path: &str,
) -> Result<Option<PlacedZone>> {
    let settings = settings::get(store)?;
    zone_at(store, &path::resolve(store, &settings, caller, path, Purpose::Create)?)
}

fn zone_at(store: &dyn StoreRead, at: &Resolved) -> Result<Option<PlacedZone>> {
    let Some(root) = root_above(&at.chain) else { return Ok(None) };
    let zone = zone(&at.view(store), root)?;
    // Where it is now, or was, also if the path leads through a snapshot.
    let path = match inode::path_of(store, root)? {
        Some(path) => path,
        None => {
            let mut names = at.names.clone();
            names.truncate(at.chain.iter().rposition(|inode| inode.id == root).unwrap_or_default());
            if let Some(place) = names.iter().position(|name| name == DOT_SNAPSHOT) {
                names.drain(place..names.len().min(place + 2));
            }
            path::join(&names)
        }
    };
    Ok(Some(PlacedZone { root, path, zone }))
}

/// The name of the key of the zone with this root, or why it is none.
///
/// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#getKeyNameForZone`.
pub fn key_of_zone(store: &dyn StoreRead, caller: &Caller, path: &str) -> Result<String> {
    let settings = settings::get(store)?;
    let at = path::resolve(store, &settings, caller, path, Purpose::Use)?;
    let Some(inode) = at.target() else {
        return Err(NamespaceError::FileNotFound(format!("INode does not exist for {path}")));
    };
    check_root(inode, path)?;
    Ok(zone(&at.view(store), inode.id)?.key_name)
}

/// Fails unless an inode is the root of a zone.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#checkEncryptionZoneRoot`.
pub(crate) fn check_root(inode: &Inode, path: &str) -> Result<()> {
    match inode.directory().is_some_and(|directory| directory.is_zone) {
        true => Ok(()),
        false => {
            Err(NamespaceError::Io(format!("Path {path} is not the root of an encryption zone.")))
        }
    }
}

/// At most `limit` zones whose roots follow `after`, in the order of their roots' ids, and whether there are more.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#listEncryptionZones`.
pub fn zones(
    store: &dyn StoreRead,
    after: InodeId,
    limit: usize,
) -> Result<(Vec<PlacedZone>, bool)> {
    list(store, after, limit, |_| true)
}

/// As [`zones`], of those that were encrypted anew.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#listReencryptionStatus`.
pub fn reencrypted_zones(
    store: &dyn StoreRead,
    after: InodeId,
    limit: usize,
) -> Result<(Vec<PlacedZone>, bool)> {
    list(store, after, limit, |zone| zone.reencryption.is_some())
}

fn list(
    store: &dyn StoreRead,
    after: InodeId,
    limit: usize,
    is_wanted: impl Fn(&Zone) -> bool,
) -> Result<(Vec<PlacedZone>, bool)> {
    let mut roots = Vec::new();
    let from = InodeId(after.0.saturating_add(1)).key();
    store.scan(Table::EncryptionZone, &from, &[], &mut |key, _| {
        roots.extend(key.try_into().map(|key| InodeId(u64::from_be_bytes(key))));
        ControlFlow::Continue(())
    })?;
    let mut found = Vec::new();
    for root in roots {
        // Deleted ones are there until their records are.
        let Some(path) = inode::path_of(store, root)? else { continue };
        let zone = zone(store, root)?;
        if !is_wanted(&zone) {
            continue;
        }
        if found.len() == limit {
            return Ok((found, true));
        }
        found.push(PlacedZone { root, path, zone });
    }
    Ok((found, false))
}

/// Fails if a rename would carry something over the border of a zone, or in one that is encrypted anew.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#checkMoveValidity`.
pub(crate) fn check_move(store: &dyn StoreRead, from: &Resolved, to: &Resolved) -> Result<()> {
    let zone_above = |at: &Resolved| root_above(&at.chain[..at.chain.len().min(at.names.len())]);
    let refuse =
        |text: &str| Err(NamespaceError::Io(format!("{} can't be moved {text}", from.path)));
    let (old, new) = match (zone_above(from), zone_above(to)) {
        (None, None) => return Ok(()),
        (Some(_), None) => return refuse("from an encryption zone."),
        (None, Some(_)) => return refuse("into an encryption zone."),
        (Some(old), Some(new)) => (old, new),
    };
    let path = |root| Ok::<_, NamespaceError>(inode::path_of(store, root)?.unwrap_or_default());
    if old != new {
        let (old, new) = (path(old)?, path(new)?);
        return refuse(&format!("from encryption zone {old} to encryption zone {new}."));
    }
    match zone(store, old)?.reencryption.is_some_and(|it| it.is_running()) {
        true => refuse(&format!(
            "because encryption zone {} is currently under re-encryption",
            path(old)?
        )),
        false => Ok(()),
    }
}
