//! Which of the small blocks that wait go into containers together.
//!
//! They are gathered in the order in which they are due, over many rounds, until there is enough for the containers of a
//! group. A batch is of one policy and one storage policy; it is in the order of directories, and dealt out to its
//! containers so that these are of one length. What is left over waits until it has lost patience. The command compares
//! everything again: what was gathered may have changed.

use super::PackProposal;
use crate::contiguous::choose::Rules;
use crate::op::Look;
use cairn_namespace::container::PackedBlock;
use cairn_namespace::ops::pack::{BeginPack, PACKED_MAX, may_be_packed};
use cairn_namespace::query::{self, Waiting};
use cairn_namespace::{BlockState, FileRedundancy, InodeId, Result, block, settings};
use cairn_redundancy::{BlockLookup, NodeHandle, PlacementRequest};
use cairn_stripe::pack::{MAX_PACKED_LEN, PackIndex, padded_len};
use cairn_stripe::{BlockId, Policy, PolicyId, StoragePolicy};
use std::collections::BTreeMap;

/// Blocks that wait that one look takes.
const WINDOW: usize = 1000;
/// Blocks that are gathered, at most.
const GATHERED_MAX: usize = 200_000;
/// Bytes of a chunk of small blocks, as far as is known before they are read: what clients write unless told otherwise.
const CHUNK_LEN: u32 = 512;
/// Looks after which gathering begins anew: some became due behind what was looked at.
const LOOKS_MAX: usize = 1000;

/// When enough is gathered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackRules {
    /// Bytes of a container, about.
    pub container_len: u64,
    /// How long blocks wait for others, ms.
    pub patience_ms: u64,
    /// The part of the bytes of a group of containers that may be dead.
    pub dead_share_max: f64,
}

/// Files that are kept alike: the policy of groups and the storage policy.
type Class = (PolicyId, u8);

/// A block that may be packed, with its file's directory.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    parent: InodeId,
    block: PackedBlock,
    /// When it was due, elapsed ms.
    since_ms: u64,
}

impl Candidate {
    /// When it was due to wait for others. What a container is rid of waits for nobody.
    fn due_ms(&self) -> u64 {
        if self.block.from.is_some() { 0 } else { self.since_ms }
    }

    /// Whether it is in a container that cannot end because of it, and has waited for others in vain.
    fn is_stuck(&self, patience_ms: u64, elapsed_ms: u64) -> bool {
        self.block.from.is_some() && self.since_ms.saturating_add(patience_ms) <= elapsed_ms
    }
}

/// What is gathered.
#[derive(Clone, Debug, Default)]
pub struct Gather {
    after: Option<Waiting>,
    looks: usize,
    found: BTreeMap<Class, Vec<Candidate>>,
    stuck: Vec<BlockId>,
}

impl Gather {
    /// Forgets what was gathered: something of it has changed.
    pub fn clear(&mut self) {
        *self = Gather::default();
    }

    /// Blocks that were to go into another container and are to be plain again, since this was asked last: they may not be
    /// packed any more, for another storage policy is in force for them by now, or what is left of their files is kept
    /// otherwise; or they have waited in vain for others to be in a group with.
    pub fn take_stuck(&mut self) -> Vec<BlockId> {
        std::mem::take(&mut self.stuck)
    }

    /// Takes some more of the blocks that wait. Returns whether there are more.
    pub fn look(&mut self, look: &mut Look<'_>) -> Result<bool> {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            self.clear();
        }
        let gathered: usize = self.found.values().map(Vec::len).sum();
        if gathered >= GATHERED_MAX {
            return Ok(false);
        }
        let (store, elapsed_ms) = (look.store, look.now.elapsed_ms);
        let due = query::waiting_to_be_packed(store, elapsed_ms, self.after, WINDOW)?;
        self.after = due.last().copied().or(self.after);
        let mut storage_policies: BTreeMap<InodeId, u8> = BTreeMap::new();
        for waiting in &due {
            let found = candidate(look, *waiting, &mut storage_policies)?;
            match found {
                Some((class, candidate)) => {
                    self.found.entry(class).or_default().push(candidate);
                }
                None => self.stuck.extend(packed_already(look, *waiting)?),
            }
        }
        Ok(due.len() == WINDOW)
    }

    /// The containers of one group, if there is enough for them, there are places, and the group takes no more than the
    /// part `pays` of three copies: one that does not is never formed. At most `most` containers are begun.
    pub fn batch(
        &mut self,
        look: &mut Look<'_>,
        (rules, pays): (&PackRules, f64),
        most: usize,
    ) -> Result<Vec<PackProposal>> {
        for (class, candidates) in &mut self.found {
            let Some(policy) = crate::orders::policy(look.store, class.0)? else { continue };
            if most < policy.schema.data_units() {
                continue;
            }
            candidates.sort_by_key(|of| (of.parent, of.block.id));
            let elapsed_ms = look.now.elapsed_ms;
            let Some(dealt) = deal(candidates, &policy, (rules, pays), elapsed_ms) else {
                let in_vain = |of: &mut Candidate| of.is_stuck(rules.patience_ms, elapsed_ms);
                self.stuck.extend(candidates.extract_if(.., in_vain).map(|of| of.block.id));
                continue;
            };
            let proposals = placed(look, *class, policy.schema.units(), &dealt)?;
            if !proposals.is_empty() {
                let taken: usize = dealt.iter().map(Vec::len).sum();
                candidates.drain(..taken);
                return Ok(proposals);
            }
        }
        Ok(Vec::new())
    }
}

/// A block that waits, if it is packed.
fn packed_already(look: &Look<'_>, waiting: Waiting) -> Result<Option<BlockId>> {
    let block = block::get(look.store, waiting.id)?;
    Ok(block.filter(|block| block.packed.is_some()).map(|block| block.id))
}

fn candidate(
    look: &Look<'_>,
    waiting: Waiting,
    storage_policies: &mut BTreeMap<InodeId, u8>,
) -> Result<Option<(Class, Candidate)>> {
    let Some(block) = block::get(look.store, waiting.id)? else { return Ok(None) };
    let crc32c = block.unit_crcs.first().copied().flatten();
    let from = block.packed.map(|at| at.container);
    let is_free = block.state == BlockState::Complete
        && block.group.is_none()
        && block.len > 0
        && block.len <= MAX_PACKED_LEN.into();
    let (Some(crc32c), true) = (crc32c, is_free) else { return Ok(None) };
    let Some(inode) = query::file_of_block(look.store, block.id)? else { return Ok(None) };
    let redundancy = inode.file().map(|file| file.redundancy);
    let Some(FileRedundancy::Contiguous { policy, .. }) = redundancy else { return Ok(None) };
    // Files of a directory mostly have one storage policy; those that have their own are told apart.
    let of_directory = inode.storage_policy == StoragePolicy::UNSPECIFIED;
    let known = storage_policies.get(&inode.parent).copied().filter(|_| of_directory);
    let storage_policy = match known {
        Some(known) => known,
        None => {
            let found = query::storage_policy_of_block(look.store, block.id)?;
            if of_directory {
                storage_policies.insert(inode.parent, found);
            }
            found
        }
    };
    if !look.lookup().storage_policy(block.id).suits_stripes() {
        return Ok(None);
    }
    let (id, gs, len) = (block.id, block.gs, block.len);
    let block = PackedBlock { id, gs, len, crc32c, from };
    if !may_be_packed(look.store, &block, policy)? {
        return Ok(None);
    }
    let candidate = Candidate { parent: inode.parent, block, since_ms: waiting.due_ms };
    Ok(Some(((policy, storage_policy), candidate)))
}

/// The first of some candidates, dealt out to the containers of a group; nothing if they are not enough yet, or so unequal
/// that no group of them would be formed: more are taken then, up to all.
fn deal(
    candidates: &[Candidate],
    policy: &Policy,
    (rules, pays): (&PackRules, f64),
    elapsed_ms: u64,
) -> Option<Vec<Vec<PackedBlock>>> {
    let k = policy.schema.data_units();
    let wanted = rules.container_len.max(1).saturating_mul(k as u64);
    let (mut taken, mut sum) = (0, 0_u64);
    for candidate in candidates.iter().take(k * PACKED_MAX) {
        // Each container gets one at least.
        if sum >= wanted && taken >= k {
            break;
        }
        (taken, sum) = (taken + 1, sum + candidate.block.len);
    }
    let oldest_ms = candidates.iter().map(Candidate::due_ms).min().unwrap_or(u64::MAX);
    let is_enough = sum >= wanted || taken == k * PACKED_MAX;
    if taken < k || !is_enough && oldest_ms.saturating_add(rules.patience_ms) > elapsed_ms {
        return None;
    }
    let group = Rules { pays, proposals_max: 1 };
    let most = candidates.len().min(k * PACKED_MAX);
    loop {
        let dealt = deal_out(&candidates[..taken], k)?;
        let lens: Vec<u64> = dealt.iter().map(|blocks| container_len(blocks)).collect();
        if group.pays(&lens, policy.schema.parity_units()) {
            return Some(dealt);
        }
        if taken == most {
            return None;
        }
        taken = (taken * 2).min(most);
    }
}

/// Some candidates, dealt out to `k` containers, the next one always to the shortest of these.
fn deal_out(candidates: &[Candidate], k: usize) -> Option<Vec<Vec<PackedBlock>>> {
    let mut dealt: Vec<(u64, Vec<PackedBlock>)> = vec![(0, Vec::new()); k];
    for candidate in candidates {
        let open = dealt.iter_mut().filter(|(_, blocks)| blocks.len() < PACKED_MAX);
        let (len, blocks) = open.min_by_key(|(len, blocks)| (*len, blocks.len()))?;
        *len += candidate.block.len;
        blocks.push(candidate.block);
    }
    Some(dealt.into_iter().map(|(_, blocks)| blocks).collect())
}

/// Bytes of a container of those blocks, about.
fn container_len(blocks: &[PackedBlock]) -> u64 {
    let padded = |of: &PackedBlock| padded_len(of.len.try_into().unwrap_or(u32::MAX), CHUNK_LEN);
    blocks.iter().map(padded).sum::<u64>() + PackIndex::tail_len_of(blocks.len())
}

/// Containers of those blocks, each on a node of its own; none if there are too few nodes for a group of them.
fn placed(
    look: &mut Look<'_>,
    (policy, storage_policy): Class,
    width: usize,
    dealt: &[Vec<PackedBlock>],
) -> Result<Vec<PackProposal>> {
    let others = look.cluster.nodes().filter(|node| !node.takes_groups);
    let excluded: Vec<NodeHandle> = others.map(|node| node.handle).collect();
    let len = |blocks: &Vec<PackedBlock>| blocks.iter().map(|block| block.len).sum::<u64>();
    let longest = dealt.iter().map(len).max().unwrap_or(0);
    let chosen = look.cluster.choose_striped(
        &PlacementRequest {
            count: width,
            // With zeros between blocks, and an index.
            block_len: longest.saturating_add(longest / 8).saturating_add(1 << 20),
            excluded: &excluded,
            storage_policy: settings::get(look.store)?.storage_policy(storage_policy),
            ..PlacementRequest::default()
        },
        look.now,
        look.dice,
    );
    if chosen.len() < width {
        return Ok(Vec::new());
    }
    let propose = |(blocks, storage): (&Vec<PackedBlock>, _)| PackProposal {
        command: BeginPack { policy, storage_policy, blocks: blocks.clone() },
        storage,
    };
    Ok(dealt.iter().zip(chosen).map(propose).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_stripe::GenerationStamp;

    fn candidates(lens: &[u64]) -> Vec<Candidate> {
        let candidate = |(n, len): (i64, &u64)| Candidate {
            parent: InodeId(1),
            block: PackedBlock {
                id: BlockId(n),
                gs: GenerationStamp(1),
                len: *len,
                crc32c: 0,
                from: None,
            },
            since_ms: 1000,
        };
        (0..).zip(lens).map(candidate).collect()
    }

    fn dealt(lens: &[u64], elapsed_ms: u64) -> Option<Vec<u64>> {
        let policies = Policy::built_in();
        let policy = policies.iter().find(|of| of.name == "RS-3-2-contiguous").unwrap();
        let rules = PackRules { container_len: 1000, patience_ms: 500, dead_share_max: 0.2 };
        let found = deal(&candidates(lens), policy, (&rules, 0.6), elapsed_ms)?;
        Some(found.iter().map(|blocks| blocks.iter().map(|of| of.len).sum()).collect())
    }

    #[test]
    fn containers_of_a_batch_are_of_one_length_about() {
        let lens: Vec<u64> = (0..400).map(|n| 1 + n * 37 % 100).collect();
        let found = dealt(&lens, 0).unwrap();
        assert!(found.len() == 3 && found.iter().all(|len| (950..1100).contains(len)), "{found:?}");
    }

    /// A group of theirs would not be formed: they would be written, given up and written anew for ever.
    #[test]
    fn blocks_whose_group_would_not_pay_wait_for_others() {
        assert_eq!(dealt(&[900, 50, 2500], 10_000), None);
        let with_others = dealt(&[900, 50, 2500, 1600, 1500], 10_000);
        assert_eq!(with_others, Some(vec![2400, 1650, 2500]));
    }

    /// They were looked at first each time, and found too few for a group: nothing of their kind was ever packed.
    #[test]
    fn blocks_of_which_fewer_than_a_group_has_containers_would_do_are_packed_with_the_next() {
        assert_eq!(dealt(&[2000, 1500, 1900, 100], 0), Some(vec![2000, 1500, 1900]));
        assert_eq!(dealt(&[3000, 2600, 2800], 0), Some(vec![3000, 2600, 2800]));
    }

    #[test]
    fn what_is_not_enough_waits_until_it_has_lost_patience() {
        assert_eq!(dealt(&[900, 900, 900], 1499), None);
        assert_eq!(dealt(&[900, 900, 900], 1500), Some(vec![900; 3]));
        assert_eq!(dealt(&[900, 900], 10_000), None, "too few for a group");
        assert_eq!(dealt(&[1000, 1000, 1000], 0), Some(vec![1000; 3]));
    }

    /// Seed 700036 with `--packing`: the two that were left in a container kept it from ending, for ever.
    #[test]
    fn what_a_container_is_rid_of_waits_no_longer_than_patience_has_it() {
        let from = Some(BlockId(9));
        let [plain, rid] = [None, from].map(|from| {
            let [of] = candidates(&[900]).try_into().unwrap();
            Candidate { block: PackedBlock { from, ..of.block }, ..of }
        });
        assert_eq!((plain.due_ms(), rid.due_ms()), (1000, 0));
        assert_eq!([1499, 1500].map(|now| rid.is_stuck(500, now)), [false, true]);
        assert!(!plain.is_stuck(500, 10_000));
    }
}
