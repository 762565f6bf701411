//! Extended attributes, and the paths below `/.reserved`.

use crate::support::{Fs, complete, create, root, said, user};
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::ops::set_storage_policy::SetStoragePolicy;
use cairn_namespace::ops::snapshot::AllowSnapshot;
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::{Caller, Command, Settings, query};

fn name(space: XAttrSpace, name: &str) -> XAttrName {
    XAttrName { space, name: name.into() }
}

fn set(path: &str, name: XAttrName, value: &[u8]) -> SetXAttr {
    SetXAttr { path: path.into(), name, value: value.to_vec(), create: true, replace: true }
}

fn mark() -> XAttrName {
    name(XAttrSpace::Security, "hdfs.unreadable.by.superuser")
}

/// Where a command is refused, the class and the text; else nothing.
fn refusal(fs: &mut Fs, caller: Caller, command: SetXAttr) -> String {
    match fs.run(caller, command) {
        Ok(_) => String::new(),
        Err(error) => format!("{}: {}", said(&error).0, said(&error).1),
    }
}

#[test]
fn each_space_has_its_rule() {
    let mut fs = Fs::new();
    fs.write("/f", &[1]);
    fs.ok(SetPermission { path: "/f".into(), mode: 0o666 });
    let denied = |text: &str| {
        format!("AccessControlException: User doesn't have permission for xattr: {text}")
    };
    let raw = "/.reserved/raw/f";
    use XAttrSpace::{Raw, Security, System, Trusted, User};
    let cases: [(Caller, &str, XAttrName, String); 9] = [
        (user("bob"), "/f", name(User, "a"), String::new()),
        (user("bob"), "/f", name(Trusted, "t"), denied("trusted.t")),
        (root(), "/f", name(Trusted, "t"), String::new()),
        (root(), "/f", name(System, "s"), denied("system.s")),
        (root(), "/f", name(Security, "x"), denied("security.x")),
        (root(), "/f", name(Raw, "r"), denied("raw.r")),
        (root(), raw, name(Raw, "r"), String::new()),
        (
            user("bob"),
            raw,
            name(Raw, "r"),
            "AccessControlException: Access denied for user bob. Superuser privilege is required for \
             operation setXAttr"
                .into(),
        ),
        (root(), "/none", name(User, "a"), "FileNotFoundException: cannot find /none".into()),
    ];
    for (caller, path, name, want) in cases {
        assert_eq!(refusal(&mut fs, caller, set(path, name, b"v")), want);
    }
    let seen = |caller: &Caller, path: &str| {
        let names = query::list_xattrs(&fs.store, caller, path).unwrap();
        names.into_iter().map(|(name, _)| name.name).collect::<Vec<_>>()
    };
    assert_eq!(seen(&user("bob"), "/f"), ["a"]);
    assert_eq!(seen(&root(), "/f"), ["a", "t"]);
    assert_eq!(seen(&root(), raw), ["a", "t", "r"]);
    assert_eq!(seen(&user("bob"), raw), ["a", "r"]);
    let get = |names: &[XAttrName]| query::get_xattrs(&fs.store, &user("bob"), "/f", names);
    assert_eq!(said(&get(&[name(User, "none")]).unwrap_err()).0, "XAttrNotFoundException");
    assert_eq!(said(&get(&[name(Trusted, "t")]).unwrap_err()).0, "AccessControlException");
}

#[test]
fn limits_count_what_users_see() {
    let mut fs = Fs::with(Settings {
        block_size_min: 0,
        xattrs_per_inode_max: 2,
        xattr_len_max: 8,
        ..Settings::default()
    });
    fs.mkdirs("/d");
    let long = refusal(&mut fs, root(), set("/d", name(XAttrSpace::User, "abc"), b"123456"));
    assert_eq!(
        long,
        "HadoopIllegalArgumentException: The XAttr is too big. The maximum combined size of the name \
         and value is 8, but the total size is 9"
    );
    for (space, n) in [(XAttrSpace::User, "a"), (XAttrSpace::Trusted, "b")] {
        fs.ok(set("/d", name(space, n), b""));
    }
    fs.ok(set("/.reserved/raw/d", name(XAttrSpace::Raw, "r"), b""));
    fs.ok(set("/d", name(XAttrSpace::User, "a"), b"new"));
    let full = refusal(&mut fs, root(), set("/d", name(XAttrSpace::User, "c"), b""));
    assert_eq!(full, "IOException: Cannot add additional XAttr to inode, would exceed limit of 2");
    let neither =
        SetXAttr { create: false, replace: false, ..set("/d", name(XAttrSpace::User, "a"), b"") };
    let want = "HadoopIllegalArgumentException: A flag must be specified.";
    assert_eq!(refusal(&mut fs, root(), neither), want);
    let remove = RemoveXAttr { path: "/d".into(), name: name(XAttrSpace::User, "none") };
    assert_eq!(said(&fs.err(remove)).1, "No matching attributes found for remove operation");
    let mut off = Fs::with(Settings { xattrs_enabled: false, ..Settings::default() });
    let text = "IOException: The XAttr operation has been rejected.  Support for XAttrs has been \
                disabled by setting dfs.namenode.xattrs.enabled to false.";
    assert_eq!(refusal(&mut off, root(), set("/", name(XAttrSpace::User, "a"), b"")), text);
}

#[test]
fn sticky_directories_are_marked_by_their_owners() {
    let mut fs = Fs::new();
    fs.mkdirs("/tmp");
    fs.ok(SetPermission { path: "/tmp".into(), mode: 0o1777 });
    let text = refusal(&mut fs, user("bob"), set("/tmp", name(XAttrSpace::User, "a"), b""));
    assert_eq!(
        text,
        "AccessControlException: Permission denied. user=bob is not the owner of inode=/tmp"
    );
    fs.ok(SetOwner { path: "/tmp".into(), owner: Some("bob".into()), group: None });
    fs.run(user("bob"), set("/tmp", name(XAttrSpace::User, "a"), b"")).unwrap();
}

#[test]
fn superusers_do_not_read_what_is_marked() {
    for policy in [None, Some("RS-3-2-1024k")] {
        let mut fs = Fs::new();
        fs.mkdirs("/d");
        if let Some(policy) = policy {
            fs.set_policy("/d", policy);
        }
        fs.write("/d/f", &[1]);
        let valued = refusal(&mut fs, root(), set("/d/f", mark(), b"v"));
        assert!(valued.contains("Values are not allowed for this xattr."), "{valued}");
        let on_directory = refusal(&mut fs, root(), set("/d", mark(), b""));
        let want = "IOException: Can only set 'security.hdfs.unreadable.by.superuser' on a file.";
        assert_eq!(on_directory, want);
        let read = |fs: &Fs, caller: &Caller| {
            query::get_blocks(&fs.store, caller, "/d/f", 0, 1, 0).map_err(|error| error.to_string())
        };
        read(&fs, &root()).unwrap();
        fs.ok(set("/d/f", mark(), b""));
        assert_eq!(
            read(&fs, &root()).unwrap_err(),
            "Access is denied for root since the superuser is not allowed to perform this operation."
        );
        read(&fs, &user("bob")).unwrap();
        read(&fs, &Caller::system()).unwrap();
        let error = fs.err(RemoveXAttr { path: "/d/f".into(), name: mark() });
        assert_eq!(
            error.to_string(),
            "The xattr 'security.hdfs.unreadable.by.superuser' can not be deleted."
        );
    }
}

#[test]
fn the_mark_is_missed_where_there_is_no_attribute_at_all() {
    let mut fs = Fs::new();
    let cannot = "AccessControlException: \
                  The xattr 'security.hdfs.unreadable.by.superuser' can not be deleted.";
    let none = "IOException: No matching attributes found for remove operation";
    for (path, told) in [("/plain", none), ("/ec", cannot), ("/cold", cannot)] {
        fs.mkdirs(path);
        match path {
            "/ec" => fs.set_policy(path, "RS-3-2-1024k"),
            "/cold" => {
                fs.ok(SetStoragePolicy { path: path.into(), policy: Some("COLD".into()) });
            }
            _ => {}
        }
        let (class, text) = said(&fs.err(RemoveXAttr { path: path.into(), name: mark() }));
        assert_eq!(format!("{class}: {text}"), told, "{path}");
    }
    // Of files they are not.
    fs.write("/ec/f", &[]);
    let (class, text) = said(&fs.err(RemoveXAttr { path: "/ec/f".into(), name: mark() }));
    assert_eq!(format!("{class}: {text}"), none);
}

#[test]
fn reserved_paths_lead_to_inodes() {
    let mut fs = Fs::new();
    fs.mkdirs("/d/s");
    let id = fs.write("/d/s/f", &[1]);
    let directory = fs.status("/d").unwrap().inode.id;
    let found = |path: &str| fs.status(path).map(|status| status.inode.id);
    assert_eq!(found(&format!("/.reserved/.inodes/{id}")), Some(id));
    assert_eq!(found(&format!("/.reserved/.inodes/{directory}/s/f")), Some(id));
    assert_eq!(found(&format!("/.reserved/.inodes/{directory}/..")), found("/"));
    assert_eq!(found("/.reserved/.inodes/16385"), found("/"));
    assert_eq!(found("/.reserved/raw/d/s/f"), Some(id));
    assert_eq!(found("/.reserved/raw"), found("/"));
    assert_eq!(found("/.reserved/.inodes"), None);
    let text = |path: &str| query::get_file_info(&fs.store, &root(), path).unwrap_err().to_string();
    assert_eq!(text("/.reserved/.inodes/x"), "Invalid inode path: /.reserved/.inodes/x");
    assert_eq!(
        text("/.reserved/.inodes/99999"),
        "File for given inode path does not exist: /.reserved/.inodes/99999"
    );
    let page = |after: &str| {
        query::get_listing(&fs.store, &root(), "/d", after.as_bytes(), 10).map(Option::unwrap)
    };
    let sub = fs.status("/d/s").unwrap().inode.id;
    assert!(page(&format!("/.reserved/.inodes/{sub}")).unwrap().entries.is_empty());
    let gone = page("/.reserved/.inodes/7").unwrap_err();
    assert_eq!(said(&gone).0, "DirectoryListingStartAfterNotFoundException");
    let make = |path: &str| Mkdirs { path: path.into(), mode: 0o755.into(), create_parent: true };
    let (class, text) = said(&fs.err(make("/.reserved/x")));
    assert_eq!(class, "HadoopIllegalArgumentException");
    assert!(text.starts_with("File name \".reserved\" is reserved and cannot be created."));
    fs.ok(make(&format!("/.reserved/.inodes/{directory}/new")));
    fs.ok(create(&format!("/.reserved/.inodes/{directory}/g")));
    fs.ok(create("/.reserved/raw/d/h"));
    assert_eq!(fs.names("/d"), ["g", "h", "new", "s"]);
    assert_eq!(said(&fs.err(create("/.reserved/x"))).1, "Invalid path name /.reserved/x");
    let mode = SetPermission { path: "/.reserved".into(), mode: 0o700 };
    assert_eq!(said(&fs.err(mode)).0, "InvalidPathException");
}

/// Whoever may not change anything below `/.reserved/raw` is told so, whatever is there; names and exceptions are those
/// that the path stands for.
#[test]
fn only_superusers_change_what_they_name_by_a_raw_path() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(SetPermission { path: "/d".into(), mode: 0o777 });
    let raw = || "/.reserved//raw/d/none".to_string();
    let commands: [(Command, &str); 8] = [
        (SetPermission { path: raw(), mode: 0o777 }.into(), "setPermission"),
        (Rename { src: raw(), dst: "/d/x".into() }.into(), "rename"),
        (Mkdirs { path: raw(), mode: 0o755.into(), create_parent: true }.into(), "mkdirs"),
        (complete("/.reserved/raw/d/none", None).into(), "completeFile"),
        (SetStoragePolicy { path: raw(), policy: None }.into(), "unsetStoragePolicy"),
        (SetStoragePolicy { path: raw(), policy: Some("HOT".into()) }.into(), "setStoragePolicy"),
        (ChangeAcl { path: raw(), change: AclChange::RemoveAll }.into(), "removeAcl"),
        (SetEcPolicy { path: raw(), policy: None }.into(), "setErasureCodingPolicy"),
    ];
    for (command, operation) in commands {
        // A name with two slashes may not be made.
        let made = operation == "mkdirs";
        let want = match made {
            true => "Invalid path name Invalid file name: /.reserved//raw/d/none".to_string(),
            false => format!(
                "Access denied for user bob. Superuser privilege is required for operation {operation}"
            ),
        };
        assert_eq!(said(&fs.run(user("bob"), command).unwrap_err()).1, want);
    }
    let missing = SetPermission { path: raw(), mode: 0o777 };
    assert_eq!(said(&fs.err(missing)).1, "Directory/File does not exist /d/none");
    let nowhere = RenameTo {
        src: "/d".into(),
        dst: "/.reserved/raw/.reserved/x".into(),
        overwrite: false,
        to_trash: false,
    };
    let text = "rename destination parent /.reserved/x not found.";
    assert_eq!(said(&fs.err(nowhere)).1, text);
}

/// Snapshots are allowed by names only: reserved ones are names like others there.
#[test]
fn a_directory_is_made_snapshottable_by_its_own_name() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    let id = fs.status("/d").unwrap().inode.id.0;
    for path in [format!("/.reserved/.inodes/{id}"), "/.reserved/raw/d".to_string()] {
        let refused = said(&fs.err(AllowSnapshot { path: path.clone() })).1;
        assert_eq!(refused, format!("Directory does not exist: {path}"));
    }
    fs.ok(AllowSnapshot { path: "/d".into() });
    fs.mkdirs(&format!("/.reserved/.inodes/{id}/../e"));
    assert_eq!(fs.names("/"), ["d"], "what follows the directory above is not looked at");
}
