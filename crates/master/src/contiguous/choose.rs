//! Which of the blocks that wait are to be a group.
//!
//! Successive blocks of one file come first: when that is deleted, its groups end with it. What is left over goes together
//! with other blocks of its directory, the longest first and each with those next in length: parities are as long as the
//! longest member. A group is made only where it costs less than copies.

use crate::contiguous::Proposal;
use crate::op::Look;
use cairn_namespace::ops::group::{BeginEncode, NewMember};
use cairn_namespace::query::{self, Waiting};
use cairn_namespace::{
    BlockState, FileRedundancy, InodeId, Result, block, container, inode, settings,
};
use cairn_redundancy::groups::plan::{GroupPlan, GroupRequest};
use cairn_redundancy::{BlockLookup, BlockRef};
use cairn_stripe::{Policy, PolicyId, StoragePolicy};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Blocks that wait that one look takes.
const WINDOW: usize = 300;
/// Blocks that are tried for a group, for each slot.
const TRIED: usize = 4;
/// How long containers wait for others that are being written until fewer than a group has slots are one, in ms.
const CONTAINERS_WAIT_MS: u64 = 600_000;
/// Plans of one look that may lead to no group.
const FAILED_MAX: usize = 20;

/// What groups are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The part of the bytes of three copies that a group may take at most.
    pub pays: f64,
    /// Groups that one look may propose.
    pub proposals_max: usize,
}

impl Rules {
    /// Whether a contiguous group of such lengths and `m` parities costs little enough.
    pub fn pays(&self, lens: &[u64], m: usize) -> bool {
        let sum: u64 = lens.iter().sum();
        let longest = lens.iter().max().copied().unwrap_or(0);
        let cost = sum as f64 + m as f64 * longest as f64;
        sum > 0 && cost <= self.pays * 3.0 * sum as f64
    }

    /// The first of some blocks, the longest at the front, that can be the longest of a group that pays: if it does not
    /// with the `k` - 1 behind it, or as many as there are, it does with no others.
    pub fn first_that_pays<T>(
        &self,
        falling: &[T],
        len: impl Fn(&T) -> u64,
        (k, m): (usize, usize),
    ) -> Option<usize> {
        (0..falling.len()).find(|first| {
            let lens: Vec<u64> = falling[*first..].iter().take(k).map(&len).collect();
            self.pays(&lens, m)
        })
    }
}

/// A block that may be a member, with its file's directory and where it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    parent: InodeId,
    file: InodeId,
    index: u32,
    block: BlockRef,
    crc32c: u32,
    /// Whether it waits for no others of its kind.
    is_alone: bool,
}

/// Groups that can be made of the blocks that wait behind `after`. `after` becomes the last that was looked at, or none at
/// the end.
pub fn choose(
    look: &mut Look<'_>,
    rules: &Rules,
    after: &mut Option<Waiting>,
) -> Result<Vec<Proposal>> {
    let due = query::waiting(look.store, look.now.elapsed_ms, *after, WINDOW)?;
    *after = due.last().copied().filter(|_| due.len() == WINDOW);
    let mut kinds: BTreeMap<(PolicyId, u8), Vec<Candidate>> = BTreeMap::new();
    for waiting in due {
        if let Some((kind, candidate)) = candidate(look, waiting)? {
            kinds.entry(kind).or_default().push(candidate);
        }
    }
    let settings = settings::get(look.store)?;
    let mut proposals = Vec::new();
    for ((policy, storage_policy), mut candidates) in kinds {
        let Some(policy) = crate::orders::policy(look.store, policy)? else { continue };
        let storage_policy = settings.storage_policy(storage_policy);
        candidates.sort_unstable();
        let mut maker =
            Maker { look: &mut *look, rules, policy: &policy, storage_policy, failed: 0 };
        maker.of_kind(candidates, &mut proposals);
    }
    Ok(proposals)
}

/// A block that waits, if it may be in a group now, with the policy that it wants and its storage policy.
fn candidate(look: &Look<'_>, waiting: Waiting) -> Result<Option<((PolicyId, u8), Candidate)>> {
    let id = waiting.id;
    let Some(block) = block::get(look.store, id)? else { return Ok(None) };
    let crc32c = block.unit_crcs.first().copied().flatten();
    let is_free = block.state == BlockState::Complete
        && block.group.is_none()
        && query::attempt_of(look.store, id)?.is_none()
        && !look.cluster.is_resting(id, look.now);
    let (Some(crc32c), true) = (crc32c, is_free) else { return Ok(None) };
    let reference = BlockRef { id, gs: block.gs, len: block.len };
    if id.is_container() {
        // Those of a batch are of one length, and of no file.
        let Some(container) = container::get(look.store, id)? else { return Ok(None) };
        let storage_policy = look.lookup().storage_policy(id);
        // Others of its batch may still be written.
        let is_alone = !look.cluster.is_packing()
            || look.now.elapsed_ms >= waiting.due_ms.saturating_add(CONTAINERS_WAIT_MS);
        let owner = InodeId::CONTAINERS;
        let (parent, file) = (owner, owner);
        let (block, index) = (reference, 0);
        let candidate = Candidate { parent, file, index, block, crc32c, is_alone };
        return Ok(Some(((container.policy, storage_policy.id), candidate)));
    }
    let Some(inode) = inode::get(look.store, block.file)? else { return Ok(None) };
    let redundancy = inode.file().map(|file| file.redundancy);
    let Some(FileRedundancy::Contiguous { policy, .. }) = redundancy else { return Ok(None) };
    let storage_policy = look.lookup().storage_policy(id);
    // Of the others the replica that stays would have to be of one type, and the parities of another.
    if !storage_policy.suits_stripes() {
        return Ok(None);
    }
    let candidate = Candidate {
        parent: inode.parent,
        file: inode.id,
        index: block.index,
        block: reference,
        crc32c,
        is_alone: true,
    };
    Ok(Some(((policy, storage_policy.id), candidate)))
}

/// Makes groups of one policy.
struct Maker<'a, 'b> {
    look: &'a mut Look<'b>,
    rules: &'a Rules,
    policy: &'a Policy,
    storage_policy: StoragePolicy,
    /// Plans that have led to no group.
    failed: usize,
}

impl Maker<'_, '_> {
    /// Groups of those candidates, which are in order.
    fn of_kind(&mut self, candidates: Vec<Candidate>, proposals: &mut Vec<Proposal>) {
        let mut left = Vec::new();
        for of_file in candidates.chunk_by(|one, next| one.file == next.file) {
            left.extend(self.of_file(of_file.to_vec(), proposals));
        }
        left.retain(|candidate| candidate.is_alone);
        for of_directory in left.chunk_by(|one, next| one.parent == next.parent) {
            self.of_directory(of_directory.to_vec(), proposals);
        }
    }

    /// Groups of blocks of one file, only such as have a member in each slot. Returns what is left.
    fn of_file(
        &mut self,
        mut candidates: Vec<Candidate>,
        proposals: &mut Vec<Proposal>,
    ) -> Vec<Candidate> {
        let k = self.policy.schema.data_units();
        while proposals.len() < self.rules.proposals_max && candidates.len() >= k {
            let plan = self.plan(&candidates).filter(|plan| plan.members.len() == k);
            let Some(plan) = plan else { break };
            proposals.push(self.proposal(&mut candidates, plan));
        }
        candidates
    }

    /// Groups of blocks of one directory.
    fn of_directory(&mut self, mut candidates: Vec<Candidate>, proposals: &mut Vec<Proposal>) {
        let (k, m) = (self.policy.schema.data_units(), self.policy.schema.parity_units());
        // Those of one length stay in the order of files.
        candidates.sort_by_key(|candidate| Reverse(candidate.block.len));
        while proposals.len() < self.rules.proposals_max && self.failed < FAILED_MAX {
            let first = self.rules.first_that_pays(&candidates, |of| of.block.len, (k, m));
            let Some(first) = first else { break };
            candidates.drain(..first);
            match self.plan(&candidates) {
                Some(plan) => proposals.push(self.proposal(&mut candidates, plan)),
                // Where its replicas are it pays with none of the others.
                None => {
                    candidates.remove(0);
                    self.failed += 1;
                }
            }
        }
    }

    /// A group of some of the candidates that pays.
    fn plan(&mut self, candidates: &[Candidate]) -> Option<GroupPlan> {
        let (k, m) = (self.policy.schema.data_units(), self.policy.schema.parity_units());
        let tried: Vec<BlockRef> =
            candidates.iter().take(k * TRIED).map(|candidate| candidate.block).collect();
        let storage_policy = self.storage_policy;
        let request = GroupRequest { candidates: &tried, k, m, storage_policy };
        let plan = self.look.cluster.plan_group(&request, self.look.now, self.look.dice)?;
        let lens: Vec<u64> = plan.members.iter().map(|(block, _)| block.len).collect();
        self.rules.pays(&lens, m).then_some(plan)
    }

    /// What is to be done for a group, whose members are candidates no longer.
    fn proposal(&self, candidates: &mut Vec<Candidate>, plan: GroupPlan) -> Proposal {
        let new = |block: &BlockRef| {
            let candidate = candidates.iter().find(|candidate| candidate.block.id == block.id)?;
            let (BlockRef { id, gs, len }, crc32c) = (*block, candidate.crc32c);
            Some(NewMember { id, gs, len, crc32c })
        };
        let members: Vec<NewMember> =
            plan.members.iter().filter_map(|(block, _)| new(block)).collect();
        candidates.retain(|candidate| members.iter().all(|of| of.id != candidate.block.id));
        let mut targets: Vec<_> = plan.members.iter().map(|(_, at)| Some(*at)).collect();
        targets.resize(self.policy.schema.data_units(), None);
        targets.extend(plan.parities.into_iter().map(Some));
        let command = BeginEncode { policy: self.policy.id, members, supersedes: Vec::new() };
        Proposal { command, targets }
    }
}
