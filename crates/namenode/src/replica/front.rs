//! What serves a member's port, whoever leads: calls go to the NameNode while there is one, and to the leader otherwise.
//!
//! A client sees no failover: while nobody leads, or who leads is not ready, its call waits for a while, and one that was
//! under way when the lead was lost is repeated at the next leader, which knows by its number whether it was carried out.

mod authority;
mod members;
mod reads;
mod tokens;

use crate::block_tokens::BlockTokens;
use crate::config::quorum::QuorumConfig;
use crate::handing_on::{self, BY_PAGES, Handed, HandsOn, Secret, Takes};
use crate::kept_reports::KeptReports;
use crate::lead::Lead;
use crate::members::{Row, rows};
use crate::protocol::datanode::following;
use crate::protocol::ha::{self, Ready};
use crate::protocol::{Answers, HA, LIFELINE, MEMBERS, Protocols, answers, logged};
use crate::quorum::{Member, Status};
use crate::refusal::{Answer, Refusal, answer};
use crate::relay::Makes;
use crate::security::SecurityConfig;
use crate::standing::Standing;
use crate::store::Identity;
use cairn_access::access::Access;
use cairn_access::groups::Groups;
use cairn_net::http::Admins;
use cairn_net::rpc_server::{Call, LocalService, Service, UserInfo};
use cairn_process::held::{held_read, held_write};
use cairn_redundancy::Completeness;
use cairn_security::server::Authority;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::HAServiceStateProto;
use cairn_wire::proto::hdfs::HAServiceStateResponseProto;
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

pub(super) use reads::Reads;
use tokens::Tokens;

/// How long a call waits for a leader that is ready.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses between two tries of a call that waits.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// How long it may take until a member has given the lead up, and until one leads that an operator wants to.
const HANDOVER: Duration = Duration::from_secs(5);
const TAKEOVER: Duration = Duration::from_secs(45);

/// How long an election is waited for before it is looked again who leads.
const ELECTION: Duration = Duration::from_secs(2);

/// The NameNode of a member that leads.
#[derive(Clone)]
pub(super) struct Leading {
    pub service: Arc<Protocols>,
    pub lead: Arc<Lead>,
    /// Makes pages that other members are asked for, if there are any.
    pub pages: Option<Arc<Makes>>,
}

/// Who may give orders to this member.
pub(super) struct Operators {
    pub access: Access,
    pub groups: Groups,
    /// None if everybody may.
    pub superuser: Option<String>,
    pub supergroup: String,
    /// None where clients are believed.
    pub security: Option<SecurityConfig>,
}

impl Operators {
    async fn has(&self, user: &str) -> bool {
        match &self.superuser {
            Some(superuser) if superuser != user => {
                self.groups.of(user).await.contains(&self.supergroup)
            }
            _ => true,
        }
    }
}

/// See the module.
pub(super) struct Front {
    leading: RwLock<Option<Leading>>,
    /// Whose namespace it has, if it has one.
    identity: RwLock<Option<Identity>>,
    standing: watch::Receiver<Standing>,
    config: QuorumConfig,
    member: Arc<Member>,
    operators: Operators,
    kept: Arc<KeptReports>,
    block_tokens: Arc<BlockTokens>,
    /// None where clients are to go to the leader themselves.
    hands_on: Option<HandsOn>,
    takes: Takes,
    reads: Reads,
    tokens: Tokens,
}

impl Front {
    /// Of a member that does not lead yet. Fails if the system has no random numbers.
    pub fn new(
        standing: watch::Receiver<Standing>,
        (config, member): (&QuorumConfig, Arc<Member>),
        (operators, kept, block_tokens): (Operators, Arc<KeptReports>, Arc<BlockTokens>),
        secret: Secret,
    ) -> Result<Front, getrandom::Error> {
        let members = operators.security.as_ref().and_then(|security| security.members.as_ref());
        let shows = members.map(|members| Arc::clone(&members.shows));
        Ok(Front {
            leading: RwLock::default(),
            identity: RwLock::default(),
            standing,
            config: config.clone(),
            hands_on: config
                .forwards
                .then(|| HandsOn::new(secret.clone(), PATIENCE, member.reach().clone(), shows)),
            member,
            operators,
            reads: Reads::new(Arc::clone(&kept)),
            kept,
            block_tokens,
            takes: Takes::new(secret)?,
            tokens: Tokens::default(),
        })
    }

    /// From now on calls go there.
    pub fn lead(&self, leading: Option<Leading>) {
        *held_write(&self.leading) = leading;
    }

    /// From now on that is the namespace that DataNodes are told of.
    pub fn know(&self, identity: Option<Identity>) {
        *held_write(&self.identity) = identity;
    }

    /// What this member reads while it follows.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// The NameNode of this member, while it leads.
    pub fn leading(&self) -> Option<Leading> {
        held_read(&self.leading).clone()
    }

    /// What this member is.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Whose namespace it has, if it has one.
    pub fn identity(&self) -> Option<Identity> {
        held_read(&self.identity).clone()
    }

    /// What it knows of all members.
    pub fn members(&self) -> (Status, Vec<Row>) {
        let status = self.member.status();
        let rows = rows(&status, &self.config.id, &self.config.members);
        (status, rows)
    }

    /// How much these have told it, while it follows.
    pub fn completeness(&self) -> Completeness {
        self.kept.completeness().unwrap_or_default()
    }

    /// Answers a call for a client, whoever leads.
    async fn answer(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        let who = answers(&call.protocol, &call.method);
        let until = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let leading = self.leading();
            let follows = leading.is_none();
            let answer = match leading {
                Some(leading) => self.lead_call(&leading, call.clone()).await,
                None => self.follow(&call, who).await,
            };
            let waits = match who {
                Answers::Leader => self.hands_on.is_some(),
                // It is for the NameNode of this member, which does not serve yet.
                Answers::DataNodes => follows && self.kept.is_taken(),
                Answers::State | Answers::Member => false,
            };
            match answer {
                Err(exception) if waits && is_passing(&exception) && Instant::now() < until => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LAST_PAUSE);
                }
                answer => return answer,
            }
        }
    }

    /// Has the NameNode answer, as long as it leads.
    async fn lead_call(
        &self,
        Leading { service, lead, .. }: &Leading,
        call: Call,
    ) -> Result<Vec<u8>, RemoteException> {
        tokio::select! {
            answer = service.call(call) => answer,
            // Whatever it waits for, somebody else decides of it now.
            () = lead.lost() => Err(Refusal::standby(&self.standing()).0),
        }
    }

    /// Answers a call while another member leads, or none.
    async fn follow(&self, call: &Call, who: Answers) -> Result<Vec<u8>, RemoteException> {
        let standing = self.standing();
        let refused = match (who, &self.hands_on) {
            (Answers::DataNodes, _) => {
                self.authorize_call(call).await?;
                return logged(call, self.hear_datanode(call, &standing));
            }
            (Answers::State, _) => {
                // Who reads from observers may read here.
                let state = match self.hands_on {
                    Some(_) => HAServiceStateProto::Observer,
                    None => HAServiceStateProto::Standby,
                };
                return logged(call, answer(&HAServiceStateResponseProto { state: state as i32 }));
            }
            (Answers::Leader, Some(hands_on)) => {
                if let Some(answer) = self.reads.answer(call, &standing).await {
                    return answer;
                }
                match hands_on.hand_on(call, self.standing.clone()).await {
                    Handed::Answered(answer) => {
                        if self.standing() == standing {
                            self.reads.heard(&standing, call);
                        }
                        return answer;
                    }
                    Handed::Leads => Refusal::standby(&standing),
                }
            }
            (Answers::Leader, None) => Refusal::standby(&standing),
            (Answers::Member, _) => Refusal::unsupported(format!(
                "{} is of one NameNode, and this one follows: ask the one that leads",
                call.method
            )),
        };
        logged(call, Err(refused))
    }

    fn hear_datanode(&self, call: &Call, standing: &Standing) -> Answer {
        match (self.identity(), call.protocol == LIFELINE) {
            (Some(identity), true) => {
                following::handle_lifeline(&identity, &self.kept, standing, call)
            }
            (Some(identity), false) => {
                following::handle(&identity, (&self.kept, &self.block_tokens), standing, call)
            }
            (None, _) => Err(Refusal::standby(standing)),
        }
    }

    /// Answers a call that another member has handed on; it goes no further.
    async fn answer_handed(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        match self.leading() {
            Some(Leading { service, lead, pages }) => tokio::select! {
                answer = make(&service, pages, call) => answer,
                () = lead.lost() => Err(Refusal::standby(&self.standing()).0),
            },
            None => Err(Refusal::standby(&self.standing()).0),
        }
    }

    /// Answers a call of `HAServiceProtocol`.
    async fn stand(&self, call: &Call) -> Answer {
        let leads = self.leading().is_some();
        match call.method.as_str() {
            "getServiceStatus" => return ha::status(leads, &self.ready()),
            "monitorHealth" => {
                self.check_superuser(call).await?;
                return ha::healthy();
            }
            _ => self.check_superuser(call).await?,
        }
        match call.method.as_str() {
            "transitionToActive" => self.take_the_lead().await?,
            "transitionToStandby" => self.hand_over().await?,
            "transitionToObserver" => {
                return Err(ha::failed("a member of a quorum is no observer"));
            }
            _ => return Err(call.unknown_method().into()),
        }
        ha::changed()
    }

    /// Whether it could lead.
    pub fn ready(&self) -> Ready {
        match self.standing() {
            Standing::Alone | Standing::Leads { .. } => Ok(()),
            Standing::Follows { .. } => self.has_all(),
            Standing::Nobody { .. } => Err("it does not know who leads".into()),
        }
    }

    /// Whether it has what a leader needs.
    fn has_all(&self) -> Ready {
        match held_read(&self.identity).is_some() {
            false => Err("it has no namespace yet".into()),
            true if !self.votes() => Err("it does not vote yet".into()),
            true => match self.kept.completeness() {
                Some(known) if !self.kept.is_ready() => Err(format!(
                    "it does not know where enough blocks are yet: {} of {} DataNodes have told it all they have",
                    known.reported, known.nodes
                )),
                _ => Ok(()),
            },
        }
    }

    fn votes(&self) -> bool {
        let members = self.member.status().members;
        members.0.values().any(|member| member.name == self.config.id && member.is_voter)
    }

    /// Has the best of the others lead.
    async fn hand_over(&self) -> Result<(), Refusal> {
        if !self.member.status().leads {
            return Ok(());
        }
        let member = Arc::clone(&self.member);
        let asked = tokio::task::spawn_blocking(move || member.hand_over(None)).await;
        if !matches!(asked, Ok(Some(_))) {
            return Err(ha::failed("there is nobody else who could lead"));
        }
        let Some(Leading { lead, .. }) = self.leading() else { return Ok(()) };
        match tokio::time::timeout(HANDOVER, lead.lost()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ha::failed("the member that was to lead does not")),
        }
    }

    /// Asks who leads for the lead until this member has it.
    async fn take_the_lead(&self) -> Result<(), Refusal> {
        self.has_all().map_err(|why| ha::failed(&why))?;
        let until = Instant::now() + TAKEOVER;
        let mut standing = self.standing.clone();
        while self.leading().is_none() {
            if Instant::now() >= until {
                return Err(ha::failed("another member leads on"));
            }
            let now = standing.borrow_and_update().clone();
            if matches!(now, Standing::Follows { .. }) {
                let member = Arc::clone(&self.member);
                // Who has ended is asked in vain.
                let _ = tokio::task::spawn_blocking(move || member.ask_for_lead()).await;
            }
            // Its own NameNode may be about to serve.
            let pause = if now.leads() { FIRST_PAUSE } else { ELECTION };
            let is_new = |standing: &Standing| *standing != now;
            let _ = tokio::time::timeout(pause, standing.wait_for(is_new)).await;
        }
        Ok(())
    }

    /// Who may administer this member by its pages.
    pub fn admins(self: &Arc<Front>) -> Admins {
        let front = Arc::clone(self);
        Arc::new(move |user| {
            let front = Arc::clone(&front);
            Box::pin(async move { front.operators.has(&user).await })
        })
    }

    /// Refuses a call that may not be made over its connection.
    async fn authorize_call(&self, call: &Call) -> Result<(), RemoteException> {
        if !call.is_of_its_connection() {
            self.check(&call.user, Some(&call.protocol))?;
        }
        self.operators.access.authorize_call(call, &self.operators.groups).await
    }

    /// Refuses a caller that is no superuser.
    async fn check_superuser(&self, call: &Call) -> Result<(), Refusal> {
        let (user, operation) = (&call.user.effective, &call.method);
        match self.operators.has(user).await {
            true => Ok(()),
            false => Err(Refusal::new(
                class::ACCESS_CONTROL,
                format!(
                    "Access denied for user {user}. Superuser privilege is required for operation {operation}"
                ),
            )),
        }
    }
}

/// Has the NameNode of a member that leads answer what was handed on to it.
async fn make(
    service: &Protocols,
    pages: Option<Arc<Makes>>,
    call: Call,
) -> Result<Vec<u8>, RemoteException> {
    match pages {
        _ if call.carrier != BY_PAGES => service.call_here(call).await,
        Some(pages) => pages.answer(&call).await,
        None => Err(RemoteException::io("the NameNode that leads serves no pages")),
    }
}

/// Whether another try may do better.
fn is_passing(exception: &RemoteException) -> bool {
    exception.is(class::STANDBY) || exception.is(class::RETRIABLE)
}

impl Service for Front {
    async fn call(&self, call: Call) -> Result<Vec<u8>, RemoteException> {
        match call.protocol.as_str() {
            handing_on::PROTOCOL => {
                // Whatever its connection was opened for.
                self.check(&call.user, Some(handing_on::PROTOCOL))?;
                self.takes.serve(&call, |handed| self.answer_handed(handed)).await
            }
            HA => {
                self.authorize_call(&call).await?;
                logged(&call, self.stand(&call).await)
            }
            // Who may ask for one may ask for the other.
            MEMBERS => logged(&call, self.of_members(&call).await),
            _ => self.answer(call).await,
        }
    }

    fn call_now(&self, call: &Call) -> Option<Result<Vec<u8>, RemoteException>> {
        let Some(Leading { service, .. }) = self.leading() else {
            self.hands_on.as_ref()?;
            return self.reads.answer_now(call, &self.standing.borrow());
        };
        let answer = service.call_now(call)?;
        // It is asked once more, and waits.
        let waits = self.hands_on.is_some()
            && answers(&call.protocol, &call.method) == Answers::Leader
            && answer.as_ref().is_err_and(is_passing);
        (!waits).then_some(answer)
    }

    fn authority(&self) -> Option<&dyn Authority> {
        self.security().map(|_| self as &dyn Authority)
    }

    async fn await_token(&self, identifier: &[u8]) {
        self.wait_for_token(identifier).await;
    }

    async fn authorize(
        &self,
        user: &UserInfo,
        protocol: Option<&str>,
        peer: SocketAddr,
    ) -> Result<(), RemoteException> {
        self.check(user, protocol)?;
        // Each call there shows by itself that a member has sent it.
        if protocol == Some(handing_on::PROTOCOL) {
            return Ok(());
        }
        let protocol = protocol.map(|name| if name == MEMBERS { HA } else { name });
        match self.leading() {
            Some(Leading { service, .. }) => service.authorize(user, protocol, peer).await,
            None => {
                let Operators { access, groups, .. } = &self.operators;
                access.authorize(user, protocol, peer.ip(), groups).await
            }
        }
    }
}
