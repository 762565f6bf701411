//! Keys that ask for protection which is not there: a server that obeyed the rest would be open where its operator
//! thinks that it is not.

use super::Configuration;
use anyhow::{Result, bail};

/// Fails if the configuration asks for Kerberos, block tokens or encrypted connections.
pub fn refuse(conf: &Configuration) -> Result<()> {
    let asks = [
        ("hadoop.security.authentication", "simple", "only the authentication simple is supported"),
        ("dfs.block.access.token.enable", "false", "block tokens are not supported"),
        ("dfs.encrypt.data.transfer", "false", "encrypted data transfer is not supported"),
        ("dfs.data.transfer.protection", "", "protected data transfer is not supported"),
    ];
    for (key, harmless, what) in asks {
        let value = conf.get(key).unwrap_or_default();
        let value = value.trim();
        if !value.is_empty() && !value.eq_ignore_ascii_case(harmless) {
            bail!("{key} is {value}: {what}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_protection_is_refused() {
        let with = |key: &str, value: &str| {
            let mut conf = Configuration::default();
            conf.set(key, value);
            refuse(&conf)
        };
        for (key, value) in [
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.block.access.token.enable", "true"),
            ("dfs.encrypt.data.transfer", "TRUE"),
            ("dfs.data.transfer.protection", "privacy"),
        ] {
            let error = with(key, value).unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
        }
        for (key, value) in [
            ("hadoop.security.authentication", "Simple"),
            ("dfs.block.access.token.enable", "false"),
            ("dfs.data.transfer.protection", ""),
        ] {
            with(key, value).unwrap();
        }
    }
}
