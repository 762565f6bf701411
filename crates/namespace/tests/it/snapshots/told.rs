//! What lists, statuses, sums and differences tell of snapshots.

use super::*;

#[test]
fn a_diff_below_the_root_is_of_that_directory() {
    let mut fs = allowed("/d");
    fs.mkdirs("/d/a");
    fs.mkdirs("/d/b");
    take(&mut fs, "/d", "s");
    fs.write("/d/a/f", &[]);
    fs.write("/d/b/g", &[]);
    let report = |fs: &Fs, path: &str, from: &str, to: &str| {
        diff::report(&fs.store, &root(), path, from, to)
            .map(|report| {
                let line = |entry: &diff::DiffEntry| format!("{:?} {}", entry.change, entry.path);
                report.entries.iter().map(line).collect::<Vec<_>>().join(", ")
            })
            .map_err(refusal)
    };
    assert_eq!(report(&fs, "/d/a", "s", ""), Ok("Modify , Create f".into()));
    assert_eq!(report(&fs, "/d", "", "s"), Ok("Modify a, Delete a/f, Modify b, Delete b/g".into()));
    assert_eq!(report(&fs, "/d", "s", "s"), Ok(String::new()));
    assert_eq!(
        report(&fs, "/d", "s", "x").unwrap_err(),
        "SnapshotException: Cannot find the snapshot of directory /d with name x"
    );
    fs.mkdirs("/e");
    assert_eq!(
        report(&fs, "/e", "s", "").unwrap_err(),
        "SnapshotException: The path /e is neither snapshottable nor under a snapshot root!"
    );
}

#[test]
fn a_diff_below_a_file_is_refused_as_such_where_permissions_are_off() {
    for permissions_enabled in [true, false] {
        let mut fs = Fs::with(Settings { permissions_enabled, ..Settings::default() });
        fs.mkdirs("/e");
        fs.write("/e/f", &[]);
        let refused = diff::report(&fs.store, &root(), "/e/f", "s", "").map_err(refusal);
        let want = match permissions_enabled {
            true => "AccessControlException: /e/f (is not a directory)",
            false => {
                "SnapshotException: The path /e/f is neither snapshottable nor under a snapshot root!"
            }
        };
        assert_eq!(refused.unwrap_err(), want);
    }
    let mut fs = Fs::with(Settings { permissions_enabled: false, ..Settings::default() });
    fs.mkdirs("/d");
    fs.ok(AllowSnapshot { path: "/d".into() });
    for (path, missing) in [
        ("/d/.snapshot", "/d/.snapshot"),
        ("/d/.snapshot/none", "/d/.snapshot/none"),
        ("/d/.snapshot/none/a", "/d/.snapshot/none"),
        ("/d/.snapshot/none/a/.snapshot/s1", "/d/.snapshot/none/a/.snapshot"),
        ("/d/.snapshot/none/.snapshot/s1", "/d/.snapshot/none/.snapshot"),
    ] {
        let refused = diff::report(&fs.store, &root(), path, "s", "").map_err(refusal);
        let want = format!("FileNotFoundException: Directory does not exist: {missing}");
        assert_eq!(refused, Err(want), "{path}");
    }
}

#[test]
fn the_list_of_snapshots_has_no_policy_and_an_empty_access_control_list() {
    let mut fs = allowed("/d");
    fs.mkdirs("/e");
    fs.set_policy("/", "RS-3-2-1024k");
    for path in ["/d/.snapshot", "/e/.snapshot", "/none/.snapshot", "/.snapshot"] {
        let policy = query::get_ec_policy(&fs.store, &user("bob"), path).map_err(refusal);
        assert_eq!(policy, Ok(None), "{path}");
    }
    let list = |path: &str| query::get_acl_status(&fs.store, &root(), path).map_err(refusal);
    assert_eq!(list("/d/.snapshot"), Ok(AclStatus::default()));
    for path in ["/e/.snapshot", "/d/.snapshot/s"] {
        let want = format!("FileNotFoundException: cannot find {path}");
        assert_eq!(list(path), Err(want));
    }
}

#[test]
fn what_a_snapshot_does_not_say_its_directory_says_in_lists_and_sums() {
    const RS: &str = "RS-3-2-1024k";
    let mut fs = allowed("/d");
    fs.set_policy("/", "XOR-2-1-1024k");
    take(&mut fs, "/d", "none");
    fs.set_policy("/d", RS);
    take(&mut fs, "/d", "rs");
    fs.ok(SetEcPolicy { path: "/d".into(), policy: Some("replication".into()) });
    let policy = |status: &FileStatus| status.policy.as_ref().map(|policy| policy.name.clone());
    let listed = |fs: &Fs| -> Vec<Option<String>> {
        let list = query::get_listing(&fs.store, &root(), "/d/.snapshot", b"", 10).unwrap();
        list.unwrap().entries.iter().map(policy).collect()
    };
    let sum =
        |fs: &Fs, path: &str| query::content_summary(&fs.store, &root(), path).unwrap().policy;
    assert_eq!(listed(&fs), [None, Some(RS.to_string())]);
    assert_eq!(sum(&fs, "/d/.snapshot/none"), "replication");
    fs.set_policy("/d", "RS-6-3-1024k");
    assert_eq!(listed(&fs), [Some("RS-6-3-1024k".to_string()), Some(RS.to_string())]);
    take(&mut fs, "/d", "s");
    for (after, limit, left) in [("", 2, 1), ("", 3, 0), ("none", 1, 1), ("rs", 1, 0), ("s", 1, 0)]
    {
        let list = query::get_listing(&fs.store, &root(), "/d/.snapshot", after.as_bytes(), limit);
        assert_eq!(list.unwrap().unwrap().remaining, left, "{limit} after {after}");
    }
    assert_eq!(sum(&fs, "/d/.snapshot/none"), "RS-6-3-1024k");
    assert_eq!(sum(&fs, "/d/.snapshot/rs"), RS);
    // Who asks for one of them gets what was.
    let status = fs.status("/d/.snapshot/none").unwrap();
    assert_eq!(policy(&status).as_deref(), Some("XOR-2-1-1024k"));
}

#[test]
fn a_time_to_come_stays_when_snapshots_come_and_go() {
    let mut fs = allowed("/d");
    let late = u64::MAX >> 1;
    fs.ok(SetTimes { path: "/d".into(), mtime: Some(late), atime: None });
    take(&mut fs, "/d", "s");
    assert_eq!(fs.status("/d").unwrap().inode.mtime, late);
    assert_eq!(fs.status("/d/.snapshot/s").unwrap().inode.mtime, fs.now_ms);
    fs.ok(DeleteSnapshot { path: "/d".into(), name: "s".into() });
    assert_eq!(fs.status("/d").unwrap().inode.mtime, late);
}

#[test]
fn the_first_directory_by_name_that_has_snapshots_is_named() {
    let mut fs = Fs::new();
    for path in ["/d/b", "/d/a/x", "/d/a!"] {
        fs.mkdirs(path);
        fs.ok(AllowSnapshot { path: path.into() });
        take(&mut fs, path, "s");
    }
    let text = refusal(fs.err(Delete { path: "/d".into(), recursive: true }));
    assert!(text.contains("The directory /d/a/x cannot be deleted"), "{text}");
}

#[test]
fn without_a_name_the_newest_snapshot_tells_who_may_pass() {
    let mut fs = allowed("/d");
    take(&mut fs, "/d", "s");
    let ask = |fs: &Fs, path: &str| query::get_listing(&fs.store, &user("bob"), path, b"", 10);
    fs.ok(SetPermission { path: "/d".into(), mode: 0 });
    for path in ["/d/.snapshot", "/d/.snapshot/s", "/d/.snapshot/none", "/d/.snapshot/none/b"] {
        assert!(ask(&fs, path).is_ok(), "{path}");
    }
    take(&mut fs, "/d", "t");
    for path in ["/d/.snapshot", "/d/.snapshot/t", "/d/.snapshot/none", "/d/.snapshot/none/b"] {
        let text = refusal(ask(&fs, path).unwrap_err());
        assert!(text.starts_with("AccessControlException"), "{path}: {text}");
    }
}

#[test]
fn a_path_goes_through_two_snapshots_where_a_directory_has_moved_out_of_the_first() {
    let mut fs = allowed("/d");
    fs.mkdirs("/d/a");
    take(&mut fs, "/d", "s0");
    fs.ok(RenameTo { src: "/d/a".into(), dst: "/e".into(), overwrite: false, to_trash: false });
    fs.ok(AllowSnapshot { path: "/e".into() });
    fs.write("/e/f", &[5]);
    take(&mut fs, "/e", "s1");
    fs.delete("/e/f");
    let is_there = |path: &str| {
        let found = query::get_file_info(&fs.store, &root(), path);
        found.unwrap().is_some()
    };
    let (old, new) = ("/d/.snapshot/s0/a", "/d/.snapshot/s0/a/.snapshot/s1");
    assert!(is_there(old) && !is_there(&format!("{old}/f")), "it came after the first");
    assert!(is_there(new) && is_there(&format!("{new}/f")) && !is_there(&format!("{new}/g")));
    assert!(!is_there(&format!("{old}/.snapshot/s0")));
    let listed = query::get_listing(&fs.store, &root(), &format!("{old}/.snapshot"), b"", 10);
    let names: Vec<_> =
        listed.unwrap().unwrap().entries.into_iter().map(|e| e.inode.name.clone()).collect();
    assert_eq!(names, ["s1"]);
}

#[test]
fn a_diff_names_what_nobody_may_read_by_where_it_is_now() {
    let mut fs = allowed("/d");
    fs.mkdirs("/d/old");
    fs.ok(SetPermission { path: "/d/old".into(), mode: 0o311 });
    take(&mut fs, "/d", "s");
    fs.ok(SetPermission { path: "/d/old".into(), mode: 0o755 });
    fs.ok(RenameTo {
        src: "/d/old".into(),
        dst: "/d/new".into(),
        overwrite: false,
        to_trash: false,
    });
    let refused = |fs: &Fs| diff::report(&fs.store, &user("bob"), "/d", "s", "").unwrap_err();
    let text = refusal(refused(&fs));
    assert!(text.ends_with("access=READ, inode=\"/d/new\":root:supergroup:d-wx--x--x"), "{text}");
    fs.delete("/d/new");
    let text = refusal(refused(&fs));
    assert!(text.contains("inode=\"/d/"), "{text}");
}

#[test]
fn a_diff_is_refused_where_a_sticky_bit_keeps_names() {
    let mut fs = allowed("/d");
    fs.mkdirs("/d/tmp");
    fs.write("/d/tmp/f", &[5]);
    fs.ok(SetPermission { path: "/d/tmp".into(), mode: 0o1777 });
    take(&mut fs, "/d", "s");
    fs.delete("/d/tmp");
    let text = refusal(diff::report(&fs.store, &user("bob"), "/d", "s", "").unwrap_err());
    let line = "Permission denied by sticky bit: user=bob, path=\"/d/.snapshot/tmp/f\":root:supergroup:-rw-r--r--, \
                 parent=\"/d/.snapshot/tmp\":";
    assert!(text.contains(line), "{text}");
    let refused = |path: &str| {
        let usage = query::quota_usage(&fs.store, &user("bob"), path).unwrap_err();
        said(&usage).1
    };
    let line = "Permission denied by sticky bit: user=bob, path=\"/d/.snapshot/s/tmp/f\":root:supergroup:-rw-r--r--, \
                 parent=\"/d/.snapshot/s/tmp\":";
    assert!(refused("/d/.snapshot/s").contains(line), "{}", refused("/d/.snapshot/s"));
}

#[test]
fn statuses_tell_what_is_snapshottable() {
    let mut fs = allowed("/d");
    assert!(fs.status("/d").unwrap().snapshottable);
    fs.mkdirs("/e");
    assert!(!fs.status("/e").unwrap().snapshottable);
    take(&mut fs, "/d", "s");
    let (path, taken) = listing::snapshots(&fs.store, &root(), "/d").unwrap();
    assert_eq!((path.as_str(), taken.len()), ("/d", 1));
    assert_eq!((taken[0].inode.name.as_str(), taken[0].id.0), ("s", 0));
    assert_eq!(taken[0].inode.mtime, fs.now_ms);
    assert_eq!(fs.status("/d").unwrap().inode.mtime, fs.now_ms);
    assert_eq!(fs.status("/d/.snapshot"), None);
    assert!(listing::is_dot_snapshot(&fs.store, &root(), "/d/.snapshot").unwrap());
    assert_eq!(fs.status("/d/.snapshot/none"), None);
    // A storage policy is told of a snapshot, but not in the list of all.
    fs.ok(SetStoragePolicy { path: "/d".into(), policy: Some("COLD".to_string()) });
    take(&mut fs, "/d", "t");
    let listed = query::get_listing(&fs.store, &root(), "/d/.snapshot", b"", 10).unwrap().unwrap();
    let policies: Vec<u8> = listed.entries.iter().map(|entry| entry.storage_policy).collect();
    assert_eq!(policies, [0, 0]);
    // The children are those of now in the list.
    fs.mkdirs("/d/new");
    let listed = query::get_listing(&fs.store, &root(), "/d/.snapshot", b"", 10).unwrap().unwrap();
    assert!(listed.entries.iter().all(|entry| entry.children() == 1));
    assert_eq!(fs.status("/d/.snapshot/t").unwrap().children(), 0);
    assert_eq!(fs.status("/d/.snapshot/t").unwrap().storage_policy, 2);
    fs.ok(SetStoragePolicy { path: "/d".into(), policy: Some("HOT".to_string()) });
    assert_eq!(fs.status("/d").unwrap().storage_policy, 7);
    assert_eq!(
        fs.status("/d/.snapshot/t").unwrap().storage_policy,
        2,
        "a snapshot stays as it was"
    );
    let error = query::get_listing(&fs.store, &root(), "/e/.snapshot", b"", 10).unwrap_err();
    assert_eq!(refusal(error), "SnapshotException: Directory is not a snapshottable directory: /e");
    // The root is snapshottable by nature, but has no room for snapshots.
    assert_eq!(fs.names("/.snapshot"), Vec::<String>::new());
    let of = |id: InodeId| query::get_inode_info(&fs.store, id).unwrap().unwrap().0;
    assert_eq!(of(taken[0].inode.id), "/d");
}
