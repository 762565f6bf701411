//! Why the key server gave no answer that can be used.

/// What went wrong, told apart by whose fault it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KmsError {
    /// There is no such key.
    #[error("key {name} does not exist")]
    NotFound {
        /// The key asked for.
        name: String,
    },
    /// This user may not do that, or is not who it says.
    #[error("{class}: {message}")]
    Refused {
        /// Full name of the Java exception class.
        class: String,
        /// Its message.
        message: String,
    },
    /// The server answered with another error.
    #[error("KMS {host}: HTTP status {status}{}{}", part(class), part(message))]
    Server {
        /// `host:port`.
        host: String,
        /// The HTTP status.
        status: u16,
        /// Full name of the Java exception class; empty when the server named none.
        class: String,
        /// Its message, or the first bytes of what came instead.
        message: String,
    },
    /// No server could be reached, or none answered in time.
    #[error("KMS {host}: {reason}")]
    Unreachable {
        /// `host:port` of the last one that was tried.
        host: String,
        /// What happened there.
        reason: String,
    },
    /// The answer makes no sense.
    #[error("KMS {host}: bad answer: {reason}")]
    Answer {
        /// `host:port`.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An argument that the server cannot take.
    #[error("{0}")]
    Argument(String),
}

/// A part of a sentence that may be missing.
fn part(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
