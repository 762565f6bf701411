//! How many copies are wanted of what snapshots hold.

use crate::support::Fs;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::{InodeId, Outcome, query};
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

fn give_up(fs: &mut Fs, name: &str) -> Vec<InodeId> {
    fewer(fs.ok(DeleteSnapshot { path: "/d".into(), name: name.into() }))
}

fn fewer(outcome: Outcome) -> Vec<InodeId> {
    let (outcome, files) = outcome.without_fewer_copies();
    assert!(matches!(outcome, Outcome::Removed { done: true, .. }));
    files
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
    let (mut fs, file, block) = taken();
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
    assert_eq!(give_up(&mut fs, "t"), [file]);
    assert_eq!(wanted(&fs, block), 2);
}

#[test]
fn what_only_snapshots_have_needs_what_they_saw() {
    let (mut fs, file, block) = taken();
    set(&mut fs, 5);
    take(&mut fs, "t");
    set(&mut fs, 9);
    let delete = Delete { path: "/d/f".into(), recursive: false };
    assert_eq!(fewer(fs.ok(delete)), [file]);
    assert_eq!(wanted(&fs, block), 5);
    assert_eq!(query::blocks_of_file(&fs.store, file).unwrap(), [block]);
    assert_eq!(give_up(&mut fs, "t"), [file]);
    assert_eq!(wanted(&fs, block), 3);
    assert_eq!(give_up(&mut fs, "s"), []);
    assert_eq!(query::get_block(&fs.store, block).unwrap(), None);
}
