//! Where keys and tickets are.

/// Where keys and tickets are, each in the place of what the environment names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// The keys of servers.
    pub keytab: Option<String>,
    /// The keys by which tickets are got.
    pub client_keytab: Option<String>,
    /// The cache of tickets.
    pub cache: Option<String>,
}
