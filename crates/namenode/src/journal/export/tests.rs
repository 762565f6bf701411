use super::*;
use crate::journal::import::{self, Sources, import};
use crate::journal::offline::check_folder;
use crate::journal::{Namesystem, NamesystemOptions};
use cairn_fsimage::{
    AclEntries, Child, Counters, EcPolicy, Image, InodeKind, Names, OpenFile, Permission,
    Snapshots, Tree, XAttrs, sections,
};
use cairn_namespace::ops::cache_directive::{AddCacheDirective, CacheDirectiveSpec};
use cairn_namespace::ops::cache_pool::{AddCachePool, CachePoolSpec};
use cairn_namespace::ops::create::Create;
use cairn_namespace::ops::delete::{Delete, Purge};
use cairn_namespace::ops::ec::{EnableEcPolicy, SetEcPolicy};
use cairn_namespace::ops::encryption::CreateEncryptionZone;
use cairn_namespace::ops::mkdirs::Mkdirs;
use cairn_namespace::ops::rename::RenameTo;
use cairn_namespace::ops::snapshot::{AllowSnapshot, CreateSnapshot, DeleteSnapshot};
use cairn_namespace::ops::truncate::Truncate;
use cairn_namespace::{Caller, Command, Entry, InodeId, cache, encryption, query};
use std::collections::BTreeMap;
use std::path::PathBuf;

const CACHE_LEN: usize = 16 << 20;

/// What an image says, told so that two can be compared however they number names and order inodes.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    inodes: BTreeMap<u64, String>,
    /// In their order.
    children: BTreeMap<u64, Vec<Child>>,
    policies: Vec<EcPolicy>,
    counters: Counters,
    last_id: u64,
    open: Vec<(u64, String)>,
    snapshottable: Vec<u64>,
}

fn permission(names: &Names, of: Permission) -> String {
    format!("{:?} {:?} {:o}", of.owner(names), of.group(names), of.mode())
}

fn acl(names: &Names, of: Option<AclEntries<'_>>) -> String {
    let all = of.into_iter().flat_map(AclEntries::iter);
    let told = all.map(|of| {
        (of.permission(), of.kind(), of.is_default(), of.name(names).map(str::to_string))
    });
    format!("{:?}", told.collect::<Vec<_>>())
}

fn xattrs(names: &Names, of: XAttrs<'_>) -> String {
    let told =
        of.iter().map(|of| (of.namespace(), of.name(names).map(str::to_string), of.value.to_vec()));
    let mut told: Vec<_> = told.collect();
    told.sort();
    format!("{told:?}")
}

fn told(path: &Path) -> Told {
    let mut image = Image::open(File::open(path).unwrap()).unwrap();
    let names = Names::read(image.required(sections::STRING_TABLE).unwrap()).unwrap();
    let mut inodes = BTreeMap::new();
    let mut tree = Tree::read(image.required(sections::INODE).unwrap()).unwrap();
    let (last_id, count) = (tree.last_id, tree.count);
    while let Some(inode) = tree.inode().unwrap() {
        let text = match inode.kind {
            InodeKind::File(of) => format!(
                "{} {:?} {} {} {} {} {:?} {:?} {} {} {} {:?}",
                of.replication,
                of.ec_policy,
                of.modified_ms,
                of.accessed_ms,
                of.block_len,
                permission(&names, of.permission),
                of.blocks.iter().collect::<Vec<_>>(),
                of.writer,
                acl(&names, of.acl),
                xattrs(&names, of.xattrs),
                of.storage_policy,
                inode.name
            ),
            InodeKind::Directory(of) => format!(
                "{} {:?} {:?} {:?} {} {} {} {:?}",
                of.modified_ms,
                of.name_quota,
                of.space_quota,
                of.type_quotas.iter().collect::<Vec<_>>(),
                permission(&names, of.permission),
                acl(&names, of.acl),
                xattrs(&names, of.xattrs),
                inode.name
            ),
            InodeKind::Symlink(_) => panic!("{inode:?}"),
        };
        inodes.insert(inode.id, text);
    }
    assert_eq!(inodes.len() as u64, count);
    let mut children = BTreeMap::new();
    let mut section = image.required(sections::INODE_DIR).unwrap();
    while let Some(entry) = section.children().unwrap() {
        let mut all = Vec::new();
        entry.each(|child| all.push(child)).unwrap();
        assert_eq!(children.insert(entry.parent, all), None);
    }
    let open = OpenFile::read(image.section(sections::FILES_UNDERCONSTRUCTION).unwrap()).unwrap();
    let mut policies = EcPolicy::read(image.section(sections::ERASURE_CODING).unwrap()).unwrap();
    policies.sort_by_key(|policy| policy.id);
    let snapshots = Snapshots::read(image.required(sections::SNAPSHOT).unwrap()).unwrap();
    assert_eq!(snapshots.count, 0);
    let snapshottable = snapshots.snapshottable.clone();
    Told {
        inodes,
        children,
        policies,
        counters: Counters::read(image.required(sections::NS_INFO).unwrap()).unwrap(),
        last_id,
        open: open.into_iter().map(|open| (open.inode, open.path)).collect(),
        snapshottable,
    }
}

/// Imports what was exported.
fn again(here: &Imported) -> import::Imported {
    let sources = Sources { image: here.to(), ..Sources::default() };
    import(&sources, &here.dir.path().join("again"), CACHE_LEN).unwrap()
}

/// A namespace made of an image that Hadoop has written.
struct Imported {
    dir: tempfile::TempDir,
    image: PathBuf,
}

impl Imported {
    fn new() -> Imported {
        let dir = tempfile::tempdir().unwrap();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fsimage/tests/golden");
        let image = golden.join("hadoop-3.5.0-plain.fsimage");
        let mut opened = Image::open(File::open(&image).unwrap()).unwrap();
        let counters = Counters::read(opened.required(sections::NS_INFO).unwrap()).unwrap();
        let identity = Identity {
            namespace_id: counters.namespace_id,
            cluster_id: "CID-4".into(),
            block_pool_id: "BP-1-127.0.0.1-2".into(),
            created_ms: 3,
        };
        let version_file = dir.path().join("VERSION");
        fs::write(&version_file, version(&identity)).unwrap();
        let version = Some(version_file);
        let sources = Sources { image: image.clone(), version, edits: None };
        import(&sources, &dir.path().join("data"), CACHE_LEN).unwrap();
        Imported { dir, image }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn to(&self) -> PathBuf {
        self.dir.path().join("name")
    }

    fn export(&self) -> Result<Exported, ExportError> {
        export(&self.data(), &Target::Folder(self.to()), CACHE_LEN)
    }

    /// Has the NameNode run, and make these calls.
    fn run(&self, commands: Vec<Command>) {
        let ns = Namesystem::open(&self.data(), NamesystemOptions::default()).unwrap();
        for command in commands {
            let (caller, now_ms) = (Caller::system(), 1_700_000_000_000);
            let entry = Entry { now_ms, elapsed_ms: 5, caller, call: None, command };
            ns.submit_blocking(entry).unwrap();
        }
        ns.close();
    }
}

#[test]
fn what_came_from_hadoop_goes_back_as_it_was() {
    let here = Imported::new();
    let exported = here.export().unwrap();
    assert_eq!(exported.written.changed, Vec::<String>::new());
    let counts = exported.written.counts;
    assert_eq!((counts.files, counts.directories, counts.open), (15, 11, 1));
    let (was, mut is) = (told(&here.image), told(&exported.image));
    is.counters.transaction = was.counters.transaction;
    assert_eq!(is, was);

    let current = here.to().join("current");
    let read = |name: &str| fs::read_to_string(current.join(name)).unwrap();
    let name = format!("fsimage_{:019}", exported.transaction);
    assert_eq!(exported.image, current.join(&name));
    assert_eq!(read(&format!("{name}.md5")), format!("{} *{name}\n", exported.written.md5));
    assert_eq!(read("seen_txid"), format!("{}\n", exported.transaction));
    assert!(read("VERSION").contains("\nlayoutVersion=-67\n"), "{}", read("VERSION"));
    // The import of it looks at all of these.
    let again = again(&here);
    assert_eq!(again.identity, exported.identity);
    assert_eq!(again.counts.blocks, counts.blocks);
}

#[test]
fn a_policy_that_only_cairn_has_built_in_goes_there_and_back() {
    let here = Imported::new();
    let name = "RS-6-3-64k".to_string();
    here.run(vec![
        mkdirs("/small"),
        EnableEcPolicy { name: name.clone() }.into(),
        SetEcPolicy { path: "/small".into(), policy: Some(name.clone()) }.into(),
    ]);
    let exported = here.export().unwrap();
    let policies = told(&exported.image).policies;
    let policy = policies.iter().find(|policy| policy.id == 6).unwrap();
    assert_eq!((&policy.name, policy.data_units, policy.cell_len), (&name, 6, 64 << 10));
    again(&here);
}

#[test]
fn nothing_is_written_over_or_left_half_written() {
    let here = Imported::new();
    let file = here.dir.path().join("image");
    fs::write(&file, "mine").unwrap();
    let target = Target::File(file.clone());
    let refused = export(&here.data(), &target, CACHE_LEN);
    assert!(matches!(refused, Err(ExportError::Exists { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    fs::create_dir_all(here.to()).unwrap();
    fs::write(here.to().join("mine"), "").unwrap();
    assert!(matches!(here.export(), Err(ExportError::NotEmpty { .. })));
    assert!(here.to().join("mine").exists());
    fs::remove_dir_all(here.to()).unwrap();
}

fn mkdirs(path: &str) -> Command {
    Mkdirs { path: path.into(), mode: 0o755.into(), create_parent: true }.into()
}

#[test]
fn what_an_image_cannot_have_is_named_and_nothing_is_written() {
    let here = Imported::new();
    let truncate = Truncate {
        path: "/plain/several blocks".into(),
        new_len: 5,
        holder: "me".into(),
        client_machine: "here".into(),
    };
    here.run(vec![truncate.into()]);
    let error = here.export().unwrap_err();
    assert!(matches!(error, ExportError::Refused(_)), "{error}");
    assert!(error.to_string().contains("files that are being cut off"), "{error}");
    assert!(!here.to().join("current").exists());
    let file = here.dir.path().join("image");
    assert!(export(&here.data(), &Target::File(file.clone()), CACHE_LEN).is_err());
    assert!(!file.exists() && !md5_name(&file).exists());
}

#[test]
fn snapshots_go_there_and_back() {
    let here = Imported::new();
    let (path, name) = ("/s".to_string(), "one".to_string());
    here.run(vec![
        mkdirs("/s/below"),
        AllowSnapshot { path: path.clone() }.into(),
        CreateSnapshot { path: path.clone(), name: name.clone() }.into(),
        mkdirs("/s/later"),
        RenameTo {
            src: "/s/below".into(),
            dst: "/plain/out".into(),
            overwrite: false,
            to_trash: false,
        }
        .into(),
    ]);
    let exported = here.export().unwrap();
    assert_eq!(exported.written.counts.snapshots, 1);
    let imported = again(&here);
    assert_eq!(imported.counts, exported.written.counts);
    let again = here.dir.path().join("again");
    assert_eq!(check_folder(&again, CACHE_LEN).unwrap().problems, Vec::<String>::new());
    let ns = Namesystem::open(&again, NamesystemOptions::default()).unwrap();
    let is_there = |path: &str| {
        let caller = Caller::system();
        ns.read(|store| query::get_file_info(store, &caller, path)).unwrap().is_some()
    };
    let paths = ["/s/.snapshot/one/below", "/s/later", "/plain/out"];
    assert!(paths.iter().all(|path| is_there(path)));
    assert!(!is_there("/s/.snapshot/one/later") && !is_there("/s/below"));
    ns.close();

    here.run(vec![
        DeleteSnapshot { path: path.clone(), name }.into(),
        Purge { limit: 1000 }.into(),
    ]);
    fs::remove_dir_all(here.to()).unwrap();
    let exported = here.export().unwrap();
    assert_eq!(told(&exported.image).snapshottable.len(), 2);
}

#[test]
fn what_only_cairn_has_is_written_as_what_comes_next_to_it_and_said() {
    let here = Imported::new();
    let policy = "RS-6-3-contiguous".to_string();
    let file = Create {
        path: "/cold/file".into(),
        mode: 0o644.into(),
        holder: "me".into(),
        client_machine: "here".into(),
        create: true,
        overwrite: false,
        should_replicate: false,
        create_parent: false,
        replication: 2,
        block_size: 1 << 20,
        ec_policy: None,
        storage_policy: None,
    };
    let pool = CachePoolSpec {
        name: "pool".into(),
        owner: Some("root".into()),
        group: Some("super".into()),
        mode: None,
        limit: None,
        replication: None,
        ttl_max_ms: None,
    };
    let directive = CacheDirectiveSpec {
        path: Some("/cold".into()),
        pool: Some("pool".into()),
        ..CacheDirectiveSpec::default()
    };
    here.run(vec![
        mkdirs("/cold"),
        mkdirs("/gone/below"),
        Delete { path: "/gone".into(), recursive: true }.into(),
        EnableEcPolicy { name: policy.clone() }.into(),
        SetEcPolicy { path: "/cold".into(), policy: Some(policy) }.into(),
        file.into(),
        AddCachePool { pool }.into(),
        AddCacheDirective { directive }.into(),
    ]);
    let exported = here.export().unwrap();
    let changed = exported.written.changed.join("\n");
    assert!(changed.contains("directories with policies of contiguous groups"), "{changed}");
    assert!(changed.contains("files that were to go into contiguous groups"), "{changed}");
    let told = told(&exported.image);
    assert!(told.policies.iter().all(|policy| policy.id <= 5), "{:?}", told.policies);
    let opened = told.open.iter().any(|(_, path)| path == "/cold/file");
    assert!(opened, "{:?}", told.open);
    let replication = b"\0\0\0\x0breplication".to_vec();
    let kept = told.inodes.values().filter(|text| text.contains(&format!("{replication:?}")));
    assert_eq!(kept.count(), 1);
    again(&here);
    let ns = Namesystem::open(&here.dir.path().join("again"), NamesystemOptions::default());
    let ns = ns.unwrap();
    let pools = ns.read(|store| cache::pools_after(store, "", 9)).unwrap();
    let directives = ns.read(|store| cache::directives_from(store, 0, 9)).unwrap();
    assert_eq!((&pools[0].name[..], pools[0].limit), ("pool", cache::UNLIMITED));
    assert_eq!((directives[0].id, &directives[0].path[..]), (1, "/cold"));
    ns.close();
}

#[test]
fn encryption_zones_go_there_and_back_with_the_keys_of_files() {
    let here = Imported::new();
    let (path, key_name) = ("/secret".to_string(), "key".to_string());
    let zone = CreateEncryptionZone { path: path.clone(), key_name: key_name.clone(), suite: 2 };
    here.run(vec![mkdirs(&path), zone.into()]);
    here.export().unwrap();
    again(&here);
    let again = here.dir.path().join("again");
    assert_eq!(check_folder(&again, CACHE_LEN).unwrap().problems, Vec::<String>::new());
    let ns = Namesystem::open(&again, NamesystemOptions::default()).unwrap();
    let zones = ns.read(|store| encryption::zones(store, InodeId(0), 9)).unwrap().0;
    assert_eq!(zones.len(), 1);
    assert_eq!((&zones[0].path, &zones[0].zone.key_name), (&path, &key_name));
    ns.close();
}
