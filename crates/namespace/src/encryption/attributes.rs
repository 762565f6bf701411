//! Zones and the keys of files as they are recorded: as extended attributes.

use crate::encoding::encode_struct;
use crate::error::{NamespaceError, Result};
use crate::inode::{self, InodeId};
use crate::store::{StoreError, StoreRead, StoreTxn, Table};
use crate::xattr::{self, XAttrName, XAttrSpace};
use prost::Message;

/// The attribute of a zone's root. Source: Hadoop 3.5.0 `HdfsServerConstants#CRYPTO_XATTR_ENCRYPTION_ZONE`.
const ZONE_XATTR: &str = "hdfs.crypto.encryption.zone";
/// The attribute of a file. Source: Hadoop 3.5.0 `HdfsServerConstants#CRYPTO_XATTR_FILE_ENCRYPTION_INFO`.
const FILE_XATTR: &str = "hdfs.crypto.file.encryption.info";

/// The number of Hadoop's only version of the protocol, `ENCRYPTION_ZONES`.
pub const PROTOCOL_VERSION: i32 = 2;

/// Name of [`ZONE_XATTR`] with its space.
pub(crate) fn zone_attribute() -> XAttrName {
    XAttrName { space: XAttrSpace::Raw, name: ZONE_XATTR.to_string() }
}

/// Name of [`FILE_XATTR`] with its space.
pub(crate) fn file_attribute() -> XAttrName {
    XAttrName { space: XAttrSpace::Raw, name: FILE_XATTR.to_string() }
}

/// How the files of a zone are encrypted (`ZoneEncryptionInfoProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Zone {
    /// Hadoop's number of the cipher suite.
    #[prost(int32, required, tag = "1")]
    pub suite: i32,
    /// Hadoop's number of the version of the protocol.
    #[prost(int32, required, tag = "2")]
    pub protocol_version: i32,
    /// The key that encrypts the keys of files.
    #[prost(string, required, tag = "3")]
    pub key_name: String,
    /// Its last re-encryption, if there was any.
    #[prost(message, optional, tag = "4")]
    pub reencryption: Option<Reencryption>,
}

/// How far the keys of a zone's files have got to another version of the zone's key (`ReencryptionInfoProto`).
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Reencryption {
    /// That version.
    #[prost(string, required, tag = "1")]
    pub key_version: String,
    /// When it was asked for, ms since the epoch.
    #[prost(uint64, required, tag = "2")]
    pub submitted_ms: u64,
    /// Whether it was ended before its time.
    #[prost(bool, required, tag = "3")]
    pub cancelled: bool,
    /// Files whose keys were encrypted again.
    #[prost(int64, required, tag = "4")]
    pub done: i64,
    /// Files for which that failed.
    #[prost(int64, required, tag = "5")]
    pub failed: i64,
    /// When it ended, ms since the epoch; none while it runs.
    #[prost(uint64, optional, tag = "6")]
    pub completed_ms: Option<u64>,
    /// The last file that was done, while it runs.
    #[prost(string, optional, tag = "7")]
    pub last_file: Option<String>,
}

impl Reencryption {
    /// Whether it is still to be carried on.
    pub fn is_running(&self) -> bool {
        self.completed_ms.is_none()
    }
}

/// The key of a file, encrypted by the zone's (`PerFileEncryptionInfoProto`).
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FileKey {
    /// Its bytes.
    #[prost(bytes = "vec", required, tag = "1")]
    pub key: Vec<u8>,
    /// The initialization vector of both ciphers.
    #[prost(bytes = "vec", required, tag = "2")]
    pub iv: Vec<u8>,
    /// The version of the zone's key that encrypts it.
    #[prost(string, required, tag = "3")]
    pub key_version: String,
}

encode_struct!(FileKey { key, iv, key_version });

/// The zone of that root.
pub(crate) fn zone(store: &dyn StoreRead, root: InodeId) -> Result<Zone> {
    let bytes = store.get(Table::XAttr, &xattr::key(root, &zone_attribute()))?;
    let reason = || format!("no zone at {root}");
    let corrupt = |reason: String| StoreError::Corrupt { what: "encryption zone", reason };
    let bytes = bytes.ok_or_else(|| corrupt(reason()))?;
    Ok(Zone::decode(&bytes[..]).map_err(|error| corrupt(error.to_string()))?)
}

/// Reads what is to be set as the attribute of a zone.
pub(crate) fn parse_zone(value: &[u8]) -> Result<Zone> {
    Zone::decode(value)
        .map_err(|error| NamespaceError::Io(format!("Not the attribute of a zone: {error}")))
}

/// The key of a file; none where the attribute is missing or is none of a file.
pub(crate) fn file_key(store: &dyn StoreRead, file: InodeId) -> Result<Option<FileKey>> {
    let bytes = store.get(Table::XAttr, &xattr::key(file, &file_attribute()))?;
    Ok(bytes.and_then(|bytes| FileKey::decode(&bytes[..]).ok()))
}

/// Gives a file its key.
pub(crate) fn put_file_key(store: &mut dyn StoreTxn, file: InodeId, key: &FileKey) -> Result<()> {
    Ok(store.put(Table::XAttr, &xattr::key(file, &file_attribute()), &key.encode_to_vec())?)
}

/// Records what is new of a zone.
pub(crate) fn put_zone(store: &mut dyn StoreTxn, root: InodeId, zone: &Zone) -> Result<()> {
    Ok(store.put(Table::XAttr, &xattr::key(root, &zone_attribute()), &zone.encode_to_vec())?)
}

/// Makes a directory that has got the attribute the root of a zone.
pub(crate) fn mark(store: &mut dyn StoreTxn, root: InodeId) -> Result<()> {
    let mut inode = inode::expect(store, root)?;
    let Some(directory) = inode.directory_mut().filter(|directory| !directory.is_zone) else {
        return Ok(());
    };
    directory.is_zone = true;
    inode::put(store, &inode)?;
    Ok(store.put(Table::EncryptionZone, &root.key(), &[])?)
}
