//! What commands tell those who watch the tree.

use crate::support::{Fs, create, root, user};
use cairn_namespace::encryption::FileKey;
use cairn_namespace::events::{self, Event, MetadataChange};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::{Create, CreateEncrypted};
use cairn_namespace::ops::delete::Delete;
use cairn_namespace::ops::encryption::{
    AdvanceReencryption, CreateEncryptionZone, ReencryptEncryptionZone, RenewedKey,
};
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::set_owner::SetOwner;
use cairn_namespace::ops::set_replication::SetReplication;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot};
use cairn_namespace::store::StoreTxn;
use cairn_namespace::{Applied, Caller, Command, Entry, evaluate, query};

/// Runs a command and says what it tells.
fn told(fs: &mut Fs, caller: Caller, command: impl Into<Command>) -> Vec<String> {
    fs.now_ms += 1;
    let entry = Entry {
        now_ms: fs.now_ms,
        elapsed_ms: fs.now_ms,
        caller,
        call: None,
        command: command.into(),
    };
    let Applied { answer, changes, .. } = evaluate(&fs.store, &entry).unwrap();
    let events = events::of(&fs.store, &changes, &entry, &answer).unwrap();
    changes.write_to(&mut fs.store as &mut dyn StoreTxn).unwrap();
    events.iter().map(text).collect()
}

fn text(event: &Event) -> String {
    match event {
        Event::Create { path, inode, overwrite } => {
            let (kind, owner) = (Event::is_striped(inode).is_some(), &inode.owner);
            let kind = if kind { "file" } else { "directory" };
            format!("create {kind} {path} {owner} overwrite {overwrite}")
        }
        Event::Close { path, len, .. } => format!("close {path} {len:?}"),
        Event::Append { path, new_block } => format!("append {path} {new_block}"),
        Event::Rename { from, to, .. } => format!("rename {from} to {to}"),
        Event::Unlink { path, .. } => format!("unlink {path}"),
        Event::Truncate { path, len, .. } => format!("truncate {path} {len}"),
        Event::Metadata { path, change: MetadataChange::Owner { owner, .. } } => {
            format!("owner of {path} {owner:?}")
        }
        Event::Metadata { path, change } => format!("metadata of {path} {change:?}"),
    }
}

#[test]
fn what_is_made_moved_and_removed_is_told_with_real_paths() {
    let mut fs = Fs::new();
    let made = told(
        &mut fs,
        root(),
        Mkdirs { path: "/a/b".into(), mode: 0o777.into(), create_parent: true },
    );
    assert_eq!(
        made,
        ["create directory /a root overwrite false", "create directory /a/b root overwrite false"]
    );
    fs.ok(cairn_namespace::ops::set_permission::SetPermission { path: "/a".into(), mode: 0o777 });
    let made = told(&mut fs, user("bob"), create("/a/c/f"));
    assert_eq!(
        made,
        ["create directory /a/c bob overwrite false", "create file /a/c/f bob overwrite false"]
    );
    fs.complete("/a/c/f", None);
    let again = Create { overwrite: true, holder: "other".into(), ..create("/a/c/f") };
    assert_eq!(told(&mut fs, root(), again), ["create file /a/c/f root overwrite true"]);
    let moved = told(&mut fs, root(), Rename { src: "/a/c/f".into(), dst: "/a/b".into() });
    assert_eq!(moved, ["rename /a/c/f to /a/b/f"], "into the directory");
    let id = fs.status("/a/b").unwrap().inode.id;
    let reserved = format!("/.reserved/.inodes/{}", id.0);
    let owner = SetOwner { path: reserved.clone(), owner: Some("ann".into()), group: None };
    assert_eq!(told(&mut fs, root(), owner), ["owner of /a/b Some(\"ann\")"]);
    let (src, dst) = (format!("{reserved}/f"), "/g".to_string());
    let rename = RenameTo { src, dst, overwrite: false, to_trash: false };
    assert_eq!(told(&mut fs, root(), rename), ["rename /a/b/f to /g"]);
    let none = Delete { path: "/none".into(), recursive: true };
    assert_eq!(told(&mut fs, root(), none), Vec::<String>::new());
    let tree = Delete { path: "/a".into(), recursive: true };
    assert_eq!(told(&mut fs, root(), tree), ["unlink /a"]);
}

#[test]
fn files_are_told_to_open_and_close() {
    let mut fs = Fs::new();
    fs.write("/f", &[10]);
    fs.write("/g", &[5]);
    let append = Append {
        path: "/f".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: true,
        replicas: LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: true,
            last_has_locations: true,
            seen: None,
        },
    };
    assert_eq!(told(&mut fs, root(), append), ["append /f true"]);
    let complete = crate::support::complete("/f", None);
    assert_eq!(told(&mut fs, root(), complete), ["close /f Some(10)"]);
    let concat = Concat { target: "/f".into(), sources: vec!["/g".into()] };
    assert_eq!(told(&mut fs, root(), concat), ["append /f false", "unlink /g", "close /f None"]);
}

#[test]
fn keys_that_are_encrypted_anew_are_told_of_when_that_is_asked_for() {
    let mut fs = Fs::new();
    fs.mkdirs("/z");
    fs.ok(CreateEncryptionZone { path: "/z".into(), key_name: "k".into(), suite: 2 });
    let key = |key_version: &str| FileKey {
        key: vec![1; 16],
        iv: vec![2; 16],
        key_version: key_version.into(),
    };
    let create = create("/z/f").into();
    fs.ok(CreateEncrypted { create, key_name: "k".into(), key: key("k@0") });
    fs.complete("/z/f", None);
    let start = ReencryptEncryptionZone { path: "/z".into(), key_version: Some("k@1".into()) };
    assert_eq!(told(&mut fs, root(), start).len(), 1);
    let id = |fs: &Fs, path: &str| fs.status(path).unwrap().inode.id;
    let renewed = RenewedKey { file: id(&fs, "/z/f"), old: key("k@0"), new: key("k@1") };
    let advance = AdvanceReencryption {
        zone: id(&fs, "/z"),
        submitted_ms: fs.now_ms,
        files: vec![renewed],
        failed: 0,
        is_last: true,
    };
    assert_eq!(told(&mut fs, root(), advance), Vec::<String>::new());
    let placed = query::zone_of_path(&fs.store, &root(), "/z").unwrap().unwrap();
    assert_eq!(placed.zone.reencryption.unwrap().done, 1);
}

#[test]
fn what_snapshots_keep_with_fewer_copies_is_told_like_anything_else() {
    let mut fs = Fs::new();
    for path in ["/d/f", "/d/g"] {
        fs.write(path, &[5]);
    }
    fs.ok(AllowSnapshot { path: "/d".into() });
    fs.ok(CreateSnapshot { path: "/d".into(), name: "s".into() });
    for path in ["/d/f", "/d/g"] {
        fs.ok(SetReplication { path: path.into(), replication: 5 });
    }
    let delete = Delete { path: "/d/f".into(), recursive: false };
    assert_eq!(told(&mut fs, root(), delete), ["unlink /d/f"]);
    let over = Create { overwrite: true, ..create("/d/g") };
    assert_eq!(told(&mut fs, root(), over), ["create file /d/g root overwrite true"]);
}
