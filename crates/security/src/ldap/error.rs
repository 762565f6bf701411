//! What goes wrong with messages of LDAP.

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LdapError {
    /// The server has sent what is no message of LDAP, or a longer one than is read.
    #[error("the server's answer is no LDAP message that can be read")]
    Malformed,
    /// Text that is no filter.
    #[error("{0} is no search filter")]
    Filter(String),
    /// The server has refused.
    #[error("LDAP result {code}: {message}")]
    Refused {
        /// Its code. Source: RFC 4511 appendix A.
        code: u32,
        /// What it says of it.
        message: String,
    },
}
