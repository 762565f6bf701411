//! Storage policies: which one is in force, and which cannot be set.

use crate::support::{Fs, create, root, said, user};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::rename::Rename;
use cairn_namespace::ops::satisfy_storage_policy::{SatisfyStoragePolicy, mark};
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::ops::xattr::RemoveXAttr;
use cairn_namespace::{InodeId, Outcome, Settings, query};
use cairn_stripe::{BlockId, StorageType};

fn set(path: &str, policy: &str) -> SetStoragePolicy {
    SetStoragePolicy { path: path.into(), policy: Some(policy.into()) }
}

fn in_force(fs: &Fs, path: &str) -> u8 {
    fs.status(path).unwrap().storage_policy
}

/// The storage policies of what is in a directory, by either way to list it.
fn listed(fs: &Fs, path: &str) -> Vec<u8> {
    let listing = query::get_listing(&fs.store, &root(), path, b"", 10).unwrap().unwrap();
    let mut told: Vec<u8> = listing.entries.iter().map(|entry| entry.storage_policy).collect();
    query::visit_listing(&fs.store, &root(), path, b"", 10, &mut |entry| {
        told.push(entry.storage_policy);
    })
    .unwrap();
    told
}

#[test]
fn the_nearest_policy_above_is_in_force() {
    let mut fs = Fs::new();
    fs.mkdirs("/a/b");
    fs.write("/a/b/f", &[10]);
    assert_eq!(in_force(&fs, "/a/b/f"), 0);
    fs.ok(set("/a", "cold"));
    assert_eq!((in_force(&fs, "/a"), in_force(&fs, "/a/b/f")), (2, 2));
    fs.ok(set("/a/b/f", "ONE_SSD"));
    assert_eq!(in_force(&fs, "/a/b/f"), 10);
    fs.ok(SetStoragePolicy { path: "/a/b/f".into(), policy: None });
    assert_eq!(in_force(&fs, "/a/b/f"), 2);
}

#[test]
fn a_striped_file_ignores_policies_that_do_not_suit_stripes() {
    let mut fs = Fs::new();
    fs.mkdirs("/ec");
    fs.set_policy("/ec", "RS-3-2-1024k");
    fs.create("/ec/f");
    let block = fs.add_block("/ec/f", None);
    for (policy, id) in [
        ("PROVIDED", 0),
        ("COLD", 2),
        ("WARM", 0),
        ("HOT", 7),
        ("ONE_SSD", 0),
        ("ALL_SSD", 12),
        ("ALL_NVDIMM", 0),
        ("LAZY_PERSIST", 0),
    ] {
        fs.ok(set("/ec", policy));
        assert_eq!(in_force(&fs, "/ec/f"), id, "{policy}");
        assert_eq!(query::storage_policy_of_block(&fs.store, block.id).unwrap(), id, "{policy}");
        let set_above = in_force(&fs, "/ec");
        assert_ne!(set_above, 0, "the directory has it: {policy}");
        // A listing tells it of the file too.
        assert_eq!(listed(&fs, "/ec"), [set_above; 2], "{policy}");
    }
    assert_eq!(query::storage_policy_of_block(&fs.store, BlockId(1)).unwrap(), 0, "of no file");
}

#[test]
fn lazy_persist_counts_at_creation_only() {
    let mut fs = Fs::new();
    fs.write("/f", &[]);
    let lazy = "BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], \
                creationFallbacks=[DISK], replicationFallbacks=[DISK]}";
    let class = "HadoopIllegalArgumentException".to_string();
    assert_eq!(
        said(&fs.err(set("/f", "LAZY_PERSIST"))),
        (class.clone(), format!("Policy {lazy} cannot be set after file creation."))
    );
    fs.ok(Create { storage_policy: Some("LAZY_PERSIST".into()), ..create("/lazy") });
    let stays =
        (class, "Existing policy LAZY_PERSIST cannot be changed after file creation.".into());
    assert_eq!(said(&fs.err(set("/lazy", "HOT"))), stays);
    assert_eq!(said(&fs.err(SetStoragePolicy { path: "/lazy".into(), policy: None })), stays);
    // In a log of earlier builds it was unset.
    let mut past = Fs::with(Settings { rules: 0, ..Settings::default() });
    past.ok(Create { storage_policy: Some("LAZY_PERSIST".into()), ..create("/lazy") });
    past.ok(SetStoragePolicy { path: "/lazy".into(), policy: None });
    // A file keeps what its directory had when it was made.
    fs.mkdirs("/d");
    fs.ok(set("/d", "LAZY_PERSIST"));
    fs.write("/d/f", &[]);
    fs.ok(set("/d", "HOT"));
    assert_eq!((in_force(&fs, "/d/f"), in_force(&fs, "/d")), (15, 7));
    let (path, holder, client_machine) = ("/d/f".to_string(), "w".to_string(), String::new());
    let append = Append {
        path: path.clone(),
        holder: holder.clone(),
        client_machine: client_machine.clone(),
        new_block: false,
        replicas: LastBlocks::default(),
    };
    let cut = Truncate { path, new_len: 0, holder, client_machine };
    let class = "UnsupportedOperationException".to_string();
    let cannot = |what: &str| (class.clone(), format!("Cannot {what} lazy persist file /d/f"));
    assert_eq!(said(&fs.err(append)), cannot("append to"));
    assert_eq!(said(&fs.err(cut)), cannot("truncate"));
}

/// A tree in which the policy of that number is in force where none is set.
fn with_default(default_storage_policy: u8) -> Fs {
    Fs::with(Settings { default_storage_policy, block_size_min: 0, ..Settings::default() })
}

#[test]
fn a_default_of_lazy_persist_is_kept_by_new_files() {
    for (default, own) in [(7, 0), (10, 0), (15, 15)] {
        let mut fs = with_default(default);
        fs.mkdirs("/cold");
        fs.ok(set("/cold", "COLD"));
        fs.write("/f", &[]);
        fs.write("/cold/f", &[]);
        assert_eq!((in_force(&fs, "/f"), in_force(&fs, "/cold/f")), (own, 2), "{default}");
        assert_eq!(in_force(&fs, "/"), 0, "none is set: {default}");
    }
}

#[test]
fn the_rest_of_a_block_counts_on_the_types_of_the_default_policy() {
    for (default, is_refused) in [(7, false), (12, true)] {
        let mut fs = with_default(default);
        fs.mkdirs("/q");
        fs.write("/q/f", &[100]);
        fs.ok(SetTypeQuota {
            path: "/q".into(),
            kind: StorageType::Ssd.rank() as u8,
            space_max: QuotaChange::Set { max: 1000 },
            keeps_names: true,
            names: i64::MAX as u64,
        });
        let append = Append {
            path: "/q/f".into(),
            holder: "w".into(),
            client_machine: String::new(),
            new_block: false,
            replicas: LastBlocks { last_min_replicated: true, ..LastBlocks::default() },
        };
        if is_refused {
            assert_eq!(said(&fs.err(append)).0, "QuotaByStorageTypeExceededException");
        } else {
            fs.ok(append);
        }
    }
}

#[test]
fn a_directory_that_moves_below_another_policy_counts_anew() {
    let mut fs = Fs::new();
    for path in ["/plain/d/sub", "/cold"] {
        fs.mkdirs(path);
    }
    fs.ok(SetStoragePolicy { path: "/cold".into(), policy: Some("COLD".into()) });
    fs.write("/plain/d/sub/f", &[5]);
    let (names_max, space_max) = (QuotaChange::Set { max: 100 }, QuotaChange::Keep);
    for path in ["/plain/d", "/plain/d/sub"] {
        fs.ok(SetQuota { path: path.into(), names_max, space_max });
    }
    let rename = |src: &str, dst: &str| Rename { src: src.into(), dst: dst.into() };
    for (src, dst, archived) in [("/plain/d", "/cold", 15), ("/cold/d", "/plain", 0)] {
        fs.ok(rename(src, dst));
        for path in [format!("{dst}/d"), format!("{dst}/d/sub")] {
            let inode = fs.status(&path).unwrap().inode;
            let quota = inode.directory().unwrap().quota.clone().unwrap();
            assert_eq!((quota.space, quota.types[StorageType::Archive]), (15, archived), "{path}");
        }
    }
}

#[test]
fn listings_tell_the_policy_in_force() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/sub");
    fs.set_policy("/d", "RS-3-2-1024k");
    fs.create("/d/striped");
    fs.ok(Create { should_replicate: true, ..create("/d/whole") });
    fs.mkdirs("/d/own");
    fs.ok(set("/d", "WARM"));
    fs.ok(set("/d/own", "COLD"));
    let page = crate::support::page(&fs.store, "/d", b"", 10);
    let told = page.entries.iter().map(|e| (e.inode.name.as_str(), e.storage_policy));
    let wanted = [("own", 2), ("striped", 5), ("sub", 5), ("whole", 5)];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

#[test]
fn what_a_satisfier_is_to_look_after_is_marked_once() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    let file = fs.write("/d/f", &[10]);
    fs.write("/d/empty", &[]);
    let ask = |path: &str| SatisfyStoragePolicy { path: path.into() };
    assert_eq!(fs.ok(ask("/d/f")), Outcome::ToSatisfy(Some(file)));
    assert_eq!(fs.ok(ask("/d/f")), Outcome::ToSatisfy(None), "it is asked for already");
    assert_eq!(fs.ok(ask("/d/empty")), Outcome::ToSatisfy(None), "there is nothing to move");
    let folder = fs.status("/d").unwrap().inode.id;
    assert_eq!(fs.ok(ask("/d")), Outcome::ToSatisfy(Some(folder)));
    let (class, text) = said(&fs.err(ask("/d")));
    let there = "XAttr: hdfs.sps already exists. The REPLACE flag must be specified.";
    assert_eq!((&class[..], &text[..]), ("IOException", there));
    let (class, text) = said(&fs.err(ask("/none")));
    assert_eq!((&class[..], &text[..]), ("FileNotFoundException", "cannot find /none"));
    let refused = fs.run(user("bob"), ask("/d/f")).unwrap_err();
    assert_eq!(said(&refused).0, "AccessControlException");

    let (mut all, mut from) = (Vec::new(), Some(InodeId(0)));
    while let Some(id) = from {
        let (found, next) = query::to_satisfy(&fs.store, id, 1).unwrap();
        assert!(found.len() <= 1);
        all.extend(found);
        from = next;
    }
    assert_eq!(all, [folder, file]);
    fs.ok(RemoveXAttr { path: "/d/f".into(), name: mark() });
    assert_eq!(query::to_satisfy(&fs.store, InodeId(0), 10).unwrap(), (vec![folder], None));
    assert_eq!(fs.ok(ask("/d/f")), Outcome::ToSatisfy(Some(file)));
}
