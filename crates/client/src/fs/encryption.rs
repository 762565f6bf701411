//! Encryption zones: what an administrator makes and asks of them.

use super::FileSystem;
use crate::error::{ClientError, Result};
use crate::protocol::encryption;
use crate::types::*;
use cairn_wire::proto::hdfs::*;

/// The directory of a zone where what is thrown away goes (`FileSystem.TRASH_PREFIX`).
pub(super) const TRASH: &str = ".Trash";
/// Who may write there: everybody, each below a directory of his own.
pub(super) const TRASH_PERMISSION: u16 = 0o1777;

impl FileSystem {
    /// Has all files that will be made in an empty directory encrypted, with keys that the key
    /// servers encrypt with `key`.
    pub async fn create_encryption_zone(&self, path: &str, key: &str) -> Result<()> {
        let request = CreateEncryptionZoneRequestProto {
            src: path.to_string(),
            key_name: Some(key.to_string()),
        };
        let _: CreateEncryptionZoneResponseProto =
            self.session.namenode.call("createEncryptionZone", &request).await?;
        Ok(())
    }

    /// The zone that a path is in, or the root of; `None` outside of zones.
    pub async fn encryption_zone_of(&self, path: &str) -> Result<Option<EncryptionZone>> {
        let request = GetEZForPathRequestProto { src: path.to_string() };
        let response: GetEZForPathResponseProto =
            self.session.namenode.call("getEZForPath", &request).await?;
        Ok(response.zone.map(encryption::zone))
    }

    /// All zones, in the order of their numbers. Asks for page after page.
    pub async fn encryption_zones(&self) -> Result<Vec<EncryptionZone>> {
        let mut zones: Vec<EncryptionZone> = Vec::new();
        loop {
            let request = ListEncryptionZonesRequestProto { id: after(zones.last().map(|z| z.id)) };
            let response: ListEncryptionZonesResponseProto =
                self.session.namenode.call("listEncryptionZones", &request).await?;
            let more = response.has_more && !response.zones.is_empty();
            zones.extend(response.zones.into_iter().map(encryption::zone));
            if !more {
                return Ok(zones);
            }
        }
    }

    /// Makes the directory in a zone where what is thrown away there goes, for it cannot leave the
    /// zone. `path` is the root of a zone.
    ///
    /// Source: Hadoop 3.5.0 `DistributedFileSystem#provisionEZTrash`.
    pub async fn provision_trash(&self, path: &str) -> Result<()> {
        let zone = self.encryption_zone_of(path).await?;
        let is_it = |zone: EncryptionZone| same(&zone.path, path);
        if !zone.is_some_and(is_it) {
            let reason = "it is not the root of an encryption zone";
            return Err(ClientError::InvalidPath { path: path.to_string(), reason });
        }
        let trash = format!("{}/{TRASH}", path.trim_end_matches('/'));
        if self.file_info(&trash).await?.is_some() {
            return Err(ClientError::InvalidPath { path: trash, reason: "it exists already" });
        }
        self.mkdir(&trash, TRASH_PERMISSION).await?;
        // The umask took some of it.
        self.set_permission(&trash, TRASH_PERMISSION).await
    }

    /// Has the keys of all files of a zone encrypted with the current version of the zone's key, or
    /// stops that. `path` is the root of the zone.
    pub async fn reencrypt_zone(&self, path: &str, what: Reencryption) -> Result<()> {
        let action = match what {
            Reencryption::Start => ReencryptActionProto::StartReencrypt,
            Reencryption::Cancel => ReencryptActionProto::CancelReencrypt,
        };
        let request =
            ReencryptEncryptionZoneRequestProto { action: action as i32, zone: path.to_string() };
        let _: ReencryptEncryptionZoneResponseProto =
            self.session.namenode.call("reencryptEncryptionZone", &request).await?;
        Ok(())
    }

    /// How far that is, of all zones of which it was ever asked for. Asks for page after page.
    pub async fn reencryption_statuses(&self) -> Result<Vec<ReencryptionStatus>> {
        let mut statuses: Vec<ReencryptionStatus> = Vec::new();
        loop {
            let request =
                ListReencryptionStatusRequestProto { id: after(statuses.last().map(|s| s.id)) };
            let response: ListReencryptionStatusResponseProto =
                self.session.namenode.call("listReencryptionStatus", &request).await?;
            let more = response.has_more && !response.statuses.is_empty();
            statuses.extend(response.statuses.into_iter().map(encryption::reencryption));
            if !more {
                return Ok(statuses);
            }
        }
    }
}

/// Whether two paths differ only in slashes at their ends.
fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Behind which number the next page begins.
fn after(last: Option<i64>) -> i64 {
    last.unwrap_or(0)
}
