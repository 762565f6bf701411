//! Contiguous groups of the namespace's blocks, and what must hold of them.

use crate::support::Fs;
use cairn_namespace::group::{ChecksumShape, GroupState, ParityRecord};
use cairn_namespace::ops::group::{
    Abandon, BeginDissolve, BeginEncode, Dissolve, Form, MemberSum, NewMember,
};
use cairn_namespace::store::memory::MemoryStore;
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{Block, BlockState, FileRedundancy, Inode, Outcome, block, inode, query};
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The number of `RS-3-2-contiguous`.
const POLICY: PolicyId = PolicyId(34);
const PARITY_UNITS: usize = 2;

/// What a DataNode tells of a block.
pub fn crcs(id: BlockId) -> Vec<Option<u32>> {
    vec![Some(id.0 as u32)]
}

#[derive(Clone, Debug)]
struct Attempt {
    handle: BlockId,
    gs: GenerationStamp,
    members: Vec<NewMember>,
    supersedes: Vec<BlockId>,
}

/// Attempts and groups as they were made.
#[derive(Default)]
pub struct Groups {
    attempts: Vec<Attempt>,
    /// Members by handle, but for those that other groups took over.
    formed: BTreeMap<i64, BTreeSet<i64>>,
    /// Groups whose members all went to others.
    superseded: BTreeSet<i64>,
    handles: BTreeSet<i64>,
    stamps: BTreeSet<u64>,
}

fn records(store: &MemoryStore, table: Table) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    store
        .scan(table, &[], &[], &mut |_, record| {
            found.push(record.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

fn blocks(store: &MemoryStore) -> Vec<Block> {
    records(store, Table::Block).iter().map(|record| block::decode(record).unwrap()).collect()
}

impl Groups {
    /// Blocks that count as members of a group.
    pub fn members(&self) -> BTreeSet<i64> {
        self.formed.values().flatten().copied().collect()
    }

    pub fn begin(&mut self, fs: &mut Fs, from: usize, count: usize, renew: bool) {
        let is_plain = |block: &&Block| block.group.is_none() && block.id.0 > 0;
        let all = blocks(&fs.store);
        let mut chosen: Vec<&Block> = all.iter().filter(is_plain).collect();
        if !chosen.is_empty() {
            let at = from % chosen.len();
            chosen.rotate_left(at);
            chosen.truncate(count);
        }
        let mut supersedes = Vec::new();
        if renew && let Some(handle) = self.formed.keys().nth(from % self.formed.len().max(1)) {
            supersedes.push(BlockId(*handle));
            let group = query::group(&fs.store, BlockId(*handle)).unwrap().unwrap();
            let live: BTreeSet<i64> = group.live_members().map(|(_, member)| member.id.0).collect();
            chosen.truncate(3 - live.len());
            chosen.extend(all.iter().filter(|block| live.contains(&block.id.0)));
        }
        let member = |block: &&Block| NewMember {
            id: block.id,
            gs: block.gs,
            len: block.len,
            crc32c: block.id.0 as u32,
        };
        let members: Vec<NewMember> = chosen.iter().map(member).collect();
        let begin = BeginEncode { policy: POLICY, members: members.clone(), supersedes };
        let supersedes = begin.supersedes.clone();
        if let Outcome::EncodeBegun { handle, gs } = fs.ok(begin) {
            assert!(self.handles.insert(handle.0) && self.stamps.insert(gs.0), "one again");
            self.attempts.push(Attempt { handle, gs, members, supersedes });
        }
    }

    pub fn form(&mut self, fs: &mut Fs, which: usize) {
        let Some(attempt) = self.attempts.get(which).cloned() else { return };
        let sum = |(slot, member): (u8, &NewMember)| MemberSum {
            slot,
            crc32c: member.crc32c,
            sums_crc32c: !member.crc32c,
        };
        let form = Form {
            handle: attempt.handle,
            gs: attempt.gs,
            members: (0u8..).zip(&attempt.members).map(sum).collect(),
            parities: vec![ParityRecord { len: 1 << 40, crc32c: 1 }; PARITY_UNITS],
            checksum: ChecksumShape { kind: 2, bytes_per_checksum: 512 },
        };
        let before = fs.store.clone();
        match fs.ok(form) {
            Outcome::Done => {}
            Outcome::GroupRefused(_) => return assert!(fs.store == before, "refused and done"),
            other => panic!("{other:?}"),
        }
        self.attempts.remove(which);
        let members: BTreeSet<i64> = attempt.members.iter().map(|member| member.id.0).collect();
        for handle in &attempt.supersedes {
            self.formed.get_mut(&handle.0).unwrap().retain(|id| !members.contains(id));
            self.superseded.insert(handle.0);
        }
        self.formed.insert(attempt.handle.0, members);
    }

    pub fn give_up(&mut self, fs: &mut Fs, which: usize) {
        if which < self.attempts.len() {
            let Attempt { handle, .. } = self.attempts.remove(which);
            assert_eq!(fs.ok(Abandon { handle }), Outcome::Done);
        }
    }

    pub fn dissolve(&mut self, fs: &mut Fs, which: usize) {
        let Some(handle) = self.formed.keys().nth(which).copied() else { return };
        let group = query::group(&fs.store, BlockId(handle)).unwrap().unwrap();
        if group.state == GroupState::Formed && which.is_multiple_of(2) {
            let done = fs.ok(BeginDissolve { handle: group.handle });
            assert_eq!(done, Outcome::Done);
        }
        let is_needed = which % 2 == 1
            && group.state == GroupState::Formed
            && group.live_members().next().is_some();
        match fs.ok(Dissolve { handle: group.handle }) {
            Outcome::Done => assert!(!is_needed, "{group:?}"),
            Outcome::GroupRefused(_) => return assert!(is_needed, "{group:?}"),
            other => panic!("{other:?}"),
        }
        self.formed.remove(&handle);
        self.superseded.remove(&handle);
    }

    pub fn check(&self, store: &MemoryStore) {
        let blocks: BTreeMap<i64, Block> =
            blocks(store).into_iter().map(|block| (block.id.0, block)).collect();
        let groups = query::groups_after(store, None, usize::MAX).unwrap();
        let (attempts, groups): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.is_attempt());
        let mine: BTreeSet<i64> = self.attempts.iter().map(|attempt| attempt.handle.0).collect();
        assert_eq!(attempts.iter().map(|group| group.handle.0).collect::<BTreeSet<_>>(), mine);
        let open = query::open_attempts(store).unwrap();
        assert_eq!(open.iter().map(|handle| handle.0).collect::<BTreeSet<_>>(), mine);
        let mut in_groups = BTreeSet::new();
        for group in &groups {
            let is_superseded = matches!(group.state, GroupState::Superseded { .. });
            assert_eq!(is_superseded, self.superseded.contains(&group.handle.0));
            let mine = &self.formed[&group.handle.0];
            for (slot, member) in group.members() {
                let moved = !mine.contains(&member.id.0);
                assert!(!moved || is_superseded && !member.live, "{member:?}");
                if moved {
                    continue;
                }
                assert!(in_groups.insert(member.id.0), "{member:?} is in two groups");
                let block = &blocks[&member.id.0];
                let of = block.group.unwrap();
                assert_eq!((of.handle, of.slot), (group.handle, slot));
                assert_eq!((block.gs, block.len), (member.gs, member.len), "{block:?}");
                assert_eq!(block.state, BlockState::Complete);
                assert_eq!(block.is_tombstone(), !member.live, "{block:?}");
                let info = query::get_block(store, block.id).unwrap();
                assert!(info.is_some(), "{block:?} is not wanted");
            }
        }
        assert_eq!(self.formed.len(), groups.len());
        let named = blocks.values().filter(|block| block.group.is_some());
        assert_eq!(named.map(|block| block.id.0).collect::<BTreeSet<_>>(), in_groups);
        check_waiting(store, &blocks);
    }
}

/// Exactly those blocks wait that nobody writes, that are long enough, and that are in no group; those that only
/// snapshots have need not.
fn check_waiting(store: &MemoryStore, blocks: &BTreeMap<i64, Block>) {
    let waiting = query::waiting(store, u64::MAX - 1, None, usize::MAX).unwrap();
    let by_id: BTreeMap<i64, u64> =
        waiting.iter().map(|waiting| (waiting.id.0, waiting.due_ms)).collect();
    assert_eq!(by_id.len(), waiting.len());
    assert_eq!(records(store, Table::WaitingDue).len(), waiting.len());
    for (id, due_ms) in &by_id {
        assert_eq!(query::waiting_since(store, BlockId(*id)).unwrap(), Some(*due_ms));
    }
    let mut due = BTreeSet::new();
    for block in blocks.values() {
        let Some(file) = inode::get(store, block.file).unwrap() else { continue };
        let is_due = is_settled(store, &file, block) && block.len >= 1 << 20;
        if is_due && block.group.is_none() {
            due.insert(block.id.0);
        }
    }
    assert_eq!(by_id.keys().copied().collect::<BTreeSet<_>>(), due);
}

fn is_settled(store: &MemoryStore, inode: &Inode, block: &Block) -> bool {
    let file = inode.file().unwrap();
    let is_in_place = u64::from(block.index) < file.block_count
        && block::position(store, inode.id, block.index).unwrap().id == block.id;
    let is_at_end = u64::from(block.index) + 2 >= file.block_count;
    matches!(file.redundancy, FileRedundancy::Contiguous { .. })
        && is_in_place
        && !(file.writer.is_some() && is_at_end)
}
