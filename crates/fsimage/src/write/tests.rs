use super::*;
use crate::attributes::{AclKind, TypeQuota};
use crate::inode::Writer;
use crate::{
    CacheDirective, CachePool, Child, EcPolicy, Image, InodeKind, NameKind, Names,
    OpenFile as Open, PolicyState, Snapshots, Tree,
};
use std::cmp::Ordering;
use std::io::Cursor;

const ROOT: Common<'_> = Common {
    id: 16385,
    name: b"",
    owner: "root",
    group: "super",
    mode: 0o1755,
    acl: &[],
    xattrs: &[],
    modified_ms: 12,
};

fn counters() -> Counters {
    Counters {
        namespace_id: 7,
        stamp: 1009,
        legacy_stamp: 1000,
        last_block: 1_073_741_830,
        last_group: Some(i64::MIN + 16),
        transaction: 99,
        rolling_upgrade: false,
    }
}

fn cache() -> Cache {
    let pool = CachePool {
        name: "pool".into(),
        owner: "root".into(),
        group: "super".into(),
        mode: 0o755,
        limit: Some(10),
        ttl_max_ms: None,
        replication: 2,
    };
    let (path, pool_name) = ("/a".into(), "pool".into());
    let directive = CacheDirective { id: 3, path, replication: 1, pool: pool_name, expires_ms: 4 };
    Cache { next_directive: 4, pools: vec![pool], directives: vec![directive] }
}

/// An image with something of everything that is written.
fn written() -> Vec<u8> {
    let mut image = ImageWriter::begin(Vec::new()).unwrap();
    let own = EcPolicy { id: 1, state: PolicyState::Enabled, ..EcPolicy::default() };
    let other = EcPolicy {
        id: 64,
        name: "RS-4-2-64k".into(),
        codec: "rs".into(),
        data_units: 4,
        parity_units: 2,
        cell_len: 65536,
        state: PolicyState::Disabled,
    };
    let acl = [
        AclEntry { permission: 7, kind: AclKind::Group, is_default: false, name: Some("ops") },
        AclEntry { permission: 5, kind: AclKind::User, is_default: true, name: Some("root") },
        AclEntry { permission: 4, kind: AclKind::Other, is_default: true, name: None },
    ];
    let xattrs = [
        XAttr { namespace: 4, name: "one", value: b"x" },
        XAttr { namespace: 1, name: "two", value: b"" },
    ];
    let quotas = [TypeQuota { storage_type: 2, bytes: 1 << 40 }];
    let replicated = File {
        redundancy: FileRedundancy::Replicated(3),
        accessed_ms: 13,
        block_len: 1 << 20,
        writer: Some(Writer { client: "me", machine: "here" }),
        storage_policy: 7,
    };
    let striped = File {
        redundancy: FileRedundancy::Striped(64),
        writer: None,
        storage_policy: 0,
        ..replicated
    };
    let blocks = [Block { id: 5, stamp: 6, len: 7 }, Block { id: i64::MIN, stamp: 8, len: 9 }];
    let all = [
        image.section(sections::NS_INFO, |to| to.counters(&counters())),
        image.section(sections::ERASURE_CODING, |to| to.policies(&[own, other])),
        image.section(sections::INODE, |to| {
            to.inode_head(16400, 3)?;
            let quota = Directory {
                name_quota: Some(i64::MAX as u64),
                space_quota: None,
                type_quotas: &quotas,
            };
            to.directory(&Common { acl: &acl, xattrs: &xattrs, ..ROOT }, &quota)?;
            let file = Common { id: 16386, name: b"a", ..ROOT };
            to.file(&Common { xattrs: &xattrs, ..file }, &replicated, &blocks[..1])?;
            to.file(&Common { id: 16387, name: b"b", ..file }, &striped, &blocks[1..])
        }),
        image.section(sections::INODE_DIR, |to| to.children(16385, &[16386, 16387])),
        image.section(sections::FILES_UNDERCONSTRUCTION, |to| {
            to.open_file(&Open { inode: 16386, path: "/a".into() })
        }),
        image.section(sections::SNAPSHOT, |to| to.no_snapshots(4, &[16385])),
        image.section(sections::SECRET_MANAGER, |to| to.no_tokens()),
        image.section(sections::CACHE_MANAGER, |to| to.cache(&cache())),
    ];
    all.into_iter().for_each(|written: io::Result<()>| written.unwrap());
    image.end().unwrap()
}

#[test]
fn names_are_written_in_the_order_of_their_numbers() {
    let entries = |names: &[String]| {
        let mut numbers = Numbers::default();
        for name in names {
            numbers.of(NameKind::User, name).unwrap();
        }
        numbers.entries().map(|entry| format!("{entry:?}")).collect::<Vec<_>>()
    };
    let names: Vec<_> = (0..20).map(|number| format!("user{}", number * 7 % 20)).collect();
    assert_eq!(entries(&names), entries(&names), "the same namespace gives the same bytes");
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = written();
    let mut image = Image::open(Cursor::new(&bytes[..])).unwrap();
    assert_eq!((image.layout(), image.file_len()), (-67, bytes.len() as u64));
    let names = Names::read(image.required(sections::STRING_TABLE).unwrap()).unwrap();
    assert_eq!(Counters::read(image.required(sections::NS_INFO).unwrap()).unwrap(), counters());
    let policies = EcPolicy::read(image.section(sections::ERASURE_CODING).unwrap()).unwrap();
    assert_eq!((policies[0].id, policies[0].state), (1, PolicyState::Enabled));
    let EcPolicy { name, data_units, cell_len, state, .. } = &policies[1];
    assert_eq!((&name[..], *data_units, *cell_len), ("RS-4-2-64k", 4, 65536));
    assert_eq!(*state, PolicyState::Disabled);

    let mut tree = Tree::read(image.required(sections::INODE).unwrap()).unwrap();
    assert_eq!((tree.last_id, tree.count), (16400, 3));
    let root = tree.inode().unwrap().unwrap();
    let InodeKind::Directory(directory) = root.kind else { panic!("{root:?}") };
    assert_eq!((directory.name_quota, directory.space_quota), (Some(i64::MAX as u64), None));
    let quotas: Vec<_> = directory.type_quotas.iter().collect();
    assert_eq!(quotas, [TypeQuota { storage_type: 2, bytes: 1 << 40 }]);
    let told: Vec<_> = directory.acl.unwrap().iter().collect();
    let told: Vec<_> = told
        .iter()
        .map(|of| (of.permission(), of.kind(), of.is_default(), of.name(&names)))
        .collect();
    let want = [
        (7, AclKind::Group, false, Some("ops")),
        (5, AclKind::User, true, Some("root")),
        (4, AclKind::Other, true, None),
    ];
    assert_eq!(told, want);
    let told: Vec<_> = directory.xattrs.iter().collect();
    let told: Vec<_> =
        told.iter().map(|of| (of.namespace(), of.name(&names).unwrap(), of.value)).collect();
    assert_eq!(told, [(4, "one", &b"x"[..]), (1, "two", b"")]);

    let first = tree.inode().unwrap().unwrap();
    let InodeKind::File(file) = first.kind else { panic!("{first:?}") };
    assert_eq!((first.id, first.name), (16386, &b"a"[..]));
    assert_eq!((file.replication, file.ec_policy, file.storage_policy), (3, None, 7));
    assert_eq!((file.modified_ms, file.accessed_ms, file.block_len), (12, 13, 1 << 20));
    let writer = file.writer.unwrap();
    assert_eq!((writer.client, writer.machine), ("me", "here"));
    assert_eq!(file.blocks.iter().next(), Some(Block { id: 5, stamp: 6, len: 7 }));
    let permission = file.permission;
    assert_eq!(permission.mode(), 0o1755);
    assert_eq!((permission.owner(&names), permission.group(&names)), (Some("root"), Some("super")));
    let second = tree.inode().unwrap().unwrap();
    let InodeKind::File(file) = second.kind else { panic!("{second:?}") };
    assert_eq!((file.replication, file.ec_policy, file.writer.is_none()), (0, Some(64), true));
    assert_eq!(file.blocks.iter().next().unwrap().id, i64::MIN);
    assert!(tree.inode().unwrap().is_none());

    let mut children = Vec::new();
    let mut section = image.required(sections::INODE_DIR).unwrap();
    let entry = section.children().unwrap().unwrap();
    entry.each(|child| children.push(child)).unwrap();
    assert_eq!(children, [Child::Inode(16386), Child::Inode(16387)]);
    let open = Open::read(image.section(sections::FILES_UNDERCONSTRUCTION).unwrap()).unwrap();
    assert_eq!(open, [Open { inode: 16386, path: "/a".into() }]);
    let snapshots = Snapshots::read(image.required(sections::SNAPSHOT).unwrap()).unwrap();
    assert_eq!(
        (snapshots.counter, &snapshots.snapshottable[..], snapshots.count),
        (4, &[16385][..], 0)
    );
    assert_eq!(Cache::read(image.section(sections::CACHE_MANAGER).unwrap()).unwrap(), cache());
}

#[test]
fn users_groups_and_attributes_of_one_name_are_told_apart() {
    let mut numbers = Numbers::default();
    for (kind, name, number) in [
        (NameKind::User, "a", 1),
        (NameKind::Group, "a", 1),
        (NameKind::User, "b", 2),
        (NameKind::User, "a", 1),
        (NameKind::XAttr, "a", 1),
    ] {
        assert_eq!(numbers.of(kind, name), Ok(number), "{kind:?} {name}");
    }
    assert_eq!(numbers.entries().count(), 4);
}

#[test]
fn names_are_in_the_order_in_which_hadoop_looks_for_them() {
    let order = |one: &str, other: &str| compare_names(one.as_bytes(), other.as_bytes());
    assert_eq!(order("a", "b"), Ordering::Less);
    assert_eq!(order("a", "ab"), Ordering::Less);
    assert_eq!(order("ab", "ab"), Ordering::Equal);
    // Bytes are signed there.
    assert_eq!(order("\u{fc}ber", "a"), Ordering::Less);
    assert_eq!(order("a\u{fc}", "a"), Ordering::Greater);
}
