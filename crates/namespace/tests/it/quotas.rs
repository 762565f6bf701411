//! Quotas by type of storage: what counts on which type, and what is refused.

use crate::support::{Fs, MIB, add_block, complete, create, root, said, user};
use cairn_namespace::ops::abandon_block::AbandonBlock;
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::fsync::Fsync;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::pipeline::UpdatePipeline;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::query;
use cairn_namespace::{BlockRef, Outcome, Settings};
use cairn_stripe::StorageType::{self, Archive, Disk, RamDisk, Ssd};

fn limit(path: &str, kind: StorageType, space_max: QuotaChange) -> SetTypeQuota {
    let names = i64::MAX as u64;
    SetTypeQuota { path: path.into(), kind: kind.rank() as u8, space_max, keeps_names: true, names }
}

fn at_most(path: &str, kind: StorageType, max: u64) -> SetTypeQuota {
    limit(path, kind, QuotaChange::Set { max })
}

fn policy(fs: &mut Fs, path: &str, name: &str) {
    let policy = (!name.is_empty()).then(|| name.to_string());
    fs.ok(SetStoragePolicy { path: path.into(), policy });
}

/// Bytes on SSD, DISK and ARCHIVE as a directory's quota counts them.
fn counted(fs: &Fs, path: &str) -> [u64; 3] {
    let inode = fs.status(path).unwrap().inode;
    let quota = inode.directory().unwrap().quota.clone().unwrap();
    let used = query::quota_usage(&fs.store, &root(), path).unwrap();
    assert_eq!(used.types, quota.types);
    [Ssd, Disk, Archive].map(|kind| quota.types[kind])
}

#[test]
fn bytes_count_on_the_types_of_the_policy() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    fs.ok(at_most("/q", Ssd, 1 << 40));
    for (name, replication, want) in [
        ("", 3, [0, 0, 0]),
        ("HOT", 3, [0, 300, 0]),
        ("ONE_SSD", 3, [100, 200, 0]),
        ("ALL_SSD", 2, [200, 0, 0]),
        ("WARM", 3, [0, 100, 200]),
        ("COLD", 1, [0, 0, 100]),
        ("LAZY_PERSIST", 2, [0, 200, 0]),
    ] {
        let path = format!("/q/{name}d");
        fs.mkdirs(&path);
        if !name.is_empty() {
            policy(&mut fs, &path, name);
        }
        let file = format!("{path}/f");
        fs.write(&file, &[100]);
        fs.ok(SetReplication { path: file.clone(), replication });
        assert_eq!(counted(&fs, "/q"), want, "{name}");
        let sum = query::content_summary(&fs.store, &root(), &path).unwrap();
        assert_eq!([Ssd, Disk, Archive].map(|kind| sum.types[kind]), want, "{name}");
        fs.delete(&path);
        assert_eq!(counted(&fs, "/q"), [0, 0, 0], "{name}");
    }
}

#[test]
fn striped_files_count_all_units_on_one_type_and_only_where_the_policy_suits() {
    let mut fs = Fs::new();
    fs.mkdirs("/q/ec");
    fs.ok(at_most("/q", Ssd, 1 << 40));
    fs.set_policy("/q/ec", "RS-3-2-1024k");
    policy(&mut fs, "/q/ec", "ALL_SSD");
    fs.write("/q/ec/f", &[3 * MIB]);
    assert_eq!(counted(&fs, "/q"), [5 * MIB, 0, 0]);
    policy(&mut fs, "/q/ec", "COLD");
    assert_eq!(counted(&fs, "/q"), [0, 0, 5 * MIB]);
    policy(&mut fs, "/q/ec", "ONE_SSD");
    assert_eq!(counted(&fs, "/q"), [0, 0, 0]);
    policy(&mut fs, "/q/ec", "HOT");
    fs.delete("/q/ec/f");
    assert_eq!(counted(&fs, "/q"), [0, 0, 0]);
}

#[test]
fn what_would_exceed_a_type_is_refused_in_hadoops_words() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    policy(&mut fs, "/q", "ONE_SSD");
    fs.ok(at_most("/q", Ssd, 100 * MIB));
    fs.create("/q/f");
    let refused = said(&fs.err(add_block("/q/f", None)));
    assert_eq!(refused.0, "QuotaByStorageTypeExceededException");
    assert_eq!(
        refused.1,
        "Quota by storage type : SSD on path : /q is exceeded. quota = 100 MB but space consumed = \
         128 MB"
    );
    // The other copies are on disks, of which there may be as many as one likes.
    fs.ok(at_most("/q", Ssd, 128 * MIB));
    fs.add_block("/q/f", None);
    fs.ok(limit("/q", Ssd, QuotaChange::Clear));
    assert!(fs.status("/q").unwrap().inode.directory().unwrap().quota.is_none());
    // Memory is not counted, whatever the limit.
    fs.ok(at_most("/q", RamDisk, 1));
    fs.write("/q/g", &[100]);
}

#[test]
fn a_block_that_is_just_full_counts_when_the_next_is_asked_for() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    policy(&mut fs, "/q", "WARM");
    fs.ok(at_most("/q", Disk, 128 * MIB));
    fs.create("/q/f");
    let first = fs.add_block("/q/f", None);
    let full = BlockRef { len: 128 * MIB, ..first.reference() };
    let refused = said(&fs.err(add_block("/q/f", Some(full))));
    assert_eq!(
        refused.1,
        "Quota by storage type : DISK on path : /q is exceeded. quota = 128 MB but space consumed = \
         256 MB"
    );
}

#[test]
fn limits_are_set_one_by_one() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    let max = QuotaChange::Set { max: 7 };
    fs.ok(SetQuota { path: "/q".into(), names_max: max, space_max: max });
    fs.ok(at_most("/q", Ssd, 5));
    // Hadoop takes the limit on all types for the one that is to be kept.
    fs.ok(limit("/q", Archive, QuotaChange::Keep));
    fs.ok(SetQuota { path: "/q".into(), names_max: QuotaChange::Clear, space_max: max });
    let sum = query::quota_usage(&fs.store, &root(), "/q").unwrap();
    assert_eq!((sum.names_max, sum.space_max), (None, Some(7)));
    assert_eq!([Ssd, Disk, Archive].map(|kind| sum.types_max[kind]), [Some(5), None, Some(7)]);

    let wrong = SetTypeQuota { keeps_names: false, names: u64::MAX, ..at_most("/q", Ssd, 1) };
    let refused = said(&fs.err(wrong));
    assert_eq!(refused.0, "UnsupportedActionException");
    assert_eq!(
        refused.1,
        "Failed to set quota by storage type because eitherdfs.quota.by.storage.type.enabled is set \
         to true or nsQuota value is illegal -1"
    );
    assert_eq!(said(&fs.err(at_most("/none", Ssd, 1))).0, "FileNotFoundException");
    let mut off = Fs::with(Settings { type_quotas_enabled: false, ..Settings::default() });
    off.mkdirs("/q");
    let refused = said(&off.err(at_most("/q", Ssd, 1))).1;
    assert!(refused.contains("enabled is set to false"), "{refused}");
}

#[test]
fn moves_and_new_policies_take_bytes_along() {
    let mut fs = Fs::new();
    for path in ["/q/ssd", "/q/cold", "/q/plain/inner"] {
        fs.mkdirs(path);
    }
    fs.ok(at_most("/q", Ssd, 1 << 40));
    fs.ok(at_most("/q/plain/inner", Ssd, 1 << 40));
    policy(&mut fs, "/q/ssd", "ALL_SSD");
    policy(&mut fs, "/q/cold", "COLD");
    fs.write("/q/ssd/f", &[100]);
    assert_eq!(counted(&fs, "/q"), [300, 0, 0]);
    fs.ok(Rename { src: "/q/ssd/f".into(), dst: "/q/cold/f".into() });
    assert_eq!(counted(&fs, "/q"), [0, 0, 300]);
    fs.ok(Rename { src: "/q/cold/f".into(), dst: "/q/plain/inner/f".into() });
    assert_eq!(counted(&fs, "/q"), [0, 0, 0]);
    assert_eq!(counted(&fs, "/q/plain/inner"), [0, 0, 0]);
    // Also in quotas below the place where the policy is set.
    policy(&mut fs, "/q", "ONE_SSD");
    assert_eq!(counted(&fs, "/q"), [100, 200, 0]);
    assert_eq!(counted(&fs, "/q/plain/inner"), [100, 200, 0]);
    policy(&mut fs, "/q/plain/inner/f", "HOT");
    assert_eq!(counted(&fs, "/q"), [0, 300, 0]);
    policy(&mut fs, "/q/plain/inner/f", "");
    policy(&mut fs, "/q", "");
    assert_eq!(counted(&fs, "/q/plain/inner"), [0, 0, 0]);
}

#[test]
fn files_that_grow_shrink_and_join_stay_counted() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    policy(&mut fs, "/q", "ONE_SSD");
    fs.ok(at_most("/q", Ssd, 1 << 40));
    fs.write("/q/a", &[128 * MIB, 28]);
    fs.write("/q/b", &[50]);
    fs.ok(SetReplication { path: "/q/b".into(), replication: 1 });
    assert_eq!(counted(&fs, "/q"), [128 * MIB + 78, 256 * MIB + 56, 0]);
    fs.ok(Concat { target: "/q/a".into(), sources: vec!["/q/b".into()] });
    assert_eq!(counted(&fs, "/q"), [128 * MIB + 78, 256 * MIB + 156, 0]);
    let cut = Truncate {
        path: "/q/a".into(),
        new_len: 128 * MIB,
        holder: "client".into(),
        client_machine: "host".into(),
    };
    assert!(matches!(fs.ok(cut), Outcome::Removed { done: true, .. }));
    assert_eq!(counted(&fs, "/q"), [128 * MIB, 256 * MIB, 0]);

    // An append is refused when what is left of the last block would be too much.
    fs.write("/q/c", &[100]);
    fs.ok(at_most("/q", Ssd, 129 * MIB));
    let append = Append {
        path: "/q/c".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: LastBlocks { last_min_replicated: true, ..LastBlocks::default() },
    };
    assert_eq!(said(&fs.err(append)).0, "QuotaByStorageTypeExceededException");
    let inside = cairn_namespace::ops::create::Create {
        storage_policy: Some("COLD".into()),
        ..create("/q/cold")
    };
    fs.ok(inside);
    fs.add_block("/q/cold", None);
}

#[test]
fn a_limited_directory_goes_though_snapshots_hold_what_was_removed_in_it() {
    let mut fs = Fs::new();
    fs.mkdirs("/r/a");
    let names_max = QuotaChange::Set { max: 10 };
    let space_max = QuotaChange::Keep;
    for path in ["/r", "/r/a"] {
        fs.ok(SetQuota { path: path.into(), names_max, space_max });
    }
    fs.write("/r/a/f", &[5]);
    fs.ok(AllowSnapshot { path: "/r".into() });
    fs.ok(CreateSnapshot { path: "/r".into(), name: "s".into() });
    let names = |fs: &Fs| {
        let status = fs.status("/r").unwrap();
        status.inode.directory().unwrap().quota.as_ref().map(|quota| (quota.names, quota.space))
    };
    for path in ["/r/a/f", "/r/a"] {
        fs.ok(Delete { path: path.into(), recursive: true });
        assert_eq!(names(&fs), Some((3, 15)), "{path}");
    }
    fs.ok(DeleteSnapshot { path: "/r".into(), name: "s".into() });
    assert_eq!(names(&fs), Some((1, 0)));
}

#[test]
fn a_block_that_is_given_back_counts_while_a_snapshot_holds_it() {
    for newer in [false, true] {
        give_back_a_block(newer);
    }
}

/// With a `newer` snapshot, in which the open file goes on as it is.
fn give_back_a_block(newer: bool) {
    let mut fs = Fs::new();
    fs.mkdirs("/r");
    let (names_max, space_max) = (QuotaChange::Keep, QuotaChange::Set { max: 1 << 40 });
    fs.ok(SetQuota { path: "/r".into(), names_max, space_max });
    fs.create("/r/f");
    let block = fs.add_block("/r/f", None).reference();
    let holder = || "client".to_string();
    fs.ok(Fsync { path: "/r/f".into(), file: None, holder: holder(), last_len: Some(5) });
    fs.ok(AllowSnapshot { path: "/r".into() });
    fs.ok(CreateSnapshot { path: "/r".into(), name: "s".into() });
    // From now on the snapshot has the file as it is.
    fs.ok(SetReplication { path: "/r/f".into(), replication: 2 });
    let space = |fs: &Fs| {
        let status = fs.status("/r").unwrap();
        status.inode.directory().unwrap().quota.as_ref().map(|quota| quota.space)
    };
    assert_eq!(space(&fs), Some(15));
    if newer {
        fs.ok(CreateSnapshot { path: "/r".into(), name: "t".into() });
    }
    fs.ok(AbandonBlock { path: "/r/f".into(), file: None, holder: holder(), block });
    assert_eq!(space(&fs), Some(15), "{newer}");
    let held = query::get_blocks(&fs.store, &root(), "/r/.snapshot/s/f", 0, 9, 0).unwrap();
    assert_eq!(held.last.map(|(_, held)| held.id), Some(block.id), "{newer}");
    fs.ok(DeleteSnapshot { path: "/r".into(), name: "s".into() });
    assert_eq!(space(&fs), Some(0));
}

/// `dfs.permissions.allow.owner.set.quota`.
#[test]
fn owners_of_a_folder_may_limit_those_in_it_if_they_are_let() {
    for owners_set_quotas in [false, true] {
        let mut fs = Fs::with(Settings { owners_set_quotas, ..Settings::default() });
        fs.mkdirs("/home/ann/d");
        let to_ann =
            |path: &str| SetOwner { path: path.into(), owner: Some("ann".into()), group: None };
        fs.ok(to_ann("/home/ann"));
        let all = |path: &str| SetQuota {
            path: path.into(),
            names_max: QuotaChange::Set { max: 5 },
            space_max: QuotaChange::Keep,
        };
        let refusal = match owners_set_quotas {
            true => {
                "Access denied for user ann. Superuser or owner of parent folder privilege is required"
            }
            false => "Access denied for user ann. Superuser privilege is required",
        };
        // Her own folder is in somebody else's, as the root directory is in nobody's.
        for path in ["/home/ann", "/"] {
            let refused = said(&fs.run(user("ann"), all(path)).unwrap_err());
            assert_eq!(refused, ("AccessControlException".into(), refusal.to_string()), "{path}");
        }
        let nowhere = said(&fs.run(user("ann"), all("/none/x/d")).unwrap_err());
        let want = match owners_set_quotas {
            true => ("FileNotFoundException", "Directory/File does not exist /none/x"),
            false => ("AccessControlException", refusal),
        };
        assert_eq!(nowhere, (want.0.to_string(), want.1.to_string()));
        let check = |fs: &Fs, path: &str| query::check_quota(&fs.store, &user("ann"), path);
        assert_eq!(said(&check(&fs, "/home/ann").unwrap_err()).1, refusal);
        assert_eq!(said(&check(&fs, "/none/x/d").unwrap_err()).1, want.1);
        assert_eq!(check(&fs, "/home/ann/d").is_ok(), owners_set_quotas);
        let in_hers = fs.run(user("ann"), all("/home/ann/d"));
        let by_type = fs.run(user("ann"), at_most("/home/ann/d", Ssd, 7));
        assert_eq!((in_hers.is_ok(), by_type.is_ok()), (owners_set_quotas, owners_set_quotas));
        fs.ok(all("/home/ann"));
        fs.ok(at_most("/home/ann/d", Ssd, 9));
    }
}

/// Quotas may be set below what is used already.
#[test]
fn what_a_rename_replaces_makes_room_for_what_comes() {
    let mut fs = Fs::new();
    for path in ["/full/a", "/full/b", "/c", "/d/e"] {
        fs.mkdirs(path);
    }
    fs.write("/full/f", &[10]);
    fs.write("/g", &[10]);
    fs.write("/h", &[11]);
    fs.ok(SetQuota {
        path: "/full".into(),
        names_max: QuotaChange::Set { max: 1 },
        space_max: QuotaChange::Set { max: 1 },
    });
    let over = |src: &str, dst: &str| RenameTo {
        src: src.into(),
        dst: dst.into(),
        overwrite: true,
        to_trash: false,
    };
    let text = said(&fs.err(over("/c", "/full/new"))).1;
    assert!(text.ends_with("/full is exceeded: quota=1 file count=5"), "{text}");
    let text = said(&fs.err(over("/d", "/full/b"))).1;
    assert!(text.ends_with("/full is exceeded: quota=1 file count=5"), "{text}");
    fs.ok(over("/c", "/full/b"));
    let text = said(&fs.err(over("/h", "/full/f"))).1;
    assert!(text.contains("diskspace consumed = 33 B"), "{text}");
    fs.ok(over("/g", "/full/f"));
    let inode = fs.status("/full").unwrap().inode;
    let quota = inode.directory().unwrap().quota.clone().unwrap();
    assert_eq!((quota.names, quota.space), (4, 30));
}

/// What a client says of a block that no DataNode has is charged to others' quotas.
#[test]
fn a_client_tells_no_more_bytes_than_a_block_may_have() {
    for (path, whole) in [("/q/f", 3 * 128 * MIB), ("/q/ec/f", 5 * 128 * MIB)] {
        let mut fs = Fs::new();
        fs.mkdirs("/q/ec");
        fs.set_policy("/q/ec", "RS-3-2-1024k");
        let max = QuotaChange::Set { max: 1 << 40 };
        fs.ok(SetQuota { path: "/q".into(), names_max: QuotaChange::Keep, space_max: max });
        let used = |fs: &Fs| {
            let inode = fs.status("/q").unwrap().inode;
            inode.directory().unwrap().quota.clone().unwrap().space
        };
        fs.write("/q/other", &[7]);
        let others = used(&fs);
        fs.create(path);
        let block = fs.add_block(path, None);
        let huge = i64::MAX as u64;
        let fsync =
            Fsync { path: path.into(), file: None, holder: "client".into(), last_len: Some(huge) };
        fs.ok(fsync);
        assert_eq!(used(&fs), others + whole);
        let new = BlockRef { gs: block.gs.next(), len: huge, ..block.reference() };
        let old = block.reference();
        fs.ok(UpdatePipeline { holder: "client".into(), old, new });
        assert_eq!(used(&fs), others + whole);
        let last = Some(new);
        fs.err(add_block(path, last));
        let error = fs.err(complete(path, last));
        assert!(said(&error).1.contains("more than the"), "{error}");
        fs.delete(path);
        assert_eq!(used(&fs), others);
    }
}

/// As in Hadoop, where what a snapshot has stays in the count when another file takes its place.
#[test]
fn a_file_in_the_place_of_one_in_a_snapshot_counts_beside_it() {
    let mut fs = Fs::new();
    fs.write("/q/f", &[5]);
    fs.ok(SetQuota {
        path: "/q".into(),
        names_max: QuotaChange::Set { max: 2 },
        space_max: QuotaChange::Keep,
    });
    let overwrite = || Create { overwrite: true, ..create("/q/f") };
    fs.ok(overwrite());
    fs.complete("/q/f", None);
    fs.ok(AllowSnapshot { path: "/q".into() });
    fs.ok(CreateSnapshot { path: "/q".into(), name: "s".into() });
    let text = said(&fs.err(overwrite())).1;
    assert!(text.ends_with("of directory /q is exceeded: quota=2 file count=3"), "{text}");
    fs.ok(SetQuota {
        path: "/q".into(),
        names_max: QuotaChange::Set { max: 3 },
        space_max: QuotaChange::Keep,
    });
    fs.ok(overwrite());
    // It is in no snapshot itself.
    fs.complete("/q/f", None);
    fs.ok(overwrite());
}
