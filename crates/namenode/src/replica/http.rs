//! What a member serves by HTTP, whoever leads: its ports are open all the time.
//!
//! While it leads its NameNode makes the pages. While it follows it tells of itself what means one member (`own`), and has
//! the leader make all that is of the cluster ([`crate::relay`]). WebHDFS goes through the member's front, leading or not:
//! its calls wait and are handed on as those of clients are.

mod own;
mod web;

use super::front::Front;
use crate::config::NameNodeConfig;
use crate::handing_on::Secret;
use crate::lead::Lead;
use crate::relay::{Relay, Relayed, not_now};
use crate::standing::Standing;
use cairn_net::Boxed;
use cairn_net::http::{Answer, Body, Handler, Method, Request, SharedHandler, Site, WEBHDFS};
use cairn_net::rpc_server::RpcMetrics;
use cairn_process::held::{held_read, held_write};
use own::Own;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// How long a request waits for a leader.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two looks whether this member's NameNode serves yet.
const PAUSE: Duration = Duration::from_millis(20);

/// What the NameNode of a member that leads serves.
#[derive(Clone)]
pub(super) struct LeadingSite {
    pub site: Arc<dyn Handler>,
    pub lead: Arc<Lead>,
}

/// See the module.
pub(super) struct Door {
    leading: RwLock<Option<LeadingSite>>,
    standing: watch::Receiver<Standing>,
    own: Arc<Own>,
    own_site: Arc<dyn Handler>,
    web: Option<SharedHandler>,
    /// None where clients are to go to the leader themselves.
    relay: Option<Arc<Relay>>,
}

impl Door {
    /// Of a member that does not lead yet.
    pub fn new(
        config: &NameNodeConfig,
        front: &Arc<Front>,
        (rpc_addr, rpc_metrics): (SocketAddr, Arc<RpcMetrics>),
        (standing, secret): (watch::Receiver<Standing>, Secret),
    ) -> Result<Door, getrandom::Error> {
        let own = Arc::new(Own::new(config, Arc::clone(front), rpc_addr, rpc_metrics));
        let made = Arc::clone(&own);
        let forwards = config.quorum.as_ref().is_some_and(|quorum| quorum.forwards);
        let members = config.security.as_ref().and_then(|security| security.members.as_ref());
        let shows = members.map(|members| Arc::clone(&members.shows));
        let relay =
            forwards.then(|| Arc::new(Relay::new(secret, PATIENCE, config.reach.clone(), shows)));
        let web = match &config.web {
            Some(web) => {
                let parts = web::parts(front, rpc_addr, relay.clone(), standing.clone())?;
                Some(web.of(parts))
            }
            None => None,
        };
        Ok(Door {
            leading: RwLock::default(),
            standing,
            own,
            own_site: Arc::new(Site::new(move |request: &Request| made.page(request).into())),
            web,
            relay,
        })
    }

    /// From now on pages are made there.
    pub fn lead(&self, leading: Option<LeadingSite>) {
        *held_write(&self.leading) = leading;
    }

    fn leading(&self) -> Option<LeadingSite> {
        held_read(&self.leading).clone()
    }

    /// Has the NameNode of this member answer, as long as it leads; `None` if that was over before.
    async fn lead_page(
        &self,
        LeadingSite { site, lead }: LeadingSite,
        request: Request,
        body: Body,
    ) -> Option<Answer> {
        let answer = tokio::select! {
            answer = site.answer(request, body) => answer,
            () = lead.lost() => return None,
        };
        Some(match answer {
            // What it goes on to tell is of a state that is another one's by now.
            Answer::Streamed(streamed) => {
                Answer::Streamed(streamed.until(async move { lead.lost().await }))
            }
            answer => answer,
        })
    }

    /// Has whoever leads make a page.
    async fn page(&self, request: Request, body: Body) -> Answer {
        let mut body = Some(body);
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let Some(leading) = self.leading() {
                let body = body.take().unwrap_or_else(Body::empty);
                if let Some(answer) = self.lead_page(leading, request.clone(), body).await {
                    return answer;
                }
            }
            let is_page = [Method::GET, Method::HEAD].contains(&request.method);
            if !is_page || self.own.has(&request.path) {
                return self.own_site.answer(request, body.unwrap_or_else(Body::empty)).await;
            }
            let Some(relay) = &self.relay else { return not_now(&self.elsewhere()).into() };
            match relay.page(&request, self.standing.clone()).await {
                Relayed::Answered(answer) => return answer,
                Relayed::Leads if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                Relayed::Leads => return not_now("this NameNode is about to lead").into(),
            }
        }
    }

    fn elsewhere(&self) -> String {
        match &*self.standing.borrow() {
            Standing::Follows { leader, .. } => {
                format!(
                    "this NameNode follows: ask {}, whose RPC is at {}",
                    leader.name, leader.rpc
                )
            }
            _ => "no NameNode leads".to_string(),
        }
    }
}

impl Handler for Door {
    fn answer(&self, request: Request, body: Body) -> Boxed<'_, Answer> {
        let rest = request.path.strip_prefix(WEBHDFS);
        let is_web = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match &self.web {
            Some(SharedHandler(web)) if is_web && request.method != Method::OPTIONS => {
                web.answer(request, body)
            }
            _ if is_web => self.own_site.answer(request, body),
            _ => Box::pin(self.page(request, body)),
        }
    }
}
