//! What a client shows to a DataNode before it asks for anything, where data are protected.
//!
//! Source: Hadoop 3.5.0 `SaslDataTransferClient`, `DFSClient#newDataEncryptionKey`.

use crate::error::{ClientError, Result};
use cairn_net::Boxed;
use cairn_security::Protection;
use cairn_security::transfer::{Shown, TransferPolicy};
use cairn_wire::proto::common::TokenProto;
use cairn_wire::proto::hdfs::DataEncryptionKeyProto;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;

/// What a session knows of the protection of data. `Default` is none; a session that is made with a configuration puts
/// its own there.
#[derive(Clone, Default)]
pub struct DataSecurity(Option<Arc<Known>>);

/// What the NameNode tells of the encryption of data.
pub(crate) trait DataKeys: Send + Sync {
    /// Whether all data are encrypted.
    fn encrypts(&self) -> Boxed<'_, Result<bool>>;

    /// A key for them.
    fn data_key(&self) -> Boxed<'_, Result<Option<DataEncryptionKeyProto>>>;
}

struct Known {
    keys: Box<dyn DataKeys>,
    /// What is asked of DataNodes, where not all data are encrypted.
    protections: Vec<Protection>,
    told: Mutex<Told>,
}

/// What the NameNode has told.
#[derive(Default)]
struct Told {
    encrypts: Option<bool>,
    key: Option<DataEncryptionKeyProto>,
}

impl fmt::Debug for DataSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataSecurity")
    }
}

impl DataSecurity {
    pub(crate) fn new(keys: Box<dyn DataKeys>, protections: Vec<Protection>) -> DataSecurity {
        let told = Mutex::default();
        DataSecurity(Some(Arc::new(Known { keys, protections, told })))
    }

    /// What is shown before an operation with this token, and what is wanted then; `None` where nothing is.
    ///
    /// Without block tokens there is nothing by which both sides could know each other.
    pub(crate) async fn shown(
        &self,
        token: &TokenProto,
    ) -> Result<Option<(TransferPolicy, Shown)>> {
        let Some(known) = self.0.as_ref().filter(|_| !token.identifier.is_empty()) else {
            return Ok(None);
        };
        let policy = |protections: &[Protection], by_key| TransferPolicy {
            protections: protections.to_vec(),
            by_key,
            has_aes: true,
            key_len: 16,
        };
        let mut told = known.told.lock().await;
        if told.encrypts.is_none() {
            told.encrypts = Some(known.keys.encrypts().await?);
        }
        if told.encrypts != Some(true) {
            let shown = Shown::Token(token.clone());
            let is_wanted = !known.protections.is_empty();
            return Ok(is_wanted.then(|| (policy(&known.protections, false), shown)));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_good = |key: &DataEncryptionKeyProto| u128::from(key.expiry_date) > now.as_millis();
        let key = match told.key.clone().filter(is_good) {
            Some(key) => key,
            None => {
                let key = known.keys.data_key().await?;
                key.ok_or_else(|| {
                    let what = "the NameNode says that data are encrypted, and has no key for them";
                    ClientError::Protocol(what.to_string())
                })?
            }
        };
        told.key = Some(key.clone());
        Ok(Some((policy(&[Protection::Privacy], true), Shown::Key(key))))
    }

    /// A DataNode does not know the key any more.
    pub(crate) async fn forget_key(&self) {
        if let Some(known) = &self.0 {
            known.told.lock().await.key = None;
        }
    }
}
