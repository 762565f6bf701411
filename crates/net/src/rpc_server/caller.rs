//! Whose a call is, as far as its answer has to say.

use super::call::StateId;
use cairn_trace::Span;
use cairn_wire::RemoteException;
use std::sync::Arc;

/// Who gets an answer.
pub(super) struct Caller {
    pub(super) call_id: i32,
    pub(super) retry_count: i32,
    pub(super) client_id: Identity,
    /// What the answer says of the state of the namespace, if the client wants to know.
    pub(super) state: Option<Arc<StateId>>,
    /// What the call is in the caller's trace, until it is answered.
    pub(super) span: Option<Box<Span>>,
}

impl Caller {
    /// See [`StateId::told`].
    pub(super) fn state_id(&self) -> Option<i64> {
        self.state.as_ref()?.told()
    }

    /// The call has ended so.
    pub(super) fn note_end(&mut self, result: &Result<Vec<u8>, RemoteException>) {
        if let (Some(span), Err(error)) = (&mut self.span, result) {
            span.failed(&error.class);
        }
    }
}

/// A client's identity, which it gets back.
pub(super) enum Identity {
    /// One of the usual length.
    Usual([u8; 16]),
    /// Any other.
    Other(Vec<u8>),
}

impl std::ops::Deref for Identity {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Identity::Usual(bytes) => bytes,
            Identity::Other(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Identity {
    fn from(bytes: Vec<u8>) -> Identity {
        bytes.try_into().map_or_else(Identity::Other, Identity::Usual)
    }
}
