//! Making encryption zones, and encrypting the keys of their files anew.

use crate::encoding::encode_struct;
use crate::encryption::{self, FileKey, PROTOCOL_VERSION, Reencryption, Zone};
use crate::error::{NamespaceError, Result};
use crate::inode::InodeId;
use crate::ops::{Context, xattr};
use crate::outcome::Outcome;
use crate::path::{self, Purpose};
use prost::Message;

/// Makes an empty directory the root of an encryption zone.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#createEncryptionZone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateEncryptionZone {
    /// Which directory.
    pub path: String,
    /// The name of the zone's key.
    pub key_name: String,
    /// Hadoop's number of the cipher suite of the key.
    pub suite: u32,
}

encode_struct!(CreateEncryptionZone { path, key_name, suite });

impl CreateEncryptionZone {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        let root = xattr::existing(&at)?;
        let refuse = |text: String| Err(NamespaceError::Io(text));
        let Some(directory) = root.directory() else {
            return refuse("Attempt to create an encryption zone for a file.".to_string());
        };
        if directory.is_zone {
            return refuse(format!("Directory {} is already an encryption zone.", at.path));
        }
        if directory.children > 0 {
            return refuse(
                "Attempt to create an encryption zone for a non-empty directory.".to_string(),
            );
        }
        let zone = Zone {
            suite: self.suite as i32,
            protocol_version: PROTOCOL_VERSION,
            key_name: self.key_name.clone(),
            reencryption: None,
        };
        let (name, value) = (encryption::zone_attribute(), zone.encode_to_vec());
        xattr::set(cx, root, &name, &value, (true, false))?;
        Ok(Outcome::Done)
    }
}

/// Has the keys of a zone's files encrypted by another version of the zone's key, or ends that.
///
/// Answer: `Outcome::Done`.
///
/// Source: Hadoop 3.5.0 `EncryptionZoneManager#reencryptEncryptionZone`, `#cancelReencryptEncryptionZone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReencryptEncryptionZone {
    /// The zone's root.
    pub path: String,
    /// The version of the key to come to; none ends what is under way.
    pub key_version: Option<String>,
}

encode_struct!(ReencryptEncryptionZone { path, key_version });

impl ReencryptEncryptionZone {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let at = cx.resolve(&self.path, Purpose::Use)?;
        let Some(inode) = at.target() else {
            return Err(NamespaceError::FileNotFound(format!("{} does not exist.", self.path)));
        };
        encryption::check_root(inode, &at.path)?;
        let mut zone = encryption::zone(cx.store, inode.id)?;
        let running = zone.reencryption.take().filter(Reencryption::is_running);
        zone.reencryption = Some(match (&self.key_version, running) {
            (Some(_), Some(_)) => {
                let text = format!("Zone {} is already submitted for re-encryption.", at.path);
                return Err(NamespaceError::Io(text));
            }
            (Some(version), None) => Reencryption {
                key_version: version.clone(),
                submitted_ms: cx.times.wall_ms,
                ..Reencryption::default()
            },
            (None, Some(running)) => Reencryption {
                cancelled: true,
                completed_ms: Some(cx.times.wall_ms),
                last_file: None,
                ..running
            },
            (None, None) => {
                let text = format!("Zone {} is not under re-encryption", at.path);
                return Err(NamespaceError::Io(text));
            }
        });
        encryption::put_zone(cx.store, inode.id, &zone)?;
        Ok(Outcome::Done)
    }
}

/// Brings a re-encryption on: gives files their keys as the new version encrypts them. A file that is gone or has
/// another key by now stays as it is.
///
/// Answer: `Outcome::Flag`: whether the re-encryption is still to be carried on.
///
/// Source: Hadoop 3.5.0 `ReencryptionUpdater#processTaskEntries`, `#processCheckpoints`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvanceReencryption {
    /// The zone's root.
    pub zone: InodeId,
    /// When the re-encryption was asked for: a later one is not meant.
    pub submitted_ms: u64,
    /// Files, their keys as they were and as they are to be.
    pub files: Vec<RenewedKey>,
    /// Files for which there is no new one.
    pub failed: u64,
    /// Whether these were the last files.
    pub is_last: bool,
}

/// The key of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewedKey {
    /// The file.
    pub file: InodeId,
    /// As it was.
    pub old: FileKey,
    /// As it is to be.
    pub new: FileKey,
}

encode_struct!(AdvanceReencryption { zone, submitted_ms, files, failed, is_last });
encode_struct!(RenewedKey { file, old, new });

impl AdvanceReencryption {
    pub(crate) fn apply(&self, cx: &mut Context<'_, '_>) -> Result<Outcome> {
        let Some(at) = path::of_inode(cx.store, self.zone)? else {
            return Ok(Outcome::Flag(false));
        };
        let is_zone = at.target().is_some_and(|root| encryption::check_root(root, "").is_ok());
        if !is_zone {
            return Ok(Outcome::Flag(false));
        }
        let mut zone = encryption::zone(cx.store, self.zone)?;
        let is_meant =
            |it: &&mut Reencryption| it.is_running() && it.submitted_ms == self.submitted_ms;
        let Some(progress) = zone.reencryption.as_mut().filter(is_meant) else {
            return Ok(Outcome::Flag(false));
        };
        for renewed in &self.files {
            if encryption::file_key(cx.store, renewed.file)?.as_ref() != Some(&renewed.old) {
                continue;
            }
            let Some(at) = path::of_inode(cx.store, renewed.file)? else { continue };
            encryption::put_file_key(cx.store, renewed.file, &renewed.new)?;
            progress.done += 1;
            progress.last_file = Some(at.path);
        }
        progress.failed = progress.failed.saturating_add_unsigned(self.failed);
        if self.is_last {
            progress.completed_ms = Some(cx.times.wall_ms);
            progress.last_file = None;
        }
        encryption::put_zone(cx.store, self.zone, &zone)?;
        Ok(Outcome::Flag(!self.is_last))
    }
}
