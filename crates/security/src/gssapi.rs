//! The mechanism GSSAPI, which is Kerberos in Hadoop: a security context by the system's library, and then what is agreed
//! on through it.
//!
//! Source: RFC 4752, and what a JDK does where that leaves a choice (`GssKrb5Server`, `GssKrb5Client`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sasl::{Layer, Open, Seal};
use crate::{Protection, SaslError};

/// Bytes that are taken at a time. As a JDK's.
const RECEIVE_MAX: u32 = 65536;
/// Room for what encloses a message: Kerberos takes 60 to 76 bytes.
const ENCLOSURE: usize = 256;

/// One side of a security context.
pub trait Context: Send {
    /// Takes what the peer has sent, nothing at first for who begins; returns what the peer is to get, if anything.
    fn step(&mut self, token: &[u8]) -> Result<Option<Vec<u8>>, SaslError>;

    /// Whether both sides know each other.
    fn is_established(&self) -> bool;

    /// The peer's principal, with its realm.
    fn peer(&self) -> Result<String, SaslError>;

    /// Encloses a message, so that nobody else can read it if `confidential`.
    fn wrap(&mut self, confidential: bool, message: &[u8]) -> Result<Vec<u8>, SaslError>;

    /// Opens one.
    fn unwrap(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError>;
}

/// Makes a server's side of a context for each connection.
#[derive(Clone)]
pub struct Acceptor(pub Arc<dyn Fn() -> Result<Box<dyn Context>, SaslError> + Send + Sync>);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

/// A server's side of one exchange.
pub struct GssServer {
    context: Option<Box<dyn Context>>,
    protections: Vec<Protection>,
    state: ServerState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerState {
    /// The context is being made.
    Accepting,
    /// It is there, and the client has the last word of it.
    Accepted,
    /// What is offered has been sent.
    Offered,
}

/// What comes of a step of a server.
#[derive(Debug)]
pub enum GssStep {
    /// The client is to get this.
    Challenge(Vec<u8>),
    /// The client is this principal, and that is around all that follows.
    Done(String, Option<Layer>),
}

impl GssServer {
    /// With a new context.
    pub fn new(context: Box<dyn Context>, protections: &[Protection]) -> GssServer {
        let state = ServerState::Accepting;
        GssServer { context: Some(context), protections: protections.to_vec(), state }
    }

    /// Takes what the client has sent.
    pub fn step(&mut self, token: &[u8]) -> Result<GssStep, SaslError> {
        let ended = || SaslError::new("GSSAPI: the exchange has ended");
        // After an error there is none.
        let mut context = self.context.take().ok_or_else(ended)?;
        let challenge = match self.state {
            ServerState::Accepting => {
                let answer = context.step(token)?;
                match (context.is_established(), answer) {
                    (true, Some(answer)) => {
                        self.state = ServerState::Accepted;
                        answer
                    }
                    (true, None) => self.offer(&mut *context)?,
                    (false, Some(answer)) => answer,
                    (false, None) => return Err(SaslError::new("GSSAPI: no answer to a token")),
                }
            }
            ServerState::Accepted if token.is_empty() => self.offer(&mut *context)?,
            ServerState::Accepted => {
                return Err(SaslError::new("GSSAPI: no token was expected"));
            }
            ServerState::Offered => return self.agree(context, token),
        };
        self.context = Some(context);
        Ok(GssStep::Challenge(challenge))
    }

    /// Says what may be around what follows.
    fn offer(&mut self, context: &mut dyn Context) -> Result<Vec<u8>, SaslError> {
        self.state = ServerState::Offered;
        let bits = self.protections.iter().fold(0, |bits, one| bits | one.bit());
        context.wrap(false, &layers(bits, RECEIVE_MAX))
    }

    /// Takes what the client has chosen.
    fn agree(&self, mut context: Box<dyn Context>, token: &[u8]) -> Result<GssStep, SaslError> {
        let chosen = context.unwrap(token)?;
        let (bits, peer_max, other) = read_layers(&chosen)?;
        let Some(&protection) = self.protections.iter().find(|one| one.bit() == bits) else {
            return Err(SaslError::new("Client selected unsupported protection"));
        };
        let peer = context.peer()?;
        if !other.is_empty() && other != peer.as_bytes() {
            return Err(SaslError(format!("{peer} is not authorized to connect as another")));
        }
        Ok(GssStep::Done(peer, layer(context, protection, peer_max)?))
    }
}

/// A client's side of one exchange.
pub struct GssClient {
    context: Option<Box<dyn Context>>,
    protections: Vec<Protection>,
    layer: Option<Option<Layer>>,
}

impl GssClient {
    /// With a new context. Of `protections` the first that the server has is taken.
    pub fn new(context: Box<dyn Context>, protections: &[Protection]) -> GssClient {
        GssClient { context: Some(context), protections: protections.to_vec(), layer: None }
    }

    /// Takes what the server has sent, nothing at first; returns what the server is to get.
    pub fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, SaslError> {
        let ended = || SaslError::new("GSSAPI: the exchange has ended");
        let mut context = self.context.take().ok_or_else(ended)?;
        if !context.is_established() {
            let answer = context.step(token)?;
            self.context = Some(context);
            return Ok(answer.unwrap_or_default());
        }
        let offered = context.unwrap(token)?;
        let (bits, peer_max, _) = read_layers(&offered)?;
        let Some(&protection) = self.protections.iter().find(|one| one.bit() & bits != 0) else {
            let text = "No common protection layer between client and server";
            return Err(SaslError::new(text));
        };
        let own_max = if protection == Protection::Authentication { 0 } else { RECEIVE_MAX };
        let answer = context.wrap(false, &layers(protection.bit(), own_max))?;
        self.layer = Some(layer(context, protection, peer_max)?);
        Ok(answer)
    }

    /// What is around all that follows. Fails before the end of the exchange.
    pub fn finish(&mut self) -> Result<Option<Layer>, SaslError> {
        self.layer.take().ok_or_else(|| SaslError::new("Client is out of sync with server"))
    }
}

/// What one side says of layers. Source: RFC 4752, section 3.3.
fn layers(bits: u8, receive_max: u32) -> [u8; 4] {
    let [_, a, b, c] = receive_max.to_be_bytes();
    [bits, a, b, c]
}

fn read_layers(message: &[u8]) -> Result<(u8, usize, &[u8]), SaslError> {
    let Some(([bits, a, b, c], rest)) = message.split_first_chunk() else {
        return Err(SaslError::new("GSSAPI: a choice of layers is too short"));
    };
    Ok((*bits, u32::from_be_bytes([0, *a, *b, *c]) as usize, rest))
}

fn layer(
    context: Box<dyn Context>,
    protection: Protection,
    peer_max: usize,
) -> Result<Option<Layer>, SaslError> {
    if protection == Protection::Authentication {
        return Ok(None);
    }
    let plain_max = peer_max.checked_sub(2 * ENCLOSURE);
    let plain_max = plain_max.ok_or_else(|| SaslError::new("GSSAPI: the peer takes too little"))?;
    let context = Arc::new(Mutex::new(context));
    let seal = Box::new(Sealing {
        context: Arc::clone(&context),
        confidential: protection == Protection::Privacy,
        plain_max: plain_max + ENCLOSURE,
    });
    Ok(Some(Layer { seal, open: Box::new(Opening(context)) }))
}

struct Sealing {
    context: Arc<Mutex<Box<dyn Context>>>,
    confidential: bool,
    plain_max: usize,
}

impl Seal for Sealing {
    fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, SaslError> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        context.wrap(self.confidential, plain)
    }

    fn plain_max(&self) -> usize {
        self.plain_max
    }
}

struct Opening(Arc<Mutex<Box<dyn Context>>>);

impl Open for Opening {
    fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unwrap(sealed)
    }
}
