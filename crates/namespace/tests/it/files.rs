//! Writing files: create, blocks, complete, append, truncate, concat.

use crate::support::{Fs, MIB, add_block, complete, create, root, said};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::pipeline::{UpdateBlockForPipeline, UpdatePipeline};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs, ReplaceCrc};
use cairn_namespace::query::{self, AddBlockPlan};
use cairn_namespace::{Block, BlockRef, BlockState, Effect, InodeId, Outcome, Settings};

const READY: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: true,
    last_has_locations: true,
    seen: None,
};

fn append(path: &str, new_block: bool) -> Append {
    Append {
        path: path.into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block,
        replicas: READY,
    }
}

#[test]
fn a_file_grows_block_by_block() {
    let mut fs = Fs::new();
    fs.create("/f");
    let first = fs.add_block("/f", None);
    assert_eq!((first.id.0, first.gs.0), ((1 << 30) + 1, 1001));
    let first = BlockRef { len: 128 * MIB, ..first.reference() };
    let second = fs.add_block("/f", Some(first));
    let second = BlockRef { len: 5, ..second.reference() };
    assert_eq!(fs.status("/f").unwrap().len(), 128 * MIB);
    fs.complete("/f", Some(second));
    let status = fs.status("/f").unwrap();
    assert_eq!((status.len(), status.is_under_construction()), (128 * MIB + 5, false));
    let get = |offset, len| {
        let found = query::get_blocks(&fs.store, &root(), "/f", offset, len, 0).unwrap();
        found.blocks.into_iter().map(|(offset, block)| (offset, block.len)).collect::<Vec<_>>()
    };
    assert_eq!(get(0, 1), [(0, 128 * MIB)]);
    assert_eq!(get(128 * MIB - 1, 2), [(0, 128 * MIB), (128 * MIB, 5)]);
    assert_eq!(get(128 * MIB, 100), [(128 * MIB, 5)]);
    assert_eq!(get(128 * MIB + 5, 100), []);
    let last = query::get_blocks(&fs.store, &root(), "/f", 0, 1, 0).unwrap().last.unwrap();
    assert_eq!((last.0, last.1.state), (128 * MIB, BlockState::Complete));
}

#[test]
fn closing_a_file_completes_every_block_that_was_only_committed() {
    let mut fs = Fs::new();
    let file = fs.create("/f");
    let first = fs.add_block("/f", None);
    let first = BlockRef { len: 128 * MIB, ..first.reference() };
    // The DataNodes have not reported the first block yet when the second is asked for.
    let early = AddBlock { previous_min_replicated: false, ..add_block("/f", Some(first)) };
    let Outcome::BlockAdded { block: second, .. } = fs.ok(early) else { panic!() };
    assert_eq!(query::incomplete_blocks(&fs.store, file).unwrap().len(), 2);
    fs.complete("/f", Some(BlockRef { len: 5, ..second.reference() }));
    let found = query::get_blocks(&fs.store, &root(), "/f", 0, 200 * MIB, 0).unwrap();
    let states: Vec<BlockState> = found.blocks.iter().map(|(_, block)| block.state).collect();
    assert_eq!(states, [BlockState::Complete, BlockState::Complete]);
}

#[test]
fn a_repeated_add_block_gets_the_same_block() {
    let mut fs = Fs::new();
    fs.create("/f");
    let first = fs.add_block("/f", None);
    let again = fs.ok(add_block("/f", None));
    assert_eq!(again, Outcome::BlockAdded { offset: 0, block: first.clone(), retry: true });
    let plan = query::plan_add_block(&fs.store, &root(), &add_block("/f", None)).unwrap();
    assert_eq!(plan, AddBlockPlan::Retry { offset: 0, block: first.clone() });
    let done = BlockRef { len: 9, ..first.reference() };
    let second = fs.add_block("/f", Some(done));
    let again = fs.ok(add_block("/f", Some(done)));
    assert_eq!(again, Outcome::BlockAdded { offset: 9, block: second.clone(), retry: true });
    let wrong = BlockRef { gs: second.gs.next(), ..second.reference() };
    let text = said(&fs.err(add_block("/f", Some(wrong)))).1;
    assert!(text.starts_with("Cannot allocate block in /f: passed 'previous' block"), "{text}");
    fs.ok(Fsync { path: "/f".into(), file: None, holder: "client".into(), last_len: Some(3) });
    let text = said(&fs.err(add_block("/f", Some(done)))).1;
    assert!(text.starts_with("Request looked like a retry to allocate block"), "{text}");
}

#[test]
fn complete_waits_for_replicas_and_can_be_repeated() {
    let mut fs = Fs::new();
    let id = fs.create("/f");
    let block = fs.add_block("/f", None);
    let last = Some(BlockRef { len: 9, ..block.reference() });
    let waits = cairn_namespace::ops::complete::Complete {
        min_replicated: false,
        last_crcs: vec![Some(7)],
        ..complete("/f", last)
    };
    assert_eq!(fs.ok(waits), Outcome::Flag(false));
    let blocks = query::incomplete_blocks(&fs.store, id).unwrap();
    assert_eq!((blocks.len(), blocks[0].state, blocks[0].len), (1, BlockState::Committed, 9));
    fs.complete("/f", last);
    fs.complete("/f", last);
    let error = fs.err(complete("/f", None));
    assert_eq!(said(&error).0, "LeaseExpiredException");
    let found = query::get_block(&fs.store, block.id).unwrap().unwrap();
    assert_eq!((found.block.state, found.block.unit_crcs), (BlockState::Complete, vec![Some(7)]));
}

#[test]
fn only_the_lease_holder_writes() {
    let mut fs = Fs::new();
    let id = fs.create("/f");
    let mut other = add_block("/f", None);
    other.holder = "other".into();
    assert_eq!(said(&fs.err(other)).0, "LeaseExpiredException");
    fs.delete("/f");
    let mut gone = add_block("/f", None);
    gone.file = Some(id);
    assert_eq!(said(&fs.err(gone)).0, "FileNotFoundException");
    let mut unknown = add_block("/f", None);
    unknown.file = Some(InodeId(99));
    assert_eq!(said(&fs.err(unknown)).0, "FileNotFoundException");
}

#[test]
fn create_over_a_file_needs_the_flag() {
    let mut fs = Fs::new();
    fs.write("/f", &[5]);
    let error = fs.err(create("/f"));
    assert_eq!(
        said(&error),
        ("FileAlreadyExistsException".into(), "/f for client host already exists".into())
    );
    let outcome = fs.ok(Create { overwrite: true, ..create("/f") });
    let Outcome::Created { status } = outcome else { panic!() };
    assert_eq!((status.len(), fs.removed.len(), fs.removed[0].len), (0, 1, 5));
    let error = fs.err(create("/f"));
    assert_eq!(
        said(&error),
        (
            "AlreadyBeingCreatedException".into(),
            "Failed to CREATE_FILE /f for client on host because client is already the current \
             lease holder."
                .into()
        )
    );
    // What else is wrong with the call is told behind that.
    let storage_policy = || Some("unknown".to_string());
    let again = Create { storage_policy: storage_policy(), ..create("/f") };
    assert_eq!(said(&fs.err(again)).0, "AlreadyBeingCreatedException");
    let unknown = Create { storage_policy: storage_policy(), ..create("/g") };
    assert_eq!(
        said(&fs.err(unknown)),
        (
            "HadoopIllegalArgumentException".into(),
            "Cannot find a block policy with the name unknown".into()
        )
    );
    fs.mkdirs("/d");
    assert_eq!(said(&fs.err(create("/d"))).1, "/d already exists as a directory");
    let missing = Create { create: false, overwrite: true, ..create("/g") };
    assert_eq!(said(&fs.err(missing)).1, "Can't overwrite non-existent /g");
    let orphan = Create { create_parent: false, ..create("/x/y") };
    assert_eq!(said(&fs.err(orphan)).1, "Parent directory doesn't exist: /x");
    // As the path was given.
    let many = Create { replication: 513, ..create("/.reserved/raw/g") };
    assert_eq!(
        said(&fs.err(many)).1,
        "Requested replication factor of 513 exceeds maximum of 512 for /.reserved/raw/g, clientName=host"
    );
    let negative = Create { replication: -1_i16 as u16, ..create("/g") };
    assert_eq!(
        said(&fs.err(negative)).1,
        "Requested replication factor of -1 is less than the required minimum of 1 for /g, clientName=host"
    );
}

/// `dfs.namenode.max.objects`.
#[test]
fn inodes_and_blocks_together_have_a_limit() {
    let limited = |objects_max| Settings { block_size_min: 0, objects_max, ..Settings::default() };
    let mut fs = Fs::with(limited(5));
    fs.mkdirs("/d");
    fs.create("/f");
    let first = fs.add_block("/f", None);
    // One is left, and two are made.
    fs.mkdirs("/a/b");
    let want = (
        "IOException".to_string(),
        "Exceeded the configured number of objects 5 in the filesystem.".to_string(),
    );
    assert_eq!(said(&fs.err(create("/g"))), want);
    let more = Mkdirs { path: "/c".into(), mode: 0o755.into(), create_parent: true };
    assert_eq!(said(&fs.err(more)), want);
    assert_eq!(said(&fs.err(add_block("/f", Some(first.reference())))), want);
    // What is there already is no more.
    fs.mkdirs("/a/b");
    fs.ok(Configure { settings: limited(7).into() });
    fs.add_block("/f", Some(first.reference()));
    assert!(
        said(&fs.err(create("/g"))).1.starts_with("Exceeded the configured number of objects 7")
    );
    fs.delete("/a");
    fs.create("/g");
}

#[test]
fn an_abandoned_block_is_taken_back() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    let abandon = AbandonBlock {
        path: "/f".into(),
        file: None,
        holder: "client".into(),
        block: block.reference(),
    };
    let done = Outcome::Removed { done: true, more: false };
    assert_eq!(fs.ok(abandon.clone()), done);
    assert_eq!(fs.removed, std::slice::from_ref(&block));
    assert_eq!(fs.ok(abandon), done);
    assert_eq!(fs.effects, []);
    assert_eq!(query::get_block(&fs.store, block.id).unwrap(), None);
    assert!(fs.add_block("/f", None).id > block.id);
}

#[test]
fn a_pipeline_gets_a_new_stamp() {
    let mut fs = Fs::new();
    fs.create("/f");
    let old = fs.add_block("/f", None).reference();
    let ask = |holder: &str| UpdateBlockForPipeline { holder: holder.into(), block: old };
    assert_eq!(said(&fs.err(ask("other"))).0, "LeaseExpiredException");
    let Outcome::Stamp(gs) = fs.ok(ask("client")) else { panic!() };
    assert!(gs > old.gs);
    let new = BlockRef { gs, len: 77, ..old };
    let update = |new| UpdatePipeline { holder: "client".into(), old, new };
    fs.ok(update(new));
    let found = query::get_block(&fs.store, old.id).unwrap().unwrap().block;
    assert_eq!(found.reference(), new);
    let text = said(&fs.err(update(new))).1;
    assert!(text.contains("does not have a larger generation stamp"), "{text}");
    let shorter = BlockRef { gs: gs.next(), len: 1, ..old };
    assert!(said(&fs.err(update(shorter))).1.contains("to a smaller size block"));
}

#[test]
fn append_reopens_the_last_block() {
    let mut fs = Fs::new();
    let id = fs.write("/f", &[5]);
    let late = Append { replicas: LastBlocks::default(), ..append("/f", false) };
    assert!(said(&fs.err(late)).1.ends_with("is not sufficiently replicated yet."));
    let Outcome::Appended { status, last } = fs.ok(append("/f", false)) else { panic!() };
    assert_eq!((status.inode.id, last.clone().unwrap().0), (id, 0));
    let block = last.unwrap().1;
    assert_eq!((block.len, block.state), (5, BlockState::UnderConstruction));
    fs.complete("/f", Some(BlockRef { len: 8, ..block.reference() }));
    assert_eq!(fs.status("/f").unwrap().len(), 8);
    let Outcome::Appended { last: None, .. } = fs.ok(append("/f", true)) else { panic!() };
    let text = said(&fs.err(append("/none", false))).1;
    assert_eq!(text, "Failed to append to non-existent file /none for client host");
}

#[test]
fn append_to_a_striped_file_needs_a_new_block() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec");
    fs.set_policy("/ec", "RS-3-2-1024k");
    fs.write("/ec/f", &[10]);
    let error = fs.err(append("/ec/f", false));
    assert_eq!(
        said(&error),
        (
            "UnsupportedOperationException".into(),
            "Append on EC file without new block is not supported. Use NEW_BLOCK create flag while \
             appending file."
                .into()
        )
    );
    let Outcome::Appended { last: None, .. } = fs.ok(append("/ec/f", true)) else { panic!() };
    let last = query::file_blocks(&fs.store, fs.status("/ec/f").unwrap().inode.id).unwrap();
    let previous = last.unwrap().last.map(|(_, block)| block.reference());
    let block = fs.add_block("/ec/f", previous);
    assert_eq!((block.index, block.id.0), (1, i64::MIN + 32));
    // The answer to the first `addBlock` may have been lost.
    let again = Outcome::BlockAdded { offset: 10, block: block.clone(), retry: true };
    assert_eq!(fs.ok(add_block("/ec/f", previous)), again);
    fs.complete("/ec/f", Some(BlockRef { len: 7, ..block.reference() }));
    assert_eq!(fs.status("/ec/f").unwrap().len(), 17);
}

#[test]
fn truncate_cuts_at_block_boundaries() {
    let mut fs = Fs::new();
    fs.write("/f", &[MIB, MIB, 5]);
    let cut = |new_len| Truncate {
        path: "/f".into(),
        new_len,
        holder: "client".into(),
        client_machine: "host".into(),
    };
    assert!(said(&fs.err(cut(9 * MIB))).1.starts_with("Cannot truncate to a larger file size."));
    assert_eq!(fs.ok(cut(MIB)), Outcome::Removed { done: true, more: false });
    assert_eq!((fs.removed.len(), fs.status("/f").unwrap().len()), (2, MIB));
}

#[test]
fn concat_moves_blocks() {
    let mut fs = Fs::new();
    fs.write("/d/a", &[1, 2]);
    fs.write("/d/b", &[3]);
    fs.write("/d/c", &[4, 5]);
    let concat = |sources: &[&str]| Concat {
        target: "/d/a".into(),
        sources: sources.iter().map(|s| s.to_string()).collect(),
    };
    assert_eq!(said(&fs.err(concat(&["/d/b", "/d/b"]))).0, "HadoopIllegalArgumentException");
    assert_eq!(said(&fs.err(concat(&["/d/a"]))).0, "HadoopIllegalArgumentException");
    fs.ok(concat(&["/d/c", "/d/b"]));
    assert_eq!((fs.names("/d"), fs.status("/d/a").unwrap().len()), (vec!["a".into()], 15));
    let found = query::get_blocks(&fs.store, &root(), "/d/a", 0, u64::MAX, 0).unwrap();
    let lens: Vec<_> = found.blocks.iter().map(|(offset, b)| (*offset, b.len, b.index)).collect();
    assert_eq!(lens, [(0, 1, 0), (1, 2, 1), (3, 4, 2), (7, 5, 3), (12, 3, 4)]);
    assert_eq!(query::totals(&fs.store).unwrap().inodes, 3);
}

#[test]
fn a_record_is_replaced_if_it_is_the_one_that_was_proven_wrong() {
    let mut fs = Fs::new();
    fs.create("/f");
    let block = fs.add_block("/f", None);
    fs.complete("/f", Some(BlockRef { len: 5, ..block.reference() }));
    let (id, gs) = (block.id, block.gs);
    fs.ok(RecordUnitCrcs { blocks: vec![BlockCrcs { id, gs, units: vec![Some(7)] }] });
    let record = |fs: &Fs| query::get_block(&fs.store, id).unwrap().unwrap().block.unit_crcs;
    // A CRC of which there was no record replaces none.
    assert_eq!(fs.effects, []);
    fs.ok(ReplaceCrc { id, gs, recorded: 6, crc32c: 8 });
    assert_eq!(fs.effects, []);
    fs.ok(ReplaceCrc { id, gs: gs.next(), recorded: 7, crc32c: 8 });
    assert_eq!(fs.effects, []);
    assert_eq!(record(&fs), [Some(7)]);
    fs.ok(ReplaceCrc { id, gs, recorded: 7, crc32c: 8 });
    assert_eq!(record(&fs), [Some(8)]);
    assert_eq!(fs.effects, [Effect::CrcReplaced { id }]);
}

#[test]
fn the_record_of_a_unit_is_replaced_by_its_own_id() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec");
    fs.set_policy("/ec", "XOR-2-1-1024k");
    fs.create("/ec/f");
    let block = fs.add_block("/ec/f", None);
    fs.complete("/ec/f", Some(BlockRef { len: 3 * MIB, ..block.reference() }));
    let (gs, units) = (block.gs, vec![Some(1), Some(2)]);
    fs.ok(RecordUnitCrcs { blocks: vec![BlockCrcs { id: block.id, gs, units }] });
    // The first is not what is recorded; of the last nothing is.
    for (unit, recorded) in [(0, 5), (1, 2), (2, 3)] {
        let id = block.id.internal(cairn_stripe::UnitIndex(unit));
        fs.ok(ReplaceCrc { id, gs, recorded, crc32c: 8 });
        let replaced = (unit == 1).then_some(Effect::CrcReplaced { id });
        assert_eq!(fs.effects, Vec::from_iter(replaced));
    }
    let found = query::get_block(&fs.store, block.id).unwrap().unwrap().block;
    assert_eq!(found.unit_crcs[..2], [Some(1), Some(8)]);
    assert!(found.unit_crcs[2..].iter().all(Option::is_none));
}

#[test]
fn crcs_that_come_late_are_kept_and_old_ones_are_not() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec");
    fs.set_policy("/ec", "XOR-2-1-1024k");
    fs.create("/ec/f");
    let block = fs.add_block("/ec/f", None);
    fs.complete("/ec/f", Some(BlockRef { len: 3 * MIB, ..block.reference() }));
    let report = |gs, units: &[Option<u32>]| RecordUnitCrcs {
        blocks: vec![BlockCrcs { id: block.id, gs, units: units.to_vec() }],
    };
    fs.ok(report(block.gs, &[Some(1), None, Some(3)]));
    fs.ok(report(block.gs, &[Some(9), Some(2)]));
    fs.ok(report(block.gs.next(), &[Some(8), Some(8), Some(8)]));
    let found = query::get_block(&fs.store, block.id).unwrap().unwrap().block;
    assert_eq!(found.unit_crcs, [Some(1), Some(2), Some(3)]);
    let internal = block.id.internal(cairn_stripe::UnitIndex(2));
    assert_eq!(query::get_block(&fs.store, internal).unwrap().unwrap().block, found);
    let sum = query::content_summary(&fs.store, &root(), "/ec").unwrap();
    assert_eq!((sum.len, sum.space, sum.policy.as_str()), (3 * MIB, 5 * MIB, "XOR-2-1-1024k"));
}

#[test]
fn a_committed_block_of_an_open_file_is_completed_when_its_replicas_are_there() {
    let mut fs = Fs::new();
    fs.create("/f");
    let mut previous = None;
    let mut blocks = Vec::new();
    for _ in 0..2 {
        let min = AddBlock { previous_min_replicated: false, ..add_block("/f", previous) };
        let Outcome::BlockAdded { block, .. } = fs.ok(min) else { panic!("no block") };
        previous = Some(BlockRef { len: MIB, ..block.reference() });
        blocks.push(block);
    }
    let done = |block: &Block, gs| CompleteBlocks {
        blocks: vec![BlockCrcs { id: block.id, gs, units: vec![Some(7)] }],
    };
    let now = |fs: &Fs, at: usize| {
        let block = query::get_block(&fs.store, blocks[at].id).unwrap().unwrap().block;
        (block.state, block.unit_crcs)
    };
    fs.ok(done(&blocks[1], blocks[1].gs));
    assert_eq!(now(&fs, 1).0, BlockState::UnderConstruction);
    fs.ok(done(&blocks[0], blocks[1].gs));
    assert_eq!(now(&fs, 0), (BlockState::Committed, vec![]));
    // Nor is the last one, before it is its turn.
    fs.ok(Complete { min_replicated: false, ..complete("/f", previous) });
    fs.ok(done(&blocks[1], blocks[1].gs));
    assert_eq!(now(&fs, 1).0, BlockState::Committed);
    for block in &blocks {
        fs.ok(done(block, block.gs));
    }
    assert_eq!([now(&fs, 0), now(&fs, 1)], [(); 2].map(|_| (BlockState::Complete, vec![Some(7)])));
    fs.complete("/f", previous);
}

#[test]
fn lengths_beyond_all_measure_do_not_stop_the_namespace() {
    // A log may have what is refused by now.
    let mut fs = Fs::with(Settings { block_size_min: 0, rules: 2, ..Settings::default() });
    let huge = u64::MAX;
    let error = fs.err(Create { block_size: huge, ..create("/refused") });
    assert!(said(&error).1.starts_with("Specified block size -1 is less than"), "{error}");
    for policy in [None, Some("RS-3-2-1024k")] {
        fs.mkdirs("/d");
        if let Some(policy) = policy {
            fs.set_policy("/d", policy);
        }
        let path = format!("/d/{policy:?}");
        let error = fs.err(Create { block_size: 1 << 48, ..create(&path) });
        assert_eq!(said(&error).0, "IllegalArgumentException");
        assert_eq!(
            said(&error).1,
            "Illagal value: PREFERRED_BLOCK_SIZE = 281474976710656 > MAX = 281474976710655"
        );
        fs.ok(Create { block_size: (1 << 48) - 1, ..create(&path) });
        let mut previous = None;
        for _ in 0..3 {
            let block = fs.add_block(&path, previous);
            previous = Some(BlockRef { len: huge, ..block.reference() });
        }
        fs.complete(&path, previous);
        query::content_summary(&fs.store, &root(), "/d").unwrap();
        query::get_blocks(&fs.store, &root(), &path, 0, huge, 0).unwrap();
        fs.delete(&path);
    }
    // Logs of older builds may have larger ones.
    let mut past = Fs::with(Settings { rules: 1, ..Settings::default() });
    past.ok(Create { block_size: i64::MAX as u64, ..create("/f") });
}
