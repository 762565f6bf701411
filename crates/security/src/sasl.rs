//! What SASL mechanisms have in common.

/// Why a peer is not believed, or what it sent cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SaslError(pub String);

impl SaslError {
    /// With that text.
    pub fn new(text: impl Into<String>) -> SaslError {
        SaslError(text.into())
    }
}

/// Encloses what is sent over a connection.
pub trait Seal: Send + Sync {
    /// The bytes for the wire of bytes of no more than [`Seal::plain_max`].
    fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, SaslError>;

    /// How many bytes the peer wants enclosed at a time, at most.
    fn plain_max(&self) -> usize;
}

/// Opens what comes over a connection, in the order in which it was enclosed.
pub trait Open: Send + Sync {
    /// The bytes that were enclosed. Fails where they were changed, left out, or come again.
    fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SaslError>;
}

/// What encloses and opens everything that follows on a connection.
pub struct Layer {
    /// For what is sent.
    pub seal: Box<dyn Seal>,
    /// For what comes.
    pub open: Box<dyn Open>,
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Layer")
    }
}
