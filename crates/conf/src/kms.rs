//! The key servers of encryption zones, as servers and clients find them.

use crate::Configuration;
use anyhow::Result;
use cairn_kms::{KmsOptions, ProviderPath};

/// The key servers: `hadoop.security.key.provider.path`, or its older name `dfs.encryption.key.provider.uri`.
pub fn provider(conf: &Configuration) -> Result<Option<ProviderPath>> {
    let mut found = None;
    for key in ["dfs.encryption.key.provider.uri", "hadoop.security.key.provider.path"] {
        let parse = |text: &str| match text.trim() {
            "" => Ok(None),
            path => Ok(Some(path.parse::<ProviderPath>()?)),
        };
        conf.read(key, parse, &mut found)?;
    }
    Ok(found)
}

/// How patient those who ask key servers are.
pub fn options(conf: &Configuration) -> Result<KmsOptions> {
    let mut options = KmsOptions::default();
    conf.seconds("hadoop.security.kms.client.timeout", &mut options.timeout)?;
    let retries = |text: &str| Ok(Some(text.trim().parse()?));
    let key = "hadoop.security.kms.client.failover.max.retries";
    conf.read(key, retries, &mut options.failover_retries)?;
    let key = "hadoop.security.kms.client.failover.sleep.base.millis";
    conf.millis(key, &mut options.failover_sleep)?;
    let key = "hadoop.security.kms.client.failover.sleep.max.millis";
    conf.millis(key, &mut options.failover_sleep_max)?;
    Ok(options)
}
