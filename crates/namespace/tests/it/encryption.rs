//! Encryption zones: where they may be, keys of files, what may not leave, and keys encrypted anew.

use crate::support::{Fs, create, page, root, said, user};
use cairn_namespace::encryption::{Encryption, FileEncryption, FileKey, PlacedZone, Walk};
use cairn_namespace::ops::append::Append;
use cairn_namespace::ops::concat::Concat;
use cairn_namespace::ops::create::{Create, CreateEncrypted};
use cairn_namespace::ops::delete::Purge;
use cairn_namespace::ops::encryption::{
    AdvanceReencryption, CreateEncryptionZone, ReencryptEncryptionZone, RenewedKey,
};
use cairn_namespace::ops::lease::LastBlocks;
use cairn_namespace::ops::rename::{Rename, RenameTo};
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot};
use cairn_namespace::ops::xattr::{RemoveXAttr, SetXAttr, XAttrName, XAttrSpace};
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{CallId, Command, InodeId, NamespaceError, Outcome, Settings, query};

const AES: u32 = 2;

fn zone(path: &str, key: &str) -> CreateEncryptionZone {
    CreateEncryptionZone { path: path.into(), key_name: key.into(), suite: AES }
}

fn key(number: u8, version: &str) -> FileKey {
    FileKey { key: vec![number; 16], iv: vec![number ^ 0xff; 16], key_version: version.into() }
}

fn encrypted(path: &str, name: &str, key: FileKey) -> CreateEncrypted {
    CreateEncrypted { create: create(path).into(), key_name: name.into(), key }
}

fn raw(name: &str) -> XAttrName {
    XAttrName { space: XAttrSpace::Raw, name: name.into() }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, NamespaceError>) -> String {
    let error = result.unwrap_err();
    format!("{}: {}", said(&error).0, said(&error).1)
}

trait Zones {
    fn zone(&mut self, path: &str, key: &str);
    /// A closed file with a key.
    fn secret(&mut self, path: &str, name: &str, key: FileKey) -> InodeId;
    fn zones(&self) -> Vec<String>;
    fn encryption(&self, path: &str) -> Encryption;
    fn refused(&mut self, command: impl Into<Command>) -> String;
    fn progress(&self, path: &str) -> (i64, i64, bool, bool);
}

impl Zones for Fs {
    fn zone(&mut self, path: &str, key: &str) {
        self.mkdirs(path);
        assert_eq!(self.ok(zone(path, key)), Outcome::Done);
    }

    fn secret(&mut self, path: &str, name: &str, key: FileKey) -> InodeId {
        let outcome = self.ok(encrypted(path, name, key));
        let Outcome::Created { status, .. } = outcome else { panic!("{outcome:?}") };
        self.complete(path, None);
        status.inode.id
    }

    fn zones(&self) -> Vec<String> {
        let (zones, more) = query::zones(&self.store, InodeId::NONE, usize::MAX).unwrap();
        assert!(!more);
        zones.into_iter().map(|placed| placed.path).collect()
    }

    fn encryption(&self, path: &str) -> Encryption {
        self.status(path).unwrap().encryption
    }

    fn refused(&mut self, command: impl Into<Command>) -> String {
        refusal(self.run(root(), command))
    }

    /// Done, failed, cancelled, running.
    fn progress(&self, path: &str) -> (i64, i64, bool, bool) {
        let placed = query::zone_of_path(&self.store, &root(), path).unwrap().unwrap();
        let it = placed.zone.reencryption.unwrap();
        (it.done, it.failed, it.cancelled, it.is_running())
    }
}

fn file_of(key: FileKey) -> Encryption {
    Encryption::File(Box::new(FileEncryption {
        suite: AES as i32,
        protocol_version: 2,
        key_name: "k".into(),
        key,
    }))
}

#[test]
fn zones_are_empty_directories() {
    let mut fs = Fs::new();
    fs.write("/f", &[1]);
    fs.mkdirs("/full/d");
    fs.zone("/z", "k");
    for (path, want) in [
        ("/f", "IOException: Attempt to create an encryption zone for a file."),
        ("/full", "IOException: Attempt to create an encryption zone for a non-empty directory."),
        ("/z", "IOException: Directory /z is already an encryption zone."),
        ("/none", "FileNotFoundException: cannot find /none"),
    ] {
        assert_eq!(fs.refused(zone(path, "k")), want);
    }
    fs.zone("/z/inner", "other");
    assert_eq!(fs.zones(), ["/z", "/z/inner"]);
    let of = |path: &str| -> Option<PlacedZone> {
        query::zone_of_path(&fs.store, &root(), path).unwrap()
    };
    assert_eq!(of("/z/none/at/all").unwrap().path, "/z");
    assert_eq!(of("/z/inner").unwrap().zone.key_name, "other");
    assert_eq!(of("/full/d"), None);
    let (first, more) = query::zones(&fs.store, InodeId::NONE, 1).unwrap();
    let (second, no_more) = query::zones(&fs.store, first[0].root, 1).unwrap();
    assert_eq!((&*second[0].path, more, no_more), ("/z/inner", true, false));
    fs.delete("/z");
    assert_eq!(fs.zones(), [""; 0]);
    fs.ok(Purge { limit: 1000 });
    let mut left = 0;
    let count = &mut |_: &[u8], _: &[u8]| {
        left += 1;
        std::ops::ControlFlow::Continue(())
    };
    fs.store.scan(Table::EncryptionZone, &[], &[], count).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn files_in_zones_have_keys_of_them() {
    for policy in [None, Some("RS-3-2-1024k")] {
        let mut fs = Fs::new();
        fs.zone("/z", "k");
        if let Some(policy) = policy {
            fs.set_policy("/z", policy);
        }
        let retry = "RetryStartFileException: The file is in an encryption zone and needs a key of \
                     it; try again";
        assert_eq!(fs.refused(create("/z/f")), retry);
        assert_eq!(fs.refused(encrypted("/z/f", "other", key(1, "other@0"))), retry);
        fs.secret("/z/d/f", "k", key(1, "k@0"));
        fs.mkdirs("/z/empty");
        fs.secret("/plain", "k", key(2, "k@0"));
        assert_eq!(fs.encryption("/z/d/f"), file_of(key(1, "k@0")));
        assert_eq!(fs.encryption("/.reserved/raw/z/d/f"), Encryption::Inside);
        assert_eq!(fs.encryption("/z"), Encryption::Inside);
        assert_eq!(fs.encryption("/plain"), Encryption::None);
        for path in ["/z", "/z/d", "/", "/.reserved/raw/z/d"] {
            page(&fs.store, path, b"", 1);
        }
        // Seen as it is stored, it is made without a key, and gets one as an attribute.
        let copy = create("/.reserved/raw/z/copy");
        fs.ok(Create { ..copy });
        fs.complete("/z/copy", None);
        assert_eq!(fs.encryption("/z/copy"), Encryption::Inside);
        let name = raw("hdfs.crypto.file.encryption.info");
        let names = [name.clone()];
        let found = query::get_xattrs(&fs.store, &root(), "/.reserved/raw/z/d/f", &names).unwrap();
        let value = found[0].1.clone();
        let path = "/.reserved/raw/z/copy".to_string();
        fs.ok(SetXAttr { path, name, value, create: true, replace: false });
        assert_eq!(fs.encryption("/z/copy"), file_of(key(1, "k@0")));
    }
}

#[test]
fn a_call_that_comes_again_gets_the_same_key() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    let call = Some(CallId { client_id: [1; 16], call_id: 1 });
    let first = fs.submit(root(), call, encrypted("/z/f", "k", key(1, "k@0")).into()).unwrap();
    let again = fs.submit(root(), call, encrypted("/z/f", "k", key(2, "k@0")).into()).unwrap();
    assert_eq!(first, again);
    let Outcome::Created { status, .. } = again else { panic!("{again:?}") };
    assert_eq!(status.encryption, file_of(key(1, "k@0")));
}

#[test]
fn an_append_tells_the_key() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    fs.secret("/z/f", "k", key(1, "k@0"));
    let outcome = fs.ok(Append {
        path: "/z/f".into(),
        holder: "client".into(),
        client_machine: "host".into(),
        new_block: false,
        replicas: LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: true,
            last_has_locations: true,
            seen: None,
        },
    });
    let Outcome::Appended { status, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(status.encryption, file_of(key(1, "k@0")));
}

#[test]
fn snapshots_keep_zones_and_keys() {
    let mut fs = Fs::new();
    fs.mkdirs("/s");
    fs.ok(AllowSnapshot { path: "/s".into() });
    fs.ok(CreateSnapshot { path: "/s".into(), name: "before".into() });
    fs.zone("/s/z", "k");
    let file = fs.secret("/s/z/f", "k", key(1, "k@0"));
    fs.ok(CreateSnapshot { path: "/s".into(), name: "with".into() });
    fs.ok(ReencryptEncryptionZone { path: "/s/z".into(), key_version: Some("k@1".into()) });
    let submitted_ms = fs.now_ms;
    let root_id = fs.status("/s/z").unwrap().inode.id;
    let files = vec![RenewedKey { file, old: key(1, "k@0"), new: key(2, "k@1") }];
    let last = AdvanceReencryption { zone: root_id, submitted_ms, files, failed: 0, is_last: true };
    fs.ok(last);
    assert_eq!(fs.encryption("/s/z/f"), file_of(key(2, "k@1")));
    assert_eq!(fs.encryption("/s/.snapshot/with/z/f"), file_of(key(1, "k@0")));
    fs.delete("/s/z");
    fs.ok(Purge { limit: 1000 });
    assert_eq!(fs.encryption("/s/.snapshot/with/z/f"), file_of(key(1, "k@0")));
    let past = "/s/.snapshot/with/z/f";
    let placed = query::zone_of_path(&fs.store, &root(), past).unwrap().unwrap();
    assert_eq!((placed.root, &*placed.zone.key_name, &*placed.path), (root_id, "k", "/s/z"));
    assert_eq!(fs.zones(), [""; 0]);
    page(&fs.store, "/s/.snapshot/with/z", b"", 10);
}

#[test]
fn nothing_is_moved_over_the_border() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    fs.zone("/y", "k");
    fs.secret("/z/f", "k", key(1, "k@0"));
    fs.write("/plain", &[1]);
    let denied = |from: &str, why: &str| format!("IOException: {from} can't be moved {why}");
    for (src, dst, why) in [
        ("/z/f", "/out", "from an encryption zone."),
        ("/plain", "/z/in", "into an encryption zone."),
        ("/z/f", "/y/f", "from encryption zone /z to encryption zone /y."),
    ] {
        let (from, to) = (src.to_string(), dst.to_string());
        assert_eq!(fs.refused(Rename { src: from, dst: to }), denied(src, why));
        let (from, to) = (src.to_string(), dst.to_string());
        let options = RenameTo { src: from, dst: to, overwrite: true, to_trash: false };
        assert_eq!(fs.refused(options), denied(src, why));
    }
    fs.ok(Rename { src: "/z/f".into(), dst: "/z/g".into() });
    fs.ok(Rename { src: "/z".into(), dst: "/moved".into() });
    assert_eq!(fs.zones(), ["/moved", "/y"]);
    fs.ok(ReencryptEncryptionZone { path: "/moved".into(), key_version: Some("k@1".into()) });
    let within = Rename { src: "/moved/g".into(), dst: "/moved/h".into() };
    let why = "because encryption zone /moved is currently under re-encryption";
    assert_eq!(fs.refused(within), denied("/moved/g", why));
    fs.secret("/y/a", "k", key(1, "k@0"));
    fs.secret("/y/b", "k", key(2, "k@0"));
    let text = "HadoopIllegalArgumentException: concat can not be called for files in an encryption \
                zone.";
    let concat = Concat { target: "/y/a".into(), sources: vec!["/y/b".into()] };
    assert_eq!(fs.refused(concat), text);
}

#[test]
fn the_attribute_is_the_zone() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    fs.mkdirs("/copy");
    let name = raw("hdfs.crypto.encryption.zone");
    let path = "/.reserved/raw/z";
    let found = query::get_xattrs(&fs.store, &root(), path, std::slice::from_ref(&name)).unwrap();
    // Suite, version, name, as Hadoop encodes them.
    assert_eq!(found[0].1, [8, 2, 16, 2, 26, 1, b'k']);
    let value = found[0].1.clone();
    let set = |value| {
        let (path, name) = ("/.reserved/raw/copy".to_string(), name.clone());
        SetXAttr { path, name, value, create: true, replace: true }
    };
    assert!(fs.refused(set(vec![26, 9])).starts_with("IOException"));
    fs.ok(set(value.clone()));
    // A file is no zone.
    fs.write("/file", &[]);
    fs.ok(SetXAttr { path: "/.reserved/raw/file".into(), ..set(value) });
    assert_eq!(fs.zones(), ["/z", "/copy"]);
    fs.secret("/copy/f", "k", key(1, "k@0"));
    // Logs of older builds may have any value.
    let mut past = Fs::with(Settings { rules: 1, ..Settings::default() });
    past.mkdirs("/copy");
    past.ok(set(vec![26, 9]));
    assert_eq!(past.zones(), [""; 0]);
    let remove = RemoveXAttr { path: path.into(), name };
    let never = "IllegalArgumentException: The encryption zone xattr should never be deleted.";
    assert_eq!(fs.refused(remove), never);
}

#[test]
fn keys_are_encrypted_anew_as_long_as_it_is_meant() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    let files: Vec<_> = (0..4).map(|n| fs.secret(&format!("/z/{n}"), "k", key(n, "k@0"))).collect();
    let start = || ReencryptEncryptionZone { path: "/z".into(), key_version: Some("k@1".into()) };
    let cancel = || ReencryptEncryptionZone { path: "/z".into(), key_version: None };
    let idle = "IOException: Zone /z is not under re-encryption";
    assert_eq!(fs.refused(cancel()), idle);
    let no_zone = ReencryptEncryptionZone { path: "/z/0".into(), key_version: None };
    let text = "IOException: Path /z/0 is not the root of an encryption zone.";
    assert_eq!(fs.refused(no_zone), text);
    let missing = ReencryptEncryptionZone { path: "/none".into(), key_version: None };
    assert_eq!(fs.refused(missing), "FileNotFoundException: /none does not exist.");
    fs.ok(start());
    let submitted_ms = fs.now_ms;
    let twice = "IOException: Zone /z is already submitted for re-encryption.";
    assert_eq!(fs.refused(start()), twice);
    let zone = fs.status("/z").unwrap().inode.id;
    let renewed = |n: u8, old| RenewedKey {
        file: files[usize::from(n)],
        old: key(old, "k@0"),
        new: key(n + 10, "k@1"),
    };
    let advance =
        |files, failed, is_last| AdvanceReencryption { zone, submitted_ms, files, failed, is_last };
    // The second has got another key since, the third is gone.
    fs.delete("/z/2");
    let batch = vec![renewed(0, 0), renewed(1, 9), renewed(2, 2)];
    assert_eq!(fs.ok(advance(batch, 0, false)), Outcome::Flag(true));
    assert_eq!(fs.progress("/z"), (1, 0, false, true));
    assert_eq!(fs.encryption("/z/0"), file_of(key(10, "k@1")));
    assert_eq!(fs.encryption("/z/1"), file_of(key(1, "k@0")));
    fs.ok(cancel());
    assert_eq!(fs.progress("/z"), (1, 0, true, false));
    let late = advance(vec![renewed(3, 3)], 0, true);
    assert_eq!(fs.ok(late.clone()), Outcome::Flag(false));
    fs.ok(start());
    // What the first one did too late is not meant by the second.
    assert_eq!(fs.ok(late), Outcome::Flag(false));
    let submitted_ms = fs.now_ms - 1;
    let rest = AdvanceReencryption { submitted_ms, ..advance(vec![renewed(3, 3)], 1, true) };
    assert_eq!(fs.ok(rest), Outcome::Flag(false));
    assert_eq!(fs.progress("/z"), (1, 1, false, false));
    let (found, _) = query::reencrypted_zones(&fs.store, InodeId::NONE, 10).unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn a_walk_finds_all_files_with_old_keys() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    fs.zone("/z/m/inner", "k");
    fs.secret("/z/m/inner/f", "k", key(0, "k@0"));
    let mut wanted: Vec<InodeId> = Vec::new();
    for n in 0..2100 {
        let version = if n % 3 == 0 { "k@1" } else { "k@0" };
        let folder = ["", "/m", "/m/n", "/o"][n % 4];
        let id = fs.secret(&format!("/z{folder}/{n}"), "k", key(n as u8, version));
        if n % 3 != 0 {
            wanted.push(id);
        }
    }
    let root_id = fs.status("/z").unwrap().inode.id;
    let mut walk = Walk::over(root_id);
    let mut found = Vec::new();
    while !walk.is_done() {
        walk.step(&fs.store, "k@1", &mut found).unwrap();
    }
    let mut found: Vec<InodeId> = found.into_iter().map(|(id, _)| id).collect();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn only_readers_learn_of_zones() {
    let mut fs = Fs::new();
    fs.zone("/z", "k");
    fs.ok(cairn_namespace::ops::set_permission::SetPermission { path: "/z".into(), mode: 0o700 });
    let denied = query::zone_of_path(&fs.store, &user("bob"), "/z");
    assert!(refusal(denied).starts_with("AccessControlException"));
}
