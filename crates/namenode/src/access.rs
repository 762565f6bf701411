//! Who may speak to the NameNode, and the keys that say so, read again.

use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};

use cairn_access::access::Access;
use cairn_access::proxy_users::ProxyUsers;
use cairn_access::service_policy::ServicePolicy;
use cairn_net::http::Admins;
use cairn_net::rpc_server::{Call, UserInfo};
use cairn_process::held::held;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;

use crate::config::NameNodeConfig;
use crate::node::NameNode;
use crate::refusal::Refusal;

impl NameNode {
    fn access(&self) -> MutexGuard<'_, Arc<Access>> {
        held(&self.access)
    }

    /// Whether a connection from an address may speak a protocol for a user.
    pub(crate) async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        from: IpAddr,
    ) -> Result<(), RemoteException> {
        if let Some(security) = &self.config.security {
            security.check(user, protocol)?;
        }
        let access = Arc::clone(&self.access());
        access.authorize(user, protocol, from, &self.groups).await
    }

    /// Whether a call may be made over its connection.
    pub(crate) async fn authorize_call(&self, call: &Call) -> Result<(), RemoteException> {
        if call.is_of_its_connection() {
            return Ok(());
        }
        if let Some(security) = &self.config.security {
            security.check(&call.user, Some(&call.protocol))?;
        }
        let access = Arc::clone(&self.access());
        access.authorize_call(call, &self.groups).await
    }

    /// Who may administer the NameNode by its pages.
    pub(crate) fn admins(self: &Arc<NameNode>) -> Admins {
        let node = Arc::clone(self);
        Arc::new(move |user| {
            let node = Arc::clone(&node);
            Box::pin(async move {
                let caller = node.caller_named(user).await;
                node.require_superuser(&caller, "logLevel").is_ok()
            })
        })
    }

    /// Reads the rules of proxy users again, if there are configuration files. Connections stay.
    ///
    /// Source: Hadoop 3.5.0 `ProxyUsers#refreshSuperUserGroupsConfiguration`.
    pub async fn refresh_proxy_users(&self) -> Result<(), Refusal> {
        let read = |config: NameNodeConfig| Ok(ProxyUsers::read(&config.properties));
        if let Some(proxy_users) = self.read_again(read).await? {
            let mut access = self.access();
            *access = Arc::new(Access { proxy_users, ..Access::clone(&access) });
        }
        Ok(())
    }

    /// Reads the access lists of services again, if they count and there are configuration files. Connections stay.
    ///
    /// Source: Hadoop 3.5.0 `NameNodeRpcServer#refreshServiceAcl`.
    pub async fn refresh_service_policy(&self) -> Result<(), Refusal> {
        if self.config.service_policy.is_none() {
            let message = "Service Level Authorization not enabled!";
            return Err(Refusal::new(class::AUTHORIZATION, message));
        }
        let read = |config: NameNodeConfig| {
            // Deviation: Hadoop reads them even so.
            let off =
                "hadoop.security.authorization is switched off in the files: that takes a restart";
            let texts = config.service_policy.ok_or_else(|| Refusal::io(off))?;
            let policy = ServicePolicy::read(&texts);
            policy.map_err(|error| Refusal::new(class::ILLEGAL_ARGUMENT, error))
        };
        if let Some(policy) = self.read_again(read).await? {
            let mut access = self.access();
            *access = Arc::new(Access { policy: Some(policy), ..Access::clone(&access) });
        }
        Ok(())
    }

    /// What the configuration files say now; `None` where there are none.
    async fn read_again<T: Send + 'static>(
        &self,
        read: impl FnOnce(NameNodeConfig) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Option<T>, Refusal> {
        let Some(reload) = self.config.reload.clone() else { return Ok(None) };
        let read = move || {
            let (config, _) = reload.read().map_err(Refusal::io)?;
            read(config).map(Some)
        };
        let done = tokio::task::spawn_blocking(read).await;
        done.map_err(|_| Refusal::io("the refresh was interrupted"))?
    }
}
