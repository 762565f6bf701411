//! What clients want brought to where its storage policy says, in its order.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use cairn_namespace::InodeId;
use cairn_process::held::held;

use crate::config::SatisfierMode;

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
    pub(crate) fn set_mode(&self, mode: SatisfierMode) -> VecDeque<InodeId> {
        let mut waiting = self.lock();
        if waiting.is_some() == waiting_in(mode).is_some() {
            return VecDeque::new();
        }
        std::mem::replace(&mut *waiting, waiting_in(mode)).unwrap_or_default().order
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        held(&self.waiting)
    }
}

fn waiting_in(mode: SatisfierMode) -> Option<Waiting> {
    match mode {
        SatisfierMode::None => None,
        SatisfierMode::External => Some(Waiting::default()),
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
