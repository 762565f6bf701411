//! Whose turn it is to change the names and lengths of a block's files.
//!
//! Changes wait for disks, so they are made outside of the map's lock: who has a block's turn knows that nobody else makes
//! any to its files, and that what the map says of them stays true. One at a time: nobody who has a turn waits for
//! another one, nor for a writer, and the map's lock comes after it.

use cairn_process::disk_work::may_wait;
use cairn_process::held::{held, whole};
use cairn_stripe::BlockId;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// The blocks somebody is at.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    taken: Mutex<HashSet<BlockId>>,
    /// One has come to its end: for threads, and for tasks.
    ended: Condvar,
    told: Notify,
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, HashSet<BlockId>> {
        held(&self.taken)
    }
}

/// Leave to change a block's files, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Turn {
    id: BlockId,
    of: Arc<Shared>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.of.taken().remove(&self.id);
        self.of.ended.notify_all();
        self.of.told.notify_waiters();
    }
}

impl Turns {
    /// The turn of a block; `None` while somebody has it.
    pub(super) fn try_take(&self, id: BlockId) -> Option<Turn> {
        let is_free = self.0.taken().insert(id);
        is_free.then(|| Turn { id, of: self.0.clone() })
    }

    /// Waits for the turn of a block.
    pub(super) async fn take(&self, id: BlockId) -> Turn {
        loop {
            let told = self.0.told.notified();
            tokio::pin!(told);
            // Before it is looked: one that ends in between is not missed.
            told.as_mut().enable();
            if let Some(turn) = self.try_take(id) {
                return turn;
            }
            told.await;
        }
    }

    /// The same for a thread. Blocking.
    pub(super) fn take_blocking(&self, id: BlockId) -> Turn {
        self.try_take(id).unwrap_or_else(|| {
            may_wait(|| {
                let mut taken = self.0.taken();
                while !taken.insert(id) {
                    taken = whole(self.0.ended.wait(taken));
                }
                Turn { id, of: self.0.clone() }
            })
        })
    }

    /// Waits until nobody has a turn, or so long. Blocking.
    pub(super) fn wait_for_all(&self, patience: Duration) {
        let taken = self.0.taken();
        if taken.is_empty() {
            return;
        }
        may_wait(|| drop(self.0.ended.wait_timeout_while(taken, patience, |t| !t.is_empty())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_turn_is_had_by_one_at_a_time() {
        let turns = Turns::default();
        let first = turns.take(BlockId(1)).await;
        assert!(turns.try_take(BlockId(1)).is_none());
        drop(turns.take_blocking(BlockId(2)));
        let (task, thread) = (turns.clone(), turns.clone());
        let task = tokio::spawn(async move { drop(task.take(BlockId(1)).await) });
        let thread = tokio::task::spawn_blocking(move || drop(thread.take_blocking(BlockId(1))));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!task.is_finished() && !thread.is_finished());
        drop(first);
        let both = async { (task.await.unwrap(), thread.await.unwrap()) };
        tokio::time::timeout(LONG, both).await.unwrap();
    }

    #[test]
    fn who_waits_for_all_waits_no_longer_than_it_wants() {
        let turns = Turns::default();
        turns.wait_for_all(LONG);
        let turn = turns.try_take(BlockId(1)).unwrap();
        turns.wait_for_all(Duration::from_millis(10));
        std::thread::scope(|scope| {
            let begun = Instant::now();
            scope.spawn(|| turns.wait_for_all(2 * LONG));
            std::thread::sleep(Duration::from_millis(50));
            drop(turn);
            assert!(begun.elapsed() < LONG);
        });
    }
}
