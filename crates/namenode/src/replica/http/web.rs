//! WebHDFS at a member: its calls go through the member's front.

use crate::http_nodes;
use crate::replica::front::Front;
use crate::web::Parts;
use cairn_net::Boxed;
use cairn_net::rpc_server::{Call, LocalService, UserInfo};
use cairn_security::token::Token;
use cairn_wire::RemoteException;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gives each call an identity: one that was under way when its leader died is repeated at the next one, which knows by
/// that whether it was carried out.
struct Numbered {
    front: Arc<Front>,
    client_id: [u8; 16],
    next: AtomicU32,
}

impl LocalService for Numbered {
    fn call_here(&self, call: Call) -> Boxed<'_, Result<Vec<u8>, RemoteException>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32;
        let (client_id, call_id) = (self.client_id, number as i32);
        self.front.call_here(Call { client_id, call_id, retry_count: 0, ..call })
    }

    fn user_of_token(&self, token: &Token) -> Result<UserInfo, RemoteException> {
        self.front.user_of_token(token)
    }
}

/// What serves WebHDFS is made of these.
pub(super) fn parts(front: &Arc<Front>, rpc_addr: SocketAddr) -> Result<Parts, getrandom::Error> {
    let mut client_id = [0; 16];
    getrandom::fill(&mut client_id)?;
    let service = Numbered { front: Arc::clone(front), client_id, next: AtomicU32::new(0) };
    let chooser = Arc::clone(front);
    let choose = move |client, excluded: &[String], by_tls| match chooser.leading() {
        Some(leading) => http_nodes::choose(&leading.service.0, client, excluded, by_tls),
        None => http_nodes::choose_among(&chooser.datanodes(), client, excluded, by_tls),
    };
    Ok(Parts { service: Arc::new(service), rpc_addr, choose: Arc::new(choose) })
}
