//! Service level authorization: which users and machines may use which protocol.
//!
//! Source: Hadoop 3.5.0 `ServiceAuthorizationManager`, `HDFSPolicyProvider`, `AccessControlList`.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use cairn_wire::RemoteException;
use cairn_wire::exception::class;

use crate::groups::Groups;
use crate::machine_list::{MachineList, names};
use cairn_net::rpc_server::UserInfo;

/// What the keys of each protocol begin with, and its Java name.
const SERVICES: [(&str, &str); 16] = [
    ("security.client.protocol", "org.apache.hadoop.hdfs.protocol.ClientProtocol"),
    ("security.client.datanode.protocol", "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"),
    ("security.datanode.protocol", "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol"),
    (
        "security.inter.datanode.protocol",
        "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol",
    ),
    ("security.namenode.protocol", "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol"),
    (
        "security.qjournal.service.protocol",
        "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol",
    ),
    (
        "security.interqjournal.service.protocol",
        "org.apache.hadoop.hdfs.qjournal.protocol.InterQJournalProtocol",
    ),
    ("security.ha.service.protocol", "org.apache.hadoop.ha.HAServiceProtocol"),
    ("security.zkfc.protocol", "org.apache.hadoop.ha.ZKFCProtocol"),
    (
        "security.refresh.policy.protocol",
        "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol",
    ),
    (
        "security.refresh.user.mappings.protocol",
        "org.apache.hadoop.security.RefreshUserMappingsProtocol",
    ),
    ("security.get.user.mappings.protocol", "org.apache.hadoop.tools.GetUserMappingsProtocol"),
    ("security.refresh.callqueue.protocol", "org.apache.hadoop.ipc.RefreshCallQueueProtocol"),
    ("security.refresh.generic.protocol", "org.apache.hadoop.ipc.GenericRefreshProtocol"),
    (
        "security.datanode.lifeline.protocol",
        "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol",
    ),
    (
        "security.reconfiguration.protocol",
        "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol",
    ),
];

/// What the keys begin with that hold where a protocol's own are not set.
const DEFAULT: &str = "security.service.authorization.default";

/// Who may use each protocol, by its Java name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePolicy(HashMap<&'static str, Service>);

/// Who may use one protocol: who is in both lists of the allowed and in none of the blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    users: AccessControlList,
    blocked_users: AccessControlList,
    hosts: MachineList,
    blocked_hosts: MachineList,
}

/// Users, by name or by group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AccessControlList {
    all: bool,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl AccessControlList {
    /// Users and groups with commas between, and a blank between both; `*` for everybody.
    fn read(text: &str) -> AccessControlList {
        let (users, groups) = text.split_once(' ').unwrap_or((text, ""));
        let is_star = |list: &str| list.trim() == "*";
        if is_star(users) || is_star(groups) {
            return AccessControlList { all: true, ..AccessControlList::default() };
        }
        let set = |list| names(list).map(str::to_string).collect();
        AccessControlList { all: false, users: set(users), groups: set(groups) }
    }

    /// Whether a user is in it; who acts for others is by his name behind a `~`.
    async fn includes(&self, user: &UserInfo, groups: &Groups) -> bool {
        if self.all || self.users.contains(&user.effective) {
            return true;
        }
        // They may have to be asked for.
        if !self.groups.is_empty() {
            let own = groups.of(&user.effective).await;
            if own.iter().any(|group| self.groups.contains(group)) {
                return true;
            }
        }
        user.real.as_ref().is_some_and(|real| self.users.contains(&format!("~{real}")))
    }
}

impl ServicePolicy {
    /// The policy among keys and their texts, in which blanks count. Without keys everybody may use everything. Looks
    /// names of hosts up, so it may wait for the network. Fails, with Hadoop's words, at a range of addresses that is none.
    pub fn read(properties: &[(String, String)]) -> Result<ServicePolicy, String> {
        let texts: HashMap<&str, &str> =
            properties.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let text = |service: &str, what: &str, otherwise: &'static str| {
            let of = |service: &str| texts.get(format!("{service}.{what}").as_str()).copied();
            of(service).or_else(|| of(DEFAULT)).unwrap_or(otherwise)
        };
        let hosts = |list: &str| match MachineList::read(list) {
            (hosts, wrong) if wrong.is_empty() => Ok(hosts),
            (_, wrong) => Err(wrong.join("; ")),
        };
        let mut services = HashMap::new();
        for (service, protocol) in SERVICES {
            let rule = Service {
                users: AccessControlList::read(text(service, "acl", "*")),
                blocked_users: AccessControlList::read(text(service, "acl.blocked", "")),
                hosts: hosts(text(service, "hosts", "*"))?,
                blocked_hosts: hosts(text(service, "hosts.blocked", ""))?,
            };
            services.insert(protocol, rule);
        }
        Ok(ServicePolicy(services))
    }

    /// Whether a connection from an address may speak a protocol for a user. The groups are asked for only where the
    /// policy names some.
    ///
    /// Source: Hadoop 3.5.0 `Server#authorize`, `ServiceAuthorizationManager#authorize`.
    pub async fn check(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        from: IpAddr,
        groups: &Groups,
    ) -> Result<(), RemoteException> {
        let refused = |message: String| Err(RemoteException::new(class::AUTHORIZATION, message));
        let Some(protocol) = protocol else {
            return refused("Null protocol not authorized".to_string());
        };
        let Some(service) = self.0.get(protocol) else {
            return refused(format!("Unknown protocol: {protocol}"));
        };
        if !service.users.includes(user, groups).await
            || service.blocked_users.includes(user, groups).await
        {
            let user = described(user);
            return refused(format!(
                "User {user} is not authorized for protocol interface {protocol}: denied by configured ACL"
            ));
        }
        let from = from.to_canonical();
        if !service.hosts.includes(from) || service.blocked_hosts.includes(from) {
            return refused(format!(
                "Host {from} is not authorized for protocol interface {protocol}"
            ));
        }
        Ok(())
    }
}

/// Source: Hadoop 3.5.0 `UserGroupInformation#toString`.
fn described(user: &UserInfo) -> String {
    let (name, by) = (&user.effective, user.by.name());
    match &user.real {
        Some(real) => format!("{name} (auth:PROXY) via {real} (auth:{by})"),
        None => format!("{name} (auth:{by})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::GroupsConfig;

    const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
    const GROUPS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";

    fn policy(keys: &[(&str, &str)]) -> Result<ServicePolicy, String> {
        let own = |(key, text): &(&str, &str)| (format!("security.{key}"), text.to_string());
        ServicePolicy::read(&keys.iter().map(own).collect::<Vec<_>>())
    }

    fn groups() -> Groups {
        let fixed = [
            ("ann", &["staff"][..]),
            ("bob", &["guests", "staff"]),
            ("carol", &[]),
            ("dave", &["guests"]),
        ];
        let fixed = fixed.map(|(user, groups)| {
            (user.to_string(), groups.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        Groups::new(&GroupsConfig { fixed: fixed.to_vec(), ..GroupsConfig::default() })
    }

    async fn check(
        policy: &ServicePolicy,
        user: &str,
        real: Option<&str>,
        protocol: Option<&str>,
        from: &str,
    ) -> Result<(), String> {
        let user = UserInfo { real: real.map(str::to_string), ..UserInfo::simple(user) };
        let checked = policy.check(&user, protocol, from.parse().unwrap(), &groups()).await;
        checked.map_err(|error| {
            assert_eq!(error.class, class::AUTHORIZATION);
            error.message
        })
    }

    /// Which of the users with known groups a list lets in.
    async fn let_in(keys: &[(&str, &str)]) -> Vec<&'static str> {
        let policy = policy(keys).unwrap();
        let mut found = Vec::new();
        for user in ["ann", "bob", "carol", "dave"] {
            match check(&policy, user, None, Some(CLIENT), "10.1.2.3").await {
                Ok(()) => found.push(user),
                Err(message) => assert_eq!(
                    message,
                    format!(
                        "User {user} (auth:SIMPLE) is not authorized for protocol interface \
                         {CLIENT}: denied by configured ACL"
                    )
                ),
            }
        }
        found
    }

    #[tokio::test]
    async fn lists_name_users_then_groups() {
        const ACL: &str = "client.protocol.acl";
        const ALL: [&str; 4] = ["ann", "bob", "carol", "dave"];
        for (text, users) in [
            ("ann", &["ann"][..]),
            (" ann , carol", &[]),
            ("ann,carol", &["ann", "carol"]),
            (" staff", &["ann", "bob"]),
            ("carol staff", &["ann", "bob", "carol"]),
            ("carol  guests, nobody ", &["bob", "carol", "dave"]),
            ("carol,dave nobody", &["carol", "dave"]),
            ("", &[]),
            (" ", &[]),
            ("staff", &[]),
            ("*", &ALL),
            (" * ", &ALL),
            ("ann *", &ALL),
            ("* nobody", &ALL),
            ("*,ann", &["ann"]),
        ] {
            assert_eq!(let_in(&[(ACL, text)]).await, users, "{text:?}");
        }
        assert_eq!(let_in(&[]).await, ALL);
    }

    #[tokio::test]
    async fn the_blocked_are_taken_off_and_defaults_hold_where_nothing_is_set() {
        const ACL: &str = "client.protocol.acl";
        const BLOCKED: &str = "client.protocol.acl.blocked";
        const DEFAULT: &str = "service.authorization.default.acl";
        const DEFAULT_BLOCKED: &str = "service.authorization.default.acl.blocked";
        assert_eq!(let_in(&[(BLOCKED, "carol guests")]).await, ["ann"]);
        assert_eq!(let_in(&[(ACL, " staff"), (BLOCKED, "bob")]).await, ["ann"]);
        assert_eq!(let_in(&[(BLOCKED, "*")]).await, [""; 0]);
        assert_eq!(let_in(&[(DEFAULT, "dave")]).await, ["dave"]);
        assert_eq!(let_in(&[(DEFAULT, "dave"), (ACL, "ann")]).await, ["ann"]);
        assert_eq!(let_in(&[(DEFAULT_BLOCKED, "dave"), (ACL, "*")]).await, ["ann", "bob", "carol"]);
        assert_eq!(let_in(&[(DEFAULT_BLOCKED, "dave"), (BLOCKED, "ann")]).await.len(), 3);
        // A key of another protocol.
        assert_eq!(let_in(&[("datanode.protocol.acl", "ann")]).await.len(), 4);
    }

    #[tokio::test]
    async fn hosts_count_besides() {
        let keys = [
            ("client.protocol.hosts", "10.0.0.0/8,127.0.0.1"),
            ("client.protocol.hosts.blocked", "10.6.0.0/16"),
            ("service.authorization.default.hosts", "127.0.0.1"),
            ("service.authorization.default.hosts.blocked", "10.7.7.7"),
        ];
        let policy = policy(&keys).unwrap();
        let check = async |protocol: &str, from: &str| {
            check(&policy, "ann", None, Some(protocol), from).await
        };
        let refused = |protocol: &str, from: &str| {
            Err(format!("Host {from} is not authorized for protocol interface {protocol}"))
        };
        for from in ["10.1.2.3", "127.0.0.1", "::ffff:127.0.0.1", "10.7.7.7"] {
            assert_eq!(check(CLIENT, from).await, Ok(()), "{from}");
        }
        for from in ["10.6.2.3", "11.1.2.3", "::1"] {
            assert_eq!(check(CLIENT, from).await, refused(CLIENT, from));
        }
        assert_eq!(check(GROUPS, "127.0.0.1").await, Ok(()));
        for from in ["10.1.2.3", "10.7.7.7"] {
            assert_eq!(check(GROUPS, from).await, refused(GROUPS, from));
        }
    }

    #[test]
    fn wrong_ranges_are_refused() {
        for (key, text, error) in [
            ("client.protocol.hosts", "10.0.0.0/33", "Value [33] not in range [0,32]"),
            ("zkfc.protocol.hosts.blocked", "10.0.0/8", "Could not parse [10.0.0/8]"),
        ] {
            assert_eq!(policy(&[(key, text)]), Err(error.to_string()));
        }
    }

    #[tokio::test]
    async fn a_connection_names_a_protocol_that_there_is() {
        let policy = policy(&[]).unwrap();
        let check =
            async |protocol: Option<&str>| check(&policy, "ann", None, protocol, "127.0.0.1").await;
        assert_eq!(check(None).await, Err("Null protocol not authorized".to_string()));
        assert_eq!(check(Some("")).await, Err("Unknown protocol: ".to_string()));
        assert_eq!(check(Some("a.B")).await, Err("Unknown protocol: a.B".to_string()));
        for (_, protocol) in SERVICES {
            assert_eq!(check(Some(protocol)).await, Ok(()));
        }
    }

    #[tokio::test]
    async fn who_is_acted_for_counts_or_who_acts_by_a_tilde() {
        let policy = policy(&[("client.protocol.acl", "ann,~carol")]).unwrap();
        let check = async |user: &str, real: Option<&str>| {
            check(&policy, user, real, Some(CLIENT), "127.0.0.1")
                .await
                .map_err(|error| error.split(" is not").next().unwrap_or_default().to_string())
        };
        assert_eq!(check("ann", Some("dave")).await, Ok(()));
        assert_eq!(check("bob", Some("carol")).await, Ok(()));
        assert_eq!(check("carol", None).await, Err("User carol (auth:SIMPLE)".to_string()));
        let refused = "User bob (auth:PROXY) via ann (auth:SIMPLE)";
        assert_eq!(check("bob", Some("ann")).await, Err(refused.to_string()));
    }
}
