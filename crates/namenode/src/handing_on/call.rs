//! What is handed on: a call with all that says whose it is, and its answer.

use bytes::Bytes;
use cairn_net::rpc_server::{Authentication, Call, CallerContext, StateId, UserInfo};
use cairn_security::token::TokenName;
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use cairn_wire::proto::common::RpcResponseHeaderProtoRpcErrorCodeProto as Code;
use cairn_wire::proto::hdfs::{HandedAnswerProto, HandedCallProto};
use prost::Message;
use std::sync::Arc;

/// The protocol that members speak.
pub use crate::security::HANDED_ON as PROTOCOL;

/// Begins a session.
pub(super) const OPEN: &str = "openSession";

/// Hands a call on.
pub(super) const CALL: &str = "call";

/// What a member gets whose session is not known, or whose key is another.
pub(super) const NO_SESSION: &str = "cairn.NoSession";

/// How requests for pages come; no client's call does.
pub const BY_PAGES: &str = "pages";

/// How calls come. See [`Call::carrier`].
const CARRIERS: [&str; 4] = ["rpc", "webhdfs", "http", BY_PAGES];

pub(super) fn encode(call: &Call) -> Vec<u8> {
    let (mut effective_principal, mut principal, mut token) = (None, None, None);
    match &call.user.by {
        Authentication::Kerberos { effective, principal: shown } => {
            (effective_principal, principal) = (Some(effective.clone()), Some(shown.clone()));
        }
        Authentication::Token(name) => token = name.as_ref(),
        // Nobody shows a NameNode a token to a block.
        Authentication::Simple | Authentication::Block(_) => {}
    }
    let context = call.caller_context.as_ref();
    let handed = HandedCallProto {
        protocol: call.protocol.as_str().into(),
        version: call.version,
        method: call.method.as_str().into(),
        connection_protocol: call.connection_protocol.to_string(),
        user: call.user.effective.clone(),
        real_user: call.user.real.clone(),
        by_token: Some(matches!(call.user.by, Authentication::Token(_))),
        effective_principal,
        principal,
        client_id: call.client_id.to_vec(),
        call_id: call.call_id,
        retry_count: call.retry_count,
        peer: call.peer.to_string(),
        caller_context: context.map(|context| context.context.clone()),
        caller_signature: context.map(|context| context.signature.clone()),
        carrier: call.carrier.into(),
        body: call.body.to_vec(),
        state_id: call.state.as_ref().map(|state| state.seen()),
        token_number: token.map(|token| token.number),
        token_tracking_id: token.map(|token| token.tracking_id.clone()),
    };
    handed.encode_to_vec()
}

/// The call as it came to the member that hands it on; `None` if it is none.
pub(super) fn decode(bytes: &[u8]) -> Option<Call> {
    let handed = HandedCallProto::decode(bytes).ok()?;
    let by = match (handed.effective_principal, handed.principal) {
        (Some(effective), Some(principal)) => Authentication::Kerberos { effective, principal },
        _ if handed.by_token == Some(true) => {
            let name = handed.token_number.zip(handed.token_tracking_id);
            Authentication::Token(
                name.map(|(number, tracking_id)| TokenName { number, tracking_id }),
            )
        }
        _ => Authentication::Simple,
    };
    let user = UserInfo { effective: handed.user, real: handed.real_user, by };
    let caller_context = handed.caller_context.map(|context| CallerContext {
        context,
        signature: handed.caller_signature.unwrap_or_default(),
    });
    Some(Call {
        protocol: handed.protocol.into(),
        method: handed.method.into(),
        version: handed.version,
        user: Arc::new(user),
        client_id: handed.client_id.try_into().ok()?,
        call_id: handed.call_id,
        retry_count: handed.retry_count,
        peer: handed.peer.parse().ok()?,
        body: Bytes::from(handed.body),
        connection_protocol: handed.connection_protocol.into(),
        caller_context,
        carrier: CARRIERS.into_iter().find(|known| *known == handed.carrier)?,
        state: handed.state_id.map(StateId::new).map(Arc::new),
    })
}

/// An answer, and what it says of the state of the namespace.
pub(super) type Told = (Result<Vec<u8>, RemoteException>, Option<i64>);

pub(super) fn encode_answer((answer, state_id): Told) -> Vec<u8> {
    let handed = match answer {
        Ok(body) => HandedAnswerProto { body: Some(body), state_id, ..Default::default() },
        Err(RemoteException { class, message, code }) => HandedAnswerProto {
            body: None,
            exception_class: Some(class),
            exception_message: Some(message),
            exception_code: Some(code as u32),
            state_id,
        },
    };
    handed.encode_to_vec()
}

pub(super) fn decode_answer(bytes: &[u8]) -> Told {
    let handed = match HandedAnswerProto::decode(bytes) {
        Ok(handed) => handed,
        Err(error) => {
            return (Err(RemoteException::io(format!("an answer that is none: {error}"))), None);
        }
    };
    let state_id = handed.state_id;
    let answer = match handed.body {
        Some(body) => Ok(body),
        None => {
            let code = handed.exception_code.and_then(|code| i32::try_from(code).ok());
            let code = code.and_then(|code| Code::try_from(code).ok());
            let class = handed.exception_class.unwrap_or_else(|| class::IO.into());
            let message = handed.exception_message.unwrap_or_default();
            Err(RemoteException::with_code(class, message, code.unwrap_or(Code::ErrorApplication)))
        }
    };
    (answer, state_id)
}
