//! Images that Hadoop 3.5.0 has written, beside what its client saw of the same tree: `interop/moving` made both.

use cairn_fsimage::{
    AclEntry, AclKind, Child, Counters, Diff, Diffs, EcPolicy, Image, ImageError, InodeKind, Names,
    OpenFile, Permission, ROOT, Reference, Snapshots, Tree, XAttrs, sections,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;

const PLAIN: &[u8] = include_bytes!("golden/hadoop-3.5.0.fsimage");
const ZLIB: &[u8] = include_bytes!("golden/hadoop-3.5.0-zlib.fsimage");

const IMAGES: [(&[u8], &str); 2] = [
    (PLAIN, include_str!("golden/hadoop-3.5.0.facts")),
    (ZLIB, include_str!("golden/hadoop-3.5.0-zlib.facts")),
];

/// The name of the attribute in which a directory has its policy.
const POLICY: &str = "hdfs.erasurecoding.policy";

/// The name of one of Hadoop's own policies.
fn name_of(policy: u32) -> &'static str {
    let names =
        ["RS-6-3-1024k", "RS-3-2-1024k", "RS-LEGACY-6-3-1024k", "XOR-2-1-1024k", "RS-10-4-1024k"];
    names[policy as usize - 1]
}

fn open(bytes: &[u8]) -> Image<Cursor<&[u8]>> {
    Image::open(Cursor::new(bytes)).unwrap()
}

/// A line of facts without path and name, as key and value.
fn facts(line: &str) -> BTreeMap<String, String> {
    // Lists have blanks of their own.
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for word in line.split(' ') {
        match word.split_once('=') {
            Some((key, value))
                if key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
                    && !key.is_empty() =>
            {
                last = key.to_string();
                found.insert(last.clone(), value.to_string());
            }
            _ if last.is_empty() => {}
            _ => {
                let value = found.get_mut(&last).unwrap();
                value.push(' ');
                value.push_str(word);
            }
        }
    }
    found
}

struct Reader {
    names: Names,
    found: BTreeMap<u64, (String, BTreeMap<String, String>)>,
}

impl Reader {
    fn owner(&self, permission: Permission) -> String {
        let name = |name: Option<&str>| name.unwrap_or("").to_string();
        format!("{}:{}", name(permission.owner(&self.names)), name(permission.group(&self.names)))
    }

    fn acl(&self, entries: impl Iterator<Item = AclEntry>) -> String {
        let told = entries.map(|entry| {
            let scope = if entry.is_default() { "default:" } else { "" };
            let kind = match entry.kind() {
                AclKind::User => "user",
                AclKind::Group => "group",
                AclKind::Mask => "mask",
                AclKind::Other => "other",
            };
            let bit = |bit: u8, letter| if entry.permission() & bit != 0 { letter } else { '-' };
            let name = entry.name(&self.names).unwrap_or("");
            format!("{scope}{kind}:{name}:{}{}{}", bit(4, 'r'), bit(2, 'w'), bit(1, 'x'))
        });
        let told: Vec<String> = told.collect();
        format!("[{}]", told.join(", "))
    }

    fn policy_of(&self, xattrs: XAttrs<'_>) -> String {
        let policy = xattrs.iter().find(|of| of.name(&self.names) == Some(POLICY));
        policy.map_or("-".to_string(), |of| {
            let value = of.value;
            String::from_utf8(value[4..].to_vec()).unwrap()
        })
    }

    fn xattrs(&self, xattrs: XAttrs<'_>) -> Option<String> {
        let told: BTreeMap<String, String> = xattrs
            .iter()
            .filter(|of| of.namespace() != 3)
            .map(|of| {
                let space = ["user", "trusted", "security", "system", "raw"];
                let space = space[usize::from(of.namespace())];
                let hex = of.value.iter().map(|byte| format!("{byte:02x}")).collect();
                (format!("{space}.{}", of.name(&self.names).unwrap()), hex)
            })
            .collect();
        let told: Vec<String> = told.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        (!told.is_empty()).then(|| format!("{{{}}}", told.join(", ")))
    }

    fn read(bytes: &[u8]) -> Reader {
        let mut image = open(bytes);
        let names = Names::read(image.required(sections::STRING_TABLE).unwrap()).unwrap();
        let mut reader = Reader { names, found: BTreeMap::new() };
        let mut tree = Tree::read(image.required(sections::INODE).unwrap()).unwrap();
        let count = tree.count;
        while let Some(inode) = tree.inode().unwrap() {
            let mut facts = BTreeMap::new();
            let mut tell = |key: &str, value: String| facts.insert(key.to_string(), value);
            tell("id", inode.id.to_string());
            match inode.kind {
                InodeKind::File(file) => {
                    tell("owner", reader.owner(file.permission));
                    tell("mode", format!("{:o}", file.permission.mode()));
                    tell("modified", file.modified_ms.to_string());
                    tell("accessed", file.accessed_ms.to_string());
                    tell("storage", file.storage_policy.to_string());
                    tell("ec", file.ec_policy.map_or("-", name_of).to_string());
                    tell("block", file.block_len.to_string());
                    let blocks = file.blocks.iter();
                    let mut blocks: Vec<String> =
                        blocks.map(|of| format!("{}_{}:{}", of.id, of.stamp, of.len)).collect();
                    if let Some(writer) = file.writer {
                        assert!(writer.client.starts_with("DFSClient_"), "{writer:?}");
                        // Of a block that is written the image has no length.
                        *blocks.last_mut().unwrap() = blocks.last().unwrap().replace(":0", ":100");
                    } else {
                        tell("length", file.len().to_string());
                    }
                    let replication = file.ec_policy.map_or(file.replication, |_| 1);
                    tell("replication", replication.to_string());
                    tell("blocks", format!("[{}]", blocks.join(", ")));
                    if let Some(acl) = file.acl {
                        tell("acl", reader.acl(acl.iter()));
                    }
                    reader.xattrs(file.xattrs).map(|told| tell("xattrs", told));
                }
                InodeKind::Directory(directory) => {
                    tell("owner", reader.owner(directory.permission));
                    tell("mode", format!("{:o}", directory.permission.mode()));
                    tell("modified", directory.modified_ms.to_string());
                    let told = |quota: Option<u64>| quota.map_or(-1, |of| of as i64);
                    let ssd = directory.type_quotas.iter().find(|of| of.storage_type == 2);
                    let ssd = told(ssd.map(|of| of.bytes));
                    let (names, space) = (directory.name_quota, directory.space_quota);
                    tell("quota", format!("{}/{}/{ssd}", told(names), told(space)));
                    tell("ec", reader.policy_of(directory.xattrs));
                    if let Some(acl) = directory.acl {
                        tell("acl", reader.acl(acl.iter()));
                    }
                    reader.xattrs(directory.xattrs).map(|told| tell("xattrs", told));
                }
                InodeKind::Symlink(_) => panic!("no symbolic link was made"),
            }
            let name = String::from_utf8(inode.name.to_vec()).unwrap();
            reader.found.insert(inode.id, (name, facts));
        }
        assert_eq!(count, reader.found.len() as u64);
        reader
    }
}

/// Paths by the number of the inode.
fn paths(
    bytes: &[u8],
    names: &BTreeMap<u64, (String, BTreeMap<String, String>)>,
) -> HashMap<u64, String> {
    let mut image = open(bytes);
    let references = Reference::read(image.section(sections::INODE_REFERENCE).unwrap()).unwrap();
    let mut parents = HashMap::new();
    let mut section = image.required(sections::INODE_DIR).unwrap();
    while let Some(entry) = section.children().unwrap() {
        entry
            .each(|child| {
                let child = match child {
                    Child::Inode(id) => id,
                    Child::Reference(number) => references[number as usize].inode,
                };
                parents.insert(child, entry.parent);
            })
            .unwrap();
    }
    let mut found = HashMap::from([(ROOT, "/".to_string())]);
    for id in parents.keys() {
        let (mut path, mut at) = (String::new(), *id);
        // What only snapshots have has no way to the root.
        while let Some(parent) = parents.get(&at) {
            path = format!("/{}{path}", names[&at].0);
            at = *parent;
        }
        if at == ROOT {
            found.insert(*id, path);
        }
    }
    found
}

#[test]
fn every_inode_is_what_hadoops_client_saw() {
    for (bytes, text) in IMAGES {
        let reader = Reader::read(bytes);
        let paths = paths(bytes, &reader.found);
        let mut seen = 0;
        for line in
            text.lines().filter(|line| line.starts_with("path ") && !line.contains(".snapshot"))
        {
            let path = line.split(' ').nth(1).unwrap().replace("%20", " ");
            let mut want = facts(line);
            want.remove("md5");
            let id = want["id"].split(' ').next().unwrap().to_string();
            want.insert("id".into(), id.clone());
            let id: u64 = id.parse().unwrap();
            let have = reader.found[&id].1.clone();
            assert_eq!(paths[&id], path);
            if line.ends_with(" open") {
                want.remove("length");
                let blocks = want.get_mut("blocks").unwrap();
                blocks.truncate(blocks.len() - " open".len());
            }
            if line.contains(" dir ") {
                // A client is told no times of directories, and the policy that counts.
                want.remove("accessed");
                let storage = want.remove("storage").unwrap();
                assert_eq!(storage == "2", path == "/cold");
            }
            assert_eq!(have, want, "{path}");
            seen += 1;
        }
        assert_eq!(seen, 24);
    }
}

#[test]
fn counters_policies_and_leases_are_read() {
    let mut image = open(PLAIN);
    assert_eq!((image.layout(), image.is_compressed()), (-67, false));
    assert!(open(ZLIB).is_compressed());
    let counters = Counters::read(image.required(sections::NS_INFO).unwrap()).unwrap();
    let facts = IMAGES[0].1;
    assert!(facts.contains(&format!("{}_", counters.last_block)));
    assert_eq!((counters.last_block, counters.legacy_stamp), (1_073_741_839, 1000));
    // Groups have sixteen numbers each, of which the counter has the last one that was given out.
    assert_eq!(counters.last_group, Some(i64::MIN + 112));
    let stamps = facts.split(['[', ' ']).filter_map(|of| of.split_once('_')?.1.split_once(':'));
    let newest = stamps.filter_map(|(stamp, _)| stamp.parse::<u64>().ok()).max();
    assert!(newest.is_some_and(|newest| (newest..newest + 10).contains(&counters.stamp)));
    assert!(counters.transaction > 100);
    assert!(!counters.rolling_upgrade && counters.namespace_id > 0);
    let policies = EcPolicy::read(image.section(sections::ERASURE_CODING).unwrap()).unwrap();
    // Of Hadoop's own policies it has numbers and states only.
    let mut told: Vec<String> =
        policies.iter().map(|of| format!("{}={:?}", name_of(of.id), of.state)).collect();
    told.sort();
    let want = IMAGES[0].1.lines().find(|line| line.starts_with("policies")).unwrap();
    assert_eq!(format!("policies [{}]", told.join(", ")).to_lowercase(), want.to_lowercase());
    assert!(policies.iter().all(|of| of.name.is_empty() && of.data_units == 0));
    let open = OpenFile::read(image.section(sections::FILES_UNDERCONSTRUCTION).unwrap()).unwrap();
    assert_eq!(open, [OpenFile { inode: 16411, path: "/plain/open".into() }]);
    let unknown = image.sections().iter().find(|of| !sections::ALL.contains(&of.name.as_str()));
    assert_eq!(unknown, None);
    let missing = image.required("NO_SUCH").map(|_| ());
    assert!(matches!(missing, Err(ImageError::Missing("NO_SUCH"))));
}

#[test]
fn snapshots_and_their_differences_are_read() {
    for (bytes, _) in IMAGES {
        let mut image = open(bytes);
        let mut snapshots = Snapshots::read(image.required(sections::SNAPSHOT).unwrap()).unwrap();
        let mut directories = snapshots.snapshottable.clone();
        directories.sort_unstable();
        assert_eq!((directories, snapshots.count), (vec![16393, 16395], 2));
        let mut found = Vec::new();
        while let Some(snapshot) = snapshots.snapshot().unwrap() {
            let name = String::from_utf8(snapshot.root.name.to_vec()).unwrap();
            found.push((snapshot.id, snapshot.root.id, name));
        }
        let want = [(0, 16393, "first".to_string()), (1, 16393, "second".to_string())];
        assert_eq!(found, want);
        let mut diffs = Diffs::read(image.required(sections::SNAPSHOT_DIFF).unwrap());
        let (mut at, mut directories, mut files, mut created) = (0, Vec::new(), Vec::new(), 0);
        while let Some(diff) = diffs.diff().unwrap() {
            match diff {
                Diff::Of { inode, .. } => at = inode,
                Diff::Directory(diff) => {
                    let gone = diff.deleted.len() + diff.deleted_references.len();
                    directories.push((at, diff.snapshot, gone));
                }
                Diff::Created(_) => created += 1,
                Diff::File(diff) => files.push((at, diff.snapshot, diff.len)),
            }
        }
        directories.sort_unstable();
        // "gone" and "moved" went after the first snapshot, "dir" after the second; "new" came then.
        assert_eq!(directories, [(16393, 0, 2), (16393, 1, 1), (16394, 0, 0), (16394, 1, 0)]);
        assert!(files.contains(&(16406, 0, 5000)), "{files:?}");
        assert_eq!(created, 1);
    }
}

/// Reads all that there is; how it ends says nothing.
fn read_all(bytes: &[u8]) -> Result<(), ImageError> {
    let mut image = Image::open(Cursor::new(bytes))?;
    let _ = Names::read(image.required(sections::STRING_TABLE)?);
    let _ = EcPolicy::read(image.section(sections::ERASURE_CODING)?);
    let _ = Counters::read(image.required(sections::NS_INFO)?);
    let _ = OpenFile::read(image.section(sections::FILES_UNDERCONSTRUCTION)?);
    let _ = Reference::read(image.section(sections::INODE_REFERENCE)?);
    let mut tree = Tree::read(image.required(sections::INODE)?)?;
    while let Ok(Some(inode)) = tree.inode() {
        if let InodeKind::File(file) = inode.kind {
            assert_eq!(file.blocks.iter().count(), file.blocks.len());
        }
    }
    let mut section = image.required(sections::INODE_DIR)?;
    while let Ok(Some(entry)) = section.children() {
        let _ = entry.each(|_| ());
    }
    let mut snapshots = Snapshots::read(image.required(sections::SNAPSHOT)?)?;
    while let Ok(Some(_)) = snapshots.snapshot() {}
    let mut diffs = Diffs::read(image.required(sections::SNAPSHOT_DIFF)?);
    while let Ok(Some(_)) = diffs.diff() {}
    Ok(())
}

proptest! {
    #[test]
    fn a_damaged_image_is_an_error_and_no_more(
        at in 0..PLAIN.len(), byte in any::<u8>(), end in 0..PLAIN.len(),
    ) {
        let mut damaged = PLAIN.to_vec();
        damaged[at] = byte;
        let _ = read_all(&damaged);
        let _ = read_all(&PLAIN[..end]);
        let mut damaged = ZLIB.to_vec();
        let at = at % damaged.len();
        damaged[at] = byte;
        let _ = read_all(&damaged);
    }
}

#[test]
fn what_is_no_image_is_told_so() {
    for bytes in [&b""[..], b"HDFSIMG1", b"not an image at all"] {
        let error = Image::open(Cursor::new(bytes)).map(|_| ()).unwrap_err();
        assert!(matches!(error, ImageError::NotAnImage), "{error}");
    }
}
