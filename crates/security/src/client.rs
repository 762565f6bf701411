//! What a client of Hadoop's RPC says before its first call, until the server knows who it is.
//!
//! Source: Hadoop 3.5.0 `SaslRpcClient`.

use cairn_wire::proto::common::{
    RpcSaslProto, RpcSaslProtoSaslAuth as Auth, RpcSaslProtoSaslState as State,
};

use crate::digest_md5::{DigestClient, NONCE_LEN, Secret, Service};
use crate::gssapi::{Context, GssClient};
use crate::sasl::Layer;
use crate::server::{KERBEROS, TOKEN};
use crate::{Protection, SaslError};

/// Messages that a server may send before it knows the client.
const MESSAGES_MAX: u32 = 16;

/// What a client can show.
pub trait Credentials: Send + Sync {
    /// A token that the server has issued.
    fn token(&self) -> Option<Secret>;

    /// A new security context with the service of that name on that host; `None` without Kerberos. Fails where that is not
    /// who the server should be. May wait for the network.
    fn initiate(&self, service: &str, host: &str) -> Result<Option<Box<dyn Context>>, SaslError>;

    /// How much the connection is to be protected, what is wanted most first.
    fn protections(&self) -> &[Protection];

    /// Whether to go on with a server that asks for no proof.
    fn allows_simple(&self) -> bool;
}

/// Shows a token, and goes on with who asks for none.
pub struct ShownToken(pub Secret);

impl Credentials for ShownToken {
    fn token(&self) -> Option<Secret> {
        Some(self.0.clone())
    }

    fn initiate(&self, _: &str, _: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        Ok(None)
    }

    fn protections(&self) -> &[Protection] {
        &Protection::ALL
    }

    fn allows_simple(&self) -> bool {
        true
    }
}

/// Shows a token, and goes on with nobody who asks for none.
pub struct OnlyToken {
    /// The token.
    pub secret: Secret,
    /// How much connections are to be protected, what is wanted most first.
    pub protections: Vec<Protection>,
}

impl Credentials for OnlyToken {
    fn token(&self) -> Option<Secret> {
        Some(self.secret.clone())
    }

    fn initiate(&self, _: &str, _: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        Ok(None)
    }

    fn protections(&self) -> &[Protection] {
        &self.protections
    }

    fn allows_simple(&self) -> bool {
        false
    }
}

/// What comes of a message.
#[derive(Debug)]
pub enum ClientStep {
    /// The server is to get this.
    Send(RpcSaslProto),
    /// The server believes what it is told.
    Simple,
    /// The server knows the client. What follows is enclosed by the layer, if there is one.
    Done(Option<Layer>),
}

/// One connection's exchange.
pub struct ClientHandshake {
    nonce: [u8; NONCE_LEN],
    mechanism: Mechanism,
    messages: u32,
}

enum Mechanism {
    /// Not chosen yet.
    None,
    Token(DigestClient),
    Kerberos(GssClient),
}

impl ClientHandshake {
    /// For one connection, with random bytes that were never used before; and the first message.
    pub fn begin(nonce: [u8; NONCE_LEN]) -> (ClientHandshake, RpcSaslProto) {
        let first = RpcSaslProto { state: State::Negotiate as i32, ..RpcSaslProto::default() };
        (ClientHandshake { nonce, mechanism: Mechanism::None, messages: 0 }, first)
    }

    /// Whether it goes by a ticket of Kerberos; otherwise by a token, or nothing is chosen.
    pub fn is_kerberos(&self) -> bool {
        matches!(self.mechanism, Mechanism::Kerberos(_))
    }

    /// Takes what the server has sent. After an error there is nothing more to say.
    pub fn take(
        &mut self,
        message: RpcSaslProto,
        credentials: &dyn Credentials,
    ) -> Result<ClientStep, SaslError> {
        self.messages += 1;
        if self.messages > MESSAGES_MAX {
            return Err(SaslError::new("Too many messages before the server knows the client"));
        }
        match message.state() {
            State::Negotiate if matches!(self.mechanism, Mechanism::None) => {
                self.choose(message.auths, credentials).map(ClientStep::Send)
            }
            State::Challenge => {
                let token = message.token;
                let token =
                    token.ok_or_else(|| SaslError::new("Server challenge contains no token"))?;
                let token = match &mut self.mechanism {
                    Mechanism::None => {
                        return Err(SaslError::new("Server sent unsolicited challenge"));
                    }
                    Mechanism::Token(digest) => digest.respond(&token)?,
                    Mechanism::Kerberos(gssapi) => gssapi.step(&token)?,
                };
                let state = State::Response as i32;
                let reply = RpcSaslProto { state, token: Some(token), ..RpcSaslProto::default() };
                Ok(ClientStep::Send(reply))
            }
            State::Success => match &mut self.mechanism {
                Mechanism::None if credentials.allows_simple() => Ok(ClientStep::Simple),
                Mechanism::None => Err(SaslError::new(
                    "Server asks for SIMPLE auth, but this client is configured to only allow \
                     secure connections.",
                )),
                Mechanism::Token(digest) => {
                    let finished = digest.finish(&message.token.unwrap_or_default());
                    finished.map(|(_, layer)| ClientStep::Done(layer))
                }
                Mechanism::Kerberos(gssapi) => gssapi.finish().map(ClientStep::Done),
            },
            _ => Err(SaslError::new("RPC client doesn't support that SASL state")),
        }
    }

    /// Takes the first offer that there is something for.
    fn choose(
        &mut self,
        offers: Vec<Auth>,
        credentials: &dyn Credentials,
    ) -> Result<RpcSaslProto, SaslError> {
        let protections = credentials.protections();
        let mut methods = Vec::new();
        for mut offer in offers {
            let name = (offer.method.as_str(), offer.mechanism.as_str());
            let token = if name == TOKEN {
                let Some(secret) = credentials.token() else {
                    methods.push(offer.method);
                    continue;
                };
                let mut digest = DigestClient::new(Service::RPC, &secret, self.nonce, protections);
                let token = match offer.challenge.take() {
                    Some(challenge) => digest.respond(&challenge)?,
                    None => Vec::new(),
                };
                self.mechanism = Mechanism::Token(digest);
                token
            } else if name == KERBEROS {
                let service = offer.protocol.as_deref().unwrap_or_default();
                let host = offer.server_id.as_deref().unwrap_or_default();
                let Some(context) = credentials.initiate(service, host)? else {
                    methods.push(offer.method);
                    continue;
                };
                let mut gssapi = GssClient::new(context, protections);
                let token = gssapi.step(&[])?;
                self.mechanism = Mechanism::Kerberos(gssapi);
                token
            } else {
                methods.push(offer.method);
                continue;
            };
            return Ok(RpcSaslProto {
                state: State::Initiate as i32,
                token: Some(token),
                auths: vec![offer],
                ..RpcSaslProto::default()
            });
        }
        Err(SaslError(format!("Client cannot authenticate via:[{}]", methods.join(", "))))
    }
}
