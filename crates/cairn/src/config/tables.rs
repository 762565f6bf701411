//! The tables of keys of all roles, side by side, and the page of the book that is made of them.

use super::gateway::GatewayKeys;
use super::https::HttpsKeys;
use super::quorum::QuorumKeys;
use super::ranger::RangerKeys;
use super::security::SecurityKeys;
use super::webhdfs::WebHdfsKeys;
use cairn_access::groups::GroupsConfig;
use cairn_access::groups::ldap::LdapConfig;
use cairn_client::ClientConfig;
use cairn_datanode::DataNodeConfig;
use cairn_keys::Key;
use cairn_namenode::config::{AuditConfig, EncryptionConfig, NameNodeConfig};
use cairn_trace::TraceConfig;
use std::fmt::Write;

/// What the page begins with.
const ABOVE: &str = "\
# Configuration keys

Made from the tables in the source by `cairn keys --page`: edit those (`cairn_keys::keys!`), not this page. `cairn keys \
WORD` tells what a key is set to, and `cairn doctor` which keys of a configuration nobody reads. Times take a suffix (`ms`, \
`s`, `m`, `h`, `d`), bytes too (`k`, `m`, `g`, `t`). What is *live* changes while the role runs: edit the file, then \
`hdfs dfsadmin -reconfig` or `cairn admin reconfig`. [Keys](operations/keys.md) says more of those that Hadoop \
does not have. Keys whose names have a user, group or protocol in them (`hadoop.proxyuser.USER.hosts`, \
`httpfs.proxyuser.USER.hosts`, `security.PROTOCOL.acl`) are described in [Users and access](operations/access.md).
";

/// One key as it is shown.
pub struct Row {
    /// Who reads it, or what it is about.
    pub role: &'static str,
    pub name: &'static str,
    pub takes: &'static str,
    pub default: &'static str,
    pub is_live: bool,
    pub meaning: String,
}

/// All keys of the tables: role by role, by name.
pub fn rows() -> Vec<Row> {
    let name_node = [
        of("NameNode", NameNodeConfig::KEYS),
        of("NameNode", AuditConfig::KEYS),
        of("NameNode", EncryptionConfig::KEYS),
    ];
    let of_all = [of("All servers", GroupsConfig::KEYS), of("All servers", LdapConfig::KEYS)];
    let roles = [
        name_node.into_iter().flatten().collect(),
        of("DataNode", DataNodeConfig::KEYS),
        of_all.into_iter().flatten().collect(),
        of("Quorum of NameNodes", QuorumKeys::KEYS),
        of("WebHDFS", WebHdfsKeys::KEYS),
        of("Gateway", GatewayKeys::KEYS),
        of("HTTPS", HttpsKeys::KEYS),
        of("Ranger", RangerKeys::KEYS),
        of("Kerberos, tokens and what is around data", SecurityKeys::KEYS),
        of("Clients and commands", ClientConfig::KEYS),
        of("All servers and commands", TraceConfig::KEYS),
    ];
    let by_name = |mut rows: Vec<Row>| {
        rows.sort_by_key(|row| row.name);
        rows
    };
    roles.into_iter().flat_map(by_name).collect()
}

fn of<C>(role: &'static str, keys: &[Key<C>]) -> Vec<Row> {
    let row = |key: &Key<C>| Row {
        role,
        name: key.name,
        takes: key.takes,
        default: key.default,
        is_live: key.is_live,
        meaning: key.meaning.trim().to_string(),
    };
    keys.iter().map(row).collect()
}

/// The page of the book.
pub fn page() -> String {
    let mut page = ABOVE.to_string();
    let mut role = "";
    for row in rows() {
        if row.role != role {
            role = row.role;
            let _ = write!(
                page,
                "\n## {role}\n\n| Key | Takes | Default | | |\n|---|---|---|---|---|\n"
            );
        }
        let default = match row.default {
            "" => String::new(),
            // Words that stand for what depends on the machine.
            words if words.contains(' ') => words.to_string(),
            value => format!("`{value}`"),
        };
        let live = if row.is_live { "live" } else { "" };
        let Row { name, takes, meaning, .. } = row;
        let _ = writeln!(page, "| `{name}` | {takes} | {default} | {live} | {meaning} |");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{groups, ranger};
    use std::collections::BTreeSet;
    use std::fmt::Debug;

    #[test]
    fn the_page_of_the_book_is_that_of_the_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/keys.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == page(), "run `cairn keys --page > docs/keys.md`");
    }

    #[test]
    fn a_key_stands_in_a_table_once_and_by_its_present_name() {
        let mut seen = BTreeSet::new();
        for row in rows() {
            assert!(seen.insert((row.role, row.name)), "{} is there twice", row.name);
            let mut conf = crate::config::Configuration::default();
            conf.set(row.name, "x");
            assert!(conf.iter().any(|(key, _)| key == row.name), "{} has another name", row.name);
            assert!(row.meaning.ends_with('.') && !row.meaning.contains('|'), "{}", row.meaning);
        }
    }

    /// Fails where the default in a table is not the one that settings have by themselves.
    fn check_defaults<C: Default + Debug>(keys: &[Key<C>]) {
        let own = format!("{:?}", C::default());
        for key in keys {
            let (Some(set), Some(default)) = (key.set, key.default_value()) else { continue };
            let mut settings = C::default();
            set(&mut settings, default).unwrap_or_else(|error| panic!("{}: {error}", key.name));
            assert_eq!(format!("{settings:?}"), own, "the default of {}", key.name);
        }
    }

    #[test]
    fn defaults_of_the_tables_are_those_that_hold() {
        check_defaults(NameNodeConfig::KEYS);
        check_defaults(AuditConfig::KEYS);
        check_defaults(EncryptionConfig::KEYS);
        check_defaults(DataNodeConfig::KEYS);
        check_defaults(GroupsConfig::KEYS);
        check_defaults(LdapConfig::KEYS);
        check_defaults(TraceConfig::KEYS);
        check_defaults(QuorumKeys::KEYS);
        check_defaults(HttpsKeys::KEYS);
        check_defaults(SecurityKeys::KEYS);
        check_defaults(ClientConfig::KEYS);
        check_defaults(WebHdfsKeys::KEYS);
        check_defaults(GatewayKeys::KEYS);
        check_defaults(RangerKeys::KEYS);
    }

    /// Reads what is asked for with Kerberos only, in builds that have it.
    fn with_kerberos(conf: &crate::config::Configuration) {
        if !cairn_kerberos::IS_BUILT_IN {
            return;
        }
        let keytab = tempfile::NamedTempFile::new().unwrap();
        let path = keytab.path().to_str().unwrap();
        let mut conf = conf.clone();
        for (key, value) in [
            ("hadoop.security.authentication", "kerberos"),
            ("dfs.namenode.kerberos.principal", "nn/_HOST@R"),
            ("dfs.namenode.keytab.file", path),
            ("dfs.datanode.kerberos.principal", "dn/_HOST@R"),
            ("dfs.datanode.keytab.file", path),
            ("cairn.security.open-datanodes", "true"),
            ("cairn.quorum.tls", "true"),
            ("cairn.https.authority", "/ca"),
            ("hadoop.http.authentication.kerberos.principal", "HTTP/_HOST@R"),
            ("hadoop.http.authentication.kerberos.keytab", path),
            ("httpfs.authentication.type", "kerberos"),
            ("httpfs.hadoop.authentication.type", "kerberos"),
            ("httpfs.authentication.kerberos.principal", "HTTP/_HOST@R"),
            ("httpfs.authentication.kerberos.keytab", path),
            ("httpfs.hadoop.authentication.kerberos.principal", "httpfs/_HOST@R"),
            ("httpfs.hadoop.authentication.kerberos.keytab", path),
        ] {
            conf.set(key, value);
        }
        crate::config::gateway::read(&conf).unwrap();
        crate::config::namenode::read(&conf).unwrap();
        conf.set("dfs.web.authentication.kerberos.principal", "HTTP/_HOST@R");
        conf.set("dfs.web.authentication.kerberos.keytab", path);
        crate::config::datanode::read(&conf).unwrap();
    }

    #[test]
    fn every_key_of_a_table_is_read_by_its_role() {
        let mut conf = crate::config::Configuration::default();
        // What stands for the names of a cluster is in capitals.
        let is_whole = |name: &str| !name.ends_with("NAMESERVICE") && !name.ends_with(".ID");
        for row in rows().iter().filter(|row| is_whole(row.name)) {
            conf.set(row.name, "");
        }
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:9000");
        // It is asked for with this one only.
        conf.set("cairn.trace.sample", "1");
        conf.set("dfs.block.replicator.classname", "BlockPlacementPolicyWithUpgradeDomain");
        conf.set(groups::MAPPING, groups::BY_LDAP);
        conf.set("hadoop.security.group.mapping.ldap.url", "ldap://127.0.0.1");
        crate::config::namenode::read(&conf).unwrap();
        crate::config::datanode::read(&conf).unwrap();
        crate::config::trace::read(&conf).unwrap();
        crate::config::client::read(&conf).unwrap();
        crate::config::gateway::read(&conf).unwrap();
        // What is asked for where it is wanted; a copy remembers for all who has asked.
        let mut secure = conf.clone();
        for (key, value) in [
            ("dfs.nameservices", "ns"),
            ("dfs.ha.namenodes.ns", "nn1"),
            ("dfs.ha.namenode.id", "nn1"),
            ("dfs.namenode.rpc-address.ns.nn1", "127.0.0.1:8020"),
            ("cairn.quorum.address.ns.nn1", "127.0.0.1:8021"),
            ("cairn.quorum.key-file", "/k"),
            ("dfs.http.policy", "HTTP_AND_HTTPS"),
            ("cairn.https.certificate", "/c"),
            ("cairn.https.key", "/k"),
            (ranger::PROVIDER, ranger::BY_RANGER),
            ("ranger.plugin.hdfs.policy.rest.url", "http://a:6080"),
            ("ranger.plugin.hdfs.service.name", "s"),
            ("ranger.plugin.hdfs.policy.cache.dir", "/c"),
        ] {
            secure.set(key, value);
        }
        crate::config::namenode::read(&secure).unwrap();
        crate::config::datanode::read(&secure).unwrap();
        // Whether the system trusts anybody is another matter.
        let _ = crate::config::https::authority(&secure);
        with_kerberos(&secure);
        if !cairn_kerberos::IS_BUILT_IN {
            let of_kerberos: Vec<&str> = SecurityKeys::KEYS
                .iter()
                .filter(|key| key.set.is_none())
                .map(|key| key.name)
                .collect();
            let is_one = |key: &String| {
                of_kerberos.contains(&key.as_str())
                    || key.starts_with("httpfs.") && key.contains("kerberos")
            };
            let left = conf.unasked();
            assert!(left.iter().all(is_one), "{left:?}");
            return;
        }
        assert_eq!(conf.unasked(), Vec::<String>::new());
    }
}
