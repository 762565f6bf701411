//! What DataNodes have said of contiguous groups that they were to encode, until it is judged.

use std::sync::Mutex;
use std::time::Duration;

use cairn_master::contiguous::EncodedGroup;
use cairn_redundancy::{NodeHandle, Now};
use tokio::sync::Notify;

/// Groups that wait, at most: their attempts end by themselves.
const WAITING_MAX: usize = 10_000;
/// How long parities may be awaited that their encoder has written.
const PATIENCE: Duration = Duration::from_secs(30);

/// A group that waits to be judged.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Who has encoded it.
    pub from: NodeHandle,
    /// What it has said.
    pub group: EncodedGroup,
    /// Until when it may wait, on the monotonic clock.
    pub until_ms: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct EncodedGroups {
    waiting: Mutex<Vec<Waiting>>,
    /// Wakes whoever judges.
    pub news: Notify,
}

impl EncodedGroups {
    /// Takes what a DataNode has said.
    pub fn add(&self, from: NodeHandle, groups: Vec<EncodedGroup>, now: Now) {
        if groups.is_empty() {
            return;
        }
        let until_ms = now.mono_ms.saturating_add(PATIENCE.as_millis() as u64);
        let groups = groups.into_iter().map(|group| Waiting { from, group, until_ms });
        self.put(groups.collect());
        self.news.notify_one();
    }

    /// Puts back what cannot be judged yet.
    pub fn put(&self, mut groups: Vec<Waiting>) {
        let mut waiting = self.waiting.lock().expect("nothing panics while it is held");
        groups.truncate(WAITING_MAX.saturating_sub(waiting.len()));
        waiting.append(&mut groups);
    }

    /// All that wait, which do so no more.
    pub fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting.lock().expect("nothing panics while it is held"))
    }
}
