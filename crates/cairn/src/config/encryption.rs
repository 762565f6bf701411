//! What a NameNode's encryption zones need: key servers, and how keys are asked for.

use anyhow::Result;
use cairn_conf::{Configuration, kms};
use cairn_namenode::config::EncryptionConfig;

/// The keys of encryption zones, of key servers and of re-encryption.
pub fn read(conf: &Configuration) -> Result<EncryptionConfig> {
    let mut c = EncryptionConfig {
        key_provider: kms::provider(conf)?,
        kms: kms::options(conf)?,
        ..EncryptionConfig::default()
    };
    conf.fill(EncryptionConfig::KEYS, &mut c)?;
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn keys_are_read() {
        let mut conf = Configuration::default();
        conf.set("hadoop.security.key.provider.path", "kms://http@a;b:9600/kms");
        conf.set("hadoop.security.kms.client.timeout", "7");
        conf.set("hadoop.security.kms.client.encrypted.key.cache.size", "20");
        conf.set("dfs.namenode.reencrypt.batch.size", "3");
        conf.set("dfs.namenode.reencrypt.sleep.interval", "2s");
        let c = read(&conf).unwrap();
        assert_eq!(c.key_provider.unwrap().to_string(), "kms://http@a;b:9600/kms");
        assert_eq!((c.kms.timeout, c.ready.size), (Duration::from_secs(7), 20));
        assert_eq!((c.reencryption_batch, c.reencryption_interval), (3, Duration::from_secs(2)));
    }

    #[test]
    fn a_provider_that_cannot_be_asked_is_refused() {
        for path in ["jceks://file/keys", "kms://https@a:9600/kms"] {
            let mut conf = Configuration::default();
            conf.set("hadoop.security.key.provider.path", path);
            assert!(read(&conf).is_err(), "{path}");
        }
    }
}
