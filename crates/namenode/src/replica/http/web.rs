//! WebHDFS at a member: its calls go through the member's front. Which DataNode a client is sent to the leader says, who
//! knows all of them.

use crate::http_nodes;
use crate::relay::{Leads, Relay};
use crate::replica::front::Front;
use crate::standing::Standing;
use crate::web::{HttpDataNode, Parts};
use cairn_net::Boxed;
use cairn_net::rpc_server::{Call, LocalService, UserInfo};
use cairn_security::token::Token;
use cairn_wire::RemoteException;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long it is waited for this member's NameNode to serve, and between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Gives each call an identity: one that was under way when its leader died is repeated at the next one, which knows by
/// that whether it was carried out.
struct Numbered {
    service: Arc<dyn LocalService>,
    client_id: [u8; 16],
    next: AtomicU32,
}

impl LocalService for Numbered {
    fn call_here(&self, call: Call) -> Boxed<'_, Result<Vec<u8>, RemoteException>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32;
        let (client_id, call_id) = (self.client_id, number as i32);
        self.service.call_here(Call { client_id, call_id, retry_count: 0, ..call })
    }

    fn user_of_token<'a>(
        &'a self,
        token: &'a Token,
    ) -> Boxed<'a, Result<UserInfo, RemoteException>> {
        self.service.user_of_token(token)
    }
}

/// Chooses DataNodes to which clients are sent, whoever leads.
struct Chooses {
    front: Arc<Front>,
    relay: Option<Arc<Relay>>,
    standing: watch::Receiver<Standing>,
}

impl Chooses {
    async fn choose(
        &self,
        client: IpAddr,
        excluded: &[String],
        by_tls: bool,
    ) -> Option<HttpDataNode> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(leading) = self.front.leading() {
                return http_nodes::choose(&leading.service.0, client, excluded, by_tls);
            }
            let relay = self.relay.as_ref()?;
            match relay.choose(client, excluded, by_tls, self.standing.clone()).await {
                Ok(chosen) => return chosen,
                // Its NameNode is about to serve.
                Err(Leads) if Instant::now() < until => sleep(PAUSE).await,
                Err(Leads) => return None,
            }
        }
    }
}

/// What serves WebHDFS is made of these.
pub(super) fn parts(
    front: &Arc<Front>,
    rpc_addr: SocketAddr,
    relay: Option<Arc<Relay>>,
    standing: watch::Receiver<Standing>,
) -> Result<Parts, getrandom::Error> {
    let mut client_id = [0; 16];
    getrandom::fill(&mut client_id)?;
    let service = Numbered { service: front.clone(), client_id, next: AtomicU32::new(0) };
    let chooses = Arc::new(Chooses { front: Arc::clone(front), relay, standing });
    let choose = move |client, excluded: Vec<String>, by_tls| {
        let chooses = Arc::clone(&chooses);
        let chosen = async move { chooses.choose(client, &excluded, by_tls).await };
        Box::pin(chosen) as Boxed<'static, _>
    };
    Ok(Parts { service: Arc::new(service), rpc_addr, choose: Arc::new(choose) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// Answers with who calls it.
    struct Tells;

    impl LocalService for Tells {
        fn call_here(&self, call: Call) -> Boxed<'_, Result<Vec<u8>, RemoteException>> {
            let told = [&call.client_id[..], &call.call_id.to_be_bytes()].concat();
            Box::pin(async { Ok(told) })
        }

        fn user_of_token<'a>(
            &'a self,
            _: &'a Token,
        ) -> Boxed<'a, Result<UserInfo, RemoteException>> {
            Box::pin(async { Ok(UserInfo::simple("ann")) })
        }
    }

    #[tokio::test]
    async fn each_call_is_known_again_and_told_from_others() {
        let next = AtomicU32::new(i32::MAX as u32);
        let numbered = Numbered { service: Arc::new(Tells), client_id: [7; 16], next };
        let call = || Call {
            protocol: "p".to_string().into(),
            method: "mkdirs".to_string().into(),
            version: 1,
            user: Arc::new(UserInfo::simple("ann")),
            client_id: [0; 16],
            call_id: 0,
            retry_count: -1,
            peer: ([127, 0, 0, 1], 1).into(),
            body: Bytes::new(),
            connection_protocol: "p".into(),
            caller_context: None,
            carrier: "webhdfs",
            state: None,
        };
        // Numbers below 0 are those of nobody.
        for number in [i32::MAX, 0, 1] {
            let told = numbered.call_here(call()).await.unwrap();
            assert_eq!(told, [&[7; 16][..], &number.to_be_bytes()].concat());
        }
    }
}
