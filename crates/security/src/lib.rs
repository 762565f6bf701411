//! Who a peer is, and what keeps others from what it says: SASL as Hadoop's RPC has it, the tokens that NameNodes issue,
//! what users Kerberos principals stand for, and what an LDAP server is asked about users.
//!
//! No I/O, no clock, no randomness: nonces, keys and times come in as values, and what needs the system's Kerberos
//! library or a NameNode's tokens is asked of traits ([`gssapi::Context`], [`server::Authority`]).

pub mod auth_cookie;
pub mod block_keys;
pub mod block_token;
pub mod cipher;
pub mod client;
mod digest;
pub mod digest_md5;
pub mod gssapi;
pub mod kerberos_name;
pub mod ldap;
pub mod protection;
pub mod sasl;
pub mod server;
pub mod token;
pub mod token_file;
pub mod transfer;
mod writable;

pub use kerberos_name::{KerberosName, NameRules};
pub use protection::Protection;
pub use sasl::SaslError;
