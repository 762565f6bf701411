//! What contiguous groups and the blocks that wait for one come to.
//!
//! A walk adds some at a time to a sum that begins with nothing; it is of no one moment.

use cairn_namespace::container::Container;
use cairn_namespace::query::{self, Waiting};
use cairn_namespace::store::StoreRead;
use cairn_namespace::{Group, Result, block};
use cairn_stripe::BlockId;

/// Groups, or blocks that wait, that one step adds.
const STEP: usize = 1000;

/// Sums over groups and over blocks that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Groups that keep their members safe, those that are being dissolved among them.
    pub groups: u64,
    /// Bytes of members that files have.
    pub grouped: u64,
    /// Bytes of members that no file has, which stay for the others' sake.
    pub dead: u64,
    /// Bytes of parities.
    pub parity: u64,
    /// Groups that are being dissolved.
    pub dissolving: u64,
    /// Blocks that wait for a group, and have all their copies.
    pub waiting: u64,
    /// Bytes of those.
    pub waiting_bytes: u64,
    /// Those of them that were quiet for long enough.
    pub due: u64,
    /// Bytes of those.
    pub due_bytes: u64,
    /// Since when the first of them may be grouped, ms since the epoch; none if there is none.
    pub oldest_due_ms: Option<u64>,
    /// Containers of small blocks.
    pub containers: u64,
    /// Blocks that are packed in them.
    pub packed: u64,
    /// Bytes of those.
    pub packed_bytes: u64,
    /// Bytes in them that no block has any more.
    pub left_bytes: u64,
    /// Those of them that are being emptied.
    pub emptying: u64,
    /// Bytes of groups of containers, with their parities.
    pub container_space: u64,
    /// Small blocks that wait to be packed, or to be packed anew.
    pub small: u64,
    /// Bytes of those.
    pub small_bytes: u64,
}

/// How far a walk has come, and what it has counted.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    groups_done: bool,
    group: Option<BlockId>,
    containers_done: bool,
    container: Option<BlockId>,
    waiting: Option<Waiting>,
    waiting_done: bool,
    small: Option<Waiting>,
    counts: Counts,
}

impl Walk {
    /// Adds some. Answers with the sums when the walk has come to its end, and begins anew.
    pub fn step(&mut self, store: &dyn StoreRead, elapsed_ms: u64) -> Result<Option<Counts>> {
        if !self.groups_done {
            let groups = query::groups_after(store, self.group, STEP)?;
            groups.iter().for_each(|group| self.counts.add_group(group));
            self.group = groups.last().map(|group| group.handle);
            self.groups_done = groups.len() < STEP;
            return Ok(None);
        }
        if !self.containers_done {
            let containers = query::containers_after(store, self.container, STEP)?;
            containers.iter().for_each(|container| self.counts.add_container(container));
            self.container = containers.last().map(|container| container.id);
            self.containers_done = containers.len() < STEP;
            return Ok(None);
        }
        if !self.waiting_done {
            let waiting = query::waiting(store, u64::MAX - 1, self.waiting, STEP)?;
            for one in &waiting {
                let Some(block) = block::get(store, one.id)? else { continue };
                self.counts.add_waiting(one.due_ms, block.len, elapsed_ms);
            }
            self.waiting = waiting.last().copied();
            self.waiting_done = waiting.len() < STEP;
            return Ok(None);
        }
        let small = query::waiting_to_be_packed(store, u64::MAX - 1, self.small, STEP)?;
        for one in &small {
            let Some(block) = block::get(store, one.id)? else { continue };
            self.counts.small += 1;
            self.counts.small_bytes = self.counts.small_bytes.saturating_add(block.len);
        }
        self.small = small.last().copied();
        if small.len() == STEP {
            return Ok(None);
        }
        Ok(Some(std::mem::take(self).counts))
    }
}

impl Counts {
    fn add_group(&mut self, group: &Group) {
        let is_needed = !group.is_attempt();
        // Another one has the members of one that is superseded, but for those that were dead before.
        for (_, member) in group.members().filter(|_| group.is_formed()) {
            let sum = if member.live { &mut self.grouped } else { &mut self.dead };
            *sum = sum.saturating_add(member.len);
        }
        if is_needed {
            let parity: u64 = group.parities.iter().map(|parity| parity.len).sum();
            self.parity = self.parity.saturating_add(parity);
            if group.members().any(|(_, member)| member.id.is_container()) {
                let members: u64 = group.members().map(|(_, member)| member.len).sum();
                let space = self.container_space.saturating_add(members);
                self.container_space = space.saturating_add(parity);
            }
            self.groups += u64::from(group.is_formed());
            self.dissolving += u64::from(group.is_dissolving());
        }
    }

    fn add_container(&mut self, of: &Container) {
        self.containers += 1;
        self.emptying += u64::from(of.is_emptying());
        self.packed += of.live;
        self.packed_bytes = self.packed_bytes.saturating_add(of.live_len);
        self.left_bytes = self.left_bytes.saturating_add(of.dead_len());
    }

    fn add_waiting(&mut self, due_ms: u64, len: u64, elapsed_ms: u64) {
        self.waiting += 1;
        self.waiting_bytes = self.waiting_bytes.saturating_add(len);
        if due_ms <= elapsed_ms {
            self.due += 1;
            self.due_bytes = self.due_bytes.saturating_add(len);
            self.oldest_due_ms.get_or_insert(due_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_namespace::GroupState;
    use cairn_namespace::group::{Member, ParityRecord};
    use cairn_stripe::{GenerationStamp, PolicyId};

    fn group(state: GroupState, lives: &[bool]) -> Group {
        let member = |live: &bool| {
            let (id, gs) = (BlockId(7), GenerationStamp(1));
            Some(Member { id, gs, len: 10, crc32c: 0, sums_crc32c: None, live: *live })
        };
        Group {
            handle: BlockId::FIRST_HANDLE_BASE,
            gs: GenerationStamp(2),
            policy: PolicyId(34),
            k: 3,
            m: 2,
            state,
            members: lives.iter().map(member).collect(),
            supersedes: Vec::new(),
            data_len: 10,
            parities: vec![ParityRecord { len: 11, crc32c: 0 }; 2],
            checksum: None,
        }
    }

    #[test]
    fn what_is_needed_and_what_is_dead_is_told_apart() {
        let mut counts = Counts::default();
        counts.add_group(&group(GroupState::Formed, &[true, false, true]));
        counts.add_group(&group(GroupState::Dissolving { started_ms: 1 }, &[true]));
        counts.add_group(&group(GroupState::Encoding { started_ms: 1 }, &[true]));
        let by = BlockId::FIRST_HANDLE_BASE;
        counts.add_group(&group(GroupState::Superseded { by }, &[false]));
        let found = (counts.groups, counts.dissolving, counts.grouped, counts.dead, counts.parity);
        assert_eq!(found, (2, 1, 30, 10, 66));
    }

    #[test]
    fn those_that_may_be_grouped_are_counted_among_those_that_wait() {
        let mut counts = Counts::default();
        for (due_ms, len) in [(50, 1), (60, 2), (70, 4)] {
            counts.add_waiting(due_ms, len, 60);
        }
        assert_eq!((counts.waiting, counts.waiting_bytes), (3, 7));
        assert_eq!((counts.due, counts.due_bytes, counts.oldest_due_ms), (2, 3, Some(50)));
    }
}
