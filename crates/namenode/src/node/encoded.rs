//! What DataNodes have said of contiguous groups that they were to encode and of containers that they were to write,
//! until it is judged.

use std::sync::Mutex;

use cairn_master::contiguous::rounds::{Said, Unjudged};
use cairn_redundancy::{NodeHandle, Now};
use tokio::sync::Notify;

/// Groups that wait, at most: their attempts end by themselves.
const WAITING_MAX: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct EncodedGroups {
    waiting: Mutex<Vec<Unjudged>>,
    /// Wakes whoever judges.
    pub news: Notify,
}

impl EncodedGroups {
    /// Takes what a DataNode has said.
    pub fn add(&self, from: NodeHandle, said: Vec<Said>, now: Now) {
        if said.is_empty() {
            return;
        }
        let said = said.into_iter().map(|said| Unjudged::new(from, said, now));
        self.put(said.collect());
        self.news.notify_one();
    }

    /// Puts back what cannot be judged yet.
    pub fn put(&self, mut groups: Vec<Unjudged>) {
        let mut waiting = self.waiting.lock().expect("nothing panics while it is held");
        groups.truncate(WAITING_MAX.saturating_sub(waiting.len()));
        waiting.append(&mut groups);
    }

    /// All that wait, which do so no more.
    pub fn take(&self) -> Vec<Unjudged> {
        std::mem::take(&mut *self.waiting.lock().expect("nothing panics while it is held"))
    }
}
