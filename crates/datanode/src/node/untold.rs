//! What the NameNode is to hear with the next heartbeat, and again if that one fails.

use cairn_process::held::held;
use std::sync::{Mutex, MutexGuard};

/// Up to so many things that the NameNode was not told of. Further ones it notices by itself, later.
pub(crate) struct Untold<T> {
    most: usize,
    waiting: Mutex<Vec<T>>,
}

impl<T> Untold<T> {
    /// Nothing yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Untold<T> {
        Untold { most, waiting: Mutex::default() }
    }

    /// Adds something, if not too much waits.
    pub(crate) fn add(&self, one: T) {
        let mut waiting = self.lock();
        if waiting.len() < self.most {
            waiting.push(one);
        }
    }

    /// What is to be told with a heartbeat.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes back what could not be told.
    pub(crate) fn put_back(&self, untold: Vec<T>) {
        let mut waiting = self.lock();
        waiting.splice(..0, untold);
        waiting.truncate(self.most);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        held(&self.waiting)
    }
}
