//! Keys that ask for protection which is not there: a server that obeyed the rest would be open where its operator
//! thinks that it is not.

use super::Configuration;
use anyhow::{Result, bail};

/// Keys, the values with which they ask for nothing that there is not, and what the others ask for.
const ASKS: [(&str, &[&str], &str); 10] = [
    ("hadoop.security.authentication", &["simple", "kerberos"], "it takes simple or kerberos"),
    (
        "hadoop.security.group.mapping",
        &GROUP_MAPPINGS,
        "only the system or an LDAP server is asked for groups",
    ),
    (
        "hadoop.security.impersonation.provider.class",
        &["org.apache.hadoop.security.authorize.DefaultImpersonationProvider"],
        "only the keys hadoop.proxyuser.* say who acts for others",
    ),
    (
        "hadoop.security.saslproperties.resolver.class",
        &["org.apache.hadoop.security.SaslPropertiesResolver"],
        "connections of all clients are protected alike",
    ),
    (
        "dfs.encrypt.data.transfer.cipher.suites",
        &["AES/CTR/NoPadding"],
        "it takes AES/CTR/NoPadding",
    ),
    (
        "dfs.encrypt.data.transfer.algorithm",
        &["rc4"],
        "of the ciphers of DIGEST-MD5 only rc4 is there",
    ),
    (
        "dfs.trustedchannel.resolver.class",
        &["org.apache.hadoop.hdfs.protocol.datatransfer.TrustedChannelResolver"],
        "no connection is trusted more than others",
    ),
    (
        "dfs.data.transfer.saslproperties.resolver.class",
        &["org.apache.hadoop.security.SaslPropertiesResolver"],
        "connections of all clients are protected alike",
    ),
    (
        super::ranger::PROVIDER,
        &[super::ranger::BY_RANGER],
        "of other programs only Ranger can say who may do what",
    ),
    ("dfs.namenode.ip-proxy-users", &[], "no user is believed that speaks of another machine"),
];

/// Those that ask the system, as is done here, or a directory.
const GROUP_MAPPINGS: [&str; 4] = [
    super::groups::BY_LDAP,
    "org.apache.hadoop.security.JniBasedUnixGroupsMappingWithFallback",
    "org.apache.hadoop.security.JniBasedUnixGroupsMapping",
    "org.apache.hadoop.security.ShellBasedUnixGroupsMapping",
];

/// Fails if the configuration asks for such protection.
pub fn refuse(conf: &Configuration) -> Result<()> {
    for (key, harmless, what) in ASKS {
        let value = conf.get(key).unwrap_or_default();
        let value = value.trim();
        if !value.is_empty() && !harmless.iter().any(|one| value.eq_ignore_ascii_case(one)) {
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
            ("hadoop.security.authentication", "kerberos_ssl"),
            ("hadoop.security.saslproperties.resolver.class", "org.example.Any"),
            ("dfs.encrypt.data.transfer.cipher.suites", "SM4/CTR/NoPadding"),
            ("dfs.encrypt.data.transfer.algorithm", "3des"),
            ("dfs.trustedchannel.resolver.class", "org.example.Any"),
            ("dfs.namenode.inode.attributes.provider.class", "org.example.Ranger"),
            ("hadoop.security.group.mapping", "org.apache.hadoop.security.CompositeGroupsMapping"),
            (
                "hadoop.security.group.mapping",
                "org.apache.hadoop.security.ShellBasedUnixGroupsNetgroupMapping",
            ),
            ("hadoop.security.impersonation.provider.class", "org.example.Anybody"),
            ("dfs.namenode.ip-proxy-users", "knox"),
        ] {
            let error = with(key, value).unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
        }
        for (key, value) in [
            ("hadoop.security.authentication", "Simple"),
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.encrypt.data.transfer.algorithm", ""),
            ("dfs.namenode.inode.attributes.provider.class", " "),
            (
                "hadoop.security.group.mapping",
                "org.apache.hadoop.security.ShellBasedUnixGroupsMapping",
            ),
            (
                "hadoop.security.group.mapping",
                "org.apache.hadoop.security.JniBasedUnixGroupsMapping",
            ),
            (
                "hadoop.security.group.mapping",
                "org.apache.hadoop.security.JniBasedUnixGroupsMappingWithFallback",
            ),
            (
                "hadoop.security.impersonation.provider.class",
                "org.apache.hadoop.security.authorize.DefaultImpersonationProvider",
            ),
        ] {
            with(key, value).unwrap();
        }
    }
}
