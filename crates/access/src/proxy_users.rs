//! Who may act for whom: `hadoop.proxyuser.NAME.users`, `.groups` and `.hosts`.
//!
//! Source: Hadoop 3.5.0 `DefaultImpersonationProvider`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::machine_list::{MachineList, names};

/// What begins every key.
const PREFIX: &str = "hadoop.proxyuser.";

/// The rules of all users who may act for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyUsers(BTreeMap<String, Rule>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    /// `None` without a list of users or groups: then nobody can be acted for.
    whom: Option<Whom>,
    /// Where it may be done from.
    hosts: Option<MachineList>,
}

/// Users and groups that can be acted for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Whom {
    all: bool,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl ProxyUsers {
    /// The rules among all properties. Looks names of hosts up, so it may wait for the network.
    pub fn read(properties: &[(String, String)]) -> ProxyUsers {
        let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
        for (key, value) in properties {
            let Some((name, what)) =
                key.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('.'))
            else {
                continue;
            };
            if !["users", "groups", "hosts"].contains(&what) {
                continue;
            }
            let rule = rules.entry(name.to_string()).or_default();
            if what == "hosts" {
                let (hosts, wrong) = MachineList::read(value);
                for error in wrong {
                    tracing::warn!(key, error, "the hosts of a proxy user are wrong");
                }
                rule.hosts = Some(hosts);
                continue;
            }
            let whom = rule.whom.get_or_insert_default();
            whom.all |= value.trim() == "*";
            let into = if what == "users" { &mut whom.users } else { &mut whom.groups };
            into.extend(names(value).map(str::to_string));
        }
        ProxyUsers(rules)
    }

    /// Whether `real` may act for `user`, who is in `groups`, from an address; if not, what Hadoop says.
    pub fn check(
        &self,
        real: &str,
        user: &str,
        groups: &[String],
        from: IpAddr,
    ) -> Result<(), String> {
        let rule = self.0.get(real);
        let allowed = rule.and_then(|rule| rule.whom.as_ref()).is_some_and(|whom| {
            let is_member = || groups.iter().any(|group| whom.groups.contains(group));
            whom.all || whom.users.contains(user) || is_member()
        });
        if !allowed {
            return Err(format!("User: {real} is not allowed to impersonate {user}"));
        }
        let from = from.to_canonical();
        match rule.and_then(|rule| rule.hosts.as_ref()) {
            Some(hosts) if hosts.includes(from) => Ok(()),
            _ => Err(format!("Unauthorized connection for super-user: {real} from IP /{from}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lines: &[(&str, &str)]) -> ProxyUsers {
        let pairs: Vec<(String, String)> = lines
            .iter()
            .map(|(key, value)| (format!("{PREFIX}{key}"), value.to_string()))
            .collect();
        ProxyUsers::read(&pairs)
    }

    fn check(rules: &ProxyUsers, real: &str, user: &str, from: &str) -> Result<(), String> {
        let groups = if user == "ann" { vec!["staff".to_string()] } else { Vec::new() };
        rules.check(real, user, &groups, from.parse().unwrap())
    }

    #[test]
    fn users_groups_and_hosts_must_all_fit() {
        let rules = rules(&[
            ("carol.users", "ann, bob"),
            ("carol.hosts", "10.0.0.7,192.168.0.0/24"),
            ("dave.groups", "staff"),
            ("dave.hosts", "*"),
            ("a.b.users", "*"),
            ("a.b.hosts", "localhost"),
            ("erin.hosts", "*"),
            ("frank.users", "*"),
        ]);
        let unlisted = |real: &str, user: &str| {
            Err(format!("User: {real} is not allowed to impersonate {user}"))
        };
        let elsewhere = |real: &str, from: &str| {
            Err(format!("Unauthorized connection for super-user: {real} from IP /{from}"))
        };
        assert_eq!(check(&rules, "carol", "bob", "10.0.0.7"), Ok(()));
        assert_eq!(check(&rules, "carol", "ann", "192.168.0.255"), Ok(()));
        assert_eq!(check(&rules, "carol", "ann", "192.168.1.0"), elsewhere("carol", "192.168.1.0"));
        assert_eq!(check(&rules, "carol", "eve", "10.0.0.7"), unlisted("carol", "eve"));
        assert_eq!(check(&rules, "dave", "ann", "1.2.3.4"), Ok(()));
        assert_eq!(check(&rules, "dave", "bob", "1.2.3.4"), unlisted("dave", "bob"));
        assert_eq!(check(&rules, "a.b", "root", "127.0.0.1"), Ok(()));
        assert_eq!(check(&rules, "a.b", "root", "::ffff:127.0.0.1"), Ok(()));
        assert_eq!(check(&rules, "erin", "ann", "1.2.3.4"), unlisted("erin", "ann"));
        assert_eq!(check(&rules, "frank", "ann", "1.2.3.4"), elsewhere("frank", "1.2.3.4"));
        assert_eq!(check(&rules, "root", "ann", "127.0.0.1"), unlisted("root", "ann"));
    }
}
