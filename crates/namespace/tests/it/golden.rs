//! Bytes of the log that must never change.

use crate::support::{Fs, add_block, create};
use cairn_namespace::acl::{AclEntry, AclKind, AclScope, CreateMode};
use cairn_namespace::encoding::DecodeError;
use cairn_namespace::ops::acl::{AclChange, ChangeAcl};
use cairn_namespace::ops::configure::Configure;
use cairn_namespace::ops::ec::SetEcPolicy;
use cairn_namespace::ops::lease::{LastBlocks, RecoverLease};
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::set_quota::{QuotaChange, SetQuota, SetTypeQuota};
use cairn_namespace::ops::snapshot::{
    AllowSnapshot, CollectSnapshot, CreateSnapshot, DeleteSnapshot,
};
use cairn_namespace::query;
use cairn_namespace::store::{StoreRead, Table};
use cairn_namespace::{BlockRef, CallId, Caller, Command, Entry, InodeId, Settings};
use cairn_stripe::{BlockId, GenerationStamp};
use proptest::prelude::*;

fn entry(command: impl Into<Command>) -> Entry {
    Entry {
        now_ms: 300,
        elapsed_ms: 300,
        caller: Caller { user: "u".into(), groups: vec!["g".into()], ..Caller::default() },
        call: Some(CallId { client_id: [7; 16], call_id: -3 }),
        command: command.into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Version, time, caller, call: the same before each command.
const PREFIX: &str = "01ac02017501016700010707070707070707070707070707070705";

#[test]
fn entries_have_these_bytes() {
    let mkdirs = Mkdirs { path: "/a".into(), mode: 0o755.into(), create_parent: true };
    let previous = BlockRef { id: BlockId(i64::MIN + 16), gs: GenerationStamp(1001), len: 5 };
    let block = cairn_namespace::ops::add_block::AddBlock {
        previous_crcs: vec![Some(0xffff_ffff), None],
        ..add_block("/f", Some(previous))
    };
    let cases: [(Entry, &str); 4] = [
        (entry(mkdirs), "02022f61ed0301"),
        (entry(SetEcPolicy { path: "/".into(), policy: None }), "1f012f00"),
        (entry(block), "04022f660006636c69656e7401dfffffffffffffffff01e90705020 1ffffffff0f0001"),
        (entry(create("/f")), "03022f66a40306636c69656e7404686f73740100000103808080400000"),
    ];
    for (entry, want) in cases {
        let bytes = entry.to_bytes();
        assert_eq!(hex(&bytes), format!("{PREFIX}{}", want.replace(' ', "")));
        assert_eq!(Entry::from_bytes(&bytes), Ok(entry));
    }
}

#[test]
fn an_entry_whose_times_differ_says_by_how_much() {
    let mkdirs = Mkdirs { path: "/a".into(), mode: 0o755.into(), create_parent: true };
    for (elapsed_ms, difference) in [
        (299i64, "02"),
        (301, "01"),
        (300 - (1 << 20), "80808001"),
        (300 - (1 << 41), "80808080808001"),
    ] {
        let elapsed_ms = elapsed_ms as u64;
        let entry = Entry { elapsed_ms, ..entry(mkdirs.clone()) };
        let bytes = entry.to_bytes();
        let want = format!("03ac02{difference}{}02022f61ed0301", &PREFIX[6..]);
        assert_eq!(hex(&bytes), want);
        assert_eq!(Entry::from_bytes(&bytes), Ok(entry));
    }
    let same = [&[3, 0xac, 2, 0][..], &entry(mkdirs).to_bytes()[3..]].concat();
    let what = "difference of times";
    assert_eq!(Entry::from_bytes(&same), Err(DecodeError::Invalid { what, value: 0 }));
}

#[test]
fn what_was_seen_follows_what_is_known_of_replicas() {
    let bytes = |seen| {
        let replicas = LastBlocks {
            penultimate_min_replicated: true,
            last_min_replicated: false,
            last_has_locations: true,
            seen,
        };
        let entry = entry(RecoverLease { path: "/f".into(), holder: "c".into(), replicas });
        assert_eq!(Entry::from_bytes(&entry.to_bytes()).as_ref(), Ok(&entry));
        hex(&entry.to_bytes()).replace(PREFIX, "")
    };
    assert_eq!(bytes(None), "0c022f660163010001");
    assert_eq!(bytes(Some(None)), "0c022f66016303000100");
    let last = (BlockId(7), GenerationStamp(1001));
    assert_eq!(bytes(Some(Some(last))), "0c022f660163030001010ee907");
}

#[test]
fn settings_that_differ_from_what_they_were_are_numbered() {
    let bytes = |settings: Settings| {
        let entry = entry(Configure { settings: settings.into() });
        assert_eq!(Entry::from_bytes(&entry.to_bytes()).as_ref(), Ok(&entry));
        hex(&entry.to_bytes()).replace(PREFIX, "")
    };
    let before = || Settings { retry_entries_max: 0, rules: 0, ..Settings::default() };
    let plain = bytes(before());
    let off = bytes(Settings { acls_enabled: false, ..before() });
    assert!(plain.starts_with("0101") && plain.ends_with("808080020120808001"), "{plain}");
    assert_eq!(off, format!("0103{}010100", &plain[4..]));
    let bounded = bytes(Settings { retry_entries_max: 300, ..before() });
    assert_eq!(bounded, format!("0103{}0105ac02", &plain[4..]));
    let ruled = bytes(Settings { rules: 1, ..before() });
    assert_eq!(ruled, format!("0103{}010a01", &plain[4..]));
    let few = bytes(Settings { objects_max: 300, ..before() });
    assert_eq!(few, format!("0103{}010cac02", &plain[4..]));
    let ordered = Settings { snapshots_deleted_in_order: true, ..before() };
    let ordered = bytes(Settings { snapshot_trash_roots: true, ..ordered });
    assert_eq!(ordered, format!("0103{}020d010e01", &plain[4..]));
    let protected_directories = vec!["/a".to_string()];
    let protected = bytes(Settings { protected_directories, ..before() });
    assert_eq!(protected, format!("0105{}01022f61", &plain[4..]));
}

#[test]
fn modes_of_creation_have_these_bytes() {
    let mode = CreateMode { masked: 0o644, unmasked: Some(0o666) };
    let mkdirs = Mkdirs { path: "/a".into(), mode, create_parent: true };
    let bytes = entry(mkdirs).to_bytes();
    assert_eq!(hex(&bytes), format!("{PREFIX}02022f61a483dc0d01"));
    assert!(Entry::from_bytes(&bytes).is_ok());
}

#[test]
fn records_have_these_bytes() {
    let mut fs = Fs::new();
    fs.mkdirs("/d");
    fs.set_policy("/d", "RS-3-2-1024k");
    let file = fs.write("/d/f", &[5]);
    let block = BlockId(i64::MIN + 16);
    let value = |table, key: &[u8]| hex(&fs.store.get(table, key).unwrap().unwrap());
    assert_eq!(
        value(Table::Inode, &file.key()),
        "01838001828001016604726f6f740a737570657267726f7570a403c7843dc5843d0002020280808040010500"
    );
    assert_eq!(
        value(Table::Inode, &InodeId(16386).key()),
        "01828001818001016404726f6f740a737570657267726f7570ed03c5843d00000101010200"
    );
    assert_eq!(
        value(Table::Block, &[0, 0, 0, 0, 0, 0, 0, 16]),
        "01dfffffffffffffffff01e90705838001000400"
    );
    assert_eq!(query::get_block(&fs.store, block).unwrap().unwrap().block.file, file);
    assert_eq!(value(Table::Child, b"\0\0\0\0\0\0\x40\x02f"), "4000000000004003");
    assert_eq!(value(Table::Child, b"\0\0\0\0\0\0\x40\x01d"), "8000000000004002");
    assert_eq!(
        value(Table::FileBlock, b"\0\0\0\0\0\0\x40\x03\0\0\0\0"),
        "0100dfffffffffffffffff01"
    );
    let bob = AclEntry {
        scope: AclScope::Access,
        kind: AclKind::User,
        name: Some("b".into()),
        permission: 5,
    };
    let change = AclChange::Modify { entries: vec![bob] };
    fs.ok(ChangeAcl { path: "/d/f".into(), change });
    assert_eq!(
        hex(&fs.store.get(Table::Inode, &file.key()).unwrap().unwrap()),
        "01838001828001016604726f6f740a737570657267726f7570ac8302c7843dc5843d00020202808080400105000200000\
         101620500010004"
    );
    let value = |table, key: &[u8]| hex(&fs.store.get(table, key).unwrap().unwrap());
    assert_eq!(value(Table::Policy, &[2]), "01020c52532d332d322d313032346b01030280804002");
}

#[test]
fn the_mark_of_a_deleted_snapshot_follows_its_record() {
    assert_eq!(hex(&entry(CollectSnapshot {}).to_bytes()), format!("{PREFIX}36"));
    let mut fs = Fs::with(Settings { snapshots_deleted_in_order: true, ..Settings::default() });
    fs.mkdirs("/d");
    fs.ok(AllowSnapshot { path: "/d".into() });
    for name in ["a", "b"] {
        fs.ok(CreateSnapshot { path: "/d".into(), name: name.into() });
    }
    let key = [&InodeId(16386).key()[..], &(!1u32).to_be_bytes()].concat();
    let value = |fs: &Fs| hex(&fs.store.get(Table::Snapshot, &key).unwrap().unwrap());
    assert_eq!(value(&fs), "01010162c5843d828001");
    fs.ok(DeleteSnapshot { path: "/d".into(), name: "b".into() });
    assert_eq!(value(&fs), "010103622331c6843d82800101");
}

#[test]
fn quotas_by_type_follow_the_others() {
    let mut fs = Fs::new();
    fs.mkdirs("/q");
    let max = QuotaChange::Set { max: 5 };
    fs.ok(SetQuota { path: "/q".into(), names_max: max, space_max: QuotaChange::Keep });
    let value = |fs: &Fs| {
        let bytes = fs.store.get(Table::Inode, &InodeId(16386).key()).unwrap().unwrap();
        hex(&bytes)
    };
    assert!(value(&fs).ends_with("00010105000100"), "{}", value(&fs));
    fs.ok(SetTypeQuota {
        path: "/q".into(),
        kind: 1,
        space_max: max,
        keeps_names: true,
        names: i64::MAX as u64,
    });
    assert!(value(&fs).ends_with("0002010500010001010500"), "{}", value(&fs));
}

#[test]
fn damaged_entries_are_refused() {
    let bytes = entry(create("/f")).to_bytes();
    for len in 0..bytes.len() {
        assert!(Entry::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Entry::from_bytes(&longer), Err(DecodeError::Trailing { count: 1 }));
    let mut newer = bytes;
    newer[0] = 2;
    assert_eq!(Entry::from_bytes(&newer), Err(DecodeError::Version { version: 2 }));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(mut bytes: Vec<u8>, version_fits: bool) {
        if version_fits && !bytes.is_empty() {
            bytes[0] = 1;
        }
        if let Ok(entry) = Entry::from_bytes(&bytes) {
            prop_assert_eq!(entry.to_bytes(), bytes);
        }
    }
}
