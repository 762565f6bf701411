//! What a server of Hadoop's RPC says before a connection's first call, until it knows who the client is.
//!
//! ```text
//! NEGOTIATE -> NEGOTIATE (offers, the first challenge for tokens) | SUCCESS (be SIMPLE)
//! INITIATE  -> CHALLENGE | SUCCESS        RESPONSE -> CHALLENGE | SUCCESS
//! ```
//! Source: Hadoop 3.5.0 `Server.Connection#processSaslMessage`, `Server#buildNegotiateResponse`.

use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::{
    RpcResponseHeaderProtoRpcErrorCodeProto as Code, RpcSaslProto, RpcSaslProtoSaslAuth as Auth,
    RpcSaslProtoSaslState as State,
};

use crate::block_token::BlockTokenId;
use crate::digest_md5::{self, DigestServer, NONCE_LEN, Service};
use crate::gssapi::{Context, GssServer, GssStep};
use crate::sasl::Layer;
use crate::token::DelegationTokenId;
use crate::{Protection, SaslError};

/// Messages that a client may send before it is known.
const MESSAGES_MAX: u32 = 16;
/// A mechanism's name for tokens, and the method's.
pub(crate) const TOKEN: (&str, &str) = ("TOKEN", "DIGEST-MD5");
/// Those for who is believed.
const SIMPLE: (&str, &str) = ("SIMPLE", "");
/// Those for Kerberos.
pub(crate) const KERBEROS: (&str, &str) = ("KERBEROS", "GSSAPI");

/// How clients may show who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offers {
    /// They say it, and are believed.
    Simple,
    /// Likewise; or they show a token, by which more may be had.
    Tokens,
    /// By a ticket of Kerberos for this service, or by a token that this server has issued.
    Secure {
        /// The first part of the server's principal.
        service: String,
        /// Its second part: the name of the server's host.
        host: String,
        /// How much connections may be protected, at least one.
        protections: Vec<Protection>,
    },
}

/// What a server knows that no message says.
pub trait Authority: Send + Sync {
    /// How clients may show who they are.
    fn offers(&self) -> &Offers;

    /// Who has the token with this identifier, and its password, if it is known and has not ended. May wait for a disk.
    fn token(&self, identifier: &[u8]) -> Result<(Identity, Vec<u8>), RemoteException>;

    /// The user that a principal stands for.
    fn user_of(&self, principal: &str) -> Result<String, SaslError>;

    /// A new security context, that waits for a client's first token. May wait for a disk.
    fn accept(&self) -> Result<Box<dyn Context>, SaslError>;
}

/// Who a client has shown to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The principal of a ticket, with its realm.
    Kerberos(String),
    /// Whoever has this token.
    Token(DelegationTokenId),
    /// Whoever has this token to a block.
    Block(Box<BlockTokenId>),
}

/// What a delegation token's identifier says.
pub fn delegation(identifier: &[u8]) -> Result<DelegationTokenId, RemoteException> {
    DelegationTokenId::decode(identifier).map_err(|_| {
        let text = "Can't de-serialize tokenIdentifier";
        unauthorized(class::INVALID_TOKEN, text)
    })
}

/// What comes of a message.
#[derive(Debug)]
pub enum Step {
    /// The client is to get this.
    Reply(RpcSaslProto),
    /// The client is to get this, if anything, and goes on without SASL.
    Simple(Option<RpcSaslProto>),
    /// The client is to get this, and is known. What follows is enclosed by the layer, if there is one.
    Done(RpcSaslProto, Identity, Option<Layer>),
}

/// One connection's exchange.
pub struct ServerHandshake {
    digest: Option<DigestServer>,
    gssapi: Option<GssServer>,
    offered: Vec<Auth>,
    has_negotiated: bool,
    nonce: [u8; NONCE_LEN],
    messages: u32,
}

impl ServerHandshake {
    /// For one connection, with random bytes that were never used before.
    pub fn new(nonce: [u8; NONCE_LEN]) -> ServerHandshake {
        ServerHandshake {
            digest: None,
            gssapi: None,
            offered: Vec::new(),
            has_negotiated: false,
            nonce,
            messages: 0,
        }
    }

    /// The identifier of the token that a message names, if it names one that is about to be judged: whoever asks before it
    /// is taken can wait for what says whether there is such a token. Nothing is proven by that.
    pub fn token_named(&self, message: &RpcSaslProto) -> Option<Vec<u8>> {
        let is_token = match message.state() {
            State::Initiate => message
                .auths
                .first()
                .is_some_and(|auth| (auth.method.as_str(), auth.mechanism.as_str()) == TOKEN),
            State::Response => self.gssapi.is_none() && self.digest.is_some(),
            _ => false,
        };
        let response = message.token.as_deref().filter(|_| is_token)?;
        digest_md5::identifier(response)
    }

    /// Takes a message. After an error there is nothing more to say.
    pub fn take(
        &mut self,
        message: RpcSaslProto,
        authority: &dyn Authority,
    ) -> Result<Step, RemoteException> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(refused("Too many messages before the client is known"));
        }
        let offers = authority.offers();
        let state = message.state();
        if !matches!(state, State::Negotiate | State::Initiate | State::Response) {
            return Err(refused(format!("Client sent unsupported state {}", state_name(state))));
        }
        if state == State::Initiate && message.auths.len() != 1 {
            return Err(refused("Client mechanism is malformed"));
        }
        let (protections, second) = match offers {
            Offers::Simple => {
                return match state {
                    State::Response => Err(refused("No SASL exchange is going on")),
                    _ => Ok(Step::Simple(Some(reply(State::Success, None)))),
                };
            }
            Offers::Tokens => (&[Protection::Authentication][..], auth(SIMPLE, None)),
            Offers::Secure { service, host, protections } => {
                (&protections[..], auth(KERBEROS, Some((service, host))))
            }
        };
        if self.offered.is_empty() {
            self.offered = vec![auth(TOKEN, Some(("", "default"))), second];
        }
        match state {
            State::Negotiate if self.has_negotiated => {
                Err(denied("Client already attempted negotiation"))
            }
            State::Negotiate => Ok(Step::Reply(self.negotiate(protections))),
            State::Initiate => {
                let chosen = &message.auths[0];
                match self.offered.iter().position(|offer| offer == chosen) {
                    None if self.has_negotiated => {
                        let method = &chosen.method;
                        let second = &self.offered[1].method;
                        let text = format!(
                            "{method} authentication is not enabled.  Available:[TOKEN, {second}]"
                        );
                        Err(denied(text))
                    }
                    None => Ok(Step::Reply(self.negotiate(protections))),
                    Some(0) => {
                        self.gssapi = None;
                        if self.digest.is_none() {
                            self.digest =
                                Some(DigestServer::new(Service::RPC, self.nonce, protections));
                        }
                        self.respond(message, authority)
                    }
                    // The client does not wait for a word.
                    Some(_) if *offers == Offers::Tokens => Ok(Step::Simple(None)),
                    Some(_) => {
                        self.digest = None;
                        self.gssapi = Some(GssServer::new(authority.accept()?, protections));
                        self.respond(message, authority)
                    }
                }
            }
            _ => self.respond(message, authority),
        }
    }

    /// What is offered, with a challenge for who has a token.
    fn negotiate(&mut self, protections: &[Protection]) -> RpcSaslProto {
        self.has_negotiated = true;
        let digest = DigestServer::new(Service::RPC, self.nonce, protections);
        let mut auths = self.offered.clone();
        auths[0].challenge = Some(digest.challenge());
        self.digest = Some(digest);
        RpcSaslProto { state: State::Negotiate as i32, auths, ..RpcSaslProto::default() }
    }

    /// Source: Hadoop 3.5.0 `Server.Connection#processSaslToken`.
    fn respond(
        &mut self,
        message: RpcSaslProto,
        authority: &dyn Authority,
    ) -> Result<Step, RemoteException> {
        let token = message.token.ok_or_else(|| refused("Client did not send a token"))?;
        if let Some(gssapi) = &mut self.gssapi {
            return Ok(match gssapi.step(&token)? {
                GssStep::Challenge(token) => Step::Reply(reply(State::Challenge, Some(token))),
                GssStep::Done(principal, layer) => {
                    let identity = Identity::Kerberos(principal);
                    Step::Done(reply(State::Success, None), identity, layer)
                }
            });
        }
        // One try: each nonce is used once.
        let digest = self.digest.take().ok_or_else(|| refused("No SASL exchange is going on"))?;
        if token.is_empty() {
            // Whoever has chosen without being asked gets the challenge now.
            let challenge = digest.challenge();
            self.digest = Some(digest);
            return Ok(Step::Reply(reply(State::Challenge, Some(challenge))));
        }
        let verified = digest.verify(&token, |identifier| {
            let found = authority.token(identifier);
            let (identity, password) =
                found.map_err(|error| unauthorized(&error.class, error.message.clone()))?;
            Ok::<_, RemoteException>((password, identity))
        })?;
        let reply = reply(State::Success, Some(verified.answer));
        Ok(Step::Done(reply, verified.token, verified.layer))
    }
}

fn auth((method, mechanism): (&str, &str), server: Option<(&str, &str)>) -> Auth {
    Auth {
        method: method.to_owned(),
        mechanism: mechanism.to_owned(),
        protocol: server.map(|(protocol, _)| protocol.to_owned()),
        server_id: server.map(|(_, server_id)| server_id.to_owned()),
        challenge: None,
    }
}

fn reply(state: State, token: Option<Vec<u8>>) -> RpcSaslProto {
    RpcSaslProto { state: state as i32, token, ..RpcSaslProto::default() }
}

fn unauthorized(class: &str, message: impl Into<String>) -> RemoteException {
    RemoteException::with_code(class, message, Code::FatalUnauthorized)
}

fn refused(message: impl Into<String>) -> RemoteException {
    unauthorized(class::SASL, message)
}

fn denied(message: impl Into<String>) -> RemoteException {
    unauthorized(class::ACCESS_CONTROL, message)
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Success => "SUCCESS",
        State::Negotiate => "NEGOTIATE",
        State::Initiate => "INITIATE",
        State::Challenge => "CHALLENGE",
        State::Response => "RESPONSE",
        State::Wrap => "WRAP",
    }
}

impl From<SaslError> for RemoteException {
    fn from(error: SaslError) -> RemoteException {
        refused(error.0)
    }
}
