//! Encrypted files and encryption zones.

use std::fmt;

/// What encrypts the bytes of files.
///
/// Source: Hadoop 3.5.0 `CipherSuite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// `AES/CTR/NoPadding`, the one that this client knows.
    AesCtr,
    /// `SM4/CTR/NoPadding`.
    Sm4Ctr,
    /// A suite that is not known, by its number on the wire.
    Unknown(i32),
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CipherSuite::AesCtr => write!(f, "AES/CTR/NoPadding"),
            CipherSuite::Sm4Ctr => write!(f, "SM4/CTR/NoPadding"),
            CipherSuite::Unknown(number) => write!(f, "cipher suite {number}"),
        }
    }
}

/// How a file is encrypted. The key that encrypts it is itself encrypted, with a key of the zone that
/// the key servers keep.
///
/// Source: Hadoop 3.5.0 `FileEncryptionInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEncryption {
    /// What encrypts its bytes.
    pub suite: CipherSuite,
    /// The number of the protocol version; 2 stands for encryption zones.
    pub protocol_version: i32,
    /// The key of the zone.
    pub key_name: String,
    /// The version of that key that encrypts the file's key, as `NAME@0`.
    pub key_version: String,
    /// The initialization vector of the file's bytes.
    pub iv: Vec<u8>,
    /// The file's key, encrypted.
    pub encrypted_key: Vec<u8>,
}

/// A directory in which all files are encrypted.
///
/// Source: Hadoop 3.5.0 `EncryptionZone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionZone {
    /// The number of the directory's inode.
    pub id: i64,
    /// The directory.
    pub path: String,
    /// What encrypts files in it.
    pub suite: CipherSuite,
    /// The number of the protocol version; 2 stands for encryption zones.
    pub protocol_version: i32,
    /// The key of the zone.
    pub key_name: String,
}

/// What to do about encrypting the keys of a zone's files anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reencryption {
    /// Begin it, with the current version of the zone's key.
    Start,
    /// Stop it.
    Cancel,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReencryptionState {
    /// Asked for.
    Submitted,
    /// At work.
    Processing,
    /// Done, or cancelled.
    Completed,
}

/// How far it is that the keys of a zone's files are encrypted anew.
///
/// Source: Hadoop 3.5.0 `ZoneReencryptionStatus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReencryptionStatus {
    /// The number of the inode of the zone's directory.
    pub id: i64,
    /// The zone's directory.
    pub path: String,
    /// How far it is.
    pub state: ReencryptionState,
    /// The version of the zone's key with which keys of files are encrypted.
    pub key_version: String,
    /// When it was asked for, milliseconds since 1970.
    pub submitted_ms: i64,
    /// Whether it was cancelled.
    pub is_canceled: bool,
    /// Files done.
    pub reencrypted: i64,
    /// Files that could not be done.
    pub failures: i64,
    /// When it ended, milliseconds since 1970.
    pub completed_ms: Option<i64>,
    /// The last file of which it is known that it is done.
    pub last_file: Option<String>,
}
