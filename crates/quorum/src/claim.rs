//! What DataNodes are told by whoever says to be active.

/// Bits of a claim that say which entry was applied last. The sign bit stays free, since Java has signed numbers only.
const APPLIED_BITS: u32 = 43;

/// The number that DataNodes compare (`txid`). They follow who claims to be active with a greater one than they have heard
/// before, so a new term is worth more than all entries before it.
///
/// Source: Hadoop 3.5.0 `BPOfferService#updateActorStatesFromHeartbeat`.
pub fn claim(term: u64, applied: u64) -> u64 {
    let (entries, terms) = ((1 << APPLIED_BITS) - 1, (1 << (63 - APPLIED_BITS)) - 1);
    term.min(terms) << APPLIED_BITS | applied.min(entries)
}

#[cfg(test)]
mod tests {
    use super::claim;

    #[test]
    fn a_new_term_claims_more_than_all_entries_before() {
        assert!(claim(7, 5) > claim(7, 4));
        assert!(claim(8, 0) > claim(7, 1 << 42));
        assert!(claim(8, 0) > claim(7, u64::MAX));
        assert!(i64::try_from(claim(u64::MAX, u64::MAX)).is_ok());
    }
}
