//! The tasks of a DataNode, and what is counted while it is done.

use cairn_process::disk_work::movable;
use cairn_process::held::held;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;

/// Counts something for as long as it lives.
pub(crate) struct Counted<'a>(&'a AtomicU32);

impl<'a> Counted<'a> {
    pub(crate) fn new(counter: &'a AtomicU32) -> Counted<'a> {
        counter.fetch_add(1, Ordering::Relaxed);
        Counted(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The tasks of a DataNode, which end with it.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Option<JoinSet<()>>>);

impl Tasks {
    /// Allows tasks from now on.
    pub(crate) fn open(&self) {
        self.lock().get_or_insert_with(JoinSet::new);
    }

    /// Starts a task; not after [`Tasks::close`].
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = self.lock().as_mut() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(movable(task));
        }
    }

    /// Ends all tasks at their next wait. Whoever wants to know when they are gone awaits the result.
    pub(crate) fn close(&self) -> Option<JoinSet<()>> {
        let mut tasks = self.lock().take()?;
        tasks.abort_all();
        Some(tasks)
    }

    fn lock(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        held(&self.0)
    }
}
