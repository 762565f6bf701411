//! Settings of the roles from Hadoop's keys ([`namenode`], [`datanode`], [`client`]).

pub mod datanode;
mod encryption;
pub mod gateway;
pub mod groups;
pub mod https;
mod memory;
pub mod namenode;
pub mod quorum;
mod ranger;
pub mod security;
pub mod tables;
mod unsupported;
pub mod webhdfs;

pub use cairn_conf::nameservice::NameNodes;
pub use cairn_conf::{Configuration, client, folder_from_environment, trace, value, xml};

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_access::groups::GroupsConfig;
    use std::time::Duration;

    #[test]
    fn both_roles_believe_groups_as_long_as_keys_say() {
        let mut conf = Configuration::default();
        conf.set("fs.defaultFS", "hdfs://127.0.0.1:9000");
        let read = |conf: &Configuration| {
            let groups = datanode::read(conf).unwrap().groups;
            assert_eq!(groups, namenode::read(conf).unwrap().groups);
            groups
        };
        assert_eq!(read(&conf), GroupsConfig::default());
        for (key, value) in [
            ("hadoop.user.group.static.mapping.overrides", "ann=a,b"),
            ("hadoop.security.groups.cache.secs", "7"),
            ("hadoop.security.groups.negative-cache.secs", "8"),
            ("hadoop.security.groups.cache.warn.after.ms", "9"),
        ] {
            conf.set(key, value);
        }
        let expected = GroupsConfig {
            fixed: vec![("ann".into(), vec!["a".into(), "b".into()])],
            believed_for: Duration::from_secs(7),
            failure_believed_for: Duration::from_secs(8),
            warn_after: Duration::from_millis(9),
            ldap: None,
        };
        assert_eq!(read(&conf), expected);
    }
}
