//! What serves a member's port, whoever leads: calls go to the NameNode while there is one.

use crate::lead::Lead;
use crate::protocol::datanode::following;
use crate::protocol::{DATANODE, LIFELINE, Protocols, logged};
use crate::refusal::{Answer, Refusal};
use crate::standing::Standing;
use crate::store::Identity;
use cairn_net::access::Access;
use cairn_net::groups::Groups;
use cairn_net::held::{held_read, held_write};
use cairn_net::rpc_server::{Call, Service, UserInfo};
use cairn_wire::RemoteException;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use tokio::sync::watch;

/// The NameNode of a member that leads.
#[derive(Clone)]
pub(super) struct Leading {
    pub service: Arc<Protocols>,
    pub lead: Arc<Lead>,
}

/// See the module.
pub(super) struct Front {
    leading: RwLock<Option<Leading>>,
    /// Whose namespace it has, if it has one.
    identity: RwLock<Option<Identity>>,
    standing: watch::Receiver<Standing>,
    access: Access,
    groups: Groups,
}

impl Front {
    pub fn new(standing: watch::Receiver<Standing>, access: Access, groups: Groups) -> Front {
        Front { leading: RwLock::default(), identity: RwLock::default(), standing, access, groups }
    }

    /// From now on calls go there.
    pub fn lead(&self, leading: Option<Leading>) {
        *held_write(&self.leading) = leading;
    }

    /// From now on that is the namespace that DataNodes are told of.
    pub fn know(&self, identity: Option<Identity>) {
        *held_write(&self.identity) = identity;
    }

    fn leading(&self) -> Option<Leading> {
        held_read(&self.leading).clone()
    }

    /// Answers a call while another member leads, or none.
    async fn follow(&self, call: &Call) -> Answer {
        let standing = self.standing.borrow().clone();
        let identity = held_read(&self.identity).clone();
        match (call.protocol.as_str(), identity) {
            (DATANODE, Some(identity)) => following::handle(&identity, &standing, call),
            (LIFELINE, Some(_)) => following::handle_lifeline(call),
            _ => Err(Refusal::standby(&standing)),
        }
    }
}

impl Service for Front {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let Some(Leading { service, lead }) = self.leading() else {
            let answer = self.follow(&call).await;
            return logged(&call, answer);
        };
        let until_lost = lead.lost();
        tokio::select! {
            answer = service.call(call) => answer,
            // Whatever it waits for, somebody else decides of it now.
            () = until_lost => Err(Refusal::standby(&self.standing.borrow().clone()).0),
        }
    }

    fn call_now(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        self.leading()?.service.call_now(call)
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        match self.leading() {
            Some(Leading { service, .. }) => service.authorize(user, protocol, peer).await,
            None => self.access.authorize(user, protocol, peer.ip(), &self.groups).await,
        }
    }
}
