//! Which DataNodes have the keys of this member's block tokens, as far as their heartbeats show it.
//!
//! Keys go out in rounds. With those of a round a DataNode takes the tokens of that round and of the next one, whose key is
//! among them already. It does not say what it has: it takes what it is sent with an answer before it sends the next
//! heartbeat, and so that one shows it. A DataNode that has registered anew may be another process, and has nothing.
//!
//! The answer to a heartbeat may be lost on its way, and Hadoop's DataNodes take keys out of it a little later. So keys are
//! sent again some times in each round, long before a token needs those that are new. Who has not been heard of for a whole
//! round, ten hours, and then loses an answer, may be named too early: readers go on to another one then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Given(HashMap<String, ToNode>);

#[derive(Debug)]
struct ToNode {
    /// When it was sent keys last, and those of which round.
    at: Instant,
    sent: u64,
    /// The last round whose keys it is known to have.
    shown: Option<u64>,
}

impl Given {
    /// A DataNode registers, and is sent the keys of a round with that.
    pub fn registered(&mut self, uuid: &str, round: u64, now: Instant) {
        self.0.insert(uuid.to_owned(), ToNode { at: now, sent: round, shown: None });
    }

    /// A heartbeat of a DataNode has come. Returns whether the keys of the round go with the answer: it has none of these, or
    /// was sent them so long ago.
    pub fn heard(&mut self, uuid: &str, round: u64, now: Instant, again: Duration) -> bool {
        let Some(node) = self.0.get_mut(uuid) else {
            self.registered(uuid, round, now);
            return true;
        };
        node.shown = Some(node.sent);
        let is_due = node.sent < round || now.saturating_duration_since(node.at) >= again;
        if is_due {
            (node.at, node.sent) = (now, round);
        }
        is_due
    }

    /// Whether a DataNode is known to take the tokens of a round.
    pub fn takes(&self, uuid: &str, round: u64) -> bool {
        let shown = self.0.get(uuid).and_then(|node| node.shown);
        shown.is_some_and(|shown| shown.saturating_add(1) >= round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: usize = 3;
    const SEEDS: u64 = 200;
    const STEPS: usize = 400;
    const AGAIN: Duration = Duration::from_secs(10);

    /// What is done wrong.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Mistake {
        /// What was sent is had.
        SentIsShown,
        /// Who registers anew has what was sent to who had its name.
        AnewIsAsBefore,
        /// Who has had keys once has those of all rounds.
        OnceIsForEver,
    }

    fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    /// DataNodes register, start anew and are cut off for long, answers are lost, and keys change. Whoever is named takes
    /// the token. Returns how many were.
    fn run(seed: u64, mistake: Option<Mistake>) -> Result<u32, String> {
        let mut draw = dice(seed);
        let (mut given, mut now, mut round, mut named) =
            (Given::default(), Instant::now(), 0_u64, 0);
        // The keys that each has, and whether it is registered, and has lost keys since it got some.
        let mut has: [Option<u64>; NODES] = [None; NODES];
        let mut is_registered = [false; NODES];
        let mut has_lost = [false; NODES];
        for _ in 0..STEPS {
            let node = draw(NODES as u64) as usize;
            let uuid = format!("node-{node}");
            match draw(100) {
                0..10 => {
                    // It may have been started anew, and the answer may be lost: then it registers once more.
                    if mistake != Some(Mistake::AnewIsAsBefore) || !given.0.contains_key(&uuid) {
                        given.registered(&uuid, round, now);
                    }
                    is_registered[node] = draw(4) > 0;
                    (has[node], has_lost[node]) = (is_registered[node].then_some(round), false);
                }
                10..50 if is_registered[node] => {
                    if given.heard(&uuid, round, now, AGAIN) {
                        // One that was away for a whole round loses nothing.
                        let is_behind = has[node].is_none_or(|has| has + 1 < round);
                        has_lost[node] = !is_behind && draw(4) == 0;
                        if !has_lost[node] {
                            has[node] = Some(round);
                        }
                    }
                }
                50..53 => {
                    // A round lasts long enough for all to get its keys but one that is away, which has lost none before.
                    let is_there =
                        |at: &usize| is_registered[*at] && (*at != node || has_lost[*at]);
                    let all: Vec<usize> = (0..NODES).filter(is_there).collect();
                    for at in all {
                        now += AGAIN;
                        given.heard(&format!("node-{at}"), round, now, AGAIN);
                        (has[at], has_lost[at]) = (Some(round), false);
                    }
                    round += 1;
                }
                53..60 => now += AGAIN / 4,
                _ => {
                    let takes = match mistake {
                        Some(Mistake::SentIsShown) => {
                            given.0.get(&uuid).is_some_and(|node| node.sent + 1 >= round)
                        }
                        Some(Mistake::OnceIsForEver) => {
                            given.0.get(&uuid).is_some_and(|node| node.shown.is_some())
                        }
                        _ => given.takes(&uuid, round),
                    };
                    if takes && has[node].is_none_or(|has| has + 1 < round) {
                        return Err(format!("{uuid} has {:?} in {round}", has[node]));
                    }
                    named += u32::from(takes);
                }
            }
        }
        Ok(named)
    }

    #[test]
    fn who_is_named_takes_the_tokens_and_nearly_all_are() {
        let mut named = 0;
        for seed in 0..SEEDS {
            named += run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        }
        assert!(named > SEEDS as u32 * 50, "{named}");
    }

    #[test]
    fn a_datanode_that_would_refuse_is_found_with_each_mistake() {
        for mistake in [Mistake::SentIsShown, Mistake::AnewIsAsBefore, Mistake::OnceIsForEver] {
            let found = (0..SEEDS).any(|seed| run(seed, Some(mistake)).is_err());
            assert!(found, "nobody has noticed {mistake:?}");
        }
    }

    #[test]
    fn keys_are_sent_when_they_are_new_and_again_from_time_to_time() {
        let (mut given, now) = (Given::default(), Instant::now());
        given.registered("a", 3, now);
        assert!(!given.takes("a", 3), "it has shown nothing");
        assert!(!given.heard("a", 3, now, AGAIN));
        assert!(given.takes("a", 3) && given.takes("a", 4) && !given.takes("a", 5));
        assert!(given.heard("a", 4, now, AGAIN));
        assert!(!given.takes("a", 5), "it was sent that just now");
        assert!(!given.heard("a", 4, now, AGAIN));
        assert!(given.takes("a", 5));
        assert!(given.heard("a", 4, now + AGAIN, AGAIN));
        given.registered("a", 4, now + AGAIN);
        assert!(!given.takes("a", 4), "it may be another process");
        assert!(given.heard("b", 4, now, AGAIN), "it has registered before this member was told");
        assert!(!given.takes("b", 4) && !given.takes("c", 4));
    }
}
