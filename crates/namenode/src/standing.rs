//! What this NameNode is among those of its file system.

use tokio::sync::watch;

/// What a NameNode is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the only one.
    Alone,
    /// It leads a quorum.
    Leads {
        /// Since when.
        term: u64,
    },
    /// Another one leads.
    Follows {
        /// The term that it knows of.
        term: u64,
        /// Who leads.
        leader: Leader,
    },
    /// Nobody leads, as far as it knows.
    Nobody {
        /// The last term that it knows of.
        term: u64,
    },
}

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// What the configuration calls it.
    pub name: String,
    /// `host:port` of its RPC.
    pub rpc: String,
}

impl Standing {
    /// Of a NameNode that is the only one.
    pub fn alone() -> watch::Receiver<Standing> {
        watch::channel(Standing::Alone).1
    }

    /// Whether it decides.
    pub fn leads(&self) -> bool {
        matches!(self, Standing::Alone | Standing::Leads { .. })
    }

    /// The term, if there is a quorum.
    pub fn term(&self) -> Option<u64> {
        match self {
            Standing::Alone => None,
            Standing::Leads { term }
            | Standing::Follows { term, .. }
            | Standing::Nobody { term } => Some(*term),
        }
    }

    /// What DataNodes are told as the last entry (`txid`).
    pub fn claim(&self, applied: u64) -> u64 {
        self.term().map_or(1, |term| cairn_quorum::claim(term, applied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_a_quorum_claims_more_than_who_was_alone() {
        assert_eq!(Standing::Alone.claim(77), 1);
        let leads = Standing::Leads { term: 1 };
        assert!(leads.claim(0) > Standing::Alone.claim(u64::MAX));
    }
}
