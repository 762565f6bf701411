//! Kerberos by the system's GSSAPI library, where the feature `gssapi` is built in; without it everything here fails and
//! says so.
//!
//! The library takes keys from the keytab that the environment names, for servers in `KRB5_KTNAME`, for those who get
//! tickets by themselves in `KRB5_CLIENT_KTNAME`, and tickets from the cache in `KRB5CCNAME`. It gets new tickets before
//! those that it has end.

#[cfg(feature = "gssapi")]
mod library;
mod place;
#[cfg(feature = "gssapi")]
mod store;

pub use place::Store;

use cairn_security::client::Credentials;
use cairn_security::digest_md5::Secret;
use cairn_security::gssapi::Context;
use cairn_security::{KerberosName, Protection, SaslError, kerberos_name};

/// Whether this build can speak Kerberos.
pub const IS_BUILT_IN: bool = cfg!(feature = "gssapi");

/// A server's side of a new security context, for a principal whose key is in the keytab.
pub fn accept(principal: &str, store: &Store) -> Result<Box<dyn Context>, SaslError> {
    #[cfg(feature = "gssapi")]
    {
        library::accept(principal, store)
    }
    #[cfg(not(feature = "gssapi"))]
    {
        let _ = store;
        Err(not_built_in(principal))
    }
}

/// Whose the first ticket is that there is, with its realm.
pub fn own(store: &Store) -> Result<String, SaslError> {
    #[cfg(feature = "gssapi")]
    {
        library::own(store)
    }
    #[cfg(not(feature = "gssapi"))]
    {
        let _ = store;
        Err(not_built_in("a ticket"))
    }
}

/// A client's side of a new security context with a principal, by the tickets of `own`, or the first that there are.
fn initiate(own: Option<&str>, with: &str, store: &Store) -> Result<Box<dyn Context>, SaslError> {
    #[cfg(feature = "gssapi")]
    {
        library::initiate(own, with, store)
    }
    #[cfg(not(feature = "gssapi"))]
    {
        let _ = store;
        Err(not_built_in(own.unwrap_or(with)))
    }
}

#[cfg(not(feature = "gssapi"))]
fn not_built_in(principal: &str) -> SaslError {
    let how = "build it with the feature kerberos";
    SaslError(format!("This build has no Kerberos, which {principal} needs: {how}"))
}

/// A client that shows who it is by a ticket.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Whose; the first that there is for `None`.
    pub principal: Option<String>,
    /// Where it is.
    pub store: Store,
    /// Who the server must be, perhaps with `_HOST`.
    pub server: String,
    /// How much connections are to be protected, what is wanted most first.
    pub protections: Vec<Protection>,
    /// Whether to go on with a server that asks for no proof.
    pub allows_simple: bool,
}

impl Ticket {
    /// Who a server is that calls itself so; fails where that is not who it must be.
    ///
    /// Source: Hadoop 3.5.0 `SaslRpcClient#getServerPrincipal`.
    fn server(&self, service: &str, host: &str) -> Result<String, SaslError> {
        let expected = kerberos_name::server_principal(&self.server, host);
        let name = KerberosName::parse(&expected)?;
        if name.service != service || name.host.as_deref() != Some(host) {
            let told = format!("{service}/{host}");
            let text = "Server has invalid Kerberos principal";
            return Err(SaslError(format!("{text}: {told}, expecting: {expected}")));
        }
        Ok(expected)
    }
}

impl Credentials for Ticket {
    fn token(&self) -> Option<Secret> {
        None
    }

    fn initiate(&self, service: &str, host: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        let server = self.server(service, host)?;
        initiate(self.principal.as_deref(), &server, &self.store).map(Some)
    }

    fn protections(&self) -> &[Protection] {
        &self.protections
    }

    fn allows_simple(&self) -> bool {
        self.allows_simple
    }
}

/// A client that shows a token where it has one, and else a ticket.
#[derive(Clone, Debug)]
pub struct TokenOrTicket {
    /// A token of the server's.
    pub token: Option<Secret>,
    /// How to show a ticket, or why that cannot be.
    pub ticket: Result<Ticket, SaslError>,
    /// How much connections are to be protected, what is wanted most first.
    pub protections: Vec<Protection>,
    /// Whether to go on with a server that asks for no proof.
    pub allows_simple: bool,
}

impl Credentials for TokenOrTicket {
    fn token(&self) -> Option<Secret> {
        self.token.clone()
    }

    fn initiate(&self, service: &str, host: &str) -> Result<Option<Box<dyn Context>>, SaslError> {
        self.ticket.as_ref().map_err(Clone::clone)?.initiate(service, host)
    }

    fn protections(&self) -> &[Protection] {
        &self.protections
    }

    fn allows_simple(&self) -> bool {
        self.allows_simple
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_must_be_who_it_should_be() {
        let ticket = |server: &str| Ticket {
            principal: None,
            store: Store::default(),
            server: server.to_owned(),
            protections: vec![Protection::Privacy],
            allows_simple: false,
        };
        let any = ticket("nn/_HOST@R");
        assert_eq!(any.server("nn", "one.x").unwrap(), "nn/one.x@R");
        assert!(any.server("dn", "one.x").is_err());
        let one = ticket("nn/one.x@R");
        assert_eq!(one.server("nn", "one.x").unwrap(), "nn/one.x@R");
        assert!(one.server("nn", "other.x").is_err());
        assert!(ticket("nn@R").server("nn", "one.x").is_err());
    }
}
