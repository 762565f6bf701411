//! The keys of encrypted files: who has them, and the cipher that they make.
//!
//! Files are encrypted and decrypted here and nowhere else: writers encrypt what they have put into a
//! packet, readers decrypt what a caller gets. All between works on the bytes as they are stored.

mod cipher;

use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::types::{CipherSuite, FileEncryption};
use cairn_kms::{EncryptedKey, Kms};
use cairn_wire::proto::hdfs::CryptoProtocolVersionProto;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use cipher::FileCipher;

/// How long is believed what the NameNode says of the key servers: `dfs.client.server-defaults.validity.period.ms`.
const SERVER_DEFAULTS_FOR: Duration = Duration::from_secs(60 * 60);

impl Session {
    /// The cipher of a file that the NameNode says to be encrypted so; the key servers decrypt its
    /// key.
    ///
    /// Source: Hadoop 3.5.0 `HdfsKMSUtil#createWrappedInputStream`.
    pub(crate) async fn cipher(&self, path: &str, info: &FileEncryption) -> Result<FileCipher> {
        let unsupported =
            |what: String| ClientError::UnsupportedEncryption { path: path.to_string(), what };
        if info.protocol_version != CryptoProtocolVersionProto::EncryptionZones as i32 {
            return Err(unsupported(format!("protocol version {}", info.protocol_version)));
        }
        if info.suite != CipherSuite::AesCtr {
            return Err(unsupported(info.suite.to_string()));
        }
        let key = EncryptedKey {
            key_name: info.key_name.clone(),
            key_version: info.key_version.clone(),
            iv: info.iv.clone(),
            encrypted_material: info.encrypted_key.clone(),
        };
        let failed = |reason| ClientError::Key { path: path.to_string(), reason };
        let material = self.kms(path).await?.decrypt(&key).await.map_err(failed)?;
        let cipher = FileCipher::new(material.as_bytes(), &info.iv);
        cipher.ok_or_else(|| {
            let (key, iv) = (material.as_bytes().len(), info.iv.len());
            let what = format!("{path}: a key of {key} bytes and a vector of {iv} are not AES's");
            ClientError::Protocol(what)
        })
    }

    /// The key servers, as the NameNode names them, else as the configuration does.
    ///
    /// Source: Hadoop 3.5.0 `HdfsKMSUtil#getKeyProviderUri`.
    async fn kms(&self, path: &str) -> Result<Arc<Kms>> {
        let config = &self.config;
        let mut known = self.kms.lock().await;
        if let Some((asked, kms)) = &*known
            && asked.elapsed() < SERVER_DEFAULTS_FOR
        {
            return Ok(Arc::clone(kms));
        }
        let named = match config.ignore_server_key_provider {
            true => None,
            false => self.server_defaults().await?.key_provider,
        };
        let provider = named.filter(|named| !named.is_empty()).or(config.key_provider.clone());
        let nobody = || ClientError::NoKeyProvider { path: path.to_string() };
        let provider = provider.ok_or_else(nobody)?.parse()?;
        let kms = match known.take() {
            Some((_, kms)) if *kms.path() == provider => kms,
            _ => Arc::new(Kms::new(provider, &config.user, config.kms.clone())),
        };
        *known = Some((Instant::now(), Arc::clone(&kms)));
        Ok(kms)
    }
}
