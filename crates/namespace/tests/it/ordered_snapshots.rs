//! Snapshots that are deleted in order, and snapshottable directories that nothing leaves.

use crate::support::{Fs, root, said, user};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CollectSnapshot, ConfigureSnapshots, CreateSnapshot, DeleteSnapshot,
    DisallowSnapshot, RenameSnapshot,
};
use cairn_namespace::snapshot::{SnapshotSettings, diff, listing};
use cairn_namespace::{CallId, Command, NamespaceError, Outcome, Settings, query};

fn settings() -> Settings {
    Settings { block_size_min: 0, snapshots_deleted_in_order: true, ..Settings::default() }
}

fn in_order(names: &[&str]) -> Fs {
    let mut fs = Fs::with(settings());
    fs.mkdirs("/d");
    fs.ok(AllowSnapshot { path: "/d".into() });
    for name in names {
        take(&mut fs, name);
    }
    fs
}

fn take(fs: &mut Fs, name: &str) {
    fs.ok(CreateSnapshot { path: "/d".into(), name: name.into() });
}

fn drop_snapshot(name: &str) -> DeleteSnapshot {
    DeleteSnapshot { path: "/d".into(), name: name.into() }
}

/// Name and mark of each snapshot, by name.
fn listed(fs: &Fs) -> Vec<(String, bool)> {
    let found = listing::snapshots(&fs.store, &root(), "/d").unwrap().1;
    found.into_iter().map(|status| (status.inode.name, status.deleted)).collect()
}

fn shown(fs: &Fs) -> String {
    let names = listed(fs).into_iter().map(
        |(name, deleted)| {
            if deleted { format!("({name})") } else { name }
        },
    );
    names.collect::<Vec<_>>().join(" ")
}

fn collects(fs: &mut Fs) -> bool {
    match fs.ok(CollectSnapshot {}) {
        Outcome::Removed { done, .. } => done,
        other => panic!("{other:?}"),
    }
}

fn refused(error: NamespaceError, text: &str) {
    assert_eq!(said(&error), ("SnapshotException".into(), text.into()));
}

#[test]
fn only_the_earliest_is_deleted_at_once() {
    let mut fs = in_order(&["a", "b", "c"]);
    fs.ok(drop_snapshot("b"));
    assert_eq!(shown(&fs), "a (b#1) c");
    // They are listed and read like others.
    assert_eq!(fs.names("/d/.snapshot"), ["a", "b#1", "c"]);
    assert!(fs.status("/d/.snapshot/b#1").is_some());
    assert!(!collects(&mut fs));
    fs.ok(drop_snapshot("a"));
    assert_eq!(shown(&fs), "(b#1) c");
    assert!(collects(&mut fs));
    assert_eq!(shown(&fs), "c");
    assert!(!collects(&mut fs));
    fs.ok(drop_snapshot("c"));
    assert_eq!(shown(&fs), "");
    assert_eq!(listing::counts(&fs.store).unwrap(), (1, 0));
}

#[test]
fn a_marked_one_may_be_deleted_and_renamed_like_others() {
    let mut fs = in_order(&["a", "b"]);
    fs.ok(drop_snapshot("b"));
    let missing = "Cannot find the snapshot of directory /d with name b";
    refused(fs.err(drop_snapshot("b")), missing);
    fs.ok(drop_snapshot("b#1"));
    assert_eq!(shown(&fs), "a (b#1#1)");
    fs.ok(RenameSnapshot { path: "/d".into(), from: "b#1#1".into(), to: "x".into() });
    assert_eq!(shown(&fs), "a (x)");
    fs.ok(drop_snapshot("a"));
    // The earliest goes at once, marked or not.
    fs.ok(drop_snapshot("x"));
    assert_eq!(shown(&fs), "");
}

#[test]
fn a_name_that_is_taken_marks_nothing() {
    let mut fs = in_order(&["a", "b", "b#1"]);
    let taken = "The snapshot b#1 already exists for directory /d";
    refused(fs.err(drop_snapshot("b")), taken);
    assert_eq!(shown(&fs), "a b b#1");
}

#[test]
fn marking_is_the_owners_and_its_time_is_the_snapshots() {
    let mut fs = in_order(&["a", "b"]);
    let denied = fs.run(user("ann"), drop_snapshot("b")).unwrap_err();
    assert_eq!(said(&denied).0, "AccessControlException");
    let before = fs.status("/d").unwrap().inode.mtime;
    fs.ok(drop_snapshot("b"));
    assert_eq!(fs.status("/d").unwrap().inode.mtime, before);
    assert_eq!(fs.status("/d/.snapshot/b#1").unwrap().inode.mtime, fs.now_ms);
    let denied = fs.run(user("ann"), CollectSnapshot {}).unwrap_err();
    assert_eq!(said(&denied).0, "AccessControlException");
}

#[test]
fn marked_ones_count() {
    let mut fs = in_order(&["a", "b"]);
    let limits = |per_directory_max| {
        let settings =
            SnapshotSettings { per_directory_max, total_max: 100, ..SnapshotSettings::default() };
        ConfigureSnapshots { settings }
    };
    fs.ok(limits(2));
    fs.ok(drop_snapshot("b"));
    let full = "Failed to create snapshot: there are already 2 snapshot(s) and the per directory \
                snapshot limit is 2";
    refused(fs.err(CreateSnapshot { path: "/d".into(), name: "c".into() }), full);
    let held = "The directory /d has snapshot(s). Please redo the operation after removing all the \
                snapshots.";
    fs.ok(drop_snapshot("a"));
    refused(fs.err(DisallowSnapshot { path: "/d".into() }), held);
    let held = "The directory /d cannot be deleted since /d is snapshottable and already has \
                snapshots";
    refused(fs.err(Delete { path: "/d".into(), recursive: true }), held);
    assert!(collects(&mut fs));
    fs.ok(DisallowSnapshot { path: "/d".into() });
}

#[test]
fn a_repeated_call_marks_once() {
    let mut fs = in_order(&["a", "b"]);
    let call = Some(CallId { client_id: [7; 16], call_id: 3 });
    let first = fs.submit(root(), call, Command::from(drop_snapshot("b"))).unwrap();
    let again = fs.submit(root(), call, Command::from(drop_snapshot("b"))).unwrap();
    assert_eq!(first, again);
    assert_eq!(shown(&fs), "a (b#1)");
}

#[test]
fn what_is_marked_stays_when_order_is_no_more() {
    let mut fs = in_order(&["a", "b", "c"]);
    fs.ok(drop_snapshot("b"));
    fs.ok(drop_snapshot("a"));
    let free = Settings { snapshots_deleted_in_order: false, ..settings() };
    fs.ok(Configure { settings: free.into() });
    assert!(!collects(&mut fs));
    assert_eq!(shown(&fs), "(b#1) c");
    let missing = "Cannot delete snapshot x from path /d: the snapshot does not exist.";
    refused(fs.err(drop_snapshot("x")), missing);
    fs.ok(drop_snapshot("c"));
    assert_eq!(shown(&fs), "(b#1)");
    fs.ok(Configure { settings: settings().into() });
    assert!(collects(&mut fs));
}

#[test]
fn each_directory_has_its_own_order() {
    let mut fs = in_order(&["a"]);
    fs.mkdirs("/e");
    fs.ok(AllowSnapshot { path: "/e".into() });
    for name in ["x", "y"] {
        fs.ok(CreateSnapshot { path: "/e".into(), name: name.into() });
    }
    take(&mut fs, "b");
    fs.ok(drop_snapshot("b"));
    fs.ok(DeleteSnapshot { path: "/e".into(), name: "y".into() });
    fs.ok(DeleteSnapshot { path: "/e".into(), name: "x".into() });
    assert_eq!(fs.names("/e/.snapshot"), ["y#2"]);
    // Of /d nothing is due.
    assert!(collects(&mut fs));
    assert!(!collects(&mut fs));
    assert_eq!(fs.names("/e/.snapshot"), [""; 0]);
    assert_eq!(shown(&fs), "a (b#3)");
}

#[test]
fn what_another_directory_keeps_of_it_is_no_earlier_snapshot() {
    let mut fs = in_order(&[]);
    fs.mkdirs("/d/x");
    take(&mut fs, "a");
    fs.mkdirs("/d/x/new");
    fs.ok(Rename { src: "/d/x".into(), dst: "/x".into() });
    fs.ok(AllowSnapshot { path: "/x".into() });
    fs.ok(CreateSnapshot { path: "/x".into(), name: "s".into() });
    fs.ok(DeleteSnapshot { path: "/x".into(), name: "s".into() });
    assert_eq!(fs.names("/x/.snapshot"), [""; 0], "it was the first of /x");
}

#[test]
fn a_mark_is_a_change_of_the_directory() {
    let mut fs = in_order(&["a", "b", "c"]);
    let paths = |fs: &Fs, from: &str, to: &str| {
        let entries = diff::report(&fs.store, &root(), "/d", from, to).unwrap().entries;
        entries.into_iter().map(|entry| entry.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(&fs, "a", "c"), [""; 0]);
    fs.ok(drop_snapshot("b"));
    assert_eq!(paths(&fs, "a", "c"), [""]);
    assert_eq!(paths(&fs, "b#1", ""), [""]);
    assert_eq!(paths(&fs, "a", "b#1"), [""; 0]);
    assert_eq!(paths(&fs, "c", ""), [""; 0]);
}

#[test]
fn nothing_leaves_or_enters_where_there_is_trash_as_well() {
    let both = Settings { snapshot_trash_roots: true, ..settings() };
    let one = Settings { snapshots_deleted_in_order: false, ..both.clone() };
    let moves = |fs: &mut Fs, src: &str, dst: &str| {
        let (src, dst) = (src.to_string(), dst.to_string());
        let text = format!("Source {src} and dest {dst} are not under the same snapshot root.");
        let rename = Rename { src: src.clone(), dst: dst.clone() };
        let rename_to = RenameTo { src, dst, overwrite: true, to_trash: false };
        for command in [Command::from(rename_to), Command::from(rename)] {
            match fs.run(root(), command) {
                Ok(_) => return true,
                Err(error) => refused(error, &text),
            }
        }
        false
    };
    for (settings, free) in [(both, false), (one, true), (settings(), true)] {
        let mut fs = Fs::with(settings);
        for path in ["/d/x", "/d/sub", "/out/x", "/out/sub", "/top"] {
            fs.mkdirs(path);
        }
        fs.ok(AllowSnapshot { path: "/d".into() });
        assert_eq!(moves(&mut fs, "/d/x", "/out/y"), free);
        assert_eq!(moves(&mut fs, "/out/x", "/d/y"), free);
        assert_eq!(moves(&mut fs, "/top", "/pot"), free);
        assert!(moves(&mut fs, "/d/sub", "/d/bus"));
        assert!(moves(&mut fs, "/out/sub", "/out/bus"));
    }
}

/// As in Hadoop, where the mark is an extended attribute of the snapshot's directory.
#[test]
fn a_mark_is_an_attribute_to_those_who_sum_up() {
    const RS: &str = "RS-3-2-1024k";
    let mut fs = in_order(&["a", "b"]);
    fs.set_policy("/", RS);
    let name =
        |fs: &Fs, path: &str| query::content_summary(&fs.store, &root(), path).unwrap().policy;
    for path in ["/d", "/d/.snapshot/a", "/d/.snapshot/b"] {
        assert_eq!(name(&fs, path), RS, "{path}");
    }
    fs.ok(drop_snapshot("b"));
    assert_eq!(name(&fs, "/d/.snapshot/b#1"), "");
    assert_eq!(name(&fs, "/d/.snapshot/a"), RS);
    fs.set_policy("/d", RS);
    assert_eq!(name(&fs, "/d/.snapshot/b#1"), "");
}
