//! The key provider: the key servers of encryption zones, and keys for files that are about to be made.

use std::sync::Arc;

use cairn_kms::{EncryptedKey, EncryptedKeys, Kms, KmsError, ProviderPath};
use cairn_namespace::encryption::FileKey;
use cairn_namespace::{InodeId, query};
use cairn_wire::exception::class;

use crate::config::EncryptionConfig;
use crate::journal::Namesystem;
use crate::refusal::Refusal;

/// Hadoop's number of a cipher suite by the cipher of a key.
///
/// Source: Hadoop 3.5.0 `CipherSuite#convert`, `CipherSuiteProto`.
pub(crate) fn suite_of(cipher: &str) -> Option<u32> {
    match cipher {
        "AES/CTR/NoPadding" => Some(2),
        "SM4/CTR/NoPadding" => Some(3),
        _ => None,
    }
}

/// The key servers that `hadoop.security.key.provider.path` names.
#[derive(Debug)]
pub(crate) struct KeyProvider {
    kms: Arc<Kms>,
    ready: EncryptedKeys,
}

impl KeyProvider {
    /// Asks as `user` whatever client a key is for: key servers need not let others make them.
    pub(crate) fn new(path: ProviderPath, user: &str, config: &EncryptionConfig) -> KeyProvider {
        let kms = Arc::new(Kms::new(path, user, config.kms.clone()));
        KeyProvider { ready: EncryptedKeys::new(Arc::clone(&kms), config.ready.clone()), kms }
    }

    /// The cipher suite of a key, and some keys that it encrypts made ready.
    ///
    /// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#ensureKeyIsInitialized`.
    pub(crate) async fn suite_of_key(&self, name: &str) -> Result<u32, Refusal> {
        let found = self.kms.metadata(name).await.map_err(refusal)?;
        let missing = || Refusal::io(format!("Key {name} doesn't exist."));
        let cipher = found.ok_or_else(missing)?.cipher;
        self.ready.warm_up(&[name.to_string()]).await.map_err(refusal)?;
        suite_of(&cipher).ok_or_else(|| {
            let message = format!("Invalid cipher suite name: {cipher}");
            Refusal::new(class::ILLEGAL_ARGUMENT, message)
        })
    }

    /// A key for a file in a zone.
    pub(crate) async fn file_key(&self, name: &str) -> Result<FileKey, Refusal> {
        Ok(file_key(self.ready.next(name).await.map_err(refusal)?))
    }

    /// The version of a key that encrypts from now on.
    ///
    /// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp#getCurrentKeyVersion`.
    pub(crate) async fn current_version(&self, name: &str) -> Result<String, Refusal> {
        self.ready.drain(name);
        Ok(self.ready.next(name).await.map_err(refusal)?.key_version)
    }

    /// Files' keys, which the key of that name encrypts, as its newest version does.
    pub(crate) async fn renew(
        &self,
        name: &str,
        keys: &[FileKey],
    ) -> Result<Vec<FileKey>, KmsError> {
        let encrypted: Vec<_> = keys.iter().map(|key| encrypted_key(name, key)).collect();
        Ok(self.kms.reencrypt(&encrypted).await?.into_iter().map(file_key).collect())
    }

    /// Has keys ready for files in all zones, soon after the start.
    ///
    /// Source: Hadoop 3.5.0 `FSDirEncryptionZoneOp.EDEKCacheLoader`.
    pub(crate) async fn warm_up(&self, ns: &Namesystem, config: &EncryptionConfig) {
        tokio::time::sleep(config.warm_up_delay).await;
        let zones = ns.read(|store| query::zones(store, InodeId::NONE, usize::MAX));
        let mut names: Vec<String> = match zones {
            Ok((zones, _)) => zones.into_iter().map(|placed| placed.zone.key_name).collect(),
            Err(error) => return tracing::error!(%error, "encryption zones cannot be read"),
        };
        names.sort_unstable();
        names.dedup();
        for _ in 0..config.warm_up_tries {
            match self.ready.warm_up(&names).await {
                Ok(()) => return,
                Err(error) => tracing::info!(%error, "no keys for files were made ready"),
            }
            tokio::time::sleep(config.warm_up_interval).await;
        }
    }
}

fn file_key(key: EncryptedKey) -> FileKey {
    FileKey { key: key.encrypted_material, iv: key.iv, key_version: key.key_version }
}

fn encrypted_key(name: &str, key: &FileKey) -> EncryptedKey {
    EncryptedKey {
        key_name: name.to_string(),
        key_version: key.key_version.clone(),
        iv: key.iv.clone(),
        encrypted_material: key.key.clone(),
    }
}

/// What a client is told of a key server that did not do what the NameNode asked of it.
fn refusal(error: KmsError) -> Refusal {
    match error {
        KmsError::Refused { class, message } | KmsError::Server { class, message, .. }
            if !class.is_empty() =>
        {
            Refusal::new(&class, message)
        }
        error => Refusal::io(error.to_string()),
    }
}
