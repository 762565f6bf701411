//! The side of the member that leads: calls that others hand on.

use super::call::{CALL, NO_SESSION, OPEN, decode, encode_answer};
use super::proof::{LEN, Of, Secret, SessionKey, Window};
use cairn_net::rpc_server::{Call, respond};
use cairn_process::held::held;
use cairn_wire::RemoteException;
use cairn_wire::proto::hdfs::{
    HandOnRequestProto, HandOnResponseProto, HandOnSessionRequestProto, HandOnSessionResponseProto,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Sessions of one process. Only a member begins one, once in each of its lives and after each break.
const SESSIONS_MAX: usize = 4096;

struct Session {
    key: SessionKey,
    come: Mutex<Window>,
}

/// Takes calls from other members.
pub struct Takes {
    secret: Secret,
    /// What this process adds to each session.
    nonce: [u8; LEN],
    /// By what the other one has added; of those only that have proven to have the key.
    sessions: Mutex<HashMap<[u8; LEN], Arc<Session>>>,
}

impl Takes {
    /// By whoever has the key. Fails if the system has no random numbers.
    pub fn new(secret: Secret) -> Result<Takes, getrandom::Error> {
        let mut nonce = [0; LEN];
        getrandom::fill(&mut nonce)?;
        Ok(Takes { secret, nonce, sessions: Mutex::default() })
    }

    /// Answers a call of the protocol; `answer` answers what was handed on.
    pub async fn serve<F>(
        &self,
        call: &Call,
        answer: impl FnOnce(Call) -> F,
    ) -> Result<Vec<u8>, RemoteException>
    where
        F: Future<Output = Result<Vec<u8>, RemoteException>>,
    {
        match call.method.as_str() {
            OPEN => self.open(call.decode()?),
            CALL => self.take(call.decode()?, answer).await,
            _ => Err(call.unknown_method()),
        }
    }

    fn open(&self, request: HandOnSessionRequestProto) -> Result<Vec<u8>, RemoteException> {
        let theirs: [u8; LEN] = request.nonce.try_into().map_err(|_| no_session())?;
        let proof = self.secret.session(&theirs, &self.nonce).proof(Of::Session, 0, &[]);
        respond(&HandOnSessionResponseProto { nonce: self.nonce.to_vec(), proof })
    }

    async fn take<F>(
        &self,
        request: HandOnRequestProto,
        answer: impl FnOnce(Call) -> F,
    ) -> Result<Vec<u8>, RemoteException>
    where
        F: Future<Output = Result<Vec<u8>, RemoteException>>,
    {
        let HandOnRequestProto { session, number, proof, call } = request;
        let session = self.proven(session, number, &call, &proof).ok_or_else(no_session)?;
        let is_new = held(&session.come).take(number);
        let answer = match decode(&call).filter(|_| is_new) {
            Some(call) => {
                let state = call.state.clone();
                (answer(call).await, state.and_then(|state| state.told()))
            }
            None => return Err(no_session()),
        };
        let answer = encode_answer(answer);
        let proof = session.key.proof(Of::Answer, number, &answer);
        respond(&HandOnResponseProto { proof, answer })
    }

    /// The session of a call, if it is proven to be of a member.
    fn proven(
        &self,
        theirs: Vec<u8>,
        number: u64,
        call: &[u8],
        proof: &[u8],
    ) -> Option<Arc<Session>> {
        let theirs: [u8; LEN] = theirs.try_into().ok()?;
        let known = held(&self.sessions).get(&theirs).cloned();
        let session = known.unwrap_or_else(|| {
            let key = self.secret.session(&theirs, &self.nonce);
            Arc::new(Session { key, come: Mutex::default() })
        });
        if !session.key.proves(Of::Call, number, call, proof) {
            return None;
        }
        let mut sessions = held(&self.sessions);
        match sessions.get(&theirs) {
            Some(known) => Some(known.clone()),
            None if sessions.len() >= SESSIONS_MAX => None,
            None => {
                sessions.insert(theirs, session.clone());
                Some(session)
            }
        }
    }
}

fn no_session() -> RemoteException {
    RemoteException::new(NO_SESSION, "this session is not known here, or was not begun by a member")
}
