//! Replicas and units that are on their way: who brings what where, and since when.

use crate::handle::{NodeHandle, StorageHandle};
use cairn_stripe::{BlockId, UnitIndex};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// One replica or unit that is to arrive on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub storage: StorageHandle,
    /// 0 for a replica.
    pub unit: UnitIndex,
    /// The node that was or will be told to bring it; none for the rest of a client's pipeline.
    pub worker: Option<NodeHandle>,
    /// When its worker was told of it or, before that, when it was scheduled.
    pub since_ms: u64,
    /// Whether its worker was told.
    pub is_sent: bool,
}

/// All tasks, by block or group. Tasks are looked for by node when one dies, which is rare.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    tasks: BTreeMap<BlockId, Vec<Task>>,
    /// How many of them are to arrive on a storage.
    to: BTreeMap<StorageHandle, usize>,
}

impl Pending {
    pub(super) fn of(&self, id: BlockId) -> &[Task] {
        self.tasks.get(&id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_mut(&mut self, id: BlockId) -> &mut [Task] {
        self.tasks.get_mut(&id).map_or(&mut [], Vec::as_mut_slice)
    }

    /// All blocks and groups that have tasks, with these.
    pub(super) fn iter(&self) -> impl Iterator<Item = (BlockId, &[Task])> {
        self.tasks.iter().map(|(id, tasks)| (*id, tasks.as_slice()))
    }

    /// Those from one on.
    pub(super) fn iter_from(&self, first: BlockId) -> impl Iterator<Item = (BlockId, &[Task])> {
        self.tasks.range(first..).map(|(id, tasks)| (*id, tasks.as_slice()))
    }

    /// Blocks and groups that have tasks.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn add(&mut self, id: BlockId, tasks: impl IntoIterator<Item = Task>) {
        let mut tasks = tasks.into_iter().peekable();
        if tasks.peek().is_some() {
            let to = &mut self.to;
            let counted = tasks.inspect(|task| *to.entry(task.storage).or_default() += 1);
            self.tasks.entry(id).or_default().extend(counted);
        }
    }

    /// How many replicas and units are to arrive on a storage.
    pub(super) fn to(&self, storage: StorageHandle) -> usize {
        self.to.get(&storage).copied().unwrap_or(0)
    }

    fn count_out<'a>(&mut self, taken: impl IntoIterator<Item = &'a Task>) {
        for task in taken {
            if let Entry::Occupied(mut count) = self.to.entry(task.storage) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    /// Takes out the tasks of a block that `is_over` picks.
    pub(super) fn take(&mut self, id: BlockId, is_over: impl Fn(&Task) -> bool) -> Vec<Task> {
        let Some(tasks) = self.tasks.get_mut(&id) else { return Vec::new() };
        let taken: Vec<Task> = tasks.extract_if(.., |task| is_over(task)).collect();
        if tasks.is_empty() {
            self.tasks.remove(&id);
        }
        self.count_out(&taken);
        taken
    }

    /// The same for all blocks.
    pub(super) fn take_all(&mut self, is_over: impl Fn(&Task) -> bool) -> Vec<(BlockId, Task)> {
        let mut taken = Vec::new();
        self.tasks.retain(|id, tasks| {
            taken.extend(tasks.extract_if(.., |task| is_over(task)).map(|task| (*id, task)));
            !tasks.is_empty()
        });
        self.count_out(taken.iter().map(|(_, task)| task));
        taken
    }
    /// Panics if the counts are not those of the tasks.
    pub(super) fn check_invariants(&self) {
        let mut to: BTreeMap<StorageHandle, usize> = BTreeMap::new();
        for task in self.tasks.values().flatten() {
            *to.entry(task.storage).or_default() += 1;
        }
        assert_eq!(to, self.to, "what is to arrive on storages");
        assert!(self.tasks.values().all(|tasks| !tasks.is_empty()));
    }
}
