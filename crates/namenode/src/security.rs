//! Who may connect to a NameNode that believes nobody's word.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cairn_net::rpc_client::SharedCredentials;
use cairn_net::rpc_server::{Authentication, UserInfo};
use cairn_security::gssapi::Acceptor;
use cairn_security::server::Offers;
use cairn_security::{KerberosName, NameRules};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;

/// The protocol of DataNodes.
pub(crate) const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
/// That of their signs of life.
pub(crate) const LIFELINE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol";

/// The protocol by which members of a quorum hand calls on: in it they say for whom others call, and are believed.
pub const HANDED_ON: &str = "cairn.HandedOnProtocol";

/// How the members of a quorum show each other who they are.
#[derive(Clone)]
pub struct MemberSecurity {
    /// Who may hand calls on: the principals of the members; with `_HOST` that of any host.
    pub principals: Vec<String>,
    /// What shows the member whose RPC is at a host, as the configuration names it, who this one is.
    pub shows: ShowsHost,
}

/// What shows whoever is at a host who this process is.
pub type ShowsHost = Arc<dyn Fn(&str) -> SharedCredentials + Send + Sync>;

impl fmt::Debug for MemberSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("MemberSecurity");
        shown.field("principals", &self.principals).finish_non_exhaustive()
    }
}

/// What a NameNode needs to know of Kerberos.
#[derive(Clone, Debug)]
pub struct SecurityConfig {
    /// How clients show who they are. Keys `dfs.namenode.kerberos.principal`, `hadoop.rpc.protection`.
    pub offers: Offers,
    /// Which users principals stand for. Keys `hadoop.security.auth_to_local`, `hadoop.security.auth_to_local.mechanism`.
    pub rules: NameRules,
    /// Who may be a DataNode; with `_HOST` that of any host. Key `dfs.datanode.kerberos.principal`.
    pub datanode_principal: String,
    /// How long a delegation token can last. Key `dfs.namenode.delegation.token.max-lifetime`.
    pub token_life: Duration,
    /// How long one lasts without being renewed. Key `dfs.namenode.delegation.token.renew-interval`.
    pub token_renewal: Duration,
    /// How long new ones are proven by the same master key. Key `dfs.namenode.delegation.key.update-interval`.
    pub token_key_interval: Duration,
    /// Makes a security context for the NameNode's principal. The binary gives it.
    pub acceptor: Acceptor,
    /// What a member of a quorum needs.
    pub members: Option<MemberSecurity>,
}

impl SecurityConfig {
    /// Whether a connection may speak a protocol for a user, before access lists are asked.
    ///
    /// Source: Hadoop 3.5.0 `ServiceAuthorizationManager#authorize`, which looks at the principals of DataNodes only with
    /// `hadoop.security.authorization`.
    pub(crate) fn check(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
    ) -> Result<(), RemoteException> {
        let principal = match &user.by {
            Authentication::Simple => {
                let text = "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]";
                return Err(RemoteException::new(class::ACCESS_CONTROL, text));
            }
            Authentication::Kerberos { principal, .. } if user.real.is_none() => Some(principal),
            Authentication::Kerberos { .. }
            | Authentication::Token(_)
            | Authentication::Block(_) => None,
        };
        let (protocol, only) = match protocol {
            Some(name @ (DATANODE | LIFELINE)) => {
                (name, std::slice::from_ref(&self.datanode_principal))
            }
            Some(name @ HANDED_ON) => {
                (name, self.members.as_ref().map_or(&[][..], |members| &members.principals))
            }
            _ => return Ok(()),
        };
        let is_allowed = |name: &String| only.iter().any(|one| KerberosName::is_one_of(name, one));
        if principal.is_some_and(is_allowed) {
            return Ok(());
        }
        let (user, by, only) = (&user.effective, user.by.name(), only.join(", "));
        Err(RemoteException::new(
            class::AUTHORIZATION,
            format!(
                "User {user} (auth:{by}) is not authorized for protocol interface {protocol}: this service is only accessible by {only}"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_security::Protection;
    use cairn_security::SaslError;
    use cairn_security::client::ShownToken;
    use cairn_security::digest_md5::Secret;

    fn kerberos(principal: &str) -> UserInfo {
        let (effective, principal) = (principal.to_owned(), principal.to_owned());
        let by = Authentication::Kerberos { effective, principal };
        UserInfo { effective: "somebody".into(), real: None, by }
    }

    #[test]
    fn who_may_connect_and_who_may_be_a_datanode() {
        let config = |datanode_principal: &str| SecurityConfig {
            offers: Offers::Secure {
                service: "nn".into(),
                host: "host".into(),
                protections: Protection::ALL.to_vec(),
            },
            rules: NameRules::parse("", "R", false).unwrap(),
            datanode_principal: datanode_principal.into(),
            token_life: Duration::from_secs(9),
            token_renewal: Duration::from_secs(3),
            token_key_interval: Duration::from_secs(5),
            acceptor: Acceptor(Arc::new(|| Err(SaslError::new("none")))),
            members: None,
        };
        let client = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
        let any = config("dn/_HOST@R");
        let may = |config: &SecurityConfig, user: &UserInfo, protocol: &str| {
            config.check(user, Some(protocol)).is_ok()
        };
        let token = UserInfo { by: Authentication::Token(None), ..kerberos("ann@R") };
        assert!(!may(&any, &UserInfo::simple("hdfs"), client));
        assert!(may(&any, &kerberos("ann@R"), client) && may(&any, &token, client));
        for protocol in [DATANODE, LIFELINE] {
            assert!(may(&any, &kerberos("dn/one@R"), protocol));
            for other in ["ann@R", "dn@R", "nn/one@R", "dn/one@OTHER"] {
                assert!(!may(&any, &kerberos(other), protocol), "{other}");
            }
            assert!(!may(&any, &token, protocol));
            let acts = UserInfo { real: Some("dn".into()), ..kerberos("dn/one@R") };
            assert!(!may(&any, &acts, protocol));
            assert!(!may(&config("dn/two@R"), &kerberos("dn/one@R"), protocol));
        }
        // Nobody hands calls on where there are no members, and members only where there are.
        assert!(!may(&any, &kerberos("nn/one@R"), HANDED_ON));
        let secret = Secret { identifier: Vec::new(), password: Vec::new() };
        let none = SharedCredentials(Arc::new(ShownToken(secret)));
        let principals = vec!["nn/one@R".to_string(), "nn/two@R".to_string()];
        let members = MemberSecurity { principals, shows: Arc::new(move |_| none.clone()) };
        let member = SecurityConfig { members: Some(members), ..config("dn/_HOST@R") };
        assert!(may(&member, &kerberos("nn/one@R"), HANDED_ON));
        assert!(may(&member, &kerberos("nn/two@R"), HANDED_ON));
        for other in ["nn/three@R", "nn/one@OTHER", "nn@R", "dn/one@R", "ann@R"] {
            assert!(!may(&member, &kerberos(other), HANDED_ON), "{other}");
        }
        let acts = UserInfo { real: Some("nn".into()), ..kerberos("nn/one@R") };
        let token = UserInfo { by: Authentication::Token(None), ..kerberos("nn/one@R") };
        assert!(!may(&member, &acts, HANDED_ON) && !may(&member, &token, HANDED_ON));
        assert!(!may(&member, &UserInfo::simple("nn"), HANDED_ON));
    }
}
