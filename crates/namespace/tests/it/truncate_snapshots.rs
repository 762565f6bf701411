//! Cutting files off inside blocks that snapshots have.

use crate::support::{Fs, MIB, Ordered, root, said};
use crate::truncate::{cut, done, work};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease};
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::{Command, Outcome, query};
use cairn_stripe::BlockId;

const READY: LastBlocks = LastBlocks {
    penultimate_min_replicated: true,
    last_min_replicated: true,
    last_has_locations: true,
    seen: None,
};

/// A directory with a quota and a file of two blocks, of which a snapshot was taken.
fn taken() -> Fs {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    limit(&mut fs, 1 << 40);
    fs.ok(AllowSnapshot { path: "/d".into() });
    fs.write("/d/f", &[4 * MIB, 4 * MIB]);
    take(&mut fs, "s");
    fs
}

fn limit(fs: &mut Fs, max: u64) {
    let (names_max, space_max) = (QuotaChange::Keep, QuotaChange::Set { max });
    fs.ok(SetQuota { path: "/d".into(), names_max, space_max });
}

fn take(fs: &mut Fs, name: &str) {
    fs.ok(CreateSnapshot { path: "/d".into(), name: name.into() });
}

fn give_up(fs: &mut Fs, name: &str) -> Vec<BlockId> {
    removed(fs, DeleteSnapshot { path: "/d".into(), name: name.into() })
}

/// The blocks that a command removes.
fn removed(fs: &mut Fs, command: impl Into<Command>) -> Vec<BlockId> {
    let outcome = fs.ok(command);
    assert!(matches!(outcome, Outcome::Removed { .. }), "{outcome:?}");
    fs.removed_ids()
}

fn space(fs: &Fs) -> u64 {
    fs.status("/d").unwrap().inode.directory().unwrap().quota.as_ref().unwrap().space / MIB
}

fn delete() -> Delete {
    Delete { path: "/d/f".into(), recursive: true }
}

/// Length, and ids and lengths of the blocks.
fn seen(fs: &Fs, path: &str) -> (u64, Vec<(BlockId, u64)>) {
    let found = query::get_blocks(&fs.store, &root(), path, 0, u64::MAX, 0).unwrap();
    let blocks = found.blocks.iter().map(|(_, block)| (block.id, block.len / MIB)).collect();
    (found.status.len() / MIB, blocks)
}

#[test]
fn the_file_gets_a_copy_and_the_snapshot_keeps_the_block() {
    let mut fs = taken();
    let before = seen(&fs, "/d/f");
    let [first, second] = before.1[..] else { panic!() };
    let (work, removed_now) = work(&mut fs, cut("/d/f", 5 * MIB));
    let copy = work.block.id;
    assert_eq!((work.block.copy_source(), removed_now), (Some(second.0), 0));
    assert_eq!((work.block.gs, work.block.len), (work.recovery_gs, MIB));
    let source = query::get_block(&fs.store, second.0).unwrap().unwrap().block;
    assert_eq!(query::copy_of(&fs.store, &source).unwrap(), Some(copy));
    // Unlike one that is cut in place, the file has its new length at once.
    let after = (5, vec![first, (copy, 1)]);
    assert_eq!(seen(&fs, "/d/f"), after);
    assert!(fs.status("/d/f").unwrap().is_under_construction());
    assert_eq!(seen(&fs, "/d/.snapshot/s/f"), before);
    assert_eq!(space(&fs), 3 * (8 + 1));
    // As in Hadoop, the same call again is refused.
    assert_eq!(said(&fs.err(cut("/d/f", 5 * MIB))).0, "AlreadyBeingCreatedException");
    let again = Outcome::Removed { done: false, more: false };
    assert_eq!(fs.ok(cut("/d/f", 8 * MIB)), again);
    // DataNodes name the block that they copied.
    let of_source = |work: &Ordered| {
        let mut done = done(work, MIB);
        done.block = source.reference();
        done
    };
    fs.now_ms += 100_000;
    let recover = RecoverLease { path: "/d/f".into(), holder: "other".into(), replicas: READY };
    let (repeated, _) = crate::truncate::work(&mut fs, recover);
    assert_eq!((repeated.block.id, repeated.block.copy_source()), (copy, Some(second.0)));
    assert_eq!(repeated.block.gs, repeated.recovery_gs);
    assert!(said(&fs.err(of_source(&work))).1.contains("does not match current recovery id"));
    assert_eq!(removed(&mut fs, of_source(&repeated)), []);
    assert!(!fs.status("/d/f").unwrap().is_under_construction());
    assert_eq!(seen(&fs, "/d/f"), after);
    assert_eq!(seen(&fs, "/d/.snapshot/s/f"), before);
    assert_eq!(space(&fs), 3 * (8 + 1));
    // The second cut is in place, for no snapshot has the copy.
    let (in_place, _) = crate::truncate::work(&mut fs, cut("/d/f", 4 * MIB + MIB / 2));
    assert_eq!((in_place.block.id, in_place.block.truncated_len()), (copy, Some(MIB / 2)));
    fs.ok(done(&in_place, MIB / 2));
    assert_eq!(give_up(&mut fs, "s"), [second.0]);
    assert_eq!(space(&fs) * MIB, 3 * 4 * MIB + MIB);
    assert_eq!(query::totals(&fs.store).unwrap().blocks, 2);
    // Writing goes on in the copy.
    let append = Append {
        path: "/d/f".into(),
        holder: "other".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: READY,
    };
    match fs.ok(append) {
        Outcome::Appended { last: Some((offset, block)), .. } => {
            assert_eq!((offset, block.id, block.len), (4 * MIB, copy, MIB / 2));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_snapshot_keeps_the_block_that_it_saw() {
    let mut fs = taken();
    let mut wanted = vec![seen(&fs, "/d/f")];
    for (name, len) in [("t", 7), ("u", 6)] {
        let (work, _) = work(&mut fs, cut("/d/f", len * MIB));
        assert!(work.block.copy_source().is_some());
        fs.ok(done(&work, (len - 4) * MIB));
        take(&mut fs, name);
        wanted.push(seen(&fs, "/d/f"));
    }
    // At the end of a block nothing is copied, and what was there stays.
    assert_eq!(removed(&mut fs, cut("/d/f", 4 * MIB)), []);
    assert_eq!(space(&fs), 3 * (4 + 4 + 3 + 2));
    for (name, wanted) in ["s", "t", "u"].iter().zip(&wanted) {
        assert_eq!(&seen(&fs, &format!("/d/.snapshot/{name}/f")), wanted);
    }
    for (name, wanted) in [("t", &wanted[1]), ("u", &wanted[2]), ("s", &wanted[0])] {
        assert_eq!(give_up(&mut fs, name), [wanted.1[1].0]);
    }
    assert_eq!(space(&fs), 3 * 4);
}

#[test]
fn a_block_is_kept_until_its_copy_is_made() {
    let mut fs = taken();
    let source = seen(&fs, "/d/f").1[1].0;
    let (work, _) = work(&mut fs, cut("/d/f", 5 * MIB));
    assert_eq!(give_up(&mut fs, "s"), []);
    assert!(query::get_block(&fs.store, source).unwrap().is_some());
    assert_eq!(space(&fs), 3 * 5);
    let mut done = done(&work, MIB);
    done.block.id = source;
    assert_eq!(removed(&mut fs, done), [source]);
    assert_eq!(query::totals(&fs.store).unwrap().blocks, 2);
    assert_eq!(space(&fs), 3 * 5);
}

/// How many copies are wanted of what is copied from depends on the file, though it has the block no more.
#[test]
fn a_block_that_is_copied_from_is_wanted_as_its_file_is() {
    let mut fs = taken();
    let source = seen(&fs, "/d/f").1[1].0;
    let (work, _) = work(&mut fs, cut("/d/f", 5 * MIB));
    give_up(&mut fs, "s");
    fs.ok(SetReplication { path: "/d/f".into(), replication: 2 });
    let mut changed = fs.copies_changed();
    changed.sort_by_key(|id| id.0);
    assert_eq!(changed, [seen(&fs, "/d/f").1[0].0, source, work.block.id]);
}

#[test]
fn a_block_goes_with_the_file_that_was_to_have_a_copy() {
    let mut fs = taken();
    let mut all: Vec<BlockId> = seen(&fs, "/d/f").1.iter().map(|(id, _)| *id).collect();
    let (work, _) = work(&mut fs, cut("/d/f", 5 * MIB));
    assert_eq!(give_up(&mut fs, "s"), []);
    all.push(work.block.id);
    let mut gone = removed(&mut fs, delete());
    gone.extend(removed(&mut fs, Purge { limit: 100 }));
    gone.sort_by_key(|id| id.0);
    assert_eq!(gone, all);
    assert_eq!((query::totals(&fs.store).unwrap().blocks, space(&fs)), (0, 0));

    // While a snapshot has it, it stays.
    let mut fs = taken();
    let before = seen(&fs, "/d/f");
    let (work, _) = crate::truncate::work(&mut fs, cut("/d/f", 5 * MIB));
    assert_eq!(removed(&mut fs, delete()), [work.block.id]);
    assert_eq!(seen(&fs, "/d/.snapshot/s/f"), before);
    assert_eq!(space(&fs), 3 * 8);
    assert_eq!(give_up(&mut fs, "s").len(), 2);
    assert_eq!((query::totals(&fs.store).unwrap().blocks, space(&fs)), (0, 0));
}

#[test]
fn a_whole_block_must_fit_into_the_quota_while_the_file_is_open() {
    // The block of 128 MiB instead of the cut one; what the snapshot has counts on.
    let mut fs = taken();
    let need = 3 * (8 + 128);
    limit(&mut fs, (need - 1) * MIB);
    assert_eq!(said(&fs.err(cut("/d/f", 5 * MIB))).0, "DSQuotaExceededException");
    limit(&mut fs, need * MIB);
    fs.ok(cut("/d/f", 5 * MIB));
    // Without one it does not.
    let mut fs = taken();
    give_up(&mut fs, "s");
    limit(&mut fs, (need - 3 * 4 - 1) * MIB);
    assert_eq!(said(&fs.err(cut("/d/f", 5 * MIB))).0, "DSQuotaExceededException");
    limit(&mut fs, (need - 3 * 4) * MIB);
    fs.ok(cut("/d/f", 5 * MIB));
}
