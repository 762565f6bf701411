//! What commands rest on that somebody has looked at before.

use crate::support::{Fs, MIB, add_block, complete, create};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease};
use cairn_namespace::ops::pipeline::UpdatePipeline;
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::unit_crcs::{BlockCrcs, RecordUnitCrcs};
use cairn_namespace::{Block, BlockRef, Guard, InodeId, query};
use cairn_stripe::BlockId;

const READY: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: true,
    last_has_locations: true,
    seen: None,
};

fn find(fs: &Fs, id: BlockId) -> Option<Block> {
    query::get_block(&fs.store, id).unwrap().map(|found| found.block)
}

/// Rests on a block as it is now.
fn on_block(fs: &Fs, id: BlockId) -> Guard {
    let mut guard = Guard::default();
    guard.block(id, find(fs, id).as_ref());
    guard
}

/// Rests on how many blocks a file has now.
fn on_file(fs: &Fs, file: InodeId) -> Guard {
    let mut guard = Guard::default();
    guard.file(&fs.store, file).unwrap();
    guard
}

fn holds(fs: &Fs, guard: &Guard) -> bool {
    guard.holds(&fs.store).unwrap()
}

/// An open file and its first block.
fn open() -> (Fs, InodeId, Block) {
    let mut fs = Fs::new();
    let file = fs.create("/f");
    let block = fs.add_block("/f", None);
    (fs, file, block)
}

fn ended(block: &Block, len: u64) -> Option<BlockRef> {
    Some(BlockRef { len, ..block.reference() })
}

fn append(new_block: bool) -> Append {
    Append {
        path: "/f".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block,
        replicas: READY,
    }
}

fn rename(src: &str, dst: &str) -> RenameTo {
    RenameTo { src: src.into(), dst: dst.into(), overwrite: false, to_trash: false }
}

#[test]
fn nothing_to_rest_on_always_holds() {
    let (mut fs, ..) = open();
    assert_eq!(Guard::NONE, Guard::default());
    assert!(holds(&fs, &Guard::NONE));
    fs.delete("/f");
    assert!(holds(&fs, &Guard::NONE));
}

#[test]
fn what_is_not_rested_on_may_change() {
    let (mut fs, file, block) = open();
    let guards = [on_block(&fs, block.id), on_file(&fs, file)];
    fs.ok(SetPermission { path: "/f".into(), mode: 0o600 });
    fs.ok(rename("/f", "/g"));
    fs.ok(rename("/g", "/f"));
    fs.write("/other", &[1, 2]);
    let units = vec![Some(7)];
    fs.ok(RecordUnitCrcs { blocks: vec![BlockCrcs { id: block.id, gs: block.gs, units }] });
    assert!(guards.iter().all(|guard| holds(&fs, guard)));
}

#[test]
fn a_blocks_stamp_is_rested_on() {
    let (mut fs, file, block) = open();
    let (guard, end) = (on_block(&fs, block.id), on_file(&fs, file));
    let old = block.reference();
    let new = BlockRef { gs: block.gs.next(), ..old };
    fs.ok(UpdatePipeline { holder: "client".into(), old, new });
    assert!(!holds(&fs, &guard));
    assert!(holds(&fs, &end), "the file has as many blocks as before");
    assert!(holds(&fs, &on_block(&fs, block.id)), "whoever looks again may go on");
}

#[test]
fn a_blocks_length_is_rested_on() {
    let (mut fs, _, block) = open();
    let guard = on_block(&fs, block.id);
    fs.ok(Fsync { path: "/f".into(), file: None, holder: "client".into(), last_len: Some(3) });
    assert_eq!(find(&fs, block.id).unwrap(), Block { len: 3, ..block });
    assert!(!holds(&fs, &guard));
}

#[test]
fn each_state_of_a_block_is_rested_on() {
    let (mut fs, _, block) = open();
    let mut guards = vec![on_block(&fs, block.id)];
    let mut changed = |fs: &Fs| {
        assert!(guards.iter().all(|guard| !holds(fs, guard)), "{guards:?}");
        guards.push(on_block(fs, block.id));
        assert!(holds(fs, &guards[guards.len() - 1]));
    };
    let last = ended(&block, 0);
    fs.ok(Complete { min_replicated: false, ..complete("/f", last) });
    changed(&fs);
    let reported = BlockCrcs { id: block.id, gs: block.gs, units: Vec::new() };
    fs.ok(CompleteBlocks { blocks: vec![reported] });
    changed(&fs);
    fs.complete("/f", last);
    let recover = RecoverLease { path: "/f".into(), holder: "other".into(), replicas: READY };
    fs.ok(append(false));
    // As it was at first, to whom looks at the block only.
    let (stamp, state) = (block.gs, block.state);
    let now = find(&fs, block.id).unwrap();
    assert_eq!((now.gs, now.state), (stamp, state));
    fs.ok(recover.clone());
    changed(&fs);
    // Ordered again, with another stamp.
    fs.now_ms += 100_000;
    fs.ok(recover);
    changed(&fs);
}

#[test]
fn the_file_of_a_block_is_rested_on() {
    let mut fs = Fs::new();
    fs.write("/d/a", &[1]);
    let from = fs.write("/d/b", &[2]);
    let id = query::blocks_of_file(&fs.store, from).unwrap()[0];
    let guard = on_block(&fs, id);
    let before = find(&fs, id).unwrap();
    fs.ok(Concat { target: "/d/a".into(), sources: vec!["/d/b".into()] });
    let after = find(&fs, id).unwrap();
    assert_eq!((before.gs, before.len, before.state), (after.gs, after.len, after.state));
    assert!(!holds(&fs, &guard));
}

#[test]
fn a_block_that_goes_or_comes_is_noticed() {
    let (mut fs, file, block) = open();
    let next = BlockId(block.id.0 + 1);
    let (there, none) = (on_block(&fs, block.id), on_block(&fs, next));
    assert!(holds(&fs, &there) && holds(&fs, &none));
    let second = fs.add_block("/f", ended(&block, MIB));
    assert_eq!(second.id, next);
    assert!(!holds(&fs, &none));
    let (last, end) = (on_block(&fs, next), on_file(&fs, file));
    fs.delete("/f");
    assert!(!holds(&fs, &last) && !holds(&fs, &there) && !holds(&fs, &end));
    assert!(holds(&fs, &on_block(&fs, next)) && holds(&fs, &on_file(&fs, file)));
}

#[test]
fn how_many_blocks_a_file_has_is_rested_on() {
    let (mut fs, file, block) = open();
    let guard = on_file(&fs, file);
    // The block itself may change.
    let early = AddBlock { previous_min_replicated: false, ..add_block("/f", None) };
    fs.ok(early);
    fs.complete("/f", ended(&block, 5));
    fs.ok(append(true));
    assert!(holds(&fs, &guard));
    fs.add_block("/f", ended(&block, 5));
    assert!(!holds(&fs, &guard));
}

#[test]
fn a_file_that_goes_or_comes_is_noticed() {
    let mut fs = Fs::new();
    let empty = fs.write("/empty", &[]);
    let next = InodeId(empty.0 + 1);
    let (there, none) = (on_file(&fs, empty), on_file(&fs, next));
    assert_eq!(fs.create("/next"), next);
    assert!(holds(&fs, &there));
    assert!(!holds(&fs, &none), "a file without blocks is not none");
    fs.delete("/empty");
    assert!(!holds(&fs, &there));
    fs.ok(create("/more"));
    assert!(!holds(&fs, &there));
}

#[test]
fn one_of_many_that_has_changed_is_enough() {
    for changed in ["/a", "/b", "/f"] {
        let mut fs = Fs::new();
        let mut guard = Guard::default();
        for path in ["/a", "/b", "/f"] {
            let file = fs.write(path, &[1, 2]);
            guard.file(&fs.store, file).unwrap();
            for id in query::blocks_of_file(&fs.store, file).unwrap() {
                guard.block(id, find(&fs, id).as_ref());
            }
        }
        assert!(holds(&fs, &guard));
        let before = guard.clone();
        fs.ok(Append { path: changed.into(), ..append(false) });
        assert!(!holds(&fs, &guard), "{changed}");
        assert_eq!(guard, before);
    }
}
