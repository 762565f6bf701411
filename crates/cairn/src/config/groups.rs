//! Who says which groups users are in.

use super::{Configuration, https};
use anyhow::{Context, Result, bail};
use cairn_access::groups::GroupsConfig;
use cairn_access::groups::ldap::{LdapConfig, Password};
use std::io::Read;

/// Who is asked.
pub const MAPPING: &str = "hadoop.security.group.mapping";
/// The value of it for LDAP.
pub const BY_LDAP: &str = "org.apache.hadoop.security.LdapGroupsMapping";
const PASSWORD: &str = "hadoop.security.group.mapping.ldap.bind.password";
const PASSWORD_FILE: &str = "hadoop.security.group.mapping.ldap.bind.password.file";
/// Bytes of the longest password that is read.
const PASSWORD_MAX: u64 = 64 << 10;

/// Reads the keys.
pub fn read(conf: &Configuration) -> Result<GroupsConfig> {
    let mut groups = GroupsConfig::default();
    conf.fill(GroupsConfig::KEYS, &mut groups)?;
    if conf.get(MAPPING).is_some_and(|class| class.trim() == BY_LDAP) {
        groups.ldap = Some(ldap(conf)?);
    }
    Ok(groups)
}

fn ldap(conf: &Configuration) -> Result<LdapConfig> {
    let mut ldap = LdapConfig::default();
    conf.fill(LdapConfig::KEYS, &mut ldap)?;
    if let Some(fault) = ldap.fault() {
        bail!("{MAPPING} is {BY_LDAP}: {fault}");
    }
    ldap.password = Password(password(conf)?);
    if ldap.asks_by_tls() {
        ldap.trust = Some(https::authority(conf)?);
    }
    Ok(ldap)
}

/// Source: Hadoop 3.5.0 `LdapGroupsMapping#getPasswordForBindUser`. Deviation: there are no stores of passwords
/// (`hadoop.security.credential.provider.path`).
fn password(conf: &Configuration) -> Result<String> {
    if let Some(password) = conf.get(PASSWORD).filter(|password| !password.is_empty()) {
        return Ok(password);
    }
    let Some(path) = conf.get(PASSWORD_FILE).filter(|path| !path.is_empty()) else {
        return Ok(String::new());
    };
    let mut text = String::new();
    let read = std::fs::File::open(&path)
        .and_then(|file| file.take(PASSWORD_MAX).read_to_string(&mut text));
    read.with_context(|| format!("cannot read {path} ({PASSWORD_FILE})"))?;
    Ok(text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(keys: &[(&str, &str)]) -> Result<GroupsConfig> {
        let mut conf = Configuration::default();
        conf.set(MAPPING, BY_LDAP);
        keys.iter().for_each(|(key, value)| conf.set(key, *value));
        read(&conf)
    }

    const URL: (&str, &str) = ("hadoop.security.group.mapping.ldap.url", "ldap://a,ldap://b:3890/");

    #[test]
    fn a_directory_is_asked_where_it_is_named() {
        assert_eq!(read(&Configuration::default()).unwrap().ldap, None);
        let ldap = with(&[URL]).unwrap().ldap.unwrap();
        assert_eq!(ldap.urls, ["ldap://a", "ldap://b:3890/"]);
        assert!(ldap.trust.is_none());
        for wrong in [
            &[][..],
            &[("hadoop.security.group.mapping.ldap.url", "http://a")],
            &[URL, ("hadoop.security.group.mapping.ldap.search.filter.user", "(uid={0}")],
            &[URL, ("hadoop.security.group.mapping.ldap.num.attempts", "0")],
            &[URL, (PASSWORD_FILE, "/nonexistent")],
            &[
                URL,
                ("hadoop.security.group.mapping.ldap.ssl", "true"),
                ("cairn.https.authority", "/nonexistent"),
            ],
        ] {
            assert!(with(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_password_is_a_key_or_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "of the file\n").unwrap();
        let path = (PASSWORD_FILE, file.path().to_str().unwrap());
        let password = |keys: &[_]| with(keys).unwrap().ldap.unwrap().password.0;
        assert_eq!(password(&[URL]), "");
        assert_eq!(password(&[URL, path]), "of the file");
        assert_eq!(password(&[URL, path, (PASSWORD, "pw")]), "pw");
        let shown = format!("{:?}", with(&[URL, (PASSWORD, "pw")]).unwrap());
        assert!(!shown.contains("pw"), "{shown}");
    }
}
