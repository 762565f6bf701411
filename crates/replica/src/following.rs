//! Which of the NameNodes of its nameservice a DataNode obeys.
//!
//! It reports to all, and obeys the one whose claim to be active it has accepted: only a claim that is strictly greater
//! than every one before moves it to another. So a NameNode that has been replaced and does not know it yet gets nothing
//! done, whatever it says.
//!
//! Source: Hadoop 3.5.0 `BPOfferService#updateActorStatesFromHeartbeat`, `#processCommandFromActor`. Deviation: NameNodes
//! that agree on a log tell their term with each answer as well. Whoever has told a smaller one than somebody else is not
//! obeyed, though nobody has claimed the greater one yet, and a new term of the same NameNode is a new reign.

/// What a NameNode says of itself with the answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whether it says to be the active one.
    pub is_active: bool,
    /// How far it is: the number by which claims are compared.
    pub txid: u64,
    /// The term in which it serves, where NameNodes agree on a log.
    pub term: Option<u64>,
}

/// What an answer has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Same,
    /// From now on this NameNode is obeyed, or obeyed in another term: nothing that was ordered before holds.
    Begun,
    /// It was obeyed, and has said that it is not active any more.
    Ended,
    /// It says to be active, and is not believed: this was claimed before.
    Refused {
        /// The greatest claim.
        greatest: u64,
    },
}

/// What is remembered of all claims.
#[derive(Clone, Debug, Default)]
pub struct Following {
    /// The one that is obeyed, and the term in which it was heard last.
    active: Option<(usize, Option<u64>)>,
    greatest_claim: Option<u64>,
    greatest_term: Option<u64>,
}

impl Following {
    /// NameNode number `from` has answered a heartbeat. To be asked before anything else of the answer is looked at.
    pub fn hear(&mut self, from: usize, claim: Claim) -> Heard {
        self.greatest_term = self.greatest_term.max(claim.term);
        let former = self.active.filter(|(active, _)| *active == from);
        let heard = match (claim.is_active, former) {
            (true, None) => match self.greatest_claim {
                Some(greatest) if claim.txid <= greatest => return Heard::Refused { greatest },
                _ => Heard::Begun,
            },
            (true, Some((_, term))) if term != claim.term => Heard::Begun,
            (true, Some(_)) => Heard::Same,
            (false, None) => return Heard::Same,
            (false, Some(_)) => {
                self.active = None;
                return Heard::Ended;
            }
        };
        self.active = Some((from, claim.term));
        self.greatest_claim = self.greatest_claim.max(Some(claim.txid));
        heard
    }

    /// Whether the orders of NameNode number `from` are to be obeyed.
    pub fn obeys(&self, from: usize) -> bool {
        // None is less than any term: who tells none is not one of several that agree.
        self.active.is_some_and(|(active, term)| active == from && term >= self.greatest_term)
    }

    /// The one that is obeyed, or was last, if it has not said since that it is none.
    pub fn active(&self) -> Option<usize> {
        self.active.map(|(active, _)| active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(txid: u64) -> Claim {
        Claim { is_active: true, txid, term: None }
    }

    fn standby(txid: u64) -> Claim {
        Claim { is_active: false, txid, term: None }
    }

    #[test]
    fn a_strictly_greater_claim_is_followed_and_remembered() {
        let mut following = Following::default();
        assert_eq!((following.hear(0, standby(9)), following.active()), (Heard::Same, None));
        assert_eq!(following.hear(0, active(0)), Heard::Begun, "the first one may be of nothing");
        assert_eq!(following.hear(0, active(7)), Heard::Same);
        assert_eq!(following.hear(1, active(7)), Heard::Refused { greatest: 7 });
        assert!(following.obeys(0) && !following.obeys(1));
        assert_eq!(following.hear(1, active(8)), Heard::Begun);
        assert!(!following.obeys(0) && following.obeys(1));
        // The former one has not noticed.
        assert_eq!(following.hear(0, active(8)), Heard::Refused { greatest: 8 });
        assert_eq!(following.hear(0, standby(8)), Heard::Same);
        assert!(following.obeys(1));
    }

    #[test]
    fn who_gives_it_up_is_followed_again_by_a_greater_claim_only() {
        let mut following = Following::default();
        following.hear(0, active(5));
        assert_eq!(following.hear(0, standby(5)), Heard::Ended);
        assert!(!following.obeys(0) && following.active().is_none());
        assert_eq!(following.hear(0, active(5)), Heard::Refused { greatest: 5 });
        assert_eq!(following.hear(0, active(6)), Heard::Begun);
    }

    #[test]
    fn a_smaller_number_of_the_active_one_is_no_smaller_claim() {
        let mut following = Following::default();
        following.hear(0, active(9));
        // A NameNode that was restored to an older state.
        assert_eq!(following.hear(0, active(3)), Heard::Same);
        assert!(following.obeys(0));
        assert_eq!(following.hear(1, active(4)), Heard::Refused { greatest: 9 });
    }

    #[test]
    fn a_greater_term_that_anybody_tells_ends_obedience() {
        let of = |is_active, txid, term| Claim { is_active, txid, term: Some(term) };
        let mut following = Following::default();
        assert_eq!(following.hear(0, of(true, 1 << 40, 1)), Heard::Begun);
        assert_eq!(following.hear(1, of(false, 1 << 40, 1)), Heard::Same);
        assert!(following.obeys(0));
        assert_eq!(following.hear(1, of(false, 1 << 40, 2)), Heard::Same);
        assert!(!following.obeys(0), "somebody else leads, or is about to");
        assert_eq!(following.hear(0, of(true, 3 << 40, 3)), Heard::Begun, "it leads again");
        assert!(following.obeys(0));
        assert_eq!(following.hear(0, of(true, (3 << 40) + 1, 3)), Heard::Same);
    }
}
