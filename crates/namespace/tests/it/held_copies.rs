//! How many copies are wanted of what snapshots hold.

use crate::support::{Fs, create};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::{Command, InodeId, Outcome, query};
use cairn_stripe::{BlockId, Redundancy};

fn taken() -> (Fs, InodeId, BlockId) {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(AllowSnapshot { path: "/d".into() });
    let file = fs.write("/d/f", &[5]);
    let blocks = query::blocks_of_file(&fs.store, file).unwrap();
    take(&mut fs, "s");
    (fs, file, blocks[0])
}

fn take(fs: &mut Fs, name: &str) {
    fs.ok(CreateSnapshot { path: "/d".into(), name: name.into() });
}

fn give_up(fs: &mut Fs, name: &str) -> Vec<BlockId> {
    fewer(fs, DeleteSnapshot { path: "/d".into(), name: name.into() })
}

/// The blocks of which a command may want another number of copies.
fn fewer(fs: &mut Fs, command: impl Into<Command>) -> Vec<BlockId> {
    let outcome = fs.ok(command);
    assert!(matches!(outcome, Outcome::Removed { done: true, .. } | Outcome::Created { .. }));
    fs.copies_changed()
}

fn set(fs: &mut Fs, replication: u16) {
    fs.ok(SetReplication { path: "/d/f".into(), replication });
}

fn wanted(fs: &Fs, block: BlockId) -> u16 {
    match query::get_block(&fs.store, block).unwrap().unwrap().redundancy {
        Redundancy::Replicated(copies) => copies,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_most_that_the_file_or_a_snapshot_wants() {
    let (mut fs, _, block) = taken();
    set(&mut fs, 1);
    assert_eq!(wanted(&fs, block), 3);
    set(&mut fs, 5);
    assert_eq!(wanted(&fs, block), 5);
    take(&mut fs, "t");
    set(&mut fs, 2);
    assert_eq!(wanted(&fs, block), 5);
    // The one that wanted less changes nothing.
    assert_eq!(give_up(&mut fs, "s"), []);
    assert_eq!(wanted(&fs, block), 5);
    assert_eq!(give_up(&mut fs, "t"), [block]);
    assert_eq!(wanted(&fs, block), 2);
}

#[test]
fn what_only_snapshots_have_needs_what_they_saw() {
    let (mut fs, file, block) = taken();
    set(&mut fs, 5);
    take(&mut fs, "t");
    set(&mut fs, 9);
    let delete = Delete { path: "/d/f".into(), recursive: false };
    assert_eq!(fewer(&mut fs, delete), [block]);
    assert_eq!(wanted(&fs, block), 5);
    assert_eq!(query::blocks_of_file(&fs.store, file).unwrap(), [block]);
    assert_eq!(give_up(&mut fs, "t"), [block]);
    assert_eq!(wanted(&fs, block), 3);
    assert_eq!(give_up(&mut fs, "s"), []);
    assert_eq!(query::get_block(&fs.store, block).unwrap(), None);
}

/// Source: Hadoop 3.5.0 `FSDirDeleteOp#delete`, by which a file that is overwritten goes too.
#[test]
fn a_file_that_is_overwritten_wants_what_snapshots_saw() {
    let over = || Create { overwrite: true, ..create("/d/f") };
    let (mut fs, _, block) = taken();
    set(&mut fs, 5);
    assert_eq!(fewer(&mut fs, over()), [block]);
    assert_eq!(wanted(&fs, block), 3);
    let (mut fs, _, _) = taken();
    set(&mut fs, 1);
    assert_eq!(fewer(&mut fs, over()), []);
    assert_eq!(fewer(&mut fs, over()), [], "no snapshot has it");
}

/// Source: Hadoop 3.5.0 `FSDirRenameOp.RenameOperation#cleanDst`.
#[test]
fn a_file_that_another_is_moved_over_wants_what_snapshots_saw() {
    let (mut fs, _, block) = taken();
    set(&mut fs, 5);
    fs.write("/d/g", &[1]);
    let rename =
        RenameTo { src: "/d/g".into(), dst: "/d/f".into(), overwrite: true, to_trash: false };
    assert_eq!(fewer(&mut fs, rename), [block]);
    assert_eq!(wanted(&fs, block), 3);
}
