//! Why a check ends early.

use crate::refusal::Refusal;

/// Why a check ends early.
pub(super) enum Stop {
    /// Nobody reads any more.
    Gone,
    /// It cannot go on; the reason is told.
    Failed(String),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Failed(refusal.0.message)
    }
}

impl From<cairn_namespace::NamespaceError> for Stop {
    fn from(error: cairn_namespace::NamespaceError) -> Stop {
        Stop::Failed(error.to_string())
    }
}
