//! What effects tell of blocks: alone, and after random commands on the last blocks of few files.
//!
//! [`Fs`] compares what effects have told with the store after each entry of each test; here entries come that bring
//! blocks from any state into any other.

use crate::support::{Fs, MIB, add_block, complete, create, root};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::commit_block_synchronization::{CommitBlockSynchronization, DropBlock};
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease, ReleaseLease, RenewAllLeases};
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs, ReplaceCrc};
use cairn_namespace::query;
use cairn_namespace::{Block, BlockRef, Command, Effect, Outcome};
use cairn_stripe::{BlockId, GenerationStamp};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

const READY: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: true,
    last_has_locations: true,
    seen: None,
};
/// In the second directory files are striped.
const FILES: [&str; 4] = ["/d/a", "/d/b", "/d/c", "/s/a"];

#[derive(Clone, Debug)]
enum Step {
    Create { overwrite: bool },
    Add { len: u64, min_replicated: bool },
    Complete { len: u64, min_replicated: bool },
    Append { new_block: bool, replicas: LastBlocks },
    Pipeline { len: u64 },
    Abandon,
    Recover(LastBlocks),
    Release(LastBlocks),
    Synchronize { len: u64, close_file: bool, delete_block: bool },
    Report,
    Crcs { block: usize, recorded: u32 },
    Truncate { len: u64 },
    Concat { source: usize },
    Replication(u16),
    Take,
    Drop(usize),
    Delete,
    Rename { to: usize },
    Purge,
    Wait,
    Restart,
}

fn replicas() -> impl Strategy<Value = LastBlocks> {
    (any::<bool>(), any::<bool>(), prop::bool::weighted(0.7)).prop_map(|(before, last, has)| {
        LastBlocks {
            penultimate_min_replicated: before,
            last_min_replicated: last && has,
            last_has_locations: has,
            seen: None,
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let len = || prop::sample::select(vec![0, 1, 2 * MIB, 3 * MIB]);
    prop_oneof![
        6 => any::<bool>().prop_map(|overwrite| Step::Create { overwrite }),
        12 => (len(), any::<bool>())
            .prop_map(|(len, min_replicated)| Step::Add { len, min_replicated }),
        14 => (len(), prop::bool::weighted(0.7))
            .prop_map(|(len, min_replicated)| Step::Complete { len, min_replicated }),
        8 => (any::<bool>(), replicas())
            .prop_map(|(new_block, replicas)| Step::Append { new_block, replicas }),
        5 => len().prop_map(|len| Step::Pipeline { len }),
        3 => Just(Step::Abandon),
        6 => replicas().prop_map(Step::Recover),
        4 => replicas().prop_map(Step::Release),
        12 => (len(), any::<bool>(), prop::bool::weighted(0.2)).prop_map(
            |(len, close_file, delete_block)| Step::Synchronize { len, close_file, delete_block }
        ),
        5 => Just(Step::Report),
        6 => (0usize..8, 1u32..3).prop_map(|(block, recorded)| Step::Crcs { block, recorded }),
        8 => len().prop_map(|len| Step::Truncate { len }),
        4 => (0usize..FILES.len()).prop_map(|source| Step::Concat { source }),
        3 => (1u16..6).prop_map(Step::Replication),
        6 => Just(Step::Take),
        4 => (0usize..4).prop_map(Step::Drop),
        3 => Just(Step::Delete),
        3 => (0usize..FILES.len()).prop_map(|to| Step::Rename { to }),
        2 => Just(Step::Purge),
        4 => Just(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

/// A step, the file that it is about, and whether its writer takes it.
fn steps() -> impl Strategy<Value = Vec<(Step, usize, bool)>> {
    let is_writer = prop::bool::weighted(0.9);
    prop::collection::vec((step(), 0usize..FILES.len(), is_writer), 40..160)
}

struct World<'a> {
    fs: Fs,
    shots: Vec<(&'static str, String)>,
    taken: u32,
    told: &'a RefCell<BTreeMap<String, u64>>,
}

impl World<'_> {
    fn new(told: &RefCell<BTreeMap<String, u64>>) -> World<'_> {
        let mut fs = Fs::new();
        for top in ["/d", "/s"] {
            fs.mkdirs(top);
            fs.ok(AllowSnapshot { path: top.into() });
        }
        fs.set_policy("/s", "XOR-2-1-1024k");
        for path in FILES {
            fs.ok(Create { block_size: 4 * MIB, ..create(path) });
        }
        World { fs, shots: Vec::new(), taken: 0, told }
    }

    fn run(&mut self, command: impl Into<Command>) -> Option<Outcome> {
        let outcome = self.fs.run(root(), command).ok();
        for effect in &self.fs.effects {
            let text = format!("{effect:?}");
            let kind = text.split(' ').next().unwrap_or_default().to_string();
            *self.told.borrow_mut().entry(kind).or_default() += 1;
        }
        outcome
    }

    fn last(&self, path: &str) -> Option<Block> {
        let found = query::get_blocks(&self.fs.store, &root(), path, 0, 1, 0).ok()?;
        found.last.map(|(_, block)| block)
    }

    fn step(&mut self, step: &Step, file: usize, is_writer: bool) {
        let path = FILES[file].to_string();
        let writer = self.fs.status(&path).and_then(|status| {
            status.inode.file()?.writer.as_ref().map(|writer| writer.holder.clone())
        });
        let holder = writer.filter(|_| is_writer).unwrap_or_else(|| "other".to_string());
        let client_machine = "host".to_string();
        let last = self.last(&path);
        let ended = |len: u64| last.as_ref().map(|last| BlockRef { len, ..last.reference() });
        let units = |count: u32| (0..3).map(|unit| Some(count + unit)).collect::<Vec<_>>();
        match step.clone() {
            Step::Create { overwrite } => {
                self.run(Create { overwrite, holder, block_size: 4 * MIB, ..create(&path) });
            }
            Step::Add { len, min_replicated } => {
                self.run(AddBlock {
                    holder,
                    previous_min_replicated: min_replicated,
                    previous_crcs: units(1),
                    ..add_block(&path, ended(len))
                });
            }
            Step::Complete { len, min_replicated } => {
                let last_crcs = units(1);
                self.run(Complete {
                    holder,
                    min_replicated,
                    last_crcs,
                    ..complete(&path, ended(len))
                });
            }
            Step::Append { new_block, replicas } => {
                self.run(Append { path, holder, client_machine, new_block, replicas });
            }
            Step::Pipeline { len } => {
                let Some(old) = ended(0) else { return };
                let ask = UpdateBlockForPipeline { holder: holder.clone(), block: old };
                if let Some(Outcome::Stamp(gs)) = self.run(ask) {
                    self.run(UpdatePipeline { holder, old, new: BlockRef { gs, len, ..old } });
                }
            }
            Step::Abandon => {
                let Some(block) = ended(0) else { return };
                self.run(AbandonBlock { path, file: None, holder, block });
            }
            Step::Recover(replicas) => {
                self.run(RecoverLease { path, holder, replicas });
            }
            Step::Release(replicas) => {
                let Some(status) = self.fs.status(&path) else { return };
                self.run(ReleaseLease { file: status.inode.id, replicas });
            }
            Step::Synchronize { len, close_file, delete_block } => {
                let Some(last) = last else { return };
                let Some((new_gs, _)) = last.recovery() else { return };
                let id = last.copy_source().unwrap_or(last.id);
                // DataNodes bring cut off blocks to the length that was ordered.
                let new_len = match last.copy_source() {
                    Some(_) => last.len,
                    None => last.truncated_len().unwrap_or(len.max(last.len)),
                };
                let block = BlockRef { id, gs: last.gs, len: last.len };
                self.run(CommitBlockSynchronization {
                    block,
                    new_gs,
                    new_len,
                    close_file,
                    delete_block: delete_block.into(),
                });
            }
            Step::Report => {
                let found = query::blocks_after(&self.fs.store, None, usize::MAX).unwrap();
                let blocks = found.iter().map(|found| {
                    let Block { id, gs, .. } = found.block;
                    BlockCrcs { id, gs, units: Vec::new() }
                });
                self.run(CompleteBlocks { blocks: blocks.collect() });
            }
            Step::Crcs { block, recorded } => {
                let found = query::blocks_after(&self.fs.store, None, usize::MAX).unwrap();
                let Some(found) = found.get(block) else { return };
                let Block { id, gs, .. } = found.block;
                self.run(RecordUnitCrcs {
                    blocks: vec![BlockCrcs { id, gs, units: units(recorded) }],
                });
                self.run(ReplaceCrc { id, gs, recorded, crc32c: 3 - recorded });
            }
            Step::Truncate { len } => {
                let Some(status) = self.fs.status(&path) else { return };
                let new_len = status.len().saturating_sub(len);
                self.run(Truncate { path, new_len, holder, client_machine });
            }
            Step::Concat { source } => {
                self.run(Concat { target: path, sources: vec![FILES[source].into()] });
            }
            Step::Replication(replication) => {
                self.run(SetReplication { path, replication });
            }
            Step::Take => {
                let top = if path.starts_with("/d") { "/d" } else { "/s" };
                let name = format!("s{}", self.taken);
                self.taken += 1;
                self.run(CreateSnapshot { path: top.into(), name: name.clone() }).unwrap();
                self.shots.push((top, name));
            }
            Step::Drop(which) => {
                if which < self.shots.len() {
                    let (top, name) = self.shots.remove(which);
                    self.run(DeleteSnapshot { path: top.into(), name }).unwrap();
                }
            }
            Step::Delete => {
                self.run(Delete { path, recursive: true });
            }
            Step::Rename { to } => {
                let dst = FILES[to].to_string();
                self.run(RenameTo { src: path, dst, overwrite: true, to_trash: false });
            }
            Step::Purge => {
                self.run(Purge { limit: 3 });
            }
            // Longer than a recovery may take, and than others must leave a file to its writer.
            Step::Wait => self.fs.now_ms += 100_000,
            Step::Restart => {
                self.run(RenewAllLeases {});
            }
        }
    }
}

/// After each entry what effects have told is what the store says, whatever state blocks come from.
#[test]
fn folded_effects_are_what_the_store_says() {
    let config = ProptestConfig {
        cases: 512,
        // The same in each run.
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let told = RefCell::new(BTreeMap::new());
    TestRunner::new(config)
        .run(&steps(), |steps| {
            let mut world = World::new(&told);
            for (step, file, is_writer) in &steps {
                world.step(step, *file, *is_writer);
            }
            Ok(())
        })
        .unwrap();
    let kinds = [
        "Allocated",
        "CopyBegun",
        "PipelineUpdated",
        "Reopened",
        "RecoveryOrdered",
        "Synchronized",
        "Committed",
        "Completed",
        "CrcReplaced",
        "CopiesChanged",
        "Removed",
    ];
    let told = told.into_inner();
    assert_eq!(told.len(), kinds.len(), "{told:?}");
    for kind in kinds {
        assert!(told.get(kind).is_some_and(|count| *count >= 20), "{kind}: {told:?}");
    }
}

fn stamps(fs: &Fs, id: BlockId) -> GenerationStamp {
    query::get_block(&fs.store, id).unwrap().unwrap().block.gs
}

#[test]
fn a_block_is_told_of_from_its_first_byte_to_its_last() {
    let mut fs = Fs::new();
    let create = Create { block_size: 4 * MIB, ..create("/f") };
    fs.ok(create);
    assert_eq!(fs.effects, []);
    let block = fs.add_block("/f", None);
    let id = block.id;
    assert_eq!(fs.effects, [Effect::Allocated { id, gs: block.gs }]);
    fs.add_block("/f", None);
    assert_eq!(fs.effects, [], "the same again");
    let ask = UpdateBlockForPipeline { holder: "client".into(), block: block.reference() };
    let Outcome::Stamp(gs) = fs.ok(ask) else { panic!() };
    assert_eq!(fs.effects, [], "a stamp is nobody's yet");
    let old = block.reference();
    fs.ok(UpdatePipeline { holder: "client".into(), old, new: BlockRef { gs, ..old } });
    assert_eq!(fs.effects, [Effect::PipelineUpdated { id, gs }]);
    let last = Some(BlockRef { id, gs, len: 7 });
    let early = Complete { min_replicated: false, ..complete("/f", last) };
    fs.ok(early.clone());
    assert_eq!(fs.effects, [Effect::Committed { id }]);
    fs.ok(early);
    assert_eq!(fs.effects, []);
    fs.complete("/f", last);
    assert_eq!(fs.effects, [Effect::Completed { id }]);
    let append = Append {
        path: "/f".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: READY,
    };
    fs.ok(append.clone());
    assert_eq!(fs.effects, [Effect::Reopened { id, gs, len: 7 }]);
    fs.complete("/f", last);
    // Without the state between.
    assert_eq!(fs.effects, [Effect::Completed { id }]);
    fs.ok(SetReplication { path: "/f".into(), replication: 2 });
    assert_eq!(fs.effects, [Effect::CopiesChanged { id }]);
    fs.ok(append);
    let recover = RecoverLease { path: "/f".into(), holder: "other".into(), replicas: READY };
    fs.ok(recover);
    let new_gs = fs.ordered().unwrap().recovery_gs;
    assert_eq!(fs.effects, [Effect::RecoveryOrdered { id, new_gs }]);
    let done = CommitBlockSynchronization {
        block: BlockRef { id, gs, len: 7 },
        new_gs,
        new_len: 9,
        close_file: false,
        delete_block: DropBlock::No,
    };
    fs.ok(done.clone());
    assert_eq!(fs.effects, [Effect::Synchronized { id, gs: new_gs, len: 9 }]);
    fs.ok(RecoverLease { path: "/f".into(), holder: "other".into(), replicas: READY });
    let again = fs.ordered().unwrap().recovery_gs;
    fs.ok(CommitBlockSynchronization { new_gs: again, close_file: true, ..done });
    let ended = [Effect::Synchronized { id, gs: again, len: 9 }, Effect::Completed { id }];
    assert_eq!(fs.effects, ended);
    assert_eq!(stamps(&fs, id), again);
    fs.delete("/f");
    assert_eq!(fs.effects, [Effect::Removed { id, gs: again }]);
}

#[test]
fn a_committed_block_whose_writer_is_gone_is_open_again() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    let (id, gs) = (block.id, block.gs);
    let last = Some(BlockRef { len: 7, ..block.reference() });
    fs.ok(Complete { min_replicated: false, ..complete("/f", last) });
    let replicas = LastBlocks { last_min_replicated: false, ..READY };
    fs.ok(RecoverLease { path: "/f".into(), holder: "other".into(), replicas });
    let new_gs = fs.ordered().unwrap().recovery_gs;
    let told = [Effect::Reopened { id, gs, len: 7 }, Effect::RecoveryOrdered { id, new_gs }];
    assert_eq!(fs.effects, told);
}

#[test]
fn a_block_that_becomes_a_copy_is_told_of_with_its_source() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(AllowSnapshot { path: "/d".into() });
    let file = fs.write("/d/f", &[4 * MIB]);
    fs.ok(CreateSnapshot { path: "/d".into(), name: "s".into() });
    let source = query::blocks_of_file(&fs.store, file).unwrap()[0];
    let cut = Truncate {
        path: "/d/f".into(),
        new_len: MIB,
        holder: "client".into(),
        client_machine: "host".into(),
    };
    fs.ok(cut);
    let work = fs.ordered().unwrap();
    let (id, gs) = (work.block.id, work.recovery_gs);
    let begun = [Effect::CopyBegun { id, gs, source }, Effect::RecoveryOrdered { id, new_gs: gs }];
    assert_eq!(fs.effects, begun);
    fs.now_ms += 100_000;
    fs.ok(RecoverLease { path: "/d/f".into(), holder: "other".into(), replicas: READY });
    let gs = fs.ordered().unwrap().recovery_gs;
    assert!(gs > work.recovery_gs);
    let again = [Effect::CopyBegun { id, gs, source }, Effect::RecoveryOrdered { id, new_gs: gs }];
    assert_eq!(fs.effects, again);
    fs.ok(DeleteSnapshot { path: "/d".into(), name: "s".into() });
    assert_eq!(fs.effects, [], "it is still copied from");
    let source_gs = stamps(&fs, source);
    fs.ok(CommitBlockSynchronization {
        block: BlockRef { id: source, gs: source_gs, len: 4 * MIB },
        new_gs: gs,
        new_len: MIB,
        close_file: true,
        delete_block: DropBlock::No,
    });
    let ended = [
        Effect::Removed { id: source, gs: source_gs },
        Effect::Synchronized { id, gs, len: MIB },
        Effect::Completed { id },
    ];
    assert_eq!(fs.effects, ended);
}

#[test]
fn blocks_that_another_file_takes_over_are_wanted_as_that_one_wants_them() {
    let mut fs = Fs::new();
    fs.write("/d/a", &[1]);
    fs.ok(Create { replication: 1, ..create("/d/b") });
    let block = fs.add_block("/d/b", None);
    fs.complete("/d/b", Some(BlockRef { len: 1, ..block.reference() }));
    fs.ok(Concat { target: "/d/a".into(), sources: vec!["/d/b".into()] });
    assert_eq!(fs.effects, [Effect::CopiesChanged { id: block.id }]);
}
