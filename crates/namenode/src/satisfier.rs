//! What clients want brought to where its storage policy says, for a satisfier outside of the NameNode to fetch.
//!
//! Requests are marks in the tree (`cairn_namespace::ops::satisfy_storage_policy`); this is their order. What was
//! fetched is not handed out again before the next start, which queues all that is still marked.
//!
//! Source: Hadoop 3.5.0 `StoragePolicySatisfyManager`.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_namespace::ops::satisfy_storage_policy::mark;
use cairn_namespace::ops::xattr::RemoveXAttr;
use cairn_namespace::{InodeId, query};

use crate::config::SatisfierMode;
use crate::node::NameNode;

/// Attributes looked at in one hold of a state of the tree.
const PAGE: usize = 10_000;

/// The requests in their order, while a satisfier may fetch them.
#[derive(Debug)]
pub struct Satisfier {
    waiting: Mutex<Option<Waiting>>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<InodeId>,
    known: HashSet<InodeId>,
}

impl Satisfier {
    /// With room for `limit` requests.
    pub fn new(mode: SatisfierMode, limit: usize) -> Satisfier {
        Satisfier { waiting: Mutex::new(waiting_in(mode)), limit }
    }

    /// Whether requests are taken; full or not.
    pub fn is_enabled(&self) -> bool {
        self.lock().is_some()
    }

    /// Room for requests if there is none for one more.
    pub fn is_full(&self) -> Option<usize> {
        let full = self.lock().as_ref().is_some_and(|waiting| waiting.order.len() >= self.limit);
        full.then_some(self.limit)
    }

    /// Adds a request, unless nobody fetches them.
    pub fn add(&self, id: InodeId) {
        if let Some(waiting) = &mut *self.lock()
            && waiting.known.insert(id)
        {
            waiting.order.push_back(id);
        }
    }

    /// The next request.
    pub fn take(&self) -> Option<InodeId> {
        let mut waiting = self.lock();
        let waiting = waiting.as_mut()?;
        let id = waiting.order.pop_front()?;
        waiting.known.remove(&id);
        Some(id)
    }

    /// Changes whether requests are taken; returns those that nobody will fetch.
    fn set_mode(&self, mode: SatisfierMode) -> VecDeque<InodeId> {
        let mut waiting = self.lock();
        if waiting.is_some() == waiting_in(mode).is_some() {
            return VecDeque::new();
        }
        std::mem::replace(&mut *waiting, waiting_in(mode)).unwrap_or_default().order
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waiting_in(mode: SatisfierMode) -> Option<Waiting> {
    match mode {
        SatisfierMode::None => None,
        SatisfierMode::External => Some(Waiting::default()),
    }
}

/// Queues what was asked for before the start. Nothing waits for it: others are queued meanwhile.
pub(crate) async fn take_up(node: Arc<NameNode>) {
    if !node.satisfier.is_enabled() {
        return;
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut from = Some(InodeId(0));
        while let Some(id) = from {
            let page = node.ns.read(|store| query::to_satisfy(store, id, PAGE));
            match page {
                Ok((found, next)) => {
                    found.into_iter().for_each(|id| node.satisfier.add(id));
                    from = next;
                }
                Err(error) => {
                    tracing::error!(%error, "requests to satisfy storage policies cannot be read");
                    return;
                }
            }
        }
    });
    if read.await.is_err() {
        tracing::error!("requests to satisfy storage policies were not read to the end");
    }
}

/// Turns the queue on or off. What was in it loses its mark: nobody looks after it. Waits for the log.
///
/// Source: Hadoop 3.5.0 `StoragePolicySatisfyManager#changeModeEvent`.
pub(crate) fn change_mode(node: &NameNode, mode: SatisfierMode) {
    for id in node.satisfier.set_mode(mode) {
        let path = format!("/.reserved/.inodes/{id}");
        let entry = node.own_entry(RemoveXAttr { path, name: mark() });
        if let Err(error) = node.ns.submit_blocking(entry) {
            // It may have been deleted meanwhile.
            tracing::debug!(%error, %id, "a request to satisfy a storage policy stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_in_their_order_once_each_and_only_where_they_are_fetched() {
        let satisfier = Satisfier::new(SatisfierMode::External, 2);
        [5, 3, 5].into_iter().for_each(|id| satisfier.add(InodeId(id)));
        assert_eq!(satisfier.is_full(), Some(2));
        assert_eq!(satisfier.take(), Some(InodeId(5)));
        assert_eq!(satisfier.is_full(), None);
        satisfier.add(InodeId(5));
        assert_eq!(satisfier.set_mode(SatisfierMode::External), [], "nothing has changed");
        assert_eq!(satisfier.set_mode(SatisfierMode::None), [InodeId(3), InodeId(5)]);
        satisfier.add(InodeId(7));
        assert!(!satisfier.is_enabled() && satisfier.take().is_none());
        assert_eq!(satisfier.set_mode(SatisfierMode::External), []);
        assert!(satisfier.is_enabled() && satisfier.take().is_none());
    }
}
