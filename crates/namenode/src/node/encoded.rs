//! What DataNodes have said of contiguous groups that they were to encode, until it is judged.

use std::sync::Mutex;

use cairn_master::contiguous::EncodedGroup;
use cairn_master::contiguous::rounds::Unjudged;
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
    pub fn add(&self, from: NodeHandle, groups: Vec<EncodedGroup>, now: Now) {
        if groups.is_empty() {
            return;
        }
        let groups = groups.into_iter().map(|group| Unjudged::new(from, group, now));
        self.put(groups.collect());
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
