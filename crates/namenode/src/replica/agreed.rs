//! What comes out of the quorum, until it is in the log, and how much of it the quorum need not keep any more.

use crate::journal::agree::last_entry;
use crate::lead::Lead;
use cairn_quorum::{Entry, Payload};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Bytes that the quorum keeps although the store has them, for members that lag behind.
const KEPT_LEN: usize = 64 << 20;

/// How long it is waited for something before it is looked whether that has become useless.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The quorum has ended.
#[derive(Debug)]
pub(super) struct Ended;

/// Something that is in the log.
struct Mark {
    /// Its place in the quorum's log.
    index: u64,
    /// The last entry of the namespace up to there.
    last: u64,
    len: usize,
}

/// See the module.
pub(super) struct Agreed {
    entries: Receiver<Entry>,
    /// What has come and is not in the log, as far as is known.
    waiting: VecDeque<Entry>,
    /// What is, from what the quorum still keeps on.
    marks: VecDeque<Mark>,
    /// Bytes of those.
    len: usize,
    /// The place of the last one that has come.
    last_index: u64,
}

impl Agreed {
    pub fn new(entries: Receiver<Entry>) -> Agreed {
        let (waiting, marks) = (VecDeque::new(), VecDeque::new());
        Agreed { entries, waiting, marks, len: 0, last_index: 0 }
    }

    /// The place of the last one that has come, if none of those that have come waits.
    pub fn taken_up_to(&self) -> Option<u64> {
        self.waiting.is_empty().then_some(self.last_index)
    }

    /// The next one; none if there is none for a while.
    pub fn next(&mut self) -> Result<Option<Entry>, Ended> {
        match self.waiting.pop_front() {
            Some(entry) => Ok(Some(entry)),
            None => self.receive(),
        }
    }

    fn receive(&mut self) -> Result<Option<Entry>, Ended> {
        match self.entries.recv_timeout(LOOK_EVERY) {
            Ok(entry) => {
                self.last_index = entry.index;
                Ok(Some(entry))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Ended),
        }
    }

    /// One is in the log, whose last entry is then `last`.
    pub fn is_logged(&mut self, entry: &Entry, last: u64) {
        let len = data(entry).len();
        self.len += len;
        self.marks.push_back(Mark { index: entry.index, last, len });
    }

    /// Takes what comes while the member leads: its NameNode logs what it has proposed, and what it has not logged when it
    /// ends is left to whoever follows.
    pub fn watch(&mut self, lead: &Lead, ends: &AtomicBool, mut forget: impl FnMut(u64)) {
        while !ends.load(Ordering::SeqCst) {
            match self.receive() {
                Ok(entry) => self.waiting.extend(entry),
                Err(Ended) => return,
            }
            while let Some(first) = self.waiting.front()
                && last_entry(data(first)).unwrap_or_default() <= lead.last_logged()
            {
                let Some(entry) = self.waiting.pop_front() else { break };
                self.is_logged(&entry, lead.last_logged());
            }
            if let Some(index) = self.needless(lead.last_stored()) {
                forget(index);
            }
        }
    }

    /// Up to where the quorum need not keep what the store has, which has the entries up to `stored`.
    pub fn needless(&mut self, stored: u64) -> Option<u64> {
        if self.len <= KEPT_LEN {
            return None;
        }
        let mut index = None;
        while let Some(mark) = self.marks.front()
            && mark.last <= stored
            && self.len > KEPT_LEN / 2
        {
            (index, self.len) = (Some(mark.index), self.len - mark.len);
            self.marks.pop_front();
        }
        index
    }
}

/// What was proposed; nothing where that is a matter of the quorum.
pub(super) fn data(entry: &Entry) -> &[u8] {
    match &entry.payload {
        Payload::Data(data) => data,
        Payload::Change(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_quorum_keeps_what_the_store_lacks_and_some_more() {
        let (sender, entries) = channel();
        let mut agreed = Agreed::new(entries);
        for index in 2..12 {
            let payload = Payload::Data(vec![0; KEPT_LEN / 8]);
            sender.send(Entry { index, term: 1, payload }).unwrap();
        }
        drop(sender);
        while let Ok(entry) = agreed.next() {
            let entry = entry.unwrap();
            agreed.is_logged(&entry, 10 * entry.index);
        }
        assert_eq!(agreed.taken_up_to(), Some(11));
        assert_eq!(agreed.needless(19), None, "the store has none of them");
        assert_eq!(agreed.needless(49), Some(4));
        assert_eq!(agreed.needless(u64::MAX), None, "no more than are kept");
    }
}
