//! Who may do what.

use crate::support::{Fs, create, root, said, user};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope};
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_times::SetTimes;
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::store::{StoreRead, StoreTxn, Table};
use cairn_namespace::{Command, Settings, inode, query};

fn home(fs: &mut Fs, name: &str, mode: u16) -> String {
    let path = format!("/home/{name}");
    fs.mkdirs(&path);
    let (owner, group) = (Some(name.to_string()), Some(name.to_string()));
    fs.ok(SetOwner { path: path.clone(), owner, group });
    fs.ok(SetPermission { path: path.clone(), mode });
    path
}

#[test]
fn denials_read_as_in_hadoop() {
    let mut fs = Fs::new();
    let path = home(&mut fs, "ada", 0o750);
    let mkdir = Mkdirs { path: format!("{path}/x"), mode: 0o755.into(), create_parent: true };
    fs.run(user("ada"), mkdir.clone()).unwrap();
    assert_eq!(fs.status("/home/ada/x").unwrap().inode.group, "ada");
    let error = fs.run(user("bob"), mkdir).unwrap_err();
    assert_eq!(
        said(&error),
        (
            "AccessControlException".into(),
            "Permission denied: user=bob, access=EXECUTE, inode=\"/home/ada\":ada:ada:drwxr-x---"
                .into()
        )
    );
    let at_root = Mkdirs { path: "/x".into(), mode: 0o755.into(), create_parent: true };
    assert_eq!(
        fs.run(user("bob"), at_root).unwrap_err().to_string(),
        "Permission denied: user=bob, access=WRITE, inode=\"/\":root:supergroup:drwxr-xr-x"
    );
    let error = query::get_listing(&fs.store, &user("bob"), "/home/ada", b"", 10).unwrap_err();
    assert!(error.to_string().contains("access=READ_EXECUTE"), "{error}");
    let mut member = user("bob");
    member.groups.push("ada".into());
    query::get_listing(&fs.store, &member, "/home/ada", b"", 10).unwrap();
}

#[test]
fn a_file_in_the_way_is_not_a_directory() {
    let mut fs = Fs::new();
    fs.write("/f", &[]);
    let error = query::get_file_info(&fs.store, &root(), "/f/x").unwrap_err();
    assert_eq!(said(&error), ("AccessControlException".into(), "/f (is not a directory)".into()));
    assert_eq!(said(&fs.err(create("/f/x"))).0, "ParentNotDirectoryException");
}

#[test]
fn the_sticky_bit_keeps_others_names() {
    let mut fs = Fs::new();
    fs.mkdirs("/tmp");
    fs.ok(SetPermission { path: "/tmp".into(), mode: 0o1777 });
    fs.run(user("ada"), Create { holder: "a".into(), ..create("/tmp/f") }).unwrap();
    let delete = Delete { path: "/tmp/f".into(), recursive: false };
    let error = fs.run(user("bob"), delete.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Permission denied by sticky bit: user=bob, path=\"/tmp/f\":ada:supergroup:-rw-r--r--, \
         parent=\"/tmp\":root:supergroup:drwxrwxrwt"
    );
    let rename =
        RenameTo { src: "/tmp/f".into(), dst: "/tmp/g".into(), overwrite: false, to_trash: false };
    fs.run(user("bob"), rename).unwrap_err();
    fs.run(user("ada"), delete).unwrap();
}

#[test]
fn a_recursive_delete_needs_every_full_directory() {
    let mut fs = Fs::new();
    let path = home(&mut fs, "ada", 0o777);
    fs.run(
        user("bob"),
        Mkdirs { path: format!("{path}/b/c"), mode: 0o755.into(), create_parent: true },
    )
    .unwrap();
    let delete = Delete { path: "/home/ada/b".into(), recursive: true };
    let error = fs.run(user("ada"), delete.clone()).unwrap_err();
    assert!(error.to_string().contains("access=ALL, inode=\"/home/ada/b\""), "{error}");
    fs.run(user("bob"), Delete { path: "/home/ada/b/c".into(), recursive: true }).unwrap();
    fs.run(user("ada"), delete).unwrap();
}

/// Files are passed over by what their entries say, and those of older builds say nothing.
#[test]
fn rights_to_sum_up_content_are_asked_for_on_the_way_or_before() {
    for summaries_check_first in [false, true] {
        let settings = Settings { summaries_check_first, block_size_min: 0, ..Settings::default() };
        let mut fs = Fs::with(settings);
        let sum = |fs: &Fs, name: &str| query::content_summary(&fs.store, &user(name), "/home");
        for name in ["ada", "bob"] {
            home(&mut fs, name, 0o700);
        }
        // Hadoop's look at what is below begins with the last sibling.
        let first = if summaries_check_first { "bob" } else { "ada" };
        let want = format!(
            "Permission denied: user=eve, access=READ_EXECUTE, \
             inode=\"/home/{first}\":{first}:{first}:drwx------"
        );
        assert_eq!(said(&sum(&fs, "eve").unwrap_err()), ("AccessControlException".into(), want));
        for name in ["ada", "bob"] {
            home(&mut fs, name, 0o755);
        }
        assert_eq!(sum(&fs, "eve").unwrap().directories, 3);
        // It asks whether children could be deleted, too.
        home(&mut fs, "bob", 0o1777);
        fs.write("/home/bob/f", &[5]);
        match (sum(&fs, "eve"), summaries_check_first) {
            (Ok(found), false) => assert_eq!((found.files, found.len), (1, 5)),
            (Err(error), true) => {
                let text = error.to_string();
                let want = "Permission denied by sticky bit: user=eve, path=\"/home/bob/f\":";
                assert!(text.starts_with(want), "{text}");
            }
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(sum(&fs, "bob").unwrap().files, 1);
        let file = query::content_summary(&fs.store, &user("eve"), "/home/bob/f").unwrap();
        assert_eq!(file.files, 1);
    }
}

#[test]
fn directories_below_are_found_among_files() {
    let mut fs = Fs::new();
    let path = home(&mut fs, "ada", 0o777);
    // More than are fetched at a time, with the directory that refuses in the middle.
    let names: Vec<String> = (0..2100).map(|at| format!("{path}/d/f{at:04}")).collect();
    for (at, name) in names.iter().enumerate() {
        if at == 1050 {
            fs.mkdirs(&format!("{name}/full"));
        } else {
            fs.ok(create(name));
        }
    }
    fs.ok(SetPermission { path: format!("{path}/d"), mode: 0o777 });
    fs.ok(SetPermission { path: names[1050].clone(), mode: 0o700 });
    let delete = Delete { path: format!("{path}/d"), recursive: true };
    let refused = |fs: &mut Fs| {
        let error = fs.run(user("ada"), delete.clone()).unwrap_err();
        assert!(error.to_string().contains("inode=\"/home/ada/d/f1050\""), "{error}");
    };
    refused(&mut fs);
    let parent = fs.status(&format!("{path}/d")).unwrap().inode.id;
    for name in &names {
        let key = inode::child_key(parent, &name[path.len() + 3..]);
        let id = inode::child_id(&fs.store.get(Table::Child, &key).unwrap().unwrap()).unwrap();
        fs.store.put(Table::Child, &key, &id.key()).unwrap();
    }
    refused(&mut fs);
    fs.ok(SetPermission { path: names[1050].clone(), mode: 0o777 });
    fs.run(user("ada"), delete).unwrap();
}

#[test]
fn owners_change_modes_and_superusers_change_owners() {
    let mut fs = Fs::new();
    let path = home(&mut fs, "ada", 0o755);
    let mode = SetPermission { path: path.clone(), mode: 0o700 };
    assert_eq!(
        fs.run(user("bob"), mode.clone()).unwrap_err().to_string(),
        "Permission denied. user=bob is not the owner of inode=/home/ada"
    );
    fs.run(user("ada"), mode).unwrap();
    let give = SetOwner { path: path.clone(), owner: Some("bob".into()), group: None };
    assert_eq!(
        fs.run(user("ada"), give).unwrap_err().to_string(),
        "User ada is not a super user (non-super user cannot change owner)."
    );
    let group = SetOwner { path: path.clone(), owner: None, group: Some("staff".into()) };
    assert_eq!(
        fs.run(user("ada"), group).unwrap_err().to_string(),
        "User ada does not belong to staff"
    );
    fs.run(user("ada"), SetTimes { path: path.clone(), mtime: Some(5), atime: None }).unwrap();
    assert_eq!(fs.status(&path).unwrap().inode.mtime, 5);
}

/// `dfs.permissions.enabled` switches off what modes say, and not whose a file is.
#[test]
fn owners_alone_change_what_is_theirs_though_permissions_are_off() {
    let mut fs = Fs::with(Settings { permissions_enabled: false, ..Settings::default() });
    let path = home(&mut fs, "ada", 0o700);
    let of = |owner: Option<&str>, group: Option<&str>| SetOwner {
        path: path.clone(),
        owner: owner.map(str::to_string),
        group: group.map(str::to_string),
    };
    let entry = AclEntry {
        scope: AclScope::Access,
        kind: AclKind::User,
        name: Some("bob".into()),
        permission: 7,
    };
    let with_list = |change| ChangeAcl { path: path.clone(), change };
    let changes: [Command; 5] = [
        SetPermission { path: path.clone(), mode: 0o777 }.into(),
        of(None, Some("bob")).into(),
        of(Some("bob"), None).into(),
        with_list(AclChange::Modify { entries: vec![entry] }).into(),
        with_list(AclChange::RemoveAll).into(),
    ];
    for change in &changes {
        let refused = said(&fs.run(user("bob"), change.clone()).unwrap_err());
        let want = "Permission denied. user=bob is not the owner of inode=/home/ada";
        assert_eq!(refused, ("AccessControlException".into(), want.into()), "{change:?}");
    }
    fs.run(user("ada"), changes[0].clone()).unwrap();
    fs.run(user("ada"), of(Some("ada"), Some("ada"))).unwrap();
    for (change, want) in [
        (
            of(Some("bob"), None),
            "User ada is not a super user (non-super user cannot change owner).",
        ),
        (of(None, Some("staff")), "User ada does not belong to staff"),
    ] {
        assert_eq!(fs.run(user("ada"), change).unwrap_err().to_string(), want);
    }
    // Owners are asked for by what also asks whether they may pass.
    fs.ok(SetPermission { path: "/home".into(), mode: 0o700 });
    assert_eq!(
        fs.run(user("ada"), changes[0].clone()).unwrap_err().to_string(),
        "Permission denied: user=ada, access=EXECUTE, inode=\"/home\":root:supergroup:drwx------"
    );
    // All else is everybody's.
    fs.run(user("bob"), SetTimes { path, mtime: Some(5), atime: None }).unwrap();
    fs.run(user("bob"), Delete { path: "/home/ada".into(), recursive: true }).unwrap();
    // A log of an older build may have what it let pass.
    let settings = Settings { permissions_enabled: false, rules: 3, ..Settings::default() };
    let mut past = Fs::with(settings);
    home(&mut past, "ada", 0o700);
    for change in changes {
        past.run(user("bob"), change).unwrap();
    }
}

#[test]
fn extended_attributes() {
    let mut fs = Fs::new();
    fs.write("/f", &[]);
    let name = |space, name: &str| XAttrName { space, name: name.into() };
    let set = |name: XAttrName, create, replace| SetXAttr {
        path: "/f".into(),
        name,
        value: vec![1, 200],
        create,
        replace,
    };
    let a = name(XAttrSpace::User, "a");
    assert!(said(&fs.err(set(a.clone(), false, true))).1.contains("does not exist"));
    fs.ok(set(a.clone(), true, false));
    assert!(said(&fs.err(set(a.clone(), true, false))).1.contains("already exists"));
    fs.ok(set(name(XAttrSpace::Trusted, "t"), true, true));
    assert_eq!(query::list_xattrs(&fs.store, &root(), "/f").unwrap().len(), 2);
    let seen = query::get_xattrs(&fs.store, &user("bob"), "/f", &[]).unwrap();
    assert_eq!(seen, [(a.clone(), vec![1, 200])]);
    fs.ok(RemoveXAttr { path: "/f".into(), name: a.clone() });
    assert!(query::get_xattrs(&fs.store, &root(), "/f", &[a]).is_err());
    fs.delete("/f");
    assert_eq!(fs.names("/"), Vec::<String>::new());
}
