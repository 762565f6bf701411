//! Until when a leader knows that nobody else leads.
//!
//! Whoever has taken a heartbeat votes for nobody for an election timeout. So if a majority, the leader among them, has
//! answered heartbeats that were sent at some moment or later, nobody else can lead before that timeout after that moment.
//! What counts is when they were sent, by a clock that also runs while the process or the machine stands still. A
//! leader that counted its own turns instead would, after it has been stopped for a while, answer what is not so any more.
//!
//! Source: Ongaro, "Consensus: Bridging Theory and Practice", section 6.4.1.

use crate::member::MemberId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of one term.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    term: u64,
    /// When the last heartbeats were sent that each has answered.
    answered: BTreeMap<MemberId, Duration>,
}

impl Lease {
    /// A member has answered a heartbeat of that term.
    pub fn answered(&mut self, term: u64, by: MemberId, sent: Duration) {
        if term != self.term {
            *self = Lease { term, answered: BTreeMap::new() };
        }
        let last = self.answered.entry(by).or_default();
        *last = sent.max(*last);
    }

    /// Until when it holds for `me`, with these voters, if it lasts `length`; none if a majority has not answered yet.
    pub fn until(
        &self,
        term: u64,
        me: MemberId,
        voters: impl Iterator<Item = MemberId>,
        now: Duration,
        length: Duration,
    ) -> Option<Duration> {
        let sent = |id: MemberId| match id == me {
            true => Some(now),
            false => self.answered.get(&id).filter(|_| term == self.term).copied(),
        };
        let mut sent: Vec<Option<Duration>> = voters.map(sent).collect();
        sent.sort_unstable_by(|a, b| b.cmp(a));
        let last_of_majority = *sent.get(sent.len() / 2)?;
        Some(last_of_majority? + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_from_when_a_majority_was_asked() {
        let (id, time) = (MemberId, Duration::from_millis);
        let until = |lease: &Lease, term, voters: &[u64]| {
            lease.until(term, id(1), voters.iter().copied().map(MemberId), time(1000), time(400))
        };
        let mut lease = Lease::default();
        assert_eq!(until(&lease, 3, &[1]), Some(time(1400)));
        assert_eq!(until(&lease, 3, &[1, 2, 3]), None);
        lease.answered(3, id(2), time(700));
        assert_eq!(until(&lease, 3, &[1, 2, 3]), Some(time(1100)));
        lease.answered(3, id(2), time(600));
        lease.answered(3, id(3), time(800));
        assert_eq!(until(&lease, 3, &[1, 2, 3]), Some(time(1200)));
        assert_eq!(until(&lease, 3, &[1, 2, 3, 4]), Some(time(1100)));
        assert_eq!(until(&lease, 3, &[1, 2, 3, 4, 5]), Some(time(1100)));
        assert_eq!(until(&lease, 4, &[1, 2, 3]), None);
    }
}
