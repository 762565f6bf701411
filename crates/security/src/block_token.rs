//! What a block token says: who may do what with which block, until when.
//!
//! It is written in two ways, of which the first byte tells: numbers and texts one after another, or a message.

use std::fmt;

use cairn_wire::WireError;
use cairn_wire::proto::hdfs::{AccessModeProto, BlockTokenSecretProto, StorageTypeProto};
use prost::Message;

use crate::writable::{Reader, put_long, put_string, put_text};

/// The kind of block tokens. Source: Hadoop 3.5.0 `BlockTokenIdentifier#KIND_NAME`.
pub const HDFS_BLOCK_TOKEN: &str = "HDFS_BLOCK_TOKEN";

const WHAT: &str = "block token";
/// Bytes of a text in a token.
const TEXT_MAX: usize = 64 << 10;
/// Storages that a token names. No block has so many places.
const STORAGES_MAX: i32 = 1024;
/// Bytes of the text that tells a handshake.
const HANDSHAKE_MAX: usize = 4096;

/// Why a token is not taken. As Hadoop's `SecretManager.InvalidToken`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidToken(pub String);

/// What may be done with a block.
///
/// Source: Hadoop 3.5.0 `BlockTokenIdentifier.AccessMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AccessMode {
    /// Its bytes, length and checksum may be had.
    Read = 1,
    /// It may be written.
    Write = 2,
    /// It may be copied to another DataNode.
    Copy = 3,
    /// A DataNode may fetch it from another.
    Replace = 4,
}

impl AccessMode {
    /// All modes in the order in which Hadoop writes them.
    pub const ALL: [AccessMode; 4] =
        [AccessMode::Read, AccessMode::Write, AccessMode::Copy, AccessMode::Replace];

    /// Its name in Hadoop.
    pub fn name(self) -> &'static str {
        match self {
            AccessMode::Read => "READ",
            AccessMode::Write => "WRITE",
            AccessMode::Copy => "COPY",
            AccessMode::Replace => "REPLACE",
        }
    }

    fn proto(self) -> AccessModeProto {
        match self {
            AccessMode::Read => AccessModeProto::Read,
            AccessMode::Write => AccessModeProto::Write,
            AccessMode::Copy => AccessModeProto::Copy,
            AccessMode::Replace => AccessModeProto::Replace,
        }
    }
}

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modes(u8);

impl Modes {
    /// Whether a mode is in it.
    pub fn has(self, mode: AccessMode) -> bool {
        self.0 & (1 << mode as u8) != 0
    }

    /// Its modes in order.
    pub fn iter(self) -> impl Iterator<Item = AccessMode> {
        AccessMode::ALL.into_iter().filter(move |mode| self.has(*mode))
    }

    fn add(&mut self, mode: AccessMode) {
        self.0 |= 1 << mode as u8;
    }
}

impl From<AccessMode> for Modes {
    fn from(mode: AccessMode) -> Modes {
        Modes(1 << mode as u8)
    }
}

impl FromIterator<AccessMode> for Modes {
    fn from_iter<I: IntoIterator<Item = AccessMode>>(modes: I) -> Modes {
        modes.into_iter().fold(Modes::default(), |mut all, mode| {
            all.add(mode);
            all
        })
    }
}

/// How an identifier is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Numbers and texts one after another, as Hadoop does by default.
    #[default]
    Legacy,
    /// A message. Key `dfs.block.access.token.protobuf.enable`.
    Protobuf,
}

/// What a block token says.
///
/// Source: Hadoop 3.5.0 `BlockTokenIdentifier`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockTokenId {
    /// When it ends, ms since the epoch.
    pub expires_ms: i64,
    /// The key that proves it.
    pub key_id: i32,
    /// Whom it was issued to, if that is told.
    pub user: Option<String>,
    /// The block pool.
    pub pool: Option<String>,
    /// The block, or one unit of a group.
    pub block: i64,
    /// What may be done.
    pub modes: Modes,
    /// Numbers of the types of the storages where it may be written; none for any.
    pub storage_types: Vec<i32>,
    /// These storages; none for any.
    pub storage_ids: Vec<String>,
    /// How the client was protected that it was issued to, if that counts.
    pub handshake: Vec<u8>,
}

impl BlockTokenId {
    /// Its bytes.
    pub fn encode(&self, form: Form) -> Vec<u8> {
        match form {
            Form::Legacy => self.encode_legacy(),
            Form::Protobuf => self.encode_proto(),
        }
    }

    /// Source: Hadoop 3.5.0 `BlockTokenIdentifier#writeLegacy`.
    fn encode_legacy(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        put_long(self.expires_ms, &mut out);
        put_long(self.key_id.into(), &mut out);
        put_string(self.user.as_deref(), &mut out);
        put_string(self.pool.as_deref(), &mut out);
        put_long(self.block, &mut out);
        put_long(self.modes.iter().count() as i64, &mut out);
        for mode in self.modes.iter() {
            put_text(mode.name(), &mut out);
        }
        put_long(self.storage_types.len() as i64, &mut out);
        for number in &self.storage_types {
            put_text(type_name(*number), &mut out);
        }
        put_long(self.storage_ids.len() as i64, &mut out);
        for id in &self.storage_ids {
            put_string(Some(id), &mut out);
        }
        if !self.handshake.is_empty() {
            put_long(self.handshake.len() as i64, &mut out);
            out.extend_from_slice(&self.handshake);
        }
        out
    }

    /// Source: Hadoop 3.5.0 `PBHelperClient#convert(BlockTokenIdentifier)`.
    fn encode_proto(&self) -> Vec<u8> {
        let message = BlockTokenSecretProto {
            expiry_date: Some(self.expires_ms as u64),
            key_id: Some(self.key_id as u32),
            user_id: self.user.clone(),
            block_pool_id: self.pool.clone(),
            block_id: Some(self.block as u64),
            modes: self.modes.iter().map(|mode| mode.proto() as i32).collect(),
            storage_types: self.storage_types.clone(),
            storage_ids: self.storage_ids.clone(),
            handshake_secret: (!self.handshake.is_empty()).then(|| self.handshake.clone()),
        };
        message.encode_to_vec()
    }

    /// What bytes from outside say. Bytes behind those of the older form are ignored, as Hadoop does.
    ///
    /// Source: Hadoop 3.5.0 `BlockTokenIdentifier#readFields`.
    pub fn decode(bytes: &[u8]) -> Result<BlockTokenId, WireError> {
        match bytes.first().map(|first| *first as i8) {
            Some(1..) => decode_proto(bytes),
            _ => decode_legacy(bytes),
        }
    }
}

fn decode_legacy(bytes: &[u8]) -> Result<BlockTokenId, WireError> {
    let mut reader = Reader::new(bytes, WHAT);
    let mut id = BlockTokenId {
        expires_ms: reader.long()?,
        key_id: reader.int()?,
        user: reader.string(TEXT_MAX)?,
        pool: reader.string(TEXT_MAX)?,
        block: reader.long()?,
        ..BlockTokenId::default()
    };
    for _ in 0..reader.count(AccessMode::ALL.len() as i32)? {
        let name = reader.text(TEXT_MAX)?;
        let mode = AccessMode::ALL.into_iter().find(|mode| mode.name() == name);
        id.modes.add(mode.ok_or_else(unknown)?);
    }
    for _ in 0..reader.count(STORAGES_MAX)? {
        let name = reader.text(TEXT_MAX)?;
        let number = TYPES.into_iter().find(|(_, known)| *known == name);
        id.storage_types.push(number.ok_or_else(unknown)?.0 as i32);
    }
    for _ in 0..reader.count(STORAGES_MAX)? {
        id.storage_ids.push(reader.string(TEXT_MAX)?.ok_or_else(unknown)?);
    }
    // Those of earlier releases end here.
    if !reader.is_empty() {
        id.handshake = reader.bytes(HANDSHAKE_MAX)?.to_vec();
    }
    Ok(id)
}

/// Deviation: Hadoop fails at modes and types that it does not know, and takes any number of storages.
fn decode_proto(bytes: &[u8]) -> Result<BlockTokenId, WireError> {
    let message = BlockTokenSecretProto::decode(bytes)
        .map_err(|source| WireError::Proto { what: WHAT, source })?;
    let storages = message.storage_types.len().max(message.storage_ids.len());
    if storages > STORAGES_MAX as usize {
        return Err(WireError::Length {
            what: WHAT,
            len: storages as i64,
            limit: STORAGES_MAX as u64,
        });
    }
    let mut modes = Modes::default();
    for number in &message.modes {
        let mode = AccessMode::ALL.into_iter().find(|mode| mode.proto() as i32 == *number);
        modes.add(mode.ok_or_else(unknown)?);
    }
    Ok(BlockTokenId {
        expires_ms: message.expiry_date() as i64,
        key_id: message.key_id() as i32,
        block: message.block_id() as i64,
        user: message.user_id,
        pool: message.block_pool_id,
        modes,
        storage_types: message.storage_types,
        storage_ids: message.storage_ids,
        handshake: message.handshake_secret.unwrap_or_default(),
    })
}

fn unknown() -> WireError {
    WireError::Value { what: WHAT, value: -1 }
}

/// Types of storages and their names in Hadoop.
const TYPES: [(StorageTypeProto, &str); 6] = [
    (StorageTypeProto::Disk, "DISK"),
    (StorageTypeProto::Ssd, "SSD"),
    (StorageTypeProto::Archive, "ARCHIVE"),
    (StorageTypeProto::RamDisk, "RAM_DISK"),
    (StorageTypeProto::Provided, "PROVIDED"),
    (StorageTypeProto::Nvdimm, "NVDIMM"),
];

/// That of a number; unknown ones are disks, as elsewhere.
pub(crate) fn type_name(number: i32) -> &'static str {
    let known = TYPES.into_iter().find(|(known, _)| *known as i32 == number);
    known.map_or("DISK", |(_, name)| name)
}

/// As Hadoop names it in refusals. Source: Hadoop 3.5.0 `BlockTokenIdentifier#toString`.
impl fmt::Display for BlockTokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: Vec<&str>| format!("[{}]", names.join(", "));
        let (user, pool) = (self.user.as_deref(), self.pool.as_deref());
        write!(
            f,
            "block_token_identifier (expiryDate={}, keyId={}, userId={}, blockPoolId={}, blockId={}, access modes={}, \
             storageTypes= {}, storageIds= {})",
            self.expires_ms,
            self.key_id,
            user.unwrap_or("null"),
            pool.unwrap_or("null"),
            self.block,
            names(self.modes.iter().map(AccessMode::name).collect()),
            names(self.storage_types.iter().map(|number| type_name(*number)).collect()),
            names(self.storage_ids.iter().map(String::as_str).collect()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn identifiers_come_back(
            times: (i64, i64), key_id: i32, user: Option<String>, pool: Option<String>, modes in 0u8..16,
            storage_types in prop::collection::vec(1i32..=6, 0..4), storage_ids: Vec<String>,
            handshake: Vec<u8>,
        ) {
            // The first byte of a time that is near tells the form.
            let (expires_ms, block) = (times.0 | 1 << 20, times.1 | 1);
            let modes = Modes(modes << 1);
            let id = BlockTokenId {
                expires_ms, key_id, user, pool, block, modes, storage_types, storage_ids, handshake,
            };
            for form in [Form::Legacy, Form::Protobuf] {
                let bytes = id.encode(form);
                prop_assert_eq!(&BlockTokenId::decode(&bytes).unwrap(), &id);
                for len in 0..bytes.len() {
                    prop_assert!(BlockTokenId::decode(&bytes[..len]).ok().as_ref() != Some(&id));
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = BlockTokenId::decode(&bytes);
        }
    }

    #[test]
    fn announced_counts_are_bounded() {
        let id = BlockTokenId { expires_ms: 1 << 40, ..BlockTokenId::default() };
        let mut bytes = id.encode(Form::Legacy);
        let [.., modes, types, ids] = &mut bytes[..] else { panic!("three counts") };
        for count in [modes, types, ids] {
            *count = 0xff;
        }
        assert!(BlockTokenId::decode(&bytes).is_err());
        let storage_types = vec![1; STORAGES_MAX as usize + 1];
        let many = BlockTokenId { storage_types, ..id };
        for form in [Form::Legacy, Form::Protobuf] {
            assert!(BlockTokenId::decode(&many.encode(form)).is_err());
        }
    }
}
