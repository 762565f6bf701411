//! What this NameNode is among those of its file system.

use tokio::sync::watch;

/// Bits of a claim that say which entry was applied last. The sign bit stays free, since Java has signed numbers only.
const APPLIED_BITS: u32 = 43;

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

    /// What DataNodes are told as the last entry (`txid`). They follow who claims to be active with a greater number than
    /// they have heard before, so a new term is worth more than all entries before it.
    ///
    /// Source: Hadoop 3.5.0 `BPOfferService#updateActorStatesFromHeartbeat`.
    pub fn claim(&self, applied: u64) -> u64 {
        let Some(term) = self.term() else { return 1 };
        let (entries, terms) = ((1 << APPLIED_BITS) - 1, (1 << (63 - APPLIED_BITS)) - 1);
        term.min(terms) << APPLIED_BITS | applied.min(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_term_claims_more_than_all_entries_before() {
        let claim = |term, applied| Standing::Leads { term }.claim(applied);
        assert_eq!(Standing::Alone.claim(77), 1);
        assert!(claim(1, 0) > Standing::Alone.claim(u64::MAX));
        assert!(claim(7, 5) > claim(7, 4));
        assert!(claim(8, 0) > claim(7, 1 << 42));
        assert!(claim(8, 0) > claim(7, u64::MAX));
        assert!(i64::try_from(claim(u64::MAX, u64::MAX)).is_ok());
    }
}
