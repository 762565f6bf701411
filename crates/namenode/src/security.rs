//! Who may connect to a NameNode that believes nobody's word.

use std::time::Duration;

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
            Authentication::Kerberos { .. } | Authentication::Token | Authentication::Block(_) => {
                None
            }
        };
        let Some(protocol) = protocol.filter(|name| [DATANODE, LIFELINE].contains(name)) else {
            return Ok(());
        };
        let is_datanode = |name: &String| KerberosName::is_one_of(name, &self.datanode_principal);
        if principal.is_some_and(is_datanode) {
            return Ok(());
        }
        let (user, by, only) = (&user.effective, user.by.name(), &self.datanode_principal);
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
    use std::sync::Arc;

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
        };
        let client = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
        let any = config("dn/_HOST@R");
        let may = |config: &SecurityConfig, user: &UserInfo, protocol: &str| {
            config.check(user, Some(protocol)).is_ok()
        };
        let token = UserInfo { by: Authentication::Token, ..kerberos("ann@R") };
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
    }
}
