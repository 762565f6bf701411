//! The tables of keys of all roles, side by side, and the page of the book that is made of them.

use cairn_access::groups::GroupsConfig;
use cairn_access::groups::ldap::LdapConfig;
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
`hdfs dfsadmin -reconfig` or `cairn admin reconfig`. Keys of clients, of Kerberos, of HTTPS \
and of quorums are not here yet; [Keys](operations/keys.md) has those of Cairn.
";

/// One key as it is shown.
pub struct Row {
    /// Who reads it.
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
    use crate::config::groups;
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
    }

    #[test]
    fn every_key_of_a_table_is_read_by_its_role() {
        let mut conf = crate::config::Configuration::default();
        for row in rows() {
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
        assert_eq!(conf.unasked(), Vec::<String>::new());
    }
}
