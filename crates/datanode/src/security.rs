//! Who may speak to a DataNode's RPC port, where nobody is believed.

use cairn_net::rpc_client::SharedCredentials;
use cairn_net::rpc_server::{Authentication, UserInfo};
use cairn_security::gssapi::Acceptor;
use cairn_security::server::Offers;
use cairn_security::{KerberosName, NameRules};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;

/// What a DataNode needs to know of Kerberos.
#[derive(Clone, Debug)]
pub struct SecurityConfig {
    /// How clients show who they are. Keys `dfs.datanode.kerberos.principal`, `hadoop.rpc.protection`.
    pub offers: Offers,
    /// Which users principals stand for. Keys `hadoop.security.auth_to_local`, `hadoop.security.auth_to_local.mechanism`.
    pub rules: NameRules,
    /// Who is another DataNode; with `_HOST` that of any host. Key `dfs.datanode.kerberos.principal`.
    pub datanode_principal: String,
    /// What shows other DataNodes who this one is.
    pub peers: SharedCredentials,
    /// Makes a security context for the DataNode's principal. The binary gives it.
    pub acceptor: Acceptor,
    /// The NameNode may issue no block tokens. Key `cairn.security.open-datanodes`.
    pub may_be_open: bool,
}

impl SecurityConfig {
    /// Refuses whoever is no DataNode.
    ///
    /// Source: Hadoop 3.5.0 `InterDatanodeProtocol`, whose callers are looked at only with
    /// `hadoop.security.authorization`.
    pub(crate) fn check_datanode(&self, user: &UserInfo) -> Result<(), RemoteException> {
        let principal = match &user.by {
            Authentication::Kerberos { principal, .. } if user.real.is_none() => Some(principal),
            _ => None,
        };
        let is_one = principal
            .is_some_and(|principal| KerberosName::is_one_of(principal, &self.datanode_principal));
        if is_one {
            return Ok(());
        }
        let (name, only) = (&user.effective, &self.datanode_principal);
        let text =
            format!("User {name} is not authorized: this service is only accessible by {only}");
        Err(RemoteException::new(class::AUTHORIZATION, text))
    }
}
