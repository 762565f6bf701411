//! What a service sees of a call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use cairn_security::block_token::BlockTokenId;
use cairn_security::token::TokenName;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::RpcResponseHeaderProtoRpcErrorCodeProto as Code;
use prost::Message;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserInfo {
    /// The user whose permissions count. Never empty.
    pub effective: String,
    /// The user who acts for `effective`, when it is another. See [`super::Service::authorize`].
    pub real: Option<String>,
    /// How it is known.
    pub by: Authentication,
}

/// How it is known who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// By the connection's own word.
    Simple,
    /// By a ticket of Kerberos.
    Kerberos {
        /// The user whose permissions count, by its full name.
        effective: String,
        /// Whose ticket it is.
        principal: String,
    },
    /// By a token that was issued to the user, perhaps for who acts for it; `None` where a member has handed a call on that
    /// did not say by which.
    Token(Option<TokenName>),
    /// By a token to a block, which says what may be asked for.
    Block(Box<BlockTokenId>),
}

impl Authentication {
    /// Its name in Hadoop. Source: Hadoop 3.5.0 `UserGroupInformation.AuthenticationMethod`.
    pub fn name(&self) -> &'static str {
        match self {
            Authentication::Simple => "SIMPLE",
            Authentication::Kerberos { .. } => "KERBEROS",
            Authentication::Token(_) | Authentication::Block(_) => "TOKEN",
        }
    }
}

impl UserInfo {
    /// One that is believed.
    pub fn simple(effective: impl Into<String>) -> UserInfo {
        UserInfo { effective: effective.into(), real: None, by: Authentication::Simple }
    }

    /// Who acts for the user and has to be let do so. With a token that was asked when it was issued.
    pub fn proxy(&self) -> Option<&str> {
        self.real.as_deref().filter(|_| !matches!(self.by, Authentication::Token(_)))
    }

    /// Fails when one user acts for another.
    pub fn refuse_impersonation(&self) -> Result<(), RemoteException> {
        let Some(real) = self.proxy() else { return Ok(()) };
        let message = format!("User: {real} is not allowed to impersonate {}", self.effective);
        Err(RemoteException::with_code(class::AUTHORIZATION, message, Code::FatalUnauthorized))
    }
}

/// The name of a protocol or method, which all calls of a connection share that have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Name {
    fn from(name: String) -> Name {
        Name(name.into())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl PartialEq<Name> for &str {
    fn eq(&self, other: &Name) -> bool {
        **self == *other.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The last entry of the namespace that a client has seen before a call, and the last one that may show in its answer. Only
/// clients that read where others are followed tell the first.
///
/// Source: Hadoop 3.5.0 `AlignmentContext`, `GlobalStateIdContext`.
#[derive(Debug)]
pub struct StateId {
    seen: i64,
    told: AtomicI64,
}

impl StateId {
    /// Nothing in the answer.
    const NONE: i64 = i64::MIN;

    /// Of a client that has seen that entry; less than 1 if none.
    pub fn new(seen: i64) -> StateId {
        StateId { seen, told: AtomicI64::new(StateId::NONE) }
    }

    /// What the client has seen.
    pub fn seen(&self) -> i64 {
        self.seen
    }

    /// Nothing behind that entry shows in the answer.
    pub fn tell(&self, last: i64) {
        self.told.fetch_max(last, Ordering::Relaxed);
    }

    /// What the client is told, if anything.
    pub fn told(&self) -> Option<i64> {
        Some(self.told.load(Ordering::Relaxed)).filter(|told| *told != StateId::NONE)
    }
}

/// One call with its decoded headers.
#[derive(Clone, Debug)]
pub struct Call {
    /// The protocol that the method belongs to, such as
    /// `org.apache.hadoop.hdfs.protocol.ClientProtocol`.
    pub protocol: Name,
    /// The method's name, such as `getFileInfo`.
    pub method: Name,
    /// The version of `protocol` that the client wants; 1 in all of HDFS.
    pub version: u64,
    /// The connection's user.
    pub user: Arc<UserInfo>,
    /// The client's identity: with `call_id` it names a call and its retries.
    pub client_id: [u8; 16],
    /// The call's number, 0 or more.
    pub call_id: i32,
    /// How often this call was sent before; -1 when the client does not count.
    pub retry_count: i32,
    /// Where the connection comes from.
    pub peer: SocketAddr,
    /// The encoded request message.
    pub body: Bytes,
    /// The protocol named when the connection was set up; empty when none was.
    pub connection_protocol: Arc<str>,
    /// What the client says of itself, for audit logs.
    pub caller_context: Option<CallerContext>,
    /// How it came, for audit logs: `rpc`, or what else serves the same calls.
    pub carrier: &'static str,
    /// Of a client that follows the state of the namespace.
    pub state: Option<Arc<StateId>>,
}

/// What a client says of itself (`hadoop.caller.context`). Nobody checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerContext {
    /// Text, such as the number of a job.
    pub context: String,
    /// What is to prove it to who reads the log; empty for nothing.
    pub signature: Vec<u8>,
}

impl Call {
    /// The request message.
    ///
    /// The error is ready to be returned from [`super::Service::call`].
    pub fn decode<M: Message + Default>(&self) -> Result<M, RemoteException> {
        M::decode(&self.body[..]).map_err(|error| {
            RemoteException::new(
                class::INVALID_PROTOCOL_BUFFER,
                format!("Cannot decode the request of {}: {error}", self.method),
            )
        })
    }

    /// As [`StateId::tell`], if the client wants to know.
    pub fn tell_state(&self, last: u64) {
        if let Some(state) = &self.state {
            state.tell(i64::try_from(last).unwrap_or(i64::MAX));
        }
    }

    /// Whether it is of the protocol that its connection was set up for.
    pub fn is_of_its_connection(&self) -> bool {
        self.connection_protocol[..] == self.protocol[..]
    }

    /// Refuses a protocol that the service does not have.
    ///
    /// Source: Hadoop 3.5.0 `ProtobufRpcEngine2.Server.ProtoBufRpcInvoker#getProtocolImpl`.
    pub fn unknown_protocol(&self) -> RemoteException {
        let message = format!("Unknown protocol: {}", self.protocol);
        RemoteException::with_code(class::RPC_NO_SUCH_PROTOCOL, message, Code::ErrorNoSuchProtocol)
    }

    /// Refuses a method that the protocol does not have.
    ///
    /// Source: Hadoop 3.5.0 `ProtobufRpcEngine2.Server.ProtoBufRpcInvoker#call`.
    pub fn unknown_method(&self) -> RemoteException {
        let (method, protocol) = (&self.method, &self.connection_protocol);
        let message = format!("Unknown method {method} called on {protocol} protocol.");
        RemoteException::with_code(class::RPC_NO_SUCH_METHOD, message, Code::ErrorNoSuchMethod)
    }

    /// Refuses a version of a protocol that the service has in version `server` only.
    ///
    /// Source: Hadoop 3.5.0 `RPC.VersionMismatch`.
    pub fn version_mismatch(&self, server: u64) -> RemoteException {
        let (protocol, client) = (&self.protocol, self.version);
        RemoteException::with_code(
            class::RPC_VERSION_MISMATCH,
            format!("Protocol {protocol} version mismatch. (client = {client}, server = {server})"),
            Code::ErrorRpcVersionMismatch,
        )
    }

    /// Checks protocol and version against `(protocol, version)` pairs that the service has.
    pub fn check_protocol(&self, served: &[(&str, u64)]) -> Result<(), RemoteException> {
        match served.iter().find(|(protocol, _)| self.protocol == *protocol) {
            None => Err(self.unknown_protocol()),
            Some((_, version)) if *version != self.version => Err(self.version_mismatch(*version)),
            Some(_) => Ok(()),
        }
    }
}

/// Encodes the response of a call that succeeded.
pub fn respond(message: &impl Message) -> Result<Vec<u8>, RemoteException> {
    Ok(message.encode_to_vec())
}
