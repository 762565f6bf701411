//! Access control lists.

use crate::support::{Fs, create, root, said, user};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope, CreateMode};
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_permission::SetPermission;
use cairn_namespace::perm::Access;
use cairn_namespace::{Settings, query};

/// Entries as in `setfacl`: `default:user:bob:rwx,group::r-x`.
fn spec(text: &str) -> Vec<AclEntry> {
    let entry = |text: &str| {
        let (scope, text) = match text.strip_prefix("default:") {
            Some(rest) => (AclScope::Default, rest),
            None => (AclScope::Access, text),
        };
        let [kind, name, bits] = text.split(':').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let kind = match kind {
            "user" => AclKind::User,
            "group" => AclKind::Group,
            "mask" => AclKind::Mask,
            _ => AclKind::Other,
        };
        let permission = bits.chars().fold(0, |sum, bit| sum << 1 | u16::from(bit != '-'));
        let name = (!name.is_empty()).then(|| name.to_string());
        AclEntry { scope, kind, name, permission }
    };
    text.split(',').filter(|text| !text.is_empty()).map(entry).collect()
}

fn change(path: &str, change: AclChange) -> ChangeAcl {
    ChangeAcl { path: path.into(), change }
}

fn set(path: &str, text: &str) -> ChangeAcl {
    change(path, AclChange::Set { entries: spec(text) })
}

fn modify(path: &str, text: &str) -> ChangeAcl {
    change(path, AclChange::Modify { entries: spec(text) })
}

fn remove(path: &str, text: &str) -> ChangeAcl {
    change(path, AclChange::Remove { entries: spec(text) })
}

/// Mode in octal, and the entries beside it.
fn kept(fs: &Fs, path: &str) -> String {
    let status = query::get_acl_status(&fs.store, &root(), path).unwrap();
    let entries: Vec<_> = status.entries.iter().map(ToString::to_string).collect();
    format!("{:o} {}", status.mode.unwrap_or_default(), entries.join(","))
}

fn refused(fs: &mut Fs, command: ChangeAcl) -> String {
    let (class, text) = said(&fs.err(command));
    assert_eq!(class, "AclException");
    text
}

#[test]
fn lists_change_as_in_hadoop() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(SetPermission { path: "/d".into(), mode: 0o1750 });
    fs.ok(modify("/d", "user:bob:rw-,group:ops:--x"));
    assert_eq!(kept(&fs, "/d"), "1770 user:bob:rw-,group::r-x,group:ops:--x");
    // A mask that is given stays until something else of its scope changes.
    fs.ok(modify("/d", "mask::r--"));
    assert_eq!(kept(&fs, "/d"), "1740 user:bob:rw-,group::r-x,group:ops:--x");
    fs.ok(modify("/d", "default:user:eve:rwx"));
    let all = "user:bob:rw-,group::r-x,group:ops:--x,default:user::rwx,default:user:eve:rwx,\
               default:group::r-x,default:mask::rwx,default:other::---";
    // The logical list has a mask in the owning group's place, so that a default entry gets the group's.
    assert_eq!(kept(&fs, "/d"), format!("1740 {all}"));
    fs.ok(remove("/d", "group:ops:---"));
    let rest = all.replace(",group:ops:--x", "");
    assert_eq!(kept(&fs, "/d"), format!("1770 {rest}"));
    fs.ok(change("/d", AclChange::RemoveDefault));
    assert_eq!(kept(&fs, "/d"), "1770 user:bob:rw-,group::r-x");
    fs.ok(change("/d", AclChange::RemoveAll));
    assert_eq!(kept(&fs, "/d"), "1750 ");
    fs.ok(set("/d", "user::rwx,user:bob:r--,group::r--,other::r--,default:group:ops:r-x"));
    let want = "1744 user:bob:r--,group::r--,default:user::rwx,default:group::r--,\
                default:group:ops:r-x,default:mask::r-x,default:other::r--";
    assert_eq!(kept(&fs, "/d"), want);
    fs.ok(set("/d", "user::rwx,group::r-x,other::---"));
    assert!(kept(&fs, "/d").starts_with("1750 default:user::rwx"), "{}", kept(&fs, "/d"));
    fs.ok(set("/d", ""));
    assert_eq!(kept(&fs, "/d"), "1750 ");
    fs.ok(modify("/d", "user:bob:rwx"));
    fs.ok(set("/d", "user::rw-,group::r--,other::---"));
    assert_eq!(kept(&fs, "/d"), "1640 ");
}

#[test]
fn lists_that_cannot_be_are_refused() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.write("/f", &[]);
    let twice = "Invalid ACL: multiple entries with same scope, type and name. Path: /d";
    assert_eq!(refused(&mut fs, modify("/d", "user:a:r--,user:a:rw-")), twice);
    let named = "Invalid ACL: this entry type must not have a name: mask:m:rwx. Path: /d";
    // A named mask is put aside as the scope's mask and then found to have a name.
    assert_eq!(refused(&mut fs, modify("/d", "user:a:r--,mask:m:rwx")), named);
    let other = "Invalid ACL: this entry type must not have a name: other:o:r-x. Path: /d";
    assert_eq!(refused(&mut fs, modify("/d", "other:o:r-x")), other);
    let needed = "Invalid ACL: the user, group and other entries are required. Path: /d";
    assert_eq!(refused(&mut fs, set("/d", "user:a:r--")), needed);
    assert_eq!(refused(&mut fs, remove("/d", "user::r--")), needed);
    let default = "Invalid ACL: only directories may have a default ACL. Path: /f Path: /f";
    assert_eq!(refused(&mut fs, modify("/f", "default:user:a:r--")), default);
    fs.ok(modify("/d", "user:a:r--"));
    let mask = "Invalid ACL: mask is required and cannot be deleted. Path: /d";
    assert_eq!(refused(&mut fs, remove("/d", "mask::r--")), mask);
    let many = |count: usize, scope: &str| {
        (0..count).map(|n| format!("{scope}user:u{n}:r--")).collect::<Vec<_>>().join(",")
    };
    assert_eq!(
        refused(&mut fs, modify("/d", &many(33, ""))),
        "Invalid ACL: ACL has 33 access entries, which exceeds maximum of 32. Path: /d"
    );
    // Three and the mask are counted, too.
    fs.mkdirs("/e");
    assert_eq!(
        refused(&mut fs, modify("/e", &many(29, "default:"))),
        "Invalid ACL: ACL has 33 default entries, which exceeds maximum of 32. Path: /e"
    );
    fs.ok(modify("/e", &many(28, "")));
    fs.ok(modify("/e", &many(28, "default:")));
    assert_eq!(fs.status("/e").unwrap().inode.acl.len(), 28 + 1 + 32);
    let (class, text) = said(&fs.err(modify("/none", "user:a:r--")));
    assert_eq!(
        (class.as_str(), text.as_str()),
        ("FileNotFoundException", "Directory/File does not exist /none")
    );
}

#[test]
fn only_owners_change_lists_and_only_where_lists_are_on() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(SetOwner { path: "/d".into(), owner: Some("ada".into()), group: None });
    let error = fs.run(user("bob"), modify("/d", "user:bob:rwx")).unwrap_err();
    assert_eq!(error.to_string(), "Permission denied. user=bob is not the owner of inode=/d");
    fs.run(user("ada"), modify("/d", "user:bob:rwx")).unwrap();
    let mut off = Fs::with(Settings { acls_enabled: false, ..Settings::default() });
    let text = "The ACL operation has been rejected.  Support for ACLs has been disabled by setting \
                dfs.namenode.acls.enabled to false.";
    assert_eq!(refused(&mut off, set("/", "")), text);
    assert_eq!(query::get_acl_status(&off.store, &root(), "/").unwrap_err().to_string(), text);
}

/// What an operation of these users on `/d` is answered: the rights they have.
#[track_caller]
fn assert_rights(fs: &Fs, rights: &[(&str, &[&str], u32)]) {
    for (name, groups, want) in rights {
        let mut caller = user(name);
        caller.groups.extend(groups.iter().map(ToString::to_string));
        let has =
            |bits| query::check_access(&fs.store, &caller, "/d", Access::from_bits(bits)).is_ok();
        let found = [4, 2, 1].into_iter().filter(|bit| has(*bit)).sum::<u32>();
        assert_eq!(found, *want, "{name} {groups:?}");
    }
}

#[test]
fn rights_follow_the_list_and_its_mask() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(SetOwner { path: "/d".into(), owner: Some("ada".into()), group: Some("staff".into()) });
    let list = "user::r-x,user:bob:rw-,user:none:---,group::r--,group:ops:-wx,other::rwx";
    fs.ok(set("/d", list));
    let rights = |mask: u32| {
        [
            ("ada", &["ops"][..], 5),
            ("bob", &["ops", "staff"], 6 & mask),
            ("none", &["ops", "staff"], 0),
            ("eve", &["staff"], 4 & mask),
            ("eve", &["ops"], 3 & mask),
            ("eve", &["ops", "staff"], 7 & mask),
            ("eve", &[], 7),
        ]
    };
    assert_rights(&fs, &rights(7));
    // No single group grants reading and writing together, so that nobody has both by groups.
    let mut eve = user("eve");
    eve.groups = vec!["ops".into(), "staff".into()];
    let error = query::check_access(&fs.store, &eve, "/d", Access::ALL).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Permission denied: user=eve, access=ALL, inode=\"/d\":ada:staff:dr-xrwxrwx"
    );
    fs.ok(SetPermission { path: "/d".into(), mode: 0o547 });
    assert_rights(&fs, &rights(4));
    fs.ok(change("/d", AclChange::RemoveAll));
    assert_rights(&fs, &[("bob", &[], 7), ("eve", &["staff"], 4)]);
    // A default list alone decides nothing.
    fs.ok(modify("/d", "default:user:bob:---"));
    assert_rights(&fs, &[("bob", &[], 7)]);
}

fn make_dir(path: &str, masked: u16, unmasked: Option<u16>) -> Mkdirs {
    Mkdirs { path: path.into(), mode: CreateMode { masked, unmasked }, create_parent: true }
}

#[test]
fn children_inherit_default_lists() {
    for policy in [None, Some("RS-3-2-1024k")] {
        let mut fs = Fs::new();
        fs.mkdirs("/d");
        if let Some(policy) = policy {
            fs.set_policy("/d", policy);
        }
        let default = "default:user::rwx,default:user:bob:rwx,default:group::r-x,default:mask::rwx,\
                       default:other::r-x";
        fs.ok(modify("/d", default));
        let mode = CreateMode { masked: 0o644, unmasked: Some(0o666) };
        fs.ok(Create { mode, ..create("/d/new") });
        assert_eq!(kept(&fs, "/d/new"), "664 user:bob:rwx,group::r-x");
        fs.ok(Create { mode: 0o644.into(), ..create("/d/old") });
        assert_eq!(kept(&fs, "/d/old"), "644 user:bob:rwx,group::r-x");
        fs.ok(make_dir("/d/a/b", 0o1755, Some(0o1777)));
        let both = format!("user:bob:rwx,group::r-x,{default}");
        assert_eq!(kept(&fs, "/d/a/b"), format!("1775 {both}"));
        assert_eq!(kept(&fs, "/d/a"), format!("1775 {both}"));
        fs.ok(Create { mode, ..create("/d/x/y/f") });
        assert_eq!(kept(&fs, "/d/x"), format!("755 {both}"));
        assert_eq!(kept(&fs, "/d/x/y/f"), "664 user:bob:rwx,group::r-x");
        assert!(fs.status("/d/new").unwrap().policy.is_some() == policy.is_some());
        fs.delete("/d/x");
    }
}

#[test]
fn a_minimal_default_list_is_masked_by_the_mode() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.ok(modify("/d", "default:user::rwx,default:group::rwx,default:other::---"));
    fs.ok(Create { mode: 0o640.into(), ..create("/d/f") });
    assert_eq!(kept(&fs, "/d/f"), "640 ");
    fs.ok(make_dir("/d/s", 0o755, None));
    let list = "default:user::rwx,default:group::rwx,default:other::---";
    assert_eq!(kept(&fs, "/d/s"), format!("750 {list}"));
    let mut old = Fs::with(Settings { posix_acl_inheritance: false, ..Settings::default() });
    old.mkdirs("/d");
    old.ok(modify("/d", "default:user:bob:rwx"));
    old.ok(make_dir("/d/s", 0o700, Some(0o777)));
    assert!(kept(&old, "/d/s").starts_with("700 user:bob:rwx,"), "{}", kept(&old, "/d/s"));
}

#[test]
fn sticky_directories_below_stop_a_recursive_delete() {
    let mut fs = Fs::new();
    fs.ok(SetPermission { path: "/".into(), mode: 0o777 });
    fs.run(user("bob"), make_dir("/d/s", 0o777, None)).unwrap();
    fs.ok(SetOwner { path: "/d/s".into(), owner: Some("eve".into()), group: None });
    fs.ok(SetPermission { path: "/d/s".into(), mode: 0o1777 });
    fs.write("/d/s/f", &[]);
    let delete = Delete { path: "/d".into(), recursive: true };
    let error = fs.run(user("bob"), delete.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Permission denied by sticky bit: user=bob, path=\"/d/s/f\":root:supergroup:-rw-r--r--, \
         parent=\"/d/s\":bob:supergroup:drwxrwxrwx"
    );
    fs.ok(SetOwner { path: "/d/s/f".into(), owner: Some("bob".into()), group: None });
    fs.run(user("bob"), delete).unwrap();
}
