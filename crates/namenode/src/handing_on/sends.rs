//! The side of a member that follows: it hands a call on, and waits while nobody leads.

use super::call::{CALL, NO_SESSION, OPEN, PROTOCOL, Told, decode_answer, encode};
use super::proof::{LEN, Of, Secret, SessionKey};
use crate::security::ShowsHost;
use crate::standing::{Leader, Standing};
use cairn_net::reach::Reach;
use cairn_net::rpc_client::{RpcClient, RpcClientOptions, RpcError};
use cairn_net::rpc_server::Call;
use cairn_process::held::held;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::hdfs::{
    HandOnRequestProto, HandOnResponseProto, HandOnSessionRequestProto, HandOnSessionResponseProto,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long the leader may take for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a call may be under way. Whoever leads next is asked at once, whatever the former leader does.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// The time between two looks at who leads.
const PAUSE: Duration = Duration::from_millis(20);

/// Whom the calls of this protocol name where nobody shows who he is; the key says who may make them.
const USER: &str = "cairn";

/// What has become of a call.
pub enum Handed {
    /// It has an answer.
    Answered(Result<Vec<u8>, RemoteException>),
    /// This member leads, or is about to: it is to answer.
    Leads,
}

/// Why the leader has given no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("who says to lead does not have the key of this quorum")]
    Stranger,
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    #[error("somebody else leads now")]
    Deposed,
}

struct Session {
    /// What this side has added.
    nonce: [u8; LEN],
    key: SessionKey,
    next: AtomicU64,
}

/// The way to one member.
struct Way {
    client: RpcClient,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
}

/// Hands calls on.
pub struct HandsOn {
    secret: Secret,
    patience: Duration,
    reach: Reach,
    /// With Kerberos.
    shows: Option<ShowsHost>,
    ways: Mutex<HashMap<String, Arc<Way>>>,
}

impl HandsOn {
    /// With the key of the quorum, and what shows a leader at a host who this member is, with Kerberos. A call waits for
    /// `patience` while nobody leads.
    pub fn new(
        secret: Secret,
        patience: Duration,
        reach: Reach,
        shows: Option<ShowsHost>,
    ) -> HandsOn {
        HandsOn { secret, patience, reach, shows, ways: Mutex::default() }
    }

    /// Has the leader answer a call. A call that was under way when its leader was deposed or died goes to the next one
    /// with the same number, so it is carried out once.
    pub async fn hand_on(&self, call: &Call, mut standing: watch::Receiver<Standing>) -> Handed {
        let bytes = encode(call);
        let mut until = Instant::now() + self.patience;
        loop {
            let now = standing.borrow_and_update().clone();
            match now {
                Standing::Alone | Standing::Leads { .. } => return Handed::Leads,
                Standing::Nobody { .. } => {}
                Standing::Follows { leader, .. } => {
                    let asked = tokio::select! {
                        asked = self.ask(&leader, &bytes) => asked,
                        () = until_another(&mut standing, &leader) => {
                            until = Instant::now() + self.patience;
                            Err(Unanswered::Deposed)
                        }
                    };
                    match asked {
                        // It is not ready, or not the leader any more.
                        Ok((Err(exception), _))
                            if is_passing(&exception) && Instant::now() < until => {}
                        Ok((answer, state_id)) => {
                            if let (Some(state), Some(last)) = (&call.state, state_id) {
                                state.tell(last);
                            }
                            return Handed::Answered(answer);
                        }
                        Err(Unanswered::Deposed) => continue,
                        Err(error) => {
                            tracing::debug!(leader = leader.name, %error, "a call has no answer");
                        }
                    }
                }
            }
            if Instant::now() >= until {
                return Handed::Answered(Err(nobody(call)));
            }
            let moved = tokio::time::timeout(PAUSE, standing.changed()).await;
            if matches!(moved, Ok(Err(_))) {
                return Handed::Answered(Err(nobody(call)));
            }
        }
    }

    async fn ask(&self, leader: &Leader, call: &[u8]) -> Result<Told, Unanswered> {
        let way = self.way(&leader.rpc);
        let session = way.session(&self.secret).await?;
        match way.call(&session, call).await {
            Err(Unanswered::Rpc(error)) if error.is_remote(NO_SESSION) => {
                // It has begun anew since.
                way.forget(&session).await;
                let session = way.session(&self.secret).await?;
                way.call(&session, call).await
            }
            answer => answer,
        }
    }

    fn way(&self, addr: &str) -> Arc<Way> {
        let mut ways = held(&self.ways);
        if let Some(known) = ways.get(addr) {
            return known.clone();
        }
        let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
        let options = RpcClientOptions {
            credentials: self.shows.as_ref().map(|shows| shows(host)),
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            reach: self.reach.clone(),
            ..RpcClientOptions::default()
        };
        let client = RpcClient::new(addr, PROTOCOL, USER, options);
        let way = Arc::new(Way { client, session: tokio::sync::Mutex::default() });
        ways.insert(addr.to_string(), way.clone());
        way
    }
}

impl Way {
    /// The present session, or a new one.
    async fn session(&self, secret: &Secret) -> Result<Arc<Session>, Unanswered> {
        let mut held = self.session.lock().await;
        if let Some(session) = &*held {
            return Ok(session.clone());
        }
        let mut nonce = [0; LEN];
        getrandom::fill(&mut nonce).map_err(Unanswered::Random)?;
        let request = HandOnSessionRequestProto { nonce: nonce.to_vec() };
        let theirs: HandOnSessionResponseProto = self.client.call(OPEN, &request).await?;
        let leader: [u8; LEN] = theirs.nonce.try_into().map_err(|_| Unanswered::Stranger)?;
        let key = secret.session(&nonce, &leader);
        if !key.proves(Of::Session, 0, &[], &theirs.proof) {
            return Err(Unanswered::Stranger);
        }
        let session = Arc::new(Session { nonce, key, next: AtomicU64::new(0) });
        *held = Some(session.clone());
        Ok(session)
    }

    async fn forget(&self, session: &Arc<Session>) {
        let mut held = self.session.lock().await;
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, session)) {
            *held = None;
        }
    }

    async fn call(&self, session: &Session, call: &[u8]) -> Result<Told, Unanswered> {
        let number = session.next.fetch_add(1, Ordering::Relaxed);
        let request = HandOnRequestProto {
            session: session.nonce.to_vec(),
            number,
            proof: session.key.proof(Of::Call, number, call),
            call: call.to_vec(),
        };
        let told: HandOnResponseProto = match self.client.call(CALL, &request).await {
            // Thrown by who is not ready to take it.
            Err(RpcError::Remote(exception)) if is_passing(&exception) => {
                return Ok((Err(exception), None));
            }
            told => told?,
        };
        if !session.key.proves(Of::Answer, number, &told.answer, &told.proof) {
            return Err(Unanswered::Stranger);
        }
        Ok(decode_answer(&told.answer))
    }
}

/// Whether another try may do better.
fn is_passing(exception: &RemoteException) -> bool {
    exception.is(class::STANDBY) || exception.is(class::RETRIABLE)
}

/// Completes when `leader` does not lead any more, as far as is known here.
async fn until_another(standing: &mut watch::Receiver<Standing>, leader: &Leader) {
    let is_other =
        |now: &Standing| !matches!(now, Standing::Follows { leader: now, .. } if now == leader);
    if standing.wait_for(is_other).await.is_err() {
        // The member ends.
        std::future::pending().await
    }
}

/// Source: Hadoop 3.5.0 `StandbyState#checkOperation`.
fn nobody(call: &Call) -> RemoteException {
    let method = &call.method;
    let text = format!("Operation {method} is not supported in state standby: no NameNode leads");
    RemoteException::new(class::STANDBY, text)
}
