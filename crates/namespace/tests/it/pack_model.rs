//! Small files through all that becomes of them when they are packed, in random order, beside a model of what DataNodes
//! have: plain replicas, and containers by slot.
//!
//! After each command every block that a file or a snapshot has can be had: it has a plain replica, or the container in
//! which it is said to be is there, and has its bytes in that slot and at that offset. Ids and stamps of containers never
//! come again. That counts are a recount, [`cairn_namespace::check`] says after each. In the end nothing is stuck: every
//! container that is to be emptied is gone.

use crate::support::{Fs, add_block, complete};
use cairn_namespace::container::{ContainerState, PackedBlock};
use cairn_namespace::group::{ChecksumShape, ParityRecord};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::convert::Convert;
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::group::{BeginEncode, Dissolve, Form, MemberSum, NewMember};
use cairn_namespace::ops::pack::{AbandonPack, BeginPack, EndPack, Pack, SealPack, may_be_packed};
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::repack::Repack;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CollectSnapshot, CreateSnapshot, DeleteSnapshot,
};
use cairn_namespace::ops::unpack::{BeginUnpack, Unpack};
use cairn_namespace::{Block, BlockRef, Outcome, Settings, query};
use cairn_stripe::pack::PackIndex;
use cairn_stripe::{BlockId, GenerationStamp, PolicyId};
use std::collections::{BTreeMap, BTreeSet};

const POLICY: PolicyId = PolicyId(34);
const SHAPE: ChecksumShape = ChecksumShape { kind: 2, bytes_per_checksum: 512 };
const SEEDS: u64 = 12;
const STEPS: usize = 150;

/// Numbers by chance: Marsaglia's xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len())])
    }
}

/// A container as it was written: where each block begins, by slot.
type Written = BTreeMap<u32, (BlockId, u64)>;

struct Model {
    fs: Fs,
    dice: Dice,
    files: usize,
    snapshots: usize,
    /// Blocks with plain replicas.
    plain: BTreeSet<BlockId>,
    /// What disks have of containers.
    disks: BTreeMap<BlockId, Written>,
    /// Containers that are written, with the blocks by slot.
    open: Vec<(BlockId, GenerationStamp, Vec<PackedBlock>)>,
    seen: BTreeSet<(BlockId, GenerationStamp)>,
    groups: BTreeMap<BlockId, BlockId>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let settings = Settings { block_size_min: 0, packs: true, ..Settings::default() };
        let mut fs = Fs::with(settings);
        fs.mkdirs("/c");
        fs.set_policy("/c", "RS-3-2-contiguous");
        fs.ok(AllowSnapshot { path: "/c".into() });
        Model {
            fs,
            dice: Dice(seed * 2 + 1),
            files: 0,
            snapshots: 0,
            plain: BTreeSet::new(),
            disks: BTreeMap::new(),
            open: Vec::new(),
            seen: BTreeSet::new(),
            groups: BTreeMap::new(),
        }
    }

    fn blocks(&self) -> Vec<Block> {
        let infos = query::blocks_after(&self.fs.store, None, 10_000).unwrap();
        infos.into_iter().map(|info| info.block).collect()
    }

    fn small(&self) -> Vec<Block> {
        let is_small = |of: &Block| !of.id.is_container() && !of.id.has_units();
        self.blocks().into_iter().filter(is_small).collect()
    }

    fn containers(&self, is_wanted: impl Fn(ContainerState) -> bool) -> Vec<BlockId> {
        let all = query::containers_after(&self.fs.store, None, 1000).unwrap();
        all.into_iter().filter(|of| is_wanted(of.state)).map(|of| of.id).collect()
    }

    fn check(&self) {
        for block in self.small() {
            match block.packed {
                None => assert!(self.plain.contains(&block.id), "{} is lost", block.id),
                Some(at) => {
                    let there = self.disks.get(&at.container).and_then(|of| of.get(&at.slot));
                    assert_eq!(there, Some(&(block.id, at.offset)), "{block:?}");
                }
            }
        }
    }

    fn write(&mut self) {
        self.files += 1;
        let path = format!("/c/{}", self.files);
        self.fs.create(&path);
        let Outcome::BlockAdded { block, .. } = self.fs.ok(add_block(&path, None)) else {
            panic!()
        };
        let len = 1 + self.dice.below(3000) as u64;
        let last = Some(BlockRef { len, ..block.reference() });
        self.fs.ok(Complete { last_crcs: vec![Some(5)], ..complete(&path, last) });
        self.plain.insert(block.id);
    }

    fn path(&mut self) -> Option<String> {
        let names = self.fs.names("/c");
        (!names.is_empty()).then(|| format!("/c/{}", names[self.dice.below(names.len())]))
    }

    fn begin(&mut self, most: usize) -> bool {
        let due = query::waiting_to_be_packed(&self.fs.store, u64::MAX, None, 1000).unwrap();
        let mut blocks = Vec::new();
        for waiting in due {
            let block = query::get_block(&self.fs.store, waiting.id).unwrap().unwrap().block;
            let Block { id, gs, len, packed, .. } = block;
            let from = packed.map(|at| at.container);
            let block = PackedBlock { id, gs, len, crc32c: 5, from };
            if !may_be_packed(&self.fs.store, &block, POLICY).unwrap() {
                // It is packed, and may not be again: its file was deleted, and snapshots saw it kept otherwise.
                self.fs.ok(BeginUnpack { blocks: vec![id], waits: true });
            } else if blocks.len() < most {
                blocks.push(block);
            }
        }
        if blocks.is_empty() {
            return false;
        }
        let begin = BeginPack { policy: POLICY, storage_policy: 0, blocks: blocks.clone() };
        let Outcome::EncodeBegun { handle, gs } = self.fs.ok(begin) else { panic!() };
        assert!(self.seen.insert((handle, gs)), "an id and stamp come again");
        self.open.push((handle, gs, blocks));
        true
    }

    /// A DataNode has written a container of the blocks that it could read: from replicas, or from where they are.
    fn seal(&mut self, leaves_out: bool) {
        if self.open.is_empty() {
            return;
        }
        let at = self.dice.below(self.open.len());
        let (container, gs, blocks) = self.open.remove(at);
        let mut index = PackIndex::new((container, gs), 2, 512).unwrap();
        let (mut written, mut left_out, mut offset) = (Written::new(), Vec::new(), 0);
        for (slot, block) in (0..).zip(&blocks) {
            let now = query::get_block(&self.fs.store, block.id).unwrap().map(|of| of.block);
            let can_be_read = now.is_some_and(|of| {
                of.packed.map_or(self.plain.contains(&of.id), |at| {
                    self.disks.contains_key(&at.container)
                })
            });
            if !can_be_read || leaves_out && self.dice.below(4) == 0 {
                left_out.push(slot);
                continue;
            }
            index.push(slot, (block.id, block.gs), (block.len as u32, 5)).unwrap();
            written.insert(slot, (block.id, offset));
            offset += block.len.next_multiple_of(512);
        }
        if written.is_empty() {
            self.fs.ok(AbandonPack { container });
            return;
        }
        let (len, crcs) = (index.container_len(), vec![5; written.len()]);
        self.disks.insert(container, written);
        let seal = SealPack { container, gs, len, crc32c: 9, left_out, crcs, checksum: SHAPE };
        if self.fs.ok(seal) != Outcome::Done {
            self.disks.remove(&container);
            return;
        }
        if leaves_out && self.dice.below(5) == 0 {
            self.disks.remove(&container);
            assert_eq!(self.fs.ok(AbandonPack { container }), Outcome::Flag(true));
            return;
        }
        self.group((container, gs), len);
    }

    fn group(&mut self, (id, gs): (BlockId, GenerationStamp), len: u64) {
        let members = vec![NewMember { id, gs, len, crc32c: 9 }];
        let begin = BeginEncode { policy: POLICY, members, supersedes: Vec::new() };
        let Outcome::EncodeBegun { handle, gs } = self.fs.ok(begin) else { panic!() };
        let form = Form {
            handle,
            gs,
            members: vec![MemberSum { slot: 0, crc32c: 9, sums_crc32c: 6 }],
            parities: vec![ParityRecord { len: 1 << 30, crc32c: 7 }; 2],
            checksum: SHAPE,
        };
        assert_eq!(self.fs.ok(form), Outcome::Done);
        self.groups.insert(id, handle);
    }

    /// Packs what is sealed; replicas of it go at once.
    fn pack(&mut self) {
        let sealed = self.containers(|state| state == ContainerState::Sealed);
        let Some(container) = self.dice.one(&sealed) else { return };
        let gs = query::container(&self.fs.store, container).unwrap().unwrap().gs;
        assert_eq!(self.fs.ok(Pack { container, gs }), Outcome::Flag(true));
        for block in self.small().iter().filter(|of| of.packed.is_some()) {
            self.plain.remove(&block.id);
        }
    }

    /// Ends containers of which nothing is left, and their groups.
    fn end(&mut self) {
        let over =
            |state| matches!(state, ContainerState::Packed | ContainerState::Emptying { .. });
        for container in self.containers(over) {
            if self.fs.ok(EndPack { container }) == Outcome::Done {
                let handle = self.groups.remove(&container).unwrap();
                assert_eq!(self.fs.ok(Dissolve { handle }), Outcome::Done);
                self.disks.remove(&container);
            }
        }
    }

    fn repack(&mut self) {
        let packed = self.containers(|state| state == ContainerState::Packed);
        if let Some(container) = self.dice.one(&packed) {
            assert_eq!(self.fs.ok(Repack { container }), Outcome::Flag(true));
        }
    }

    /// DataNodes write replicas of what is to be plain, then it is.
    fn unpack(&mut self) {
        let asked = query::unpacking_after(&self.fs.store, None, 1000).unwrap();
        self.plain.extend(&asked);
        self.fs.ok(Unpack { blocks: asked });
    }

    fn collect(&mut self) {
        for _ in 0..20 {
            self.fs.ok(CollectSnapshot {});
            self.fs.ok(Purge { limit: 100 });
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=4 => self.write(),
            5 | 6 => {
                if let Some(path) = self.path() {
                    self.fs.delete(&path);
                }
            }
            7 | 8 => {
                let most = 1 + self.dice.below(8);
                self.begin(most);
            }
            9 | 10 => self.seal(true),
            11 | 12 => self.pack(),
            13 => self.repack(),
            14 => {
                let small = self.small();
                let ids: Vec<BlockId> = small.iter().map(|of| of.id).collect();
                let waits = self.dice.below(2) == 0;
                if let Some(id) = self.dice.one(&ids) {
                    self.fs.ok(BeginUnpack { blocks: vec![id], waits });
                }
            }
            15 => self.unpack(),
            16 => {
                self.snapshots += 1;
                let name = format!("s{}", self.snapshots);
                self.fs.ok(CreateSnapshot { path: "/c".into(), name });
            }
            17 => {
                let name = format!("s{}", self.snapshots);
                if self
                    .fs
                    .run(crate::support::root(), DeleteSnapshot { path: "/c".into(), name })
                    .is_ok()
                {
                    self.collect();
                }
            }
            18 => {
                if let Some(path) = self.path() {
                    let file = self.fs.status(&path).unwrap().inode.id;
                    let policy = ["replication", "RS-3-2-contiguous"][self.dice.below(2)].into();
                    self.fs.ok(Convert { files: vec![file], policy });
                    let replication = 3 + 2 * self.dice.below(2) as u16;
                    self.fs.ok(SetReplication { path, replication });
                }
            }
            _ => {
                self.end();
                if let Some(src) = self.path() {
                    self.files += 1;
                    let dst = format!("/c/{}", self.files);
                    self.fs.ok(Rename { src, dst });
                }
            }
        }
        self.check();
    }

    /// Nothing else happens any more: what was begun comes to its end.
    fn settle(&mut self) {
        for _ in 0..8 {
            while !self.open.is_empty() {
                self.seal(false);
                self.check();
            }
            for _ in 0..self.containers(|state| state == ContainerState::Sealed).len() {
                self.pack();
                self.check();
            }
            self.unpack();
            self.end();
            self.check();
            if !self.begin(1000) {
                break;
            }
        }
        let left = self.containers(|state| matches!(state, ContainerState::Emptying { .. }));
        assert!(left.is_empty(), "{left:?} are not emptied");
        assert!(query::unpacking_after(&self.fs.store, None, 9).unwrap().is_empty());
    }
}

#[test]
fn what_is_packed_can_be_had_whatever_is_done() {
    for seed in 1..=SEEDS {
        let mut model = Model::new(seed);
        for _ in 0..STEPS {
            model.step();
        }
        model.settle();
        let packed = model.small().iter().filter(|of| of.packed.is_some()).count() as u64;
        assert_eq!(query::totals(&model.fs.store).unwrap().packed, packed);
    }
}
