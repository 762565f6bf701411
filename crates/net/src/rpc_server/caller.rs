//! Whose a call is, as far as its answer has to say.

/// Who gets an answer.
pub(super) struct Caller {
    pub(super) call_id: i32,
    pub(super) retry_count: i32,
    pub(super) client_id: Identity,
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
