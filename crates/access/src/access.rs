//! Who may speak to a server by RPC, and for whom.

use std::net::IpAddr;

use cairn_wire::RemoteException;
use cairn_wire::exception::class;

use crate::groups::Groups;
use crate::proxy_users::ProxyUsers;
use crate::service_policy::ServicePolicy;
use cairn_net::rpc_server::{Call, UserInfo};

/// What a server asks of connections.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who may act for whom.
    pub proxy_users: ProxyUsers,
    /// Who may use which protocol; `None` where all may use all.
    pub policy: Option<ServicePolicy>,
}

impl Access {
    /// From the keys of proxy users, among others, and those of a policy, where there is to be one. Looks names of hosts
    /// up, so it may wait for the network. Fails as [`ServicePolicy::read`].
    pub fn read(
        proxy_users: &[(String, String)],
        policy: Option<&[(String, String)]>,
    ) -> Result<Access, String> {
        let policy = policy.map(ServicePolicy::read).transpose()?;
        Ok(Access { proxy_users: ProxyUsers::read(proxy_users), policy })
    }

    /// Whether a connection from an address may speak a protocol for a user; for
    /// [`Service::authorize`](cairn_net::rpc_server::Service::authorize).
    ///
    /// Source: Hadoop 3.5.0 `Server.Connection#authorizeConnection`.
    pub async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        from: IpAddr,
        groups: &Groups,
    ) -> Result<(), RemoteException> {
        if let Some(real) = user.proxy() {
            let own = groups.of(&user.effective).await;
            let checked = self.proxy_users.check(real, &user.effective, &own, from);
            checked.map_err(|message| RemoteException::new(class::AUTHORIZATION, message))?;
        }
        match &self.policy {
            Some(policy) => policy.check(user, protocol, from, groups).await,
            None => Ok(()),
        }
    }

    /// Whether a call may be made that is of another protocol than its connection, which was let in.
    ///
    /// Deviation: Hadoop believes the connection, so that who may use one protocol may use all.
    pub async fn authorize_call(
        &self,
        call: &Call,
        groups: &Groups,
    ) -> Result<(), RemoteException> {
        match &self.policy {
            Some(policy) if !call.is_of_its_connection() => {
                policy.check(&call.user, Some(&call.protocol), call.peer.ip(), groups).await
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::GroupsConfig;

    const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
    const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";

    fn pairs(keys: &[(&str, &str)]) -> Vec<(String, String)> {
        keys.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect()
    }

    fn groups() -> Groups {
        let fixed = ["ann", "bob"].map(|user| (user.to_string(), vec!["staff".to_string()]));
        Groups::new(&GroupsConfig { fixed: fixed.to_vec(), ..GroupsConfig::default() })
    }

    #[tokio::test]
    async fn who_acts_for_others_must_be_let_do_so_before_the_policy_counts() {
        let proxies = pairs(&[
            ("hadoop.proxyuser.carol.groups", "staff"),
            ("hadoop.proxyuser.carol.hosts", "*"),
        ]);
        let policy = pairs(&[("security.client.protocol.acl", "ann")]);
        let check = async |policy: Option<&[(String, String)]>, user: &str, real: &str| {
            let access = Access::read(&proxies, policy).unwrap();
            let user = UserInfo { real: Some(real.to_string()), ..UserInfo::simple(user) };
            let from = IpAddr::from([127, 0, 0, 1]);
            let checked = access.authorize(&user, Some(CLIENT), from, &groups()).await;
            checked.map_err(|error| error.message)
        };
        let unlisted = Err("User: dave is not allowed to impersonate bob".to_string());
        assert_eq!(check(None, "bob", "dave").await, unlisted);
        assert_eq!(check(None, "bob", "carol").await, Ok(()));
        assert_eq!(check(Some(&policy), "bob", "dave").await, unlisted);
        assert_eq!(check(Some(&policy), "ann", "carol").await, Ok(()));
        let denied = check(Some(&policy), "bob", "carol").await.unwrap_err();
        assert!(
            denied.starts_with("User bob (auth:PROXY) via carol (auth:SIMPLE) is not"),
            "{denied}"
        );
    }

    #[tokio::test]
    async fn a_call_of_another_protocol_than_its_connections_is_checked() {
        let policy = pairs(&[("security.datanode.protocol.acl", "ann")]);
        let call = |user: &str, connection: &str| Call {
            protocol: DATANODE.to_string().into(),
            method: "registerDatanode".to_string().into(),
            version: 1,
            user: UserInfo::simple(user).into(),
            client_id: [0; 16],
            call_id: 1,
            retry_count: 0,
            peer: "127.0.0.1:1".parse().unwrap(),
            body: Default::default(),
            connection_protocol: connection.into(),
            caller_context: None,
            carrier: "rpc",
            state: None,
        };
        let access = Access::read(&[], Some(&policy)).unwrap();
        assert!(access.authorize_call(&call("bob", DATANODE), &groups()).await.is_ok());
        assert!(access.authorize_call(&call("ann", CLIENT), &groups()).await.is_ok());
        let refused = access.authorize_call(&call("bob", CLIENT), &groups()).await.unwrap_err();
        assert!(refused.message.ends_with("denied by configured ACL"), "{refused}");
        let open = Access::read(&[], None).unwrap();
        assert!(open.authorize_call(&call("bob", CLIENT), &groups()).await.is_ok());
    }
}
