//! Why a call is refused: the one place where errors of the cores become Hadoop's exceptions.

use cairn_master::OpError;
use cairn_namespace::{NamespaceError, Outcome};
use cairn_wire::RemoteException;
use cairn_wire::exception::class;
use prost::Message;

use crate::journal::SubmitError;
use crate::standing::Standing;

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub RemoteException);

/// What every handler answers with: the encoded response message, or a refusal.
pub type Answer = Result<Vec<u8>, Refusal>;

/// Encodes the response of a call that succeeded.
pub fn answer(message: &impl Message) -> Answer {
    Ok(message.encode_to_vec())
}

/// An outcome that its command never has: a bug of ours, not the client's.
pub fn unexpected(outcome: &Outcome) -> Refusal {
    tracing::error!(?outcome, "a command had an outcome that it cannot have");
    Refusal::io("The NameNode has met a fault of its own; its log says more")
}

impl Refusal {
    /// An exception of Java class `class`.
    pub fn new(class: &str, message: impl Into<String>) -> Refusal {
        Refusal(RemoteException::new(class, message))
    }

    /// A plain `IOException`.
    pub fn io(message: impl Into<String>) -> Refusal {
        Refusal(RemoteException::io(message))
    }

    /// What a member of a quorum says that may not answer: clients go to another one.
    ///
    /// Source: Hadoop 3.5.0 `StandbyException`, `StandbyState#checkOperation`.
    pub fn standby(standing: &Standing) -> Refusal {
        let why = match standing {
            Standing::Follows { leader, .. } => format!("{} at {} leads", leader.name, leader.rpc),
            Standing::Alone | Standing::Leads { .. } | Standing::Nobody { .. } => {
                "it is not known who leads".to_string()
            }
        };
        Refusal::new(class::STANDBY, format!("This NameNode is in state standby: {why}"))
    }

    /// What a member that follows cannot answer, and who leads can.
    ///
    /// Source: Hadoop 3.5.0 `ObserverRetryOnActiveException`.
    pub fn left_to_leader() -> Refusal {
        Refusal::new(class::OBSERVER_RETRY_ON_ACTIVE, "Zero blocklocations or work for the leader")
    }

    /// Something that Hadoop does and Cairn does not do yet.
    pub fn unsupported(message: impl Into<String>) -> Refusal {
        Refusal::new(class::UNSUPPORTED_OPERATION, message)
    }
}

impl From<RemoteException> for Refusal {
    fn from(exception: RemoteException) -> Refusal {
        Refusal(exception)
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Refusal {
        match error {
            SubmitError::Refused(error) => error.into(),
            SubmitError::Moved => Refusal::new(class::RETRIABLE, error.to_string()),
            SubmitError::Stopped | SubmitError::RollbackPoint(_) => Refusal::io(error.to_string()),
        }
    }
}

impl From<OpError> for Refusal {
    fn from(error: OpError) -> Refusal {
        match error {
            OpError::Refused(error) => error.into(),
            OpError::NoPlace(text) => Refusal::io(text),
            OpError::Moved => SubmitError::Moved.into(),
            OpError::Stopped(why) => {
                tracing::error!(why, "an operation has no answer");
                Refusal::io(why)
            }
        }
    }
}

impl From<NamespaceError> for Refusal {
    fn from(error: NamespaceError) -> Refusal {
        Refusal::new(error.exception_class(), error.to_string())
    }
}
