//! Snapshots: what they cost, hold and refuse; what is told of them is in [`told`].

mod told;

use crate::support::{Fs, add_block, complete, create, root, said, user};
use cairn_namespace::ops::add_block::AddBlock;
use cairn_namespace::ops::complete::Complete;
use cairn_namespace::ops::complete_blocks::CompleteBlocks;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::set_times::{SetTimes, TouchAccessTime};
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, ConfigureSnapshots, CreateSnapshot, DeleteSnapshot, DisallowSnapshot,
    RenameSnapshot,
};
use cairn_namespace::ops::unit_crcs::BlockCrcs;
use cairn_namespace::ops::xattr::{SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::query::{self, AclStatus, FileStatus};
use cairn_namespace::snapshot::{SnapshotSettings, diff, listing};
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{
    Block, BlockRef, BlockState, CallId, Command, Entry, InodeId, NamespaceError, Outcome,
    Settings, evaluate,
};
use cairn_stripe::Redundancy;
use std::ops::ControlFlow;

fn rows(fs: &Fs, table: Table) -> usize {
    let mut count = 0;
    fs.store
        .scan(table, &[], &[], &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    count
}

fn allowed(path: &str) -> Fs {
    let mut fs = Fs::new();
    fs.mkdirs(path);
    fs.ok(AllowSnapshot { path: path.into() });
    fs
}

fn take(fs: &mut Fs, path: &str, name: &str) {
    fs.ok(CreateSnapshot { path: path.into(), name: name.into() });
}

fn drop_snapshot(fs: &mut Fs, path: &str, name: &str) -> Vec<i64> {
    removed(fs, DeleteSnapshot { path: path.into(), name: name.into() })
}

fn delete(fs: &mut Fs, path: &str) -> Vec<i64> {
    removed(fs, Delete { path: path.into(), recursive: true })
}

/// The blocks that a command removes.
fn removed(fs: &mut Fs, command: impl Into<Command>) -> Vec<i64> {
    let outcome = fs.ok(command);
    assert!(matches!(outcome, Outcome::Removed { .. }), "{outcome:?}");
    fs.removed.iter().map(|block| block.id.0).collect()
}

fn blocks(fs: &Fs, path: &str) -> Vec<i64> {
    let found = query::get_blocks(&fs.store, &root(), path, 0, u64::MAX, 0).unwrap();
    found.blocks.iter().map(|(_, block)| block.id.0).collect()
}

fn len(fs: &Fs, path: &str) -> u64 {
    fs.status(path).unwrap().len()
}

#[test]
fn a_snapshot_costs_what_changes_after_it() {
    let mut fs = allowed("/d");
    for at in 0..50 {
        fs.write(&format!("/d/sub/f{at}"), &[5]);
    }
    let command = Command::from(CreateSnapshot { path: "/d".into(), name: "s".into() });
    let entry =
        Entry { now_ms: fs.now_ms, elapsed_ms: fs.now_ms, caller: root(), call: None, command };
    let changes = evaluate(&fs.store, &entry).unwrap().changes;
    // Snapshot, name, root, two counters, the directory's time.
    assert_eq!(format!("{changes:?}").matches("Some(").count(), 6);
    take(&mut fs, "/d", "s");
    assert_eq!(rows(&fs, Table::Version), 0);
    let mode = |fs: &mut Fs, mode| fs.ok(SetPermission { path: "/d/sub/f7".into(), mode });
    mode(&mut fs, 0o600);
    assert_eq!(rows(&fs, Table::Version), 1);
    // A second change of the same file writes nothing more.
    mode(&mut fs, 0o640);
    assert_eq!(rows(&fs, Table::Version), 1);
    assert_eq!(fs.status("/d/.snapshot/s/sub/f7").unwrap().inode.mode, 0o644);
    // What is new is nobody's past.
    fs.write("/d/new", &[1]);
    let before = rows(&fs, Table::Version);
    fs.ok(SetPermission { path: "/d/new".into(), mode: 0o600 });
    assert_eq!(rows(&fs, Table::Version), before);
    assert_eq!(fs.names("/d/.snapshot/s"), ["sub"]);
}

#[test]
fn blocks_stay_until_the_last_snapshot_goes() {
    for policy in [None, Some("RS-3-2-1024k")] {
        let mut fs = allowed("/d");
        if let Some(policy) = policy {
            fs.set_policy("/d", policy);
        }
        fs.write("/d/f", &[5, 3]);
        let held = blocks(&fs, "/d/f");
        take(&mut fs, "/d", "one");
        take(&mut fs, "/d", "two");
        assert_eq!(delete(&mut fs, "/d/f"), []);
        assert_eq!(fs.status("/d/f"), None);
        assert_eq!(blocks(&fs, "/d/.snapshot/one/f"), held);
        // They are as much in use as before.
        for id in &held {
            let info = query::get_block(&fs.store, cairn_stripe::BlockId(*id)).unwrap().unwrap();
            assert_eq!(matches!(info.redundancy, Redundancy::Striped(_)), policy.is_some());
        }
        assert_eq!(query::blocks_after(&fs.store, None, 10).unwrap().len(), 2);
        assert_eq!(drop_snapshot(&mut fs, "/d", "two"), []);
        assert_eq!(blocks(&fs, "/d/.snapshot/one/f"), held);
        let mut gone = drop_snapshot(&mut fs, "/d", "one");
        gone.sort_unstable();
        let mut held = held;
        held.sort_unstable();
        assert_eq!(gone, held);
        assert_eq!(rows(&fs, Table::Block), 0);
        assert_eq!(rows(&fs, Table::Version), 0);
    }
}

#[test]
fn what_was_elsewhere_meanwhile_is_held_for_the_snapshot_before() {
    let mut fs = allowed("/s");
    fs.mkdirs("/out");
    fs.mkdirs("/s/d");
    fs.write("/s/f", &[5]);
    fs.write("/s/d/g", &[7]);
    let (f, g) = (blocks(&fs, "/s/f"), blocks(&fs, "/s/d/g"));
    take(&mut fs, "/s", "zero");
    for name in ["f", "d"] {
        fs.ok(Rename { src: format!("/s/{name}"), dst: format!("/out/{name}") });
    }
    take(&mut fs, "/s", "one");
    for name in ["f", "d"] {
        fs.ok(Rename { src: format!("/out/{name}"), dst: format!("/s/{name}2") });
    }
    take(&mut fs, "/s", "two");
    for path in ["/s/f2", "/s/d2/g"] {
        assert_eq!(delete(&mut fs, path), []);
    }
    for gone in ["two", "one"] {
        assert_eq!(drop_snapshot(&mut fs, "/s", gone), [], "{gone}");
        assert_eq!(blocks(&fs, "/s/.snapshot/zero/f"), f, "{gone}");
        assert_eq!(fs.names("/s/.snapshot/zero/d"), ["g"], "{gone}");
        assert_eq!(blocks(&fs, "/s/.snapshot/zero/d/g"), g, "{gone}");
    }
    let mut gone = drop_snapshot(&mut fs, "/s", "zero");
    gone.sort_unstable();
    assert_eq!(gone, [f, g].concat());
    assert_eq!(rows(&fs, Table::Version), 0);
}

#[test]
fn a_large_tree_in_a_snapshot_goes_in_steps() {
    let mut fs = allowed("/d");
    for at in 0..30 {
        fs.write(&format!("/d/t/{}/f{at}", at % 3), &[5, 5]);
    }
    take(&mut fs, "/d", "s");
    let before = query::totals(&fs.store).unwrap();
    // What `Delete` does at once is more than this tree has, so its own steps are made small.
    fs.ok(Rename { src: "/d/t".into(), dst: "/t".into() });
    fs.ok(Delete { path: "/t".into(), recursive: true });
    while let Outcome::Removed { more: true, .. } = fs.ok(Purge { limit: 7 }) {
        assert_eq!(fs.effects, []);
    }
    let after = query::totals(&fs.store).unwrap();
    assert_eq!((after.inodes, after.blocks), (before.inodes, before.blocks));
    assert_eq!(fs.names("/d/.snapshot/s/t/2").len(), 10);
    assert_eq!(len(&fs, "/d/.snapshot/s/t/2/f5"), 10);
    drop_snapshot(&mut fs, "/d", "s");
    let after = query::totals(&fs.store).unwrap();
    assert_eq!((after.inodes, after.blocks), (2, 0));
}

#[test]
fn a_snapshot_of_an_open_file_shows_what_is_written_on() {
    let mut fs = allowed("/d");
    fs.create("/d/f");
    let block = fs.add_block("/d/f", None);
    take(&mut fs, "/d", "s");
    let last = BlockRef { len: 7, ..block.reference() };
    fs.complete("/d/f", Some(last));
    assert_eq!(len(&fs, "/d/.snapshot/s/f"), 7);
    assert_eq!(delete(&mut fs, "/d/f"), []);
    assert_eq!(len(&fs, "/d/.snapshot/s/f"), 7);

    let settings = SnapshotSettings { capture_open_files: true, ..SnapshotSettings::default() };
    fs.ok(ConfigureSnapshots { settings });
    fs.create("/d/g");
    let block = fs.add_block("/d/g", None);
    take(&mut fs, "/d", "t");
    fs.complete("/d/g", Some(BlockRef { len: 7, ..block.reference() }));
    assert_eq!((len(&fs, "/d/.snapshot/t/g"), len(&fs, "/d/g")), (0, 7));
}

#[test]
fn an_open_file_is_held_when_its_tree_goes() {
    let mut fs = allowed("/d");
    fs.create("/d/t/f");
    let block = fs.add_block("/d/t/f", None);
    take(&mut fs, "/d", "s");
    assert_eq!(delete(&mut fs, "/d/t"), []);
    assert_eq!(rows(&fs, Table::Block), 1);
    assert!(!fs.status("/d/.snapshot/s/t/f").unwrap().is_under_construction());
    let open = cairn_namespace::lease::open_files(&fs.store, InodeId::NONE, 10).unwrap();
    assert_eq!(open, []);
    assert_eq!(drop_snapshot(&mut fs, "/d", "s"), [block.id.0]);
}

#[test]
fn a_writer_whose_file_only_snapshots_have_is_told_that_it_is_deleted() {
    let mut fs = allowed("/d");
    let [held, gone] = ["/d/held", "/d/gone"].map(|path| {
        if path == "/d/gone" {
            take(&mut fs, "/d", "s");
        }
        fs.create(path)
    });
    let told = |fs: &mut Fs, path: &str, file| {
        let command = Complete { file: Some(file), ..complete(path, None) };
        refusal(fs.err(command))
    };
    for (path, file, what) in [("/d/held", held, "is deleted"), ("/d/gone", gone, "does not exist")]
    {
        fs.delete(path);
        let text = told(&mut fs, path, file);
        let expected = format!("FileNotFoundException: File {what}: {path} (inode {}) ", file.0);
        assert!(text.starts_with(&expected), "{text}");
    }
    drop_snapshot(&mut fs, "/d", "s");
    let text = told(&mut fs, "/d/held", held);
    assert!(text.starts_with("FileNotFoundException: File does not exist: /d/held "), "{text}");
}

/// A file that is open with two committed blocks.
fn open_with_committed_blocks(fs: &mut Fs, path: &str) -> Vec<Block> {
    fs.create(path);
    let mut blocks = Vec::new();
    let mut previous = None;
    for _ in 0..2 {
        let command = AddBlock { previous_min_replicated: false, ..add_block(path, previous) };
        let Outcome::BlockAdded { block, .. } = fs.ok(command) else { panic!("no block") };
        previous = Some(BlockRef { len: 5, ..block.reference() });
        blocks.push(block);
    }
    fs.ok(Complete { min_replicated: false, ..complete(path, previous) });
    blocks
}

fn state(fs: &Fs, block: &Block) -> BlockState {
    query::get_block(&fs.store, block.id).unwrap().unwrap().block.state
}

/// A file, and what removes it.
type Removal = (&'static str, fn(&mut Fs));

/// DataNodes may report the replicas of blocks after their open file is gone, in any order.
#[test]
fn committed_blocks_of_a_removed_file_are_completed() {
    let removals: [Removal; 5] = [
        ("/d/f", |fs| {
            fs.delete("/d/f");
        }),
        ("/d/t/f", |fs| {
            fs.delete("/d/t");
        }),
        ("/d/f", |fs| {
            fs.ok(Create { overwrite: true, holder: "other".into(), ..create("/d/f") });
        }),
        ("/d/f", |fs| {
            fs.write("/d/g", &[]);
            let (src, dst) = ("/d/g".into(), "/d/f".into());
            fs.ok(RenameTo { src, dst, overwrite: true, to_trash: false });
        }),
        // What `Delete` does not do at once is done in steps, between which reports come.
        ("/d/f", |fs| {
            fs.ok(Rename { src: "/d/f".into(), dst: "/t/f".into() });
            for at in 0..2000 {
                fs.write(&format!("/t/{at}"), &[]);
            }
            fs.delete("/t");
        }),
    ];
    for (at, (path, remove)) in removals.into_iter().enumerate() {
        for order in [[0, 1], [1, 0]] {
            let mut fs = allowed("/d");
            fs.mkdirs("/t");
            let blocks = open_with_committed_blocks(&mut fs, path);
            take(&mut fs, "/d", "s");
            remove(&mut fs);
            let report = |fs: &mut Fs| {
                for block in order.map(|at| &blocks[at]) {
                    let (id, gs) = (block.id, block.gs);
                    fs.ok(CompleteBlocks { blocks: vec![BlockCrcs { id, gs, units: vec![] }] });
                }
            };
            report(&mut fs);
            while let Outcome::Removed { more: true, .. } = fs.ok(Purge { limit: 1 }) {
                report(&mut fs);
            }
            let found = [0, 1].map(|at| state(&fs, &blocks[at]));
            assert_eq!(found, [BlockState::Complete; 2], "removal {at}");
            let mut gone = drop_snapshot(&mut fs, "/d", "s");
            gone.sort_unstable();
            assert_eq!(gone, [0, 1].map(|at| blocks[at].id.0));
        }
    }
}

#[test]
fn blocks_have_as_many_copies_as_any_snapshot_saw() {
    let mut fs = allowed("/d");
    fs.write("/d/f", &[5]);
    take(&mut fs, "/d", "s");
    fs.ok(SetReplication { path: "/d/f".into(), replication: 1 });
    let id = cairn_stripe::BlockId(blocks(&fs, "/d/f")[0]);
    let copies = |fs: &Fs| query::get_block(&fs.store, id).unwrap().unwrap().redundancy;
    assert_eq!(copies(&fs), Redundancy::Replicated(3));
    assert_eq!(fs.status("/d/f").unwrap().replication(), 1);
    assert_eq!(fs.status("/d/.snapshot/s/f").unwrap().replication(), 3);
    drop_snapshot(&mut fs, "/d", "s");
    assert_eq!(copies(&fs), Redundancy::Replicated(1));
}

#[test]
fn held_blocks_keep_the_storage_policy_of_their_place() {
    let mut fs = allowed("/d");
    fs.ok(SetStoragePolicy { path: "/d".into(), policy: Some("COLD".into()) });
    fs.write("/d/t/f", &[5]);
    let id = cairn_stripe::BlockId(blocks(&fs, "/d/t/f")[0]);
    take(&mut fs, "/d", "s");
    fs.delete("/d/t");
    assert_eq!(query::storage_policy_of_block(&fs.store, id).unwrap(), 2);
    assert_eq!(fs.status("/d/.snapshot/s/t/f").unwrap().storage_policy, 2);
}

#[test]
fn the_access_time_alone_may_be_left_out() {
    for (skip, kept) in [(false, 1), (true, 0)] {
        let mut fs = allowed("/d");
        let settings = SnapshotSettings { skip_access_time: skip, ..SnapshotSettings::default() };
        fs.ok(ConfigureSnapshots { settings });
        let file = fs.write("/d/f", &[5]);
        take(&mut fs, "/d", "s");
        fs.ok(TouchAccessTime { file });
        assert_eq!(rows(&fs, Table::Version), kept);
    }
}

fn refusal(error: NamespaceError) -> String {
    let (class, text) = said(&error);
    format!("{class}: {text}")
}

#[test]
fn nothing_in_a_snapshot_can_be_changed() {
    let mut fs = allowed("/d");
    fs.write("/d/f", &[5]);
    take(&mut fs, "/d", "s");
    let at = || "/d/.snapshot/s/f".to_string();
    let note = XAttrName { space: XAttrSpace::User, name: "n".into() };
    let commands: Vec<Command> = vec![
        Create { overwrite: true, ..create(&at()) }.into(),
        Delete { path: at(), recursive: true }.into(),
        Delete { path: "/d/.snapshot".into(), recursive: true }.into(),
        Delete { path: "/d/.snapshot/none".into(), recursive: true }.into(),
        Mkdirs { path: "/d/.snapshot/x".into(), mode: 0o755.into(), create_parent: true }.into(),
        Rename { src: at(), dst: "/x".into() }.into(),
        Rename { src: "/d/f".into(), dst: "/d/.snapshot/s/g".into() }.into(),
        SetPermission { path: at(), mode: 0 }.into(),
        SetXAttr { path: at(), name: note, value: vec![], create: true, replace: true }.into(),
    ];
    for command in commands {
        assert_eq!(
            refusal(fs.err(command)),
            "SnapshotAccessControlException: Modification on a read-only snapshot is disallowed"
        );
    }
    // Elsewhere the name is merely not to be had.
    fs.mkdirs("/e");
    for path in ["/e/.snapshot", "/e/.snapshot/f"] {
        let error = fs.err(Mkdirs { path: path.into(), mode: 0o755.into(), create_parent: true });
        assert_eq!(
            refusal(error),
            "HadoopIllegalArgumentException: \".snapshot\" is a reserved name."
        );
    }
}

#[test]
fn directories_with_snapshots_stay_where_they_are() {
    let mut fs = allowed("/a/d");
    take(&mut fs, "/a/d", "s");
    fs.mkdirs("/b");
    let text = "SnapshotException: The directory /a/d cannot be deleted since /a/d is snapshottable \
                and already has snapshots";
    let to = |src: &str| RenameTo {
        src: src.into(),
        dst: "/b/x".into(),
        overwrite: false,
        to_trash: false,
    };
    for path in ["/a", "/a/d"] {
        assert_eq!(refusal(fs.err(Delete { path: path.into(), recursive: true })), text);
        assert_eq!(refusal(fs.err(Rename { src: path.into(), dst: "/b".into() })), text);
        assert_eq!(refusal(fs.err(to(path))), text);
    }
    assert_eq!(
        refusal(fs.err(DisallowSnapshot { path: "/a/d".into() })),
        "SnapshotException: The directory /a/d has snapshot(s). Please redo the operation after \
         removing all the snapshots."
    );
    drop_snapshot(&mut fs, "/a/d", "s");
    fs.ok(AllowSnapshot { path: "/b".into() });
    assert_eq!(
        refusal(fs.err(to("/a"))),
        "SnapshotException: Unable to rename because /a has snapshottable descendant directories and \
         /b is a descent of a snapshottable directory, and HDFS does not support nested snapshottable \
         directory."
    );
    fs.delete("/a");
    let left = listing::snapshottable_directories(&fs.store, &root()).unwrap();
    assert_eq!(left.iter().map(|at| at.inode.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn snapshottable_directories_are_not_nested() {
    let mut fs = allowed("/a/b");
    fs.mkdirs("/a/b/c");
    let error = |fs: &mut Fs, path: &str| refusal(fs.err(AllowSnapshot { path: path.into() }));
    assert_eq!(
        error(&mut fs, "/a"),
        "SnapshotException: Nested snapshottable directories not allowed: path=/a, the subdirectory \
         /a/b is already a snapshottable directory."
    );
    assert_eq!(
        error(&mut fs, "/a/b/c"),
        "SnapshotException: Nested snapshottable directories not allowed: path=/a/b/c, the ancestor \
         /a/b is already a snapshottable directory."
    );
    fs.ok(AllowSnapshot { path: "/a/b".into() });
    // Of several, the one that was made first is named.
    fs.mkdirs("/a/a");
    fs.ok(AllowSnapshot { path: "/a/a".into() });
    assert!(error(&mut fs, "/a").contains("the subdirectory /a/b is"));
    fs.ok(DisallowSnapshot { path: "/a/a".into() });
    fs.write("/f", &[]);
    assert_eq!(error(&mut fs, "/f"), "PathIsNotDirectoryException: `/f': Is not a directory");
    assert_eq!(error(&mut fs, "/x"), "FileNotFoundException: Directory does not exist: /x");
    fs.ok(DisallowSnapshot { path: "/a".into() });
    fs.ok(DisallowSnapshot { path: "/a/b".into() });
    fs.ok(AllowSnapshot { path: "/a".into() });
}

#[test]
fn names_and_limits_of_snapshots() {
    let mut fs = allowed("/d");
    fs.mkdirs("/e");
    let create = |fs: &mut Fs, path: &str, name: &str| match fs
        .run(root(), CreateSnapshot { path: path.into(), name: name.into() })
    {
        Ok(Outcome::SnapshotCreated(path)) => path,
        Ok(other) => panic!("{other:?}"),
        Err(error) => refusal(error),
    };
    assert_eq!(create(&mut fs, "/d", "s"), "/d/.snapshot/s");
    for (path, name, text) in [
        (
            "/d",
            "s",
            "SnapshotException: Failed to add snapshot: there is already a snapshot with the same name \
             \"s\".",
        ),
        ("/d", "a:b", "InvalidPathException: Invalid path name Invalid snapshot name: a:b"),
        ("/d", "a/b", "InvalidPathException: Invalid path name Invalid snapshot name: a/b"),
        (
            "/d",
            ".snapshot",
            "InvalidPathException: Invalid path name Invalid snapshot name: .snapshot",
        ),
        (
            "/",
            "s",
            "SnapshotException: Failed to add snapshot: there are already 0 snapshot(s) and the \
             snapshot quota is 0",
        ),
        ("/e", "s", "SnapshotException: Directory is not a snapshottable directory: /e"),
        ("/x", "s", "FileNotFoundException: Directory/File does not exist /x"),
    ] {
        assert_eq!(create(&mut fs, path, name), text);
    }
    let long = "x".repeat(256);
    assert!(create(&mut fs, "/d", &long).starts_with("FSLimitException$PathComponentTooLong"));
    let rename = |fs: &mut Fs, from: &str, to: &str| {
        let command = RenameSnapshot { path: "/d".into(), from: from.into(), to: to.into() };
        fs.run(root(), command).map_err(refusal)
    };
    create(&mut fs, "/d", "t");
    assert_eq!(rename(&mut fs, "s", "s"), Ok(Outcome::Done));
    assert_eq!(
        rename(&mut fs, "s", "t").unwrap_err(),
        "SnapshotException: The snapshot t already exists for directory /d"
    );
    assert_eq!(
        rename(&mut fs, "x", "t").unwrap_err(),
        "SnapshotException: The snapshot x does not exist for directory /d"
    );
    assert_eq!(
        rename(&mut fs, "s", "a/b").unwrap_err(),
        "HadoopIllegalArgumentException: Snapshot name cannot contain \"/\""
    );
    assert_eq!(rename(&mut fs, "s", "u"), Ok(Outcome::Done));
    assert_eq!(fs.names("/d/.snapshot"), ["t", "u"]);
    assert_eq!(
        refusal(fs.err(DeleteSnapshot { path: "/d".into(), name: "s".into() })),
        "SnapshotException: Cannot delete snapshot s from path /d: the snapshot does not exist."
    );

    let settings = SnapshotSettings { per_directory_max: 2, ..SnapshotSettings::default() };
    fs.ok(ConfigureSnapshots { settings });
    assert_eq!(
        create(&mut fs, "/d", "v"),
        "SnapshotException: Failed to create snapshot: there are already 2 snapshot(s) and the per \
         directory snapshot limit is 2"
    );
    let settings = SnapshotSettings { per_directory_max: 1, total_max: 1, ..settings };
    fs.ok(ConfigureSnapshots { settings });
    assert_eq!(
        create(&mut fs, "/d", "v"),
        "SnapshotException: Failed to create snapshot: there are already 2 snapshot(s) and the file \
         system snapshot limit is 1"
    );
}

#[test]
fn owners_take_snapshots_and_superusers_allow_them() {
    let mut fs = allowed("/d");
    let command = CreateSnapshot { path: "/d".into(), name: "s".into() };
    assert_eq!(
        refusal(fs.run(user("ann"), command).unwrap_err()),
        "AccessControlException: Permission denied. user=ann is not the owner of inode=/d"
    );
    let error = fs.run(user("ann"), AllowSnapshot { path: "/d".into() }).unwrap_err();
    assert!(refusal(error).contains("Superuser privilege is required"));
    assert_eq!(listing::snapshottable_directories(&fs.store, &user("ann")).unwrap(), []);
}

#[test]
fn a_repeated_call_takes_one_snapshot() {
    let mut fs = allowed("/d");
    let call = Some(CallId { client_id: [3; 16], call_id: 4 });
    let command = Command::from(CreateSnapshot { path: "/d".into(), name: "s".into() });
    let first = fs.submit(root(), call, command.clone()).unwrap();
    assert_eq!(fs.submit(root(), call, command).unwrap(), first);
    assert_eq!(fs.names("/d/.snapshot"), ["s"]);
}

#[test]
fn files_in_snapshots_are_not_joined() {
    let mut fs = allowed("/d");
    fs.write("/d/f", &[5]);
    take(&mut fs, "/d", "s");
    fs.write("/d/g", &[5]);
    let concat = |to: &str, from: &str| Concat { target: to.into(), sources: vec![from.into()] };
    assert_eq!(
        refusal(fs.err(concat("/d/g", "/d/f"))),
        "SnapshotException: Concat: the source file /d/f is in snapshot"
    );
    fs.ok(concat("/d/f", "/d/g"));
    assert_eq!((len(&fs, "/d/f"), len(&fs, "/d/.snapshot/s/f")), (10, 5));
    drop_snapshot(&mut fs, "/d", "s");
    assert_eq!(rows(&fs, Table::Block), 2);
}

fn used(fs: &Fs, path: &str) -> (u64, u64) {
    let inode = fs.status(path).unwrap().inode;
    let quota = inode.directory().unwrap().quota.clone().unwrap();
    (quota.names, quota.space)
}

#[test]
fn quotas_count_what_snapshots_hold() {
    let mut fs = allowed("/q/d");
    let max = QuotaChange::Set { max: 1 << 40 };
    fs.ok(SetQuota { path: "/q".into(), names_max: max, space_max: max });
    fs.write("/d", &[]);
    fs.write("/q/d/t/f", &[5, 5]);
    fs.write("/q/d/t/g", &[5]);
    assert_eq!(used(&fs, "/q"), (5, 45));
    take(&mut fs, "/q/d", "s");
    // New and gone again: not held.
    fs.write("/q/d/t/h", &[5]);
    fs.delete("/q/d/t/h");
    assert_eq!(used(&fs, "/q"), (5, 45));
    fs.delete("/q/d/t/f");
    assert_eq!(used(&fs, "/q"), (5, 45));
    fs.delete("/q/d/t");
    assert_eq!(used(&fs, "/q"), (5, 45));
    let sum = query::content_summary(&fs.store, &root(), "/q").unwrap();
    assert_eq!((sum.directories, sum.files, sum.len, sum.space), (3, 2, 15, 45));
    assert_eq!((sum.held.directories, sum.held.files, sum.held.len), (1, 2, 15));
    // A quota that comes later counts the same.
    fs.ok(SetQuota { path: "/q/d".into(), names_max: max, space_max: max });
    assert_eq!(used(&fs, "/q/d"), (4, 45));
    drop_snapshot(&mut fs, "/q/d", "s");
    assert_eq!((used(&fs, "/q"), used(&fs, "/q/d")), ((2, 0), (1, 0)));
}

#[test]
fn quotas_count_what_is_cut_off_while_a_snapshot_holds_it() {
    let mut fs = allowed("/d");
    let max = QuotaChange::Set { max: 1000 };
    fs.write("/d/f", &[5, 5]);
    fs.ok(SetQuota { path: "/d".into(), names_max: max, space_max: max });
    take(&mut fs, "/d", "s");
    fs.ok(cairn_namespace::ops::truncate::Truncate {
        path: "/d/f".into(),
        new_len: 5,
        holder: "client".into(),
        client_machine: "host".into(),
    });
    assert_eq!(used(&fs, "/d"), (2, 30));
    assert_eq!((len(&fs, "/d/f"), len(&fs, "/d/.snapshot/s/f")), (5, 10));
    drop_snapshot(&mut fs, "/d", "s");
    assert_eq!(used(&fs, "/d"), (2, 15));
}

/// The thread that applies commands does nothing else meanwhile.
#[test]
fn what_a_deleted_snapshot_held_below_a_quota_goes_in_short_steps() {
    let mut fs = allowed("/a");
    fs.mkdirs("/a/q/t");
    let (names_max, space_max) = (QuotaChange::Set { max: 1000 }, QuotaChange::Keep);
    fs.ok(SetQuota { path: "/a/q".into(), names_max, space_max });
    for at in 0..60 {
        fs.mkdirs(&format!("/a/q/t/d{at}"));
    }
    take(&mut fs, "/a", "s");
    fs.delete("/a/q/t");
    // For each of 60 directories the others are looked at that are left.
    let begun = fs.ok(DeleteSnapshot { path: "/a".into(), name: "s".into() });
    assert!(matches!(begun, Outcome::Removed { more: true, .. }), "{begun:?}");
    let mut steps = 0;
    while let Outcome::Removed { more: true, .. } = fs.ok(Purge { limit: 100 }) {
        steps += 1;
    }
    assert!((3..60).contains(&steps), "{steps}");
    assert_eq!(rows(&fs, Table::Version), 0);
    let quota = fs.status("/a/q").unwrap().inode.directory().unwrap().quota.clone().unwrap();
    assert_eq!(quota.names, 1);
}
