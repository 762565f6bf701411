//! The client of Hadoop's Key Management Server, which keeps the keys of encryption zones.
//!
//! Knows the server's HTTP resources, its hosts and what to do when one of them fails ([`Kms`]), and
//! keeps encrypted keys at hand for a NameNode ([`EncryptedKeys`]). Knows nothing of zones or files:
//! a key is a name, its versions, and what was encrypted with them. Simple authentication over plain
//! HTTP only. Answers are limited in length and in time. Tests: `tests/it`.

mod client;
mod error;
mod host;
mod json;
mod path;
mod queue;

use std::fmt;

use zeroize::Zeroizing;

pub use client::{Kms, KmsOptions};
pub use error::KmsError;
pub use path::{ProviderPath, ProviderPathError};
pub use queue::{EncryptedKeys, QueueOptions};

/// The bytes of a key. They are overwritten when it is dropped; what the HTTP connection had of them
/// in its buffers is not.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial(Zeroizing<Vec<u8>>);

impl KeyMaterial {
    /// Takes the bytes of a key.
    pub fn new(bytes: Vec<u8>) -> KeyMaterial {
        KeyMaterial(Zeroizing::new(bytes))
    }

    /// The key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyMaterial({} bytes)", self.0.len())
    }
}

/// What the server tells of a key.
///
/// Source: Hadoop 3.5.0 `KeyProvider.Metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMetadata {
    /// The cipher that the key is for, as `AES/CTR/NoPadding`.
    pub cipher: String,
    /// Bits of the key.
    pub bit_length: u32,
    /// Words of who made it.
    pub description: Option<String>,
    /// When it was made, milliseconds since 1970.
    pub created: i64,
    /// How many versions there are.
    pub versions: u32,
}

/// One version of a key.
///
/// Source: Hadoop 3.5.0 `KeyProvider.KeyVersion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    /// The key, if the server names it.
    pub name: Option<String>,
    /// The version, as `NAME@0`.
    pub version_name: String,
    /// Its bytes, if the server gives them to this user.
    pub material: Option<KeyMaterial>,
}

/// A key that a version of another key encrypts: what a NameNode keeps of an encrypted file.
///
/// Source: Hadoop 3.5.0 `KeyProviderCryptoExtension.EncryptedKeyVersion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedKey {
    /// The key that encrypts it.
    pub key_name: String,
    /// Which version of that key, as `NAME@0`.
    pub key_version: String,
    /// The initialization vector of what is encrypted with this key; the server derives from it the
    /// one with which it encrypts this key.
    pub iv: Vec<u8>,
    /// The key, encrypted.
    pub encrypted_material: Vec<u8>,
}
